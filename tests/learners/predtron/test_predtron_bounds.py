"""Theorems as tests: on streams with a (weak) margin every bound holds at every prefix, on all streams the regret."""

import numpy as np
import pytest

from ranktron import DataError
from ranktron.learners.predtron import (
    Enumerated,
    LossDriven,
    Permutations,
    PlaceLoss,
    Places,
    Predtron,
    Standard,
    Subsets,
    binary,
    make_link,
    multiclass,
    ordinal,
    theoretical_step,
    walk,
    with_reject,
)
from ranktron.learners.predtron.ranker import PredtronLearner
from ranktron.learners.steps import Constant, InversePower
from reproduction.theory.predtron_bounds import (
    any_step,
    certify_regret,
    corollary_2,
    corollary_5,
    corollary_6,
    corollary_7,
    corollary_8,
    graceful_bound,
    lemma_4,
    ordinal_bound,
    perceptron,
    reject_bound,
    smallest_ndcg_loss,
    stream_radius,
    theorem_1,
    theorem_14,
    theorem_15,
    weak_margin,
)


def claim(item):
    return pytest.mark.claim("PREDTRON", item)


def frozen(problem):
    """The same problem, with a σ_y that does not follow the scores: what the streams of weak margin are made for."""
    if isinstance(problem, Enumerated):
        return Enumerated(problem.losses, problem.reps, follow_scores=False)
    if isinstance(problem, Subsets):
        return problem
    return Permutations(problem.measure, problem.representation, problem.documents, 3, follow_scores=False)


def run(problem, shape, stream, variant, norm="l2", eta=None):
    """The mistakes of a run with the theorem's step (or another), the total loss at every prefix, and R."""
    link = make_link(norm, shape)
    R = stream_radius(Predtron(problem, shape, link=link), [X for X, _ in stream])
    step = theoretical_step(problem, variant, link, R) if eta is None else Constant(eta)
    learner = Predtron(problem, shape, step, variant, link)
    mistakes = list(walk(learner, stream))
    losses = np.cumsum([0.0 if mistake is None else mistake.loss for mistake in mistakes])
    return learner, [mistake for mistake in mistakes if mistake], losses, R


def dimension(problem):
    return {Subsets: 4, Permutations: 4}.get(type(problem)) or problem.dimension


@claim("8 Thm1")
@claim("17 s3")
@claim("42 Eq.3")
@claim("43 Thm14")
def test_matrix_instances(instance, separable):
    """Theorems 1 and 14 at every prefix, and the regret inequality, for every instance."""
    problem = frozen(instance[0])
    shape = (dimension(problem), 6)
    stream, W, gamma = separable(problem, shape)
    for variant in (Standard(), LossDriven()):
        learner, mistakes, losses, R = run(problem, shape, stream, variant)
        if isinstance(variant, Standard):
            bound = theorem_1(R, gamma, problem.smallest, problem.largest)
            eta = learner.step.eta
            assert len(mistakes) <= any_step(R, gamma, eta, problem.largest)
            scale = problem.largest / gamma
        else:
            bound = theorem_14(R, gamma, problem.largest)
            scale = 1.0 / gamma
        assert 0.0 < losses[-1] <= bound
        assert (losses <= bound).all()
        separating = certify_regret(learner, mistakes, scale * W)
        assert separating.comparator == pytest.approx(0.0, abs=1e-6 * problem.largest)  # zero at the margin
        assert separating.holds
        for other in (np.zeros(shape), learner.W, 5.0 * W):
            assert certify_regret(learner, mistakes, other).holds


@claim("31 Cor5")
@claim("33 Cor6")
@claim("42 Eq.3")
@claim("44 Eq.6-7")
@claim("45 Thm15")
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
@pytest.mark.parametrize("places", ["-i", "-i^1.1", "-i^2", "1/i", "discount"])
def test_subset_ranking(separable, norm, variant, places):
    problem = Permutations(representation=Places(places), documents=4, highest=3, follow_scores=False)
    stream, w, gamma = separable(problem, (12,), norm, lead=0.01)
    learner, mistakes, losses, R = run(problem, (12,), stream, variant, norm)
    c, alpha = problem.smallest, learner.link.alpha
    if isinstance(variant, Standard):
        bound = theorem_15(R, gamma, alpha, c, 1.0)
        columns = max(np.linalg.norm(X, axis=0).max() for X, _ in stream)
        printed = corollary_5(R, gamma, 4, 3) if norm == "l2" else corollary_6(columns, gamma, 4, 3, 12)
        assert bound <= printed
    else:
        bound = theorem_14(R, gamma) / alpha
    assert 0.0 < losses[-1] <= bound
    separating = certify_regret(learner, mistakes, w / gamma)
    assert separating.comparator == pytest.approx(0.0, abs=1e-6)
    assert separating.holds
    for other in (np.zeros(12), learner.W, 3.0 * w):
        assert certify_regret(learner, mistakes, other).holds


