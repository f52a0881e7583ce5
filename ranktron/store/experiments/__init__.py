"""Experiments: rankers compared on live traffic, and a guard that never leaves a worse one in service.

An experiment is asked as a ranker is, with the same two verbs. `rank` asks its arms, and shows the page of one of them
or one that mixes them; `feedback` goes to the arm that was shown, and to the tally. All that it decides is a function
of its definition and of the entries of its journal.
"""
