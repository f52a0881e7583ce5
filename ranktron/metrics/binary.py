"""Binary metrics, where a document is relevant if its label is above 0. All take labels in ranked order.

With R relevant and N other documents, r_i the rank of the i-th relevant one and above_i how many others precede it:

    AP      = (1/R) Σ_i i / r_i                 RR      = 1 / r_1
    P@k     = #{r_i <= k} / k                   recall@k = #{r_i <= k} / R        R-precision = P@R
    bpref   = (1/R) Σ_i (1 − min(above_i, R) / min(N, R))
    RankEff = (1/R) Σ_i (1 − above_i / N) = AUC
"""

from ranktron.kernels.jit import jit
from ranktron.metrics.gain import cut_off
from ranktron.types import Floats

TRUNCATE_IF_SHORT = 1
ZERO_IF_SHORT = 2


@jit
def count_relevant(labels: Floats, depth: int) -> int:
    """How many of the first `depth` documents are relevant."""
    relevant = 0
    for i in range(depth):
        relevant += labels[i] > 0.0
    return relevant


@jit
def average_precision(labels: Floats, empty: float) -> float:
    """AP of labels in ranked order."""
    hits = 0
    total = 0.0
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            hits += 1
            total += hits / (i + 1)
    return total / hits if hits else empty


@jit
def reciprocal_rank(labels: Floats, empty: float) -> float:
    """1 / rank of the first relevant document."""
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            return 1.0 / (i + 1)
    return empty


@jit
def precision(labels: Floats, k: int, empty: float, short: int) -> float:
    """P@k of labels in ranked order."""
    m = labels.shape[0]
    if count_relevant(labels, m) == 0:
        return empty
    if short == ZERO_IF_SHORT and m < k:
        return 0.0
    hits = count_relevant(labels, cut_off(k, m))
    return hits / (cut_off(k, m) if short == TRUNCATE_IF_SHORT else k)


@jit
def recall(labels: Floats, k: int, empty: float, short: int) -> float:
    """recall@k of labels in ranked order."""
    m = labels.shape[0]
    relevant = count_relevant(labels, m)
    if relevant == 0:
        return empty
    if short == ZERO_IF_SHORT and m < k:
        return 0.0
    return count_relevant(labels, cut_off(k, m)) / relevant


@jit
def r_precision(labels: Floats, empty: float) -> float:
    """Precision at the number of relevant documents."""
    relevant = count_relevant(labels, labels.shape[0])
    return count_relevant(labels, relevant) / relevant if relevant else empty


@jit
def bpref(labels: Floats, empty: float) -> float:
    """Bpref of labels in ranked order; 1 if every document is relevant."""
    relevant = count_relevant(labels, labels.shape[0])
    if relevant == 0:
        return empty
    most = min(labels.shape[0] - relevant, relevant)
    above = 0
    total = 0.0
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            total += 1.0 - min(above, relevant) / most if above else 1.0
        else:
            above += 1
    return total / relevant


@jit
def rank_efficiency(labels: Floats, empty: float) -> float:
    """The share of (relevant, other) pairs in the right order; 1 if every document is relevant."""
    relevant = count_relevant(labels, labels.shape[0])
    if relevant == 0:
        return empty
    pairs = relevant * (labels.shape[0] - relevant)
    above = 0
    wrong = 0
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            wrong += above
        else:
            above += 1
    return 1.0 - wrong / pairs if pairs else 1.0
