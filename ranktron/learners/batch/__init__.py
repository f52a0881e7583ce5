"""Batch solvers, which use all queries at once: convex optimisation to a verifiable optimum, and boosting."""
