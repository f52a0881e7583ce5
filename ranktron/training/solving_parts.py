"""Batch solvers on parts: each part is prepared once and stays where it is; small sums travel."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.learners.batch.cut_points import merge_bins
from ranktron.learners.batch.rank_boost import Stumps, boost
from ranktron.learners.batch.rank_mm import run_passes
from ranktron.learners.batch.rank_svm import UNFINISHED
from ranktron.learners.pairwise.learner import Pairwise
from ranktron.learners.pairwise.passes import solve_pairs
from ranktron.learners.schedule import Fit
from ranktron.metrics import Metric
from ranktron.training.model import Model
from ranktron.training.pairwise_parts import ShardPasses
from ranktron.training.parts import keep, on_prepared, prepare_part
from ranktron.training.rank_boost_parts import BinnedQueries, PartsBoosting, bin_queries, describe_part
from ranktron.training.rank_mm_parts import run_on_parts
from ranktron.training.rank_svm_parts import solve_parts
from ranktron.types import Floats, State

if TYPE_CHECKING:
    from ranktron.training.distributed import PartData


def solve_on_parts(data: PartData, model: Model, fit: Fit, shards: Sequence[range], metrics: Sequence[Metric]) -> State:
    """The state of a batch learner that is solved for all parts together.

    Parameters
    ----------
    data : PartData
        The parts and the workers.
    model : Model
        The untrained model.
    fit : Fit
        The run: its validation set, and the state to start from.
    shards : sequence of range
        The parts that are visited one after the other, beside those of other shards.
    metrics : sequence of Metric
        Computed on the validation set, beside the one that selects.
    """
    if model.kind == "ranksvm":
        return _solve_rank_svm(data, model, fit, metrics)
    if model.kind == "rankboost":
        return _solve_rank_boost(data, model, fit)
    if model.kind == "rankmm":
        return run_passes(fit, model.parameters, run_on_parts(data, model, shards))
    if model.kind in ("pairwise", "committee"):
        return _solve_pairs(data, model, fit, shards)
    raise DataError(f"{model.kind} solves for all queries at once, and not in passes over parts")


def _solve_pairs(data: PartData, model: Model, fit: Fit, shards: Sequence[range]) -> State:
    if fit.start and len(shards) > 1:
        raise DataError(
            f"{model.kind} cannot be continued in several shards, because it does not keep what each of them learnt: "
            "train it from scratch, or continue it in one shard"
        )
    learner = cast(Pairwise, model.blank_learner())
    return solve_pairs(learner, fit, model.parameters, ShardPasses(data, model, shards, fit.schedule))


def _solve_rank_svm(data: PartData, model: Model, fit: Fit, metrics: Sequence[Metric]) -> State:
    token = secrets.token_hex(8)

    def each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return data.map(on_prepared, token, data.features, model, function, *arguments)

    with fit.running():
        found = solve_parts(each, model.n_filled, dict(model.parameters), lambda: fit.stopping)
    history = fit.history
    if not found.converged:
        history.remarks[UNFINISHED] = found.iterations
    history.epoch, history.rounds = 1, fit.queries
    state = {"coef": found.w, "constant": 0.0}
    fit.judge(lambda checked: linear_scores(checked.X, found.w), lambda: state, metrics)
    return state


def _solve_rank_boost(data: PartData, model: Model, fit: Fit) -> State:
    balance = model.parameters["balance"]
    described = data.map(_describe, data.features, model, balance)
    cuts = merge_bins([bins for bins, _ in described])
    start = {**Stumps(model.n_filled).state(), **fit.start}
    sent = data.workers.submit(keep, cuts, home=data.homes[0])  # once, and not with the task of each part
    binned = data.hold(_bin, data.features, model, balance, sent, start)
    boosting = PartsBoosting(binned.map_homes, cuts, [weights for _, weights in described])
    return boost(fit, model.parameters["n_rounds"], boosting)


def _describe(part: Any, features: Any, model: Model, balance: str) -> Any:
    return describe_part(prepare_part(part, features, model), balance)


def _bin(part: Any, features: Any, model: Model, balance: str, cuts: Floats, start: State) -> BinnedQueries:
    return bin_queries(prepare_part(part, features, model), balance, cuts, start)
