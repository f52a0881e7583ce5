"""The three losses of Agarwal and Collins against their formulas, pair by pair."""

import numpy as np
import pytest

from ranktron import DataError, Rounds
from ranktron.kernels.grades import grades
from ranktron.learners.batch.rank_mm_losses import (
    LOSSES,
    average_pairs,
    loss_code,
    lower_counts,
    vertex,
    worst_document,
    worst_margin_pair,
)
from ranktron.learners.batch.rank_svm import Objective
from ranktron.learners.checks import check_surrogate
from ranktron.surrogates import PairwiseHinge
from reproduction.theory.rank_mm import MarginLoss

claim = pytest.mark.claim
KERNELS = average_pairs, worst_margin_pair, worst_document


def random_lists(seed=0, repeats=30):
    rng = np.random.default_rng(seed)
    for m in (2, 3, 5, 8, 21):
        for _ in range(repeats):
            labels = rng.choice([0.0, 1.0, 2.0, 3.5], size=m) if rng.random() < 0.7 else rng.random(m)
            yield rng.normal(scale=rng.choice([0.1, 1.0, 5.0]), size=m), labels


def hinges(scores, labels):
    """ℓ_jk for y_j > y_k as a table; nan where there is no pair."""
    s, y = scores, labels
    table = np.maximum(0.0, (y[:, None] - y[None, :]) - (s[:, None] - s[None, :]))
    return np.where(y[:, None] > y[None, :], table, np.nan)


def plain_loss(name, scores, labels):
    table = hinges(scores, labels)
    if np.isnan(table).all():
        return 0.0
    if name == "average":
        return np.nanmean(table)
    if name == "max":
        return np.nanmax(table)
    return max(np.nanmean(column) for column in table.T if not np.isnan(column).all())


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_their_formulas(name):
    for scores, labels in random_lists():
        loss, gradient = MarginLoss(name)(scores, labels)
        assert loss == pytest.approx(plain_loss(name, scores, labels), abs=1e-12)
        assert loss == pytest.approx(gradient @ (scores - labels), abs=1e-12)
        assert gradient.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_surrogates(name):
    check_surrogate(MarginLoss(name), margin=1.0)


def test_a_loss_that_does_not_exist_is_named():
    with pytest.raises(DataError, match="average or max or max-average, not 'median'"):
        MarginLoss("median")


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_equal_their_python(kernel):
    for scores, labels in random_lists(1, repeats=3):
        codes, count = grades(labels)
        if count > 1:
            fast, slow = np.empty(len(labels)), np.empty(len(labels))
            a = scores - labels
            parts = np.linspace(0.5, 2.0, len(a))
            assert kernel(a, codes, count, parts, fast) == pytest.approx(kernel.py_func(a, codes, count, parts, slow))
            assert fast == pytest.approx(slow)
            assert lower_counts(codes, count).tolist() == lower_counts.py_func(codes, count).tolist()


@pytest.mark.parametrize(("name", "kernel"), list(zip(LOSSES, KERNELS, strict=True)))
def test_the_code_of_a_loss_is_that_of_its_kernel(name, kernel):
    (fast, same), a = np.empty((2, 3)), np.array([0.5, -1.0, 0.25])
    asked = a, np.array([0, 1, 2]), 3, np.array([1.0, 2.0, 1.0])
    assert vertex(loss_code(name), *asked, same) == kernel(*asked, fast)
    assert same.tolist() == fast.tolist()


@claim("RANKMM", "1 s2")
def test_the_hinge_bounds_the_number_of_misranked_pairs():
    for scores, labels in random_lists(2):
        above = (labels[:, None] > labels[None, :]) & (scores[:, None] < scores[None, :])
        assert PairwiseHinge()(scores, labels)[0] >= above.sum()


def pair_losses(name, scores, labels):
    """The loss of every pair of a list by itself, from a list of these two documents: [(j, k, loss)]."""
    better = np.argwhere(labels[:, None] > labels[None, :])
    return [(j, k, MarginLoss(name)(scores[[j, k]], labels[[j, k]])[0]) for j, k in better]


@claim("RANKMM", "2 s2")
@pytest.mark.parametrize("name", LOSSES)
def test_the_weighted_hinge_bounds_the_weighted_misranking(name):
    for scores, labels in random_lists(3, repeats=8):
        charged = {}
        for j, k, loss in pair_losses(name, scores, labels):
            charged.setdefault(k, []).append((labels[j] - labels[k]) * (scores[j] < scores[k]))
            assert loss >= charged[k][-1] - 1e-12
        if charged:  # and so does the mean or the maximum over the list
            every = np.concatenate(list(charged.values()))
            bounded = {
                "average": every.mean(),
                "max": every.max(),
                "max-average": max(np.mean(one) for one in charged.values()),
            }[name]
            assert MarginLoss(name)(scores, labels)[0] >= bounded - 1e-12


@claim("RANKMM", "3 s3.2")
def test_the_loss_is_what_the_ranking_margin_lacks():
    for scores, labels in random_lists(4, repeats=8):
        for name in LOSSES:
            for j, k, loss in pair_losses(name, scores, labels):
                lead = labels[j] - labels[k]
                margin = min(scores[j] - scores[k], lead)  # section 3.2
                assert loss == pytest.approx(lead - margin, abs=1e-12)
        binary = (labels > 0.5).astype(float)
        pairs = binary[:, None] > binary[None, :]
        if pairs.any():
            smallest = np.minimum(scores[:, None] - scores[None, :], 1.0)[pairs].min()
            assert MarginLoss("max")(scores, binary)[0] == pytest.approx(1.0 - smallest)


@claim("RANKMM", "4 Eq.1")
def test_rank_svm_is_equation_1():
    rng = np.random.default_rng(5)
    lists = Rounds.from_arrays(rng.normal(size=(12, 3)), rng.integers(3, size=12), group=[3, 9])
    w, C = rng.normal(size=3), 7.0
    violations = []
    for round in lists:
        s, y = round.X.astype(float) @ w, round.labels
        violations += [max(0.0, 1.0 - (s[j] - s[k])) for j in range(len(y)) for k in range(len(y)) if y[j] > y[k]]
    expected = 0.5 * w @ w + C * sum(violations) / len(violations)  # Eq. (1)
    assert Objective(lists, C, balance="pair", rounded=1e-7).value(w) == pytest.approx(expected, abs=1e-6)


@claim("RANKMM", "20 s3.3")
def test_the_maximum_of_averages_charges_errors_at_the_top_more():
    n = 8
    labels = np.arange(n, 0.0, -1.0)
    costs = {name: [] for name in ("average", "max-average")}
    for place in range(1, n):  # the document at this place moves up by one
        scores = 10.0 * labels
        scores[place] = scores[place - 1] + 1.0
        for name, row in costs.items():
            row.append(MarginLoss(name)(scores, labels)[0])
    assert costs["max-average"] == pytest.approx([2.0 / place for place in range(1, n)])
    assert np.ptp(costs["average"]) == pytest.approx(0.0)
