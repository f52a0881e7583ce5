"""The outputs of the pairwise perceptron in dual form: pocket, voted and committees, equal to the primal ones."""

import json

import numpy as np
import pytest

from ranktron import DataError, KernelPerceptron, Round, Rounds, evaluate, load, play
from ranktron.data.synthetic import WebSearch
from ranktron.learners import (
    Average,
    Committee,
    Descent,
    Gaussian,
    KernelLearner,
    Last,
    LinearKernel,
    Oldest,
    PairSteps,
    Pairwise,
    Polynomial,
    Projection,
    Random,
    Smallest,
    feedback,
    kernel_perceptron,
)
from ranktron.learners.checks import check_learner, same
from ranktron.learners.kernelized.budget import Budget
from ranktron.learners.kernelized.support import Support
from ranktron.learners.pairwise.learner import OUTPUTS
from ranktron.learners.pairwise.outputs import EVERYONE
from ranktron.learners.schedule import Schedule
from ranktron.learners.steps import Constant
from ranktron.metrics import metric
from ranktron.surrogates import WorstPair
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.sweep import sweep

NOISY = WebSearch(features=5, documents=12).rounds(50)
RULES = [Oldest(), Random(), Smallest(), Projection()]
READOUTS = {
    "pocket": OUTPUTS["pocket"],
    "voted": OUTPUTS["voted"],
    "committee": Committee(10),
    "vote of a committee": Committee(10, "borda"),
    "equal members": Committee(7, "average", "uniform"),
    "subcommittee": Committee(10, "borda", "count", 3),
}


def played(learner, rounds):
    return [turn.loss for turn in play(learner, rounds, feedback.full)]


def by_list(learner, rounds):
    return np.concatenate([learner.predict(round.X) for round in rounds])


@pytest.mark.claim("COMMITTEE", "12 Eq.2")
@pytest.mark.parametrize(("selective", "pairs_per_query"), [(0, 0), (3, 0), (0, 20)])
@pytest.mark.parametrize("name", READOUTS)
def test_every_output_in_dual_form_is_that_of_the_pairwise_perceptron(name, selective, pairs_per_query):
    output = READOUTS[name]
    dual = KernelLearner(5, PairSteps(pairs_per_query), LinearKernel(), output=output, selective=selective)
    primal = Pairwise(5, output, selective, pairs_per_query)
    for _ in range(2):  # the second pass meets documents that are in the support already
        assert played(dual, NOISY) == played(primal, NOISY)
    assert (dual.rounds, dual.mistakes) == (primal.rounds, primal.mistakes)
    assert dual.scores(NOISY.X) == pytest.approx(primal.scores(NOISY.X), rel=1e-9, abs=1e-9)
    kept, X = primal.hypotheses.kept, dual.support.documents
    assert kept > 0
    assert dual.pool.counters.tolist() == primal.hypotheses.counters[:kept].tolist()
    assert dual.pool.born.tolist() == primal.hypotheses.born[:kept].tolist()
    assert dual.support.members @ X == pytest.approx(primal.hypotheses.members[:kept], rel=1e-9, abs=1e-9)
    assert dual.ensemble.members @ X == pytest.approx(primal.ensemble.members, rel=1e-9, abs=1e-9)
    assert dual.ensemble.weights == pytest.approx(primal.ensemble.weights)
    assert by_list(dual, NOISY) == pytest.approx(by_list(primal, NOISY), rel=1e-9, abs=1e-9)


@pytest.mark.claim("COMMITTEE", "18 s5")
def test_a_committee_without_limit_is_the_average_perceptron_in_dual_form():
    everyone = KernelLearner(5, PairSteps(), Gaussian(0.2), output=Committee(EVERYONE, "average", "count"))
    average = KernelLearner(5, PairSteps(), Gaussian(0.2), output=Average())
    assert played(everyone, NOISY) == played(average, NOISY)
    assert everyone.predict(NOISY.X) == pytest.approx(average.predict(NOISY.X), rel=1e-9, abs=1e-9)
    assert np.abs(average.predict(NOISY.X) - average.scores(NOISY.X)).max() > 1e-3


