"""The gateway's own spans and histograms are those that OpenTelemetry's SDK would write."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.collecting import collector
from gateway.running import KEYS, config_text
from gateway.test_telemetry import ask
from segue.client.http.telemetry import SECONDS, TOKENS
from segue.gateway import light_telemetry
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.light_telemetry import LightMeters, LightReader, LightTracers, is_enough
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
    for _ in range(300):
        seconds = chance.choice([*SECONDS, chance.random() * 100])
        tokens = chance.choice([0, *TOKENS, chance.randrange(10**8)])
        attributes = {"model": chance.choice("abc"), "port": 443}
        for durations, counts in made:
            durations.record(seconds, attributes)
            counts.record(tokens, dict(reversed(attributes.items())))
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
