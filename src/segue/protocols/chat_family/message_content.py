"""What users, tools and instructions say on a chat wire: a string, or a list of blocks, both ways.

Facts this file rests on:
- Content is a string or a list of blocks; in what was recorded it is also null, or not there.
                                                (mistralai 3.7.0, cohere 7.3.1, read 2026-11-15; recorded traffic)

Which blocks there are is the affair of each protocol. Default spelling: one bare text is a string, nothing an empty
one, everything else a list. What differs from that is recorded in the message's shape as `content`: `list`, `null` or
`absent`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from segue.conversation.content import Extra, NativeContent, SystemContent, TextContent, UserContent
from segue.conversation.messages import UserMessage
from segue.errors import Path
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, native_block, verbatim_of
from segue.protocols.kit.retired_format import MISSING, Block, Wire, keep, put_back

MESSAGE_KEYS: Final = frozenset({"role", "content"})


class Blocks(NamedTuple):
    """The blocks of one protocol: how one is read, how one is written, how one that nobody knows is kept."""

    protocol: str
    decode: Callable[[Block], UserContent]
    encode: Callable[[UserContent, Path], Wire]
    keep: Callable[[Block], NativeContent]


def is_string(content: Sequence[object]) -> bool:
    """Whether content is written as a string unless its shape says otherwise."""
    return len(content) == 1 and isinstance(piece := content[0], TextContent) and piece.extra is None


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_content(blocks: Blocks, value: object, path: Path) -> tuple[tuple[UserContent, ...], str | None]:
    """Read content that was a string, a list, null or not there; say the shape if it is not what we would write.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, str):
        return ((TextContent(text=value),) if value else ()), None
    if value is MISSING:
        return (), "absent"
    if value is None:
        return (), "null"
    decode = blocks.decode
    pieces = tuple(decode(expect_object(block, (*path, index))) for index, block in enumerate(expect_list(value, path)))
    return pieces, "list" if not pieces or is_string(pieces) else None


def decode_message_content(blocks: Blocks, wire: Block, path: Path) -> tuple[tuple[UserContent, ...], Extra | None]:
    """Read a message that has a role and content, and keep what else it says.

    Raises:
        DecodeError: its content is none.
    """
    content, original = decode_content(blocks, wire.get("content", MISSING), (*path, "content"))
    if original is None and len(wire) == 2:
        return content, None
    return content, keep(blocks.protocol, wire, MESSAGE_KEYS, {} if original is None else {"content": original})


def keep_message(blocks: Blocks, wire: Block) -> UserMessage:
    """Keep a message of a role that nobody knows: its only content is the whole of it."""
    return UserMessage(content=(blocks.keep(wire),), extra={blocks.protocol: {VERBATIM: {"message": "native"}}})


def as_instruction(blocks: Blocks, piece: UserContent) -> SystemContent:
    """Give a piece that instructions can hold; media in them are kept as they were."""
    if isinstance(piece, (TextContent, NativeContent)):
        return piece
    return NativeContent(protocol=blocks.protocol, block=blocks.encode(piece, ()), fallback=(piece,))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_content(blocks: Blocks, content: Sequence[UserContent], verbatim: object, path: Path) -> object:
    """Write content; `MISSING` says that the key is left out.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    if not content:
        return encode_nothing(verbatim)
    first = content[0]
    if len(content) == 1 and first.kind == "text" and first.extra is None and verbatim != "list":
        return first.text
    encode = blocks.encode
    return [encode(piece, (*path, index)) for index, piece in enumerate(content)]


def encode_nothing(verbatim: object, default: object = "") -> object:
    """Write that there is no content, the way it was written; `MISSING` says that the key is left out."""
    match verbatim:
        case "absent":
            return MISSING
        case "null":
            return None
        case "list":
            return list[object]()
        case "string":
            return ""
        case _:
            return default


def encode_text(protocol: str, content: TextContent) -> Wire:
    """Write a text as a block."""
    wire: Wire = {"type": "text", "text": content.text}
    return wire if content.extra is None else put_back(wire, content.extra, protocol)


def encode_message_content(
    blocks: Blocks, role: str, content: Sequence[UserContent], extra: Extra | None, path: Path
) -> Wire:
    """Write a message that has a role and content.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    if extra is None:
        return {"role": role, "content": encode_content(blocks, content, None, (*path, "content"))}
    protocol = blocks.protocol
    verbatim = verbatim_of(extra, protocol)
    if verbatim.get("message") == "native" and len(content) == 1 and content[0].kind == "native":
        return dict(native_block(protocol, content[0], path))
    wire: Wire = {"role": role}
    written = encode_content(blocks, content, verbatim.get("content"), (*path, "content"))
    if written is not MISSING:
        wire["content"] = written
    return put_back(wire, extra, protocol)
