import numpy as np
import pytest

from ranktron import DataError, Impression
from ranktron.metrics.off_policy import GainModel, RankingPolicy, estimate_values, ips, item_position

RELEVANCE = np.array([0.9, 0.1, 0.6, 0.3, 0.2])
X = np.column_stack([RELEVANCE, np.arange(5.0)])
LOGGING = RankingPolicy([0.0, 0.3, 0.2, 0.5, 0.1])
AT_PLACES = LOGGING.at_places(np.arange(5), 3)


def log_of(n, seed=0):
    """Users who click by relevance and place, on pages of three drawn by the logging ranker."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(n):
        items = np.argsort(-(np.asarray(LOGGING.scores) + rng.gumbel(size=5)))[:3]
        clicks = rng.random(3) < RELEVANCE[items] / np.arange(1, 4)
        at = AT_PLACES[items, np.arange(3)]
        log.append(Impression(items, clicks.astype(float), at))
    return log


def truth(policy):
    return float((policy.at_places(np.arange(5), 3) * (RELEVANCE[:, None] / np.arange(1, 4))).sum())


@pytest.mark.parametrize("target", [RankingPolicy(2 * RELEVANCE), RankingPolicy(RELEVANCE, 0.0)])
def test_every_estimator_finds_the_value(target):
    n = 2000
    log = log_of(n)
    found = estimate_values(log, [target] * n, [LOGGING] * n, [X] * n)
    assert list(found) == [
        *("ips", "self_normalised", "item_position", "reward_interaction"),
        *("direct", "doubly_robust", "self_normalised_doubly_robust", "cascade_doubly_robust"),
    ]
    assert abs(found.pop("direct").value - truth(target)) < 0.2  # as wrong as a linear model
    for name, estimate in found.items():
        assert abs(estimate.value - truth(target)) < estimate.high - estimate.low, name  # four standard errors
        assert estimate.n == n
    width = {name: estimate.high - estimate.low for name, estimate in found.items()}
    assert width["item_position"] < width["reward_interaction"] < width["ips"]
    assert width["doubly_robust"] < width["ips"]
    assert width["cascade_doubly_robust"] < width["reward_interaction"]


def test_propensities_alone_are_enough_for_items_at_places():
    log, target = log_of(500), [RankingPolicy(RELEVANCE)] * 500
    alone = estimate_values(log, target)
    both = estimate_values(log, target, [LOGGING] * 500)
    assert list(alone) == ["item_position"]
    assert alone["item_position"].value == pytest.approx(both["item_position"].value, rel=1e-9)


@pytest.mark.filterwarnings("ignore::ranktron.errors.RankingWarning")
def test_the_same_scores_with_another_price_are_another_policy():
    log, target = log_of(500), [RankingPolicy(RELEVANCE, exploration_price=0.1)] * 500
    together = estimate_values(log, target, [RankingPolicy(RELEVANCE)] * 500)
    apart = estimate_values(log, target, [RankingPolicy(np.array(RELEVANCE) + 1e-12)] * 500)
    assert together["item_position"].value == pytest.approx(apart["item_position"].value, rel=1e-6)
    assert together["item_position"].value != pytest.approx(np.mean([each.gains.sum() for each in log]), rel=1e-6)


def test_pages_of_several_lengths_are_those_of_the_formulas():
    log = [Impression([0, 1], [1, 0]), Impression([2], [1])]
    target = RankingPolicy(RELEVANCE)
    found = estimate_values(log, [target] * 2, [LOGGING] * 2)
    weights = [(target.draws(i.items) / LOGGING.draws(i.items)).prod() for i in log]
    assert found["ips"].value == pytest.approx(np.mean(weights))
    at = [target.at_places([d], 1)[0, 0] / LOGGING.at_places([d], 1)[0, 0] for d in (0, 2)]
    assert found["item_position"].value == pytest.approx(np.mean(at))
    assert ips([[1.0]], [[1.0]], [[1.0]]).value == item_position([[1.0]], [[1.0]], [[1.0]]).value == 1.0


def test_a_prediction_has_not_seen_its_own_gain():
    log = log_of(40)
    models = GainModel.halves(log, [X] * 40)
    changed = [*log[:10], Impression(log[10].items, [5.0, 5.0, 5.0]), *log[11:]]
    again = GainModel.halves(changed, [X] * 40)
    assert np.array_equal(models[10].rates, again[10].rates)
    assert not np.array_equal(models[11].rates, again[11].rates)


def test_the_gain_model_is_least_squares():
    rng = np.random.default_rng(0)
    features, places = rng.normal(size=(4000, 2)), rng.integers(0, 3, 4000)
    gains = np.array([0.5, 0.3, 0.1])[places] + features @ [0.2, -0.1]
    model = GainModel.fit(features, places, gains, 3, ridge=1e-9)
    np.testing.assert_allclose(model.weights, [0.2, -0.1], atol=0.01)
    np.testing.assert_allclose(model.predict(model.centre[None]), [[0.5, 0.3, 0.1]], atol=0.02)


def test_bad_input_is_one_sentence():
    log = [Impression([0], [1])]
    with pytest.raises(DataError, match="nothing says how likely"):
        estimate_values(log, [LOGGING])
    with pytest.raises(DataError, match="1 impressions and 2 policies"):
        estimate_values(log, [LOGGING] * 2)


def test_a_document_that_is_shown_alone_may_stand_anywhere():
    """Only the second place is logged: the value is that of the second place."""
    n, target = 2000, RankingPolicy(RELEVANCE, 0.5)
    log = [Impression(each.items[1:2], each.gains[1:2], each.propensities[1:2]) for each in log_of(n)]
    positions = [[2]] * n
    found = estimate_values(log, [target] * n, [LOGGING] * n, [X] * n, positions=positions)
    assert list(found) == ["item_position"]
    at = [target.at_places(each.items, 2)[0, 1] / each.propensities[0] for each in log]
    wanted = np.mean([w * each.gains[0] for w, each in zip(at, log, strict=True)])
    assert found["item_position"].value == pytest.approx(wanted)
    second = float(target.at_places(np.arange(5), 2)[:, 1] @ RELEVANCE / 2)
    assert found["item_position"].low < second < found["item_position"].high
    alone = estimate_values(log, [target] * n, positions=positions)
    assert alone["item_position"].value == pytest.approx(wanted)
    with pytest.raises(DataError, match="a number for each document"):
        estimate_values(log, [target] * n, positions=[[1, 2]] * n)
    with pytest.raises(DataError, match="different whole numbers"):
        estimate_values(log, [target] * n, positions=[[0]] * n)
