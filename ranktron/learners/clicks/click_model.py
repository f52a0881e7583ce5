"""A click model: answers a ranking with clicks, so that learners can be tried before they serve.

A user reads the k documents shown from the top. What each of them does at a document that is examined is

    P(click)              by the document's grade (and, where the model says so, by its place)
    P(going on | click)   by grade and place
    P(going on | skip)    by grade

Clicks are a function of (seed, round number): a replay repeats them, and two learners meet the same users.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.kernels.random_numbers import CLICKS, stream_origin, uniform
from ranktron.types import Feedback, Floats, Ranking, Round
from ranktron.types.validation import check_count


@jit
def _at(values: Floats, label: float) -> float:
    """The value of a grade; of a label between two grades, what lies between them."""
    low = int(label)
    if low + 1 >= values.shape[0]:
        return float(values[-1])
    return float(values[low] + (label - low) * (values[low + 1] - values[low]))


@jit
def _draw(seed: int, number: int, labels: Floats, grades: Floats, places: Floats) -> tuple[Floats, int]:
    """One user: 1 for each place that is clicked, else 0; and the first place whose label is no grade, or -1.

    Two random numbers belong to each place, whatever came before it. `grades` and `places` have the three rows that
    `ClickModel` describes.
    """
    origin = stream_origin(seed, number, CLICKS)
    clicks = np.zeros(labels.shape[0])
    for place in range(labels.shape[0]):
        if not 0.0 <= labels[place] <= grades.shape[1] - 1:
            return clicks, place
    for place in range(labels.shape[0]):
        at = min(place, places.shape[1] - 1)
        click = _at(grades[0], labels[place]) * places[0, at] + places[1, at]
        clicked = uniform(origin, 2 * place) < click
        clicks[place] = 1.0 if clicked else 0.0
        going_on = _at(grades[1], labels[place]) * places[2, at] if clicked else _at(grades[2], labels[place])
        if uniform(origin, 2 * place + 1) >= going_on:
            break
    return clicks, -1


@dataclass(frozen=True)
class ClickModel:
    """A user who reads from the top, clicks, and leaves; a feedback model for `play`.

    Made by `cascade`, `position_based`, `dependent_click` and `dynamic_bayesian`. It answers with `Feedback` on the k
    documents shown first, in the order shown: 1 where it clicked, 0 where it did not.

    Parameters
    ----------
    click, after_click, after_skip : tuple of float
        For each grade: the probability of a click at an examined document, and of going on to the next one.
        A label between two grades takes what lies between them.
    click_by_place, extra_by_place, after_click_by_place : tuple of float
        For each place: P(click) is click · click_by_place + extra_by_place, P(going on | click) is
        after_click · after_click_by_place. The last number counts for all places below.
    seed, k : int
        The seed of its choices, and how many documents are shown.

    Examples
    --------
    >>> from ranktron.learners.feedback import cascade
    >>> user = cascade("navigational", seed=1)
    >>> round = Round(np.ones((4, 1), np.float32), [0, 0, 1, 1], "q1")
    >>> user(round, Ranking(np.array([1, 3, 2, 0]), np.zeros(4), number=0))
    Feedback(items=array([1, 3, 2, 0]), labels=array([0., 1., 0., 0.]))
    """

    click: tuple[float, ...]
    after_click: tuple[float, ...]
    after_skip: tuple[float, ...]
    click_by_place: tuple[float, ...] = (1.0,)
    extra_by_place: tuple[float, ...] = (0.0,)
    after_click_by_place: tuple[float, ...] = (1.0,)
    seed: int = 0
    k: int = 10
    _tables: tuple[Floats, Floats] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.seed, "the seed", 0)
        check_count(self.k, "the number of shown documents, k,", 1)
        for name in ("click", "after_click", "after_skip", "click_by_place", "extra_by_place", "after_click_by_place"):
            values = getattr(self, name)
            if not values or not all(0.0 <= value <= 1.0 for value in values):
                raise DataError(f"probabilities of a click model are between 0 and 1; {name} has {values}")

        by_grade, by_place = (
            (self.click, self.after_click, self.after_skip),
            (
                self.click_by_place,
                self.extra_by_place,
                self.after_click_by_place,
            ),
        )
        if len({len(values) for values in by_grade}) > 1 or len(self.click) < 2:
            raise DataError(f"a click model has a probability for each grade, of at least 2, not {by_grade}")
        places = max(len(values) for values in by_place)
        tables = np.array(by_grade), np.array([(*row, *row[-1:] * (places - len(row))) for row in by_place])
        object.__setattr__(self, "_tables", tables)

    def __call__(self, round: Round, ranking: Ranking) -> Feedback:
        items = ranking.order[: self.k]
        labels = round.labels[items]
        clicks, wrong = _draw(self.seed, ranking.number, labels, *self._tables)
        if wrong >= 0:
            raise DataError(self._unknown(labels[wrong]))
        return Feedback._make((items, clicks))

    def probabilities(self, labels: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """P(click), P(going on | click) and P(going on | skip) of documents in the order shown, each if examined.

        Parameters
        ----------
        labels : array
            The grades of the documents, in the order shown.

        Examples
        --------
        >>> from ranktron.learners.feedback import cascade
        >>> [each.tolist() for each in cascade("informational").probabilities([1, 0])]
        [[0.9, 0.4], [0.5, 0.9], [0.5, 0.9]]
        """
        shown = np.asarray(labels, float)
        for label in shown:
            if not 0.0 <= label <= len(self.click) - 1:
                raise DataError(self._unknown(label))
        by_grade, by_place = self._tables
        click, after_click, after_skip = (np.interp(shown, np.arange(len(self.click)), row) for row in by_grade)
        at = np.minimum(np.arange(len(shown)), by_place.shape[1] - 1)
        return click * by_place[0, at] + by_place[1, at], after_click * by_place[2, at], after_skip

    def _unknown(self, label: float) -> str:
        n = len(self.click)
        return (
            f"a label of {label:g} is not among the {n} grades 0 to {n - 1} that this click model knows: say how many "
            "grades your labels have (grades=5 for 0 to 4)"
        )

    def click_probabilities(self, labels: npt.ArrayLike) -> Floats:
        """How likely each of the first k documents is to be clicked, given the labels in the order shown.

        Parameters
        ----------
        labels : array
            The grades of the documents, in the order shown.

        Examples
        --------
        >>> from ranktron.learners.feedback import cascade
        >>> cascade("navigational").click_probabilities([1, 1, 0]).round(4).tolist()
        [0.95, 0.095, 0.0005]
        """
        click, after_click, after_skip = self.probabilities(np.asarray(labels, float)[: self.k])
        going_on = click * after_click + (1.0 - click) * after_skip
        examined: Floats = np.concatenate([[1.0], np.cumprod(going_on)])[: len(click)]
        return click * examined


def levels(grades: int) -> Floats:
    """The relevance of each grade: grade / highest grade."""
    return np.arange(check_count(grades, "the number of grades", 2)) / (grades - 1.0)


def attraction(noise: float, grades: int) -> tuple[float, ...]:
    """P(click) of each grade at an examined document, where those of grade 0 are clicked by chance."""
    return tuple((noise + (1.0 - noise) * levels(grades)).tolist())
