"""Cells of Predtron's section 6: the loss on test lists, for one seed, as {name: losses}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.theory.predtron_games import (
    Curves,
    GaussianLists,
    varying_documents,
    varying_features,
    varying_lists,
    varying_sparsity,
)


def more_lists(x: Sequence[int], seed: int) -> Any:
    """Plot (a)."""
    return _losses(varying_lists(x, seeds=[seed]))


def longer_lists(x: Sequence[int], features: int, noise: float, wander: float, seed: int, first: int = 0) -> Any:
    """Plot (b): the documents' means on the line of w*, or scattered around it; seeds count from `first`."""
    data = GaussianLists(features=features, wander=wander, noise=noise)
    return _losses(varying_documents(x, data=data, seeds=[first + seed]))


def more_features(x: Sequence[int], seed: int) -> Any:
    """Plot (c) by its text."""
    return _losses(varying_features(x, seeds=[seed]))


def less_sparse(x: Sequence[int], seed: int) -> Any:
    """Plot (c) by its caption."""
    return _losses(varying_sparsity(x, seeds=[seed]))


def _losses(curves: Curves) -> Any:
    return {name: table[:, 0].tolist() for name, table in curves.losses.items()}
