"""Every instance keeps the promises of the framework; argmaxes equal brute force over all predictions."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError
from ranktron.learners.predtron import (
    Counted,
    Enumerated,
    ErrorSetSize,
    Hamming,
    Permutations,
    PlaceLoss,
    Places,
    Predtron,
    Subsets,
    SubsetZeroOne,
    binary,
    check_problem,
    multiclass,
    ordinal,
    subsets,
    surrogate,
    unit_surrogate,
    with_costs,
    with_reject,
)
from ranktron.learners.predtron import permutations as ranking
from ranktron.learners.predtron import problem as parts
from ranktron.learners.predtron.problem import similarity
from reproduction.theory.predtron_bounds import lemma_4, literal_margin, smallest_ndcg_loss, weak_margin


def claim(item):
    return pytest.mark.claim("PREDTRON", item)


@claim("6 Eq.2")
@claim("37 Lem9")
@claim("38 Lem10")
@claim("39 Lem11")
@claim("40 Lem12")
@claim("41 Lem13")
@pytest.mark.parametrize("seed", range(3))
def test_every_instance_passes_the_checks(instance, seed):
    check_problem(*instance, seed=seed)


@claim("1 s2.1")
@claim("2 s2.1")
@claim("3 s2.1")
@claim("4 s2.1")
def test_decoding(instance):
    problem, predictions, _ = instance
    rng = np.random.default_rng(1)
    reps = np.array([problem.rep(prediction) for prediction in predictions])
    for prediction, rep in zip(predictions, reps, strict=True):
        assert np.array_equal(problem.pred(rep.copy()), prediction)  # pred(rep(σ)) = σ
    for _ in range(50):
        t = rng.normal(size=reps.shape[1])
        found = problem.rep(problem.pred(t))
        nearest = reps[np.argmin(np.linalg.norm(reps - t, axis=1))]
        assert found == pytest.approx(nearest)  # nearest neighbour
        assert problem.rep(problem.pred(0.01 * t)) == pytest.approx(found)  # homogeneity
        assert found @ t >= (reps @ t).max() - 1e-12  # similarity


@claim("5 s2.2")
def test_margins_scale(instance):
    problem, predictions, labels = instance
    rng = np.random.default_rng(2)
    seen = 0
    for label in labels:
        label = problem.check(label)
        for prediction in predictions:
            if problem.loss(prediction, label) == 0.0:
                t = problem.rep(prediction) + 0.05 * rng.normal(size=len(problem.rep(prediction)))
                margin = weak_margin(problem, t, label, prediction)
                assert weak_margin(problem, 3.0 * t, label, prediction) == pytest.approx(3.0 * margin)
                seen += np.isfinite(margin)
    assert seen > 0


def test_the_checks_can_fail():
    class Greedy(Enumerated):
        def augmented(self, scores, label):
            return self.pred(scores)

    class Generous(Enumerated):
        def pred(self, scores, label=None):
            return super().pred(scores)

    class Long(Enumerated):
        def rep(self, prediction):
            return 1.1 * super().rep(prediction)

    class Costly(Enumerated):
        def loss(self, prediction, label):
            return super().loss(prediction, label) + 0.5

    class Blind(Enumerated):
        def rival(self, scores, label):
            return (label + 1) % 3

    for broken, why in {
        Greedy: "argmax",
        Generous: "ties",
        Long: "length 1",
        Costly: "without loss",
        Blind: "best wrong",
    }.items():
        good = multiclass(3)
        with pytest.raises(AssertionError, match=why):
            check_problem(broken(good.losses, good.reps), range(3), range(3))


def test_a_problem_in_a_few_lines():
    """Points on a circle, charged by how far the prediction is around it."""
    angle = 2.0 * np.pi / 6
    clock = Enumerated.of(
        range(6),
        range(6),
        lambda s, y: min((s - y) % 6, (y - s) % 6),
        lambda s: [np.cos(angle * s), np.sin(angle * s)],
    )
    check_problem(clock, range(6), range(6))
    learner = Predtron(clock, (2, 2))
    rng = np.random.default_rng(0)
    late = []
    for number in range(2000):
        x = rng.normal(size=2)
        hour = round(float(np.arctan2(x[1], x[0]) / angle)) % 6
        mistake = learner.learn(x, learner.scores(x), hour)
        late.append(number >= 1000 and mistake is not None)
    assert sum(late) < 100  # by chance it would be some 830


# --- classes


@claim("13 C.1")
def test_margins_with_reject():
    problem, free = with_reject(2, (0.6, 0.3)), with_reject(2, (0.6, 0.0))
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(500):
        t = rng.normal(size=2)
        between = t.sum() / np.sqrt(2)
        for own, other in ((0, 1), (1, 0)):
            expected = t[own] - max(t[other], between)
            margin = literal_margin(problem, t, own)
            assert margin == pytest.approx(expected if expected > 0.0 else -np.inf)
            seen += expected > 0.0
        # with β_2 = 0 both the class and REJECT are right, and the wrong class must be behind both
        right = free.losses[:, 1] == 0.0
        assert right.tolist() == [False, True, True]
        gap = (free.reps @ t)[right].min() - (free.reps @ t)[~right].max()
        assert gap == pytest.approx(min(t[1], between) - t[0])
    assert seen > 50


@claim("14 C.1")
@claim("19 s3")
@pytest.mark.parametrize("classes", [2, 5])
def test_reject_asks_for_more_room(classes):
    plain, reject = multiclass(classes), with_reject(classes, 0.5)
    rng = np.random.default_rng(0)
    stricter = 0
    for _ in range(500):
        t = rng.normal(size=classes)
        y = int(np.argmax(t))
        assert literal_margin(reject, t, y) <= literal_margin(plain, t, y)
        stricter += literal_margin(reject, t, y) == -np.inf
    assert 0 < stricter < 500
    assert plain.rep(0) @ reject.rep(classes) == pytest.approx(1.0 / np.sqrt(classes))


@claim("15 s3")
@claim("16 s3")
@claim("18 fn2")
def test_multiclass_margin_hinge_and_error_set():
    problem = multiclass(5)
    rng = np.random.default_rng(0)
    ties = 0
    for _ in range(500):
        t, y = np.round(rng.normal(size=5), 1), int(rng.integers(5))
        others = np.delete(t, y)
        lead = t[y] - others.max()
        assert literal_margin(problem, t, y) == pytest.approx(lead if lead > 0.0 else -np.inf)
        assert surrogate(problem, t, y, y)[0] == pytest.approx(max(0.0, 1.0 + others.max() - t[y]))
        error_set = float((others >= t[y]).any())
        assert problem.loss(problem.pred(t, y), y) == error_set
        assert error_set >= problem.loss(problem.pred(t), y)
        ties += error_set > problem.loss(problem.pred(t), y)
    assert ties > 0


# --- subsets


@claim("21 s3")
def test_subsets_are_signs():
    problem = Subsets(5)
    t = np.random.default_rng(0).normal(size=5)
    assert problem.pred(t).tolist() == (t > 0).tolist()
    assert problem.rep(problem.pred(t)) == pytest.approx(np.sign(t) / np.sqrt(5))


def _brute(problem, t, y):
    corners = [np.array([(k >> j) & 1 for j in range(len(t))], float) for k in range(2 ** len(t))]
    return max(problem.loss(v, y) + similarity(problem, v, t) for v in corners)


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        pytest.param(SubsetZeroOne(), lambda b, c: 1 - (b == 0) * (c == 0), marks=claim("22 C.2")),
        pytest.param(Hamming(), lambda b, c: b + c, marks=claim("23 C.2")),
        pytest.param(ErrorSetSize(), lambda b, c: b * c, marks=claim("24 C.2")),
        (ErrorSetSize(0.25), lambda b, c: b * c + 0.25 * (b + c)),
    ],
)
@given(data=st.data())
def test_subset_losses_by_brute_force(loss, formula, data):
    m = data.draw(st.integers(1, 6))
    t = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=m, max_size=m))) / data.draw(st.sampled_from([1, 4]))
    y = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=m, max_size=m)))
    v = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=m, max_size=m)))
    problem, general = Subsets(m, loss), Subsets(m, Counted(loss))
    missed, vain = set(np.flatnonzero(y > v)), set(np.flatnonzero(v > y))
    assert problem.loss(v, y) == formula(len(vain), len(missed))
    best = _brute(problem, t, y)
    for found in (problem.augmented(t, y), general.augmented(t, y)):  # the fast form and the two loops of C.2
        assert problem.loss(found, y) + similarity(problem, found, t) == pytest.approx(best)


def test_error_set_counts_pairs():
    """|{(r, s) ∈ y × ([m] \\ y): r ∉ σ, s ∈ σ}|: as printed, with s outside σ and inside it, it would always be 0."""
    rng = np.random.default_rng(0)
    problem = Subsets(6, ErrorSetSize())
    for _ in range(50):
        v, y = rng.integers(2, size=(2, 6)).astype(float)
        pairs = [(r, s) for r in range(6) for s in range(6) if y[r] and not y[s] and not v[r] and v[s]]
        assert problem.loss(v, y) == len(pairs)
    assert problem.largest == 9.0


# --- rankings


def rankings(m):
    return [np.array(places) for places in permutations(range(m))]


@claim("25 s4")
@claim("26 s4")
@pytest.mark.parametrize("places", ["-i", "-i^1.1", "-i^2", "1/i", "discount"])
def test_permutations_sort(places):
    problem = Permutations(representation=Places(places))
    rng = np.random.default_rng(0)
    for m in (1, 2, 7, 30):
        t = rng.normal(size=m)
        sigma = problem.pred(t)
        assert np.argsort(sigma).tolist() == np.argsort(-t).tolist()
        assert problem.rep(sigma) @ problem.rep(sigma) == pytest.approx(1.0)
        f = Places(places).raw(m)
        assert (np.diff(f) < 0.0).all()
        assert problem.rep(sigma) == pytest.approx(f[sigma] / np.sqrt(np.sum(f**2)))
        p = rng.permutation(m)
        assert problem.pred(t[p]).tolist() == sigma[p].tolist()  # permuted documents, permuted places
    learner = Predtron(problem, (3,))
    X, y = rng.normal(size=(6, 3)), np.array([2.0, 0.0, 1.0, 3.0, 5.0, 4.0])
    other = Predtron(problem, (3,))
    for _ in range(3):
        p = rng.permutation(6)
        learner.learn(X, learner.scores(X), y)
        other.learn(X[p], other.scores(X[p]), y[p])
    assert pytest.approx(learner.W) == other.W


@claim("27 Lem3")
@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "p@2"])
@pytest.mark.parametrize("places", ["-i", "-i^1.1", "-i^2", "1/i", "discount"])
@pytest.mark.parametrize("m", [2, 5, 7])
def test_the_assignment_equals_all_permutations(measure, places, m):
    problem = Permutations(PlaceLoss(measure), Places(places))
    rng = np.random.default_rng(m)
    every = rankings(m)
    for scale in (0.1, 1.0, 5.0):
        t, y = scale * rng.normal(size=m), rng.integers(4, size=m).astype(float)
        found = problem.augmented(t, y)
        value = problem.loss(found, y) + similarity(problem, found, t)
        gains, D = problem.measure.gain(y), problem.measure.discount(m)
        best = np.sort(gains)[::-1] @ D
        lost = [1.0 - gains @ D[s] / best if best else 0.0 for s in every]
        assert value == pytest.approx(max(a + similarity(problem, s, t) for a, s in zip(lost, every, strict=True)))


@claim("27 Lem3")
@pytest.mark.parametrize("places", ["-i^1.1", "1/i"])
def test_prices_change_nothing(places):
    """The assignment with prices is the assignment of the plain cost matrix, on lists too long for enumeration."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places(places))
    for m in (16, 17, 63, 150):
        for scale in (0.01, 1.0):
            t, y = scale * rng.normal(size=m), rng.integers(5, size=m).astype(float)
            gains, discounts, best = problem.measure.weights(y)
            worth = np.outer(t, problem.representation(m)) - np.outer(gains / best, discounts)
            rows, columns = linear_sum_assignment(worth, maximize=True)
            found = problem.augmented(t, y)
            assert worth[rows, found].sum() == pytest.approx(worth[rows, columns].sum(), abs=1e-12)


