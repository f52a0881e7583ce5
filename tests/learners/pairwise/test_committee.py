import csv
import json
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Model, Rounds, evaluate
from ranktron.data import serialization
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners import committee_perceptron
from ranktron.learners.checks import check_learner
from ranktron.learners.pairwise.hypothesis_history import blank_history, visit
from ranktron.learners.pairwise.learner import OUTPUTS
from ranktron.learners.pairwise.outputs import EVERYONE, Average, Committee, borda
from ranktron.learners.pairwise.passes import MemberWeights, Passes, train_outputs
from ranktron.learners.schedule import History, Schedule
from ranktron.metrics import Evaluation, metric, t_test
from ranktron.training.cross_validation import Fold, cross_validate, read_folds
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=6, documents=10).rounds(30)
HELD_OUT = WebSearch(features=6, documents=10).rounds(60)[30:]
LETOR = ("map:letor", "ndcg@1:letor", "ndcg@5:letor", "ndcg@10:letor")
SHOWN = ("MAP", "NDCG@1", "NDCG@5", "NDCG@10")
ROWS = Path(__file__).parents[3] / "docs" / "results" / "reproduced.json"


def all_hypotheses(lists, schedule, **options):
    """Every hypothesis of the walk that ranked at least one pair well, with its counter."""
    ensemble = train_outputs(lists, {"all": OUTPUTS["voted"]}, schedule, **options)["all"].learner.ensemble
    return ensemble.members, ensemble.weights


@pytest.mark.claim("COMMITTEE", "16 T2")
@pytest.mark.parametrize("size", [2, 7, 30])
def test_the_committee_holds_those_that_survived_longest(size):
    members, counters = all_hypotheses(LISTS, Schedule(3, 1))
    assert len(members) > 100
    # Table 2 one by one: in while there is room or above the smallest; out goes the smallest, of equals the younger
    committee = []
    for born, counter in enumerate(counters):
        if len(committee) < size or counter > min(committee)[0]:
            committee.append((counter, -born))
            committee = sorted(committee)[-size:]
    kept = sorted(-born for _, born in committee)
    ensemble = train_outputs(LISTS, {"c": Committee(size, "borda", "count")}, Schedule(3, 1))["c"].learner.ensemble
    assert ensemble.members.tolist() == members[kept].tolist()
    assert ensemble.weights.tolist() == counters[kept].tolist()


def test_the_last_hypothesis_is_offered_too():
    lists = Separable(documents=8, features=6, margin=0.3).rounds(20)
    learner = train_outputs(lists, {"c": Committee(1, weights="count")}, Schedule(60))["c"].learner
    assert learner.coef.tolist() == learner.hypotheses.w.tolist()  # the one that makes no mistake any more
    assert learner.ensemble.members.tolist() != learner.hypotheses.members.tolist()


@pytest.mark.claim("COMMITTEE", "17 s5")
@pytest.mark.parametrize("weights", ["count", "metric", "uniform"])
@pytest.mark.parametrize("combine", ["average", "borda"])
def test_a_committee_of_one_is_the_pocket_to_the_bit(weights, combine):
    members, counters = all_hypotheses(LISTS, Schedule(4, 2))
    pocket = train(TrainingPlan("pairwise", {"output": "pocket"}, Schedule(4, 2)), LISTS).model
    assert pocket.coef.tolist() == members[np.argmax(counters)].tolist()
    parameters = {"size": 1, "weights": weights, "combine": combine}
    learner = train(TrainingPlan("committee", parameters, Schedule(4, 2)), LISTS).model.learner()
    assert learner.ensemble.members[0].tolist() == pocket.coef.tolist()
    assert learner.predict(LISTS[0].X).tolist() == pocket.predict(LISTS[0].X).tolist()


