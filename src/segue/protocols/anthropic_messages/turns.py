"""Anthropic turns, both ways: where wire messages and neutral messages do not correspond one to one.

Facts:
- Tool results are blocks of a user turn and come first in it; user text may follow them in the same turn, and all
  results of a batch are in one turn.        (Anthropic documentation: handle tool calls; any-llm; read 2026-11-15)
- Consecutive turns of one role are accepted and merged by the server.             (anthropic 2.8.0; recorded traffic)
- A mid-conversation turn may have the role `system`.                                                (anthropic 2.8.0)

By default consecutive results share one wire turn, content is a list of blocks, and `is_error` is written only when it
is true. A user message after results is its own turn, which the server merges: so a request that ended in the
results stays a prefix of the next, also where the reply between them has nothing to send. Only where turns have to
alternate it joins the results.

Choices kept in `extra`: `turn`, whether a user message or a result begins a wire message ("new") or is part of the one
before it ("same"). Keys of the wire message that a result begins are kept under `message`, next to those of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar, cast

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
from segue.protocols.anthropic_messages.content import (
    decode_assistant_block,
    decode_system_block,
    decode_user_block,
    encode_assistant_blocks,
    encode_assistant_content,
    encode_user_blocks,
    encode_user_content,
)
from segue.protocols.anthropic_messages.native import CACHE_CONTROL, decode_mark, encode_mark, find_writer
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.encode_errors import locate_failure
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.reading import expect_objects, is_of_reply
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

_MESSAGE: Final = "message"
_TURN: Final = "turn"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the messages of a body.

    Raises:
        DecodeError: it is not a list of objects with content.
    """
    out: list[Message] = []
    names: dict[str, str] = {}
    for index, turn in enumerate(expect_objects(items, ("messages",))):
        path = ("messages", index)
        match turn.get("role"):
            case "assistant":
                out.append(_decode_assistant(turn, path, endpoint, model, names))
            case "system":
                pieces = _decode_content(turn, path, decode_system_block)
                out.append(SystemMessage(content=pieces, extra=_extra_of_turn(turn, "system")))
            case _:
                _UserTurn(turn, path, out, joins=endpoint.rules.alternate).decode(names)
    return tuple(out)


_Content = TypeVar("_Content")


def _decode_content(wire: Block, path: Path, decode: Callable[[Block], _Content]) -> tuple[_Content | TextContent, ...]:
    """Read the content of a wire message or of a result: a string, a list of blocks, or nothing."""
    content = wire.get("content")
    if isinstance(content, str):
        return (TextContent(text=content),)
    if content is None:
        return ()
    return tuple([decode(block) for block in expect_objects(content, (*path, "content"))])


