"""Spans and histograms that cost little: OpenTelemetry's API for the gateway's own telemetry.

The SDK checks, copies and locks each attribute of a span, and sorts those of a measurement for each record. Here they
are the gateway's own: strings, numbers, and tuples of strings. Batches, exporters and their variables are the SDK's.
Every trace is written, unless its client decided otherwise, and every histogram is cumulative: where variables ask for
something else, the SDK's own providers are used (`is_enough`).

Facts:
- A span of 13 attributes takes 95 calls of Python with the SDK and 18 here, a measurement with five 44 and 1.
                                                                        (opentelemetry-sdk 1.45.1, measured 2026-11-17)
- Buckets include their upper bounds. After 2,000 sets of attributes, all others are one with `otel.metric.overflow`.
                                                              (OpenTelemetry specification: metrics SDK, 2026-11-17)
- The flag 0x02 says that the id of a trace is random.                        (W3C Trace Context, level 2, 2026-11-17)
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final, final

from opentelemetry.metrics import Histogram, MeterProvider, NoOpMeter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    get_current_span,
    use_span,
)

from segue.gateway.logs import find_logger

_LOG: Final = find_logger()
_OTHERS: Final = (
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_SAMPLER",
    "OTEL_SPAN_",
    "OTEL_ATTRIBUTE_",
    "OTEL_METRICS_EXEMPLAR_FILTER",
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
)
"""How variables begin that the SDK's providers follow and these do not."""
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 30.0
_MOST_POINTS: Final = 2_000
_OVERFLOW: Final[Mapping[str, Any]] = {"otel.metric.overflow": True}
_NEW_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED | 0x02)


def is_enough(environment: Mapping[str, str]) -> bool:
    """Whether the variables ask for nothing that the SDK's providers alone do."""
    return not any(name.startswith(_OTHERS) and value for name, value in environment.items())


@final
class _Known(Resource):
    """A resource whose hash is made once: the exporter asks for it with each span, and it is that of a JSON text."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.attributes, resource.schema_url)
        self._hash = hash(resource)

    def __hash__(self) -> int:
        return self._hash


@final
class LightTracers(TracerProvider):
    """Passes the spans that have ended to a processor of the SDK."""

    def __init__(self, resource: Resource, processor: SpanProcessor) -> None:
        self._resource = _Known(resource)
        self._processor = processor

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Any = None,  # noqa: ANN401 - of the API
    ) -> Tracer:
        """Return a tracer."""
        scope = InstrumentationScope(instrumenting_module_name, instrumenting_library_version, schema_url, attributes)
        return _LightTracer(self._resource, self._processor, scope)


@final
class _LightTracer(Tracer):
    def __init__(self, resource: Resource, processor: SpanProcessor, scope: InstrumentationScope) -> None:
        self.resource = resource
        self.scope = scope
        self.end: Any = processor.on_end
        ids = RandomIdGenerator()
        self._new_trace_id = ids.generate_trace_id
        self._new_span_id = ids.generate_span_id

    def start_span(  # noqa: PLR0917 - of the API
        self,
        name: str,
        context: Any = None,  # noqa: ANN401 - of the API
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,  # noqa: ANN401 - of the API
        links: Any = None,  # noqa: ANN401, ARG002 - of the API
        start_time: int | None = None,
        record_exception: bool = True,  # noqa: ARG002 - of the API
        set_status_on_exception: bool = True,  # noqa: ARG002 - of the API
    ) -> Span:
        """Start a span. Links and exceptions are not written: the gateway has none."""
        parent = get_current_span(context).get_span_context()
        if not parent.is_valid:
            made = SpanContext(self._new_trace_id(), self._new_span_id(), is_remote=False, trace_flags=_NEW_FLAGS)
            return _LightSpan(self, name, made, None, kind, attributes, start_time)
        flags = parent.trace_flags
        made = SpanContext(
            parent.trace_id, self._new_span_id(), is_remote=False, trace_flags=flags, trace_state=parent.trace_state
        )
        if not flags & TraceFlags.SAMPLED:
            return NonRecordingSpan(made)
        return _LightSpan(self, name, made, parent, kind, attributes, start_time)

    def start_as_current_span(self, *given: Any, end_on_exit: bool = True, **named: Any) -> Any:  # noqa: ANN401 - of the API
        """Start a span that is the current one in a block."""
        return use_span(self.start_span(*given, **named), end_on_exit)


@final
class _LightSpan(ReadableSpan, Span):  # pyright: ignore[reportIncompatibleMethodOverride] - as the SDK's own
    """A span that is exported itself once it has ended."""

    _attributes: dict[str, Any]
    _end_time: int | None

    def __init__(  # noqa: PLR0917 - all of a span
        self,
        tracer: _LightTracer,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: Mapping[str, Any] | None,
        start: int | None,
    ) -> None:
        given: dict[str, Any] = {} if attributes is None else {**attributes}
        super().__init__(name, context, parent, tracer.resource, given, kind=kind, instrumentation_scope=tracer.scope)
        self._tracer = tracer
        self._start_time = time.time_ns() if start is None else start

    def end(self, end_time: int | None = None) -> None:
        if self._end_time is None:
            self._end_time = time.time_ns() if end_time is None else end_time
            self._tracer.end(self)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if self._end_time is None:
            self._attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:  # noqa: ANN401 - of the API
        if self._end_time is None:
            self._attributes[key] = value

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:  # noqa: ANN401 - of the API
        """Do nothing: the gateway has no events."""

    def update_name(self, name: str) -> None:
        self._name = name

    def is_recording(self) -> bool:
        return self._end_time is None

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        if self._end_time is None:
            self._status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - of the API
        """Do nothing: the text of an exception may quote a conversation."""


@final
class LightMeters(MeterProvider):
    """Makes histograms; `read` gives all of them. Other instruments measure nothing."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._meters: list[_LightMeter] = []

    def get_meter(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Any = None,  # noqa: ANN401 - of the API
    ) -> NoOpMeter:
        """Return a meter."""
        meter = _LightMeter(name, version, schema_url)
        meter.scope = InstrumentationScope(name, version, schema_url, attributes)
        self._meters.append(meter)
        return meter

    def read(self) -> export.MetricsData:
        """Return what was measured since the start."""
        now = time.time_ns()
        scopes = [
            export.ScopeMetrics(meter.scope, found, meter.scope.schema_url or "")
            for meter in self._meters
            if (found := [made for each in meter.histograms if (made := each.read(now)) is not None])
        ]
        resources = [export.ResourceMetrics(self._resource, scopes, self._resource.schema_url)] if scopes else []
        return export.MetricsData(resources)


