"""Spans that a server sends to a collector."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from omnigraph.server.command import is_traced
from tests.server.serving import serving

collector = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collecting():
    """A collector on the loopback interface: its address, and the resources that were sent."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            request = collector.ExportTraceServiceRequest.FromString(body)
            received.extend(request.resource_spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}", received
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def attributes(span):
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_requests_and_their_steps_are_spans(graph_root, tmp_path):
    with collecting() as (address, received):
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        with serving(tmp_path, graph_root, "--unauthenticated", env=env) as server:
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            body = {"query": "query q() { match { $a: Author } return { $a.slug } }"}
            answer = server.post("/query", body, headers=headers)
            assert answer.status_code == 200
            assert server.stop() == 0
    named = {one.key: one.value.string_value for one in received[0].resource.attributes}
    assert named["service.name"] == "omnigraph-server"
    spans = [span for one in received for scope in one.scope_spans for span in scope.spans]
    [request] = [span for span in spans if span.name == "query"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    known = {"http.response.status_code": 200, "omnigraph.graph": "default"}
    known |= {"omnigraph.branch": "main", "omnigraph.rows": 3}
    known |= {"omnigraph.request_id": answer.headers["x-request-id"]}
    assert known.items() <= attributes(request).items()
    [read] = [span for span in spans if span.name == "read"]
    assert (read.trace_id, read.parent_span_id) == (request.trace_id, request.span_id)
    assert request.start_time_unix_nano <= read.start_time_unix_nano + 10**6


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_only_a_named_collector_turns_traces_on(environment, expected):
    assert is_traced(environment) is expected
