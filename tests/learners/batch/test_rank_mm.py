"""RankMM as users meet it: solving to a gap, stopping, starting warm, training, choosing, the command line."""

import json
import os
import signal
from itertools import count

import numpy as np
import pytest

import ranktron
from ranktron import DataError, RankMM, Rounds, metric
from ranktron.cli import main
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.dense import score
from ranktron.learners.batch import rank_mm
from ranktron.learners.batch.rank_mm import FUTILE, HELD, UNFINISHED, SolverRun, fit_rank_mm, make_dual, solve_rank_mm
from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, bytes_held
from ranktron.learners.schedule import Fit, Schedule
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import Fold, cross_validate
from ranktron.training.fit import TrainingPlan, train
from reproduction.theory.rank_mm import solve_path

LISTS = WebSearch(features=6, documents=12).rounds(40)
VALID = WebSearch(features=6, documents=12, seed=1).rounds(20)
DEFAULTS = ranktron.training.algorithms.algorithm("rankmm").complete({})


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("average", [False, True])
def test_a_solution_is_as_close_as_it_says(loss, average):
    best = solve_rank_mm(LISTS, 3.0, loss, tol=1e-6, max_iter=20000).primal
    found = solve_rank_mm(LISTS, 3.0, loss, average=average, tol=1e-3)
    assert found.converged
    assert found.primal == pytest.approx(RankMMProblem(LISTS, loss, 3.0).primal(found.w))
    assert found.primal - found.gap <= best * (1 + 1e-9)
    assert best * (1 - 1e-6) <= found.primal <= best + found.gap
    assert found.gap <= 1e-3 * found.primal
    gaps = [done.gap for done in found.history]
    assert gaps == sorted(gaps, reverse=True)
    assert all(done.dual <= best * (1 + 1e-9) for done in found.history)
    assert [done.number for done in found.history] == list(range(1, len(found.history) + 1))


def _unscaled(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, rng.integers(2, 5))
    X = 100 * rng.normal(size=(sizes.sum(), rng.integers(2, 6)))
    return Rounds.from_arrays(X, rng.integers(0, 4, sizes.sum()), group=sizes), 10.0 ** (seed % 4)


@pytest.mark.parametrize("loss", LOSSES)
def test_features_of_any_length_are_solved_to_the_gap(loss, monkeypatch):
    most, open_gaps = 0, 0
    for seed in range(12):
        lists, C = _unscaled(seed)
        found = solve_rank_mm(lists, C, loss)
        assert found.converged
        most = max(most, len(found.history))
        dual = found.dual
        w, margin = dual.recovered()
        assert dual.weights.min() >= 0.0
        assert dual.weights.sum(axis=1) == pytest.approx(np.ones(len(lists)))
        assert margin - 0.5 * w @ w == pytest.approx(dual.value)
        assert dual.value <= found.primal
    assert most < 60
    monkeypatch.setattr(rank_mm, "UNCORRECTED", 10**9)
    for seed in range(12):
        lists, C = _unscaled(seed)
        open_gaps += not solve_rank_mm(lists, C, loss, max_iter=100).converged
    assert open_gaps > 4  # passes alone do not solve these


def test_corrections_are_left_out_where_features_are_too_many():
    X = np.zeros((2, 2001), np.float32)
    X[1, 0] = 1.0
    assert make_dual(RankMMProblem(Rounds.from_arrays(X, [0, 1]))).passes_between_corrections == 0
    assert make_dual(RankMMProblem(LISTS)).passes_between_corrections >= 1


