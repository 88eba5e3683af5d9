"""Pieces of content as programs store them: media, calls, signatures, stop reasons, usage.

One reader of each for all formats, so that the same picture or call is the same wherever it was stored.

Facts:
- Programs name the same piece in several ways: a data URL, a pair of type and base64, a nested `source`.    (seen)
- A signature of openai-responses is a JSON object with the id and the encrypted content of an item.   (our codec)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

import msgspec

from segue.conversation.arguments import parse_arguments, read_arguments
from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.limits import parse_json
from segue.conversation.media_types import class_of, plain_type, type_of_data
from segue.conversation.messages import Message, StopReason, ToolResultMessage, Usage, UsageCost
from segue.errors import LoadError
from segue.histories.kit.entries import Writing
from segue.histories.kit.lines import integer_of, number_of, object_of, objects_of, text_of
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.json_values import same
from segue.protocols.kit.reading import data_url, split_data_url, standard_base64

Media: TypeAlias = ImageContent | FileContent
Shown: TypeAlias = TextContent | ImageContent | FileContent | ThinkingContent | ToolCall

ANY_IMAGE: Final = "image/*"
"""The type of an image whose type is unknown."""

_STOPS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "end_turn": StopReason.STOP,
    "endTurn": StopReason.STOP,
    "STOP": StopReason.STOP,
    "completed": StopReason.STOP,
    "complete": StopReason.STOP,
    "COMPLETE": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "stopSequence": StopReason.STOP,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "maxTokens": StopReason.LENGTH,
    "MAX_TOKENS": StopReason.LENGTH,
    "incomplete": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "toolUse": StopReason.TOOL_USE,
    "tool_calls": StopReason.TOOL_USE,
    "tool_call": StopReason.TOOL_USE,
    "tool-calls": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
    "failed": StopReason.ERROR,
    "interrupted": StopReason.ABORTED,
    "aborted": StopReason.ABORTED,
    "cancelled": StopReason.ABORTED,
}
"""Words for why a model stopped, of providers and of frameworks."""


def stop_of(word: object, content: Iterable[AnyContent]) -> StopReason:
    """Return the stop reason that a word means; a turn with calls that ended well stopped to use tools."""
    found = _STOPS.get(word, StopReason.STOP) if isinstance(word, str) else StopReason.STOP
    calls = any(piece.kind == "toolCall" for piece in content)
    return StopReason.TOOL_USE if found == StopReason.STOP and calls else found


def usage_of(
    total_input: object,
    output: object,
    *,
    cache_read: object = None,
    cache_write: object = None,
    reasoning: object = None,
    total: object = None,
    cost: object = None,
) -> Usage | None:
    """Return the usage of a reply whose input includes cached tokens; None if nothing was counted."""
    whole, out = _count(total_input), _count(output)
    read, written = _count(cache_read), _count(cache_write)
    price = max(number_of(cost) or 0, 0)
    if not any((whole, out, read, written, _count(total), price)):
        return None
    return Usage(
        input=max(0, whole - read - written),
        output=out,
        cache_read=read,
        cache_write=written,
        reasoning=_count(reasoning),
        total_tokens=_count(total) or whole + out,
        cost=UsageCost(total=price) if price else None,
    )


def _count(value: object) -> int:
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    return integer_of(value)


def whole_input(usage: Usage) -> int:
    """Return the input with the cached tokens, as most frameworks count it."""
    return usage.input + usage.cache_read + usage.cache_write


# -- media -------------------------------------------------------------------------------------------------------------


def media_of(
    mime: object = None, *, data: object = None, url: object = None, name: object = None, file_id: object = None
) -> Media | None:
    """Make an image or a file of its parts; None if there is neither data nor an address.

    The type is that of a data URL, otherwise the one given next to it, otherwise the one that the bytes show.
    """
    kind, address, file = text_of(mime), text_of(url), text_of(file_id)
    content = base64.b64encode(data).decode() if isinstance(data, bytes) else text_of(data)
    if content is None and address is not None and (split := split_data_url(address, exact=False)) is not None:
        kind, content, address = split[0] or kind, split[1], None
    if content is None and address is None and file is None:
        return None
    if content is not None:
        content = standard_base64(content)
        if kind is None or kind == ANY_IMAGE:
            kind = type_of_data(content) or kind
    if class_of(plain_type(kind)) == "image" and file is None:
        return ImageContent(data=content, url=address, mime_type=None if kind == ANY_IMAGE else kind)
    return FileContent(data=content, url=address, file_id=file, mime_type=kind, name=text_of(name))


def image_of(mime: object = None, *, data: object = None, url: object = None) -> ImageContent | None:
    """Make an image of its parts; None if there is neither data nor an address."""
    found = media_of(mime, data=data, url=url)
    if found is None or isinstance(found, ImageContent):
        return found
    return ImageContent(data=found.data, url=found.url, mime_type=found.mime_type)


def media_address(content: Media) -> str | None:
    """Return the address of an image or a file: a data URL if its bytes are there."""
    if content.data is not None:
        return data_url(content.mime_type or (ANY_IMAGE if content.kind == "image" else None), content.data)
    return content.url


_KINDS: Final = {"audio": "audio/wav", "video": "video/mp4"}


def read_media(block: Mapping[str, Any]) -> Media | None:
    """Read an image or a file in any of the forms that providers and frameworks use; None if it is neither."""
    kind = text_of(block.get("type")) or ""
    if kind in {"image_url", "input_image"}:
        address = block.get("image_url")
        return image_of(block.get("mime_type"), url=object_of(address).get("url") or address)
    if kind in {"file", "input_file"} and isinstance(block.get("file"), dict):
        inner = object_of(block["file"])
        data = inner.get("file_data")
        mime, name = inner.get("format"), inner.get("filename")
        return _file(media_of(mime, url=data, name=name, file_id=inner.get("file_id")))
    if kind == "input_file":
        address = block.get("file_data") or block.get("file_url")
        return _file(media_of(None, url=address, name=block.get("filename"), file_id=block.get("file_id")))
    if kind == "input_audio":
        inner = object_of(block.get("input_audio"))
        return _file(media_of(f"audio/{inner.get('format') or 'wav'}", data=inner.get("data")))
    if kind not in {"image", "file", "audio", "video", "document", "media"}:
        return None
    source = object_of(block.get("source"))
    mime = next(
        (
            each[key]
            for each in (block, source)
            for key in ("mime_type", "mimeType", "media_type", "mediaType")
            if text_of(each.get(key))
        ),
        _KINDS.get(kind),
    )
    data = block.get("base64") or block.get("data") or source.get("data")
    address = block.get("url") or source.get("url")
    if source.get("type") == "data":
        data = data or source.get("value")
    elif source.get("type") == "url":
        address = address or source.get("value")
    names = block.get("filename") or block.get("name") or block.get("title")
    found = media_of(mime, data=data, url=address, name=names, file_id=block.get("file_id") or source.get("file_id"))
    if kind == "image" and isinstance(found, FileContent) and found.file_id is None:
        return ImageContent(data=found.data, url=found.url, mime_type=found.mime_type)
    return _file(found) if kind == "file" else found


def _file(found: Media | None) -> Media | None:
    if isinstance(found, ImageContent):
        return FileContent(data=found.data, url=found.url, mime_type=found.mime_type)
    return found


# -- content for writing -----------------------------------------------------------------------------------------------


def shown(message: Message, writing: Writing, content: Sequence[AnyContent] | None = None) -> Iterator[Shown]:
    """Yield the content of a message without native blocks: each is replaced by its fallback, which is reported."""
    for piece in message.content if content is None else content:
        if isinstance(piece, NativeContent):
            code = ChangeCode.NATIVE_REPLACED if piece.fallback else ChangeCode.NATIVE_DROPPED
            writing.note(message, code, Loss.OPAQUE, f"a block of {piece.protocol}")
            yield from piece.fallback
        else:
            yield piece


def is_media(piece: Shown) -> TypeGuard[Media]:
    """Whether a piece is an image or a file."""
    return piece.kind in {"image", "file"}


_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def is_base64(data: str) -> bool:
    """Whether a text is standard base64, which some frameworks check."""
    return _BASE64.fullmatch(data) is not None


def texts_of(message: Message) -> str:
    """Join the texts of a message, for formats that have one text for each."""
    return "\n".join(piece.text for piece in message.content if piece.kind == "text")


def note_unsupported(message: Message, writing: Writing, piece: AnyContent, title: str) -> None:
    """Report a piece that the format has no field for."""
    code = ChangeCode.MEDIA_OMITTED if piece.kind in {"image", "file"} else ChangeCode.NATIVE_DROPPED
    if piece.kind == "thinking":
        code = ChangeCode.THINKING_DROPPED
    writing.note(message, code, Loss.CONTENT, f"{title} has no field for it")


def note_flag(message: ToolResultMessage, writing: Writing, title: str) -> None:
    """Report the error flag of a result that the format has no field for; its text is written."""
    if message.is_error:
        writing.note(message, ChangeCode.ERROR_AS_TEXT, Loss.NONE, f"{title} has no error flag")


def note_signatures(message: Message, writing: Writing, title: str) -> None:
    """Report signatures that the format has no field for."""
    if message.role == "assistant" and any(signature_in(piece) is not None for piece in message.content):
        writing.note(message, ChangeCode.SIGNATURE_REMOVED, Loss.OPAQUE, f"{title} has no field for it")


def signature_in(piece: AnyContent) -> str | None:
    """Return the signature of a piece of content."""
    match piece.kind:
        case "thinking":
            return piece.thinking_signature
        case "text":
            return piece.text_signature
        case "toolCall":
            return piece.thought_signature
        case _:
            return None


# -- signatures --------------------------------------------------------------------------------------------------------


def item_of(signature: str | None) -> dict[str, Any]:
    """Return the fields of an item that a signature holds; empty if it holds none."""
    if signature is None or signature[:1] != "{":
        return {}
    try:
        return object_of(parse_json(signature.encode("utf-8", "surrogatepass")))
    except (LoadError, UnicodeError):
        return {}


def item_signature(**fields: object) -> str | None:
    """Make a signature of the fields of an item; None if none of them is set."""
    kept = {name: value for name, value in fields.items() if value is not None}
    return encode_json(kept) if kept else None


def reasoning_item(text: str, item_id: str | None, encrypted: str | None) -> ThinkingContent:
    """Make thinking of a reasoning item of OpenAI; its signature is the item, as the codec of Responses keeps it."""
    if encrypted is None:
        return ThinkingContent(thinking=text)
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}
    try:
        signature = msgspec.json.encode(item).decode()
    except UnicodeEncodeError:  # half a surrogate pair: no signature that a provider has written
        return ThinkingContent(thinking=text)
    return ThinkingContent(thinking=text, thinking_signature=signature)


# -- thoughts ----------------------------------------------------------------------------------------------------------


def read_thoughts(pieces: list[AssistantContent], thoughts: object) -> None:
    """Insert thinking that `write_thought` wrote next to the content, for formats that have no field for it."""
    for thought in objects_of(thoughts):
        piece = ThinkingContent(
            thinking=string_of(thought.get("thinking")) or "",
            thinking_signature=string_of(thought.get("signature")),
            redacted=thought.get("redacted") is True,
        )
        pieces.insert(integer_of(thought.get("at")), piece)


def write_thought(piece: ThinkingContent, at: int) -> dict[str, Any]:
    """Write thinking with its place in the content."""
    opaque = {"signature": piece.thinking_signature, "redacted": piece.redacted or None}
    return {"at": at, "thinking": piece.thinking, **{key: value for key, value in opaque.items() if value is not None}}


# -- arguments ---------------------------------------------------------------------------------------------------------


def string_of(value: object) -> str | None:
    """Return the value if it is a text, even an empty one: an empty signature is one that was received."""
    return value if isinstance(value, str) else None


def make_call(
    call_id: object = None,
    name: object = None,
    arguments: object = None,
    *,
    given: str | None = None,
    signature: str | None = None,
) -> ToolCall:
    """Make a call of arguments that are an object or JSON text; damaged text is read as that of a reply is.

    `given` is the text of the provider where the format stores it next to the object.
    """
    parsed = parse_arguments(arguments) if isinstance(arguments, str) and arguments else read_arguments(arguments)
    return ToolCall(
        id=text_of(call_id) or "",
        name=text_of(name) or "",
        arguments=parsed.arguments,
        arguments_text=parsed.text if given is None or parsed.text is not None else given,
        thought_signature=signature,
    )


def encode_json(value: object) -> str:
    """Write a value as JSON text; half a surrogate pair is written as an escape."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def arguments_text(call: ToolCall) -> str:
    """Return the arguments as JSON text: that of the provider, unless the arguments were replaced since."""
    if call.arguments_text is None:
        return encode_json(call.arguments)
    fits = same(parse_arguments(call.arguments_text).arguments, call.arguments)
    return call.arguments_text if fits else encode_json(call.arguments)
