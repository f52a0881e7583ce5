"""Traces in OpenTelemetry: a span for each request, and links that join feedback with the ranking that it is about.

A ranking and its feedback are requests of different traces, often hours apart. The span of a feedback has a link to
that of its ranking as long as this process remembers it; both have an event with ranker and round, by which any tool
joins them for ever.
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
        Where spans go; without one, where the process has set it.
    remembered : int
        Rankings whose spans are remembered, to be linked with.

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
        """The span of a request, in the trace that it came with (`traceparent`)."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name[:5] == b"trace"}
        attributes = {"http.request.method": method, "url.path": path}
        return self._tracer.start_as_current_span(
            f"{method} {path}", propagate.extract(carrier), SpanKind.SERVER, attributes
        )

    def showed(self, ranker: str, round: int, version: int) -> None:
        """Notes in the present span that it shows a ranking."""
        span = trace.get_current_span()
        span.add_event("ranking", _about(ranker, round, version))
        self._shown[ranker, round] = span.get_span_context()
        if len(self._shown) > self._remembered:
            self._shown.popitem(last=False)

    def answered(self, ranker: str, round: int, version: int) -> None:
        """Notes in the present span that it learnt from feedback, and links it with the ranking."""
        span = trace.get_current_span()
        span.add_event("feedback", _about(ranker, round, version))
        shown = self._shown.get((ranker, round))
        if shown is not None:
            span.add_link(shown, {"ranktron.round": round})


def _about(ranker: str, round: int, version: int) -> dict[str, Any]:
    return {"ranktron.ranker": ranker, "ranktron.round": round, "ranktron.version": version}


def start_tracing() -> Tracing:
    """Sends spans where the variables of OpenTelemetry say (`OTEL_EXPORTER_OTLP_ENDPOINT` and others)."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ranktron"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
