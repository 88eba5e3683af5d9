"""Telemetry of a gateway: a span and metrics for each request of a client, and lines of a log.

The requests that go to providers are children of this span; the client writes them (`segue.client.http.telemetry`).
Nothing of it has content, unless `telemetry.content` is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from segue.client.http.telemetry import SECONDS, Telemetry, describe_model
from segue.errors import MissingExtra
from segue.foundation.json_text import encode_valid_json
from segue.foundation.version import __version__
from segue.gateway.config import TelemetryTable
from segue.gateway.logs import find_logger
from segue.gateway.metrics import Metrics
from segue.gateway.records import RequestRow
from segue.models.model import Model
from segue.protocols.registry import get_protocol

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span

REQUESTS: Final = find_logger("segue.gateway.requests")
"""Gets one record of level INFO for each request; `record.row` is its row."""
_NANOS: Final = 1_000_000
_EXPORT_SECONDS: Final = 5.0


def open_telemetry(table: TelemetryTable) -> tuple[Telemetry | None, Callable[[], None]]:
    """Make the telemetry of a configuration, and the function that sends the rest and ends it.

    The exporters read the usual variables, such as `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME`.

    Raises:
        MissingExtra: an endpoint is set, and OpenTelemetry is not installed.
    """
    if table.endpoint is None:
        return None, lambda: None
    try:
        from segue.gateway.light_telemetry import open_providers
    except ModuleNotFoundError as error:
        raise MissingExtra("telemetry.endpoint needs OpenTelemetry, which is not installed", extra="otel") from error
    given = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "segue-gateway", "service.version": __version__}
    tracer, meter, ends = open_providers(table.endpoint.rstrip("/"), given, os.environ, timeout=_EXPORT_SECONDS)

    def close() -> None:
        for end in ends:
            end()

    made = Telemetry(tracer_provider=tracer, meter_provider=meter, content=table.content, propagate=table.propagate)
    return made, close


class Tracing:
    """Writes the spans and metrics of the requests of clients."""

    def __init__(self, telemetry: Telemetry, metrics: Metrics) -> None:
        self.telemetry: Telemetry = telemetry
        self.label: Callable[[str | None], str] = metrics.label
        text = "Generative AI server request duration such as time-to-last byte or last output token."
        self.duration: Histogram = telemetry.histogram("gen_ai.server.request.duration", text, "s", SECONDS)
        self.first_token: Histogram = telemetry.histogram(
            "gen_ai.server.time_to_first_token", "Time to generate first token for successful responses.", "s", SECONDS
        )


class RequestTrace:
    """The span of one request of a client, which continues the trace of the client. `began` is Unix milliseconds."""

    def __init__(
        self, tracing: Tracing, model: Model, *, name: str, ids: dict[str, str], headers: Mapping[str, str], began: int
    ) -> None:
        self._tracing, self._shared = tracing, ids
        telemetry = tracing.telemetry
        self._parent = telemetry.propagator.extract(headers) if "traceparent" in headers else telemetry.no_parent
        operation = get_protocol(model.protocol).operation
        given = {"gen_ai.operation.name": operation, "gen_ai.request.model": name, **ids}
        self._span: Span = telemetry.start_span(f"{operation} {name}", "SERVER", self._parent, given, began * _NANOS)
        self._is_over = False

    @property
    def trace_id(self) -> str:
        """The id of the trace, as hexadecimal digits."""
        return f"{self._span.get_span_context().trace_id:032x}"

    def __enter__(self) -> None:
        self._token = self._tracing.telemetry.inside(self._span, self._parent, self._shared)

    def __exit__(self, *_: object) -> None:
        self._tracing.telemetry.leave(self._token)

    def end(self, row: RequestRow, model: Model | None) -> None:
        """End the span with what is known of the request."""
        if self._is_over:
            return
        self._is_over = True
        span, tracing = self._span, self._tracing
        common: dict[str, Any] = {} if model is None else describe_model(model)
        common["gen_ai.request.model"] = tracing.label(row.asked)
        if model is not None:
            common["gen_ai.response.model"] = tracing.label(model.id)
        if row.outcome != "done":
            last = row.attempts[-1].kind if row.attempts else None
            common["error.type"] = "cancelled" if row.outcome == "aborted" else last or str(row.status)
            tracing.telemetry.fail(span, common["error.type"])
        if span.is_recording():
            span.set_attributes({**common, "gen_ai.request.model": row.asked, **_describe(row)})
        span.end()
        tracing.duration.record(row.duration_ms / 1000, common)
        if row.stream and row.first_byte_ms is not None and row.outcome == "done":
            tracing.first_token.record(row.first_byte_ms / 1000, common)


def _describe(row: RequestRow) -> dict[str, Any]:
    found: dict[str, Any] = {
        "http.response.status_code": row.status,
        "segue.client": row.client,
        "segue.protocol": row.protocol,
        "segue.attempts": len(row.attempts),
        "segue.changes": sum(change.loss != "none" for change in row.changes),
        "segue.straight": row.straight,
    }
    if (usage := row.usage) is not None:
        found["gen_ai.usage.input_tokens"] = usage.input + usage.cache_read + usage.cache_write
        found["gen_ai.usage.output_tokens"] = usage.output
        if usage.cost is not None:
            found["segue.usage.cost"] = usage.cost.total
    if row.figures is not None:
        found["segue.usage.figures"] = row.figures
    return found


def log_request(row: RequestRow, trace_id: str | None) -> None:
    """Write the line of a request, if the log takes it."""
    if REQUESTS.isEnabledFor(logging.INFO):
        given = (row.id, row.asked, row.model, row.outcome, row.status, row.duration_ms)
        REQUESTS.info("%s %s -> %s %s %d in %d ms", *given, extra={"row": row, "trace_id": trace_id})


class JsonLines(logging.Formatter):
    """Writes each record as one JSON object on one line; a request has its row."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, object] = {
            "time": round(record.created * 1000),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        for name in ("trace_id", "row"):
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        return encode_valid_json(line).decode()


def write_log(form: str) -> None:
    """Write the log of this process to the standard error, with one line for each request, as `text` or `json`."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else plain)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    REQUESTS.setLevel(logging.INFO)
