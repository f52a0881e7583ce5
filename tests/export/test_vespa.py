"""Rank profiles: what they look like, and the little evaluator that reads them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError
from ranktron.export import export
from ranktron.export.vespa import feature_expressions, format_number
from ranktron.export.vespa_profile import Profile

OFFSETS = np.array([0, 2, 5])


def test_weights_as_constants(linear):
    model = linear((0.3, 0.5, -0.1), constant=1.5, names=("bm25(title)", "attribute(age)", "3"))
    assert export(model, "vespa", name="lin").content.decode() == (
        "rank-profile lin inherits default {\n"
        "    function feature_3() {\n"
        "        expression: attribute(feature_3)\n"
        "    }\n"
        "    constants {\n"
        "        intercept: 1.5\n"
        "        w_bm25_title: 0.3\n"
        "        w_attribute_age: 0.5\n"
        "        w_3: -0.1\n"
        "    }\n"
        "    first-phase {\n"
        "        expression {\n"
        "            intercept +\n"
        "            w_bm25_title * bm25(title) +\n"
        "            w_attribute_age * attribute(age) +\n"
        "            w_3 * feature_3\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


def test_weights_as_inputs_need_one_deployment(linear):
    """Today's profile with tomorrow's parameters ranks as tomorrow's model."""
    scaling = ("standard", (2.0, 0.0, 1.0), (4.0, 1.0, 2.0))
    today, tomorrow = linear(scaling=scaling), linear((2.0, -1.0, 0.25), scaling, constant=3.0)
    profile = export(today, "vespa-inputs", name="lin")
    assert "query(w_age) double: 0.5\n" in profile.content.decode()
    assert any("folded" in note for note in profile.notes)
    weights = json.loads(export(tomorrow, "vespa-weights", name="lin").content)
    assert weights["ranking.profile"] == "lin"
    assert weights["input.query(w_age)"] == -1.0
    given = {key.removeprefix("input."): value for key, value in weights.items() if key.startswith("input.")}
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    features = {name: X[:, j].astype(float) for j, name in enumerate(today.names)}
    scores = Profile.of(profile.content.decode()).scores(features, OFFSETS, given)
    assert scores == pytest.approx(tomorrow.predict(X), abs=1e-6)
    assert Profile.of(profile.content.decode()).scores(features, OFFSETS) == pytest.approx(today.predict(X), abs=1e-6)


def profile(expression, phase="first-phase", more=""):
    return f"rank-profile p inherits default {{\n{more}\n    {phase} {{\n expression {{ {expression} }}\n }}\n}}\n"


A, B = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.5, 0.5, -1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", np.full(5, 5.0)),
        ("-a + 2.5e-1", 0.25 - A),
        ("(a - (-1.0)) / 2", (A + 1) / 2),
        ("a - 1 - 1", A - 2),
        ("8 / 2 / 2 * a", 2 * A),
        ("-(a - b) * -2", 2 * (A - B)),
        ("if (a > 2, b, 0)", np.where(A > 2, B, 0)),
        ("2 * if (a > 2 + b, 1, -1)", 2 * np.where(A > 2 + B, 1, -1)),
        ("double_a + double_a()", 4 * A),
        ("k * query(weight)", np.full(5, 6.0)),
    ],
)
def test_expressions(expression, value):
    more = (
        "function double_a() { expression: 2 * a }\nconstants {\n k: 2.0\n }\n inputs {\n query(weight) double: 3.0\n }"
    )
    read = Profile.of(profile(expression, more=more))
    assert read.scores({"a": A, "b": B}, OFFSETS).tolist() == value.tolist()


def test_lists_are_scaled_in_the_global_phase_only():
    read = Profile.of(profile("10 * normalize_linear(a)", "global-phase"))
    assert read.scores({"a": np.array([3.0, 5.0, 7.0, 7.0, 7.0])}, OFFSETS).tolist() == [0.0, 10.0, 5.0, 5.0, 5.0]
    with pytest.raises(DataError, match="global phase"):
        Profile.of(profile("normalize_linear(a)")).scores({"a": A}, OFFSETS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (profile("a +"), "its end"),
        (profile("(a"), "found 'its end'"),
        (profile("a a"), "continues after"),
        (profile("nothing"), "does not define nothing"),
        (profile("if (a, 1, 2)"), "expected '>'"),
        ("schema p {\n}\n", "begins with rank-profile"),
        ("rank-profile p {\n", "not closed"),
    ],
)
def test_what_is_no_profile(text, words):
    with pytest.raises(DataError, match=words):
        Profile.of(text).scores({"a": A}, OFFSETS)


def test_inputs_that_the_profile_does_not_have():
    with pytest.raises(DataError, match=r"no input query\(b\)"):
        Profile.of(profile("1")).scores({}, OFFSETS, {"query(b)": 1.0})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_every_digit_and_a_point(value):
    text = format_number(value)
    assert float(text) == value
    assert "." in text
    if value < 0:
        assert format_number(value, brackets=True) == f"({text})"


@given(st.lists(st.text(max_size=6), max_size=6, unique=True))
def test_names_become_different_words(names):
    words = feature_expressions(tuple(names))
    assert len(set(words)) == len(names)


def test_names_that_clash_after_cleaning(linear):
    model = linear(names=("a b", "a-b", "feature_a_b"))
    exported = export(model, "vespa")
    assert exported.check.swapped == 0
    assert export(linear(names=("1", "w_1", "intercept")), "vespa").check.swapped == 0
