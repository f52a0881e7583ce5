"""The options about data that all commands share: columns, standard input and output, folds, strictness."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from ranktron import load, read
from ranktron.data.io import write
from ranktron.data.rounds import Rounds

pytest.importorskip("pyarrow")


def lists(n_features, queries=30, seed=0, names=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * queries, n_features))
    labels = np.abs(np.clip(np.round(X[:, 0] + 0.05 * rng.normal(size=len(X)) + 1.5), 0, 3))
    qid, docids = [f"q{i // 10}" for i in range(len(X))], [f"d{i}" for i in range(len(X))]
    return Rounds.from_arrays(X, labels, qid, docids=docids, feature_names=names)


@pytest.fixture
def csv(tmp_path, monkeypatch):
    """train.csv and test.csv with columns of others: a title, and what is called a label or a query elsewhere."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "test")):
        rounds = lists(3, seed=seed, names=("price", "age", "stars"))
        write(rounds, f"{name}.plain.csv")
        lines = (tmp_path / f"{name}.plain.csv").read_text().splitlines()
        lines[0] = lines[0].replace("label,qid,docid", "relevance,query_id,doc_id") + ",title"
        lines[1:] = [f"{line},red shoes" for line in lines[1:]]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def pipe(*arguments, stdin=b""):
    """A command in a process of its own: (exit code, output, error)."""
    command = [sys.executable, "-m", "ranktron", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def test_from_csv_to_a_model_and_a_report(run, csv):
    code, _, err = run("train", "train.csv", "--model", "m")
    assert code == 1
    assert "expected numbers in column 'title', found 'red shoes' in line 2" in err
    assert "--drop title" in err
    assert run("train", "train.csv", "--drop", "title", "--model", "m")[0] == 0
    assert load("m").feature_names == ("price", "age", "stars")
    code, out, err = run("evaluate", "m", "test.csv")
    assert code == 0
    assert "warning: test.csv: columns that the model or the training data lack are ignored: title" in err
    code, out, err = run("evaluate", "m", "test.csv", "--drop", "title", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["metrics"]["ndcg@10"]["mean"] > 0.95
    assert run("evaluate", "m", "test.csv", "--strict")[0] == 1
    code, out, _ = run("explain", "m", "test.csv", "--qid", "q3", "--drop", "title")
    assert "price" in out


def test_info_shows_what_the_columns_became(run, csv):
    code, out, _ = run("info", "train.csv", "--drop", "title")
    assert code == 0
    for words in (
        "relevance (found by its name; --label overrides)",
        "query_id (found by its name; --query overrides)",
        "doc_id (found by its name; --doc overrides)",
        "price, age, stars",
        "title",
    ):
        assert words in out
    code, out, _ = run("info", "train.csv", "--label", "stars", "--features", "price", "--json")
    assert code == 1  # stars may be below 0
    code, out, _ = run("info", "train.csv", "--query", "title", "--features", "age,price", "--json")
    assert json.loads(out)["columns"] == {
        "label": "relevance",
        "query": "title",
        "doc": "doc_id",
        "features": ["age", "price"],
        "dropped": ["query_id", "stars"],
        "guessed": ["label", "doc"],
    }
    assert json.loads(out)["queries"] == 1
    run("convert", "train.plain.csv", "train.txt")
    assert "columns" not in json.loads(run("info", "train.txt", "--json")[1])


@pytest.mark.parametrize(
    "command",
    [
        ("train", "{}", "--model", "out"),
        ("sweep", "{}", "--set", "eta=0.1,1"),
        ("info", "{}"),
        ("convert", "{}", "out.jsonl"),
        ("certify", "m", "{}"),
        ("evaluate", "m", "{}"),
        ("rank", "m", "{}", "-o", "out"),
        ("compare", "m", "--data", "{}"),
    ],
)
def test_every_command_takes_the_columns(run, csv, command):
    columns = ["--label", "relevance", "--query", "query_id", "--doc", "doc_id", "--features", "price,age,stars"]
    run("train", "train.csv", "--drop", "title", "--model", "m", "--algo", "slam")
    code, _, err = run(*(word.format("train.csv") for word in command), *columns)
    said = "train.csv: label 'relevance', query 'query_id', document 'doc_id', 3 features\n"
    assert (code, err) == (0, said if command[0] in ("train", "sweep") else "")
    code, _, err = run(*(word.format("train.csv") for word in command), *columns[:-2], "--features", "nothing")
    assert code == 1
    assert "train.csv: there is no column 'nothing'; the columns are relevance, query_id, doc_id, price" in err


def test_cross_validation_takes_tables(run, csv):
    for seed, name in enumerate(("train", "vali", "test")):
        (csv / "Fold1").mkdir(exist_ok=True)
        write(lists(3, seed=seed, names=("price", "age", "stars")), csv / "Fold1" / f"{name}.csv")
    code, out, _ = run("cv", ".", "--algo", "hinge", "--features", "price,age", "--json")
    assert code == 0
    assert json.loads(out)["mean"]["ndcg@10"] > 0.9


def test_ids_that_come_back_are_put_together_and_it_is_said(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = "1 qid:7 1:1 # docid = a\n0 qid:7 1:2 # docid = b\n"
    (tmp_path / "twice.txt").write_text(one + "1 qid:8 1:1 # docid = c\n" + one)
    (tmp_path / "mixed.txt").write_text("1 qid:7 1:1\n1 qid:8 1:1\n0 qid:7 1:2\n")
    (tmp_path / "plain.txt").write_text(one)
    code, out, err = run("info", "twice.txt", "--json")
    assert json.loads(out)["queries"] == 2
    assert "twice.txt: the rows of 1 of 2 queries were not adjacent and have been grouped; 2 documents" in err
    code, _, err = run("info", "mixed.txt")
    assert code == 0
    assert "mixed.txt: the rows of 1 of 2 queries were not adjacent and have been grouped\n" in err
    assert run("info", "plain.txt")[2] == ""
    for name in ("one", "two"):
        run("train", "plain.txt", "--epochs", 1, "--model", name)
    assert run("compare", "one", "two", "--data", "mixed.txt")[2].count("not adjacent") == 1


@pytest.mark.parametrize("ending", ["csv", "parquet", "txt"])
def test_standard_input_and_output_through_real_pipes(csv, ending):
    rounds = read("train.plain.csv")
    write(rounds, f"a.{ending}")
    content = (csv / f"a.{ending}").read_bytes()
    format = "letor" if ending == "txt" else ending.partition(".")[0]
    code, out, err = pipe("convert", "-", "-", "--format", format, stdin=content)
    assert (code, err) == (0, "standard output: 30 queries, 300 documents\n")
    (csv / "b").write_bytes(out)
    assert read("b").X.tobytes() == rounds.X.tobytes()
    assert read("b").docids.tolist() == rounds.docids.tolist()


def test_a_whole_day_without_a_file(csv):
    train, test = (csv / "train.plain.csv").read_bytes(), (csv / "test.plain.csv").read_bytes()
    code, model, err = pipe("train", "-", "--model", "-", stdin=train)
    assert code == 0
    assert "rankings with an update" in err
    (csv / "m").write_bytes(model)
    code, out, _ = pipe("evaluate", "m", "-", "--json", stdin=test)
    assert json.loads(out)["metrics"]["ndcg@10"]["mean"] > 0.95
    code, out, err = pipe("rank", "m", "-", "-o", "-", stdin=test)
    assert (code, err) == (0, "standard output: 300 scores of 30 queries\n")
    assert np.loadtxt(out.splitlines()).tolist() == load("m").score_rounds(read("test.plain.csv")).tolist()
    code, out, _ = pipe("rank", "m", "-", "-o", "-", "--format", "trec", stdin=test)
    assert out.split()[:2] == [b"q0", b"Q0"]
    code, out, _ = pipe("info", "-", "--json", stdin=test)
    assert json.loads(out)["columns"]["query"] == "qid"
    code, out, err = pipe("evaluate", "-", "test.plain.csv", "--json", stdin=model)
    assert json.loads(out)["queries"] == 30
    code, out, err = pipe("simulate", "separable", "-", "--queries", 3)
    assert code == 0
    assert out.startswith(b"1 qid:0") or b" qid:" in out.splitlines()[0]


def test_what_is_wrong_on_standard_input(run, csv, monkeypatch):
    for content, message in (
        (b"", "standard input: there is nothing in it"),
        (b"1 qid:1 1:x\n", "standard input, line 1, column 11: expected a number after '1:', found 'x'"),
        (b"label,qid,a\nx,1,1\n", "standard input: expected numbers in column 'label'"),
        (b"a,b\n1,2\n", "standard input: found no 'label' or the like among the columns a, b"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code, out, err = run("info", "-")
        assert (code, out) == (1, "")
        assert message in err
    code, _, err = run("convert", "train.plain.csv", "-", "--json")
    assert code == 2
    assert "--json and - both write to standard output" in err


@pytest.fixture
def fold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "vali", "test")):
        (tmp_path / "Fold1").mkdir(exist_ok=True)
        rounds = lists(3, queries=10 + seed, seed=seed)
        qids = np.array([f"{name}{i}" for i in range(len(rounds))])
        write(Rounds(rounds.X, rounds.labels, rounds.offsets, qids), tmp_path / "Fold1" / f"{name}.txt")
    return tmp_path


def test_of_a_fold_the_right_part_is_read_and_said(run, fold):
    code, out, err = run("train", "Fold1", "--valid", "Fold1", "--model", "m", "--json")
    assert code == 0
    assert json.loads(out)["rounds"] == 10 * 10  # ten passes over ten queries
    assert "Fold1: reading Fold1/train.txt (not Fold1/vali.txt, Fold1/test.txt)" in err
    assert "Fold1: reading Fold1/vali.txt (" in err
    code, out, err = run("evaluate", "m", "Fold1", "--json")
    assert json.loads(out)["queries"] == 12
    assert "reading Fold1/test.txt (" in err
    for command in (("info", "Fold1"), ("convert", "Fold1", "a.rounds")):
        code, _, err = run(*command)
        assert code == 1
        assert "name Fold1/train.txt, Fold1/vali.txt, Fold1/test.txt" in err


def test_parts_that_belong_together_are_still_joined(run, fold):
    for name in ("train", "vali", "test"):
        (fold / "Fold1" / f"{name}.txt").rename(fold / "Fold1" / f"part-{name}.txt")
    assert json.loads(run("info", "Fold1", "--json")[1])["queries"] == 33


@pytest.mark.parametrize("ending", ["txt", "rounds", "csv"])
def test_fewer_features_than_the_model_are_a_warning_or_an_error(run, tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    write(lists(45), "train.txt")
    write(lists(25), f"test.{ending}")
    assert run("train", "train.txt", "--model", "m")[0] == 0
    message = f"test.{ending}: expected the 45 features of the model or of the training data, found 25"
    for command in (("evaluate", "m"), ("rank", "m", "-o", "out"), ("explain", "m", "--qid", "q1"), ("compare", "m")):
        data = ["--data", f"test.{ending}"] if command[0] == "compare" else [f"test.{ending}"]
        code, _, err = run(*command[:2], *data, *command[2:])
        assert code == 0
        assert f"ranktron: warning: {message}; those that are missing count as 0" in err
        assert err.count(message) == 1
        code, _, err = run(*command[:2], *data, *command[2:], "--strict")
        assert (code, err) == (1, f"ranktron: {message}\n")
    code, _, err = run("evaluate", "m", "train.txt", "--strict")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("ending", ["txt", "rounds", "csv"])
def test_more_features_than_the_model_are_an_error_with_both_numbers(run, tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    write(lists(25), "train.txt")
    write(lists(45), f"test.{ending}")
    assert run("train", "train.txt", "--model", "m")[0] == 0
    for command in (("evaluate", "m"), ("rank", "m", "-o", "out")):
        code, _, err = run(*command[:2], f"test.{ending}", *command[2:])
        assert code == 1
        assert "25 features" in err
        assert "found 45" in err


def test_a_feature_that_is_0_everywhere_is_not_missing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rounds = lists(4)
    write(rounds, "train.txt")
    X = rounds.X.copy()
    X[:, -1] = 0
    write(Rounds(X, rounds.labels, rounds.offsets, rounds.qids), "test.txt")
    run("train", "train.txt", "--model", "m")
    code, _, err = run("evaluate", "m", "test.txt", "--strict")
    assert code == 0
    assert "'4' is always 0" in err  # it has left the training data, and is there
    assert "found 3" not in err


def test_feature_logs_with_judgments(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rounds = lists(2, names=("title_bm25", "recency"))
    with open("log.jsonl", "w") as log, open("judgments.txt", "w") as judgments:
        for q, round in enumerate(rounds):
            hits = []
            for i, (row, label) in enumerate(zip(round.X.tolist(), round.labels.tolist(), strict=True)):
                entries = [{"name": n, "value": v} for n, v in zip(rounds.feature_names, row, strict=True)]
                hits.append({"_id": f"d{q}-{i}", "fields": {"_ltrlog": [{"main": entries}]}})
                judgments.write(f"{label:g} qid:{round.qid} # d{q}-{i} some title\n")
            log.write(json.dumps({"took": 1, "hits": {"hits": hits}}) + "\n")
    code, out, err = run("train", "log.jsonl", "--judgments", "judgments.txt", "--model", "m", "--json")
    assert (code, err) == (0, "")
    assert load("m").feature_names == ("title_bm25", "recency")
    code, out, _ = run("evaluate", "m", "log.jsonl", "--judgments", "judgments.txt", "--json")
    assert json.loads(out)["metrics"]["ndcg@10"]["mean"] > 0.95
    assert run("convert", "log.jsonl", "log.csv", "--judgments", "judgments.txt")[0] == 0
    assert read("log.csv").X.tobytes() == rounds.X.tobytes()
