"""What an assistant message says in fields beside its content: a refusal, sound, pictures.

Facts this file rests on:
- `refusal`, `audio` (a request names it by id alone) and generated `images` are fields beside the content; a refusal
  may also be a part of it.                                      (openai 3.49.0; OpenRouter documentation: images)

A refusal is a text whose shape says so. Another field is a `NativeContent` whose block has no `type`: it is put back
into the message as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra, FallbackContent, NativeContent, TextContent
from segue.protocols.kit.reading import VERBATIM, extra_of, verbatim_of
from segue.protocols.openai_chat.media import decode_media
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import Block, object_of

REFUSED: Final[Extra] = {PROTOCOL: {VERBATIM: {"refusal": "field"}}}
"""The extra of a text that came as the message's refusal."""
_WHOLE: Final[Extra] = {PROTOCOL: {VERBATIM: {"audio": "whole"}}}
"""The extra of sound that a request told in full."""


def decode_fields(wire: Block, known: set[str], *, reply: bool) -> list[TextContent | NativeContent]:
    """Read the fields beside the content that say something to the reader."""
    found: list[TextContent | NativeContent] = []
    if isinstance(refusal := wire.get("refusal"), str) and refusal:
        found.append(TextContent(text=refusal, extra=REFUSED))
        known.add("refusal")
    if isinstance(audio := wire.get("audio"), Mapping):
        content = audio_content(cast("Block", audio))
        is_default = reply or list(cast("Block", audio)) == ["id"]
        found.append(content if is_default else replace(content, extra=_WHOLE))
        known.add("audio")
    if isinstance(images := wire.get("images"), list) and images:
        found.append(images_content(cast("list[object]", images)))
        known.add("images")
    return found


def read_refusal(part: Block) -> TextContent | None:
    """Read a part that refuses; None when it is another."""
    if part.get("type") != "refusal" or not isinstance(texts := part.get("refusal"), str):
        return None
    return TextContent(text=texts, extra=extra_of(PROTOCOL, part, ("type", "refusal"), {"refusal": "part"}))


def is_refusal(text: TextContent) -> bool:
    """Say whether a text is a refusal."""
    return text.extra is not None and "refusal" in verbatim_of(text.extra, PROTOCOL)


def audio_content(audio: Block) -> NativeContent:
    """Keep what the model said aloud; for others it is what it said."""
    transcript = audio.get("transcript")
    fallback = (TextContent(text=transcript),) if isinstance(transcript, str) and transcript else ()
    return NativeContent(protocol=PROTOCOL, block={"audio": dict(audio)}, fallback=fallback)


def images_content(images: Sequence[object]) -> NativeContent:
    """Keep pictures that the model made; others can look at them."""
    fallback: list[FallbackContent] = []
    for image in images:
        media = decode_media(object_of(image))
        if media is not None:
            fallback.append(replace(media, extra=None))
    return NativeContent(protocol=PROTOCOL, block={"images": list(images)}, fallback=tuple(fallback))


def sent_back(field: NativeContent) -> Block:
    """Give a field the form it has in a request: what was said aloud is named by its id."""
    audio = object_of(field.block.get("audio"))
    if "id" not in audio or "audio" in verbatim_of(field.extra, PROTOCOL):
        return field.block
    return {**field.block, "audio": {"id": audio["id"]}}