@pytest.mark.claim("COMMITTEE", "18 s5")
@pytest.mark.parametrize("size", [10**6, EVERYONE])
def test_a_committee_without_limit_is_the_average_to_the_bit(size):
    readouts = {"committee": Committee(size, weights="count"), "average": Average()}
    together = train_outputs(LISTS, readouts, Schedule(4, 2))
    alone = {name: train_outputs(LISTS, {name: r}, Schedule(4, 2))[name] for name, r in readouts.items()}
    for outputs in (together, alone):
        one, two = (outputs[name].learner.coef.tolist() for name in readouts)
        assert one == two
    average = train(TrainingPlan("pairwise", {"output": "average"}, Schedule(4, 2)), LISTS).model
    assert (
        train(TrainingPlan("committee", {"size": 10**6}, Schedule(4, 2)), LISTS).model.coef.tolist()
        == average.coef.tolist()
    )


@pytest.mark.claim("COMMITTEE", "19 s5")
def test_weighted_majority_voting_on_pairs_is_the_borda_count():
    rng = np.random.default_rng(0)
    X, members, weights = rng.normal(size=(9, 4)).astype(np.float32), rng.normal(size=(5, 4)), rng.random(5)
    scores = X @ members.T.astype(np.float32)
    prefers = np.einsum(
        "ijk,k->ij", scores[:, None, :] > scores[None, :, :], weights
    )  # weight of the votes for i over j
    assert borda(X, members, weights) == pytest.approx(prefers.sum(axis=1))
    assert borda.py_func(X, members, weights) == pytest.approx(borda(X, members, weights))
    # where the majority contains no circle, the sum of the votes won orders two documents as the majority does
    two = X[:2]
    won = prefers[0, 1] - prefers[1, 0]
    assert np.sign(np.subtract(*borda(two, members, weights))) == np.sign(won)


def test_borda_shares_the_points_of_ties_and_does_not_depend_on_the_order_of_the_list():
    X = np.array([[1.0], [2.0], [2.0], [0.0]], np.float32)
    assert borda(X, np.ones((1, 1)), np.ones(1)).tolist() == [1.0, 2.5, 2.5, 0.0]
    assert borda(X[::-1].copy(), np.ones((1, 1)), np.ones(1)).tolist() == [0.0, 2.5, 2.5, 1.0]
    assert borda(X, np.zeros((1, 1)), np.ones(1)).tolist() == [1.5] * 4


@pytest.mark.parametrize("weigh", ["ndcg@10", "map:letor"])
def test_metric_weights_are_the_members_values_on_held_out_lists(weigh):
    options = {"valid": HELD_OUT, "weigh": weigh, "select": weigh}
    output = Committee(6, "borda", "metric")
    learner = train_outputs(LISTS, {"c": output}, Schedule(3, 1), **options)["c"].learner
    values = [evaluate(HELD_OUT, HELD_OUT.X @ w, weigh).means[weigh] for w in learner.ensemble.members]
    assert learner.ensemble.weights == pytest.approx(values)
    assert len(set(values)) == 6
    average = train_outputs(LISTS, {"c": Committee(6)}, Schedule(1, 1), **options)["c"].learner
    settled = average.hypotheses.settled(6, 0)
    assert average.coef == pytest.approx(settled.values @ settled.members / settled.values.sum())


def test_a_member_that_takes_anothers_place_has_a_value_of_its_own():
    """Members come and go over many passes; nobody keeps the value of whoever stood there before."""
    learner = train_outputs(LISTS, {"c": Committee(3, "borda")}, Schedule(1, 1), valid=HELD_OUT)["c"].learner
    first = learner.hypotheses.born.copy()
    passes = Passes(LISTS, Schedule(6, 1), 1.0, 0)
    found, history, weights = learner.hypotheses, History(), MemberWeights(HELD_OUT, metric("ndcg@10"))
    for _ in range(6):
        found = passes.go(found, 3, 0, history, lambda: False)
        weights.measure(found)
        for w, value in [*zip(found.members, found.values, strict=True), (found.w, found.value[0])]:
            assert value == pytest.approx(evaluate(HELD_OUT, HELD_OUT.X @ w, "ndcg@10").means["ndcg@10"])
    assert set(found.born) != set(first)  # somebody did take a place


