"""Pictures, files, sound and film as parts of an OpenAI chat message, both ways.

Facts this file rests on:
- `image_url` holds a URL or a data URL, with a `detail` beside it; some vendors write the URL as a bare string.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `file` holds `file_data` (a data URL; elsewhere also a URL) or `file_id`; with data a `filename` has to be there.
                                                             (openai 3.49.0; recorded traffic, 2026-11)
- `input_audio` holds bare base64 and a `format`, which is `wav` or `mp3`.                (openai 3.49.0)
- `video_url` and `audio_url` are what vendors added, in the shape of `image_url`.
                                                (vLLM and DashScope documentation: multimodal inputs; read 2026-11-15)

What a part says beyond these words stands in `extra`: keys of the part itself as they are, keys of its inner object
under the inner object's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, cast

from segue.conversation.content import Extra, FileContent, ImageContent
from segue.errors import EncodeError, Path
from segue.protocols.kit.reading import VERBATIM, data_url, left_over, split_data_url, standard_base64, verbatim_of
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import Block, fill_in

_AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}
_AUDIO_TYPES: Final[Mapping[str, str]] = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_NO_TYPE: Final = "none"
"""The shape of a data URL that names no type."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_media(block: Block) -> ImageContent | FileContent | None:
    """Read a part that carries media; None when it is something else, or is spelt in a way nobody knows."""
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return None if reader is None else reader(block)


def _extra(
    block: Block, key: str, inner: object, known: Collection[str], verbatim: Mapping[str, object] | None
) -> Extra | None:
    """Keep what a part and its inner object say beyond the known keys."""
    left = {name: value for name, value in block.items() if name not in ("type", key)}
    if isinstance(inner, Mapping):
        beyond = {name: value for name, value in cast("Block", inner).items() if name not in known}
        if beyond:
            left[key] = beyond
    if verbatim:
        left[VERBATIM] = dict(verbatim)
    return {PROTOCOL: left} if left else None


def _read_url(block: Block, key: str) -> tuple[str, dict[str, object]] | None:
    """Give the URL of a part and the shape it came in."""
    inner = block.get(key)
    if isinstance(inner, str):
        return inner, {key: "string"}
    if isinstance(inner, Mapping) and isinstance(url := cast("Block", inner).get("url"), str):
        return url, {}
    return None


def _read_image(block: Block) -> ImageContent | None:
    found = _read_url(block, "image_url")
    if found is None:
        return None
    url, verbatim = found
    parts = split_data_url(url)
    if parts is not None and parts[0] is None:
        verbatim["mime"] = _NO_TYPE
    extra = _extra(block, "image_url", block.get("image_url"), ("url",), verbatim)
    if parts is None:
        return ImageContent(url=url, extra=extra)
    return ImageContent(data=standard_base64(parts[1]), mime_type=parts[0], extra=extra)


def _read_stream_url(key: str) -> Callable[[Block], FileContent | None]:
    """Make the reader of `video_url` or `audio_url`."""

    def read(block: Block) -> FileContent | None:
        found = _read_url(block, key)
        if found is None:
            return None
        url, verbatim = found
        parts = split_data_url(url)
        mime, data = parts or (None, None)
        if not (key == "video_url" and (mime or "").startswith("video/")):
            verbatim["type"] = key
        if parts is not None and mime is None:
            verbatim["mime"] = _NO_TYPE
        extra = _extra(block, key, block.get(key), ("url",), verbatim)
        if data is None:
            return FileContent(url=url, extra=extra)
        return FileContent(data=standard_base64(data), mime_type=mime, extra=extra)

    return read


def _read_audio(block: Block) -> FileContent | None:
    inner = block.get("input_audio")
    if not isinstance(inner, Mapping):
        return None
    sound = cast("Block", inner)
    data, form = sound.get("data"), sound.get("format")
    if not isinstance(data, str) or not isinstance(form, str):
        return None
    mime = _AUDIO_TYPES.get(form, f"audio/{form}")
    extra = _extra(block, "input_audio", sound, ("data", "format"), None)
    if data.startswith(("http://", "https://", "data:")):  # DashScope takes URLs of both kinds here
        return FileContent(url=data, mime_type=mime, extra=extra)
    return FileContent(data=standard_base64(data), mime_type=mime, extra=extra)


