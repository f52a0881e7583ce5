"""The search page of `ranktron demo --web`: what it adds to the service, and the ranker that it teaches."""

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
from ranktron.store.types import Definition, RequestBody, ResponseBody
from ranktron.training.algorithms import algorithm
from ranktron.types import Feedback

PAGES = Path(__file__).parent / "pages"
RANKER = "search"
HEARD = 5
# A person gives few votes, on about half of what is shown: little exploration, among the best 15 only, and no vote that
# weighs more than twice another. Squared loss learns from a single vote, where pairs would need two. With this seed the
# first list that is drawn by chance is the ninth.
DEFINITION = Definition(
    features=list(FEATURES),
    algorithm="topk",
    parameters={
        "surrogate": "squared",
        "k": HEARD,
        "explore": 0.2,
        "shortlist": 15,
        "floor": 0.5,
        "answered": 0.5,
        "seed": 4,
    },
    labels=(0.0, 1.0),
    scale="none",  # its features are made to be comparable
)
EXAMPLES = ["join", "copy a directory", "random number", "parse date", "read file", "sort", "http server", "sleep"]
# What the simulated voter asks for, in this order.
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


class Question(RequestBody):
    """Something to search for."""

    query: Annotated[str, Meta(min_length=1, max_length=200)]


class Found(ResponseBody):
    """A document that may answer the question, with its features."""

    id: str
    kind: str
    signature: str
    summary: str
    text: str
    features: dict[str, float]


class CandidatesAnswer(ResponseBody):
    """What was found, the best match of words first: what comes first in the end is the ranker's to say."""

    documents: list[Found]


class SetupAnswer(ResponseBody):
    """What the search page has to know."""

    python: str
    documents: int
    ranker: str
    k: int
    definition: Definition
    features: dict[str, str]
    examples: list[str]
    queries: list[str]


def search_routes(index: Index, tokens: Tokens) -> list[Route]:
    """The search page and the two questions that it asks; it speaks to the ranker as any other client does."""
    authenticator, telemetry = Authenticator(Config(), tokens), Telemetry()
    return [
        Route(each.path, Endpoint([each], authenticator, telemetry), methods=None) for each in search_actions(index)
    ]


def search_actions(index: Index) -> list[Action]:
    def setup() -> SetupAnswer:
        python = f"Python {platform.python_version()}"
        return SetupAnswer(python, len(index.documents), RANKER, HEARD, DEFINITION, FEATURES, EXAMPLES, QUERIES)

    def candidates(request: Question) -> CandidatesAnswer:
        found = index.search(request.query)
        rows = zip(found.documents, found.X.tolist(), strict=True)
        return CandidatesAnswer(
            [
                Found(
                    each.id, each.kind, each.signature, each.summary, each.text, dict(zip(FEATURES, row, strict=True))
                )
                for each, row in rows
            ]
        )

    return [
        Action("GET", "/search", "The search page", None, None, Content, lambda: page("search.html", PAGES)),
        Action("GET", "/demo/static/{file}", "A part of it", None, None, Content, lambda file: page(file, PAGES)),
        Action("GET", "/demo/setup", "What the search page is about", None, None, SetupAnswer, setup),
        Action("POST", "/demo/candidates", "Candidates and features", None, Question, CandidatesAnswer, candidates),
    ]


def warm_up() -> None:
    """Lets a ranker of this kind do everything once, so that nobody waits for its machine code later."""
    learner = algorithm(DEFINITION.algorithm).learner(len(FEATURES), DEFINITION.parameters)
    X = np.eye(HEARD + 1, len(FEATURES), dtype=np.float32)
    labels = Feedback(np.arange(HEARD), np.eye(HEARD)[0].copy())
    learner.learn_pending(learner.pending(X, learner.rank(X, 0), HEARD), labels)
