"""What a parameter is where nobody chooses: each value is written here, once, and nowhere else.

`PAPER` is what the papers print. The functions of `ranktron.learners` compose algorithms as printed, and read their
signatures from it. `RECOMMENDED` is what differs in estimators, commands and service, chosen on validation queries of
seven data sets (docs/choosing.md has the table). Nothing is imported here, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS = ("recommended", "paper")

_PAIRS = {"alpha_bound": 1.0, "selective": 0, "pairs_per_query": 0}
_MEMBERS = {"size": 30, "combine": "average", "weights": "metric", "subcommittee": 0}

PAPER: Mapping[str, Mapping[str, Any]] = {
    "slam": {
        "metric": "ndcg@10",
        "eta": 0.1,
        "margin": 1.0,
        "fraction": 0.0,
        "binarise": True,
        "step": "constant",
        "average": False,
    },
    "minimax": {"eta": 1.0, "average": False},
    "listnet": {"eta": 0.1, "step": "sqrt", "average": False},
    "hinge": {"eta": 1.0, "margin": 1.0, "average": False},
    "topk": {
        "surrogate": "ranksvm",
        "k": 2,
        "setting": "paper",
        "explore": 0.0,
        "eta": 0.0,
        "radius": 0.0,
        "shortlist": 0,
        "epsilon": 0.01,
        "floor": 0.0,
        "answered": 1.0,
        "highest": 0.0,
        "strict": False,
        "seed": 0,
        "average": True,
        "exploration_price": 1.0,
        "residual": False,
    },
    "pdgd": {"eta": 0.1, "decay": 0.9999977, "k": 10, "seed": 0, "average": False, "exploration_price": 1.0},
    "predtron": {
        "representation": "-i^1.1",
        "loss": "ndcg",
        "variant": "standard",
        "norm": "l2",
        "eta": 0.1,
        "step": "constant",
        "radius": 1.0,
        "documents": 0,
        "highest": 0,
        "average": False,
    },
    "pairwise": {"output": "average", **_PAIRS},
    "committee": {**_MEMBERS, "metric": "ndcg@10", **_PAIRS},
    "ranksvm": {"C": 1.0, "loss": "squared", "balance": "query", "tol": 1e-6, "max_iter": 1000},
    "smoothrank": {"k": 10, "C": 10.0, "max_iter": 50},
    "rankboost": {"n_rounds": 300, "balance": "pair"},
    "rankmm": {
        "loss": "average",
        "C": 1.0,
        "step": "exact",
        "tol": 1e-4,
        "max_iter": 1000,
        "max_seconds": 0.0,
        "eta": 0.01,
        "corners": 20,
        "early_stopping": False,
        "memory": 4.0,
        "average": False,
    },
    "kernel": {
        "kernel": "rbf",
        "budget": 2000,
        "metric": "ndcg@10",
        "update": "slam",
        "removal": "auto",
        "eta": 0.1,
        "gamma": 0.0,
        "degree": 2,
        "constant": 1.0,
        "margin": 1.0,
        "fraction": 0.0,
        "megabytes": 0.0,
        "average": False,
        "output": "last",
        **_MEMBERS,
        "selective": 0,
        "pairs_per_query": 0,
    },
}

RECOMMENDED: Mapping[str, Mapping[str, Any]] = {
    "slam": {"eta": 0.3, "fraction": 0.7, "step": "sqrt", "average": True},
    "minimax": {"average": True, "n_epochs": 30},
    "listnet": {"eta": 0.03, "average": True},
    "hinge": {"eta": 0.1, "average": True},
    # its steps are for features in [0, 1]
    "topk": {
        "setting": "recommended",
        "explore": -1.0,
        "floor": -1.0,
        "residual": True,
        "scale": "minmax",
        "n_epochs": 30,
    },
    "predtron": {"average": True},
    "rankboost": {"scale": None},
}
"""Where the recommended value is another one than the paper's."""

HOW: Mapping[str, Mapping[str, Any]] = {
    "recommended": {"n_epochs": 10, "shuffle": True, "scale": "auto"},
    "paper": {"n_epochs": 10, "shuffle": True, "scale": None},
}
"""How estimators pass over the data, and what they do to the features first."""

RENAMED: Mapping[str, Mapping[str, str]] = {"topk": {"preset": "setting"}}
"""Parameters that users know under another name than files and definitions, which 0.1.0 could read as well."""


def find_preset(name: str, word: str) -> dict[str, Any]:
    """All values of a preset for an algorithm: its parameters, and how it is trained.

    >>> find_preset("hinge", "paper")
    {'n_epochs': 10, 'shuffle': True, 'scale': None, 'eta': 1.0, 'margin': 1.0, 'average': False}
    """
    differing = RECOMMENDED.get(name, {}) if word == PRESETS[0] else {}
    return {**HOW[word], **PAPER[name], **differing}
