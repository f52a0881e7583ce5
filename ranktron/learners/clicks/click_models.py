"""Simulated users by name. A click model is a function of this file that makes a `ClickModel`, and its row in `USERS`.

Nothing heavy is imported, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.learners.clicks.click_model import ClickModel

__all__ = ["cascade", "click_model", "dependent_click", "dynamic_bayesian", "position_based"]

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
    from ranktron.learners.clicks.click_model import ClickModel
    from ranktron.types.validation import check_count

    if user not in _CASCADES:
        raise DataError(f"there is no cascade user {user!r}; choose from {', '.join(_CASCADES)}")
    if stop not in _STOPS:
        raise DataError(f"a user stops at any document that is examined, or after a click: {_STOPS}, not {stop!r}")
    click, stops = _cascade_table(user, check_count(grades, "the number of grades", 2))
    going_on = tuple(1.0 - p for p in stops)
    return ClickModel(click, going_on, going_on if stop == "examined" else (1.0,) * grades, seed=seed, k=k)


def _cascade_table(user: str, grades: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    import numpy as np

    from ranktron.learners.clicks.click_model import levels

    published = _CASCADES[user]
    if grades in published:
        return published[grades]
    click, stops = (np.interp(levels(grades), levels(5), row) for row in published[5])
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
    import numpy as np

    from ranktron.learners.clicks.click_model import ClickModel, levels
    from ranktron.types.validation import check_count

    if not (0.0 <= eta < inf and min(noise, trust) >= 0.0 and noise + trust <= 1.0):
        raise DataError(f"eta, noise and trust are at least 0, noise + trust at most 1; not {eta}, {noise}, {trust}")
    ranks = np.arange(1.0, check_count(k, "the number of shown documents, k,", 1) + 1.0)
    examination, by_chance = ranks**-eta, noise + trust / ranks
    stays = (1.0,) * grades
    return ClickModel(
        tuple(levels(grades).tolist()),
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
    from ranktron.learners.clicks.click_model import ClickModel, attraction

    by_place = tuple(float(p) for p in (going_on if isinstance(going_on, Sequence) else [going_on]))
    stays = (1.0,) * grades
    return ClickModel(attraction(noise, grades), stays, stays, after_click_by_place=by_place, seed=seed, k=k)


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
    from ranktron.learners.clicks.click_model import ClickModel, attraction, levels

    going_on = gamma * (1.0 - satisfaction * levels(grades))
    return ClickModel(attraction(noise, grades), tuple(going_on.tolist()), (gamma,) * grades, seed=seed, k=k)


def click_model(name: str, grades: int, seed: int = 0, k: int = 10) -> ClickModel:
    """The click model of that name, with the defaults of its function; the names of `train --feedback`.

    Parameters
    ----------
    name : str
        The model, one of `USERS`: a user of `cascade`, or one of the other functions.
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
    if name not in USERS:
        raise DataError(f"there is no simulated user {name!r}; choose from {', '.join(USERS)}")
    return USERS[name](grades=grades, seed=seed, k=k)


USERS: dict[str, Callable[..., ClickModel]] = {
    **{name: partial(cascade, name) for name in _CASCADES},
    "position-based": position_based,
    "dependent-click": dependent_click,
    "dynamic-bayesian": dynamic_bayesian,
}
"""The click models that `train --feedback` and `feedback=` of the estimators simulate, by name."""
