"""Content of user, system and tool messages: a string or a list of parts, both ways.

Default format: one plain text is a string, no content is an empty string, everything else is a list. In tool results
all plain texts are one string. A message that has a list instead keeps the choice `content`: "list".

Cache marks of an OpenAI chat request: `cache_control` on parts, calls and tools, OpenAI's breakpoints on parts.

A conversation that has marks of its own gets no others. Choice kept in `extra` of a mark: `key`, its key on the wire
(default "cache_control"); a target that reads only one of the keys gets that one.

Images, files, audio and video as parts of an OpenAI chat message, both ways.

Choices that media keep:
- `field`: the type of the part, where it is not the default one for the media type.
- `data_url`: of data without a media type, "untyped" (`data:;base64,`) or "bare" (base64 alone), not "typed".

Content that only this protocol has: parts of unknown types, calls of unknown types, and fields of a message.

The block of a native content is a part of the message's content when it has a `type`, else it is a set of fields of the
message. Choices that native content and texts keep:
- `field`: where the content is. A refusal: "refusal" (the field) or "part.refusal", not "content". A part without a
  type: "content", not "message".
- `audio`: "object", not "id", where a request holds the whole audio.

Pages that a reply of the chat completions protocol cites.

Facts:
- Content is a string or a list of parts. Every vendor accepts a string where there is one text; some refuse a list in
  tool results.                         (openai 3.49.0; groq: "content: value must be a string"; pi-ai 1.5.0 joins them)
- The texts of a tool result are joined by a line break.                                   (pi-ai 1.5.0, ktsoator/or)
- Parts have their own marks: `cache_control`, `prompt_cache_breakpoint`.
                                                                        (recorded traffic, 2026-11; openai 3.49.0)
- A reply in JSON may arrive as the value itself instead of its text; a request sends it back as text.
                                           (Cloudflare Workers AI with `json_schema`; recorded traffic, 2025-12)
- OpenAI has breakpoints on parts, from GPT-5.6 on: `{"mode": "explicit"}`, with a `ttl` of 30m or 12h.
                                                        (openai 3.49.0: ChatCompletionContentPartTextParam; 2026-11-17)
- Gateways pass marks on to models that need them.                                       (recorded traffic, 2026-11)
- Such a mark is an object of type `ephemeral`, with a `ttl` for the longer time.        (recorded traffic, 2026-11)
- Marks are on a text part of the first system message and of the last message with text, and on the last tool.
                                                           (pi-ai 1.5.0, cacheControlFormat; recorded traffic, 2026-11)
- `image_url` holds a URL or a data URL, with a `detail` next to it; some vendors write the URL as a bare string.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `file` holds `file_data` (a data URL; some vendors also accept a URL) or `file_id`; with data, `filename` is required.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `input_audio` holds base64 and a `format`, `wav` or `mp3`.                              (openai 3.49.0)
- `video_url` and `audio_url` are additions of vendors, in the format of `image_url`.
                                                (vLLM and DashScope documentation: multimodal inputs; read 2026-11-15)
- `refusal`, `audio` (a request names it by its id) and generated `images` are fields next to the content of an
  assistant message; a refusal may also be a part of the content.          (openai 3.49.0; OpenRouter documentation:
  images)
- A message has `annotations` with `url_citation` {url, title} inside.             (openai 3.49.0, read 2026-11-15)
- Groq's compound models list what their searches found: `executed_tools[].search_results.results[]` {title, url}.
                                                                                                       (groq 1.7.0)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AnyContent,
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import CacheRetention, Tool
from segue.conversation.media_types import plain_type, type_of_address
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError, Path
from segue.protocols.families.citations import find_in_reply, read_span
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, MISSING, Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.reading import (
    data_url,
    expect_list,
    expect_object,
    native_block,
    split_data_url,
    standard_base64,
    text_of,
)
from segue.protocols.kit.sources import CitedPage, objects_in
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_chat.rules import PROTOCOL

MARK: Final = "cache_control"
BREAKPOINT: Final = "prompt_cache_breakpoint"
_FORMS: Final[Mapping[str, tuple[Block, str, str]]] = {
    MARK: ({"type": "ephemeral"}, "5m", "1h"),
    BREAKPOINT: ({"mode": "explicit"}, "30m", "12h"),
}
"""The marks by their keys: what each kind holds, and its lifetimes."""


# -- the mark of a block -----------------------------------------------------------------------------------------------


def find_mark(block: Block) -> CacheMark | None:
    """Read the mark of a part, a call or a tool. One of another kind is None and stays data."""
    key = MARK if MARK in block else BREAKPOINT if BREAKPOINT in block else None
    if key is None:
        return None
    wire = object_of(block[key])
    if not _FORMS[key][0].items() <= wire.items():
        return None
    ttl = wire.get("ttl")
    mark = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    extra = keep(PROTOCOL, wire, encode_mark(mark, key), choices=choose("key", MARK, key))
    return mark if extra is None else CacheMark(ttl=mark.ttl, extra=extra)


def without_mark(block: Block, mark: CacheMark | None) -> Wire:
    """Return a block without the mark that `find_mark` read."""
    key = None if mark is None else _key(mark)
    return {name: value for name, value in block.items() if name != key}


def write_mark(wire: Wire, mark: CacheMark | None) -> None:
    """Write a mark into a part, a call or a tool."""
    if mark is not None:
        key = _key(mark)
        wire[key] = encode_mark(mark, key)


def _key(mark: CacheMark) -> str:
    return MARK if mark.extra is None else str(chosen(mark.extra, PROTOCOL, "key", MARK))


def encode_mark(mark: CacheMark, key: str = MARK) -> Wire:
    """Write the value of a mark."""
    kind, short, long = _FORMS[key]
    wire: Wire = dict(kind)
    if (ttl := wire_ttl(mark.ttl, short, long)) is not None:
        wire["ttl"] = ttl
    return restore(wire, mark.extra, PROTOCOL)


def fit_marks(messages: list[Wire], endpoint: Endpoint) -> None:
    """Write the marks of parts under the key that the target reads, if it reads marks at all."""
    wanted = endpoint.rules.cache_mark_key
    other = {MARK: BREAKPOINT, BREAKPOINT: MARK}.get(wanted or "")
    if wanted is None or other is None:
        return
    for index, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list) or not any(other in part for part in cast("list[Wire]", content)):
            continue
        parts = [_with_key(part, wanted) for part in cast("list[Wire]", content)]
        messages[index] = {**message, "content": parts}


def _with_key(part: Wire, wanted: str) -> Wire:
    mark = find_mark(part)
    if mark is None or wanted in part:
        return part
    return {**without_mark(part, mark), wanted: encode_mark(CacheMark(ttl=mark.ttl), wanted)}


# -- marks that segue places -------------------------------------------------------------------------------------------


def place_marks(body: Wire, retention: CacheRetention | None, endpoint: Endpoint, *, anchored: bool) -> None:
    """Put marks into a body, if the target supports them, the options ask for them, and it has none of the caller's."""
    if endpoint.dialect.cache_format != "anthropic" or retention not in ("short", "long"):
        return
    messages = cast("list[Wire]", body["messages"])
    tools = cast("list[Wire]", body.get("tools") or [])
    if not anchored and (any(MARK in tool for tool in tools) or any(_is_marked(message) for message in messages)):
        return
    is_long = retention == "long" and endpoint.dialect.cache_long == "1h"
    mark = encode_mark(CacheMark(ttl="1h" if is_long else None))
    if messages and messages[0].get("role") in ("system", "developer"):
        messages[0] = mark_text(messages[0], mark) or messages[0]
    if tools and endpoint.dialect.cache_on_tools:
        tools[-1] = {**tools[-1], MARK: mark}
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].get("role") not in ("system", "developer"):
            marked = mark_text(messages[index], mark)
            if marked is not None:
                messages[index] = marked
                return


