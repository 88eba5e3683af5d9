"""Bedrock turns, both ways: where wire messages and neutral messages are not one to one.

Facts:
- Tool results are blocks of a user turn; all results of a batch are in one, and what the user writes next comes
  after them: roles have to alternate.            (AWS documentation: tool use; langchain-aws #192; recorded traffic)
- Results of tools that the provider runs are in the assistant's turn.              (recorded traffic, 2026-11)
- The service answers unknown members of a result with an error.                       (strands, read 2026-11-15)

By default results and the content after them share one wire message, and `status` is written only for an error, to
models that accept it. `extra` of a message describes the object `{"message": ..., "toolResult": ...}`: the wire message
without its blocks, on the neutral message that begins it, and the result.

The choice `turn` is "new" for a user message or result that begins a wire message, "same" for one that continues it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from segue.conversation.content import AssistantContent, Extra, SystemContent, TextContent, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import EncodeError, Path
from segue.protocols.bedrock_converse.content import (
    decode_assistant_block,
    decode_system_block,
    decode_user_block,
    encode_assistant_blocks,
    encode_assistant_content,
    encode_user_blocks,
    encode_user_content,
    kind_of,
)
from segue.protocols.bedrock_converse.native import MARK, DocumentNames, add_mark, encode_mark
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.encode_errors import locate_failure
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, is_of_reply
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

_MESSAGE: Final = "message"
_RESULT: Final = "toolResult"
_KNOWN: Final = frozenset({"toolResult.status"})

_TURN: Final = "turn"
_NEW: Final = "new"
_SAME: Final = "same"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the messages of a body.

    Raises:
        DecodeError: it is not a list of objects with content.
    """
    reader = _Reader(endpoint, model)
    for index, turn in enumerate(expect_objects(items, ("messages",))):
        path = ("messages", index)
        match turn.get("role"):
            case "assistant":
                reader.read_assistant(turn, path)
            case "system":
                reader.read_system(turn, path)
            case _:
                reader.read_user(turn, path)
    return tuple(reader.out)


def decode_system(blocks: Sequence[Block]) -> tuple[SystemContent, ...]:
    """Read the blocks of a system prompt, and the cache points after them."""
    pieces: list[SystemContent] = []
    for block in blocks:
        if MARK in block and pieces and (marked := add_mark(pieces[-1], block)):
            pieces[-1] = marked
        else:
            pieces.append(decode_system_block(block))
    return tuple(pieces)


def find_blocks(content: object, path: Path) -> list[Block] | None:
    """Return the blocks of a content; None where it is a string, null or absent.

    Raises:
        DecodeError: it is something else, or a block is not an object.
    """
    return None if content is None or isinstance(content, str) else expect_objects(content, path)


def texts_of(content: object) -> tuple[TextContent, ...]:
    """Read a content that is not a list of blocks."""
    return (TextContent(text=content),) if isinstance(content, str) else ()


def _default_content(content: object) -> list[Wire]:
    """Return the blocks that are the default format of a content that is not a list of blocks."""
    return [{"text": content}] if isinstance(content, str) else []


def _without_blocks(wire: Block, default: Wire) -> Block:
    """Return a wire message or result to compare with its default; blocks keep their own format."""
    content = wire.get("content")
    if content is None or isinstance(content, str):
        default["content"] = _default_content(content)
        return wire
    return {key: value for key, value in wire.items() if key != "content"}


def _keep_turn(turn: Block, role: str, choices: Block = EMPTY) -> Extra | None:
    """Keep the format and the unknown keys of a wire message."""
    if not choices and len(turn) == 2 and type(turn.get("content")) is list and turn.get("role") == role:
        return None
    default: Wire = {"role": role}
    received = {_MESSAGE: _without_blocks(turn, default)}
    return keep(PROTOCOL, received, {_MESSAGE: default}, known=_KNOWN, choices=choices)


