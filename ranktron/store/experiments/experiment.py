"""A live experiment: shows pages of its arms, and counts the outcomes.

Nothing here blocks or writes. The state is a function of the definition and of the journal entries, in their order.
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
from ranktron.store.journal.journal import StoredRanker
from ranktron.store.messages import RankRequest
from ranktron.store.promises import Promise
from ranktron.store.rankers.features import check_ids
from ranktron.store.rankers.open_rounds import OpenRoundBook, RoundIds

Pages = OpenRoundBook[Promise[ExperimentFeedbackAnswer], bool]
_STATE_INTERVAL = 5_000  # entries, at least, between two checkpoints (entries with the complete state)


class LiveExperiment:
    """The arms of an experiment, its open rounds and its tally."""

    def __init__(self, stored: StoredRanker, name: str, definition: ExperimentDefinition, config: StoreConfig) -> None:
        self.id, self.name, self.config = stored.id, name, config
        self.original = definition  # as created; fixed, where a promotion changes `definition`
        self.version = 0  # the last entry applied; apply
        self.rounds: Pages = OpenRoundBook(stored.next, RoundIds(stored.epochs), config, _shown_at)
        self.stated: list[int] = []  # versions of the last two checkpoints; apply
        self.busy = False  # a checkpoint, or a consequence of the verdict, is not on disk yet; the service
        self.noted = ""  # the alarm's message, once the return to the incumbent is in the journal; apply
        self._rankers: Rankers | None = None  # where arms are looked up; attach
        self.begin(definition)

    def begin(self, definition: ExperimentDefinition) -> None:
        """Starts counting for a definition, from zero."""
        self.definition = definition  # the present definition, promotions included; begin
        assert definition.seed is not None
        self.seed: int = definition.seed  # of the assignment of users and of interleaving; begin
        self.shares = definition.shares or (1.0 / len(definition.arms),) * len(definition.arms)  # of traffic; begin
        self.tally = Tally(definition)  # outcomes and the verdict; apply
        self.agreement = Agreement(definition.level)  # of a shadow with the pages shown; apply
        self.seen = SeenUsers()  # users already counted; apply
        self.shows: int | None = None  # the arm that all users see, after the verdict; apply
        if self._rankers is not None:
            self.attach(self._rankers)

    def attach(self, rankers: Rankers) -> None:
        """Binds the arms to the rankers of a service."""
        self._rankers = rankers
        self.arms = [Arm(arm, rankers) for arm in self.definition.arms]  # with their rankers; attach

    # Verdict

    @property
    def state(self) -> str:
        """The state: "running", "decided", "ended" or "went back"."""
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
        """Whether the guarded arm may become the incumbent: its lower confidence limit is above -tolerance."""
        guard = self.definition.guard
        low = self.tally.pairs[0].point().low if guard else 0.0
        return guard is not None and self.tally.alarm is None and low > -guard.tolerance

    # Ranking

    def rank(self, request: ExperimentRankRequest) -> tuple[ExperimentRankAnswer, int, bytes]:
        """The page to show, with the number and the bytes of its round."""
        check_ids([document.id for document in request.documents])
        number, at = self.rounds.next, self.rounds.now()
        if self.definition.method == "apprentice":
            page, order = self._shadowed(request, number, at)
        elif self.shows is not None or self.definition.method == "split":
            page, order = self._split(request, number, at)
        else:
            page, order = self._mixed(request, number, at)
        body = encode(page)
        self.rounds.next += 1
        self.rounds.open[number] = body
        arm = None if page.arm < 0 else self.definition.arms[page.arm].label
        placed = [Placed(document, position) for position, document in enumerate(order, 1)]
        return ExperimentRankAnswer(self.rounds.ids.public(number), placed, arm), number, body

    def _user(self, user: str, number: int, at: float) -> tuple[int, int]:
        """The key of a user, and the period; without a user name each round counts as a user of its own."""
        guard = self.definition.guard
        name, period = f"u{user}" if user else f"r{number}", 0 if guard is None else int(at // guard.period)
        return user_key(self.seed, name, period), period

    def _split(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        if not request.user and self.definition.method == "split":
            complaint = "a split assigns arms by user: send `user` with every list, so that each user sees one arm"
            raise RequestError(422, "user_needed", complaint)
        user = self._user(request.user, number, at)
        index = assigned_arm(user[0], self.shares) if self.shows is None else self.shows
        arm, documents, arm_round = self.arms[index], request.documents, None
        if arm.definition.version is None:
            answer = arm.rank(RankRequest(documents, request.query, request.user))
            order, arm_round = [ranked.id for ranked in answer.ranking], answer.round
        else:
            order = [documents[item].id for item in arm.order(documents).tolist()]
        return ShownPage(number, at, *user, index, order[: self.definition.k], arm_round), order

    def _mixed(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        documents, k = request.documents, self.definition.k
        orders = [arm.order(documents) for arm in self.arms]
        items, credits = mixed_page(self.definition.method, orders, k, self.seed, number)
        rest = orders[0][~np.isin(orders[0], items)]
        order = [documents[item].id for item in [*items.tolist(), *rest.tolist()]]
        user = self._user(request.user, number, at)
        return ShownPage(number, at, *user, -1, order[: len(items)], None, credits.tolist()), order

    def _shadowed(self, request: ExperimentRankRequest, number: int, at: float) -> tuple[ShownPage, list[str]]:
        """The page that the client's own system shows, which the ranker learns from, and the ranker's own order."""
        if not request.shown:
            complaint = "an apprentice learns from what is shown: send `shown`, the ids in the order of your own system"
            raise RequestError(422, "shown_needed", complaint)
        arm, k = self.arms[0], self.definition.k
        order = [request.documents[item].id for item in arm.order(request.documents).tolist()]
        arm_round = arm.shadow(RankRequest(request.documents, request.query), request.shown).round
        page = request.shown[:k]
        agrees = order[0] == page[0], order[: len(page)] == page
        user = self._user("", number, at)  # arms are not compared, so each round counts as a user
        return ShownPage(number, at, *user, 0, page, arm_round, [], agrees), order

    # Counting

    def page(self, number: int, public: int) -> tuple[ShownPage, bool | None]:
        """The page of a round, and, if it has been answered, whether it counted; a RequestError if it is gone."""
        rounds, counted = self.rounds, None
        body = rounds.open.get(number)
        if body is None:
            body, counted = rounds.past.get(number), rounds.answered.get(number)
        if body is None:
            raise rounds.gone(number, public)
        page = read_page(body)
        if page.at < rounds.now() - self.config.open_seconds:
            raise round_gone(public, counted is not None)
        return page, counted

    def outcome(self, page: ShownPage, gains: dict[str, float]) -> JournalEntry:
        """The entry to write for the first feedback on a page."""
        outcome = CountedOutcome(page.user, page.period, page.arm, page.values(gains, self.definition.metric))
        return JournalEntry("outcome", page.number, self.rounds.now(), encode(outcome))

    def apply(self, entry: JournalEntry, version: int, body: bytes | None = None) -> bool:
        """Applies an entry, live or in a replay; true if an outcome counted. `body` is the page that it answers."""
        self.version = version
        if entry.kind == "outcome":
            page = self.rounds.open.pop(entry.round, body)
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
        """Shows an arm to all users; or makes a version the guard's incumbent, and restarts the counts."""
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
        """Sets the arm that all users see, if the tally has reached a verdict."""
        definition, winner = self.definition, self.tally.winner
        if self.tally.alarm is not None:
            self.shows = 0
        elif winner is not None and definition.promote and definition.guard is None:
            self.shows = winner
        elif definition.users is not None and self.tally.count >= definition.users:
            self.shows = winner or 0

    # Checkpoints: entries with the complete state

    def needs_state(self) -> bool:
        """Whether a checkpoint is due, after which earlier entries can be pruned."""
        last = self.stated[-1] if self.stated else 0
        return not self.busy and self.version - last >= _STATE_INTERVAL + len(self.seen) // 2

    def state_entry(self) -> JournalEntry:
        """The checkpoint. Entries after its version may precede it in the journal."""
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
        """Restores the state of a checkpoint, as of its version."""
        state = read_state(entry.body)
        self.begin(convert(state["definition"], ExperimentDefinition))
        self.version = state["version"]
        self.shows, self.noted = state["shows"], state["noted"]
        self.seen.restore(state["seen"])
        self.tally.restore(state["tally"])
        self.agreement.restore(state["agreement"])
        self.rounds.answered_ever.forget_below(state["next"])

    def overdue(self) -> list[int]:
        """Rounds without feedback after `close_after` seconds, which count as no gain."""
        close_after = self.definition.close_after
        if close_after is None:
            return []
        return list(self.rounds.overdue(close_after))


def _shown_at(page: bytes) -> float:
    return read_page(page).at
