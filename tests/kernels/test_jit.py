import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from ranktron.kernels.sorting import argsort_descending

assert argsort_descending(np.array([1.0, 3.0, 2.0])).tolist() == [1, 2, 0]
assert "scipy.linalg" not in sys.modules
import numba

@numba.njit
def product(a, b):
    return np.dot(a, b)

assert product(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0
assert "scipy.linalg" in sys.modules
"""


def test_scipy_linalg_is_imported_only_by_kernels_that_use_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
