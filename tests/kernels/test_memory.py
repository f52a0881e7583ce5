"""Arrays that a kernel borrows hold the same numbers, and belong to whoever had them."""

import sys

import numpy as np
import pytest

from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import as_arrays, slice_rows
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow


@jit
def _sum_of_slices(X, numbers):
    X, numbers = borrow(X), borrow(numbers)
    total = 0.0
    for i in range(numbers.shape[0]):
        slice_rows(X, 0, 1)
        total += numbers[i:].sum()
    numbers[0] = total
    return total


@pytest.mark.parametrize("make", [np.asarray, Sparse.from_matrix])
def test_borrowed_arrays_are_the_same_and_stay_alive(make):
    numbers, arrays = np.arange(4.0), as_arrays(make(np.eye(2, dtype=np.float32)))
    before = sys.getrefcount(numbers)
    assert _sum_of_slices(arrays, numbers) == 6.0 + 6.0 + 5.0 + 3.0
    assert sys.getrefcount(numbers) == before
    assert numbers.tolist() == [20.0, 1.0, 2.0, 3.0]  # what the kernel writes is written there
    assert _sum_of_slices.py_func(arrays, np.arange(4.0)) == 20.0