def _default_content(content: object) -> object:
    """Return a content as the default writes it. The blocks of a list keep their own format."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [] if content is None else content


_STRING: Final = keep(PROTOCOL, {"content": "x"}, {"content": _default_content("x")})
"""What is kept of most content that is a string: the same for all."""


def _extra_of_content(content: object) -> Extra | None:
    """Return what is kept of an object whose content alone may differ from the default."""
    if type(content) is list:
        return None
    if isinstance(content, str) and content != "text":  # which the default block has twice
        return _STRING
    return keep(PROTOCOL, {"content": content}, {"content": _default_content(content)})


def _extra_of_turn(turn: Block, role: str, choice: Block = EMPTY) -> Extra | None:
    """Return what is kept of a wire message next to its blocks."""
    content = turn.get("content")
    if not choice and len(turn) == 2 and turn.get("role") == role and "content" in turn:
        return _extra_of_content(content)
    return keep(PROTOCOL, turn, {"role": role, "content": _default_content(content)}, choices=choice)


def _decode_assistant(
    turn: Block, path: Path, endpoint: Endpoint, model: str, names: dict[str, str]
) -> AssistantMessage:
    def decode(block: Block) -> AssistantContent:
        return decode_assistant_block(block, endpoint)

    pieces = _decode_content(turn, path, decode)
    stop = StopReason.STOP
    has_native = False
    for piece in pieces:
        if piece.kind == "toolCall":
            names[piece.id] = piece.name
            stop = StopReason.TOOL_USE
        elif piece.kind == "native":
            has_native = True
    return AssistantMessage(
        content=pieces,
        protocol=PROTOCOL,
        provider=endpoint.model.provider,
        model=model,
        response_model=find_writer(pieces) if has_native else None,
        stop_reason=stop,
        extra=_extra_of_turn(turn, "assistant"),
    )


class _UserTurn:
    """A user turn of the wire, read as results and user messages in the order in which it has them."""

    __slots__ = ("first", "joins", "out", "path", "turn")

    def __init__(self, turn: Block, path: Path, out: list[Message], *, joins: bool) -> None:
        self.turn = turn
        self.path = path
        self.out = out
        self.joins = joins
        self.first = True

    def decode(self, names: Mapping[str, str]) -> None:
        """Add the messages; `names` are those of the tools, by the ids of their calls."""
        content = self.turn.get("content")
        if content is None or isinstance(content, str) or not content:
            self._add_user(_decode_content(self.turn, self.path, decode_user_block))
            return
        pieces: list[UserContent] = []
        for at, block in enumerate(expect_objects(content, (*self.path, "content"))):
            call_id = block.get("tool_use_id")
            if block.get("type") != "tool_result" or not isinstance(call_id, str):
                pieces.append(decode_user_block(block))
                continue
            if pieces:
                self._add_user(tuple(pieces))
                pieces = []
            self._add_result(block, (*self.path, "content", at), call_id, names.get(call_id, ""))
        if pieces:
            self._add_user(tuple(pieces))

    def _choice(self, *, is_result: bool) -> Wire:
        """Return the choice of the turn that the next message belongs to."""
        joins = bool(self.out) and self.out[-1].role == "toolResult" and (is_result or self.joins)
        return choose(_TURN, "same" if joins else "new", "new" if self.first else "same")

    def _add_user(self, pieces: tuple[UserContent, ...]) -> None:
        choice = self._choice(is_result=False)
        if self.first:
            extra = _extra_of_turn(self.turn, "user", choice)
        else:
            extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choice)
        self.out.append(UserMessage(content=pieces, extra=extra))
        self.first = False

    def _add_result(self, block: Block, path: Path, call_id: str, name: str) -> None:
        message = ToolResultMessage(
            tool_call_id=call_id,
            tool_name=name,
            content=_decode_content(block, path, decode_user_block),
            is_error=block.get("is_error") is True,
            cache_mark=decode_mark(block),
            extra=self._extra_of_result(block),
        )
        self.out.append(message)
        self.first = False

    def _extra_of_result(self, block: Block) -> Extra | None:
        choice, content, is_error = self._choice(is_result=True), block.get("content"), block.get("is_error")
        is_plain_turn = not self.first or (len(self.turn) == 2 and self.turn.get("role") == "user")
        if is_plain_turn and not choice and "content" in block and len(block) == (4 if is_error is True else 3):
            return _extra_of_content(content)
        default = _result_block(str(block["tool_use_id"]), _default_content(content), is_error=is_error is True)
        if (mark := decode_mark(block)) is not None:
            default[CACHE_CONTROL] = encode_mark(mark)
        received: Block = block
        if self.first:
            keys = {key: value for key, value in self.turn.items() if key != "content"}
            received, default = {_MESSAGE: keys, **block}, {_MESSAGE: {"role": "user"}, **default}
        known = ("is_error",) if is_error is False else ()
        return keep(PROTOCOL, received, default, known, choice)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message], endpoint: Endpoint, *, strings: bool = True) -> list[Wire]:
    """Write the messages. Without `strings`, content that was received as a string is written as a list of one block.

    Raises:
        EncodeError: the protocol does not support something in a message; `path` leads to it.
    """
    turns = _Turns(endpoint, strings=strings)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            if turns.joins:
                turns.add(message)
            elif type(message) is ToolResultMessage and message.extra is None:
                turns.add_result(message)
            elif type(message) is AssistantMessage and (message.extra is None or is_of_reply(message.extra)):
                turns.wire.append({"role": "assistant", "content": encode_assistant_blocks(message.content, endpoint)})
                turns.open, turns.after_result = None, False
            else:
                turns.add(message)
    except EncodeError as error:
        encode_assistant = partial(encode_assistant_content, endpoint=endpoint)
        raise locate_failure(
            error, messages[index], ("messages", index), encode_assistant, encode_user_content
        ) from error
    return turns.wire


class _Turns:
    """The wire messages so far, and the user turn that results and user messages may still join."""

    def __init__(self, endpoint: Endpoint, *, strings: bool) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.strings = strings
        self.joins = endpoint.rules.alternate
        self.open: list[Wire] | None = None  # the blocks of the last wire message, if it is the user's
        self.after_result = False

    def add_result(self, message: ToolResultMessage) -> None:
        """Write a result without `extra`: next to the results before it, else in its own turn."""
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is None and piece.cache_mark is None:
            blocks: list[Wire] = [{"type": "text", "text": piece.text}]
        else:
            blocks = encode_user_blocks(content)
        block: Wire = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}
        if message.is_error:
            block["is_error"] = True
        if message.cache_mark is not None:
            block[CACHE_CONTROL] = encode_mark(message.cache_mark)
        if self.open is not None and self.after_result:
            self.open.append(block)
        else:
            self.open = [block]
            self.wire.append({"role": "user", "content": self.open})
            self.after_result = True

    def add(self, message: Message) -> None:
        """Write any message."""
        match message.role:
            case "user":
                blocks = encode_user_blocks(message.content)
                self._add_user(message, blocks, {"role": "user", "content": blocks})
            case "toolResult":
                self._add_user(message, *_encode_result(message))
            case "assistant":
                blocks = encode_assistant_blocks(message.content, self.endpoint)
                self._begin({"role": "assistant", "content": blocks}, message.extra)
                self.open, self.after_result = None, False
            case "system":
                self._begin({"role": "system", "content": encode_user_blocks(message.content)}, message.extra)
                self.open, self.after_result = None, False

    def _add_user(self, message: UserMessage | ToolResultMessage, blocks: list[Wire], turn: Wire) -> None:
        """Add the blocks to the open user turn where that is the choice, else begin the turn."""
        is_result = message.role == "toolResult"
        joins = self.after_result and (is_result or self.joins)
        choice = chosen(message.extra, PROTOCOL, _TURN, "same" if joins else "new")
        if self.open is not None and choice == "same":
            self.open += blocks
        else:
            self._begin(turn, None if is_result else message.extra)
            self.open = blocks if turn.get("content") is blocks else None
        self.after_result = is_result

    def _begin(self, turn: Wire, extra: Extra | None) -> None:
        if extra is not None:
            blocks = turn["content"]
            restore(turn, extra, PROTOCOL)
            if not self.strings and isinstance(turn.get("content"), str):
                turn["content"] = blocks
        self.wire.append(turn)


def _result_block(call_id: str, content: object, *, is_error: bool) -> Wire:
    block: Wire = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error:
        block["is_error"] = True
    return block


def _encode_result(message: ToolResultMessage) -> tuple[list[Wire], Wire]:
    """Write a result: its block in a list, and the turn that it begins if it begins one."""
    block = _result_block(message.tool_call_id, encode_user_blocks(message.content), is_error=message.is_error)
    if message.cache_mark is not None:
        block[CACHE_CONTROL] = encode_mark(message.cache_mark)
    turn: Wire = {"role": "user"}
    if message.extra is not None:
        block = restore({_MESSAGE: turn, **block}, message.extra, PROTOCOL)
        turn = cast("Wire", block.pop(_MESSAGE))
    blocks = [block]
    return blocks, {**turn, "content": blocks}
