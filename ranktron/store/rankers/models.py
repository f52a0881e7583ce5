"""The models of rankers: untrained ones from definitions, and uploaded model files."""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs

from ranktron.data import serialization
from ranktron.data.maps.protocols import Explainable
from ranktron.data.scaling import PerQuery
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import as_dense
from ranktron.learners.base import BaseLearner
from ranktron.learners.kernelized.rows import stored_documents
from ranktron.learners.parameters import PRESETS
from ranktron.learners.per_user import MAX_USERS, per_user
from ranktron.learners.start import Start
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import CAPACITY
from ranktron.store.messages import Definition, ListScale
from ranktron.store.rankers.features import check_comparable, first_repeated
from ranktron.training.algorithms import algorithm, find_preset, stored_algorithm
from ranktron.training.model import Model
from ranktron.training.starting import linear_start, starting_algorithms
from ranktron.types import Feedback

_logger = logging.getLogger("ranktron.service")
MAX_HEADER = 3_000_000, 50_000  # bytes and values of a model's header
# From the scaling of an algorithm's preset to that of a ranker, which can only scale within lists.
_WITHIN_LISTS: dict[str, ListScale] = {"auto": "standard-query", "minmax": "minmax-query"}
MAX_ROUNDS = CAPACITY // 2  # of an uploaded model, so that round numbers are left for the ranker


def complete(definition: Definition) -> Definition:
    """A client's definition with default parameters and scaling filled in."""
    find_algorithm = stored_algorithm if definition.model else algorithm
    try:
        parameters = dict(find_algorithm(definition.algorithm).complete(definition.parameters))
    except DataError as error:
        raise RequestError(422, "bad_parameters", str(error)) from None
    scale = definition.scale
    if scale is None and not definition.model and definition.start is None:  # a model and a start have their own
        scale = _WITHIN_LISTS.get(find_preset(definition.algorithm, PRESETS[0])["scale"])
    return structs.replace(definition, parameters=parameters, scale=None if scale == "none" else scale)


def blank_model(definition: Definition, config: StoreConfig) -> Model:
    """The untrained model of a complete definition; refuses invalid definitions."""
    names = definition.features
    if len(names) > config.max_features:
        raise RequestError(
            413, "too_many_features", f"{len(names)} features; at most {config.max_features} are accepted"
        )
    if len(set(names)) < len(names):
        raise RequestError(422, "duplicate_feature", f"two features have the name {first_repeated(names)!r}")
    if not definition.labels[0] < definition.labels[1]:
        raise RequestError(422, "bad_labels", "labels must be [lowest, highest], the highest above the lowest")
    try:
        learner = stored_algorithm(definition.algorithm).learner(len(names), definition.parameters)
    except DataError as error:
        raise RequestError(422, "bad_parameters", str(error)) from None
    users = MAX_USERS if definition.per == "user" else 0
    try:
        learner = per_user(learner, users) if users else learner
    except DataError as error:
        raise RequestError(422, "bad_per", str(error)) from None
    _begin(learner, definition)
    if not learner.learns_online and not definition.model:
        raise RequestError(
            422,
            "not_online",
            f"{definition.algorithm} does not learn from feedback: train it with `ranktron train`, then PUT the model "
            "file here instead (Content-Type: application/octet-stream)",
        )
    scaler = None if definition.scale is None else PerQuery(len(names), definition.scale)
    model = Model(
        definition.algorithm,
        definition.parameters,
        learner.state(),
        len(names),
        feature_names=tuple(names),
        scaler=scaler,
        users=users,
    )
    if definition.close_after is not None and not learner.labels_received:
        why = f"{definition.algorithm} does not know what users saw: rounds without feedback teach it nothing"
        raise RequestError(422, "bad_close_after", f"{why}; leave `close_after` out")
    if definition.close_after is not None and definition.labels[0] > 0.0:
        raise RequestError(422, "bad_close_after", "a round that closes gains 0: the lowest of `labels` must be 0")
    if definition.close_after is not None and definition.close_after >= config.open_seconds:
        dropped = f"rounds are dropped after {config.open_seconds:g} seconds (`open_seconds`)"
        raise RequestError(422, "bad_close_after", f"{dropped}: `close_after` must be less")
    _check_usable(model, config, "bad_parameters")
    return model


def _begin(learner: BaseLearner, definition: Definition) -> None:
    """Starts a learner from the weights of a definition."""
    weights, trust = definition.start, definition.trust
    if weights is None and trust is None:
        return
    if not learner.begins:
        instead = f"take one of {', '.join(starting_algorithms())}"
        raise RequestError(422, "bad_start", f"{definition.algorithm} does not start from given weights: {instead}")
    try:
        start = linear_start({} if weights is None else weights, definition.features)
        learner.begin(Start(start.weights, inf if trust is None else trust))
    except DataError as error:
        raise RequestError(422, "bad_start", str(error)) from None


class NewStart(NamedTuple):
    """The learner to start from the weights of an uploaded model: an algorithm, `trust`, and how many users."""

    algorithm: str
    trust: float | None = None
    users: int = 0


class Upload(NamedTuple):
    """An uploaded model file, parsed and checked: the definition of its ranker, and the body of its entry.

    `rounds` is the number of rounds that the model has been trained on.
    """

    definition: Definition
    model: Model
    body: bytes
    rounds: int


