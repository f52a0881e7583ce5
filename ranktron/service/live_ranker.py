"""One ranker at work: it shows rankings, keeps rounds open, and learns what the journal tells it to.

Nothing here waits or writes: `rank` and `check` change no weights, `apply` moves them, and the same entries applied in
the same order give the same weights to the bit, live or in a replay.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite, sqrt
from time import monotonic, time
from typing import Any, TypeVar

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.service import stored_round
from ranktron.service.config import Config
from ranktron.service.entries import Answered, JournalEntry, Result, decode, encode, told_labels
from ranktron.service.epochs import Epochs
from ranktron.service.errors import RequestError, gone
from ranktron.service.features import check_comparable, matrix_of
from ranktron.service.open_rounds import BESIDE, AnsweredRounds, OpenRounds
from ranktron.service.snapshots import Snapshots
from ranktron.service.stats import Stats, observed_quality
from ranktron.service.stored_round import StoredRound
from ranktron.service.types import Definition, Document, FeedbackRequest, FullRequest, RankAnswer, Ranked, RankRequest
from ranktron.training.model import Model
from ranktron.types import Features, Feedback, Floats, Matrix

RECENT = 20
DRIFT = 100  # updates over which the change of the weights is shown
_logger = logging.getLogger("ranktron.service")
T = TypeVar("T")


class LiveRanker:
    """A learner with the rounds that wait for their feedback."""

    def __init__(
        self,
        id: int,
        name: str,
        definition: Definition,
        asked: Definition,
        model: Model,
        config: Config,
        snapshots: Snapshots,
        first: int = 0,
    ) -> None:
        self.id, self.name, self.config, self.snapshots = id, name, config, snapshots
        self.definition, self.asked = definition, asked  # with every parameter, and as the client sent it
        self.incarnation = 0
        self.epochs = Epochs()
        self.version = 0
        self.next = self.reserved = first
        self.reserving = False
        self.open = OpenRounds()
        self.forgotten: list[int] = []  # dropped, but still on disk
        self.unwritten: dict[int | None, tuple[JournalEntry, Future[Result]]] = {}
        self.answered: OrderedDict[int, Answered] = OrderedDict()
        self.past: OrderedDict[int, bytes] = OrderedDict()
        self.answered_ever = AnsweredRounds()
        self.refused: list[int] = []
        self.closed = False  # while its model is being replaced
        self.barrier = 0  # rounds before this one were ranked by another kind of model, and stay unanswered
        self.recent: deque[int] = deque(maxlen=RECENT)
        self.stats = Stats()
        self.cut = 0
        self.kept_at: float | None = None
        self.set_clock(time())
        self.start_from(model)
        self.note_kept(None)

    # Time

    def set_clock(self, at: float) -> None:
        """Says what time it is. From there on it only passes, whatever is done to the clock of the machine."""
        self._offset = at - monotonic()

    def now(self) -> float:
        """Seconds that go on, after a restart, from the last ones that the journal knows: a pause does not count."""
        return self._offset + monotonic()

    # What it is

    def start_from(self, model: Model) -> None:
        """Takes a model's learner, scaling and features for its own."""
        self.template = replace(model, state={}, record={})
        self.learner: BaseLearner = model.learner()
        self.names, self.map = model.names, model.map
        self.filled_names = model.filled_names  # of the weights: indicators of missing values have one, too
        self.curves = None if model.map is None else model.additive
        self.k = self.learner.labels_received or self.config.heard
        self._note_weights()
        self._trail = deque([self._weights], maxlen=DRIFT + 1)  # of another model the weights cannot be compared

    @property
    def model(self) -> Model:
        """The model as it stands; the same state gives the same bytes."""
        return replace(self.template, state=self.learner.state())

    @property
    def learns(self) -> str:
        """What it learns from: "top", "any" labels or "nothing"."""
        if not self.learner.learns_online:
            return "nothing"
        return "top" if self.learner.labels_received else "any"

    @property
    def weights(self) -> Floats | None:
        """The weights that rank."""
        return np.frombuffer(self._weights) if self._weights else None

    @property
    def drift(self) -> tuple[int, Floats]:
        """How many updates the trail of the weights goes back, at most 100, and the weights that it starts with."""
        return len(self._trail) - 1, np.frombuffer(self._trail[0])

    def _note_weights(self) -> None:
        weights = self.learner.ranking_weights
        self._weights = b"" if weights is None else weights.tobytes()

    def note_kept(self, at: float | None) -> None:
        """Notes that this version is kept."""
        self.kept_version, self.kept_at = self.version, at

    # Showing

    def rank(self, request: RankRequest) -> tuple[RankAnswer, int, bytes]:
        """The ranking to show, and the number and the bytes of the open round to keep."""
        self._check_open()
        documents, at = request.documents, self.now()
        X = self.matrix(documents)
        features = self.mapped(X)
        try:
            ranking = self.learner.rank(features, self.next)
        except DataError as error:
            raise RequestError(422, "not_rankable", str(error)) from None
        order, scores = ranking.order.tolist(), ranking.scores[ranking.order]
        if not np.isfinite(scores).all():
            raise RequestError(422, "not_rankable", "a score is too large: the features, or the weights, are")
        shown = [
            Ranked(documents[item].id, score, position)
            for position, (item, score) in enumerate(zip(order, scores.tolist(), strict=True), 1)
        ]
        pending = self.learner.pending(features, ranking, self.k)
        rows = min(len(order), max(len(pending.shown), self.config.explained))
        propensities, kept_rows = pending.propensities, X[ranking.order[:rows]]
        kept = stored_round.pack(
            StoredRound(
                self.next,
                at,
                self.version,
                ranking.explored,
                request.query,
                pending.size,
                [ranked.id for ranked in shown[:rows]],
                scores[:rows].tobytes(),
                kept_rows.tobytes(),
                b"" if self.map else self._weights,
                pending.shown.tobytes(),
                pending.drift.tobytes(),
                pending.constant,
                None if propensities is None else propensities.tobytes(),
                () if propensities is None else propensities.shape,
                self._parts(kept_rows),
                pending.columns.tobytes(),
            )
        )
        answer = RankAnswer(self.epochs.public(self.next), shown, ranking.explored, self.version)
        number, self.next = self.next, self.next + 1
        self.open[number] = kept
        self.recent.append(number)
        self.stats.showed(ranking.explored)
        return answer, number, kept

    def matrix(self, documents: Sequence[Document]) -> Matrix:
        """The features of documents, filled in and scaled; anything but finite numbers in their places is refused."""
        m = len(documents)
        if m > self.config.max_documents:
            raise RequestError(
                413, "too_many_documents", f"{m} documents; at most {self.config.max_documents} are ranked"
            )
        if len({document.id for document in documents}) < m:
            raise RequestError(422, "duplicate_document", "two documents have the same id")
        imputer = self.template.imputer
        X = matrix_of(documents, self.names, imputer is not None)
        X = X if imputer is None else imputer.filled(X)
        if self.template.scaler is not None:
            X = self.template.scaler(X, np.array([0, m]))
            if not np.isfinite(X).all():
                raise RequestError(422, "feature_too_large", "a feature is too large to be scaled")
        if self.map is None:
            check_comparable(X, self.learner.kernel)
        return X

    def mapped(self, X: Matrix) -> Features:
        """Features as the learner sees them."""
        return X if self.map is None else self.map(X)

    def _parts(self, X: Matrix) -> bytes:
        """What each feature adds to each score, where that is not a weight times its value."""
        if self.curves is None or self.weights is None:
            return b""
        return self.curves.contributions(X, self.weights).tobytes()

    def drop(self, bytes_over: int = 0) -> None:
        """Drops the oldest rounds: too many, too old, or so many bytes too large; not while they are being answered."""
        excess, limit = len(self.open) - self.config.max_open, self.now() - self.config.open_seconds
        dropped: list[int] = []
        for number, kept in self.open.items():
            if len(dropped) >= excess and bytes_over <= 0 and stored_round.shown_at(kept) >= limit:
                break
            if number not in self.unwritten:
                dropped.append(number)
                bytes_over -= len(kept) + BESIDE
        self.forget(dropped)

    # Feedback

    def check_feedback(self, request: FeedbackRequest) -> JournalEntry | Result | Future[Result]:
        """The entry to write for this feedback; what came or will come of it, if it has come before."""
        number = self.epochs.number_of(request.round)
        earlier, waiting = self.answered.get(number), self.unwritten.get(number)
        if earlier is not None:
            return self._same(earlier.labels, request, earlier.result)
        if waiting is not None:
            return self._same(told_labels(waiting[0].body), request, waiting[1])
        if number not in self.open:
            if number >= self.next:
                raise RequestError(404, "unknown_round", f"there has been no round {request.round}")
            raise gone(request.round, number in self.answered_ever, self.answered_ever.knows(number))
        self._check_open()
        self._check_learns()
        shown = stored_round.unpack(self.open[number])
        if shown.at < self.now() - self.config.open_seconds:
            raise gone(request.round)
        places = {document: place for place, document in enumerate(shown.ids[: shown.k])}
        for document in request.clicks or request.labels or ():
            if document not in places:
                shown_first = f"the first {shown.k} shown in round {request.round}"
                raise RequestError(422, "not_shown", f"document {document!r} is not among {shown_first}")
        labels = self._clicks_as_labels(request.clicks, places) if request.labels is None else request.labels
        self._check_labels(labels.values())
        told = sorted((places[document], label, document) for document, label in labels.items())
        return JournalEntry("feedback", number, self.now(), encode(told))

    def _clicks_as_labels(self, clicks: Iterable[str] | None, places: Iterable[str]) -> dict[str, float]:
        """1 for each document of the page that was clicked, 0 for the others; a page is what a learner knows of it."""
        if self.learns != "top":
            raise RequestError(
                409,
                "learns_from_labels",
                f"{self.template.kind} does not know what users saw: send labels",
            )
        clicked = set(clicks or ())
        return {document: float(document in clicked) for document in places}

    def _same(self, told: dict[str, float], request: FeedbackRequest, result: T) -> T:
        if request.clicks is not None:
            same = told == {document: float(document in request.clicks) for document in told}
            same = same and set(request.clicks) <= told.keys()
        else:
            same = told == request.labels
        if not same:
            raise RequestError(409, "already_answered", f"round {request.round} has been answered with other labels")
        return result

    def replacement(self, model: bytes) -> JournalEntry:
        """The entry that replaces the model."""
        self._check_open()
        return JournalEntry("model", self.next, self.now(), model)

    def _check_open(self) -> None:
        if self.closed:
            raise RequestError(503, "busy", "the model is being replaced: try again in a moment")

    def check_full(self, request: FullRequest) -> JournalEntry:
        """The entry to write for a list of which all labels are known."""
        if self.learns == "top":
            raise RequestError(
                409, "learns_from_the_top", f"{self.template.kind} learns from what it showed: rank, then send feedback"
            )
        self._check_open()
        self._check_learns()
        ids = [document.id for document in request.documents]
        if set(ids) != request.labels.keys():
            raise RequestError(422, "wrong_labels", "every document must have a label, and every label a document")
        self._check_labels(request.labels.values())
        X = self.matrix(request.documents)
        labels = np.array([request.labels[document] for document in ids])
        number, self.next = self.next, self.next + 1
        return JournalEntry("full", number, self.now(), encode((X.tobytes(), labels.tobytes())))

    def _check_learns(self) -> None:
        if self.learns == "nothing":
            raise RequestError(
                409, "does_not_learn", f"{self.template.kind} was solved in one go: it ranks, but cannot learn"
            )

    def _check_labels(self, labels: Iterable[float]) -> None:
        low, high = self.definition.labels
        for label in labels:
            if not low <= label <= high:
                raise RequestError(422, "label_out_of_range", f"label {label:g} is not between {low:g} and {high:g}")

    # Learning

    def apply(self, entry: JournalEntry, version: int) -> Result:
        """Does what an entry says; weights that would overflow stay as they were."""
        before = self._weights
        shown, told = None, decode(entry.body) if entry.kind == "feedback" else []
        loss: float | None
        try:
            if entry.kind == "feedback":
                shown = stored_round.unpack(self.open[entry.round])
                loss = self._learn_shown(shown, told)
            else:
                loss = self._learn(entry)
        except DataError:
            loss = None
        except Exception:  # whatever it is, it will be the same in a replay
            _logger.exception("version %d of ranker %s could not be learnt", version, self.name)
            loss = None
        if loss is None:
            self.refused = [*self.refused, version][-self.config.remembered :]
        self.version = version
        self._note_weights()
        if entry.kind == "model":
            self.closed = False
        result = Result(loss is not None, version, loss if loss is None or isfinite(loss) else None)
        if entry.kind == "feedback":
            self._settle(entry, result)
        try:
            self._observe(entry, before, shown, told)
        except Exception:  # it is only shown to people: what was learnt stands
            _logger.exception("version %d of ranker %s could not be counted", version, self.name)
        return result

    def _learn_shown(self, shown: StoredRound, told: list[tuple[int, float, str]]) -> float:
        places, labels = [place for place, _, _ in told], [label for _, label, _ in told]
        heard = Feedback._make((np.array(places), np.array(labels, float)))  # which were checked when they came
        return self.learner.learn_pending(shown.pending(self.mapped), heard)

    def _learn(self, entry: JournalEntry) -> float:
        if entry.kind == "nothing":
            raise DataError("it stands for an entry that was damaged")
        if entry.kind == "model":
            self._replace(Model.from_bytes(entry.body), entry.round)
            return 0.0
        rows, kept = decode(entry.body)
        grades = np.frombuffer(kept).copy()
        X = self.mapped(np.frombuffer(rows, np.float32).reshape(len(grades), -1).copy())
        return self.learner.learn(X, self.learner.rank(X, entry.round), Feedback(np.arange(len(grades)), grades))

    def _replace(self, model: Model, barrier: int) -> None:
        """Goes on with another model; if it is of another kind, open rounds mean nothing to it."""
        before = self.template
        self.start_from(model)
        self.next = max(self.next, self.learner.rounds)
        if before.to_bytes() != self.template.to_bytes():
            self.barrier = barrier
            dropped = [number for number in self.open if number < barrier]
            self.forget(dropped)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops open rounds, and counts them."""
        for number in numbers:
            del self.open[number]
            self.stats.dropped += 1
            self.forgotten.append(number)

    def _settle(self, entry: JournalEntry, result: Result) -> None:
        self.unwritten.pop(entry.round, None)
        self.remember(entry, result, self.open.pop(entry.round))

    def _observe(
        self, entry: JournalEntry, before: bytes, shown: StoredRound | None, told: list[tuple[int, float, str]]
    ) -> None:
        """Counts what is shown to people, and changes nothing else."""
        if entry.kind in ("model", "nothing"):
            return
        self._trail.append(self._weights)
        if before and self._weights:
            moved = np.frombuffer(self._weights) - np.frombuffer(before)
            self.stats.moved(sqrt(float(moved @ moved)))
        if shown is not None:
            labels = np.array([label for _, label, _ in told], float)
            delay = max(entry.at - shown.at, 0.0)  # a clock may go backwards
            self.stats.answered(entry.round, observed_quality(labels), shown.explored, delay)

    def remember(self, entry: JournalEntry, result: Result, kept: bytes | None) -> None:
        """Remembers that a round was answered, and, if it is known, what it showed."""
        self.answered_ever.add(entry.round)
        self.answered[entry.round] = Answered(entry.body, entry.at, result)
        _shorten(self.answered, self.config.remembered)
        if kept is not None:
            self.past[entry.round] = kept
            _shorten(self.past, self.config.explained_rounds)


def _shorten(kept: OrderedDict[int, Any], length: int) -> None:
    while len(kept) > length:
        kept.popitem(last=False)
