import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError
from ranktron.kernels.grades import by_grade
from ranktron.learners.checks import check_surrogate
from ranktron.learners.mistakes import Misclassified, Misordered, MisorderedBinary
from ranktron.surrogates import (
    KL,
    SLAM,
    CalibratedSquared,
    ClassificationHinge,
    ListNet,
    MeanPairwiseHinge,
    PairwiseHinge,
    SmoothDCG,
    Squared,
    WorstPair,
)
from ranktron.surrogates.pairwise_hinge import _hinge_by_comparison, _hinge_by_sorting


def slow_pairwise_hinge(scores, labels, margin):
    loss, gradient, pairs, paying = 0.0, np.zeros(len(scores)), 0, 0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                pairs += 1
                slack = margin + (scores[j] - scores[i])
                if slack > 0.0:
                    paying += 1
                    loss += slack
                    gradient[i] -= 1.0
                    gradient[j] += 1.0
    return loss, gradient, pairs, paying


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([0.1, 1.0, 3.0]))
def test_the_fast_pairwise_hinge_equals_the_slow_one(seed, m, margin):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, size=m) * rng.choice([0.5, 1.0, np.pi])  # many ties, and pairs right at the margin
    labels = rng.integers(5, size=m) * rng.choice([1.0, 0.3])
    loss, gradient, pairs, paying = slow_pairwise_hinge(scores, labels, margin)
    fast, fast_gradient = PairwiseHinge(margin)(scores, labels)
    assert fast == pytest.approx(loss, abs=1e-9)
    assert fast_gradient.tolist() == gradient.tolist()
    mean, mean_gradient = MeanPairwiseHinge(margin)(scores, labels)
    assert mean == pytest.approx(loss / max(pairs, 1), abs=1e-9)
    assert mean_gradient == pytest.approx(gradient / max(pairs, 1))
    documents, starts, _ = by_grade(labels)
    for count in (_hinge_by_comparison, _hinge_by_comparison.py_func, _hinge_by_sorting, _hinge_by_sorting.py_func):
        twin = np.empty(m)
        assert count(scores, documents, starts, margin, twin) == paying
        assert twin.tolist() == gradient.tolist()


def test_long_lists_are_sorted_and_not_compared():
    """400 × 400 pairs: more than are compared one by one."""
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=800), np.repeat([1.0, 0.0], 400)
    slack = 0.5 + scores[None, 400:] - scores[:400, None]
    loss, paying = slack.clip(0.0).sum(), slack > 0.0
    gradient = np.concatenate([-paying.sum(axis=1), paying.sum(axis=0)])
    fast, fast_gradient = PairwiseHinge(0.5)(scores, labels)
    assert fast == pytest.approx(loss, rel=1e-12)
    assert fast_gradient.tolist() == gradient.tolist()
    mean, mean_gradient = MeanPairwiseHinge(0.5)(scores, labels)
    assert mean == pytest.approx(loss / 160_000, rel=1e-12)
    assert mean_gradient == pytest.approx(gradient / 160_000)


@pytest.mark.parametrize("surrogate", [PairwiseHinge(0.5), MeanPairwiseHinge(2.0)])
def test_every_surrogate_passes_the_checks(surrogate):
    check_surrogate(surrogate, margin=surrogate.margin)


def test_the_checks_can_fail():
    hinge = PairwiseHinge()
    broken = {
        "slope": lambda s, y: (hinge(s, y)[0], -hinge(s, y)[1]),
        "tangent": lambda s, y: (-hinge(s, y)[0], -hinge(s, y)[1]),
        "order of the documents": lambda s, y: (s @ np.arange(len(s)), np.arange(len(s)) * 1.0),
        "has loss": lambda s, y: (hinge(s, y)[0] + 1.0, hinge(s, y)[1]),
    }
    for words, surrogate in broken.items():
        with pytest.raises(AssertionError, match=words):
            check_surrogate(surrogate, margin=1.0 if words == "has loss" else None)


@pytest.mark.parametrize("margin", [0.0, -1.0, np.nan, np.inf])
def test_a_margin_is_positive(margin):
    for surrogate in (PairwiseHinge, MeanPairwiseHinge):
        with pytest.raises(DataError, match="margin"):
            surrogate(margin)


EVERY_RULE = [
    *(S() for S in (CalibratedSquared, ClassificationHinge, KL, ListNet, MeanPairwiseHinge, PairwiseHinge)),
    *(SLAM(), SLAM("ap"), SmoothDCG(), Squared(), WorstPair(), Misclassified(), Misordered(), MisorderedBinary()),
]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=repr)
def test_scores_and_labels_come_in_pairs_of_any_kind_of_number(rule):
    scores, labels = np.array([1.0, 2.0, 0.5]), np.array([1.0, 0.0, 1.0])
    wanted = rule(scores, labels)
    for kind in (np.float32, list, lambda numbers: np.repeat(numbers, 2)[::2]):
        assert repr(rule(kind(scores), kind(labels))) == repr(wanted)
    for short, wrong in (((2, 5), "2 scores, but 5 labels"), ((5, 2), "5 scores, but 2 labels")):
        with pytest.raises(DataError, match=wrong):
            rule(np.zeros(short[0]), np.ones(short[1]))
    with pytest.raises(DataError, match="document 1 has nan"):
        rule(scores, np.array([1.0, np.nan, 0.0]))
    with pytest.raises(DataError, match="scores are one number"):
        rule([["a"]], labels)


@pytest.mark.parametrize("k", [-1, "a", None, 1.5])
def test_a_cut_off_is_a_whole_number(k):
    with pytest.raises(DataError, match="whole number"):
        Misordered(k)
