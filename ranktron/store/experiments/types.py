"""Requests and answers of experiments, as types: they decode, validate, encode and document themselves."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ranktron.store.types import Name, Number, RankRequest, RequestBody, ResponseBody

Method = Literal["split", "team-draft", "optimized", "sample-scored", "apprentice"]


class ArmDefinition(RequestBody):
    """A ranker as it serves, or one of its kept versions, which stays as it is."""

    ranker: Name
    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None

    @property
    def label(self) -> str:
        """What it is called: `shop`, or `shop:7` for a kept version.

        >>> ArmDefinition("shop", 7).label
        'shop:7'
        """
        return self.ranker if self.version is None else f"{self.ranker}:{self.version}"


class GuardDefinition(RequestBody):
    """The second arm is watched: when it is worse than the first by more than the tolerance, the service goes back."""

    tolerance: Annotated[float, Meta(ge=0.0, lt=1.0, description="how much worse, in the metric, is still accepted")]
    run_length: Annotated[
        float, Meta(gt=1.0, le=1e12, description="users, on average, until a false alarm, at least")
    ] = 100_000.0
    period: Annotated[
        float, Meta(ge=1.0, description="seconds after which a user is assigned anew, and counts again")
    ] = 86_400.0


class ExperimentDefinition(RequestBody):
    """Two or more arms, how they are compared, and when that ends. The first arm is what serves today."""

    arms: Annotated[tuple[ArmDefinition, ...], Meta(min_length=1, max_length=8)]
    method: Annotated[
        Method,
        Meta(description="each user one arm (split), pages that mix the arms, or the client's own order (apprentice)"),
    ] = "split"
    shares: Annotated[
        tuple[Annotated[float, Meta(ge=0.01, le=0.99)], ...] | None,
        Meta(description="of a split: the share of users of each arm; equal shares if left out"),
    ] = None
    metric: Annotated[
        str, Meta(max_length=100, description="of a split: what is compared, between 0 and 1, over what came back")
    ] = "mrr"
    k: Annotated[int, Meta(ge=1, le=50, description="documents that count, from the top")] = 10
    level: Annotated[float, Meta(ge=1e-6, le=0.5, description="how likely a wrong verdict may be")] = 0.05
    users: Annotated[int, Meta(ge=1, le=2**53, description="after so many users it ends, decided or not")] | None = None
    promote: Annotated[bool, Meta(description="whether everyone sees the winner once there is one")] = False
    seed: Annotated[Number | None, Meta(description="of assignments and mixed pages; drawn if left out")] = None
    close_after: (
        Annotated[
            float,
            Meta(gt=0.0, description="seconds after which a round without feedback counts as one that gained nothing"),
        ]
        | None
    ) = None
    guard: GuardDefinition | None = None


class ExperimentRankRequest(RankRequest):
    """A list to rank for a user: the same user sees the same arm. Without a user each round is one of its own.

    In apprentice mode `shown` has the ids in the order that the client's own system shows.
    """

    user: Annotated[str, Meta(max_length=200)] = ""
    shown: list[Name] | None = None


class Placed(ResponseBody):
    """A document where it is shown; positions count from 1."""

    id: str
    position: int


class ExperimentRankAnswer(ResponseBody):
    """The ranking to show; `round` is what feedback refers to. `arm` is whose page it is, if it is of one arm.

    In apprentice mode `ranking` is what the ranker would have shown.
    """

    round: int
    ranking: list[Placed]
    arm: str | None


class ExperimentFeedbackAnswer(ResponseBody):
    """Whether the round counts in the comparison, and whether the arm that was shown has learnt from it."""

    counted: bool
    learned: bool


class SequencePoint(ResponseBody):
    """The confidence sequence after so many users: the mean difference, and the ends of its interval."""

    users: int
    mean: float
    low: float
    high: float


class ArmAnswer(ResponseBody):
    """An arm: its share, the users that counted for it, and the mean of the metric over them, where it has one."""

    arm: str
    share: float | None
    users: int
    mean: float | None


class PairAnswer(ResponseBody):
    """Two arms: how much better the second is than the first, in `interval` with probability 1 - `level` at all times.

    `better` is the arm that is better, or null while that is open; it was decided after `decided_after` users.
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
    """What the guard has seen: its evidence of harm, an alarm at `run_length`; and whether the arm may be promoted."""

    evidence: float
    run_length: float
    tolerance: float
    alarm: int | None
    promotable: bool


class AgreementAnswer(ResponseBody):
    """Apprentice mode: how often the ranker would have shown the same, and what was earned where it would have.

    Elsewhere its reward is not identified: an order that was never shown has earned nothing yet.
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

    `state` is "running", "decided", "ended" (without a decision) or "went back" (the guard's alarm). `shows` is the arm
    that everyone sees from then on; `why` says in words what was decided.
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
    """All experiments, and, by name, why some of them could not be recovered."""

    experiments: list[ExperimentAnswer]
    set_aside: dict[str, str]
