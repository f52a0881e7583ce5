"""Tables with categories and text, from `info` to `explain`: the commands use the columns of the file itself."""

import csv
import json

import numpy as np
import pytest

from ranktron import DataError, HingePerceptron, load, read
from ranktron.data.io import read_text_columns, write_qrels
from ranktron.data.io.api import read_documents
from ranktron.errors import RankingWarning

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

CATEGORIES = ("shoes", "hats", "bags")
COLUMNS = ("label", "query", "product_id", "price", "category", "size", "title")


def table(seed, queries=40, documents=6):
    """Shoes are best, and cheap ones among them; every title occurs once."""
    rng, rows = np.random.default_rng(seed), []
    for q in range(queries):
        for d in range(documents):
            category, price = int(rng.integers(3)), round(float(rng.normal(20.0, 5.0)), 2)
            label = int(np.clip(round(2.5 - category - price / 20.0), 0, 2))
            rows.append(
                (label, f"query {seed} {q}", f"P{q}{d}", price, CATEGORIES[category], d % 2, f"no {seed} {q} {d}")
            )
    return rows


def write(path, rows, columns=COLUMNS):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


@pytest.fixture
def files(run):
    for seed, name in enumerate(("train.csv", "test.csv")):
        write(name, table(seed))
    return run


def as_json(result):
    code, out, _ = result
    assert code == 0
    return json.loads(out)


def test_the_model_of_a_file_with_categories_works_on_other_files_of_the_kind(files):
    code, _, err = files("train", "train.csv", "--model", "m")
    assert code == 1
    assert "expected numbers in column 'category', found" in err
    assert "--categorical auto" in err
    code, out, err = files("train", "train.csv", "--categorical", "auto", "--model", "m")
    assert code == 0
    assert "category (3)" in out
    assert "train.csv: columns without numbers are left out: 'title' (240 different texts)" in err
    model = load("m")
    assert model.names == ("price", "category=bags", "category=hats", "category=shoes", "size")

    value = as_json(files("evaluate", "m", "test.csv", "--json"))["metrics"]["ndcg@10"]["mean"]
    assert value > 0.93
    assert files("rank", "m", "test.csv", "-o", "scores.txt")[0] == 0
    scores = np.loadtxt("scores.txt")
    frame = pandas.read_csv("test.csv")[["size", "category", "price", "query"]]
    np.testing.assert_array_equal(model.predict(frame.drop(columns="query"), frame["query"]), scores)

    assert files("train", "train.csv", "--features", "price,size", "--model", "numbers")[0] == 0
    compared = as_json(files("compare", "m", "numbers", "scores.txt", "--data", "test.csv", "--json"))
    assert compared["systems"]["m"]["ndcg@10"] == compared["systems"]["scores.txt"]["ndcg@10"] == value
    assert value > compared["systems"]["numbers"]["ndcg@10"] + 0.1
    code, out, _ = files("explain", "m", "test.csv", "--qid", "query 1 3")
    assert code == 0
    assert "category=shoes" in out
    code, out, _ = files("export", "m", "--to", "json", "--data", "test.csv")
    assert code == 0


def test_info_describes_text_and_does_not_refuse_it(files):
    summary = as_json(files("info", "train.csv", "--json"))
    assert summary["columns"]["features"] == ["price", "size"]
    assert summary["texts"]["category"]["different"] == 3
    assert summary["texts"]["category"]["left_out"] is None
    assert sum(summary["texts"]["category"]["frequent"].values()) == summary["documents"] == 240
    assert summary["texts"]["title"]["left_out"] == "240 different texts"
    code, out, _ = files("info", "train.csv")
    assert code == 0
    assert "leaves it out: 240 different texts" in " ".join(out.split())
    for options in (("--features", "price,category"), ("--features", "category"), ("--drop", "size,title")):
        code, out, _ = files("info", "train.csv", *options)
        assert code == 0, out
        assert "category" in out


def test_named_columns_are_categories_whatever_they_hold(files):
    code, _, err = files("train", "train.csv", "--categorical", "category,size", "--model", "m")
    assert code == 1
    assert "found 'no 0 0 0' in line 2" in err  # the title
    code, _, _ = files("train", "train.csv", "--categorical", "category,size", "--drop", "title", "--model", "m")
    assert code == 0
    assert load("m").names[-2:] == ("size=0", "size=1")
    code, _, err = files("train", "train.csv", "--categorical", "colour", "--model", "m")
    assert code == 1
    assert "there is no column 'colour'" in err
    code, _, err = files("train", "train.csv", "--categorical", "label", "--model", "m")
    assert code == 1
    assert "'label' is named in categorical= (--categorical) and is not among the features" in err


def test_a_model_with_categories_says_which_column_is_missing(files):
    assert files("train", "train.csv", "--categorical", "auto", "--model", "m")[0] == 0
    write("short.csv", [row[:4] for row in table(1)], COLUMNS[:4])
    code, _, err = files("evaluate", "m", "short.csv")
    assert code == 1
    assert "columns of the model or of the training data are missing: category, size" in err
    assert files("train", "train.csv", "--from", "m", "--categorical", "auto", "--model", "n")[0] == 2
    assert files("train", "train.csv", "--stream", "--categorical", "auto", "--model", "n")[0] == 2
    assert files("train", "train.csv", "--from", "m", "--model", "n")[0] == 0
    assert load("n").encoder.names == load("m").encoder.names