@claim("34 Cor7")
@claim("35 Cor8")
@claim("45 Thm15")
@pytest.mark.parametrize("norm", ["l2", "l1", "group", "trace"])
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
@pytest.mark.parametrize("kind", ["ranking", "classes", "subsets"])
def test_links_of_matrices(separable, norm, variant, kind):
    problem, d = {
        "ranking": (Permutations(documents=8, highest=7, follow_scores=False), 8),
        "classes": (multiclass(8), 8),
        "subsets": (Subsets(8), 8),
    }[kind]
    shape = (d, 10)
    stream, W, gamma = separable(problem, shape, norm, n=60, lead=1e-3)
    learner, mistakes, losses, R = run(problem, shape, stream, variant, norm)
    alpha, C = learner.link.alpha, problem.largest
    if isinstance(variant, Standard):
        bound = theorem_15(R, gamma, alpha, problem.smallest, C)
        if kind == "ranking" and norm == "l2":
            assert bound <= corollary_7(R, gamma, 8, 7)
        if kind == "ranking" and norm == "group":
            assert bound <= corollary_8(R / 3.0, gamma, 8, 7, 10)  # |||x||| = 3‖x‖_∞
    else:
        bound = theorem_14(R, gamma, C) / alpha
    assert 0.0 < losses[-1] <= bound
    scale = (C if isinstance(variant, Standard) else 1.0) / gamma
    assert certify_regret(learner, mistakes, scale * W).comparator == pytest.approx(0.0, abs=1e-6 * C)
    for other in (scale * W, np.zeros(shape), learner.W):
        assert certify_regret(learner, mistakes, other).holds


@claim("31 Cor5")
@claim("28 Lem4")
def test_the_literal_margin_on_lists_with_distinct_grades():
    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places("-i^2"), documents=4, highest=3)
    w = rng.normal(size=6)
    w /= np.linalg.norm(w)
    stream, gamma = [], np.inf
    while len(stream) < 100:
        X = rng.normal(size=(4, 6))
        y = np.argsort(np.argsort(X @ w)).astype(float)
        margin = lemma_4(X @ w, y, problem.representation)
        if margin > 0.02:
            stream.append((X, y))
            gamma = min(gamma, margin)
    _, _, losses, R = run(problem, (6,), stream, Standard())
    assert 0.0 < losses[-1] <= theorem_1(R, gamma, problem.smallest) <= corollary_5(R, gamma, 4, 3)


