"""Requests and answers: connections, one path after the other, and the server that listens."""