def read_upload(data: bytes, definition: Definition | None, config: StoreConfig, new: NewStart | None = None) -> Upload:
    """Parses and checks a model file for an existing ranker, or for a new one if `definition` is None.

    With `new` the model is that of a learner which starts from the weights of the file.

    It may take seconds and has no side effects, so it may run on another thread.
    """
    try:
        model = _read_model(data, None if definition is None else len(definition.features), config)
        if new is not None:
            model = linear_start(model).model(new.algorithm, trust=new.trust, users=new.users)
            data = model.to_bytes()
        definition = _define(model, sha256(data).hexdigest()) if definition is None else definition
        model = _check_fits(model, definition, config)
        return Upload(definition, model, model.to_bytes(), model.learner().rounds)
    except RequestError:
        raise
    except DataError as error:
        raise RequestError(422, "bad_model", str(error)) from None
    except Exception as error:  # the content of a file is untrusted
        _logger.warning("a model was refused", exc_info=True)
        raise RequestError(422, "bad_model", f"the model cannot be used: {error or type(error).__name__}") from None


def _define(model: Model, digest: str) -> Definition:
    """The definition of a ranker made from a model; it must survive encoding and decoding."""
    definition = Definition(list(model.names), model.kind, dict(model.parameters), model=digest)
    try:
        return msgspec.json.decode(msgspec.json.encode(definition), type=Definition)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise RequestError(422, "bad_model", f"no ranker can be created from the model: {error}") from None


def encode_definition(definition: Definition) -> bytes:
    """A complete definition as stored in the journal."""
    return msgspec.json.encode(definition)


def _read_model(data: bytes, width: int | None, config: StoreConfig) -> Model:
    serialization.check_magic(data, "the model")
    if any(size > limit for size, limit in zip(serialization.header_size(data), MAX_HEADER, strict=True)):
        complaint = f"the header of the model has more than {MAX_HEADER[0]} bytes or {MAX_HEADER[1]} values"
        raise DataError(f"{complaint}: weights must be stored as arrays")
    n_features = serialization.deserialize(data, "the model").get("n_features")
    if width is None and isinstance(n_features, int) and n_features > config.max_features:
        raise DataError(f"the model has {n_features} features; at most {config.max_features} are accepted")
    if width is not None and n_features != width:
        raise DataError(f"the model has {n_features} features, the ranker {width}")
    return Model.from_bytes(data, "the model")


def _check_fits(model: Model, definition: Definition, config: StoreConfig) -> Model:
    """The model, checked to fit a ranker with the same features."""
    _check_map(model, config)
    names = tuple(definition.features)
    if model.feature_names not in (None, names):
        raise RequestError(422, "bad_model", "the features of the model have other names than those of the ranker")
    _check_usable(model, config, "bad_model")
    _check_support(model)
    if not 0 <= model.learner().rounds <= MAX_ROUNDS:
        raise RequestError(422, "bad_model", f"the model's number of rounds must be between 0 and {MAX_ROUNDS}")
    fitting = replace(model, feature_names=names, record={})
    _define(fitting, "")  # checks that its parameters can be shown
    return fitting


def _check_map(model: Model, config: StoreConfig) -> None:
    """Refuses feature maps that cannot be served: explanations need a contribution of each feature."""
    if model.map is None:
        return
    name, width = model.map.name, model.map.n_outputs
    if not isinstance(model.map, Explainable):
        complaint = (
            f"models with the map {name} are not served, only those with bins:N, bins-linear:N or leaves:N, or "
            "without one"
        )
    elif width > config.max_weights:
        complaint = (
            f"the map {name} makes {width} features of {model.n_features}; at most {config.max_weights} are accepted"
        )
    else:
        return
    raise RequestError(422, "bad_model", complaint)


def _check_support(model: Model) -> None:
    """Refuses kernel models whose documents overflow the kernel."""
    kernel = model.learner().kernel
    if kernel is None or model.map is not None:
        return
    X = as_dense(stored_documents(model.state, model.n_filled))
    if len(X):
        lengths = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        check_comparable(X[[np.argmax(lengths)]], kernel)  # the longest document bounds the kernel values of all


def _check_usable(model: Model, config: StoreConfig, code: str) -> None:
    """Ranks and learns once with a copy, so that overflow is found before anything is stored."""
    k = model.learner().labels_received or 1
    if k > config.max_k:
        raise RequestError(422, code, f"k must be at most {config.max_k}, not {k}")
    try:
        warm(model, k)
    except DataError:
        pass  # the learner refuses this list; requests get its error
    except (ArithmeticError, MemoryError, LookupError, TypeError, ValueError) as error:
        raise RequestError(422, code, f"these parameters do not work: {error}") from None


def warm(model: Model, k: int) -> None:
    """Warms up: loads all kernels that a request needs, with a temporary learner."""
    learner = model.learner()
    X = np.zeros((max(k, 3), model.n_filled), np.float32)
    if model.scaler is not None:
        model.scaler(X, np.array([0, len(X)]))
    X = X if model.map is None else model.map(X)
    ranking = learner.rank(X, 0)
    if learner.learns_online:
        feedback = Feedback(np.array([0, 1])[:k], np.array([1.0, 0.0])[:k])
        learner.learn_pending(learner.pending(X, ranking, 2), feedback)


def note_other_kind(name: str, before: str, now: str, version: int) -> str:
    """The note for a client whose upload changed the kind of the model."""
    back = f"; to go back, roll back to version {version}" if version else ""
    return f"ranker {name!r} was {before} and is now {now}: its open rounds were dropped{back}"
