"""The parts of input messages and of tool outputs, both ways: text, images, files.

Facts this file rests on:
- `input_text`, `input_image` (`image_url` or `file_id`, with `detail`) and `input_file` (`file_data`, `file_url` or
  `file_id`) are what a message and an output may hold; `image_url` and `file_data` take data URLs.
                                                                            (openai 3.49.0; read 2026-11-15)
- The types of the official client demand a `detail`; the server does not.    (openai 3.49.0; recorded traffic, 2026-11)
- `file_data` without a `filename` is refused.                                (OpenAI documentation: file inputs)
- One text may be spelt as a plain string, and mostly is.                                (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import (
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.kit.reading import (
    VERBATIM,
    data_url,
    extra_of,
    left_over,
    split_data_url,
    standard_base64,
    verbatim_of,
)
from segue.protocols.openai_responses.rules import PROTOCOL

Wire = dict[str, object]

ABSENT: Final = "absent"
"""In a shape: the wire did not have this key, which segue would write."""

_TEXT_KEYS: Final = frozenset({"type", "text"})
_AUDIO_TYPES: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_ENDINGS: Final[Mapping[str, str]] = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
}


def object_of(value: object) -> Mapping[str, object]:
    """Give an object as it is, anything else as an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, (dict, Mapping)) else {}


def original(extra: Extra | None) -> Mapping[str, object] | None:
    """Give all that this wire said beyond segue's words, shape included; None when it said nothing."""
    return None if extra is None else extra.get(PROTOCOL)


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_content(content: object) -> tuple[tuple[UserContent, ...], bool] | None:
    """Read the content of a message or an output: what it holds, and whether it was a list where segue writes a string.

    None when it is neither a string nor a list of parts.
    """
    if isinstance(content, str):
        return ((TextContent(text=content),) if content else ()), False
    if not isinstance(content, list):
        return None
    parts = cast("list[object]", content)
    if not all(isinstance(part, (dict, Mapping)) for part in parts):
        return None
    read = tuple(decode_part(cast("Mapping[str, object]", part)) for part in parts)
    return read, is_plain(read)


def is_plain(content: Sequence[UserContent]) -> bool:
    """Say whether segue writes this content as a string: nothing, or one text with nothing to add."""
    if len(content) > 1:
        return False
    return not content or (content[0].kind == "text" and bool(content[0].text) and not original(content[0].extra))


def decode_part(part: Mapping[str, object]) -> UserContent:
    """Read one part; what segue has no word for is kept as it is."""
    kind = part.get("type")
    if kind == "input_text" and isinstance(text := part.get("text"), str):
        return TextContent(text=text) if len(part) == 2 else TextContent(text=text, extra=_text_extra(part))
    if kind in ("text", "output_text") and isinstance(text := part.get("text"), str):
        return TextContent(text=text, extra=extra_of(PROTOCOL, part, _TEXT_KEYS, {"type": kind}))
    if kind == "input_image":
        return _decode_image(part)
    if kind == "input_file":
        return _decode_file(part)
    return NativeContent(protocol=PROTOCOL, block=dict(part), fallback=_part_fallback(part))


def _text_extra(part: Mapping[str, object]) -> Extra | None:
    return extra_of(PROTOCOL, part, _TEXT_KEYS)


def _decode_image(part: Mapping[str, object]) -> UserContent:
    url, file_id = part.get("image_url"), part.get("file_id")
    verbatim: Wire = {} if "detail" in part else {"detail": ABSENT}
    known = {"type", "detail"} if part.get("detail") == "auto" else {"type"}
    if isinstance(url, str) and file_id is None:
        split = split_data_url(url)
        if split is None:
            return ImageContent(url=url, extra=extra_of(PROTOCOL, part, known | {"image_url"}, verbatim))
        mime, data = split
        if mime is not None:
            extra = extra_of(PROTOCOL, part, known | {"image_url"}, verbatim)
            return ImageContent(data=standard_base64(data), mime_type=mime, extra=extra)
    if isinstance(file_id, str) and url is None:
        extra = extra_of(PROTOCOL, part, known | {"file_id"}, verbatim)
        return FileContent(file_id=file_id, mime_type="image/*", extra=extra)
    return NativeContent(protocol=PROTOCOL, block=dict(part))