@claim("27 Lem3")
def test_with_the_metrics_own_discount_the_assignment_is_a_sort():
    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places("discount"))
    for m in (2, 10, 80):
        t, y = rng.normal(size=m), rng.integers(5, size=m).astype(float)
        gains, discounts, best = problem.measure.weights(y)
        general = ranking.solve_assignment(t, gains / best, problem.representation(m), discounts)
        quick = problem.augmented(t, y)
        values = [problem.loss(s, y) + similarity(problem, s, t) for s in (general, quick)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)


@claim("28 Lem4")
@pytest.mark.parametrize("places", ["-i", "-i^1.1", "-i^2", "1/i", "discount"])
@pytest.mark.parametrize("distinct", [True, False])
def test_lemma_4_is_the_definition(places, distinct):
    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places(places))
    compatible = 0
    for m in (2, 3, 5):
        every = rankings(m)
        for _ in range(20):
            y = rng.permutation(m).astype(float) if distinct else rng.integers(3, size=m).astype(float)
            if (y == y[0]).all():
                continue
            steps = np.cumsum(rng.random(m))
            t = steps[np.unique(y, return_inverse=True)[1]]
            if rng.random() < 0.3:
                t = rng.normal(size=m)
            values = np.array([similarity(problem, s, t) for s in every])
            right = np.array([problem.loss(s, y) == 0.0 for s in every])
            top = np.isclose(values, values.max(), atol=1e-9)
            literal = values[right].min() - values[~right].max() if (top == right).all() else -np.inf
            assert lemma_4(t, y, Places(places)) == pytest.approx(literal)
            if literal > 0.0:
                compatible += 1
                assert weak_margin(problem, t, y, problem.correct(t, y)) == pytest.approx(literal)
    assert compatible > 10