def test_a_hypothesis_that_is_offered_has_no_value_but_its_own():
    """w has been measured at the end of a pass and then goes on: the old value must not enter with the new w."""
    found = blank_history(1, room=1)
    X = np.array([[1.0], [0.0], [3.0]], np.float32)
    upper, lower = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    unbounded = np.zeros(0, np.int32)
    visit(X, upper, lower, np.array([0, 0]), np.ones(3), unbounded, 0.0, 0, found)
    found.value[0] = 0.5
    visit(X, upper, lower, np.array([1, 1, 0]), np.ones(3), unbounded, 0.0, 0, found)
    assert found.w.tolist() == [-1.0]
    assert (found.counters.tolist(), found.values.tolist()) == ([1], [0.5])  # the measured one, entered as it was
    assert np.isnan(found.value[0])  # and its successor is still to be measured


def test_a_subcommittee_is_the_best_on_held_out_lists():
    options = {"valid": HELD_OUT}
    whole = train_outputs(LISTS, {"c": Committee(12, "borda")}, Schedule(1, 1), **options)["c"].learner.ensemble
    part = train_outputs(LISTS, {"c": Committee(12, "borda", subcommittee=4)}, Schedule(1, 1), **options)["c"]
    best = np.sort(np.argsort(-whole.weights)[:4])
    assert part.learner.ensemble.members.tolist() == whole.members[best].tolist()
    # without held-out lists those with the largest counters
    few = train_outputs(LISTS, {"c": Committee(12, subcommittee=4)}, Schedule(1, 1))["c"].learner
    four = train_outputs(LISTS, {"c": Committee(4)}, Schedule(1, 1))["c"].learner
    assert few.coef.tolist() == four.coef.tolist()


def test_uniform_weights_and_selective_members():
    learner = train_outputs(LISTS, {"c": Committee(9, weights="uniform")}, Schedule(2))["c"].learner
    settled = learner.hypotheses.settled(9, 0)
    assert learner.coef == pytest.approx(settled.members.mean(axis=0))
    strict = train_outputs(LISTS, {"c": Committee(10**5, "borda", "uniform")}, Schedule(2), selective=12)["c"].learner
    members, counters = all_hypotheses(LISTS, Schedule(2))
    assert strict.ensemble.members.tolist() == members[counters >= 12].tolist()


def test_without_held_out_lists_members_weigh_their_counters():
    by_metric, by_count = (
        train(TrainingPlan("committee", {"weights": w}, Schedule(3)), LISTS).model for w in ("metric", "count")
    )
    assert by_metric.coef.tolist() == by_count.coef.tolist()


def test_held_out_lists_weigh_and_choose_through_the_estimator():
    sizes, held = np.diff(LISTS.offsets), np.diff(HELD_OUT.offsets)
    ranker = ranktron.CommitteePerceptron(size=5, n_epochs=8, random_state=0, metric="map")
    ranker.fit(LISTS.X, LISTS.labels, group=sizes, eval_set=[(HELD_OUT.X, HELD_OUT.labels)], eval_group=[held])
    values = [means["ndcg@10"] for means in ranker.history_.valid]
    assert ranker.history_.epoch == 1 + int(np.argmax(values))
    again = evaluate(HELD_OUT, ranker.predict(HELD_OUT.X), "ndcg@10").means["ndcg@10"]
    assert again == pytest.approx(max(values))
    assert np.isfinite(ranker.learner_.hypotheses.values).all()


