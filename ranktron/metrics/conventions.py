"""The conventions of evaluation tools: the choices in which their NDCG and other metrics differ, as a table.

One row per convention. `docs/metrics.md` shows this table, and a test compares the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

GAINS = ("2^r - 1", "r")
DISCOUNTS = ("1/log2(i + 1)", "1, then 1/log2(i)")
SHORT = ("pad", "truncate", "zero")
TIES = ("worst", "line", "docid", "average")

HIGHEST_ERR_GRADE = 4.0
"""ERR needs to know the highest grade there can be; 4, as in TREC's gdeval and in RankLib."""

HIGHEST_EXPONENT = 1000.0
"""Labels above this would overflow 2^r − 1."""

SUMS = frozenset({"dcg", "inversions"})
"""Metrics that add up and are not divided by anything: a query without relevant documents has 0, whatever the tool."""


@dataclass(frozen=True)
class Convention:
    """The choices that a metric's name leaves open.

    Parameters
    ----------
    gain : "2^r - 1" or "r"
        The gain of a document of grade r in DCG.
    discount : "1/log2(i + 1)" or "1, then 1/log2(i)"
        The discount of rank i.
    ties : "worst", "line", "docid" or "average"
        How documents with equal scores are ordered.
    empty : float
        The value of a query without relevant documents (0 for sums: DCG and inversions).
    short : "pad", "truncate" or "zero"
        A query with fewer than k documents: padded with irrelevant ones, k reduced to their number, or value 0.
    tool : str
        Whose choices these are.
    measured : tuple of str
        The metrics that the tool itself has; the convention extends to the others.
    only : bool
        Whether the convention is limited to `measured`.
    exceptions : mapping
        Metrics for which the tool's `empty` differs.

    Examples
    --------
    >>> CONVENTIONS["letor"].empty_of("ndcg")
    0.0
    """

    gain: str
    discount: str
    ties: str
    empty: float
    short: str
    tool: str
    measured: tuple[str, ...]
    only: bool = False
    exceptions: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def empty_of(self, name: str) -> float:
        """The value of the metric `name` for a query without relevant documents.

        Parameters
        ----------
        name : str
            A metric, such as ndcg.
        """
        return 0.0 if name in SUMS else self.exceptions.get(name, self.empty)


EXPONENTIAL, LINEAR = GAINS
LOG, LETOR = DISCOUNTS

CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        "paper": Convention(
            EXPONENTIAL,
            LOG,
            "worst",
            1.0,
            "pad",
            "the papers' loss accounting",
            ("ndcg", "map", "mrr", "p", "rprec", "bpref", "rankeff", "inversions"),
        ),
        "letor": Convention(
            EXPONENTIAL, LETOR, "line", 0.0, "zero", "LETOR's evaluation script", ("ndcg", "dcg", "map", "p")
        ),
        "trec": Convention(
            LINEAR,
            LOG,
            "docid",
            0.0,
            "pad",
            "trec_eval, pytrec_eval",
            ("ndcg", "map", "mrr", "p", "recall", "rprec", "bpref"),
        ),
        "sklearn": Convention(
            LINEAR, LOG, "average", 0.0, "pad", "scikit-learn", ("ndcg", "dcg", "map", "auc"), only=True
        ),
        "lightgbm": Convention(
            EXPONENTIAL,
            LOG,
            "line",
            1.0,
            "truncate",
            "LightGBM, XGBoost",
            ("ndcg", "map", "p"),
            exceptions=MappingProxyType({"p": 0.0}),
        ),
        "ranklib": Convention(
            EXPONENTIAL, LOG, "line", 0.0, "truncate", "RankLib", ("ndcg", "dcg", "map", "mrr", "err", "p")
        ),
    }
)

ALIASES: Mapping[str, str] = MappingProxyType({"xgboost": "lightgbm"})

DEFAULT = "paper"
