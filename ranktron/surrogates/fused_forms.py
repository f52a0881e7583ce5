"""The declaration with which compiled passes compute a surrogate: which loss it is, and its parameters by name."""

from typing import NamedTuple

SLAM_LOSS, WORST_PAIR_LOSS, LISTNET_LOSS, MEAN_HINGE_LOSS = range(4)


class FusedForm(NamedTuple):
    """The compiled loss that equals a surrogate, to the bit.

    Parameters
    ----------
    loss : int
        One of the codes of this module; `learners/fused_step.py` has the kernel of each.
    binary : bool or None
        Whether all labels above 0 are one grade; None: as in the mistake rule.
    k : int
        The last position that counts; 0: all of them.
    margin, fraction : float
        The parameters of the loss.
    """

    loss: int
    binary: bool | None
    k: int = 0
    margin: float = 1.0
    fraction: float = 0.0
