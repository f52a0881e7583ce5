"""Vespa: rank profiles, with the weights as constants or as query inputs.

A profile is a file `schemas/SCHEMA/NAME.profile` of the application package. Weights as constants need a deployment for
every new model; weights as query inputs (`VespaInputs`) are deployed once, and each query, or a query profile, has the
parameters that `VespaWeights` writes. A model that scales within each query becomes a global phase, the only phase of
these engines that sees all documents of the query.

Features are rank features by their own names (`bm25(title)`) or functions of the application. Any other name, such as
the number of a column, becomes a function that reads the attribute `feature_NAME`: edit it, or rename the features.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import numpy as np

from ranktron.errors import DataError
from ranktron.export.engine import as_json
from ranktron.export.ranker import LinearRanker
from ranktron.export.vespa_profile import Profile
from ranktron.types import Floats, Integers, Matrix

_FEATURE = re.compile(r"[A-Za-z_]\w*(\([^(){}]*\))?(\.\w+)*")
_NAME = re.compile(r"[A-Za-z_][\w-]*")


class Vespa:
    """A rank profile whose weights are constants."""

    keeps_constant = True
    scales_lists = True
    handles_missing = True
    lucene = False
    double = True

    def why_folded(self, ranker: LinearRanker) -> str:
        return ""

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        parameters = _parameters(ranker)
        constants = [f"{weight}: {format_number(value)}" for weight, value in parameters.items()]
        return _profile(name, ranker, _block("constants", constants), list(parameters))

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        return Profile.of(file.decode()).scores(rank_features(names, X), offsets)


class VespaInputs:
    """A rank profile whose weights are query inputs, with the current ones as defaults."""

    keeps_constant = True
    scales_lists = False
    handles_missing = False
    lucene = False
    double = True

    def why_folded(self, ranker: LinearRanker) -> str:
        return "later models, whose scaling may differ, use the same profile"

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        inputs = {f"query({weight})": value for weight, value in _parameters(ranker).items()}
        lines = [f"{weight} double: {format_number(value)}" for weight, value in inputs.items()]
        return _profile(name, ranker, _block("inputs", lines), list(inputs))

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        return Profile.of(file.decode()).scores(rank_features(names, X), offsets)


class VespaWeights:
    """The parameters of a query to the profile of `VespaInputs`."""

    keeps_constant = True
    scales_lists = False
    handles_missing = False
    lucene = False
    double = True

    def why_folded(self, ranker: LinearRanker) -> str:
        return "the parameters belong to a profile whose weights are query inputs"

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return []

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        parameters = {f"input.query({weight})": value for weight, value in _parameters(ranker).items()}
        return as_json({"ranking.profile": _check_name(name), **parameters})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        """The scores of a profile with default weights of 0, given these parameters."""
        parameters = json.loads(file)
        inputs = {key.removeprefix("input."): value for key, value in parameters.items() if key.startswith("input.")}
        zero = np.zeros(len(names))
        blank = LinearRanker(names, zero, zero, zero + 1.0, "none", 0.0)
        profile = VespaInputs().write(blank, parameters["ranking.profile"], None)
        return Profile.of(profile.decode()).scores(rank_features(names, X), offsets, inputs)


def _remarks(ranker: LinearRanker) -> list[str]:
    if ranker.fill is not None:
        note = "the profile takes NaN for missing, as float and double attributes without a value are"
        return [
            f"{note}; integer attributes and text features such as bm25 are never NaN",
            *remarks_on(ranker.names),
        ]
    if ranker.scaling != "minmax-query":
        return remarks_on(ranker.names)
    rerank = "features are scaled within the hits that the global phase reranks (rerank-count, 100 by default)"
    return [f"{rerank}; the other hits keep their first-phase score", *remarks_on(ranker.names)]


def remarks_on(names: tuple[str, ...]) -> list[str]:
    """A note on features that are read from attributes, because their names are not rank features."""
    attributes = [feature for feature, name in zip(feature_expressions(names), names, strict=True) if feature != name]
    if not attributes:
        return []
    return [
        f"{len(attributes)} of the features are not named like rank features, and become functions of attributes "
        f"({attributes[0]}, ...): edit these, or give the features their names in Vespa (--features)"
    ]


def _profile(name: str, ranker: LinearRanker, definitions: list[str], weights: list[str]) -> bytes:
    intercept, *weights = weights
    features, missing = feature_expressions(ranker.names), ranker.missing()
    filled = features if missing is None else [_fill_missing(f, x) for f, x in zip(features, missing[0], strict=True)]
    numbers = zip(weights, filled, ranker.shift, ranker.divisor, strict=True)
    terms = [f"{weight} * {_normalise(ranker.scaling, feature, a, b)}" for weight, feature, a, b in numbers]
    if missing is not None:
        missing_offsets = zip(features, missing[1], strict=True)
        terms += [f"{format_number(x, brackets=True)} * isNan({feature})" for feature, x in missing_offsets if x]
    globally = ranker.scaling == "minmax-query"
    return profile_text(name, ranker.names, definitions, [intercept, *terms], globally=globally)


def profile_text(
    name: str, names: tuple[str, ...], definitions: list[str], terms: list[str], *, globally: bool
) -> bytes:
    """A rank profile whose score is the sum of the terms."""
    features = feature_expressions(names)
    sums = [*(f"{term} +" for term in terms[:-1]), terms[-1]]
    body = [
        line
        for feature, name_in_model in zip(features, names, strict=True)
        if feature != name_in_model
        for line in _block(f"function {feature}()", [f"expression: attribute({feature})"])
    ]
    body += definitions
    body += _block("global-phase" if globally else "first-phase", _block("expression", sums))
    if globally:  # computed on the content nodes, and sent with the hits
        body += _block("match-features", features)
    return "\n".join([*_block(f"rank-profile {_check_name(name)} inherits default", body), ""]).encode()


def _fill_missing(feature: str, fill: float) -> str:
    """A feature with NaN replaced by a number; float and double attributes without a value are NaN in Vespa."""
    return f"if (isNan({feature}) > 0, {format_number(fill, brackets=True)}, {feature})"


def _normalise(scaling: str, feature: str, shift: float, divisor: float) -> str:
    if scaling == "none":
        return feature
    if scaling == "minmax-query":
        return f"normalize_linear({feature})"
    return f"(({feature} - {format_number(shift, brackets=True)}) / {format_number(divisor)})"


def _parameters(ranker: LinearRanker) -> dict[str, float]:
    """The constant and the weights, with names that differ from those of features."""
    words = ["intercept", *(f"w_{_word(name)}" for name in ranker.names)]
    values = [ranker.constant, *ranker.weights.tolist()]
    return dict(zip(_distinct(words, feature_expressions(ranker.names)), values, strict=True))


def rank_features(names: tuple[str, ...], X: Matrix) -> dict[str, Floats]:
    """The rank features of documents, by name."""
    features = zip(feature_expressions(names), names, strict=True)
    keys = [feature if feature == name else f"attribute({feature})" for feature, name in features]
    return {key: X[:, j].astype(float) for j, key in enumerate(keys)}


def feature_expressions(names: tuple[str, ...]) -> list[str]:
    """The name of each feature in the expression."""
    plain = [name if _FEATURE.fullmatch(name) else f"feature_{_word(name)}" for name in names]
    return _distinct(plain)


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")


def _distinct(words: list[str], taken: Iterable[str] = ()) -> list[str]:
    """The same words, made unique by numbers."""
    used, result = set(taken), []
    for word in words:
        unique, number = word, 2
        while unique in used or (unique != word and unique in words):
            unique, number = f"{word}_{number}", number + 1
        used.add(unique)
        result.append(unique)
    return result


def _block(header: str, lines: Iterable[str]) -> list[str]:
    return [f"{header} {{", *(f"    {line}" for line in lines), "}"]


def format_number(value: float, *, brackets: bool = False) -> str:
    """A number with a decimal point, as schema files require; a negative one in brackets after another sign.

    >>> format_number(1e-7), format_number(-2, brackets=True)
    ('1.0e-07', '(-2.0)')
    """
    mantissa, exponent, power = repr(float(value)).partition("e")
    text = (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
    return f"({text})" if brackets and value < 0.0 else text


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise DataError(f"{name!r} cannot name a rank profile: letters, digits, _ and -, not beginning with a digit")
    return name
