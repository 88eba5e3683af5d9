"""Anthropic turns, both ways: where wire messages and neutral messages are not one to one.

Facts this file rests on:
- Tool results are blocks of a user turn and come first in it; what the user says next may stand behind them, and all
  results of a batch stand in one turn.     (Anthropic documentation: handle tool calls; any-llm; read 2026-11-15)
- Consecutive turns of one role are accepted and merged by the server.             (anthropic 2.8.0; recorded traffic)
- A mid-conversation turn may have the role `system`.                                                (anthropic 2.8.0)

By default consecutive results share one wire turn, content is a list of blocks, and `is_error` is said only when it is
true. The user's words behind results are a turn of their own, which the server merges: so a request that ended in the
results stays a prefix of the next, also where the answer between them had nothing to send. Only where turns have to
alternate they join the results. What was spelt another way carries a shape: `apart` (a turn of its own), `joined` (in
the turn before it), `content`, `is_error`, `role`, `roleless`. Keys of a wire message itself stand under `message`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

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
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.verbatim import keep, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import expect_list, expect_object, is_of_reply, verbatim_of

Wire: TypeAlias = dict[str, object]

_MESSAGE: Final = "message"
_TURN_KEYS: Final = frozenset({"role", "content"})
_RESULT_KEYS: Final = frozenset({"type", "tool_use_id", "content", "is_error"})
_NO_NAMES: Final[Mapping[str, str]] = {}
_NOTHING: Final[Mapping[str, object]] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_turns(items: object, endpoint: Endpoint, model: str) -> tuple[Message, ...]:
    """Read the messages of a body.

    Raises:
        DecodeError: it is no list of objects with content.
    """
    out: list[Message] = []
    names: dict[str, str] = {}
    joins = endpoint.rules.alternate
    for index, item in enumerate(expect_list(items, ("messages",))):
        path = ("messages", index)
        turn = expect_object(item, path)
        match turn.get("role"):
            case "assistant":
                out.append(_decode_assistant(turn, path, endpoint, model, names))
            case "system":
                pieces, verbatim = _decode_content(turn, path, decode_system_block)
                out.append(SystemMessage(content=pieces, extra=_extra(turn, verbatim)))
            case _:
                _decode_user(turn, path, names, out, joins=joins)
    return tuple(out)


def _extra(
    turn: Mapping[str, object], verbatim: Mapping[str, object], block: Mapping[str, object] = _NOTHING
) -> Extra | None:
    """Keep what a result's block says, what a wire message says beyond role and content, and how they were spelt."""
    extra = keep(block, _RESULT_KEYS, verbatim)
    if not turn or (len(turn) == 2 and "role" in turn and "content" in turn):
        return extra
    beyond = {key: value for key, value in turn.items() if key not in _TURN_KEYS}
    return {PROTOCOL: {**(extra or {}).get(PROTOCOL, _NOTHING), _MESSAGE: beyond}} if beyond else extra


_Content = TypeVar("_Content")


def _decode_content(
    turn: Mapping[str, object], path: Path, decode: Callable[[Mapping[str, object]], _Content]
) -> tuple[tuple[_Content | TextContent, ...], Wire]:
    """Read the content of a wire message, and say how it was spelt if that was not a list."""
    content = turn.get("content")
    if isinstance(content, str):
        return (TextContent(text=content),), {"content": "string"}
    if content is None:
        return (), {"content": "null" if "content" in turn else "absent"}
    return tuple([decode(block) for block in _blocks_of(content, path)]), {}


def _blocks_of(content: object, path: Path) -> list[Mapping[str, object]]:
    """Give the blocks of a content; where one is no object, the error says which."""
    blocks = expect_list(content, (*path, "content"))
    for at, block in enumerate(blocks):
        if type(block) is not dict:
            blocks[at] = expect_object(block, (*path, "content", at))
    return cast("list[Mapping[str, object]]", blocks)


