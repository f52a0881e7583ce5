"""Data: queries with their documents, streams of them, scaling and feature maps, synthetic data, files."""
