"""`ranktron certify`."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click

from ranktron.cli.options import DATA, as_json, null_option, read_data, strict_option, table_options
from ranktron.cli.output import print_json, print_table, show_activity


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@null_option
@table_options
@strict_option
@as_json
def certify(model: str, data: str, null: str | None, as_json: bool) -> None:
    """Check the training of MODEL on DATA against theoretical bounds.

    Replays the run that the model records, on the data it was trained on.

    Example: ranktron certify my.model train.txt
    """
    from ranktron.theory.certificates import certify as certify_run
    from ranktron.training.model import load

    loaded = load(model)
    rounds = read_data(data, null, loaded, part="train")
    with show_activity("replaying the run"):
        certificate = certify_run(loaded, rounds)
    margin = certificate.margin if isfinite(certificate.margin) else None
    if as_json:
        content: dict[str, Any] = {
            "rounds": certificate.rounds, "mistakes": certificate.mistakes, "measure": certificate.measure,
            "metric_loss": certificate.metric_loss, "surrogate_loss": certificate.surrogate_loss,
            "radius": certificate.radius, "v_max": certificate.v_max, "margin": margin,
            "separable": certificate.margin > 0.0, "shards": certificate.shards,
            "weighted_loss": certificate.weighted_loss,
        }  # fmt: skip
        content["lines"] = [{**vars(line), "holds": line.holds} for line in certificate.lines]
        print_json(content)
        return
    separable = "not separable" if certificate.margin == 0.0 else f"separable, best margin {certificate.margin:.4g}"
    print_table(f"{model}: {certificate.rounds:,} rounds on {data}", ["", ""], [
        ("mistakes", certificate.mistakes),
        (f"cumulative loss of {certificate.measure}", certificate.metric_loss),
        *([("the same, weighted by shards", certificate.weighted_loss)] if certificate.shards > 1 else []),
        ("cumulative surrogate loss", certificate.surrogate_loss),
        ("longest feature vector (R)", certificate.radius),
        ("largest ratio of weights (v_max)", certificate.v_max),
        ("data", separable),
    ])  # fmt: skip
    words = {True: "holds", False: "VIOLATED", None: "does not apply"}
    rows = [
        (line.statement, "" if line.observed is None else line.observed, "" if line.bound is None else line.bound,
         words[line.holds] + (f": {line.why_not}" if line.why_not else ""))
        for line in certificate.lines
    ]  # fmt: skip
    print_table("", ["theorem", "observed", "bound", ""], rows)
