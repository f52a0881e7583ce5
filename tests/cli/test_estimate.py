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


ALL = ["ips", "self_normalised", "item_position", "reward_interaction", "doubly_robust", "cascade_doubly_robust"]


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
    for word in ("shown pages", "item position", "95 % interval", "effective size", "400 impressions"):
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
