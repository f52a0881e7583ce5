"""Definitions of experiments: what makes sense, checked before anything is kept."""

from __future__ import annotations

from random import SystemRandom

import msgspec
from msgspec import structs

from ranktron.errors import DataError
from ranktron.metrics import Metric, metric
from ranktron.store.errors import RequestError
from ranktron.store.experiments.arms import Rankers, kept_model
from ranktron.store.experiments.interleaving import MOST_OPTIMIZED
from ranktron.store.experiments.types import ExperimentDefinition
from ranktron.store.rankers.live_ranker import LiveRanker

_MEASURES = ("mrr", "ndcg", "err", "p", "map")


def check_definition(definition: ExperimentDefinition, rankers: Rankers) -> None:
    """Refuses a definition that makes no sense, or whose arms are not there."""
    for problem in (_wrong_arms, _wrong_method, _wrong_shares, _wrong_metric, _wrong_guard):
        complaint = problem(definition)
        if complaint:
            raise RequestError(422, "bad_experiment", complaint)
    live = [rankers.live(arm.ranker) for arm in definition.arms]
    for arm, each in zip(definition.arms, live, strict=True):
        if arm.version is not None:
            kept_model(each, arm.version)
        if each.names != live[0].names:
            complaint = (
                f"{arm.ranker!r} and {definition.arms[0].ranker!r} have different features: they cannot share lists"
            )
            raise RequestError(422, "bad_experiment", complaint)
    if definition.method == "apprentice":
        _check_shadow(live[0])


def _check_shadow(live: LiveRanker) -> None:
    if live.learns == "nothing":
        complaint = f"{live.template.kind} was solved in one go: an apprentice has to learn"
        raise RequestError(422, "bad_experiment", complaint)


def _wrong_arms(definition: ExperimentDefinition) -> str:
    arms, alone = definition.arms, definition.method == "apprentice"
    if alone:
        return "" if len(arms) == 1 and arms[0].version is None else "an apprentice is one ranker, as it serves"
    if len(arms) < 2:
        return "an experiment compares two or more arms"
    if len({arm.label for arm in arms}) < len(arms):
        return "two arms are the same: name different rankers, or different versions of one"
    return ""


def _wrong_method(definition: ExperimentDefinition) -> str:
    if definition.method == "optimized" and (len(definition.arms) > 2 or definition.k > MOST_OPTIMIZED):
        return f"optimized interleaving compares two arms with k up to {MOST_OPTIMIZED} here; team-draft takes more"
    return ""


def _wrong_shares(definition: ExperimentDefinition) -> str:
    shares = definition.shares
    if shares is None:
        return ""
    if definition.method != "split":
        return f"only a split has shares: {definition.method} shows all arms alike"
    if len(shares) != len(definition.arms):
        return f"{len(shares)} shares for {len(definition.arms)} arms: one for each"
    total = sum(shares)
    return "" if abs(total - 1.0) < 1e-9 else f"the shares add up to {total:g}, and should add up to 1"


def _wrong_metric(definition: ExperimentDefinition) -> str:
    try:
        found: Metric = metric(definition.metric)
    except DataError as error:
        return str(error)
    if found.name in _MEASURES:
        return ""
    return f"{definition.metric} is not known to lie between 0 and 1: take one of {', '.join(_MEASURES)}"


def _wrong_guard(definition: ExperimentDefinition) -> str:
    if definition.guard is None:
        return ""
    first, *others = definition.arms
    if definition.method != "split" or len(others) != 1:
        return "a guard needs a split of two arms: the incumbent version, and the ranker that it is the incumbent of"
    if first.version is None or others[0].version is not None or first.ranker != others[0].ranker:
        return (
            "the arms of a guard are a kept version of a ranker, its incumbent, and then the same ranker as it serves: "
            "POST /v1/rankers/NAME/versions keeps the present version"
        )
    if definition.promote:
        return "with a guard, promotion is asked for: POST .../promote, and leave `promote` out"
    return ""


def complete_experiment(definition: ExperimentDefinition) -> ExperimentDefinition:
    """The definition with its shares and seed, which are drawn once."""
    shares = definition.shares
    if definition.method == "split" and shares is None:
        shares = (1.0 / len(definition.arms),) * len(definition.arms)
    seed = SystemRandom().randrange(1 << 32) if definition.seed is None else definition.seed
    return structs.replace(definition, shares=shares, seed=seed)


def same_experiment(asked: ExperimentDefinition, known: ExperimentDefinition) -> bool:
    """Whether a definition asks for the experiment that there is."""
    return structs.replace(complete_experiment(asked), seed=known.seed if asked.seed is None else asked.seed) == known


def read_definition(data: bytes) -> ExperimentDefinition:
    return msgspec.json.decode(data, type=ExperimentDefinition)
