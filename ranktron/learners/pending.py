"""Pending rounds: all that must be kept of a round until its feedback comes, however long its list was."""

from typing import NamedTuple

import numpy as np

from ranktron.kernels.csr import Columns
from ranktron.types import Features, Floats

_NOTHING = np.zeros(0)

EVERY: Columns = np.zeros(0, np.int32)
"""The columns of a drift that is written out."""


class PendingRound(NamedTuple):
    """What learning from the labels of the first shown documents needs, and no more.

    `rows` are the features of these documents in the order shown, `shown` their scores (or what a surrogate takes from
    them), `drift` the part of the direction that no label changes and `constant` that of the loss; `size` is the length
    of the list. Labels are given by place: 0 is the document shown first. Of sparse rows `drift` is kept where it is
    not 0: in `columns`.
    """

    rows: Features
    shown: Floats
    number: int
    size: int
    drift: Floats = _NOTHING
    constant: float = 0.0
    propensities: Floats | None = None
    columns: Columns = EVERY
