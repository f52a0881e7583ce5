"""The claims of the journal's README: those that no other test makes, and that every claim names a test."""

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import pytest

import ranktron.store.journal
from ranktron.store.journal.integrity import Mark
from ranktron.store.journal.journal import AddRanker, AdvanceSource, Append, Job, JournalError, StoreRound
from ranktron.store.journal.sqlite_journal import SQLiteJournal

README = (Path(ranktron.store.journal.__file__).parent / "README.md").read_text(encoding="utf-8")
TESTS = Path(__file__).parents[2]


class Caller:
    """A thread that calls back without an event loop: when `run` is called, in order."""

    def __init__(self):
        self.waiting = SimpleQueue()

    def call_soon(self, callback, *arguments):
        self.waiting.put((callback, arguments))

    def call_later(self, _delay, callback, *arguments):
        self.waiting.put((callback, arguments))

    call_soon_threadsafe = call_soon

    def run(self, until):
        """Calls back until something is so."""
        while not until():
            callback, arguments = self.waiting.get(timeout=10)
            callback(*arguments)


@pytest.fixture
def start(tmp_path):
    """Starts a journal in a folder that has one ranker, with its caller."""
    started = []

    def begin():
        while started:
            started.pop().close()
        journal, caller = SQLiteJournal(tmp_path), Caller()
        if not journal.rankers():
            journal.write_now(AddRanker("shop", b"{}", 100))
        journal.start(caller, lambda error: None)
        started.append(journal)
        return journal, caller

    yield begin
    for journal in started:
        journal.close()


def append(journal, caller, *bodies):
    """Appends entries together; their versions, or errors."""
    (shop,) = journal.rankers()
    outcomes = []
    journal.put(*[Append(shop.id, None, body, outcomes.append, outcomes.append) for body in bodies])
    caller.run(lambda: len(outcomes) == len(bodies))
    return outcomes


def test_versions_count_from_one_without_gaps(start):
    journal, caller = start()
    (shop,) = journal.rankers()
    assert append(journal, caller, b"a", b"b") == [1, 2]
    assert append(journal, caller, b"c") == [3]
    journal, caller = start()
    assert [(each.version, each.body) for each in journal.entries(shop.id)] == [(1, b"a"), (2, b"b"), (3, b"c")]
    assert append(journal, caller, b"d") == [4]


def test_every_start_begins_a_term(tmp_path):
    def found():
        with closing(SQLiteJournal(tmp_path)) as journal:
            if not journal.rankers():
                journal.write_now(AddRanker("shop", b"{}", 100))
            (shop,) = journal.rankers()
            return journal.term, shop.epochs

    (first, epochs), *later = [found() for _ in range(3)]
    assert first == 1
    assert later == [(2, epochs), (3, epochs)]  # the folder is the one that it was
    (tmp_path / "mark").unlink()
    term, changed = found()
    assert term == 4
    assert changed[:-1] == epochs
    assert changed[-1][1] not in {epoch for _, epoch in epochs}


def test_a_ranker_made_again_is_another_incarnation(serving, tmp_path):
    with serving(tmp_path / "state") as talk:
        talk.make()
        first = talk.service.live("shop")
        talk.ask("DELETE", "/v1/rankers/shop")
        talk.make()
        second = talk.service.live("shop")
        assert first.incarnation != second.incarnation
        assert first.id != second.id
        assert second.rounds.next >= first.rounds.next


def test_jobs_that_are_put_together_are_written_together(start):
    journal, caller = start()
    (shop,) = journal.rankers()
    outcomes = []
    append_one = Append(shop.id, None, b"a", outcomes.append, outcomes.append)
    impossible = Job(AdvanceSource("clicks", 5, 6), outcomes.append, outcomes.append)  # a source begins at 0
    journal.put(append_one, impossible)
    caller.run(lambda: len(outcomes) == 2)
    assert all(isinstance(outcome, JournalError) for outcome in outcomes)
    assert list(journal.entries(shop.id)) == []
    assert append(journal, caller, b"b") == [1]


def test_a_callback_finds_its_entry_and_its_mark_on_disk(start, tmp_path):
    journal, caller = start()
    (shop,) = journal.rankers()
    here, seen = threading.get_ident(), []

    def done(version):
        assert threading.get_ident() == here
        with closing(sqlite3.connect(tmp_path / "log.sqlite")) as log:
            entries = log.execute("SELECT count(*) FROM entries").fetchone()[0]
        mark = Mark(tmp_path / "mark")
        seen.append((version, entries, mark.rankers[shop.id].version))
        mark.close()

    for _ in range(3):
        before = len(seen)
        journal.put(Append(shop.id, None, b"a", done, seen.append))
        caller.run(lambda before=before: len(seen) > before)
    assert seen == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_a_round_is_tried_again_until_it_is_written(start, monkeypatch):
    journal, caller = start()
    (shop,) = journal.rankers()
    commit, refused = journal._database.commit, []

    def refuse():
        if len(refused) < 2:
            refused.append(True)
            raise OSError("the disk is full")
        commit()

    monkeypatch.setattr(journal._database, "commit", refuse)
    journal.put_later(StoreRound(shop.id, 7, b"shown"))
    caller.run(lambda: len(refused) == 2 and journal.ready)
    assert journal.open_rounds(shop.id) == [(7, b"shown")]


def test_every_claim_names_a_test_that_there_is():
    claims = re.findall(r"(?m)^(?:- |\d+\. )(.*(?:\n  +.*)*)", README)
    assert len(claims) > 20
    tests = {
        name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    for claim in claims:
        named = re.findall(r"`(test_\w+)`", claim)
        assert named, claim
    assert set(re.findall(r"`(test_\w+)`", README)) <= tests
