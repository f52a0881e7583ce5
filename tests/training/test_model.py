import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ranktron import DataError, HingePerceptron, Model, Rounds, load, play
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.serialization import deserialize, serialize
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import feedback, hinge_perceptron
from ranktron.learners.checks import same
from ranktron.training.fit import TrainingPlan, train

LISTS = Separable(documents=6, features=4).rounds(30)


def trained(scaling="standard"):
    scaler = fit_scaler(scaling, LISTS)
    learner = hinge_perceptron(4, average=True)
    for _ in play(learner, scale(LISTS, scaler), feedback.full):
        pass
    parameters = {"eta": 1.0, "margin": 1.0, "average": True}
    return Model("hinge", parameters, learner.state(), 4, 0, ("a", "b", "c", "d"), scaler, {"epoch": 1})


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax-query"])
def test_a_saved_model_is_the_model(tmp_path, scaling):
    model = trained(scaling)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.to_bytes() == model.to_bytes() == (tmp_path / "m").read_bytes()
    assert again.predict(LISTS.X, np.repeat(LISTS.qids, 6)).tolist() == model.score_rounds(LISTS).tolist()
    assert (again.names, again.first_index, again.record) == (("a", "b", "c", "d"), 0, {"epoch": 1})
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_loaded_learner_goes_on_where_it_stopped():
    one, two = trained("none").learner(), Model.from_bytes(trained("none").to_bytes()).learner()
    for learner in (one, two):
        for _ in play(learner, LISTS, feedback.full):
            pass
    assert one.rounds == 60
    assert same(one.state(), two.state())


def test_explanations_add_up():
    model = trained()
    X = LISTS[0].X
    explanation = model.explain(X)
    assert explanation.contributions.sum(axis=1) == pytest.approx(explanation.scores)
    assert explanation.order.tolist() == model.rank(X).tolist()
    first, second = explanation.order[:2]
    assert explanation.lead(0).sum() == pytest.approx(explanation.scores[first] - explanation.scores[second])


NESTED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.bool_]), st.integers(0, 3)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc", min_size=1), NESTED))
def test_archives_round_trip_and_are_deterministic(content):
    data = serialize(content)
    assert serialize(deserialize(data)) == data == serialize(dict(reversed(content.items())))


@given(st.binary(max_size=80))
def test_noise_is_never_a_model(data):
    with pytest.raises(DataError):
        Model.from_bytes(data)


@given(st.data())
def test_a_flipped_byte_is_found(data):
    raw = bytearray(trained().to_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DataError):
        Model.from_bytes(bytes(raw))


def forged(**changes):
    raw = trained("none").to_bytes()
    (length,) = struct.unpack("<Q", raw[9:17])
    header = json.loads(raw[17 : 17 + length])
    for path, value in changes.items():
        place = header
        *parents, last = path.split("__")
        for parent in parents:
            place = place[parent]
        place[last] = value
    text = json.dumps(header).encode()
    body = raw[:9] + struct.pack("<Q", len(text)) + text + raw[17 + length : -4]
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 99, "version": "9.9"}, "written by ranktron 9.9, and ranktron .* cannot read its format"),
        ({"content__kind": "alien"}, "no algorithm 'alien'"),
        ({"content__scaler": {"name": "alien"}}, "scaling"),
        ({"content__state": {}}, "knows"),
        ({"content__n_features": 7}, "7 features"),
        ({"content__parameters": {"alien": 1}}, "no parameter 'alien'"),
        ({"content__extra": 1}, "extra"),
        ({"content__n_features": 10**15, "content__feature_names": None}, "knows"),
        ({"content__n_features": 10**30, "content__feature_names": None}, "knows"),
        ({"content__feature_names": ["a", "b"]}, "2 feature names for 4 features"),
        ({"arrays": [{"dtype": "<f8", "shape": [10**30]}]}, "not a Ranktron model"),
        ({"arrays": [{"dtype": "<f8", "shape": [10**10, 10**10]}]}, "not a Ranktron model"),
        ({"arrays": []}, "more than its header"),
    ],
)
def test_what_a_model_does_not_know_it_refuses(changes, words):
    with pytest.raises(DataError, match=words):
        Model.from_bytes(forged(**changes))


def test_a_header_deeper_than_any_model_is_refused():
    text = b'{"format": 2, "version": "", "arrays": [], "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    body = b"ranktron\n" + struct.pack("<Q", len(text)) + text
    with pytest.raises(DataError, match="not a Ranktron model"):
        deserialize(body + struct.pack("<I", zlib.crc32(body)))


@pytest.mark.parametrize("X", [3, None, np.float64(1.0), "text", (row for row in LISTS.X)])
def test_what_is_no_table_is_not_scored(X):
    with pytest.raises(DataError, match="features must"):
        trained().predict(X)


def test_files_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        load(tmp_path / "nothing")
    with pytest.raises(DataError, match="cannot read"):
        load("a\0b")
    with pytest.raises(DataError, match="cannot be written"):
        trained().save(tmp_path / "no" / "folder")
    with pytest.raises(DataError, match=r"4 features.*has 3"):
        trained().predict(LISTS.X[:, :3])
    with pytest.raises(DataError, match="cannot store"):
        serialize({"a": np.array(["text"])})


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_found_by_their_names(sparse):
    names = ("price", "age", "clicks")
    lists = WebSearch(features=3, documents=6).rounds(20)
    lists = replace(lists, feature_names=names, X=Sparse.from_matrix(lists.X) if sparse else lists.X)
    model = train(TrainingPlan("hinge"), lists).model
    mixed = lists.ordered_by(("clicks", "price", "age"))
    assert mixed.feature_names == ("clicks", "price", "age")
    written, wanted = (each.X.dense() if sparse else each.X for each in (mixed, lists))
    assert (written == wanted[:, [2, 0, 1]]).all()
    assert (model.score_rounds(mixed) == model.score_rounds(lists)).all()
    assert same(train(TrainingPlan("hinge"), mixed, start=model).model.state,
                train(TrainingPlan("hinge"), lists, start=model).model.state)  # fmt: skip
    assert Rounds.concat([lists[:10], mixed[10:]]).ordered_by(names).labels.tolist() == lists.labels.tolist()
    for wrong in (("price", "age", "klicks"), ("price", "age", "age")):
        with pytest.raises(DataError, match="clicks missing"):
            model.score_rounds(replace(lists, feature_names=wrong))


def test_a_data_frame_says_which_feature_is_which():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"price": [1.0, 2.0], "age": [5.0, 3.0]})
    ranker = HingePerceptron().fit(frame, [1, 0], qid=0)
    model, other = ranker.model_, frame[["age", "price"]]
    assert model.predict(other).tolist() == model.predict(frame).tolist()
    assert (model.explain(other).contributions == model.explain(frame).contributions).all()
    assert model.predict(frame.to_numpy()).tolist() == model.predict(frame).tolist()
    with pytest.raises(DataError, match="column 'age' is missing: the model was fitted to price, age"):
        model.rank(frame.rename(columns={"age": "size"}))
