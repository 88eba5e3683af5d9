"""Plain lines of a Claude Code session: most of a long one, and made into messages without the codec.

The codec compares a turn with its own encoding, to find what has to be kept verbatim. That takes most of the time of
reading a session. What is not plain is left to it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.conversation.fast_checks import is_plain
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.wire import TurnCodec
from segue.models.price import find_cost
from segue.protocols.kit.readable_signatures import is_wrapped

WIRE: Final = TurnCodec("anthropic-messages", "messages")
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_INTEGERS: Final = [int] * len(_COUNTS)
_PLAIN_STOPS: Final[dict[str | None, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    None: StopReason.STOP,  # the lines around such a reply show the reason
}


def plain_reply(body: dict[str, Any], blocks: list[object], model: str) -> AssistantMessage | None:
    """Make a message of a plain reply, which is kept beside the message as well; None for any other reply."""
    if body.get("stop_sequence", "") is not None:
        return None
    raw, written_by = body.get("stop_reason"), body.get("model")
    stop = _PLAIN_STOPS.get(raw) if raw is None or isinstance(raw, str) else None
    counts = counts_of(object_of(body.get("usage")))
    is_known = stop is not None and text_of(written_by) is not None and text_of(body.get("id")) is not None
    if not is_known or list(map(type, counts.values())) != _INTEGERS:
        return None
    content = [_plain_block(block) for block in blocks]
    kinds = list(map(type, content))
    if type(None) in kinds or (raw is not None and (ToolCall in kinds) != (raw == "tool_use")):
        return None
    fresh, written, cached, output = cast("tuple[int, ...]", tuple(counts.values()))
    known = WIRE.model(model)
    usage = Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        cache_write=written,
        total_tokens=fresh + written + cached + output,
    )
    return AssistantMessage(
        content=tuple(cast("list[AssistantContent]", content)),
        protocol=WIRE.protocol,
        model=known.id,
        provider=known.provider,
        response_id=body["id"],
        response_model=written_by,
        usage=replace(usage, cost=find_cost(known.cost, usage)),
        stop_reason=stop or StopReason.STOP,
        raw_stop_reason=raw,
    )


def _plain_block(given: object) -> AssistantContent | None:
    """Make content of a block without unusual fields; None for any other block."""
    block, size = object_of(given), len(object_of(given))
    match block.get("type"):
        case "text" if size == 2 and type(text := block.get("text")) is str:
            return TextContent(text=text)
        case "thinking" if size == 3 and type(text := block.get("thinking")) is str:
            signature = text_of(block.get("signature"))
            if signature is not None and not is_wrapped(signature):
                return ThinkingContent(thinking=text, thinking_signature=signature)
        case "tool_use" if size == 4 or (size == 5 and block.get("caller") == _DIRECT):
            call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
            if type(call_id) is str and type(name) is str and type(arguments) is dict and is_plain([arguments]):
                extra = _kept_of_calls() if size == 5 else None
                return ToolCall(id=call_id, name=name, arguments=cast("dict[str, object]", arguments), extra=extra)
        case _:
            pass
    return None


def plain_turn(turn: dict[str, Any]) -> tuple[Message, ...]:
    """Make the message of a turn of the user that is one text or one result with a text; nothing for any other."""
    content = turn.get("content")
    if len(turn) != 2 or turn.get("role") != "user" or content == "text":  # the codec keeps that text in another way
        return ()
    if type(content) is str:
        return (UserMessage(content=(TextContent(text=content),), extra=_kept_of_users()),)
    blocks = cast("list[object]", content) if type(content) is list else []
    block = object_of(blocks[0]) if len(blocks) == 1 else {}
    call_id, text, failed = block.get("tool_use_id"), block.get("content"), block.get("is_error")
    if block.get("type") != "tool_result" or type(call_id) is not str or type(text) is not str or text == "text":
        return ()
    if len(block) != (3 if failed is None else 4) or type(failed) not in _FLAGS:
        return ()
    texts, extra, failed = (TextContent(text=text),), _kept_of_results(failed), failed is True
    return (ToolResultMessage(tool_call_id=call_id, tool_name="", content=texts, is_error=failed, extra=extra),)


_DIRECT: Final = {"type": "direct"}
_FLAGS: Final = frozenset({bool, type(None)})
# What the codec keeps of plain turns is the same for all of them.


@cache
def _kept_of_users() -> Extra | None:
    return WIRE.decode([{"role": "user", "content": "x"}])[0].extra


@cache
def _kept_of_results(failed: bool | None) -> Extra | None:
    block = {"type": "tool_result", "tool_use_id": "x", "content": "x"}
    block |= {} if failed is None else {"is_error": failed}
    return WIRE.decode([{"role": "user", "content": [block]}])[0].extra


@cache
def _kept_of_calls() -> Extra | None:
    block = {"type": "tool_use", "id": "x", "name": "x", "input": {}, "caller": _DIRECT}
    return WIRE.decode([{"role": "assistant", "content": [block]}])[0].content[0].extra


def counts_of(usage: dict[str, Any]) -> dict[str, object]:
    """Give the token counts of a reply in the form in which the codec writes them."""
    counts: dict[str, object] = {name: usage.get(name) or 0 for name in _COUNTS}
    if thinking := object_of(usage.get("output_tokens_details")).get("thinking_tokens"):
        counts["output_tokens_details"] = {"thinking_tokens": thinking}
    if object_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"):
        counts["cache_creation"] = usage["cache_creation"]
    return counts
