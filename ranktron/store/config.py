"""Settings of the store, each with its default, its limits and a description."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0.0)]


class StoreConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of rankers and experiments, and the retention of their rounds and versions.

    >>> StoreConfig().max_open
    1000000
    """

    max_open: Annotated[Count, Meta(description="open rounds of a ranker; the oldest beyond this are dropped")] = (
        1_000_000
    )
    open_bytes: Annotated[
        Count,
        Meta(description="bytes of all open rounds; beyond this the oldest of the largest ranker are dropped"),
    ] = 500_000_000
    open_seconds: Annotated[Seconds, Meta(description="how long a round stays open for feedback")] = 7 * 86400.0
    received: Annotated[
        Count,
        Meta(description="top documents of a round that may be labelled, if the learner has no k of its own"),
    ] = 10
    explained: Annotated[int, Meta(ge=0, description="top documents of a round that are stored for explanations")] = 10
    explained_rounds: Annotated[
        int, Meta(ge=0, description="answered rounds of a ranker that can still be explained, and get further gains")
    ] = 1_000
    remembered: Annotated[
        Count, Meta(description="answered rounds of a ranker whose feedback is recognised when it is repeated")
    ] = 10_000
    snapshot_every: Annotated[Count, Meta(description="journal entries between two snapshots of a ranker")] = 5_000
    versions: Annotated[int, Meta(ge=2, description="snapshots of a ranker that are kept, to roll back to")] = 10
    max_rankers: Annotated[Count, Meta(description="rankers")] = 100
    max_documents: Annotated[Count, Meta(description="documents of a list")] = 1_000
    max_features: Annotated[Count, Meta(description="features of a ranker")] = 1_000
    max_weights: Annotated[Count, Meta(description="weights of a ranker whose model has a feature map")] = 10_000
    max_k: Annotated[Count, Meta(description="the largest k that a ranker may ask for")] = 50
    max_waiting: Annotated[Count, Meta(description="writes that may wait for the disk at one time")] = 10_000

    @property
    def max_remembered(self) -> int:
        """The number of answered rounds held in memory, explainable ones included."""
        return max(self.remembered, self.explained_rounds)
