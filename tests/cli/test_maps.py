"""Maps and sparse text on the command line, and the page of curves."""

import json

import numpy as np
import pytest

from ranktron import DataError, Rounds, read
from ranktron.cli import main
from ranktron.data.io import write
from ranktron.data.maps import Bins
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.training.figures.explanation import explanation_page
from ranktron.training.figures.shapes import SHOWN, feature_shapes, shape_pieces
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=30, documents=12).rounds(40)


def run(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as exit:
        main([str(a) for a in arguments])
    out = capsys.readouterr()
    assert exit.value.code == code, out.err
    return out


@pytest.fixture
def data(tmp_path):
    write(LISTS, tmp_path / "d.txt")
    return tmp_path / "d.txt"


def test_train_with_a_map_evaluate_rank_explain(capsys, data, tmp_path):
    model, written = tmp_path / "m", tmp_path / "p.html"
    summary = json.loads(
        run(capsys, "train", data, "--algo", "listnet", "--map", "bins:4", "--model", model, "--json").out
    )
    assert summary["map"] == "bins:4"
    run(capsys, "evaluate", model, data)
    run(capsys, "rank", model, data, "-o", tmp_path / "scores")
    run(capsys, "explain", model, data, "--qid", "3")
    run(capsys, "explain", model, "--out", written)
    assert written.read_text().startswith("<!doctype html>")
    run(capsys, "train", data, "--from", model, "--epochs", 1, "--model", tmp_path / "m2")
    refused = run(capsys, "train", data, "--from", model, "--map", "bins:4", "--model", tmp_path / "m3", code=2)
    assert "map" in refused.err
    wrong = run(capsys, "train", data, "--map", "waves:3", "--model", model, code=2)
    assert "bins:N" in wrong.err
    assert wrong.err.count("\n") == 1
    curves = json.loads(run(capsys, "explain", model, "--json").out)["curves"]
    assert len(curves) == 30
    assert len(curves[0]["values"]) == len(curves[0]["places"]) + 1
    assert "lowest" in run(capsys, "explain", model).out
    run(capsys, "explain", model, data, "--qid", "3", "--out", written)
    assert "Query 3" in written.read_text()
    assert "<figure>" in written.read_text()
    run(capsys, "train", data, "--map", "rff:5", "--model", model)
    assert "mixes features" in run(capsys, "explain", model, "--out", written, code=1).err


def test_trees_are_explained_query_by_query(capsys, data, tmp_path):
    model, written = tmp_path / "m", tmp_path / "p.html"
    run(capsys, "train", data, "--algo", "listnet", "--map", "leaves:5", "--model", model)
    spans = json.loads(run(capsys, "explain", model, "--json", "--top", 7).out)
    assert spans["map"] == "leaves:5"
    reach = [each["span"] for each in spans["spans"]]
    assert len(reach) == 7
    assert reach == sorted(reach, reverse=True)
    assert "most it can add" in run(capsys, "explain", model).out
    run(capsys, "explain", model, data, "--qid", "3", "--out", written)
    assert "Query 3" in written.read_text()
    assert "one query instead" in run(capsys, "explain", model, "--out", tmp_path / "q.html", code=1).err


def trained(map, scaling="standard", lists=LISTS):
    return train(TrainingPlan("listnet", scaling=scaling, map=map), lists).model


def shapes_page(model):
    return explanation_page(model, None, None, 10, shape_pieces(model))


def test_curves_are_what_the_model_adds():
    model = trained("bins:4")
    shapes = dict(feature_shapes(model))
    X = LISTS[0].X
    contributions = model.explain(X).contributions
    for j, name in enumerate(model.names):
        places, values, steps = shapes[name]
        assert steps
        found = values[np.searchsorted(places, X[:, j].astype(float) * (1 + 1e-6 * np.sign(X[:, j])), side="right")]
        drop = contributions[:, j] - found  # the curve is shifted to mean 0
        assert np.median(np.abs(drop - np.median(drop))) < 1e-9
        assert values.mean() == pytest.approx(0.0, abs=1e-12)
    sizes = [float(np.abs(shape.values).mean()) for _, shape in feature_shapes(model)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("map", ["bins:4", "bins-linear:3"])
def test_the_page_shows_the_strongest_curves_and_loads_nothing(map):
    text = shapes_page(trained(map))
    assert text.count("<figure>") == SHOWN
    assert "The curves of a model" in text
    assert f"{30 - SHOWN} features" in text
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    ((title, html),) = shape_pieces(trained(map))
    assert title == "Curves"
    assert "nan" not in html


def test_names_are_escaped_and_lists_may_be_scaled_by_query():
    lists = Rounds(LISTS.X, LISTS.labels, LISTS.offsets, LISTS.qids, feature_names=tuple(f"<b>{j}" for j in range(30)))
    text = shapes_page(trained(Bins(4), "minmax-query", lists))
    assert "<b><b>" not in text
    assert "<b>&lt;b&gt;" in text
    assert "scaled within each list" in text


SPARSE_TEXT = "2 qid:a 5000:0.5 3:1e-3 # docid = x\n\n0 qid:b 17:2\n1 qid:a 17:-3.25 18:0.1\n0 qid:a\n"


def test_wide_text_is_read_as_sparse_rows(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text(SPARSE_TEXT)
    rounds, dense = read(path), read(path, sparse=False)
    assert isinstance(rounds.X, Sparse)
    assert rounds.X.shape == dense.X.shape == (4, 5000)
    assert (rounds.X.dense() == dense.X).all()
    for name in ("labels", "offsets", "qids", "docids", "rows"):
        assert (getattr(rounds, name) == getattr(dense, name)).all()
    assert not isinstance(read(path, n_features=5000, sparse=False).X, Sparse)
    write(rounds, tmp_path / "again.txt")
    again = read(tmp_path / "again.txt")
    assert (again.X.dense() == dense.X).all()


def test_narrow_text_stays_dense(tmp_path, data):
    assert isinstance(read(data).X, np.ndarray)
    assert (read(data, sparse=True).X.dense() == read(data).X).all()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 qid:a 5:x", "expected a number after '5:'"),
        ("1 qid:a 5:1 5:2", "found 5 again|found '5' again"),
        ("1 qid:a 9000:1", "at most 5000 features"),
        ("1 qid:a 5:1e99", "fits into 32 bits"),
        ("-1 qid:a 5:1", "label >= 0"),
        ("1 5:1", "qid:"),
        ("1 qid:a 5:NULL", "NULL"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path, line, words):
    path = tmp_path / "wide.txt"
    path.write_text(SPARSE_TEXT + line + "\n")
    with pytest.raises(DataError, match=words) as error:
        read(path, n_features=5000, first_index=1, sparse=True)
    assert "line 6" in str(error.value)


def test_numbers_that_need_care_are_read_alike(tmp_path):
    path = tmp_path / "wide.txt"
    words = ["0.1", "3.4028234663852886e38", "1e-45", "123456789012345678901234567890", "0.30000000000000004", "-0.0"]
    path.write_text("".join(f"{i}.5 qid:a {i + 1}:{word} 5000:1\n" for i, word in enumerate(words)))
    assert (read(path, sparse=True).X.dense() == read(path, sparse=False).X).all()


def test_the_command_line_learns_from_wide_text(capsys, tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for q in range(60):
        for _ in range(6):
            words = rng.choice(2000, size=5, replace=False) + 1
            label = int((words < 600).sum() > 1)
            lines.append(f"{label} qid:{q} " + " ".join(f"{w}:1" for w in sorted(words)))
    path, model = tmp_path / "wide.txt", tmp_path / "m"
    path.write_text("\n".join(lines) + "\n")
    info = json.loads(run(capsys, "info", path, "--json").out)
    assert info["features"] == 2000
    run(capsys, "train", path, "--algo", "listnet", "--scale", "none", "--set", "eta=1", "--model", model)
    found = json.loads(run(capsys, "evaluate", model, path, "--json").out)
    assert found["metrics"]["ndcg@10"]["mean"] > 0.95
    run(capsys, "rank", model, path, "-o", tmp_path / "scores")
    assert "dense" in run(capsys, "train", path, "--map", "bins:4", "--model", model, code=1).err


def test_wide_text_goes_all_the_way(capsys, tmp_path):
    rng = np.random.default_rng(1)
    lines = []
    for q in range(40):
        for i in range(6):
            words = np.unique(np.append(rng.integers(600, 2000, size=5), 3 * i if i < 3 else 1999)) + 1
            lines.append(f"{int(i < 3)} qid:{q} " + " ".join(f"{w}:1" for w in words))
    path, store, model = tmp_path / "wide.txt", tmp_path / "wide.rounds", tmp_path / "m"
    path.write_text("\n".join(lines) + "\n")
    run(capsys, "convert", path, store)
    for algo, more in (("topk", ["k=3"]), ("rankmm", []), ("rankboost", ["n_rounds=10"])):
        settings = [word for setting in more for word in ("--set", setting)]
        run(capsys, "train", store, "--algo", algo, *settings, "--epochs", "3", "--model", model)
        found = [json.loads(run(capsys, "evaluate", model, data, "--json").out)["metrics"] for data in (path, store)]
        assert found[0] == found[1]
        assert found[0]["ndcg@10"]["mean"] > 0.8
    swept = json.loads(run(capsys, "sweep", store, "--algo", "slam", "--set", "eta=0.1,1", "--json").out)
    assert len(swept["rows"]) == 2
    run(capsys, "train", path, "--algo", "minimax", "--model", model)
    certificate = json.loads(run(capsys, "certify", model, store, "--json").out)
    assert certificate["separable"] is True
    assert all(line["holds"] is not False for line in certificate["lines"])
    refused = run(capsys, "convert", path, tmp_path / "wide.parquet", code=1).err
    assert ".rounds" in refused
    assert refused.count("\n") == 1


def test_top_k_and_sweeps_learn_through_bins(capsys, tmp_path):
    data, model = tmp_path / "lists.txt", tmp_path / "m"
    run(capsys, "simulate", "web", data, "--queries", "40")
    run(capsys, "train", data, "--algo", "topk", "--set", "k=10", "--map", "bins-linear:8", "--model", model)
    run(capsys, "evaluate", model, data)
    swept = json.loads(
        run(capsys, "sweep", data, "--set", "eta=0.1,1", "--map", "bins:8", "--valid", data, "--json").out
    )
    assert all(row["valid"]["ndcg@10"] > row["online"]["ndcg@10"] for row in swept["rows"])
    run(capsys, "train", data, "--algo", "slam", "--map", "bins:8", "--model", model)
    assert json.loads(run(capsys, "certify", model, data, "--json").out)["radius"] == pytest.approx(136**0.5)
