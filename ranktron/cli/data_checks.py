"""What commands say about data before they learn from them or measure on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ranktron.errors import DataError, warn

if TYPE_CHECKING:
    from ranktron.data.io.columns import Roles
    from ranktron.data.rounds import Rounds
    from ranktron.metrics import Evaluation


def report_columns(name: str, roles: Roles, judgments: str | None = None) -> None:
    """Says which columns of a table are label, query and document, and how many are features."""
    features = f"{len(roles.features):,} feature{'s' if len(roles.features) > 1 else ''}"
    features += f" ({', '.join(roles.categorical)} categorical)" if roles.categorical else ""
    label = repr(roles.label) if judgments is None else f"from {judgments}"
    doc = "none" if roles.doc is None else repr(roles.doc)
    click.echo(f"{name}: label {label}, query {roles.query!r}, document {doc}, {features}", err=True)


def refuse_uninformative(name: str, rounds: Rounds, consequence: str) -> None:
    """Refuses data without a query in which documents have different labels."""
    from ranktron.data.query_warnings import count_uninformative

    single, equal = count_uninformative(rounds)
    if single + equal < len(rounds):
        return
    reasons = [f"{single:,} with a single document"] if single else []
    reasons += [f"{equal:,} with the same label everywhere"] if equal else []
    raise DataError(
        f"{name}: {consequence}, since no query has documents with different labels ({', '.join(reasons)}): name the "
        "columns of the query id (--query) and of the label (--label), or check the labels"
    )


def warn_below_random(name: str, evaluation: Evaluation, chance: Mapping[str, float]) -> None:
    """Warns if a model is worse than a random order, beyond the interval of its values."""
    from ranktron.metrics import metric

    if len(evaluation.qids) == 1:
        return
    for each, random in chance.items():
        low, high = evaluation.interval(each)
        if high < random if metric(each).higher_is_better else low > random:
            warn(
                f"{name}: {each} of the model is {evaluation.means[each]:.4f}, worse than {random:.4f} of a random "
                "order: do high labels mean relevant here as in the training data, and are the features the same?"
            )
            return
