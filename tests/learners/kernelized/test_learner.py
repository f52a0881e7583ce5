"""Learners in dual form: equal to the primal ones, within a budget for ever, and following a target that drifts."""

import subprocess
import sys

import numpy as np
import pytest

from ranktron import DataError, KernelPerceptron, Round, Rounds, load, play
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners import (
    Average,
    Descent,
    Gaussian,
    KernelLearner,
    Last,
    Linear,
    LinearKernel,
    Oldest,
    PairSteps,
    Pairwise,
    Polynomial,
    PredtronLoss,
    Projection,
    Random,
    Smallest,
    feedback,
    kernel_perceptron,
    predtron_ranker,
)
from ranktron.learners.checks import check_learner, same
from ranktron.learners.kernelized.budget import Budget
from ranktron.learners.kernelized.dual_history import DualHistory
from ranktron.learners.kernelized.support import Support
from ranktron.learners.mistakes import Misordered, mistake_rule
from ranktron.learners.predtron import Permutations, PlaceLoss, Places, make_variant
from ranktron.learners.steps import Constant, InversePower
from ranktron.metrics import metric
from ranktron.surrogates import SLAM, ListNet, MeanPairwiseHinge, WorstPair

NDCG = metric("ndcg@10")
NOISY = WebSearch(features=5, documents=12).rounds(120)
SEPARABLE = Separable(documents=8, features=5, margin=0.1).rounds(60)
RULES = [Oldest(), Random(), Smallest(), Projection()]


def played(learner, rounds):
    return [turn.loss for turn in play(learner, rounds, feedback.full)]


DESCENTS = {
    "slam": Descent(SLAM(NDCG), Constant(0.1), mistake_rule(NDCG)),
    "slam, soft": Descent(SLAM(metric("ap"), 1.0, 0.7), Constant(0.1), mistake_rule(metric("ap"))),
    "minimax": Descent(WorstPair(), Constant(1.0), Misordered()),
    "hinge": Descent(MeanPairwiseHinge(), Constant(0.5), Misordered()),
    "listnet": Descent(ListNet(), InversePower(0.1, 0.5)),
}


@pytest.mark.claim("SLAM", "54 s9")
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("rounds", [NOISY, SEPARABLE], ids=["noisy", "separable"])
@pytest.mark.parametrize("name", DESCENTS)
def test_the_linear_kernel_without_a_budget_is_the_linear_learner(name, rounds, average):
    descent = DESCENTS[name]
    dual = KernelLearner(5, descent, LinearKernel(), output=Average() if average else Last())
    primal = Linear(5, descent.surrogate, descent.step, descent.mistake, average)
    for _ in range(2):  # the second pass meets documents that are in the support already
        assert played(dual, rounds) == pytest.approx(played(primal, rounds), rel=1e-9, abs=1e-9)
    assert (dual.rounds, dual.mistakes) == (primal.rounds, primal.mistakes)
    assert primal.mistakes > 0
    assert dual.scores(rounds.X) == pytest.approx(primal.scores(rounds.X), rel=1e-9, abs=1e-9)
    assert dual.predict(rounds.X) == pytest.approx(primal.predict(rounds.X), rel=1e-9, abs=1e-9)
    assert len(dual.support) <= len(rounds.X)


@pytest.mark.claim("PREDTRON", "7 s2.3")
@pytest.mark.parametrize("variant", ["standard", "loss-driven"])
def test_predtron_in_dual_form_is_predtron(variant):
    loss = PredtronLoss(Permutations(PlaceLoss("ndcg"), Places("-i^1.1")), make_variant(variant))
    dual = KernelLearner(5, Descent(loss, Constant(0.1)), LinearKernel())
    primal = predtron_ranker(5, variant=variant)
    assert played(dual, NOISY) == pytest.approx(played(primal, NOISY), rel=1e-9, abs=1e-9)
    assert dual.mistakes == primal.mistakes
    assert dual.scores(NOISY.X) == pytest.approx(primal.scores(NOISY.X), rel=1e-9, abs=1e-9)


