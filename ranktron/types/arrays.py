"""The arrays that everything passes around: their names say element type and shape."""

from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Features = Any
"""A row of features for each document: a `Matrix`, or the rows of a `Sparse` where most of them are 0."""