def _decode_assistant(
    turn: Mapping[str, object], path: Path, endpoint: Endpoint, model: str, names: dict[str, str]
) -> AssistantMessage:
    def decode(block: Mapping[str, object]) -> AssistantContent:
        return decode_assistant_block(block, endpoint, _NO_NAMES)

    pieces, verbatim = _decode_content(turn, path, decode)
    stop = StopReason.STOP
    for piece in pieces:
        if piece.kind == "toolCall":
            names[piece.id] = piece.name
            stop = StopReason.TOOL_USE
    return AssistantMessage(
        content=pieces,
        protocol=PROTOCOL,
        provider=endpoint.model.provider,
        model=model,
        stop_reason=stop,
        extra=_extra(turn, verbatim),
    )


def _decode_user(
    turn: Mapping[str, object], path: Path, names: Mapping[str, str], out: list[Message], *, joins: bool
) -> None:
    """Read a user turn as results and user messages, in the order in which it has them."""
    content = turn.get("content")
    opened = len(out)

    def place(*, is_result: bool) -> Wire:
        """Say where the next message stands, if that is not where it would be written."""
        first = len(out) == opened
        default = bool(out) and out[-1].role == "toolResult" and (is_result or joins)
        verbatim: Wire = {}
        if first and turn.get("role") != "user":
            verbatim.update({"role": turn["role"]} if "role" in turn else {"roleless": True})
        if first and default:
            verbatim["apart"] = True
        elif not first and not default:
            verbatim["joined"] = True
        return verbatim

    def add_text(texts: tuple[UserContent, ...], original: Wire) -> None:
        whole = turn if len(out) == opened else _NOTHING
        out.append(UserMessage(content=texts, extra=_extra(whole, {**place(is_result=False), **original})))

    if content is None or isinstance(content, str) or not content:
        add_text(*_decode_content(turn, path, decode_user_block))
        return
    texts: list[UserContent] = []
    for at, block in enumerate(_blocks_of(content, path)):
        if block.get("type") != "tool_result" or not isinstance(block.get("tool_use_id"), str):
            texts.append(decode_user_block(block))
            continue
        if texts:
            add_text(tuple(texts), {})
            texts = []
        whole = turn if len(out) == opened else _NOTHING
        verbatim = place(is_result=True)
        out.append(_decode_result(block, (*path, "content", at), names, turn=whole, verbatim=verbatim))
    if texts:
        add_text(tuple(texts), {})


def _decode_result(
    block: Mapping[str, object], path: Path, names: Mapping[str, str], *, turn: Mapping[str, object], verbatim: Wire
) -> ToolResultMessage:
    call_id = str(block["tool_use_id"])
    pieces, original = _decode_content(block, path, decode_user_block)
    original.update(verbatim)
    is_error = block.get("is_error")
    if is_error is not True and "is_error" in block:
        original["is_error"] = is_error
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=names.get(call_id, ""),
        content=pieces,
        is_error=is_error is True,
        extra=_extra(turn, original, block),
    )


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message], endpoint: Endpoint, *, strings: bool = True) -> list[Wire]:
    """Write the messages. Without `strings` content that came as a string is written as a list of one block.

    Raises:
        EncodeError: a message holds something that the wire has no word for; `path` leads to it.
    """
    turns = _Turns(endpoint, strings=strings)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            # One that says nothing of how it was spelt, as nearly all, is written without a detour.
            if turns.joins:
                turns.add_verbatim(message)
            elif type(message) is ToolResultMessage and message.extra is None:
                turns.add_result(message)
            elif type(message) is AssistantMessage and (message.extra is None or is_of_reply(message.extra)):
                turns.wire.append({"role": "assistant", "content": encode_assistant_blocks(message.content, endpoint)})
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
                encode_assistant_content(cast("AssistantContent", piece), endpoint)
            else:
                encode_user_content(cast("UserContent", piece))
        except EncodeError as inner:
            return EncodeError(inner.reason, path=(*path, "content", at))
    return EncodeError(error.reason, path=path)


