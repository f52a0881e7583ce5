"""What the verdict of an experiment brings about, and what keeps its journal short. The journal has it first."""

from __future__ import annotations

import asyncio
import logging

from ranktron.service.awaiting import AwaitedWriter
from ranktron.store.errors import RequestError
from ranktron.store.experiments.arms import kept_model
from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import Append, Job, Prune
from ranktron.store.rankers.journal_writer import refusal

_logger = logging.getLogger("ranktron.service")


class Consequences:
    """Writes what follows from the outcomes of experiments, on the event loop's thread."""

    def __init__(self, writer: AwaitedWriter) -> None:
        self._writer, self._journal = writer, writer.journal

    def follow(self, experiment: LiveExperiment) -> None:
        """Does what is due: the guard goes back; and now and then the whole state is written."""
        if experiment.busy:
            return
        if experiment.tally.alarm is not None and not experiment.noted:
            self._go_back(experiment)
        elif experiment.needs_state():
            self._write_state(experiment)

    def _go_back(self, experiment: LiveExperiment) -> None:
        """Gives the ranker the weights of its incumbent, and writes why, in one commit; what fails is tried again."""
        version = experiment.definition.arms[0].version
        assert version is not None
        try:
            live = experiment.arms[1].live
            job, replaced = self._writer.prepared(live, live.replacement(kept_model(live, version)))
        except RequestError as error:
            _logger.warning("experiment %s cannot roll back yet: %s", experiment.name, error)
            return
        replaced.add_done_callback(asyncio.Future.exception)
        _logger.warning("experiment %s: %s", experiment.name, experiment.why)
        self.append(experiment, JournalEntry("note", 0, experiment.now(), experiment.why.encode()), job)

    def _write_state(self, experiment: LiveExperiment) -> None:
        """Writes the whole state, and then drops what is before the one before it."""
        written = self.append(experiment, experiment.state_entry())

        def prune(done: asyncio.Future[None]) -> None:
            if done.exception() is None and len(experiment.stated) > 1:
                before = experiment.stated[0]
                self._journal.put(Job(Prune(experiment.id, before, before, before, before)))

        written.add_done_callback(prune)

    def append(self, experiment: LiveExperiment, entry: JournalEntry, *before: Append) -> asyncio.Future[None]:
        """A future of an entry that answers no round: it is done when that is on disk and applied."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(asyncio.Future.exception)
        experiment.busy = True

        def done(version: int) -> None:
            experiment.busy = False
            experiment.apply(entry, version)
            if not future.done():
                future.set_result(None)

        def failed(error: BaseException) -> None:
            experiment.busy = False
            if not future.done():
                future.set_exception(refusal(error))

        self._journal.put(*before, Append(experiment.id, None, encode(entry), done, failed))
        return future
