"""Spans and metrics of OpenTelemetry: one span for each request that is sent to a provider.

Facts:
- Names, units and values: `opentelemetry-semantic-conventions` 0.66b1; the tests compare each of them with the package.
  The conventions for generative AI are in development, and now have their own repository.    (read 2026-11-17)
- `gen_ai.usage.input_tokens` includes cached tokens, and `output_tokens` includes reasoning. (GenAI spans, 2026-11-17)
- Content is an opt-in: instructions, messages of the request, messages of the reply.         (GenAI spans, 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final
from urllib.parse import urlsplit

from segue.client.flow.attempts import Attempt
from segue.client.flow.steps import ReadEvents
from segue.conversation.context import Options
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, Message, StopReason, Usage
from segue.errors import MissingExtra
from segue.foundation.json_text import encode_json
from segue.foundation.version import __version__
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
_OPTIONS: Final = tuple(
    f"gen_ai.request.{name}" for name in ("max_tokens", "temperature", "top_p", "stop_sequences", "seed", "stream")
)
SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""The bounds of buckets that the conventions advise."""


MOST_KEPT: Final = 1_000
LONGEST_KEPT: Final = 200
"""The longest name whose attributes are kept: clients and providers may send any name."""
_EMPTY: Final[Mapping[object, Any]] = MappingProxyType({})


@final
class Attributes(dict[str, Any]):
    """Attributes that do not change, of one request or of many: what is made of them is kept with them.

    No name in them is in other attributes of the same span.
    """

    encoded: bytes | None = None
    """Their bytes in a span."""
    points: Mapping[object, Any] = _EMPTY
    """Where instruments count measurements that have them."""


_NONE: Final = Attributes()
Target: TypeAlias = tuple[str, str, str, str]
"""Protocol, provider, model, and a URL; empty if it does not matter."""


def describe_target(protocol: str, provider: str, model: str, url: str = "") -> Attributes:
    """Return the attributes that spans and metrics of requests to a model share."""
    found, place = Attributes(), urlsplit(url)
    found["gen_ai.operation.name"] = get_protocol(protocol).operation
    found["gen_ai.provider.name"] = _PROVIDERS.get(provider, provider)
    found["gen_ai.request.model"] = model
    if place.hostname:
        found["server.address"] = place.hostname
        found["server.port"] = place.port or (80 if place.scheme == "http" else 443)
    return found


_find_target: Final = lru_cache(MOST_KEPT)(describe_target)


class _Series(NamedTuple):
    """The attributes of measurements: of times, and of each kind of tokens."""

    common: Attributes
    input: Attributes
    output: Attributes


