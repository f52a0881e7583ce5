"""An impression: what one user was shown, and what came of it."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import validation
from ranktron.types.arrays import Floats, Integers
from ranktron.types.rounds import Feedback, Ranking


class _Shown(NamedTuple):
    items: Integers
    gains: Floats
    propensities: Floats | None


class Impression(_Shown):
    """What was shown in which order, and what each document gained: clicks, or a number such as seconds or a price.

    A `Ranking` has the whole list and what a learner needs of it; an impression has what the user saw. A document that
    was shown and not clicked has a gain of 0: that is known, whereas of documents below the page nothing is.

    Parameters
    ----------
    items : array-like of int
        The documents shown, from the top: places in the query's list, counted from 0.
    gains : array-like of float
        For each of them 1 if it was clicked and 0 if not, or any gain of at least 0.
    propensities : array-like of float, optional
        How likely each was to be shown where it stood, where that is known.

    Examples
    --------
    >>> impression = Impression(items=[4, 0, 2], gains=[0, 1, 0])
    >>> impression.clicked
    array([0])
    >>> impression.feedback
    Feedback(items=array([4, 0, 2]), labels=array([0., 1., 0.]))
    """

    __slots__ = ()

    def __new__(cls, items: npt.ArrayLike, gains: npt.ArrayLike, propensities: npt.ArrayLike | None = None) -> Self:
        shown = validation.integers(items, "the documents of an impression are places in the list, counted from 0")
        gained = validation.floats(gains, "the gains of an impression are one number for each document shown")
        if shown.shape != gained.shape:
            raise DataError(f"an impression of {len(shown)} documents with {len(gained)} gains")
        if len(shown) and (shown.min() < 0 or len(np.unique(shown)) < len(shown)):
            raise DataError(f"an impression names each document once, by its index from 0; not {shown.tolist()}")
        if not (np.isfinite(gained).all() and (gained >= 0.0).all()):
            raise DataError(f"gains are finite and at least 0 (a click is 1), not {gained.tolist()}")
        known = None
        if propensities is not None:
            known = validation.floats(propensities, "propensities are one number for each document shown")
            if known.shape != shown.shape or not ((known > 0.0) & (known <= 1.0)).all():
                raise DataError(f"propensities are above 0 and at most 1, one for each document, not {known.tolist()}")
        return super().__new__(cls, shown, gained, known)

    @classmethod
    def of(cls, ranking: Ranking, feedback: Feedback) -> Self:
        """The impression of a ranking whose feedback is on all documents shown: as many from the top as it names.

        Parameters
        ----------
        ranking : Ranking
            What was shown.
        feedback : Feedback
            The labels of the first documents.

        Examples
        --------
        >>> Impression.of(Ranking(np.array([2, 0, 1]), np.zeros(3), 0), Feedback([0, 2], [1, 0])).gains
        array([0., 1.])
        """
        shown = ranking.order[: len(feedback.items)]
        if sorted(shown.tolist()) != sorted(feedback.items.tolist()):
            raise DataError(
                f"the feedback is on documents {feedback.items.tolist()}, but those shown first are {shown.tolist()}: "
                f"an impression needs a gain for each document from the top"
            )
        gains = dict(zip(feedback.items.tolist(), feedback.labels.tolist(), strict=True))
        return cls(shown, [gains[item] for item in shown.tolist()])

    @property
    def clicked(self) -> Integers:
        """The documents that gained something, from the top."""
        return self.items[self.gains > 0.0]

    @property
    def feedback(self) -> Feedback:
        """What a learner receives: the gains of the documents shown, as labels."""
        return Feedback._make((self.items, self.gains))