def tensor(X):
    """The features whose inner product is (⟨x, s⟩ + 1)², all of them products: exact in 32 bits for short numbers."""
    one = np.column_stack([X, np.ones(len(X), np.float32)])
    return (one[:, :, None] * one[:, None, :]).reshape(len(X), -1)


@pytest.mark.parametrize("name", READOUTS)
def test_the_polynomial_kernel_is_the_primal_learner_on_the_explicit_map(name):
    short = (np.round(NOISY.X * 8.0) / 8.0).astype(np.float32)
    sizes = np.diff(NOISY.offsets)
    lists = Rounds.from_arrays(short, NOISY.labels, group=sizes)
    mapped = Rounds.from_arrays(tensor(short), NOISY.labels, group=sizes)
    assert (mapped.X.astype(float) @ mapped.X[0] == (short.astype(float) @ short[0] + 1.0) ** 2).all()
    dual = KernelLearner(5, PairSteps(), Polynomial(degree=2), output=READOUTS[name])
    primal = Pairwise(36, READOUTS[name])
    assert played(dual, lists) == played(primal, mapped)
    assert dual.pool.counters.tolist() == primal.hypotheses.counters[: primal.hypotheses.kept].tolist()
    assert by_list(dual, lists) == pytest.approx(by_list(primal, mapped), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("output", [Committee(4), Committee(3, "borda", "count"), OUTPUTS["voted"]])
def test_committees_on_a_budget_pass_the_checks_of_learners(removal, output):
    check_learner(lambda: KernelLearner(5, PairSteps(), Gaussian(0.2), 30, removal, output), NOISY[:30])


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
def test_a_committee_stays_within_the_budget(removal):
    learner = KernelLearner(5, PairSteps(), Gaussian(0.2), 40, removal, Committee(6))
    for turn in play(learner, NOISY, feedback.full):
        assert len(learner.support) <= 40
        assert learner.support._table.shape[1] <= 40
        assert learner.support.members.shape == (learner.pool.kept, len(learner.support))
        assert np.isfinite(turn.loss)
    assert len(learner.support) == 40
    assert learner.pool.kept == 6
    assert np.isfinite(learner.predict(NOISY.X)).all()


def with_members(members):
    """Four documents, 1 to 4, with the coefficients of the current hypothesis and of some members."""
    support = Support(1, LinearKernel(), Budget(4))
    support.widen(2 + len(members), 0)
    table = np.array([[4.0, 0.1, -3.0, 2.0], [0.0] * 4, *members])
    support.add(np.array([[1.0], [2.0], [3.0], [4.0]], np.float32), table)
    return support


def test_a_document_weighs_as_much_as_in_the_hypothesis_where_it_weighs_most():
    support = with_members([[0.0, -9.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.5]])
    assert support.weights.tolist() == [4.0, 9.0, 3.0, 2.0]
    new, steps = np.array([[8.0]], np.float32), np.array([[1.0], [0.0], [0.0], [-2.0]])
    Smallest(fade=0.5).admit(support, new, steps, 1.0)
    kept = support.documents.ravel().tolist()
    assert sorted(kept) == [1.0, 2.0, 3.0, 8.0]  # 4 went, which no hypothesis needs as much as they need the others
    fade = np.exp(-0.5 / 4.0)
    for row, wanted in (
        (support.alpha, {1.0: 4.0, 2.0: 0.1, 3.0: -3.0, 8.0: 1.0}),
        (support.members[0], {1.0: 0.0, 2.0: -9.0, 3.0: 1.0, 8.0: 0.0}),
        (support.members[1], {1.0: 1.0, 2.0: 0.0, 3.0: 0.0, 8.0: -2.0}),
    ):
        assert row == pytest.approx([fade * wanted[x] for x in kept])


def test_fading_changes_the_order_of_no_member():
    support = with_members([[1.0, -1.0, 2.0, 0.5]])
    X = np.array([[-2.0], [5.0], [1.0]], np.float32)
    before = support.scores(X, support.members)
    support.shrink(0.5, 1.0)
    assert support.scores(X, support.members) == pytest.approx(0.5 * before)


def test_projection_projects_every_member():
    """In a space of one dimension the documents there express every step, that of the members too."""
    support = with_members([[1.0, 0.0, 0.0, 0.0]])
    X, steps = np.array([[9.0], [7.0]], np.float32), np.array([[1.0, 0.5], [0.0, 0.0], [-2.0, 3.0]])
    probe = np.array([[1.0]], np.float32)
    before = support.scores(probe, support.table)
    Projection(1e-10).admit(support, X, steps, 1.0)
    assert len(support) == 4
    assert support.scores(probe, support.table) == pytest.approx(before + steps @ X, rel=1e-6)


def test_members_that_enter_late_in_a_round_have_the_steps_of_the_round_before():
    """One list, where hypotheses come and go: each member is the sum of the steps up to its end, counted by hand."""
    first = NOISY[0]
    learner = KernelLearner(5, PairSteps(), LinearKernel(), output=OUTPUTS["voted"])
    learner.learn(first.X, learner.rank(first.X, 0), feedback.full(first, None))
    assert learner.pool.kept > 1
    pairs = sum(int((first.labels < label).sum()) for label in first.labels)
    gains = {x.tobytes(): label - first.labels.mean() for x, label in zip(first.X, first.labels, strict=True)}
    for coefficients, born in zip(learner.support.members, learner.pool.born, strict=True):
        counts = coefficients * pairs  # hypothesis number n has seen n steps, each adds one and takes one
        assert counts == pytest.approx(counts.round(), abs=1e-9)
        assert counts.sum() == pytest.approx(0.0, abs=1e-9)
        assert 0 < np.abs(counts).sum() <= 2 * born + 1e-9
        labels = [gains[x.astype(np.float32).tobytes()] for x in learner.support.documents]
        assert counts @ labels > 0.0  # the better document of a pair gains


def test_held_out_lists_weigh_the_members():
    lists, valid = NOISY[:30], NOISY[30:]
    parameters = {"update": "pairwise", "output": "committee", "size": 5, "kernel": "rbf", "gamma": 0.2, "budget": 200}
    model = train(TrainingPlan("kernel", parameters, Schedule(2, seed=1)), lists, valid=valid).model
    learner = model.learner()
    rows = learner.support.scores(valid.X, learner.support.members)
    values = [evaluate(row, valid, "ndcg@10").means["ndcg@10"] for row in rows]
    assert learner.pool.values == pytest.approx(values, rel=1e-12)
    weights = learner.ensemble.weights
    assert weights.tolist() == [1.0]  # the mean of them is one hypothesis
    hypotheses = learner.pool.hypotheses(learner.support).settled(5, 0)
    mean = np.average(hypotheses.members, axis=0, weights=hypotheses.values)
    assert learner.ensemble.members[0] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    counted = train(
        TrainingPlan("kernel", {**parameters, "weights": "count"}, Schedule(2, seed=1)), lists
    ).model.learner()
    assert np.isnan(counted.pool.values).all()
    with pytest.raises(DataError, match="higher values are better"):
        train(TrainingPlan("kernel", parameters, select=metric("inversions")), lists, valid=valid)


@pytest.mark.parametrize("output", ["pocket", "voted", "committee"])
def test_estimators_and_model_files(output, tmp_path):
    sizes = np.diff(NOISY.offsets)
    qid = np.repeat(NOISY.qids, sizes)
    options = {"update": "pairwise", "output": output, "combine": "borda", "size": 5, "budget": 300, "gamma": 0.2}
    ranker = KernelPerceptron(**options, n_epochs=1, random_state=0, scale=None).fit(NOISY.X, NOISY.labels, qid=qid)
    ranker.save(tmp_path / "m")
    model = load(tmp_path / "m")
    assert model.to_bytes() == ranker.model_.to_bytes()
    assert model.predict(NOISY.X, qid=qid).tolist() == ranker.predict(NOISY.X, qid=qid).tolist()
    assert ranker.score(NOISY.X, NOISY.labels, qid=qid) > 0.65
    if output != "pocket":
        with pytest.raises(DataError, match="qid"):
            model.predict(NOISY.X)
    learner = model.learner()
    played(learner, NOISY[:5])
    ranker.partial_fit(NOISY[:5].X, NOISY[:5].labels, group=np.diff(NOISY[:5].offsets))
    assert same(learner.state(), ranker.learner_.state())


def test_the_command_line_trains_stops_and_goes_on(tmp_path, run):
    path = tmp_path / "lists.txt"
    run("simulate", "web", path, "--queries", 6)
    options = ["--algo", "kernel", "--set", "update=pairwise", "--set", "output=committee", "--set", "size=4"]
    options += ["--set", "combine=borda", "--set", "budget=60", "--seed", 1, "--valid", path, "--json"]
    found = json.loads(run("train", path, *options, "--epochs", 2, "--model", tmp_path / "two")[1])
    assert 0.0 < found["valid"]["ndcg@10"] <= 1.0
    said = json.loads(run("evaluate", tmp_path / "two", path, "--metrics", "ndcg@10", "--json")[1])
    assert said["metrics"]["ndcg@10"]["mean"] == pytest.approx(found["valid"]["ndcg@10"], abs=1e-9)
    plain = ["--algo", "kernel", "--set", "update=pairwise", "--set", "output=voted", "--set", "budget=60"]
    run("train", path, *plain, "--epochs", 2, "--seed", 1, "--model", tmp_path / "whole")
    run("train", path, *plain, "--epochs", 1, "--seed", 1, "--model", tmp_path / "one")
    run("train", path, "--from", tmp_path / "one", "--epochs", 1, "--seed", 1, "--model", tmp_path / "then")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "then").read_bytes()


