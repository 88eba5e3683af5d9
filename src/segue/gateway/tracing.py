"""Telemetry of a gateway: a span and metrics for each request of a client, and lines of a log.

The requests that go to providers are children of this span; the client writes them (`segue.client.http.telemetry`).
Nothing of it has content, unless `telemetry.content` is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from segue.client.http.telemetry import (
    LONGEST_KEPT,
    MOST_KEPT,
    SECONDS,
    Attributes,
    Record,
    Telemetry,
    bind,
    describe_target,
    describe_usage,
    describe_values,
)
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


_Answered: TypeAlias = tuple[str, str, str]
"""The protocol, the provider, and the id of the model that answered."""


class _Ending(NamedTuple):
    """What the spans of like requests get at their end, and what takes their measurements."""

    operation: str | None
    attributes: Attributes
    duration: Record
    first_token: Record


@lru_cache(MOST_KEPT)
def _find_start(operation: str, name: str) -> tuple[str, Attributes]:
    """Return the name of a span, and what is known at its start."""
    given = Attributes({"gen_ai.operation.name": operation, "gen_ai.request.model": name})
    return f"{operation} {name}", given


_OUTCOME: Final = (
    "http.response.status_code",
    "segue.client",
    "segue.protocol",
    "segue.attempts",
    "segue.changes",
    "segue.straight",
    "segue.usage.figures",
)


class Tracing:
    """Writes the spans and metrics of the requests of clients."""

    def __init__(self, telemetry: Telemetry, metrics: Metrics) -> None:
        self.telemetry: Telemetry = telemetry
        self._label = metrics.label
        self.find_ending: Callable[..., _Ending] = lru_cache(MOST_KEPT)(self.make_ending)
        """The same as `make_ending`, for names that are short."""
        text = "Generative AI server request duration such as time-to-last byte or last output token."
        self._duration: Histogram = telemetry.histogram("gen_ai.server.request.duration", text, "s", SECONDS)
        self._first_token: Histogram = telemetry.histogram(
            "gen_ai.server.time_to_first_token", "Time to generate first token for successful responses.", "s", SECONDS
        )

    def make_ending(self, asked: str, answered: _Answered | None, error: str | None, *outcome: object) -> _Ending:
        """Describe the end of requests: the name that was asked for, the model that answered, an error, the outcome."""
        label = self._label(asked)
        common: dict[str, Any] = {"gen_ai.request.model": label}
        found: dict[str, Any] = {}
        if answered is not None:
            protocol, provider, model = answered
            common = describe_target(protocol, provider, label)
            common["gen_ai.response.model"] = self._label(model)
            found.update({name: common[name] for name in ("gen_ai.provider.name", "gen_ai.response.model")})
        if error is not None:
            common["error.type"] = error
        found.update(describe_values(_OUTCOME, outcome))
        operation = common.get("gen_ai.operation.name")
        return _Ending(operation, Attributes(found), bind(self._duration, common), bind(self._first_token, common))


class RequestTrace:
    """The span of one request of a client, which continues the trace of the client. `began` is Unix milliseconds."""

    _is_over = False

    def __init__(
        self, tracing: Tracing, model: Model, *, name: str, ids: dict[str, str], headers: Mapping[str, str], began: int
    ) -> None:
        self._tracing = tracing
        telemetry = tracing.telemetry
        above = telemetry.propagator.extract(headers) if "traceparent" in headers else telemetry.no_parent
        operation = self._operation = get_protocol(model.protocol).operation
        title, given = (_find_start if len(name) <= LONGEST_KEPT else _find_start.__wrapped__)(operation, name)
        shared = Attributes(ids)
        self._span: Span = telemetry.start_from_parts(title, "SERVER", above, (given, shared), began * _NANOS)
        self._above, self._shared = above, shared

    @property
    def trace_id(self) -> str:
        """The id of the trace, as hexadecimal digits."""
        return f"{self._span.get_span_context().trace_id:032x}"

    def __enter__(self) -> None:
        self._token = self._tracing.telemetry.inside(self._span, self._above, self._shared)

    def __exit__(self, *_: object) -> None:
        self._tracing.telemetry.leave(self._token)

    def end(self, row: RequestRow, model: Model | None) -> None:
        """End the span with what is known of the request."""
        if self._is_over:
            return
        self._is_over = True
        span, tracing, error = self._span, self._tracing, None
        if row.outcome != "done":
            last = row.attempts[-1].kind if row.attempts else None
            error = "cancelled" if row.outcome == "aborted" else last or str(row.status)
            tracing.telemetry.fail(span, error)
        answered = None if model is None else (model.protocol, model.provider, model.id)
        is_short = len(row.asked) + (0 if model is None else len(model.id)) <= LONGEST_KEPT
        operation, found, record_duration, record_first = (tracing.find_ending if is_short else tracing.make_ending)(
            row.asked,
            answered,
            error,
            row.status,
            row.client,
            row.protocol,
            len(row.attempts),
            sum([change.loss != "none" for change in row.changes]) if row.changes else 0,
            row.straight,
            row.figures,
        )
        if operation is not None and operation != self._operation:
            span.set_attribute("gen_ai.operation.name", operation)  # another model answered
        parts = (found,) if row.usage is None else (found, describe_usage(row.usage))
        tracing.telemetry.finish(span, parts)
        record_duration(row.duration_ms / 1000)
        if row.stream and row.first_byte_ms is not None and row.outcome == "done":
            record_first(row.first_byte_ms / 1000)


def log_request(row: RequestRow, trace: RequestTrace | None) -> None:
    """Write the line of a request, if the log takes it."""
    if REQUESTS.isEnabledFor(logging.INFO):
        trace_id = None if trace is None else trace.trace_id
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
