"""The routes of experiments."""

from __future__ import annotations

from typing import Any

from ranktron.service.endpoint import Action
from ranktron.service.experiments import types as t
from ranktron.service.service import RankingService
from ranktron.service.types import FeedbackRequest

_ONE = "/v1/experiments/{name}"


def experiment_actions(service: RankingService) -> list[Action]:
    """Everything that can be asked of experiments."""
    experiments = service.experiments

    def rank(request: t.ExperimentRankRequest, name: str) -> Any:
        return experiments.rank(name, request)

    def feedback(request: FeedbackRequest, name: str) -> Any:
        return experiments.feedback(name, request)

    def make(request: t.ExperimentDefinition, name: str) -> Any:
        return experiments.create(name, request)

    shown, counted, post = t.ExperimentRankAnswer, t.ExperimentFeedbackAnswer, "POST"
    show, count = "Show a page of an experiment to a user", "Count what came back about a page of an experiment"
    one, promote = "An experiment, with its verdict", "Show the winner to everyone, or make it the incumbent"
    delete, put = "End an experiment; its rankers stay", "Compare rankers on live traffic"
    return [
        Action(post, f"{_ONE}/rank", show, "rank", t.ExperimentRankRequest, shown, rank),
        Action(post, f"{_ONE}/feedback", count, "feedback", FeedbackRequest, counted, feedback),
        Action("GET", "/v1/experiments", "All experiments", "rank", None, t.ExperimentsAnswer, experiments.all),
        Action("PUT", _ONE, put, "admin", t.ExperimentDefinition, t.ExperimentAnswer, make),
        Action("GET", _ONE, one, "rank", None, t.ExperimentAnswer, experiments.answer),
        Action("DELETE", _ONE, delete, "admin", None, None, experiments.delete),
        Action(post, f"{_ONE}/promote", promote, "admin", None, t.ExperimentAnswer, experiments.promote),
    ]
