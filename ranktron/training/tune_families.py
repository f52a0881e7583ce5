"""What tuning tries: candidates, in families that share the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.fused import can_fuse, play_many
from ranktron.learners.schedule import Schedule
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import make_untrained, train
from ranktron.training.model import served_scores
from ranktron.types import Floats

SCALES = ("standard", "standard-query")
MAPS = (None, "bins-linear:2", "bins-linear:8", "leaves:60")
PASSES = (1, 3, 10, 30)
MOST_PLAYED = 6000  # queries, over all passes; one pass is always made
ONLINE: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "listnet": [{"eta": eta, "average": True} for eta in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "hinge": [{"eta": eta, "average": True} for eta in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "slam": [{"eta": eta, "fraction": 0.7, "step": "sqrt", "average": True} for eta in (0.1, 0.3, 1.0)],
}
"""What is played at once. Averages only: on the validation queries of seven sets they were never behind."""
SOLVED: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "ranksvm": [{"C": C} for C in (0.01, 0.1, 1.0, 10.0)],
    "smoothrank": [{"C": C} for C in (3.0, 10.0, 30.0, 100.0)],
}
BEGINNING: Mapping[str, int] = {"smoothrank": 10}
"""With how many passes of ListNet a solver begins, if the queries are not too many."""
BOOSTED = "rankboost"
LEARNERS = (*ONLINE, *SOLVED, BOOSTED)


@dataclass(frozen=True)
class Candidate:
    """One setting: a learner with its parameters, what is done to the features, and the number of passes."""

    learner: str
    given: tuple[tuple[str, Any], ...]
    scale: str | None
    map: str | None = None
    epochs: int = 1

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.given)

    def __str__(self) -> str:
        given = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in self.given]
        passes = [f"{self.epochs} pass{'es' * (self.epochs > 1)}"] if self.learner in ONLINE else []
        return ", ".join([self.learner, *given, *filter(None, [self.scale, self.map]), *passes])


@dataclass(frozen=True)
class Family:
    """Candidates that see the same features; those that can be are played all at once, pass after pass."""

    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        first = self.candidates[0]
        names = dict.fromkeys(each.learner for each in self.candidates)
        return " ".join(filter(None, ["/".join(names), first.scale, first.map]))

    def scores(self, part: Rounds, valid: Rounds, seed: int, nan: str) -> Iterator[tuple[Candidate, Floats]]:
        """For each candidate the scores of the validation queries, after learning from `part`."""
        first = self.candidates[0]
        if algorithm(first.learner).solver() is not None:
            for each in self.candidates:
                schedule = Schedule(each.epochs, seed)
                trained = train(each.learner, each.parameters, part, schedule, scaling=each.scale, nan=nan)
                yield each, trained.model.score_rounds(valid)
                if trained.history.interrupted:
                    return
            return
        model = make_untrained(first.learner, {}, part, first.scale, first.map, nan)
        prepared, checked = model.prepare(part), model.prepare(valid)
        played = {
            (each.learner, each.given): algorithm(each.learner).learner(prepared.n_features, each.parameters)
            for each in self.candidates
        }
        learners = [learner for learner in played.values() if can_fuse(learner)]
        for epoch in range(max(each.epochs for each in self.candidates)):
            for _ in play_many(learners, Schedule(seed=seed).epoch(prepared, epoch)):
                pass
            for each in self.candidates:
                if each.epochs == epoch + 1:
                    yield each, served_scores(played[each.learner, each.given], checked)


def families(rounds: Rounds, learners: Sequence[str] | None = None, exportable: bool = False) -> list[Family]:
    """What is tried on these queries; of a learner's parameters those not named are recommended.

    What takes little time comes first, and what is most unlike what came before: there may be no time for the rest.

    >>> from ranktron.data.synthetic import Separable
    >>> [str(family) for family in families(Separable().rounds(20), ["hinge", "ranksvm"], exportable=True)]
    ['hinge standard', 'ranksvm standard']
    """
    chosen = LEARNERS if learners is None else tuple(dict.fromkeys(learners))
    for name in chosen:
        if name not in LEARNERS:
            raise DataError(f"tuning chooses among {', '.join(LEARNERS)}, not {name!r}")
    if not chosen:
        raise DataError(f"tuning needs at least one learner of {', '.join(LEARNERS)}")
    sparse = isinstance(rounds.X, Sparse)
    scales = SCALES[:1] if sparse or exportable else SCALES
    maps = MAPS[:1] if sparse or exportable else MAPS
    passes = [epochs for epochs in PASSES if epochs == 1 or epochs * len(rounds) <= MOST_PLAYED]
    online = [(name, point) for name in chosen if name in ONLINE for point in ONLINE[name]]
    played = {
        map: [
            Family(tuple(Candidate(n, tuple(point.items()), scale, map, e) for e in passes for n, point in online))
            for scale in scales
            if online
        ]
        for map in maps
    }
    found = played.pop(None) + [Family((Candidate(BOOSTED, (), None),))] * (BOOSTED in chosen)
    found += chain.from_iterable(played.values())
    for name in chosen:
        begin = max(epochs for epochs in passes if epochs <= BEGINNING.get(name, 1))
        points = [tuple(point.items()) for point in SOLVED.get(name, ())]
        found += [Family(tuple(Candidate(name, p, scale, epochs=begin) for p in points)) for scale in scales if points]
    return found
