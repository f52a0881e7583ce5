import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ranktron import DataError
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.io import write
from ranktron.data.io.parts import divide_files
from ranktron.data.synthetic import WebSearch
from ranktron.learners.batch.rank_mm_problem import RankMMProblem
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.workers import LocalWorkers
from tests.plans import plan_of

LISTS = WebSearch(features=8, documents=10).rounds(81)
PARTS = [LISTS[a:b] for a, b in itertools.pairwise([0, 20, 21, 47, 60, 81])]


def on_parts(parts, parameters, workers=2, schedule=None, **options):
    with ThreadPoolExecutor(workers) as executor:
        data = inspect_parts(parts, LocalWorkers(executor))
        return train_parts(plan_of(options, "rankmm", parameters, schedule or Schedule()), data, **options)


@pytest.mark.parametrize("loss", ["average", "max", "max-average"])
@pytest.mark.parametrize("shards", [1, 3, 5])
def test_the_optimum_is_that_of_one_machine_within_the_gap(loss, shards):
    parameters = {"loss": loss, "C": 3.0, "tol": 1e-4}
    found = on_parts(PARTS, parameters, shards=shards).model
    whole = train(TrainingPlan("rankmm", parameters), LISTS).model
    history, problem = found.state["history"], RankMMProblem(LISTS, loss, 3.0)
    primal, gap = history[:, 0].min(), history[-1, 2]
    assert gap <= 1e-4 * primal
    assert gap == pytest.approx(primal - history[:, 1].max(), abs=1e-15)
    assert problem.primal(found.coef) == pytest.approx(primal, rel=1e-12)  # the certificate is about all queries
    reached = problem.primal(whole.coef)
    assert primal - gap <= reached + 1e-12
    assert reached - whole.state["history"][-1, 2] <= primal + 1e-12
    # The objective is strongly convex: ½ |w − w*|² is at most the gap.
    distance = np.linalg.norm(found.coef - whole.coef)
    assert distance <= np.sqrt(2.0 * gap) + np.sqrt(2.0 * whole.state["history"][-1, 2])


def test_no_pass_lowers_the_dual_value():
    for parts in (PARTS, [LISTS[:40], LISTS[40:]]):
        history = on_parts(parts, {"loss": "max", "C": 30.0, "max_iter": 60, "tol": 1e-14}).model.state["history"]
        assert (np.diff(history[:, 1]) >= -1e-12).all()
        assert history[-1, 1] > history[0, 1]


def test_one_shard_in_order_is_one_machine():
    parameters, schedule = {"C": 2.0, "max_iter": 4, "tol": 1e-14}, Schedule(shuffle=False)
    found = on_parts(PARTS, parameters, schedule=schedule, mode="sequential").model
    whole = train(TrainingPlan("rankmm", parameters, schedule), LISTS).model
    assert found.state["history"] == pytest.approx(whole.state["history"], rel=1e-9, abs=1e-12)
    assert found.coef == pytest.approx(whole.coef, rel=1e-9, abs=1e-12)


def test_neither_workers_nor_files_change_it(tmp_path):
    for k, part in enumerate(PARTS):
        write(part, tmp_path / f"part-{k}.rounds")
    one, two = on_parts(PARTS, {"max_iter": 3}, workers=1), on_parts(PARTS, {"max_iter": 3}, workers=3)
    files = on_parts(divide_files(tmp_path), {"max_iter": 3})
    assert one.model.to_bytes() == two.model.to_bytes() == files.model.to_bytes()
    assert one.history.remarks == two.history.remarks


def test_a_validation_set_judges_every_pass_and_other_steps_are_refused():
    valid = WebSearch(features=8, documents=10).rounds(120)[81:]
    found = on_parts(PARTS, {"early_stopping": True, "max_iter": 5, "tol": 1e-14}, valid=valid)
    values = [means["ndcg@10"] for means in found.history.valid]
    assert len(values) == 5
    assert found.history.epoch == 1 + int(np.argmax(values))
    for other in ({"step": "paper"}, {"average": True}):
        with pytest.raises(DataError, match=r"with step=exact and average=false"):
            on_parts(PARTS, other)
    with pytest.raises(DataError, match=r"more than the 1e-09 GB allowed"):
        on_parts(PARTS, {"memory": 1e-9})
