"""Spans and metrics of OpenTelemetry: one span for each request that is sent to a provider.

Facts:
- Names, units and values: `opentelemetry-semantic-conventions` 0.66b1; the tests compare each of them with the package.
  The conventions for generative AI are in development, and now have their own repository.    (read 2026-11-17)
- `gen_ai.usage.input_tokens` includes cached tokens, and `output_tokens` includes reasoning. (GenAI spans, 2026-11-17)
- Content is an opt-in: instructions, messages of the request, messages of the reply.         (GenAI spans, 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from functools import lru_cache, partial
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, final
from urllib.parse import urlsplit

import msgspec

from segue.client.flow.attempts import Attempt
from segue.client.flow.steps import ReadEvents
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
_ABORTED: Final = StopReason.ABORTED


@final
class Attributes(msgspec.Struct, gc=False):
    """Attributes that do not change, of one request or of many.

    No name in them is in other attributes of the same span.
    """

    values: dict[str, Any]
    encoded: bytes | None = None
    """Their bytes in a span."""


Parent: TypeAlias = "tuple[Span, TraceContext, Attributes]"
"""What spans of requests are children of: a span in a trace context, with attributes that they get too."""
_NONE: Final = Attributes({})
_PARENT: Final[ContextVar[Parent | None]] = ContextVar("segue.parent", default=None)
Record: TypeAlias = Callable[[float], object]
"""Takes measurements that have certain attributes."""
Target: TypeAlias = tuple[str, str, str, str]
"""Protocol, provider, model, and a URL; empty if it does not matter."""


def describe_values(names: Sequence[str], values: Sequence[object]) -> dict[str, Any]:
    """Return the attributes of these names that have a value."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def describe_target(protocol: str, provider: str, model: str, url: str = "") -> dict[str, Any]:
    """Return the attributes that spans and metrics of requests to a model share."""
    found: dict[str, Any] = {"gen_ai.operation.name": get_protocol(protocol).operation}
    place = urlsplit(url)
    found["gen_ai.provider.name"] = _PROVIDERS.get(provider, provider)
    found["gen_ai.request.model"] = model
    if place.hostname:
        found["server.address"] = place.hostname
        found["server.port"] = place.port or (80 if place.scheme == "http" else 443)
    return found


class _Beginning(NamedTuple):
    """What the spans of like attempts have at their start."""

    name: str
    target: Attributes
    options: Attributes


def _make_beginning(target: Target, *options: object) -> _Beginning:
    """Describe the start of attempts at a target with these options."""
    found = describe_target(*target)
    name = f"{found['gen_ai.operation.name']} {found['gen_ai.request.model']}"
    return _Beginning(name, Attributes(found), Attributes(describe_values(_OPTIONS, options)))


_find_beginning: Final = lru_cache(MOST_KEPT, typed=True)(_make_beginning)


_Outcome: TypeAlias = tuple[str, int, str | None, int | None]
"""The kind of an attempt, how many changes lose something, why the reply ended, and the status of a failure."""


class _Ending(NamedTuple):
    """What the spans of like attempts get at their end, and what takes their measurements."""

    attributes: Attributes
    duration: Record
    first_chunk: Record
    input: Record
    output: Record


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
        self.start_from_parts: Callable[..., Span] = getattr(self.tracer, "start_from_parts", self._start_from_parts)
        """Start a span, as with `start_span`, with attributes that have no name twice."""
        self.finish: Callable[[Span, tuple[Attributes, ...]], None] = getattr(self.tracer, "finish", _finish)
        """End a span with more attributes."""
        self.find_ending: Callable[..., _Ending] = lru_cache(MOST_KEPT)(partial(_make_ending, self))
        """The same as `_make_ending`, for names that are short."""
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
        parent: Parent | TraceContext,
        parts: tuple[Attributes, ...],
        start: int | None = None,
    ) -> Span:
        context: TraceContext = parent  # pyright: ignore[reportAssignmentType]
        if isinstance(parent, tuple):
            context = self._trace.set_span_in_context(parent[0], parent[1])
        return self.start_span(
            name, kind, context, {name: value for part in parts for name, value in part.values.items()}, start
        )

    def fail(self, span: Span, error_type: str) -> None:
        """Mark a span as failed. The text of a failure is left out: it may quote the conversation."""
        span.set_attribute("error.type", error_type)
        span.set_status(self._trace.StatusCode.ERROR)

    def inside(self, span: Span, context: TraceContext | None, attributes: Attributes) -> object:
        """Make a span the parent of requests, with attributes for their spans; return the token for `leave`."""
        return _PARENT.set((span, self._context.get_current() if context is None else context, attributes))

    def leave(self, token: object) -> None:
        """Make the span the parent that was before `inside`."""
        _PARENT.reset(cast("Token[Parent | None]", token))

    def send_on(self, span: Span, headers: dict[str, str]) -> None:
        """Write the context of a span into the headers of a request."""
        self.propagator.inject(headers, self._trace.set_span_in_context(span))

    def observe(self) -> Observation:
        """Observe a request; its spans are children of the span that is current now."""
        return Observation(self, _PARENT.get() or self._context.get_current())


