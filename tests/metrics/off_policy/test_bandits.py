"""Bandit logs: against plain formulas, and the Open Bandit Dataset."""

import json
import time

import numpy as np
import pytest

from ranktron import DataError
from ranktron.metrics.off_policy import ItemGainModel, estimate_bandit

N, ITEMS, PLACES = 600, 4, 3


@pytest.fixture
def log():
    rng = np.random.default_rng(2)
    logging, target = rng.dirichlet(np.ones(ITEMS), PLACES), rng.dirichlet(np.ones(ITEMS), PLACES)
    place = rng.integers(PLACES, size=N)
    item = np.array([rng.choice(ITEMS, p=logging[k]) for k in place])
    gains = (rng.random(N) < 0.1 * (1 + item) / (1 + place)).astype(float)
    return gains, logging[place, item], target, item, place + 1


def rewards(gains, item, place):
    """The model of the documentation, in loops: the mean gain of a place, times the smoothed ratio of an item."""
    rate = [np.mean(gains[place == k]) for k in range(PLACES)]
    ratio = []
    for a in range(ITEMS):
        expected = sum(rate[k] for k, other in zip(place, item, strict=True) if other == a)
        ratio.append((gains[item == a].sum() + 1.0) / (expected + 1.0))
    return np.outer(rate, ratio)


def by_hand(gains, logged, target, item, position):
    """Each estimate, row by row."""
    place = position - 1
    models = [rewards(gains[1::2], item[1::2], place[1::2]), rewards(gains[::2], item[::2], place[::2])]
    weights = [target[k, a] / p for k, a, p in zip(place, item, logged, strict=True)]
    predicted = [models[i % 2][k, a] for i, (k, a) in enumerate(zip(place, item, strict=True))]
    expected = [sum(target[k, a] * models[i % 2][k, a] for a in range(target.shape[1])) for i, k in enumerate(place)]
    errors = [w * (g - p) for w, g, p in zip(weights, gains, predicted, strict=True)]
    n = len(gains)
    return {
        "ips": sum(w * g for w, g in zip(weights, gains, strict=True)) / n,
        "self_normalised": sum(w * g for w, g in zip(weights, gains, strict=True)) / sum(weights),
        "direct": sum(expected) / n,
        "doubly_robust": sum(expected) / n + sum(errors) / n,
        "self_normalised_doubly_robust": sum(expected) / n + sum(errors) / sum(weights),
    }


def test_estimates_are_their_formulas(log):
    gains, logged, target, item, position = log
    found = estimate_bandit(gains, logged, target, item=item, position=position)
    assert {name: each.value for name, each in found.items()} == pytest.approx(by_hand(*log), rel=1e-12)
    for name, each in found.items():
        assert name == "direct" or each.low < each.value < each.high


def test_probabilities_of_what_was_shown_are_enough_for_two(log):
    gains, logged, target, item, position = log
    alone = estimate_bandit(gains, logged, target[position - 1, item])
    both = estimate_bandit(gains, logged, target, item=item, position=position)
    assert alone == {name: both[name] for name in ("ips", "self_normalised")}


def test_one_row_of_probabilities_is_for_every_position(log):
    gains, logged, target, item, position = log
    one = estimate_bandit(gains, logged, target[:1], item=item, position=position)
    several = estimate_bandit(gains, logged, np.repeat(target[:1], 3, axis=0), item=item, position=position)
    assert {name: each.value for name, each in one.items()} == {name: each.value for name, each in several.items()}
    assert estimate_bandit(gains, logged, target[:1], item=item)["ips"] == one["ips"]


def test_rows_of_an_impression_are_added_up(log):
    gains, logged, target, item, position = log
    page = np.random.default_rng(0).permutation(np.arange(N) // 3)
    found = estimate_bandit(gains, logged, target, item=item, position=position, impression=page)
    weights = target[position - 1, item] / logged
    assert list(found) == ["item_position"]
    assert found["item_position"].value == pytest.approx((weights * gains).sum() / (N / 3))
    assert found["item_position"].n == N / 3


def test_a_prediction_has_not_seen_its_own_gain(log):
    gains, logged, target, item, position = log
    before = estimate_bandit(gains, logged, target, item=item, position=position)["direct"]
    gains[10] += 5.0  # only odd rows are predicted with it
    after = estimate_bandit(gains, logged, target, item=item, position=position)["direct"]
    np.testing.assert_array_equal(before._terms.base[::2], after._terms.base[::2])
    assert not np.array_equal(before._terms.base[1::2], after._terms.base[1::2])


def test_an_item_that_was_never_shown_gains_what_its_place_does():
    model = ItemGainModel.fit(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.0, 2.0, 0.0]), 3, 2)
    np.testing.assert_allclose(model.predict()[:, 2], [0.0, 1.0])