def _is_marked(message: Block) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, Mapping) and MARK in part for part in cast("list[object]", content)
    )


def mark_text(message: Wire, mark: Wire) -> Wire | None:
    """Return the message with a mark on its last text; None when it has no text."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, MARK: mark}]} if content else None
    if not isinstance(content, list):
        return None
    parts = cast("list[Wire]", content)
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].get("type") == "text" and parts[index].get("text"):
            return {**message, "content": [*parts[:index], {**parts[index], MARK: mark}, *parts[index + 1 :]]}
    return None


_Media = TypeVar("_Media", ImageContent, FileContent)

_AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}
_AUDIO_TYPES: Final[Mapping[str, str]] = {"mp3": "audio/mpeg", "wav": "audio/wav"}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_media(block: Block) -> ImageContent | FileContent | None:
    """Read a part that holds media; None when it holds something else, or in a format that segue does not know."""
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return None if reader is None else reader(block)


def _keep_format(content: _Media, block: Block, choices: Wire) -> _Media:
    """Add the mark and the extra of a part."""
    content = replace(content, cache_mark=find_mark(block), extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choices))
    default = encode_image(content, ()) if isinstance(content, ImageContent) else encode_file(content, ())
    return replace(content, extra=keep(PROTOCOL, block, default, choices=choices))


def _read_url(block: Block, key: str) -> str | None:
    inner = block.get(key)
    url = inner if isinstance(inner, str) else object_of(inner).get("url")
    return url if isinstance(url, str) else None


def _choose_data_url(mime: str | None, form: str) -> Wire:
    return choose("data_url", "typed", form) if mime is None else {}


def _content_at(url: str, kind: type[_Media]) -> tuple[_Media, Wire]:
    """Read a URL, or the data in it; also return the choice to keep."""
    parts = split_data_url(url)
    if parts is None:
        return kind(url=url), {}
    mime, data = parts
    return kind(data=standard_base64(data), mime_type=mime), _choose_data_url(mime, "untyped")


def _read_image(block: Block) -> ImageContent | None:
    url = _read_url(block, "image_url")
    if url is None:
        return None
    content, choices = _content_at(url, ImageContent)
    is_standard = content.data is None or url.endswith(content.data)
    inner = object_of(block["image_url"])
    if len(block) == 2 and inner and not choices and is_standard:
        if len(inner) == 1:
            return content
        if len(inner) == 2 and isinstance(detail := inner.get("detail"), str):
            return replace(content, extra={PROTOCOL: {"image_url": {"detail": detail}}})
    return _keep_format(content, block, choices)


def _read_stream_url(key: str) -> Callable[[Block], FileContent | None]:
    """Make the reader of `video_url` or `audio_url`; an address that shows no type has the class of the part."""
    family = f"{key.partition('_')[0]}/"

    def read(block: Block) -> FileContent | None:
        url = _read_url(block, key)
        if url is None:
            return None
        content, choices = _content_at(url, FileContent)
        if content.url is not None:
            shown = type_of_address(url) or ""
            content = replace(content, mime_type=shown if shown.startswith(family) else f"{family}*")
        return _keep_format(content, block, {**choices, **choose("field", _default_field(content), key)})

    return read


def _read_audio(block: Block) -> FileContent | None:
    audio = object_of(block.get("input_audio"))
    data, form = audio.get("data"), audio.get("format")
    if not isinstance(data, str) or not isinstance(form, str):
        return None
    mime = _AUDIO_TYPES.get(form, f"audio/{form}")
    if data.startswith(("http://", "https://", "data:")):  # DashScope accepts URLs of both kinds here
        content = FileContent(url=data, mime_type=mime)
    else:
        content = FileContent(data=standard_base64(data), mime_type=mime)
    return _keep_format(content, block, {})


def _read_file(block: Block) -> FileContent | None:
    file = object_of(block.get("file"))
    source, file_id, name = file.get("file_data"), file.get("file_id"), file.get("filename")
    if not isinstance(source, str) and not isinstance(file_id, str):
        return None
    choices: Wire = {}
    data = mime = url = None
    if isinstance(source, str):
        parts = split_data_url(source)
        if parts is not None:
            mime, data = parts[0], standard_base64(parts[1])
            choices = _choose_data_url(mime, "untyped")
        elif "://" in source or source.startswith("data:"):
            url = source
        else:
            data, choices = standard_base64(source), _choose_data_url(None, "bare")
    is_default_name = data is not None and name == _default_name(mime)
    content = FileContent(
        data=data,
        url=url,
        file_id=file_id if isinstance(file_id, str) else None,
        mime_type=mime,
        name=name if isinstance(name, str) and not is_default_name else None,
    )
    return _keep_format(content, block, {**choices, **choose("field", _default_field(content), "file")})


_READERS: Final[Mapping[str, Callable[[Block], ImageContent | FileContent | None]]] = {
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
    "video_url": _read_stream_url("video_url"),
    "audio_url": _read_stream_url("audio_url"),
}


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_image(content: ImageContent, path: Path) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL.
    """
    return finish({"type": "image_url", "image_url": {"url": _url_of(content, path)}}, content)