class _Turns:
    """The wire messages so far, and the user turn that results and words may still join."""

    def __init__(self, endpoint: Endpoint, *, strings: bool) -> None:
        self.wire: list[Wire] = []
        self.endpoint = endpoint
        self.strings = strings
        self.joins = endpoint.rules.alternate
        self.open: list[Wire] | None = None  # the blocks of the last wire message, if it is the user's
        self.after_result = False

    def add_result(self, message: ToolResultMessage) -> None:
        """Write a result that says nothing of how it was spelt, beside the results before it."""
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is None:
            blocks: list[Wire] = [{"type": "text", "text": piece.text}]
        else:
            blocks = encode_user_blocks(content)
        block: Wire = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}
        if message.is_error:
            block["is_error"] = True
        if self.open is not None and self.after_result:
            self.open.append(block)
        else:
            self.open = [block]
            self.wire.append({"role": "user", "content": self.open})
            self.after_result = True

    def add_verbatim(self, message: Message) -> None:
        """Write one message the way it was spelt."""
        extra = message.extra
        verbatim = _NOTHING if extra is None else verbatim_of(extra, PROTOCOL)
        match message.role:
            case "user" | "toolResult":
                self._add_user(message, extra, verbatim)
                return
            case "assistant":
                blocks = encode_assistant_blocks(message.content, self.endpoint)
            case "system":
                blocks = encode_user_blocks(message.content)
        self._begin(message.role, self._original(message, blocks, verbatim) if verbatim else blocks, extra)
        self.open, self.after_result = None, False

    def _add_user(
        self, message: UserMessage | ToolResultMessage, extra: Extra | None, verbatim: Mapping[str, object]
    ) -> None:
        """Add to the open user turn where that is the way, else begin one."""
        if message.role == "toolResult":
            is_result, blocks = True, [_encode_result(message, verbatim)]
        else:
            is_result, blocks = False, encode_user_blocks(message.content)
        default = self.after_result and (is_result or self.joins)
        if self.open is not None and ("apart" not in verbatim if default else "joined" in verbatim):
            self.open += blocks
        else:
            content = self._original(message, blocks, verbatim) if verbatim and not is_result else blocks
            self._begin(verbatim.get("role", "user"), content, extra)
            self.open = blocks if content is blocks else None
        self.after_result = is_result

    def _begin(self, role: object, content: object, extra: Extra | None) -> None:
        turn: Wire = {"role": role, "content": content}
        if extra is not None and PROTOCOL in extra:
            beyond = extra[PROTOCOL].get(_MESSAGE)
            if isinstance(beyond, Mapping):
                turn.update(cast("Mapping[str, object]", beyond))
            if content is None and verbatim_of(extra, PROTOCOL).get("content") == "absent":
                del turn["content"]
            if "roleless" in verbatim_of(extra, PROTOCOL):
                del turn["role"]
        self.wire.append(turn)

    def _original(self, message: Message, blocks: list[Wire], verbatim: Mapping[str, object]) -> object:
        """Give the content as a string or as nothing, if that is how it came and still says it all."""
        return restore_content(message.content, blocks, verbatim.get("content"), strings=self.strings)


def restore_content(
    pieces: Sequence[object], blocks: list[Wire], wire_format: object, *, strings: bool = True
) -> object:
    """Give content as a string or as nothing, if that is how it came and still says it all; else its blocks."""
    if wire_format == "string" and strings:
        if not blocks:
            return ""
        if len(blocks) == 1 and len(blocks[0]) == 2 and isinstance(pieces[0], TextContent):
            return pieces[0].text
    elif not blocks and wire_format in ("null", "absent"):
        return None
    return blocks


def _encode_result(message: ToolResultMessage, verbatim: Mapping[str, object]) -> Wire:
    blocks = encode_user_blocks(message.content)
    content = restore_content(message.content, blocks, verbatim["content"]) if "content" in verbatim else blocks
    block: Wire = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
    if message.is_error:
        block["is_error"] = True
    elif "is_error" in verbatim:
        block["is_error"] = verbatim["is_error"]
    if message.extra is not None:
        block.update((key, value) for key, value in put_back(message.extra).items() if key != _MESSAGE)
        if content is None and verbatim.get("content") == "absent":
            del block["content"]
    return block