@claim("29 s4")
def test_powers_ask_for_less_room_further_down():
    """The room asked for at place i is γZ/(f(i − 1) − f(i)); for −i^a the step grows as i^(a − 1)."""
    i = np.arange(2, 2000, dtype=float)
    for power, growth in ((1.1, 0.1), (2.0, 1.0)):
        steps = -np.diff(Places(f"-i^{power:g}").raw(1999))
        assert (np.diff(steps) > 0.0).all()
        assert steps == pytest.approx(power * i**growth, rel=0.5)
        assert steps[-1] / (power * i[-1] ** growth) == pytest.approx(1.0, rel=1e-3)
    assert -np.diff(Places("-i").raw(50)) == pytest.approx(np.ones(49))
    assert (np.diff(-np.diff(Places("1/i").raw(50))) < 0.0).all()


@claim("30 Cor5")
@pytest.mark.parametrize(("m", "highest"), [(2, 1), (2, 4), (3, 2), (4, 2), (5, 1)])
def test_the_smallest_ndcg_loss(m, highest):
    measure = PlaceLoss("ndcg")
    problem = Permutations(measure)
    grades = np.stack(np.meshgrid(*[np.arange(highest + 1.0)] * m), -1).reshape(-1, m)
    losses = np.array([problem.loss(s, y) for y in grades for s in rankings(m)])
    exact = losses[losses > 1e-12].min()
    assert measure.smallest(m, highest) == pytest.approx(exact)
    assert smallest_ndcg_loss(m, highest) <= exact
    for longer in (10, 100):
        assert smallest_ndcg_loss(longer, highest) <= measure.smallest(longer, highest)


