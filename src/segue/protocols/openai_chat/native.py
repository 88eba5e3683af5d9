"""Content that only this protocol has: parts of unknown types, calls of unknown types, and fields of a message.

Facts this file rests on:
- `refusal`, `audio` (a request names it by its id) and generated `images` are fields beside the content of an assistant
  message; a refusal may also be a part of the content.          (openai 3.49.0; OpenRouter documentation: images)

The block of a native content is a part of the message's content when it has a `type`, else it is a set of fields of the
message. Choices that native content and texts keep:
- `field`: where the content stands. A refusal: "refusal" (the field) or "part.refusal", not "content". A part without a
  type: "content", not "message".
- `audio`: "object", not "id", where a request holds the whole audio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra, FallbackContent, NativeContent, TextContent
from segue.errors import Path
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.cache import find_mark, without_mark, write_mark
from segue.protocols.openai_chat.media import decode_media
from segue.protocols.openai_chat.rules import PROTOCOL


def choice_extra(choices: Wire) -> Extra | None:
    """Give an extra that holds choices and nothing else."""
    return keep(PROTOCOL, EMPTY, EMPTY, choices=choices) if choices else None


REFUSAL_FIELD: Final = choice_extra(choose("field", "content", "refusal"))
"""The extra of a text that is the `refusal` of its message."""
_REFUSAL_PART: Final = choose("field", "content", "part.refusal")
_UNTYPED_PART: Final = choice_extra(choose("field", "message", "content"))
_WHOLE_AUDIO: Final = choice_extra(choose("audio", "id", "object"))
_TEXT_KEYS: Final = ("text", "refusal", "content", "transcript")


# -- parts -------------------------------------------------------------------------------------------------------------


def keep_native(block: Block) -> NativeContent:
    """Keep a block that only this protocol has; what is text in it is the fallback for other targets."""
    mark = find_mark(block)
    kept = without_mark(block, mark)
    text = next((value for key in _TEXT_KEYS if isinstance(value := block.get(key), str) and value), None)
    fallback = () if text is None else (TextContent(text=text),)
    return NativeContent(protocol=PROTOCOL, block=kept, fallback=fallback, cache_mark=mark)


def keep_assistant_part(block: Block) -> NativeContent:
    """Keep a part of an assistant message that is no text; media in it are the fallback for other targets."""
    native, media = keep_native(block), decode_media(block)
    if media is not None:
        return replace(native, fallback=(replace(media, cache_mark=None, extra=None),))
    return native if "type" in block else replace(native, extra=_UNTYPED_PART)


def encode_native(content: NativeContent, path: Path) -> Wire:
    """Write a block as it was received.

    Raises:
        EncodeError: another protocol received it.
    """
    wire = dict(native_block(PROTOCOL, content, path))
    write_mark(wire, content.cache_mark)
    return restore(wire, content.extra, PROTOCOL)


def is_part(content: NativeContent) -> bool:
    """Whether native content is a part of the message's content, not a set of its fields."""
    return "type" in content.block or chosen(content.extra, PROTOCOL, "field", "message") == "content"


# -- refusals ----------------------------------------------------------------------------------------------------------


def decode_refusal_part(part: Block) -> TextContent | None:
    """Read a part that is a refusal; None when it is another part."""
    if part.get("type") != "refusal" or not isinstance(text := part.get("refusal"), str):
        return None
    content = TextContent(text=text, cache_mark=find_mark(part), extra=choice_extra(_REFUSAL_PART))
    return replace(content, extra=keep(PROTOCOL, part, encode_refusal_part(content), choices=_REFUSAL_PART))


def encode_refusal_part(content: TextContent) -> Wire:
    """Write a refusal as a part."""
    wire: Wire = {"type": "refusal", "refusal": content.text}
    write_mark(wire, content.cache_mark)
    return restore(wire, content.extra, PROTOCOL)


def text_field(content: TextContent) -> object:
    """Give where a text of an assistant message stands: "content", "refusal" or "part.refusal"."""
    return "content" if content.extra is None else chosen(content.extra, PROTOCOL, "field", "content")


# -- fields of a message -----------------------------------------------------------------------------------------------


def decode_fields(wire: Block, known: set[str], *, reply: bool) -> list[TextContent | NativeContent]:
    """Read the fields beside the content of an assistant message; add the keys that were understood to `known`."""
    found: list[TextContent | NativeContent] = []
    if isinstance(refusal := wire.get("refusal"), str):
        known.add("refusal")
        if refusal:
            found.append(TextContent(text=refusal, extra=REFUSAL_FIELD))
    if isinstance(audio := wire.get("audio"), Mapping):
        known.add("audio")
        content = audio_content(cast("Block", audio))
        is_default = reply or list(cast("Block", audio)) == ["id"]
        found.append(content if is_default else replace(content, extra=_WHOLE_AUDIO))
    if isinstance(images := wire.get("images"), list):
        known.add("images")
        if images:
            found.append(images_content(cast("list[object]", images)))
    return found


def audio_content(audio: Block) -> NativeContent:
    """Keep the audio of a reply; its transcript is the fallback for other targets."""
    transcript = audio.get("transcript")
    fallback = (TextContent(text=transcript),) if isinstance(transcript, str) and transcript else ()
    return NativeContent(protocol=PROTOCOL, block={"audio": dict(audio)}, fallback=fallback)


def images_content(images: Sequence[object]) -> NativeContent:
    """Keep generated images; other targets get them as images."""
    fallback: list[FallbackContent] = []
    for image in images:
        media = decode_media(object_of(image))
        if media is not None:
            fallback.append(replace(media, cache_mark=None, extra=None))
    return NativeContent(protocol=PROTOCOL, block={"images": list(images)}, fallback=tuple(fallback))


def encode_fields(content: NativeContent, *, reply: bool) -> Block:
    """Give the fields of a message: in a request, audio is named by its id."""
    audio = object_of(content.block.get("audio"))
    if reply or "id" not in audio or chosen(content.extra, PROTOCOL, "audio", "id") != "id":
        return content.block
    return {**content.block, "audio": {"id": audio["id"]}}


# -- calls -------------------------------------------------------------------------------------------------------------


def keep_call(call: Block) -> NativeContent:
    """Keep a tool call of an unknown type."""
    return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(call)]})
