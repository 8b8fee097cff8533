"""Spans for OpenTelemetry: one per request, with one for each step of the engine below it.

Spans are exported over OTLP when the environment names a collector, with the variables that OpenTelemetry
defines. Nothing here is imported otherwise.
Tests: tests/server/test_tracing.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from omnigraph._version import __version__
from omnigraph.instruments import Event, Instruments, Step

SERVICE: Final = "omnigraph-server"
_CARRIED: Final = (b"traceparent", b"tracestate")


class Tracing:
    """Makes the spans of a server. Thread-safe."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """Without an exporter, spans are sent where the environment says."""
        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        # With what the variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say.
        resource = Resource.create({"service.version": __version__})
        if str(resource.attributes["service.name"]).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": SERVICE}))
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("omnigraph", __version__)
        self._carrier = TraceContextTextMapPropagator()

    def close(self) -> None:
        """Send what was not sent yet."""
        self._provider.shutdown()

    @contextmanager
    def request(self, method: str, headers: Sequence[tuple[bytes, bytes]]) -> Iterator[Span]:
        """The span of a request, below that of its caller if there is one."""
        with self._tracer.start_as_current_span(
            method, self._caller(headers), SpanKind.SERVER, {"http.request.method": method}
        ) as span:
            yield span

    def _caller(self, headers: Sequence[tuple[bytes, bytes]]) -> Context:
        carried = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in headers
            if name in _CARRIED
        }
        return self._carrier.extract(carried, Context())

    def took(self, step: Step, seconds: float) -> None:
        """The span of a step that has ended just now, below that of its request."""
        end = time.time_ns()
        self._tracer.start_span(step.value, start_time=end - int(seconds * 1e9)).end(end)


def describe(
    span: Span, name: str, status: int, attributes: Mapping[str, str | int | None]
) -> None:
    """Say in a span of a request what is known only after its answer."""
    span.update_name(name)
    span.set_attribute("http.response.status_code", status)
    for key, value in attributes.items():
        if value is not None:
            span.set_attribute(key, value)
    if status >= 500:
        span.set_status(Status(StatusCode.ERROR))


class TracedInstruments:
    """Passes on what the engine says, and makes spans of its steps."""

    def __init__(self, listener: Instruments, tracing: Tracing) -> None:
        self._listener = listener
        self._tracing = tracing

    def count(self, event: Event, labels: tuple[str, ...]) -> None:
        self._listener.count(event, labels)

    def took(self, step: Step, seconds: float) -> None:
        self._listener.took(step, seconds)
        self._tracing.took(step, seconds)
