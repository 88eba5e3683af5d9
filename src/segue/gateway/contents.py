"""What requests and replies say, as the store keeps it for the console: only if `state.content` is set."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, cast, final

import msgspec

from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage
from segue.conversation.stored import dump, dump_message
from segue.foundation.json_text import encode_json

_FAST: Final = 1
_MOST_BYTES: Final = 4_000_000
"""Bytes of a body that are kept as they came."""
_KEPT: Final = frozenset(
    {"type", "role", "kind", "name", "id", "tool_use_id", "tool_call_id", "toolCallId", "call_id", "toolName"}
    | {"model", "protocol", "provider", "stopReason", "stop_reason", "status", "mimeType", "media_type"}
)
"""Fields whose texts stay: they are names and ids."""
_WHOLE: Final = frozenset({"input", "arguments", "args", "response", "metadata", "extra", "details"})
"""Fields of which nothing stays: their own field names are the user's."""


@final
class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request and its reply.

    - `received`: the body of the client. `sent`: that of the last request to a provider.
    - `context`, `options`: the history with all of its states, and the options, in segue's own form.
    - `reply`: the message of the model. `redacted`: texts are replaced by their lengths.
    - `received_bytes`, `reply_bytes`: the bodies of the client and of the provider as they came, unless redacted.
    """

    received: msgspec.Raw = msgspec.Raw(b"null")
    sent: msgspec.Raw = msgspec.Raw(b"null")
    context: msgspec.Raw = msgspec.Raw(b"null")
    options: Options = Options()
    reply: msgspec.Raw = msgspec.Raw(b"null")
    redacted: bool = False
    received_bytes: bytes = b""
    reply_bytes: bytes = b""


_DECODER: Final = msgspec.json.Decoder(Content)


def dump_content(
    *,
    received: Mapping[str, object] | None,
    sent: bytes | None,
    context: Context,
    options: Options,
    reply: AssistantMessage | None,
    is_redacted: bool,
    received_bytes: bytes = b"",
    reply_bytes: bytes = b"",
) -> bytes:
    """Write a request and its reply; compressed, because agents send their whole history each time."""
    content = Content(
        received=_raw(encode_json(received), is_redacted=is_redacted),
        sent=_raw(sent or b"null", is_redacted=is_redacted),
        context=_raw(b"null" if is_redacted else dump(context), is_redacted=False),
        options=Options() if is_redacted else options,
        reply=_raw(b"null" if reply is None else dump_message(reply), is_redacted=is_redacted),
        redacted=is_redacted,
        received_bytes=b"" if is_redacted else received_bytes[:_MOST_BYTES],
        reply_bytes=b"" if is_redacted else reply_bytes[:_MOST_BYTES],
    )
    return zlib.compress(encode_json(content), _FAST)


def load_content(data: bytes) -> Content:
    """Read what `dump_content` wrote."""
    return _DECODER.decode(zlib.decompress(data))


def _raw(data: bytes, *, is_redacted: bool) -> msgspec.Raw:
    return msgspec.Raw(encode_json(redact(msgspec.json.decode(data))) if is_redacted else data)


def redact(value: object, field: str = "") -> object:
    """Give a JSON value in which texts are replaced by their lengths; names and ids stay."""
    if isinstance(value, str):
        return value if field in _KEPT else f"[{len(value)} characters]"
    if field in _WHOLE:
        return "[redacted]"
    if isinstance(value, list):
        return [redact(each, field) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: redact(each, name) for name, each in cast("dict[str, Any]", value).items()}
    return value
