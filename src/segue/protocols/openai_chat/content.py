"""What users, tools and instructions say: a string, or a list of parts, both ways.

Facts this file rests on:
- Content is a string or a list of parts. Every vendor takes a string where there is one text; not every one takes a
  list in tool results.                 (openai 3.49.0; groq: "content: value must be a string"; pi-ai 1.5.0 joins them)
- The texts of a tool result are joined by a line break.                                   (pi-ai 1.5.0, ktsoator/or)
- Parts carry marks of their own: `cache_control`, `prompt_cache_breakpoint`.
                                                                        (recorded traffic, 2026-11; openai 3.49.0)
- An answer that was asked for in JSON may come as the value itself, not as its text; it goes back as a text.
                                           (Cloudflare Workers AI with `json_schema`; recorded traffic, 2025-12)

Default spelling: one bare text is a string, nothing an empty one, everything else a list; in tool results bare texts
are one string. What differs from that is recorded in the message's shape as `content`: `list`, `null` or `absent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.content import (
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.chat_family.message_content import encode_nothing
from segue.protocols.kit.reading import expect_list, expect_object, extra_of, left_over
from segue.protocols.openai_chat.media import decode_media, encode_file, encode_image
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import MISSING, Block, fill_in

_TEXT_KEYS: Final = ("type", "text")


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_content(value: object, path: Path, *, joined: bool = False) -> tuple[tuple[UserContent, ...], str | None]:
    """Read content that was a string, a list, null or not there; say the shape if it is not what we would write.

    `joined` is for tool results, whose bare texts are written as one string.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, str):
        return (TextContent(text=value),), None
    if value is MISSING:
        return (), "absent"
    if value is None:
        return (), "null"
    parts = tuple(decode_part(block, (*path, index)) for index, block in enumerate(expect_list(value, path)))
    return parts, "list" if not parts or _is_string(parts, joined=joined) else None


def decode_part(block: object, path: Path) -> UserContent:
    """Read one part; what is not known is kept as it is.

    Raises:
        DecodeError: it is no object.
    """
    part = expect_object(block, path)
    if part.get("type") == "text" and isinstance(text := part.get("text"), str):
        return TextContent(text=text, extra=None if len(part) == 2 else extra_of(PROTOCOL, part, _TEXT_KEYS))
    media = decode_media(part)
    return keep_native(part) if media is None else media


def keep_native(block: Block) -> NativeContent:
    """Keep a part that only this wire knows, with what can be read of it for others."""
    for key in ("text", "refusal", "content", "transcript"):
        if isinstance(text := block.get(key), str) and text:
            return NativeContent(protocol=PROTOCOL, block=dict(block), fallback=(TextContent(text=text),))
    return NativeContent(protocol=PROTOCOL, block=dict(block))


def restore_value(content: object) -> str | None:
    """Spell an answer, or a piece of one, that is a value of JSON; None for what is a text, parts, or nothing."""
    if isinstance(content, list):
        is_value = not all(isinstance(part, Mapping) for part in cast("list[object]", content))
    else:
        is_value = isinstance(content, (Mapping, int, float))
    if not is_value:
        return None
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None  # no JSON: nobody can have sent it


# -- writing -----------------------------------------------------------------------------------------------------------


def _is_string(content: Sequence[UserContent], *, joined: bool) -> bool:
    """Whether content is written as a string unless its shape says otherwise."""
    if len(content) == 1:
        return content[0].kind == "text" and content[0].extra is None
    return joined and bool(content) and all(piece.kind == "text" and piece.extra is None for piece in content)


def encode_content(content: Sequence[UserContent], verbatim: object, path: Path, *, joined: bool = False) -> object:
    """Write content; `MISSING` says that the key is left out.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    if verbatim != "list" and _is_string(content, joined=joined):
        return "\n".join([cast("TextContent", piece).text for piece in content])
    if not content:
        return encode_nothing(verbatim)  # an empty list is refused
    return [encode_part(piece, (*path, index)) for index, piece in enumerate(content)]


def encode_part(content: UserContent, path: Path) -> dict[str, object]:
    """Write one piece as a part.

    Raises:
        EncodeError: another protocol's block, or media without anything in them.
    """
    match content.kind:
        case "text":
            if content.extra is None:
                return {"type": "text", "text": content.text}
            return fill_in({"type": "text", "text": content.text}, left_over(content.extra, PROTOCOL))
        case "image":
            return encode_image(content, path)
        case "file":
            return encode_file(content, path)
        case "native":
            return dict(native_block(content, path))
        case _:
            assert_never(content)


def native_block(content: NativeContent, path: Path) -> Mapping[str, object]:
    """Give the block as it was received.

    Raises:
        EncodeError: another protocol received it.
    """
    if content.protocol != PROTOCOL:
        raise EncodeError(f"a block of {content.protocol} has no place on this wire", path=path)
    return content.block
