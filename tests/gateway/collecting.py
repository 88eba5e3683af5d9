"""A collector of OTLP over HTTP, and spans and metrics that are kept in memory, for tests."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from segue.client.http.telemetry import Telemetry


@final
class Memory:
    """Telemetry whose spans and metrics can be read back."""

    def __init__(self, *, content: bool = False, propagate: bool = False) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracers = tracers
        meters = MeterProvider([self._reader])
        self.telemetry = Telemetry(tracer_provider=tracers, meter_provider=meters, content=content, propagate=propagate)

    def spans(self, kind: str | None = None) -> list[ReadableSpan]:
        """Give the spans that have ended, in the order of their ends."""
        return [span for span in self._spans.get_finished_spans() if kind is None or span.kind.name == kind]

    def points(self, name: str) -> list[Any]:
        """Give the data points of a metric."""
        data: Any = self._reader.get_metrics_data()
        metrics = [
            each
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for each in scope.metrics
        ]
        self.units = {each.name: each.unit for each in metrics}
        return [point for each in metrics if each.name == name for point in each.data.data_points]


@contextmanager
def collector() -> Generator[tuple[str, dict[str, list[Any]]]]:
    """Run a collector; give its address and the messages that it got, by path."""
    got: dict[str, list[Any]] = {"/v1/traces": [], "/v1/metrics": []}
    kinds = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            import gzip

            data = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            got[self.path].append(kinds[self.path].FromString(data))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
