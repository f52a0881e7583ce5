"""Trainings that do not depend on each other, as tasks of a cluster: every number is that of one machine."""

import json
import sys
from subprocess import run

import numpy as np
import pytest

from ranktron import evaluate, load, metric
from ranktron.data.io import write
from ranktron.data.synthetic import WebSearch
from ranktron.learners.schedule import Schedule
from ranktron.training.cross_validation import cross_validate, split_folds
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.sweep import sweep
from ranktron.training.tune import tune_rounds

pytest.importorskip("distributed")

from ranktron.dask import Cluster
from reproduction.harness.cache import CellCache
from reproduction.harness.experiment import Cell
from reproduction.harness.runner import CellJob, run_cells

LISTS = WebSearch(features=6, documents=10).rounds(60)
NDCG = metric("ndcg@10")
OPTIONS = {"learners": ["hinge", "ranksvm"], "exportable": True}


def test_cross_validation_is_that_of_one_machine_to_the_bit(client):
    folds, seen, plan = split_folds(LISTS, 3), [], TrainingPlan("hinge", schedule=Schedule(2), scaling="auto")
    options = {"grid": {"eta": [0.1, 1.0]}, "seeds": 2}
    here = cross_validate(plan, folds, **options)
    there = cross_validate(plan, folds, **options, workers=Cluster(client), watch=lambda: seen.append(1))
    assert len(seen) == 3 * 2 * 2
    assert there.mean == here.mean
    for one, two in zip(here.trials, there.trials, strict=True):
        assert (one.fold, one.seed, one.parameters, one.epoch) == (two.fold, two.seed, two.parameters, two.epoch)
        assert (one.valid, one.remarks) == (two.valid, two.remarks)
        assert np.array_equal(one.test.per_query["ndcg@10"], two.test.per_query["ndcg@10"])


def test_a_sweep_is_that_of_one_machine_to_the_bit(client):
    metrics = [NDCG, metric("map")]
    plan = TrainingPlan("slam", {"average": True}, Schedule(2), scaling="standard", metrics=metrics)
    arguments = plan, "eta", [0.01, 0.1, 1.0], LISTS[:40]
    there = sweep(*arguments, valid=LISTS[40:], workers=Cluster(client))
    assert there == sweep(*arguments, valid=LISTS[40:])


def test_tuning_finds_what_one_machine_finds(client):
    here, there = tune_rounds(LISTS, **OPTIONS), tune_rounds(LISTS, **OPTIONS, workers=Cluster(client))
    assert there.test == here.test
    assert there.model.to_bytes() == here.model.to_bytes()
    without = [[{k: v for k, v in row.items() if k != "seconds"} for row in each.table] for each in (here, there)]
    assert without[0] == without[1]


def test_what_does_not_fit_into_the_time_is_not_waited_for(client):
    found = tune_rounds(LISTS, **OPTIONS, workers=Slow(Cluster(client)))
    assert found.stopped == "time"
    assert {row["learner"] for row in found.table} == {"hinge"}


class Slow:
    """Workers to whom RankSVM takes longer than there is time."""

    def __init__(self, workers):
        self.workers = workers

    def submit(self, function, *arguments, home):
        if function.__name__ == "_measure_family" and "ranksvm" in str(arguments[2]):
            return Never()
        return self.workers.submit(function, *arguments, home=home)


class Never:
    def result(self, timeout=None):
        raise TimeoutError


def test_cells_of_the_papers_are_computed_by_a_cluster(client, tmp_path):
    cells = [Cell("builtins:dict", {"value": k}, seed=k) for k in range(3)]
    jobs = [CellJob(f"key{cell.seed}", cell, None) for cell in cells]
    found = run_cells(jobs, CellCache(tmp_path), client.get_executor(pure=False))
    assert [found[job.key].result for job in jobs] == [{"value": k, "seed": k} for k in range(3)]


@pytest.mark.slow
def test_the_commands_take_a_cluster(client, tmp_path):
    address = client.scheduler.address
    for k in range(2):
        write(LISTS[30 * k : 30 * k + 30], tmp_path / f"part-{k}.rounds")
    write(LISTS, tmp_path / "all.rounds")
    model = train(TrainingPlan("hinge"), LISTS[:20]).model
    model.save(tmp_path / "my.model")

    def printed(*arguments):
        done = run([sys.executable, "-m", "ranktron", *map(str, arguments), "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    found = printed("evaluate", tmp_path / "my.model", f"{tmp_path}/part-*.rounds", "--dask", address)
    whole = evaluate(LISTS, load(tmp_path / "my.model").score_rounds(LISTS), ["ndcg@10", "map"])
    assert {name: value["mean"] for name, value in found["metrics"].items()} == whole.means
    both = [
        printed("cv", tmp_path / "all.rounds", "--folds", 3, "--epochs", 1, *extra)["mean"]
        for extra in ((), ("--dask", address))
    ]
    assert both[0] == both[1]