def _make_series(target: Target, error: str | None, model: str | None) -> _Series:
    """Describe measurements of requests to a target that ended with this error, and were answered by this model."""
    common = describe_target(*target)
    if error is not None:
        common["error.type"] = error
    if model is not None:
        common["gen_ai.response.model"] = model
    kinds = [Attributes({**common, "gen_ai.token.type": kind}) for kind in ("input", "output")]
    return _Series(common, *kinds)


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
        self._make_context: Any = self._context.Context
        (self._span_key,) = self._trace.set_span_in_context(self._trace.INVALID_SPAN, self._make_context())
        self.no_parent: TraceContext = self._make_context()
        """The context of a span without a parent."""
        self.has_content: bool = content
        self.propagates: bool = propagate
        self.tracer: Tracer = self._trace.get_tracer("segue", __version__, tracer_provider)
        self.start_from_parts: Callable[..., Span] = getattr(self.tracer, "start_from_parts", self._start_from_parts)
        """Start a span, as with `start_span`, with attributes that have no name twice."""
        self.finish: Callable[[Span, tuple[Attributes, ...]], None] = getattr(self.tracer, "finish", _finish)
        """End a span with more attributes."""
        self.find_series: Callable[[Target, str | None, str | None], _Series] = lru_cache(MOST_KEPT)(_make_series)
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

    def _start_from_parts(
        self,
        name: str,
        kind: str,
        context: TraceContext | None,
        parts: tuple[Attributes, ...],
        start: int | None = None,
    ) -> Span:
        return self.start_span(
            name, kind, context, {name: value for part in parts for name, value in part.items()}, start
        )

    def fail(self, span: Span, error_type: str) -> None:
        """Mark a span as failed. The text of a failure is left out: it may quote the conversation."""
        span.set_attribute("error.type", error_type)
        span.set_status(self._trace.StatusCode.ERROR)

    def inside(self, span: Span, context: TraceContext | None, attributes: Attributes) -> object:
        """Make a span the current one, with attributes for the spans in it; return the token for `leave`."""
        given: Any = self._context.get_current() if context is None else context
        return self._context.attach(self._make_context({**given, self._span_key: span, ATTRIBUTES: attributes}))

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
        self._given: Attributes = context.get(ATTRIBUTES, _NONE)  # pyright: ignore[reportAttributeAccessIssue]
        self._span: Span | None = None
        self._target: Target = ("", "", "", "")
        self._began = 0.0
        self._first: float | None = None
        self._request: Request | None = None

    def begin(self, request: Request, headers: dict[str, str], url: str) -> None:
        """Start the span of a request; the trace context goes into its headers, if it may.

        The first attempt may have started it: then nothing is sent again.
        """
        if self._span is not None:
            return
        telemetry, model = self._telemetry, request.model
        target = self._target = (model.protocol, model.provider, model.id, url)
        common = (_find_target if len(model.id) <= LONGEST_KEPT else describe_target)(*target)
        self._request, self._first, self._began = request, None, perf_counter()
        name = f"{common['gen_ai.operation.name']} {model.id}"
        parts = (common, self._given, _describe_options(request.projection.options))
        self._span = telemetry.start_from_parts(name, "CLIENT", self._parent, parts)
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
        seconds = perf_counter() - self._began
        first = None if self._first is None else self._first - self._began
        self._span = None
        failure, is_aborted = attempt.failure, message.stop_reason == StopReason.ABORTED
        error = "cancelled" if is_aborted else None if failure is None else str(failure.kind)
        if error is not None:
            telemetry.fail(span, error)
        model, target = message.response_model, self._target
        reason = None if failure is not None else message.raw_stop_reason or str(message.stop_reason)
        status = None if failure is None else failure.status
        is_short = len(target[2]) + len(model or "") + len(reason or "") <= LONGEST_KEPT
        losses = len(attempt.report.losses) if attempt.report.changes else 0
        end = (_find_end if is_short else _make_end)(attempt.reason, losses, model, reason, status)
        more = Attributes()
        if message.response_id is not None:
            more["gen_ai.response.id"] = message.response_id
        if attempt.request_id is not None:
            more["segue.provider.request_id"] = attempt.request_id
        if first is not None:
            more["gen_ai.response.time_to_first_chunk"] = first
        if telemetry.has_content and span.is_recording():
            more.update(_describe_content(request, message))
        telemetry.finish(span, (end, more, *describe_usage(message.usage)))
        series = (telemetry.find_series if is_short else _make_series)(target, error, model)
        telemetry.duration.record(seconds, series.common)
        if first is not None:
            telemetry.first_chunk.record(first, series.common)
        if (usage := message.usage) is not None:
            telemetry.tokens.record(usage.input + usage.cache_read + usage.cache_write, series.input)
            telemetry.tokens.record(usage.output, series.output)


def _describe_options(options: Options) -> Attributes:
    limits = options.max_tokens, options.temperature, options.top_p
    find = _find_options if options.stop is None else _make_options  # texts may be long
    return find(*limits, options.stop, options.seed, options.stream or None)


def _make_options(*values: object) -> Attributes:
    return Attributes({name: value for name, value in zip(_OPTIONS, values, strict=True) if value is not None})


_find_options: Final = lru_cache(MOST_KEPT, typed=True)(_make_options)


def _make_end(kind: str, changes: int, model: str | None, reason: str | None, status: int | None) -> Attributes:
    """Describe the end of attempts of a kind: what was changed for them, the model that answered, why it ended."""
    found = Attributes({"segue.attempt.reason": kind, "segue.changes": changes})
    if model is not None:
        found["gen_ai.response.model"] = model
    if reason is not None:
        found["gen_ai.response.finish_reasons"] = (reason,)
    if status is not None:
        found["http.response.status_code"] = status
    return found


_find_end: Final = lru_cache(MOST_KEPT)(_make_end)


def describe_usage(usage: Usage | None) -> tuple[Attributes, Attributes]:
    """Describe a usage: what a reply has in all, and the parts of it."""
    if usage is None:
        return _NONE, _NONE
    cost = None if usage.cost is None else usage.cost.total
    given = usage.input + usage.cache_read + usage.cache_write
    return _find_usage(given, usage.output, cost), _find_details(usage.cache_read, usage.cache_write, usage.reasoning)


@lru_cache(MOST_KEPT, typed=True)
def _find_usage(given: int, output: int, cost: float | None) -> Attributes:
    found = Attributes({"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": output})
    if cost is not None:
        found["segue.usage.cost"] = cost
    return found


@lru_cache(MOST_KEPT, typed=True)
def _find_details(read: int, written: int, reasoning: int | None) -> Attributes:
    names = "cache_read.input_tokens", "cache_creation.input_tokens", "reasoning.output_tokens"
    values = zip(names, (read, written, reasoning), strict=True)
    return Attributes({f"gen_ai.usage.{name}": value for name, value in values if value})


def _finish(span: Span, parts: tuple[Attributes, ...]) -> None:
    if span.is_recording():
        span.set_attributes({name: value for part in parts for name, value in part.items()})
    span.end()


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
