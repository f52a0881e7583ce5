"""Simulated users: click models that answer a ranking with clicks, so that learners can be tried before they serve.

A user reads the k documents shown from the top. What each of them does at a document that is examined is

    P(click)              by the document's grade (and, where the model says so, by its place)
    P(going on | click)   by grade and place
    P(going on | skip)    by grade

Clicks are a function of (seed, round number): a replay repeats them, and two learners meet the same users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.kernels.random_numbers import CLICKS, stream_origin, uniform
from ranktron.types import Feedback, Floats, Ranking, Round
from ranktron.types.validation import check_count

# P(click | grade) and P(stop | grade) for 2, 3 and 5 grades, as in the code that was published with Oosterhuis and
# de Rijke (CIKM 2018).
_CASCADES: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        2: ((0.0, 1.0), (0.0, 0.0)),
        3: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        5: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.4, 0.9), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
}
_STOPS = ("examined", "click")


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
        >>> cascade("navigational").click_probabilities([1, 1, 0]).round(4).tolist()
        [0.95, 0.095, 0.0005]
        """
        click, after_click, after_skip = self.probabilities(np.asarray(labels, float)[: self.k])
        going_on = click * after_click + (1.0 - click) * after_skip
        examined: Floats = np.concatenate([[1.0], np.cumprod(going_on)])[: len(click)]
        return click * examined


def _levels(grades: int) -> Floats:
    """The relevance of each grade: grade / highest grade."""
    return np.arange(check_count(grades, "the number of grades", 2)) / (grades - 1.0)


def cascade(user: str, grades: int = 2, seed: int = 0, k: int = 10, stop: str = "examined") -> ClickModel:
    """A cascade user: reads from the top, clicks by grade, and stops by grade.

    | user | 2 grades | 3 grades | 5 grades |
    |---|---|---|---|
    | perfect: click | 0, 1 | 0, .5, 1 | 0, .2, .4, .8, 1 |
    | perfect: stop | 0, 0 | 0, 0, 0 | 0, 0, 0, 0, 0 |
    | navigational: click | .05, .95 | .05, .5, .95 | .05, .3, .5, .7, .95 |
    | navigational: stop | .2, .9 | .2, .5, .9 | .2, .3, .5, .7, .9 |
    | informational: click | .4, .9 | .4, .7, .9 | .4, .6, .7, .8, .9 |
    | informational: stop | .1, .5 | .1, .3, .5 | .1, .2, .3, .4, .5 |

    Parameters
    ----------
    user : {"perfect", "navigational", "informational"}
        Whose probabilities.
    grades : int
        How many grades the labels have; other numbers than 2, 3 and 5 interpolate the five. Labels above the highest
        grade are refused.
    seed : int
        Of the user's choices, which are a function of seed and round number.
    k : int
        How many documents are shown.
    stop : {"examined", "click"}
        Where the user may stop: at every examined document, as the simulations of Oosterhuis and de Rijke (CIKM 2018)
        draw it, or only after a click, as the papers print it.

    Examples
    --------
    >>> cascade("perfect", grades=3).click_probabilities([2, 0, 1]).tolist()
    [1.0, 0.0, 0.5]
    """
    if user not in _CASCADES:
        raise DataError(f"there is no cascade user {user!r}; choose from {', '.join(_CASCADES)}")
    if stop not in _STOPS:
        raise DataError(f"a user stops at any document that is examined, or after a click: {_STOPS}, not {stop!r}")
    click, stops = _cascade_table(user, check_count(grades, "the number of grades", 2))
    going_on = tuple(1.0 - p for p in stops)
    return ClickModel(click, going_on, going_on if stop == "examined" else (1.0,) * grades, seed=seed, k=k)


