"""Contents, both ways: where contents and neutral messages are not one to one.

By default consecutive results share one content, and every other message has its own. Choice (`kit.verbatim`): `turn`
("new" or "same"), whether a message begins a content. The message that begins a content keeps the format and data of
its keys: in `extra`, of a result under `message` there.

Results of tools, both ways.

One text is written under `output` or `error`, several as a list there, none as an empty object; then come the media. So
the order of a result whose media come before its texts is not kept. Any other response is read as text too, as JSON.

Choices (`kit.verbatim`): `name` ("sent" or "absent") of a result whose tool name is unknown; `turn`, see `turns`.

Facts:
- The roles are `user` and `model`; results of tools are parts of a user's content, all of a step in one, in the order
  of its calls.             (google-genai 3.1.0, read 2026-11-15; gemini-cli #4217; bifrost #1391)
- A user's text after results is in its own content; both have the role `user`.    (recorded traffic, 2026-11)
- A content without a role is the user's; `parts` may be one part without its list.      (protobuf's JSON mapping)
- `response` is an object. The output of a tool is under `output`, an error under `error`; without either the whole
  object is the output, and it may be empty.          (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- Some clients write an output that is not an object under other keys: the official one under `result`, pydantic-ai
  under `return_value`, and errors under `call_error`.                   (google-genai 3.1.0; recorded traffic, 2026-11)
- Media are in `parts` of the response, from Gemini 3 on.   (Google documentation: multimodal function responses)
- `name` may not be empty: "function_response.name: Name cannot be empty" (CLIProxyAPI #2104). It is the call's.
- A call without an id is answered without one, in the order of the calls.                  (recorded traffic, 2026-11)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, ToolResultContent, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import EncodeError, Path
from segue.protocols.families.waiting_calls import WaitingCalls
from segue.protocols.google_genai.content import (
    RESULT,
    call_in,
    decode_assistant_part,
    decode_user_part,
    encode_assistant_content,
    encode_assistant_parts,
    encode_user_content,
    encode_user_parts,
    keep_format,
    read_keys,
)
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.encode_errors import locate_failure
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, text_of
from segue.protocols.kit.verbatim import choose, chosen, restore

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


_TURN_KEYS: Final = frozenset({"role", "parts"})
_NO_NAMES: Final[Mapping[str, str]] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the contents of a body.

    Raises:
        DecodeError: they are not a list of objects, or a part is not an object.
    """
    out: list[Message] = []
    calls = Calls()
    for index, turn in enumerate(expect_objects(items, ("contents",))):
        path: Path = ("contents", index)
        if turn.get("role") == "model":
            out.append(_decode_model(turn, path, endpoint, model, calls))
        else:
            _decode_user(turn, path, endpoint, calls, out)
    return tuple(out)


def parts_of(turn: Block, path: Path) -> list[Block]:
    """Return the parts of a content; one without its list, or none, as a list.

    Raises:
        DecodeError: one of them is not an object.
    """
    given = turn.get("parts")
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [cast("Block", given)]
    return expect_objects(given, (*path, "parts"))


def default_turn(role: str, turn: Block, parts: list[Block]) -> Wire:
    """Return the default format of a content, whose parts are written as they were received."""
    given = turn.get("parts")
    return {"role": role, "parts": given if isinstance(given, list) else list(parts)}


def decode_model_parts(
    parts: Sequence[Block], id_prefix: str, tool_names: Mapping[str, str], endpoint: Endpoint, *, is_reply: bool
) -> tuple[AssistantContent, ...]:
    """Read the parts of the model's turn; calls without an id get one made of the prefix and their number."""
    pieces: list[AssistantContent] = []
    count = 0
    for part in parts:
        piece = decode_assistant_part(part, f"{id_prefix}{count}", tool_names, endpoint, is_reply=is_reply)
        if piece.kind == "toolCall":
            count += 1
        pieces.append(piece)
    return tuple(pieces)


def _decode_model(turn: Block, path: Path, endpoint: Endpoint, model: str, calls: Calls) -> AssistantMessage:
    parts = parts_of(turn, path)
    pieces = decode_model_parts(parts, f"call_{path[1]}_", _NO_NAMES, endpoint, is_reply=False)
    made = [(piece.id, call_in(part)) for part, piece in zip(parts, pieces, strict=True) if piece.kind == "toolCall"]
    if made:
        calls.begin(made)
    is_default = len(turn) == 2 and type(turn.get("parts")) is list
    return AssistantMessage(
        content=pieces,
        protocol=PROTOCOL,
        provider=endpoint.model.provider,
        model=model,
        stop_reason=StopReason.TOOL_USE if made else StopReason.STOP,
        extra=None if is_default else keep_format(turn, default_turn("model", turn, parts), _TURN_KEYS),
    )