def encode_file(content: FileContent, path: Path) -> Wire:
    """Write a file, audio or video, by its media type.

    Raises:
        EncodeError: it has neither data nor a URL nor a file id.
    """
    field = _default_field(content)
    if content.extra is not None and (content.data is not None or content.url is not None):
        field = str(chosen(content.extra, PROTOCOL, "field", field))
    inner: Wire
    match field:
        case "video_url" | "audio_url":
            inner = {"url": _url_of(content, path)}
        case "input_audio":
            mime = _type_of(content)
            data = content.url if content.data is None else content.data
            inner = {"data": data, "format": _AUDIO_FORMATS.get(mime, mime.removeprefix("audio/"))}
        case _:
            field, inner = "file", _encode_file(content, path)
    return finish({"type": field, field: inner}, content)


def _encode_file(content: FileContent, path: Path) -> Wire:
    file: Wire = {}
    if content.data is not None or content.url is not None:
        file["file_data"] = _url_of(content, path)
    if content.file_id is not None:
        file["file_id"] = content.file_id
    if not file:
        raise EncodeError("openai-chat needs data, a URL or a file id for a file; add one or remove it", path=path)
    if content.name is not None:
        file["filename"] = content.name
    elif content.data is not None:
        file["filename"] = _default_name(content.mime_type)
    return file


