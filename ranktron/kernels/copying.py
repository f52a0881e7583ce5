"""Copying arrays in kernels.

`target[a:b] = source` makes numba compile the text of an error for arrays of different lengths, which takes longer than
most kernels do: some two seconds for every kernel that has such a line. A loop takes none.
"""

from typing import Any

import numpy.typing as npt

from ranktron.kernels.jit import jit


@jit
def copy_into(target: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Writes all of an array into another one of the same length, or longer.

    >>> import numpy as np
    >>> target = np.zeros(3)
    >>> copy_into(target[1:], np.array([5.0, 6.0]))
    >>> target
    array([0., 5., 6.])
    """
    for i in range(source.shape[0]):
        target[i] = source[i]
