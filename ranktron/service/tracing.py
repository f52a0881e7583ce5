"""OpenTelemetry traces: a span for each request, and links from feedback to its ranking.

A ranking and its feedback belong to different traces, often hours apart. The span of the feedback links to the span of
the ranking while this process remembers it. Both have an event with ranker and round, by which any tool can join them.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanContext, SpanKind

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class Tracing:
    """Spans of one service's requests.

    Parameters
    ----------
    provider : TracerProvider, optional
        Receives the spans; by default the process's global provider.
    remembered : int
        Number of recent rankings whose spans feedback can link to.

    Examples
    --------
    >>> tracing = Tracing(remembered=1000)
    >>> with tracing.span("GET", "/healthz", []) as span:
    ...     tracing.showed("shop", 7, 3)
    """

    def __init__(self, provider: TracerProvider | None = None, remembered: int = 100_000) -> None:
        self._tracer = trace.get_tracer("ranktron", tracer_provider=provider)
        self._shown: OrderedDict[tuple[str, int], SpanContext] = OrderedDict()
        self._remembered = remembered

    def span(self, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> AbstractContextManager[Span]:
        """The span of a request, in the trace of its `traceparent` header."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name[:5] == b"trace"}
        attributes = {"http.request.method": method, "url.path": path}
        return self._tracer.start_as_current_span(
            f"{method} {path}", propagate.extract(carrier), SpanKind.SERVER, attributes
        )

    def showed(self, ranker: str, round: int, version: int) -> None:
        """Adds a "ranking" event to the current span."""
        span = trace.get_current_span()
        span.add_event("ranking", _attributes(ranker, round, version))
        self._shown[ranker, round] = span.get_span_context()
        if len(self._shown) > self._remembered:
            self._shown.popitem(last=False)

    def answered(self, ranker: str, round: int, version: int) -> None:
        """Adds a "feedback" event to the current span, and a link to the ranking's span."""
        span = trace.get_current_span()
        span.add_event("feedback", _attributes(ranker, round, version))
        shown = self._shown.get((ranker, round))
        if shown is not None:
            span.add_link(shown, {"ranktron.round": round})


def _attributes(ranker: str, round: int, version: int) -> dict[str, Any]:
    return {"ranktron.ranker": ranker, "ranktron.round": round, "ranktron.version": version}


def start_tracing() -> Tracing:
    """Exports spans by OTLP, as configured by `OTEL_EXPORTER_OTLP_ENDPOINT` and OpenTelemetry's other variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ranktron"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
