"""The pairwise perceptron in dual form: its last and its average hypothesis, and what a budget does to them."""

import json

import numpy as np
import pytest

from ranktron import DataError, KernelPerceptron, Rounds, evaluate, load, play
from ranktron.data.synthetic import WebSearch
from ranktron.learners import (
    Average,
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
from ranktron.learners.pairwise.hypothesis_history import COUNTER, HYPOTHESIS, SUCCESSES
from ranktron.learners.steps import Constant
from ranktron.surrogates import WorstPair

NOISY = WebSearch(features=5, documents=12).rounds(50)
RULES = [Oldest(), Random(), Smallest(), Projection()]
COUNTS = [HYPOTHESIS, COUNTER, SUCCESSES]
READOUTS = {"last": Last(), "average": Average()}


def played(learner, rounds):
    return [turn.loss for turn in play(learner, rounds, feedback.full)]


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
    assert dual.history.tally[COUNTS].tolist() == primal.hypotheses.tally[COUNTS].tolist()
    assert dual.predict(lists.X) == pytest.approx(primal.predict(mapped.X), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("output", READOUTS.values(), ids=READOUTS)
def test_pairs_on_a_budget_pass_the_checks_of_learners(removal, output):
    check_learner(lambda: KernelLearner(5, PairSteps(), Gaussian(0.2), 30, removal, output), NOISY[:30])


def four_documents():
    """Four documents, 1 to 4, with their coefficients."""
    support = Support(1, LinearKernel(), Budget(4))
    table = np.array([[4.0, 0.1, -3.0, 2.0], [0.0] * 4])
    support.add(np.array([[1.0], [2.0], [3.0], [4.0]], np.float32), table)
    return support


def test_the_document_of_the_smallest_weight_goes():
    support = four_documents()
    assert support.weights.tolist() == [4.0, 0.1, 3.0, 2.0]
    Smallest(fade=0.5).admit(support, np.array([[8.0]], np.float32), np.array([[1.0], [0.0]]), 1.0)
    kept = support.documents.ravel().tolist()
    assert sorted(kept) == [1.0, 3.0, 4.0, 8.0]
    wanted = {1.0: 4.0, 3.0: -3.0, 4.0: 2.0, 8.0: 1.0}
    assert support.alpha == pytest.approx([np.exp(-0.5 / 4.0) * wanted[x] for x in kept])


def test_projection_projects_both_rows():
    """In a space of one dimension the documents there express every step."""
    support = four_documents()
    X, steps = np.array([[9.0], [7.0]], np.float32), np.array([[1.0, 0.5], [-2.0, 3.0]])
    probe = np.array([[1.0]], np.float32)
    before = support.scores(probe, support.table)
    Projection(1e-10).admit(support, X, steps, 1.0)
    assert len(support) == 4
    assert support.scores(probe, support.table) == pytest.approx(before + steps @ X, rel=1e-6)


@pytest.mark.parametrize("average", [False, True])
def test_estimators_and_model_files(average, tmp_path):
    sizes = np.diff(NOISY.offsets)
    qid = np.repeat(NOISY.qids, sizes)
    options = {"update": "pairwise", "average": average, "budget": 300, "gamma": 0.2}
    ranker = KernelPerceptron(**options, n_epochs=1, random_state=0, scale=None).fit(NOISY.X, NOISY.labels, qid=qid)
    ranker.save(tmp_path / "m")
    model = load(tmp_path / "m")
    assert model.to_bytes() == ranker.model_.to_bytes()
    assert model.predict(NOISY.X, qid=qid).tolist() == ranker.predict(NOISY.X, qid=qid).tolist()
    assert ranker.score(NOISY.X, NOISY.labels, qid=qid) > 0.65
    learner = model.learner()
    played(learner, NOISY[:5])
    ranker.partial_fit(NOISY[:5].X, NOISY[:5].labels, group=np.diff(NOISY[:5].offsets))
    assert same(learner.state(), ranker.learner_.state())


def test_the_command_line_trains_stops_and_goes_on(tmp_path, run):
    path = tmp_path / "lists.txt"
    run("simulate", "web", path, "--queries", 6)
    options = ["--algo", "kernel", "--set", "update=pairwise", "--set", "average=true"]
    options += ["--set", "budget=60", "--seed", 1, "--valid", path, "--json"]
    found = json.loads(run("train", path, *options, "--epochs", 2, "--model", tmp_path / "two")[1])
    assert 0.0 < found["valid"]["ndcg@10"] <= 1.0
    said = json.loads(run("evaluate", tmp_path / "two", path, "--metrics", "ndcg@10", "--json")[1])
    assert said["metrics"]["ndcg@10"]["mean"] == pytest.approx(found["valid"]["ndcg@10"], abs=1e-9)
    plain = ["--algo", "kernel", "--set", "update=pairwise", "--set", "average=true", "--set", "budget=60"]
    run("train", path, *plain, "--epochs", 2, "--seed", 1, "--model", tmp_path / "whole")
    run("train", path, *plain, "--epochs", 1, "--seed", 1, "--model", tmp_path / "one")
    run("train", path, "--from", tmp_path / "one", "--epochs", 1, "--seed", 1, "--model", tmp_path / "then")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "then").read_bytes()


def test_what_cannot_be_is_named():
    descent = Descent(WorstPair(), Constant(1.0))
    for make, word in [
        (lambda: KernelLearner(3, descent, selective=2), "only the pairwise"),
        (lambda: KernelLearner(3, PairSteps(), selective=-1), "selective"),
        (lambda: PairSteps(-1), "pairs_per_query"),
        (lambda: KernelLearner(3, PairSteps(), most=0), "at least one document"),
    ]:
        with pytest.raises(DataError, match=word):
            make()
    some = KernelLearner(5, PairSteps(), LinearKernel())
    played(some, NOISY[:10])
    with pytest.raises(DataError, match="counters"):
        some.restore({**some.state(), "tally": -some.state()["tally"]})
    with pytest.raises(DataError, match="more than the budget"):
        KernelLearner(5, PairSteps(), LinearKernel(), 3).restore(some.state())


def test_past_hypotheses_need_their_documents():
    """On a budget, projection serves what the learner without one serves; rules that forget take it apart."""
    source = WebSearch(features=5, documents=12)
    lists, test = source.rounds(80), source.rounds(100, skip=1000)

    def quality(most, removal):
        learner = KernelLearner(5, PairSteps(), Gaussian(0.2), most, removal, Average())
        played(learner, lists)
        played(learner, lists)
        return evaluate(test, learner.predict(test.X), "ndcg@10").means["ndcg@10"]

    everything = quality(10**6, Smallest())
    assert quality(300, Projection()) > everything - 0.02
    assert quality(300, Smallest()) < everything - 0.1


def test_the_rule_follows_the_output_unless_one_is_named():
    assert kernel_perceptron(3, update="pairwise").removal == Smallest()
    assert kernel_perceptron(3, average=True).removal == Projection()
    assert kernel_perceptron(3, average=True, removal="oldest").removal == Oldest()


def test_a_document_that_comes_twice_in_a_list_is_stored_once():
    support = four_documents()
    X = np.array([[9.0], [3.0], [9.0], [7.0]], np.float32)
    steps = np.arange(8.0).reshape(2, 4)
    new, theirs = support.merge(X, steps.copy())
    assert new.ravel().tolist() == [9.0, 7.0]
    assert theirs.tolist() == [[2.0, 3.0], [10.0, 7.0]]  # columns 0 and 2 of the steps, and column 3
    assert support.table[:, 2].tolist() == [-3.0 + 1.0, 5.0]  # column 1 went to the document 3, which was there


def test_fading_leaves_the_mean_over_time():
    support = four_documents()
    support.table[1] = [8.0, -1.0, 0.5, 3.0]
    mean = support.alpha - support.lagged_sum / 5.0
    support.shrink(0.25, 5.0)
    assert support.alpha.tolist() == [1.0, 0.025, -0.75, 0.5]
    assert support.alpha - support.lagged_sum / 5.0 == pytest.approx(mean)
