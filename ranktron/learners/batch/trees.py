"""Sums of regression trees: LambdaMART, grown by LightGBM, and scored and explained without it.

The nodes of a tree lie one after the other, each before its children, the left child first: node i goes left, to i + 1,
where x_feature <= threshold, and otherwise to `right`. A leaf has feature -1 and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, MissingExtra
from ranktron.kernels.csr_rows import Sparse, as_dense, check_features
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.schedule import Fit
from ranktron.types import Features, Feedback, Floats, Integers, Matrix, Ranking, State

_BLOCK = 4096  # sparse rows that are dense at one time
_LARGE = 10_000_000  # values; of fewer LightGBM's threads wait for each other longer than they work
_STATE = ("roots", "features", "right", "thresholds", "values", "covers")


@jit
def _add_trees(
    X: Matrix, roots: Integers, features: Integers, right: Integers, thresholds: Floats, values: Floats, scores: Floats
) -> None:
    for i in range(X.shape[0]):
        for t in range(roots.shape[0]):
            node = roots[t]
            while features[node] >= 0:
                node = node + 1 if X[i, features[node]] <= thresholds[node] else right[node]
            scores[i] += values[node]


@jit
def _add_shapley_values(
    row: Matrix, features: Integers, right: Integers, parents: Integers, thresholds: Floats, values: Floats,
    covers: Floats, path: Integers, work: Floats, found: Floats,
) -> None:  # fmt: skip
    """Adds the Shapley values of all features, leaf by leaf, to `found`.

    On the way to a leaf a feature has `taken`, 1 if the row takes its branches and else 0, and `share`, the share of
    the training documents that take them. The leaf counts for a set of known features by the product of `taken` of
    those in the set and `share` of the others. `products[s]` is the sum of these products over all sets of s features.
    """
    taken, share, products, without = work[0], work[1], work[2], work[3]
    for leaf in range(features.shape[0]):
        if features[leaf] >= 0:
            continue
        length, node = 0, leaf
        while parents[node] >= 0:
            above = parents[node]
            k = 0
            while k < length and path[k] != features[above]:
                k += 1
            if k == length:
                path[k], taken[k], share[k] = features[above], 1.0, 1.0
                length += 1
            if (row[features[above]] <= thresholds[above]) == (node == right[above]):
                taken[k] = 0.0
            share[k] *= covers[node] / covers[above]
            node = above
        products[0] = 1.0
        for k in range(length):
            products[k + 1] = products[k] * taken[k]
            for s in range(k, 0, -1):
                products[s] = products[s] * share[k] + products[s - 1] * taken[k]
            products[0] *= share[k]
        for k in range(length):
            # `without[s]`: the same sums without feature k; one of the two recursions can always be turned round
            if taken[k] == 0.0:
                for s in range(length):
                    without[s] = products[s] / share[k]
            else:
                without[length] = 0.0
                for s in range(length, 0, -1):
                    without[s - 1] = products[s] - share[k] * without[s]
            weight, total = 1.0 / length, 0.0  # s! (length - 1 - s)! / length!
            for s in range(length):
                total += weight * without[s]
                if s + 1 < length:
                    weight *= (s + 1.0) / (length - 1.0 - s)
            found[path[k]] += total * (taken[k] - share[k]) * values[leaf]


@dataclass(eq=False)
class TreeEnsemble(BaseLearner):
    """Scores with a sum of regression trees; does not learn online.

    `constant` is the mean score of the training documents, and `contributions` are the Shapley values of the features,
    which add up to the rest of a score (Lundberg et al., Consistent Individualized Feature Attribution for Tree
    Ensembles, 2018).

    Examples
    --------
    >>> trees = TreeEnsemble(1)
    >>> leaves = {"values": [0.0, -1.0, 3.0], "covers": [4.0, 3.0, 1.0]}
    >>> trees.restore({"roots": [0], "features": [0, -1, -1], "right": [2, 0, 0], "thresholds": [0.5, 0, 0], **leaves})
    >>> X = np.array([[0.0], [1.0]], np.float32)
    >>> trees.predict(X), trees.constant, trees.contributions(X).ravel()
    (array([-1.,  3.]), 0.0, array([-1.,  3.]))
    """

    n_features: int
    rounds: int = field(default=0, init=False)
    constant: float = field(default=0.0, init=False)
    roots: Integers = field(init=False, repr=False)  # the first node of each tree
    features: Integers = field(init=False, repr=False)
    right: Integers = field(init=False, repr=False)
    thresholds: Floats = field(init=False, repr=False)
    values: Floats = field(init=False, repr=False)
    covers: Floats = field(init=False, repr=False)  # the number of training documents at each node

    learns_online = False
    linear = False

    def __post_init__(self) -> None:
        self.roots, self.features, self.right = (np.zeros(0, np.int64) for _ in range(3))
        self.thresholds, self.values, self.covers = (np.zeros(0) for _ in range(3))

    def scores(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        scores = np.zeros(len(X))
        for first in range(0, len(X), _BLOCK):
            rows = as_dense(X[first : first + _BLOCK])
            _add_trees(
                rows, self.roots, self.features, self.right, self.thresholds, self.values,
                scores[first : first + _BLOCK],
            )  # fmt: skip
        return scores

    predict = scores

    def contributions(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        dense, found = as_dense(X), np.zeros(X.shape)
        for first, last in self._trees():
            nodes, parents = slice(first, last), self._parents(first, last)
            right = self.right[nodes] - first
            longest = last - first + 1  # no path has more features
            path, work = np.empty(longest, np.int64), np.empty((4, longest + 1))
            for row, own in zip(dense, found, strict=True):
                _add_shapley_values(
                    row, self.features[nodes], right, parents, self.thresholds[nodes], self.values[nodes],
                    self.covers[nodes], path, work, own,
                )  # fmt: skip
        return found

    def _trees(self) -> Iterator[tuple[int, int]]:
        ends = [*self.roots[1:].tolist(), len(self.features)]
        return zip(self.roots.tolist(), ends, strict=False)

    def _parents(self, first: int, last: int) -> Integers:
        """The parent of each node of a tree; -1 for the root."""
        parents = np.full(last - first, -1)
        inner = np.flatnonzero(self.features[first:last] >= 0)
        parents[inner + 1] = parents[self.right[first:last][inner] - first] = inner
        return parents

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        raise DataError("trees are grown on a whole data set and cannot learn online: train them again")

    def state(self) -> State:
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: State) -> None:
        roots, features, right = (np.array(state[name], np.int64) for name in _STATE[:3])
        thresholds, values, covers = (np.array(state[name], float) for name in _STATE[3:])
        check_trees(roots, features, right, self.n_features)
        same = features.shape == right.shape == thresholds.shape == values.shape == covers.shape
        finite = same and np.isfinite(thresholds).all() and np.isfinite(values).all() and np.isfinite(covers).all()
        if not finite or not (covers > 0.0).all():
            raise DataError("the state does not hold trees: their thresholds, values and covers must be finite")
        self.roots, self.features, self.right = roots, features, right
        self.thresholds, self.values, self.covers = thresholds, values, covers
        leaves = features < 0
        totals = np.repeat(covers[roots], np.diff([*roots, len(features)]))
        self.constant = float(np.sum((values * covers / totals)[leaves]))


def check_trees(roots: Integers, features: Integers, right: Integers, n_features: int) -> None:
    """Refuses nodes in which a kernel could run for ever or read elsewhere: children follow their parents.

    >>> check_trees(np.array([0]), np.array([0, -1]), np.array([2, 0]), 1)
    Traceback (most recent call last):
    ranktron.errors.DataError: the state does not hold trees of 1 feature: their nodes do not fit together
    """
    if not _fits(roots, features, right, n_features):
        width = f"{n_features} feature{'s' * (n_features != 1)}"
        raise DataError(f"the state does not hold trees of {width}: their nodes do not fit together")


def _fits(roots: Integers, features: Integers, right: Integers, n_features: int) -> bool:
    n = len(features)
    if not (roots.ndim == features.ndim == right.ndim == 1 and len(right) == n and (len(roots) > 0) == (n > 0)):
        return False
    ends = np.append(roots, n)[1:]
    if not ((roots < ends).all() and (features >= -1).all() and (features < n_features).all()):
        return False
    last = np.repeat(ends, ends - roots)
    if len(last) != n:  # the first tree does not start at node 0
        return False
    inner = np.flatnonzero(features >= 0)
    left, other = inner + 1, right[inner]
    if not ((left < other) & (other < last[inner])).all():
        return False
    placed = np.bincount(np.concatenate([roots, left, other]), minlength=n)
    return bool((placed == 1).all())  # each node is the root or one child


def first_trees(state: State, count: int) -> State:
    """The state with the first trees only.

    >>> state = {"roots": np.array([0, 1])} | {name: np.array([-1, -1]) for name in _STATE[1:]}
    >>> first_trees(state, 1)["features"], first_trees(state, 5)["roots"]
    (array([-1]), array([0, 1]))
    """
    roots = np.asarray(state["roots"])
    nodes = roots[count] if count < len(roots) else len(state["features"])
    return {name: state[name][: count if name == "roots" else nodes] for name in _STATE}


def fit_lambda_mart(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Adds trees to those of `start`; the validation set chooses how many are kept."""
    fit.refuse_document_weights()
    history, trees = fit.history, TreeEnsemble(fit.rounds.n_features)
    if fit.start:
        trees.restore(fit.start)
    history.first_epoch = history.epoch = len(trees.roots)
    grown = _nodes_of(trees)
    valid = None if fit.validation is None else fit.validation.rounds
    scores = np.zeros(0) if valid is None else trees.scores(valid.X)
    with fit.running():
        booster = _open_booster(fit, parameters, trees)
        for number in range(parameters["n_rounds"]):
            if fit.finished or booster.update():  # true: no tree would help
                break
            history.epoch, history.rounds = history.epoch + 1, history.rounds + fit.queries
            grown.append(_flatten(booster.dump_model(start_iteration=number, num_iteration=1)))
            if valid is not None:
                np.add(scores, _as_ensemble(grown[-1:], trees.n_features).scores(valid.X), out=scores)
            fit.evaluate(lambda _valid: scores, lambda: history.epoch)
    kept = fit.best() or history.epoch
    return _as_ensemble(grown[:kept], trees.n_features).state()