def _decode_file(part: Mapping[str, object]) -> UserContent:
    given = [key for key in ("file_data", "file_url", "file_id") if part.get(key) is not None]
    source = part.get(given[0]) if len(given) == 1 else None
    name = part.get("filename")
    if not isinstance(source, str) or not (name is None or isinstance(name, str)):
        return NativeContent(protocol=PROTOCOL, block=dict(part))
    known = {"type", given[0]} if name is None else {"type", given[0], "filename"}
    if given[0] == "file_url":
        return FileContent(url=source, name=name, extra=extra_of(PROTOCOL, part, known))
    if given[0] == "file_id":
        return FileContent(file_id=source, name=name, extra=extra_of(PROTOCOL, part, known))
    split = split_data_url(source)
    mime, data = split if split is not None else (None, "")
    if mime is None:
        return NativeContent(protocol=PROTOCOL, block=dict(part))
    verbatim = {"filename": ABSENT} if "filename" not in part else {}
    return FileContent(
        data=standard_base64(data),
        mime_type=mime,
        name=None if name == _nameless(mime) else name,
        extra=extra_of(PROTOCOL, part, known, verbatim),
    )


def _part_fallback(part: Mapping[str, object]) -> tuple[FallbackContent, ...]:
    audio = part.get("input_audio")
    if isinstance(audio, Mapping):
        sound = cast("Mapping[str, object]", audio)
        data, mime = sound.get("data"), _AUDIO_TYPES.get(str(sound.get("format")))
        if isinstance(data, str) and mime is not None:
            return (FileContent(data=standard_base64(data), mime_type=mime),)
    text = part.get("text")
    return (TextContent(text=text),) if isinstance(text, str) and text else ()


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_content(content: Sequence[UserContent], path: Path, *, as_list: bool) -> str | list[Wire]:
    """Write the content of a message or an output: a string where that says it all, unless it was a list."""
    if not as_list and is_plain(content):
        return content[0].text if content and content[0].kind == "text" else ""
    return [encode_part(piece, (*path, index)) for index, piece in enumerate(content)]


def encode_part(content: UserContent, path: Path) -> Wire:
    """Write one part.

    Raises:
        EncodeError: media without anything that leads to them, or another protocol's block.
    """
    match content.kind:
        case "text":
            received = original(content.extra)
            if not received:
                return {"type": "input_text", "text": content.text}
            part = {key: value for key, value in received.items() if key != VERBATIM}
            part["type"] = verbatim_of(content.extra, PROTOCOL).get("type", "input_text")
            part["text"] = content.text
            return part
        case "image":
            return _encode_image(content, path)
        case "file":
            return _encode_file(content, path)
        case "native":
            if content.protocol != PROTOCOL:
                raise EncodeError(f"a block of {content.protocol}", path=path)
            return dict(content.block)


def _encode_image(content: ImageContent, path: Path) -> Wire:
    if content.data is not None:
        url = data_url(content.mime_type or "image/png", content.data)
    elif content.url is not None:
        url = content.url
    else:
        raise EncodeError("an image without data or address", path=path)
    return _with_detail(content.extra, {"type": "input_image", "image_url": url})


def _with_detail(extra: Extra | None, part: Wire) -> Wire:
    rest = left_over(extra, PROTOCOL)
    if "detail" not in rest and verbatim_of(extra, PROTOCOL).get("detail") != ABSENT:
        part["detail"] = "auto"
    return {**rest, **part} if rest else part


def _encode_file(content: FileContent, path: Path) -> Wire:
    rest = left_over(content.extra, PROTOCOL)
    if content.data is not None:
        mime = content.mime_type or "application/octet-stream"
        part: Wire = {**rest, "type": "input_file", "file_data": data_url(mime, content.data)}
        if content.name is not None:
            part["filename"] = content.name
        elif "filename" not in part and verbatim_of(content.extra, PROTOCOL).get("filename") != ABSENT:
            part["filename"] = _nameless(mime)
        return part
    if content.url is not None:
        part = {**rest, "type": "input_file", "file_url": content.url}
    elif content.file_id is not None:
        if (content.mime_type or "").startswith("image/"):
            return _with_detail(content.extra, {"type": "input_image", "file_id": content.file_id})
        part = {**rest, "type": "input_file", "file_id": content.file_id}
    else:
        raise EncodeError("a file without data, address or id", path=path)
    if content.name is not None:
        part["filename"] = content.name
    return part


def _nameless(mime: str) -> str:
    """Name a file that has no name: the wire wants one, and this one is read as none."""
    return f"unnamed-file{_ENDINGS.get(mime, '')}"
