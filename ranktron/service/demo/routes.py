"""Routes of the search page of `ranktron demo --web`, and the definition of its ranker."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from starlette.routing import Route

from ranktron.service.auth import Authenticator, Tokens
from ranktron.service.config import Config
from ranktron.service.demo.search import FEATURES, Index
from ranktron.service.http.endpoint import Action, Content, Endpoint
from ranktron.service.http.routes import page
from ranktron.service.telemetry import Telemetry
from ranktron.store.messages import Definition, RequestBody, ResponseBody
from ranktron.training.algorithms import algorithm
from ranktron.types import Feedback

PAGES = Path(__file__).parent / "pages"
RANKER = "search"
K = 5  # documents that receive feedback
# For a single person, who votes on about half of the top k: little exploration, among the top 15 only, and importance
# weights of at most 2. Squared loss learns from a single vote; a pairwise loss would need two. With this seed, the
# first explored list is the ninth.
DEFINITION = Definition(
    features=list(FEATURES),
    algorithm="topk",
    parameters={
        "surrogate": "squared",
        "k": K,
        "explore": 0.2,
        "shortlist": 15,
        "floor": 0.5,
        "answered": 0.5,
        "seed": 4,
    },
    labels=(0.0, 1.0),
    scale="none",  # all features lie between 0 and 1
)
EXAMPLES = ["join", "copy a directory", "random number", "parse date", "read file", "sort", "http server", "sleep"]
# Queries of the simulated voter, in this order.
QUERIES = [
    "time",
    "path",
    "event",
    "list",
    "request",
    "parser",
    "process",
    "server",
    "file",
    "test",
    "message",
    "date",
    "reader",
    "queue",
    "cookie",
    "calendar",
    "socket",
    "header",
    "set",
    "address",
    "writer",
    "context",
    "decoder",
    "formatter",
    "error",
    "handler",
    "policy",
    "filter",
    "dict",
    "mock",
    "node",
    "stream",
    "future",
    "type",
    "flag",
    "warning",
    "option",
    "loader",
    "pool",
    "proxy",
    "manager",
]


class SearchRequest(RequestBody):
    """A query."""

    query: Annotated[str, Meta(min_length=1, max_length=200)]


class Match(ResponseBody):
    """A document that matches the query, with its features."""

    id: str
    kind: str
    signature: str
    summary: str
    text: str
    features: dict[str, float]


class CandidatesAnswer(ResponseBody):
    """The candidates for a query, by descending BM25, for the ranker to order."""

    documents: list[Match]


class SetupAnswer(ResponseBody):
    """The settings of the search page."""

    python: str
    documents: int
    ranker: str
    k: int
    definition: Definition
    features: dict[str, str]
    examples: list[str]
    queries: list[str]


def search_routes(index: Index, tokens: Tokens) -> list[Route]:
    """The routes of the search page and its data; it uses the service's API for the ranker."""
    authenticator, telemetry = Authenticator(Config(), tokens), Telemetry()
    return [
        Route(action.path, Endpoint([action], authenticator, telemetry), methods=None)
        for action in search_actions(index)
    ]


def search_actions(index: Index) -> list[Action]:
    def setup() -> SetupAnswer:
        python = f"Python {platform.python_version()}"
        return SetupAnswer(python, len(index.documents), RANKER, K, DEFINITION, FEATURES, EXAMPLES, QUERIES)

    def candidates(request: SearchRequest) -> CandidatesAnswer:
        matches = index.search(request.query)
        return CandidatesAnswer(
            [
                Match(
                    document.id,
                    document.kind,
                    document.signature,
                    document.summary,
                    document.text,
                    dict(zip(FEATURES, row, strict=True)),
                )
                for document, row in zip(matches.documents, matches.X.tolist(), strict=True)
            ]
        )

    title = "Candidates and their features"
    return [
        Action("GET", "/search", "The search page", None, None, Content, lambda: page("search.html", PAGES)),
        Action("GET", "/demo/static/{file}", "Scripts and styles", None, None, Content, lambda file: page(file, PAGES)),
        Action("GET", "/demo/setup", "Settings of the search page", None, None, SetupAnswer, setup),
        Action("POST", "/demo/candidates", title, None, SearchRequest, CandidatesAnswer, candidates),
    ]


def warm_up() -> None:
    """Compiles everything the ranker needs, by one round of it."""
    learner = algorithm(DEFINITION.algorithm).learner(len(FEATURES), DEFINITION.parameters)
    X = np.eye(K + 1, len(FEATURES), dtype=np.float32)
    labels = Feedback(np.arange(K), np.eye(K)[0].copy())
    learner.learn_pending(learner.pending(X, learner.rank(X, 0), K), labels)
