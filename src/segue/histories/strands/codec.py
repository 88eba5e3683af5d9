"""Messages of Strands: Converse messages, each in an envelope with its number and times.

Facts this file rests on (strands-agents 1.62.0, 2026-11-15):
- Bytes are stored as `{"__bytes_encoded__": true, "data": base64}`.
- All results of a batch of calls are one message of the user. There is no role for instructions.
- `metadata` of a message is never sent: `usage`, without cached tokens in the input, `metrics`, and `custom`.
- A model is not named. `redact_message` replaces a message where a guardrail removed something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, NativeContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Usage,
    UserMessage,
)
from segue.errors import EncodeError
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.lines import integer_of, object_of, text_of
from segue.histories.kit.origins import marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import is_base64, note_signatures, note_unsupported, shown
from segue.histories.kit.stamps import iso_of, milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.projection.report import ChangeCode, Loss

NAME: Final = "strands"
TITLE: Final = "Strands"
WIRE: Final = TurnCodec("bedrock-converse", "messages")
_CLAUDE: Final = "anthropic.claude-sonnet-4-5-20250929-v1:0"
"""The model whose form of Converse has signatures; the framework stores them for every provider."""
_BYTES: Final = "__bytes_encoded__"
_DEFAULT: Final = Origin(protocol="bedrock-converse", provider="amazon-bedrock", model="")


def plain_bytes(value: object) -> object:
    """Give encoded bytes as base64, which is their form in the JSON of Converse."""
    if isinstance(value, list):
        return [plain_bytes(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = object_of(cast("object", value))
    if fields.get(_BYTES) is True and isinstance(fields.get("data"), str):
        return fields["data"]
    return {key: plain_bytes(item) for key, item in fields.items()}


def _encoded(value: object) -> object:
    """Write bytes as the framework stores them."""
    if isinstance(value, list):
        return [_encoded(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, object] = {}
    for key, item in object_of(cast("object", value)).items():
        is_bytes = key in {"bytes", "redactedContent"} and isinstance(item, str)
        made[key] = {_BYTES: True, "data": item} if is_bytes else _encoded(item)
    return made


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    message = object_of(entry.get("redact_message")) or object_of(entry.get("message"))
    if text_of(message.get("role")) not in {"user", "assistant"} or not isinstance(message.get("content"), list):
        return []
    metadata = object_of(message.get("metadata"))
    turn = {"role": message["role"], "content": plain_bytes(message["content"])}
    time = milliseconds_of(entry.get("created_at"))
    made: list[Message] = []
    for each in WIRE.decode([turn], _CLAUDE, "amazon-bedrock"):
        if isinstance(each, AssistantMessage):
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            origin = marked_origin(_DEFAULT, object_of(metadata.get("custom")))
            reply = replace(each, timestamp=time, usage=_read_usage(object_of(metadata.get("usage"))))
            made.append(set_origin(reply, origin))
        elif isinstance(each, SystemMessage):
            made.append(each)
        else:
            made.append(replace(each, timestamp=time))
    return made


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    if not usage:
        return None
    return Usage(
        input=integer_of(usage.get("inputTokens")),
        output=integer_of(usage.get("outputTokens")),
        cache_read=integer_of(usage.get("cacheReadInputTokens")),
        cache_write=integer_of(usage.get("cacheWriteInputTokens")),
        total_tokens=integer_of(usage.get("totalTokens")),
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    prepared = [_prepared(message, writing) for message in messages]
    first = messages[0]
    if isinstance(prepared[0], AssistantMessage):
        turns = [{"role": "assistant", "content": _blocks_of(prepared[0])}]
    else:
        turns = WIRE.encode(prepared, _CLAUDE, "amazon-bedrock")
    time = None if isinstance(first, SystemMessage) else first.timestamp
    stamp = {} if time is None else {"created_at": iso_of(time), "updated_at": iso_of(time)}
    entries: list[Entry] = []
    for turn in turns:
        message: Entry = {"role": turn["role"], "content": _encoded(turn["content"])}
        if isinstance(first, AssistantMessage) and (metadata := _metadata(first)):
            message["metadata"] = metadata
        entries.append({"message": message, "redact_message": None, **stamp})
    return entries


def _blocks_of(message: AssistantMessage) -> list[object]:
    """Write the blocks of a reply. The framework stores reasoning with and without a signature."""
    blocks: list[object] = []
    for piece in message.content:
        if not isinstance(piece, ThinkingContent):
            (turn,) = WIRE.encode([replace(message, content=(piece,))], _CLAUDE, "amazon-bedrock")
            blocks += turn["content"]
        elif piece.redacted and not piece.thinking:
            blocks.append({"reasoningContent": {"redactedContent": piece.thinking_signature or ""}})
        else:
            signed = {} if piece.thinking_signature is None else {"signature": piece.thinking_signature}
            blocks.append({"reasoningContent": {"reasoningText": {"text": piece.thinking, **signed}}})
    return blocks


def _metadata(message: AssistantMessage) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if (usage := message.usage) is not None:
        counts = {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.total_tokens}
        cached = {"cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write}
        metadata["usage"] = {**counts, **{name: count for name, count in cached.items() if count}}
    if mark := origin_mark(message, _DEFAULT):
        metadata["custom"] = mark
    return metadata


def _prepared(message: Message, writing: Writing) -> Message:
    """Give a message that Converse can hold: what it cannot hold is reported."""
    if isinstance(message, SystemMessage):
        writing.note(message, ChangeCode.SYSTEM_AS_USER, Loss.NONE, f"{TITLE} has no role for instructions")
        return UserMessage(content=tuple(piece for piece in shown(message, writing) if isinstance(piece, TextContent)))
    kept: list[AnyContent] = []
    for piece in message.content:
        own = isinstance(piece, NativeContent) and piece.protocol == WIRE.protocol
        for each in [piece] if own else shown(message, writing, [piece]):
            if not (isinstance(message, AssistantMessage) and each.kind in {"image", "file"}) and _can_encode(
                message, each
            ):
                kept.append(each)
            else:
                note_unsupported(message, writing, each, TITLE)
    if isinstance(message, AssistantMessage) and any(
        getattr(piece, name, None) for piece in kept for name in ("text_signature", "thought_signature")
    ):
        note_signatures(message, writing, TITLE)
    return message if list(message.content) == kept else replace(message, content=tuple(kept))


def _can_encode(message: Message, piece: AnyContent) -> bool:
    if isinstance(piece, (TextContent, ThinkingContent)):
        return True
    data = getattr(piece, "data", None)
    if isinstance(data, str) and not is_base64(data):
        return False
    try:
        WIRE.encode([replace(message, content=(piece,))], _CLAUDE, "amazon-bedrock")
    except (EncodeError, ValueError, TypeError):
        return False
    return True


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)
