"""The default parameters of 0.1.0, frozen, for files that do not store all parameters.

Version 0.1.0 wrote definitions and models with only those parameters that a user had chosen. What such a file leaves
out has the value in this table for ever, so that a later default never changes a stored ranker. A parameter that is new
in a later version gets a row here, too: the value with which rankers behave as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STORED_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "slam": {
        "metric": "ndcg@10",
        "eta": 0.1,
        "margin": 1.0,
        "fraction": 0.0,
        "binarise": True,
        "step": "constant",
        "average": False,
    },
    "minimax": {
        "eta": 1.0,
        "average": False,
    },
    "listnet": {
        "eta": 0.1,
        "step": "sqrt",
        "average": False,
    },
    "hinge": {
        "eta": 1.0,
        "margin": 1.0,
        "average": False,
    },
    "topk": {
        "surrogate": "ranksvm",
        "k": 2,
        "setting": "recommended",
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
    "pdgd": {
        "eta": 0.1,
        "decay": 0.9999977,
        "k": 10,
        "seed": 0,
        "average": False,
        "exploration_price": 1.0,
    },
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
    "pairwise": {
        "output": "average",
        "alpha_bound": 1.0,
        "selective": 0,
        "pairs_per_query": 0,
    },
    "committee": {
        "size": 30,
        "combine": "average",
        "weights": "metric",
        "metric": "ndcg@10",
        "subcommittee": 0,
        "alpha_bound": 1.0,
        "selective": 0,
        "pairs_per_query": 0,
    },
    "ranksvm": {
        "C": 1.0,
        "loss": "squared",
        "balance": "query",
        "tol": 1e-06,
        "max_iter": 1000,
    },
    "smoothrank": {
        "k": 10,
        "C": 10.0,
        "max_iter": 50,
    },
    "rankboost": {
        "n_rounds": 300,
        "balance": "pair",
    },
    "rankmm": {
        "loss": "average",
        "C": 1.0,
        "step": "exact",
        "tol": 0.0001,
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
        "size": 30,
        "combine": "average",
        "weights": "metric",
        "subcommittee": 0,
        "selective": 0,
        "pairs_per_query": 0,
    },
    "linear": {},
}

ADDED: Mapping[str, frozenset[str]] = {"topk": frozenset({"exploration_price", "residual"})}
"""The parameters of an algorithm of 0.1.0 that are newer than it."""