class _LightMeter(NoOpMeter):
    scope: InstrumentationScope

    def __init__(self, name: str, version: str | None, schema_url: str | None) -> None:
        super().__init__(name, version, schema_url)
        self.histograms: list[_LightHistogram] = []

    def create_histogram(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Any,  # noqa: ANN401 - of the API
    ) -> Histogram:
        made = _LightHistogram(name, unit, description, tuple(explicit_bucket_boundaries_advisory))
        self.histograms.append(made)
        return made


class _Point:
    """Measurements with the same attributes."""

    __slots__ = ("attributes", "buckets", "highest", "lowest", "start", "sum")

    def __init__(self, attributes: Mapping[str, Any], bounds: int) -> None:
        self.attributes: Mapping[str, Any] = {**attributes}
        self.buckets: list[int] = [0] * (bounds + 1)
        self.sum: float = 0
        self.lowest: float = float("inf")
        self.highest: float = float("-inf")
        self.start: int = time.time_ns()


@final
class _LightHistogram(Histogram):
    def __init__(self, name: str, unit: str, description: str, bounds: tuple[float, ...]) -> None:
        super().__init__(name, unit, description)
        self._name, self._unit, self._text = name, unit, description
        self._bounds = bounds
        self._points: dict[frozenset[tuple[str, Any]], _Point] = {}
        self._lock = threading.Lock()

    def record(self, amount: float, attributes: Any = None, context: Any = None) -> None:  # noqa: ANN401, ARG002
        key = frozenset(attributes.items() if attributes else ())
        with self._lock:
            point = self._points.get(key)
            if point is None:
                if len(self._points) >= _MOST_POINTS:
                    attributes = _OVERFLOW
                    key = frozenset(_OVERFLOW.items())
                point = self._points.setdefault(key, _Point(attributes or {}, len(self._bounds)))
            point.buckets[bisect_left(self._bounds, amount)] += 1
            point.sum += amount
            point.lowest = min(point.lowest, amount)
            point.highest = max(point.highest, amount)

    def read(self, now: int) -> export.Metric | None:
        """Return what was measured; None if that is nothing."""
        with self._lock:
            points = [
                export.HistogramDataPoint(
                    attributes=each.attributes,
                    start_time_unix_nano=each.start,
                    time_unix_nano=now,
                    count=sum(each.buckets),
                    sum=each.sum,
                    bucket_counts=tuple(each.buckets),
                    explicit_bounds=self._bounds,
                    min=each.lowest,
                    max=each.highest,
                )
                for each in self._points.values()
            ]
        data = export.Histogram(points, export.AggregationTemporality.CUMULATIVE)
        return export.Metric(self._name, self._text, self._unit, data) if points else None


@final
class LightReader:
    """Sends the histograms of `LightMeters`, every minute or as `OTEL_METRIC_EXPORT_INTERVAL` says, and at the end."""

    def __init__(self, exporter: object, meters: LightMeters, environment: Mapping[str, str]) -> None:
        self._exporter: Any = exporter
        self._meters = meters
        given = environment.get(_INTERVAL, "")
        self._seconds = int(given) / 1000 if given.isdecimal() and int(given) else _SECONDS
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="segue-metrics", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(self._seconds)
            try:
                if (data := self._meters.read()).resource_metrics:
                    self._exporter.export(data)
            except Exception:  # noqa: BLE001 - the next measurements have to be sent
                _LOG.exception("the metrics could not be sent; it is tried again")

    def shutdown(self) -> None:
        """Send the rest, and end."""
        self._is_over.set()
        self._thread.join(_CLOSE_SECONDS)
        self._exporter.shutdown()
