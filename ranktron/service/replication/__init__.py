"""Followers of a leader, and how one takes over as the leader."""
