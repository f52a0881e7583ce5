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
    """The actions of experiments, one per route and method."""
    experiments = service.experiments

    def document_format(name: str) -> tuple[Sequence[str], bool]:
        """The names of the arms' features, and whether values may be missing."""
        live = [arm.live for arm in experiments.find(name).arms]
        return live[0].names, all(each.template.imputer is not None for each in live)

    def rank(request: t.ExperimentRankRequest, name: str) -> Any:
        count = len(request.documents)
        large = count * len(document_format(name)[0]) > 2 * AT_ONCE and count <= service.config.max_documents
        return rank_large(name, request) if large else experiments.rank(name, request)

    async def rank_large(name: str, request: t.ExperimentRankRequest) -> Any:
        before = document_format(name)
        documents = await read_in_turns(request.documents, *before)
        if document_format(name) != before:  # a model was replaced meanwhile
            return experiments.rank(name, request)
        return experiments.rank(name, structs.replace(request, documents=documents))

    def feedback(request: FeedbackRequest, name: str) -> Any:
        return experiments.feedback(name, request)

    def create(request: t.ExperimentDefinition, name: str) -> Any:
        return experiments.create(name, request)

    ranked, counted, post = t.ExperimentRankAnswer, t.ExperimentFeedbackAnswer, "POST"
    rank_title, feedback_title = "Rank a list for a user of an experiment", "Send feedback on a round of an experiment"
    get_title, promote_title = "An experiment and its verdict", "Show the winner to all users, or make it the incumbent"
    delete_title, put_title = "Delete an experiment; its rankers stay", "Compare rankers on live traffic"
    return [
        Action(post, f"{_ONE}/rank", rank_title, "rank", t.ExperimentRankRequest, ranked, rank),
        Action(post, f"{_ONE}/feedback", feedback_title, "feedback", FeedbackRequest, counted, feedback),
        Action("GET", "/v1/experiments", "All experiments", "rank", None, t.ExperimentsAnswer, experiments.all),
        Action("PUT", _ONE, put_title, "admin", t.ExperimentDefinition, t.ExperimentAnswer, create),
        Action("GET", _ONE, get_title, "rank", None, t.ExperimentAnswer, experiments.answer),
        Action("DELETE", _ONE, delete_title, "admin", None, None, experiments.delete),
        Action(post, f"{_ONE}/promote", promote_title, "admin", None, t.ExperimentAnswer, experiments.promote),
    ]
