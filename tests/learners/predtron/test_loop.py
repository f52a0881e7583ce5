"""The loop: the perceptron and its relatives, the kernel form, averages, states, bad input."""

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

from ranktron import DataError, Feedback, play
from ranktron.data.synthetic import Separable
from ranktron.learners import feedback, predtron_ranker
from ranktron.learners.checks import same
from ranktron.learners.predtron import (
    Euclidean,
    GroupLink,
    L1Link,
    LossDriven,
    Permutations,
    PlaceLoss,
    Places,
    Predtron,
    Standard,
    Subsets,
    Trace,
    binary,
    make_link,
    make_variant,
    multiclass,
    ordinal,
    theoretical_step,
    walk,
    with_costs,
)
from ranktron.learners.predtron import loop as loops
from ranktron.learners.predtron.problem import unit_surrogate
from ranktron.learners.steps import Constant, InversePower
from reproduction.theory.predtron_bounds import gradient


def claim(item):
    return pytest.mark.claim("PREDTRON", item)


def noisy(n=400, p=6, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.argmax(X @ rng.normal(size=(p, classes)) + rng.normal(size=(n, classes)), axis=1)
    return X, y


@claim("10 s3")
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 7.0)])
def test_binary_predtron_is_the_perceptron(variant, weights):
    X, y = noisy()
    learner = Predtron(binary(weights), (1, 6), Constant(0.5), variant)
    ours = [mistake is not None for mistake in walk(learner, zip(X, y, strict=True))]
    theirs = Perceptron(fit_intercept=False, shuffle=False, eta0=1.0)
    mistakes = []
    for x, label in zip(X, y, strict=True):
        before = theirs.coef_.copy() if mistakes else np.zeros((1, 6))
        theirs.partial_fit(x[None], [label], classes=[0, 1])
        mistakes.append((theirs.coef_ != before).any())
    same_algorithm = isinstance(variant, Standard) or weights == (1.0, 1.0)
    assert (ours == mistakes) == same_algorithm  # only the loss-driven variant looks at the weights
    if same_algorithm:
        assert pytest.approx(theirs.coef_) == learner.W
        assert sum(ours) > 50


@claim("17 s3")
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
def test_multiclass_is_the_update_of_crammer_and_singer(variant):
    """On a mistake the right class gains x and the best of the others loses it: their ultraconservative update."""
    X, y = noisy(classes=5)
    learner = Predtron(multiclass(5), (5, 6), Constant(0.3), variant)
    M = np.zeros((5, 6))
    for x, label in zip(X, y, strict=True):
        t = M @ x
        rivals = np.where(np.arange(5) == label, -np.inf, t)
        assert learner.scores(x) == pytest.approx(t)
        if rivals.max() >= t[label]:
            M[label] += 0.3 * x
            M[np.argmax(rivals)] -= 0.3 * x
        learner.learn(x, learner.scores(x), int(label))
    assert pytest.approx(M) == learner.W
    assert learner.mistakes > 100


@claim("7 s2.3")
@pytest.mark.parametrize("problem", [multiclass(4), ordinal(4), Subsets(4), Permutations()])
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
def test_the_weights_are_a_sum_over_mistakes(problem, variant):
    """W = −η Σ g_τ X_τᵀ, so that scores need only inner products: the kernel form makes the same mistakes."""
    rng = np.random.default_rng(0)
    X, y = noisy(n=150, classes=4)
    if isinstance(problem, Subsets | Permutations):
        y = rng.integers(2, size=(150, 4)).astype(float)
    learner = Predtron(problem, (4, 6), Constant(0.7), variant)
    steps = []
    for x, label in zip(X, y, strict=True):
        kernelised = sum((-0.7 * g * (seen @ x) for g, seen in steps), np.zeros(4))
        assert learner.scores(x) == pytest.approx(kernelised)
        mistake = learner.learn(x, learner.scores(x), label)
        if mistake is not None:
            g = variant.weight(mistake.loss) * (problem.rep(mistake.rival) - problem.rep(mistake.correct))
            steps.append((g, x))
            assert gradient(learner, mistake) == pytest.approx(np.outer(g, x))
    assert len(steps) > 30


