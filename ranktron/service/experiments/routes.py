"""The routes of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from ranktron.service.http.endpoint import Action, read_in_turns
from ranktron.service.service import RankingService
from ranktron.store.experiments import types as t
from ranktron.store.rankers.features import AT_ONCE
from ranktron.store.types import FeedbackRequest

_ONE = "/v1/experiments/{name}"


def experiment_actions(service: RankingService) -> list[Action]:
    """Everything that can be asked of experiments."""
    experiments = service.experiments

    def form(name: str) -> tuple[Sequence[str], bool]:
        """How the arms take documents: the names of their features, and whether any may be missing."""
        live = [arm.live for arm in experiments.find(name).arms]
        return live[0].names, all(each.template.imputer is not None for each in live)

    def rank(request: t.ExperimentRankRequest, name: str) -> Any:
        count = len(request.documents)
        large = count * len(form(name)[0]) > 2 * AT_ONCE and count <= service.config.max_documents
        return rank_large(name, request) if large else experiments.rank(name, request)

    async def rank_large(name: str, request: t.ExperimentRankRequest) -> Any:
        before = form(name)
        documents = await read_in_turns(request.documents, *before)
        if form(name) != before:  # a model was replaced meanwhile
            return experiments.rank(name, request)
        return experiments.rank(name, structs.replace(request, documents=documents))

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
