"""Spans and metrics of OpenTelemetry: one span for each request that is sent to a provider.

Facts:
- Names, units and values: `opentelemetry-semantic-conventions` 0.66b1; the tests compare each of them with the package.
  The conventions for generative AI are in development, and now have their own repository.    (read 2026-11-17)
- `gen_ai.usage.input_tokens` includes cached tokens, and `output_tokens` includes reasoning. (GenAI spans, 2026-11-17)
- Content is an opt-in: instructions, messages of the request, messages of the reply.         (GenAI spans, 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from segue.client.flow.attempts import Attempt
from segue.client.flow.steps import ReadEvents
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, Message, StopReason
from segue.errors import MissingExtra
from segue.foundation.json_text import encode_json
from segue.foundation.version import __version__
from segue.models.model import Model
from segue.protocols.registry import get_protocol
from segue.requests.prepare import Request

if TYPE_CHECKING:
    from opentelemetry.context import Context as TraceContext
    from opentelemetry.metrics import Histogram, Meter, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

ATTRIBUTES: Final = "segue.attributes"
"""The key of a trace context that holds attributes for all spans of its requests."""
_PROVIDERS: Final[Mapping[str, str]] = {
    "amazon-bedrock": "aws.bedrock",
    "amazon-bedrock-mantle": "aws.bedrock",
    "amazon-bedrock-openai": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers whose names differ in the conventions."""
_OPTIONS: Final = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "stop": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""The bounds of buckets that the conventions advise."""


@lru_cache(1_000)
def _describe_server(url: str) -> Mapping[str, Any]:
    place = urlsplit(url)
    if not place.hostname:
        return {}
    return {"server.address": place.hostname, "server.port": place.port or (80 if place.scheme == "http" else 443)}


def describe_model(model: Model) -> dict[str, Any]:
    """Return the attributes that spans and metrics of requests to a model share."""
    return {
        "gen_ai.operation.name": get_protocol(model.protocol).operation,
        "gen_ai.provider.name": _PROVIDERS.get(model.provider, model.provider),
        "gen_ai.request.model": model.id,
    }


class Telemetry:
    """Writes spans and metrics of the requests of a client, by OpenTelemetry's conventions for generative AI.

    Without providers, those are used that the application has set up for the whole process. With `content`, spans also
    have the instructions and messages of requests and replies. With `propagate`, the trace context is sent to providers
    in the header `traceparent`.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool = False,
        propagate: bool = False,
    ) -> None:
        try:
            self._trace: Any = import_module("opentelemetry.trace")
            metrics = import_module("opentelemetry.metrics")
            self._context: Any = import_module("opentelemetry.context")
            self.propagator: Any = import_module(
                "opentelemetry.trace.propagation.tracecontext"
            ).TraceContextTextMapPropagator()
        except ModuleNotFoundError as error:
            raise MissingExtra("telemetry needs OpenTelemetry, which is not installed", extra="otel") from error
        self.no_parent: TraceContext = self._context.Context()
        """The context of a span without a parent."""
        self.has_content: bool = content
        self.propagates: bool = propagate
        self.tracer: Tracer = self._trace.get_tracer("segue", __version__, tracer_provider)
        self.meter: Meter = metrics.get_meter("segue", __version__, meter_provider)
        self.duration: Histogram = self.histogram(
            "gen_ai.client.operation.duration", "GenAI operation duration.", "s", SECONDS
        )
        self.tokens: Histogram = self.histogram(
            "gen_ai.client.token.usage", "Number of input and output tokens used.", "{token}", TOKENS
        )
        self.first_chunk: Histogram = self.histogram(
            "gen_ai.client.operation.time_to_first_chunk", "Time to receive the first chunk.", "s", SECONDS
        )

    def __repr__(self) -> str:
        return f"Telemetry(content={self.has_content}, propagate={self.propagates})"

    def histogram(self, name: str, text: str, unit: str, bounds: tuple[float, ...]) -> Histogram:
        """Make a histogram with the advised buckets."""
        return self.meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=bounds)

    def start_span(
        self, name: str, kind: str, context: TraceContext | None, attributes: dict[str, Any], start: int | None = None
    ) -> Span:
        """Start a span; `kind` is `CLIENT` or `SERVER`, `start` Unix nanoseconds."""
        return self.tracer.start_span(
            name,
            context,
            getattr(self._trace.SpanKind, kind),
            attributes,
            start_time=start,
            record_exception=False,
            set_status_on_exception=False,
        )

    def fail(self, span: Span, error_type: str) -> None:
        """Mark a span as failed. The text of a failure is left out: it may quote the conversation."""
        span.set_attribute("error.type", error_type)
        span.set_status(self._trace.StatusCode.ERROR)

    def inside(self, span: Span, context: TraceContext | None, attributes: Mapping[str, Any]) -> object:
        """Make a span the current one, with attributes for the spans in it; return the token for `leave`."""
        within = self._trace.set_span_in_context(span, context)
        return self._context.attach(self._context.set_value(ATTRIBUTES, attributes, within))

    def leave(self, token: object) -> None:
        """Make the span current that was before `inside`."""
        self._context.detach(token)

    def send_on(self, span: Span, headers: dict[str, str]) -> None:
        """Write the context of a span into the headers of a request."""
        self.propagator.inject(headers, self._trace.set_span_in_context(span))

    def observe(self) -> Observation:
        """Observe a request; its spans are children of the span that is current now."""
        return Observation(self, self._context.get_current())


