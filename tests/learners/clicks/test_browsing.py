"""The user browsing model: by enumeration of all clicks, against slow twins, and on real sessions."""

from itertools import permutations, product

import numpy as np
import pytest

from ranktron import DataError, Impressions, io
from ranktron.data.rounds import Rounds
from ranktron.data.serialization import deserialize, serialize
from ranktron.learners.clicks.browsing import (
    MODELS,
    Cells,
    browsing_examination,
    compare_click_models,
    fit_product,
    held_out_log_likelihood,
)
from ranktron.learners.clicks.estimating import weigh_log
from ranktron.learners.clicks.examination import Examination, last_clicks
from ranktron.learners.clicks.weighting import propensities

# Row k - 1, column j: position k, last click above at j.
GAMMA = np.array([[1.0, 1, 1, 1], [0.6, 0.9, 1, 1], [0.4, 0.3, 0.8, 1], [0.2, 0.15, 0.3, 0.7]])
ATTRACTIVENESS = np.array([0.9, 0.6, 0.35, 0.1])


def all_clicks(attractiveness):
    """Every pattern of clicks on a page, and its probability."""
    for clicks in product([0, 1], repeat=len(attractiveness)):
        chance, last = 1.0, 0
        for k, clicked in enumerate(clicks):
            p = GAMMA[k, last] * attractiveness[k]
            chance *= p if clicked else 1.0 - p
            last = k + 1 if clicked else last
        yield np.array(clicks, float), chance


def page(clicks):
    m = len(clicks)
    return Impressions.from_arrays(clicks, [0] * m, np.arange(1, m + 1), query="q", item=np.arange(m))


