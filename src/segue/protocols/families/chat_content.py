"""Content of user, tool and system messages in the chat protocols: a string or a list of blocks, both ways.

Facts:
- Content is a string or a list of blocks; in recorded traffic it is also null, or the key is absent.
                                                (mistralai 3.7.0, cohere 7.3.1, read 2026-11-15; recorded traffic)

Each protocol defines its own blocks. Default format: one text without further keys is a string, no content is an empty
string, everything else is a list.

Choices (`kit.verbatim`): `message` is "native" for a message of an unknown role; its only content is the whole message.
`place` is "content" for a block of an assistant's content that has keys of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from segue.conversation.content import Extra, NativeContent, SystemContent, TextContent, UserContent
from segue.conversation.messages import UserMessage
from segue.errors import Path
from segue.protocols.kit.json_values import EMPTY, MISSING, Block, Wire
from segue.protocols.kit.reading import expect_objects, native_block
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

_BY_ROLE: Final = "by_role"
_NATIVE: Final = "native"
_MESSAGE_KEYS: Final = frozenset({"role", "tool_calls"})


class Blocks(NamedTuple):
    """The blocks of one protocol: how to read one, how to write one, how to keep one of an unknown type."""

    protocol: str
    decode: Callable[[Block], UserContent]
    encode: Callable[[UserContent, Path], Wire]
    keep: Callable[[Block], NativeContent]


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_content(blocks: Blocks, value: object, path: Path) -> tuple[UserContent, ...]:
    """Read content that is a string, a list, null or absent (`MISSING`).

    Raises:
        DecodeError: it has another type.
    """
    if isinstance(value, str):
        return (TextContent(text=value),) if value else ()
    if value is MISSING or value is None:
        return ()
    return tuple(map(blocks.decode, expect_objects(value, path)))


def is_call(protocol: str, piece: NativeContent) -> bool:
    """Whether native content is a call that names no function."""
    block = piece.block
    return "type" not in block and isinstance(block.get("tool_calls"), list) and not is_block(protocol, piece)


def keep_place(protocol: str, piece: NativeContent) -> NativeContent:
    """Note that native content is a block of the content, if it has the keys of a message."""
    if _MESSAGE_KEYS.isdisjoint(piece.block):
        return piece
    return replace(piece, extra=keep(protocol, EMPTY, EMPTY, choices=choose("place", "message", "content")))


def is_block(protocol: str, piece: NativeContent) -> bool:
    """Whether native content is a block of the content although it has the keys of a message."""
    return chosen(piece.extra, protocol, "place", "message") == "content"


def is_default(value: object, content: Sequence[object]) -> bool:
    """Whether content was received in the default format."""
    if isinstance(value, str):
        return True
    if not isinstance(value, (list, tuple)) or not content:
        return False
    return len(content) > 1 or not isinstance(content[0], TextContent) or content[0].extra is not None


def decode_message(blocks: Blocks, wire: Block, path: Path) -> tuple[tuple[UserContent, ...], Extra | None]:
    """Read the content of a message that has a role and content, and its `extra`.

    Raises:
        DecodeError: its content is of another type.
    """
    value = wire.get("content", MISSING)
    content = decode_content(blocks, value, (*path, "content"))
    if len(wire) == 2 and is_default(value, content):
        return content, None
    if len(wire) == 2 and content:
        return content, extra_of_list(blocks.protocol)
    default: Wire = {"role": wire.get("role"), "content": encode_content(blocks, content, path)}
    return content, keep(blocks.protocol, wire, default)


@lru_cache(maxsize=16)
def extra_of_list(protocol: str) -> Extra | None:
    """Return the `extra` of a message that has a role and a list of one text, and no other key."""
    return keep(protocol, {"content": [{"type": "text", "text": " "}]}, {"content": " "})


def keep_message(blocks: Blocks, wire: Block) -> UserMessage:
    """Make a message of an unknown role: its only content is the whole message as native content."""
    extra = keep(blocks.protocol, {}, {}, choices=choose("message", _BY_ROLE, _NATIVE))
    return UserMessage(content=(blocks.keep(wire),), extra=extra)


def decode_text(protocol: str, block: Block) -> TextContent | None:
    """Read a text block; None for a block of another type."""
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return None
    extra = None if len(block) == 2 else keep(protocol, block, {"type": "text", "text": text})
    return TextContent(text=text, extra=extra)


def as_instruction(blocks: Blocks, content: UserContent) -> SystemContent:
    """Convert content to what a system message can hold: media become native content."""
    if isinstance(content, (TextContent, NativeContent)):
        return content
    return NativeContent(protocol=blocks.protocol, block=blocks.encode(content, ()), fallback=(content,))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_content(blocks: Blocks, content: Sequence[UserContent], path: Path) -> object:
    """Write content in the default format.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    if len(content) == 1 and (first := content[0]).kind == "text" and first.extra is None:
        return first.text
    encode = blocks.encode
    return join_blocks([encode(piece, (*path, index)) for index, piece in enumerate(content)])


