import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktron import DataError, Rounds, compare, evaluate, metric
from ranktron.data.io import write
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners.pairwise.outputs import Committee
from ranktron.learners.pairwise.passes import train_outputs
from ranktron.learners.schedule import Schedule
from ranktron.metrics import t_test
from ranktron.training.cross_validation import (
    Fold,
    cross_validate,
    fold_folders,
    grid_points,
    read_folds,
    split_folds,
)
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=5, documents=9).rounds(45)
PARTS = [LISTS[:15], LISTS[15:30], LISTS[30:]]
FOLDS = [Fold(f"Fold{i + 1}", PARTS[i], PARTS[(i + 1) % 3], PARTS[(i + 2) % 3]) for i in range(3)]
METRICS = ("ndcg@10", "map:letor")


@pytest.fixture
def letor(tmp_path):
    """The folds as files in LETOR's layout."""
    for fold in FOLDS:
        folder = tmp_path / "data" / fold.name
        folder.mkdir(parents=True)
        for name, rounds in zip(("train.txt", "vali.txt.gz", "testset.txt"), fold[1:], strict=True):
            write(rounds, folder / name)
    return tmp_path / "data"


def test_folds_are_found_in_letors_layout(letor):
    folds = list(read_folds(letor))
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3"]
    for found, fold in zip(folds, FOLDS, strict=True):
        for one, two in zip(found[1:], fold[1:], strict=True):
            assert one.labels.tolist() == two.labels.tolist()
            assert np.allclose(one.X, two.X, rtol=1e-5)
    (single,) = read_folds(letor / "Fold2")
    assert single.test.labels.tolist() == FOLDS[1].test.labels.tolist()


def test_folds_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("Fold10", "Fold2", "Fold1"):
        (tmp_path / name).mkdir()
    assert [path.name for path in fold_folders(tmp_path)] == ["Fold1", "Fold2", "Fold10"]


def test_a_fold_without_a_part_is_an_error(letor, tmp_path):
    (letor / "Fold2" / "vali.txt.gz").unlink()
    with pytest.raises(DataError, match=r"Fold2: no file called vali"):
        list(read_folds(letor))
    write(FOLDS[0].valid, letor / "Fold2" / "vali.txt")
    write(FOLDS[0].valid, letor / "Fold2" / "vali2.txt")
    with pytest.raises(DataError, match=r"Fold2: several files called vali"):
        list(read_folds(letor))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no file called train"):
        list(read_folds(tmp_path / "empty"))


def test_a_grid_is_all_combinations():
    assert grid_points({}) == [{}]
    assert grid_points({"a": [1, 2], "b": ["x"]}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]


def test_validation_chooses_the_grid_point_and_the_pass():
    grid = {"eta": [1e-3, 1.0], "margin": [0.5, 5.0]}
    report = cross_validate(
        TrainingPlan("hinge", {"average": True}, Schedule(4), scaling="auto"),
        FOLDS,
        grid=grid,
        seeds=2,
        metrics=METRICS,
    )
    assert [(t.fold, t.seed) for t in report.trials] == [(f.name, s) for f in FOLDS for s in (0, 1)]
    for trial, fold in zip(report.trials[::2], FOLDS, strict=True):
        best = None
        for point in grid_points(grid):
            trained = train(
                TrainingPlan("hinge", {"average": True, **point}, Schedule(4, 0), scaling="auto"),
                fold.train,
                valid=fold.valid,
            )
            value = max(means["ndcg@10"] for means in trained.history.valid)
            if best is None or value > best[0]:
                best = value, point, trained
        assert (trial.valid, trial.parameters, trial.epoch) == (best[0], best[1], best[2].history.epoch)
        expected = evaluate(fold.test, best[2].model.score_rounds(fold.test), METRICS)
        assert trial.test.means == expected.means


def test_the_test_part_has_no_say():
    rng = np.random.default_rng(0)
    scrambled = [fold._replace(test=replace(fold.test, labels=rng.permutation(fold.test.labels))) for fold in FOLDS]
    one, two = (
        cross_validate(
            TrainingPlan("committee", schedule=Schedule(5), scaling="auto"), folds, grid={"size": [1, 5, 20]}, seeds=2
        )
        for folds in (FOLDS, scrambled)
    )
    assert [(t.parameters, t.epoch, t.valid) for t in one.trials] == [
        (t.parameters, t.epoch, t.valid) for t in two.trials
    ]
    assert one.mean != two.mean


def test_a_metric_to_be_minimised_chooses_the_lowest():
    report = cross_validate(
        TrainingPlan("ranksvm", schedule=Schedule(10), select="inversions", scaling="auto"),
        FOLDS[:1],
        grid={"C": [1e-6, 1.0]},
    )
    fold = FOLDS[0]
    values = [
        train(
            TrainingPlan("ranksvm", {"C": C}, scaling="auto", select=metric("inversions")), fold.train, valid=fold.valid
        ).history.best_values["inversions"]
        for C in (1e-6, 1.0)
    ]
    assert report.trials[0].valid == min(values)


