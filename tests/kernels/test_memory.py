"""What kernels say about memory changes how fast they are, and nothing else."""

import sys

import numpy as np
import pytest

from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import pull_back
from ranktron.kernels.dispatch import as_arrays, slice_rows
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow, prefetch


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


@jit
def _first_of_far(numbers):
    for start in (-(1 << 40), 0, 1 << 40):
        prefetch(numbers, start, start + 20)
    return numbers[0]


def test_fetching_what_is_not_there_does_nothing():
    for dtype in (np.float32, np.float64):
        numbers = np.array([7.0], dtype)
        assert _first_of_far(numbers) == _first_of_far.py_func(numbers) == 7.0


def test_the_gradient_does_not_depend_on_where_the_next_list_is():
    rng = np.random.default_rng(3)
    X, items, gradient = rng.normal(size=(9, 40)).astype(np.float32), np.arange(9), rng.normal(size=9)
    directions = np.empty((3, 40))
    squares = [pull_back(X, items, gradient, directions[i], ahead) for i, ahead in enumerate((0, 9, -(1 << 40)))]
    assert len(set(squares)) == 1
    assert (directions == directions[0]).all()
