"""A whole reply of an OpenAI chat endpoint, both ways.

The first choice is the message. The difference between the reply and its default format is kept under `reply`, which no
request reads.

Tokens and cost as OpenAI chat replies report them, both ways.

Error bodies of OpenAI chat endpoints, and error objects in their streams.

What replies of the chat completions protocol hold of other replies.

Facts:
- `choices[]` of message and finish reason, usage next to them; one vendor puts usage into the choice.
                                                  (openai 3.49.0; pi-ai 1.5.0 for Moonshot; recorded traffic, 2026-11)
- Finish reasons: stop, length, tool_calls, content_filter, function_call; vendors add others.
                                           (openai 3.49.0; systems 5.6; DeepSeek and Z.ai documentation, 2026-11-15)
- The reason of a reply that calls tools may be `stop`.                        (Ollama's and Gemini's OpenAI APIs)
- Gateways answer 200 with an `error` in place of choices, or in the choice.              (OpenRouter documentation)
- `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning; details are subsets. (openai 3.49.0)
- Cached tokens are `prompt_tokens_details.cached_tokens`, `prompt_cache_hit_tokens` or `cached_tokens`; those written
  are `prompt_tokens_details.cache_write_tokens`.                                        (pi-ai 1.5.0; recorded traffic)
- Gateways to Claude also send Claude's own keys, counted into `prompt_tokens`.      (LiteLLM: Usage, read 2026-11-15)
- `completion_tokens` of some vendors leaves reasoning out; the total shows it, also where nothing else does.
                   (recorded traffic, 2026-11: xai/0095; Google's OpenAI API: recordings of pydantic-ai, 2026-01)
- The cost that a gateway reports counts; with a key of one's own the cost of the upstream provider is added.
                                                                              (pi-ai 1.5.0; recorded traffic, 2026-11)
- One of `cost_in_usd_ticks` is 1e-10 dollars.                                       (recorded traffic, xai/0095)
- In a stream an error is the same object as in a body, as a chunk.                                  (openai 3.49.0)
- A message has `annotations` with a `url_citation` {url, title, start_index, end_index}. The place of pages that
  another model cites is not known, so they are at the end.                        (openai 3.49.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import ToolCall
from segue.conversation.context import ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, Usage, UsageCost
from segue.errors import DecodeError, EncodeError
from segue.models.model import Model
from segue.models.price import find_cost, find_share
from segue.protocols.families.citations import write_span
from segue.protocols.families.functions import free_text
from segue.protocols.families.openai_errors import decode_error
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_list, expect_object, number_of
from segue.protocols.kit.replies import ended_with, keep_reply, read_stop, restore_reply
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.sources import CitedPage
from segue.protocols.kit.verbatim import data_of, keep, restore
from segue.protocols.openai_chat.assistant import CUSTOM, decode_reply, encode_assistant
from segue.protocols.openai_chat.content import text_field
from segue.protocols.openai_chat.options import is_custom
from segue.protocols.openai_chat.rules import PROTOCOL

_CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
_KNOWN: Final = (*_CACHED, "cache_creation_input_tokens", "reasoning_tokens")
"""Keys that are read and never written by default."""
_COUNTS: Final = frozenset[type]({int})
_TICK: Final = 1e-10


def decode_usage(wire: Block, model: Model, around: Block) -> Usage:
    """Read usage into tokens by category, and the cost; `around` is the reply or the chunk that has the usage."""
    prompt, completion = number_of(wire.get("prompt_tokens")), number_of(wire.get("completion_tokens"))
    read, written = object_of(wire.get("prompt_tokens_details")), object_of(wire.get("completion_tokens_details"))
    cached = _first(read.get("cached_tokens"), *map(wire.get, _CACHED))
    stored = _first(read.get("cache_write_tokens"), wire.get("cache_creation_input_tokens"))
    reasoning = _first(written.get("reasoning_tokens"), wire.get("reasoning_tokens"))
    total = number_of(wire.get("total_tokens"))
    missing = total - prompt - completion
    if missing > 0 and missing == (reasoning or (0 if cached or stored else missing)):
        completion, reasoning = completion + missing, missing
    usage = Usage(
        input=max(0, prompt - cached - stored),
        output=completion,
        cache_read=cached,
        cache_write=stored,
        reasoning=reasoning,
        total_tokens=total or prompt + completion,
    )
    default, cost = encode_usage(usage), _cost(wire, usage, model, around)
    is_default = wire == default and _COUNTS.issuperset(map(type, wire.values()))
    extra = None if is_default else keep(PROTOCOL, wire, default, _KNOWN)
    return usage if cost is extra is None else replace(usage, cost=cost, extra=extra)


def encode_usage(usage: Usage) -> Wire:
    """Write usage."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    wire: Wire = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total_tokens or prompt + usage.output,
    }
    if usage.cache_read or usage.cache_write:
        details: Wire = {"cached_tokens": usage.cache_read}
        if usage.cache_write:
            details["cache_write_tokens"] = usage.cache_write
        wire["prompt_tokens_details"] = details
    if usage.reasoning:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return restore(wire, usage.extra, PROTOCOL)


