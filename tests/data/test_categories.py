import numpy as np
import pandas
import polars
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

import ranktron
from ranktron import DataError
from ranktron.data.categories import encoder_from_dict, encoder_to_dict, fit_encoder

QID = np.repeat(np.arange(30), 5)
COLOURS = ["red", "green", "blue", "déjà vu"]


def table(seed=0, colours=COLOURS):
    rng = np.random.default_rng(seed)
    return {
        "price": rng.normal(10.0, 3.0, 150).astype(np.float32),
        "colour": [colours[i] for i in rng.integers(0, len(colours), 150)],
        "size": rng.integers(36, 45, 150),
        "age": rng.integers(0, 3, 150),
    }


def grades(columns):
    return np.array([2.0 * (c == "red") + (c == "blue") for c in columns["colour"]])


def frames(columns):
    """The same table by pandas and by polars, with the column as text and as a category."""
    text, table = pandas.DataFrame(columns), polars.DataFrame(columns)
    kinds = polars.Categorical, polars.Enum(sorted(set(columns["colour"])))
    return [text, text.astype({"colour": "category"}), table, *(table.with_columns(colour=table["colour"].cast(kind))
                                                                for kind in kinds)]  # fmt: skip


@pytest.mark.parametrize("which", range(5))
def test_the_features_are_those_of_scikit_learn(which):
    train, test = table(), table(1, [*COLOURS, "violet"])  # violet is new
    theirs = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour", "size"]), remainder="passthrough"
    )
    theirs.fit(pandas.DataFrame(train))
    wanted = pandas.DataFrame(
        np.asarray(theirs.transform(pandas.DataFrame(test))), columns=theirs.get_feature_names_out()
    )
    encoder = fit_encoder(frames(train)[which], ["colour", "size"])
    found = encoder(frames(test)[which])
    found.check()
    assert encoder.names[:2] == ("price", "colour=blue")
    assert len(encoder.names) == wanted.shape[1]
    for j, name in enumerate(encoder.names):
        own = f"onehotencoder__{name.replace('=', '_')}" if "=" in name else f"remainder__{name}"
        np.testing.assert_array_equal(found[:, j], wanted[own].to_numpy(np.float32))


def test_types_say_which_columns_are_categorical():
    for frame in frames(table())[1:2] + frames(table())[3:]:
        assert list(fit_encoder(frame).categories) == ["colour"]
    for frame in frames(table())[:1] + frames(table())[2:3]:
        with pytest.raises(DataError, match=r"column 'colour' holds '.*' in row 0, which is no number: name it in"):
            fit_encoder(frame)
    numbers = pandas.DataFrame({"a": [1, 2], "b": pandas.Categorical([7, 8])})
    assert fit_encoder(numbers).names == ("a", "b=7", "b=8")
    assert fit_encoder(numbers, None) is None
    assert fit_encoder(pandas.DataFrame({"a": [1, 2]})) is None
    assert fit_encoder(np.zeros((2, 2))) is None
    with pytest.raises(DataError, match="categorical= names 'shape', which is no column"):
        fit_encoder(numbers, ["shape"])
    with pytest.raises(DataError, match="and X is none"):
        fit_encoder(np.zeros((2, 2)), ["a"])
    with pytest.raises(DataError, match="categorical must be 'auto', None or the names of columns, not 'colour'"):
        fit_encoder(numbers, "colour")


@pytest.mark.parametrize("which", [1, 3, 4])
@pytest.mark.parametrize("cls", [ranktron.RankSVM, ranktron.HingePerceptron, ranktron.RankBoost])
def test_a_ranker_learns_categories_and_keeps_them(cls, which, tmp_path):
    columns = table()
    frame, y = frames(columns)[which], grades(columns)
    ranker = cls(scale="standard").fit(frame, y, qid=QID)
    assert ranker.score(frame, y, qid=QID) > 0.97
    assert ranker.n_features_in_ == 4
    assert ranker.feature_names_in_.tolist() == list(columns)
    ranker.save(tmp_path / "m")
    model = ranktron.load(tmp_path / "m")
    assert model.to_bytes() == ranker.model_.to_bytes()
    assert model.names == ("price", "colour=blue", "colour=déjà vu", "colour=green", "colour=red", "size", "age")
    other = table(1, [*COLOURS, "violet"])
    new = frames(other)[which]
    turned = new[["age", "colour", "price", "size"]]
    np.testing.assert_array_equal(model.predict(new), ranker.predict(new))
    np.testing.assert_array_equal(model.predict(turned), ranker.predict(new))
    encoded = model.encoder(new)
    np.testing.assert_array_equal(model.predict(encoded), ranker.predict(new))
    assert set(other["colour"]) - set(columns["colour"]) == {"violet"}
    assert model.rank(new[:5] if which > 1 else new.iloc[:5]).shape == (5,)


