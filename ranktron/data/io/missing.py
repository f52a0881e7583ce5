"""Treatment of NULL values while reading a file."""

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

CHOICES = {"error": -1.0, "zero": 0.0, "min": np.nan, "mean": np.nan, "nan": np.nan}


def placeholder(null: str) -> float:
    """What the parser writes for NULL: a number, NaN to be filled in later ("nan": by a model), or -1 to refuse it."""
    if null not in CHOICES:
        raise DataError(f"null must be one of {', '.join(map(repr, CHOICES))}, not {null!r}")
    return CHOICES[null]


@jit
def fill_nulls(X: Matrix, offsets: Integers, mean: bool) -> None:
    """Replaces NaN by the smallest (or mean) value of the feature within the query, by 0 if it has none."""
    for q in range(offsets.shape[0] - 1):
        for j in range(X.shape[1]):
            total, low, n = 0.0, np.inf, 0
            for i in range(offsets[q], offsets[q + 1]):
                if not np.isnan(X[i, j]):
                    total += X[i, j]
                    low = min(low, np.float64(X[i, j]))
                    n += 1
            if n == offsets[q + 1] - offsets[q]:
                continue
            value = 0.0 if n == 0 else (total / n if mean else low)
            for i in range(offsets[q], offsets[q + 1]):
                if np.isnan(X[i, j]):
                    X[i, j] = value