def test_a_list_is_an_example_with_shared_weights():
    """t = X w with step X^T g: the vector form is the matrix form with tied weights."""
    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places("-i"))
    learner = Predtron(problem, (5,), Constant(0.5))
    w = np.zeros(5)
    for _ in range(60):
        X, y = rng.normal(size=(6, 5)), rng.integers(3, size=6).astype(float)
        t = X @ w
        assert learner.scores(X) == pytest.approx(t)
        mistake = learner.learn(X, learner.scores(X), y)
        if mistake is not None:
            w = w - 0.5 * X.T @ (problem.rep(problem.augmented(t, y)) - problem.rep(problem.correct(t, y)))
    assert pytest.approx(w) == learner.W


def test_the_loss_driven_argmax_is_the_prediction_itself(instance):
    """On a mistake nothing outside Σ_y is more similar than what was shown; predictions do not depend on η."""
    problem, predictions, labels = instance
    rng = np.random.default_rng(0)
    d = len(problem.rep(predictions[0]))
    runs = {eta: Predtron(problem, (d, 5), Constant(eta), LossDriven()) for eta in (1e-3, 1.0, 64.0)}
    for number in range(60):
        x, label = rng.normal(size=5), labels[number % len(labels)]
        mistakes = {eta: learner.learn(x, learner.scores(x), label) for eta, learner in runs.items()}
        first = mistakes[1.0]
        assert all((mistake is None) == (first is None) for mistake in mistakes.values())
        if first is not None:
            outside = [s for s in predictions if problem.loss(s, first.label) > 0.0]
            best = max(problem.rep(s) @ first.scores for s in outside)
            assert problem.rep(first.rival) @ first.scores == pytest.approx(best, abs=1e-9)
    assert pytest.approx(64.0 * runs[1.0].W) == runs[64.0].W


@pytest.mark.parametrize("norm", ["l2", "l1", "group", "trace"])
def test_the_average_is_that_of_the_weights_that_predicted(norm):
    X, y = noisy(n=120, p=9, classes=8)
    link = make_link(norm, (8, 9))
    learner = Predtron(multiclass(8), (8, 9), Constant(0.2), Standard(), link, average=True)
    total = np.zeros((8, 9))
    for x, label in zip(X, y, strict=True):
        total += link(learner.theta)
        learner.learn(x, learner.scores(x), label)
    assert learner.coef == pytest.approx(total / 120)
    assert learner.predict(X[0]) == pytest.approx(total @ X[0] / 120)
    assert pytest.approx(link(learner.theta)) == learner.W


@pytest.mark.parametrize("norm", ["l2", "l1", "group", "trace"])
def test_a_restored_learner_goes_on(norm):
    X, y = noisy(n=120, p=9, classes=8)

    def make():
        return Predtron(multiclass(8), (8, 9), InversePower(1.0), LossDriven(), make_link(norm, (8, 9)))

    through, first, second = make(), make(), make()
    list(walk(through, zip(X, y, strict=True)))
    list(walk(first, zip(X[:50], y[:50], strict=True)))
    second.restore(first.state())
    list(walk(second, zip(X[50:], y[50:], strict=True)))
    assert same(through.state(), second.state())
    with pytest.raises(DataError, match="shape"):
        second.restore({**first.state(), "theta": np.zeros((3, 3))})


def test_the_step_of_the_theorems():
    costs = with_costs([[0.0, 3.0], [0.5, 0.0]])
    assert theoretical_step(costs, Standard(), Euclidean(), 2.0).eta == 0.5 / (4 * 2.0**2)
    assert theoretical_step(costs, LossDriven(), Euclidean(), 2.0).eta == 1.0 / (4 * 3.0 * 2.0**2)
    p = 50
    r = np.log(p) / (np.log(p) - 1.0)
    link = L1Link(p)
    X = np.random.default_rng(0).normal(size=(4, p))
    R = np.linalg.norm(X, axis=0).max()
    problem = Permutations(documents=4, highest=2)
    expected = (r - 1.0) * problem.smallest / (36.0 * R**2)  # Corollary 6
    assert theoretical_step(problem, Standard(), link, link.radius(X)).eta == pytest.approx(expected)
    with pytest.raises(DataError, match="radius"):
        theoretical_step(costs, Standard(), Euclidean(), 0.0)


