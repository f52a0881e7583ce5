"""Whatever people call a list of numbers, as the arrays that kernels know; what it is not is said in words."""

import reprlib
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError


def floats(given: npt.ArrayLike, what: str) -> npt.NDArray[np.float64]:
    """Any numbers, one after the other.

    >>> floats([1, 0], "labels are numbers")
    array([1., 0.])
    """
    return _array(given, 1, "iufb", np.float64, what)


def integers(given: npt.ArrayLike, what: str) -> npt.NDArray[np.int64]:
    """Whole numbers, one after the other.

    >>> integers([2, 0.5], "places are whole numbers")
    Traceback (most recent call last):
    ranktron.errors.DataError: places are whole numbers, not [2, 0.5]
    """
    return _array(given, 1, "iu", np.int64, what)


def matrix(given: npt.ArrayLike, what: str) -> npt.NDArray[np.float32]:
    """A table of numbers; those that are too large for 32 bits become infinite.

    >>> matrix([[1, 0]], "features are a table")
    array([[1., 0.]], dtype=float32)
    """
    return _array(given, 2, "iufb", np.float32, what)


def check_count(value: Any, what: str, least: int) -> int:
    """A whole number of at least so many; anything else is refused."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < least:
        raise DataError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def _array(given: npt.ArrayLike, dimensions: int, kinds: str, wanted: type[Any], what: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of several lengths
        raise DataError(f"{what}, not {reprlib.repr(given)}") from None
    if array.ndim != dimensions or (array.size and array.dtype.kind not in kinds):
        raise DataError(f"{what}, not {reprlib.repr(given)}")
    if array.dtype == wanted:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, wanted)


def check_margin(margin: float) -> None:
    """Refuses a margin that is not a positive number."""
    if not 0.0 < margin < float("inf"):
        raise DataError(f"the margin must be a positive number, not {margin}")
