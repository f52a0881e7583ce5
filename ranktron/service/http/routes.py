"""The table of routes; the application and its OpenAPI document are built from it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

from msgspec import structs

from ranktron.learners.per_user import MAX_USERS
from ranktron.service.http.endpoint import BYTES, Action, Content, answer_in_turns, read_in_turns
from ranktron.service.ingest import ingestion as i
from ranktron.service.replication.journal_feed import FollowRequest, RoundsRequest, decode_message, encode_message
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.store import messages as m
from ranktron.store.errors import RequestError
from ranktron.store.experiments import messages as e
from ranktron.store.messages import FeedbackRequest
from ranktron.store.rankers.features import MAX_CHUNK
from ranktron.store.rankers.models import NewStart

PAGES = Path(__file__).parents[1] / "pages"
_KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
_PAGE_HEADERS = (
    (b"content-security-policy", _POLICY + b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
_ONE = "/v1/rankers/{name}"
_START: dict[str, dict[str, Any]] = {  # of a model file
    "as": {"type": "string", "description": "online algorithm that starts from the weights of the model file"},
    "trust": {"type": "number", "exclusiveMinimum": 0, "description": "with `as`: how far weights may go from these"},
    "per": {"enum": ["user"], "description": "with `as`: each user has weights of their own on top of everybody's"},
}
_EXPERIMENT = "/v1/experiments/{name}"


def actions(service: RankingService, telemetry: Telemetry) -> list[Action]:
    """All actions, the busiest first."""
    return [
        *_round_actions(service),
        *_ranker_actions(service),
        *_version_actions(service),
        *_read_actions(service),
        *experiment_actions(service),
        *follow_actions(service),
        *_server_actions(service, telemetry),
    ]


def _round_actions(service: RankingService) -> list[Action]:
    def rank(request: m.RankRequest, name: str) -> Any:
        return answer_in_turns(service, service.rank, name, request)

    def feedback(request: m.FeedbackRequest, name: str) -> Any:
        return service.feedback(name, request)

    def full(request: m.FullRequest, name: str) -> Any:
        return answer_in_turns(service, service.full, name, request)

    def many(one: Any) -> Any:
        return lambda request, name: service.batch(request.requests, one, name)

    post = "POST"
    return [
        Action(post, f"{_ONE}/rank", "Rank a list; its round stays open", "rank", m.RankRequest, m.RankAnswer, rank),
        Action(
            post,
            f"{_ONE}/feedback",
            "Learn from labels, clicks or gains of the first k documents of a round",
            "feedback",
            m.FeedbackRequest,
            m.FeedbackAnswer,
            feedback,
        ),
        Action(post, f"{_ONE}/full", "Learn from all labels of a list", "feedback", m.FullRequest, m.FullAnswer, full),
        Action(post, f"{_ONE}/rank/batch", "Rank many lists", "rank", m.RankBatch, m.BatchAnswer, many(service.rank)),
        Action(
            post,
            f"{_ONE}/feedback/batch",
            "Learn from the feedback of many rounds",
            "feedback",
            m.FeedbackBatch,
            m.BatchAnswer,
            many(service.feedback),
        ),
        Action(
            post,
            f"{_ONE}/full/batch",
            "Learn from all labels of many lists",
            "feedback",
            m.FullBatch,
            m.BatchAnswer,
            many(service.full),
        ),
        *_source_actions(service),
    ]


def _source_actions(service: RankingService) -> list[Action]:
    def ingest(request: i.IngestRequest, name: str) -> Any:
        return service.ingestion.take(name, request)

    how, where = "Learn from a source, and advance it, in one transaction", "The position of a source"
    return [
        Action("POST", f"{_ONE}/ingest", how, "feedback", i.IngestRequest, i.IngestAnswer, ingest),
        Action("GET", "/v1/sources/{source}", where, "feedback", None, i.SourceAnswer, service.ingestion.source),
    ]


def _ranker_actions(service: RankingService) -> list[Action]:
    def make(request: m.Definition, name: str, query: dict[str, str]) -> Any:
        if query:
            raise RequestError(422, "bad_query", "`as` and `trust` belong to model files: a definition has fields")
        return service.create(name, request)

    def take(request: bytes, name: str, query: dict[str, str]) -> Any:
        return service.create_from_model(name, request, _new_start(query))

    how = "Make a ranker, from a definition or from a model file"
    return [
        Action("GET", "/v1/rankers", "All rankers", "rank", None, m.RankersAnswer, service.rankers),
        Action("PUT", _ONE, how, "admin", m.Definition, m.RankerAnswer, make, take, _START),
        Action("GET", _ONE, "A ranker", "rank", None, m.RankerAnswer, service.ranker),
        Action("DELETE", _ONE, "Delete a ranker and all it has learnt", "admin", None, None, service.delete),
    ]


def _version_actions(service: RankingService) -> list[Action]:
    def model(name: str) -> Content:
        return Content(service.model(name).to_bytes(), BYTES)

    def start(request: bytes, name: str, query: dict[str, str]) -> Any:
        return service.set_model(name, request, _new_start(query))

    def rollback(request: m.RollbackRequest, name: str) -> Any:
        return service.rollback(name, request)

    def release(name: str, version: str) -> Any:
        return service.release(name, _number(version, "unknown_version", "versions are whole numbers"))

    versions, forget = f"{_ONE}/versions", "Forget a user, and what was learnt from them"
    why = "Start from a trained model, or from its weights"
    return [
        Action("DELETE", f"{_ONE}/users/{{user}}", forget, "admin", None, m.ForgetAnswer, service.forget),
        Action("GET", f"{_ONE}/model", "The model file", "rank", None, bytes, model),
        Action("POST", f"{_ONE}/model", why, "admin", bytes, m.RankerAnswer, start, query=_START),
        Action("GET", versions, "The kept versions", "rank", None, m.VersionsAnswer, service.versions),
        Action("POST", versions, "Keep the present version", "admin", None, m.VersionsAnswer, service.keep),
        Action("DELETE", f"{versions}/{{version}}", "Delete a kept version", "admin", None, m.VersionsAnswer, release),
        Action(
            "POST",
            f"{_ONE}/rollback",
            "Roll back to a kept version",
            "admin",
            m.RollbackRequest,
            m.RankerAnswer,
            rollback,
        ),
    ]


def _read_actions(service: RankingService) -> list[Action]:
    def explain(name: str, round: str) -> m.ExplainAnswer:
        return service.explain(name, _number(round, "unknown_round", "rounds are whole numbers"))

    board, why = "What the dashboard shows", "Why a round was ordered as it was"
    return [
        Action("GET", f"{_ONE}/dashboard", board, "rank", None, m.DashboardAnswer, service.dashboard),
        Action(
            "GET",
            f"{_ONE}/explain/{{round}}",
            why,
            "rank",
            None,
            m.ExplainAnswer,
            explain,
        ),
    ]


def _server_actions(service: RankingService, telemetry: Telemetry) -> list[Action]:
    def metrics() -> Content:
        text = telemetry.text(service)
        return Content(text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def ready() -> m.HealthAnswer:
        service.check_leading()
        if not service.journal.ready:
            raise RequestError(503, "not_ready", "the journal cannot be written")
        return m.HealthAnswer(True)

    return [
        Action(
            "GET", "/healthz", "Whether the server is running", None, None, m.HealthAnswer, lambda: m.HealthAnswer(True)
        ),
        Action("GET", "/readyz", "Whether feedback can be written to disk", None, None, m.HealthAnswer, ready),
        Action("GET", "/metrics", "Metrics for Prometheus", "rank", None, str, metrics),
        Action("GET", "/", "The dashboard", None, None, str, lambda: page("index.html")),
        Action("GET", "/static/{file}", "A file of the dashboard", None, None, str, lambda file: page(file)),
    ]


def _new_start(query: dict[str, str]) -> NewStart | None:
    """The learner that starts from the weights of a model file; None for the model itself."""
    if query.get("per", "user") != "user":
        raise RequestError(422, "bad_query", f"`per` must be user, not {query['per']!r}")
    if "as" not in query:
        if query:
            raise RequestError(422, "bad_query", "`trust` and `per` are of a learner that starts: name it, with `as`")
        return None
    try:
        trust = float(query["trust"]) if "trust" in query else None
    except ValueError:
        trust = nan
    if trust is not None and not 0.0 < trust < inf:
        raise RequestError(422, "bad_query", f"`trust` must be a number above 0, not {query['trust']!r}")
    return NewStart(query["as"], trust, MAX_USERS if "per" in query else 0)


def _number(text: str, code: str, complaint: str) -> int:
    """A number in a path."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise RequestError(404, code, complaint)
    return int(text)


