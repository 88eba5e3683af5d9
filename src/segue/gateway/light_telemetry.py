"""Spans and histograms that cost little: OpenTelemetry's API for the gateway's own telemetry.

The SDK checks, copies and locks each attribute of a span, and sorts those of a measurement for each record. Here they
are the gateway's own: strings, numbers, and tuples of strings. Batches, exporters and their variables are the SDK's.
Every trace is written, unless its client decided otherwise, and every histogram is cumulative: where variables ask for
something else, the SDK's own providers are used (`is_enough`).

Facts:
- A span of 13 attributes takes 95 calls of Python with the SDK and 18 here, a measurement with five 44 and 1. The two
  spans of a request are encoded in 146 us by the SDK and in 66 us here, where half of the values are new.
                                                                        (opentelemetry-sdk 1.45.1, measured 2026-11-19)
- Buckets include their upper bounds. After 2,000 sets of attributes, all others are one with `otel.metric.overflow`.
                                                              (OpenTelemetry specification: metrics SDK, 2026-11-17)
- OTLP's flags 0x100 and 0x200 say that it is known whether the parent is remote, and that it is. A message of protobuf
  may be read in parts: the bytes of its fields, one after another.   (opentelemetry-proto 1.45.1: Span; 2026-11-19)
- Tags of fields of bytes: 0x4A the attributes of a span; 0x0A and 0x12 the key and the value of one; 0x0A and 0x2A a
  text and a list as a value; 0x0A each of a list.                       (opentelemetry-proto 1.45.1: Span; 2026-11-19)
- The flag 0x02 says that the id of a trace is random.                        (W3C Trace Context, level 2, 2026-11-17)
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram, MeterProvider, NoOpMeter
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp
from opentelemetry.sdk import metrics
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
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
_PARENTS: Final = (0x100, 0x300)
"""The flags of a span whose parent is of this process, and of another one."""
_VALUES: Final = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
_MOST_KNOWN: Final = 4_000
_LONG: Final = (str, tuple)
_SHORT: Final = 100
"""The longest value whose bytes are kept: most of them are those of other spans too."""
_NEW_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED | 0x02)


def is_enough(environment: Mapping[str, str]) -> bool:
    """Whether the variables ask for nothing that the SDK's providers alone do."""
    return not any(name.startswith(_OTHERS) and value for name, value in environment.items())


def open_providers(
    address: str, attributes: Mapping[str, str], environment: Mapping[str, str], *, timeout: float
) -> tuple[TracerProvider, MeterProvider, tuple[Callable[[], object], ...]]:
    """Make the providers of spans and metrics that are sent to an address, and the functions that end them."""
    resource, is_light = Resource.create(attributes), is_enough(environment)
    exporter = with_light_encoding(OTLPSpanExporter) if is_light else OTLPSpanExporter
    spans = BatchSpanProcessor(exporter(f"{address}/v1/traces", timeout=timeout))
    sender = OTLPMetricExporter(f"{address}/v1/metrics", timeout=timeout)
    if is_light:
        light = LightMeters(resource)
        reader = LightReader(sender, light, environment)
        return LightTracers(resource, spans), light, (spans.shutdown, reader.shutdown)
    tracers = sdk.TracerProvider(resource=resource)
    tracers.add_span_processor(spans)
    meters = metrics.MeterProvider([export.PeriodicExportingMetricReader(sender)], resource=resource)
    return tracers, meters, (tracers.shutdown, meters.shutdown)


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
        self._ids = RandomIdGenerator()

    def start_span(  # noqa: PLR0917 - of the API
        self,
        name: str,
        context: Any = None,  # noqa: ANN401 - of the API
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Any = None,  # noqa: ANN401, ARG002 - of the API
        start_time: int | None = None,
        record_exception: bool = True,  # noqa: ARG002 - of the API
        set_status_on_exception: bool = True,  # noqa: ARG002 - of the API
    ) -> Span:
        """Start a span. Links and exceptions are not written: the gateway has none."""
        parent: SpanContext | None = get_current_span(context).get_span_context()
        if parent.is_valid:
            trace, flags, state = parent.trace_id, parent.trace_flags, parent.trace_state
        else:
            parent, trace, flags, state = None, self._ids.generate_trace_id(), _NEW_FLAGS, None
        made = SpanContext(trace, self._ids.generate_span_id(), is_remote=False, trace_flags=flags, trace_state=state)
        if not flags & TraceFlags.SAMPLED:
            return NonRecordingSpan(made)
        given, start = {**(attributes or {})}, start_time or time.time_ns()
        span = _LightSpan(
            name, made, parent, self.resource, given, kind=kind, start_time=start, instrumentation_scope=self.scope
        )
        span.pass_on = self.end
        return span

    def start_as_current_span(self, *given: Any, end_on_exit: bool = True, **named: Any) -> Any:  # noqa: ANN401 - of the API
        """Start a span that is the current one in a block."""
        return use_span(self.start_span(*given, **named), end_on_exit)