class Observation:
    """The attempts of one request: a span for each request that is sent."""

    def __init__(self, telemetry: Telemetry, context: TraceContext) -> None:
        self._telemetry = telemetry
        self._parent = context
        self._given: Mapping[str, Any] = context.get(ATTRIBUTES, {})  # pyright: ignore[reportAttributeAccessIssue]
        self._span: Span | None = None
        self._common: dict[str, Any] = {}
        self._began = 0.0
        self._first: float | None = None
        self._request: Request | None = None

    def begin(self, request: Request, headers: dict[str, str], url: str) -> None:
        """Start the span of a request; the trace context goes into its headers, if it may.

        The first attempt may have started it: then nothing is sent again.
        """
        if self._span is not None:
            return
        telemetry, model, options = self._telemetry, request.model, request.projection.options
        common = {**describe_model(model), **_describe_server(url)}
        attributes = {**common, **self._given}
        for field, name in _OPTIONS.items():
            if (value := getattr(options, field)) is not None:
                attributes[name] = value
        if options.stream:
            attributes["gen_ai.request.stream"] = True
        self._common, self._request, self._first, self._began = common, request, None, perf_counter()
        name = f"{common['gen_ai.operation.name']} {model.id}"
        self._span = telemetry.start_span(name, "CLIENT", self._parent, attributes)
        if telemetry.propagates:
            telemetry.send_on(self._span, headers)

    def timed(self, step: ReadEvents) -> ReadEvents:
        """Return a step that also notes when the first events of a stream arrived."""
        feed = step.feed

        def watch(data: bytes) -> list[Event]:
            events = feed(data)
            if self._first is None and events:
                self._first = perf_counter()
            return events

        return ReadEvents(watch, step.emits)

    def end(self, attempt: Attempt, message: AssistantMessage) -> None:
        """End the span of an attempt; one that was not sent has none."""
        span, request, telemetry = self._span, self._request, self._telemetry
        if span is None or request is None:
            return
        ended = perf_counter()
        self._span = None
        common = self._common
        is_aborted = message.stop_reason == StopReason.ABORTED
        failure = attempt.failure
        if failure is not None or is_aborted:
            common["error.type"] = "cancelled" if is_aborted or failure is None else str(failure.kind)
            telemetry.fail(span, common["error.type"])
        if message.response_model is not None:
            common["gen_ai.response.model"] = message.response_model
        if span.is_recording():
            span.set_attributes(_describe_reply(message, attempt))
            if self._first is not None:
                span.set_attribute("gen_ai.response.time_to_first_chunk", self._first - self._began)
            if telemetry.has_content:
                span.set_attributes(_describe_content(request, message))
        span.end()
        telemetry.duration.record(ended - self._began, common)
        if self._first is not None:
            telemetry.first_chunk.record(self._first - self._began, common)
        if (usage := message.usage) is not None:
            given = usage.input + usage.cache_read + usage.cache_write
            telemetry.tokens.record(given, {**common, "gen_ai.token.type": "input"})
            telemetry.tokens.record(usage.output, {**common, "gen_ai.token.type": "output"})


def _describe_reply(message: AssistantMessage, attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = {"segue.attempt.reason": attempt.reason, "segue.changes": len(attempt.report.losses)}
    if message.response_model is not None:
        found["gen_ai.response.model"] = message.response_model
    if message.response_id is not None:
        found["gen_ai.response.id"] = message.response_id
    if attempt.failure is None:
        found["gen_ai.response.finish_reasons"] = (message.raw_stop_reason or str(message.stop_reason),)
    if attempt.request_id is not None:
        found["segue.provider.request_id"] = attempt.request_id
    if attempt.failure is not None and attempt.failure.status is not None:
        found["http.response.status_code"] = attempt.failure.status
    usage = message.usage
    if usage is not None:
        found["gen_ai.usage.input_tokens"] = usage.input + usage.cache_read + usage.cache_write
        found["gen_ai.usage.output_tokens"] = usage.output
        if usage.cache_read:
            found["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
        if usage.cache_write:
            found["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write
        if usage.reasoning:
            found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
        if usage.cost is not None:
            found["segue.usage.cost"] = usage.cost.total
    return found


def _describe_content(request: Request, message: AssistantMessage) -> dict[str, Any]:
    context = request.projection.context
    found = {
        "gen_ai.input.messages": _write_messages(context.messages),
        "gen_ai.output.messages": _write_messages((message,)),
    }
    prompt = context.system_prompt
    texts = (prompt,) if isinstance(prompt, str) else [each.text for each in prompt or () if each.kind == "text"]
    if texts:
        found["gen_ai.system_instructions"] = _json([{"type": "text", "content": text} for text in texts])
    if context.tools:
        found["gen_ai.tool.definitions"] = _json(
            [
                {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
                if tool.kind == "function"
                else dict(tool.definition)
                for tool in context.tools
            ]
        )
    return found


def _write_messages(messages: tuple[Message, ...]) -> str:
    from segue.histories.kit.entries import Writing
    from segue.histories.kit.notes import Notes
    from segue.histories.opentelemetry.format import CODEC

    return _json(CODEC.write(messages, Writing(messages, Notes())))


def _json(value: object) -> str:
    return encode_json(value).decode()
