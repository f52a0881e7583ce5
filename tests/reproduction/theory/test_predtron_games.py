"""Section 6: what comes out and what does not, with error bars over at least 20 seeds (fewer points than the page)."""

import numpy as np
import pytest

from ranktron import DataError
from reproduction.theory.predtron_games import (
    GaussianLists,
    SparseLists,
    grade_by_thresholds,
    held_out_loss,
    section_6_learner,
    train_once,
    varying_documents,
    varying_features,
    varying_lists,
    varying_sparsity,
)


def claim(item):
    return pytest.mark.claim("PREDTRON", item)


def test_grades_follow_the_thresholds():
    m = 6
    scores = np.array([0.51, 0.49, 0.3, 0.21, 0.18, 0.1])
    zeta = [np.inf, *[1.0 / j for j in range(2, m + 1)], -np.inf]
    expected = [m - next(j for j in range(1, m + 1) if zeta[j] <= s <= zeta[j - 1]) for s in scores]
    assert grade_by_thresholds(scores).tolist() == expected == [5, 4, 3, 2, 1, 0]


def test_the_smallest_lists_that_are_allowed():
    for data in (GaussianLists(documents=2, features=2), SparseLists(documents=2, features=1, relevant=1, grades=2)):
        ((X, labels),) = data.draw(1, 0)
        assert X.shape == (2, data.features)
        assert set(labels) <= {0.0, 1.0}


def test_lists_are_seeded_and_parts_differ():
    for data in (GaussianLists(documents=5), SparseLists(features=20)):
        first, again, other = data.draw(3, 0), data.draw(3, 0), data.draw(3, 1)
        assert all((a[0] == b[0]).all() for a, b in zip(first, again, strict=True))
        assert (first[0][0] != other[0][0]).any()
        for X, labels in first:
            assert labels.max() < len(X)
            better = labels[:, None] > labels[None, :]
            lead = (X @ data.ranker)[:, None] - (X @ data.ranker)[None, :]
            assert (lead[better] > 0.0).all()  # w* orders every list
    assert np.abs(SparseLists().ranker).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianLists(documents=1001),
        lambda: GaussianLists(noise=0.0),
        lambda: SparseLists(relevant=0),
        lambda: SparseLists(documents=3, grades=5),
    ],
)
def test_impossible_data_is_refused(make):
    with pytest.raises(DataError):
        make()


def test_untrained_is_worst_and_w_star_is_perfect():
    data = GaussianLists(documents=8)
    held = data.draw(30, 1)
    learner = section_6_learner(data.features, "-i")
    assert held_out_loss(learner, held) > 0.2
    before = held_out_loss(train_once(learner, data.draw(50, 0)), held)
    assert before < 0.05
    learner.W = data.ranker
    assert held_out_loss(learner, held) == 0.0


@claim("46 Fig1a")
def test_steep_representations_learn_from_fewer_lists():
    curves = varying_lists((20, 60), seeds=20, held_out=60)
    flat, low = curves.mean("1/i")[1], curves.error("1/i")[1]
    for name in ("-i^1.1", "-i^2"):
        value, error = curves.mean(name)[1], curves.error(name)[1]
        assert value + error < 0.004  # near 0 after 60 lists
        assert flat - low > value + error  # clearly below 1/i
        assert curves.mean(name)[0] > value


def test_longer_lists():
    """Where the documents stand at fixed points the loss grows with the length, for every representation.

    f2 and f3 lose more than f1 there: their steps go to the last places, the loss to the first. Where the means lie on
    the line of w* they are below f1. Settings with both are rare: a row of the report counts them.
    """
    data = GaussianLists(wander=1.0, noise=0.05)
    curves = varying_documents((3, 10, 20, 40), data=data, seeds=20, held_out=30)
    for name in curves.losses:
        short, _, _, long = curves.mean(name)
        assert short < 0.01
        assert long - curves.error(name)[3] > short + curves.error(name)[0]
    assert curves.mean("1/i")[3] < curves.mean("-i^1.1")[3] < curves.mean("-i^2")[3]
    line = varying_documents((20, 40), seeds=20, held_out=30)
    for i in range(2):
        for name in ("-i^1.1", "-i^2"):
            assert line.mean(name)[i] + line.error(name)[i] < line.mean("1/i")[i] - line.error("1/i")[i]


@claim("48 Fig1c")
def test_the_l1_margin_hardly_notices_features_that_do_not_matter():
    curves = varying_features((30, 1000), seeds=20, held_out=30)
    l1, l2 = curves.mean("l1"), curves.mean("l2")
    assert l2[1] > 5.0 * l2[0]
    assert l1[1] < 2.5 * l1[0]
    assert l1[1] + curves.error("l1")[1] < l2[1] - curves.error("l2")[1]


@claim("48 Fig1c")
def test_the_l2_margin_does_not_care_for_sparsity():
    curves = varying_sparsity((1, 300), seeds=20, held_out=30)
    l1, l2 = curves.mean("l1"), curves.mean("l2")
    assert l2[1] == pytest.approx(l2[0], rel=0.25)
    assert l1[0] < 0.3 * l2[0]
    assert l1[1] > 2.0 * l2[1]
