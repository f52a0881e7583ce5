"""Validation and completion of experiments' definitions."""

from __future__ import annotations

from random import SystemRandom

import msgspec
from msgspec import structs

from ranktron.errors import DataError
from ranktron.metrics import Metric, metric
from ranktron.store.errors import RequestError
from ranktron.store.experiments.arms import MAX_OPTIMIZED, Rankers, kept_model
from ranktron.store.experiments.messages import ExperimentDefinition

_BOUNDED = ("mrr", "ndcg", "err", "p", "map")


def check_definition(definition: ExperimentDefinition, rankers: Rankers) -> None:
    """Refuses an invalid definition, and arms that do not exist or do not match."""
    for find_problem in (_arms_problem, _method_problem, _shares_problem, _metric_problem, _guard_problem):
        problem = find_problem(definition)
        if problem:
            raise RequestError(422, "bad_experiment", problem)
    rankers_of_arms = [rankers.live(arm.ranker) for arm in definition.arms]
    first = rankers_of_arms[0]
    for arm, live in zip(definition.arms, rankers_of_arms, strict=True):
        if arm.version is not None:
            kept_model(live, arm.version)
        if live.names != first.names:
            message = f"{arm.ranker!r} and {definition.arms[0].ranker!r} have different features"
            raise RequestError(422, "bad_experiment", f"{message}: they cannot share lists")
    if definition.method == "apprentice" and first.learns == "nothing":
        message = f"{first.template.kind} was solved in one go: an apprentice has to learn"
        raise RequestError(422, "bad_experiment", message)


def _arms_problem(definition: ExperimentDefinition) -> str:
    arms = definition.arms
    if definition.method == "apprentice":
        return "" if len(arms) == 1 and arms[0].version is None else "an apprentice is one live ranker"
    if len(arms) < 2:
        return "an experiment compares two or more arms"
    if len({arm.label for arm in arms}) < len(arms):
        return "two arms are the same: name different rankers, or different versions of one"
    return ""


def _method_problem(definition: ExperimentDefinition) -> str:
    if definition.method == "optimized" and (len(definition.arms) > 2 or definition.k > MAX_OPTIMIZED):
        return f"optimized interleaving compares two arms, with k up to {MAX_OPTIMIZED}; team-draft has no such limits"
    return ""


def _shares_problem(definition: ExperimentDefinition) -> str:
    shares = definition.shares
    if shares is None:
        return ""
    if definition.method != "split":
        return f"only a split has shares: {definition.method} shows all arms equally often"
    if len(shares) != len(definition.arms):
        return f"{len(shares)} shares for {len(definition.arms)} arms: one for each is needed"
    total = sum(shares)
    return "" if abs(total - 1.0) < 1e-9 else f"the shares must add up to 1, not to {total:g}"


def _metric_problem(definition: ExperimentDefinition) -> str:
    try:
        measure: Metric = metric(definition.metric)
    except DataError as error:
        return str(error)
    if measure.name in _BOUNDED:
        return ""
    return f"{definition.metric} is not known to lie between 0 and 1: choose one of {', '.join(_BOUNDED)}"


def _guard_problem(definition: ExperimentDefinition) -> str:
    if definition.guard is None:
        return ""
    first, *others = definition.arms
    if definition.method != "split" or len(others) != 1:
        return "a guard needs a split of two arms: an incumbent version, and its live ranker"
    if first.version is None or others[0].version is not None or first.ranker != others[0].ranker:
        return (
            "the arms of a guard are a kept version of a ranker, the incumbent, and then the same ranker without a "
            "version: POST /v1/rankers/NAME/versions keeps the current version"
        )
    if definition.promote:
        return "a guard's ranker is promoted by POST .../promote: leave `promote` out"
    return ""


def complete_experiment(definition: ExperimentDefinition) -> ExperimentDefinition:
    """The definition with shares and a seed; a missing seed is drawn at random."""
    shares = definition.shares
    if definition.method == "split" and shares is None:
        shares = (1.0 / len(definition.arms),) * len(definition.arms)
    seed = SystemRandom().randrange(1 << 32) if definition.seed is None else definition.seed
    return structs.replace(definition, shares=shares, seed=seed)


def same_experiment(requested: ExperimentDefinition, existing: ExperimentDefinition) -> bool:
    """Whether a requested definition is that of an existing experiment; a missing seed matches any."""
    seed = existing.seed if requested.seed is None else requested.seed
    return structs.replace(complete_experiment(requested), seed=seed) == existing


def read_definition(data: bytes) -> ExperimentDefinition:
    return msgspec.json.decode(data, type=ExperimentDefinition)