def _open_booster(fit: Fit, parameters: Mapping[str, Any], start: TreeEnsemble) -> Any:
    try:
        import lightgbm
    except ModuleNotFoundError:
        raise MissingExtra("growing trees", "trees") from None
    rounds, lengths = fit.rounds, np.diff(fit.rounds.offsets)
    grades, codes = np.unique(rounds.labels, return_inverse=True)  # LightGBM takes whole numbers and their gains
    options = {
        "objective": "lambdarank",
        "label_gain": (np.exp2(grades) - 1.0).tolist(),
        "num_leaves": parameters["num_leaves"],
        "learning_rate": parameters["learning_rate"],
        "min_data_in_leaf": parameters["min_data_in_leaf"],
        "seed": fit.schedule.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1 if rounds.X.shape[0] * rounds.X.shape[1] < _LARGE else 0,  # 0: all; the trees are the same
        "verbosity": -1,
    }
    weights = None if fit.weights is None else np.repeat(fit.weights, lengths)
    scores = start.scores(rounds.X) if len(start.roots) else None
    data = lightgbm.Dataset(_matrix(rounds), codes, weight=weights, group=lengths, init_score=scores, params=options)
    try:
        return lightgbm.Booster(options, data)
    except lightgbm.basic.LightGBMError as error:
        raise DataError(f"LightGBM cannot learn from these queries: {error}") from None