@final
class _LightSpan(ReadableSpan, Span):  # pyright: ignore[reportIncompatibleMethodOverride] - as the SDK's own
    """A span that is exported itself once it has ended."""

    pass_on: Any
    """Takes the span at its end."""
    _attributes: dict[str, Any]
    _end_time: int | None

    def end(self, end_time: int | None = None) -> None:
        if self._end_time is None:
            self._end_time = time.time_ns() if end_time is None else end_time
            self.pass_on(self)

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


def with_light_encoding(exporter: Any) -> Any:  # noqa: ANN401 - a class of the SDK
    """Return a class of exporters that encodes the spans of this module itself; the same class if it cannot be changed.

    The SDK's method finds its encoder by a global name, and here another function has it. Nothing else differs.
    """
    export, name = exporter.export, encode_spans.__name__
    if not isinstance(export, FunctionType) or name not in export.__code__.co_names:
        return exporter
    names = {**export.__globals__, name: encode_light_spans}
    made = FunctionType(export.__code__, names, export.__name__, export.__defaults__, export.__closure__)
    return type(exporter.__name__, (exporter,), {"export": made})


def encode_light_spans(spans: Sequence[Any]) -> Any:  # noqa: ANN401 - spans and messages without types
    """Encode spans of one tracer like `encode_spans` of the SDK, which makes objects of each attribute."""
    request: Any = encode_spans(spans[:1])  # its resource and its scope are those of all
    written = request.resource_spans[0].scope_spans[0].spans
    del written[:]
    for span in spans:
        context, parent, status = span.context, span.parent, span.status
        written.add(
            trace_id=context.trace_id.to_bytes(16),
            span_id=context.span_id.to_bytes(8),
            trace_state=",".join([f"{key}={value}" for key, value in context.trace_state.items()]),
            parent_span_id=None if parent is None else parent.span_id.to_bytes(8),
            name=span.name,
            kind=span.kind.value + 1,
            start_time_unix_nano=span.start_time,
            end_time_unix_nano=span.end_time,
            status=otlp.Status(code=status.status_code.value, message=status.description),
            flags=_PARENTS[parent is not None and parent.is_remote],
        ).MergeFromString(b"".join([_encode_attribute(*each) for each in span.attributes.items()]))
    return request


def _encode_attribute(name: str, value: Any) -> bytes:  # noqa: ANN401 - of a span
    """Encode an attribute as the field of a span."""
    return (_encode_anew if value.__class__ in _LONG and len(str(value)) > _SHORT else _encode_short)(name, value)


def _encode_anew(name: str, value: Any) -> bytes:  # noqa: ANN401 - of a span
    try:
        return _write(0x4A, _write(0x0A, name.encode()) + _write(0x12, _encode_value(value)))
    except (TypeError, ValueError):  # such as half of a pair of surrogates: the SDK leaves the attribute out too
        return b""


_encode_short: Final = lru_cache(_MOST_KNOWN, typed=True)(_encode_anew)


def _encode_value(value: Any) -> bytes:  # noqa: ANN401 - of a span
    """Encode a value as an `AnyValue`."""
    kind = _VALUES.get(value.__class__)
    if kind is None:  # a tuple
        return _write(0x2A, b"".join([_write(0x0A, _encode_value(each)) for each in value]))
    return _write(0x0A, value.encode()) if kind == "string_value" else AnyValue(**{kind: value}).SerializeToString()


def _write(tag: int, data: bytes) -> bytes:
    """Write a field of bytes: its tag, its length in groups of seven bits, and the bytes."""
    size, head = len(data), [tag]
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*head, size)) + data


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
