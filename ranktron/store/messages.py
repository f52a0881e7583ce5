"""Types of requests and answers: they define the JSON, its validation and the OpenAPI schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Grade = Annotated[float, Meta(ge=0.0)]
Value = bool | int | float | str | None
LearnsFrom = Literal["clicks", "top-labels", "labels"]
ALGORITHM_FOR = {"clicks": "pdgd", "top-labels": "topk", "labels": "hinge"}
ListScale = Literal["none", "standard-query", "minmax-query"]


class RequestBody(Struct, forbid_unknown_fields=True):
    """A request body; unknown fields are refused."""


class ResponseBody(Struct):
    """A response body."""


class Definition(RequestBody):
    """The definition of a ranker: features, algorithm and its parameters, the lowest and highest label, the start.

    In a complete definition `scale` is None for no scaling.
    """

    features: Annotated[list[Name], Meta(min_length=1)]
    algorithm: Annotated[str, Meta(description="default: that of `learns_from`")] = ""
    parameters: dict[str, Value | None] = field(default_factory=dict)
    labels: tuple[Grade, Grade] = (0.0, 4.0)
    close_after: (
        Annotated[
            float,
            Meta(gt=0.0, description="seconds after which a round without feedback counts as one without gain"),
        ]
        | None
    ) = None
    scale: (
        Annotated[
            ListScale,
            Meta(description="how features are scaled within each list; default: as recommended for the algorithm"),
        ]
        | None
    ) = None
    start: (
        Annotated[
            dict[Name, float],
            Meta(description="weights by feature, to start from; the others are 0, and features are taken as given"),
        ]
        | None
    ) = None
    trust: (
        Annotated[float, Meta(gt=0.0, description="how far weights may go from those of the start, or from 0")] | None
    ) = None
    per: (
        Annotated[Literal["user"], Meta(description="whether each user has weights of their own on top of everybody's")]
        | None
    ) = None
    model: Annotated[
        str, Meta(description="set by the service: the SHA-256 of the model file; leave out in requests")
    ] = ""
    history: Annotated[
        Literal["prune", "keep"],
        Meta(description="whether answered rounds are kept, which needs `user` in every ranking, to forget one"),
    ] = "prune"
    learns_from: (
        Annotated[
            LearnsFrom,
            Meta(
                description="what will come back, which chooses the algorithm: clicks (pdgd, the default), labels of "
                "the first documents shown (topk), or labels of whole lists (hinge)"
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.algorithm and self.learns_from:
            raise ValueError("`learns_from` chooses the algorithm: leave it or `algorithm` out")
        self.algorithm = self.algorithm or ALGORITHM_FOR[self.learns_from or "clicks"]
        self.learns_from = None  # the algorithm says it


_NUMBER = {"type": ["number", "null"]}  # null: a missing value
_NUMBERS = {"type": "array", "items": _NUMBER}
_BY_NAME = {"type": "object", "additionalProperties": _NUMBER}

if TYPE_CHECKING:
    Features = list[float | None] | dict[str, float | None] | Raw | np.ndarray
else:  # raw JSON, parsed once the ranker and its number of features are known
    Features = Annotated[Raw, Meta(extra_json_schema={"anyOf": [_NUMBERS, _BY_NAME]})]


class Document(RequestBody):
    """A document to rank: its features in the ranker's order, or by name.

    Null and absent names are missing values: accepted by models that fill them in, refused by others.
    """

    id: Name
    features: Features


class RankRequest(RequestBody):
    """A list to rank."""

    documents: Annotated[list[Document], Meta(min_length=1)]
    query: Annotated[str, Meta(max_length=1000)] = ""
    user: Annotated[str, Meta(max_length=200, description="who the list is shown to, if known")] = ""
    carry: Annotated[
        bool, Meta(description="whether the answer contains the round, sealed, instead of the service storing it")
    ] = False


class Ranked(ResponseBody):
    """A ranked document; positions count from 1."""

    id: str
    score: float
    position: int


class RankAnswer(ResponseBody):
    """The ranking to show. Feedback refers to it by `round`, and returns `carry` if there is one."""

    round: int
    ranking: list[Ranked]
    explored: bool
    version: int
    carry: str | UnsetType = UNSET


class FeedbackRequest(RequestBody):
    """Feedback on the first k documents of a round: labels, clicks or gains.

    Clicks and gains may be updated: gains are totals, and a click counts as 1.
    """

    round: Number
    labels: Annotated[dict[str, Grade], Meta(min_length=1)] | None = None
    clicks: list[str] | None = None
    gains: dict[str, Grade] | None = None
    carry: Annotated[str, Meta(description="the `carry` of the ranking, if any")] | None = None

    def __post_init__(self) -> None:
        if sum(field is not None for field in (self.labels, self.clicks, self.gains)) != 1:
            raise ValueError("feedback has either `labels` or `clicks` or `gains`")


class FeedbackAnswer(ResponseBody):
    """Whether the weights were updated, and the version after it."""

    learned: bool
    version: int


class FullRequest(RequestBody):
    """A fully labelled list."""

    documents: Annotated[list[Document], Meta(min_length=1)]
    labels: dict[str, Grade]
    query: Annotated[str, Meta(max_length=1000)] = ""


class FullAnswer(ResponseBody):
    """The update by a fully labelled list."""

    round: int
    loss: float | None
    learned: bool
    version: int


class RankerAnswer(ResponseBody, omit_defaults=True):
    """The state of a ranker; `note` is a warning about the request, if any."""

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
    exports: Annotated[list[str], Meta(description="targets of `ranktron export` that can compute its scores")]
    close_after: float | None = None
    scale: str | None = None
    note: str = ""


class SetAsideAnswer(ResponseBody):
    """A ranker that could not be recovered: the last version reached, the reason and the remedy."""

    name: str
    version: int
    message: str


class RankersAnswer(ResponseBody):
    """All rankers, live and set aside."""

    rankers: list[RankerAnswer]
    set_aside: list[SetAsideAnswer]


class RollbackRequest(RequestBody):
    """The kept version to roll back to."""

    version: Number


class ForgetAnswer(ResponseBody):
    """A forgotten user: the version after it, and how many entries and open rounds were erased.

    What is not reached: `kept` versions, and `models`, versions at which a model was uploaded or restored. Nor are
    backups, which nobody lists.
    """

    version: int
    entries: int
    open: int
    kept: list[int]
    models: list[int]


class VersionsAnswer(ResponseBody):
    """The present version and the kept versions."""

    version: int
    kept: list[int]


class RankBatch(RequestBody):
    """A batch of lists to rank."""

    requests: list[RankRequest]


class FeedbackBatch(RequestBody):
    """A batch of feedback."""

    requests: list[FeedbackRequest]


class FullBatch(RequestBody):
    """A batch of fully labelled lists."""

    requests: list[FullRequest]


class BatchAnswer(ResponseBody):
    """An answer or an error for each request of a batch, in order."""

    answers: list[Any]


class HealthAnswer(ResponseBody):
    """The health of the service."""

    ready: bool


class Explained(ResponseBody):
    """A document of a round: the contribution of each feature to its score, and to its lead over the next document."""

    id: str
    position: int
    score: float
    contributions: dict[str, float] | None
    lead: float | None
    because: dict[str, float] | None


class ExplainAnswer(ResponseBody):
    """The explanation of a round's order, by the weights of its version."""

    round: int
    query: str
    version: int
    explored: bool
    answered: bool
    labels: dict[str, float]
    documents: list[Explained]


