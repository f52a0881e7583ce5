import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ranktron
from ranktron import load, read
from ranktron.errors import MissingExtra


@pytest.fixture
def data(run):
    """Simulated files: train.txt, vali.txt, test.txt."""
    for part, name in enumerate(("train", "vali", "test")):
        assert run("simulate", "separable", f"{name}.txt", "--queries", 30, "--skip", 30 * part)[0] == 0
    return run


def as_json(result):
    code, out, _ = result
    assert code == 0
    assert out.count("\n") == 1
    return json.loads(out)


def test_train_evaluate_rank(data):
    summary = as_json(data("train", "train.txt", "--valid", "vali.txt", "--model", "m", "--epochs", 3, "--json"))
    assert summary["rounds"] == 90
    assert 0 < summary["mistakes"] < 90
    assert set(summary["online"]) == {"ndcg@10"}
    assert summary["valid"]["ndcg@10"] > 0.9
    assert summary["scale"] == "standard-query"

    measured = as_json(data("evaluate", "m", "test.txt", "--metrics", "ndcg@10,ap:letor", "--json"))
    assert measured["queries"] == 30
    assert set(measured["metrics"]) == {"ndcg@10", "map:letor"}
    value = measured["metrics"]["ndcg@10"]
    assert value["low"] <= value["mean"] <= value["high"]
    for baseline in ("random", "best feature"):
        assert measured["baselines"][baseline]["ndcg@10"] < value["mean"]

    assert data("rank", "m", "test.txt", "-o", "scores.txt")[0] == 0
    rounds = read("test.txt")
    expected = load("m").score_rounds(rounds)
    assert np.loadtxt("scores.txt").tolist() == expected.tolist()
    means = ranktron.evaluate(rounds, expected, "ndcg@10").means
    assert value["mean"] == means["ndcg@10"]


def test_tables_are_for_eyes(data):
    for command, words in {
        ("train", "train.txt", "--model", "m", "--valid", "vali.txt"): ["with an update", "time average", "best epoch"],
        ("evaluate", "m", "test.txt"): ["95 % interval", "random", "best feature", "without a relevant document"],
        ("info", "train.txt"): ["queries", "labels", "constant features", "share"],
        ("explain", "m", "test.txt", "--qid", "63"): ["query 63", "lead over", "contributions"],
    }.items():
        code, out, _ = data(*command)
        assert code == 0
        assert all(word in out for word in words), out


def test_updates_are_counted_where_there_are_any(data):
    for algorithm, words in {"hinge": "rankings with an update", "pairwise": "pairs with an update"}.items():
        assert words in data("train", "train.txt", "--algo", algorithm, "--model", "m")[1]
    assert "with an update" not in data("train", "train.txt", "--algo", "ranksvm", "--model", "m")[1]


def test_one_query_has_no_interval(data):
    assert data("simulate", "separable", "one.txt", "--queries", 1)[0] == 0
    assert data("train", "train.txt", "--model", "m")[0] == 0
    value = as_json(data("evaluate", "m", "one.txt", "--json"))["metrics"]["ndcg@10"]
    assert (value["low"], value["high"]) == (None, None)
    assert "1.0000 – 1.0000" not in data("evaluate", "m", "one.txt")[1]


def test_where_a_model_cannot_be_written_nothing_is_trained(data, monkeypatch):
    monkeypatch.setattr("ranktron.training.tune.tune_rounds", None)  # first: the module imports `train`
    monkeypatch.setattr("ranktron.training.fit.train", None)
    for command in ("train", "tune"):
        code, _, err = data(command, "train.txt", "--model", "no/folder/m")
        assert code == 1
        assert "no/folder/m cannot be written: there is no folder" in err


def test_a_sweep_is_decided_by_the_validation_set(data):
    asked = ("sweep", "train.txt", "--set", "eta=0.01,0.1,1", "--scale", "none", "--algo", "slam")
    swept = as_json(data(*asked, "--valid", "vali.txt", "--json"))
    best = max(swept["rows"], key=lambda row: row["valid"]["ndcg@10"])
    assert swept["best"] == best["value"]
    assert "best by ndcg@10 on the validation set" in data(*asked, "--valid", "vali.txt")[1]
    assert "best by the time average of ndcg@10" in data(*asked)[1]


def test_from_goes_on_exactly_where_it_stopped(data):
    assert data("train", "train.txt", "--model", "whole", "--epochs", 5, "--seed", 3)[0] == 0
    assert data("train", "train.txt", "--model", "part", "--epochs", 2, "--seed", 3)[0] == 0
    assert data("train", "train.txt", "--model", "rest", "--epochs", 3, "--from", "part")[0] == 0
    assert load("whole").to_bytes() == load("rest").to_bytes()
    code, _, err = data("train", "train.txt", "--model", "x", "--from", "part", "--algo", "hinge")
    assert (code, err.count("\n")) == (2, 1)


