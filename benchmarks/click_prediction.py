"""Click models side by side: the log-likelihood of held-out clicks of real sessions, a row.

python -m benchmarks.click_prediction [LOG [SPLITS]]: LOG is a click log with queries and items, rows in the order of
positions, pages of one length. Prints a table of all sessions, and one without the query that has most of them.
Intervals of differences are over resampled queries. Then, for simulated users, how far corrected clicks are from the
true attractiveness; without a LOG nothing else.
"""

import sys
from functools import partial
from itertools import product

import numpy as np
from numba import njit

from ranktron.data.impressions import Impressions, encode_ids
from ranktron.data.io import read_impressions
from ranktron.learners.clicks.browsing import Cells, browsing_examination, fit_product
from ranktron.learners.clicks.em import em_examination
from ranktron.learners.clicks.examination import last_clicks

PRIOR, SHARE, REPLICATES = 2.0, 0.3, 2000


def contexts(log, name):
    """What examination depends on."""
    place, last, size = log.position - 1, last_clicks(log), log.n_positions
    above = np.minimum(np.cumsum(log.clicks) - log.clicks, 1e9)
    above = (above - above[log.offsets[:-1]][log.impression_of_rows]).astype(np.int64)
    return {
        "attractiveness alone": np.zeros(len(place), np.int64),
        "position-based": place,
        "distance to the last click": place - last + 1 + size * (last == 0),
        "user browsing": place * size + last,
        "user browsing, and the number of clicks above (at most 3)": (place * size + last) * 4 + np.minimum(above, 3),
    }[name]


def product_model(log, held, name):
    """The log-likelihood of each held-out page under examination times attractiveness."""
    context = contexts(log, name)
    cells, rows = Cells(log.documents(), context, int(context.max()) + 1), held[log.impression_of_rows]
    examination, attractiveness = fit_product(cells, (~rows).astype(float), log, 2000, 1e-6)
    chance = (attractiveness[cells.document] * examination[cells.context])[cells.of_rows]
    found = np.where(log.clicks > 0, np.log(chance), np.log1p(-chance))
    return np.add.reduceat(found, log.offsets[:-1])[held]


@njit
def chain(documents, clicks, weights, alpha, leave, by_place, gamma, sums):
    """Log-likelihoods of pages of users who read on until they leave, and the expected counts of an EM step.

    After a click the user leaves with a probability by document or place; otherwise goes on with gamma. `sums` takes,
    by document, examinations and clicks; by document or place, clicks and leaves; of gamma, trials and successes.
    """
    n, size = documents.shape
    found = np.zeros(n)
    for page in range(n):
        last = -1
        for k in range(size):
            if clicks[page, k] > 0:
                last = k
        total, weight = 0.0, weights[page]
        for k in range(last + 1):  # all of these were examined
            d = documents[page, k]
            total += np.log(alpha[d] if clicks[page, k] > 0 else 1.0 - alpha[d])
            sums[0, d] += weight
            sums[1, d] += weight * clicks[page, k]
            if k < last:
                at = k if by_place else d
                if clicks[page, k] > 0:
                    total += np.log(1.0 - leave[at])
                    sums[2, at] += weight
                total += np.log(gamma)
                sums[4, 0] += weight
                sums[5, 0] += weight
        reach, at = np.zeros(size + 1), 0
        stays = 1.0
        if last >= 0:
            at = last if by_place else documents[page, last]
            stays = 1.0 - leave[at]
            first = stays * gamma
        else:
            first = 1.0
        if last + 1 < size:
            reach[last + 1] = first
            ends = 1.0 - first
            for k in range(last + 1, size):
                skip = reach[k] * (1.0 - alpha[documents[page, k]])
                reach[k + 1] = skip if k == size - 1 else skip * gamma
                ends += skip - reach[k + 1]
            ends += reach[size]
            total += np.log(ends)
            if last >= 0:
                sums[2, at] += weight
                sums[3, at] += weight * leave[at] / ends
                sums[4, 0] += weight * (1.0 - leave[at] / ends)
            rest = np.ones(size + 1)  # the probability that all from here on is skipped, if this is examined
            for k in range(size - 1, last, -1):
                go = 1.0 if k == size - 1 else 1.0 - gamma + gamma * rest[k + 1]
                rest[k] = (1.0 - alpha[documents[page, k]]) * go
            for k in range(last + 1, size):
                examined = reach[k] * rest[k] / ends
                sums[0, documents[page, k]] += weight * examined
                if k > 0 and (k > last + 1 or last >= 0):
                    sums[5, 0] += weight * examined
                if k < size - 1:
                    sums[4, 0] += weight * examined
        found[page] = total
    return found


def chain_model(log, held, by_place, persevering):
    """The log-likelihood of each held-out page under a dependent click (by place) or dynamic Bayesian model."""
    size = log.n_positions
    order = np.lexsort((log.position, log.impression_of_rows))
    documents, clicks = (values[order].reshape(-1, size) for values in (log.documents(), log.clicks))
    n = int(documents.max()) + 1
    rate = float(clicks[~held, 0].mean())
    alpha, leave, gamma = np.full(n, rate), np.full(size if by_place else n, 0.5), 1.0 if persevering else 0.9
    weights = (~held).astype(float)
    for _ in range(200):
        sums = np.zeros((6, max(n, size)))
        chain(documents, clicks, weights, alpha, leave, by_place, gamma, sums)
        alpha = np.clip((sums[1, :n] + PRIOR * rate) / (sums[0, :n] + PRIOR), 1e-6, 1.0 - 1e-6)
        m = len(leave)
        leave = np.clip((sums[3, :m] + 0.5 * PRIOR) / (sums[2, :m] + PRIOR), 1e-6, 1.0 - 1e-6)
        gamma = 1.0 if persevering else min(float(sums[5, 0] / sums[4, 0]), 1.0 - 1e-6)
    return chain(documents, clicks, weights, alpha, leave, by_place, gamma, np.zeros((6, max(n, size))))[held]


