"""Parts of input messages and tool outputs: text, images and files.

Facts this file rests on:
- `input_text`, `input_image` (`image_url` or `file_id`, with `detail`) and `input_file` (`file_data`, `file_url` or
  `file_id`) are the parts of a message and of an output; `image_url` and `file_data` take data URLs.
                                                                            (openai 3.49.0; read 2026-11-15)
- The types of the official client require `detail`; the server does not.     (openai 3.49.0; recorded traffic, 2026-11)
- `file_data` without a `filename` is refused.                                (OpenAI documentation: file inputs)
- A part of input may end with a cache breakpoint, `{"mode": "explicit"}`, whose `ttl` is "30m" or "12h".
                                                                            (openai 3.49.0; read 2026-11-16)
- A single text may be a plain string, and usually is one.                               (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import (
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.kit.json_values import Block, Wire, object_of, same
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.reading import data_url, native_block, split_data_url, standard_base64
from segue.protocols.kit.verbatim import data_of, keep, restore
from segue.protocols.openai_responses.rules import PROTOCOL

_MARK: Final = "prompt_cache_breakpoint"
_TEXT_TYPES: Final = ("input_text", "text", "output_text")
_AUDIO_TYPES: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FILE_EXTENSIONS: Final[Mapping[str, str]] = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
}


def drop_replaced(default: Wire, received: Block, *keys: str) -> None:
    """Remove values that segue adds by itself where another value was received: `keep` then takes that one for data."""
    for key in keys:
        value = received.get(key)
        if value is not None and key in default and not same(default[key], value):
            del default[key]


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_content(content: object) -> tuple[UserContent, ...] | None:
    """Read the content of a message or an output; None when it is neither a string nor a list of parts."""
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    if not isinstance(content, list):
        return None
    parts = cast("list[object]", content)
    if not all(isinstance(part, (dict, Mapping)) for part in parts):
        return None
    return tuple(decode_part(cast("Block", part)) for part in parts)


def default_content(content: Sequence[UserContent], received: object) -> object:
    """Give the content as segue writes it, made of the received parts."""
    return encode_content(content, ()) if _is_string(content) else received


def decode_part(part: Block) -> UserContent:
    """Read one part; an unknown one is kept as `NativeContent`."""
    kind, text = part.get("type"), part.get("text")
    if kind == "input_text" and len(part) == 2 and isinstance(text, str):
        return TextContent(text=text)
    content: UserContent | None = None
    if kind in _TEXT_TYPES and isinstance(text, str):
        content = TextContent(text=text)
    elif kind == "input_image":
        content = _decode_image(part)
    elif kind == "input_file":
        content = _decode_file(part)
    if content is None:
        return NativeContent(protocol=PROTOCOL, block=dict(part), fallback=_part_fallback(part))
    content = replace(content, cache_mark=_decode_mark(part.get(_MARK)))
    extra = _keep_part(part, content)
    return content if extra is None else replace(content, extra=extra)


def _decode_mark(given: object) -> CacheMark | None:
    """Read a breakpoint; None if there is none, or one of an unknown mode, which is data."""
    wire = object_of(given)
    if wire.get("mode") != "explicit":
        return None
    ttl = wire.get("ttl")
    plain = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    return replace(plain, extra=keep(PROTOCOL, wire, encode_mark(plain)))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a breakpoint; without a lifetime it has that of the request, 30 minutes by default."""
    ttl = wire_ttl(mark.ttl, "30m", "12h")
    wire: Wire = {"mode": "explicit"} if ttl is None else {"mode": "explicit", "ttl": ttl}
    return wire if mark.extra is None else restore(wire, mark.extra, PROTOCOL)


def _keep_part(part: Block, content: UserContent) -> Extra | None:
    default = encode_part(content, ())
    drop_replaced(default, part, "detail")
    return keep(PROTOCOL, part, default)


def _decode_image(part: Block) -> UserContent | None:
    url, file_id = part.get("image_url"), part.get("file_id")
    if isinstance(url, str) and file_id is None:
        split = split_data_url(url)
        if split is None:
            return ImageContent(url=url)
        mime, data = split
        return None if mime is None else ImageContent(data=standard_base64(data), mime_type=mime)
    if isinstance(file_id, str) and url is None:
        return FileContent(file_id=file_id, mime_type="image/*")
    return None


