"""Servers that follow another one, and take over from it."""