def simulated(sessions, queries=20, seed=0):
    """Pages of four in random order, one row for each document shown, and the true attractiveness by query and item."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.1, 0.9, (queries, 4))
    query = rng.integers(queries, size=sessions)
    order = np.argsort(rng.random((sessions, 4)), axis=1)
    clicks, last = np.zeros((sessions, 4)), np.zeros(sessions, int)
    for k in range(4):
        clicks[:, k] = rng.random(sessions) < GAMMA[k, last] * truth[query, order[:, k]]
        last = np.where(clicks[:, k] > 0, k + 1, last)
    of = np.repeat(np.arange(sessions), 4)
    return Impressions.from_arrays(
        clicks.ravel(), of, np.tile([1, 2, 3, 4], sessions), query=query[of], item=order.ravel()
    )


def test_a_click_over_its_examination_is_on_average_the_attractiveness_whatever_the_page():
    """Exact under the model, though the clicks above are random: the expectation is right after each of them."""
    known = Examination(GAMMA[:, 0], after_click=GAMMA)
    marginal = Examination(GAMMA[:, 0])
    away = []
    for order in permutations(range(4)):
        alpha = ATTRACTIVENESS[list(order)]
        mean, by_position = np.zeros(4), np.zeros(4)
        for clicks, chance in all_clicks(alpha):
            mean += chance * clicks / propensities(page(clicks), known)
            by_position += chance * clicks / marginal.at(np.arange(1, 5))
        assert mean == pytest.approx(alpha, abs=1e-12)
        away.append(by_position - alpha)
    assert np.abs(away).max() > 0.05


def test_the_weights_of_train_make_the_loss_that_of_attractiveness():
    """Σ over clicks of what `weigh_log` gives, each clicked document against every other one of its page."""
    scores, known = np.array([0.3, -1.0, 0.5, 2.0]), Examination(GAMMA[:, 0], after_click=GAMMA)
    order = [2, 0, 3, 1]
    gaps = np.maximum(0.0, 1.0 - scores[order][:, None] + scores[order][None, :])
    np.fill_diagonal(gaps, 0.0)
    loss = 0.0
    for clicks, chance in all_clicks(ATTRACTIVENESS[order]):
        if clicks.any():
            lists = Rounds.from_arrays(np.eye(4), clicks)
            learnt = weigh_log(page(clicks), lists, known)
            for query, weight in zip(learnt.lists, learnt.weights, strict=True):
                loss += chance * weight * gaps[int(query.labels.argmax())].sum()
    assert loss == pytest.approx(ATTRACTIVENESS[order] @ gaps.sum(axis=1), abs=1e-12)


def test_the_last_click_above_is_found_in_rows_of_any_order():
    rng = np.random.default_rng(0)
    of, position = np.repeat(np.arange(50), 5), np.concatenate([rng.permutation(5) + 1 for _ in range(50)])
    log = Impressions.from_arrays(rng.integers(2, size=250), of, position)
    found = last_clicks(log)
    for row in range(250):
        above = [
            p for p, c, i in zip(position, log.clicks, of, strict=True) if i == of[row] and p < position[row] and c
        ]
        assert found[row] == max(above, default=0)


def test_it_recovers_the_examination_that_made_the_clicks():
    found = browsing_examination(simulated(20_000))
    possible = np.tril(np.ones((4, 4), bool))
    assert found.after_click[possible] == pytest.approx(GAMMA[possible], abs=0.05)
    assert found.after_click[~possible].tolist() == [1.0] * 6
    assert found.values[0] == 1.0
    assert found.method == "user-browsing"


def test_no_examination_near_it_is_likelier():
    """The likelihood with both priors, and the best attractiveness of each document found by a search."""
    log = simulated(600, queries=3, seed=1)
    context, rate = 4 * (log.position - 1) + last_clicks(log), log.clicks[log.position == 1].mean()
    gamma, attractiveness = fit_product(Cells(log.documents(), context, 16), np.ones(2400), log, 20_000, 1e-12)
    grid = np.linspace(0.0005, 0.9995, 4000)
    clicked, skipped = np.zeros((2, 12, 16))
    np.add.at(clicked, (log.documents(), context), log.clicks)
    np.add.at(skipped, (log.documents(), context), 1.0 - log.clicks)

    def of_documents(gamma):
        chance = gamma[:, None] * grid
        prior = 2.0 * (rate * np.log(grid) + (1.0 - rate) * np.log1p(-grid))
        return prior + clicked @ np.log(chance) + skipped @ np.log1p(-chance)

    def best(gamma):
        return of_documents(gamma).max(axis=1).sum() + 0.1 * (np.log(gamma) + np.log1p(-gamma)).sum()

    assert attractiveness == pytest.approx(grid[of_documents(gamma).argmax(axis=1)], abs=3e-4)
    at = best(gamma)
    for cell in np.unique(context):
        for factor in (0.9, 1.1):
            moved = gamma.copy()
            moved[cell] = min(moved[cell] * factor, 0.5 + 0.5 * gamma[cell])
            assert best(moved) < at


def test_a_log_in_which_nothing_moved_is_refused():
    """Nor does it help that a document is seen after different clicks: that compares no two positions."""
    log = simulated(300)
    order = np.argsort(log.item + 4 * log.impression_of_rows, kind="stable")  # every item at a position of its own
    still = Impressions.from_arrays(
        log.clicks[order], log.impression_of_rows, log.item[order] + 1, query=log.query[order], item=log.item[order]
    )
    with pytest.raises(DataError, match=r"no documents compare position [234] .* with position 1; let a second ranker"):
        browsing_examination(still)


def test_an_interval_lies_around_the_mean_curve():
    curve = browsing_examination(simulated(500, queries=5), replicates=10)
    assert ((curve.low < curve.values) & (curve.values < curve.high))[1:].all()


def test_held_out_likelihood_is_that_of_the_fitted_model():
    log = simulated(400, queries=4, seed=2)
    test = np.arange(400) % 3 == 0
    rows = held_out_log_likelihood(log, "attractiveness", test)
    held = test[log.impression_of_rows]
    documents, clicks = log.documents(), log.clicks
    assert np.exp(rows[clicks[held] > 0]).max() < 1.0
    rate = clicks[~held & (log.position == 1)].mean()
    n = np.bincount(documents[~held], minlength=16)
    c = np.bincount(documents[~held], clicks[~held], minlength=16)
    chance = ((c + 2 * rate) / (n + 2))[documents[held]]  # without positions it is the click-through, shrunk
    slow = np.where(clicks[held] > 0, np.log(chance), np.log1p(-chance))
    assert rows.mean() == pytest.approx(slow.mean(), abs=2e-3)


def test_the_model_that_made_the_clicks_predicts_them_best():
    scores = {score.model: score for score in compare_click_models(simulated(4_000))}
    assert tuple(scores) == MODELS
    assert scores["user-browsing"].low > 0.0
    assert scores["attractiveness"].high < 0.0
    assert scores["position-based"].gain == 0.0


def test_real_sessions_are_not_of_position_based_users(data_dir):
    log = io.read_impressions(data_dir / "yandex-clicks" / "sessions.csv.gz")
    queries, counts = np.unique(log.query, return_counts=True)
    other = log.query != queries[counts.argmax()]
    assert other.mean() == pytest.approx(0.43, abs=0.005)
    without = Impressions.from_arrays(
        log.clicks[other],
        log.impression_of_rows[other],
        log.position[other],
        query=log.query[other],
        item=log.item[other],
    )
    for each in (log, without):
        score = compare_click_models(each)[-1]
        assert score.gain > 0.01
        assert score.low > 0.0


def test_it_is_kept_with_the_model():
    curve = Examination([1.0, 0.5], after_click=[[1.0, 1.0], [0.4, 0.8]], method="user-browsing")
    kept = Examination.from_dict(deserialize(serialize(curve.to_dict())))
    assert serialize(kept.to_dict()) == serialize(curve.to_dict())


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda log: held_out_log_likelihood(log, "cascade", [True, False]), "no click model 'cascade'"),
        (lambda log: held_out_log_likelihood(log, MODELS[0], [True, True]), "neither none nor all"),
        (lambda log: compare_click_models(log, share=1.0), "above 0 and below 1, not 1.0"),
        (lambda log: compare_click_models(Impressions.from_arrays([1], [0], [1])), "query= and item="),
        (lambda log: browsing_examination(Impressions.from_arrays([0], [0], [1], query="q", item=[1])), "position 1"),
        (lambda log: Examination([1.0, 0.5], after_click=[[1.0]]), "for each pair of positions"),
        (lambda log: Examination([1.0], after_click=[[0.5]]).correct([1], [1]), "depends on the clicks above"),
    ],
)
def test_what_cannot_be_is_refused(call, complaint):
    log = Impressions.from_arrays([1, 0], ["a", "b"], [1, 1], query="q", item=[7, 8])
    with pytest.raises(DataError, match=complaint):
        call(log)
