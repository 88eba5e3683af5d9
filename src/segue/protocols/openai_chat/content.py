"""Content of user, system and tool messages: a string or a list of parts, both ways.

Facts this file rests on:
- Content is a string or a list of parts. Every vendor accepts a string where there is one text; some refuse a list in
  tool results.                         (openai 3.49.0; groq: "content: value must be a string"; pi-ai 1.5.0 joins them)
- The texts of a tool result are joined by a line break.                                   (pi-ai 1.5.0, ktsoator/or)
- Parts have marks of their own: `cache_control`, `prompt_cache_breakpoint`.
                                                                        (recorded traffic, 2026-11; openai 3.49.0)
- A reply in JSON may arrive as the value itself instead of its text; a request sends it back as text.
                                           (Cloudflare Workers AI with `json_schema`; recorded traffic, 2025-12)

Default format: one plain text is a string, no content is an empty string, everything else is a list. In tool results
all plain texts are one string. A message that has a list instead keeps the choice `content`: "list".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra, TextContent, UserContent
from segue.errors import Path
from segue.protocols.kit.json_values import MISSING, Wire
from segue.protocols.kit.reading import expect_list, expect_object
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.cache import find_mark, write_mark
from segue.protocols.openai_chat.media import decode_media, encode_file, encode_image
from segue.protocols.openai_chat.native import encode_native, keep_native
from segue.protocols.openai_chat.rules import PROTOCOL

LIST: Final = choose("content", "string", "list")
"""The choice of a message whose content is a list although a string would do."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_content(value: object, path: Path, *, joined: bool = False) -> tuple[tuple[UserContent, ...], Wire]:
    """Read the content of a message, and the choices to keep on the message.

    `joined` is for tool results, whose plain texts are written as one string.

    Raises:
        DecodeError: it is neither a string nor a list of objects.
    """
    if isinstance(value, str):
        return (TextContent(text=value),), {}
    if value is MISSING or value is None:
        return (), {}
    parts = tuple(decode_part(block, (*path, index)) for index, block in enumerate(expect_list(value, path)))
    return parts, LIST if _is_string(parts, joined=joined) else {}


def decode_part(block: object, path: Path) -> UserContent:
    """Read one part. A part that segue does not know becomes native content.

    Raises:
        DecodeError: it is no object.
    """
    part = expect_object(block, path)
    if part.get("type") == "text" and isinstance(text := part.get("text"), str):
        if len(part) == 2:
            return TextContent(text=text)
        content = TextContent(text=text, cache_mark=find_mark(part))
        extra = keep(PROTOCOL, part, _encode_text(content))
        return content if extra is None else replace(content, extra=extra)
    media = decode_media(part)
    return keep_native(part) if media is None else media


def dump_value(content: object) -> str | None:
    """Give the JSON text of a reply, or of a delta, that is a JSON value; None for a text, a list of parts or null."""
    if isinstance(content, list):
        is_value = not all(isinstance(part, Mapping) for part in cast("list[object]", content))
    else:
        is_value = isinstance(content, (Mapping, int, float))
    if not is_value:
        return None
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None  # not JSON, so no provider can have sent it


# -- writing -----------------------------------------------------------------------------------------------------------


def is_plain(piece: AnyContent) -> bool:
    """Whether content is a text and nothing else on this wire; fields of other protocols are not written."""
    if piece.kind != "text" or piece.cache_mark is not None:
        return False
    return piece.extra is None or PROTOCOL not in piece.extra


def _is_string(content: Sequence[UserContent], *, joined: bool) -> bool:
    if len(content) == 1:
        return is_plain(content[0])
    return joined and bool(content) and all(map(is_plain, content))


def encode_content(
    content: Sequence[UserContent], extra: Extra | None, path: Path, *, joined: bool = False
) -> str | list[Wire]:
    """Write the content of a message, whose `extra` has the choice between a string and a list.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    if not content:
        return ""  # an empty list is refused
    if _is_string(content, joined=joined) and chosen(extra, PROTOCOL, "content", "string") == "string":
        return "\n".join([cast("TextContent", piece).text for piece in content])
    return encode_parts(content, path)


def encode_parts(content: Sequence[UserContent], path: Path) -> list[Wire]:
    """Write content as a list of parts.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    return [encode_part(piece, (*path, index)) for index, piece in enumerate(content)]


def encode_part(content: UserContent, path: Path) -> Wire:
    """Write one part.

    Raises:
        EncodeError: a block of another protocol, or media without data, URL or id.
    """
    match content.kind:
        case "text":
            return _encode_text(content)
        case "image":
            return encode_image(content, path)
        case "file":
            return encode_file(content, path)
        case "native":
            return encode_native(content, path)
        case _:
            assert_never(content)


def _encode_text(content: TextContent) -> Wire:
    wire: Wire = {"type": "text", "text": content.text}
    write_mark(wire, content.cache_mark)
    return wire if content.extra is None else restore(wire, content.extra, PROTOCOL)
