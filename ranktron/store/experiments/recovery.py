"""An experiment from the entries of its journal: the last that holds the whole state, and all after it."""

from __future__ import annotations

import logging

import msgspec

from ranktron.errors import DataError
from ranktron.store.config import StoreConfig
from ranktron.store.experiments.definitions import read_definition
from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.rounds import read_page
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import PREFIX, Journal, Logged, MissingEntriesError, StoredRanker
from ranktron.store.rankers.open_rounds import OpenRounds

_logger = logging.getLogger("ranktron.service")
_entry = msgspec.msgpack.Decoder(JournalEntry)


def recover_experiment(journal: Journal, stored: StoredRanker, config: StoreConfig) -> LiveExperiment:
    """The experiment as it was when its last entry was on disk: a replay, to the bit."""
    if stored.wrong is not None:
        raise stored.wrong
    name = stored.name.removeprefix(PREFIX)
    try:
        definition = read_definition(stored.definition)
    except msgspec.MsgspecError as error:
        raise DataError(f"its definition cannot be read: {error}") from None
    experiment = LiveExperiment(stored, name, definition, config)
    at = max(stored.at, _replay(experiment, journal, stored))
    rounds = {number: body for number, body in journal.open_rounds(stored.id) if body is not None}
    experiment.rounds.open = OpenRounds(rounds)
    if rounds:
        at = max(at, max(read_page(body).at for body in rounds.values()))
    if at > 0.0:
        experiment.rounds.set_clock(at)
    journal.follow(stored.id, experiment.version)
    return experiment


def _replay(experiment: LiveExperiment, journal: Journal, stored: StoredRanker) -> float:
    """Applies all entries, from the first one or from one that holds the whole state: the latest time that they know.

    Entries that were on their way to the disk when the state was taken come before it, and are applied after it.
    """
    last, at, begun = journal.last_version(stored.id), 0.0, False
    waiting: list[tuple[Logged, JournalEntry]] = []
    for logged in journal.entries(stored.id):
        entry = _whole_entry(journal, stored, logged, last)
        at = max(at, entry.at)
        waiting.append((logged, entry))
        if not begun and logged.version > 1 and entry.kind != "state":
            continue
        if not begun and entry.kind == "state":
            experiment.restore(entry)
        begun = True
        for each, told in waiting:
            if each.version == experiment.version + 1:
                experiment.apply(told, each.version, each.shown)
            elif each.version > experiment.version:
                raise DataError(f"its log is damaged at version {experiment.version + 1}")
        waiting = []
    if waiting:
        raise DataError(f"its log is damaged: it begins with version {waiting[0][0].version}")
    return at


def _whole_entry(journal: Journal, stored: StoredRanker, logged: Logged, last: int) -> JournalEntry:
    """An entry; the last one may be damaged if nobody was told of it, and is cut off then."""
    if logged.body is not None:
        return _entry.decode(logged.body)
    if logged.version < last:
        raise DataError(f"its log is damaged at version {logged.version}")
    if logged.version <= stored.last_acknowledged:
        raise MissingEntriesError(f"its log is damaged at version {logged.version}, which was acknowledged")
    nothing = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(stored.id, logged.version, encode(nothing), learnt=False)
    _logger.warning("the last entry of experiment %s, version %d, was damaged and is cut off", stored.name, last)
    return nothing
