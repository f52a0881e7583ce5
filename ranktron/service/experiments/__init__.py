"""Experiments over the rankers of a service, with their paths and their client."""