def test_a_voting_committee_survives_saving_and_wants_query_ids(tmp_path):
    qid = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
    ranker = ranktron.CommitteePerceptron(size=5, combine="borda", n_epochs=2, random_state=0)
    ranker.fit(LISTS.X, LISTS.labels, qid=qid)
    with pytest.raises(DataError, match="query ids"):
        ranker.predict(LISTS.X)
    with pytest.raises(DataError, match="no weights"):
        ranker.coef_
    ranker.save(tmp_path / "m")
    scores = ranker.predict(LISTS.X, qid=qid)
    assert ranktron.load(tmp_path / "m").predict(LISTS.X, qid=qid).tolist() == scores.tolist()
    points = np.diff(LISTS.offsets) * (np.diff(LISTS.offsets) - 1) / 2  # of one vote
    assert scores.sum() == pytest.approx(points.sum() * ranker.learner_.ensemble.weights.sum())


@pytest.mark.parametrize("size", [3, 20, 1000])
def test_the_same_rounds_leave_the_same_state_wherever_a_run_was_interrupted(size):
    whole = committee_perceptron(6, size=size)
    for number, round in enumerate(LISTS):
        if number % 10 == 0:
            broken = committee_perceptron(6, size=size)
            broken.restore(whole.state())
        for learner in (whole, broken):
            ranking = learner.rank(round.X, number)
            learner.learn(round.X, ranking, ranktron.feedback.top(2)(round, ranking))
        assert serialization.serialize(whole.state()) == serialization.serialize(broken.state())


