import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ranktron import DataError
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.io import write
from ranktron.data.io.parts import divide_files
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same
from ranktron.learners.pairwise.hypothesis_history import COUNTER, HYPOTHESIS, SUCCESSES, blank_history, merge_histories
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.workers import LocalWorkers
from tests.plans import plan_of

LISTS = WebSearch(features=8, documents=12).rounds(100)
VALID = WebSearch(features=8, documents=12).rounds(140)[100:]
PARTS = [LISTS[a:b] for a, b in itertools.pairwise([0, 13, 40, 41, 80, 100])]


def on_parts(name, parameters, parts=PARTS, shards=2, workers=2, epochs=4, **options):
    with ThreadPoolExecutor(workers) as executor:
        data = inspect_parts(parts, LocalWorkers(executor), shards=shards)
        plan = plan_of(options, name, parameters, Schedule(epochs, 3))
        return train_parts(plan, data, shards=shards, **options)


@pytest.mark.parametrize("name", ["pairwise", "committee"])
@pytest.mark.parametrize("valid", [None, VALID])
def test_one_part_is_one_machine_to_the_bit(name, valid):
    found = on_parts(name, {}, [LISTS], shards=1, valid=valid, scaling="standard")
    whole = train(TrainingPlan(name, schedule=Schedule(4, 3), scaling="standard"), LISTS, valid=valid)
    assert same(found.model.state, whole.model.state)
    assert found.history.remarks == whole.history.remarks
    assert (found.history.epoch, found.history.mistakes) == (whole.history.epoch, whole.history.mistakes)


def test_neither_workers_nor_files_change_it(tmp_path):
    for k, part in enumerate(PARTS):
        write(part, tmp_path / f"part-{k}.rounds")
    one, three = (on_parts("committee", {}, workers=workers, scaling="standard").model for workers in (1, 3))
    files = on_parts("committee", {}, divide_files(tmp_path), scaling="standard").model
    assert one.to_bytes() == three.to_bytes() == files.to_bytes()


def test_a_shard_learns_as_if_it_were_alone():
    """The average over all hypotheses of two shards of one part is that of two machines, weighted by successes."""
    halves = [LISTS[:45], LISTS[45:]]
    found = on_parts("pairwise", {"output": "average"}, halves).model
    alone = [train(TrainingPlan("pairwise", {"output": "average"}, Schedule(4, 3)), half).model for half in halves]
    settled = [each.learner().hypotheses.settled(1, 0) for each in alone]
    successes = sum(each.tally[SUCCESSES] for each in settled)
    assert found.coef == pytest.approx(sum(each.total for each in settled) / successes, rel=1e-12)
    assert found.learner().mistakes == sum(each.learner().mistakes for each in alone)


def history(*survivors):
    """A history with survivors (weight, counter), the last of which is the current one."""
    made = blank_history(1)
    for number, (w, counter) in enumerate(survivors):
        made = made.settled(9, 0) if number else made
        made.w[0], made.tally[COUNTER], made.tally[HYPOTHESIS] = w, counter, number
    return made


def test_every_shard_sends_its_longest_survivor_before_another_sends_its_second():
    shards = [history((1.0, 90), (2.0, 80), (3.0, 70)), history((4.0, 5), (5.0, 6), (6.0, 6))]
    assert merge_histories(shards, 1, 0).members.ravel().tolist() == [1.0]
    assert merge_histories(shards, 2, 0).members.ravel().tolist() == [1.0, 5.0]  # of equal counters the older one
    assert merge_histories(shards, 3, 0).members.ravel().tolist() == [1.0, 2.0, 5.0]
    everyone = merge_histories(shards, 9, 0)
    assert everyone.members.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert everyone.total[0] == 90 + 2 * 80 + 3 * 70 + 4 * 5 + 5 * 6 + 6 * 6
    assert everyone.tally[SUCCESSES] == 90 + 80 + 70 + 5 + 6 + 6
    assert everyone.w[0] == (3.0 + 6.0) / 2
    assert merge_histories(shards[:1], 9, 0) is shards[0]


def test_a_validation_set_weights_members_and_chooses_the_pass():
    found = on_parts("committee", {"size": 5}, valid=VALID, epochs=6)
    values = [means["ndcg@10"] for means in found.history.valid]
    assert found.history.epoch == 1 + int(np.argmax(values))
    kept = found.model.learner().hypotheses
    assert len(kept.values) == 5
    assert ((kept.values > 0.0) & (kept.values <= 1.0)).all()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("committee", {"alpha_bound": 0.5}, "alpha_bound counts how often each pair is misranked, which parts do not"),
        ("pairwise", {"output": "last"}, "the last hypotheses of several shards are several: choose the output"),
    ],
)
def test_what_shards_cannot_do_is_refused(name, parameters, message):
    with pytest.raises(DataError, match=message):
        on_parts(name, parameters)


def test_shards_are_not_continued():
    start = on_parts("committee", {}).model
    with pytest.raises(DataError, match="the model does not store their states: train it from scratch"):
        on_parts("committee", {}, start=start)
    assert on_parts("committee", {}, shards=1, start=start).history.epoch == 8