@claim("36 s5")
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_precision(k):
    problem = Permutations(PlaceLoss(f"p@{k}"))
    rng = np.random.default_rng(0)
    for _ in range(30):
        y = rng.integers(2, size=5).astype(float)
        for s in rankings(5)[::7]:
            top = np.argsort(s)[:k]
            possible = min(k, y.sum())
            expected = 1.0 - y[top].sum() / possible if possible else 0.0
            assert problem.loss(s, y) == pytest.approx(expected)
    assert Permutations(PlaceLoss("p@2"), documents=6, highest=3).smallest == 0.5


def test_ndcg_loss_is_that_of_the_metric():
    from ranktron import metric

    rng = np.random.default_rng(0)
    for measure in ("ndcg", "ndcg@3", "ndcg@10"):
        problem = Permutations(PlaceLoss(measure))
        for _ in range(30):
            m = int(rng.integers(1, 12))
            y, t = rng.integers(5, size=m).astype(float), np.round(rng.normal(size=m))
            shown = problem.pred(t, y)
            assert problem.loss(shown, y) == pytest.approx(1.0 - metric(measure)(y[np.argsort(shown)]), abs=1e-12)
            worst = max(problem.loss(np.argsort(o), y) for o in _tied_orders(t)) if m < 7 else None
            assert worst is None or problem.loss(shown, y) == pytest.approx(worst, abs=1e-12)


