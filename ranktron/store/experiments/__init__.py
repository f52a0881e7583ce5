"""Experiments: rankers compared on live traffic, and guards that roll a ranker back when it gets worse.

An experiment has the interface of a ranker. `rank` returns the page of one of its arms, or a page that interleaves
them; `feedback` goes to the arm that was shown, and to the tally. Every decision is a function of the definition and
the journal's entries, so that a replay reproduces it.
"""
