"""What the page shows of a message: its pieces of content, with the changed words of each marked.

Images are served by themselves, under a digest of their data, so that only those on the screen are loaded. The server
gives their type by their first bytes: what a file claims to be is not trusted, and only raster formats are shown.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias, final

import msgspec

from segue.conversation.content import AnyContent, TextContent
from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.inspector.alignment import pair_texts
from segue.inspector.differences import compare, shorten

Json: TypeAlias = dict[str, object]
Keep: TypeAlias = Callable[[str], str]
"""Keeps the base64 data of an image for the page and returns the key to ask for it."""

_RASTER: Final[Mapping[bytes, str]] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}
"""First bytes -> MIME type; WebP has its own in the middle."""
_LEAST_COMMON: Final = 0.5
"""Pieces of two messages are shown as one that changed if this part of the shorter text is in both; else as two."""


@final
class ShownPiece(NamedTuple):
    """One piece of content, whole: what is compared, and what is shown next to the text."""

    kind: str
    text: str
    about: Json


def find_image(data: str) -> tuple[bytes, str] | None:
    """Decode base64 data and return it with its MIME type; None if it is not a picture that browsers show."""
    try:
        decoded = b64decode(data, validate=True)
    except (Base64Error, ValueError):
        return None
    if decoded[:4] == b"RIFF" and decoded[8:12] == b"WEBP":
        return decoded, "image/webp"
    return next(((decoded, mime) for start, mime in _RASTER.items() if decoded.startswith(start)), None)


def digest(data: str) -> str:
    """Name the data of an image."""
    return sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def describe_message(message: Message, number: int) -> Json:
    """Return what is shown above the content of a message."""
    about: Json = {"role": message.role, "number": number}
    if message.role == "assistant":
        about |= {"origin": f"{message.provider}/{message.model}".strip("/"), "stop": message.stop_reason}
    elif message.role == "toolResult":
        about |= {"origin": message.tool_name, "id": message.tool_call_id, "failed": message.is_error}
    return about


def message_pieces(message: Message, keep: Keep) -> list[ShownPiece]:
    """Return the pieces of a message."""
    return [_piece(content, keep) for content in message.content]


def instruction_pieces(context: Context, keep: Keep) -> list[ShownPiece]:
    """Return the system prompt and the names of the tools as pieces."""
    prompt = context.system_prompt
    contents = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt or ()
    pieces = [_piece(content, keep) for content in contents]
    if context.tools:
        names = [tool.name if tool.kind == "function" else f"{tool.protocol} tool" for tool in context.tools]
        pieces.append(ShownPiece("tools", ", ".join(names), {}))
    return pieces


def show_pieces(pieces: Sequence[ShownPiece], length: int) -> list[Json]:
    """Return the pieces of a message that was not changed."""
    return [_shown(piece, [piece.text], length) for piece in pieces]


def show_pair(stored: Sequence[ShownPiece], sent: Sequence[ShownPiece], length: int) -> tuple[list[Json], list[Json]]:
    """Return the pieces of a stored message and of what was sent for it, with the differences marked."""
    before: list[Json] = []
    after: list[Json] = []
    for old, new in pair_texts([piece.text for piece in stored], [piece.text for piece in sent]):
        was = None if old is None else stored[old]
        now = None if new is None else sent[new]
        if was is None or now is None or not _are_alike(was, now):
            if was is not None:
                before.append(_shown(was, ["", was.text], length) | {"state": "dropped"})
            if now is not None:
                after.append(_shown(now, ["", now.text], length) | {"state": "added"})
            continue
        old_parts, new_parts = compare(was.text, now.text)
        marks = _changed_facts(was, now)
        state = {"marks": marks} if marks else {}
        before.append(_shown(was, old_parts, length) | state)
        after.append(_shown(now, new_parts, length) | state)
    return before, after


def _are_alike(was: ShownPiece, now: ShownPiece) -> bool:
    """Whether one became the other: the same text, or the same kind, or texts that have much in common."""
    if was.text == now.text or was.kind == now.kind:
        return True
    if not {was.kind, now.kind} <= {"text", "thinking"}:
        return False
    shorter = min(len(was.text), len(now.text))
    common = compare(was.text, now.text)[0][::2]
    return sum(map(len, common)) >= _LEAST_COMMON * shorter


def _changed_facts(was: ShownPiece, now: ShownPiece) -> list[str]:
    changed = ["kind"] if was.kind != now.kind else []
    return changed + [key for key in ("name", "id", "signed") if was.about.get(key) != now.about.get(key)]


def _shown(piece: ShownPiece, parts: Sequence[str], length: int) -> Json:
    kept, more, changed_later = shorten(parts, length)
    shown: Json = {"kind": piece.kind, "parts": [_encodable(part) for part in kept], **piece.about}
    if more:
        shown["more"] = more
    if changed_later:
        shown["changedLater"] = True
    return shown


def _encodable(text: str) -> str:
    # Half a surrogate pair cannot be encoded.
    return text.encode("utf-8", "replace").decode()


def _piece(content: AnyContent, keep: Keep) -> ShownPiece:
    match content.kind:
        case "text":
            return ShownPiece("text", content.text, _signed(content.text_signature))
        case "thinking":
            return ShownPiece("thinking", content.thinking, _signed(content.thinking_signature))
        case "toolCall":
            arguments = content.arguments_text or _render_json(content.arguments)
            about = _signed(content.thought_signature) | {"name": content.name, "id": content.id}
            return ShownPiece("toolCall", arguments, about)
        case "image" | "file":
            where = content.url or (content.file_id if content.kind == "file" else None)
            size = f"{len(content.data) * 3 // 4:,} bytes" if content.data is not None else where or ""
            name = content.name if content.kind == "file" else None
            text = ", ".join(filter(None, (name, content.mime_type or "unknown type", size)))
            about: Json = {"image": keep(content.data)} if content.kind == "image" and content.data else {}
            return ShownPiece(content.kind, text, about)
        case "native":
            return ShownPiece("native", _render_json(content.block, indent=2), {"name": content.protocol})


def _render_json(value: object, indent: int | None = None) -> str:
    # The standard library, because it writes halves of surrogate pairs as well.
    separators = (",", ":") if indent is None else None
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=indent, separators=separators)


def _signed(signature: str | None) -> Json:
    return {"signed": True} if signature else {}