def test_what_cannot_be_is_named():
    descent = Descent(WorstPair(), Constant(1.0))
    for make, word in [
        (lambda: KernelLearner(3, descent, output=Committee(3)), "only the pairwise"),
        (lambda: KernelLearner(3, descent, selective=2), "only the pairwise"),
        (lambda: kernel_perceptron(3, output="pocket"), "only the pairwise"),
        (lambda: kernel_perceptron(3, update="pairwise", output="voted", megabytes=1.0), "no budget in bytes"),
        (lambda: kernel_perceptron(3, update="pairwise", output="pocket", average=True), "choose one"),
        (lambda: kernel_perceptron(3, update="pairwise", output="best"), "no output"),
        (lambda: KernelLearner(3, PairSteps(), selective=-1), "selective"),
        (lambda: PairSteps(-1), "pairs_per_query"),
        (lambda: KernelLearner(3, PairSteps(), most=0), "at least one document"),
    ]:
        with pytest.raises(DataError, match=word):
            make()
    some = KernelLearner(5, PairSteps(), LinearKernel(), output=Committee(8))
    played(some, NOISY[:10])
    assert some.pool.kept > 2
    with pytest.raises(DataError, match="too many"):
        KernelLearner(5, PairSteps(), LinearKernel(), output=Committee(2)).restore(some.state())
    with pytest.raises(DataError, match="more than the budget"):
        KernelLearner(5, PairSteps(), LinearKernel(), 3, output=Committee(8)).restore(some.state())


