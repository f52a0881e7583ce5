"""Feedback from files and streams."""
