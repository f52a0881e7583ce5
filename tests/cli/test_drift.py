"""What the command line says of features that have left the training data."""

import json
from pathlib import Path

import numpy as np
import pytest

import ranktron
from ranktron.data.synthetic import WebSearch


def write(path, rounds, broken=False):
    X = rounds.X.copy()
    if broken:
        X[:, 2] *= 1000.0
    head = ",".join(["qid", "label", *(str(j + 1) for j in range(rounds.n_features))])
    qids = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets))
    np.savetxt(path, np.column_stack([qids, rounds.labels, X]), delimiter=",", header=head, comments="")


@pytest.fixture
def files(run, tmp_path):
    lists = WebSearch(features=6).rounds(90)
    write(tmp_path / "train.csv", lists[:60])
    write(tmp_path / "test.csv", lists[60:])
    write(tmp_path / "broken.csv", lists[60:], broken=True)
    write(tmp_path / "page.csv", lists[60:61], broken=True)
    assert run("train", "train.csv", "--model", "m")[0] == 0
    return run


def test_evaluate_warns_once_and_names_features_change_and_numbers(files):
    code, _, err = files("evaluate", "m", "test.csv")
    assert (code, err) == (0, "")
    code, out, err = files("evaluate", "m", "broken.csv")
    assert code == 0
    assert err.count("\n") == 1
    assert "1 of 6 features has left the training data of m" in err
    assert "of 60 queries): '3' is" in err
    assert "(median" in err
    assert "train a new model on such data" in err
    assert "ndcg@10" in out
    (drift,) = json.loads(files("evaluate", "m", "broken.csv", "--json")[1])["drift"]
    assert drift["feature"] == "3"
    assert drift["kind"] in ("below", "above")
    assert drift["psi"] > 0.25
    assert drift["detail"] in err
    assert json.loads(files("evaluate", "m", "test.csv", "--json")[1])["drift"] == []


def test_one_page_is_not_compared(files):
    assert files("evaluate", "m", "page.csv")[2] == ""
    assert files("rank", "m", "page.csv", "-o", "scores.txt")[2] == ""


def test_rank_warns_of_documents_without_labels(files):
    rows = [line.split(",") for line in Path("broken.csv").read_text().splitlines()]
    Path("unlabelled.csv").write_text("".join(",".join([row[0], *row[2:]]) + "\n" for row in rows))
    code, out, err = files("rank", "m", "unlabelled.csv", "-o", "scores.txt", "--json")
    assert code == 0
    assert "'3'" in err
    assert [each["feature"] for each in json.loads(out)["drift"]] == ["3"]
    assert len(np.loadtxt("scores.txt")) == len(rows) - 1
    assert files("rank", "m", "test.csv", "-o", "scores.txt")[2] == ""


def test_compare_warns_of_each_model(files):
    assert files("train", "train.csv", "--algo", "ranksvm", "--model", "n")[0] == 0
    code, out, err = files("compare", "m", "n", "--data", "broken.csv", "--json")
    assert code == 0
    assert "training data of m " in err
    assert "training data of n " in err
    assert {run: [each["feature"] for each in drift] for run, drift in json.loads(out)["drift"].items()} == {
        "m": ["3"], "n": ["3"]
    }  # fmt: skip


def test_models_of_a_stream_and_of_tune_know_their_training_data(files):
    whole = ranktron.load("m").ranges
    assert files("train", "train.csv", "--stream", "--model", "s")[0] == 0
    assert ranktron.load("s").ranges.to_dict().keys() == whole.to_dict().keys()
    for name, value in ranktron.load("s").ranges.to_dict().items():
        np.testing.assert_array_equal(value, getattr(whole, name))
    assert files("tune", "train.csv", "--model", "t", "--algo", "ranksvm", "--minutes", "0.05")[0] == 0
    assert ranktron.load("t").ranges.queries == 60
