"""Contents, both ways: where contents and neutral messages are not one to one.

Facts this file rests on:
- The roles are `user` and `model`; results of tools are parts of a user's content, all of a step in one, in the order
  of its calls.             (google-genai 3.1.0, read 2026-11-15; gemini-cli #4217; bifrost #1391)
- A user's text after results stands in a content of its own; both have the role `user`.    (recorded traffic, 2026-11)
- A content without a role is the user's; `parts` may be one part without its list.      (protobuf's JSON mapping)

By default consecutive results share one content, and every other message has its own. Choice (`kit.verbatim`): `turn`
("new" or "same"), whether a message begins a content. The message that begins a content keeps the format and data of
its keys: in `extra`, of a result under `message` there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast

from segue.conversation.content import AssistantContent, Extra, TextContent, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import EncodeError, Path
from segue.protocols.google_genai.content import (
    RESULT,
    call_in,
    decode_assistant_part,
    decode_user_part,
    encode_assistant_content,
    encode_assistant_parts,
    encode_user_content,
    encode_user_parts,
)
from segue.protocols.google_genai.keys import keep_format
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.tool_results import (
    ERROR,
    MESSAGE,
    OUTPUT,
    Calls,
    decode_result,
    encode_result,
    is_result,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.encode_errors import locate_failure
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.reading import expect_objects
from segue.protocols.kit.verbatim import choose, chosen, restore

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
    """Give the parts of a content; one without its list, or none, as a list.

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
    """Give the default format of a content, whose parts are written as they were received."""
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
