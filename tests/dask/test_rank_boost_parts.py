import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ranktron import DataError, Model, Rounds
from ranktron.dask.rank_boost_parts import sum_weights
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.io import write
from ranktron.data.io.parts import divide_files
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch.cut_points import find_column_bins, merge_bins
from ranktron.learners.batch.histograms import BINS
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.workers import LocalWorkers
from tests.plans import plan_of

LISTS = WebSearch(features=8, documents=12).rounds(100)
FEW = replace(LISTS, X=np.round(LISTS.X, 1))
BORDERS = [0, 13, 40, 41, 100]


def cut(lists, borders=BORDERS):
    return [lists[a:b] for a, b in itertools.pairwise(borders)]


def on_parts(parts, parameters, workers=2, **options):
    with ThreadPoolExecutor(workers) as executor:
        data = inspect_parts(parts, LocalWorkers(executor))
        return train_parts(plan_of(options, "rankboost", parameters), data, **options)


@pytest.mark.parametrize("balance", ["query", "pair"])
def test_few_values_give_the_thresholds_of_one_machine(balance):
    parameters = {"n_rounds": 60, "balance": balance}
    found, whole = on_parts(cut(FEW), parameters), train(TrainingPlan("rankboost", parameters), FEW)
    assert found.model.state["features"].tolist() == whole.model.state["features"].tolist()
    assert found.model.state["thresholds"].tolist() == whole.model.state["thresholds"].tolist()
    assert np.abs(found.model.state["alphas"] - whole.model.state["alphas"]).max() < 1e-10
    assert np.abs(found.model.score_rounds(FEW) - whole.model.score_rounds(FEW)).max() < 1e-10
    assert (found.history.epoch, found.history.rounds) == (whole.history.epoch, whole.history.rounds) == (60, 6000)


def test_many_values_give_what_one_machine_finds_between_the_same_cut_points():
    lists = WebSearch(features=5, documents=12).rounds(100)
    cuts = merge_bins([find_column_bins(part.X) for part in cut(lists)])
    codes = np.stack([(cuts[f] >= lists.X[:, f : f + 1]).sum(axis=1) for f in range(5)], axis=1)
    assert len(np.unique(lists.X[:, 0])) > 4 * BINS
    found = on_parts(cut(lists), {"n_rounds": 60})
    whole = train(TrainingPlan("rankboost", {"n_rounds": 60}), replace(lists, X=(-codes).astype(np.float32)))
    assert found.model.state["features"].tolist() == whole.model.state["features"].tolist()
    numbers = (
        np.ceil(-whole.model.state["thresholds"]).astype(int) - 1
    )  # between −codes, cut number k lies above −k − 1
    assert found.model.state["thresholds"].tolist() == cuts[found.model.state["features"], numbers].tolist()
    assert np.abs(found.model.state["alphas"] - whole.model.state["alphas"]).max() < 1e-10


def test_neither_workers_nor_files_change_it(tmp_path):
    for k, part in enumerate(cut(LISTS)):
        write(part, tmp_path / f"part-{k}.rounds")
    one, two = on_parts(cut(LISTS), {"n_rounds": 20}, workers=1), on_parts(cut(LISTS), {"n_rounds": 20}, workers=3)
    files = on_parts(divide_files(tmp_path), {"n_rounds": 20})
    assert one.model.to_bytes() == two.model.to_bytes() == files.model.to_bytes()


def test_equal_thresholds_are_told_apart_by_their_place_and_not_by_rounding():
    """A feature, its mirror image and its copy gather as much, whatever the sums of parts are rounded to."""
    X = np.round(LISTS.X[:, [0]], 1)
    lists = replace(LISTS, X=np.ascontiguousarray(np.hstack([X, -X, X])))
    for borders in (BORDERS, [0, 50, 100], list(range(0, 101, 10))):
        assert set(on_parts(cut(lists, borders), {"n_rounds": 25}).model.state["features"].tolist()) == {0}


def test_it_goes_on_from_a_model_and_is_chosen_by_a_validation_set():
    whole = on_parts(cut(LISTS), {"n_rounds": 30}).model
    part = Model.from_bytes(on_parts(cut(LISTS), {"n_rounds": 10}).model.to_bytes())
    more = on_parts(cut(LISTS), {}, start=on_parts(cut(LISTS), {}, start=part).model)
    assert more.model.state["thresholds"].tolist() == whole.state["thresholds"].tolist()
    assert more.model.state["alphas"] == pytest.approx(whole.state["alphas"], rel=1e-10)
    valid = WebSearch(features=8, documents=12).rounds(140)[100:]
    chosen = on_parts(cut(LISTS), {"n_rounds": 30}, valid=valid)
    values = [means["ndcg@10"] for means in chosen.history.valid]
    assert len(values) == 30
    assert len(chosen.model.state["alphas"]) == 1 + int(np.argmax(values))


def test_sparse_features_are_refused():
    lists = Rounds.from_arrays(Sparse.from_matrix(LISTS.X), LISTS.labels, group=np.diff(LISTS.offsets))
    with pytest.raises(DataError, match=r"takes no sparse features: train it on one machine"):
        on_parts([lists], {})


class Counting(LocalWorkers):
    """Counts the sums that come back."""

    returned = ()

    def submit(self, function, /, *arguments, home):
        future = super().submit(function, *arguments, home=home)
        if function is sum_weights:
            Counting.returned += (future.result()[1].nbytes,)
        return future


@pytest.mark.parametrize("shards", [1, 3])
def test_a_round_sends_the_sums_of_shards_and_not_of_parts(shards):
    """One shard is how parts are read one after the other, each by itself."""
    parts, Counting.returned = cut(LISTS, list(range(0, 101, 10))), ()
    with ThreadPoolExecutor(2) as executor:
        data = inspect_parts(parts, Counting(executor), shards=shards)
        found = train_parts(TrainingPlan("rankboost", {"n_rounds": 20}), data)
    assert Counting.returned == (8 * BINS * 8,) * 20 * (10 if shards == 1 else shards)
    alone = on_parts(parts, {"n_rounds": 20}).model.state
    assert found.model.state["thresholds"].tolist() == alone["thresholds"].tolist()
    assert np.abs(found.model.state["alphas"] - alone["alphas"]).max() < 1e-10