def _tied_orders(t):
    return [np.array(o) for o in permutations(range(len(t))) if (np.diff(t[list(o)]) <= 0.0).all()]


def test_tiny_losses_do_not_drown():
    """With grades up to 50 the smallest loss is far below the rounding of 1 − NDCG, and still a mistake."""
    y = np.arange(50.0)[::-1]
    sigma = np.arange(50)
    problem = Permutations()
    assert problem.loss(sigma, y) == 0.0
    sigma[[48, 49]] = 49, 48
    D = 1.0 / np.log2(np.arange(2, 52))
    assert problem.loss(sigma, y) == pytest.approx((D[48] - D[49]) / ((2.0**y - 1.0) @ D), rel=1e-6)
    assert 0.0 < problem.loss(sigma, y) < 1e-17


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@2", "p@2", "p@3"])
def test_the_closest_correct_order_is_the_closest(measure):
    rng = np.random.default_rng(0)
    problem = Permutations(PlaceLoss(measure))
    for _ in range(40):
        t, y = rng.normal(size=5), rng.integers(3, size=5).astype(float)
        best = max(similarity(problem, s, t) for s in rankings(5) if problem.loss(s, y) == 0.0)
        assert similarity(problem, problem.correct(t, y), t) == pytest.approx(best)


def test_lists_with_nothing_to_order():
    problem = Permutations()
    for y in ([3.0], [0.0, 0.0], [2.0, 2.0, 2.0]):
        y = np.array(y)
        t = np.arange(len(y), dtype=float)
        assert problem.loss(problem.pred(t, y), y) == 0.0
        assert problem.rival(t, y) is None
        assert unit_surrogate(problem, t, y, problem.correct(t, y))[0] == 0.0
        assert sorted(problem.augmented(t, y)) == list(range(len(y)))


# --- kernels and bad input


def test_kernels_equal_their_python():
    rng = np.random.default_rng(0)
    good = with_costs([[0.0, 2.0, 1.0], [0.5, 0.0, 4.0], [3.0, 1.0, 0.0]])
    t, y = rng.normal(size=3), np.array([1.0, 0.0, 1.0])
    flips = subsets._flips(t, y)
    order = rng.permutation(3)
    f = Places("-i")(3)
    D = PlaceLoss().discount(3)
    calls = [
        (parts._similarities, (good.reps, t)),
        (parts._tie, (t,)),
        (parts._decode, (good.reps, t)),
        (parts._decoded_against, (good.reps, np.zeros(3), good.losses, 1)),
        (parts._decode_augmented, (good.reps, t, good.losses, 1)),
        (parts._among, (good.reps, t, good.losses, 1, False)),
        (subsets._flips, (t, y)),
        (subsets._cheapest_first, (flips, y, 1.0)),
        (subsets._any_wrong, (np.abs(flips),)),
        (subsets._most_pairs_wrong, (flips, y)),
        (subsets._best_counts, (flips, y, np.arange(6.0).reshape(2, 3))),
        (subsets._mark, (3, order[:1], order[1:2])),
        (ranking._places, (order,)),
        (ranking._follow_scores, (np.argsort(-t), np.argsort(-y, kind="stable"), np.minimum(D, 0.5))),
        (ranking._place_loss, (order, y, np.sort(y), D, 1.5)),
        (ranking._sorted_by_gap, (t, y, 1.5, 2.0)),
        (ranking._one_step_off, (-np.arange(3.0), np.array([2.0, 2.0, 1.0]), D, f)),
        (ranking._one_step_off, (-np.arange(3.0), np.ones(3), D, f)),
        (ranking._move_documents, (order, 0, 1, 2)),
        (ranking._moving_cost, (t, order, f, 0, 1, 2)),
    ]
    for kernel, arguments in calls:
        assert np.asarray(kernel(*arguments)) == pytest.approx(np.asarray(kernel.py_func(*arguments)))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Enumerated([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.1]]), "prediction 1 has 1.1"),
        (lambda: Enumerated([[0.0, 1.0], [1.0, 0.5]], np.eye(2)), "label 1 has none"),
        (lambda: Enumerated([[0.0, -1.0], [1.0, 0.0]], np.eye(2)), ">= 0"),
        (lambda: Enumerated(np.zeros((2, 2)), np.eye(2)), "nothing to learn"),
        (lambda: Enumerated([[0.0, 1.0], [1.0, 0.0]], [[1.0], [1.0]]), "same representation"),
        (lambda: Enumerated([[0.0, 1.0]], np.eye(2)), "shape"),
        (lambda: binary((1.0, 0.0)), "above 0"),
        (lambda: binary((1.0, 2.0, 3.0)), "2 classes"),
        (lambda: multiclass(1), "at least 2"),
        (lambda: ordinal(0), "at least 2"),
        (lambda: with_costs([[0.0, 1.0]]), "square"),
        (lambda: with_costs([[1.0, 1.0], [1.0, 0.0]]), "diagonal"),
        (lambda: with_reject(3, 1.5), "between 0 and 1"),
        (lambda: Subsets(0), "at least 1"),
        (lambda: Subsets(3, Counted(lambda b, c: 1.0)), "exactly right"),
        (lambda: Places("i"), "representation"),
        (lambda: Places("-i^0"), "representation"),
        (lambda: PlaceLoss("map"), "no loss"),
        (lambda: PlaceLoss("p@0"), "no loss"),
        (lambda: Permutations().smallest, "declare"),
        (lambda: PlaceLoss().smallest(1, 1), "at least 2"),
        (lambda: PlaceLoss().gain(np.array([2000.0])), "too large"),
    ],
)
def test_bad_problems_are_named(make, why):
    with pytest.raises(DataError, match=why):
        make()


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        (multiclass(3), 3),
        (multiclass(3), -1),
        (multiclass(3), 1.5),
        (multiclass(3), "a"),
        (Subsets(3), np.array([0, 1])),
        (Subsets(3), np.array([0, 1, 2])),
        (Subsets(3), "abc"),
        (Permutations(), np.array([[1.0]])),
        (Permutations(), np.array([np.nan, 1.0])),
        (Permutations(), np.array([-1.0, 1.0])),
        (Permutations(documents=2, highest=2), np.zeros(3)),
        (Permutations(documents=2, highest=2), np.array([3.0, 0.0])),
        (Permutations(documents=2, highest=2), np.array([0.5, 0.0])),
    ],
)
def test_labels_outside_the_declared_set_are_refused(problem, label):
    learner = Predtron(problem, (3, 2))
    with pytest.raises(DataError):
        learner.learn(np.ones(2), np.zeros(3), label)
    assert learner.rounds == 0


