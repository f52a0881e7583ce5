"""The rankers of a folder and their journal: what the store and the service share.

All methods run on one thread, or one at a time under a lock. What must reach the disk is a procedure (`Steps`), which
the caller runs: with threads (`ranktron.store.store`) or on an event loop (`ranktron.service`). Every change of weights
is write-ahead: it is appended to the journal, and applied once it is on disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import structs

from ranktron.errors import DataError
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError, not_leader, not_written, unknown_ranker, unknown_version
from ranktron.store.experiments.arms import kept_model
from ranktron.store.experiments.messages import ExperimentDefinition
from ranktron.store.journal.entries import JournalEntry, Result, encode
from ranktron.store.journal.journal import (
    PREFIX,
    AddRanker,
    Call,
    Erase,
    Failed,
    Job,
    Journal,
    RecordClock,
    RemoveRanker,
    Reserve,
    SealedRow,
    Settle,
    StoredRanker,
    StoreRound,
    open_journal,
)
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.messages import (
    Definition,
    FeedbackRequest,
    ForgetAnswer,
    FullAnswer,
    FullRequest,
    RankAnswer,
    RankRequest,
)
from ranktron.store.promises import CallerThread, Promise, Steps, mark_retrieved, wait
from ranktron.store.rankers import apply_entry
from ranktron.store.rankers import feedback as feedbacks
from ranktron.store.rankers.forgetting import Erasure, is_round_of
from ranktron.store.rankers.journal_writer import RESERVE, JournalWriter
from ranktron.store.rankers.live_ranker import LiveRanker, ShownList
from ranktron.store.rankers.models import Upload, blank_model, complete, encode_definition, note_other_kind
from ranktron.store.rankers.open_rounds import RoundIds
from ranktron.store.rankers.recovery import Quarantined, crash_file, recover_ranker
from ranktron.store.rankers.stats import observed_quality

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FEW_ENTRIES = 200  # entries that are replayed while a ranker is closed
MAX_PINNED = 100  # pinned versions of a ranker
_SWEEP_INTERVAL = 64  # rounds, at most, between checks of the limits on open rounds
CLOSE_INTERVAL = 1.0  # seconds between checks for overdue rounds
CLOCK_INTERVAL = 60.0  # seconds between records of the clocks
MAX_COUNTED = 4  # rankers whose features are counted at one time
MAX_CLOSED = 500  # overdue rounds closed at one time, so that other requests get their turn


class Seal(Protocol):
    """A sealed round that feedback comes with."""

    @property
    def shown(self) -> bytes:
        """The round, as an open one is stored."""
        ...

    def first_result(self, entry: JournalEntry) -> Result | None:
        """The result of earlier feedback on the round; None if there was none."""
        ...

    def row(self, entry: JournalEntry) -> SealedRow:
        """The row to write with the first feedback."""
        ...


class RankerEngine:
    """Named rankers over one journal. The constructor recovers them, `start` starts the journal's writer.

    The journal is a file in the folder, or a PostgreSQL database at the address `journal`.
    """

    def __init__(self, folder: Path, config: StoreConfig, journal: str | None = None) -> None:
        self.folder, self.config = folder, config  # fixed
        self.journal: Journal = open_journal(folder, journal)
        self.live_rankers: dict[str, LiveRanker] = {}  # serving, by name; creation, deletion and step_down
        self.quarantined: dict[str, Quarantined] = {}  # could not be recovered, by name; deletion and step_down
        self.stepped_down: RequestError | None = None  # refuses requests once another server leads; step_down
        self.writer = JournalWriter(self.journal, config, self.live_rankers)  # puts jobs into the journal
        self.experiments: list[StoredRanker] = []  # experiments in the same journal, their names prefixed; fixed
        self._changing: Promise[None] | None = None  # the creation or deletion that runs: one at a time; _alone
        self._forgetting: set[int] = set()  # rankers that forget a user at present; forget
        self._counted_at = 0.0  # when features were counted last; _count_features
        self._sweep_interval = max(1, min(_SWEEP_INTERVAL, config.max_open // 100))  # fixed
        try:
            for stored in self.journal.rankers():
                self._recover(stored)
        except BaseException:
            self.journal.close()
            raise
        self.cut = sum(live.cut for live in self.live_rankers.values())  # damaged last entries cut off; fixed

    def _recover(self, stored: StoredRanker) -> None:
        if stored.name.startswith(PREFIX):
            self.experiments.append(stored)
            return
        crash = crash_file(self.folder, stored.id)
        ranker = recover_ranker(self.journal, stored, self._snapshots(stored.id), self.config, crash)
        if isinstance(ranker, Quarantined):
            self.quarantined[ranker.name] = ranker
        else:
            self.live_rankers[ranker.name] = ranker

    def reserve_rounds(self) -> None:
        """Reserves round numbers, before `start`."""
        observed_quality((1.0,))  # loads its kernel
        for live in self.live_rankers.values():
            live.rounds.reserved = live.rounds.next + RESERVE
            self.journal.write_now(Reserve(live.id, live.rounds.reserved))

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        """Starts the journal's writer; `superseded` is called when another server has taken over."""
        self.journal.start(caller, superseded)

    def step_down(self, why: str) -> None:
        """Discards all rankers: another server has taken over, and their state is stale."""
        self.stepped_down = not_leader(why)
        self.live_rankers.clear()
        self.quarantined.clear()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        if self.stepped_down is not None:
            raise self.stepped_down

    def settle(self) -> None:
        """Writes a snapshot of every ranker that has learnt since the last one, and frees unused round numbers."""
        for live in self.live_rankers.values():
            if live.version != live.last_snapshot.version:
                self.writer.snapshot(live)
            self.journal.put(Job(Settle(live.id, live.rounds.next), failed=lambda _error: None))
        self.record_clocks()

    def record_clocks(self) -> None:
        """Records the rankers' clocks, so that open rounds expire even without traffic."""
        for live in self.live_rankers.values():
            self.journal.put(Job(RecordClock(live.id, live.rounds.now()), failed=lambda _error: None))

    def flushed(self, *, patient: bool = True) -> Promise[Any]:
        """A promise for all that was put into the journal; if `patient`, done even if it could not be written."""
        return self.writer.written(Call(lambda: None), patient=patient)

    def check_no_arm(self, name: str, version: int | None = None) -> None:
        """Refuses to delete a ranker, or a version of it, that is an arm of a stored experiment."""
        for stored in self.experiments:
            definition = msgspec.json.decode(stored.definition, type=ExperimentDefinition)
            if any(arm.ranker == name and version in (None, arm.version) for arm in definition.arms):
                subject = f"ranker {name!r}" if version is None else f"version {version} of {name!r}"
                message = f"{subject} is an arm of experiment {stored.name.removeprefix(PREFIX)!r}"
                raise RequestError(409, "in_experiment", f"{message}: delete the experiment first")

    # Rankers

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name; a RequestError if it is quarantined or unknown."""
        live = self.live_rankers.get(name)
        if live is None:
            self.check_leading()
            self._check_not_quarantined(name)
            raise unknown_ranker(name)
        return live

    def check_same(self, name: str, live: LiveRanker) -> None:
        """Refuses if a ranker was deleted and made again."""
        if self.live(name) is not live:
            raise RequestError(409, "replaced", f"ranker {name!r} was deleted and made again meanwhile: send it again")

    def _check_not_quarantined(self, name: str) -> None:
        if name in self.quarantined:
            raise RequestError(409, "set_aside", self.quarantined[name].message)

    def create(self, name: str, definition: Definition) -> Steps[LiveRanker]:
        """Gets or creates the ranker of a definition."""
        if definition.model:
            raise RequestError(422, "invalid", "`model` is set by the service: PUT the model file itself instead")
        live = yield from self._alone(self._get_or_create(name, definition))
        if complete(definition) != live.definition:
            raise RequestError(
                409,
                "exists",
                f"a different ranker {name!r} exists already ({difference(live.definition, complete(definition))}): "
                "delete it first, or choose another name",
            )
        return live

    def create_from_model(self, name: str, upload: Upload) -> Steps[LiveRanker]:
        """Gets or creates the ranker of a model file."""
        live = yield from self._alone(self._get_or_create(name, upload.definition, upload))
        if live.definition.model != upload.definition.model:
            raise RequestError(
                409,
                "exists",
                f"ranker {name!r} exists already, and was not made from this model: POST .../model replaces its model; "
                "or delete it first, or choose another name",
            )
        own = {field: getattr(live.definition, field) for field in ("labels", "close_after", "history")}
        same = structs.replace(upload.definition, **own)
        if same != upload.definition:
            differs = difference(same, upload.definition)
            raise RequestError(409, "exists", f"ranker {name!r} exists already, made differently ({differs})")
        return live

    def _alone(self, steps: Steps[_T]) -> Steps[_T]:
        """Runs a procedure after those that run already, so that names stay unique."""
        while self._changing is not None and not self._changing.done():
            yield self._changing
        changing: Promise[None] = self.writer.promise()
        self._changing = changing
        try:
            return (yield from steps)
        finally:
            changing.set_result(None)

    def _get_or_create(self, name: str, definition: Definition, upload: Upload | None = None) -> Steps[LiveRanker]:
        if not _NAME.fullmatch(name):
            raise RequestError(
                422,
                "bad_name",
                "a ranker's name has 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
            )
        self.check_leading()
        if name in self.live_rankers:
            return self.live_rankers[name]
        self._check_not_quarantined(name)
        count = len(self.live_rankers) + len(self.quarantined)
        if count >= self.config.max_rankers:
            raise RequestError(409, "too_many_rankers", f"there are {count} rankers already: delete one first")
        completed = complete(definition)
        model = blank_model(completed, self.config)
        add = AddRanker(name, encode_definition(completed), RESERVE)
        if upload is not None:  # in one transaction, so that no crash leaves the ranker without its model
            first = JournalEntry("model", 0, time(), upload.body)
            add = add._replace(rounds=upload.rounds, entry=encode(first))
        stored = yield from wait(self.writer.written(add))
        snapshots = self._snapshots(stored.id)
        snapshots.clear()  # leftovers of a ranker with the same id, of another copy of this folder
        live = LiveRanker(stored.id, name, completed, model, self.config, snapshots, stored.next)
        live.incarnation, live.rounds.ids = stored.incarnation, RoundIds(stored.epochs)
        live.rounds.reserved = stored.next + RESERVE
        if upload is not None:
            apply_entry.apply(live, first, 1, upload.model)
        self.live_rankers[name] = live
        return live

    def delete(self, name: str) -> Steps[None]:
        """Deletes a ranker and its state."""
        return self._alone(self._remove(name))

    def _remove(self, name: str) -> Steps[None]:
        rankers: dict[str, Any] = self.quarantined if name in self.quarantined else self.live_rankers
        removed = self.quarantined.get(name) or self.live(name)
        del rankers[name]
        try:
            next_round = removed.rounds.next if isinstance(removed, LiveRanker) else removed.next
            yield from wait(self.writer.written(RemoveRanker(removed.id, next_round)))
        except RequestError:
            rankers[name] = removed
            raise
        removed.snapshots.clear()
        crash_file(self.folder, removed.id).unlink(missing_ok=True)

    def _snapshots(self, ranker: int) -> Snapshots:
        return self.journal.snapshots(ranker, self.config.versions)

    # Models and versions

    def set_model(self, name: str, live: LiveRanker, upload: Upload) -> Steps[str]:
        """Replaces a ranker's model by a trained one; a note if its kind changes, which drops open rounds."""
        before, version, kind = live.template.kind, live.version, upload.model.kind
        if kind != before and version and self.live(name) is live:
            yield from self.keep(live)  # to roll back to, if this was the wrong file
        self.check_same(name, live)
        entry = live.replacement(upload.body)
        self.writer.reserve(live, upload.rounds)  # round numbers continue those of the model
        yield from wait(self.writer.logged(live, entry, model=upload.model))
        return "" if kind == before else note_other_kind(name, before, kind, version)

    def keep(self, live: LiveRanker) -> Steps[None]:
        """Pins the present version, to roll back to."""
        version, pinned = live.version, live.snapshots.pinned()
        if len(pinned) >= MAX_PINNED and version not in pinned:
            remedy = f"delete one with DELETE /v1/rankers/{live.name}/versions/N"
            raise RequestError(409, "too_many_versions", f"{MAX_PINNED} versions are kept already: {remedy}")
        yield from wait(self.writer.snapshot(live, pinned=True))
        if version not in live.snapshots.pinned():
            raise not_written("no snapshot could be written")

    def release(self, live: LiveRanker, version: int) -> Steps[None]:
        """Deletes a kept version; the two newest are refused, since recovery starts from them."""
        errors: list[Exception] = []

        def remove() -> None:
            try:
                live.snapshots.remove(version)
            except (DataError, OSError) as error:
                errors.append(error)

        yield from wait(self.writer.written(Call(remove)))
        for error in errors:
            if isinstance(error, DataError):
                raise RequestError(409, "needed_version", str(error))
            raise not_written(str(error))

    def rollback(self, live: LiveRanker, version: int) -> Steps[Result]:
        """Restores the model of a kept version, as a new version; round numbers continue."""
        return (yield from wait(self.writer.logged(live, live.replacement(kept_model(live, version)))))

    def forget(self, live: LiveRanker, user: str) -> Steps[ForgetAnswer]:
        """Forgets a user: restores the weights of a replay without this person's entries, and erases these.

        The replay runs on another thread; only for what came meanwhile the ranker is closed for a moment.
        """
        if live.definition.history != "keep":
            message = f"ranker {live.name!r} prunes its history: only one made with history='keep' can forget a user"
            raise RequestError(409, "no_history", message)
        if not user:
            raise RequestError(422, "no_user", "there is no user to forget: `user` is empty")
        if live.id in self._forgetting:
            raise RequestError(503, "busy", "another user is being forgotten: try again in a moment")
        self.check_no_arm(live.name)
        self._forgetting.add(live.id)
        try:
            erasure = Erasure(live, user, self.journal)
            while True:
                last = live.version
                yield from wait(self.journal.offload(partial(erasure.replay, last)))
                if live.version - last <= _FEW_ENTRIES:
                    break
            self.check_same(live.name, live)
            live.check_open()
            return (yield from self._erase(live, user, erasure))
        finally:
            self._forgetting.discard(live.id)

    def _erase(self, live: LiveRanker, user: str, erasure: Erasure) -> Steps[ForgetAnswer]:
        """Replaces the weights, and erases what is the user's, in one transaction."""
        live.closed = True
        try:
            yield from wait(self.flushed())
            erasure.replay(live.version)
            rounds = [number for number, body in live.rounds.open.items() if is_round_of(user, body)]
            append, result = self.writer.prepared(live, erasure.entry(live))
        except BaseException:
            live.closed = False
            raise

        def done(_result: object) -> None:
            for number in (*rounds, *erasure.rounds):
                live.rounds.open.pop(number, None)
                live.rounds.answered.pop(number, None)
                live.rounds.past.pop(number, None)
            live.snapshots.remove_unpinned(live.version)
            self.writer.snapshot(live)

        erase = Erase(live.id, erasure.versions, [*rounds, *erasure.rounds])
        self.journal.put(append, Job(erase, done, lambda _error: None))
        version = (yield from wait(result)).version
        return ForgetAnswer(version, erasure.forgotten, len(rounds), live.snapshots.pinned(), erasure.models)

    # Rounds

    def rank(self, live: LiveRanker, request: RankRequest) -> RankAnswer:
        """Ranks a list. Its round stays open and is written just after the answer."""
        self.writer.spare_number(live)
        return self._store_round(live, *live.rank(request))

    def show(self, live: LiveRanker, prepare: Callable[[], ShownList]) -> ShownList:
        """The same for a list that `prepare` shows."""
        self.writer.spare_number(live)
        shown = prepare()
        self._put_round(live, shown.number, shown.body)
        return shown

    def shadow(self, live: LiveRanker, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round for a list that another system has ordered, as if this ranker had shown it."""
        self.writer.spare_number(live)
        return self._store_round(live, *live.shadow(request, shown))

    def _store_round(self, live: LiveRanker, answer: RankAnswer, number: int, body: bytes) -> RankAnswer:
        self._put_round(live, number, body)
        return answer

    def _put_round(self, live: LiveRanker, number: int, body: bytes) -> None:
        self.journal.put_later(StoreRound(live.id, number, body))
        if number % self._sweep_interval == 0:
            self.drop_rounds(live)

    def drop_rounds(self, live: LiveRanker) -> None:
        """Drops a ranker's open rounds beyond its limits; beyond `open_bytes` in all, the largest ranker's oldest."""
        live.drop()
        self.writer.forget(live)
        bytes_over = sum(ranker.rounds.open.size for ranker in self.live_rankers.values()) - self.config.open_bytes
        if bytes_over > 0:
            largest = max(self.live_rankers.values(), key=lambda ranker: ranker.rounds.open.size)
            largest.drop(bytes_over)
            self.writer.forget(largest)

    def feedback(
        self, live: LiveRanker, request: FeedbackRequest, seal: Seal | None = None, *, later: bool = False
    ) -> Steps[Result]:
        """Learns from the feedback on a round, once it is on disk; with `later` it may wait to share a commit."""
        number = live.rounds.ids.number_of(request.round)
        while (waiting := live.rounds.unwritten.get(number)) is not None:  # earlier feedback is not on disk yet
            entry, earlier = waiting
            if feedbacks.is_repeated(entry, request):
                return (yield from wait(earlier))
            yield earlier
        outcome, row = sealable_entry(live, request, seal)
        if isinstance(outcome, Result):
            return outcome
        return (yield from wait(self.writer.logged(live, outcome, outcome.round, sealed=row, later=later)))

    def full(self, live: LiveRanker, request: FullRequest, *, later: bool = False) -> Steps[FullAnswer]:
        """Learns from a fully labelled list, once it is on disk."""
        self.writer.spare_number(live)
        entry = feedbacks.check_full(live, request)
        result = yield from wait(self.writer.logged(live, entry, later=later))
        return FullAnswer(live.rounds.ids.public(entry.round), result.loss, result.learned, result.version)

    def close_rounds(self, closed: int = 0) -> bool:
        """Closes overdue rounds, a limited number at a time; true if more are left. Failed ones stay open.

        `closed` is the number of rounds that were closed elsewhere at this time.
        """
        self._count_features()
        for live in list(self.live_rankers.values()):
            for entry in feedbacks.close_overdue(live):
                if closed >= MAX_CLOSED or len(self.journal) >= max(1, self.config.max_waiting // 2):
                    return True
                closed += 1
                mark_retrieved(self.writer.logged(live, entry, entry.round))
        return False

    def _count_features(self) -> None:
        """Counts the features of the last lists of a few rankers, once a second; logs those that have left."""
        now = monotonic()
        if now - self._counted_at < CLOSE_INTERVAL:
            return
        self._counted_at = now
        waiting = [live for live in self.live_rankers.values() if live.features.waiting]
        for live in sorted(waiting, key=lambda live: live.features.counted_at)[:MAX_COUNTED]:
            live.features.count(now)
            live.features.report(live.name)


def sealable_entry(
    live: LiveRanker, request: FeedbackRequest, seal: Seal | None
) -> tuple[JournalEntry | Result, SealedRow | None]:
    """The entry to write for feedback, or the earlier result, with the row of a sealed round that it answers."""
    outcome = feedbacks.check_feedback(live, request, None if seal is None else seal.shown)
    if seal is None or isinstance(outcome, Result) or outcome.kind != "feedback":
        return outcome, None
    earlier = seal.first_result(outcome)
    return (outcome, seal.row(outcome)) if earlier is None else (earlier, None)


def check_kept(live: LiveRanker, version: int) -> None:
    """Refuses a version that is not kept."""
    if version not in live.snapshots.versions():
        raise unknown_version(version)


def difference(exists: Definition, given: Definition) -> str:
    """What differs between two complete definitions, in words.

    >>> difference(Definition(["a"], "hinge"), Definition(["a", "b"], "hinge"))
    "features: it has ['a'], not ['a', 'b']"
    """
    fields = [field for field in Definition.__struct_fields__ if getattr(exists, field) != getattr(given, field)]
    if "algorithm" in fields:  # other parameters follow
        fields = [field for field in fields if field not in ("parameters", "scale")]
    parts = []
    for field in fields:
        old, new = getattr(exists, field), getattr(given, field)
        if field == "parameters":
            names = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
            parts += [f"{name}: it has {old.get(name)!r}, not {new.get(name)!r}" for name in names]
        else:
            parts.append(f"{field}: it has {old!r}, not {new!r}")
    return ", ".join(parts)
