"""Bedrock turns, both ways: where wire messages and neutral messages are not one to one.

Facts this file rests on:
- Tool results are blocks of a user turn; all results of a batch stand in one, and what the user says next stands behind
  them: roles have to alternate.                   (AWS documentation: tool use; langchain-aws #192; recorded traffic)
- Results of tools that the provider runs stand in the assistant's turn.              (recorded traffic, 2026-11)
- The service answers unknown members of a result with an error.                       (strands, read 2026-11-15)

By default results and the words behind them share one wire turn, and `status` is said only of an error, to those who
take it. What was spelt another way carries a shape: `apart` (a turn of its own), `joined` (in the turn before it),
`content`, `status`, `role`, `roleless`. Keys of a wire message itself stand under `message`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.verbatim import (
    MARK,
    NOTHING,
    Block,
    Wire,
    keep,
    lone_mark,
    mark_of,
    marked,
    object_of,
    put_back,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import expect_list, expect_object, is_of_reply, verbatim_of

_MESSAGE: Final = "message"
_TURN_KEYS: Final = frozenset({"role", "content"})
_RESULT_KEYS: Final = frozenset({"toolUseId", "content", "status"})
_NO_NAMES: Final[Mapping[str, str]] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the messages of a body.

    Raises:
        DecodeError: it is no list of objects with content.
    """
    reader = _Reader(endpoint, model)
    for index, item in enumerate(expect_list(items, ("messages",))):
        path = ("messages", index)
        turn = expect_object(item, path)
        match turn.get("role"):
            case "assistant":
                reader.assistant(turn, path)
            case "system":
                reader.system(turn, path)
            case _:
                reader.user(turn, path)
    return tuple(reader.out)


def blocks_of(content: object, path: Path) -> list[Block]:
    """Give the blocks of a content; where one is no object, the error says which."""
    blocks = expect_list(content, path)
    for at, block in enumerate(blocks):
        if type(block) is not dict:
            blocks[at] = expect_object(block, (*path, at))
    return cast("list[Block]", blocks)


def original_of(turn: Block) -> tuple[tuple[TextContent, ...], Wire] | None:
    """Read content that is no list of blocks, and say how it was spelt."""
    content = turn.get("content")
    if isinstance(content, str):
        return (TextContent(text=content),), {"content": "string"}
    if content is None:
        return (), {"content": "null" if "content" in turn else "absent"}
    return None


def _extra(turn: Block, verbatim: Mapping[str, object], result: Block = NOTHING) -> Extra | None:
    """Keep what a result says, what a wire message says beyond role and content, and how they were spelt."""
    extra = keep(result, _RESULT_KEYS, verbatim)
    if not turn or (len(turn) == 2 and "role" in turn and "content" in turn):
        return extra
    beyond = {key: value for key, value in turn.items() if key not in _TURN_KEYS}
    return {PROTOCOL: {**(extra or {}).get(PROTOCOL, NOTHING), _MESSAGE: beyond}} if beyond else extra