def _first(*counts: object) -> int:
    """Return the first count above zero: vendors fill one key and leave zeros in others."""
    for count in counts:
        if count and (number := number_of(count)) > 0:
            return number
    return 0


def _cost(wire: Block, usage: Usage, model: Model, around: Block) -> UsageCost | None:
    share = 1.0 if around.get("service_tier") is None else find_share(model, around)
    computed = find_cost(model.cost, usage, share=share)
    billed = _billed(wire)
    if billed is None:
        return computed
    return UsageCost(total=billed) if computed is None else replace(computed, total=billed)


def _billed(wire: Block) -> float | None:
    """Return the cost that the provider reports, in dollars."""
    given, ticks = wire.get("cost"), wire.get("cost_in_usd_ticks")
    if given is None and ticks is None:
        return None
    if (cost := _amount(given)) is not None:
        upstream = _amount(object_of(wire.get("cost_details")).get("upstream_inference_cost"))
        return cost + upstream if wire.get("is_byok") is True and upstream is not None else cost
    if (total := _amount(object_of(given).get("total_cost"))) is not None:
        return total
    return None if (count := _amount(ticks)) is None else count * _TICK


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        return None
    return float(value)


_FAILED: Final = ("content_filter", "sensitive", "error", "network_error", "insufficient_system_resource")
STOP_REASONS: Final[Mapping[str, StopReason]] = {
    **dict.fromkeys(("stop", "end", "eos", "eos_token", "end_turn", "stop_sequence", "completed"), StopReason.STOP),
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), StopReason.LENGTH),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), StopReason.TOOL_USE),
    **dict.fromkeys(_FAILED, StopReason.ERROR),
    **dict.fromkeys(("abort", "cancelled"), StopReason.ABORTED),
}
_WITHHELD: Final = "content_filter"
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.ERROR: "error",
    StopReason.ABORTED: "stop",
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error becomes a message that failed.

    Raises:
        DecodeError: there are neither choices nor an error, or choices or calls are not in the format of the protocol.
    """
    choices, usage = body.get("choices"), body.get("usage")
    is_error = bool(body.get("error")) or body.get("object") == "error"
    if choices is None and not is_error:
        raise DecodeError("the body has neither choices nor an error; pass a reply of openai-chat", path=("choices",))
    fields: Wire
    content: Wire | None = None
    choice: Block = EMPTY
    if choices:
        choice = expect_object(expect_list(choices, ("choices",))[0], ("choices", 0))
        fields, content = _read_choice(choice, endpoint, tool_names)
        if not isinstance(usage, (dict, Mapping)):
            usage = choice.get("usage")
    else:
        reason = decode_error(body, None).message if is_error else "the reply has no choices"
        fields = {"content": (), "stop_reason": StopReason.ERROR, "error_message": reason}
    response_id, model = body.get("id"), body.get("model")
    message = AssistantMessage(
        protocol=PROTOCOL,
        provider=endpoint.model.provider,
        model=endpoint.model.id,
        response_id=response_id if isinstance(response_id, str) and response_id else None,
        response_model=model if isinstance(model, str) and model else None,
        usage=decode_usage(cast("Block", usage), endpoint.model, body) if isinstance(usage, (dict, Mapping)) else None,
        **fields,  # pyright: ignore[reportArgumentType]  # the fields of a message
    )
    try:
        default = encode_reply(message, endpoint, content)
    except EncodeError as error:
        raise DecodeError(error.reason, path=("choices", 0, "message")) from error
    # What is known to be the same is the same object in both, so nothing in it is compared again.
    if content is not None and default["choices"] == choices and type(choice.get("index")) is int:
        default["choices"] = choices
    if message.usage is not None and message.usage.extra is None:
        default["usage"] = usage
    return replace(message, extra=keep_reply(PROTOCOL, default, body))


def _read_choice(choice: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> tuple[Wire, Wire | None]:
    """Return fields of the message, and its default format if that is known."""
    wire = object_of(choice.get("message"))
    content, notes, default = decode_reply(wire, endpoint, ("choices", 0, "message"), tool_names)
    reason, error = choice.get("finish_reason"), choice.get("error")
    reason = reason if isinstance(reason, str) else None
    stop = StopReason.ERROR if error else read_stop(STOP_REASONS, reason, [piece.kind for piece in content])
    fields: Wire = {
        "content": content,
        "stop_reason": stop,
        "raw_stop_reason": reason,
        "error_message": decode_error(error, None).message if error else ended_with(reason, stop),
        "diagnostics": notes,
    }
    return fields, default


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply; one that was read is written as it was received.

    Raises:
        EncodeError: a block of another protocol.
    """
    return restore_reply(PROTOCOL, encode_reply(message, endpoint), message.extra)


