"""Kernelized learners: the updates of another learner in dual form, with a kernel and a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, MARGIN, PAIRS, SLAM_PAPER, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.kernelized.learner import KernelLearner


@declare(
    "kernel",
    Parameter("kernel", "linear, poly, or rbf (Gaussian)", "rbf", choices=("linear", "poly", "rbf")),
    Parameter("budget", "maximum number of remembered documents; 0: no limit", 2000, above=-1),
    Parameter("metric", "what slam and predtron optimise, and what counts as a mistake", "ndcg@10"),
    Parameter(
        "update",
        "learner whose updates are made: slam, minimax, hinge, listnet, pairwise or predtron",
        "slam",
        choices=("slam", "minimax", "hinge", "listnet", "pairwise", "predtron"),
    ),
    Parameter(
        "removal",
        "when the budget is full: remove the oldest, a random or the smallest document, or project onto "
        "the others; auto: smallest, projection with average",
        "auto",
        choices=("auto", "oldest", "random", "smallest", "projection"),
    ),
    replace(ETA, paper=0.1),
    Parameter("gamma", "width of the kernel; 0: one over the number of features", 0.0, above=-1.0),
    Parameter("degree", "degree of poly", 2, above=0),
    Parameter("constant", "constant of poly", 1.0, above=-1e-9),
    MARGIN,
    Parameter("fraction", "share of the lower-graded documents that slam compares with; 0: the best-scored one", 0.0),
    Parameter("megabytes", "budget in megabytes, in addition to the one in documents; 0: none", 0.0, above=-1.0),
    replace(AVERAGE, help="use the average of all hypotheses instead of the last one"),
    *PAIRS[1:],
    estimator="KernelPerceptron",
    summary="updates of another learner in dual form: with a kernel, and a budget of remembered documents",
    paper=SLAM_PAPER,
    about="""
    A mistake-driven learner in dual form: it remembers documents, and a kernel bends what it learns from them.

    Not linear: there are no weights `coef_`.
    """,
    example='kernel="rbf", n_epochs=3',
)
def kernel_perceptron(n_features: int, p: Parameters) -> KernelLearner:
    """Composes a kernel, an update, and a budget with its removal rule.

    `selective` and `pairs_per_query` are for the update `pairwise`, as in `pairwise_perceptron`.

    Examples
    --------
    >>> kernel_perceptron(136, update="pairwise", average=True, megabytes=1.0).support.budget.bytes
    1000000.0
    """
    import numpy as np

    from ranktron.learners.kernelized.budget import UNLIMITED
    from ranktron.learners.kernelized.functions import make_kernel
    from ranktron.learners.kernelized.learner import KernelLearner, make_removal, make_update
    from ranktron.learners.pairwise.outputs import Average, Last

    output = Average() if p.average else Last()
    return KernelLearner(
        n_features,
        make_update(p),
        make_kernel(p.kernel, n_features, p.gamma, p.degree, p.constant),
        p.budget or UNLIMITED,
        make_removal(p.removal, output),
        output,
        p.selective,
        p.megabytes * 1e6 or np.inf,
    )
