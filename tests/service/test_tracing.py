"""Traces: a span for each request, in the trace that it came with, and a link from feedback to its ranking."""

import numpy as np
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ranktron.service.service import RankingService
from ranktron.service.tracing import Tracing
from tests.service.conftest import Talk

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced(tmp_path):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = RankingService(tmp_path, tracing=Tracing(provider, remembered=2))
    with Talk(service) as talk:
        talk.make()
        exporter.clear()
        yield talk, exporter
    provider.shutdown()


def test_feedback_is_linked_with_its_ranking(traced):
    talk, exporter = traced
    shown = talk.rank(np.eye(3))
    talk.answer(shown)
    ranking, feedback = exporter.get_finished_spans()
    assert (ranking.name, feedback.name) == ("POST /v1/rankers/shop/rank", "POST /v1/rankers/shop/feedback")
    assert [link.context for link in feedback.links] == [ranking.context]
    assert [dict(event.attributes) for event in ranking.events] == [
        {"ranktron.ranker": "shop", "ranktron.round": shown["round"], "ranktron.version": 0}
    ]
    assert feedback.events[0].attributes["ranktron.version"] == 1
    assert feedback.attributes["http.response.status_code"] == 200


def test_a_request_stays_in_the_trace_that_it_came_with(traced):
    talk, exporter = traced
    answer = talk.request("GET", "/v1/rankers", traceparent=PARENT)
    (span,) = exporter.get_finished_spans()
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (PARENT[3:35], PARENT[36:52])
    assert span.attributes["ranktron.request"] == answer.headers["x-request-id"]


def test_only_the_last_rankings_are_remembered(traced):
    talk, exporter = traced
    shown = [talk.rank(np.eye(3)) for _ in range(3)]
    for each in shown:
        talk.answer(each)
    spans = exporter.get_finished_spans()
    assert [len(span.links) for span in spans[3:]] == [0, 1, 1]
    assert [span.events[0].attributes["ranktron.round"] for span in spans[3:]] == [each["round"] for each in shown]