class _Reader:
    """The messages read so far, and what later ones need of them: tool names by call id, names of documents."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.out: list[Message] = []
        self.tool_names: dict[str, str] = {}
        self.documents = DocumentNames()
        self.flags = endpoint.rules.tool_error == "flag"

    def read_assistant(self, turn: Block, path: Path) -> None:
        pieces: list[AssistantContent] = []
        blocks = find_blocks(turn.get("content"), (*path, "content"))
        for block in blocks or ():
            if MARK in block and pieces and (marked := add_mark(pieces[-1], block)):
                pieces[-1] = marked
            else:
                pieces.append(decode_assistant_block(block, self.endpoint))
        stop = StopReason.STOP
        for piece in pieces:
            if piece.kind == "toolCall":
                self.tool_names[piece.id] = piece.name
                stop = StopReason.TOOL_USE
        message = AssistantMessage(
            content=texts_of(turn.get("content")) if blocks is None else tuple(pieces),
            protocol=PROTOCOL,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=stop,
            extra=_keep_turn(turn, "assistant"),
        )
        self.out.append(message)

    def read_system(self, turn: Block, path: Path) -> None:
        blocks = find_blocks(turn.get("content"), (*path, "content"))
        pieces = texts_of(turn.get("content")) if blocks is None else decode_system(blocks)
        self.out.append(SystemMessage(content=pieces, extra=_keep_turn(turn, "system")))

    def read_user(self, turn: Block, path: Path) -> None:
        """Read a user turn as results and user messages, in wire order."""
        opened = len(self.out)
        blocks = find_blocks(turn.get("content"), (*path, "content"))
        if not blocks:
            self.add_user(turn, opened, list(texts_of(turn.get("content"))))
            return
        pieces: list[UserContent] = []
        for at, block in enumerate(blocks):
            result = object_of(block[_RESULT]) if kind_of(block) == _RESULT else EMPTY
            if isinstance(result.get("toolUseId"), str):
                if pieces:
                    self.add_user(turn, opened, pieces)
                    pieces = []
                self.add_result(turn, opened, result, (*path, "content", at, _RESULT))
            elif MARK not in block or not self.add_mark(pieces, opened, block):
                pieces.append(decode_user_block(block, self.documents))
        if pieces:
            self.add_user(turn, opened, pieces)

    def add_mark(self, pieces: list[UserContent], opened: int, block: Block) -> bool:
        """Attach a cache point to what comes before it in its turn; whether that was possible."""
        if pieces:
            marked = add_mark(pieces[-1], block)
            if marked is not None:
                pieces[-1] = marked
            return marked is not None
        last = self.out[-1] if len(self.out) > opened else None
        result = add_mark(last, block) if last is not None and last.role == "toolResult" else None
        if result is not None:
            self.out[-1] = result
        return result is not None

    def choose_turn(self, opened: int, *, is_result: bool) -> Wire:
        """Note whether the next message begins a wire message, where that is not the default."""
        joins = is_result or self.endpoint.rules.alternate
        default = _SAME if joins and self.out and self.out[-1].role == "toolResult" else _NEW
        return choose(_TURN, default, _NEW if len(self.out) == opened else _SAME)

    def add_user(self, turn: Block, opened: int, pieces: list[UserContent]) -> None:
        choices = self.choose_turn(opened, is_result=False)
        if len(self.out) == opened:
            extra = _keep_turn(turn, "user", choices)
        else:
            extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choices)
        self.out.append(UserMessage(content=tuple(pieces), extra=extra))

    def add_result(self, turn: Block, opened: int, result: Block, path: Path) -> None:
        choices = self.choose_turn(opened, is_result=True)
        call_id, is_error = str(result["toolUseId"]), result.get("status") == "error"
        content = result.get("content")
        blocks = find_blocks(content, (*path, "content"))
        if blocks is None:
            pieces: Sequence[UserContent] = texts_of(content)
        else:
            pieces = [decode_user_block(block, self.documents) for block in blocks]
        begun = turn if len(self.out) == opened else None
        message = ToolResultMessage(
            tool_call_id=call_id,
            tool_name=self.tool_names.get(call_id, ""),
            content=tuple(pieces),
            is_error=is_error,
            extra=self.keep_result(begun, result, is_error=is_error, choices=choices),
        )
        self.out.append(message)

    def keep_result(self, turn: Block | None, result: Block, *, is_error: bool, choices: Block) -> Extra | None:
        """Keep the format and the unknown keys of a result, and of the wire message if the result begins it."""
        default: Wire = {"toolUseId": result["toolUseId"]}
        if is_error and self.flags:
            default["status"] = "error"
        has_blocks = type(result.get("content")) is list
        if has_blocks and not choices and len(result) == len(default) + 1 and _is_plain(turn):
            return None
        received: Wire = {_RESULT: _without_blocks(result, default)}
        expected: Wire = {_RESULT: default}
        if turn is not None:
            received[_MESSAGE] = {key: value for key, value in turn.items() if key != "content"}
            expected[_MESSAGE] = {"role": "user"}
        return keep(PROTOCOL, received, expected, known=_KNOWN, choices=choices)


def _is_plain(turn: Block | None) -> bool:
    return turn is None or (len(turn) == 2 and turn.get("role") == "user")


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message], endpoint: Endpoint) -> list[Wire]:
    """Write the messages.

    Raises:
        EncodeError: a message holds something that the wire does not support; `path` leads to it.
    """
    turns = _Turns(endpoint)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            if type(message) is ToolResultMessage and message.extra is None:
                turns.add_plain_result(message)
            elif type(message) is AssistantMessage and (message.extra is None or is_of_reply(message.extra)):
                blocks = encode_assistant_blocks(message.content, endpoint, turns.documents)
                turns.wire.append({"role": "assistant", "content": blocks})
                turns.open, turns.after_result = None, False
            else:
                turns.add(message)
    except EncodeError as error:
        encode_assistant = partial(encode_assistant_content, endpoint=endpoint, names=DocumentNames())
        encode_user = partial(encode_user_content, names=DocumentNames())
        raise locate_failure(error, messages[index], ("messages", index), encode_assistant, encode_user) from error
    return turns.wire


class _Turns:
    """The wire messages so far, and the user turn that results and user content may still join."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.documents = DocumentNames()
        self.joins = endpoint.rules.alternate
        self.flags = endpoint.rules.tool_error == "flag"
        self.open: list[Wire] | None = None  # the blocks of the last wire message, if it is the user's
        self.after_result = False

    def add(self, message: Message) -> None:
        """Write one message."""
        match message.role:
            case "toolResult":
                self._add_result(message)
            case "user":
                self._add_user(message)
            case "assistant":
                blocks = encode_assistant_blocks(message.content, self.endpoint, self.documents)
                self._begin("assistant", blocks, message.extra)
                self.open, self.after_result = None, False
            case "system":
                blocks = encode_user_blocks(message.content, self.documents)
                self._begin("system", blocks, message.extra)
                self.open, self.after_result = None, False

    def _add_user(self, message: UserMessage) -> None:
        blocks, extra = encode_user_blocks(message.content, self.documents), message.extra
        open_blocks = self._find_open(extra, is_result=False)
        if open_blocks is not None:
            open_blocks += blocks
        else:
            content = self._begin("user", blocks, extra)
            self.open = blocks if content is blocks else None
        self.after_result = False

    def add_plain_result(self, message: ToolResultMessage) -> None:
        """Write a result without `extra`: next to the results before it, else in its own turn."""
        blocks: list[Wire] = [{_RESULT: self._encode_result(message)}]
        if message.cache_mark is not None:
            blocks.append(encode_mark(message.cache_mark))
        if self.open is not None and self.after_result:
            self.open += blocks
        else:
            self.open = blocks
            self.wire.append({"role": "user", "content": blocks})
            self.after_result = True

    def _encode_result(self, message: ToolResultMessage) -> Wire:
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is None and piece.cache_mark is None:
            inner: list[Wire] = [{"text": piece.text}]
        else:
            inner = encode_user_blocks(content, self.documents)
        result: Wire = {"toolUseId": message.tool_call_id, "content": inner}
        if message.is_error and self.flags:
            result["status"] = "error"
        return result

    def _add_result(self, message: ToolResultMessage) -> None:
        open_blocks = self._find_open(message.extra, is_result=True)
        node: Wire = {_RESULT: self._encode_result(message)}
        if open_blocks is None:
            node[_MESSAGE] = {"role": "user"}
        restore(node, message.extra, PROTOCOL)
        blocks: list[Wire] = [{_RESULT: node[_RESULT]}]
        if message.cache_mark is not None:
            blocks.append(encode_mark(message.cache_mark))
        if open_blocks is not None:
            open_blocks += blocks
        else:
            self.open = blocks
            self.wire.append({**object_of(node.get(_MESSAGE)), "content": blocks})
        self.after_result = True

    def _find_open(self, extra: Extra | None, *, is_result: bool) -> list[Wire] | None:
        """Return the blocks of the turn that the message continues; None when it begins one."""
        default = _SAME if self.after_result and (is_result or self.joins) else _NEW
        turn = default if extra is None else chosen(extra, PROTOCOL, _TURN, default)
        return self.open if turn == _SAME else None

    def _begin(self, role: str, blocks: list[Wire], extra: Extra | None) -> object:
        """Begin a wire message; return its content."""
        turn: Wire = {"role": role, "content": blocks}
        if extra is not None and not is_of_reply(extra):
            node = restore({_MESSAGE: turn}, extra, PROTOCOL)
            turn = cast("Wire", node[_MESSAGE])
        self.wire.append(turn)
        return turn.get("content")
