import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from ranktron import DataError, Impressions, RankMM, RankSVM, Rounds
from ranktron.learners.clicks.estimating import weigh_log
from ranktron.learners.clicks.examination import Examination, power_law
from ranktron.learners.clicks.weighting import click_lists, click_weights, propensities

THETA = power_law(1.0, 3)


def weighted_loss(clicks, position, scores, examination):
    """Σ over lists of weight × hinge of the clicked document against each other one."""
    rounds = Rounds.from_arrays(scores[:, None], clicks)
    log = Impressions.from_arrays(clicks, np.zeros(len(clicks)), position)
    weights = click_weights(log, propensities(log, examination)).weights
    lists, own = click_lists(rounds, weights)
    total = 0.0
    for round, weight in zip(lists, own, strict=True):
        chosen = round.X[round.labels > 0, 0]
        total += weight * np.maximum(0.0, 1.0 - chosen + round.X[round.labels == 0, 0]).sum()
    return total


def test_the_weighted_loss_is_unbiased_over_all_clicks_that_users_may_make():
    relevance, scores, position = np.array([0.9, 0.2, 0.5]), np.array([0.3, 1.0, -0.5]), np.array([2, 1, 3])
    chance = THETA.at(position) * relevance
    expected = 0.0
    for clicks in itertools.product([0.0, 1.0], repeat=3):
        if any(clicks):
            likely = np.prod(np.where(np.array(clicks) > 0, chance, 1.0 - chance))
            expected += likely * weighted_loss(np.array(clicks), position, scores, THETA)
    full = sum(relevance[i] * sum(max(0.0, 1.0 - scores[i] + scores[j]) for j in range(3) if j != i) for i in range(3))
    assert expected == pytest.approx(full)


RELEVANCE = {"lamp": [0.9, 0.2, 0.6, 0.4], "chair": [0.1, 0.8, 0.3, 0.5]}
PAGES = [  # query, how often it is shown, and its documents from the top, as several truncating rankers choose them
    ("lamp", 3.0, (0, 1)), ("lamp", 2.0, (2, 0, 1)), ("lamp", 1.0, (3, 2)), ("lamp", 1.0, (1, 3, 0, 2)),
    ("chair", 2.0, (1, 0, 3)), ("chair", 0.5, (3, 1)), ("chair", 1.5, (2, 1, 0)),
]  # fmt: skip


def enumerated_log(theta, users):
    """All that users may click on all pages: a gain is the probability of the click pattern it is part of."""
    rows = []
    for page, (query, times, shown) in enumerate(PAGES):
        relevance = np.array(RELEVANCE[query])[list(shown)] * users
        for clicks in itertools.product([0.0, 1.0], repeat=len(shown)):
            chance = theta[: len(shown)] * relevance
            likely = times * np.prod(np.where(np.array(clicks) > 0.0, chance, 1.0 - chance))
            name = f"{page} {clicks}"
            rows += [(likely * c, name, k, query, i) for k, (i, c) in enumerate(zip(shown, clicks, strict=True), 1)]
    gains, impressions, places, queries, items = map(np.array, zip(*rows, strict=True))
    return Impressions.from_arrays(gains, impressions, places, query=queries, item=items)


def preferences(users):
    """What is minimised: (weight, query, preferred, other), each pair as often as both are shown."""
    return [
        (times * users * RELEVANCE[query][i], query, i, j)
        for query, times, shown in PAGES
        for i, j in itertools.permutations(shown, 2)
    ]


def features_of(log):
    X = {query: np.random.default_rng(n).normal(size=(4, 2)) for n, query in enumerate(RELEVANCE)}
    return X, np.array([X[query][item] for query, item in zip(log.query, log.item, strict=True)], np.float32)


@pytest.mark.parametrize("eta", [0.5, 2.0])
@pytest.mark.parametrize("users", [1.0, 0.3])
def test_over_all_pages_and_clicks_each_pair_weighs_the_relevance_of_the_preferred_document(eta, users):
    theta = power_law(eta, 4).values
    log = enumerated_log(theta, users)
    X = np.array([[list(RELEVANCE).index(query), item] for query, item in zip(log.query, log.item, strict=True)])
    rounds = Rounds.from_arrays(X, log.gains, group=np.diff(log.offsets))
    lists, weights, *_ = weigh_log(log, rounds, theta)
    found = dict.fromkeys(itertools.product(range(2), range(4), range(4)), 0.0)
    for round, weight in zip(lists, weights, strict=True):
        query, i = round.X[round.labels > 0][0].astype(int)
        others = round.X[round.labels == 0, 1].astype(int)
        for j in others:
            found[query, i, j] += weight / len(others)  # learners take the mean over the pairs of a list
    expected = dict.fromkeys(found, 0.0)
    for weight, query, i, j in preferences(users):
        expected[list(RELEVANCE).index(query), i, j] += weight / 3.0  # a click on the longest page, of 4, weighs itself
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("ranker", [RankSVM(C=5.0, tol=1e-9, scale=None), RankMM(C=5.0, tol=1e-6, scale=None)])
def test_rankers_fitted_to_all_clicks_minimise_the_loss_of_true_relevance_on_the_same_pages(ranker):
    theta = power_law(1.0, 4).values
    log = enumerated_log(theta, 1.0)
    X, rows = features_of(log)
    wanted = preferences(1.0)
    weights = np.array([weight for weight, *_ in wanted])
    apart = np.array([X[query][i] - X[query][j] for _, query, i, j in wanted])
    power = 2 if isinstance(ranker, RankSVM) else 1

    def objective(w):
        return 0.5 * w @ w + 5.0 * (weights / weights.sum()) @ np.maximum(0.0, 1.0 - apart @ w) ** power

    qid = log.ids[log.impression_of_rows]
    ranker.fit(rows, log.gains, qid=qid, position=log.position, query=log.query, item=log.item, examination=theta)
    least = min(
        minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}).fun
        for start in ([0.0, 0.0], ranker.coef_)
    )
    assert objective(ranker.coef_) == pytest.approx(least, rel=1e-4)


