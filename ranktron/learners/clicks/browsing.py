"""Users who are not position-based: examination that depends on the clicks above, and which model predicts best."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ranktron.data.impressions import Impressions, encode_ids
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination, last_clicks, with_interval
from ranktron.learners.clicks.identification import REMEDY
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count

MODELS = ("attractiveness", "position-based", "user-browsing")
BASE = "position-based"
_TINY = 1e-6
_PRIOR = 2.0  # impressions that the prior of an attractiveness is worth, at the click-through of position 1
_PRIOR_EXAMINATION = 0.2  # those of an examination, at 1/2


class ClickModelScore(NamedTuple):
    """How well a click model predicts held-out clicks: log-likelihoods per row, and what it gains on position-based.

    `gain` is the paired difference to the position-based model, `low` and `high` are its 95 % interval over resampled
    queries. NaN where there is a single query.
    """

    model: str
    log_likelihood: float
    gain: float
    low: float
    high: float


def browsing_examination(
    log: Impressions,
    replicates: int = 0,
    seed: int = 0,
    resample: str = "impressions",
    *,
    iterations: int = 2000,
    tol: float = 1e-6,
) -> Examination:
    """Examination by position and by the last click above: the user browsing model, by expectation-maximisation.

        P(click | clicks above) = γ_{k, j} α_d,    k: position, j: position of the last click above, 0 if there is none

    α_d is the attractiveness of each query and item, shrunk towards the click-through of position 1 as if by two
    impressions. `after_click` of the result is γ_{k, j} / γ_{1, 0}, `values` their mean by position over the log.

    Parameters
    ----------
    log : Impressions
        With `query` and `item`. Pages must be complete down to the last row: a click that is not in the log is none.
    replicates, seed : int
        How many resampled logs make the interval of `values`, and the seed of the resampling.
    resample : "impressions" or "queries"
        What is drawn with replacement.
    iterations, tol : int, float
        Steps end when no γ changes by more than `tol`.

    Examples
    --------
    >>> clicks = [1, 0, 1, 0, 0, 1, 0, 0] * 20  # of pages of two: who clicked the first leaves, others look on
    >>> page, item = np.arange(160) // 2, ([7, 8] * 4 + [8, 7] * 4) * 10
    >>> log = Impressions.from_arrays(clicks, page, [1, 2] * 80, query="q", item=item)
    >>> browsing_examination(log).after_click.round(1).tolist()
    [[1.0, 1.0], [1.0, 0.0]]

    References
    ----------
    Dupret and Piwowarski, *A user browsing model to predict search engine click data from past observations*, SIGIR
    2008.
    """
    size, last = log.n_positions, last_clicks(log)
    context, of = (log.position - 1) * size + last, log.impression_of_rows
    cells = Cells(log.documents(), context, size * size)
    _check_compared(cells, log)
    if not log.clicks[log.position == 1].any():
        raise DataError("nobody clicked at position 1: there is nothing to compare other positions with")

    def fit(weights: Floats) -> Floats:
        examination, _ = fit_product(cells, weights[of], log, iterations, tol)
        relative: Floats = examination / examination[0]
        return relative

    def mean_by_position(weights: Floats) -> Floats:
        own, relative = weights[of], fit(weights)
        shown = np.bincount(log.position - 1, own, minlength=size)
        seen = np.bincount(log.position - 1, own * relative[context], minlength=size)
        return np.where(shown > 0.0, np.maximum(seen, _TINY) / np.maximum(shown, _TINY), 1.0)

    found = Examination(mean_by_position(np.ones(len(log))), method="user-browsing", basis="documents that moved")
    found = with_interval(found, mean_by_position, log, replicates, seed, resample)
    below = np.arange(size)[None, :] <= np.arange(size)[:, None]  # column j: a click at position j, which is above k
    return replace(found, after_click=np.where(below, fit(np.ones(len(log))).reshape(size, size), 1.0))


class Cells:
    """Rows of the same document and context: all that the likelihood depends on is how often they were clicked."""

    def __init__(self, documents: Integers, contexts: Integers, n_contexts: int) -> None:
        self.n_documents, self.n_contexts = int(documents.max(initial=0)) + 1, n_contexts
        found, self.of_rows = np.unique(documents * n_contexts + contexts, return_inverse=True)
        self.document, self.context = found // n_contexts, found % n_contexts


def _check_compared(cells: Cells, log: Impressions) -> None:
    """Raises an error if no chain of documents leads from a clicked context to position 1: its γ is then unknown."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    clicked = np.bincount(cells.of_rows, log.clicks, minlength=len(cells.document))
    attracts = np.bincount(cells.document, clicked, minlength=cells.n_documents) > 0.0
    edges = attracts[cells.document]
    ends = cells.context[edges], cells.n_contexts + cells.document[edges]
    size = cells.n_contexts + cells.n_documents
    _, island = connected_components(coo_array((np.ones(edges.sum()), ends), shape=(size, size)), directed=False)
    lost = np.flatnonzero((clicked > 0.0) & (island[cells.context] != island[0]))
    if len(lost):
        position, last = divmod(int(cells.context[lost[0]]), log.n_positions)
        after = f"after a click at position {last}" if last else "without a click above"
        raise DataError(
            f"examination by the last click above cannot be known from this log: no documents compare position "
            f"{position + 1} {after} with position 1; {REMEDY}"
        )


