"""Results of tools, both ways.

Facts this file rests on:
- `response` is an object. The output of a tool stands under `output`, an error under `error`; without either the whole
  object is the output, and it may be empty.          (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- Some clients write an output that is not an object under other keys: the official one under `result`, pydantic-ai
  under `return_value`, and errors under `call_error`.                   (google-genai 3.1.0; recorded traffic, 2026-11)
- Media stand in `parts` of the response, from Gemini 3 on.   (Google documentation: multimodal function responses)
- `name` may not be empty: "function_response.name: Name cannot be empty" (CLIProxyAPI #2104). It is the call's.
- A call without an id is answered without one, in the order of the calls.                  (recorded traffic, 2026-11)

One text is written under `output` or `error`, several as a list there, none as an empty object; then come the media. So
the order of a result whose media stand before its texts is not kept. Any other response is read as text too, as JSON.

Choices (`kit.verbatim`): `name` ("sent" or "absent") of a result whose tool name is unknown; `turn`, see `turns`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import TextContent, ToolResultContent
from segue.conversation.messages import ToolResultMessage
from segue.errors import EncodeError
from segue.protocols.google_genai.content import RESULT, decode_user_part, encode_user_content
from segue.protocols.google_genai.keys import keep_format, read_keys
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.verbatim import choose, chosen, restore
from segue.protocols.kit.waiting_calls import WaitingCalls

OUTPUT: Final = "output"
ERROR: Final = "error"
MESSAGE: Final = "message"
"""The key of a result's `extra` that holds the keys of the content which the result begins."""

_FAILURES: Final = frozenset({ERROR, "call_error"})
_WRAPPERS: Final = _FAILURES | {OUTPUT, "result", "return_value"}
_KNOWN: Final = frozenset({f"{RESULT}.id", f"{RESULT}.name"})

Texts: TypeAlias = tuple[tuple[TextContent, ...], bool]
"""The texts of a response, and whether it is an error."""


class Calls:
    """The newest batch of calls that was read, by their ids, and which of them still wait for a result."""

    def __init__(self) -> None:
        self._waiting: WaitingCalls[tuple[str, Block]] = WaitingCalls()
        self._made: dict[str, Block] = {}

    def begin(self, made: Sequence[tuple[str, Block]]) -> None:
        """Begin a batch."""
        self._made = dict(made)
        self._waiting = WaitingCalls((call_id, text_of(call.get("name")), (call_id, call)) for call_id, call in made)

    def find(self, call_id: str | None, name: str | None) -> tuple[str, Block] | None:
        """Find the call that a result answers: by its id, else the next one of that name, else the next one."""
        return self._waiting.answer(call_id, name)

    def find_written(self, call_id: str) -> Block | None:
        """Find the call that the writer of a result finds: the last one of that id, answered or not."""
        return self._made.get(call_id)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def is_result(part: Block) -> bool:
    """Whether a part is a tool result in a known form."""
    raw = part[RESULT] if RESULT in part else part.get("function_response")
    return isinstance(raw, dict) and "type" not in part and MESSAGE not in part


def decode_result(
    part: Block, calls: Calls, endpoint: Endpoint, choices: Block, turn: tuple[Block, Block] | None
) -> ToolResultMessage:
    """Read a result. `turn` is the content that it begins, as received and by default, if it is not in the default."""
    raw = read_keys(part)[RESULT]
    inside = read_keys(object_of(raw))
    call_id, name = text_of(inside.get("id")), text_of(inside.get("name"))
    found = calls.find(call_id, name)
    found_id, answered = found if found is not None else ("", EMPTY)
    call = calls.find_written(call_id or found_id)
    (texts, is_error), media = _decode_response(inside), _decode_parts(inside)
    message = ToolResultMessage(
        tool_call_id=call_id or found_id,
        tool_name=name or text_of((answered or call or EMPTY).get("name")) or "",
        content=(*texts, *media),
        is_error=is_error,
    )
    if (  # fast path: the default format, as nearly every result
        turn is None
        and not choices
        and inside is raw
        and len(part) == 1
        and RESULT in part
        and len(inside) == 3
        and call is not None
        and call_id is not None
        and name is not None
        and call.get("id") == call_id
        and call.get("name") == name
        and inside.get("response") == _response([piece.text for piece in texts], is_error=is_error)
    ):
        return message
    default = _encode_default(message, call, endpoint)
    if "name" not in object_of(default[RESULT]):
        choices = {**choices, **choose("name", "sent", "absent")}
    received = part
    if turn is not None:
        received, default = {**part, MESSAGE: turn[0]}, {**default, MESSAGE: turn[1]}
    known = _KNOWN if inside.get("parts") else _KNOWN | {f"{RESULT}.parts"}
    extra = keep_format(received, default, known, choices)
    return message if extra is None else replace(message, extra=extra)