@claim("10 s3")
@pytest.mark.parametrize("seed", range(5))
def test_the_perceptron_bound_in_its_classical_margin(seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=4)
    w /= np.linalg.norm(w)
    X = rng.normal(size=(3000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.abs(X @ w) > 0.05]
    y = (X @ w > 0).astype(int)
    gamma = np.abs(X @ w).min()
    learner = Predtron(binary(), (1, 4))
    mistakes = sum(mistake is not None for mistake in walk(learner, zip(X, y, strict=True)))
    assert 3 < mistakes <= perceptron(1.0, gamma)
    assert perceptron(1.0, gamma) == pytest.approx(theorem_1(1.0, 2.0 * gamma))  # our margin is twice the classical
    t, label = learner.scores(X[0]), int(y[0])
    assert abs(weak_margin(binary(), t, label, label)) in (pytest.approx(2.0 * abs(t[0])), np.inf)


@claim("11 Cor2")
def test_weights_enter_corollary_2_in_the_first_power():
    """Two orthogonal examples, both wrong under ties, with α = 10: the loss is 20, above what the paper prints."""
    problem = binary((10.0, 10.0))
    stream = [(np.array([1.0, 0.0]), 1), (np.array([0.0, 1.0]), 0)]
    W = np.array([[1.0, -1.0]]) / np.sqrt(2)
    gamma = min(weak_margin(problem, W @ x, y, y) for x, y in stream)
    assert gamma == pytest.approx(np.sqrt(2))
    _, _, losses, R = run(problem, (1, 2), stream, Standard())
    printed = 4.0 * R**2 * 10.0**2 / (10.0**2 * gamma**2)
    assert losses[-1] == 20.0
    assert losses[-1] > printed
    assert losses[-1] <= corollary_2(R, gamma, 10.0, 10.0) == pytest.approx(20.0)  # and it is tight


@claim("11 Cor2")
def test_only_the_loss_driven_variant_uses_the_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(2, size=200)
    stream = list(zip(X, y, strict=True))
    runs = {}
    for variant in (Standard(), LossDriven()):
        for weights in ((1.0, 1.0), (1.0, 9.0)):
            _, mistakes, _, _ = run(binary(weights), (1, 5), stream, variant)
            runs[type(variant), weights] = [mistake.number for mistake in mistakes]
    assert runs[Standard, (1.0, 1.0)] == runs[Standard, (1.0, 9.0)] == runs[LossDriven, (1.0, 1.0)]
    assert runs[LossDriven, (1.0, 1.0)] != runs[LossDriven, (1.0, 9.0)]


@claim("12 REJECT")
@claim("19 s3")
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("beta", [0.05, 0.5, 1.0])
def test_reject(separable, classes, beta):
    problem = with_reject(classes, [min(1.0, 1.5 * beta)] + [beta] * (classes - 1))
    assert (problem.smallest, problem.largest) == (beta, 1.0)  # the largest loss is that of a wrong class, not β_1
    stream, _, gamma = separable(problem, (classes, 6))
    _, _, losses, R = run(problem, (classes, 6), stream, Standard())
    assert 0.0 < losses[-1] <= reject_bound(R, gamma, beta) == theorem_1(R, gamma, beta, 1.0)


@claim("20 s3")
@pytest.mark.parametrize("classes", [3, 7])
def test_ordinal_regression(separable, classes):
    problem = ordinal(classes)
    stream, _, gamma = separable(problem, (classes, 6))
    _, _, losses, R = run(problem, (classes, 6), stream, Standard())
    assert 0.0 < losses[-1] <= ordinal_bound(R, gamma, classes)
    assert ordinal_bound(R, gamma, classes) == pytest.approx(4.0 * (classes - 1) ** 2 * R**2 / gamma**2)


@claim("9 s2.3")
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_bounds_degrade_gracefully(noise, instance):
    """Without any margin: (1 − 2ηR²/c_L) Σ L <= Σ f(W) + ‖W‖²/(2η), at every prefix and for every W."""
    problem, predictions, labels = instance
    rng = np.random.default_rng(0)
    d = len(problem.rep(predictions[0]))
    truth = rng.normal(size=(d, 5))
    stream = []
    for _ in range(100):
        x = rng.normal(size=5)
        best = max(labels, key=lambda y: problem.rep(problem.correct(truth @ x, problem.check(y))) @ truth @ x)
        stream.append((x, labels[rng.integers(len(labels))] if rng.random() < noise else best))
    learner, mistakes, losses, R = run(problem, (d, 5), stream, Standard())
    eta, c = learner.step.eta, problem.smallest
    for W in (np.zeros((d, 5)), truth, 0.1 * truth, learner.W):
        for count in (1, len(mistakes) // 2, len(mistakes)):
            certificate = certify_regret(learner, mistakes[:count], W)
            assert certificate.holds
            assert certificate.losses <= graceful_bound(certificate, R, eta, c)
    assert losses[-1] == pytest.approx(certify_regret(learner, mistakes, truth).losses)


def test_a_certificate_can_fail():
    """The inequality is tight enough to notice a step in the wrong direction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = np.argmax(X[:, :3], axis=1)
    learner = Predtron(multiclass(3), (3, 5), Constant(0.05))
    mistakes = []
    for x, label in zip(X, y, strict=True):
        mistake = learner.learn(x, learner.scores(x), label)
        if mistake is not None:
            mistakes.append(mistake)
            learner.theta = learner.W = -learner.W
    assert not certify_regret(learner, mistakes, 3.0 * np.eye(3, 5)).holds


def test_any_step_keeps_its_bound(separable):
    for problem in (multiclass(4), ordinal(4)):
        stream, _, gamma = separable(problem, (4, 6))
        for eta in (1e-3, 0.1, 1.0, 100.0):
            _, mistakes, _, R = run(problem, (4, 6), stream, Standard(), eta=eta)
            assert len(mistakes) <= any_step(R, gamma, eta, problem.largest)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("variant", [Standard(), LossDriven()])
def test_weighted_losses_of_mixed_shards_keep_the_regret_inequality_at_every_prefix(separable, norm, variant):
    """Four shards of three to one weights, mixed where their steps add up, and against any comparator."""
    problem = Permutations(representation=Places("-i"), documents=4, highest=3, follow_scores=False)
    stream, w, gamma = separable(problem, (12,), norm, lead=0.01)
    link = make_link(norm, (12,))
    R = stream_radius(Predtron(problem, (12,), link=link), [X for X, _ in stream])
    step, shares = theoretical_step(problem, variant, link, R), np.array([0.3, 0.1, 0.3, 0.3])
    learner = PredtronLearner(Predtron(problem, (12,), step, variant, link))
    sums = {name: np.zeros(4) for name in ("losses", "learner", "comparator", "gradients")}
    others = [np.zeros(12), w / gamma, 3.0 * w, -w]
    mistakes, weighted = 0, 0.0
    for begin in range(0, len(stream) - 19, 20):
        start, states = learner.state(), []
        for shard, share in enumerate(shares.tolist()):
            core = Predtron(problem, (12,), step, variant, link)
            core.restore(start)
            found = [each for each in walk(core, stream[begin + 5 * shard : begin + 5 * shard + 5]) if each]
            for j, other in enumerate(others):
                certificate = certify_regret(core, found, other)
                for name, total in sums.items():
                    total[j] += share * getattr(certificate, name)
            mistakes, weighted = mistakes + len(found), weighted + share * sum(each.loss for each in found)
            states.append(core.state())
        learner.restore(learner.mix(start, states, shares))
        for j, other in enumerate(others):
            penalty = link.norm(other) ** 2 / (2.0 * step.eta)
            bound = sums["comparator"][j] + sums["gradients"][j] + penalty
            assert sums["losses"][j] <= sums["learner"][j] + 1e-9
            assert sums["learner"][j] <= bound * (1.0 + 1e-9)
        c, alpha = problem.smallest, link.alpha
        theorem = theorem_15(R, gamma, alpha, c, 1.0) if variant == Standard() else theorem_14(R, gamma) / alpha
        assert weighted <= theorem
    assert mistakes > 10


@claim("30 Cor5")
def test_corollary_5_follows_from_theorem_1():
    for m in (2, 5, 100):
        for highest in (1, 2, 4):
            exact = theorem_1(3.0, 0.1, PlaceLoss().smallest(m, highest))
            through = theorem_1(3.0, 0.1, smallest_ndcg_loss(m, highest))
            assert exact <= through <= corollary_5(3.0, 0.1, m, highest)
            assert corollary_6(3.0, 0.1, m, highest, 50) == pytest.approx(
                9.0 * np.log(50) * corollary_5(3.0, 0.1, m, highest)
            )
            assert corollary_8(3.0, 0.1, m, highest, 50) == corollary_6(3.0, 0.1, m, highest, 50)
            r = np.log(50) / (np.log(50) - 1.0)
            assert theorem_15(9.0, 0.1, r - 1.0, smallest_ndcg_loss(m, highest)) <= corollary_6(
                3.0, 0.1, m, highest, 50
            )


def test_what_cannot_be_certified():
    with pytest.raises(DataError, match="constant"):
        certify_regret(Predtron(binary(), (1, 2), InversePower(1.0)), [], np.zeros((1, 2)))
    learner = Predtron(binary(), (1, 2), Constant(1.0))
    with pytest.raises(DataError, match="step below"):
        graceful_bound(certify_regret(learner, [], np.zeros((1, 2))), R=1.0, eta=1.0, smallest=1.0)