def test_it_stops_by_gap_by_passes_and_by_time(monkeypatch):
    assert len(solve_rank_mm(LISTS, 100.0, "max", max_iter=7, tol=0.0).history) == 7
    loose, tight = (len(solve_rank_mm(LISTS, 10.0, tol=tol).history) for tol in (0.1, 1e-4))
    assert loose < tight
    seconds = count()
    monkeypatch.setattr(rank_mm, "perf_counter", lambda: next(seconds))
    found = solve_rank_mm(LISTS, 100.0, "max", tol=0.0, max_seconds=5.0)
    assert len(found.history) == 5
    assert not found.converged


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("step", ["exact", "paper"])
def test_a_solution_goes_on_from_another(loss, step):
    options = {"step": step, "tol": 0.0, "eta": 0.1}
    half = solve_rank_mm(LISTS, 10.0, loss, max_iter=5, **options)
    before = half.dual.value
    again = solve_rank_mm(LISTS, 10.0, loss, start=half, max_iter=1, **options)
    if step == "exact":
        assert again.history[0].dual >= before - 1e-9
    assert again.dual.steps == 6 * len(LISTS)
    doubled = make_dual(RankMMProblem(LISTS, loss, 20.0), step)
    doubled.restore(half.dual.state(), 0, 2.0)
    assert doubled.w == pytest.approx(2.0 * half.dual.recovered()[0], abs=1e-6)
    assert doubled.value <= solve_rank_mm(LISTS, 20.0, loss, tol=1e-4).primal


def test_a_solution_goes_on_only_from_its_like():
    found = solve_rank_mm(LISTS, 1.0)
    same = LISTS[:]
    assert solve_rank_mm(same, 1.0, start=found).converged
    with pytest.raises(DataError, match="same loss and step"):
        solve_rank_mm(LISTS, 1.0, "max", start=found)
    with pytest.raises(DataError, match="same loss and step"):
        solve_rank_mm(LISTS, 1.0, step="paper", start=found)
    with pytest.raises(DataError, match="same queries"):
        solve_rank_mm(VALID, 1.0, start=found)


def test_a_path_is_no_worse_than_its_points():
    Cs = [0.1, 1.0, 10.0, 100.0]
    for C, found in zip(Cs, solve_path(LISTS, Cs, tol=1e-4), strict=True):
        alone = solve_rank_mm(LISTS, C, tol=1e-4)
        assert found.converged
        assert found.primal == pytest.approx(alone.primal, rel=2e-4)


def test_memory_is_stated_and_refused_with_advice():
    pairs = sum(int((r.labels[:, None] > r.labels[None, :]).sum()) for r in LISTS)
    assert bytes_held(LISTS, "average", "paper", 20) == bytes_held(LISTS, "max-average", "paper", 20) == 4 * pairs
    assert bytes_held(LISTS, "max", "paper", 20) == 8 * len(LISTS.labels)
    assert bytes_held(LISTS, "max", "exact", 20) == 8 * 40 * 21 * (6 + 2)
    for loss, step in [("average", "paper"), ("max", "paper"), ("max", "exact")]:
        dual = make_dual(RankMMProblem(LISTS, loss), step)
        held = sum(np.asarray(array).nbytes for name, array in vars(dual).items() if name in HELD_ARRAYS)
        assert held == bytes_held(LISTS, loss, step, 20)
    with pytest.raises(DataError, match="remember fewer corners"):
        solve_rank_mm(LISTS, memory=1e-6)
    with pytest.raises(DataError, match=r"would take 0\.0 GB, more than the 1e-06 GB allowed: take step=.exact"):
        solve_rank_mm(LISTS, step="paper", memory=1e-6)
    fit = Fit(LISTS, Schedule())
    with pytest.raises(DataError, match="raise memory"):
        fit_rank_mm(fit, {**DEFAULTS, "memory": 1e-6})
    assert HELD in fit.history.remarks  # stated before anything is solved


def test_the_command_line_states_the_memory_before_it_trains(tmp_path, capfd):
    path = tmp_path / "lists.txt"
    ranktron.io.write(LISTS, path)
    with pytest.raises(SystemExit) as exit:
        main(["train", str(path), "--algo", "rankmm", "--set", "memory=1e-6", "--model", str(tmp_path / "mm.model")])
    stated, refused = capfd.readouterr().err.splitlines()
    megabytes = bytes_held(LISTS, "average", "exact", 20) / 1e6
    assert stated == f"rankmm will use {megabytes:.3g} megabytes for dual variables (at most 1e-06 gigabytes)"
    assert exit.value.code == 1
    assert "raise memory" in refused


