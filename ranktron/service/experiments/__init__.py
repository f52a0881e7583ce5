"""Experiments over HTTP: the service's experiments, their routes and their client."""