def page(file: str, folder: Path = PAGES) -> Content:
    """A file directly in a folder of pages."""
    kind = _KINDS.get(Path(file).suffix)
    known = {path.name: path for path in folder.iterdir()}
    if kind is None or file not in known:
        raise RequestError(404, "not_found", "there is no such page")
    return Content(known[file].read_bytes(), kind, _PAGE_HEADERS)


def follow_actions(service: RankingService) -> list[Action]:
    """The actions for followers."""

    async def follow(request: bytes) -> Content:
        return Content(encode_message(await service.feed.follow(decode_message(request, FollowRequest))), BYTES)

    def keep(request: bytes) -> Content:
        return Content(encode_message(service.feed.accept_rounds(decode_message(request, RoundsRequest))), BYTES)

    learnt, shown = "Entries that a follower has not seen", "Store rounds that a follower has shown"
    return [
        Action("POST", "/v1/follow", learnt, "admin", bytes, bytes, follow),
        Action("POST", "/v1/follow/rounds", shown, "admin", bytes, bytes, keep),
    ]


def experiment_actions(service: RankingService) -> list[Action]:
    """The actions of experiments, one per route and method."""
    experiments = service.experiments

    def document_format(name: str) -> tuple[Sequence[str], bool]:
        """The names of the arms' features, and whether values may be missing."""
        rankers = [arm.live for arm in experiments.find(name).arms]
        return rankers[0].names, all(ranker.template.imputer is not None for ranker in rankers)

    def rank(request: e.ExperimentRankRequest, name: str) -> Any:
        count = len(request.documents)
        large = count * len(document_format(name)[0]) > 2 * MAX_CHUNK and count <= service.config.max_documents
        return rank_large(name, request) if large else experiments.rank(name, request)

    async def rank_large(name: str, request: e.ExperimentRankRequest) -> Any:
        before = document_format(name)
        documents = await read_in_turns(request.documents, *before)
        if document_format(name) != before:  # a model was replaced meanwhile
            return experiments.rank(name, request)
        return experiments.rank(name, structs.replace(request, documents=documents))

    def feedback(request: FeedbackRequest, name: str) -> Any:
        return experiments.feedback(name, request)

    def create(request: e.ExperimentDefinition, name: str) -> Any:
        return experiments.create(name, request)

    ranked, counted, post = e.ExperimentRankAnswer, e.ExperimentFeedbackAnswer, "POST"
    rank_title, feedback_title = "Rank a list for a user of an experiment", "Send feedback on a round of an experiment"
    get_title, promote_title = "An experiment and its verdict", "Show the winner to all users, or make it the incumbent"
    delete_title, put_title = "Delete an experiment; its rankers stay", "Compare rankers on live traffic"
    return [
        Action(post, f"{_EXPERIMENT}/rank", rank_title, "rank", e.ExperimentRankRequest, ranked, rank),
        Action(post, f"{_EXPERIMENT}/feedback", feedback_title, "feedback", FeedbackRequest, counted, feedback),
        Action("GET", "/v1/experiments", "All experiments", "rank", None, e.ExperimentsAnswer, experiments.all),
        Action("PUT", _EXPERIMENT, put_title, "admin", e.ExperimentDefinition, e.ExperimentAnswer, create),
        Action("GET", _EXPERIMENT, get_title, "rank", None, e.ExperimentAnswer, experiments.answer),
        Action("DELETE", _EXPERIMENT, delete_title, "admin", None, None, experiments.delete),
        Action(post, f"{_EXPERIMENT}/promote", promote_title, "admin", None, e.ExperimentAnswer, experiments.promote),
    ]
