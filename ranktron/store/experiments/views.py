"""The answer that describes an experiment: verdict, arms, pairs, guard, agreement."""

from __future__ import annotations

from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.messages import ArmAnswer, ExperimentAnswer, GuardAnswer, PairAnswer
from ranktron.store.experiments.tally import Pair


def experiment(live: LiveExperiment) -> ExperimentAnswer:
    """The current state of an experiment."""
    tally, definition = live.tally, live.definition
    labels = [arm.label for arm in definition.arms]
    split = definition.method == "split"
    arms = [
        ArmAnswer(label, share if split else None, users, total / users if users else None)
        for label, share, users, total in zip(labels, live.shares, tally.users, tally.totals, strict=True)
    ]
    apprentice = definition.method == "apprentice"
    return ExperimentAnswer(
        live.name,
        definition,
        live.state,
        None if tally.winner is None else labels[tally.winner],
        None if live.shows is None else labels[live.shows],
        live.why,
        live.rounds.next,
        len(live.rounds.open),
        tally.count,
        arms,
        [_pair(pair, labels) for pair in tally.pairs],
        _guard(live),
        live.agreement.answer() if apprentice else None,
    )


def _pair(pair: Pair, labels: list[str]) -> PairAnswer:
    sequence, point = pair.sequence, pair.point()
    return PairAnswer(
        labels[pair.first],
        labels[pair.second],
        sequence.n,
        point.mean,
        (point.low, point.high),
        sequence.level,
        None if pair.better is None else labels[pair.better],
        sequence.decided_after,
        [*pair.curve, point] if sequence.n and pair.curve[-1].users < sequence.n else list(pair.curve),
    )


def _guard(live: LiveExperiment) -> GuardAnswer | None:
    guard = live.definition.guard
    if guard is None:
        return None
    detector = live.tally.pairs[0].detector
    assert detector is not None
    return GuardAnswer(detector.evidence, guard.run_length, guard.tolerance, detector.alarm, live.promotable)
