"""Batch solvers: all lists at once, to an optimum that can be checked, or one weak ranker after the other."""
