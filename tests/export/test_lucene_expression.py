"""Lucene itself compiles the expressions, and sorts as the model does."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Model, Rounds
from ranktron.data.synthetic import WebSearch
from ranktron.export import export
from ranktron.export.curves import Curve, CurveRanker
from ranktron.export.lucene_expression import MAX_BYTES, ExpressionReader, LuceneExpression
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train

JARS = ("lucene-core", "lucene-expressions", "antlr4-runtime", "asm", "asm-commons", "asm-tree")
LISTS = WebSearch(features=6, documents=25).rounds(40)
MODELS = {
    "linear": ("ranksvm", None, "none"),
    "linear, standardised": ("ranksvm", None, "standard"),
    "linear, minmax": ("listnet", None, "minmax"),
    "bins": ("hinge", "bins:8", "none"),
    "bins, standardised": ("hinge", "bins:16", "standard"),
    "bins-linear": ("hinge", "bins-linear:8", "none"),
    "bins-linear, minmax": ("hinge", "bins-linear:8", "minmax"),
    "stumps": ("rankboost", None, "standard"),
}


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    """Sorts documents by an expression with Lucene: (order, scores in the order of the input), or skip."""
    places = [sorted(Path("/usr/share/java").glob(f"{name}-[0-9]*.jar")) for name in JARS]
    if shutil.which("javac") is None or not all(places):
        pytest.skip("no Lucene: install liblucene8-java, libantlr4-runtime-java, libasm-java and default-jdk-headless")
    folder = tmp_path_factory.mktemp("lucene")
    path = ":".join([*(str(found[-1]) for found in places), str(folder)])
    program = Path(__file__).parent / "LuceneExpression.java"
    subprocess.run(["javac", "-cp", path, "-d", folder, program], check=True, capture_output=True)

    def sort(source, names=(), X=None):
        (folder / "source").write_text(source)
        lines = [] if X is None else [names, *[["" if np.isnan(v) else repr(float(v)) for v in row] for row in X]]
        rows = "".join("\t".join(line) + "\n" for line in lines)
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", path, "LuceneExpression", folder / "source"]
        done = subprocess.run(command, input=rows, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        order = np.array([int(number) for number, _ in lines], int)
        scores = np.empty(len(order))
        scores[order] = [float(score) for _, score in lines]
        return order, scores

    return sort


def trained(name, map=None, scaling="none"):
    return train(TrainingPlan(name, schedule=Schedule(3), scaling=scaling, map=map), LISTS).model


def source_of(exported):
    script = json.loads(exported.content)["script"]
    assert script.keys() == {"lang", "source"}
    assert script["lang"] == "expression"
    return script["source"]


def exact_scores(model, X):
    """The scores in double precision: the model itself rounds what it has scaled to 32-bit floats."""
    scaled = (X.astype(float) - model.scaler.shift) / model.scaler.divisor
    return scaled @ model.coef


@pytest.mark.parametrize("kind", MODELS)
def test_lucene_scores_and_sorts_as_the_model_does(lucene, kind):
    model = trained(*MODELS[kind])
    X = LISTS.X[:500]
    wanted = model.predict(X)
    assert wanted.std() > 0.0
    order, scores = lucene(source_of(export(model, "lucene-expression", data=LISTS)), model.names, X)
    size = np.abs(wanted).max()
    if model.scaler is None or kind == "bins, standardised" or kind == "stumps":
        # in bins-linear the model rounds where a value lies between its knots to 32-bit floats
        assert np.abs(scores - wanted).max() <= (1e-9 if kind != "bins-linear" else 1e-6) * size
    elif model.map is None:
        exact = exact_scores(model, X)
        shift = scores - exact - model.learner().constant
        assert np.abs(shift).max() <= 1e-9 * size
    assert np.abs(scores - wanted).max() <= 1e-5 * size
    # the order is that of the scores as Lucene has them, and the model's but for what rounding ties
    np.testing.assert_array_equal(order, np.argsort(-scores, kind="stable"))
    apart = np.diff(wanted[order])
    assert apart.max() <= 2.0 * np.abs(scores - wanted).max()


def test_lucene_gives_the_scores_of_the_evaluator_to_the_last_bit(lucene):
    for kind in ("linear, standardised", "bins-linear, minmax"):
        exported = export(trained(*MODELS[kind]), "lucene-expression")
        columns = {f"doc['{j + 1}'].value": LISTS.X[:200, j].astype(float) for j in range(6)}
        _, scores = lucene(source_of(exported), [str(j + 1) for j in range(6)], LISTS.X[:200])
        np.testing.assert_array_equal(scores, ExpressionReader(source_of(exported), columns).value())


def test_names_of_fields_may_hold_anything_and_missing_ones_count_as_0(lucene):
    names = ('it\'s \\ "odd"', "a.b-c", "ü")
    state = {"coef": np.array([0.5, -2.0, 1e-30]), "constant": 0.25}
    model = Model("linear", {}, state, 3, feature_names=names)
    X = np.array([[1.0, 2.0, 3e30], [4.0, np.nan, 0.0]], np.float32)
    _, scores = lucene(source_of(export(model, "lucene-expression")), names, X)
    np.testing.assert_allclose(scores, [0.5 - 4.0 + float(np.float32(3e30)) * 1e-30 + 0.25, 2.25], rtol=1e-12)


def largest(ranker_of):
    """The longest expression that is written: of 2,400, 2,360, ... terms the first that is not refused."""
    for count in range(2400, 0, -40):
        try:
            return json.loads(LuceneExpression().write(ranker_of(count), "m", None))["script"]["source"]
        except DataError:
            continue
    raise AssertionError


def of_weights(count):
    weights = np.random.default_rng(0).normal(size=count)
    lines = {j: Curve(np.empty(0), np.zeros(1), weights[j : j + 1], np.zeros(1)) for j in range(count)}
    return CurveRanker(tuple(map(str, range(count))), lines, 0.0, np.zeros(count))


def of_steps(count):
    values = np.random.default_rng(0).normal(size=count)
    curve = Curve(np.arange(1.0, count), values, np.zeros(count), np.zeros(count))
    return CurveRanker(("a",), {0: curve}, 0.0, np.zeros(1))


@pytest.mark.parametrize("ranker_of", [of_weights, of_steps])
def test_whatever_is_written_compiles_and_what_is_larger_is_refused(lucene, ranker_of):
    source = largest(ranker_of)
    assert MAX_BYTES - 3000 < len(source) <= MAX_BYTES
    lucene(source)  # no error
    with pytest.raises(DataError, match="bytes for 2,400 terms, more than the 65,535 bytes"):
        LuceneExpression().write(ranker_of(2400), "m", None)


def test_sums_are_written_as_trees_because_long_chains_overflow_the_compiler(lucene):
    with pytest.raises(RuntimeError, match="StackOverflow"):
        lucene(" + ".join(f"0.5 * doc['{j}'].value" for j in range(2500)))


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
def test_bins_change_exactly_at_their_edges(scaling):
    model = trained("hinge", "bins:8", scaling)
    shift = np.zeros(6) if scaling == "none" else model.scaler.shift
    divisor = np.ones(6) if scaling == "none" else model.scaler.divisor
    rows = []
    for j in range(6):
        for edge in model.map.edges[j][np.isfinite(model.map.edges[j])]:
            near = np.float32(shift[j] + divisor[j] * float(edge))
            around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
            rows += [np.where(np.arange(6) == j, value, LISTS.X[0]).astype(np.float32) for value in around]
    X = np.array(rows)
    exported = export(model, "lucene-expression", data=Rounds.from_arrays(X, np.zeros(len(X)), qid=0))
    columns = {f"doc['{j + 1}'].value": X[:, j].astype(float) for j in range(6)}
    found = ExpressionReader(source_of(exported), columns).value()
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9, atol=1e-12)


def test_what_is_no_sum_of_curves_is_refused():
    with pytest.raises(DataError, match=r"products:3, which is not a sum of curves.*bins"):
        export(trained("hinge", "products:3"), "lucene-expression")
    with pytest.raises(DataError, match="scales features within each list"):
        export(trained("hinge", scaling="minmax-query"), "lucene-expression")
    with pytest.raises(DataError, match="standardises features within each list"):
        export(trained("hinge", "bins:4", "standard-query"), "lucene-expression")
    with pytest.raises(DataError, match="constant of its own"):
        export(trained("hinge"), "lucene-expression", one="always")
    with pytest.raises(DataError, match="has no weights"):
        export(trained("kernel"), "lucene-expression")


def test_other_engines_still_refuse_maps():
    with pytest.raises(DataError, match="lucene-expression"):
        export(trained("hinge", "bins:4"), "elasticsearch")


def test_negative_scores_are_warned_of():
    model = Model("linear", {}, {"coef": np.array([1.0, -2.0]), "constant": 0.0}, 2)
    data = Rounds.from_arrays([[0.0, 1.0], [1.0, 3.0]], [0, 1], qid=0)
    (warning,) = export(model, "lucene-expression", data=data).warnings
    assert "negative, down to -6, which script_score refuses" in warning
    lifted = replace(model, state={"coef": np.array([1.0, 2.0]), "constant": 0.0})
    assert export(lifted, "lucene-expression", data=data).warnings == ()


@pytest.mark.parametrize("source", ["1.0 +", "(1.0", "doc['b'].value", "1.0 ? 2.0", "1.0 / 2.0", "1.0 1.0"])
def test_the_evaluator_refuses_what_it_does_not_know(source):
    with pytest.raises(ranktron.DataError, match="the expression"):
        ExpressionReader(source, {"doc['a'].value": np.ones(1)}).value()
