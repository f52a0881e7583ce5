"""Pending rounds: what has to be kept of a round until its feedback arrives, independent of the number of documents."""

from typing import NamedTuple

import numpy as np

from ranktron.kernels.csr import Columns
from ranktron.types import Features, Floats

_NOTHING = np.zeros(0)

EVERY: Columns = np.zeros(0, np.int32)
"""The columns of a drift that is written out."""


class PendingRound(NamedTuple):
    """What is needed to learn from the labels of the documents shown first.

    `rows` are the features of these documents in the order shown, `shown` their scores (or what a surrogate takes from
    them), `drift` the part of the direction that is independent of labels and `constant` that of the loss; `size` is
    the number of documents. Labels are given by position: 0 is the document shown first. For sparse rows only the
    nonzero entries of `drift` are kept, in `columns`.
    """

    rows: Features
    shown: Floats
    number: int
    size: int
    drift: Floats = _NOTHING
    constant: float = 0.0
    propensities: Floats | None = None
    columns: Columns = EVERY
