"""Requests and answers of experiments: msgspec types that decode, validate, encode and document."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ranktron.store.messages import Name, Number, RankRequest, RequestBody, ResponseBody

Method = Literal["split", "team-draft", "optimized", "sample-scored", "apprentice"]


class ArmDefinition(RequestBody):
    """A live ranker, or a kept version of one."""

    ranker: Name
    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None

    @property
    def label(self) -> str:
        """The ranker's name, with the version of a kept one.

        >>> ArmDefinition("shop", 7).label
        'shop:7'
        """
        return self.ranker if self.version is None else f"{self.ranker}:{self.version}"


class GuardDefinition(RequestBody):
    """Rolls the second arm back to the first when it is worse by more than the tolerance."""

    tolerance: Annotated[float, Meta(ge=0.0, lt=1.0, description="loss in the metric that is still accepted")]
    run_length: Annotated[
        float, Meta(gt=1.0, le=1e12, description="expected number of users until a false alarm, at least")
    ] = 100_000.0
    period: Annotated[
        float, Meta(ge=1.0, description="seconds after which a user is assigned again, and counts again")
    ] = 86_400.0


class ExperimentDefinition(RequestBody):
    """Two or more arms, the method of comparison, and when it ends. The first arm is the one in service today."""

    arms: Annotated[tuple[ArmDefinition, ...], Meta(min_length=1, max_length=8)]
    method: Annotated[
        Method,
        Meta(description="one arm for each user (split), interleaved pages, or the client's own order (apprentice)"),
    ] = "split"
    shares: Annotated[
        tuple[Annotated[float, Meta(ge=0.01, le=0.99)], ...] | None,
        Meta(description="each arm's share of the users of a split; equal by default"),
    ] = None
    metric: Annotated[
        str, Meta(max_length=100, description="metric of a split, between 0 and 1, computed from the feedback")
    ] = "mrr"
    k: Annotated[int, Meta(ge=1, le=50, description="documents from the top that count")] = 10
    level: Annotated[float, Meta(ge=1e-6, le=0.5, description="probability of a wrong verdict, at most")] = 0.05
    users: Annotated[int, Meta(ge=1, le=2**53, description="users after which it ends, decided or not")] | None = None
    promote: Annotated[bool, Meta(description="whether the winner is shown to all users")] = False
    seed: Annotated[Number | None, Meta(description="of assignments and interleavings; random by default")] = None
    close_after: (
        Annotated[
            float,
            Meta(gt=0.0, description="seconds after which a round without feedback counts as one without any gain"),
        ]
        | None
    ) = None
    guard: GuardDefinition | None = None


class ExperimentRankRequest(RankRequest):
    """A list to rank for a user; the same user sees the same arm. Without `user`, each round counts as a new user.

    In apprentice mode, `shown` has the ids in the order of the client's own system.
    """

    shown: list[Name] | None = None


class Placed(ResponseBody):
    """A document and its position, from 1."""

    id: str
    position: int


class ExperimentRankAnswer(ResponseBody):
    """The ranking to show, and the `round` for its feedback. `arm` is null for an interleaved page.

    In apprentice mode, `ranking` is the shadow ranker's order, which is not shown.
    """

    round: int
    ranking: list[Placed]
    arm: str | None


class ExperimentFeedbackAnswer(ResponseBody):
    """Whether the round counts in the comparison, and whether the arm shown has learnt from it."""

    counted: bool
    learned: bool


class SequencePoint(ResponseBody):
    """A point of a confidence sequence: number of users, mean difference, and confidence limits."""

    users: int
    mean: float
    low: float
    high: float


class ArmAnswer(ResponseBody):
    """An arm, its share of the users, its users counted so far, and their mean of the metric; null where undefined."""

    arm: str
    share: float | None
    users: int
    mean: float | None


class PairAnswer(ResponseBody):
    """The difference of two arms, second minus first: within `interval`, at all times, with probability 1 - `level`.

    `better` is the better arm, decided after `decided_after` users; both are null while undecided.
    """

    first: str
    second: str
    users: int
    difference: float
    interval: tuple[float, float]
    level: float
    better: str | None
    decided_after: int | None
    curve: list[SequencePoint]


class GuardAnswer(ResponseBody):
    """A guard's evidence of harm, which raises the alarm at `run_length`, and whether the ranker can be promoted.

    `alarm` is the number of users at the alarm.
    """

    evidence: float
    run_length: float
    tolerance: float
    alarm: int | None
    promotable: bool


class AgreementAnswer(ResponseBody):
    """Apprentice mode: how often the shadow ranker agrees with the order shown, and the reward where it does.

    `not_identified` is the share of rounds with another page: the reward of an order never shown is unknown.
    """

    rounds: int
    same_first: float | None
    same_page: float | None
    reward: float | None
    reward_where_same: float | None
    interval_where_same: tuple[float, float] | None
    not_identified: float | None


class ExperimentAnswer(ResponseBody):
    """An experiment and its verdict.

    `state` is "running", "decided", "ended" (undecided after `users`) or "went back" (a guard's rollback). `shows` is
    the arm that all users see, once there is one; `why` is the verdict in words.
    """

    name: str
    definition: ExperimentDefinition
    state: str
    winner: str | None
    shows: str | None
    why: str
    rounds: int
    open: int
    users: int
    arms: list[ArmAnswer]
    pairs: list[PairAnswer]
    guard: GuardAnswer | None
    agreement: AgreementAnswer | None


class ExperimentsAnswer(ResponseBody):
    """All experiments, and the reasons of quarantined ones by name (`set_aside`)."""

    experiments: list[ExperimentAnswer]
    set_aside: dict[str, str]