def _cascade_table(user: str, grades: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    published = _CASCADES[user]
    if grades in published:
        return published[grades]
    click, stops = (np.interp(_levels(grades), _levels(5), row) for row in published[5])
    return tuple(click.tolist()), tuple(stops.tolist())


def position_based(
    eta: float = 1.0, noise: float = 0.0, trust: float = 0.0, grades: int = 2, seed: int = 0, k: int = 10
) -> ClickModel:
    """A position-based user: each place is examined by chance, on its own.

        P(click) = rank^(−eta) · (ε⁻ + (1 − ε⁻) · relevance),    ε⁻ = noise + trust / rank,  relevance = grade / highest

    Parameters
    ----------
    eta : float >= 0
        How steeply examination falls with the rank, which counts from 1.
    noise : float
        How likely an examined document without relevance is to be clicked.
    trust : float
        Trust bias: how much likelier that is at rank 1, because users trust what is shown first.
    grades, seed, k : int
        As in `cascade`.

    Examples
    --------
    >>> position_based(noise=0.2).click_probabilities([1, 0]).tolist()
    [1.0, 0.1]

    References
    ----------
    Craswell et al. (WSDM 2008); trust bias: Agarwal et al. (WWW 2019), Vardasbi et al. (CIKM 2020).
    """
    if not (0.0 <= eta < np.inf and min(noise, trust) >= 0.0 and noise + trust <= 1.0):
        raise DataError(f"eta, noise and trust are at least 0, noise + trust at most 1; not {eta}, {noise}, {trust}")
    ranks = np.arange(1.0, check_count(k, "the number of shown documents, k,", 1) + 1.0)
    examination, by_chance = ranks**-eta, noise + trust / ranks
    stays = (1.0,) * grades
    return ClickModel(
        tuple(_levels(grades).tolist()),
        stays,
        stays,
        tuple((examination * (1.0 - by_chance)).tolist()),
        tuple((examination * by_chance).tolist()),
        seed=seed,
        k=k,
    )


def dependent_click(
    going_on: float | Sequence[float] = 0.5, noise: float = 0.0, grades: int = 2, seed: int = 0, k: int = 10
) -> ClickModel:
    """The dependent click model: after a click the user goes on with a probability that depends on the place.

        P(click | examined) = noise + (1 − noise) · relevance,   P(going on | click at rank r) = going_on_r,
        P(going on | skip) = 1

    Parameters
    ----------
    going_on : float or sequence of float
        For each place, or the same for all; the last number counts for all places below.
    noise : float
        How likely an examined document without relevance is to be clicked.
    grades, seed, k : int
        As in `cascade`.

    Examples
    --------
    >>> dependent_click(0.25).click_probabilities([1, 0, 1]).tolist()
    [1.0, 0.0, 0.25]

    References
    ----------
    Guo, Liu and Wang, Efficient Multiple-Click Models in Web Search (WSDM 2009).
    """
    by_place = tuple(float(p) for p in (going_on if isinstance(going_on, Sequence) else [going_on]))
    stays = (1.0,) * grades
    return ClickModel(_attraction(noise, grades), stays, stays, after_click_by_place=by_place, seed=seed, k=k)


def dynamic_bayesian(
    gamma: float = 0.9, satisfaction: float = 0.9, noise: float = 0.0, grades: int = 2, seed: int = 0, k: int = 10
) -> ClickModel:
    """The dynamic Bayesian network: a clicked document satisfies by its relevance, and then the user leaves.

        P(click | examined) = noise + (1 − noise) · relevance,   P(satisfied | click) = satisfaction · relevance,
        P(going on | not satisfied) = gamma

    Parameters
    ----------
    gamma : float
        Perseverance: how likely a user who is not satisfied is to examine the next document.
    satisfaction : float
        How likely a clicked document of the highest grade is to satisfy.
    noise : float
        How likely an examined document without relevance is to be clicked.
    grades, seed, k : int
        As in `cascade`.

    Examples
    --------
    >>> dynamic_bayesian(gamma=1.0, satisfaction=0.5).click_probabilities([1, 1]).tolist()
    [1.0, 0.5]

    References
    ----------
    Chapelle and Zhang, A Dynamic Bayesian Network Click Model for Web Search Ranking (WWW 2009).
    """
    going_on = gamma * (1.0 - satisfaction * _levels(grades))
    return ClickModel(_attraction(noise, grades), tuple(going_on.tolist()), (gamma,) * grades, seed=seed, k=k)


def _attraction(noise: float, grades: int) -> tuple[float, ...]:
    return tuple((noise + (1.0 - noise) * _levels(grades)).tolist())


def click_model(name: str, grades: int, seed: int = 0, k: int = 10) -> ClickModel:
    """The click model of that name, with the defaults of its function; the names of `train --feedback`.

    Parameters
    ----------
    name : {"perfect", "navigational", "informational", "position-based", "dependent-click", "dynamic-bayesian"}
        The model: a user of `cascade`, or one of the other functions.
    grades : int
        How many grades the labels have.
    seed : int
        Seed of the clicks.
    k : int
        How many documents are shown.

    Examples
    --------
    >>> click_model("position-based", grades=3).click
    (0.0, 0.5, 1.0)
    """
    others: dict[str, Callable[..., ClickModel]] = {
        "position-based": position_based,
        "dependent-click": dependent_click,
        "dynamic-bayesian": dynamic_bayesian,
    }
    if name in others:
        return others[name](grades=grades, seed=seed, k=k)
    if name not in _CASCADES:
        raise DataError(f"there is no simulated user {name!r}; choose from {', '.join([*_CASCADES, *others])}")
    return cascade(name, grades, seed, k)
