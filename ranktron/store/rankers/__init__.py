"""Rankers at work: they rank, keep rounds open, learn from the entries of the journal, and recover from it."""
