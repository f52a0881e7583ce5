"""Missing values on the command line: NULL in a file is one, and the model knows what stands for it."""

import json

import numpy as np
import pytest

import ranktron
from ranktron.training.fit import TrainingPlan, train


def text(seed, nulls=True):
    rng = np.random.default_rng(seed)
    lines = []
    for q in range(12):
        for _ in range(5):
            x = rng.normal(5.0, 2.0, 3).round(3)
            label = int(x[0] > 5.0) + int(x[1] > 6.0)
            words = [f"{j}:{'NULL' if nulls and rng.random() < 0.2 else v}" for j, v in enumerate(x, 1)]
            lines.append(f"{label} qid:{seed}-{q} {' '.join(words)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path):
    for seed, name in enumerate(["train", "vali", "test"]):
        (tmp_path / f"{name}.txt").write_text(text(seed))
    return tmp_path


@pytest.mark.parametrize("nan", ["mean", "zero", "indicator"])
def test_imputation_is_part_of_the_model(run, files, nan):
    code, out, err = run("train", "train.txt", "--algo", "ranksvm", "--valid", "vali.txt", "--nan", nan,
                         "--model", "m", "--json")  # fmt: skip
    assert (code, err) == (0, "")
    assert json.loads(out)["nan"] == nan
    model = ranktron.load("m")
    rounds = ranktron.read("test.txt", null="nan")
    assert rounds.missing
    assert run("rank", "m", "test.txt", "-o", "scores.txt")[0] == 0
    np.testing.assert_allclose(np.loadtxt("scores.txt"), model.score_rounds(rounds), rtol=1e-6)
    code, out, _ = run("evaluate", "m", "test.txt", "--json")
    wanted = ranktron.evaluate(rounds, model.score_rounds(rounds), [ranktron.metric("ndcg@10")]).means["ndcg@10"]
    assert json.loads(out)["metrics"]["ndcg@10"]["mean"] == pytest.approx(wanted)
    assert run("explain", "m", "test.txt", "--qid", "2-3")[0] == 0
    code, out, _ = run("explain", "m")
    assert ("2 is missing" in out) == (nan == "indicator")
    assert run("compare", "m", "scores.txt", "--data", "test.txt")[0] == 0


def test_null_says_how_to_read_and_is_not_kept(run, files):
    code, _, err = run("train", "train.txt", "--null", "mean", "--model", "m")
    assert (code, err) == (0, "--null mean applies to these files and is not saved with the model; --nan would be\n")
    code, _, err = run("evaluate", "m", "test.txt")
    assert code == 1
    assert "NULL" in err
    assert run("evaluate", "m", "test.txt", "--null", "mean")[0] == 0


def test_null_counts_where_both_are_given(run, files):
    assert run("train", "train.txt", "--nan", "mean", "--null", "zero", "--model", "m")[0] == 0
    zeros = ranktron.read("train.txt", null="zero")
    np.testing.assert_allclose(ranktron.load("m").imputer.fill, zeros.X.mean(axis=0), rtol=1e-6)


def test_a_model_to_go_on_from_has_its_own_rule(run, files):
    assert run("train", "train.txt", "--nan", "mean", "--epochs", "2", "--model", "two")[0] == 0
    assert run("train", "train.txt", "--nan", "mean", "--epochs", "1", "--model", "one")[0] == 0
    assert run("train", "train.txt", "--from", "one", "--epochs", "1", "--model", "again")[0] == 0
    assert (files / "again").read_bytes() == (files / "two").read_bytes()
    code, _, err = run("train", "train.txt", "--from", "one", "--nan", "zero", "--model", "x")
    assert code == 2
    assert "imputation" in err


def test_folds_and_sweeps_take_it(run, files):
    (files / "Fold1").mkdir()
    for part in ("train", "vali", "test"):
        (files / "Fold1" / f"{part}.txt").write_text((files / f"{part}.txt").read_text())
    assert run("cv", ".", "--algo", "hinge", "--nan", "mean", "--epochs", "2", "--json")[0] == 0
    code, _, err = run("cv", ".", "--algo", "hinge", "--epochs", "2")
    assert code == 1
    assert "NULL" in err
    assert run("sweep", "train.txt", "--algo", "hinge", "--set", "eta=0.1,1", "--nan", "indicator", "--json")[0] == 0


def test_sparse_text_says_null(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 3:NULL 2000:1\n0 qid:1 5:2 7:NULL\n")
    rounds = ranktron.read(path, null="nan", sparse=True)
    assert rounds.missing
    model = train(TrainingPlan("hinge", nan="indicator"), rounds).model
    assert model.n_filled == 2002
    assert model.filled_names[2000:] == ("3 is missing", "7 is missing")