def test_it_goes_on_learning_behind_a_stream():
    model = train(TrainingPlan("committee", {"size": 4}, Schedule(2)), LISTS, valid=HELD_OUT).model
    learner = Model.from_bytes(model.to_bytes()).learner()
    before = learner.rounds
    for round in HELD_OUT:
        learner.learn(round.X, learner.rank(round.X, learner.rounds), learner.simulated_feedback(round, None))
    assert learner.rounds == before + len(HELD_OUT)
    check_learner(lambda: committee_perceptron(6, size=3, combine="borda"), LISTS)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"size": 0}, "size must be a whole number of at least 1"),
        ({"combine": "mean"}, "combine must be average or borda"),
        ({"weights": "none"}, "weights must be metric or count or uniform"),
        ({"subcommittee": -1}, "subcommittee"),
        ({"metric": "nddcg@10"}, "did you mean ndcg"),
        ({"metric": "inversions"}, "higher values are better"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(DataError, match=words):
        train(TrainingPlan("committee", parameters), LISTS, valid=HELD_OUT)


@pytest.mark.parametrize("arguments", [(0,), (5, "mean"), (5, "average", "loud"), (5, "average", "count", -1)])
def test_a_committee_checks_itself(arguments):
    with pytest.raises(DataError):
        Committee(*arguments)


def test_held_out_lists_without_relevant_documents_are_refused():
    empty = Rounds.from_arrays(np.ones((4, 6)), np.zeros(4), group=[2, 2])
    for name in ("committee", "pairwise", "rankboost", "ranksvm", "hinge"):
        with pytest.raises(DataError, match="no relevant document"):
            train(TrainingPlan(name), LISTS, valid=empty)
    with pytest.raises(DataError, match="no relevant document"):
        train_outputs(LISTS, {"c": Committee(3)}, Schedule(1), valid=empty)


@pytest.mark.data
@pytest.mark.claim("COMMITTEE", "20 T3")
def test_the_collection_has_the_sizes_of_table_3(data_dir):
    tests = Rounds.concat([fold.test for fold in read_folds(data_dir / "ohsumed-letor2")])
    assert (tests.n_features, len(tests)) == (25, 106)
    assert len(tests.labels) / len(tests) == pytest.approx(152.24, abs=0.05)  # 152.26: 16,140 documents
    shares = [round(100 * np.mean(tests.labels == grade)) for grade in (1, 2)]
    assert shares == [16, 14]


@pytest.mark.data
def test_the_published_rows_of_table_4_are_those_of_the_collection(data_dir):
    with open(data_dir / "ohsumed-letor2" / "baselines.csv") as file:
        rows = {
            (r["algorithm"], r["metric"]): float(r["value"])
            for r in csv.DictReader(file)
            if (r["part"], r["fold"]) == ("test", "average")
        }
    for name, printed in {
        "Ranking SVM": (0.447, 0.495, 0.458, 0.441),
        "RankBoost": (0.440, 0.498, 0.450, 0.436),
    }.items():
        assert [round(rows[name, m], 3) for m in ("map", "ndcg@1", "ndcg@5", "ndcg@10")] == list(printed)


def scaled_folds(data_dir):
    """LETOR 2.0, every feature of every list scaled to [0, 1] as in section 6.1."""
    folds = list(read_folds(data_dir / "ohsumed-letor2"))
    scaler = fit_scaler("minmax-query", folds[0].train)
    return [Fold(fold.name, *(scale(part, scaler) for part in fold[1:])) for fold in folds]


def on_test_parts(folds, readouts, epochs, seeds, **options):
    """For each output the test values of all queries, averaged over seeds, and the means over folds."""
    queries, means = {name: [] for name in readouts}, {name: [] for name in readouts}
    for seed in range(seeds):
        found = {name: [] for name in readouts}
        for fold in folds:
            chosen = {"valid": fold.valid, "select": "ndcg@10:letor", "weigh": "ndcg@10:letor", **options}
            for name, output in train_outputs(fold.train, readouts, Schedule(epochs, seed), **chosen).items():
                found[name].append(evaluate(fold.test, output.learner.ensemble.of_rounds(fold.test), LETOR))
        for name, parts in found.items():
            queries[name].append([np.concatenate([part.per_query[m] for part in parts]) for m in LETOR])
            means[name].append([np.mean([part.means[m] for part in parts]) for m in LETOR])
    qids = np.array([f"{fold.name}/{qid}" for fold in folds for qid in fold.test.qids])
    evaluations = {}
    for name, rows in queries.items():
        per_query = dict(zip(LETOR, np.mean(rows, axis=0), strict=True))
        evaluations[name] = Evaluation({m: float(v.mean()) for m, v in per_query.items()}, per_query, qids, 0)
    return evaluations, {name: np.mean(rows, axis=0) for name, rows in means.items()}


@pytest.fixture(scope="module")
def table_4(data_dir):
    """Per query and in the mean: the committee (averaged, voting), pocket and average, and the two baselines."""
    folds = scaled_folds(data_dir)
    readouts = {
        "A": Committee(30),
        "B": Committee(30, "borda"),
        "pocket": Committee(1, weights="count"),
        "average": Average(),
    }
    queries, means = on_test_parts(folds, readouts, 50, 2, alpha_bound=0.85)
    solved = TrainingPlan("ranksvm", schedule=Schedule(10), select="ndcg@10:letor")
    svm = cross_validate(solved, folds, grid={"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}, metrics=LETOR)
    boosted = replace(solved, algorithm="rankboost", parameters={"n_rounds": 500})
    boost = cross_validate(boosted, folds, metrics=LETOR)
    for name, report in (("svm", svm), ("boost", boost)):
        queries[name], means[name] = report.evaluation, np.array(list(report.mean.values()))
    return queries, means


@pytest.mark.slow
@pytest.mark.data
def test_ohsumed_is_where_the_rows_of_table_4_say(table_4):
    """The stored rows of `python -m reproduction committee` are what comes out today: two seeds beside their ten."""
    rows = {row["item"]: row for row in json.loads(ROWS.read_text())["rows"] if row["paper"] == "committee"}
    names = {"A": "Com 30 A", "B": "Com 30 B", "pocket": "Pocket", "average": "Average", "svm": "RankSVM",
             "boost": "RankBoost"}  # fmt: skip
    for ours, name in names.items():
        stored = [rows[f"Table 4, OHSUMED, LETOR 2.0, {name}, {shown}"] for shown in SHOWN]
        for found, row in zip(table_4[1][ours], stored, strict=True):
            assert abs(found - row["ours"]) <= 3.0 * row["spread"] * np.sqrt(1 / 2 + 1 / 10) + 1e-5, row["item"]


@pytest.mark.slow
@pytest.mark.data
def test_of_the_significance_marks_half_come_out(table_4):
    """“No tests were significant over the committee perceptron”: yes. Better than pocket: yes. Than average: no."""
    queries = table_4[0]
    for name in LETOR:
        for baseline in ("svm", "boost", "pocket", "average"):
            assert t_test(queries[baseline], queries["A"], name, tails=1) > 0.05
        assert t_test(queries["A"], queries["average"], name, tails=1) > 0.05
    for name in ("map:letor", "ndcg@5:letor", "ndcg@10:letor"):
        assert t_test(queries["A"], queries["pocket"], name, tails=1) < 0.05
    # marked in the table, and not significant here
    for baseline in ("svm", "boost"):
        assert t_test(queries["B"], queries[baseline], "ndcg@1:letor", tails=1) > 0.05


@pytest.mark.slow
@pytest.mark.data
def test_the_committee_settles_before_50_passes_and_the_average_long_before(data_dir):
    readouts = {"average": Average(), "pocket": Committee(1, weights="count"), "committee": Committee(20)}
    curves = {name: [] for name in readouts}
    for fold in scaled_folds(data_dir):
        chosen = {"valid": fold.valid, "select": "ndcg@10:letor", "weigh": "ndcg@10:letor"}
        for name, output in train_outputs(fold.train, readouts, Schedule(100), alpha_bound=0.85, **chosen).items():
            curves[name].append([means["ndcg@10:letor"] for means in output.valid])
    mean = {name: np.mean(values, axis=0) for name, values in curves.items()}
    assert mean["committee"][:50].max() >= mean["committee"][50:].max() - 0.002
    assert mean["committee"].mean() > mean["pocket"].mean() + 0.01
    # not as printed: with the pairs of all lists mixed, the average has settled, too, and is not below the committee
    assert abs(mean["average"][20:] - mean["average"][-1]).max() < 0.005
    assert mean["average"].mean() > mean["committee"].mean()


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.claim("COMMITTEE", "27 s6.2")
def test_sizes_up_to_100_do_not_differ(data_dir):
    readouts = {str(n): Committee(n) for n in (20, 50, 100)} | {"20 of 100": Committee(100, subcommittee=20)}
    bounded, _ = on_test_parts(scaled_folds(data_dir), readouts, 50, 2, alpha_bound=0.85)
    p_values = [t_test(bounded[one], bounded[two], name) for one, two in combinations(readouts, 2) for name in LETOR]
    assert min(p_values) * len(p_values) > 0.05  # after Bonferroni's correction


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timed
def test_training_takes_seconds_where_the_paper_took_minutes_and_rank_svm_less(data_dir):
    train_part = scaled_folds(data_dir)[0].train
    readouts = {"committee": Committee(20, weights="count")}

    def seconds(call):
        call(1)
        started = time.process_time()
        call(50)
        return time.process_time() - started

    ours = seconds(lambda passes: train_outputs(train_part, readouts, Schedule(passes), alpha_bound=0.85))
    svm = seconds(lambda _: train(TrainingPlan("ranksvm", {"C": 1.0}), train_part))
    assert ours < 462.85 / 50  # around 1 s on an idle core
    assert svm < ours  # 27,487 s in the paper
    published = [(462.85, 27487.40), (527.14, 35887.08), (489.62, 28584.22), (414.18, 7328.77), (375.01, 6902.77)]
    committee, slow = np.mean(published, axis=0)
    assert slow / committee == pytest.approx(46.8, abs=0.05)
