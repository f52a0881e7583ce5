"""`ranktron clicks`, and `ranktron train --clicks`."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import ranktron


@pytest.fixture
def log(run):
    """A log in the current folder: forty queries, two rankers in turn, users who see position k with 1/k."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4, 2))
    wanted = 1.0 / (1.0 + np.exp(-2.0 * X[..., 1]))
    orders = np.argsort(-np.stack([X[..., 0], X.sum(axis=2)]), axis=2)
    query, ranker = rng.integers(40, size=600), rng.integers(2, size=600)
    rows = [
        (i, q, item, r, k, int(rng.random() < wanted[q, item] / k), *X[q, item])
        for i, (q, r) in enumerate(zip(query, ranker, strict=True))
        for k, item in enumerate(orders[r, q], start=1)
    ]
    names = ["search_id", "query", "item", "ranker", "position", "clicked", "shown_by", "text"]
    table = pandas.DataFrame(rows, columns=names)
    table.to_csv("log.csv", index=False)
    return table


def test_a_log_is_described_for_machines_and_for_eyes(run, log):
    code, out, _ = run("clicks", "log.csv", "--replicates", "20", "--picture", "clicks.svg", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["impressions"] == 600
    assert summary["clicks"] == log.clicked.sum()
    assert summary["click_through"] == pytest.approx(log.groupby("position").clicked.mean().tolist())
    assert list(summary["examination"]) == ["harvested", "em"]
    for curve in summary["examination"].values():
        assert curve["values"] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4], rel=0.35)
    assert "exploration=" in summary["not_estimated"]["randomised"]
    models = {score["model"]: score for score in summary["click_models"]}
    assert models["position-based"]["gain"] == 0.0
    assert models["attractiveness"]["high"] < 0.0 < models["user-browsing"]["gain"] + 0.01
    worst = summary["furthest_apart"]
    one, other = (summary["examination"][name]["values"][worst["position"] - 1] for name in worst["methods"])
    assert worst["factor"] == pytest.approx(max(one / other, other / one))
    assert "<svg" in Path("clicks.svg").read_text()
    text = " ".join(run("clicks", "log.csv", "--replicates", "0")[1].split())
    assert f"1 600 {summary['click_through'][0]:.4f} 1.000 1.000" in text
    assert "furthest apart: harvested and em" in text
    assert f"position-based {summary['click_models'][1]['log_likelihood']:.4f} +0.0000" in text


def test_columns_may_be_named(run, log):
    log.rename(columns={"position": "slot"}).to_csv("other.csv", index=False)
    code, _, err = run("clicks", "other.csv")
    assert code == 1
    assert "say which one it is with position='NAME' (--position NAME)" in err
    assert run("clicks", "other.csv", "--position", "slot", "--replicates", "0")[0] == 0


def test_a_model_is_learnt_from_the_clicks_of_a_log(run, log):
    code, _, _ = run("train", "log.csv", "--clicks", "auto", "--model", "a.model")
    assert code == 0
    model = ranktron.load("a.model")
    assert model.kind == "ranksvm"
    assert model.names == ("shown_by", "text")
    assert model.estimator().examination_.method == "harvested"
    assert abs(model.coef[0]) < 0.3 * model.coef[1]
    shown = {name: log[name] for name in ("position", "query", "item")}
    ranker = ranktron.RankSVM(scale="standard-query")
    ranker.fit(log[["shown_by", "text"]].astype(np.float32), log.clicked, qid=log.search_id, **shown)
    assert model.coef == pytest.approx(ranker.coef_, abs=1e-6)


def test_examination_may_depend_on_the_clicks_above(run, log):
    code, _, _ = run("train", "log.csv", "--clicks", "user-browsing", "--model", "b.model")
    assert code == 0
    model = ranktron.load("b.model")
    curve = model.estimator().examination_
    assert curve.method == "user-browsing"
    assert curve.after_click.shape == (4, 4)
    assert abs(model.coef[0]) < 0.3 * model.coef[1]


@pytest.mark.parametrize("more", [["--algo", "slam"], ["--feedback", "perfect", "--algo", "hinge"]])
def test_what_does_not_go_with_clicks_is_refused(run, log, more):
    code, _, err = run("train", "log.csv", "--clicks", "auto", "--model", "a.model", *more)
    assert code == 2
    assert "--clicks cannot be combined with --from or --feedback" in err
    assert not Path("a.model").exists()
