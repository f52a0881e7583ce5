import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError
from ranktron.checks import check_surrogate
from ranktron.surrogates import MeanPairwiseHinge, PairwiseHinge
from ranktron.surrogates.pairwise_hinge import _pairwise_hinge


def slow_pairwise_hinge(scores, labels, margin):
    loss, gradient, pairs = 0.0, np.zeros(len(scores)), 0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                pairs += 1
                slack = margin + (scores[j] - scores[i])
                if slack > 0.0:
                    loss += slack
                    gradient[i] -= 1.0
                    gradient[j] += 1.0
    return loss, gradient, pairs


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([0.1, 1.0, 3.0]))
def test_the_fast_pairwise_hinge_equals_the_slow_one(seed, m, margin):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, size=m) * rng.choice([0.5, 1.0, np.pi])  # many ties, and pairs right at the margin
    labels = rng.integers(5, size=m) * rng.choice([1.0, 0.3])
    loss, gradient, pairs = slow_pairwise_hinge(scores, labels, margin)
    fast, fast_gradient = PairwiseHinge(margin)(scores, labels)
    assert fast == pytest.approx(loss, abs=1e-9)
    assert fast_gradient.tolist() == gradient.tolist()
    mean, mean_gradient = MeanPairwiseHinge(margin)(scores, labels)
    assert mean == pytest.approx(loss / max(pairs, 1), abs=1e-9)
    assert mean_gradient == pytest.approx(gradient / max(pairs, 1))
    twin = np.empty(m)
    assert _pairwise_hinge.py_func(scores, labels, margin, twin) == pytest.approx((fast, pairs))
    assert (twin == fast_gradient).all()


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
