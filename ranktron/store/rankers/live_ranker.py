"""A live ranker: ranks lists and holds their open rounds.

Nothing here blocks, writes or changes weights. `feedback` turns requests into journal entries, and `apply_entry` learns
from these. The comment on a field says what it holds and who changes it.
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
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.messages import Definition, Document, RankAnswer, Ranked, RankRequest
from ranktron.store.promises import Promise
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.feature_window import FeatureWindow
from ranktron.store.rankers.features import check_comparable, check_ids, document_matrix
from ranktron.store.rankers.open_rounds import OpenRoundBook, RoundIds, StoredRound
from ranktron.store.rankers.stats import Stats
from ranktron.training.model import Model
from ranktron.types import Features, Floats, Integers, Matrix, Ranking

Rounds = OpenRoundBook[tuple[JournalEntry, Promise[Result]], Answered]
DRIFT = 100  # updates over which the dashboard shows the drift of the weights


class LastSnapshot(NamedTuple):
    """The version of the last snapshot, and the monotonic time at which it was taken; None if there is none."""

    version: int
    at: float | None


class ShownList(NamedTuple):
    """A list as shown: its open round by number, public id and bytes, the ids in order with their scores."""

    number: int
    round: int
    ids: list[str]
    scores: Floats
    explored: bool
    version: int
    body: bytes

    def answer(self) -> tuple[RankAnswer, int, bytes]:
        """The answer to a client, with the number and the bytes of the round."""
        pairs = enumerate(zip(self.ids, self.scores.tolist(), strict=True), 1)
        ranking = [Ranked(id, score, position) for position, (id, score) in pairs]
        return RankAnswer(self.round, ranking, self.explored, self.version), self.number, self.body


class LiveRanker:
    """A learner with its open rounds."""

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
        self.definition = definition  # complete, with every parameter; fixed
        self.snapshots = snapshots  # its snapshots on disk; the journal's writer adds and removes
        self.incarnation = 0  # tells it from deleted rankers of its name; fixed once recovered or created
        self.version = 0  # the last entry applied; apply_entry
        self.rounds: Rounds = OpenRoundBook(first, RoundIds(), config, open_rounds.shown_at)
        self.refused: list[int] = []  # the last entries that the learner refused; apply_entry
        self.closed = False  # its model is being replaced: set by the journal's writer, cleared by apply_entry
        self.stats = Stats()  # statistics for display; rank and apply_entry
        self.cut = 0  # damaged last entries that recovery has replaced; recovery
        self.start_from(model)
        self.note_snapshot(None)

    # Model

    def start_from(self, model: Model) -> None:
        """Takes the learner, scaling and features of a model."""
        # the model without weights, record and ranges: models that differ in these can answer each other's rounds
        self.template = replace(model, state={}, record={}, ranges=None)  # start_from
        self.ranges = model.ranges  # of its features in the training data, if it was trained; start_from
        self.features = FeatureWindow(model.ranges, model.names)  # of the lists that it ranks; prepared and the engine
        self.learner: BaseLearner = model.learner()  # its weights; apply_entry alone updates it
        self.names, self.map = model.names, model.map  # copied from the template for speed
        self.k = self.learner.labels_received or self.config.received  # top documents that feedback may label
        self.note_weights()
        self._trail = deque([self._weights], maxlen=DRIFT + 1)  # last weights of this model, for the drift; note_update

    @property
    def filled_names(self) -> tuple[str, ...]:
        """The names of the weights, indicators of missing values included."""
        return self.template.filled_names

    @property
    def curves(self) -> Explainable | None:
        """The feature map, if its scores can be explained by curves."""
        return None if self.map is None else self.template.explainable

    @property
    def model(self) -> Model:
        """The present model; equal states give equal bytes."""
        return replace(self.template, state=self.learner.state(), ranges=self.ranges)

    @property
    def learns(self) -> str:
        """The labels it learns from: "top", "any" or "nothing"."""
        if not self.learner.learns_online:
            return "nothing"
        return "top" if self.learner.labels_received else "any"

    @property
    def weights(self) -> Floats | None:
        """The weights that rank."""
        return np.frombuffer(self._weights) if self._weights else None

    @property
    def drift(self) -> tuple[int, Floats]:
        """The number of updates, at most 100, over which drift is measured, and the weights before them."""
        return len(self._trail) - 1, np.frombuffer(self._trail[0])

    def note_weights(self) -> None:
        """Updates the bytes of the weights, which open rounds store for explanations."""
        weights = self.learner.ranking_weights
        self._weights = b"" if weights is None else weights.tobytes()  # of the ranking function, as bytes; note_weights

    def note_update(self) -> None:
        """Records the weights after an update, for the dashboard."""
        before = self._weights
        self.note_weights()
        self._trail.append(self._weights)
        if before and self._weights:
            self.stats.moved(before, self._weights)

    def note_snapshot(self, at: float | None) -> None:
        """Records that the last snapshot is of the present version."""
        self.last_snapshot = LastSnapshot(self.version, at)

    # Ranking

    def rank(self, request: RankRequest) -> tuple[RankAnswer, int, bytes]:
        """The ranking to show, with the number and the bytes of its open round."""
        self.check_open()
        ids, X = [document.id for document in request.documents], self.matrix(request.documents)
        return self.show(ids, X, request.query, request.user, stored=not request.carry).answer()

    def shadow(self, request: RankRequest, shown: Sequence[str]) -> tuple[RankAnswer, int, bytes]:
        """The same for a list that another system has ordered; its order counts as certain, with propensities 1."""
        self.check_open()
        ids, X = [document.id for document in request.documents], self.matrix(request.documents)
        features = self.mapped(X)
        ranking, places = self._ranking(features, request.user), {id: i for i, id in enumerate(ids)}
        first = [places[document] for document in shown if document in places]
        if len(first) < len(shown) or len(set(first)) < len(first):
            raise RequestError(422, "wrong_order", "`shown` names documents of the list, each once")
        rest = argsort_descending(ranking.scores)
        order = np.concatenate([np.array(first, np.int64), rest[~np.isin(rest, first)]])
        ones = None if ranking.propensities is None else np.ones_like(ranking.propensities)
        certain = Ranking(order, ranking.scores, ranking.number, propensities=ones)
        return self._open_round(ids, X, features, certain, request.query, request.user, stored=True).answer()

    def show(self, ids: Sequence[str], X: Matrix, query: str = "", user: str = "", *, stored: bool = True) -> ShownList:
        """Ranks documents whose features are prepared (`matrix`), and opens a round; `stored` unless it is sealed."""
        features = self.mapped(X)
        return self._open_round(ids, X, features, self._ranking(features, user), query, user, stored=stored)

    def best_order(self, documents: Sequence[Document]) -> Integers:
        """The documents by descending score, without exploration; opens no round."""
        self.check_open()
        try:
            scores = self.learner.scores(self.mapped(self.matrix(documents)))
        except DataError as error:
            raise RequestError(422, "not_rankable", str(error)) from None
        _check_finite(scores)
        return argsort_descending(scores)

    def _ranking(self, features: Features, user: str) -> Ranking:
        try:
            return self.learner.of(user).rank(features, self.rounds.next)
        except DataError as error:
            raise RequestError(422, "not_rankable", str(error)) from None

    def _open_round(
        self,
        ids: Sequence[str],
        X: Matrix,
        features: Features,
        ranking: Ranking,
        query: str,
        user: str,
        *,
        stored: bool,
    ) -> ShownList:
        if self.definition.history == "keep" and not user:
            raise RequestError(422, "no_user", "this ranker can forget users (`history`): every ranking needs `user`")
        rounds = self.rounds
        scores = ranking.scores[ranking.order]
        _check_finite(scores)
        order = [ids[item] for item in ranking.order.tolist()]
        learner = self.learner.of(user)
        pending, weights = learner.pending(features, ranking, self.k), self._weights
        if stored and learner is not self.learner and learner.ranking_weights is not None:
            weights = learner.ranking_weights.tobytes()
        explained = self.config.explained if stored else 0  # rows only for explanations are not sealed
        rows = min(len(order), max(len(pending.shown), explained))
        propensities, top_rows = pending.propensities, X[ranking.order[:rows]]
        body = open_rounds.pack(
            StoredRound(
                rounds.next,
                rounds.now(),
                self.version,
                ranking.explored,
                query,
                pending.size,
                order[:rows],
                scores[:rows].tobytes(),
                top_rows.tobytes(),
                weights if stored and self.map is None else b"",
                pending.shown.tobytes(),
                pending.drift.tobytes(),
                pending.constant,
                None if propensities is None else propensities.tobytes(),
                () if propensities is None else propensities.shape,
                self._contributions(top_rows, weights) if stored else b"",
                pending.columns.tobytes(),
                user,
            )
        )
        number, rounds.next = rounds.next, rounds.next + 1
        if stored:
            rounds.open[number] = body
        rounds.recent.append(number)
        self.stats.showed(ranking.explored)
        return ShownList(number, rounds.ids.public(number), order, scores, ranking.explored, self.version, body)

    def matrix(self, documents: Sequence[Document]) -> Matrix:
        """The features of documents, imputed and scaled; all must be finite."""
        self.check_size(len(documents))
        check_ids([document.id for document in documents])
        return self.prepared(document_matrix(documents, self.names, self.accepts_missing))

    def check_size(self, m: int) -> None:
        """Refuses lists of too many documents."""
        if m > self.config.max_documents:
            raise RequestError(
                413, "too_many_documents", f"{m} documents; at most {self.config.max_documents} are accepted"
            )

    @property
    def accepts_missing(self) -> bool:
        """Whether the model fills in missing features."""
        return self.template.imputer is not None

    def prepared(self, X: Matrix) -> Matrix:
        """Features of documents, imputed and scaled; all must be finite."""
        self.features.note(X)
        imputer, m = self.template.imputer, len(X)
        X = X if imputer is None else imputer.filled(X)
        if self.template.scaler is not None:
            X = self.template.scaler(X, np.array([0, m]))
            if not np.isfinite(X).all():
                raise RequestError(422, "feature_too_large", "a feature is too large to be scaled")
        if self.map is None:
            check_comparable(X, self.learner.kernel)
        return X

    def mapped(self, X: Matrix) -> Features:
        """The features after the feature map, if any."""
        return X if self.map is None else self.map(X)

    def _contributions(self, X: Matrix, weights: bytes) -> bytes:
        """The contributions of features to scores under a feature map; empty without one, where they are products."""
        if self.curves is None or not weights:
            return b""
        return self.curves.contributions(X, np.frombuffer(weights)).tobytes()

    def drop(self, bytes_over: int = 0) -> None:
        """Drops the oldest rounds beyond the limits of number, age and bytes, except those being answered."""
        self.forget(self.rounds.excess(bytes_over))

    def forget(self, numbers: Sequence[int]) -> None:
        """Drops open rounds, and counts them."""
        self.rounds.forget(numbers)
        self.stats.dropped += len(numbers)

    # Replacing the model

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
        raise RequestError(422, "not_rankable", "a score overflows: the features or the weights are too large")