def _decode_file(part: Block) -> UserContent | None:
    given = [key for key in ("file_data", "file_url", "file_id") if part.get(key) is not None]
    source = part.get(given[0]) if len(given) == 1 else None
    name = part.get("filename")
    if not isinstance(source, str) or not (name is None or isinstance(name, str)):
        return None
    if given[0] == "file_url":
        return FileContent(url=source, name=name)
    if given[0] == "file_id":
        return FileContent(file_id=source, name=name)
    mime, data = split_data_url(source) or (None, "")
    if mime is None:
        return None
    name = None if name == _default_name(mime) else name
    return FileContent(data=standard_base64(data), mime_type=mime, name=name)


def _part_fallback(part: Block) -> tuple[FallbackContent, ...]:
    audio = object_of(part.get("input_audio"))
    data, mime = audio.get("data"), _AUDIO_TYPES.get(str(audio.get("format")))
    if isinstance(data, str) and mime is not None:
        return (FileContent(data=standard_base64(data), mime_type=mime),)
    text = part.get("text")
    return (TextContent(text=text),) if isinstance(text, str) and text else ()


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_content(content: Sequence[UserContent], path: Path) -> str | list[Wire]:
    """Write the content of a message or an output: a string where it has no more than one text, else a list."""
    if _is_string(content):
        return content[0].text if content and content[0].kind == "text" else ""
    return encode_parts(content, path)


def encode_parts(content: Sequence[UserContent], path: Path) -> list[Wire]:
    """Write content as a list of parts."""
    return [encode_part(piece, (*path, index)) for index, piece in enumerate(content)]


def _is_string(content: Sequence[UserContent]) -> bool:
    if len(content) > 1:
        return False
    only = content[0] if content else None
    if only is None:
        return True
    if only.cache_mark is not None:
        return False
    return only.kind == "text" and bool(only.text) and not (only.extra is not None and only.extra.get(PROTOCOL))


def encode_part(content: UserContent, path: Path) -> Wire:
    """Write one part.

    Raises:
        EncodeError: media without a source, or a block of another protocol.
    """
    match content.kind:
        case "text":
            part: Wire = {"type": "input_text", "text": content.text}
        case "image":
            part = _encode_image(content, path)
        case "file":
            part = _encode_file(content, path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
    if content.cache_mark is not None:
        part[_MARK] = encode_mark(content.cache_mark)
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def _encode_image(content: ImageContent, path: Path) -> Wire:
    if content.data is not None:
        url = data_url(content.mime_type or "image/png", content.data)
    elif content.url is not None:
        url = content.url
    else:
        raise EncodeError("the image has no source; set `data` or `url`", path=path)
    return _with_detail({"type": "input_image", "image_url": url}, content.extra)


def _with_detail(part: Wire, extra: Extra | None) -> Wire:
    if extra is None or "detail" not in data_of(extra, PROTOCOL):
        part["detail"] = "auto"
    return part


def _encode_file(content: FileContent, path: Path) -> Wire:
    part: Wire = {"type": "input_file"}
    if content.data is not None:
        mime = content.mime_type or "application/octet-stream"
        part["file_data"] = data_url(mime, content.data)
        part["filename"] = _default_name(mime) if content.name is None else content.name
        return part
    if content.url is not None:
        part["file_url"] = content.url
    elif content.file_id is None:
        raise EncodeError("the file has no source; set `data`, `url` or `file_id`", path=path)
    elif (content.mime_type or "").startswith("image/"):
        return _with_detail({"type": "input_image", "file_id": content.file_id}, content.extra)
    else:
        part["file_id"] = content.file_id
    if content.name is not None:
        part["filename"] = content.name
    return part


def _default_name(mime: str) -> str:
    """Name a file without a name: the wire requires one. When read, this name means none."""
    return f"unnamed-file{_FILE_EXTENSIONS.get(mime, '')}"