@pytest.mark.claim("COMMITTEE", "12 Eq.2")
@pytest.mark.parametrize("pairs_per_query", [0, 20])
def test_pairs_in_dual_form_are_the_pairwise_perceptron(pairs_per_query):
    steps = PairSteps(pairs_per_query)
    last = KernelLearner(5, steps, LinearKernel())
    average = KernelLearner(5, steps, LinearKernel(), output=Average())
    for dual, output in ((last, Last()), (average, Average())):
        primal = Pairwise(5, output, pairs_per_query=pairs_per_query)
        assert played(dual, NOISY) == played(primal, NOISY)
        assert dual.scores(NOISY.X) == pytest.approx(primal.scores(NOISY.X), rel=1e-9, abs=1e-9)
        assert dual.predict(NOISY.X) == pytest.approx(primal.predict(NOISY.X), rel=1e-9, abs=1e-9)
    # alpha counts misrankings: documents of a list weigh whole multiples of its step
    one = KernelLearner(5, steps, LinearKernel())
    first = NOISY[0]
    one.learn(first.X, one.rank(first.X, 0), feedback.full(first, None))
    pairs = sum(int((first.labels < label).sum()) for label in first.labels)
    counts = one.support.alpha * (min(pairs, pairs_per_query) if pairs_per_query else pairs)
    assert counts == pytest.approx(counts.round(), abs=1e-9)
    assert one.support.alpha.sum() == pytest.approx(0.0, abs=1e-12)


def quadratic(X):
    """The features whose inner product is (⟨x, s⟩ + 1)²."""
    d = X.shape[1]
    squares = X**2
    mixed = [np.sqrt(2.0) * X[:, a] * X[:, b] for a in range(d) for b in range(a)]
    return np.column_stack([squares, *mixed, np.sqrt(2.0) * X, np.ones(len(X))])


@pytest.mark.parametrize("update", [*DESCENTS.values(), PairSteps()], ids=[*DESCENTS, "pairwise"])
def test_the_polynomial_kernel_is_the_explicit_polynomial_map(update):
    """The primal form in 64 bits, in plain numpy: w moves by the same coefficients on explicit features."""
    dual = KernelLearner(5, update, Polynomial(degree=2))
    explicit = KernelLearner(21, update, LinearKernel())
    w = np.zeros(21)
    for number, round in enumerate(NOISY[:60]):
        Z = quadratic(round.X.astype(float))
        primal_scores = Z @ w
        ranking = dual.rank(round.X, number)
        assert ranking.scores == pytest.approx(primal_scores, rel=1e-9, abs=1e-9)
        # what the update says at the primal's scores, on the explicit features
        explicit.support.scores = lambda _X, _a, s=primal_scores: s.copy()
        move = update(explicit.support, Z, primal_scores, round.labels, number, DualHistory(np.zeros(5, np.int64), 0))
        w += Z.T @ move.steps[0]
        dual.learn(round.X, ranking, feedback.full(round, ranking))
    assert np.abs(w).max() > 0.0


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("update", [DESCENTS["slam"], PairSteps()], ids=["slam", "pairwise"])
def test_every_rule_passes_the_checks_of_learners(removal, update):
    for output in (Last(), Average()):
        check_learner(lambda r=output: KernelLearner(5, update, Gaussian(0.2), 30, removal, r), NOISY)


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
def test_the_support_never_exceeds_the_budget_and_rooms_are_not_lost(removal):
    learner = KernelLearner(5, DESCENTS["listnet"], Gaussian(0.2), 50, removal)
    for turn in play(learner, NOISY, feedback.full):
        assert len(learner.support) <= 50
        assert learner.support._table.shape[1] <= 50
        assert len(learner.support._slots) <= 50
        assert np.isfinite(turn.loss)
    assert len(learner.support) == 50
    assert len(set(learner.support.born.tolist())) == 50


def test_a_list_longer_than_the_budget_leaves_its_heaviest_documents():
    for removal in RULES:
        learner = KernelLearner(5, DESCENTS["listnet"], Gaussian(0.2), 3, removal)
        first = NOISY[0]
        gradient = ListNet()(np.zeros(len(first.labels)), first.labels)[1]
        learner.learn(first.X, learner.rank(first.X, 0), feedback.full(first, None))
        heaviest = np.argsort(-np.abs(gradient))[:3]
        assert sorted(np.abs(learner.support.alpha)) == pytest.approx(sorted(0.1 * np.abs(gradient[heaviest])))


def filled(count=4):
    support = Support(1, LinearKernel(), Budget(count))
    X = np.arange(1.0, count + 1.0, dtype=np.float32)[:, None]
    support.add(X, np.array([[4.0, 0.1, -3.0, 2.0], [0.0] * 4])[:, :count])
    return support