def test_a_new_and_a_missing_category(files):
    rows = table(0)
    rows[3] = (*rows[3][:4], "", *rows[3][5:])
    write("holes.csv", rows)
    code, _, err = files("train", "holes.csv", "--categorical", "auto", "--model", "m")
    assert code == 1
    assert "column 'category' has no category in line 5; train with --nan indicator" in err
    assert files("train", "holes.csv", "--categorical", "auto", "--nan", "indicator", "--model", "m")[0] == 0
    assert "category is missing" in load("m").names
    new = [(*row[:4], "coats" if i else "", *row[5:]) for i, row in enumerate(table(1))]
    write("new.csv", new)
    with pytest.warns(RankingWarning, match="ignored: title"):
        rounds = read_documents("new.csv", like=load("m"), null="nan").X.dense()
    places = [load("m").names.index(name) for name in load("m").names if name.startswith("category")]
    assert rounds[1:, places].sum() == 0.0
    assert rounds[0, load("m").names.index("category is missing")] == 1.0
    assert files("evaluate", "m", "new.csv")[0] == 0
    assert files("train", "holes.csv", "--categorical", "auto", "--null", "zero", "--model", "m")[0] == 0
    assert "category is missing" not in load("m").names


def test_the_validation_set_has_the_categories_of_the_training_set(files):
    write("vali.csv", [(*row[:4], "hats", *row[5:]) for row in table(2)])
    code, out, _ = files("train", "train.csv", "--valid", "vali.csv", "--categorical", "auto", "--model", "m")
    assert code == 0
    assert "best epoch" in out


def test_tune_and_cv_take_categories(files):
    options = ("--categorical", "auto", "--json")
    tuned = as_json(files("tune", "train.csv", "--minutes", 0.02, "--algo", "hinge", "--model", "t", *options))
    assert tuned["test"]["mean"] > 0.9
    assert load("t").encoder.categories == {"category": ("bags", "hats", "shoes")}
    assert files("cv", "train.csv", *options)[0] == 0


def test_reading_is_the_encoding_of_a_data_frame(files):
    rounds = read("train.csv", categorical=["category"], drop="title")
    frame = pandas.read_csv("train.csv")
    ranker = HingePerceptron(categorical=["category"], features=["price", "category", "size"])
    ranker.fit(frame, frame["label"], qid=frame["query"])
    assert rounds.feature_names == ranker.model_.names
    np.testing.assert_array_equal(rounds.X.dense(), ranker.model_.encoder(frame[["price", "category", "size"]]).dense())
    again = read(frame.astype({"category": "category"}), categorical="auto", drop="title")
    np.testing.assert_array_equal(again.X.dense(), rounds.X.dense())
    shuffled = frame.sample(frac=1.0, random_state=0)
    mixed = read(shuffled, categorical=["category"], drop="title")
    order = [list(rounds.docids).index(name) for name in mixed.docids[: len(mixed[0].labels)]]
    np.testing.assert_array_equal(mixed[0].X.dense(), rounds.X[order].dense())


def test_what_is_no_category_by_itself():
    frame = pandas.DataFrame({"label": [0, 1] * 4, "qid": [1, 2] * 4, "price": range(8), "same": "x"})
    frame["day"] = pandas.Timestamp("2020-01-01")
    assert list(read_text_columns(frame).left_out) == ["same", "day"]
    with pytest.warns(UserWarning, match=r"left out: 'same' \(always 'x'\), 'day' \(timestamp\[..\]\)"):
        rounds = read(frame, categorical="auto")
    assert rounds.feature_names == ("price",)
    assert rounds.encoder is None
    with pytest.raises(DataError, match="expected numbers in column 'same'"):
        read(frame, categorical="auto", features=["price", "same"])


def test_a_run_of_queries_with_blanks_is_compared_with_judgments_of_them(files):
    assert files("train", "train.csv", "--drop", "category,title", "--model", "m")[0] == 0
    code, _, err = files("rank", "m", "test.csv", "--drop", "title,category", "-o", "run.txt", "--format", "trec")
    assert code == 0
    assert "blanks in ids are written as %20" in err
    rounds = read("test.csv", drop="title,category")
    judged = {str(q): dict(zip(rounds.docids[a:b], rounds.labels[a:b].astype(int), strict=True))
              for q, a, b in zip(rounds.qids, rounds.offsets, rounds.offsets[1:], strict=False)}  # fmt: skip
    write_qrels(judged, "qrels.txt")
    compared = as_json(files("compare", "run.txt", "--qrels", "qrels.txt", "--metrics", "ndcg@10:trec", "--json"))
    found = as_json(files("evaluate", "m", "test.csv", "--metrics", "ndcg@10:trec", "--json"))
    assert compared["systems"]["run.txt"] == {"ndcg@10:trec": pytest.approx(found["metrics"]["ndcg@10:trec"]["mean"])}