def encode_reply(message: AssistantMessage, endpoint: Endpoint, content: Wire | None = None) -> Wire:
    """Write a reply in the default format; `content` is its message, if that is known.

    Raises:
        EncodeError: a block of another protocol.
    """
    body: Wire = {
        "id": message.response_id or "",
        "object": "chat.completion",
        "created": (message.timestamp or 0) // 1000,
        "model": message.response_model or message.model,
        "choices": [encode_choice(message, endpoint, content=content)],
    }
    if message.usage is not None:
        body["usage"] = encode_usage(message.usage)
    return body


def encode_choice(message: AssistantMessage, endpoint: Endpoint, index: int = 0, content: Wire | None = None) -> Wire:
    """Write one choice of a reply in the default format."""
    stop = StopReason(message.stop_reason)
    is_withheld = stop == StopReason.ERROR and message.raw_stop_reason == _WITHHELD
    return {
        "index": index,
        "message": content or encode_assistant(message.content, endpoint, ("choices", index, "message"), reply=True),
        "finish_reason": _WITHHELD if is_withheld else _FINISH_REASONS[stop],
    }


def _cite_in_reply(
    message: AssistantMessage,
    endpoint: Endpoint,
    pages: Sequence[CitedPage],
    queries: Sequence[str],  # noqa: ARG001 - the format has no place for them
) -> AssistantMessage:
    text = message.text()
    annotations = [
        {"type": "url_citation", "url_citation": {"url": page.url, "title": page.title, **write_span(text, page)}}
        for page in pages
    ]
    default = encode_reply(message, endpoint)
    first, *others = cast("list[Wire]", default["choices"])
    cited = {**first, "message": {**cast("Wire", first["message"]), "annotations": annotations}}
    received = {**default, "choices": [cited, *others]}
    return replace(message, extra=keep_reply(PROTOCOL, default, received, message.extra))


def _as_declared(call: ToolCall, tool: ToolDefinition) -> tuple[ToolCall, Block]:
    if not is_custom(tool):
        return call, EMPTY
    given = object_of(object_of(data_of(tool.extra, PROTOCOL).get("custom")).get("format"))
    text = free_text(call, has_grammar=given.get("type") == "grammar")
    return replace(call, arguments={"input": text}, arguments_text=None, extra=CUSTOM), {"field": "custom"}


REPLY_FORM: Final = ReplyForm(
    id_prefix="chatcmpl-",
    refusals=("content_filter", "sensitive"),  # openai 3.49.0: Choice.finish_reason; Z.ai's documentation, 2026-11
    is_refusal=lambda text: text_field(text) in ("refusal", "part.refusal"),
    cite_in_reply=_cite_in_reply,
    as_declared=_as_declared,
)
