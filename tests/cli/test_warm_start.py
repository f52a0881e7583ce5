"""`ranktron train --warm-start`: an online learner begins with the weights of a linear model."""

from pathlib import Path

import numpy as np
import pytest

from ranktron import load


@pytest.fixture
def data(run):
    """A simulated file, train.txt."""
    assert run("simulate", "separable", "train.txt", "--queries", 30)[0] == 0
    return run


@pytest.fixture
def base(data):
    assert data("train", "train.txt", "--algo", "ranksvm", "--scale", "standard", "--model", "base")[0] == 0
    return load("base")


def test_a_learner_starts_and_stays_near(data, base):
    asked = ("train", "train.txt", "--algo", "pdgd", "--warm-start", "base", "--trust", 0.1, "--epochs", 1)
    assert data(*asked, "--model", "near")[0] == 0
    near = load("near")
    assert near.kind == "pdgd"
    start = near.state["start"]
    assert start == pytest.approx(4.0 / np.linalg.norm(base.weights) * base.weights)  # a length that draws by it
    assert 0.0 < np.linalg.norm(near.learner().w - start) <= 0.1 * (1 + 1e-12)
    assert near.scaler.name == "standard"
    assert data("train", "train.txt", "--from", "near", "--model", "more", "--epochs", 1)[0] == 0
    assert load("more").learner().rounds == 2 * near.learner().rounds
    assert np.linalg.norm(load("more").learner().w - start) <= 0.1 * (1 + 1e-12)


@pytest.mark.parametrize("name", ["slam", "minimax", "hinge", "listnet"])
def test_a_started_run_has_a_certificate(data, base, name):
    asked = ("train", "train.txt", "--algo", name, "--preset", "paper", "--warm-start", "base", "--trust", 0.5)
    assert data(*asked, "--set", "eta=1e-4", "--epochs", 1, "--model", "m")[0] == 0
    code, out, err = data("certify", "m", "train.txt")
    assert code == 0, err
    assert "VIOLATED" not in out
    assert "holds" in out
    if name in ("slam", "minimax"):
        assert "weights that start from 0" in " ".join(out.split())


def test_a_log_of_clicks_starts_a_learner_of_clicks(run):
    rng = np.random.default_rng(0)
    lines = ["search_id,query,item,position,clicked,text,price"]
    for search in range(300):
        X = rng.normal(size=(4, 2))
        for place, item in enumerate(np.argsort(-X[:, 0]), 1):
            clicked = rng.random() < 1.0 / place / (1.0 + np.exp(-3.0 * X[item, 1]))
            lines.append(f"{search},{search},{item},{place},{int(clicked)},{X[item, 0]:.4f},{X[item, 1]:.4f}")
    Path("log.csv").write_text("\n".join(lines))
    rows = [f"{i // 4},{int(i % 4 == 0)},{i % 3},{i % 4}" for i in range(40)]
    Path("lists.csv").write_text("\n".join(["qid,label,text,price", *rows]))
    code, _, err = run("train", "log.csv", "--clicks", "em", "--model", "logged")
    assert code == 0, err
    code, _, err = run("train", "lists.csv", "--algo", "pdgd", "--warm-start", "logged", "--epochs", 1, "--model", "m")
    assert code == 0, err
    start, weights = load("m").state["start"], load("logged").weights
    assert start / np.linalg.norm(start) == pytest.approx(weights / np.linalg.norm(weights))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scale", "minmax"), "keeps the model's"),
        (("--map", "bins:4"), "keeps the model's"),
        (("--from", "base"), "cannot be combined"),
        (("--algo", "committee"), "does not start from given weights"),
        (("--algo", "ranksvm"), "does not start from given weights"),
    ],
)
def test_impossible_starts_are_refused_in_a_sentence(data, base, options, words):
    code, _, err = data("train", "train.txt", "--warm-start", "base", "--model", "m", *options)
    assert code in (1, 2)
    assert words in " ".join(err.split())


def test_trust_needs_a_start(data):
    code, _, err = data("train", "train.txt", "--trust", 1, "--model", "m")
    assert code == 2
    assert "--warm-start" in err
