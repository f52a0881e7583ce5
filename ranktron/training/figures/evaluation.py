"""What an evaluation said, as a section of the page that explains a model."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ranktron.data.rounds import Rounds
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.baselines import best_feature, random_means
from ranktron.training.model import Model


class MetricRow(NamedTuple):
    """A metric of a model, with its 95 % interval (None for one query), beside those of simple baselines."""

    metric: str
    mean: float
    interval: tuple[float, float] | None
    random: float
    best_feature: float


class EvaluatedModel(NamedTuple):
    """The values of a model on some data, and the feature that ranks them best on its own."""

    queries: int
    empty_queries: int
    rows: tuple[MetricRow, ...]
    feature: str

    @property
    def sentence(self) -> str:
        """How many queries were evaluated, in words."""
        empty = f"{self.empty_queries:,} of them without a relevant document"
        return f"{self.queries:,} quer{'y' if self.queries == 1 else 'ies'}, {empty}"


def evaluate_model(model: Model, rounds: Rounds, metrics: Sequence[Metric]) -> EvaluatedModel:
    """Evaluates a model beside a random order and the best single feature.

    Parameters
    ----------
    model : Model
        The model.
    rounds : Rounds
        The queries, with labels.
    metrics : sequence of Metric
        The metrics; the first one chooses the best feature.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.metrics import metric
    >>> from ranktron.training.fit import TrainingPlan, train
    >>> lists = Separable(features=4).rounds(60)
    >>> evaluated = evaluate_model(train(TrainingPlan("hinge"), lists[:40]).model, lists[40:], [metric("ndcg@10")])
    >>> evaluated.rows[0].mean > evaluated.rows[0].best_feature > evaluated.rows[0].random
    True
    """
    evaluation = evaluate_rounds(rounds, model.score_rounds(rounds), metrics)
    best = best_feature(model.fill(rounds), metrics)
    random = random_means(rounds, metrics)
    rows = tuple(
        MetricRow(
            m, evaluation.means[m], None if len(rounds) == 1 else evaluation.interval(m), random[m], best.means[m]
        )
        for m in map(str, metrics)
    )
    feature = ("" if best.sign > 0 else "-") + model.filled_names[best.column]
    return EvaluatedModel(len(rounds), evaluation.empty_queries, rows, feature)


def evaluation_piece(evaluated: EvaluatedModel) -> str:
    """The table of an evaluation as HTML.

    >>> row = MetricRow("ndcg@10", 0.61, (0.58, 0.64), 0.16, 0.25)
    >>> "<td>0.5800 – 0.6400</td>" in evaluation_piece(EvaluatedModel(100, 0, (row,), "bm25"))
    True
    """
    names = ("metric", "model", "95 % interval", "random", f"best feature ({evaluated.feature})")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><th>{escape(row.metric)}</th><td>{row.mean:.4f}</td><td>{describe_interval(row.interval)}</td>"
        f"<td>{row.random:.4f}</td><td>{row.best_feature:.4f}</td></tr>"
        for row in evaluated.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    note = "The best feature was chosen on these queries, so it is an optimistic baseline."
    return f'<p class="note">{escape(evaluated.sentence)}. {note}</p>\n{table}\n'


def describe_interval(interval: tuple[float, float] | None) -> str:
    """An interval as text, a dash for none.

    >>> describe_interval((0.5, 0.75))
    '0.5000 – 0.7500'
    """
    return "–" if interval is None else f"{interval[0]:.4f} – {interval[1]:.4f}"
