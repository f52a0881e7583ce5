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


def test_a_log_in_which_nothing_moved_says_what_is_missing_and_prints_no_interval(run, log):
    log = log[log.ranker == 0]
    log.to_csv("still.csv", index=False)
    code, out, _ = run("clicks", "still.csv", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["connected"] == {"documents_that_moved": 0, "positions": [[1], [2], [3], [4]]}
    assert list(summary["examination"]) == ["em"]
    assert sorted(summary["examination"]["em"]) == ["basis", "values"]
    text = " ".join(run("clicks", "still.csv")[1].split())
    assert "0 documents stood at several positions and nothing connects positions 1 | 2 | 3 | 4" in text
    assert "em rests on a model of relevance alone: nothing in the log can check it" in text
    assert "not harvested: no clicked document stood, for the same query, on both sides of" in text
    assert text.count("let a second ranker show other orders, or draw some pages at random") == 2
    assert "(" not in text.partition("furthest")[0].partition("1.000")[2].partition("0 documents")[0]
    code, _, err = run("train", "still.csv", "--clicks", "auto", "--model", "a.model")
    assert (code, "position bias rests on a model of relevance alone" in err) == (0, True)


def test_intervals_may_be_over_queries(run, log):
    widths = []
    for unit in ("impressions", "queries"):
        _, out, _ = run("clicks", "log.csv", "--replicates", "20", "--resample", unit, "--json")
        curve = json.loads(out)["examination"]["harvested"]
        widths.append([high - low for low, high in zip(curve["low"], curve["high"], strict=True)])
    assert widths[0] != widths[1]
    log.assign(query=np.where(log["query"] < 20, 1, log["query"])).to_csv("uneven.csv", index=False)
    out = run("clicks", "uneven.csv", "--replicates", "2")[1]
    assert "of the impressions: intervals hold for these queries, and --resample queries is for others" in out
    assert "hold for these queries" not in run("clicks", "log.csv", "--replicates", "2")[1]


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


@pytest.mark.parametrize("click", ["click", "clicked", "is_clicked"])
def test_every_command_that_reads_a_log_knows_its_columns_by_the_same_names_and_options(run, log, click):
    log = log.rename(columns={"clicked": click, "search_id": "session", "text": "words"}).drop(columns="ranker")
    log.assign(exploration=0.5, brand="b").to_csv("a.csv", index=False)
    named = {"session": "page", "position": "slot", click: "bought", "query": "words?", "item": "sku"}
    log.rename(columns=named).assign(chance=0.5, brand="b").to_csv("b.csv", index=False)
    options = ["--impression", "page", "--position", "slot", "--click", "bought", "--query", "words?", "--item", "sku"]
    answers = []
    for path, more in (("a.csv", []), ("b.csv", options)):
        more = [*more, "--drop", "brand"]
        more += ["--exploration", "exploration" if path == "a.csv" else "chance"]
        code, out, _ = run("clicks", path, "--replicates", "0", *more, "--json")
        assert code == 0
        answers.append(json.loads(out))
        assert run("train", path, "--clicks", "harvested", "--model", f"{path}.model", *more)[0] == 0
        model = ranktron.load(f"{path}.model")
        assert model.names == ("shown_by", "words")
        answers.append(model.coef.tolist())
        for arguments in (["evaluate", f"{path}.model", path, "--clicks"], ["estimate", path, f"{path}.model"]):
            code, out, _ = run(*arguments, *more, "--json")
            assert code == 0
            answers.append(out.replace(path, "log"))
    assert answers[:4] == answers[4:]


def test_a_column_that_is_dropped_has_no_role_and_one_that_is_not_there_is_named(run, log):
    log.to_csv("log.csv", index=False)
    assert run("train", "log.csv", "--clicks", "em", "--drop", "item,ranker", "--model", "a.model")[0] == 0
    assert ranktron.load("a.model").names == ("shown_by", "text")
    _, _, err = run("train", "log.csv", "--clicks", "harvested", "--drop", "item", "--model", "b.model")
    assert "takes query= and item=" in err or "takes item=" in err
    code, _, err = run("train", "log.csv", "--clicks", "auto", "--drop", "nosuch", "--model", "b.model")
    assert (code, "there is no column 'nosuch'" in err) == (1, True)
    assert not Path("b.model").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["train", "log.csv", "--model", "a", "--position", "slot"],
            "--position names a column of a click log: add --clicks auto",
        ),
        (
            ["train", "log.csv", "--model", "a", "--clicks", "auto", "--label", "clicked"],
            "--label is not of click logs: see --click",
        ),
        (
            ["train", "log.csv", "--model", "a", "--clicks", "auto", "--doc", "item"],
            "--doc is not of click logs: see --item",
        ),
    ],
)
def test_an_option_of_another_kind_of_data_is_refused(run, log, arguments, complaint):
    code, _, err = run(*arguments)
    assert (code, complaint in err) == (2, True)


@pytest.mark.parametrize("more", [["--algo", "slam"], ["--feedback", "perfect", "--algo", "hinge"]])
def test_what_does_not_go_with_clicks_is_refused(run, log, more):
    code, _, err = run("train", "log.csv", "--clicks", "auto", "--model", "a.model", *more)
    assert code == 2
    assert "--clicks cannot be combined with --from or --feedback" in err
    assert not Path("a.model").exists()