def test_the_last_hypothesis_is_offered_at_the_end():
    """A list without a mistake at its end: the current hypothesis counts though no mistake has ended it."""
    X = np.array([[1.0], [2.0], [3.0]], np.float32)
    lists = [Round(X, np.array([0.0, 1.0, 2.0]), str(number)) for number in range(3)]
    pocket = KernelLearner(1, PairSteps(), LinearKernel(), output=OUTPUTS["pocket"])
    assert played(pocket, lists)[-1] == 0.0
    last = KernelLearner(1, PairSteps(), LinearKernel(), output=Last())
    played(last, lists)
    assert pocket.predict(X) == pytest.approx(last.predict(X))
    assert pocket.predict(X)[2] > pocket.predict(X)[0]


def test_past_hypotheses_need_their_documents():
    """On a budget, projection serves what the learner without one serves; rules that forget take it apart."""
    source = WebSearch(features=5, documents=12)
    lists, test = source.rounds(80), source.rounds(100, skip=1000)

    def quality(most, removal):
        learner = KernelLearner(5, PairSteps(), Gaussian(0.2), most, removal, Committee(20, "average", "count"))
        played(learner, lists)
        played(learner, lists)
        return evaluate(learner.predict(test.X), test, "ndcg@10").means["ndcg@10"]

    everything = quality(10**6, Smallest())
    assert quality(300, Projection()) > everything - 0.02
    assert quality(300, Smallest()) < everything - 0.1


