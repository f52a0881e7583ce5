"""Models that fill in missing values, exported: the same scores where an engine knows what is missing, or a refusal."""

import json

import numpy as np
import pytest

from ranktron import DataError
from ranktron.data.rounds import Rounds
from ranktron.export import export
from ranktron.export.json import PlainJson
from ranktron.export.onnx import onnx_scores
from ranktron.export.vespa import Vespa
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train

NAMES = ("bm25(title)", "attribute(age)", "fieldLength(body)")


@pytest.fixture(scope="module")
def lists():
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, (120, 3))
    y = np.floor(np.clip(X @ [1.0, -1.0, 0.5] + 1.0, 0.0, 3.0))
    X[rng.random(X.shape) < 0.2] = np.nan
    return Rounds.from_arrays(X, y, group=np.full(20, 6), feature_names=NAMES, missing=True)


def model(lists, nan, scaling="standard", kind="ranksvm"):
    given = {"n_rounds": 20} if kind == "rankboost" else {}
    return train(TrainingPlan(kind, given, Schedule(2), nan=nan, scaling=scaling), lists).model


@pytest.mark.parametrize("scaling", [None, "standard", "minmax"])
@pytest.mark.parametrize("nan", ["mean", "zero", "indicator"])
@pytest.mark.parametrize("to", ["vespa", "onnx", "json"])
def test_what_is_missing_scores_as_in_the_model(lists, to, nan, scaling):
    trained = model(lists, nan, scaling)
    exported = export(trained, to)
    assert exported.check.swapped == 0
    assert export(trained, to, data=lists, normalizers="fold").check.pairs > 0
    X, offsets = lists.X, lists.offsets
    scores = {
        "vespa": lambda: Vespa().scores(exported.content, NAMES, X, offsets),
        "onnx": lambda: onnx_scores(exported.content, X),
        "json": lambda: PlainJson().scores(exported.content, NAMES, X, offsets),
    }[to]()
    wanted = trained.score_rounds(lists)
    np.testing.assert_allclose(scores - scores[0], wanted - wanted[0], atol=2e-5)


def test_json_says_what_is_missing(lists):
    content = json.loads(export(model(lists, "indicator"), "json").content)
    assert content["version"] == 2
    np.testing.assert_allclose([f["missing"] for f in content["features"]], np.nanmean(lists.X, axis=0), rtol=1e-6)
    assert all(f["adds_if_missing"] for f in content["features"])


@pytest.mark.parametrize("to", ["solr", "elasticsearch", "opensearch"])
def test_lucene_has_0_for_what_is_missing(lists, to):
    exported = export(model(lists, "zero"), to)
    assert exported.check.swapped == 0
    assert not any("missing at query time" in each for each in exported.warnings)
    assert export(model(lists, "zero"), to, one="always").check.pairs > 0
    assert export(model(lists, "zero", kind="rankboost"), to).check.pairs > 0
    for nan in ("mean", "indicator"):
        for kind in ("ranksvm", "rankboost"):
            with pytest.raises(DataError, match=f"{to} cannot do: train it with --nan zero"):
                export(model(lists, nan, kind=kind), to)


def test_what_cannot_be_expressed_is_refused(lists):
    for to in ("vespa-inputs", "vespa-weights"):
        with pytest.raises(DataError, match=f"which {to} cannot do"):
            export(model(lists, "mean"), to)
    for to in ("vespa", "onnx", "json"):
        with pytest.raises(DataError, match="export a linear model to vespa, onnx or json"):
            export(model(lists, "zero", kind="rankboost"), to)
    with pytest.raises(DataError, match="scales features within each list, which vespa cannot do together"):
        export(model(lists, "mean", "minmax-query"), "vespa")
