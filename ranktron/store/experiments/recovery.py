"""Recovery of an experiment from its journal: its first entry or oldest checkpoint, and all entries after it."""

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
    """The experiment as of its last entry, by a replay that is exact to the bit."""
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
    """Applies all entries, from the first or from a checkpoint, and returns the latest time among them.

    Entries that were being written when a checkpoint was taken precede it in the journal and are not part of it: they
    are buffered and applied after it.
    """
    last, at, started = journal.last_version(stored.id), 0.0, False
    buffer: list[tuple[Logged, JournalEntry]] = []
    for row in journal.entries(stored.id):
        entry = _read_entry(journal, stored, row, last)
        at = max(at, entry.at)
        buffer.append((row, entry))
        if not started and row.version > 1 and entry.kind != "state":
            continue
        if not started and entry.kind == "state":
            experiment.restore(entry)
        started = True
        for buffered, buffered_entry in buffer:
            if buffered.version == experiment.version + 1:
                experiment.apply(buffered_entry, buffered.version, buffered.shown)
            elif buffered.version > experiment.version:
                raise DataError(f"its log is damaged at version {experiment.version + 1}")
        buffer = []
    if buffer:
        raise DataError(f"its log is damaged: it begins with version {buffer[0][0].version}")
    return at


def _read_entry(journal: Journal, stored: StoredRanker, logged: Logged, last: int) -> JournalEntry:
    """Decodes an entry. A damaged last entry is truncated if it was not acknowledged; any other damage is an error."""
    if logged.body is not None:
        return _entry.decode(logged.body)
    if logged.version < last:
        raise DataError(f"its log is damaged at version {logged.version}")
    if logged.version <= stored.last_acknowledged:
        raise MissingEntriesError(f"its log is damaged at version {logged.version}, which was acknowledged")
    nothing = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(stored.id, logged.version, encode(nothing), learnt=False)
    _logger.warning("the last entry of experiment %s, version %d, was damaged and is truncated", stored.name, last)
    return nothing