def test_bad_input_is_one_sentence(log):
    gains, logged, target, item, position = log
    for message, arguments, others in (
        ("one number for each row", (gains[:, None], logged, target), {}),
        ("needs item=", (gains, logged, target), {}),
        ("has probabilities of 4 items at 3 positions, and the log", (gains, logged, target),
         {"item": item, "position": position + 1}),
        ("add up to 1", (gains, logged, 0.5 * target), {"item": item, "position": position}),
        ("a number for each of 600 rows", (gains, logged, target[0]), {}),
        ("one of impression and users", (gains, logged, logged), {"impression": item, "users": item}),
        ("above 0 and at most 1", (gains, 0.0 * logged, logged), {}),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            estimate_bandit(*arguments, **others)


KNOWN = {"all": (80, 0.002360, 0.002334, 1.011, 340), "men": (34, 0.003009, 0.003189, 0.943, 656)}


@pytest.mark.parametrize("campaign", KNOWN)
def test_the_uniform_policy_from_a_log_of_thompson_sampling(data_dir, run, tmp_path, campaign):
    """Also row by row: the uniform policy's own log has .0038 and .0046 clicks a row."""
    import pandas as pd

    m, ips, ratio, weight, size = KNOWN[campaign]
    path = data_dir / "open-bandit" / "bts" / campaign / f"{campaign}.csv.gz"
    (tmp_path / "uniform.csv").write_text("item_id,probability\n" + "".join(f"{i},{1 / m!r}\n" for i in range(m)))
    code, out, err = run("estimate", path, "--policy", "uniform.csv", "--exploration", "propensity_score", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["models"]["uniform.csv"]
    assert found["ips"]["value"] == pytest.approx(ips, abs=1e-6)
    assert found["self_normalised"]["value"] == pytest.approx(ratio, abs=1e-6)
    assert found["ips"]["mean_weight"] == pytest.approx(weight, abs=1e-3)
    assert found["ips"]["effective_size"] == pytest.approx(size, abs=1)
    assert found["self_normalised"]["low"] < {"all": 0.0038, "men": 0.0046}[campaign] < found["self_normalised"]["high"]

    log = pd.read_csv(path)
    gains, logged = log.click.to_numpy(float), log.propensity_score.to_numpy()
    item, position = log.item_id.to_numpy(), log.position.to_numpy()
    start = time.process_time()
    again = estimate_bandit(gains, logged, np.full((PLACES, m), 1 / m), item=item, position=position)
    assert time.process_time() - start < 1.0
    weights = 1 / m / logged
    models = []
    for half in (slice(1, None, 2), slice(None, None, 2)):  # what the odd rows taught, then what the even ones did
        rows = log.iloc[half]
        rate = rows.groupby("position").click.mean()
        expected = rate.loc[rows.position].groupby(rows.item_id.to_numpy()).sum().reindex(range(m), fill_value=0.0)
        clicks = rows.groupby("item_id").click.sum().reindex(range(m), fill_value=0)
        models.append(np.outer(rate.to_numpy(), (clicks + 1) / (expected + 1)))
    of_row = np.stack(models)[np.arange(len(log)) % 2, position - 1]
    errors = weights * (gains - of_row[np.arange(len(log)), item])
    wanted = of_row.mean() + errors.mean()
    assert again["doubly_robust"].value == pytest.approx(wanted, rel=1e-9)
    assert found["doubly_robust"]["value"] == pytest.approx(wanted, rel=1e-9)
    assert again["self_normalised_doubly_robust"].value == pytest.approx(of_row.mean() + errors.sum() / weights.sum())
