"""Unbiasedness by enumeration of all pages under the user that each estimator assumes, and biases under the others."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.off_policy import draw_logs, drawn_policies, worlds
from ranktron import DataError, RankingWarning
from ranktron.metrics.off_policy import (
    Estimate,
    RankingPolicy,
    cascade_doubly_robust,
    direct,
    doubly_robust,
    ips,
    item_position,
    reward_interaction,
    self_normalised,
    self_normalised_doubly_robust,
)

PAGE = Path(__file__).parents[3] / "docs" / "off-policy.md"
M, K = 4, 3
PAGES = [list(page) for page in permutations(range(M), K)]
LOGGING = RankingPolicy([0.6, 0.0, -0.4, 0.3])
TARGETS = {"drawn": RankingPolicy([-0.5, 1.0, 0.2, 0.4]), "sorted": RankingPolicy([-0.5, 1.0, 0.2, 0.4], 0.0)}
RELEVANCE, EXAMINED = np.array([0.2, 0.9, 0.5, 0.1]), np.array([1.0, 0.6, 0.3])
WRONG = np.random.default_rng(5).uniform(0.0, 1.0, (M, K))  # a model of gains that has nothing to do with them


def independent(page):
    """The gain of a place depends on its document and on the place."""
    return RELEVANCE[page] * EXAMINED


def cascade(page):
    """Users read from the top, and leave when they are satisfied."""
    relevance = RELEVANCE[page]
    return relevance * np.cumprod(np.append(1.0, 1.0 - 0.8 * relevance[:-1]))


def whole_page(page):
    """A document takes clicks from all others of the page, above and below."""
    relevance = RELEVANCE[page]
    return relevance * EXAMINED * (1.0 - 0.6 * np.array([np.delete(relevance, k).max() for k in range(K)]))


USERS = {"document and place": independent, "documents above": cascade, "the whole page": whole_page}


def value(policy, user):
    """The true value: the sum over all pages."""
    return sum(policy.draws(page).prod() * user(page).sum() for page in PAGES)


def arguments(page, target):
    """What the page-wise estimators take, for one impression."""
    return [LOGGING.draws(page)], [target.draws(page)]


def at_places(policy, page):
    return policy.at_places(page, K)[np.arange(K), np.arange(K)]


def predictions(page, target):
    """Those of a wrong model: of the places shown, their means, and of whole pages."""
    predicted = WRONG[page, np.arange(K)]
    expected = (target.next_draws(page) * WRONG.T).sum(axis=1)
    of_page = sum(target.draws(other).prod() * WRONG[other, np.arange(K)].sum() for other in PAGES)
    return predicted, expected, of_page


def estimate(name, page, target, gains):
    """The estimate from a log of one impression."""
    both = arguments(page, target)
    if name == "item_position":
        return item_position([gains], [at_places(LOGGING, page)], [at_places(target, page)]).value
    if name in ("doubly_robust", "cascade_doubly_robust"):
        predicted, expected, of_page = predictions(page, target)
        if name == "doubly_robust":
            return doubly_robust([gains], *both, [predicted.sum()], [of_page]).value
        return cascade_doubly_robust([gains], *both, [predicted], [expected]).value
    return {"ips": ips, "reward_interaction": reward_interaction}[name]([gains], *both).value


def bias(name, target, user):
    """The exact mean of the estimate over all pages, minus the true value."""
    mean = sum(LOGGING.draws(page).prod() * estimate(name, page, target, user(page)) for page in PAGES)
    return mean - value(target, user)


UNBIASED = {
    "ips": set(USERS),
    "item_position": {"document and place"},
    "reward_interaction": {"document and place", "documents above"},
    "doubly_robust": set(USERS),
    "cascade_doubly_robust": {"document and place", "documents above"},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", UNBIASED)
def test_estimators_are_unbiased_under_their_assumption_and_only_then(name, user, target):
    found = bias(name, TARGETS[target], USERS[user])
    if user in UNBIASED[name]:
        assert found == pytest.approx(0.0, abs=1e-12)
    else:
        assert abs(found) > 0.005


def population(target, user):
    """A log with every page as often as a uniform logging ranker shows it: the whole population, once."""
    uniform = RankingPolicy(np.zeros(M))
    gains = [user(page) for page in PAGES]
    return gains, [uniform.draws(page) for page in PAGES], [target.draws(page) for page in PAGES]


@pytest.mark.filterwarnings("ignore:few impressions carry all the weight")  # 1 of 24 pages, and that is all there are
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("user", USERS)
def test_self_normalised_is_right_for_the_population_and_biased_for_few(target, user):
    policy, gains = TARGETS[target], USERS[user]
    assert self_normalised(*population(policy, gains)).value == pytest.approx(value(policy, gains))
    if target == "drawn":  # of a log of one impression it is what this one gained
        single = [self_normalised([gains(page)], *arguments(page, policy)).value for page in PAGES]
        np.testing.assert_allclose(single, [gains(page).sum() for page in PAGES])
        mean = sum(LOGGING.draws(page).prod() * one for page, one in zip(PAGES, single, strict=True))
        assert abs(mean - value(policy, gains)) > 0.01


def test_self_normalised_comes_closer_with_more_impressions():
    truth, errors = value(TARGETS["drawn"], cascade), []
    for n in (15, 1500):
        found = [self_normalised(*drawn_log(n, seed)[:3]).value for seed in range(200)]
        errors.append(np.sqrt(np.mean((np.array(found) - truth) ** 2)))
    assert errors[1] < 0.2 * errors[0]


def test_a_perfect_model_leaves_nothing_to_vary():
    """Doubly robust with the truth as the model: every page gives the same estimate."""
    target = TARGETS["drawn"]
    truth = RELEVANCE[:, None] * EXAMINED
    found = []
    for page in PAGES:
        predicted = truth[page, np.arange(K)]
        both = arguments(page, target)
        found.append(doubly_robust([independent(page)], *both, [predicted.sum()], [value(target, independent)]).value)
    np.testing.assert_allclose(found, value(target, independent))


SHOWN = np.array([LOGGING.draws(page).prod() for page in PAGES])
DRAWS = [np.array([policy.draws(page) for page in PAGES]) for policy in (LOGGING, TARGETS["drawn"])]
CHANCES = np.array([cascade(page) for page in PAGES])


def drawn_log(n, seed, users_each=1):
    rng = np.random.default_rng(seed)
    pages = np.repeat(rng.choice(len(PAGES), size=n // users_each, p=SHOWN), users_each)
    clicks = np.repeat(rng.random((n // users_each, K)), users_each, axis=0) < CHANCES[pages]
    return clicks.astype(float), *(draws[pages] for draws in DRAWS), np.repeat(np.arange(n // users_each), users_each)


@pytest.mark.parametrize("estimator", [ips, self_normalised, reward_interaction])
def test_intervals_cover(estimator):
    truth, covered = value(TARGETS["drawn"], cascade), 0
    for seed in range(300):
        found = estimator(*drawn_log(400, seed)[:3])
        covered += found.low <= truth <= found.high
    assert 0.91 <= covered / 300 <= 0.98


def test_intervals_over_users_know_that_impressions_repeat():
    """Each user comes five times and does the same: over impressions the interval is too narrow by √5."""
    *log, users = drawn_log(1000, 0, users_each=5)
    plain, grouped = ips(*log), ips(*log, users=users)
    assert grouped.value == plain.value
    assert (grouped.high - grouped.low) / (plain.high - plain.low) == pytest.approx(
        np.sqrt(5),
        rel=0.05,  # and a little wider: 200 users are fewer degrees of freedom than 1,000 impressions
    )


def test_the_effective_size_is_that_of_equal_weights():
    same = ips(np.ones((50, 2)), np.full((50, 2), 0.5), np.full((50, 2), 0.5))
    assert (same.effective_size, same.mean_weight) == (50.0, 1.0)
    one = ips([[1.0], [0.0]], [[0.5], [0.5]], [[1.0], [0.0]])
    assert one.effective_size == 1.0


@pytest.mark.parametrize("estimator", [ips, self_normalised, item_position, reward_interaction])
def test_what_was_never_shown_is_warned_of(estimator):
    gains, logged, target = np.ones((100, 2)), np.full((100, 2), 0.5), np.zeros((100, 2))
    with pytest.warns(RankingWarning, match="does not show what the new one wants.* 0 of 100 impressions count"):
        found = estimator(gains, logged, target)
    assert found.effective_size == 0.0
    target[:30] = 0.5  # a logging ranker that shows half of what is wanted
    with pytest.warns(RankingWarning, match="cannot be trusted"):
        estimator(gains, logged, target)


def test_weights_above_one_say_that_the_stated_probabilities_are_wrong():
    rng = np.random.default_rng(0)
    logged = rng.choice([0.4, 0.1], p=[0.8, 0.2], size=2000)[:, None]
    assert ips(np.zeros((2000, 1)), logged, np.full((2000, 1), 0.25)).mean_weight == pytest.approx(1.0, abs=0.05)
    with pytest.warns(RankingWarning, match=r"not those with which it showed the log: .* are 2\.2, .* standard errors"):
        ips(np.zeros((2000, 1)), 0.45 * logged, np.full((2000, 1), 0.25))
    with pytest.warns(RankingWarning, match="standard errors more"):  # however little the weights vary
        self_normalised(np.zeros((100, 1)), np.full((100, 1), 0.1), np.full((100, 1), 0.2))


def test_a_tiny_effective_size_is_warned_of():
    target = np.full((4000, 1), 0.05)
    target[:40] = 0.1
    logged = np.full((4000, 1), 0.05)
    assert ips(np.zeros_like(target), logged, target).effective_size > 3000
    logged[:2], target[2:] = 0.0001, 0.0  # two rows with a weight of 1,000; the mean is 1/2, and within its error of 1
    target[:2] = 0.1
    with pytest.warns(RankingWarning, match=r"few impressions carry all the weight: .* as 2\.0 of 4,000 impressions"):
        ips(np.zeros_like(target), logged, target)


def test_weights_of_a_log_of_its_own_policy_are_not_warned_of():
    """Warnings are errors here: 300 logs from each of four kinds, with weights up to several hundred."""
    rng = np.random.default_rng(4)
    worlds_of_a_rate = [world for mean, world in worlds(*drawn_policies()) if mean == 0.003]
    assert len(worlds_of_a_rate) == 4
    for world in worlds_of_a_rate:
        weights = world.target / world.logging
        for shown in draw_logs(world, 1000, 300, rng)[0]:
            rows = np.repeat(weights, shown)[:, None]
            ips(np.zeros_like(rows), np.ones_like(rows) / weights.max(), rows / weights.max())


def log_of_two(n=3000, seed=0):
    """Gains, and probabilities of the logging ranker and of two others of single places."""
    rng = np.random.default_rng(seed)
    logging, one, two = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6]), np.array([0.25, 0.15, 0.6])
    items = rng.choice(3, p=logging, size=n)
    gains = (rng.random(n) < np.array([0.02, 0.04, 0.06])[items]).astype(float)[:, None]
    return gains, logging[items][:, None], one[items][:, None], two[items][:, None]


def test_a_difference_is_narrower_than_two_intervals_and_covers():
    truth, covered = 0.05 * (0.04 - 0.02), 0
    for seed in range(200):
        gains, logged, one, two = log_of_two(seed=seed)
        difference = ips(gains, logged, one) - ips(gains, logged, two)
        covered += difference.low <= truth <= difference.high
    assert 0.91 <= covered / 200 <= 0.985
    assert difference.value == pytest.approx(ips(gains, logged, one).value - ips(gains, logged, two).value)
    assert difference.high - difference.low < 0.3 * (ips(gains, logged, one).high - ips(gains, logged, one).low)


def test_a_difference_of_ratios_is_that_of_its_terms():
    gains, logged, one, two = log_of_two()
    better, worse = self_normalised(gains, logged, one), self_normalised(gains, logged, two)
    difference, other_way = better - worse, worse - better
    assert difference.value == pytest.approx(better.value - worse.value)
    assert other_way.low == pytest.approx(-difference.high, rel=0.05)
    same = better - better
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)
    with pytest.raises(DataError, match="from the same log"):
        better - self_normalised(gains[:100], logged[:100], one[:100])
    with pytest.raises(DataError, match="from the same log"):
        better - Estimate(0.1, 0.0, 0.2, 3.0, 1.0, 3000)


def test_the_self_normalised_doubly_robust_estimator_is_its_formula():
    gains, logged, target, _ = log_of_two()
    rng = np.random.default_rng(1)
    predicted, expected = rng.uniform(0.0, 0.1, 3000), rng.uniform(0.0, 0.1, 3000)
    weights = (target / logged)[:, 0]
    wanted = expected.mean() + (weights * (gains[:, 0] - predicted)).sum() / weights.sum()
    found = self_normalised_doubly_robust(gains, logged, target, predicted, expected)
    assert found.value == pytest.approx(wanted, rel=1e-12)
    zero = np.zeros(3000)
    plain = self_normalised(gains, logged, target)
    assert self_normalised_doubly_robust(gains, logged, target, zero, zero) == plain


def test_doubly_robust_intervals_count_predictions_and_errors():
    """Predictions that vary by impression widen the interval, as much as the normal one."""
    gains, logged, target, _ = log_of_two()
    predicted, expected = np.zeros(3000), np.random.default_rng(1).uniform(0.0, 1.0, 3000)
    weights = (target / logged)[:, 0]
    for estimator in (doubly_robust, self_normalised_doubly_robust):
        found = estimator(gains, logged, target, predicted, expected)
        error = np.std(expected + weights * gains[:, 0]) / np.sqrt(3000)
        assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.03)
    along = weights * gains[:, 0]  # predictions that go along with the errors add to them
    for estimator in (doubly_robust, self_normalised_doubly_robust):
        found = estimator(gains, logged, target, predicted, along)
        error = 2 * np.std(along) / np.sqrt(3000)
        assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.2)


def test_the_direct_method_has_no_interval():
    found = direct(np.zeros((4, 1)), [0.1, 0.2, 0.3, 0.4])
    assert found.value == pytest.approx(0.25)
    assert np.isnan([found.low, found.high]).all()
    shown = ips(np.zeros((4, 1)), np.ones((4, 1)), np.ones((4, 1)))
    assert np.isnan((found - shown).low)


def test_bad_input_is_one_sentence():
    with pytest.raises(DataError, match="tables of one shape"):
        ips([1.0], [0.5], [0.5])
    with pytest.raises(DataError, match="above 0 and at most 1"):
        ips([[1.0]], [[0.0]], [[0.5]])
    with pytest.raises(DataError, match="between 0 and 1"):
        ips([[1.0]], [[0.5]], [[1.5]])
    with pytest.raises(DataError, match="2 users for 1 impressions"):
        ips([[1.0]], [[0.5]], [[0.5]], users=[1, 2])


def table():
    target = TARGETS["drawn"]
    heads = ["estimator", *(f"a gain depends on {user}" for user in USERS)]
    rows = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    truth = [value(target, user) for user in USERS.values()]
    rows.append("| the true value | " + " | ".join(f"{v:.4f}" for v in truth) + " |")
    for name in UNBIASED:
        found = [bias(name, target, user) for user in USERS.values()]
        cells = ["0" if abs(b) < 1e-9 else f"{b:+.4f} ({b / v:+.1%})" for b, v in zip(found, truth, strict=True)]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_table_of_biases_is_what_was_found(request):
    text = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- biases -->\n{table()}\n<!-- /biases -->"
    wanted = re.sub(r"<!-- biases -->\n.*?<!-- /biases -->", lambda _: wanted, text, flags=re.DOTALL)
    if request.config.getoption("--write-docs"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert "<!-- biases -->" in text
    assert PAGE.read_text(encoding="utf-8") == wanted, "run: python -m pytest tests/metrics/off_policy --write-docs"


def test_cascade_doubly_robust_is_the_recursion_from_the_last_place():
    """V_k = expected_k + w_k (gain_k − predicted_k + V_{k+1}), with the weight of one place at a time."""
    target, page = TARGETS["drawn"], PAGES[5]
    predicted, expected, _ = predictions(page, target)
    gains, value_below = np.array([1.0, 0.0, 1.0]), 0.0
    for k in reversed(range(K)):
        weight = target.draws(page)[k] / LOGGING.draws(page)[k]
        value_below = expected[k] + weight * (gains[k] - predicted[k] + value_below)
    found = cascade_doubly_robust([gains], *arguments(page, target), [predicted], [expected]).value
    assert found == pytest.approx(value_below)