HELD_ARRAYS = ("corners", "margins", "weights", "alpha", "theta")


def test_training_keeps_the_solution():
    parameters = {"C": 100.0, "loss": "max", "tol": 1e-3}
    trained = train(TrainingPlan("rankmm", parameters, select=metric("map")), LISTS, valid=VALID)
    history, problem = trained.model.state["history"], RankMMProblem(LISTS, "max", 100.0)
    assert problem.primal(trained.model.coef) == pytest.approx(history[:, 0].min())
    assert trained.history.epoch == 1 + int(np.argmin(history[:, 0]))
    kept = evaluate(VALID, score(VALID.X, trained.model.coef), ["map"]).means["map"]
    assert trained.history.best_values["map"] == pytest.approx(kept)


@pytest.mark.parametrize("parameters", [{"early_stopping": True, "tol": 1e-3}, {"step": "paper", "eta": 0.1}])
def test_training_keeps_the_best_pass(parameters):
    given = {"C": 100.0, "loss": "max", **parameters}
    trained = train(TrainingPlan("rankmm", given, Schedule(10), select=metric("map")), LISTS, valid=VALID)
    values = [means["map"] for means in trained.history.valid]
    assert trained.history.epoch == 1 + int(np.argmax(values))
    assert trained.history.rounds == 40 * len(values)
    kept = evaluate(VALID, score(VALID.X, trained.model.coef), ["map"]).means["map"]
    assert kept == pytest.approx(max(values))
    assert len(trained.model.state["history"]) == len(values)


def test_the_papers_steps_take_the_passes_of_the_schedule():
    trained = train(TrainingPlan("rankmm", {"step": "paper"}, Schedule(3)), LISTS)
    assert trained.history.epoch == 3
    assert trained.history.rounds == 120
    assert trained.history.remarks[HELD] == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_going_on_is_as_if_it_had_never_stopped(loss):
    parameters = {"step": "paper", "loss": loss, "C": 10.0, "eta": 0.1}
    whole = train(TrainingPlan("rankmm", parameters, Schedule(4)), LISTS)
    half = train(TrainingPlan("rankmm", parameters, Schedule(2)), LISTS).model
    again = train(
        TrainingPlan("rankmm", parameters, Schedule(2)), LISTS, start=ranktron.Model.from_bytes(half.to_bytes())
    )
    assert again.model.coef == pytest.approx(whole.model.coef, abs=1e-9)
    exact = train(TrainingPlan("rankmm", {"loss": loss, "C": 10.0, "tol": 1e-2}), LISTS).model
    more = train(TrainingPlan("rankmm"), LISTS, start=exact)
    assert more.model.state["history"][0, 1] >= exact.state["history"][-1, 1] * (1 - 1e-9)
    elsewhere = train(TrainingPlan("rankmm"), VALID, start=exact).model  # other lists: solved afresh
    best = solve_rank_mm(VALID, 10.0, loss, tol=1e-4).primal
    assert RankMMProblem(VALID, loss, 10.0).primal(elsewhere.coef) <= best * 1.02


def test_ctrl_c_keeps_what_there_is(monkeypatch):
    original = SolverRun.passes

    def interrupted(self, *arguments):
        for done in original(self, *arguments):
            if done.number == 2:
                os.kill(os.getpid(), signal.SIGINT)
            yield done

    monkeypatch.setattr(SolverRun, "passes", interrupted)
    trained = train(TrainingPlan("rankmm", {"C": 100.0, "loss": "max", "tol": 1e-9}), LISTS, valid=VALID)
    assert trained.history.interrupted
    assert len(trained.history.valid) == len(trained.model.state["history"]) == 2
    assert trained.history.epoch in (1, 2)
    assert np.abs(trained.model.coef).max() > 0.0


