"""The shapes that the engines document, and their arithmetic."""

import json

import numpy as np
import pytest

from ranktron import DataError, MissingExtra
from ranktron.export import TARGETS, export
from ranktron.export.elasticsearch import LearningToRankPlugin
from ranktron.export.engine import dot32, shortest_single
from ranktron.export.solr import Solr

STANDARD = ("standard", (1970.0, 0.0, 2.5), (30.0, 1.0, 0.5))
MINMAX = ("minmax", (0.0, 10.0, 2.0), (10.0, 5.0, 1.0))
X = np.array([[2000.0, 3.0, 2.0], [0.0, 0.0, 0.0], [1985.0, 12.0, 3.25]], np.float32)
ONE_LIST = np.array([0, 3])


def test_solr_is_the_documented_model(linear):
    model = json.loads(export(linear(scaling=STANDARD), "solr", name="mine", store="films").content)
    standard = "org.apache.solr.ltr.norm.StandardNormalizer"
    assert model == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "mine",
        "store": "films",
        "features": [
            {"name": "bm25(title)", "norm": {"class": standard, "params": {"avg": "1970.0", "std": "30.0"}}},
            {"name": "age", "norm": {"class": standard, "params": {"avg": "0.0", "std": "1.0"}}},
            {"name": "clicks", "norm": {"class": standard, "params": {"avg": "2.5", "std": "0.5"}}},
        ],
        "params": {"weights": {"bm25(title)": 0.3, "age": 0.5, "clicks": -0.1}},
    }
    model = json.loads(export(linear(scaling=MINMAX), "solr").content)
    norm = {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": {"min": "10.0", "max": "15.0"}}
    assert model["features"][1] == {"name": "age", "norm": norm}
    assert model["store"] == "_DEFAULT_"
    assert json.loads(export(linear(), "solr").content)["features"][0] == {"name": "bm25(title)"}


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_the_plugins_take_the_same_body(linear, to):
    body = json.loads(export(linear(scaling=STANDARD), to, name="mine").content)
    assert body == {
        "model": {
            "name": "mine",
            "model": {
                "type": "model/linear",
                "definition": {"bm25(title)": 0.3, "age": 0.5, "clicks": -0.1},
                "feature_normalizers": {
                    "bm25(title)": {"standard": {"mean": 1970.0, "standard_deviation": 30.0}},
                    "age": {"standard": {"mean": 0.0, "standard_deviation": 1.0}},
                    "clicks": {"standard": {"mean": 2.5, "standard_deviation": 0.5}},
                },
            },
        }
    }
    body = json.loads(export(linear(scaling=MINMAX), to).content)["model"]["model"]
    assert body["feature_normalizers"]["age"] == {"min_max": {"minimum": 10.0, "maximum": 15.0}}
    assert "feature_normalizers" not in json.loads(export(linear(), to).content)["model"]["model"]


def test_plain_json_says_all_there_is(linear):
    content = json.loads(export(linear(scaling=STANDARD, constant=0.25), "json", name="mine").content)
    assert (content["format"], content["version"], content["constant"]) == ("ranktron-linear", 1, 0.25)
    assert content["features"][0] == {"name": "bm25(title)", "weight": 0.3, "shift": 1970.0, "divisor": 30.0}
    folded = json.loads(export(linear(scaling=STANDARD), "json", normalizers="fold").content)
    assert folded["features"][0] == {"name": "bm25(title)", "weight": 0.3 / 30.0}
    assert folded["constant"] == pytest.approx(-0.3 * 1970.0 / 30.0 + 0.1 * 2.5 / 0.5)


def by_hand(weights, scaling, x):
    """Σ w (x − shift) / divisor, in 32-bit floats, term by term."""
    f = np.float32
    total = f(0.0)
    for weight, shift, divisor, value in zip(weights, scaling[1], scaling[2], x, strict=True):
        low, high = f(shift), f(shift + divisor)
        norm = (value - f(shift)) / (f(divisor) if scaling[0] == "standard" else high - low)
        total = f(total + f(f(weight) * f(norm)))
    return float(total)


@pytest.mark.parametrize("to", ["solr", "elasticsearch", "opensearch"])
@pytest.mark.parametrize("scaling", [STANDARD, MINMAX])
def test_the_evaluators_count_as_java_does(linear, to, scaling):
    model = linear(scaling=scaling)
    exported = export(model, to)
    engine = Solr() if to == "solr" else LearningToRankPlugin()
    scores = engine.scores(exported.content, model.names, X, ONE_LIST)
    assert scores.tolist() == [by_hand((0.3, 0.5, -0.1), scaling, row) for row in X]


def test_a_missing_feature_is_zero_before_it_is_normalised(linear):
    exported = export(linear(scaling=STANDARD), "solr")
    scores = Solr().scores(exported.content, ("bm25(title)", "age", "clicks"), X[1:2], np.array([0, 1]))
    assert scores[0] == pytest.approx(0.3 * -1970.0 / 30.0 - 0.1 * -2.5 / 0.5)
    (missing,) = [warning for warning in exported.warnings if "missing" in warning]
    assert "bm25(title)" in missing
    assert f"{0.3 * -1970.0 / 30.0:+.3g}" in missing


def test_sums_round_after_every_term():
    columns = [np.array([1.0], np.float32), np.array([1e-8], np.float32), np.array([-1.0], np.float32)]
    assert dot32(columns, [1.0, 1.0, 1.0])[0] == 0.0  # exactly it would be 1e-8


def test_the_plugin_refuses_what_it_does_not_know():
    def body(definition, normalizers):
        model = {"type": "model/linear", "definition": definition, "feature_normalizers": normalizers}
        return json.dumps({"model": {"name": "m", "model": model}}).encode()

    plugin = LearningToRankPlugin()
    for file, words in [
        (body({"b": 1.0}, {}), "Unknown feature"),
        (body({"a": 1.0}, {"a": {"min_max": {"minimum": -1.0, "maximum": 1.0}}}), "minimum"),
        (body({"a": 1.0}, {"a": {"min_max": {"minimum": 1.0, "maximum": 1.0}}}), "minimum"),
        (body({"a": 1.0}, {"a": {"standard": {"mean": 0.0, "standard_deviation": 0.0}}}), "positive"),
    ]:
        with pytest.raises(DataError, match=words):
            plugin.scores(file, ("a",), X[:, :1], ONE_LIST)
    assert plugin.scores(body({}, {}), ("a",), X[:, :1], ONE_LIST).tolist() == [0.0, 0.0, 0.0]


def test_numbers_are_short_and_fit():
    assert shortest_single(1 / 3) == 0.33333334
    with pytest.raises(DataError, match="32-bit"):
        shortest_single(1e39)


def test_onnx_runs_with_any_number_of_documents(linear):
    import onnx
    import onnxruntime

    for scaling in (None, STANDARD, MINMAX):
        for normalizers in ("native", "fold"):
            model = linear(scaling=scaling, constant=0.5)
            exported = export(model, "onnx", name="mine", normalizers=normalizers)
            assert exported.content == export(model, "onnx", name="mine", normalizers=normalizers).content
            session = onnxruntime.InferenceSession(exported.content)
            for rows in (X, X[:1]):
                (scores,) = session.run(None, {"features": rows})
                assert scores.shape == (len(rows),)
                assert scores == pytest.approx(model.predict(rows), rel=1e-4, abs=1e-4)
            properties = {p.key: p.value for p in onnx.load_from_string(exported.content).metadata_props}
            assert json.loads(properties["feature_names"]) == list(model.names)


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_onnx_is_an_extra(linear, monkeypatch, missing):
    import sys

    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"ranktron\[onnx\]"):
        export(linear(), "onnx")


def test_every_target_is_deterministic(linear):
    for to in TARGETS:
        assert export(linear(scaling=STANDARD), to).content == export(linear(scaling=STANDARD), to).content
