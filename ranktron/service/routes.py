"""The table of routes: the application and its OpenAPI document are both made from it."""

from __future__ import annotations

from pathlib import Path

from ranktron.service import types as t
from ranktron.service.endpoint import Action, Content
from ranktron.service.office import Office
from ranktron.service.refusals import Refused
from ranktron.service.telemetry import Telemetry

PAGES = Path(__file__).parent / "pages"
_KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
_PAGE_HEADERS = (
    (b"content-security-policy", _POLICY + b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)


def actions(office: Office, telemetry: Telemetry) -> list[Action]:
    """Everything that can be asked for, the busiest first."""
    one = "/v1/rankers/{name}"

    def make(request: t.Definition, name: str) -> object:
        return office.create(name, request)

    def rank(request: t.RankRequest, name: str) -> object:
        return office.rank(name, request)

    def feedback(request: t.FeedbackRequest, name: str) -> object:
        return office.feedback(name, request)

    def full(request: t.FullRequest, name: str) -> object:
        return office.full(name, request)

    def explain(name: str, round: str) -> object:
        if not round.isdecimal() or len(round) > 16:
            raise Refused(404, "unknown_round", "rounds are whole numbers")
        return office.explain(name, int(round))

    def metrics() -> Content:
        return Content(telemetry.text(office.desks.values()).encode(), "text/plain; version=0.0.4; charset=utf-8")

    return [
        Action("POST", f"{one}/rank", "Rank a list and keep its round open", "rank", t.RankRequest, t.RankAnswer, rank),
        Action(
            "POST",
            f"{one}/feedback",
            "Learn from labels of what was shown",
            "feedback",
            t.FeedbackRequest,
            t.FeedbackAnswer,
            feedback,
        ),
        Action(
            "POST", f"{one}/full", "Learn from a list with all labels", "feedback", t.FullRequest, t.FullAnswer, full
        ),
        Action("GET", "/v1/rankers", "All rankers", "rank", None, t.RankersAnswer, office.rankers),
        Action("PUT", one, "Make a ranker", "admin", t.Definition, t.RankerAnswer, make),
        Action("GET", one, "A ranker", "rank", None, t.RankerAnswer, office.ranker),
        Action("DELETE", one, "Delete a ranker", "admin", None, None, office.delete),
        Action(
            "GET",
            f"{one}/dashboard",
            "What the page for people shows",
            "rank",
            None,
            t.DashboardAnswer,
            office.dashboard,
        ),
        Action("GET", f"{one}/explain/{{round}}", "Why a round was ordered so", "rank", None, t.ExplainAnswer, explain),
        Action("GET", "/metrics", "Metrics for Prometheus", "rank", None, Content, metrics),
        Action("GET", "/", "The page for people", None, None, Content, lambda: page("index.html")),
        Action("GET", "/static/{file}", "A part of that page", None, None, Content, lambda file: page(file)),
    ]


def page(file: str) -> Content:
    """A file of the folder of pages; nothing outside of it can be asked for."""
    path = PAGES / file
    if "/" in file or path.suffix not in _KINDS or not path.is_file():
        raise Refused(404, "not_found", "there is no such page")
    return Content(path.read_bytes(), _KINDS[path.suffix], _PAGE_HEADERS)