def _decode_parts(inside: Block) -> tuple[ToolResultContent, ...]:
    parts = inside.get("parts")
    if not isinstance(parts, list):
        return ()
    items = cast("list[object]", parts)
    if not all(isinstance(item, dict) for item in items):
        return ()
    read = tuple(decode_user_part(cast("Wire", item)) for item in items)
    # Texts are written in `response`, so a text in `parts` would move.
    return () if any(piece.kind == "text" for piece in read) else read


def _decode_response(inside: Block) -> Texts:
    if "response" not in inside:
        return (), False
    given = inside["response"]
    if not isinstance(given, dict):
        return _as_text(given), False
    response = cast("Wire", given)
    if not response:
        return (), False
    key = next(iter(response))
    if len(response) != 1 or key not in _WRAPPERS:
        return _as_text(response), False
    is_error = key in _FAILURES
    value: object = response[key]
    if is_error and value == "":
        return (), True
    if isinstance(value, list):
        texts = cast("list[object]", value)
        if len(texts) > 1 and all(isinstance(text, str) for text in texts):
            return tuple(TextContent(text=cast("str", text)) for text in texts), is_error
    return _as_text(cast("object", value)), is_error


def _as_text(value: object) -> tuple[TextContent, ...]:
    if isinstance(value, str):
        return (TextContent(text=value),)
    try:
        return (TextContent(text=msgspec.json.encode(value).decode()),)
    except (TypeError, ValueError, RecursionError):
        # Half a surrogate pair, written as its escape, or an object that is not JSON.
        return (TextContent(text=json.dumps(value, default=str)),)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_result(message: ToolResultMessage, call: Block | None, endpoint: Endpoint) -> Wire:
    """Write a result; `call` is the one it answers, as it is written, if it is known.

    Raises:
        EncodeError: the name of the tool is unknown, or the protocol does not support a piece.
    """
    part = _encode_default(message, call, endpoint)
    if "name" not in object_of(part[RESULT]) and chosen(message.extra, PROTOCOL, "name", "sent") == "sent":
        raise EncodeError("a tool result has no tool name and follows no call; set `tool_name`")
    if message.extra is not None:
        part[MESSAGE] = {}
        restore(part, message.extra, PROTOCOL)
        del part[MESSAGE]
    return part


def _encode_default(message: ToolResultMessage, call: Block | None, endpoint: Endpoint) -> Wire:
    """Write a result in the default format; without a name where none is known."""
    inside: Wire = {}
    if message.tool_call_id and (endpoint.dialect.call_ids if call is None else call.get("id") == message.tool_call_id):
        inside["id"] = message.tool_call_id
    name = message.tool_name if call is None else call.get("name")
    if name:
        inside["name"] = name
    texts: list[str] = []
    media: list[Wire] = []
    for piece in message.content:
        if piece.kind == "text":
            texts.append(piece.text)
        else:
            media.append(encode_user_content(piece))
    inside["response"] = _response(texts, is_error=message.is_error)
    if media:
        inside["parts"] = media
    return {RESULT: inside}


def _response(texts: Sequence[str], *, is_error: bool) -> Wire:
    if not texts:
        return {ERROR: ""} if is_error else {}
    return {ERROR if is_error else OUTPUT: texts[0] if len(texts) == 1 else list(texts)}
