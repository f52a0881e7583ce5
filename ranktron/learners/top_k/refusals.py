"""The error messages of RTop-kF, and the checks of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.errors import DataError
from ranktron.types import Feedback, Integers, Matrix, Ranking

if TYPE_CHECKING:
    from ranktron.learners.top_k.learner import TopK

NOT_SHOWN, TWICE, NO_LABEL, TOO_HIGH = 1, 2, 3, 4


def why_never_ranked(X: Matrix, ranking: Ranking) -> str:
    if ranking.propensities is None or ranking.number < 0:
        return (
            "feedback for a round that this learner never ranked: the ranking has no number or no propensities; "
            "pass to `learn` the ranking that `rank` returned"
        )
    m = ranking.scores.shape[0]
    if m != X.shape[0]:
        return f"the ranking was made for {m} documents, this query has {X.shape[0]}"
    return "the ranking was made by a learner with another k or surrogate: its propensities do not fit"


def why_feedback_refused(order: Integers, feedback: Feedback, wrong: int, where: int, k: int, highest: float) -> str:
    item, label = feedback.items[where], feedback.labels[where]
    if wrong == NOT_SHOWN:
        shown = ", ".join(map(str, order[:k]))
        return f"feedback for document {item}, which was not among the first {k} shown ({shown})"
    if wrong == TWICE:
        return f"feedback names document {item} twice"
    if wrong == NO_LABEL:
        return f"labels must be finite and >= 0; document {item} has {label}"
    return f"document {item} has label {label}, above the declared highest, {highest:g}"


def check_limits(learner: TopK) -> None:
    """Refuses settings that are invalid or, if the learner is strict, outside the theory."""
    gamma, half, price = learner.explore(0), learner.strict, learner.exploration_price
    if not 0.0 < gamma <= 1.0 or (half and gamma >= 0.5):
        allowed = "above 0 and below 1/2, as the theory needs it" if half else "above 0 and at most 1"
        raise DataError(f"the share of exploring rounds must be {allowed}; in the first round it is {gamma:g}")
    limits = {
        f"the radius must be above 0, not {learner.radius}": learner.radius > 0.0,
        f"a shortlist needs at least k = {learner.k} documents, not {learner.shortlist}": learner.shortlist == 0
        or learner.shortlist >= learner.k,
        f"the price of exploration must be at least 0 and at most 1, not {price}": 0.0 <= price <= 1.0,
        "a price and a floor of propensities cannot be combined: take one of them": price == 1.0
        or learner.floor == 0.0,
        f"the floor of propensities must be at least 0 and below 1, not {learner.floor}": 0.0 <= learner.floor < 1.0,
        f"the answered share must be above 0 and at most 1, not {learner.answered}": 0.0 < learner.answered <= 1.0,
        f"the highest label must be above 0, not {learner.highest}": learner.highest > 0.0,
        f"the seed must be 0 or more, not {learner.seed}": learner.seed >= 0,
    }
    for complaint, holds in limits.items():
        if not holds:
            raise DataError(complaint)
