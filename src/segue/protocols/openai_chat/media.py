"""Images, files, audio and video as parts of an OpenAI chat message, both ways.

Facts this file rests on:
- `image_url` holds a URL or a data URL, with a `detail` beside it; some vendors write the URL as a bare string.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `file` holds `file_data` (a data URL; some vendors also accept a URL) or `file_id`; with data, `filename` is required.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `input_audio` holds base64 and a `format`, `wav` or `mp3`.                              (openai 3.49.0)
- `video_url` and `audio_url` are additions of vendors, in the format of `image_url`.
                                                (vLLM and DashScope documentation: multimodal inputs; read 2026-11-15)

Choices that media keep:
- `field`: the type of the part, where it is not the default one for the media type.
- `data_url`: of data without a media type, "untyped" (`data:;base64,`) or "bare" (base64 alone), not "typed".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.media_types import plain_type, type_of_address
from segue.errors import EncodeError, Path
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import data_url, split_data_url, standard_base64
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.cache import find_mark, write_mark
from segue.protocols.openai_chat.rules import PROTOCOL

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
    """Read a URL, or the data in it; also give the choice to keep."""
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
    if len(block) == 2 and len(object_of(block["image_url"])) == 1 and not choices and is_standard:
        return content
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
    return _finish({"type": "image_url", "image_url": {"url": _url_of(content, path)}}, content)


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
    return _finish({"type": field, field: inner}, content)


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
    """Give the type of the part for a media type."""
    mime = _type_of(content)
    if content.file_id is None and (content.data is not None or content.url is not None):
        if mime.startswith("video/"):
            return "video_url"
        if mime.startswith("audio/"):
            return "audio_url" if mime == "audio/*" else "input_audio"  # the latter names a format
    return "file"


def _type_of(content: FileContent) -> str:
    """Give the MIME type, else the one that a URL shows."""
    if content.mime_type is None and content.data is None:
        return type_of_address(content.url) or ""
    return plain_type(content.mime_type)


def _default_name(mime: str | None) -> str:
    """Give the name of a file that has none: the provider requires one wherever there is data."""
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


def _finish(wire: Wire, content: ImageContent | FileContent) -> Wire:
    write_mark(wire, content.cache_mark)
    return wire if content.extra is None else restore(wire, content.extra, PROTOCOL)
