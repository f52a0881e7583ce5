"""Figures: learning curves, weights, the curves of features, and the page that explains a ranking."""
