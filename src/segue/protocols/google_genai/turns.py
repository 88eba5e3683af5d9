"""Contents, both ways: where contents and neutral messages are not one to one.

Facts this file rests on:
- The roles are `user` and `model`; results of tools are parts of a user's content, all of a step in one, in the order
  of its calls.             (google-genai 3.1.0, read 2026-11-15; gemini-cli #4217; bifrost #1391)
- What the user says after results stands in a content of its own; both are the user's.     (recorded traffic, 2026-11)
- A content without a role is the user's; `parts` may be one part without its list.      (protobuf's JSON mapping)

By default consecutive results share one content, and every other message has its own. What was spelt another way
carries a shape: `apart` (a content of its own), `joined` (in the content before it), `role`, `roleless`, `parts`. Keys
of a content itself stand under a key of their own in a result's `extra`, else in the message's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.content import AssistantContent, Extra, TextContent, ToolCall, UserContent
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
    decode_assistant_part,
    decode_user_part,
    encode_assistant_content,
    encode_assistant_parts,
    encode_user_content,
    encode_user_parts,
)
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.tool_results import (
    CONTENT_KEYS,
    ERROR,
    OUTPUT,
    Calls,
    decode_result,
    encode_result,
    is_result,
)
from segue.protocols.google_genai.verbatim import Block, Wire, keep, object_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, verbatim_of

_TURN_KEYS: Final = frozenset({"role", "parts"})
_NO_NAMES: Final[Mapping[str, str]] = {}
_NOTHING: Final[Block] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the contents of a body.

    Raises:
        DecodeError: they are no list of objects, or parts are none.
    """
    out: list[Message] = []
    calls = Calls()
    for index, item in enumerate(expect_list(items, ("contents",))):
        path: Path = ("contents", index)
        turn = expect_object(item, path)
        if turn.get("role") == "model":
            out.append(_decode_model(turn, path, endpoint, model, calls))
        else:
            _decode_user(turn, path, calls, out)
    return tuple(out)


def parts_of(turn: Block, path: Path, verbatim: Wire) -> Sequence[Block]:
    """Give the parts of a content, and note when they were no list.

    Raises:
        DecodeError: one of them is no object.
    """
    given = turn.get("parts")
    if given is None:
        verbatim["parts"] = "null" if "parts" in turn else "absent"
        return ()
    if isinstance(given, Mapping):
        verbatim["parts"] = "single"
        return (cast("Block", given),)
    parts = expect_list(given, (*path, "parts"))
    for at, part in enumerate(parts):
        if type(part) is not dict:
            parts[at] = expect_object(part, (*path, "parts", at))
    return cast("list[Block]", parts)


def decode_model_parts(
    parts: Sequence[Block], id_prefix: str, tool_names: Mapping[str, str]
) -> tuple[AssistantContent, ...]:
    """Read the parts of the model's turn; calls without an id get one of the prefix and their number."""
    pieces: list[AssistantContent] = []
    count = 0
    for part in parts:
        piece = decode_assistant_part(part, f"{id_prefix}{count}", tool_names)
        if piece.kind == "toolCall":
            count += 1
        pieces.append(piece)
    return tuple(pieces)


def _decode_model(turn: Block, path: Path, endpoint: Endpoint, model: str, calls: Calls) -> AssistantMessage:
    verbatim: Wire = {}
    pieces = decode_model_parts(parts_of(turn, path, verbatim), f"call_{path[1]}_", _NO_NAMES)
    made = [piece for piece in pieces if piece.kind == "toolCall"]
    if made:
        calls.waiting = made
    return AssistantMessage(
        content=pieces,
        protocol=PROTOCOL,
        provider=endpoint.model.provider,
        model=model,
        stop_reason=StopReason.TOOL_USE if made else StopReason.STOP,
        extra=keep(turn, _TURN_KEYS, verbatim) if verbatim or len(turn) != 2 else None,
    )


def _decode_user(turn: Block, path: Path, calls: Calls, out: list[Message]) -> None:
    """Read a user's content as results and user messages, in the order in which it has them."""
    opened = len(out)
    original: Wire = {}
    parts = parts_of(turn, path, original)
    if turn.get("role") != "user":
        original.update({"role": turn["role"]} if "role" in turn else {"roleless": True})
    beyond = {key: value for key, value in turn.items() if key not in _TURN_KEYS}

    def place(*, is_result: bool) -> Wire:
        """Say where the next message stands, if that is not where it would be written."""
        default = is_result and bool(out) and out[-1].role == "toolResult"
        if len(out) == opened:
            return {**original, "apart": True} if default else original
        return {} if default else {"joined": True}

    def add_text(texts: list[UserContent]) -> None:
        verbatim = place(is_result=False)
        extra = keep(beyond if len(out) == opened else _NOTHING, (), verbatim)
        out.append(UserMessage(content=tuple(texts), extra=extra))

    texts: list[UserContent] = []
    for part in parts:
        if not is_result(part):
            texts.append(decode_user_part(part))
            continue
        if texts:
            add_text(texts)
            texts = []
        verbatim = place(is_result=True)
        content = beyond if len(out) == opened else _NOTHING
        out.append(decode_result(part, calls, dict(verbatim), content))
    if texts or len(out) == opened:
        add_text(texts)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message], endpoint: Endpoint) -> list[Wire]:
    """Write the messages.

    Raises:
        EncodeError: a message holds something that the wire has no word for; `path` leads to it.
    """
    turns = _Turns(endpoint)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            # One that says nothing of how it was spelt, as nearly all, is written without a detour.
            if message.extra is not None:
                turns.add_verbatim(message, message.extra)
            elif type(message) is ToolResultMessage:
                turns.add_result(message)
            elif type(message) is AssistantMessage:
                turns.wire.append({"role": "model", "parts": turns.model_parts(message)})
            else:
                turns.add_text(message)
    except EncodeError as error:
        raise _placed(error, messages[index], endpoint, ("messages", index)) from error
    for turn, wire_format in turns.odd_parts:
        _restore_parts(turn, wire_format)
    return turns.wire