class _Reader:
    """The messages so far, and what later ones are told by them: names of tools by id, names of documents."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.out: list[Message] = []
        self.tool_names: dict[str, str] = {}
        self.documents = DocumentNames()

    def assistant(self, turn: Block, path: Path) -> None:
        original = original_of(turn)
        pieces: list[AssistantContent] = []
        for block in () if original else blocks_of(turn["content"], (*path, "content")):
            mark = lone_mark(block)
            if mark is not None and pieces and (with_mark := marked(pieces[-1], mark)):
                pieces[-1] = with_mark
                continue
            pieces.append(decode_assistant_block(block, self.endpoint, _NO_NAMES))
        stop = StopReason.STOP
        for piece in pieces:
            if piece.kind == "toolCall":
                self.tool_names[piece.id] = piece.name
                stop = StopReason.TOOL_USE
        message = AssistantMessage(
            content=original[0] if original else tuple(pieces),
            protocol=PROTOCOL,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=stop,
            extra=_extra(turn, original[1] if original else NOTHING),
        )
        self.out.append(message)

    def system(self, turn: Block, path: Path) -> None:
        original = original_of(turn)
        pieces = original[0] if original else decode_system(blocks_of(turn["content"], (*path, "content")))
        self.out.append(SystemMessage(content=pieces, extra=_extra(turn, original[1] if original else NOTHING)))

    def user(self, turn: Block, path: Path) -> None:
        """Read a user turn as results and user messages, in the order in which it has them."""
        original = original_of(turn)
        opened = len(self.out)
        blocks = [] if original else blocks_of(turn["content"], (*path, "content"))
        if not blocks:
            pieces, verbatim = original or ((), {})
            self.add_text(turn, opened, list(pieces), verbatim)
            return
        texts: list[UserContent] = []
        for at, block in enumerate(blocks):
            result = object_of(block["toolResult"]) if kind_of(block) == "toolResult" else NOTHING
            mark = lone_mark(block)
            if isinstance(result.get("toolUseId"), str):
                if texts:
                    self.add_text(turn, opened, texts, {})
                    texts = []
                self.add_result(turn, opened, result, (*path, "content", at, "toolResult"))
            elif mark is None or not self.take_mark(texts, opened, mark):
                texts.append(decode_user_block(block, self.documents))
        if texts:
            self.add_text(turn, opened, texts, {})

    def take_mark(self, texts: list[UserContent], opened: int, mark: object) -> bool:
        """Put a cache point on what stands before it in its turn, if that is anything without one."""
        if texts:
            with_mark = marked(texts[-1], mark)
            if with_mark is not None:
                texts[-1] = with_mark
            return with_mark is not None
        last = self.out[-1] if len(self.out) > opened else None
        if last is None or last.role != "toolResult":
            return False
        result = marked(last, mark)
        if result is not None:
            self.out[-1] = result
        return result is not None

    def place(self, turn: Block, opened: int, *, is_result: bool) -> Wire:
        """Say where the next message stands, if that is not where it would be written."""
        first = len(self.out) == opened
        joins = is_result or self.endpoint.rules.alternate
        default = bool(self.out) and self.out[-1].role == "toolResult" and joins
        verbatim: Wire = {}
        if first and turn.get("role") != "user":
            verbatim.update({"role": turn["role"]} if "role" in turn else {"roleless": True})
        if first and default:
            verbatim["apart"] = True
        elif not first and not default:
            verbatim["joined"] = True
        return verbatim

    def add_text(self, turn: Block, opened: int, texts: list[UserContent], original: Wire) -> None:
        whole = turn if len(self.out) == opened else NOTHING
        verbatim = {**self.place(turn, opened, is_result=False), **original}
        self.out.append(UserMessage(content=tuple(texts), extra=_extra(whole, verbatim)))

    def add_result(self, turn: Block, opened: int, result: Block, path: Path) -> None:
        whole = turn if len(self.out) == opened else NOTHING
        verbatim = self.place(turn, opened, is_result=True)
        original = original_of(result)
        if original is None:
            blocks = blocks_of(result["content"], (*path, "content"))
            content = tuple([decode_user_block(block, self.documents) for block in blocks])
        else:
            content = original[0]
            verbatim.update(original[1])
        status = result.get("status")
        is_error = status == "error"
        if "status" in result and not (is_error and self.endpoint.rules.tool_error == "flag"):
            verbatim["status"] = status
        call_id = str(result["toolUseId"])
        self.out.append(
            ToolResultMessage(
                tool_call_id=call_id,
                tool_name=self.tool_names.get(call_id, ""),
                content=content,
                is_error=is_error,
                extra=_extra(whole, verbatim, result),
            )
        )


def decode_system(blocks: Sequence[Block]) -> tuple[SystemContent, ...]:
    """Read the blocks of instructions; cache points stand behind what they cache."""
    pieces: list[SystemContent] = []
    for block in blocks:
        mark = lone_mark(block)
        if mark is not None and pieces and (with_mark := marked(pieces[-1], mark)):
            pieces[-1] = with_mark
        else:
            pieces.append(decode_system_block(block))
    return tuple(pieces)


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
            extra = message.extra
            if type(message) is ToolResultMessage and extra is None:
                turns.add_result(message)
            elif type(message) is AssistantMessage and (extra is None or is_of_reply(extra)):
                blocks = encode_assistant_blocks(message.content, endpoint, turns.documents)
                turns.wire.append({"role": "assistant", "content": blocks})
                turns.open, turns.after_result = None, False
            else:
                turns.add_verbatim(message)
    except EncodeError as error:
        raise _placed(error, messages[index], endpoint, ("messages", index)) from error
    return turns.wire


def _placed(error: EncodeError, message: Message, endpoint: Endpoint, path: Path) -> EncodeError:
    """Find the piece that cannot be written: looking for it again costs nothing where all goes well."""
    for at, piece in enumerate(message.content):
        try:
            if message.role == "assistant":
                encode_assistant_content(cast("AssistantContent", piece), endpoint, DocumentNames())
            else:
                encode_user_content(cast("UserContent", piece), DocumentNames())
        except EncodeError as inner:
            return EncodeError(inner.reason, path=(*path, "content", at))
    return EncodeError(error.reason, path=path)


class _Turns:
    """The wire messages so far, and the user turn that results and words may still join."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.documents = DocumentNames()
        self.joins = endpoint.rules.alternate
        self.flags = endpoint.rules.tool_error == "flag"
        self.open: list[Wire] | None = None  # the blocks of the last wire message, if it is the user's
        self.after_result = False

    def add_result(self, message: ToolResultMessage) -> None:
        """Write a result that says nothing of how it was spelt, beside the results before it."""
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is None:
            blocks: list[Wire] = [{"text": piece.text}]
        else:
            blocks = encode_user_blocks(content, self.documents)
        result: Wire = {"toolUseId": message.tool_call_id, "content": blocks}
        if message.is_error and self.flags:
            result["status"] = "error"
        if self.open is not None and self.after_result:
            self.open.append({"toolResult": result})
        else:
            self.open = [{"toolResult": result}]
            self.wire.append({"role": "user", "content": self.open})
            self.after_result = True

    def add_verbatim(self, message: Message) -> None:
        """Write one message the way it was spelt."""
        extra = message.extra
        verbatim = NOTHING if extra is None else verbatim_of(extra, PROTOCOL)
        match message.role:
            case "user":
                blocks = encode_user_blocks(message.content, self.documents)
                self._add_user(message, blocks, verbatim, is_result=False)
                return
            case "toolResult":
                blocks: list[Wire] = [{"toolResult": self._result(message, verbatim)}]
                mark = mark_of(extra)
                if mark is not None:
                    blocks.append({MARK: mark})
                self._add_user(message, blocks, verbatim, is_result=True)
                return
            case "assistant":
                blocks = encode_assistant_blocks(message.content, self.endpoint, self.documents)
            case "system":
                blocks = encode_user_blocks(message.content, self.documents)
        self._begin(message.role, restore_content(blocks, verbatim), extra)
        self.open, self.after_result = None, False

    def _add_user(
        self, message: UserMessage | ToolResultMessage, blocks: list[Wire], verbatim: Block, *, is_result: bool
    ) -> None:
        """Add to the open user turn where that is the way, else begin one."""
        default = self.after_result and (is_result or self.joins)
        if self.open is not None and ("apart" not in verbatim if default else "joined" in verbatim):
            self.open += blocks
        else:
            content = blocks if is_result else restore_content(blocks, verbatim)
            self._begin(verbatim.get("role", "user"), content, message.extra)
            self.open = blocks if content is blocks else None
        self.after_result = is_result

    def _begin(self, role: object, content: object, extra: Extra | None) -> None:
        turn: Wire = {"role": role, "content": content}
        if extra is not None and PROTOCOL in extra:
            turn.update(object_of(extra[PROTOCOL].get(_MESSAGE)))
            verbatim = verbatim_of(extra, PROTOCOL)
            if content is None and verbatim.get("content") == "absent":
                del turn["content"]
            if "roleless" in verbatim:
                del turn["role"]
        self.wire.append(turn)

    def _result(self, message: ToolResultMessage, verbatim: Block) -> Wire:
        content = restore_content(encode_user_blocks(message.content, self.documents), verbatim)
        result: Wire = {"toolUseId": message.tool_call_id, "content": content}
        if "status" in verbatim and (verbatim["status"] == "error") is message.is_error:
            result["status"] = verbatim["status"]
        elif message.is_error and self.flags:
            result["status"] = "error"
        if message.extra is not None:
            result.update((key, value) for key, value in put_back(message.extra).items() if key != _MESSAGE)
            if content is None and verbatim.get("content") == "absent":
                del result["content"]
        return result


def restore_content(blocks: list[Wire], verbatim: Block) -> object:
    """Give content as a string or as nothing, if that is how it came and still says it all; else its blocks."""
    wire_format = verbatim.get("content")
    if wire_format is None:
        return blocks
    if wire_format == "string" and len(blocks) == 1 and len(blocks[0]) == 1 and "text" in blocks[0]:
        return blocks[0]["text"]
    return None if not blocks and wire_format in ("null", "absent") else blocks