def test_epochs_that_are_no_better_are_the_last_ones(data):
    options = ("train", "train.txt", "--model", "m", "--valid", "vali.txt", "--epochs", 200, "--patience", 2, "--json")
    code, out, _ = data(*options)
    found = json.loads(out)
    assert code == 0
    assert found["rounds"] == (found["epoch"] + 2) * json.loads(data("info", "train.txt", "--json")[1])["queries"]
    assert found["remarks"]["passes in a row without a better one, after which training ended"] == 2
    code, _, err = data("train", "train.txt", "--model", "m", "--patience", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert "add --valid" in err


def test_pictures(data):
    assert data("train", "train.txt", "--model", "m", "--valid", "vali.txt", "--curve", "c.svg")[0] == 0
    assert data("evaluate", "m", "test.txt", "--curve", "e.png")[0] == 0
    assert data("evaluate", "m", "test.txt", "--curve", "e.pdf")[0] == 0
    assert "</svg>" in Path("c.svg").read_text()
    assert Path("e.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = data("evaluate", "m", "test.txt", "--curve", "e.nonsense")
    assert (code, err.count("\n")) == (2, 1)


def test_the_model_decides_how_wide_data_are(data):
    data("train", "train.txt", "--model", "m")
    lines = Path("test.txt").read_text().splitlines()
    Path("narrow.txt").write_text("\n".join(" ".join(line.split("#")[0].split()[:-2]) for line in lines))
    assert data("rank", "m", "narrow.txt", "-o", "s")[0] == 0
    Path("wide.txt").write_text("\n".join(line.split("#")[0] + " 99:1" for line in lines))
    code, _, err = data("rank", "m", "wide.txt", "-o", "s")
    assert code == 1
    assert "99" in err
    assert "20" in err


def test_convert_and_info_agree_over_formats(data):
    for target in ("d.rounds", "d.parquet", "d.txt.gz"):
        assert data("convert", "train.txt", target)[0] == 0
        summary = as_json(data("info", target, "--json"))
        assert summary["queries"] == 30
        assert summary["documents"] == 600
        assert summary["features"] == 20
        assert sum(summary["labels"].values()) == 600


def test_info_counts_scattered_queries(run, tmp_path):
    (tmp_path / "d.txt").write_text("1 qid:a 1:1\n0 qid:b 1:2\n0 qid:a 1:1\n0 qid:b 1:2\n0 qid:c 1:2\n")
    summary = as_json(run("info", "d.txt", "--json"))
    assert summary["duplicate_qids"] == 2
    assert summary["queries_without_relevant"] == 2


def test_rankings_as_a_table(data):
    data("train", "train.txt", "--model", "m")
    assert data("rank", "m", "test.txt", "-o", "ranked.csv", "--format", "csv")[0] == 0
    with open("ranked.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    test, place = read("test.txt"), iter(rows)
    scores = load("m").score_rounds(test)
    for number, round in enumerate(test):
        own = scores[test.offsets[number] : test.offsets[number + 1]]
        for rank, i in enumerate(np.argsort(-own, kind="stable"), 1):
            expected = {"query": str(round.qid), "document": str(i), "score": repr(float(own[i])), "rank": str(rank)}
            assert next(place) == expected
    assert next(place, None) is None


@pytest.mark.parametrize("picture", ["curve.gif", "nowhere/curve.png"])
def test_a_picture_that_cannot_be_written_is_refused_before_training(data, picture):
    code, _, err = data("train", "train.txt", "--model", "m", "--curve", picture)
    assert code == 2
    assert picture in err
    assert not Path("m").exists()


def test_trec_runs_and_compare(data):
    data("train", "train.txt", "--model", "good")
    data("train", "train.txt", "--model", "poor", "--epochs", 1, "--set", "eta=1e-9", "--scale", "minmax-query")
    for name in ("good", "poor"):
        assert data("rank", name, "test.txt", "-o", f"{name}.txt")[0] == 0
        assert data("rank", name, "test.txt", "-o", f"{name}.run", "--format", "trec")[0] == 0
    code, out, _ = data("compare", "good.txt", "poor.txt", "--data", "test.txt", "--metrics", "ndcg@10:trec,map")
    assert code == 0
    assert "good.txt" in out
    rounds = read("test.txt")
    with open("qrels", "w") as file:
        for round in rounds:
            file.writelines(f"{round.qid} 0 {i} {int(y)}\n" for i, y in enumerate(round.labels))
    direct = as_json(data("compare", "good.txt", "poor.txt", "--data", "test.txt", "--json"))
    by_qrels = as_json(data("compare", "good.run", "poor.run", "--qrels", "qrels", "--json"))
    for one, two in (("good.txt", "good.run"), ("poor.txt", "poor.run")):
        assert by_qrels["systems"][two]["ndcg@10"] == pytest.approx(direct["systems"][one]["ndcg@10"])
    for style in ("markdown", "latex"):
        assert data("compare", "good.txt", "poor.txt", "--data", "test.txt", "--format", style)[0] == 0
    assert data("compare", "good.txt")[0] == 2
    assert as_json(data("compare", "good", "poor.txt", "--data", "test.txt", "--json"))["systems"] == {
        "good": direct["systems"]["good.txt"],
        "poor.txt": direct["systems"]["poor.txt"],
    }
    data("convert", "test.txt", "test.rounds")
    for arguments, words in {
        ("good.run", "--data", "test.txt"): "good.run is a TREC run, which is evaluated with --qrels",
        ("test.txt", "--data", "test.txt"): "test.txt begins with",
        ("test.rounds", "--data", "test.txt"): "test.rounds is a store file",
        ("good.run", "--qrels", "test.rounds"): "test.rounds is a store file: with --qrels",
        ("good", "--qrels", "qrels"): "good is a model file: with --qrels",
        ("good.txt", "--data", "good"): "good: expected lists of documents, found a model",
    }.items():
        code, _, err = data("compare", *arguments)
        assert (code, err.count("\n")) == (1, 1)
        assert words in err


def test_inputs_are_never_written_over(data):
    data("train", "train.txt", "--model", "m")
    before = Path("train.txt").read_bytes()
    for command in (
        ("train", "train.txt", "--model", "train.txt"),
        ("rank", "m", "train.txt", "-o", "train.txt"),
        ("convert", "train.txt", "./train.txt"),
    ):
        code, _, err = data(*command)
        assert (code, err.count("\n")) == (2, 1)
        assert "overwritten" in err
    assert Path("train.txt").read_bytes() == before
    assert data("train", "train.txt", "--from", "m", "--model", "m", "--epochs", 1)[0] == 0


def test_documents_of_the_same_id_cannot_become_a_run(data):
    Path("twice.txt").write_text("1 qid:a 1:1 # docid = A\n0 qid:a 1:2 # docid = A\n")
    data("train", "twice.txt", "--model", "m")
    code, _, err = data("rank", "m", "twice.txt", "-o", "r", "--format", "trec")
    assert (code, err.count("\n")) == (1, 1)
    assert "same id" in err
    assert data("rank", "m", "twice.txt", "-o", "r")[0] == 0


def test_explain_as_json_adds_up(data):
    data("train", "train.txt", "--model", "m")
    one = as_json(data("explain", "m", "test.txt", "--qid", "63", "--features", 20, "--json"))
    for document in one["documents"]:
        assert sum(document["contributions"].values()) == pytest.approx(document["score"])
    first, second = one["documents"][:2]
    assert sum(first["lead"].values()) == pytest.approx(first["score"] - second["score"])
    assert data("explain", "m", "test.txt", "--qid", "nobody")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "Missing command|Usage"),
        (("fly",), 2, "fly"),
        (("info",), 2, "DATA"),
        (("info", "nowhere.txt"), 2, "nowhere.txt"),
        (("info", "broken.txt"), 1, "broken.txt, line 2, column"),
        (("info", "empty.txt"), 1, "empty.txt"),
        (("train", "train.txt"), 2, "--model"),
        (("train", "train.txt", "--model", "m", "--set", "eta=-1"), 2, "eta must be a number above 0"),
        (("train", "train.txt", "--model", "m", "--set", "speed=1"), 2, "eta, margin"),
        (("train", "train.txt", "--model", "m", "--algo", "alien"), 2, "alien"),
        (("train", "train.txt", "--model", "m", "--metrics", "nddcg@10"), 2, "did you mean ndcg"),
        (("train", "train.txt", "--model", "m", "--select", "ndcg@0"), 2, "ndcg@0"),
        (("train", "train.txt", "--model", "no/folder/m"), 1, "no/folder/m"),
        (("evaluate", "train.txt", "train.txt"), 1, "train.txt is not a Ranktron model"),
        (("simulate", "separable", "x.nonsense"), 1, "nonsense"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(data, tmp_path, arguments, code, words):
    (tmp_path / "broken.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:zero\n")
    (tmp_path / "empty.txt").write_text("")
    found, out, err = data(*arguments)
    assert found == code
    if arguments:
        assert err.count("\n") == 1
        assert err.startswith("ranktron: ")
    assert any(word in out + err for word in words.split("|"))
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()


def test_every_command_has_help_with_an_example(run):
    from ranktron.cli.main import _COMMANDS

    code, listing, _ = run("--help")
    assert code == 0
    for command in _COMMANDS:
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"Example: ranktron {command}" in out
        assert command in ("serve", "mcp") or "--json" in out  # they answer over HTTP and standard output
        assert f"  {command} " in listing


def test_demo(run, tmp_path):
    summary = as_json(run("demo", "--queries", 200, "--json"))
    values = summary["ndcg@10"]
    assert values["hinge, eta=1"] > values["random order"]
    assert (tmp_path / summary["picture"]).stat().st_size > 10_000
    assert load(tmp_path / summary["model"]).n_features == 20
    code, out, _ = run("demo", "--queries", 50)
    assert code == 0
    assert "best single feature" in out


def test_demo_without_the_extra_names_no_picture(run, monkeypatch):
    def refuse(*_, **__):
        raise MissingExtra("drawing a picture", "plot")

    monkeypatch.setattr("ranktron.training.figures.plots.curves", refuse)
    code, out, err = run("demo", "--queries", 20)
    assert code == 0
    assert "curve.png" not in out
    assert "No plot was written: drawing a picture needs an optional dependency" in err
    assert as_json(run("demo", "--queries", 20, "--json"))["picture"] is None


def test_ctrl_c_saves_what_was_learnt(data, monkeypatch):
    import ranktron.training.fit as training

    passed = training.play_pass

    def interrupted(learner, *arguments):
        if learner.rounds == 64:  # in the second pass over 60 queries
            os.kill(os.getpid(), signal.SIGINT)
        return passed(learner, *arguments)

    monkeypatch.setattr(training, "play_pass", interrupted)
    monkeypatch.setattr(training, "CHUNK", 5)
    code, _, err = data("train", "train.txt", "--algo", "slam", "--epochs", 100, "--model", "cut")
    assert (code, err.count("\n")) == (1, 1)
    assert "continue with --from cut" in err
    monkeypatch.setattr(training, "play_pass", passed)
    position = load("cut").record["position"]
    assert load("cut").learner().rounds == 60 + position == 69
    assert data("train", "train.txt", "--from", "cut", "--model", "more", "--epochs", 1)[0] == 0
    assert data("train", "train.txt", "--algo", "slam", "--epochs", 4, "--model", "whole")[0] == 0
    assert load("more").to_bytes() == load("whole").to_bytes()


def test_ctrl_c_while_it_gets_ready(data, monkeypatch):
    import ranktron.training.fit as training

    passed = training.play_pass

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return passed(*arguments)

    monkeypatch.setattr(training, "play_pass", interrupted)
    assert data("train", "train.txt", "--algo", "slam", "--model", "cut")[0] == 1
    assert not Path("cut").exists()


def test_what_is_compiled_does_not_count_as_training(data, monkeypatch):
    import ranktron.training.fit as training

    passed, slow = training.play_pass, [1.0]

    def compiled(*arguments):
        time.sleep(slow.pop() if slow else 0.0)
        return passed(*arguments)

    monkeypatch.setattr(training, "play_pass", compiled)
    summary = as_json(data("train", "train.txt", "--algo", "slam", "--model", "m", "--json"))
    assert not slow
    assert summary["seconds"] < 1.0


def test_a_reader_that_goes_away_is_no_traceback(data):
    process = subprocess.run(
        f"{sys.executable} -m ranktron info train.txt | head -1", shell=True, capture_output=True, text=True,
        env={**os.environ}, check=False,
    )  # fmt: skip
    assert "Traceback" not in process.stderr


def test_train_simulates_users_and_goes_on_with_them(data):
    common = ("--algo", "pdgd", "--set", "eta=1", "--seed", 2, "--json")
    summary = as_json(data("train", "train.txt", *common, "--epochs", 2, "--feedback", "informational", "--model", "m"))
    assert summary["rounds"] == 60
    as_json(data("train", "train.txt", *common, "--epochs", 1, "--feedback", "informational", "--model", "half"))
    as_json(data("train", "train.txt", "--from", "half", "--epochs", 1, "--model", "whole", "--json"))
    assert Path("m").read_bytes() == Path("whole").read_bytes()
    as_json(data("train", "train.txt", *common, "--epochs", 2, "--model", "labels"))
    assert (load("labels").coef != load("m").coef).any()
    assert data("train", "train.txt", "--feedback", "bots", "--model", "x")[0] == 2
    code, _, error = data("train", "train.txt", "--algo", "ranksvm", "--feedback", "perfect", "--model", "x")
    assert (code, "learns from all labels at once" in error) == (1, True)
