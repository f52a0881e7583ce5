from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ranktron import DataError, Model, Rounds, evaluate, metric, read
from ranktron.dask.mixed_pass import MixedPass
from ranktron.dask.tasks import CACHE, PartCache
from ranktron.dask.training import SAMPLED_PARTS, evaluate_parts, inspect_parts, train_parts, warn_of_parts_drift
from ranktron.data.io import write
from ranktron.data.io.parts import divide_files
from ranktron.data.synthetic import WebSearch
from ranktron.errors import RankingWarning
from ranktron.learners.checks import same
from ranktron.learners.schedule import Fit, Schedule
from ranktron.training.fit import TrainingPlan, play_schedule, train
from ranktron.training.workers import LocalWorkers
from tests.plans import evenly, plan_of, run_in

LISTS = WebSearch(features=8, documents=10).rounds(80)
METRICS = [metric("ndcg@10"), metric("mrr")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same queries as text in three files, as a store and as Parquet."""
    path = tmp_path_factory.mktemp("parts")
    for k, (a, b) in enumerate([(0, 30), (30, 35), (35, 80)]):
        write(LISTS[a:b], path / f"part-{k}.txt")
    write(LISTS, path / "all.rounds")
    write(LISTS, path / "all.parquet")
    return path


@pytest.fixture
def pool():
    CACHE.clear()
    with ThreadPoolExecutor(2) as executor:
        yield LocalWorkers(executor)


def trained(folder, pool, source="part-*.txt", size=9000, epochs=2, shuffle=False, start=None, **options):
    data = inspect_parts(divide_files(f"{folder}/{source}", size), pool)
    plan = plan_of(options, "hinge", {"average": True}, Schedule(epochs, 3, shuffle), scaling="standard")
    return train_parts(plan, data, start=start, **options)


@pytest.mark.parametrize("source", ["part-*.txt", "all.rounds", "all.parquet"])
@pytest.mark.parametrize("scaling", ["standard", "minmax", "minmax-query", "none"])
def test_one_part_after_the_other_is_one_machine_to_the_bit(folder, pool, source, scaling):
    whole = train(TrainingPlan("hinge", {"average": True}, Schedule(2, 3, shuffle=False), scaling=scaling), LISTS)
    found = trained(folder, pool, source, mode="sequential", scaling=scaling)
    assert same(found.model.state, whole.model.state)
    assert (found.history.rounds, found.history.mistakes) == (whole.history.rounds, whole.history.mistakes)
    if scaling in ("standard", "minmax"):
        assert np.array_equal(found.model.scaler.shift, whole.model.scaler.shift)
        assert np.array_equal(found.model.scaler.divisor, whole.model.scaler.divisor)


def test_parts_that_do_not_fit_are_read_again_and_change_nothing(folder, pool, monkeypatch):
    whole = trained(folder, pool, mode="sequential", shuffle=True)
    CACHE.clear()
    monkeypatch.setattr(CACHE, "limit", 100)  # less than any part
    again = trained(folder, pool, mode="sequential", shuffle=True)
    assert CACHE.used == 0
    assert not CACHE.permanent
    assert same(again.model.state, whole.model.state)


@pytest.mark.parametrize("source", ["part-*.txt", "all.rounds"])
def test_shards_of_files_are_mixed_as_a_mixed_pass_over_parts_in_memory(folder, pool, source):
    parts, plan = (
        [LISTS[a : a + 20] for a in range(0, 80, 20)],
        TrainingPlan("hinge", {"average": True}, Schedule(2, 3)),
    )
    mixed = train_parts(plan, inspect_parts(parts, pool, shards=4), shards=4)
    learner, division = mixed.model.blank_learner(), evenly(80, 4)
    fit = Fit(LISTS, Schedule(2, 3))
    play_schedule(
        learner, fit, (), MixedPass(division, run_in(pool.executor, mixed.model.blank_learner, LISTS, division))
    )
    assert same(mixed.model.state, learner.state())
    divided = trained(folder, pool, source, size=3000, shuffle=True, shards=4)
    again = trained(folder, pool, source, size=3000, shuffle=True, shards=4)
    assert divided.model.to_bytes() == again.model.to_bytes()
    assert divided.history.rounds == 160


def test_a_scaling_that_is_summed_part_by_part_is_that_of_one_machine(folder, pool):
    found, whole = trained(folder, pool, shards=3), train(TrainingPlan("hinge", scaling="standard"), LISTS)
    assert found.model.scaler.shift == pytest.approx(whole.model.scaler.shift, rel=1e-12)
    assert found.model.scaler.divisor == pytest.approx(whole.model.scaler.divisor, rel=1e-12)


def test_every_pass_is_saved_and_continued_to_the_bit(folder, pool):
    saved = []
    whole = trained(folder, pool, epochs=3, shuffle=True, shards=3, save=saved.append)
    assert [model.record["epoch"] for model in saved] == [1, 2, 3]
    start = Model.from_bytes(saved[0].to_bytes())
    again = trained(folder, pool, epochs=2, shuffle=True, shards=3, start=start)
    assert same(again.model.state, whole.model.state)
    assert saved[-1].to_bytes() == whole.model.to_bytes()


def test_validation_chooses_the_pass(folder, pool):
    valid = WebSearch(features=8, documents=10).rounds(140)[80:]
    found = trained(folder, pool, epochs=4, shuffle=True, shards=3, valid=valid, select=METRICS[0])
    values = [value["ndcg@10"] for value in found.history.valid]
    assert found.history.epoch == 1 + int(np.argmax(values))


@pytest.mark.parametrize("source", ["part-*.txt", "all.rounds", "all.parquet"])
def test_metrics_over_parts_are_those_of_one_machine_to_the_bit(folder, pool, source):
    model = train(TrainingPlan("hinge", scaling="standard"), LISTS).model
    data = inspect_parts(divide_files(f"{folder}/{source}", 5000), pool)
    assert len(data.parts) > 2 or source == "all.parquet"
    found, whole = evaluate_parts(model, data, METRICS), evaluate(LISTS, model.score_rounds(LISTS), METRICS)
    assert found.means == whole.means
    assert all(np.array_equal(found.per_query[str(each)], whole.per_query[str(each)]) for each in METRICS)
    assert found.qids.tolist() == whole.qids.astype(str).tolist() or found.qids.tolist() == whole.qids.tolist()


@pytest.mark.parametrize("source", ["broken-*.txt", "broken.parquet"])
def test_features_that_have_left_the_training_data_are_those_of_one_machine(folder, pool, source):
    model = train(TrainingPlan("hinge", scaling="standard"), LISTS).model
    broken = replace(LISTS, X=LISTS.X * np.float32([1, 1, 1000, 1, 1, -1, 1, 1]))
    write(broken[:50], folder / "broken-1.txt")
    write(broken[50:], folder / "broken-2.txt")
    write(broken, folder / "broken.parquet")
    data = inspect_parts(divide_files(f"{folder}/{source}", 9000), pool)
    with pytest.warns(RankingWarning, match="left the training data of m "):
        found = warn_of_parts_drift(model, data, "m")
    assert "3" in {drift.feature for drift in found}
    if len(data.parts) <= SAMPLED_PARTS:
        assert found == model.drifts(broken)
    whole = inspect_parts(divide_files(f"{folder}/part-*.txt", 9000), pool)
    assert warn_of_parts_drift(model, whole, "m") == []


def test_a_query_in_two_parts_is_refused(tmp_path, pool):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:2 1:1\n")
    (tmp_path / "b.txt").write_text("1 qid:3 1:1\n0 qid:2 1:1\n")
    with pytest.raises(DataError, match=r"query '2' is split over .*a\.txt .* and .*b\.txt .*: put its rows"):
        inspect_parts(divide_files(tmp_path), pool)


def test_parts_may_lack_features_at_the_end_and_not_by_name(tmp_path, pool):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    (tmp_path / "b.txt").write_text("1 qid:3 3:1\n0 qid:3 1:2\n")
    data = inspect_parts(divide_files(tmp_path), pool)
    assert data.features.n_features == 3
    whole = train(TrainingPlan("hinge", schedule=Schedule(1, shuffle=False)), read(tmp_path))
    found = train_parts(TrainingPlan("hinge", schedule=Schedule(1, shuffle=False)), data, mode="sequential")
    assert same(found.model.state, whole.model.state)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_text("label,qid,price\n1,7,0.5\n0,7,1\n")
    (tmp_path / "c" / "b.csv").write_text("label,qid,age\n1,8,0.5\n0,8,1\n")
    with pytest.raises(DataError, match=r"b\.csv: it has other features than .*a\.csv: age, price"):
        inspect_parts(divide_files(tmp_path / "c"), pool)


@pytest.mark.parametrize("nan", ["mean", "zero", "indicator"])
def test_missing_values_are_filled_in_as_on_one_machine(tmp_path, pool, nan):
    X = LISTS.X.copy()
    X[::3, 2] = np.nan
    lists = Rounds.from_arrays(X, LISTS.labels, np.repeat(LISTS.qids, np.diff(LISTS.offsets)), missing=True)
    parts = [lists[a : a + 20] for a in range(0, 80, 20)]
    data = inspect_parts(parts, pool, missing=True)
    found = train_parts(
        TrainingPlan("hinge", schedule=Schedule(2, shuffle=False), nan=nan, scaling="standard"), data, mode="sequential"
    )
    whole = train(TrainingPlan("hinge", schedule=Schedule(2, shuffle=False), nan=nan, scaling="standard"), lists).model
    assert found.model.imputer.fill == pytest.approx(whole.imputer.fill, rel=1e-12)
    assert found.model.state["w"] == pytest.approx(whole.state["w"], rel=1e-6, abs=1e-9)


def test_damaged_parts_are_named(folder, tmp_path, pool):
    content = bytearray((folder / "all.rounds").read_bytes())
    content[-2000] ^= 0xFF
    (tmp_path / "bad.rounds").write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.rounds: this store is damaged"):
        inspect_parts(divide_files(tmp_path / "bad.rounds"), pool)
    (tmp_path / "bad.parquet").write_bytes((folder / "all.parquet").read_bytes()[:-50])
    with pytest.raises(DataError, match=r"bad\.parquet"):
        inspect_parts(divide_files(tmp_path / "bad.parquet"), pool)
    bad = WebSearch(features=8, documents=10).rounds(10)
    X = bad.X.copy()
    X[7, 3] = np.inf
    from dataclasses import replace

    with pytest.raises(DataError, match="part 1: its features are not finite"):
        inspect_parts([LISTS, replace(bad, X=X)], pool, ["part 0", "part 1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "bins:4"}, "a feature map is fitted to all documents at once"),
        ({"mode": "both"}, "there is no mode 'both'"),
        ({"shards": 90}, "90 shards need as many parts"),
        ({"scaling": "running-standard"}, "running-standard follows one query after the other"),
        ({"patience": 2}, "patience counts epochs"),
    ],
)
def test_what_parts_cannot_do_is_refused(folder, pool, options, message):
    with pytest.raises(DataError, match=message):
        trained(folder, pool, **options)


@pytest.mark.parametrize("name", ["topk", "kernel"])
def test_learners_that_cannot_be_mixed_go_from_part_to_part(folder, pool, name):
    data = inspect_parts(divide_files(f"{folder}/part-*.txt", 9000), pool)
    with pytest.raises(DataError, match=f"the states of {name} cannot be mixed"):
        train_parts(TrainingPlan(name), data)
    found = train_parts(TrainingPlan(name, schedule=Schedule(1, shuffle=False)), data, mode="sequential")
    assert same(found.model.state, train(TrainingPlan(name, schedule=Schedule(1, shuffle=False)), LISTS).model.state)


@pytest.mark.parametrize("balance", ["query", "pair"])
@pytest.mark.parametrize("source", ["part-*.txt", "all.rounds"])
def test_rank_svm_on_parts_is_the_solution_of_one_machine(folder, pool, source, balance):
    parameters = {"C": 3.0, "tol": 1e-9, "balance": balance}
    data = inspect_parts(divide_files(f"{folder}/{source}", 4000), pool)
    found = train_parts(TrainingPlan("ranksvm", parameters, scaling="standard"), data, mode="sequential")
    whole = train(TrainingPlan("ranksvm", parameters, scaling="standard"), LISTS)
    assert np.abs(found.model.coef - whole.model.coef).max() < 1e-8
    assert found.model.learner().predict(LISTS.X[:3]).shape == (3,)
    with pytest.raises(DataError, match="loss=squared"):
        train_parts(TrainingPlan("ranksvm", {"loss": "hinge"}), data)


def test_what_fits_stays_in_the_cache():
    cache, loads = PartCache(limit=8 * LISTS.labels.nbytes), []
    one = LISTS[:10]

    def load(key):
        loads.append(key)
        return one

    for key in ("a", "b", "a", "b"):
        cache.get(key, lambda key=key: load(key))
    assert loads == ["a", "b"]
    cache.evict("a")
    cache.get("a", lambda: load("a"))
    assert loads == ["a", "b", "a"]


def test_a_run_says_how_far_and_how_good_it_is(folder, pool):
    lines, counts = [], []
    options = {"shards": 3, "metrics": METRICS, "report": lines.append, "progress": counts.append}
    found = trained(folder, pool, shuffle=True, **options)
    assert len(lines) == len(counts) == 2 * 10
    assert sum(counts) == 160
    ndcg, mrr = found.history.averages()
    assert lines[-1] == f"pass 2 of 2, ndcg@10 {ndcg:.4f}, mrr {mrr:.4f}"
    assert lines[0].startswith("pass 1 of 2, ndcg@10 0.")