def fit_product(cells: Cells, weights: Floats, log: Impressions, iterations: int, tol: float) -> tuple[Floats, Floats]:
    """The examination of each context and the attractiveness of each document that the weighted rows make likeliest.

    Whether a position was examined and whether its document attracted are hidden; both were where there is a click.
    Attractiveness has a prior, and so has examination a weak one: both stay inside (0, 1), and what was never seen is
    expected to be like the rest.
    """
    document, context, n = cells.document, cells.context, len(cells.document)
    shown = np.bincount(cells.of_rows, weights, minlength=n)
    clicked = np.bincount(cells.of_rows, weights * log.clicks, minlength=n)
    of_document = np.bincount(document, shown, minlength=cells.n_documents) + _PRIOR
    of_context = np.bincount(context, shown, minlength=cells.n_contexts) + _PRIOR_EXAMINATION
    first = weights * (log.position == 1)
    rate = float(np.clip(first @ log.clicks / max(float(first.sum()), _TINY), 0.01, 0.99))
    attractiveness, examination = np.full(cells.n_documents, rate), np.full(cells.n_contexts, 0.5)
    for _ in range(iterations):
        before = examination
        alpha, gamma = attractiveness[document], examination[context]
        skipped = (shown - clicked) / (1.0 - alpha * gamma)
        attracted = np.bincount(document, clicked + skipped * alpha * (1.0 - gamma), minlength=cells.n_documents)
        examined = np.bincount(context, clicked + skipped * gamma * (1.0 - alpha), minlength=cells.n_contexts)
        attractiveness = np.clip((attracted + _PRIOR * rate) / of_document, _TINY, 1.0 - _TINY)
        examination = np.clip((examined + 0.5 * _PRIOR_EXAMINATION) / of_context, _TINY, 1.0 - _TINY)
        if np.abs(examination - before).max() < tol:
            break
    return examination, attractiveness


def _contexts(log: Impressions, model: str) -> tuple[Integers, int]:
    """What examination depends on, by row, and how many values it has."""
    size = log.n_positions
    if model == "attractiveness":
        return np.zeros(len(log.position), np.int64), 1
    if model == BASE:
        return log.position - 1, size
    return (log.position - 1) * size + last_clicks(log), size * size


def held_out_log_likelihood(log: Impressions, model: str, test: Integers) -> Floats:
    """The log-likelihood of each row of some impressions, given the clicks above, under a model fitted to all others.

    Parameters
    ----------
    log : Impressions
        With `query` and `item`.
    model : "attractiveness", "position-based" or "user-browsing"
        What examination depends on: nothing, the position, or the position and the last click above.
    test : array of bool
        For each impression, whether it is held out.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 0] * 50, np.arange(100) // 2, [1, 2] * 50, query="q", item=[7, 8] * 50)
    >>> rows = held_out_log_likelihood(log, "position-based", np.arange(50) >= 40)
    >>> rows.shape, bool(rows.mean() > -0.1)
    ((20,), True)
    """
    if model not in MODELS:
        raise DataError(f"there is no click model {model!r} to fit; choose from {', '.join(MODELS)}")
    held = np.asarray(test, bool)
    if held.shape != (len(log),) or held.all() or not held.any():
        raise DataError("the impressions to hold out are true or false for each, and neither none nor all of them")
    rows = held[log.impression_of_rows]
    context, n_contexts = _contexts(log, model)
    cells = Cells(log.documents(), context, n_contexts)
    examination, attractiveness = fit_product(cells, (~rows).astype(float), log, 2000, _TINY)
    cell = cells.of_rows[rows]
    chance = attractiveness[cells.document[cell]] * examination[cells.context[cell]]
    found: Floats = np.where(log.clicks[rows] > 0.0, np.log(chance), np.log1p(-chance))
    return found


def compare_click_models(
    log: Impressions, share: float = 0.3, seed: int = 0, replicates: int = 2000
) -> list[ClickModelScore]:
    """Fits each click model to some impressions, and scores it by the clicks of the others.

    Parameters
    ----------
    log : Impressions
        With `query` and `item`.
    share : float
        The share of impressions that are held out, drawn at random.
    seed : int
        Of that choice, and of the resampling.
    replicates : int
        How many times queries are resampled for the intervals of the differences.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clicks, page = rng.random(4000) < np.tile([0.8, 0.2], 2000), np.arange(4000) // 2
    >>> item = np.tile([7, 8], 2000) ^ (page % 2 * 15)  # either document stands first as often as the other
    >>> log = Impressions.from_arrays(clicks, page, np.tile([1, 2], 2000), query="q", item=item)
    >>> scores = compare_click_models(log)
    >>> [score.model for score in scores], bool(scores[0].gain < -0.1)
    (['attractiveness', 'position-based', 'user-browsing'], True)
    """
    if not 0.0 < share < 1.0:
        raise DataError(f"the share of impressions to hold out is above 0 and below 1, not {share}")
    log.documents()  # which complains where queries or items are missing
    rng = np.random.default_rng(check_count(seed, "the seed", 0))
    held = np.zeros(len(log), bool)
    held[rng.permutation(len(log))[: round(share * len(log))]] = True
    likelihoods = {model: held_out_log_likelihood(log, model, held) for model in MODELS}
    assert log.query is not None
    queries = encode_ids(log.query[held[log.impression_of_rows]])
    n = int(queries.max()) + 1
    draws = rng.multinomial(n, np.full(n, 1.0 / n), replicates)
    rows = draws @ np.bincount(queries)
    scores = []
    for model, found in likelihoods.items():
        away = found - likelihoods[BASE]
        sums = draws @ np.bincount(queries, away)
        low, high = np.quantile(sums / rows, [0.025, 0.975]) if n > 1 and replicates else (np.nan, np.nan)
        scores.append(ClickModelScore(model, float(found.mean()), float(away.mean()), float(low), float(high)))
    return scores