def _matrix(rounds: Rounds) -> Any:
    if not isinstance(rounds.X, Sparse):
        return rounds.X
    from scipy.sparse import csr_matrix

    own = rounds.X.trimmed()
    return csr_matrix((own.written_values(), own.columns, own.starts), shape=own.shape)


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of one tree, numbered from 0."""

    features: list[int]
    right: list[int]
    thresholds: list[float]
    values: list[float]
    covers: list[float]


def _nodes_of(trees: TreeEnsemble) -> list[Tree]:
    found = []
    for first, last in trees._trees():
        nodes, inner = slice(first, last), trees.features[first:last] >= 0
        right = np.where(inner, trees.right[nodes] - first, 0)
        columns = trees.features[nodes], right, trees.thresholds[nodes], trees.values[nodes], trees.covers[nodes]
        found.append(Tree(*(column.tolist() for column in columns)))
    return found


def _flatten(dumped: Mapping[str, Any]) -> Tree:
    """The tree in a dump of a model with one tree."""
    tree = Tree([], [], [], [], [])
    # nodes whose place is not known yet, with the parent of which they are the right child, or -1
    waiting: list[tuple[Mapping[str, Any], int]] = [(dumped["tree_info"][0]["tree_structure"], -1)]
    while waiting:
        node, parent = waiting.pop()
        if parent >= 0:
            tree.right[parent] = len(tree.features)
        inner = "split_feature" in node
        tree.features.append(node["split_feature"] if inner else -1)
        tree.right.append(0)
        tree.thresholds.append(node["threshold"] if inner else 0.0)
        tree.values.append(0.0 if inner else node["leaf_value"])
        tree.covers.append(node["internal_count"] if inner else node.get("leaf_count") or 1)
        if inner:
            waiting.append((node["right_child"], len(tree.features) - 1))
            waiting.append((node["left_child"], -1))
    return tree


def _as_ensemble(trees: Sequence[Tree], n_features: int) -> TreeEnsemble:
    sizes = [len(tree.features) for tree in trees]
    roots = np.cumsum([0, *sizes])[:-1]
    ensemble = TreeEnsemble(n_features)

    def column(of: Callable[[Tree], Sequence[float]]) -> list[float]:
        return [value for tree in trees for value in of(tree)]

    right = [at + first for tree, first in zip(trees, roots, strict=True) for at in tree.right]
    ensemble.restore(
        {
            "roots": roots,
            "features": column(lambda tree: tree.features),
            "right": right,
            "thresholds": column(lambda tree: tree.thresholds),
            "values": column(lambda tree: tree.values),
            "covers": column(lambda tree: tree.covers),
        }
    )
    return ensemble
