import json
import re
import shutil

import numpy as np
import pytest

import ranktron
from ranktron.metrics.off_policy import RankingPolicy

N, M, K = 400, 5, 3
NAMES = ["price", "stars"]


def saved(weights, path):
    """A linear model with these weights."""
    learner = ranktron.learners.hinge_perceptron(2)
    state = learner.state()
    state["w"] = np.array(weights, float)
    ranktron.Model("hinge", {}, state, 2, feature_names=tuple(NAMES)).save(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Pages drawn by a model of prices, whose users look at stars; every candidate has a row. 20 queries come back."""
    folder, rng = tmp_path_factory.mktemp("log"), np.random.default_rng(0)
    lines, earned, wanted = ["impression,position,click,exploration,price,stars"], 0.0, 0.0
    queries = rng.integers(0, 4, (20, M, 2)) / 4.0
    tables = [RankingPolicy(X[:, 0]).at_places(np.arange(M), K) for X in queries]
    for number in range(N):
        X, table = queries[number % 20], tables[number % 20]
        items = np.argsort(-(X[:, 0] + rng.gumbel(size=M)))[:K]
        chances = X[:, 1]
        clicks = (rng.random(K) < chances[items] / np.arange(1, K + 1)).astype(int)
        earned += clicks.sum() / N
        wanted += (np.sort(chances)[::-1][:K] / np.arange(1, K + 1)).sum() / N
        for d in range(M):
            place = int(np.flatnonzero(items == d)[0]) + 1 if d in items else ""
            click = clicks[place - 1] if place else 0
            likely = repr(float(table[d, place - 1])) if place else ""
            lines.append(f"i{number},{place},{click},{likely},{X[d, 0]},{X[d, 1]}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    saved([1.0, 0.0], folder / "shown.model")
    saved([0.0, 1.0], folder / "stars.model")
    saved([0.0, -1.0], folder / "worse.model")
    return folder, earned, wanted


@pytest.fixture
def log(written, tmp_path):
    folder, *values = written
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return values


ALL = [
    *("ips", "self_normalised", "item_position", "reward_interaction"),
    *("direct", "doubly_robust", "self_normalised_doubly_robust", "cascade_doubly_robust"),
]


def test_the_better_model_is_found_from_the_log(run, log):
    earned, wanted = log
    code, out, err = run("estimate", "log.csv", "stars.model", "worse.model", "--logged-by", "shown.model", "--json")
    assert code == 0
    assert re.findall(r"(\w+)\.model: few impressions carry all the weight", err) == ["stars", "worse"]
    content = json.loads(out)
    assert (content["impressions"], content["places"]) == (N, K)
    assert content["shown"]["value"] == pytest.approx(earned)
    better, worse = content["models"]["stars.model"], content["models"]["worse.model"]
    assert list(better) == ALL
    for name in ("item_position", "reward_interaction", "cascade_doubly_robust"):
        assert better[name]["low"] - 0.1 < wanted < better[name]["high"] + 0.1
        assert better[name]["value"] > worse[name]["value"]
        assert 0 < better[name]["effective_size"] < N


def test_a_column_of_probabilities_is_enough_for_one_estimate(run, log):
    _, out, _ = run("estimate", "log.csv", "stars.model", "--json")
    _, both, _ = run("estimate", "log.csv", "stars.model", "--logged-by", "shown.model", "--json")
    alone = json.loads(out)["models"]["stars.model"]
    assert list(alone) == ["item_position"]
    other = json.loads(both)["models"]["stars.model"]["item_position"]
    assert alone["item_position"]["value"] == pytest.approx(other["value"], rel=1e-5)


def test_the_table_is_for_people_and_the_picture_too(run, log, tmp_path):
    arguments = ["log.csv", "stars.model", "--logged-by", "shown.model", "--temperature", "0.5"]
    code, out, _ = run("estimate", *arguments, "--figure", "estimates.svg")
    assert code == 0
    for word in ("shown pages", "item position", "95 % interval", "above shown", "effective size", "400 impressions"):
        assert word in out
    assert "<svg" in (tmp_path / "estimates.svg").read_text()


def test_a_model_that_wants_what_was_never_shown_is_warned_of(run, log, tmp_path):
    """The log of a model that hardly draws: at its temperature everything else is as good as never shown."""
    rng = np.random.default_rng(1)
    lines = ["impression,position,click,price,stars"]
    for number in range(60):
        prices = rng.permutation(M) * 100.0
        order = np.argsort(-prices)
        for d in range(M):
            place = int(np.flatnonzero(order == d)[0]) + 1
            lines.append(f"{number},{place if place <= K else 0},{int(place == 1)},{prices[d]},{-prices[d]}")
    (tmp_path / "greedy.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("estimate", "greedy.csv", "stars.model", "--logged-by", "shown.model")
    assert code == 0
    assert err.count("\n") == 1
    assert "stars.model: the logging ranker does not show what the new one wants: an estimate rests on 0 of 60" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["log.csv", "stars.model", "stars.model"], 2, "named twice"),
        (["log.csv", "stars.model", "--position", "place"], 1, "there is no column 'place'"),
        (["log.csv", "stars.model", "--exploration", "chance"], 1, "there is no column 'chance'"),
        (["gap.csv", "stars.model"], 1, "impression 7 has the positions 1, 3: count from 1, without a gap"),
        (["none.csv", "stars.model"], 1, "impression 7 has the positions of no document"),
        (["zero.csv", "stars.model"], 1, "propensities are above 0"),
    ],
)
def test_bad_input_is_one_line(run, log, tmp_path, arguments, code, message):
    head = "impression,position,click,exploration,price,stars\n"
    (tmp_path / "gap.csv").write_text(head + "7,1,0,0.5,1,1\n7,3,0,0.5,1,1\n")
    (tmp_path / "none.csv").write_text(head + "7,0,0,0.5,1,1\n7,,0,0.5,1,1\n")
    (tmp_path / "zero.csv").write_text(head + "7,1,0,0,1,1\n7,2,0,0.5,1,1\n")
    found, _, err = run("estimate", *arguments)
    assert found == code
    assert message in err
    assert err.count("\n") == 1


BANDIT = "place,item,clicked,shown_with,other\n" + "".join(
    f"{1 + i % 3},{'abcd'[i % 4]},{int(i % 7 == 0)},{0.1 + 0.1 * (i % 4)},{0.25}\n" for i in range(200)
)
COLUMNS = ["--position", "place", "--exploration", "shown_with"]


@pytest.fixture
def bandit(tmp_path):
    """A row for each document that was shown, and a policy that depends on the place, of five items."""
    (tmp_path / "bandit.csv").write_text(BANDIT)
    table = {1: [0.1, 0.2, 0.3, 0.4, 0.0], 2: [0.25] * 4 + [0.0], 3: [0.4, 0.3, 0.2, 0.05, 0.05]}
    rows = [f"{d},{k},{p}" for k, all in table.items() for d, p in zip("abcde", all, strict=True)]
    (tmp_path / "policy.csv").write_text("item,position,probability\n" + "\n".join(rows) + "\n")
    i = np.arange(200)
    chances = np.array(list(table.values()))[i % 3, i % 4]
    return (i % 7 == 0).astype(float), 0.1 + 0.1 * (i % 4), chances


@pytest.mark.filterwarnings("ignore::ranktron.errors.RankingWarning")
def test_a_bandit_log_needs_no_model(run, bandit):
    gains, logged, chances = bandit
    code, out, _ = run("estimate", "bandit.csv", "--target", "other", "--policy", "policy.csv", *COLUMNS, "--json")
    assert code == 0
    content = json.loads(out)
    assert (content["impressions"], content["places"]) == (200, 1)
    column, table = content["models"]["other"], content["models"]["policy.csv"]
    assert list(column) == ["ips", "self_normalised"]
    assert list(table) == ["ips", "self_normalised", "direct", "doubly_robust", "self_normalised_doubly_robust"]
    assert column["ips"]["value"] == pytest.approx((0.25 / logged * gains).mean(), rel=1e-12)
    assert table["ips"]["value"] == pytest.approx((chances / logged * gains).mean(), rel=1e-12)
    assert table["self_normalised"]["mean_weight"] == pytest.approx((chances / logged).mean(), rel=1e-12)
    assert (table["direct"]["low"], table["direct"]["above_shown"]["low"]) == (None, None)
    for ranker in (column, table):
        above = ranker["ips"]["above_shown"]
        assert above["value"] == pytest.approx(ranker["ips"]["value"] - gains.mean())
        assert above["low"] < above["value"] < above["high"]


@pytest.mark.filterwarnings("ignore::ranktron.errors.RankingWarning")
def test_rows_of_one_impression_are_added_up(run, bandit, tmp_path):
    gains, logged, _ = bandit
    lines = BANDIT.splitlines()
    named = [f"{lines[0]},session", *(f"{line},{i // 3}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "pages.csv").write_text("\n".join(named) + "\n")
    _, out, _ = run("estimate", "pages.csv", "--target", "other", *COLUMNS, "--json")
    content = json.loads(out)
    assert (content["impressions"], content["places"]) == (67, 3)
    assert list(content["models"]["other"]) == ["item_position"]
    assert content["models"]["other"]["item_position"]["value"] == pytest.approx((0.25 / logged * gains).sum() / 67)
    assert content["shown"]["value"] == pytest.approx(gains.sum() / 67)


def test_a_wrong_logging_policy_is_warned_of(run, bandit, tmp_path):
    rows = [f"{1 + i % 3},{'abcd'[i % 4]},{int(i % 7 == 0)},0.1,0.5" for i in range(200)]
    (tmp_path / "wrong.csv").write_text("place,item,clicked,shown_with,other\n" + "\n".join(rows) + "\n")
    code, _, err = run("estimate", "wrong.csv", "--target", "other", *COLUMNS)
    assert code == 0
    assert err.count("\n") == 1
    assert "other: the probabilities of the logging ranker are not those with which it showed the log" in err
    assert "a mean weight of 5" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bandit.csv"], 2, "name what to estimate"),
        (["bandit.csv", "a.model", "--target", "other"], 2, "name what to estimate"),
        (["bandit.csv", "--target", "other", "--target", "other"], 2, "named twice"),
        (["bandit.csv", "--target", "others", *COLUMNS], 1, "there is no column 'others'"),
        (["bandit.csv", "--target", "item", *COLUMNS], 1, "expected numbers in column 'item'"),
        (["bandit.csv", "--target", "place", *COLUMNS], 1, "lie between 0 and 1; column 'place' has 2 in line 3"),
        (["bandit.csv", "--policy", "sums.csv", *COLUMNS], 1, "add up to 1 at each position, not to 0.75"),
        (["bandit.csv", "--policy", "twice.csv", *COLUMNS], 1, "more than one probability"),
        (["bandit.csv", "--policy", "bandit.csv", *COLUMNS], 1, "no 'probability' among"),
        (["zero.csv", "--target", "other", *COLUMNS], 1, "above 0 and at most 1; column 'shown_with' has 0 in line 2"),
        (["bandit.csv", "--target", "other", "--position", "place"], 1, "found no 'exploration'"),
    ],
)
def test_bad_bandit_logs_are_one_line(run, bandit, tmp_path, arguments, code, message):
    (tmp_path / "a.model").write_text("")
    (tmp_path / "zero.csv").write_text("place,item,clicked,shown_with,other\n1,a,0,0,0.5\n")
    (tmp_path / "sums.csv").write_text("item,probability\na,0.5\nb,0.25\n")
    (tmp_path / "twice.csv").write_text("item,probability\na,0.5\na,0.5\n")
    found, _, err = run("estimate", *arguments)
    assert found == code
    assert message in err
    assert err.count("\n") == 1