PRODUCTS = (
    "attractiveness alone",
    "position-based",
    "distance to the last click",
    "user browsing",
    "user browsing, and the number of clicks above (at most 3)",
)
MODELS = {name: partial(product_model, name=name) for name in PRODUCTS} | {
    "dependent clicks": partial(chain_model, by_place=True, persevering=True),
    "dynamic Bayesian, simplified (gamma 1)": partial(chain_model, by_place=False, persevering=True),
    "dynamic Bayesian": partial(chain_model, by_place=False, persevering=False),
}


def compare(log, seed):
    """The log-likelihoods of held-out pages under each model, and the queries of these pages."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(log), bool)
    held[rng.permutation(len(log))[: round(SHARE * len(log))]] = True
    queries = encode_ids(log.query[log.offsets[:-1]][held])
    return {name: model(log, held) for name, model in MODELS.items()}, queries


def table(log, splits):
    print(f"{len(log):,} sessions, {len(np.unique(log.query))} queries\n")
    print("| model | a row | minus position-based | 95 % interval | other splits |")
    print("|---|---|---|---|---|")
    found = [compare(log, seed) for seed in range(splits)]
    likelihoods, queries = found[0]
    n = queries.max() + 1
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), REPLICATES)
    pages, size = draws @ np.bincount(queries), log.n_positions
    for name, values in likelihoods.items():
        away = values - likelihoods["position-based"]
        low, high = np.quantile((draws @ np.bincount(queries, away)) / pages / size, [0.025, 0.975])
        others = ", ".join(f"{(other[name] - other['position-based']).mean() / size:+.4f}" for other, _ in found[1:])
        cells = [f"{values.mean() / size:.4f}", f"{away.mean() / size:+.4f}", f"{low:+.4f} to {high:+.4f}", others]
        print(f"| {' | '.join([name, *cells])} |")
    print()


def without_largest(log):
    queries, counts = np.unique(log.query, return_counts=True)
    rows = log.query != queries[counts.argmax()]
    of = log.impression_of_rows
    names = {"query": log.query[rows], "item": log.item[rows]}
    return Impressions.from_arrays(log.clicks[rows], of[rows], log.position[rows], **names)


SESSIONS, QUERIES, SIZE = 60_000, 40, 10
USERS = ("position-based", "user browsing", "two kinds, one clicks a quarter as often", "dynamic Bayesian")


def simulated(users, sort, seed):
    """A log of such users, on pages shuffled or sorted by attractiveness with noise; and the attractiveness."""
    rng = np.random.default_rng(seed)
    truth, query = rng.uniform(0.05, 0.8, (QUERIES, SIZE)), rng.integers(QUERIES, size=SESSIONS)
    order = np.argsort(-(sort * np.log(truth)[query] + 0.7 * rng.normal(size=(SESSIONS, SIZE))), axis=1)
    shown, theta = truth[query[:, None], order], np.arange(1.0, SIZE + 1) ** -0.7
    clicks, last, reading = np.zeros(shown.shape), np.zeros(SESSIONS, int), np.ones(SESSIONS, bool)
    often = np.where((rng.random(SESSIONS) < 0.5) & users.startswith("two"), 0.25, 1.0)
    for k in range(SIZE):
        examined = often * theta[k]
        if users == "user browsing":
            away = np.where(last > 0, k + 1 - last, k + 2)
            examined = 0.95 * away**-0.6 * np.where(last > 0, 1.0, 0.8)
        elif users == "dynamic Bayesian":
            examined = reading.astype(float)
        clicks[:, k] = rng.random(SESSIONS) < examined * shown[:, k]
        last = np.where(clicks[:, k] > 0, k + 1, last)
        satisfied = (clicks[:, k] > 0) & (rng.random(SESSIONS) < 0.8 * shown[:, k])
        reading &= (rng.random(SESSIONS) < 0.85) & ~satisfied
    of, place = np.repeat(np.arange(SESSIONS), SIZE), np.tile(np.arange(1, SIZE + 1), SESSIONS)
    return Impressions.from_arrays(clicks.ravel(), of, place, query=query[of], item=order.ravel()), truth.ravel()


def error(log, truth, examination):
    """The root mean square of log (mean corrected click / attractiveness) of documents, and how much of it is noise."""
    document, corrected = log.documents(), log.clicks / examination.at_rows(log)
    shown, clicks = np.bincount(document), np.bincount(document, log.clicks)
    mean = np.bincount(document, corrected) / shown
    variance = (np.bincount(document, corrected**2) / shown - mean**2) / shown
    often = clicks >= 20
    away = np.log(mean[often] / truth[often])
    away -= np.average(away, weights=shown[often])
    return np.sqrt(np.mean(away**2)), np.sqrt(np.mean(variance[often] / mean[often] ** 2))


def bias(seed=0):
    print("| users | pages | position-based (EM) | user browsing |\n|---|---|---|---|")
    for users, sort in product(USERS, (0.0, 1.0)):
        log, truth = simulated(users, sort, seed)
        found = [error(log, truth, each) for each in (em_examination(log), browsing_examination(log))]
        cells = [f"{away:.3f} ({noise:.3f})" for away, noise in found]
        print(f"| {' | '.join([users, 'sorted' if sort else 'shuffled', *cells])} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sessions = read_impressions(sys.argv[1])
        for each in (sessions, without_largest(sessions)):
            table(each, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    bias()