def test_the_rule_follows_the_output_unless_one_is_named():
    chosen = {
        output: type(kernel_perceptron(3, update="pairwise", output=output).removal).__name__
        for output in ("last", "average", "pocket", "voted", "committee")
    }
    assert chosen == dict.fromkeys(chosen, "Projection") | {"last": "Smallest"}
    assert kernel_perceptron(3, average=True).removal == Projection()
    assert kernel_perceptron(3, average=True, removal="oldest").removal == Oldest()


def test_a_sweep_judges_votes_list_by_list():
    parameters = {"update": "pairwise", "output": "committee", "combine": "borda", "gamma": 0.2, "budget": 200}
    lists, valid = NOISY[:20], NOISY[20:40]
    (row,) = sweep(TrainingPlan("kernel", parameters, metrics=[metric("ndcg@10")]), "size", [3], lists, valid=valid)
    learner = kernel_perceptron(5, size=3, **parameters)
    played(learner, Schedule(1).epoch(lists, 0, 0))
    assert row.valid["ndcg@10"] == evaluate(by_list(learner, valid), valid, "ndcg@10").means["ndcg@10"]


def test_a_document_that_comes_twice_in_a_list_is_stored_once():
    support = with_members([[1.0, 0.0, 0.0, 0.0]])
    X = np.array([[9.0], [3.0], [9.0], [7.0]], np.float32)
    steps = np.arange(12.0).reshape(3, 4)
    new, theirs = support.merge(X, steps.copy())
    assert new.ravel().tolist() == [9.0, 7.0]
    assert theirs.tolist() == [[2.0, 3.0], [10.0, 7.0], [18.0, 11.0]]  # columns 0 and 2 of the steps, and column 3
    assert support.table[:, 2].tolist() == [-3.0 + 1.0, 5.0, 9.0]  # column 1 went to the document 3, which was there


def test_fading_leaves_the_mean_over_time():
    support = with_members([])
    support.table[1] = [8.0, -1.0, 0.5, 3.0]
    mean = support.alpha - support.lagged_sum / 5.0
    support.shrink(0.25, 5.0)
    assert support.alpha.tolist() == [1.0, 0.025, -0.75, 0.5]
    assert support.alpha - support.lagged_sum / 5.0 == pytest.approx(mean)


def test_a_budget_in_bytes_counts_the_coefficients_of_every_member():
    """A document has a number in each member's row, and rows are half as long again as they need to be."""
    options = {"update": "pairwise", "output": "committee", "size": 10}
    assert kernel_perceptron(3, megabytes=1.0, **options).support.budget.beside == 250 + 8.0 * 1.5 * 10
    assert kernel_perceptron(3, **options).support.budget.beside == 250


def test_validation_values_every_member_by_its_own_ranking():
    learner = KernelLearner(5, PairSteps(), Gaussian(0.3), output=Committee(6, weights="metric"))
    played(learner, NOISY[:30])
    learner.weigh_members(NOISY[30:], metric("ndcg@5"))
    rows = [learner.support.alpha, *learner.support.members]
    values = [
        evaluate(learner.support.scores(NOISY[30:].X, row), NOISY[30:], ["ndcg@5"]).means["ndcg@5"] for row in rows
    ]
    assert learner.pool.value.tolist() == pytest.approx(values[:1])
    assert learner.pool.values.tolist() == pytest.approx(values[1:])
    assert len(values) == 7
