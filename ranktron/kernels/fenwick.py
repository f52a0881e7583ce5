"""Numbers and sums of values by grade, updated and queried in O(log grades).

A Fenwick tree: P. M. Fenwick, A New Data Structure for Cumulative Frequency Tables, 1994. A tree for n grades is an
array of zeros of shape (n + 1, 2).
"""

from ranktron.kernels.jit import jit
from ranktron.types import Floats


@jit
def add(tree: Floats, grade: int, value: float) -> None:
    """Adds a document with this grade and value to the tree."""
    position = grade + 1
    while position < tree.shape[0]:
        tree[position, 0] += 1.0
        tree[position, 1] += value
        position += position & -position


@jit
def below(tree: Floats, grade: int) -> tuple[float, float]:
    """The number of documents of grades below `grade`, and the sum of their values."""
    number, total = 0.0, 0.0
    while grade > 0:
        number += tree[grade, 0]
        total += tree[grade, 1]
        grade -= grade & -grade
    return number, total
