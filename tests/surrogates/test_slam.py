"""The surrogates of Chaudhuri and Tewari against their definitions."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from ranktron import DataError, metric
from ranktron.kernels.grades import best_below, by_grade, extremes, grades_seen
from ranktron.kernels.sorting import ideal_order
from ranktron.learners.checks import check_surrogate
from ranktron.learners.mistakes import Misordered, MisorderedBinary, misordered
from ranktron.surrogates import SLAM, ClassificationHinge, ListNet, WorstPair
from ranktron.surrogates.listnet import exponentials, listnet
from ranktron.surrogates.slam import slam, slam_fraction, slam_round, slam_weights
from ranktron.surrogates.worst_pair import worst_pair

claim = pytest.mark.claim
MEASURES = ["ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "ap"]


@st.composite
def lists(draw, most=7, grades=4):
    """Scores with many ties and labels with empty, single and repeated grades."""
    m = draw(st.integers(1, most))
    coarse = st.lists(st.integers(-2, 2), min_size=m, max_size=m)
    fine = st.lists(st.floats(-3, 3, width=32), min_size=m, max_size=m)
    scores = draw(coarse | fine)
    labels = draw(st.lists(st.integers(0, grades - 1), min_size=m, max_size=m))
    return np.array(scores, float), np.array(labels, float)


def linear_program(scores, labels, v, margin):
    """min Σ v_i δ_i with δ >= 0 and s_i + δ_i >= margin + s_j wherever R_i > R_j (Eq. 8; one shared δ: Eq. 26)."""
    m = len(scores)
    pairs = [(i, j) for i in range(m) for j in range(m) if labels[i] > labels[j]]
    if not pairs:
        return 0.0
    shared = v is None
    A = np.zeros((len(pairs), 1 if shared else m))
    b = np.array([scores[i] - scores[j] - margin for i, j in pairs])
    for row, (i, _) in enumerate(pairs):
        A[row, 0 if shared else i] = -1.0
    return linprog(np.ones(1) if shared else v, A_ub=A, b_ub=b, bounds=(0, None)).fun


def relevance(labels, measure):
    """The labels as the measure sees them."""
    return (labels > 0.0).astype(float) if measure == "ap" else labels


def worst_loss(scores, labels, measure):
    """1 − measure under the worst tie-breaking, by trying every ranking that the scores allow."""
    shown = [list(p) for p in permutations(range(len(scores))) if (np.diff(scores[list(p)]) <= 0).all()]
    return max(1.0 - measure(labels[order]) for order in shown)


@claim("SLAM", "8 Eq.8=9")
@given(lists(), st.sampled_from(MEASURES), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_closed_form_solves_the_linear_program(list_, measure, margin):
    scores, labels = list_
    surrogate = SLAM(measure, margin)
    v = surrogate.weights(scores, labels)
    expected = linear_program(scores, relevance(labels, measure), v, margin)
    assert surrogate(scores, labels)[0] == pytest.approx(expected, abs=1e-7)


@claim("SLAM", "37 Eq.26=27")
@given(lists(), st.sampled_from([0.5, 1.0]))
def test_the_worst_pair_solves_its_linear_program(list_, margin):
    scores, labels = list_
    assert WorstPair(margin)(scores, labels)[0] == pytest.approx(linear_program(scores, labels, None, margin), abs=1e-7)


@claim("SLAM", "10 Eq.10-11")
@claim("SLAM", "30 Thm8 a,b")
@given(lists(), st.sampled_from(MEASURES))
def test_weights_are_those_of_the_ideal_order_and_add_up_to_one(list_, measure):
    scores, labels = list_
    assume(labels.any())
    surrogate = SLAM(measure)
    v = surrogate.weights(scores, labels)
    order = np.lexsort((np.arange(len(scores)), -scores.astype(np.float32), -relevance(labels, measure)))
    k = metric(measure).k or len(scores)
    if measure == "ap":
        expected = np.where(labels[order] > 0, 1.0 / np.count_nonzero(labels), 0.0)
    else:
        gains = (2.0 ** labels[order] - 1.0) / np.log2(np.arange(len(scores)) + 2.0)
        expected = np.where(np.arange(len(scores)) < k, gains, 0.0)
        expected = expected / expected.sum()
    assert v[order] == pytest.approx(expected)
    assert v.sum() == pytest.approx(1.0)
    assert (np.diff(v[order]) <= 1e-12).all()


@claim("SLAM", "11 Thm4")
@claim("SLAM", "12 Thm4")
@claim("SLAM", "29 Thm8 proof")
@given(lists(most=6), st.sampled_from(MEASURES))
def test_the_loss_bounds_what_the_measure_loses_under_any_tie_breaking(list_, measure):
    scores, labels = list_
    assert SLAM(measure)(scores, labels)[0] >= worst_loss(scores, labels, metric(measure)) - 1e-7


@claim("SLAM", "38 Eq.28")
@given(lists(most=6))
def test_the_worst_pair_bounds_every_measure_and_is_at_least_one_on_a_mistake(list_):
    scores, labels = list_
    loss = WorstPair()(scores, labels)[0]
    for measure in MEASURES:
        lost = worst_loss(scores, labels, metric(measure))
        assert loss >= lost - 1e-9
        assert lost <= 1e-12 or loss >= 1.0


@given(lists(most=6), st.sampled_from(MEASURES))
def test_a_mistake_is_a_loss_of_its_own_measure(list_, measure):
    scores, labels = list_
    m = metric(measure)
    rule = MisorderedBinary() if measure == "ap" else Misordered(m.k or 0)
    assert rule(scores, labels) == (worst_loss(scores, labels, m) > 1e-12)
    assert misordered.py_func(scores, labels, m.k or 0, measure == "ap") == rule(scores, labels)


@claim("SLAM", "9 Lem3")
@claim("SLAM", "14 Eq.13/16")
@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
@given(lists(most=12), lists(most=12), st.sampled_from(MEASURES))
def test_with_frozen_weights_the_loss_lies_above_its_tangents(fraction, list_, other, measure):
    scores, labels = list_
    surrogate = SLAM(measure, fraction=fraction)
    v = surrogate.weights(scores, labels)
    elsewhere = np.resize(other[0], len(scores))
    loss, gradient = surrogate.at(scores, labels, v)
    assert surrogate.at(elsewhere, labels, v)[0] >= loss + gradient @ (elsewhere - scores) - 1e-9
    middle = surrogate.at((scores + elsewhere) / 2, labels, v)[0]
    assert middle <= (loss + surrogate.at(elsewhere, labels, v)[0]) / 2 + 1e-9


def test_with_weights_that_move_the_loss_is_not_convex():
    rng = np.random.default_rng(0)
    violated = 0
    for _ in range(500):
        labels = rng.integers(3, size=5).astype(float)
        a, b = rng.normal(size=(2, 5))
        loss = SLAM("ndcg")
        violated += loss((a + b) / 2, labels)[0] > (loss(a, labels)[0] + loss(b, labels)[0]) / 2 + 1e-9
    assert violated > 0


@claim("SLAM", "13 s4.2")
@given(lists(most=12), st.sampled_from(MEASURES), st.sampled_from([0.0, 0.5]))
def test_the_gradient_is_no_longer_than_two(list_, measure, fraction):
    _, gradient = SLAM(measure, fraction=fraction)(*list_)
    assert np.abs(gradient).sum() <= 2.0 + 1e-12


@claim("SLAM", "15 s4.2")
@given(lists(most=10), st.sampled_from(MEASURES), st.integers(0, 2**31))
def test_exchanging_documents_of_one_grade_changes_nothing(list_, measure, seed):
    scores, labels = list_
    rng = np.random.default_rng(seed)
    p = np.arange(len(scores))
    for grade in np.unique(labels):
        members = np.flatnonzero(labels == grade)
        p[members] = rng.permutation(members)
    assert SLAM(measure)(scores[p], labels)[0] == pytest.approx(SLAM(measure)(scores, labels)[0])


@given(lists(most=10), st.sampled_from([0.01, 0.3, 0.5, 1.0]), st.sampled_from([0.5, 1.0]))
def test_the_fraction_averages_hinges_over_the_top_of_the_lower_documents(list_, fraction, margin):
    scores, labels = list_
    surrogate = SLAM("ndcg", margin, fraction)
    v = surrogate.weights(scores, labels)
    expected = 0.0
    for i in range(len(scores)):
        lower = np.sort(scores[labels < labels[i]])[::-1]
        if len(lower):
            top = lower[: max(1, int(np.ceil(fraction * len(lower))))]
            expected += v[i] * np.maximum(0.0, margin + top - scores[i]).mean()
    assert surrogate(scores, labels)[0] == pytest.approx(expected, abs=1e-9)


@given(lists(most=10), st.sampled_from(MEASURES))
def test_the_smallest_fraction_is_the_maximum(list_, measure):
    scores, labels = list_
    v = SLAM(measure).weights(scores, labels)
    one = SLAM(measure).at(scores, labels, v)
    other = SLAM(measure, fraction=1e-9).at(scores, labels, v)
    assert one[0] == pytest.approx(other[0])
    if len(set(scores)) == len(scores):  # of tied documents either may be charged: both are subgradients
        assert one[1] == pytest.approx(other[1])


@pytest.mark.parametrize("surrogate", [SLAM(m, 0.5, f) for m in MEASURES for f in (0.0, 0.4)], ids=str)
def test_slam_passes_the_checks(surrogate):
    check_surrogate(surrogate, margin=0.5, convex=False)  # convex only with frozen weights


@claim("SLAM", "39 Eq.29")
def test_the_worst_pair_passes_the_checks():
    """Among them: it lies above its tangents, so that the gradient is a subgradient."""
    check_surrogate(WorstPair(0.5), margin=0.5)


def test_the_other_surrogates_pass_the_checks():
    check_surrogate(ListNet())
    check_surrogate(ClassificationHinge())


def test_listnet_is_the_cross_entropy_whatever_the_scores():
    scores, labels = np.array([3.0, -1.0, 0.5]), np.array([0.0, 2.0, 1.0])
    P = np.exp(scores) / np.exp(scores).sum()
    Y = np.exp(labels) / np.exp(labels).sum()
    loss, gradient = ListNet()(scores, labels)
    assert loss == pytest.approx(-(Y * np.log(P)).sum())
    assert gradient == pytest.approx(P - Y)
    loss, gradient = ListNet()(np.array([1e300, -1e300]), np.array([0.0, 700.0]))
    assert np.isfinite(gradient).all()
    assert loss == pytest.approx(2e300)


@given(lists(most=12))
def test_kernels_equal_their_python_twins(list_):
    scores, labels = list_
    one, two = np.empty((2, len(scores)))
    if labels.any():
        for measure, k in ((0, 3), (0, 0), (1, 0)):
            documents, starts, values = grades_seen(labels, measure == 1)
            v = slam_weights(starts, values, measure, k)
            assert v == pytest.approx(slam_weights.py_func(starts, values, measure, k))
            ideal = ideal_order(scores, documents, starts, len(v))
            assert (ideal == ideal_order.py_func(scores, documents, starts, len(v))).all()
            below = best_below(scores, extremes(scores, documents, starts)[1])
            for kernel, arguments in ((slam, (starts, below, ideal, v, 1.0)),
                                      (slam_fraction, (documents, starts, ideal, v, 1.0, 0.4))):  # fmt: skip
                assert kernel(scores, *arguments, one) == pytest.approx(kernel.py_func(scores, *arguments, two))
                assert one == pytest.approx(two)
            for fraction in (0.0, 0.4):
                fast = slam_round(scores, labels, measure, k, 1.0, fraction, one)
                assert fast == pytest.approx(slam_round.py_func(scores, labels, measure, k, 1.0, fraction, two))
                assert one == pytest.approx(two)
        for kernel, arguments in ((worst_pair, (1.0,)), (listnet, ())):
            assert kernel(scores, labels, *arguments, one) == pytest.approx(
                kernel.py_func(scores, labels, *arguments, two)
            )
            assert one == pytest.approx(two)


def test_ap_takes_grades_only_as_stated():
    scores, graded, binary = np.array([0.0, 1.0]), np.array([2.0, 0.0]), np.array([1.0, 0.0])
    assert SLAM("ap")(scores, graded)[0] == SLAM("ap", binarise=False)(scores, binary)[0]
    with pytest.raises(DataError, match="AP needs labels 0 and 1"):
        SLAM("ap", binarise=False)(scores, graded)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("mrr",), "defined for ndcg"), (("ndcg:trec",), "defined for"), (("ndcg@0",), "cut-off"),
     (("ndcg", 0.0), "margin"), (("ndcg", 1.0, 1.5), "fraction"), (("ndcg", 1.0, -0.1), "fraction")],
)  # fmt: skip
def test_what_slam_is_not_defined_for_is_refused(arguments, words):
    with pytest.raises(DataError, match=words):
        SLAM(*arguments)


@pytest.mark.parametrize("k", [0, 1, 10, 32, 33])
@pytest.mark.parametrize("relevant", [4, 31, 90, 161, 400])
def test_the_ideal_order_of_long_lists_whichever_way_it_is_found(relevant, k):
    rng = np.random.default_rng(relevant)
    labels = rng.permutation(np.concatenate((rng.integers(1, 4, relevant), np.zeros(20)))).astype(float)
    scores = rng.integers(-3, 4, len(labels)) / 2.0
    documents, starts, values = by_grade(labels)
    v = slam_weights(starts, values, 0, k)
    best_first = sorted(range(len(labels)), key=lambda i: (-labels[i], -scores[i], i))[: k or relevant]
    wanted = [i for i in best_first if labels[i] > 0.0]
    assert ideal_order(scores, documents, starts, len(v)).tolist() == wanted


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-800.0, 0.0)))
def test_exponentials_are_right_to_the_last_bit_but_one(values):
    found, twin = np.empty((2, len(values)))
    exponentials(values, 0.0, found)
    exponentials.py_func(values, 0.0, twin)
    expected = np.exp(values)
    assert (abs(found - expected) <= 2.0 * np.spacing(expected) + 4e-308).all()
    assert found == pytest.approx(twin, rel=1e-15)
