"""Messages of the VS Code language model API, both ways: where wire messages and neutral messages are not one to one.

Facts:
- There are two roles, user and assistant. Tool results are parts of a user message that follows the call.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)
- The content of a message may be a string.                                                                 (the same)
- Extensions also send a result right after its call, in the assistant message. It is a result all the same.

By default the results of a batch share one wire message, and what the user writes next is its own wire message: so
a request that ends with results is a prefix of the next one. The choice `turn` is "new" for a user message or result
that begins a wire message, "same" for one that continues it. `extra` of a result describes its part; the keys of the
wire message that it begins are under `message`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError, Path
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, is_of_reply, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.vscode_lm.content import KIND, RESULT, decode_assistant_part, decode_user_part, encode_parts
from segue.protocols.vscode_lm.rules import PROTOCOL

_MESSAGE: Final = "message"
_TURN: Final = "turn"
_NEW: Final = "new"
_SAME: Final = "same"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class TurnReader:
    """The messages read so far, and the tool names of the last calls."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.messages: list[Message] = []
        self._names: dict[str, str] = {}

    def read(self, turns: Sequence[Block]) -> None:
        """Read all messages.

        Raises:
            DecodeError: one of them has an unknown role, or content that is neither a string nor a list of parts.
        """
        for index, turn in enumerate(turns):
            path = ("messages", index)
            role = turn.get("role")
            if role == "assistant":
                self._read_assistant(turn, path)
            elif role == "user":
                self._read_user(turn, path)
            else:
                raise DecodeError(f"the role {role!r} is unknown; use user or assistant", path=(*path, "role"))

    def _read_assistant(self, turn: Block, path: Path) -> None:
        """Read an assistant turn; a result of a known call ends a message, and the next one continues the turn.

        The API puts results into user turns; programs that write them as the assistant's mean the same.
        """
        parts = _parts_of(turn, path)
        extra = _keep_turn(turn)
        pieces: list[AssistantContent] = []
        opened = len(self.messages)
        for part in parts:
            is_result = part.get(KIND) == RESULT and text_of(part.get("callId")) in self._names
            result = self._read_result(part) if is_result else None
            if result is None:
                piece = decode_assistant_part(part)
                pieces.append(piece)
                self._names |= {piece.id: piece.name} if piece.kind == "toolCall" else {}
                continue
            if pieces:
                self._add_assistant(pieces, opened, extra)
                pieces = []
            self._add_result(turn, opened, result, part)
        if pieces or len(self.messages) == opened:
            self._add_assistant(pieces, opened, extra)

    def _add_assistant(self, pieces: Sequence[AssistantContent], opened: int, extra: Extra | None) -> None:
        if len(self.messages) > opened:
            extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose(_TURN, _NEW, _SAME))
        has_calls = any(piece.kind == "toolCall" for piece in pieces)
        self.messages.append(
            replace(
                new_assistant_message(self.endpoint.model, content=tuple(pieces)),
                protocol=PROTOCOL,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if has_calls else StopReason.STOP,
                extra=extra,
            )
        )

    def _read_user(self, turn: Block, path: Path) -> None:
        """Read a user turn as results and user messages, in wire order."""
        content = turn.get("content")
        if isinstance(content, str):
            self.messages.append(UserMessage(content=(TextContent(text=content),), extra=_keep_turn(turn)))
            return
        opened = len(self.messages)
        pieces: list[UserContent] = []
        for part in expect_objects(content, (*path, "content")):
            result = self._read_result(part) if part.get(KIND) == RESULT else None
            if result is None:
                pieces.append(decode_user_part(part))
                continue
            if pieces:
                self._add_user(turn, opened, pieces)
                pieces = []
            self._add_result(turn, opened, result, part)
        if pieces or len(self.messages) == opened:
            self._add_user(turn, opened, pieces)

    def _read_result(self, part: Block) -> ToolResultMessage | None:
        call_id, content = part.get("callId"), part.get("content")
        if not isinstance(call_id, str) or not isinstance(content, list):
            return None
        items = cast("list[object]", content)
        if not all(isinstance(item, dict) for item in items):
            return None
        pieces = tuple(decode_user_part(cast("Block", item)) for item in items)
        return ToolResultMessage(tool_call_id=call_id, tool_name=self._names.get(call_id, ""), content=pieces)

    def _add_user(self, turn: Block, opened: int, pieces: list[UserContent]) -> None:
        if len(self.messages) == opened:
            extra = _keep_turn(turn)
        else:
            extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose(_TURN, _NEW, _SAME))
        self.messages.append(UserMessage(content=tuple(pieces), extra=extra))

    def _add_result(self, turn: Block, opened: int, result: ToolResultMessage, part: Block) -> None:
        begins = len(self.messages) == opened
        default_turn = _SAME if self.messages and self.messages[-1].role == "toolResult" else _NEW
        choices = choose(_TURN, default_turn, _NEW if begins else _SAME)
        has_keys = begins and (len(turn) > 2 or turn["role"] != "user")
        if choices or has_keys or len(part) > 3:
            default: Wire = {KIND: RESULT, "callId": result.tool_call_id, "content": part["content"]}
            if has_keys:
                part = {**part, _MESSAGE: {key: value for key, value in turn.items() if key != "content"}}
                default[_MESSAGE] = {"role": "user"}
            result = replace(result, extra=keep(PROTOCOL, part, default, choices=choices))
        self.messages.append(result)


