"""What is exported, folded, refused and warned of, and that nothing wrong is ever written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ranktron import DataError, Model, Rounds, read
from ranktron.data.synthetic import WebSearch
from ranktron.export import TARGETS, export, exportable_to
from ranktron.export.solr import Solr
from ranktron.export.vespa import Vespa
from ranktron.learners.schedule import Schedule
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=8, documents=8).rounds(40)
LINEAR = [name for name in ALGORITHMS if name not in ("rankboost", "lightgbm", "kernel")]
OTHERS = {
    "pairwise last": ("pairwise", {"output": "last"}),
    "pairwise pocket": ("pairwise", {"output": "pocket"}),
    "slam average": ("slam", {"average": True}),
    "predtron l1": ("predtron", {"norm": "l1"}),
}


def trained(name, parameters=None, scaling="standard"):
    return train(TrainingPlan(name, parameters or {}, Schedule(2), scaling=scaling), LISTS).model


@pytest.mark.parametrize("to", TARGETS)
def test_a_model_that_has_learnt_nothing_is_warned_of(to):
    model = Model("linear", {}, {"coef": np.zeros(8), "constant": 0.0}, 8)
    for data in (None, LISTS):
        assert "the same score" in export(model, to, data=data).warnings[-1]


@pytest.mark.parametrize("name", [*LINEAR, *OTHERS])
def test_every_linear_learner_reaches_every_engine(name):
    model = trained(*OTHERS.get(name, (name, {})))
    assert np.abs(model.coef).max() > 0.0
    for to in TARGETS:
        for data in (None, LISTS):
            check = export(model, to, data=data).check
            assert check.pairs > 0
            assert check.swapped <= check.pairs // 1000
            assert check.error < 1e-5 * np.abs(model.coef).sum() * 10


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("normalizers", ["native", "fold"])
@pytest.mark.parametrize("to", TARGETS)
def test_scaled_or_folded_the_order_is_the_same(to, normalizers, scaling):
    exported = export(trained("slam", scaling=scaling), to, normalizers=normalizers, data=LISTS)
    assert exported.check.swapped == 0
    assert exported.check.lists == 40


def test_the_model_exports_itself(linear, tmp_path):
    exported = linear().export("elasticsearch", name="mine")
    exported.save(tmp_path / "m.json")
    assert (
        (tmp_path / "m.json").read_bytes() == exported.content == export(linear(), "elasticsearch", name="mine").content
    )


def test_a_negative_minimum_is_folded_on_the_plugins_alone(linear):
    model = linear(scaling=("minmax", (0.0, -2.0, 1.0), (10.0, 4.0, 1.0)))
    for to in ("elasticsearch", "opensearch"):
        exported = export(model, to)
        body = json.loads(exported.content)["model"]["model"]
        assert "feature_normalizers" not in body
        assert body["definition"]["age"] == 0.5 / 4.0
        assert any("minimum of at least 0" in note and "age is -2" in note for note in exported.notes)
    assert "norm" in json.loads(export(model, "solr").content)["features"][1]


def test_a_range_that_vanishes_in_floats_is_folded(linear):
    model = linear(scaling=("minmax", (0.0, 1e9, 1.0), (10.0, 1.0, 1.0)))
    for to in ("solr", "elasticsearch", "onnx"):
        assert any("vanishes in 32-bit floats" in note for note in export(model, to).notes)


def test_the_constant_is_kept_only_where_there_is_a_place_for_it(linear):
    model = linear(constant=7.0)
    for to in TARGETS:
        exported = export(model, to)
        dropped = any("constant 7 is left out" in note for note in exported.notes)
        assert dropped == (to in ("solr", "elasticsearch", "opensearch"))
    assert "intercept: 7.0" in export(model, "vespa").content.decode()


class TestRefusals:
    def test_scaling_within_lists_is_for_vespas_global_phase(self):
        model = trained("slam", scaling="minmax-query")
        for to in TARGETS:
            if to != "vespa":
                with pytest.raises(DataError, match=r"within each list.*--exportable.*vespa --scale minmax-query"):
                    export(model, to)
        exported = export(model, "vespa", data=LISTS)
        assert "normalize_linear(feature_1)" in exported.content.decode()
        assert "first-phase" not in exported.content.decode()
        assert exported.check.swapped == 0
        assert any("rerank-count" in note for note in exported.notes)

    def test_standardising_within_lists_is_for_no_engine(self):
        model = trained("slam", scaling="standard-query")
        for to in TARGETS:
            with pytest.raises(DataError, match=rf"standardises.*which {to} cannot do: .*--exportable"):
                export(model, to)

    @pytest.mark.parametrize(
        ("name", "vote", "mean"),
        [
            ("pairwise", {"output": "voted"}, {"output": "average"}),
            ("committee", {"combine": "borda", "size": 5}, {"combine": "average", "size": 5}),
        ],
    )
    def test_votes_are_exported_as_their_average(self, name, vote, mean):
        model = trained(name, vote)
        with pytest.raises(DataError, match=r"not linear.*--average"):
            export(model, "solr")
        exported = export(model, "json", average=True, data=LISTS)
        weights = [feature["weight"] for feature in json.loads(exported.content)["features"]]
        assert weights == pytest.approx(trained(name, mean).coef.tolist())
        assert any("average" in note for note in exported.notes)
        with pytest.raises(DataError, match="do not vote"):
            export(trained(name, mean), "json", average=True)

    def test_maps(self, linear):
        model = linear()
        object.__setattr__(model, "map", "bins")
        with pytest.raises(DataError, match=r"uses a feature map.*--map"):
            export(model, "solr")

    def test_kernels(self, linear, monkeypatch):
        monkeypatch.setattr("ranktron.learners.fixed_scorer.Fixed.coef", None, raising=False)
        model = linear()
        model._scorer.coef = None
        with pytest.raises(DataError, match=r"no weights to export.*slam"):
            export(model, "solr")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"to": "lucene"}, "no target 'lucene'; choose from solr"),
            ({"normalizers": "both"}, "native or fold"),
            ({"name": "a b"}, "cannot name a model"),
            ({"name": "../a"}, "cannot name a model"),
            ({"to": "vespa", "name": "1a"}, "cannot name a rank profile"),
            ({"feature_names": ["a"]}, "3 features, but there are 1 names"),
            ({"feature_names": ["a", "b", "a"]}, "unique"),
            ({"feature_names": ["a", "b", " "]}, "unique"),
            ({"to": "vespa", "one": "always"}, "is for solr"),
            ({"one": "age"}, "'age' is a feature of the model"),
        ],
    )
    def test_options(self, linear, options, words):
        with pytest.raises(DataError, match=words):
            export(linear(), **{"to": "solr", **options})

    def test_weights_and_scores_that_do_not_fit_into_floats(self, linear):
        with pytest.raises(DataError, match="32-bit float"):
            export(linear((1e39, 1.0, 1.0)), "solr")
        huge = Rounds.from_arrays(np.full((2, 3), 3e38), [0, 1])
        with pytest.raises(DataError, match="overflow"):
            export(linear((1.0, 1.0, 1.0)), "solr", data=huge)


class TestWarnings:
    def test_negative_scores_and_their_cure(self, linear):
        model = linear((1.0, 0.5, -2.0), ("minmax", (0.0, 0.0, 0.0), (1.0, 1.0, 4.0)))
        data = Rounds.from_arrays(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 0.0]]), [0, 1])
        for to in ("solr", "elasticsearch", "opensearch"):
            (warning,) = export(model, to, data=data).warnings
            assert "down to -2," in warning
            assert "--one" in warning
            cured = export(model, to, data=data, one="always_one")
            assert cured.warnings == ()
        body = json.loads(cured.content)["model"]["model"]
        assert body["definition"]["always_one"] == 2.0
        assert "always_one" not in json.dumps(body["feature_normalizers"].get("always_one", {}))
        assert not any("negative" in warning for warning in export(model, "vespa", data=data).warnings)
        positive = linear((1.0, 0.5, 2.0), ("minmax", (0.0, 0.0, 0.0), (1.0, 1.0, 4.0)))
        assert export(positive, "solr").warnings == ()

    def test_lifted_scores_are_never_negative(self):
        for scaling in ("standard", "minmax", "none"):
            model = trained("slam", scaling=scaling)
            exported = export(model, "solr", data=LISTS, one="one")
            X = np.hstack([LISTS.X, np.ones((len(LISTS.X), 1), np.float32)])
            assert Solr().scores(exported.content, (*model.names, "one"), X, LISTS.offsets).min() >= -1e-6

    def test_features_that_lucene_cannot_compute(self, linear):
        data = Rounds.from_arrays(np.array([[1.0, -3.0, 0.0], [1.0, 2.0, 0.0]]), [0, 1])
        assert any("age has negative values" in warning for warning in export(linear(), "solr", data=data).warnings)
        assert not any("age" in warning for warning in export(linear(), "vespa", data=data).warnings)

    def test_rounding_is_counted(self, linear):
        """Times in seconds: folded, their digits are gone before the constant could take the rest away."""
        scaling = ("standard", (1.6e9, 0.0, 0.0), (1e5, 1.0, 1.0))
        model = linear((1.0, 1.0, 1.0), scaling)
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (400, 3))
        X[:, 0] = 1.6e9 + 1e5 * X[:, 0]
        data = Rounds.from_arrays(X, np.zeros(400), group=[100] * 4)
        native, folded = (export(model, "solr", data=data, normalizers=how) for how in ("native", "fold"))
        assert native.check.swapped < folded.check.swapped
        (warning,) = [warning for warning in folded.warnings if "swaps" in warning]
        assert f"swaps {folded.check.swapped:,} of {folded.check.pairs:,} pairs" in warning
        assert "native normalizers round less" in warning
        assert 0.0 < folded.check.gap < folded.check.error * 2
        assert export(model, "vespa", data=data, normalizers="fold").check.swapped == 0  # it counts in doubles


class Sabotaged(Vespa):
    """Writes weights with the wrong sign, the wrong order, or an offset that is no constant."""

    def __init__(self, harm):
        self.harm = harm

    def write(self, ranker, name, store):
        return super().write(self.harm(ranker), name, store)


@pytest.mark.parametrize(
    "harm",
    [
        lambda ranker: replace(ranker, weights=-ranker.weights),
        lambda ranker: replace(ranker, weights=ranker.weights[::-1]),
        lambda ranker: replace(ranker, weights=ranker.weights * [1.0, 1.0, 1.0001]),
        lambda ranker: replace(ranker, divisor=ranker.divisor * [1.001, 1.0, 1.0]),
    ],
    ids=["sign", "order", "a little", "divisor"],
)
def test_a_file_that_scores_otherwise_is_not_written(linear, monkeypatch, harm):
    monkeypatch.setattr("ranktron.export.exporting._import_engine", lambda place: Sabotaged(harm))
    with pytest.raises(DataError, match=r"does not score as the model does.*nothing is written"):
        export(linear(scaling=("standard", (1.0, 2.0, 3.0), (1.0, 1.0, 1.0))), "vespa")


def test_a_shift_is_no_harm_to_an_order(linear, monkeypatch):
    lifted = Sabotaged(lambda ranker: replace(ranker, constant=3.0))
    monkeypatch.setattr("ranktron.export.exporting._import_engine", lambda place: lifted)
    assert export(linear(), "vespa").check.swapped == 0


class TestStumps:
    @pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
    def test_boosted_stumps_become_trees_to_the_last_threshold(self, scaling):
        model = trained("rankboost", {"n_rounds": 60}, scaling)
        learner = model.learner()
        edges = self.around_thresholds(model, learner)
        for to in ("solr", "elasticsearch", "opensearch", "vespa", "onnx", "json"):
            for data in (None, LISTS, edges):
                exported = export(model, to, data=data)
                assert exported.check.swapped == 0
            assert any("small trees" in note for note in exported.notes)
        for to in ("vespa-inputs", "vespa-weights"):
            with pytest.raises(DataError, match="export to vespa"):
                export(model, to)

    def around_thresholds(self, model, learner):
        """Documents whose features are 32-bit neighbours of the thresholds, unscaled."""
        shift, divisor = (model.scaler.shift, model.scaler.divisor) if model.scaler else (np.zeros(8), np.ones(8))
        values = np.float32(learner.thresholds * divisor[learner.features] + shift[learner.features])
        rows = []
        for feature, value in zip(learner.features, values, strict=True):
            for near in (value, np.nextafter(value, np.float32(9e9)), np.nextafter(value, np.float32(-9e9))):
                row = LISTS.X[0].copy()
                row[feature] = near
                rows.append(row)
        return Rounds.from_arrays(np.array(rows), np.zeros(len(rows)))

    def test_they_are_lifted_above_zero_on_lucene(self):
        model = trained("rankboost", {"n_rounds": 30})
        trees = json.loads(export(model, "elasticsearch").content)["model"]["model"]["definition"]
        lift = trees[0]["leaf"]
        worst = sum(min(0.0, tree["children"][1]["leaf"]) for tree in trees[1:])
        assert 0.0 < lift <= -worst + 1e-6
        assert lift + model.predict(LISTS.X).min() > -1e-6
        with pytest.raises(DataError, match="constant of their own"):
            export(model, "solr", one="one")

    def test_scaling_within_lists_is_refused(self):
        with pytest.raises(DataError, match="within each list"):
            export(trained("rankboost", {"n_rounds": 3}, "minmax-query"), "solr")


def test_a_model_from_a_file_exports_the_same(tmp_path):
    model = trained("listnet")
    model.save(tmp_path / "m")
    again = Model.from_bytes((tmp_path / "m").read_bytes())
    assert export(again, "solr").content == export(model, "solr").content


@pytest.mark.data
@pytest.mark.parametrize("name", ["mslr-sample/valid.txt.gz", "ohsumed-letor3/Fold1/vali.txt.gz"])
def test_real_lists_keep_their_order(data_dir, name):
    """Features up to 10⁷ beside others below 1, as they come: standardised, no pair changes places on any engine."""
    lists = read(data_dir / name)
    for algorithm in ("slam", "ranksvm", "rankboost"):
        model = train(TrainingPlan(algorithm, scaling="standard"), lists).model
        for to in TARGETS:
            if algorithm != "rankboost" or to not in ("vespa-inputs", "vespa-weights"):
                check = export(model, to, data=lists).check
                assert check.pairs > 10_000
                assert check.swapped <= 2, to


def test_the_targets_that_can_compute_a_model_are_those_that_take_it():
    lists = LISTS[:20]
    plans = [
        TrainingPlan("hinge", scaling=scaling, nan=nan, map=map)
        for scaling, nan, map in (
            (None, "error", None), ("standard", "error", None), ("minmax-query", "error", None),
            ("standard-query", "error", None), ("standard", "mean", None), (None, "zero", None),
            ("minmax-query", "mean", None), (None, "error", "bins:4"),
        )
    ]  # fmt: skip
    plans += [TrainingPlan("rankboost", {"n_rounds": 3}), TrainingPlan("committee"), TrainingPlan("kernel")]
    found = set()
    for plan in plans:
        model = replace(train(plan, lists).model, feature_names=tuple("abcdefgh"))
        targets = exportable_to(model)
        found.add(targets)
        for to in TARGETS:
            if to in targets:
                export(model, to)
            else:
                with pytest.raises(DataError):
                    export(model, to)
    assert ("vespa",) in found
    assert () in found
    assert tuple(TARGETS) in found
    assert ("vespa", "onnx", "json") in found


def test_a_model_that_scales_within_lists_leads_to_the_command_that_helps():
    model = train(TrainingPlan("slam", scaling="standard-query"), LISTS[:20]).model
    with pytest.raises(DataError, match="`ranktron train DATA --algo slam --exportable --model FILE`"):
        export(model, "solr")