def _default_field(content: FileContent) -> str:
    """Return the type of the part for a media type."""
    mime = _type_of(content)
    if content.file_id is None and (content.data is not None or content.url is not None):
        if mime.startswith("video/"):
            return "video_url"
        if mime.startswith("audio/"):
            return "audio_url" if mime == "audio/*" else "input_audio"  # the latter names a format
    return "file"


def _type_of(content: FileContent) -> str:
    """Return the MIME type, else the one that a URL shows."""
    if content.mime_type is None and content.data is None:
        return type_of_address(content.url) or ""
    return plain_type(content.mime_type)


def _default_name(mime: str | None) -> str:
    """Return the name of a file that has none: the provider requires one wherever there is data."""
    return "attachment.pdf" if mime == "application/pdf" else "attachment"


def _url_of(content: ImageContent | FileContent, path: Path) -> str:
    if content.data is not None:
        if content.mime_type is None and content.extra is not None:
            form = chosen(content.extra, PROTOCOL, "data_url", "typed")
            if form != "typed":
                return content.data if form == "bare" else f"data:;base64,{content.data}"
        return data_url(content.mime_type, content.data)
    if content.url is not None:
        return content.url
    raise EncodeError(f"openai-chat needs data or a URL for {content.kind} content; add one or remove it", path=path)