def _placed(error: EncodeError, message: Message, endpoint: Endpoint, path: Path) -> EncodeError:
    """Find the piece that cannot be written: looking for it again costs nothing where all goes well."""
    for at, piece in enumerate(message.content if message.role != "system" else ()):
        try:
            if message.role == "assistant":
                encode_assistant_content(cast("AssistantContent", piece), endpoint)
            else:
                encode_user_content(cast("UserContent", piece))
        except EncodeError as inner:
            return EncodeError(inner.reason, path=(*path, "content", at))
    return EncodeError(error.reason, path=path)


class _Turns:
    """The contents so far, the one that results may still join, and the calls they answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.with_ids = endpoint.dialect.call_ids
        self.open: list[Wire] | None = None  # the parts of the last content, if it is the user's
        self.after_result = False
        self.calls: dict[str, ToolCall] = {}  # of the newest turn that called something: results answer those
        self.odd_parts: list[tuple[Wire, object]] = []  # contents whose parts came as no list

    def model_parts(self, message: AssistantMessage) -> list[Wire]:
        """Write the parts of the model's turn, which ends the user's, and remember its calls."""
        calls: dict[str, ToolCall] = {}
        parts = encode_assistant_parts(message.content, self.endpoint, calls)
        if calls:
            self.calls = calls
        self.open, self.after_result = None, False
        return parts

    def add_result(self, message: ToolResultMessage) -> None:
        """Write a result that says nothing of how it was spelt, beside the results before it."""
        call = self.calls.get(message.tool_call_id)
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and call is not None and call.extra is None and self.with_ids:  # as nearly all
            received = {ERROR if message.is_error else OUTPUT: piece.text}
            part: Wire = {RESULT: {"id": message.tool_call_id, "name": call.name, "response": received}}
        else:
            part = encode_result(message, call, self.endpoint)
        if self.open is not None and self.after_result:
            self.open.append(part)
        else:
            self.open = [part]
            self.wire.append({"role": "user", "parts": self.open})
            self.after_result = True

    def add_text(self, message: UserMessage | SystemMessage) -> None:
        """Write what the user says and says nothing of how it was spelt."""
        if message.role == "system":
            # The roles are user and model; projection should have put it into a user's turn.
            raise EncodeError("instructions in mid-conversation have no place on this wire")
        self.open = encode_user_parts(message.content)
        self.wire.append({"role": "user", "parts": self.open})
        self.after_result = False

    def add_verbatim(self, message: Message, extra: Extra) -> None:
        """Write one message the way it was spelt."""
        match message.role:
            case "assistant":
                self._begin("model", self.model_parts(message), extra, extra)
            case "toolResult":
                call = self.calls.get(message.tool_call_id)
                self._add_verbatim_result(encode_result(message, call, self.endpoint), extra)
            case "user":
                self._add_verbatim_text(message, extra)
            case "system":
                self.add_text(message)
            case _:
                assert_never(message)

    def _add_verbatim_result(self, part: Wire, extra: Extra) -> None:
        verbatim = verbatim_of(extra, PROTOCOL)
        if self.open is not None and ("apart" not in verbatim if self.after_result else "joined" in verbatim):
            self.open.append(part)
        else:
            self.open = [part]
            received = object_of(extra.get(PROTOCOL, _NOTHING).get(CONTENT_KEYS))
            self._begin("user", self.open, extra, {PROTOCOL: received})
        self.after_result = True

    def _add_verbatim_text(self, message: UserMessage, extra: Extra) -> None:
        parts = encode_user_parts(message.content)
        if self.open is not None and "joined" in verbatim_of(extra, PROTOCOL):
            self.open += parts
        else:
            self.open = parts
            self._begin("user", parts, extra, extra)
        self.after_result = False

    def _begin(self, role: str, parts: list[Wire], extra: Extra, received: Extra) -> None:
        """Begin a content, with what it `received` besides and its role and parts in the way they were spelt."""
        turn: Wire = {"role": role, "parts": parts}
        self.wire.append(turn)
        for key, value in received.get(PROTOCOL, _NOTHING).items():
            if key != VERBATIM:
                turn.setdefault(key, value)
        verbatim = verbatim_of(extra, PROTOCOL)
        if "role" in verbatim:
            turn["role"] = verbatim["role"]
        elif "roleless" in verbatim:
            del turn["role"]
        if "parts" in verbatim:
            self.odd_parts.append((turn, verbatim["parts"]))


def _restore_parts(turn: Wire, wire_format: object) -> None:
    """Give parts as one without a list, or as nothing, if that is how they came and still says it all."""
    parts = cast("list[Wire]", turn["parts"])
    if wire_format == "single" and len(parts) == 1:
        turn["parts"] = parts[0]
    elif wire_format == "null" and not parts:
        turn["parts"] = None
    elif wire_format == "absent" and not parts:
        del turn["parts"]
