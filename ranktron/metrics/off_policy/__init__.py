"""What would another ranker have earned? Estimates from the log of a ranker that drew what it showed.

The value of a ranker is the mean gain of a page: the clicks of all its places, or whatever was counted. Each estimator
is a function of plain arrays, one row for each impression and one column for each place; `estimate_values` computes all
of them for logs of `Impression`s, `estimate_bandit` for logs of single places, and a `RankingPolicy` says how likely a
ranker is to show what.

| estimator | is right if the gain of a place depends on |
|---|---|
| `ips`, `doubly_robust` | anything on the page |
| `self_normalised`, `self_normalised_doubly_robust` | anything on the page, for large logs |
| `reward_interaction`, `cascade_doubly_robust` | the document and those above it |
| `item_position` | the document and its place |
| `direct` | what the model of gains says |

The more an estimator assumes, the less it varies.
"""

from ranktron.metrics.off_policy.bandits import ItemGainModel, estimate_bandit
from ranktron.metrics.off_policy.estimators import (
    Estimate,
    cascade_doubly_robust,
    direct,
    doubly_robust,
    ips,
    item_position,
    reward_interaction,
    self_normalised,
    self_normalised_doubly_robust,
)
from ranktron.metrics.off_policy.policies import RankingPolicy
from ranktron.metrics.off_policy.values import GainModel, estimate_values

__all__ = [
    "Estimate",
    "GainModel",
    "ItemGainModel",
    "RankingPolicy",
    "cascade_doubly_robust",
    "direct",
    "doubly_robust",
    "estimate_bandit",
    "estimate_values",
    "ips",
    "item_position",
    "reward_interaction",
    "self_normalised",
    "self_normalised_doubly_robust",
]
