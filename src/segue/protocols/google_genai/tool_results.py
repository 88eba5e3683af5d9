"""Results of tools, both ways.

Facts this file rests on:
- `response` is an object. What a tool gave stands under `output`, what went wrong under `error`; without either the
  whole object is what it gave, and it may be empty.   (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- Others wrap what is no object as well: the official client under `result`, pydantic-ai under `return_value`, and what
  went wrong under `call_error`.                                      (google-genai 3.1.0; recorded traffic, 2026-11)
- Media stand in `parts` of the response, from Gemini 3 on.   (Google documentation: multimodal function responses)
- `name` may not be empty: "function_response.name: Name cannot be empty" (CLIProxyAPI #2104). It is the call's.
- A call without an id is answered without one, in the order of the calls.                  (recorded traffic, 2026-11)

One text is written under `output` or `error`, several as a list there, none as an empty object; then come the media. So
of a result whose media stand before its words the order is not kept. Anything else that was read is text too, as JSON,
and its shape says how it stood: `key`, `json`, `form` (`object`, `bare`, `absent`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec

from segue.conversation.content import TextContent, ToolCall, ToolResultContent
from segue.conversation.messages import ToolResultMessage
from segue.errors import EncodeError
from segue.protocols.google_genai.content import RESULT, decode_user_part, encode_user_content, has_made_id
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.verbatim import (
    Block,
    Wire,
    close_object,
    keep,
    object_of,
    open_object,
    put_back,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import text_of, verbatim_of

OUTPUT: Final = "output"
ERROR: Final = "error"
_FAILURES: Final = frozenset({ERROR, "call_error"})
_WRAPPERS: Final = _FAILURES | {OUTPUT, "result", "return_value"}
_INNER_KEYS: Final = frozenset({"id", "name", "response", "parts"})
_PART: Final = "part_keys"
CONTENT_KEYS: Final = "content_keys"
"""The keys of `extra` under which stands what a part says beside its `functionResponse`, and its content besides."""
_NOTHING: Final[Block] = {}

DecodedResult: TypeAlias = tuple[tuple[TextContent, ...], bool]


class Calls:
    """The newest batch of calls that was read, and which of them still wait for a result."""

    def __init__(self) -> None:
        self.waiting: list[ToolCall] = []

    def find(self, call_id: str | None, name: str | None) -> ToolCall | None:
        """Find the call that a result answers: by its id, else the next one of that name, else the next one."""
        waiting = self.waiting
        if call_id:
            found = next((call for call in waiting if call.id == call_id), None)
        elif name:
            found = next((call for call in waiting if call.name == name), None)
        else:
            found = waiting[0] if waiting else None
        if found is not None:
            waiting.remove(found)
        return found


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def is_result(part: Block) -> bool:
    """Whether a part is the result of a tool that can be read as one."""
    raw = part[RESULT] if RESULT in part else part.get("function_response")
    return isinstance(raw, dict) and "type" not in part


def decode_result(part: Block, calls: Calls, verbatim: Wire, content: Block) -> ToolResultMessage:
    """Read a result. `verbatim` says where it stands in its content, `content` what that content says besides."""
    wire, part_verbatim = open_object(part)
    inside, original = open_object(cast("Wire", wire[RESULT]))
    call_id, name = inside.get("id"), inside.get("name")
    call = calls.find(text_of(call_id), text_of(name))
    verbatim.update(original)
    if not (isinstance(call_id, str) and call_id):
        verbatim["id"] = call_id if "id" in inside else None
    known = call.name if call is not None else None
    if name != known or known is None:
        verbatim["name"] = name if "name" in inside else None
    (pieces, is_error), media = _decode_response(inside, verbatim), _decode_parts(inside)
    beyond: Wire = {CONTENT_KEYS: content} if content else {}
    beside = {key: value for key, value in wire.items() if key != RESULT}
    if part_verbatim:
        verbatim[_PART] = part_verbatim
    if beside:
        beyond[_PART] = beside
    keys = _INNER_KEYS if media or "parts" not in inside else _INNER_KEYS - {"parts"}
    given_id = call_id if isinstance(call_id, str) and call_id else None
    return ToolResultMessage(
        tool_call_id=given_id or (call.id if call is not None else ""),
        tool_name=text_of(name) or known or "",
        content=(*pieces, *media),
        is_error=is_error,
        extra=keep(inside, keys, verbatim, beyond),
    )


def _decode_parts(inside: Block) -> tuple[ToolResultContent, ...]:
    parts = inside.get("parts")
    if not isinstance(parts, list):
        return ()
    items = cast("list[object]", parts)
    if not all(isinstance(item, dict) for item in items):
        return ()
    read = tuple(decode_user_part(cast("Wire", item)) for item in items)
    # Words have their place in `response`: here they would change it.
    return () if any(piece.kind == "text" for piece in read) else read


def _decode_response(inside: Block, verbatim: Wire) -> DecodedResult:
    given = inside.get("response")
    if not isinstance(given, dict):
        if "response" not in inside:
            verbatim["form"] = "absent"
            return (), False
        verbatim["form"] = "bare"
        return _as_text(given, verbatim), False
    response = cast("Wire", given)
    if not response:
        return (), False
    key = next(iter(response))
    if len(response) != 1 or key not in _WRAPPERS:
        verbatim["form"] = "object"
        return _as_text(response, verbatim), False
    is_error = key in _FAILURES
    value: object = response[key]
    if key not in (OUTPUT, ERROR):
        verbatim["key"] = key
    if is_error and value == "":
        return (), True
    if isinstance(value, list):
        texts = cast("list[object]", value)
        if len(texts) > 1 and all(isinstance(text, str) for text in texts):
            return tuple(TextContent(text=cast("str", text)) for text in texts), is_error
        return _as_text(texts, verbatim), is_error
    return _as_text(value, verbatim), is_error


def _as_text(value: object, verbatim: Wire) -> tuple[TextContent, ...]:
    if isinstance(value, str):
        return (TextContent(text=value),)
    verbatim["json"] = True
    try:
        return (TextContent(text=msgspec.json.encode(value).decode()),)
    except (UnicodeEncodeError, ValueError, RecursionError):
        return (TextContent(text=json.dumps(value)),)  # half a surrogate pair, spelt as its escape


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_result(message: ToolResultMessage, call: ToolCall | None, endpoint: Endpoint) -> Wire:
    """Write a result; `call` is the one it answers, if it is known.

    Raises:
        EncodeError: nobody knows what the tool is called, or the wire has no word for a piece.
    """
    extra = message.extra
    verbatim = _NOTHING if extra is None else verbatim_of(extra, PROTOCOL)
    inside: Wire = {}
    if "id" in verbatim:
        if verbatim["id"] is not None:
            inside["id"] = verbatim["id"]
    elif endpoint.dialect.call_ids and message.tool_call_id and not (call is not None and has_made_id(call)):
        inside["id"] = message.tool_call_id
    if "name" in verbatim:
        if verbatim["name"] is not None:
            inside["name"] = verbatim["name"]
    else:
        name = call.name if call is not None else message.tool_name
        if not name:
            raise EncodeError("a result whose tool has no name")
        inside["name"] = name
    texts: list[str] = []
    media: list[Wire] = []
    for piece in message.content:
        if piece.kind == "text":
            texts.append(piece.text)
        else:
            media.append(encode_user_content(piece))
    if "form" not in verbatim or verbatim["form"] != "absent" or texts:
        inside["response"] = _response(texts, message, verbatim)
    if media:
        inside["parts"] = media
    return {RESULT: inside} if extra is None else _original(inside, message, verbatim)


def _response(texts: Sequence[str], message: ToolResultMessage, verbatim: Block) -> object:
    if not texts and not message.is_error:
        return {}
    key = verbatim.get("key")
    if not isinstance(key, str) or (key in _FAILURES) is not message.is_error:
        key = ERROR if message.is_error else OUTPUT
    if len(texts) != 1:
        return {key: list(texts) if texts else ""}
    value: object = texts[0]
    if "json" in verbatim:
        try:
            value = json.loads(texts[0])
        except (ValueError, RecursionError):
            return {key: value}
    form = verbatim.get("form")
    if form == "bare" or (form == "object" and isinstance(value, dict)):
        return cast("object", value)
    return {key: value}


def _original(inside: Wire, message: ToolResultMessage, verbatim: Block) -> Wire:
    """Put back what the result said besides, and what its part did."""
    extra = message.extra or {}
    received = {key: value for key, value in extra.get(PROTOCOL, _NOTHING).items() if key not in (_PART, CONTENT_KEYS)}
    part: Wire = {RESULT: put_back(inside, {PROTOCOL: received})}
    for key, value in object_of(extra.get(PROTOCOL, _NOTHING).get(_PART)).items():
        part.setdefault(key, value)
    return close_object(part, object_of(verbatim.get(_PART)))
