"""Every request and every answer, as types: they decode, validate, encode and document themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Grade = Annotated[float, Meta(ge=0.0)]
Value = bool | int | float | str | None
ListScale = Literal["none", "standard-query", "minmax-query"]


class RequestBody(Struct, forbid_unknown_fields=True):
    """What a client sends."""


class ResponseBody(Struct):
    """What a client gets."""


class Definition(RequestBody):
    """A ranker to make: an algorithm, its parameters, the names of the features, the lowest and highest label.

    In a complete definition no scaling is None.
    """

    features: Annotated[list[Name], Meta(min_length=1)]
    algorithm: str = "topk"
    parameters: dict[str, Value | None] = field(default_factory=dict)
    labels: tuple[Grade, Grade] = (0.0, 4.0)
    close_after: (
        Annotated[
            float,
            Meta(gt=0.0, description="seconds after which a round without feedback counts as one that gained nothing"),
        ]
        | None
    ) = None
    scale: (
        Annotated[
            ListScale,
            Meta(description="how features are scaled within each list; left out: as suits the algorithm"),
        ]
        | None
    ) = None
    model: Annotated[str, Meta(description="left out: the service notes here which model file it was made from")] = ""


_NUMBER = {"type": ["number", "null"]}  # null is for models that fill in missing values
_NUMBERS = {"type": "array", "items": _NUMBER}
_BY_NAME = {"type": "object", "additionalProperties": _NUMBER}

if TYPE_CHECKING:
    Features = list[float | None] | dict[str, float | None] | Raw | np.ndarray
else:  # in a request they stay raw JSON until a ranker says how many there should be
    Features = Annotated[Raw, Meta(extra_json_schema={"anyOf": [_NUMBERS, _BY_NAME]})]


class Document(RequestBody):
    """A document to rank: its features in the ranker's order, or by name.

    A model that fills in missing values takes null, and names may be left out; any other refuses both.
    """

    id: Name
    features: Features


class RankRequest(RequestBody):
    """A list to rank."""

    documents: Annotated[list[Document], Meta(min_length=1)]
    query: Annotated[str, Meta(max_length=1000)] = ""
    carry: Annotated[
        bool, Meta(description="whether the answer holds the round, sealed, which the service then does not keep")
    ] = False


class Ranked(ResponseBody):
    """A document where it was shown; positions count from 1."""

    id: str
    score: float
    position: int


class RankAnswer(ResponseBody):
    """The ranking to show. `round` is what feedback refers to; if there is a `carry`, feedback has to have it, too."""

    round: int
    ranking: list[Ranked]
    explored: bool
    version: int
    carry: str | UnsetType = UNSET


class FeedbackRequest(RequestBody):
    """Labels of some of the first k documents that a round showed, or which were clicked, or what each has gained.

    Clicks and gains may come again when there are more of them: gains are totals, and a click counts as 1.
    """

    round: Number
    labels: Annotated[dict[str, Grade], Meta(min_length=1)] | None = None
    clicks: list[str] | None = None
    gains: dict[str, Grade] | None = None
    carry: Annotated[str, Meta(description="what the ranking had under this name, if it had one")] | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.labels, self.clicks, self.gains)) != 1:
            raise ValueError("feedback has either `labels` or `clicks` or `gains`")


class FeedbackAnswer(ResponseBody):
    """Whether the weights were updated, and the version that they then had."""

    learned: bool
    version: int


class FullRequest(RequestBody):
    """A list of which all labels are known."""

    documents: Annotated[list[Document], Meta(min_length=1)]
    labels: dict[str, Grade]
    query: Annotated[str, Meta(max_length=1000)] = ""


class FullAnswer(ResponseBody):
    """What was learnt from a whole list."""

    round: int
    loss: float | None
    learned: bool
    version: int


class RankerAnswer(ResponseBody, omit_defaults=True):
    """A ranker as it stands; `note` is there if something about the request is worth knowing."""

    name: str
    algorithm: str
    parameters: dict[str, Value | None]
    features: list[str]
    labels: tuple[float, float]
    k: int
    learns: str
    version: int
    rounds: int
    open: int
    map: str | None
    close_after: float | None = None
    scale: str | None = None
    note: str = ""


class SetAsideAnswer(ResponseBody):
    """A ranker that could not be recovered: the version that was reached, and in words why, and what to do."""

    name: str
    version: int
    message: str


class RankersAnswer(ResponseBody):
    """All rankers: those that serve, and those that are set aside."""

    rankers: list[RankerAnswer]
    set_aside: list[SetAsideAnswer]


class RollbackRequest(RequestBody):
    """The version to go back to."""

    version: Number


class VersionsAnswer(ResponseBody):
    """The present version, and those that are kept."""

    version: int
    kept: list[int]


class RankBatch(RequestBody):
    """Many lists to rank."""

    requests: list[RankRequest]


class FeedbackBatch(RequestBody):
    """The feedback of many rounds."""

    requests: list[FeedbackRequest]


class FullBatch(RequestBody):
    """Many lists with all labels."""

    requests: list[FullRequest]


class BatchAnswer(ResponseBody):
    """One answer, or one error, for each request of a batch, in the same order."""

    answers: list[Any]


class HealthAnswer(ResponseBody):
    """Whether the service is well."""

    ready: bool


class Explained(ResponseBody):
    """One document of a round: what each feature added to its score, and to its lead over the next."""

    id: str
    position: int
    score: float
    contributions: dict[str, float] | None
    lead: float | None
    because: dict[str, float] | None


class ExplainAnswer(ResponseBody):
    """Why a round was ordered as it was, at the weights that ordered it."""

    round: int
    query: str
    version: int
    explored: bool
    answered: bool
    labels: dict[str, float]
    documents: list[Explained]


class Delay(ResponseBody):
    """Seconds between a ranking and its feedback."""

    p50: float | None
    p90: float | None
    p99: float | None


class Received(ResponseBody):
    """How much feedback comes, and how late."""

    rounds: int
    rate: float
    delay: Delay


class Point(ResponseBody):
    """Observed quality of one round, its running mean, and whether the round explored."""

    round: int
    value: float
    mean: float
    explored: bool


class Weight(ResponseBody):
    """The weight of one feature, and its change over the last updates, as many as `updates.window` says.

    Where the ranker has a feature map, the weight is how far the feature can move a score: the height of its curve.
    """

    feature: str
    weight: float
    drift: float


class Updates(ResponseBody):
    """How far the weights moved: on average over the last 100 updates, and in the last one.

    `window` is the number of updates over which the drift of the weights is counted: 100, or as many as there have been
    since the server started or the model was replaced.
    """

    norm: float | None
    last: float | None
    window: int


class Shown(ResponseBody):
    """A document that was shown."""

    id: str
    score: float


class Recent(ResponseBody):
    """A round of the recent past."""

    round: int
    query: str
    explored: bool
    answered: bool
    delay: float | None
    labels: dict[str, float]
    ranking: list[Shown]


class Health(ResponseBody):
    """Whether feedback can be kept, free bytes on the disk, seconds since the last snapshot, bytes of the journal."""

    ready: bool
    disk: int
    snapshot_age: float | None
    log_bytes: int
    dropped: int


class DashboardAnswer(ResponseBody):
    """All that the dashboard shows of a ranker."""

    name: str
    algorithm: str
    version: int
    rounds: int
    open: int
    k: int
    seconds: float
    feedback: Received
    exploration: float
    curve: list[Point]
    weights: list[Weight]
    updates: Updates
    recent: list[Recent]
    health: Health
    map: str | None


class ErrorBody(ResponseBody):
    """Why a request was refused."""

    code: str
    message: str


class ErrorAnswer(ResponseBody):
    """The answer to a request that was refused."""

    error: ErrorBody
