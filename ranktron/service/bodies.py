"""Bodies of requests as a client writes them, with nothing but the standard library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Documents = Mapping[str, Sequence[float] | Mapping[str, float]]
"""{id: features}; features as a list in the ranker's order, or as {name: value}."""


def encode_documents(documents: Documents) -> list[dict[str, Any]]:
    """Documents as requests have them.

    >>> encode_documents({"a": [1, 2]})
    [{'id': 'a', 'features': [1.0, 2.0]}]
    """
    return [
        {"id": name, "features": dict(features) if isinstance(features, Mapping) else [float(x) for x in features]}
        for name, features in documents.items()
    ]


def encode_feedback(
    round: int,
    labels: Mapping[str, float] | None,
    clicks: Sequence[str] | None,
    gains: Mapping[str, float] | None,
    carry: str | None = None,
) -> dict[str, Any]:
    """Feedback as requests have it.

    >>> encode_feedback(7, None, ["a"], None)
    {'round': 7, 'clicks': ['a']}
    """
    told = {
        "labels": None if labels is None else dict(labels),
        "clicks": None if clicks is None else list(clicks),
        "gains": None if gains is None else dict(gains),
        "carry": carry,
    }
    return {"round": round, **{key: value for key, value in told.items() if value is not None}}
