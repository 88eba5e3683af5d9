"""Spans and histograms that cost little: OpenTelemetry's API for the gateway's own telemetry.

The SDK checks, copies and locks each attribute of a span, and sorts those of a measurement for each record. Here they
are the gateway's own: strings, numbers, and tuples of strings. Batches, exporters and their variables are the SDK's.
Every trace is written, unless its client decided otherwise, and every histogram is cumulative: where variables ask for
something else, the SDK's own providers are used (`is_enough`).

Facts:
- An object for each value, and a lookup for each measurement, take most of the time of telemetry: requests share parts
  of attributes with their bytes, and bound measurements.              (opentelemetry-sdk 1.45.1, measured 2026-11-20)
- Buckets include their upper bounds. After 2,000 sets of attributes, all others are one with `otel.metric.overflow`.
                                                              (OpenTelemetry specification: metrics SDK, 2026-11-17)
- OTLP's flags 0x100 and 0x200 say that it is known whether the parent is remote, and that it is. A message of protobuf
  may be read in parts: the bytes of its fields, one after another.   (opentelemetry-proto 1.45.1: Span; 2026-11-19)
- Tags of fields: 0x0A, 0x12, 0x22 the ids of a trace, a span and its parent; 0x1A the state; 0x2A the name; 0x30 the
  kind; 0x39 and 0x41 the times; 0x4A attributes; 0x7A the status; 0x85 0x01 the flags. In an attribute: 0x0A and 0x12
  its key and value. As a value: 0x0A a text, 0x10 a truth value, 0x18 and 0x21 an integer and a float, 0x2A a list,
  with 0x0A for each of it. In spans: 0x0A a resource and a scope, 0x12 what is in them, 0x1A the URL of a schema.
                                                                  (opentelemetry-proto 1.45.1: Span; 2026-11-19)
- The flag 0x02 says that the id of a trace is random.                        (W3C Trace Context, level 2, 2026-11-17)
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import getrandbits
from struct import Struct
from types import FunctionType
from typing import Any, ClassVar, Final, NamedTuple, final

import msgspec
from opentelemetry.context import Context, get_current
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram, MeterProvider, NoOpMeter
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp
from opentelemetry.sdk import metrics
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    TraceState,
    get_current_span,
    set_span_in_context,
    use_span,
)

from segue.client.http.telemetry import Attributes, Record
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
_MOST_VALUES: Final = 256
"""How many measurements wait until they are put into buckets."""
_OVERFLOW: Final[Mapping[str, Any]] = {"otel.metric.overflow": True}
_PARENTS: Final = (b"\x85\x01\x00\x01\x00\x00", b"\x85\x01\x00\x03\x00\x00")
"""The flags of a span whose parent is of this process, and of another one."""
_TIMES: Final = Struct("<BQBQ")
_SAMPLED: Final = TraceFlags.SAMPLED
_UNSET: Final = Status()
(_SPAN_KEY,) = set_span_in_context(INVALID_SPAN, Context())
"""Where a context has its span."""
_IDS: Final = 0x0A10 << 208 | 0x1208 << 64
"""The fields of the ids of a trace and of a span, as one number: the ids are put between."""
_FLOAT: Final = Struct("<Bd")
_MOST_KNOWN: Final = 1_000
_LONGEST_KNOWN: Final = 200
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
class LightTracers(TracerProvider):
    """Passes the spans that have ended to a processor of the SDK."""

    def __init__(self, resource: Resource, processor: SpanProcessor) -> None:
        self._resource = resource
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
        self.frame: tuple[bytes, bytes, bytes, bytes] | None = None
        """What is before and after the spans in a message: resource, scope, and the URLs of their schemas."""
        # `on_end` of a batch only asks whether a span is sampled, and all spans of this module are.
        self.end: Any = getattr(getattr(processor, "_batch_processor", None), "emit", processor.on_end)

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
        span = self.start_from_parts(name, kind.name, context, (), start_time)
        span.set_attributes(attributes or {})
        return span

    def start_from_parts(
        self,
        name: str,
        kind: str,
        context: Any,  # noqa: ANN401 - of the API, or a `Parent` of the client
        parts: tuple[Attributes, ...],
        start: int | None = None,
    ) -> Any:  # noqa: ANN401 - a span of this class is one only at run time
        """Start a span with several `Attributes`, none of which has a name of another one."""
        is_inside = context.__class__ is tuple
        parent: Any = context[0] if is_inside else (get_current() if context is None else context).get(_SPAN_KEY)
        if parent is not None and parent.__class__ is not _LightSpan:
            parent = (parent if is_inside else get_current_span(context)).get_span_context()
            parent = parent if parent.is_valid else None
        if parent is not None and not parent.trace_flags & _SAMPLED:
            trace, flags, state = parent.trace_id, parent.trace_flags, parent.trace_state
            made = SpanContext(trace, getrandbits(64) or 1, is_remote=False, trace_flags=flags, trace_state=state)
            return NonRecordingSpan(made)
        start = start or time.time_ns()
        if parent is None:
            return _LightSpan(self, name, kind, None, getrandbits(128) or 1, getrandbits(64) or 1, parts, start)
        trace, flags, state = parent.trace_id, parent.trace_flags, parent.trace_state
        return _LightSpan(self, name, kind, parent, trace, getrandbits(64) or 1, parts, start, flags, state)

    def finish(self, span: Any, parts: tuple[Attributes, ...]) -> None:  # noqa: ANN401 - as above
        """End a span with more attributes, none of which it has already."""
        if isinstance(span, _LightSpan) and span.end_time is None:
            span.parts += parts
            span.end_time = time.time_ns()
            self.end(span)

    def start_as_current_span(self, *given: Any, end_on_exit: bool = True, **named: Any) -> Any:  # noqa: ANN401 - of the API
        """Start a span that is the current one in a block."""
        return use_span(self.start_span(*given, **named), end_on_exit)


@final
class _LightSpan(msgspec.Struct, gc=False):
    """A span that is exported itself once it has ended: it can be read like those of the SDK.

    Its attributes are in parts.
    """

    tracer: _LightTracer
    name: str
    kind_name: str
    above: Any
    """The parent: a span of this class, or a context."""
    trace_id: int
    span_id: int
    parts: tuple[Attributes, ...]
    start_time: int
    trace_flags: TraceFlags = _NEW_FLAGS
    trace_state: TraceState | None = None
    status: Status = _UNSET
    end_time: int | None = None
    is_mixed: bool = False
    """Whether a name may be in two parts: the last one counts."""

    is_remote: ClassVar[bool] = False
    events: ClassVar[tuple[()]] = ()
    links: ClassVar[tuple[()]] = ()
    dropped_attributes: ClassVar[int] = 0
    dropped_events: ClassVar[int] = 0
    dropped_links: ClassVar[int] = 0

    def get_span_context(self) -> SpanContext:
        flags, state = self.trace_flags, self.trace_state
        return SpanContext(self.trace_id, self.span_id, is_remote=False, trace_flags=flags, trace_state=state)

    context = property(get_span_context)
    parent = property(lambda self: self.above.get_span_context() if type(self.above) is _LightSpan else self.above)
    kind = property(lambda self: SpanKind[self.kind_name])
    resource = property(lambda self: self.tracer.resource)
    instrumentation_scope = property(lambda self: self.tracer.scope)

    @property
    def attributes(self) -> dict[str, Any]:
        return {name: value for part in self.parts for name, value in part.values.items()}

    def end(self, end_time: int | None = None) -> None:
        if self.end_time is None:
            self.end_time = time.time_ns() if end_time is None else end_time
            self.tracer.end(self)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if self.end_time is None:
            self.parts += (Attributes({**attributes}),)
            self.is_mixed = True

    def set_attribute(self, key: str, value: Any) -> None:  # noqa: ANN401 - of the API
        self.set_attributes({key: value})

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:  # noqa: ANN401 - of the API
        """Do nothing: the gateway has no events."""

    def update_name(self, name: str) -> None:
        self.name = name

    def is_recording(self) -> bool:
        return self.end_time is None

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        if self.end_time is None:
            self.status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - of the API
        """Do nothing: the text of an exception may quote a conversation."""


Span.register(_LightSpan)


def with_light_encoding(exporter: Any) -> Any:  # noqa: ANN401 - a class of the SDK
    """Return a class of exporters that encodes the spans of this module itself; the same class if it cannot be changed.

    The SDK's method finds its encoder by a global name, and here another function has it. Nothing else differs.
    """
    export, name = exporter.export, encode_spans.__name__
    if not isinstance(export, FunctionType) or not {name, "SerializePartialToString"} <= {*export.__code__.co_names}:
        return exporter
    names = {**export.__globals__, name: encode_light_spans}
    made = FunctionType(export.__code__, names, export.__name__, export.__defaults__, export.__closure__)
    return type(exporter.__name__, (exporter,), {"export": made})


@final
class Encoded(NamedTuple):
    """A message that is encoded already, as exporters send it."""

    data: bytes

    def SerializePartialToString(self) -> bytes:  # noqa: N802 - of protobuf
        """Return its bytes."""
        return self.data


def encode_light_spans(spans: Sequence[Any]) -> Encoded:
    """Encode spans of one tracer to the bytes that `encode_spans` of the SDK makes of an object for each value."""
    tracer: _LightTracer = spans[0].tracer  # its resource and its scope are those of all
    before, scope, after, end = tracer.frame = tracer.frame or _encode_frame(spans[:1])
    written = [scope]
    for span in spans:
        data = _encode_span(span)
        written += (b"\x12", _write_number(len(data)), data)
    written.append(after)
    data = b"".join(written)
    before += b"\x12" + _write_number(len(data))
    return Encoded(b"".join((b"\x0a", _write_number(len(before) + len(data) + len(end)), before, data, end)))


def _encode_frame(spans: Sequence[Any]) -> tuple[bytes, bytes, bytes, bytes]:
    first = encode_spans(spans).resource_spans[0]
    scope = first.scope_spans[0]
    return (
        _write(0x0A, first.resource.SerializeToString()),
        _write(0x0A, scope.scope.SerializeToString()) if scope.HasField("scope") else b"",
        _write_text(0x1A, scope.schema_url),
        _write_text(0x1A, first.schema_url),
    )


def _encode_span(span: _LightSpan) -> bytes:
    """Encode a span."""
    above, state, name = span.above, span.trace_state, span.name
    written = [(_IDS | span.trace_id << 80 | span.span_id).to_bytes(28)]
    if state:
        written.append(_write_text(0x1A, ",".join([f"{key}={value}" for key, value in state.items()])))
    if above is not None:
        written += (b"\x22\x08", above.span_id.to_bytes(8))
    written += (
        (_encode_name if len(name) <= _LONGEST_KNOWN else _encode_name.__wrapped__)(name, span.kind_name),
        _TIMES.pack(0x39, span.start_time, 0x41, span.end_time),
    )
    for part in (Attributes(span.attributes),) if span.is_mixed else span.parts:
        written.append(_encode_part(part) if part.encoded is None else part.encoded)
    is_remote = above is not None and above.is_remote
    written += (b"\x7a\x00" if span.status is _UNSET else _encode_status(span.status), _PARENTS[is_remote])
    return b"".join(written)


def _encode_part(part: Attributes) -> bytes:
    """Encode attributes as fields of a span."""
    written: list[bytes] = []
    for name, value in part.values.items():
        try:
            is_text = value.__class__ is str
            data = value.encode() if is_text else _encode_value(value)
        except (TypeError, ValueError, OverflowError):  # half of a pair of surrogates: the SDK leaves it out too
            continue
        written += (_find_start(name, len(data), is_text), data)
    part.encoded = b"".join(written)
    return part.encoded


@lru_cache(_MOST_KNOWN)
def _find_start(name: str, size: int, is_text: bool) -> bytes:
    """Return what is in front of a value of so many bytes, or of a text, in the field of an attribute."""
    value = b"\x0a" + _write_number(size) if is_text else b""
    start = _write(0x0A, name.encode()) + b"\x12" + _write_number(len(value) + size) + value
    return b"\x4a" + _write_number(len(start) + size) + start


@lru_cache(_MOST_KNOWN)
def _encode_name(name: str, kind: str) -> bytes:
    return _write_text(0x2A, name) + bytes((0x30, SpanKind[kind].value + 1))


def _encode_status(status: Status) -> bytes:
    found: Any = {"code": status.status_code.value, "message": status.description}
    return _write(0x7A, otlp.Status(**found).SerializeToString())


def _encode_value(value: Any) -> bytes:  # noqa: ANN401 - of a span
    """Encode a value as an `AnyValue`."""
    kind = value.__class__
    if kind is str:
        return _write(0x0A, value.encode())
    if kind is bool:
        return b"\x10\x01" if value else b"\x10\x00"
    if kind is int:
        return b"\x18" + _write_number(int.from_bytes(value.to_bytes(8, signed=True)))
    if kind is float:
        return _FLOAT.pack(0x21, value)
    return _write(0x2A, b"".join([_write(0x0A, _encode_value(each)) for each in value]))


def _write_text(tag: int, text: str) -> bytes:
    """Write a field of a text, which is left out if it is empty."""
    return _write(tag, text.encode()) if text else b""


def _write(tag: int, data: bytes) -> bytes:
    """Write a field of bytes: its tag, its length, and the bytes."""
    return bytes((tag,)) + _write_number(len(data)) + data


@lru_cache(_MOST_KNOWN)
def _write_number(number: int) -> bytes:
    """Write a number in groups of seven bits."""
    groups: list[int] = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))


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

    __slots__ = ("attributes", "buckets", "highest", "lowest", "start", "sum", "values")

    def __init__(self, attributes: Mapping[str, Any], bounds: int) -> None:
        self.attributes: Mapping[str, Any] = {**attributes}
        self.buckets: list[int] = [0] * (bounds + 1)
        self.sum: float = 0
        self.lowest: float = float("inf")
        self.highest: float = float("-inf")
        self.start: int = time.time_ns()
        self.values: list[float] = []
        """What is not in the buckets yet."""


@final
class _LightHistogram(Histogram):
    def __init__(self, name: str, unit: str, description: str, bounds: tuple[float, ...]) -> None:
        super().__init__(name, unit, description)
        self._name, self._unit, self._text = name, unit, description
        self._bounds = bounds
        self._points: dict[frozenset[tuple[str, Any]], _Point] = {}
        self._lock = threading.Lock()

    def record(self, amount: float, attributes: Any = None, context: Any = None) -> None:  # noqa: ANN401, ARG002
        self.bind(attributes or {})(amount)

    def bind(self, attributes: Mapping[str, Any]) -> Record:
        """Return what takes measurements that have these attributes. Their point is made for the first of them."""
        point: _Point | None = None

        def add(amount: float) -> None:
            nonlocal point
            if point is None:
                point = self._find(attributes)
            values = point.values
            values.append(amount)
            if len(values) >= _MOST_VALUES:
                with self._lock:
                    self._count(point)

        return add

    def _find(self, attributes: Mapping[str, Any]) -> _Point:
        key = frozenset(attributes.items())
        with self._lock:
            if key not in self._points and len(self._points) >= _MOST_POINTS:
                attributes, key = _OVERFLOW, frozenset(_OVERFLOW.items())
            if (point := self._points.get(key)) is None:
                point = self._points[key] = _Point(attributes, len(self._bounds))
        return point

    def _count(self, point: _Point) -> None:
        """Put the values of a point into its buckets. More may arrive meanwhile, after these."""
        values = point.values[:]
        for each in values:
            point.buckets[bisect_left(self._bounds, each)] += 1
            point.sum += each
        point.lowest = min((point.lowest, *values))
        point.highest = max((point.highest, *values))
        del point.values[: len(values)]

    def read(self, now: int) -> export.Metric | None:
        """Return what was measured; None if that is nothing."""
        with self._lock:
            for each in self._points.values():
                self._count(each)
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
                if each.lowest <= each.highest  # it has values
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