class Delay(ResponseBody):
    """Quantiles of the seconds between a ranking and its feedback."""

    p50: float | None
    p90: float | None
    p99: float | None


class Received(ResponseBody):
    """Feedback: rounds, their rate per second, their delays."""

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
    """The weight of a feature, and its change over the last `updates.window` updates.

    With a feature map, the weight is the height of the feature's curve: its largest possible effect on a score.
    """

    feature: str
    weight: float
    drift: float


class FeatureDistance(ResponseBody):
    """How far the values of a feature are from the training data: the population stability index over its deciles.

    `missing` is the share of documents without a value, `left` says what has changed if the change is large and
    significant.
    """

    feature: str
    distance: float
    missing: float
    left: str


class FeatureDistances(ResponseBody):
    """The distances of all features, once `needed` lists have been compared.

    They are compared with the training data, or with the ranker's first lists if it was not trained; none yet: null.
    """

    reference: Literal["training data", "first lists"] | None
    lists: int
    needed: int
    features: list[FeatureDistance]


class Updates(ResponseBody):
    """The norm of the updates of the weights: the mean of the last 100, and the last one.

    `window` is the number of updates over which drift is measured: 100, or fewer if the server was started or the model
    replaced since.
    """

    norm: float | None
    last: float | None
    window: int


class Shown(ResponseBody):
    """A shown document."""

    id: str
    score: float


class Recent(ResponseBody):
    """A recent round."""

    round: int
    query: str
    explored: bool
    answered: bool
    delay: float | None
    labels: dict[str, float]
    ranking: list[Shown]


class Health(ResponseBody):
    """Health: journal writable, free bytes on the disk, seconds since the last snapshot, bytes of the journal."""

    ready: bool
    disk: int
    snapshot_age: float | None
    log_bytes: int
    dropped: int


class DashboardAnswer(ResponseBody):
    """The data of the dashboard."""

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
    distances: FeatureDistances


class ErrorBody(ResponseBody):
    """The error of a refused request."""

    code: str
    message: str


class ErrorAnswer(ResponseBody):
    """The answer to a refused request."""

    error: ErrorBody