def _read_file(block: Block) -> FileContent | None:
    inner = block.get("file")
    if not isinstance(inner, Mapping):
        return None
    file = cast("Block", inner)
    given, file_id, name = file.get("file_data"), file.get("file_id"), file.get("filename")
    if not isinstance(given, str) and not isinstance(file_id, str):
        return None
    known = {key for key in ("file_data", "file_id", "filename") if isinstance(file.get(key), str)}
    verbatim: dict[str, object] = {"type": "file"}
    data = mime = url = None
    if isinstance(given, str):
        parts = split_data_url(given)
        if parts is not None:
            mime, data = parts[0], standard_base64(parts[1])
            if mime is None:
                verbatim["mime"] = _NO_TYPE
        elif "://" in given or given.startswith("data:"):
            url = given
        else:
            data, verbatim["file_data"] = standard_base64(given), "bare"
    if not _is_streamed(mime, data, url):
        del verbatim["type"]
    if isinstance(name, str) and data is not None and name == _default_name(mime):
        name = None
    elif name is None and data is not None:
        verbatim["filename"] = "absent"
    return FileContent(
        data=data,
        url=url,
        file_id=file_id if isinstance(file_id, str) else None,
        mime_type=mime,
        name=name if isinstance(name, str) else None,
        extra=_extra(block, "file", file, known, verbatim),
    )


_READERS: Final[Mapping[str, Callable[[Block], ImageContent | FileContent | None]]] = {
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
    "video_url": _read_stream_url("video_url"),
    "audio_url": _read_stream_url("audio_url"),
}


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_image(content: ImageContent, path: Path) -> dict[str, object]:
    """Write a picture.

    Raises:
        EncodeError: it has neither data nor a URL.
    """
    if content.extra is None:
        return {"type": "image_url", "image_url": {"url": _url_of(content, {}, path)}}
    verbatim = verbatim_of(content.extra, PROTOCOL)
    return _part("image_url", _url_of(content, verbatim, path), content.extra, verbatim)


def encode_file(content: FileContent, path: Path) -> dict[str, object]:
    """Write a file, a sound or a film, by its type.

    Raises:
        EncodeError: it has neither data nor a URL nor a file id.
    """
    verbatim = verbatim_of(content.extra, PROTOCOL)
    given = verbatim.get("type")
    mime = content.mime_type or ""
    if given in ("video_url", "audio_url") or (given is None and mime.startswith("video/") and content.file_id is None):
        key = given if isinstance(given, str) else "video_url"
        return _part(key, _url_of(content, verbatim, path), content.extra, verbatim)
    if given is None and mime.startswith("audio/") and content.file_id is None:
        return _encode_audio(content, path)
    file: dict[str, object] = {}
    if content.data is not None:
        file["file_data"] = content.data if verbatim.get("file_data") == "bare" else _url_of(content, verbatim, path)
    elif content.url is not None:
        file["file_data"] = content.url
    if content.file_id is not None:
        file["file_id"] = content.file_id
    if not file:
        raise EncodeError("a file without data, URL or file id", path=path)
    if content.name is not None:
        file["filename"] = content.name
    elif content.data is not None and verbatim.get("filename") != "absent":
        file["filename"] = _default_name(content.mime_type)
    return _with_left({"type": "file", "file": file}, "file", content.extra)


def _is_streamed(mime: str | None, data: str | None, url: str | None) -> bool:
    """Whether a file of this type would be written as sound or film, and not as a file."""
    return (data is not None or url is not None) and (mime or "").startswith(("audio/", "video/"))


def _encode_audio(content: FileContent, path: Path) -> dict[str, object]:
    data = content.data if content.data is not None else content.url
    if data is None:
        raise EncodeError("sound without data or URL", path=path)
    mime = content.mime_type or ""
    form = _AUDIO_FORMATS.get(mime, mime.removeprefix("audio/"))
    block: dict[str, object] = {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    return _with_left(block, "input_audio", content.extra)


def _default_name(mime: str | None) -> str:
    """The name of a file that has none: the wire wants one wherever there is data."""
    return "attachment.pdf" if mime == "application/pdf" else "attachment"


def _url_of(content: ImageContent | FileContent, verbatim: Mapping[str, object], path: Path) -> str:
    if content.data is not None:
        if content.mime_type is None and verbatim.get("mime") == _NO_TYPE:
            return f"data:;base64,{content.data}"
        return data_url(content.mime_type, content.data)
    if content.url is not None:
        return content.url
    raise EncodeError(f"{content.kind} without data or URL", path=path)


def _part(key: str, url: str, extra: Extra | None, verbatim: Mapping[str, object]) -> dict[str, object]:
    if verbatim.get(key) == "string":
        return fill_in({"type": key, key: url}, left_over(extra, PROTOCOL))
    return _with_left({"type": key, key: {"url": url}}, key, extra)


def _with_left(block: dict[str, object], key: str, extra: Extra | None) -> dict[str, object]:
    """Put back what the part and its inner object said beyond our words."""
    for name, value in left_over(extra, PROTOCOL).items():
        if name == key and isinstance(value, Mapping):
            fill_in(cast("dict[str, object]", block[key]), cast("Block", value))
        else:
            block.setdefault(name, value)
    return block
