"""One experiment at work: it shows pages of its arms, and counts what comes back.

Nothing here waits or writes. The state is a function of the definition and of the journal's entries, in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import convert, structs, to_builtins

from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError, round_gone
from ranktron.store.experiments.arms import Arm, Rankers, SeenUsers, assigned_arm, mixed_page, user_key
from ranktron.store.experiments.messages import (
    ExperimentDefinition,
    ExperimentFeedbackAnswer,
    ExperimentRankAnswer,
    ExperimentRankRequest,
    Placed,
)
from ranktron.store.experiments.rounds import CountedOutcome, ShownPage, read_outcome, read_page, read_state
from ranktron.store.experiments.tally import Agreement, Tally
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import Promise, StoredRanker
from ranktron.store.messages import RankRequest
from ranktron.store.rankers.features import check_ids
from ranktron.store.rankers.open_rounds import OpenRoundBook, RoundIds

Pages = OpenRoundBook[Promise[ExperimentFeedbackAnswer], bool]
_STATES = 5_000  # entries, at least, between two that hold the whole state


class LiveExperiment:
    """Arms, the rounds that wait for their feedback, and the tally."""

    def __init__(self, stored: StoredRanker, name: str, definition: ExperimentDefinition, config: StoreConfig) -> None:
        self.id, self.name, self.config = stored.id, name, config
        self.original = definition  # as created; fixed, where a promotion changes `definition`
        self.version = 0  # the last entry applied; apply
        self.rounds: Pages = OpenRoundBook(stored.next, RoundIds(stored.epochs), config, _shown_at)
        self.stated: list[int] = []  # the last two entries that hold the whole state; apply
        self.busy = False  # such an entry, or a consequence of the verdict, is not on disk yet; the service
        self.noted = ""  # the alarm's message, once the return to the incumbent is in the journal; apply
        self._rankers: Rankers | None = None  # where arms are looked up; attach
        self.begin(definition)

    def begin(self, definition: ExperimentDefinition) -> None:
        """Starts counting for this definition, from nothing."""
        self.definition = definition  # what is counted now
        assert definition.seed is not None
        self.seed: int = definition.seed  # of the assignment of users and of interleaving
        self.shares = definition.shares or (1.0 / len(definition.arms),) * len(definition.arms)
        self.tally = Tally(definition)  # outcomes and the verdict; apply
        self.agreement = Agreement(definition.level)  # of a shadow with what is shown; apply
        self.seen = SeenUsers()  # users that have counted; apply
        self.shows: int | None = None  # the arm that all users see, after the verdict; apply
        if self._rankers is not None:
            self.attach(self._rankers)

    def attach(self, rankers: Rankers) -> None:
        """Finds the arms among the rankers of a service."""
        self._rankers = rankers
        self.arms = [Arm(arm, rankers) for arm in self.definition.arms]  # with their rankers; attach

    # Its verdict

    @property
    def state(self) -> str:
        """Whether it is running, decided, ended, or went back."""
        if self.tally.alarm is not None:
            return "went back"
        if self.tally.winner is not None:
            return "decided"
        return "running" if self.shows is None else "ended"

    @property
    def why(self) -> str:
        """The verdict in words."""
        if self.definition.method == "apprentice":
            return "the ranker watches and learns, and shows nothing"
        labels, pair = [arm.label for arm in self.definition.arms], self.tally.pairs[0]
        if self.tally.alarm is not None:
            assert self.definition.guard is not None
            return (
                f"{labels[1]} became worse than {labels[0]} by more than {self.definition.guard.tolerance:g}: the "
                f"alarm came with user {self.tally.alarm}, and {labels[0]} is shown again"
            )
        winner = self.tally.winner
        if winner is not None:
            others = ", ".join(label for arm, label in enumerate(labels) if arm != winner)
            return f"{labels[winner]} is better than {others}, with an error of at most {self.definition.level:g}"
        if self.shows is not None:
            return f"no winner after {self.tally.count} users: {labels[self.shows]} is shown"
        low, high = pair.point().low, pair.point().high
        return f"undecided after {self.tally.count} users: the first difference lies between {low:+.3f} and {high:+.3f}"

    @property
    def promotable(self) -> bool:
        """Whether the arm that is guarded may become the incumbent: it is not worse by the tolerance, for certain."""
        guard = self.definition.guard
        low = self.tally.pairs[0].point().low if guard else 0.0
        return guard is not None and self.tally.alarm is None and low > -guard.tolerance

    # Showing

    def rank(self, request: ExperimentRankRequest) -> tuple[ExperimentRankAnswer, int, bytes]:
        """The page to show, and the number and the bytes of the round to keep."""
        check_ids(request.documents)
        number, at = self.rounds.next, self.rounds.now()
        if self.definition.method == "apprentice":
            page, order = self._shadowed(request, number, at)
        elif self.shows is not None or self.definition.method == "split":
            page, order = self._split(request, number, at)
        else:
            page, order = self._mixed(request, number, at)
        kept = encode(page)
        self.rounds.next += 1
        self.rounds.open[number] = kept
        arm = None if page.arm < 0 else self.definition.arms[page.arm].label
        placed = [Placed(document, position) for position, document in enumerate(order, 1)]
        return ExperimentRankAnswer(self.rounds.ids.public(number), placed, arm), number, kept

    def _user(self, user: str, number: int, at: float) -> tuple[int, int]:
        """The number of a user, and the period; without a name, each round has a user of its own."""
        guard = self.definition.guard
        named, period = f"u{user}" if user else f"r{number}", 0 if guard is None else int(at // guard.period)
        return user_key(self.seed, named, period), period

    def _split(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        if not request.user and self.definition.method == "split":
            complaint = "a split goes by user: send `user` with every list, so that each user sees one arm"
            raise RequestError(422, "user_needed", complaint)
        user = self._user(request.user, number, at)
        chosen = assigned_arm(user[0], self.shares) if self.shows is None else self.shows
        arm, documents, own = self.arms[chosen], request.documents, None
        if arm.definition.version is None:
            answer = arm.rank(RankRequest(documents, request.query))
            order, own = [ranked.id for ranked in answer.ranking], answer.round
        else:
            order = [documents[item].id for item in arm.order(documents).tolist()]
        return ShownPage(number, at, *user, chosen, order[: self.definition.k], own), order

    def _mixed(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        documents, k = request.documents, self.definition.k
        orders = [arm.order(documents) for arm in self.arms]
        items, credits = mixed_page(self.definition.method, orders, k, self.seed, number)
        rest = orders[0][~np.isin(orders[0], items)]
        order = [documents[item].id for item in [*items.tolist(), *rest.tolist()]]
        user = self._user(request.user, number, at)
        return ShownPage(number, at, *user, -1, order[: len(items)], None, credits.tolist()), order

    def _shadowed(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        """The page that the client's own system shows, which the ranker learns from; and what it would have shown."""
        if not request.shown:
            complaint = "an apprentice learns from what is shown: send `shown`, the ids in the order of your own system"
            raise RequestError(422, "shown_needed", complaint)
        arm, k = self.arms[0], self.definition.k
        order = [request.documents[item].id for item in arm.order(request.documents).tolist()]
        own = arm.shadow(RankRequest(request.documents, request.query), request.shown).round
        page = request.shown[:k]
        agrees = order[0] == page[0], order[: len(page)] == page
        user = self._user("", number, at)  # every round is one of its own: nothing is compared
        return ShownPage(number, at, *user, 0, page, own, [], agrees), order

    # Counting

    def page(self, number: int, public: int) -> tuple[ShownPage, bool | None]:
        """A page that may be answered, and, if it has been, whether it counted; a RequestError if it is gone."""
        rounds, counted = self.rounds, None
        kept = rounds.open.get(number)
        if kept is None:
            kept, counted = rounds.past.get(number), rounds.answered.get(number)
        if kept is None:
            raise rounds.gone(number, public)
        page = read_page(kept)
        if page.at < rounds.now() - self.config.open_seconds:
            raise round_gone(public, counted is not None)
        return page, counted

    def outcome(self, page: ShownPage, gains: dict[str, float]) -> JournalEntry:
        """The entry to write for the first feedback on a page."""
        worth = CountedOutcome(page.user, page.period, page.arm, page.values(gains, self.definition.metric))
        return JournalEntry("outcome", page.number, self.rounds.now(), encode(worth))

    def apply(self, entry: JournalEntry, version: int, kept: bytes | None = None) -> bool:
        """Does what an entry says, live or in a replay: whether an outcome counted. `kept` is the page it answers."""
        self.version = version
        if entry.kind == "outcome":
            page = self.rounds.open.pop(entry.round, kept)
            counted = self._count(read_outcome(entry.body))
            self.rounds.remember(entry.round, counted, page)
            return counted
        if entry.kind == "state":
            self.stated = [*self.stated, read_state(entry.body)["version"]][-2:]
        elif entry.kind == "promotion":
            self._promote(**read_state(entry.body))
        elif entry.kind == "note":
            self.noted = entry.body.decode()
        return False

    def _promote(self, *, arm: int | None = None, version: int | None = None) -> None:
        """Shows an arm to everyone; or makes a version the incumbent of the guard, and counts anew."""
        if version is None:
            self.shows = arm
        else:
            first, second = self.definition.arms
            self.begin(structs.replace(self.definition, arms=(structs.replace(first, version=version), second)))

    def _count(self, outcome: CountedOutcome) -> bool:
        if self.definition.method == "apprentice":
            self.agreement.add(outcome.values)
            return True
        if self.shows is not None or not self.seen.add(outcome.user, outcome.period):
            return False
        self.tally.add(outcome.arm, outcome.values)
        self._decide()
        return True

    def _decide(self) -> None:
        """What follows from the tally: who is shown to everyone from now on, if anyone is."""
        definition, winner = self.definition, self.tally.winner
        if self.tally.alarm is not None:
            self.shows = 0
        elif winner is not None and definition.promote and definition.guard is None:
            self.shows = winner
        elif definition.users is not None and self.tally.count >= definition.users:
            self.shows = winner or 0

    # Its whole state, in an entry

    def needs_state(self) -> bool:
        """Whether it is time for an entry that holds the whole state, so that those before it can go."""
        last = self.stated[-1] if self.stated else 0
        return not self.busy and self.version - last >= _STATES + len(self.seen) // 2

    def state_entry(self) -> JournalEntry:
        """The entry; others may come before it in the journal that it does not know of."""
        state: dict[str, Any] = {
            "version": self.version,
            "definition": to_builtins(self.definition),
            "next": self.rounds.next,
            "shows": self.shows,
            "noted": self.noted,
            "seen": self.seen.state(),
            "tally": self.tally.state(),
            "agreement": self.agreement.state(),
        }
        return JournalEntry("state", 0, self.rounds.now(), encode(state))

    def restore(self, entry: JournalEntry) -> None:
        """Goes on from an entry that holds the whole state, as of the version that it says."""
        state = read_state(entry.body)
        self.begin(convert(state["definition"], ExperimentDefinition))
        self.version = state["version"]
        self.shows, self.noted = state["shows"], state["noted"]
        self.seen.restore(state["seen"])
        self.tally.restore(state["tally"])
        self.agreement.restore(state["agreement"])
        self.rounds.answered_ever.forget_below(state["next"])

    def overdue(self) -> list[int]:
        """Rounds of which nothing has come in time: they have gained nothing."""
        after = self.definition.close_after
        if after is None:
            return []
        return list(self.rounds.overdue(after))


def _shown_at(page: bytes) -> float:
    return read_page(page).at