def decode_assistant_content(turn: Block, path: Path, *, reply: bool = False) -> tuple[AssistantContent, ...]:
    """Read the content of an assistant message.

    Raises:
        DecodeError: it is neither a string nor a list of parts.
    """
    return tuple(decode_assistant_part(part, reply=reply) for part in _parts_of(turn, path))


def _parts_of(turn: Block, path: Path) -> Sequence[Block]:
    content = turn.get("content")
    if isinstance(content, str):
        return ({KIND: "text", "value": content},)
    return expect_objects(content, (*path, "content"))


def _keep_turn(turn: Block) -> Extra | None:
    """Keep the format and the unknown keys of a wire message; its parts keep their own."""
    content = turn["content"]
    if len(turn) == 2 and not isinstance(content, str):
        return None
    parts = [{KIND: "text", "value": content}] if isinstance(content, str) else content
    return keep(PROTOCOL, turn, {"role": turn["role"], "content": parts})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message]) -> list[Wire]:
    """Write the messages.

    Raises:
        EncodeError: the API does not support a message; `path` leads to it.
    """
    turns = _Turns()
    for index, message in enumerate(messages):
        path = ("messages", index)
        match message.role:
            case "assistant":
                turns.add_assistant(message, path)
            case "toolResult":
                turns.add_result(message, path)
            case "user":
                turns.add_user(message, path)
            case "system":
                reason = f"{PROTOCOL} does not support system messages; send a user message"
                raise EncodeError(reason, path=path)
            case _:
                assert_never(message)
    return turns.wire


class _Turns:
    """The wire messages so far, and the user turn that results and user content may still join."""

    def __init__(self) -> None:
        self.wire: list[Wire] = []
        self.open: list[Wire] | None = None  # the parts of the last wire message, if they are a list
        self.after_result = False

    def add_assistant(self, message: AssistantMessage, path: Path) -> None:
        parts = encode_parts(message.content, (*path, "content"))
        open_parts = self._find_open(message.extra, _NEW)
        self.after_result = False
        if open_parts is not None and self.wire[-1]["role"] == "assistant":
            open_parts += parts
            return
        wire: Wire = {"role": "assistant", "content": parts}
        if message.extra is not None and not is_of_reply(message.extra):
            restore(wire, message.extra, PROTOCOL)
        self.wire.append(wire)
        self.open = parts if wire["content"] is parts else None

    def add_user(self, message: UserMessage, path: Path) -> None:
        parts = encode_parts(message.content, (*path, "content"))
        open_parts = self._find_open(message.extra, _NEW)
        if open_parts is not None and self.wire[-1]["role"] == "user":
            open_parts += parts
        else:
            wire: Wire = {"role": "user", "content": parts}
            if message.extra is not None:
                restore(wire, message.extra, PROTOCOL)
            self.wire.append(wire)
            self.open = parts if wire["content"] is parts else None
        self.after_result = False

    def add_result(self, message: ToolResultMessage, path: Path) -> None:
        content = encode_parts(message.content, (*path, "content"))
        part: Wire = {KIND: RESULT, "callId": message.tool_call_id, "content": content}
        open_parts = self._find_open(message.extra, _SAME if self.after_result else _NEW)
        turn: Block = {"role": "user"}
        if message.extra is not None:
            part[_MESSAGE] = dict(turn)
            restore(part, message.extra, PROTOCOL)
            turn = object_of(part.pop(_MESSAGE, EMPTY))
        if open_parts is not None:
            open_parts.append(part)
        else:
            self.open = [part]
            self.wire.append({**turn, "content": self.open})
        self.after_result = True

    def _find_open(self, extra: Extra | None, default: str) -> list[Wire] | None:
        """Return the parts of the turn that the message continues; None when it begins one."""
        turn = default if extra is None else chosen(extra, PROTOCOL, _TURN, default)
        return self.open if turn == _SAME else None
