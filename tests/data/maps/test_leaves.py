"""Trees are grown as a slow search over all splits grows them, and their leaves are what rows hold."""

from dataclasses import replace

import numpy as np
import pytest

from ranktron import DataError, Rounds
from ranktron.data.maps import Leaves
from ranktron.data.maps.bins import Bins
from ranktron.data.maps.leaves import CANDIDATES, MIN_DOCUMENTS, RIDGE, SHRINKAGE
from ranktron.data.synthetic import WebSearch
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model

LISTS = WebSearch(features=4, documents=15).rounds(30)


def slow_tree(X, rest, edges, depth):
    """One tree as {node: (feature, threshold)}, by trying every edge, and the leaf of each document."""
    found, nodes = {}, np.zeros(len(X), int)
    for node in range(2**depth - 1):
        inside = nodes == node
        best, split = 1e-9, (0, np.inf)
        n, total = inside.sum(), rest[inside].sum()
        for j in range(X.shape[1]):
            for edge in edges[j][np.isfinite(edges[j])]:
                right = inside & (X[:, j] >= edge)
                rights, sums = right.sum(), rest[right].sum()
                if rights < MIN_DOCUMENTS or n - rights < MIN_DOCUMENTS:
                    continue
                gain = sums**2 / (rights + RIDGE) + (total - sums) ** 2 / (n - rights + RIDGE) - total**2 / (n + RIDGE)
                if gain > best + 1e-12:
                    best, split = gain, (j, edge)
        found[node] = split
        nodes[inside] = 2 * node + 1 + (X[inside, split[0]] >= split[1])
    return found, nodes - (2**depth - 1)


def test_trees_are_those_of_a_slow_search():
    recipe = Leaves(5, depth=2, share=1.0)
    fitted = recipe.fit(LISTS)
    mapped = fitted(LISTS.X)
    assert (mapped.columns.reshape(-1, 9)[:, :4] == np.arange(4)).all()
    leaves = mapped.columns.reshape(-1, 9)[:, 4:] - 4
    rest = LISTS.labels - np.repeat([r.labels.mean() for r in LISTS], np.diff(LISTS.offsets))
    edges = Bins(CANDIDATES).fit(LISTS).edges
    splits = 0
    for t in range(5):
        found, own = slow_tree(LISTS.X, rest, edges, 2)
        for node, (feature, threshold) in found.items():
            assert (fitted.features[t, node], fitted.thresholds[t, node]) == (feature, threshold)
            splits += np.isfinite(threshold)
        assert (leaves[:, t] == 4 * t + own).all()
        for leaf in range(4):
            rest[own == leaf] -= SHRINKAGE * rest[own == leaf].sum() / ((own == leaf).sum() + RIDGE)
    assert splits > 10


def test_half_of_the_queries_grow_the_trees():
    drawn = np.sort(np.random.default_rng(3).permutation(30)[:15])
    fitted, other = Leaves(4, seed=3).fit(LISTS), Leaves(4, seed=4).fit(LISTS)
    alone = Leaves(4, share=1.0).fit(LISTS[drawn])
    assert (fitted.features == alone.features).all()
    assert (fitted.thresholds == alone.thresholds).all()
    assert (fitted.thresholds != other.thresholds).any()


def test_rows_hold_the_features_and_one_leaf_of_each_tree():
    fitted = Leaves(6).fit(LISTS)
    dense = fitted(LISTS.X).dense()
    assert dense.shape == (len(LISTS.X), fitted.n_outputs) == (len(LISTS.X), 4 + 6 * 8)
    assert (dense[:, :4] == LISTS.X).all()
    assert (dense[:, 4:].reshape(len(dense), 6, 8).sum(axis=2) == 1.0).all()


def test_contributions_add_up_and_name_the_features_that_split():
    fitted = Leaves(8, depth=2).fit(LISTS)
    w = np.random.default_rng(0).normal(size=fitted.n_outputs)
    parts = fitted.contributions(LISTS.X, w)
    assert parts.sum(axis=1) == pytest.approx(fitted(LISTS.X).score(w))
    # one tree that asks for feature 1 first, then for 2 on the right: worth (1, 1), (3, 7)
    tree = replace(fitted, features=np.array([[1, 0, 2]]), thresholds=np.array([[0.0, np.inf, 5.0]], np.float32))
    w = np.array([0.0, 0.0, 0.0, 10.0, 1.0, 1.0, 3.0, 7.0])
    found = tree.contributions(np.array([[0, 1, 6, 2], [0, -1, 6, 0]], np.float32), w)
    root = 3.0 / 4
    assert found == pytest.approx(np.array([[0, 2, 2, 20], [0, -2, 0, 0]]) + root)
    assert tree.spans(w) == pytest.approx([0.0, 4.0, 4.0, 10.0])


def test_features_that_count_together_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)).astype(np.float32)
    lists = Rounds.from_arrays(X, (X[:, 0] * X[:, 1] > 0.0).astype(float), group=[10] * 300)
    train_part, test = lists[:200], lists[200:]
    values = {}
    for map in (None, "bins-linear:8", "leaves:20"):
        model = train(TrainingPlan("listnet", schedule=Schedule(3), scaling="standard", map=map), train_part).model
        values[map] = evaluate(test, model.score_rounds(test), "ndcg@10").means["ndcg@10"]
    assert values["leaves:20"] > max(values[None], values["bins-linear:8"]) + 0.1
    kept = Model.from_bytes(model.to_bytes())
    assert kept.score_rounds(test).tolist() == model.score_rounds(test).tolist()
    explained = kept.explain(test[0].X)
    assert explained.contributions.sum(axis=1) == pytest.approx(explained.scores)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"trees": 0}, "number of trees"), ({"depth": 9}, "at most"), ({"share": 0.0}, "share"), ({"depth": 0}, "depth")],
)
def test_what_grows_nothing_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        Leaves(**given)
