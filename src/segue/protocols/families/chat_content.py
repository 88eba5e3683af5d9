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