def test_what_each_rule_lets_go():
    new, steps = np.array([[9.0], [8.0]], np.float32), np.array([[1.0, 1.0], [0.0, 0.0]])
    kept = {}
    for rule in (Oldest(), Random(), Smallest(fade=0.0)):
        support = filled()
        rule.admit(support, new, steps, 1.0)
        kept[type(rule)] = sorted(support.documents.ravel().tolist())
    assert kept[Oldest] == [3.0, 4.0, 8.0, 9.0]
    assert kept[Smallest] == [1.0, 3.0, 8.0, 9.0]
    assert {8.0, 9.0} <= set(kept[Random])
    faded = filled()
    Smallest(fade=1.0).admit(faded, new, steps, 1.0)
    assert sorted(faded.alpha) == pytest.approx(sorted(np.exp(-0.5) * np.array([4.0, -3.0, 1.0, 1.0])))


def test_projection_loses_only_what_the_support_cannot_express():
    """A step on documents in the span of the support is kept whole, whatever the kernel."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(6, 3)).astype(np.float32)
    support = Support(3, LinearKernel(), Budget(6))
    support.add(basis, np.array([rng.normal(size=6), np.zeros(6)]))
    probe = rng.normal(size=(10, 3)).astype(np.float32)
    X, delta = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=4)
    wanted = support.scores(probe, support.alpha) + probe.astype(float) @ (X.astype(float).T @ delta)
    Projection(ridge=1e-9).admit(support, X, np.array([delta, delta]), 1.0)
    assert support.scores(probe, support.alpha) == pytest.approx(wanted, rel=1e-5)
    assert len(support) == 6


def test_projection_beats_forgetting_the_same_step():
    """In the Gaussian's space the projected step is nearer to the real one than no step at all."""
    rng = np.random.default_rng(1)
    support = Support(2, Gaussian(0.5), Budget(40))
    support.add(rng.normal(size=(40, 2)).astype(np.float32), np.zeros((2, 40)))
    X, delta = rng.normal(size=(5, 2)).astype(np.float32), rng.normal(size=5)
    probe = rng.normal(size=(200, 2)).astype(np.float32)
    step = Gaussian(0.5)(probe, X) @ delta
    Projection().admit(support, X, np.array([delta, delta]), 1.0)
    assert np.linalg.norm(support.scores(probe, support.alpha) - step) < 0.1 * np.linalg.norm(step)


def test_a_document_is_stored_once():
    learner = KernelLearner(5, DESCENTS["listnet"], LinearKernel())
    for _ in range(3):
        played(learner, NOISY)
    assert len(learner.support) == len(np.unique(NOISY.X, axis=0))
    tied = Round(np.ones((4, 5), np.float32), np.array([0.0, 1.0, 0.0, 2.0]), "tied")
    learner.learn(tied.X, learner.rank(tied.X, 999), feedback.full(tied, None))
    again = KernelLearner(5, DESCENTS["listnet"], LinearKernel())
    again.restore(learner.state())
    assert same(again.state(), learner.state())


def test_only_rounds_with_a_mistake_are_stored():
    learner = KernelLearner(5, DESCENTS["minimax"], LinearKernel())
    for round in SEPARABLE:
        before = len(learner.support)
        ranking = learner.rank(round.X, learner.rounds)
        mistake = Misordered()(ranking.scores, round.labels)
        learner.learn(round.X, ranking, feedback.full(round, ranking))
        assert (len(learner.support) > before) <= mistake
    assert learner.mistakes < learner.rounds


def test_budgets_in_bytes():
    for removal in ("smallest", "projection"):
        n = kernel_perceptron(136, megabytes=2.0, budget=0, removal=removal).support.budget.documents_of(136 * 4.0)
        held = n * (136 * 4 + 24) + (8 * n * n if removal == "projection" else 0)
        assert 0.4 * 2e6 < held < 2e6
    assert Budget(bytes=2e6, square=True).documents_of(544.0) < Budget(bytes=2e6).documents_of(544.0)
    assert kernel_perceptron(136, megabytes=100.0, budget=5).support.budget.documents_of(544.0) == 5


def test_parameters_that_cannot_be_are_named():
    for given, word in [
        ({"kernel": "sigmoid"}, "kernel"),
        ({"update": "boost"}, "update"),
        ({"removal": "newest"}, "rule"),
        ({"gamma": -1.0}, "gamma"),
    ]:
        with pytest.raises(DataError, match=word):
            kernel_perceptron(3, **given)
    for make in (lambda: Smallest(-1.0), lambda: Projection(0.0), lambda: Polynomial(0), lambda: Gaussian(0.0)):
        with pytest.raises(DataError):
            make()