def test_means_are_over_folds_and_seeds_and_the_spread_over_seeds():
    uneven = [FOLDS[0], FOLDS[1]._replace(test=FOLDS[1].test[:4])]
    report = cross_validate(
        TrainingPlan("committee", {"size": 3}, Schedule(2), scaling="auto"), uneven, seeds=3, metrics=METRICS
    )
    values = np.array([[t.test.means["ndcg@10"] for t in report.of_fold(fold)] for fold in ("Fold1", "Fold2")])
    assert report.mean["ndcg@10"] == pytest.approx(values.mean())
    assert report.std["ndcg@10"] == pytest.approx(values.mean(axis=0).std(ddof=1))
    assert cross_validate(TrainingPlan("ranksvm", schedule=Schedule(10), scaling="auto"), uneven).std == {
        "ndcg@10": 0.0,
        "map": 0.0,
    }
    joined = report.evaluation
    assert len(joined.qids) == 19
    assert joined.per_query["ndcg@10"][15:] == pytest.approx(
        np.mean([t.test.per_query["ndcg@10"] for t in report.of_fold("Fold2")], axis=0)
    )


def test_results_per_query_go_into_a_paired_test():
    good = cross_validate(TrainingPlan("ranksvm", {"C": 10.0}, Schedule(10), scaling="auto"), FOLDS, metrics=METRICS)
    poor = cross_validate(
        TrainingPlan("ranksvm", {"C": 1e-12}, Schedule(10), scaling="minmax-query"), FOLDS, metrics=METRICS
    )
    table = compare({"good": good.evaluation, "poor": poor.evaluation})
    assert table.means["good"]["ndcg@10"] == pytest.approx(good.evaluation.means["ndcg@10"])
    assert 0.0 <= t_test(good.evaluation, poor.evaluation, "map:letor") <= 1.0


def test_seeds_may_be_named_and_trainings_are_counted():
    calls = []
    report = cross_validate(
        TrainingPlan("committee", scaling="auto"),
        FOLDS[:2],
        grid={"size": [2, 3]},
        seeds=[7, 9],
        watch=lambda: calls.append(1),
    )
    assert [t.seed for t in report.of_fold("Fold1")] == [7, 9]
    assert len(calls) == 8


def test_one_walk_for_many_outputs_gives_what_cross_validation_gives():
    report = cross_validate(TrainingPlan("committee", {"size": 7}, Schedule(6)), FOLDS)
    for fold, trial in zip(FOLDS, report.trials, strict=True):
        output = train_outputs(fold.train, {"c": Committee(7)}, Schedule(6, 0), valid=fold.valid)["c"]
        scores = output.learner.ensemble.of_rounds(fold.test)
        assert evaluate(fold.test, scores, "ndcg@10").means["ndcg@10"] == trial.test.means["ndcg@10"]


def test_what_cannot_be_cross_validated_is_an_error():
    empty = Rounds.from_arrays(np.ones((2, 5)), [0, 0])
    with pytest.raises(DataError, match="Fold1: no query of the validation set has documents with different labels"):
        cross_validate(TrainingPlan("ranksvm", schedule=Schedule(10), scaling="auto"), [FOLDS[0]._replace(valid=empty)])
    for arguments in ({"folds": []}, {"metrics": []}, {"grid": {"C": []}}, {"seeds": 0}):
        with pytest.raises(DataError, match="at least one"):
            cross_validate(TrainingPlan("ranksvm"), **{"folds": FOLDS, **arguments})
    with pytest.raises(DataError, match="no parameter 'speed'"):
        cross_validate(TrainingPlan("ranksvm", {"speed": 3}, Schedule(10), scaling="auto"), FOLDS)


