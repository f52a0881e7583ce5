"""A folder of rankers that learn and survive, opened like a database: `ranktron.open`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from weakref import WeakSet

import msgspec
from msgspec import structs

from ranktron.errors import DataError
from ranktron.learners.per_user import MAX_USERS
from ranktron.store.config import StoreConfig
from ranktron.store.documents import ids_and_features
from ranktron.store.engine import CLOCK_INTERVAL, CLOSE_INTERVAL, RankerEngine, check_kept
from ranktron.store.errors import RequestError
from ranktron.store.messages import (
    ALGORITHM_FOR,
    Definition,
    Document,
    ExplainAnswer,
    FeatureDistances,
    FeedbackAnswer,
    FeedbackRequest,
    ForgetAnswer,
    FullAnswer,
    FullRequest,
    LearnsFrom,
    RankerAnswer,
)
from ranktron.store.promises import Steps, run_steps
from ranktron.store.rankers import views
from ranktron.store.rankers.live_ranker import LiveRanker, ShownList
from ranktron.store.rankers.models import read_upload
from ranktron.store.threads import LockingCaller

if TYPE_CHECKING:
    from ranktron.training.model import Model

_T = TypeVar("_T")
Durability = Literal["disk", "batch"]
MEMORY = ":memory:"


class ShownRanking(NamedTuple):
    """A ranking to show: the items best first with their scores, and the id that feedback refers to.

    Parameters
    ----------
    id : int
        What `feedback` and `explain` refer to.
    items : list of str
        The ids of all documents, best first.
    scores : list of float
        Their scores, in the same order.
    explored : bool
        Whether the order was changed to learn more.
    version : int
        The version of the ranker that ranked.

    Examples
    --------
    >>> with Store(":memory:") as store:
    ...     ranking = store.ranker("shop", features=["bm25"]).rank({"a": [1.0], "b": [2.0]})
    >>> ranking.id, len(ranking.items)
    (0, 2)
    """

    id: int
    items: list[str]
    scores: list[float]
    explored: bool
    version: int


class Store:
    """Rankers in a folder that learn from feedback and survive crashes; `ranktron.open` makes one.

    Any number of threads may use a store at one time, and one process.

    Parameters
    ----------
    path : path
        The folder, which is made if it is missing; ":memory:" for one that is deleted when the store is closed.
    durability : {"disk", "batch"}
        Whether `feedback` returns when it is on disk, or at once; `flush` waits then.
    config : StoreConfig, optional
        Limits, and how long rounds are kept.

    Examples
    --------
    >>> import ranktron
    >>> with ranktron.open(":memory:") as store:
    ...     shop = store.ranker("shop", features=["bm25", "price"])
    ...     ranking = shop.rank({"a": [7.1, 19.0], "b": [6.8, 12.0]}, query="lamp")
    ...     shop.feedback(ranking.id, clicked=["b"])
    FeedbackAnswer(learned=True, version=1)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = "disk", config: StoreConfig | None = None
    ) -> None:
        if sys.platform == "win32":
            raise DataError("a store needs Linux or macOS: its folder is locked as Windows cannot")
        if durability not in ("disk", "batch"):
            raise DataError(f'durability is "disk" or "batch", not {durability!r}')
        self._temporary = _temporary_folder() if path == MEMORY else None  # deleted by close; fixed
        self.path = Path(path if self._temporary is None else self._temporary.name)  # fixed
        self.durability = durability  # fixed
        self._later = durability == "batch"  # fixed
        self._process = os.getpid()  # the process that may use it; fixed
        self._closed = False  # set once, by close
        self._failures: list[BaseException] = []  # of feedback that nobody has waited for; _note_failure and flush
        self._recorded_at = monotonic()  # when the clocks were recorded last; _close_rounds
        try:
            self._engine = RankerEngine(self.path, _checked(config or StoreConfig()))
        except BaseException:
            self._clean_up()
            raise
        self._caller = LockingCaller()  # whoever holds its lock may use the engine
        self._lock = self._caller.lock
        try:
            self._engine.reserve_rounds()
        except BaseException:
            self._caller.close()
            self._engine.journal.close()
            self._clean_up()
            raise
        self._engine.start(self._caller, lambda why: self._engine.step_down(str(why)))
        self._caller.call_later(CLOSE_INTERVAL, self._close_rounds)
        _open_stores.add(self)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @property
    def rankers(self) -> list[str]:
        """The names of the rankers.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     store.rankers
        ['shop']
        """
        self._check_usable()
        with self._lock:
            return sorted([*self._engine.live_rankers, *self._engine.quarantined])

    def ranker(
        self,
        name: str,
        *,
        features: Iterable[str] | None = None,
        learns_from: LearnsFrom | None = None,
        algorithm: str = "",
        parameters: Mapping[str, Any] | None = None,
        labels: tuple[float, float] = (0.0, 4.0),
        close_after: float | None = None,
        scale: str | None = None,
        history: Literal["prune", "keep"] = "prune",
        model: Model | bytes | str | os.PathLike[str] | None = None,
        start: Any = None,
        trust: float | None = None,
        per: Literal["user"] | None = None,
    ) -> Ranker:
        """Opens a ranker, which is made if it is missing; another definition than it has is an error.

        Parameters
        ----------
        name : str
            The name of the ranker in the store.
        features : iterable of str, optional
            The names of the features; without them and `model`, the ranker must exist.
        learns_from : {"clicks", "top-labels", "labels"}, optional
            What will come back: clicks (the default), labels of the first documents, or labels of whole lists.
        algorithm : str, optional
            The name of an online algorithm, instead of `learns_from`.
        parameters : mapping, optional
            Parameters of the algorithm, such as `{"k": 5}`; recommended ones by default.
        labels : pair of float
            The lowest and the highest label.
        close_after : float, optional
            The seconds after which a ranking without feedback counts as one without a click.
        scale : {"none", "standard-query", "minmax-query"}, optional
            How features are scaled within each list; by default as is recommended for the algorithm.
        history : {"prune", "keep"}
            Whether answered rankings are kept, which `forget` needs, and then `user` in every ranking.
        model : Model, bytes or path, optional
            A trained model or its file, which the ranker is at first, instead of a definition.
        start : mapping, array, Model, path or estimator, optional
            Weights to start from, for features as they are given; or a linear model, of which the features, scaling and
            everything else that its weights are for come along, too (`ranktron.linear_start`).
        trust : float, optional
            How far weights may go from those of the start, in Euclidean distance.
        per : {"user"}, optional
            Whether each user (`user=` of rankings) has weights of their own on top of everybody's.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25", "price"], learns_from="top-labels", parameters={"k": 3})
        ...     shop.definition.algorithm, store.ranker("shop").definition.parameters["k"]
        ('topk', 3)
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25", "price"], start={"bm25": 1.0}, trust=0.5)
        ...     shop.weights
        {'bm25': 1.0, 'price': 0.0}
        """
        self._check_usable()
        if algorithm and learns_from:
            raise RequestError(422, "invalid", "`learns_from` chooses the algorithm: leave it or `algorithm` out")
        given = {
            "algorithm": algorithm,
            "learns_from": learns_from,
            "parameters": dict(parameters or {}),
            "labels": labels,
            "close_after": close_after,
            "scale": scale,
            "history": history,
            "trust": trust,
            "per": per,
        }
        names = None if features is None else list(features)
        if model is not None:
            if start is not None:
                raise RequestError(422, "invalid", "a ranker goes on from a `model` or begins with a `start`, not both")
            if names is not None or learns_from or algorithm or parameters or trust is not None or per:
                raise RequestError(422, "invalid", "a model has its own features, algorithm and parameters")
            return self._from_model(name, _model_bytes(model), given)
        if start is not None:
            return self._from_start(name, names, start, given)
        if names is None:
            with self._lock:
                if name in self._engine.live_rankers or name in self._engine.quarantined:
                    self._engine.live(name)
                    return Ranker(self, name)
            raise RequestError(404, "unknown_ranker", f"there is no ranker {name!r}: `features` makes one")
        return self._from_definition(name, {"features": names, **given})

    def _from_definition(self, name: str, given: Mapping[str, Any]) -> Ranker:
        try:
            definition = msgspec.convert(given, Definition)
        except msgspec.ValidationError as error:
            raise RequestError(422, "invalid", str(error)) from None
        self._finish(self._engine.create(name, definition))
        return Ranker(self, name)

    def _from_start(self, name: str, names: list[str] | None, start: Any, given: Mapping[str, Any]) -> Ranker:
        """Makes a ranker that starts from weights, or from a linear model with its scaling."""
        from ranktron.training.starting import linear_start

        found = linear_start(start, names)
        if not found.plain:
            users = MAX_USERS if given["per"] else 0
            chosen = given["algorithm"] or ALGORITHM_FOR[given["learns_from"] or "clicks"]
            begun = found.model(chosen, given["parameters"], trust=given["trust"], users=users)
            return self._from_model(name, begun.to_bytes(), given)
        names = names or list(found.feature_names or ())
        if not names:
            raise RequestError(422, "invalid", "weights to start from need `features`: their names, in order")
        weights = dict(zip(names, found.weights.tolist(), strict=True))
        return self._from_definition(name, {"features": names, "start": weights, **given})

    def _from_model(self, name: str, data: bytes, given: Mapping[str, Any]) -> Ranker:
        """Makes a ranker from a model file, which has most of the definition."""
        if given["scale"] is not None:
            raise RequestError(422, "invalid", "a model has its own scaling")
        upload = read_upload(data, None, self._engine.config)
        own = {field: given[field] for field in ("labels", "close_after", "history")}
        definition = structs.replace(upload.definition, **own)
        self._finish(self._engine.create_from_model(name, upload._replace(definition=definition)))
        return Ranker(self, name)

    def delete(self, name: str) -> None:
        """Deletes a ranker and all it has learnt.

        Parameters
        ----------
        name : str
            The ranker.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     store.delete("shop")
        ...     store.rankers
        []
        """
        self._check_usable()
        self._engine.check_no_arm(name)
        self._finish(self._engine.delete(name))

    def flush(self) -> None:
        """Waits until everything is on disk; raises the error of feedback that could not be written.

        Examples
        --------
        >>> with Store(":memory:", durability="batch") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     shop.feedback(shop.rank({"a": [1.0], "b": [2.0]}).id, clicked=["b"])
        ...     store.flush()
        ...     shop.version
        1
        """
        self._check_usable()
        with self._lock:
            flushed = self._engine.flushed(patient=False)
        try:
            flushed.result()
        finally:
            self._raise_failure()

    def close(self) -> None:
        """Waits until everything is on disk, and releases the folder. Open rankings stay open for the next time.

        Examples
        --------
        >>> store = Store(":memory:")
        >>> store.close()
        >>> store.rankers
        Traceback (most recent call last):
        ...
        ranktron.errors.DataError: the store is closed
        """
        if self._process != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            flushed = self._engine.flushed()
        flushed.result()
        with self._lock:
            self._engine.settle()
        self._engine.journal.close()
        self._caller.close()
        _open_stores.discard(self)
        self._clean_up()
        self._raise_failure()

    # What rankers use

    def _live(self, name: str) -> LiveRanker:
        return self._engine.live(name)

    def _check_usable(self) -> None:
        """Refuses a closed store, and one that was opened before a fork."""
        if self._process != os.getpid():
            raise DataError(
                f"the store was opened in process {self._process}, before a fork: use it there, or let other processes "
                f"reach it through `ranktron serve --dir {self.path}`"
            )
        if self._closed:
            raise DataError("the store is closed")

    def _begin(self, steps: Steps[_T]) -> Future[_T]:
        """Runs a procedure up to where it waits for the disk."""
        with self._lock:
            answer: Future[_T] = Future()
            run_steps(steps, answer)
            return answer

    def _finish(self, steps: Steps[_T]) -> _T:
        """Runs a procedure to its end."""
        return self._begin(steps).result()

    def _learn(self, steps: Steps[_T]) -> _T | None:
        """Runs a procedure to its end; with durability "batch" as far as it goes without waiting."""
        answer = self._begin(steps)
        if not self._later or answer.done():
            return answer.result()
        answer.add_done_callback(self._note_failure)
        return None

    def _note_failure(self, answer: Future[Any]) -> None:
        error = answer.exception()
        if error is not None:
            self._failures.append(error)

    def _raise_failure(self) -> None:
        failures, self._failures = self._failures, []
        if failures:
            raise failures[0]

    def _close_rounds(self) -> None:
        """Closes overdue rounds; under the lock, every second."""
        if self._closed:
            return
        more = False
        try:
            more = self._engine.close_rounds()
            if monotonic() - self._recorded_at >= CLOCK_INTERVAL:
                self._recorded_at = monotonic()
                self._engine.record_clocks()
        finally:
            self._caller.call_later(CLOSE_INTERVAL / 50 if more else CLOSE_INTERVAL, self._close_rounds)

    def _clean_up(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()


class Ranker:
    """A ranker of a store; `Store.ranker` makes or opens one.

    Parameters
    ----------
    store : Store
        The store, which must be open for whatever the ranker does.
    name : str
        The name of the ranker in it.

    Examples
    --------
    >>> with Store(":memory:") as store:
    ...     shop = store.ranker("shop", features=["bm25"])
    ...     answer = shop.feedback(shop.rank({"a": [1.0], "b": [2.0]}).id, clicked=["b"])
    ...     shop, shop.version
    (Ranker('shop'), 1)
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self.name = store, name

    def __repr__(self) -> str:
        return f"Ranker({self.name!r})"

    def rank(self, documents: Any, items: Any = None, *, query: str = "", user: str = "") -> ShownRanking:
        """Ranks documents; the ranking stays open for feedback.

        Parameters
        ----------
        documents : mapping, rows, array or data frame
            The features of each document: by id, each as a dict by name or as a row; or rows alone, an array (quickest
            in 32 bits) or a data frame with a column for each feature.
        items : iterable of str, optional
            The ids of the documents of rows, an array or a data frame, or the name of a column; positions by default.
        query : str
            For display.
        user : str
            Who the ranking is shown to.

        Examples
        --------
        >>> import numpy as np
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25", "price"])
        ...     by_name = shop.rank({"a": {"bm25": 7.1, "price": 19.0}, "b": {"bm25": 6.8, "price": 12.0}})
        ...     by_row = shop.rank(np.array([[7.1, 19.0], [6.8, 12.0]], np.float32), ["a", "b"])
        ...     sorted(by_name.items), by_row.scores
        (['a', 'b'], [0.0, 0.0])
        """
        store = self._store
        store._check_usable()
        if len(query) > 1000 or len(user) > 200:
            raise RequestError(422, "invalid", "a query has at most 1000 characters, a user at most 200")
        with store._lock:
            live = store._live(self.name)
            live.check_open()

            def show() -> ShownList:
                ids, X = self._read(live, documents, items)
                return live.show(ids, X, query, user)

            shown = store._engine.show(live, show)
        return ShownRanking(shown.round, shown.ids, shown.scores.tolist(), shown.explored, shown.version)

    def feedback(
        self,
        ranking: int,
        *,
        clicked: Iterable[str] | None = None,
        gains: Mapping[str, float] | None = None,
        labels: Mapping[str, float] | None = None,
    ) -> FeedbackAnswer | None:
        """Learns from what came back for the first documents of a ranking: now, later, or never.

        Clicks and gains may come again: gains are totals, a click counts as 1, and what is new is learnt. Feedback that
        adds nothing gets the answer of the last one that did.

        Parameters
        ----------
        ranking : int
            The id of the ranking.
        clicked : iterable of str
            The items that were clicked; none if empty.
        gains : mapping of str to float
            What items have gained so far.
        labels : mapping of str to float
            The labels of items.

        Returns
        -------
        FeedbackAnswer or None
            Whether the weights have changed, and the version after it; None with durability "batch" while it is not on
            disk.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     ranking = shop.rank({"a": [1.0], "b": [2.0]})
        ...     shop.feedback(ranking.id, clicked=["b"])
        ...     shop.feedback(ranking.id, gains={"b": 3.0})
        FeedbackAnswer(learned=True, version=1)
        FeedbackAnswer(learned=True, version=2)
        """
        store = self._store
        store._check_usable()
        request = _feedback_request(ranking, clicked, gains, labels)
        with store._lock:
            live = store._live(self.name)
        result = store._learn(store._engine.feedback(live, request, later=store._later))
        return None if result is None else FeedbackAnswer(result.learned, result.version)

    def learn(
        self, documents: Any, labels: Mapping[str, float], items: Any = None, *, query: str = ""
    ) -> FullAnswer | None:
        """Learns from a list with the labels of all its documents, which need not have been ranked.

        Only for algorithms that do not depend on what was shown, as those with `learns_from="labels"`.

        Parameters
        ----------
        documents, items
            As `rank` takes them.
        labels : mapping of str to float
            The label of each document.
        query : str
            For display.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"], learns_from="labels")
        ...     shop.learn({"a": [1.0], "b": [2.0]}, {"a": 0, "b": 1}).learned
        True
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
            ids, X = ids_and_features(documents, items, live.names, missing=live.accepts_missing)
            rows = [Document(id, row) for id, row in zip(ids, X, strict=True)]
        request = FullRequest(rows, _checked_grades(labels), query)
        return store._learn(store._engine.full(live, request, later=store._later))

    def explain(self, ranking: int) -> ExplainAnswer:
        """Why a ranking was ordered as it was: what each feature added to each score.

        Parameters
        ----------
        ranking : int
            The id of a ranking that is open, or one of the last that were answered.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"], scale="none")
        ...     shop.explain(shop.rank({"a": [1.0], "b": [2.0]}).id).documents[0].contributions
        {'bm25': 0.0}
        """
        self._store._check_usable()
        with self._store._lock:
            return views.explain(self._store._live(self.name), ranking)

    @property
    def weights(self) -> dict[str, float] | None:
        """The weight of each feature; None if the scores are no weighted sums of features.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25", "price"]).weights
        {'bm25': 0.0, 'price': 0.0}
        """
        self._store._check_usable()
        with self._store._lock:
            live = self._store._live(self.name)
            weights = None if live.map is not None else live.weights
            return None if weights is None else dict(zip(live.filled_names, weights.tolist(), strict=True))

    @property
    def version(self) -> int:
        """The number of changes that the ranker has learnt.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).version
        0
        """
        self._store._check_usable()
        with self._store._lock:
            return self._store._live(self.name).version

    @property
    def definition(self) -> Definition:
        """The complete definition: features, algorithm, parameters and scaling.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).definition.algorithm
        'pdgd'
        """
        self._store._check_usable()
        with self._store._lock:
            return self._store._live(self.name).definition

    @property
    def state(self) -> RankerAnswer:
        """A description: version, rankings so far, open ones, what it learns from.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).state.open
        0
        """
        self._store._check_usable()
        with self._store._lock:
            return views.ranker(self._store._live(self.name))

    @property
    def distances(self) -> FeatureDistances:
        """How far the features of recent lists are from the training data; a log message says when one leaves them.

        A ranker that was made without a model compares with its first 200 lists.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).distances
        FeatureDistances(reference=None, lists=0, needed=100, features=[])
        """
        self._store._check_usable()
        with self._store._lock:
            return views.distances(self._store._live(self.name))

    @property
    def model(self) -> Model:
        """The present model, as `ranktron.load` reads one.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).model.kind
        'pdgd'
        """
        self._store._check_usable()
        with self._store._lock:
            return self._store._live(self.name).model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the present model to a file, completely or not at all.

        Parameters
        ----------
        path : path
            The model file.

        Examples
        --------
        >>> import ranktron, tempfile
        >>> with Store(":memory:") as store, tempfile.TemporaryDirectory() as folder:
        ...     store.ranker("shop", features=["bm25"]).save(f"{folder}/shop.model")
        ...     ranktron.load(f"{folder}/shop.model").kind
        'pdgd'
        """
        self.model.save(path)

    def forget(self, user: str) -> ForgetAnswer:
        """Forgets a user: the weights are then those of a replay without this person's feedback, which is erased.

        Only for rankers made with `history="keep"`. Others may rank and learn meanwhile; at the end the ranker refuses
        for a moment. Kept versions, uploaded models and backups are not reached; the answer lists the former.

        Parameters
        ----------
        user : str
            The user, as rankings named them.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"], history="keep")
        ...     for user in "u1", "u2":
        ...         ranking = shop.rank({"a": [1.0], "b": [2.0]}, user=user)
        ...         answer = shop.feedback(ranking.id, clicked=["b"])
        ...     shop.forget("u1")
        ForgetAnswer(version=3, entries=1, open=0, kept=[], models=[])
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
        return store._finish(store._engine.forget(live, user))

    # Versions

    def set_model(self, model: Model | bytes | str | os.PathLike[str]) -> str:
        """Goes on from a trained model with the same features; the note says if its kind is another.

        Parameters
        ----------
        model : Model, bytes or path
            A model, or its file.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     shop.set_model(shop.model)
        ...     shop.version
        ''
        1
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
        upload = read_upload(_model_bytes(model), live.definition, store._engine.config)
        return store._finish(store._engine.set_model(self.name, live, upload))

    @property
    def versions(self) -> list[int]:
        """The kept versions, to roll back to.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).versions
        []
        """
        self._store._check_usable()
        with self._store._lock:
            return self._store._live(self.name).snapshots.versions()

    def keep(self) -> int:
        """Keeps the present version, to roll back to; its number.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     store.ranker("shop", features=["bm25"]).keep()
        0
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
            version = live.version
            kept = store._begin(store._engine.keep(live))
        kept.result()
        return version

    def release(self, version: int) -> None:
        """Deletes a kept version; the two newest stay.

        Parameters
        ----------
        version : int
            One of `versions`.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     for _ in range(3):
        ...         version = shop.keep()
        ...         answer = shop.feedback(shop.rank({"a": [1.0], "b": [2.0]}).id, clicked=["b"])
        ...     shop.release(0)
        ...     shop.versions
        [1, 2]
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
            check_kept(live, version)
            store._engine.check_no_arm(self.name, version)
        store._finish(store._engine.release(live, version))

    def rollback(self, version: int) -> None:
        """Goes back to the model of a kept version, as a new version.

        Parameters
        ----------
        version : int
            One of `versions`.

        Examples
        --------
        >>> with Store(":memory:") as store:
        ...     shop = store.ranker("shop", features=["bm25"])
        ...     shop.rollback(shop.keep())
        ...     shop.version
        1
        """
        store = self._store
        store._check_usable()
        with store._lock:
            live = store._live(self.name)
            rolled_back = store._begin(store._engine.rollback(live, version))
        rolled_back.result()

    def _read(self, live: LiveRanker, documents: Any, items: Any) -> tuple[Any, Any]:
        """The ids of documents and their prepared features."""
        ids, X = ids_and_features(documents, items, live.names, missing=live.accepts_missing)
        live.check_size(len(ids))
        return ids, live.prepared(X)


def open(path: str | os.PathLike[str], *, durability: Durability = "disk", config: StoreConfig | None = None) -> Store:
    """Opens a store: a folder of rankers that learn from feedback and survive crashes.

    Parameters
    ----------
    path : path
        The folder, which is made if it is missing; ":memory:" for one that is deleted when the store is closed.
    durability : {"disk", "batch"}
        Whether `feedback` returns when it is on disk, or at once; `Store.flush` waits then.
    config : StoreConfig, optional
        Limits, and how long rounds are kept.

    Examples
    --------
    >>> import ranktron, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with ranktron.open(folder.name) as store:
    ...     shop = store.ranker("shop", features=["bm25", "price"])
    ...     ranking = shop.rank({"a": [7.1, 19.0], "b": [6.8, 12.0]}, query="lamp", user="u7")
    >>> with ranktron.open(folder.name) as store:  # the ranking is still open
    ...     store.ranker("shop").feedback(ranking.id, clicked=["b"])
    FeedbackAnswer(learned=True, version=1)
    >>> folder.cleanup()
    """
    return Store(path, durability=durability, config=config)


def _temporary_folder() -> TemporaryDirectory[str]:
    """A folder in memory, where the system has one."""
    memory = "/dev/shm"
    return TemporaryDirectory(prefix="ranktron-", dir=memory if os.access(memory, os.W_OK) else None)


def _checked(config: StoreConfig) -> StoreConfig:
    try:
        return msgspec.convert(msgspec.to_builtins(config), type(config))
    except msgspec.ValidationError as error:
        raise DataError(f"the config of the store: {error}") from None


def _model_bytes(model: Model | bytes | str | os.PathLike[str]) -> bytes:
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | os.PathLike):
        try:
            return Path(model).read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {os.fspath(model)}: {error.strerror}") from None
    return model.to_bytes()


def _feedback_request(
    ranking: int,
    clicked: Iterable[str] | None,
    gains: Mapping[str, float] | None,
    labels: Mapping[str, float] | None,
) -> FeedbackRequest:
    if sum(given is not None for given in (clicked, gains, labels)) != 1:
        raise RequestError(422, "invalid", "feedback has either `clicked` or `gains` or `labels`")
    if type(ranking) is not int or not 0 <= ranking <= 2**53:
        raise RequestError(422, "invalid", f"feedback refers to the id of a ranking, not to {ranking!r}")
    if clicked is not None:
        if isinstance(clicked, str):
            raise RequestError(422, "invalid", f"`clicked` is a list of items: [{clicked!r}]")
        items = list(clicked)
        if set(map(type, items)) - {str}:
            items = [str(item) for item in _only_strings(items)]
        return FeedbackRequest(ranking, clicks=items)
    if gains is not None:
        return FeedbackRequest(ranking, gains=_checked_grades(gains))
    assert labels is not None
    if not labels:
        raise RequestError(422, "invalid", "`labels` are of one item at least")
    return FeedbackRequest(ranking, labels=_checked_grades(labels))


def _checked_grades(grades: Mapping[str, float]) -> dict[str, float]:
    try:
        checked = {item: float(grade) for item, grade in zip(_only_strings(grades), grades.values(), strict=True)}
    except (TypeError, ValueError) as error:
        raise RequestError(422, "invalid", f"labels and gains are numbers by item: {error}") from None
    wrong = next((item for item, grade in checked.items() if not grade >= 0.0), None)
    if wrong is not None:
        raise RequestError(422, "invalid", f"labels and gains are 0 or more, and that of {wrong!r} is {checked[wrong]}")
    return checked


def _only_strings(items: Iterable[Any]) -> list[str]:
    ids = list(items)
    wrong = next((item for item in ids if not isinstance(item, str)), None)
    if wrong is not None:
        raise RequestError(422, "invalid", f"ids of documents are strings, and {wrong!r} is none")
    return ids


_open_stores: WeakSet[Store] = WeakSet()


@atexit.register
def _close_stores() -> None:
    """Closes the stores that are open when the process ends."""
    for store in list(_open_stores):
        store.close()


def _release_locks() -> None:
    """Lets go of the folders in a child after a fork: the parent alone holds them."""
    for store in list(_open_stores):
        store._engine.journal.release_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_locks)