def bent(count, seed=0):
    """Lists in which the distance from a centre decides: no linear ranker does better than chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * 15, 4)).astype(np.float32)
    labels = np.digitize(-np.linalg.norm(X, axis=1), [-2.2, -1.3]).astype(float)
    return Rounds.from_arrays(X, labels, group=[15] * count)


@pytest.mark.parametrize("update", ["slam", "minimax", "hinge", "listnet", "pairwise", "predtron"])
def test_every_update_learns_what_no_linear_ranker_can(update, tmp_path):
    train, test = bent(150), bent(100, seed=1)
    sizes = np.diff(test.offsets)
    options = {"update": update, "eta": 0.3, "n_epochs": 2, "random_state": 0, "budget": 400}
    scores = {}
    for kernel in ("rbf", "poly", "linear"):
        ranker = KernelPerceptron(kernel=kernel, **options).fit(train.X, train.labels, group=np.diff(train.offsets))
        scores[kernel] = ranker.score(test.X, test.labels, qid=np.repeat(test.qids, sizes))
    assert scores["rbf"] > scores["linear"] + 0.15
    assert scores["poly"] > scores["linear"] + 0.15
    ranker.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(test.X).tolist() == ranker.predict(test.X).tolist()
    with pytest.raises(DataError, match="not linear"):
        _ = ranker.coef_


def drifting(rounds, seed=0, period=150):
    """A curved target that turns: what was right a while ago is wrong now. Endless if `rounds` is None."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        angle = 2.0 * np.pi * number / period
        centre = 1.5 * np.array([np.cos(angle), np.sin(angle)])
        X = rng.normal(size=(20, 2)).astype(np.float32)
        labels = np.digitize(-np.linalg.norm(X - centre, axis=1), [-2.5, -1.5]).astype(float)
        yield Round(X, labels, str(number))


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
def test_budgeted_learners_follow_a_target_that_drifts(removal):
    learner = KernelLearner(2, DESCENTS["hinge"], Gaussian(0.5), 200, removal)
    values = [turn.values[0] for turn in play(learner, drifting(600), feedback.full, ["ndcg@10"])]
    frozen = KernelLearner(2, DESCENTS["hinge"], Gaussian(0.5), 200, removal)
    for _ in play(frozen, drifting(75), feedback.full):
        pass
    stale = [metric("ndcg@10")(r.labels[frozen.rank(r.X, 0).order]) for r in list(drifting(600))[300:]]
    assert np.mean(values[300:]) > np.mean(stale) + 0.1
    assert np.mean(values[300:]) > 0.8


RESIDENT = """
import resource, sys
import numpy as np
from ranktron import Round, feedback, play
from ranktron.learners import kernel_perceptron

def endless():
    rng = np.random.default_rng(0)
    number = 0
    while True:
        X = rng.normal(size=(60, 100)).astype(np.float32)
        yield Round(X, rng.integers(3, size=60).astype(float), number)
        number += 1

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6

for warm in play(kernel_perceptron(100, budget=50, removal=sys.argv[2], update="hinge"), endless(), feedback.full):
    if warm.number == 20:
        break  # machine code is loaded and the work space of one list is there
learner = kernel_perceptron(100, budget=0, megabytes=float(sys.argv[1]), removal=sys.argv[2], update="hinge")
stream = play(learner, endless(), feedback.full)
start = resident()
marks = []
for turn in stream:
    if turn.number in (int(sys.argv[3]), int(sys.argv[4])):
        marks.append(resident())
    if len(marks) == 2:
        break
print(start, *marks, len(learner.support), learner.support.stored)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("removal", ["oldest", "random", "smallest", "projection"])
def test_resident_memory_stays_under_the_budget_on_an_endless_stream(removal):
    """Not counted but measured: what the process holds once the budget is full, and ten budgets later."""
    megabytes = 2.0
    command = [sys.executable, "-c", RESIDENT, str(megabytes), removal, "100", "600"]
    numbers = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    start, full, later, held, stored = map(float, numbers)
    room = 60 * held * 4 * 2 / 1e6  # kernel values of one list, and a copy of them
    assert full - start < megabytes + room + 4.0
    assert later - full < 2.0
    assert stored > held if removal != "projection" else stored == held