def test_ctrl_c_ends_it(monkeypatch):
    from ranktron.training import cross_validation

    def interrupted(*arguments, **options):
        trained = train(*arguments, **options)
        trained.history.interrupted = True
        return trained

    monkeypatch.setattr(cross_validation, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(TrainingPlan("ranksvm", schedule=Schedule(10), scaling="auto"), FOLDS)


def test_the_command_prints_folds_mean_and_spread(run, letor):
    command = ("cv", letor, "--algo", "committee", "--set", "size=3", "--grid", "combine=average,borda")
    options = ("--epochs", 3, "--seeds", 2, "--select", "ndcg@10", "--metrics", "ndcg@10,map:letor", "--scale", "none")
    code, out, err = run(*command, *options, "--json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    plan = TrainingPlan("committee", {"size": 3}, Schedule(3), scaling="none")
    grid = {"combine": ["average", "borda"]}
    report = cross_validate(plan, list(read_folds(letor)), grid=grid, seeds=2, metrics=METRICS)
    assert content["mean"] == report.mean
    assert content["std"] == report.std
    assert [fold["fold"] for fold in content["folds"]] == ["Fold1", "Fold2", "Fold3"]
    first = content["folds"][0]
    assert first["queries"] == 15
    assert [t["seed"] for t in first["trials"]] == [0, 1]
    assert first["trials"][0]["parameters"]["combine"] in ("average", "borda")
    assert first["trials"][0]["test"] == dict(report.trials[0].test.means)
    assert "queries of one grade" in first["trials"][0]["remarks"]
    code, out, _ = run(*command, *options)
    assert code == 0
    assert all(word in out for word in ("Fold1", "mean", "±", "combine=", "queries of one grade"))


def test_the_command_compares_with_earlier_reports(run, letor):
    common = ("--metrics", "ndcg@10,map:letor")
    assert run("cv", letor, "--algo", "ranksvm", *common, "--out", "svm.json")[0] == 0
    code, out, _ = run(
        "cv", letor, "--algo", "rankboost", "--set", "n_rounds=5", *common, "--against", "svm.json", "--json"
    )
    assert code == 0
    comparison = json.loads(out)["comparison"]
    assert set(comparison["systems"]) == {"rankboost", "svm"}
    kept = json.loads(Path("svm.json").read_text())["per_query"]
    assert len(kept["qids"]) == len(kept["values"]["map:letor"]) == 45
    assert comparison["systems"]["svm"]["ndcg@10"] == pytest.approx(np.mean(kept["values"]["ndcg@10"]))
    code, out, _ = run("cv", letor, "--algo", "ranksvm", *common, "--against", "svm.json")
    assert "paired t-test" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("cv", "nowhere"), 2, "nowhere"),
        (("cv", "empty"), 1, "no file called train"),
        (("cv", "data", "--algo", "alien"), 2, "alien"),
        (
            ("cv", "data", "--algo", "committee", "--set", "speed=1"),
            2,
            "speed=1: the parameters of committee are",
        ),
        (("cv", "data", "--algo", "committee", "--set", "size=0"), 2, "size must be a whole number of at least 1"),
        (("cv", "data", "--algo", "committee", "--grid", "size=1,x"), 2, "--grid size=x"),
        (("cv", "data", "--algo", "committee", "--grid", "size"), 2, "--grid size"),
        (("cv", "data", "--select", "nddcg"), 2, "did you mean ndcg"),
        (("cv", "data", "--against", "other.json"), 1, "other.json is not a report"),
    ],
)
def test_errors_of_the_command_are_one_line(run, letor, tmp_path, arguments, code, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text("{}")
    found, _, err = run(*arguments)
    assert found == code
    assert words in err
    assert err.count("\n") == 1


def test_training_reports_queries_of_one_grade(run, letor, tmp_path):
    command = ("train", letor / "Fold1" / "train.txt", "--algo", "committee", "--model", "m", "--epochs", 1)
    _, out, _ = run(*command, "--json")
    remarks = json.loads(out)["remarks"]
    assert remarks["queries of one grade"] == sum(len(set(round.labels)) == 1 for round in FOLDS[0].train)


@pytest.mark.parametrize(("queries", "count"), [(10, 5), (23, 5), (7, 3), (5, 5)])
def test_folds_of_any_data_cut_no_query_and_test_each_once(queries, count):
    lists = Separable(documents=6, features=4).rounds(queries)
    folds = split_folds(lists, count, seed=3)
    assert [fold.name for fold in folds] == [f"Fold{n}" for n in range(1, count + 1)]
    tested = [qid for fold in folds for qid in fold.test.qids.tolist()]
    assert sorted(tested) == sorted(lists.qids.tolist())
    for fold in folds:
        parts = [set(part.qids.tolist()) for part in (fold.train, fold.valid, fold.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == queries
        assert all(np.diff(part.offsets).tolist() == [6] * len(part) for part in (fold.train, fold.valid, fold.test))
    again, other = split_folds(lists, count, seed=3), split_folds(lists, count, seed=4)
    assert [f.test.qids.tolist() for f in again] == [f.test.qids.tolist() for f in folds]
    assert [f.test.qids.tolist() for f in other] != [f.test.qids.tolist() for f in folds]


def test_too_few_queries_or_folds_are_refused():
    lists = Separable(documents=6, features=4).rounds(4)
    with pytest.raises(DataError, match="4 queries cannot be divided into 5 folds"):
        split_folds(lists)
    with pytest.raises(DataError, match="at least 3"):
        split_folds(lists, 2)


def test_the_command_divides_a_file_and_shows_a_spread_of_several_seeds_only(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(LISTS, "lists.txt")
    common = ("cv", "lists.txt", "--algo", "hinge", "--epochs", "2", "--scale", "none", "--metrics", "ndcg@10")
    code, out, _ = run(*common, "--folds", "3", "--split-seed", "2", "--json")
    assert code == 0
    wanted = cross_validate(TrainingPlan("hinge", schedule=Schedule(2)), split_folds(LISTS, 3, 2), metrics=["ndcg@10"])
    assert json.loads(out)["mean"] == pytest.approx(wanted.mean)
    assert "±" not in run(*common)[1]
    assert "±" in run(*common, "--seeds", "2")[1]
    assert run("cv", "lists.txt", "--folds", "46")[0] == 1