def bind(histogram: Histogram, attributes: dict[str, Any]) -> Record:
    """Return what takes measurements of a histogram that have these attributes."""
    make: Callable[[dict[str, Any]], Record] | None = getattr(histogram, "bind", None)
    return partial(histogram.record, attributes=attributes) if make is None else make(attributes)


def _make_ending(
    telemetry: Telemetry, target: Target, error: str | None, model: str | None, ended: _Outcome
) -> _Ending:
    """Describe the end of attempts at a target: an error, the model that answered, and the outcome."""
    kind, losses, reason, status = ended
    common = describe_target(*target)
    found: dict[str, Any] = {"segue.attempt.reason": kind, "segue.changes": losses}
    if error is not None:
        common["error.type"] = error
    if model is not None:
        common["gen_ai.response.model"] = found["gen_ai.response.model"] = model
    if reason is not None:
        found["gen_ai.response.finish_reasons"] = (reason,)
    if status is not None:
        found["http.response.status_code"] = status
    given, made = [bind(telemetry.tokens, {**common, "gen_ai.token.type": each}) for each in ("input", "output")]
    duration, first = bind(telemetry.duration, common), bind(telemetry.first_chunk, common)
    return _Ending(Attributes(found), duration, first, given, made)


class Observation:
    """The attempts of one request: a span for each request that is sent."""

    _span: Span | None = None
    _request: Request | None = None
    _first: float | None = None

    def __init__(self, telemetry: Telemetry, parent: Parent | TraceContext) -> None:
        self._telemetry = telemetry
        self._parent = parent

    def begin(self, request: Request, headers: dict[str, str], url: str) -> None:
        """Start the span of a request; the trace context goes into its headers, if it may.

        The first attempt may have started it: then nothing is sent again.
        """
        if self._span is not None:
            return
        telemetry, model, parent, options = self._telemetry, request.model, self._parent, request.projection.options
        target = self._target = (model.protocol, model.provider, model.id, url)
        is_short = options.stop is None and len(model.id) <= LONGEST_KEPT  # texts may be long
        name, found, asked = (_find_beginning if is_short else _make_beginning)(
            target,
            options.max_tokens,
            options.temperature,
            options.top_p,
            options.stop,
            options.seed,
            options.stream or None,
        )
        self._request, self._first, self._began = request, None, perf_counter()
        given = parent[2] if isinstance(parent, tuple) else _NONE
        self._span = telemetry.start_from_parts(name, "CLIENT", parent, (found, given, asked))
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
        failure = attempt.failure
        error = "cancelled" if message.stop_reason == _ABORTED else None if failure is None else str(failure.kind)
        if error is not None:
            telemetry.fail(span, error)
        model, target = message.response_model, self._target
        reason = None if failure is not None else message.raw_stop_reason or str(message.stop_reason)
        is_short = len(target[2]) + len(model or "") + len(reason or "") <= LONGEST_KEPT
        losses = len(attempt.report.losses) if attempt.report.changes else 0
        outcome = attempt.reason, losses, reason, None if failure is None else failure.status
        end = telemetry.find_ending if is_short else partial(_make_ending, telemetry)
        found, record_duration, record_first, record_input, record_output = end(target, error, model, outcome)
        more: dict[str, Any] = {}
        if message.response_id is not None:
            more["gen_ai.response.id"] = message.response_id
        if attempt.request_id is not None:
            more["segue.provider.request_id"] = attempt.request_id
        if first is not None:
            more["gen_ai.response.time_to_first_chunk"] = first
        if telemetry.has_content and span.is_recording():
            more.update(_describe_content(request, message))
        parts = found, Attributes(more)
        if (usage := message.usage) is not None:
            parts = (*parts, describe_usage(usage))
            if usage.cache_read or usage.cache_write or usage.reasoning:
                parts = (*parts, _find_details(usage.cache_read, usage.cache_write, usage.reasoning))
        telemetry.finish(span, parts)
        record_duration(seconds)
        if first is not None:
            record_first(first)
        if usage is not None:
            record_input(usage.input + usage.cache_read + usage.cache_write)
            record_output(usage.output)


def describe_usage(usage: Usage) -> Attributes:
    """Describe what a reply used in all."""
    cost = None if usage.cost is None else usage.cost.total
    return _find_usage(usage.input + usage.cache_read + usage.cache_write, usage.output, cost)


@lru_cache(MOST_KEPT, typed=True)
def _find_usage(given: int, output: int, cost: float | None) -> Attributes:
    found: dict[str, Any] = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": output}
    if cost is not None:
        found["segue.usage.cost"] = cost
    return Attributes(found)


@lru_cache(MOST_KEPT, typed=True)
def _find_details(read: int, written: int, reasoning: int | None) -> Attributes:
    names = "cache_read.input_tokens", "cache_creation.input_tokens", "reasoning.output_tokens"
    values = zip(names, (read, written, reasoning), strict=True)
    return Attributes({f"gen_ai.usage.{name}": value for name, value in values if value})


def _finish(span: Span, parts: tuple[Attributes, ...]) -> None:
    if span.is_recording():
        span.set_attributes({name: value for part in parts for name, value in part.values.items()})
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