def test_the_ranker_plays_the_same_loop():
    lists = Separable(documents=6, features=9, margin=0.05).rounds(80)
    for parameters in ({}, {"variant": "loss-driven"}, {"norm": "l1"}, {"loss": "p@3"}, {"loss": "ndcg@2"}):
        learner = predtron_ranker(9, representation="-i", eta=0.5, **parameters)
        losses = [turn.loss for turn in play(learner, lists, feedback.full)]
        core = Predtron(
            Permutations(PlaceLoss(parameters.get("loss", "ndcg")), Places("-i")),
            (9,),
            Constant(0.5),
            make_variant(parameters.get("variant", "standard")),
            make_link(parameters.get("norm", "l2"), (9,)),
        )
        mistakes = list(walk(core, ((round.X, round.labels) for round in lists)))
        assert losses == [0.0 if mistake is None else mistake.loss for mistake in mistakes]
        assert learner.coef.tolist() == core.W.tolist()
        assert learner.mistakes == sum(loss > 0.0 for loss in losses) >= 3


def test_the_ranker_takes_the_step_of_the_theorems():
    learner = predtron_ranker(9, step="theory", radius=2.0, documents=5, highest=3)
    assert learner.core.step.eta == pytest.approx(PlaceLoss().smallest(5, 3) / 16.0)
    with pytest.raises(DataError, match="declare"):
        predtron_ranker(9, step="theory")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_must_be_finite(bad):
    learner = Predtron(multiclass(3), (3, 2))
    x = np.array([1.0, bad])
    with pytest.raises(DataError, match="not finite"):
        learner.learn(x, learner.scores(x), 0)
    assert learner.rounds == 0


def test_an_overflow_is_refused_and_changes_nothing():
    learner = Predtron(multiclass(3), (3, 2), Constant(1e300))
    before = learner.state()
    with pytest.raises(DataError, match="overflow in round 0"):
        learner.learn(np.array([1e300, 1.0]), np.zeros(3), 0)
    assert same(before, learner.state())


def test_inputs_of_another_width_are_refused():
    with pytest.raises(DataError, match="2 features"):
        Predtron(multiclass(3), (3, 2)).scores(np.ones(3))
    with pytest.raises(DataError, match="a list of documents with 2 features"):
        Predtron(Permutations(), (2,)).scores(np.ones(2))


@pytest.mark.parametrize("size", [1, 7])
def test_sparse_links_need_eight_coordinates(size):
    for make in (L1Link, GroupLink, Trace):
        with pytest.raises(DataError, match="at least 8"):
            make(size)
    with pytest.raises(DataError, match="at least 8"):
        predtron_ranker(size, norm="l1")
    for make in (L1Link, GroupLink, Trace):
        assert make(8).alpha == pytest.approx(1.0 / (np.log(8) - 1.0))


def test_names_are_known():
    with pytest.raises(DataError, match="no norm"):
        make_link("linf", (3, 9))
    with pytest.raises(DataError, match="one of matrices"):
        make_link("group", (9,))
    with pytest.raises(DataError, match="no variant"):
        make_variant("link")


def test_kernels_equal_their_python():
    rng = np.random.default_rng(0)
    W, x, g, X = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=3), rng.normal(size=(3, 4))
    assert loops._matrix_scores(W, x) == pytest.approx(loops._matrix_scores.py_func(W, x))
    for step, start, arguments in ((loops._matrix_step, W, (g, x, 0.3)), (loops._vector_step, x, (g, X, 0.3))):
        one, two = start.copy(), start.copy()
        assert step(one, *arguments) == pytest.approx(step.py_func(two, *arguments))
        assert one == pytest.approx(two)


def test_the_loss_driven_surrogate_is_the_loss_times_the_unit_one():
    problem, scores = multiclass(3), np.array([0.1, 0.7, 0.2])
    unit = unit_surrogate(problem, scores, 0, 0)[0]
    assert unit not in (0.0, 1.0)
    for loss in (0.5, 2.0):
        assert LossDriven().charge(problem, scores, 0, 0, loss) == pytest.approx(loss * unit)


def test_feedback_may_name_documents_in_any_order():
    """Also in one that begins with the first document and is not sorted after it."""
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    labels = np.array([0.0, 2.0, 1.0, 3.0])
    found = []
    for items in (np.arange(4), np.array([0, 3, 1, 2]), np.array([2, 1, 3, 0])):
        learner = predtron_ranker(3)
        learner.learn(X, learner.rank(X, 0), Feedback(items, labels[items]))
        found.append(learner.coef)
    assert found[0].any()
    assert found[1] == pytest.approx(found[0])
    assert found[2] == pytest.approx(found[0])