def finish(wire: Wire, content: UserContent | ToolCall | Tool) -> Wire:
    """Add the mark and the extra of a part, a call or a tool."""
    write_mark(wire, content.cache_mark)
    return wire if content.extra is None else restore(wire, content.extra, PROTOCOL)


def choice_extra(choices: Wire) -> Extra | None:
    """Return an extra that holds choices and nothing else."""
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
    """Keep a part of an assistant message that is not text; media in it are the fallback for other targets."""
    native, media = keep_native(block), decode_media(block)
    if media is not None:
        return replace(native, fallback=(replace(media, cache_mark=None, extra=None),))
    return native if "type" in block else replace(native, extra=_UNTYPED_PART)


def encode_native(content: NativeContent, path: Path) -> Wire:
    """Write a block as it was received.

    Raises:
        EncodeError: another protocol received it.
    """
    return finish(dict(native_block(PROTOCOL, content, path)), content)


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
    return finish({"type": "refusal", "refusal": content.text}, content)


def text_field(content: TextContent) -> object:
    """Return where a text of an assistant message is: "content", "refusal" or "part.refusal"."""
    return "content" if content.extra is None else chosen(content.extra, PROTOCOL, "field", "content")


# -- fields of a message -----------------------------------------------------------------------------------------------


def decode_fields(wire: Block, known: set[str], *, reply: bool) -> list[TextContent | NativeContent]:
    """Read the fields next to the content of an assistant message; add the keys that were understood to `known`."""
    found: list[TextContent | NativeContent] = []
    if isinstance(refusal := wire.get("refusal"), str):
        known.add("refusal")
        if refusal:
            found.append(TextContent(text=refusal, extra=REFUSAL_FIELD))
    if (audio := wire.get("audio")) is not None and isinstance(audio, Mapping):
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
    """Return the fields of a message: in a request, audio is named by its id."""
    audio = object_of(content.block.get("audio"))
    if reply or "id" not in audio or chosen(content.extra, PROTOCOL, "audio", "id") != "id":
        return content.block
    return {**content.block, "audio": {"id": audio["id"]}}


# -- calls -------------------------------------------------------------------------------------------------------------


def keep_call(call: Block) -> NativeContent:
    """Keep a tool call of an unknown type."""
    return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(call)]})


LIST: Final = choose("content", "string", "list")
LIST_EXTRA: Final = choice_extra(LIST)
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
        DecodeError: it is not an object.
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
    """Return the JSON text of a reply, or of a delta, that is a JSON value.

    None for a text, a list of parts or null.
    """
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
    return finish({"type": "text", "text": content.text}, content)


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that a message cites, or that a search of the provider found for it."""
    text = message.text()
    return [
        CitedPage(
            url, text_of(page.get("title")) or "", read_span(text, page.get("start_index"), page.get("end_index"))
        )
        for page in _pages(message)
        if (url := text_of(page.get("url")))
    ]


def _pages(message: AssistantMessage) -> Iterator[Block]:
    for annotation in objects_in(_field(message, "annotations")):
        yield object_of(annotation.get("url_citation"))
    yield from objects_in(find_in_reply(message.extra, PROTOCOL, "search_results"))  # Perplexity (recorded, 2026-07)
    for tool in objects_in(_field(message, "executed_tools")):
        yield from objects_in(object_of(tool.get("search_results")).get("results"))


def _field(message: AssistantMessage, key: str) -> object:
    """Find a field of the message, as it was received in a reply or in a request."""
    if message.extra is None:
        return None
    kept = data_of(message.extra, PROTOCOL).get(key)
    return find_in_reply(message.extra, PROTOCOL, "choices", "0", "message", key) if kept is None else kept