def test_frames_that_do_not_fit_are_refused():
    columns = table()
    frame = frames(columns)[1]
    ranker = ranktron.HingePerceptron().fit(frame, grades(columns), qid=QID)
    with pytest.raises(DataError, match="column 'age' is missing: the model was fitted to price, colour, size, age"):
        ranker.predict(frame.drop(columns=["age"]))
    with pytest.raises(DataError, match="column 'weight' is surplus"):
        ranker.predict(frame.assign(weight=1.0))
    with pytest.raises(DataError, match="takes a data frame with the columns price, colour, size, age"):
        ranker.predict(np.zeros((2, 4)))
    with pytest.raises(DataError, match="column 'price' holds 'dear'"):
        ranker.predict(frame.astype({"price": object}).assign(price="dear"))


def test_going_on_learning_takes_the_categories_of_the_first_batch():
    columns = table()
    frame, y = frames(columns)[1], grades(columns)
    ranker = ranktron.HingePerceptron()
    for a in range(0, 150, 50):
        rows = slice(a, a + 50)
        ranker.partial_fit(frame.iloc[rows], y[rows], qid=QID[rows])
    assert ranker.model_.encoder.categories["colour"] == tuple(sorted(set(columns["colour"][:50])))


@pytest.mark.parametrize("which", [1, 3])
def test_missing_categories_and_numbers(which):
    columns = table()
    columns["colour"][3] = None
    columns["price"][5] = np.nan
    y = np.arange(150) % 3
    frame = pandas.DataFrame(columns).astype({"colour": "category"}) if which == 1 else polars.DataFrame(
        columns, schema_overrides={"colour": polars.Categorical}, nan_to_null=True)  # fmt: skip
    with pytest.raises(DataError, match=r"column 'colour' has no category \(None, NaN, NA\) in row 3"):
        ranktron.HingePerceptron().fit(frame, y, qid=QID)
    ranker = ranktron.HingePerceptron(nan="mean").fit(frame, y, qid=QID)
    row = ranker.model_.fill(ranker.model_._lists(frame, None)).X.dense()
    assert row[3, 1:5].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert row[5, 0] == pytest.approx(np.nanmean(columns["price"]))
    ranker = ranktron.HingePerceptron(nan="indicator").fit(frame, y, qid=QID)
    names = ranker.model_.filled_names
    assert [name for name in names if "missing" in name] == ["colour is missing", "price is missing"]
    row = ranker.model_.fill(ranker.model_._lists(frame, None)).X.dense()
    assert row[:, names.index("colour is missing")].nonzero()[0].tolist() == [3]
    assert row[:, names.index("price is missing")].nonzero()[0].tolist() == [5]


def test_a_qid_column_is_no_feature():
    frame = frames(table())[1].assign(qid=QID)
    ranker = ranktron.HingePerceptron().fit(frame, grades(table()))
    assert ranker.with_queries_
    assert ranker.model_.encoder.columns == ("price", "colour", "size", "age")


def test_forged_categories_are_refused():
    kept = encoder_to_dict(fit_encoder(frames(table())[1]))
    assert encoder_from_dict(kept, 7).names[1] == "colour=blue"
    for key, value in [("columns", ["price", "price", "size", "age"]), ("columns", [1, "colour", "size", "age"]),
                       ("categories", [[], ["a"], [], []]), ("nan", "median"),
                       ("categories", [[], ["a", "a", "b", "c"], [], []])]:  # fmt: skip
        with pytest.raises(DataError, match="the categories of 7 features"):
            encoder_from_dict({**kept, key: value}, 7)


def test_categories_are_exported_by_name():
    columns = table()
    ranker = ranktron.RankSVM().fit(frames(columns)[1], grades(columns), qid=QID)
    content = ranker.model_.export("solr").content.decode()
    assert "colour=déjà vu" in content
