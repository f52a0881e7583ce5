"""Kernels that are called by their address: any of them through one caller, without a copy and without a leak."""

from pathlib import Path

import numpy as np
import pytest
from numba import float64, int64
from numba.core.errors import TypingError

from ranktron.kernels.calls import address_of, caller
from ranktron.kernels.jit import jit

SCALED = float64[::1](float64[::1], int64)
call = caller(SCALED)


@jit
def times(values, n):
    return values * n


@jit
def plus(values, n):
    return values + n


@jit
def fails(values, n):
    if n > 1:
        raise ValueError("too many")
    return values


@jit
def use(address, values, n):
    return call(address, values, n).sum()


@jit
def use_often(address, values, n):
    total = 0.0
    for _ in range(n):
        total += call(address, values, 2)[0]
    return total


def test_one_caller_calls_any_kernel():
    values = np.arange(3.0)
    for kernel, total in ((times, 6.0), (plus, 9.0)):
        address = address_of(kernel, SCALED)
        assert address == address_of(kernel, SCALED)
        assert use(address, values, 2) == use.py_func(address, values, 2) == total
        assert use(address, values, np.uint8(2)) == total  # another number is converted
    assert len({signature[0] for signature in use.signatures}) == 1  # compiled for addresses, not for kernels


def test_read_only_arrays_are_passed_and_other_layouts_refused():
    values = np.arange(3.0)
    values.flags.writeable = False
    assert use(address_of(times, SCALED), values, 2) == 6.0
    with pytest.raises(TypingError, match="called by its address takes"):
        use(address_of(times, SCALED), np.arange(6.0)[::2], 2)
    with pytest.raises(TypingError, match="called by its address takes"):
        use(address_of(times, SCALED), np.arange(3, dtype=np.float32), 2)


def test_errors_come_through():
    with pytest.raises(ValueError, match="too many"):
        use(address_of(fails, SCALED), np.arange(3.0), 2)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_what_is_returned_is_freed():
    large = np.ones(1 << 20)  # 8 MB, a thousand times
    before = resident_bytes()
    assert use_often(address_of(times, SCALED), large, 1000) == 2000.0
    assert resident_bytes() - before < 100 << 20


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
