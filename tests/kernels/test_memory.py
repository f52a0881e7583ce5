"""New arrays are as numpy makes them. What kernels say about memory changes how fast they are, and nothing else."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import ranktron
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import pull_back
from ranktron.kernels.dispatch import as_arrays, slice_rows
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import allocate, array_at, borrow, find_address, prefetch, reinterpret, zeros


@jit
def _new_arrays(n, like):
    pairs = allocate((n, 2)), zeros((n, 2), np.float32), zeros((2, n, 3), np.int64)
    return allocate(n), zeros(n), allocate(n, np.uint64), zeros(n, np.bool_), allocate(np.int32(n), like.dtype), *pairs


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_new_arrays_are_as_numpy_makes_them(n, dtype):
    like = np.ones(1, dtype)
    for made, expected in zip(_new_arrays(n, like), _new_arrays.py_func(n, like), strict=True):
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        assert n == 0 or made.strides == expected.strides
        assert made.flags.c_contiguous
        made[...] = 1
        assert made.sum() == expected.size


@jit
def _zeros_where_others_were(n):
    total = 0.0
    for _ in range(10):
        total += zeros(n).sum() + zeros((n, 2), np.int64).sum()
        used = allocate(n)
        for i in range(n):
            used[i] = 1.0  # the memory that the next zeros are likely to get
    return total


def test_zeros_are_zeros():
    assert _zeros_where_others_were(1000) == 0.0


@jit
def _bits_of_own(n):
    numbers = allocate(n, np.float32)
    for i in range(n):
        numbers[i] = i
    return reinterpret(numbers, np.int32)


def test_reinterpreted_memory_stays_alive_and_is_freed():
    numbers = np.arange(1000, dtype=np.float32)
    assert (_bits_of_own(1000) == numbers.view(np.int32)).all()
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        bits = [_bits_of_own(1000) for _ in range(100)]
        between = rtsys.get_allocation_stats()
        assert all((each == bits[0]).all() for each in bits)
        assert between.alloc - before.alloc == 100 + between.free - before.free
        del bits
        after = rtsys.get_allocation_stats()
        assert after.alloc - before.alloc == after.free - before.free
    finally:
        _nrt_python.memsys_disable_stats()


@jit
def _first_as_whole(numbers):
    whole = reinterpret(numbers, np.int64)
    return whole[0], whole.shape[0]


def test_read_only_arrays_and_slices_can_be_reinterpreted():
    numbers = np.arange(1.0, 7.0)
    bits = int(numbers[1:].view(np.int64)[0])
    assert _first_as_whole(numbers[1:]) == (bits, 5)
    numbers.setflags(write=False)
    assert _first_as_whole(numbers[1:]) == (bits, 5)


@jit
def _double_all(address, n):
    numbers, table = array_at(address, n), array_at(address, (n // 2, 2))
    for i in range(n // 2):
        for j in range(2):
            table[i, j] *= 2.0
    return numbers.sum() + table.size


@pytest.mark.parametrize("double_all", [_double_all, _double_all.py_func])
def test_an_array_can_be_found_by_its_address(double_all):
    numbers = np.arange(7.0)
    given = np.array([find_address(numbers), 7])
    assert double_all(given[0], given[1]) == 2.0 * 15 + 6 + 6
    assert numbers.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 6.0]
    assert double_all(find_address(np.zeros((0, 8))), 0) == 0.0
    assert find_address(numbers[2:]) == find_address(numbers) + 16


def test_arrays_with_gaps_and_of_other_kinds_have_no_address():
    fixed = np.zeros(4)
    fixed.setflags(write=False)
    for other in (np.zeros(4)[::2], np.zeros((4, 4)).T[:2], np.zeros(4, np.float32), np.zeros(4, ">f8"), fixed):
        assert find_address(other) == 0


def _is_kernel(node):
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(isinstance(each, ast.Name) and each.id.startswith("jit") for each in node.decorator_list)


def test_kernels_make_arrays_without_functions_that_numba_has_to_compile():
    found, kernels = [], 0
    for path in Path(ranktron.__file__).parent.rglob("*.py"):
        for kernel in filter(_is_kernel, ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
            calls = {ast.unparse(each.func) for each in ast.walk(kernel) if isinstance(each, ast.Call)}
            wrong = {each for each in calls if each in ("np.empty", "np.zeros") or each.endswith(".view")}
            found += [f"{path.name}, {kernel.name}: {each}" for each in wrong]
            kernels += 1
    assert found == []
    assert kernels > 200


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
