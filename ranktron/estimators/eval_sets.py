"""The validation set of a fit, in the forms in which scikit-learn's neighbours give it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ranktron.errors import DataError

UNGROUPED_EVAL_SET = (
    "the validation set has no query ids: pass eval_qid= (one id per row) or eval_group= (sizes of lists); eval_qid=0 "
    "says that all of its rows are one list"
)


class EvalSet(NamedTuple):
    """Features, labels, and query ids or sizes of lists."""

    X: Any
    y: Any
    qid: Any
    group: Any


def first_eval_set(eval_set: Any, eval_qid: Any, eval_group: Any, **only_with_it: Any) -> EvalSet | None:
    """The validation set, None where there is none; what means something only with one is then refused.

    LightGBM and PyTerrier give lists of parts, others a single pair: of a list the first part is the one that counts.

    >>> first_eval_set([([[1.0]], [0])], [["a"]], None)
    EvalSet(X=[[1.0]], y=[0], qid=['a'], group=None)
    """
    if eval_set is None:
        for name, value in only_with_it.items():
            if value is not None:
                raise DataError(
                    f"{name}= is about a validation set: pass eval_set=(X, y) and eval_qid=, or leave it out"
                )
        return None
    if isinstance(eval_set, list):
        parts = (eval_set, eval_qid, eval_group)
        eval_set, eval_qid, eval_group = (p[0] if p is not None and len(p) else None for p in parts)
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise DataError("eval_set must be a pair (X, y), or a list of them; query ids go into eval_qid")
    return EvalSet(*eval_set, eval_qid, eval_group)
