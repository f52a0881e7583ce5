"""Comparing rankers on one page: their rankings are combined into the one that is shown, and clicks say who is better.

Each method is a value with two verbs. `combine(rankings, rng)` gives a `CombinedRanking`: show its `items`.
`credit(shown, clicks)` gives one number for each ranker; over many impressions the ranker with the highest mean is the
best one, and `ranktron.metrics.ConfidenceSequence` says when that is certain. `Balanced` and `Optimized` compare two
rankers, all others two or more (*multileaving*).

>>> import numpy as np
>>> method = TeamDraft(k=4)
>>> shown = method.combine([[0, 1, 2, 3], [3, 1, 0, 2]], np.random.default_rng(0))
>>> shown.items, shown.teams
(array([3, 0, 1, 2]), array([1, 0, 1, 0]))
>>> method.credit(shown, [0, 1, 0, 0])  # the second document was clicked
array([1., 0.])
"""

from ranktron.metrics.interleaving.combined import CombinedRanking, InterleavingMethod
from ranktron.metrics.interleaving.optimized import Optimized
from ranktron.metrics.interleaving.pairwise_preference import PairwisePreference
from ranktron.metrics.interleaving.probabilistic import Probabilistic
from ranktron.metrics.interleaving.turns import Balanced, SampleScored, TeamDraft

__all__ = [
    "Balanced",
    "CombinedRanking",
    "InterleavingMethod",
    "Optimized",
    "PairwisePreference",
    "Probabilistic",
    "SampleScored",
    "TeamDraft",
]