def join_blocks(blocks: list[Wire]) -> object:
    """Write encoded blocks as content in the default format."""
    if not blocks:
        return ""
    text = blocks[0].get("text")
    if len(blocks) == 1 and len(blocks[0]) == 2 and blocks[0].get("type") == "text" and isinstance(text, str):
        return text
    return blocks


def encode_text(protocol: str, content: TextContent) -> Wire:
    """Write a text as a block."""
    wire: Wire = {"type": "text", "text": content.text}
    return wire if content.extra is None else restore(wire, content.extra, protocol)


def encode_message(blocks: Blocks, role: str, content: Sequence[UserContent], extra: Extra | None, path: Path) -> Wire:
    """Write a message that has a role and content.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    protocol = blocks.protocol
    first = content[0] if extra is not None and len(content) == 1 else None
    if first is not None and first.kind == "native" and chosen(extra, protocol, "message", _BY_ROLE) == _NATIVE:
        return dict(native_block(protocol, first, path))
    wire: Wire = {"role": role, "content": encode_content(blocks, content, (*path, "content"))}
    return wire if extra is None else restore(wire, extra, protocol)


# -- texts of a turn ---------------------------------------------------------------------------------------------------


class JoinedText:
    """The texts of a turn, for a protocol that has one text per turn.

    In most cases they are parts of one sentence (citations split it) and are concatenated. If one ends like a sentence
    and the next begins like one (as after thinking that is sent as text), they are joined as paragraphs.
    """

    __slots__ = ("_last", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._last = ""

    def join(self, text: str) -> None:
        """Add a text, as a paragraph of its own where it looks like one."""
        if text and self._last in _ENDS and (text[0].isupper() or text[0] in _BEGINNINGS):
            self._pieces.append("\n\n")
        self.append(text)

    def append(self, text: str) -> None:
        """Add a text directly after the one before."""
        if text:
            self._pieces.append(text)
            self._last = text[-1]

    def __str__(self) -> str:
        return "".join(self._pieces)


class TextJoint:
    """The same for texts that are written piece by piece: gives what to write for each piece."""

    __slots__ = ("_begins", "_last")

    def __init__(self) -> None:
        self._begins = True
        self._last = ""

    def begin(self) -> None:
        """Begin a text."""
        self._begins = True

    def add(self, text: str) -> str:
        """Return a piece of the text, with the break before it if it begins its own paragraph."""
        last, self._last = self._last, text[-1]
        if not self._begins:
            return text
        self._begins = False
        is_paragraph = last in _ENDS and (text[0].isupper() or text[0] in _BEGINNINGS)
        return f"\n\n{text}" if is_paragraph else text


def join_texts(texts: Sequence[str]) -> str:
    """Join the texts of a turn; see `JoinedText`."""
    if len(texts) == 1:
        return texts[0]
    pieces: list[str] = []
    last = ""
    for text in texts:  # as `JoinedText.join`; its calls cost more than the rest
        if text:
            if last in _ENDS and (text[0].isupper() or text[0] in _BEGINNINGS):
                pieces.append("\n\n")
            pieces.append(text)
            last = text[-1]
    return "".join(pieces)


_ENDS = frozenset(".!?:)]}\"'`*|>")
_BEGINNINGS = frozenset("#*-`>|[")
"""Characters that end a sentence, and characters other than capital letters that begin one."""
