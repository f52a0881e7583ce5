"""Pictures of models: learning curves, weights, the shapes of features, the page that explains a ranking."""