def test_remarks_say_when_the_gap_is_open_and_when_nothing_helps():
    trained = train(TrainingPlan("rankmm", {"C": 1000.0, "max_iter": 2, "tol": 1e-9}), LISTS)
    assert trained.history.remarks[UNFINISHED] == 2
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    lists = ranktron.Rounds.from_arrays(X, [0, 1, 1, 0], group=[2, 2])  # what one list gains the other loses
    history = train(TrainingPlan("rankmm", {"loss": "max"}), lists).history
    assert history.remarks[FUTILE] == 1
    assert FUTILE not in train(TrainingPlan("rankmm"), Separable().rounds(20)).history.remarks


def test_an_absurd_step_overflows_with_words():
    with pytest.raises(DataError, match="smaller eta"):
        solve_rank_mm(LISTS, loss="max", step="paper", eta=1e308, max_iter=3)


def test_an_absurd_weight_of_the_loss_overflows_with_words():
    assert solve_rank_mm(LISTS, C=1e100, max_iter=3).w.any()
    for C in (1e160, 1e300):
        with pytest.raises(DataError, match="smaller C"):
            solve_rank_mm(LISTS, C=C, max_iter=3)


def test_the_estimator_shows_its_gap():
    qid = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
    ranker = RankMM(C=10.0, scale=None).fit(LISTS.X, LISTS.labels, qid=qid)
    found = solve_rank_mm(LISTS, 10.0, schedule=Schedule(seed=0))
    assert ranker.gap_ <= 1e-4 * ranker.gaps_[:, 0].min()
    assert ranker.gaps_.shape[1] == 3
    assert ranker.coef_ == pytest.approx(found.w, abs=0.1 * np.abs(found.w).max())
    # the objective is what is promised, whatever the order of the lists
    assert RankMMProblem(LISTS, "average", 10.0).primal(ranker.coef_) == pytest.approx(found.primal, rel=2e-4)


def test_bad_choices_are_named():
    for parameters, words in [({"loss": "sum"}, "loss"), ({"C": 0.0}, "C must"), ({"step": "newton"}, "step must")]:
        with pytest.raises(DataError, match=words):
            train(TrainingPlan("rankmm", parameters), LISTS)
    with pytest.raises(DataError, match="C must"):
        solve_rank_mm(LISTS, -1.0)
    with pytest.raises(DataError, match="step must be exact or paper"):
        solve_rank_mm(LISTS, step="newton")
    with pytest.raises(DataError, match="corners must be at least 1"):
        solve_rank_mm(LISTS, corners=0)


def test_cross_validation_chooses_c():
    folds = [Fold("one", LISTS[:20], LISTS[20:], VALID)]
    report = cross_validate(
        TrainingPlan("rankmm", schedule=Schedule(10), select="map", scaling="auto"),
        folds,
        grid={"C": [1e-4, 10.0]},
        metrics=["map"],
    )
    assert report.mean["map"] > 0.4
    assert report.trials[0].parameters["C"] in (1e-4, 10.0)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main(list(arguments))
        assert exit.value.code == 0
        return capsys.readouterr().out

    run("simulate", "separable", "d.txt", "--queries", "30")
    first = ("train", "d.txt", "--algo", "rankmm", "--set", "C=100", "--set", "loss=max", "--valid", "d.txt")
    summary = json.loads(run(*first, "--model", "m", "--json"))
    assert summary["valid"]["ndcg@10"] > 0.95
    assert json.loads(run("train", "d.txt", "--from", "m", "--model", "n", "--json"))["rounds"] >= 30
    folder = tmp_path / "folds" / "Fold1"
    folder.mkdir(parents=True)
    for part in ("train", "vali", "test"):
        (folder / f"{part}.txt").write_bytes((tmp_path / "d.txt").read_bytes())
    result = json.loads(run("cv", "folds", "--algo", "rankmm", "--grid", "C=1,100", "--json"))
    assert result["mean"]["ndcg@10"] > 0.95
