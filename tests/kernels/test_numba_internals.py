"""Kernels that other kernels call: the same results, no machine code of their own, and a cache that is found again."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from ranktron.kernels.jit import internals, jit, jit_dot

linked = pytest.mark.skipif(internals is None, reason="the inside of this version of numba is not known")


@jit_dot
def dot(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@jit
def checked(x, least):
    if x.min() < least:
        raise ValueError("too small")
    return dot(x, x)


@jit
def both(x, least):
    return checked(x, least) + dot(x, np.ones_like(x))


def test_kernels_call_each_other():
    x = np.arange(1.0, 100.0)
    assert both(x, 1.0) == 99 * 100 * 199 / 6 + 99 * 50
    assert dot(x, x) == 99 * 100 * 199 / 6  # a kernel that others call can be called from Python, too
    with pytest.raises(ValueError, match="too small"):
        both(x, 2.0)


@linked
def test_a_kernel_that_others_call_has_no_machine_code_for_them():
    both(np.ones(2), 0.0)
    twin, types = internals.twin_of(checked), (numba.float64[::1], numba.float64)
    twin.compile(types)
    compiled = twin.overloads[types]
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    assert not checked.overloads  # Python has never called it


@linked
def test_a_kernel_has_one_twin():
    assert internals.twin_of(dot) is internals.twin_of(dot) is not dot


@linked
def test_the_cache_is_found_by_the_next_process(tmp_path):
    """The first process compiles both kernels; the second only the caller, whose code was deleted."""
    program = """
import numpy as np
from ranktron.kernels.numba_internals import twin_of
from ranktron.metrics.gain import dcg, discount_at

print(dcg(np.array([3.0, 2.0, 1.0]), 3, 0, 0, 0))
print(sum(twin_of(discount_at).stats.cache_hits.values()), sum(twin_of(discount_at).stats.cache_misses.values()))
"""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:2]

    value, counts = run()
    assert counts == "0 1"
    for each in Path(tmp_path).rglob("gain.dcg-*"):
        each.unlink()
    assert run() == [value, "1 0"]
    assert run() == [value, "0 0"]  # all of it is in the code of the caller
