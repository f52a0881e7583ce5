"""Validates clients' feedback and turns it into journal entries, or recognises it as a repetition.

A round is answered once: by labels, by clicks, by gains, or by expiry (`close_after`), which counts as no gain. Clicks
and gains may be updated. Gains are totals, and a click counts as 1: the increase since the earlier totals is learnt as
a further update on the same list, in which documents without an increase have the label 0. A message without any
increase is a repetition, or out of order, and gets the result of the last message that had one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from ranktron.store.errors import RequestError, round_gone, unknown_round
from ranktron.store.journal.entries import (
    Answered,
    FeedbackItems,
    JournalEntry,
    LaterGains,
    Result,
    encode,
    feedback_labels,
)
from ranktron.store.messages import FeedbackRequest, FullRequest
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.open_rounds import StoredRound


def check_feedback(live: LiveRanker, request: FeedbackRequest, sealed: bytes | None = None) -> JournalEntry | Result:
    """The entry to write for this feedback, or the earlier result, if it is a repetition.

    `sealed` is the body of a sealed round, if the feedback has one.
    """
    number = live.rounds.ids.number_of(request.round)
    earlier = live.rounds.answered.get(number)
    if earlier is not None:
        if repeats(earlier.labels, request) or request.labels == earlier.first_labels:
            return earlier.result
        return _update_gains(live, number, earlier, request, sealed)
    body = live.rounds.open.get(number, sealed)
    if body is None:
        if number >= live.rounds.next:
            raise unknown_round(request.round)
        raise round_gone(request.round, number in live.rounds.answered_ever, live.rounds.answered_ever.knows(number))
    live.check_open()
    _check_learns(live)
    shown = _read_round(live, request, body)
    labels = _gains(live, request) if request.labels is None else request.labels
    places = _places(shown, request.round, labels)
    if request.labels is None:
        _check_unnamed(live, places.keys() - labels.keys())
        labels = {document: labels.get(document, 0.0) for document in places}
    _check_labels(live, labels.values())
    items = sorted((places[document], label, document) for document, label in labels.items())
    return JournalEntry("feedback", number, live.rounds.now(), encode(items))


def repeats(known: Mapping[str, float], request: FeedbackRequest) -> bool:
    """Whether feedback adds nothing to a round's known labels or gains."""
    if request.labels is not None:
        return known == request.labels
    totals = dict.fromkeys(request.clicks, 1.0) if request.gains is None else request.gains  # type: ignore[arg-type]
    return all(total <= known.get(document, -1.0) for document, total in totals.items())


def is_repeated(entry: JournalEntry, request: FeedbackRequest) -> bool:
    """Whether feedback adds nothing to a pending entry of the same round."""
    return repeats(feedback_labels(entry), request)


def _update_gains(
    live: LiveRanker, number: int, earlier: Answered, request: FeedbackRequest, sealed: bytes | None
) -> JournalEntry | Result:
    """The entry for gains after the first answer; the earlier result, if no gain has increased."""
    if request.labels is not None:
        close_after = live.definition.close_after
        closed = "" if close_after is None else f", or closed after {close_after:g} seconds without any"
        complaint = f"round {request.round} has been answered with other labels{closed}"
        raise RequestError(409, "already_answered", f"{complaint}; only clicks and gains may come later")
    live.check_open()
    _check_learns(live)
    totals, body = _gains(live, request), live.rounds.past.get(number, sealed)
    if body is None or number < live.rounds.barrier:
        raise round_gone(request.round, answered=True)
    shown, known = _read_round(live, request, body), earlier.labels
    places = _places(shown, request.round, totals)
    _check_labels(live, totals.values())
    before: FeedbackItems = [(place, known.get(document, 0.0), document) for document, place in places.items()]
    now = [(place, max(label, totals.get(document, 0.0)), document) for place, label, document in before]
    if now == before:  # unnamed documents have gained 0
        return earlier.result
    gains = LaterGains(before, now, body, earlier.first or earlier.body)
    return JournalEntry("gains", number, live.rounds.now(), encode(gains))


def _read_round(live: LiveRanker, request: FeedbackRequest, body: bytes) -> StoredRound:
    """The round that feedback refers to; a RequestError if it has expired."""
    shown = open_rounds.unpack(body)
    if shown.at < live.rounds.now() - live.config.open_seconds:
        raise round_gone(request.round, live.rounds.ids.number_of(request.round) in live.rounds.answered)
    return shown


def _places(shown: StoredRound, number: int, named: Iterable[str]) -> dict[str, int]:
    """The positions of the documents that may be labelled; feedback on others is refused."""
    places = {document: place for place, document in enumerate(shown.ids[: shown.k])}
    for document in named:
        if document not in places:
            top = f"the first {shown.k} shown in round {number}"
            limit = ": feedback is on these alone (the ranker's k)" if document in shown.ids else ""
            raise RequestError(422, "not_shown", f"document {document!r} is not among {top}{limit}")
    return places


def _gains(live: LiveRanker, request: FeedbackRequest) -> dict[str, float]:
    """The gain of each named document; only learners of the top k can learn from it."""
    if live.learns != "top":
        raise RequestError(409, "learns_from_labels", f"{live.template.kind} does not know what users saw: send labels")
    return dict.fromkeys(request.clicks or (), 1.0) if request.gains is None else request.gains


def _check_learns(live: LiveRanker) -> None:
    if live.learns == "nothing":
        raise RequestError(
            409, "does_not_learn", f"{live.template.kind} is a batch algorithm: it ranks, but cannot learn online"
        )


def _check_labels(live: LiveRanker, labels: Iterable[float]) -> None:
    low, high = live.definition.labels
    for label in labels:
        if not low <= label <= high:
            raise RequestError(422, "label_out_of_range", f"label {label:g} is not between {low:g} and {high:g}")


def _check_unnamed(live: LiveRanker, documents: Collection[str]) -> None:
    """Refuses clicks and gains that do not name every document, where 0 is not a valid label."""
    low = live.definition.labels[0]
    if documents and low > 0.0:
        why = f"documents that clicks and gains do not name have gained 0, and the lowest label here is {low:g}"
        raise RequestError(422, "label_out_of_range", f"{why}: send labels")


def close_overdue(live: LiveRanker) -> Iterator[JournalEntry]:
    """Entries that close overdue rounds, with no gain for any document."""
    after = live.definition.close_after
    if after is None or live.closed or live.learns != "top":
        return
    for number in live.rounds.open.overdue(live.rounds.now() - after, open_rounds.shown_at, live.rounds.unwritten):
        shown = open_rounds.unpack(live.rounds.open[number])
        items = [(place, 0.0, document) for place, document in enumerate(shown.ids[: shown.k])]
        yield JournalEntry("feedback", number, live.rounds.now(), encode(items))


def check_full(live: LiveRanker, request: FullRequest) -> JournalEntry:
    """The entry for a list with all its labels."""
    if live.learns == "top":
        raise RequestError(
            409, "learns_from_the_top", f"{live.template.kind} learns from what it showed: rank, then send feedback"
        )
    live.check_open()
    _check_learns(live)
    ids = [document.id for document in request.documents]
    if set(ids) != request.labels.keys():
        raise RequestError(422, "wrong_labels", "every document must have a label, and every label a document")
    _check_labels(live, request.labels.values())
    X = live.matrix(request.documents)
    labels = np.array([request.labels[document] for document in ids])
    number, live.rounds.next = live.rounds.next, live.rounds.next + 1
    return JournalEntry("full", number, live.rounds.now(), encode((X.tobytes(), labels.tobytes())))