def test_parts_that_lie_are_found_by_the_loop():
    class Long(Enumerated):
        def rep(self, prediction):
            return 1.1 * super().rep(prediction)

    class Hopeless(Enumerated):
        def loss(self, prediction, label):
            return 1.0

    good = multiclass(3)
    for broken, why in ((Long, "length 1"), (Hopeless, "without loss")):
        learner = Predtron(broken(good.losses, good.reps), (3, 2))
        with pytest.raises(DataError, match=why):
            learner.learn(np.ones(2), np.zeros(3), 0)
        assert learner.rounds == learner.mistakes == 0


def test_rivals_of_long_lists_by_brute_force_over_pairs():
    """Where sorting has no loss, one exchange across a drop of grade is the best wrong order."""
    rng = np.random.default_rng(0)
    problem = Permutations(representation=Places("-i^2"))
    for _ in range(20):
        t = np.sort(rng.normal(size=25))[::-1].copy()
        y = np.sort(rng.integers(4, size=25))[::-1].astype(float)
        best = -np.inf
        for i, j in combinations(range(25), 2):
            s = np.arange(25)
            s[[i, j]] = j, i
            if problem.loss(s, y) > 0.0:
                best = max(best, similarity(problem, s, t))
        assert similarity(problem, problem.rival(t, y), t) == pytest.approx(best)


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_relevance_that_is_no_grade_is_refused_wherever_it_stands(place, wrong):
    labels = np.array([1.0, 0.0, 2.0])
    labels[place] = wrong
    with pytest.raises(DataError, match="relevance must be"):
        Permutations(PlaceLoss("ndcg"), Places("-i")).check(labels)


@pytest.mark.parametrize("label", [3, -1, 1.5, "1"])
def test_a_label_is_one_of_the_classes(label):
    assert [multiclass(3).check(y) for y in (0, 2)] == [0, 2]
    with pytest.raises(DataError, match="labels of this problem are 0 to 2"):
        multiclass(3).check(label)