def single_documents(theta, turns=20_000):
    """Two queries with their own candidates and policies, each document as often as its policy shows it there."""
    policies = {"lamp": [0.4, 0.3, 0.2, 0.1], "chair": [0.05, 0.7, 0.25]}
    rows = [
        (theta[k] * RELEVANCE[query][i], query, i, k + 1, e)
        for query, policy in policies.items()
        for i, e in enumerate(policy)
        for k in range(2)
        for _ in range(round(turns * e / 40))
    ]
    gains, queries, items, places, exploration = map(np.array, zip(*rows, strict=True))
    names = {"query": queries, "item": items, "exploration": exploration}
    return Impressions.from_arrays(gains, np.arange(len(gains)), places, **names), policies


def test_single_documents_are_compared_with_all_candidates_across_impressions():
    """Gains are expected clicks; what is left of chance is the draw of the documents to compare with."""
    theta = np.array([1.0, 0.4])
    log, policies = single_documents(theta)
    X = np.array([[list(RELEVANCE).index(query), item] for query, item in zip(log.query, log.item, strict=True)])
    lists, weights, *_ = weigh_log(log, Rounds.from_arrays(X, log.gains, qid=np.arange(len(X))), theta)
    found = np.zeros((2, 4, 4))
    for round, weight in zip(lists, weights, strict=True):
        query, i = round.X[0].astype(int)
        assert (round.X[1:, 0] == query).all()
        np.add.at(found, (query, i, round.X[1:, 1].astype(int)), weight / (len(round.X) - 1))
    expected = np.zeros((2, 4, 4))
    for q, (query, policy) in enumerate(policies.items()):
        m = len(policy)
        expected[q, :m, :m] = np.array(RELEVANCE[query])[:m, None]
    assert found / found.sum() == pytest.approx(expected / expected.sum(), rel=0.1)
    assert found.sum(axis=2) / found.sum() == pytest.approx(expected.sum(axis=2) / expected.sum(), rel=1e-6)


def test_single_documents_need_propensities_and_company():
    rounds = Rounds.from_arrays([[1.0], [2.0]], [1, 0], qid=[0, 1])
    log = {"clicks": [1, 0], "qid": [0, 1], "position": [1, 1]}
    with pytest.raises(DataError, match="compared across impressions if exploration= says"):
        weigh_log(Impressions.from_arrays(**log), rounds, [1.0])
    with pytest.raises(DataError, match="no click is of a query with another impression"):
        weigh_log(Impressions.from_arrays(**log, query=["a", "b"], exploration=0.5 * np.ones(2)), rounds, [1.0])


def test_clipping_takes_what_it_says():
    log = Impressions.from_arrays([1, 2, 0, 1], [0, 0, 0, 0], [1, 2, 3, 4])
    found = click_weights(log, np.array([1.0, 0.5, 0.1, 0.1]), clip=0.2)
    assert found.weights.tolist() == [1.0, 4.0, 0.0, 5.0]
    assert found.clipped == 1
    assert found.lost == pytest.approx(5.0 / 15.0)
    assert click_weights(log, np.full(4, 0.5)).lost == 0.0


def test_every_click_is_a_list_of_its_own():
    rounds = Rounds.from_arrays(np.arange(6.0)[:, None], [1, 0, 1, 0, 0, 1], group=[3, 2, 1])
    lists, weights = click_lists(rounds, np.array([1.0, 0, 2.0, 0, 0, 4.0]))
    assert [round.X[:, 0].tolist() for round in lists] == [[0, 1, 2]] * 2
    assert [round.labels.tolist() for round in lists] == [[1, 0, 0], [0, 0, 1]]
    assert weights.tolist() == [1.0, 2.0]


def test_what_teaches_nothing_is_refused():
    log = Impressions.from_arrays([0, 0], [0, 0], [1, 2])
    with pytest.raises(DataError, match="no click in the log"):
        click_weights(log, np.ones(2))
    with pytest.raises(DataError, match="clip is the smallest propensity"):
        click_weights(log, np.ones(2), clip=2.0)
    with pytest.raises(DataError, match="nothing that it was preferred to"):
        click_lists(Rounds.from_arrays([[1.0]], [1]), np.ones(1))
    with pytest.raises(DataError, match="weights of clicks cannot undo it"):
        propensities(log, Examination([1.0, 0.5], offsets=[0.0, 0.1]))
