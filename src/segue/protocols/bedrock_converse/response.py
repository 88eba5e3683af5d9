"""A Bedrock reply, both ways: content, usage, why it ended.

Facts this file rests on:
- `inputTokens`, `cacheReadInputTokens` and `cacheWriteInputTokens` add up to the whole input; `totalTokens` is the sum
  of them and the output. How long writes are kept stands in `cacheDetails`.
                                         (recorded traffic, 2026-11; botocore 1.44.0 service model, read 2026-11-15)
- Stop reasons.                                                                                       (service model)
- A prompt router says which model it asked in `trace`.                                               (service model)
- boto3 adds `ResponseMetadata`, with the id of the request.                         (botocore 1.44.0, tried 2026-11-15)

A reply is written the usual way, then what the one that was read had said differently is put in its place. That stands
in the message's `extra` under `reply`: only the way back to a reply looks at it; none of it belongs into a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.bedrock_converse.content import decode_assistant_block, encode_assistant_blocks
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.errors import decode_error, is_error
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.turns import blocks_of, original_of, restore_content
from segue.protocols.bedrock_converse.verbatim import Block, Wire, keep, object_of, plain, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import number_of, of_reply, reply_extra, text_of, verbatim_of

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "guardrail_intervened": StopReason.ERROR,
    "content_filtered": StopReason.ERROR,
    "malformed_model_output": StopReason.ERROR,
    "malformed_tool_use": StopReason.ERROR,
}
UNKNOWN_STOP: Final = StopReason.STOP
"""For reasons nobody has heard of: they come with a reply that is whole."""

_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}
_FRAME_KEYS: Final = frozenset({"output"})
_MESSAGE_KEYS: Final = frozenset({"role", "content"})
_LONG: Final = "1h"
_OTHER: Final = "other_output"
"""The key of the shape for an output that is no message: it is a union, and may have more members one day."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: it has no message, or content that is not what the protocol says.
    """
    output = object_of(body.get("output"))
    message = output.get("message")
    if not isinstance(message, Mapping):
        if output and "message" not in output and "stopReason" in body:
            return finish_response(body, (), {_OTHER: plain(output)}, endpoint)
        if "output" in body or not is_error(body):
            raise DecodeError("a reply has to have a message", path=("output", "message"))
        failed = finish_response(body, (), {"output": "absent"}, endpoint)
        return replace(failed, stop_reason=StopReason.ERROR, error_message=error_text(body))
    turn = cast("Block", message)
    original = original_of(turn)
    verbatim: Wire = dict(original[1]) if original else {}
    if original is not None:
        pieces: tuple[AssistantContent, ...] = original[0]
    else:
        blocks = blocks_of(turn["content"], ("output", "message", "content"))
        pieces = tuple([decode_assistant_block(block, endpoint, tool_names, reply=True) for block in blocks])
    if turn.get("role") != "assistant":
        verbatim.update({"role": turn["role"]} if "role" in turn else {"roleless": True})
    for key, part, known in (("message", turn, _MESSAGE_KEYS), ("output", output, {"message"})):
        beyond = {name: value for name, value in part.items() if name not in known}
        if beyond:
            verbatim[key] = plain(beyond)
    return finish_response(body, pieces, verbatim, endpoint)


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], verbatim: Wire, endpoint: Endpoint
) -> AssistantMessage:
    """Make a message of its content and of what the wire said about it as a whole."""
    raw = text_of(body.get("stopReason"))
    stop = stop_reason_of(raw, pieces)
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(object_of(body.get("ResponseMetadata")).get("RequestId")),
        response_model=_invoked(body),
        usage=decode_usage(body.get("usage"), endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=_failure(raw) if stop == StopReason.ERROR else None,
    )
    return replace(message, extra=reply_extra_of(_difference(body, _frame(message), verbatim, _FRAME_KEYS)))


def reply_extra_of(received: Extra | None) -> Extra | None:
    """Put what only a reply says where no request looks."""
    return None if received is None else of_reply(PROTOCOL, received[PROTOCOL])


def stop_reason_of(raw: str | None, pieces: Sequence[AssistantContent]) -> StopReason:
    """Say why a reply ended; one that stopped with calls in it waits for their results, whatever it says.

    Without a reason only calls that came whole tell that it is finished.
    """
    calls = [piece for piece in pieces if piece.kind == "toolCall"]
    if raw is None:
        whole = bool(calls) and all(call.arguments_text is None for call in calls)
        return StopReason.TOOL_USE if whole else StopReason.ERROR
    stop = STOP_REASONS.get(raw, UNKNOWN_STOP)
    return StopReason.TOOL_USE if calls and stop == StopReason.STOP else stop


def error_text(body: object) -> str:
    """Say what an error body, or the exception of a stream, reports."""
    error = decode_error(body, None)
    return ": ".join(literal for literal in (error.type, error.message) if literal) or "the provider reported an error"


def _failure(raw: str | None) -> str:
    return "the reply ended without a stop reason" if raw is None else f"the reply ended with {raw}"


def _invoked(body: Block) -> str | None:
    router = object_of(object_of(body.get("trace")).get("promptRouter"))
    return text_of(router.get("invokedModelId"))


def decode_usage(given: object, endpoint: Endpoint) -> Usage | None:
    """Read the counts, and compute what they cost."""
    if not isinstance(given, Mapping):
        return None
    wire = cast("Block", given)
    counted = Usage(
        input=number_of(wire.get("inputTokens")),
        output=number_of(wire.get("outputTokens")),
        cache_read=number_of(wire.get("cacheReadInputTokens")),
        cache_write=number_of(wire.get("cacheWriteInputTokens")),
    )
    total = counted.input + counted.output + counted.cache_read + counted.cache_write
    usage = replace(counted, total_tokens=number_of(wire.get("totalTokens")) or total)
    cost = find_cost(endpoint.model.cost, usage, cache_write_long=min(_kept_long(wire), usage.cache_write))
    return replace(usage, cost=cost, extra=_difference(wire, _encode_counts(usage), {}))


def _kept_long(wire: Block) -> int:
    details = wire.get("cacheDetails")
    rows = [object_of(row) for row in cast("Sequence[object]", details)] if isinstance(details, list | tuple) else []
    return sum(number_of(row.get("inputTokens")) for row in rows if row.get("ttl") == _LONG)


def _difference(wire: Block, default: Block, verbatim: Wire, skip: frozenset[str] = frozenset()) -> Extra | None:
    """Keep what the wire says that the usual writing does not, and which keys of the usual writing it lacks."""
    received = skip | {key for key, value in default.items() if key in wire and wire[key] == value}
    if absent := [key for key in default if key not in wire]:
        verbatim = {**verbatim, "absent": absent}
    return keep(wire, received, verbatim)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: its content has no word on this wire.
    """
    response = reply_extra(message.extra, PROTOCOL) or {}
    received: Extra | None = {PROTOCOL: response} if response else None
    verbatim = verbatim_of(received, PROTOCOL)
    wire = _completed(_frame(message), received)
    if verbatim.get("output") == "absent" and not message.content:
        return wire
    if _OTHER in verbatim and not message.content:
        return {"output": verbatim[_OTHER], **wire}
    blocks = encode_assistant_blocks(message.content, endpoint, DocumentNames(), reply=True)
    content = restore_content(blocks, verbatim)
    turn: Wire = {"role": verbatim.get("role", "assistant"), "content": content, **object_of(verbatim.get("message"))}
    if "roleless" in verbatim:
        del turn["role"]
    if content is None and verbatim.get("content") == "absent":
        del turn["content"]
    return {"output": {"message": turn, **object_of(verbatim.get("output"))}, **wire}


def _frame(message: AssistantMessage) -> Wire:
    """Write everything but the content, the usual way."""
    raw = message.raw_stop_reason
    wire: Wire = {"stopReason": raw if raw in STOP_REASONS else _REASONS_BACK.get(message.stop_reason)}
    if message.usage is not None:
        wire["usage"] = _completed(_encode_counts(message.usage), message.usage.extra)
    return wire


def _encode_counts(usage: Usage) -> Wire:
    total = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
    wire: Wire = {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": total}
    if usage.cache_read:
        wire["cacheReadInputTokens"] = usage.cache_read
    if usage.cache_write:
        wire["cacheWriteInputTokens"] = usage.cache_write
    return wire


def _completed(wire: Wire, extra: Extra | None) -> Wire:
    if extra is None or PROTOCOL not in extra:
        return wire
    wire.update(put_back(extra))
    absent = verbatim_of(extra, PROTOCOL).get("absent")
    for key in cast("Sequence[str]", absent) if isinstance(absent, list | tuple) else ():
        wire.pop(key, None)
    return wire
