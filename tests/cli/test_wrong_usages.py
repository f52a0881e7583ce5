"""Usages that look right and are not: each has one error or one warning, which names the fix."""

import json

import numpy as np
import pytest

from ranktron import DataError, HingePerceptron, RankingWarning, Rounds, evaluate, read
from ranktron.training.fit import TrainingPlan, train

pytest.importorskip("pyarrow")

QUERIES, DOCUMENTS = 24, 6
QUIET = ("--algo", "hinge", "--epochs", "2", "--model", "m", "--json")


def columns(seed=0, queries=QUERIES, **more):
    """A table with label, query, document and two features, as lists by name."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * DOCUMENTS, 2))
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=len(X)) + 1), 0, 3).astype(int)
    qid = np.repeat([f"q{seed}.{q}" for q in range(queries)], DOCUMENTS)
    table = {"label": y, "qid": qid, "docid": [f"d{i}" for i in range(len(y))], "price": X[:, 0], "age": X[:, 1]}
    return {**table, **more}


def write(path, table):
    rows = zip(*(list(column) for column in table.values()), strict=True)
    path.write_text("\n".join([",".join(table), *(",".join(map(str, row)) for row in rows)]) + "\n")


def renamed(table, **names):
    return {names.get(name, name): column for name, column in table.items()}


def rating_and_gain(folder):
    write(folder / "data.csv", {**renamed(columns(), label="gain"), "rating": columns()["age"] ** 2})


def rating_alone(folder):
    write(folder / "data.csv", renamed(columns(), label="rating"))


def held_out_in_folder(folder):
    (folder / "data.csv").mkdir()
    write(folder / "data.csv" / "part1.csv", columns())
    write(folder / "data.csv" / "test.csv", columns(1))


def told_label(folder):
    table = columns()
    write(folder / "data.csv", {**table, "clicks_later": 2 * table["label"] + 0.1})


def repeated_document(folder):
    table = columns()
    table["docid"][1] = table["docid"][0]
    write(folder / "data.csv", table)


def valid_is_train(folder):
    for name in ("data.csv", "valid.csv"):
        write(folder / name, columns())


def high_labels(folder):
    table = columns()
    write(folder / "data.csv", {**table, "label": 50 * table["label"]})


def single_documents(folder):
    table = columns()
    write(folder / "data.csv", {**table, "qid": table["docid"], "docid": table["qid"]})


def equal_labels(folder):
    write(folder / "data.csv", {**columns(), "label": [1] * (QUERIES * DOCUMENTS)})


def other_query(folder):
    write(folder / "data.csv", renamed(columns(), qid="query", docid="product_id"))


def huge(folder):
    table = columns()
    write(folder / "data.csv", {**table, "price": [1e41, *table["price"][1:]]})


def no_names(folder):
    write(folder / "data.csv", columns())
    path = folder / "data.csv"
    path.write_text(path.read_text().partition("\n")[2])


def clicks_without_positions(folder):
    write(folder / "data.csv", {**renamed(columns(), docid="sku", label="clicked"), "clicked": [0, 1] * 72})


WARNED, REFUSED = 0, 1
USAGES = [
    (rating_and_gain, (), REFUSED, "'gain' and 'rating' may each be the label .* label='gain' (--label gain)"),
    (rating_and_gain, ("--label", "gain"), WARNED, "label 'gain', query 'qid', document 'docid', 3 features"),
    (
        rating_alone,
        (),
        WARNED,
        "label 'rating', query 'qid', .* 'rating' is taken for the label: say so with label='rating'",
    ),
    (held_out_in_folder, (), REFUSED, "has test.csv beside other files: name the files to read (data.csv/part1.csv)"),
    (told_label, (), WARNED, "the feature 'clicks_later' tells the label of each of the 144 rows: .* drop it"),
    (repeated_document, (), WARNED, "1 document is repeated in a query, first 'd0' in query 'q0.0': leave one row"),
    (valid_is_train, ("--valid", "valid.csv"), WARNED, "all queries of the validation set are in the training set"),
    (high_labels, (), WARNED, "labels go up to 150, and the gain of NDCG is 2^label - 1: .* use grades such as 0 to 4"),
    (single_documents, (), REFUSED, "there is nothing to learn, .* (144 with a single document): name the columns"),
    (equal_labels, (), REFUSED, "there is nothing to learn, .* (24 with the same label everywhere): name the columns"),
    (
        other_query,
        ("--query", "product_id"),
        REFUSED,
        "column 'query' holds text, and is usually the query id, for which query='product_id' (--query product_id) was",
    ),
    (no_names, (), REFUSED, "is a number: is the line with the names of the columns missing?"),
    (clicks_without_positions, (), REFUSED, "found no 'label' or the like .* with label='NAME' (--label NAME)"),
    (
        clicks_without_positions,
        ("--clicks", "auto"),
        REFUSED,
        "found no 'position' or the like .* with position='NAME' (--position NAME)",
    ),
    (huge, (), REFUSED, "expected a finite 32-bit number in column 'price', found 1e+41"),
]


def words(message):
    """A message as a pattern, in which `.*` stands for anything."""
    import re

    return re.escape(message).replace(r"\ \.\*\ ", " .* ")


@pytest.mark.parametrize(
    ("make", "options", "code", "message"), USAGES, ids=[f"{u[0].__name__}{len(u[1])}" for u in USAGES]
)
def test_train_says_what_seems_wrong(run, tmp_path, make, options, code, message):
    make(tmp_path)
    found, _, err = run("train", "data.csv", *options, *QUIET)
    assert found == code, err
    import re

    assert re.search(words(message), " ".join(err.split())), err
    assert (tmp_path / "m").exists() == (code == WARNED)
    complaints = [line for line in err.splitlines() if line.startswith("ranktron: ")]
    assert len(complaints) == (0 if "features" in message and code == WARNED and options else 1), err


def test_plain_data_give_no_warning(run, tmp_path):
    write(tmp_path / "data.csv", columns())
    write(tmp_path / "valid.csv", columns(1))
    code, _, err = run("train", "data.csv", "--valid", "valid.csv", *QUIET)
    assert (code, err) == (0, "data.csv: label 'label', query 'qid', document 'docid', 2 features\n")


@pytest.mark.parametrize("command", ["train", "tune", "cv", "sweep"])
def test_the_first_line_names_the_columns(run, tmp_path, command):
    write(tmp_path / "data.csv", renamed(columns(), label="relevance", docid="sku"))
    options = {
        "train": QUIET,
        "tune": ("--algo", "hinge", "--minutes", "0.001", "--model", "m"),
        "cv": ("--algo", "hinge", "--epochs", "1", "--folds", "3"),
        "sweep": ("--algo", "hinge", "--set", "eta=0.1,1"),
    }[command]
    code, _, err = run(command, "data.csv", "--doc", "sku", *options)
    assert code == 0, err
    assert err.splitlines()[0] == "data.csv: label 'relevance', query 'qid', document 'sku', 2 features"


def test_evaluate_says_that_a_model_is_worse_than_a_random_order(run, tmp_path):
    write(tmp_path / "data.csv", columns())
    table = columns(1)
    write(tmp_path / "test.csv", {**table, "label": 3 - table["label"]})
    assert run("train", "data.csv", *QUIET)[0] == 0
    code, out, err = run("evaluate", "m", "test.csv", "--json")
    assert code == 0
    assert "worse than 0." in err
    assert "of a random order: do high labels mean relevant" in err
    assert json.loads(out)["metrics"]["ndcg@10"]["mean"] < json.loads(out)["baselines"]["random"]["ndcg@10"]
    assert run("evaluate", "m", "data.csv", "--json")[2] == ""


@pytest.mark.parametrize("make", [single_documents, equal_labels])
def test_evaluate_refuses_data_in_which_there_is_nothing_to_measure(run, tmp_path, make):
    write(tmp_path / "good.csv", columns())
    make(tmp_path)
    assert run("train", "good.csv", *QUIET)[0] == 0
    code, out, err = run("evaluate", "m", "data.csv")
    assert (code, out) == (1, "")
    assert "there is nothing to measure, since no query has documents with different labels" in err


def arrays():
    table = columns()
    return np.column_stack([table["price"], table["age"]]), table["label"].astype(float), np.array(table["qid"])


def scores_of_other_rows():
    X, y, qid = arrays()
    mixed = np.random.default_rng(0).permutation(len(y))
    rounds = Rounds.from_arrays(X[mixed], y[mixed], qid=qid[mixed])
    evaluate(rounds, X[mixed, 0])


def features_and_labels_swapped():
    X, y, qid = arrays()
    HingePerceptron().fit(y, X, qid=qid)


def labels_and_queries_swapped():
    X, y, qid = arrays()
    HingePerceptron().fit(X, qid, qid=y)


def labels_and_scores_swapped():
    X, y, qid = arrays()
    evaluate(X[:, 0], y, qid=qid)


def no_query_ids():
    X, y, _ = arrays()
    evaluate(y, X[:, 0])


def negative_labels():
    X, y, qid = arrays()
    rounds = Rounds.from_arrays(X, y, qid=qid)
    rounds.labels[3] = -1.0
    train(TrainingPlan("listnet"), rounds)


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        (scores_of_other_rows, r"regrouped by query.* evaluate\(y, scores, qid=qid\)"),
        (features_and_labels_swapped, r"it is fit\(X, y, qid=qid\)"),
        (labels_and_queries_swapped, r"the labels are text, 'q0.0' in row 0: it is fit\(X, y, qid=qid\)"),
        (labels_and_scores_swapped, r"it is evaluate\(y, scores, qid=qid\)"),
        (no_query_ids, r"there are no query ids: pass qid="),
        (negative_labels, r"labels must be finite and >= 0; row 3 has -1.0"),
    ],
)
def test_python_refuses_what_would_be_wrong_in_silence(usage, message):
    with pytest.raises(DataError, match=message):
        usage()


def told():
    X, y, qid = arrays()
    HingePerceptron(n_epochs=1).fit(np.column_stack([X, 7 - y]), y, qid=qid)


def validated_on_itself():
    X, y, qid = arrays()
    HingePerceptron(n_epochs=1).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)


def high():
    X, y, qid = arrays()
    evaluate(50 * y, X[:, 0], qid=qid)


def rated(tmp_path):
    write(tmp_path / "data.csv", renamed(columns(), label="score"))
    read(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        (told, "the feature 2 tells the label of each of the 144 rows"),
        (validated_on_itself, "all queries of the validation set are in the training set"),
        (high, "labels go up to 150"),
    ],
)
def test_python_warns_of_what_seems_wrong(usage, message):
    with pytest.warns(RankingWarning, match=message):
        usage()


def test_a_table_warns_of_a_doubtful_label(tmp_path):
    with pytest.warns(RankingWarning, match="column 'score' is taken for the label"):
        rated(tmp_path)
