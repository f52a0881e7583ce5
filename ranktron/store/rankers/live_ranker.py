"""One ranker at work: it shows rankings, and keeps their rounds open.

Nothing here waits, writes or changes weights. What clients send back is checked in `feedback` and becomes an entry of
the journal; what the journal has is learnt in `apply_entry`. Comments on fields say who changes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ranktron.data.maps.protocols import Explainable
from ranktron.errors import DataError
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import Answered, JournalEntry, Result
from ranktron.store.journal.journal import Promise
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.features import check_comparable, check_ids, document_matrix
from ranktron.store.rankers.open_rounds import OpenRoundBook, RoundIds, StoredRound
from ranktron.store.rankers.stats import Stats
from ranktron.store.types import Definition, Document, RankAnswer, Ranked, RankRequest
from ranktron.training.model import Model
from ranktron.types import Features, Floats, Integers, Matrix, Ranking

Rounds = OpenRoundBook[tuple[JournalEntry, Promise[Result]], Answered]
DRIFT = 100  # updates over which the change of the weights is shown


class Kept(NamedTuple):
    """The last version of which there is a snapshot, and when it was taken."""

    version: int
    at: float | None


class LiveRanker:
    """A learner with the rounds that wait for their feedback."""

    def __init__(
        self,
        id: int,
        name: str,
        definition: Definition,
        model: Model,
        config: StoreConfig,
        snapshots: Snapshots,
        first: int = 0,
    ) -> None:
        self.id, self.name = id, name
        self.config = config
        self.definition = definition  # with every parameter
        self.snapshots = snapshots  # on disk; the journal's writer
        self.incarnation = 0  # which ranker of this name it is; a start, or the one that makes it
        self.version = 0  # of the last entry that was applied; apply_entry
        self.rounds: Rounds = OpenRoundBook(first, RoundIds(), config, open_rounds.shown_at)
        self.refused: list[int] = []  # the last versions that taught it nothing; apply_entry
        self.closed = False  # while its model is being replaced: the journal's writer closes, apply_entry opens
        self.stats = Stats()  # what people look at; rank, apply_entry
        self.cut = 0  # damaged entries that a start has cut off; recovery
        self.start_from(model)
        self.note_kept(None)

    # What it is

    def start_from(self, model: Model) -> None:
        """Takes a model's learner, scaling and features for its own."""
        self.template = replace(model, state={}, record={})  # all of the model but what it has learnt
        self.learner: BaseLearner = model.learner()  # what it has learnt; apply_entry alone changes it
        self.names, self.map = model.names, model.map  # of the template, which every ranking needs
        self.k = self.learner.labels_received or self.config.received  # documents shown first that may have labels
        self.note_weights()
        self._trail = deque([self._weights], maxlen=DRIFT + 1)  # the last weights of this model, for the dashboard

    @property
    def filled_names(self) -> tuple[str, ...]:
        """The names of the weights: indicators of missing values have one, too."""
        return self.template.filled_names

    @property
    def curves(self) -> Explainable | None:
        """What explains the scores of a feature map."""
        return None if self.map is None else self.template.explainable

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

    def note_weights(self) -> None:
        """Notes the weights that rank: open rounds keep them."""
        weights = self.learner.ranking_weights
        self._weights = b"" if weights is None else weights.tobytes()  # those that rank, as open rounds keep them

    def note_update(self) -> None:
        """Notes the weights after an update, for those who look at it."""
        before = self._weights
        self.note_weights()
        self._trail.append(self._weights)
        if before and self._weights:
            self.stats.moved(before, self._weights)

    def note_kept(self, at: float | None) -> None:
        """Notes that this version is kept."""
        self.last_snapshot = Kept(self.version, at)

    # Showing

    def rank(self, request: RankRequest) -> tuple[RankAnswer, int, bytes]:
        """The ranking to show, and the number and the bytes of the open round to keep."""
        self.check_open()
        X = self.matrix(request.documents)
        features = self.mapped(X)
        return self._keep_open(request, X, features, self._ranking(features))

    def shadow(self, request: RankRequest, shown: Sequence[str]) -> tuple[RankAnswer, int, bytes]:
        """The same for a page that another system has ordered, which is learnt from as one that was certain."""
        self.check_open()
        X = self.matrix(request.documents)
        features = self.mapped(X)
        ranking, places = self._ranking(features), {each.id: i for i, each in enumerate(request.documents)}
        first = [places[document] for document in shown if document in places]
        if len(first) < len(shown) or len(set(first)) < len(first):
            raise RequestError(422, "wrong_order", "`shown` names documents of the list, each once")
        rest = argsort_descending(ranking.scores)
        order = np.concatenate([np.array(first, np.int64), rest[~np.isin(rest, first)]])
        certain = None if ranking.propensities is None else np.ones_like(ranking.propensities)
        return self._keep_open(
            request, X, features, Ranking(order, ranking.scores, ranking.number, propensities=certain)
        )

    def best_order(self, documents: Sequence[Document]) -> Integers:
        """The documents by score, best first: no chance is involved, and no round is kept."""
        self.check_open()
        try:
            scores = self.learner.scores(self.mapped(self.matrix(documents)))
        except DataError as error:
            raise RequestError(422, "not_rankable", str(error)) from None
        _check_finite(scores)
        return argsort_descending(scores)

    def _ranking(self, features: Features) -> Ranking:
        try:
            return self.learner.rank(features, self.rounds.next)
        except DataError as error:
            raise RequestError(422, "not_rankable", str(error)) from None

    def _keep_open(
        self, request: RankRequest, X: Matrix, features: Features, ranking: Ranking
    ) -> tuple[RankAnswer, int, bytes]:
        documents, rounds = request.documents, self.rounds
        order, scores = ranking.order.tolist(), ranking.scores[ranking.order]
        _check_finite(scores)
        shown = [
            Ranked(documents[item].id, score, position)
            for position, (item, score) in enumerate(zip(order, scores.tolist(), strict=True), 1)
        ]
        pending = self.learner.pending(features, ranking, self.k)
        explained = 0 if request.carry else self.config.explained  # what is only looked at is not carried
        rows = min(len(order), max(len(pending.shown), explained))
        propensities, kept_rows = pending.propensities, X[ranking.order[:rows]]
        kept = open_rounds.pack(
            StoredRound(
                rounds.next,
                rounds.now(),
                self.version,
                ranking.explored,
                request.query,
                pending.size,
                [ranked.id for ranked in shown[:rows]],
                scores[:rows].tobytes(),
                kept_rows.tobytes(),
                b"" if self.map or request.carry else self._weights,
                pending.shown.tobytes(),
                pending.drift.tobytes(),
                pending.constant,
                None if propensities is None else propensities.tobytes(),
                () if propensities is None else propensities.shape,
                b"" if request.carry else self._parts(kept_rows),
                pending.columns.tobytes(),
            )
        )
        answer = RankAnswer(rounds.ids.public(rounds.next), shown, ranking.explored, self.version)
        number, rounds.next = rounds.next, rounds.next + 1
        if not request.carry:
            rounds.open[number] = kept
        rounds.recent.append(number)
        self.stats.showed(ranking.explored)
        return answer, number, kept

    def matrix(self, documents: Sequence[Document]) -> Matrix:
        """The features of documents, filled in and scaled; anything but finite numbers in their places is refused."""
        m = len(documents)
        if m > self.config.max_documents:
            raise RequestError(
                413, "too_many_documents", f"{m} documents; at most {self.config.max_documents} are ranked"
            )
        check_ids(documents)
        imputer = self.template.imputer
        X = document_matrix(documents, self.names, imputer is not None)
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
        self.forget(self.rounds.excess(bytes_over))

    def forget(self, numbers: Sequence[int]) -> None:
        """Drops open rounds, and counts them."""
        self.rounds.forget(numbers)
        self.stats.dropped += len(numbers)

    # Replacing its model

    def replacement(self, model: bytes) -> JournalEntry:
        """The entry that replaces the model."""
        self.check_open()
        return JournalEntry("model", self.rounds.next, self.rounds.now(), model)

    def check_open(self) -> None:
        """Refuses while the model is being replaced."""
        if self.closed:
            raise RequestError(503, "busy", "the model is being replaced: try again in a moment")


def _check_finite(scores: Floats) -> None:
    if not np.isfinite(scores).all():
        raise RequestError(422, "not_rankable", "a score is too large: the features, or the weights, are")