def _decode_user(turn: Block, path: Path, endpoint: Endpoint, calls: Calls, out: list[Message]) -> None:
    """Read a user's content as results and user messages, in its order."""
    first = len(out)
    parts = parts_of(turn, path)
    is_default = len(turn) == 2 and turn.get("role") == "user" and type(turn.get("parts")) is list
    own = None if is_default else (turn, default_turn("user", turn, parts))

    def placed(default: str) -> Block:
        received = "new" if len(out) == first else "same"
        return EMPTY if received == default else choose("turn", default, received)

    def add_pieces(pieces: list[UserContent]) -> None:
        received, default = own if own is not None and len(out) == first else (EMPTY, EMPTY)
        choices, extra = placed("new"), None
        if choices or default:
            extra = keep_format(received, default, _TURN_KEYS, choices)
        out.append(UserMessage(content=tuple(pieces), extra=extra))

    pieces: list[UserContent] = []
    for part in parts:
        if not is_result(part):
            pieces.append(decode_user_part(part))
            continue
        if pieces:
            add_pieces(pieces)
            pieces = []
        choices = placed("same" if out and out[-1].role == "toolResult" else "new")
        out.append(decode_result(part, calls, endpoint, choices, own if len(out) == first else None))
    if pieces or len(out) == first:
        add_pieces(pieces)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message], endpoint: Endpoint) -> list[Wire]:
    """Write the messages.

    Raises:
        EncodeError: the protocol does not support something in a message; `path` leads to it.
    """
    turns = _Turns(endpoint)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            if type(message) is ToolResultMessage:
                turns.add_result(message)
            elif type(message) is AssistantMessage:
                turns.add_model(message)
            else:
                turns.add_user(message)
    except EncodeError as error:
        encode_assistant = partial(encode_assistant_content, endpoint=endpoint)
        raise locate_failure(
            error, messages[index], ("messages", index), encode_assistant, encode_user_content
        ) from error
    return turns.finish()


class _Turns:
    """The contents so far, the one that results may still join, and the calls they answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.open: list[Wire] | None = None  # the parts of the last content, if it is the user's
        self.after_result = False
        self.calls: dict[str, Block] = {}  # of the newest turn with calls: results answer those
        self.kept: list[tuple[int, Extra, bool]] = []  # contents with format or data, and whether a result holds it

    def finish(self) -> list[Wire]:
        """Write format and data of contents, now that all their parts are there."""
        for index, extra, is_result_extra in self.kept:
            turn = self.wire[index]
            if is_result_extra:
                turn = cast("Wire", restore({MESSAGE: turn}, extra, PROTOCOL)[MESSAGE])
            else:
                turn = restore(turn, extra, PROTOCOL)
            self.wire[index] = turn
        return self.wire

    def add_model(self, message: AssistantMessage) -> None:
        calls: dict[str, Block] = {}
        parts = encode_assistant_parts(message.content, self.endpoint, calls)
        if calls:
            self.calls = calls
        self._begin("model", parts, message.extra)
        self.open, self.after_result = None, False

    def add_result(self, message: ToolResultMessage) -> None:
        call, content, extra = self.calls.get(message.tool_call_id), message.content, message.extra
        piece = content[0] if len(content) == 1 else None
        if extra is None and call is not None and type(piece) is TextContent and call.get("id") == message.tool_call_id:
            # Fast path: this is nearly every result.
            response = {ERROR if message.is_error else OUTPUT: piece.text}
            part: Wire = {RESULT: {"id": message.tool_call_id, "name": call["name"], "response": response}}
        else:
            part = encode_result(message, call, self.endpoint)
        turn: object = "same" if self.after_result else "new"
        if extra is not None:
            turn = chosen(extra, PROTOCOL, "turn", turn)
        if self.open is not None and turn == "same":
            self.open.append(part)
        else:
            self.open = [part]
            self._begin("user", self.open, extra, is_result=True)
        self.after_result = True

    def add_user(self, message: UserMessage | SystemMessage) -> None:
        if message.role == "system":
            # The roles are user and model; projection should have moved it into a user's turn.
            raise EncodeError(f"{PROTOCOL} does not support instructions between messages; move them to a user message")
        parts, extra = encode_user_parts(message.content), message.extra
        if self.open is not None and extra is not None and chosen(extra, PROTOCOL, "turn", "new") == "same":
            self.open += parts
        else:
            self.open = parts
            self._begin("user", parts, extra)
        self.after_result = False

    def _begin(self, role: str, parts: list[Wire], extra: Extra | None, *, is_result: bool = False) -> None:
        if extra is not None and PROTOCOL in extra:
            self.kept.append((len(self.wire), extra, is_result))
        self.wire.append({"role": role, "parts": parts})
