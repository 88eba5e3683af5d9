"""The gateway's own spans and histograms are those that OpenTelemetry's SDK would write."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.collecting import collector
from gateway.running import KEYS, config_text
from gateway.test_telemetry import ask
from segue.client.http.telemetry import SECONDS, TOKENS, Attributes, bind
from segue.gateway import light_telemetry
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.light_telemetry import (
    Encoded,
    LightMeters,
    LightReader,
    LightTracers,
    encode_light_spans,
    is_enough,
    with_light_encoding,
)
from segue.gateway.service import Gateway
from segue.testing.emulator import Step, emulate, serve_in_thread

RESOURCE = Resource.create({"service.name": "tests"})
TRACED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
PARENTS = [
    {},
    TRACED,
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"},
    {"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"},
]


def sdk_spans(work: Callable[[Any], None]) -> list[Any]:
    memory = InMemorySpanExporter()
    tracers = TracerProvider(resource=RESOURCE)
    tracers.add_span_processor(SimpleSpanProcessor(memory))
    work(tracers)
    return list(memory.get_finished_spans())


def light_spans(work: Callable[[Any], None]) -> list[Any]:
    memory = InMemorySpanExporter()
    work(LightTracers(RESOURCE, SimpleSpanProcessor(memory)))
    return list(memory.get_finished_spans())


def describe(spans: list[Any]) -> list[Any]:
    """Give what does not differ by chance; parents by their names."""
    names = {span.context.span_id: span.name for span in spans}
    return [
        (
            span.name,
            span.kind,
            dict(span.attributes or {}),
            span.status.status_code,
            span.start_time,
            span.end_time,
            span.parent and (names.get(span.parent.span_id, span.parent.span_id), span.parent.is_remote),
            f"{span.context.trace_id:032x}" in TRACED["traceparent"],
            span.context.trace_flags,
            span.context.trace_state.to_header(),
            span.instrumentation_scope,
            span.resource,
        )
        for span in spans
    ]


@pytest.mark.parametrize("headers", PARENTS)
def test_spans_are_those_of_the_sdk(headers: dict[str, str]) -> None:
    parent = TraceContextTextMapPropagator().extract(headers, Context())

    def work(tracers: Any) -> None:
        tracer = tracers.get_tracer("segue", "1")
        server = tracer.start_span("chat m", parent, SpanKind.SERVER, {"a": 1, "b": "two"}, start_time=5)
        inside = set_span_in_context(server, parent)
        for number, is_failed in enumerate((True, False)):
            call = tracer.start_span(f"call {number}", inside, SpanKind.CLIENT, {"n": number}, start_time=6)
            if is_failed:
                call.set_status(StatusCode.ERROR)
                call.set_attribute("error.type", "overloaded")
            call.set_attributes({"reasons": ("stop",), "x": 0.5, "yes": True})
            call.set_attribute("is recorded", call.is_recording())
            call.end(7)
            call.set_attribute("late", 1)
            server.set_attribute(f"is recorded {number}", call.is_recording())
            call.end(8)
        server.end(9)

    assert describe(light_spans(work)) == describe(sdk_spans(work))


ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"a": 1, "b": True, "c": False, "d": 0, "e": 1.0, "f": 0.0, "g": "1", "h": ""},
    {"a": True, "b": 1, "c": 0, "d": False, "e": 1, "f": 0, "g": 1, "h": ("",)},
    {"a": -1, "b": 2**63 - 1, "c": -(2**63), "d": 1e300, "e": -0.5, "f": float("inf")},
    {"a": ("stop",), "b": ("one", "two"), "c": (), "d": "grün 🎨", "e": "x" * 500, "f": ("y" * 500,)},
    {"segue.usage.cost": 0.000123, "gen_ai.response.id": "chatcmpl-1", "port": 443},
]


@pytest.mark.parametrize("headers", PARENTS[:2])
def test_spans_are_encoded_as_the_sdk_does(headers: dict[str, str]) -> None:
    parent = TraceContextTextMapPropagator().extract(headers, Context())

    def work(tracers: Any) -> None:
        tracer = tracers.get_tracer("segue", "1", "https://schema.example")
        for number, attributes in enumerate(ATTRIBUTES * 2):
            server = tracer.start_span(f"chat {number}", parent, SpanKind.SERVER, attributes)
            for kind in SpanKind:
                call = tracer.start_span("call", set_span_in_context(server, parent), kind, {"n": number})
                if kind == SpanKind.CLIENT:
                    call.set_status(StatusCode.ERROR, "why" if number % 2 else None)
                call.set_attributes(attributes)
                call.end()
            if number % 2:
                server.set_status(StatusCode.OK)
            server.end()

    spans = light_spans(work)
    expected = encode_spans(spans)
    assert len(expected.resource_spans[0].scope_spans[0].spans) == len(ATTRIBUTES) * 2 * 6
    for _ in range(2):  # the second time most of the bytes are known
        assert read(encode_light_spans(spans)) == expected
        assert encode_light_spans(spans).data == expected.SerializeToString()


def test_an_attribute_that_cannot_be_encoded_is_left_out() -> None:
    def work(tracers: Any) -> None:
        given = {
            "a": 1,
            "half": "\ud800",
            "long": "\ud800" * 500,
            "too large": 2**63,
            "too small": -(2**63) - 1,
            "other": object(),
            "z": 2,
        }
        tracers.get_tracer("segue").start_span("chat", None, SpanKind.SERVER, given).end()

    spans = light_spans(work)
    found = read(encode_light_spans(spans))
    assert found == encode_spans(spans)
    assert [each.key for each in found.resource_spans[0].scope_spans[0].spans[0].attributes] == ["a", "z"]


def test_lengths_are_written_as_the_sdk_does() -> None:
    def work(tracers: Any) -> None:
        tracer = tracers.get_tracer("segue")
        for size in (*range(90, 135), 16_380, 16_384, 70_000):
            span = tracer.start_span(
                "n" * size, None, SpanKind.SERVER, {"t": "x" * size, "k" * size: (size, 2**size % 2**63)}
            )
            span.end()

    spans = light_spans(work)
    assert encode_light_spans(spans).data == encode_spans(spans).SerializeToString()


def test_attributes_that_spans_share_are_encoded_once_and_later_ones_replace_them() -> None:
    shared = Attributes({"a": 1, "b": "two"})

    def work(tracers: Any) -> None:
        tracer = tracers.get_tracer("segue")
        for number in range(3):
            span = tracer.start_from_parts("chat", "SERVER", Context(), (shared, Attributes({"n": number})))
            if number == 1:
                span.set_attribute("b", "other")
            tracer.finish(span, (Attributes({"end": True}),))
            tracer.finish(span, (Attributes({"late": True}),))

    spans = light_spans(work)
    found = read(encode_light_spans(spans))
    assert found == encode_spans(spans)
    assert shared.encoded is not None
    assert [dict(span.attributes) for span in spans] == [
        {"a": 1, "b": "two", "n": 0, "end": True},
        {"a": 1, "b": "other", "n": 1, "end": True},
        {"a": 1, "b": "two", "n": 2, "end": True},
    ]
    assert [len(each.attributes) for each in found.resource_spans[0].scope_spans[0].spans] == [4, 4, 4]


def test_a_span_that_is_not_written_can_be_finished() -> None:
    parent = TraceContextTextMapPropagator().extract(PARENTS[2], Context())

    def work(tracers: Any) -> None:
        tracer = tracers.get_tracer("segue")
        tracer.finish(tracer.start_from_parts("chat", "SERVER", parent, ()), (Attributes({"a": 1}),))

    assert light_spans(work) == []


def read(found: Encoded) -> Any:
    return ExportTraceServiceRequest.FromString(found.SerializePartialToString())


class Encoding(SpanExporter):
    def export(self, spans: Any) -> Any:
        return encode_spans(spans).SerializePartialToString()


class Other(SpanExporter):
    def export(self, spans: Any) -> Any:
        return len(spans)


class Reading(SpanExporter):
    def export(self, spans: Any) -> Any:
        return encode_spans(spans).resource_spans


def test_only_the_encoder_of_an_exporter_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_light_encoding(Other) is Other
    assert with_light_encoding(Reading) is Reading
    made = with_light_encoding(OTLPSpanExporter)
    assert made is not OTLPSpanExporter
    assert issubclass(made, OTLPSpanExporter)
    assert OTLPSpanExporter.export.__globals__["encode_spans"] is encode_spans
    spans = light_spans(lambda tracers: tracers.get_tracer("segue").start_span("chat").end())
    monkeypatch.setattr(light_telemetry, "encode_light_spans", lambda _: Encoded(b"light"))
    assert with_light_encoding(Encoding)().export(spans) == b"light"
    assert ExportTraceServiceRequest.FromString(Encoding().export(spans)) == encode_spans(spans)


def points_of(data: Any) -> list[Any]:
    return [
        (
            each.name,
            each.unit,
            each.description,
            each.data.aggregation_temporality,
            sorted(
                (
                    sorted(p.attributes.items()),
                    p.count,
                    p.sum,
                    tuple(p.bucket_counts),
                    tuple(p.explicit_bounds),
                    p.min,
                    p.max,
                )
                for p in each.data.data_points
            ),
        )
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for each in scope.metrics
    ]


def test_histograms_are_those_of_the_sdk() -> None:
    chance = random.Random(7)
    reader = InMemoryMetricReader()
    light = LightMeters(RESOURCE)
    meters: list[Any] = [MeterProvider([reader], resource=RESOURCE), light]
    made = [
        (
            meter.create_histogram("seconds", "s", "How long.", explicit_bucket_boundaries_advisory=SECONDS),
            meter.create_histogram("tokens", "{token}", "How many.", explicit_bucket_boundaries_advisory=TOKENS),
        )
        for meter in (provider.get_meter("segue", "1") for provider in meters)
    ]
    kept = {model: {"model": model, "port": 443} for model in "abc"}
    bound = {model: [bind(durations, kept[model]) for durations, _ in made] for model in "abc"}
    for number in range(3_000):
        seconds = chance.choice([*SECONDS, chance.random() * 100])
        tokens = chance.choice([0, *TOKENS, chance.randrange(10**8)])
        model = chance.choice("abc")
        if not number % 700:
            light.read()
        for (_, counts), record in zip(made, bound[model], strict=True):
            record(seconds)
            counts.record(tokens, dict(reversed(kept[model].items())))
    expected = points_of(reader.get_metrics_data())
    assert len(expected) == 2
    assert points_of(light.read()) == expected


def test_the_number_of_sets_of_attributes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light_telemetry, "_MOST_POINTS", 3)
    meters = LightMeters(RESOURCE)
    made = meters.get_meter("segue").create_histogram("n", explicit_bucket_boundaries_advisory=(1,))
    for number in range(9):
        made.record(number, {"model": str(number)})
    ((*_, points),) = points_of(meters.read())
    assert [(dict(point[0]), point[1]) for point in points] == [
        ({"model": "0"}, 1),
        ({"model": "1"}, 1),
        ({"model": "2"}, 1),
        ({"otel.metric.overflow": True}, 6),
    ]


def test_a_bound_histogram_has_a_point_from_its_first_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light_telemetry, "_MOST_POINTS", 1)
    meters = LightMeters(RESOURCE)
    made = meters.get_meter("segue").create_histogram("n", explicit_bucket_boundaries_advisory=(1,))
    _unused, record, again = [bind(made, {"model": model}) for model in ("unused", "a", "a")]
    assert points_of(meters.read()) == []
    for _ in range(300):  # more than wait to be counted
        record(1)
        again(2)
    made.record(3, {"model": "a"})
    ((*_, points),) = points_of(meters.read())
    assert [(point[0], point[1], point[2]) for point in points] == [([("model", "a")], 601, 903)]


def test_measurements_are_sent_again_and_again_and_at_the_end() -> None:
    sent: list[Any] = []

    class Exporter:
        def export(self, data: Any) -> None:
            sent.append(data)
            raise OSError("the collector is away")

        def shutdown(self) -> None:
            sent.append("over")

    meters = LightMeters(RESOURCE)
    made = meters.get_meter("segue").create_histogram("n", explicit_bucket_boundaries_advisory=(1,))
    reader = LightReader(Exporter(), meters, {"OTEL_METRIC_EXPORT_INTERVAL": "1"})
    made.record(1, {})
    while len(sent) < 3:
        time.sleep(0.001)
    reader.shutdown()
    assert sent[-1] == "over"
    assert all(points_of(data)[0][-1][0][1] == 1 for data in sent[:-1])


def test_variables_that_only_the_sdk_follows_choose_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_enough({"OTEL_SERVICE_NAME": "a", "OTEL_BSP_SCHEDULE_DELAY": "9", "OTEL_TRACES_SAMPLER": ""})
    assert not is_enough({"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"})
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with collector() as (url, got), emulate(Step(text="Hello.")) as upstream:
        config = load_config(config_text(upstream.url, store="none", more=f'[telemetry]\nendpoint = "{url}"\n'))
        gateway = Gateway(config, environment={**KEYS, "XDG_STATE_HOME": "/tmp"})
        with serve_in_thread(create_app(gateway=gateway)) as own:
            assert ask(own).status_code == 200
    assert not got["/v1/traces"]
    assert got["/v1/metrics"]
