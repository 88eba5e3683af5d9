"""Content chunks of user, tool and system messages, one at a time, both ways.

`families.chat_content` makes content of them.

Images, documents and audio as content chunks, both ways.

Choices (`kit.verbatim`): `form` is "object" where the value of the chunk was an object instead of a string; `field` is
"document_url" for an image or audio that was sent as a document; `mime` is the type that a data URL named, where the
default is another one or, for audio, no data URL.

Facts:
- Chunks are text, image_url, document_url, file, input_audio, reference, resource, resource_link and thinking; a
  system message has text or thinking.                                          (mistralai 3.7.0, read 2026-11-15)
- Tool results may be lists of chunks as well.                       (mistralai 3.7.0; pi-ai 1.5.0 writes nothing else)
- A resource wraps a text or an image, a resource_link has the URI of one, a reference has the numbers of what was
  cited.                                                                                            (mistralai 3.7.0)
- `image_url` is a URL or a data URL, as a string or in an object with a `detail`; the documented example is a string.
                                                                                (mistralai 3.7.0, read 2026-11-15)
- `document_url` is a URL or a data URL with a `document_name` next to it; an uploaded file has a `file_id`.
                                                          (mistralai 3.7.0; Mistral documentation: document QnA)
- `input_audio` is a string: base64 or a URL. OpenAI's object of data and format is read as well.
                                                     (mistralai 3.7.0; mistral-common 1.13.0; recorded traffic)
- Bare base64 does not name its type; the first bytes of an audio file do.                  (RFC 3003, 2361, 5334, 9639)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import (
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.families.chat_content import Blocks, decode_text, encode_text
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import data_url, native_block, split_data_url, standard_base64, text_of
from segue.protocols.kit.sources import CitedPage, labelled
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.mistral_chat.rules import PROTOCOL

_AUDIO_TYPES: Final[Mapping[str, str]] = {
    "UklGR": "audio/wav",
    "SUQz": "audio/mpeg",
    "//": "audio/mpeg",
    "T2dnUw": "audio/ogg",
    "ZkxhQw": "audio/flac",
}
"""How the base64 of an audio file begins -> its type."""
_ANY_AUDIO: Final = "audio/*"
_PDF: Final = "application/pdf"
_UNKNOWN: Final = "application/octet-stream"
"""The type that a data URL names by default where the content has none."""
_FORMATS: Final[Mapping[str, str]] = {"mp3": "audio/mpeg"}


class _Read(NamedTuple):
    """The content of a chunk, the choices it made, and further keys of it that were understood.

    `is_default` is whether the value of the chunk is the default one for the content.
    """

    content: ImageContent | FileContent
    choices: Block = EMPTY
    known: tuple[str, ...] = ()
    is_default: bool = False


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_media(chunk: Block) -> ImageContent | FileContent | None:
    """Read a chunk of media; None when it is something else, or in a format that is not known."""
    kind = chunk.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    read = None if reader is None else reader(chunk)
    if read is None:
        return None
    content = read.content
    if read.is_default and not read.choices and len(chunk) == 2:
        return content  # without writing it again: media are large
    if read.choices:
        content = replace(content, extra=keep(PROTOCOL, {}, {}, choices=read.choices))
    default = encode_image(content, ()) if content.kind == "image" else encode_file(content, ())
    extra = keep(PROTOCOL, chunk, default, read.known, read.choices)
    return content if extra is content.extra else replace(content, extra=extra)


def _read_image(chunk: Block) -> _Read | None:
    received = chunk.get("image_url")
    url = received if isinstance(received, str) else object_of(received).get("url")
    if not isinstance(url, str):
        return None
    form = choose("form", "string", "string" if isinstance(received, str) else "object")
    parts = split_data_url(url)
    if parts is None:
        return _Read(ImageContent(url=url), form, is_default=True)
    mime = choose("mime", _UNKNOWN, "") if parts[0] is None else {}
    data = standard_base64(parts[1])
    return _Read(ImageContent(data=data, mime_type=parts[0]), {**form, **mime}, is_default=data is parts[1])


def _read_document(chunk: Block) -> _Read | None:
    url, name = chunk.get("document_url"), chunk.get("document_name")
    if not isinstance(url, str):
        return None
    title = name if isinstance(name, str) else None
    parts = split_data_url(url)
    if parts is None:
        return _Read(FileContent(url=url, mime_type=_PDF, name=title))
    mime = choose("mime", _UNKNOWN, "") if parts[0] is None else {}
    field = choose("field", _field_of(parts[0]), "document_url")
    return _Read(FileContent(data=standard_base64(parts[1]), mime_type=parts[0], name=title), {**field, **mime})


def _read_file(chunk: Block) -> _Read | None:
    file_id = chunk.get("file_id")
    return _Read(FileContent(file_id=file_id, mime_type=_PDF)) if isinstance(file_id, str) else None


def _read_audio(chunk: Block) -> _Read | None:
    received = chunk.get("input_audio")
    inner = object_of(received)
    data, form = (received, "string") if isinstance(received, str) else (inner.get("data"), "object")
    if not isinstance(data, str):
        return None
    choices = choose("form", "string", form)
    name = inner.get("format")
    named = _FORMATS.get(name, f"audio/{name}") if isinstance(name, str) else None
    known = ("input_audio.format",) if named is not None else ()
    parts = split_data_url(data)
    if parts is not None:
        choices |= choose("mime", None, parts[0] or "")
        content = FileContent(data=standard_base64(parts[1]), mime_type=parts[0] or _ANY_AUDIO)
    elif "://" in data[:10]:
        content = FileContent(url=data, mime_type=named or _ANY_AUDIO)
    else:
        content = FileContent(data=standard_base64(data), mime_type=named or _type_of_audio(data))
    return _Read(content, choices, known)


def _type_of_audio(data: str) -> str:
    return next((mime for start, mime in _AUDIO_TYPES.items() if data.startswith(start)), _ANY_AUDIO)


_READERS: Final[Mapping[str, Callable[[Block], _Read | None]]] = {
    "image_url": _read_image,
    "document_url": _read_document,
    "file": _read_file,
    "input_audio": _read_audio,
}


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(content: ImageContent | FileContent, path: Path) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL.
    """
    url = _url_of(content, path)
    if content.extra is None:
        return {"type": "image_url", "image_url": url}
    is_object = chosen(content.extra, PROTOCOL, "form", "string") == "object"
    value: object = {"url": url} if is_object or "image_url" in data_of(content.extra, PROTOCOL) else url
    return restore({"type": "image_url", "image_url": value}, content.extra, PROTOCOL)


def encode_file(content: FileContent, path: Path) -> Wire:
    """Write a file: an image or audio by its type, else a document.

    Raises:
        EncodeError: it has neither data nor a URL nor an id.
    """
    extra = content.extra
    if content.data is None and content.url is None:
        if content.file_id is None:
            raise EncodeError("the file has no data, URL or file id; set one of them", path=path)
        return restore({"type": "file", "file_id": content.file_id}, extra, PROTOCOL)
    field = _field_of(content.mime_type)
    if extra is not None:
        field = chosen(extra, PROTOCOL, "field", field)
    if field == "image_url":
        return encode_image(content, path)
    if field == "input_audio":
        return _encode_audio(content)
    wire: Wire = {"type": "document_url", "document_url": _url_of(content, path)}
    if content.name is not None:
        wire["document_name"] = content.name
    return wire if extra is None else restore(wire, extra, PROTOCOL)


def _field_of(mime_type: str | None) -> str:
    """Return the key of a chunk that holds media of a type by default."""
    mime = (mime_type or "").strip().lower()
    return "image_url" if mime.startswith("image/") else "input_audio" if mime.startswith("audio/") else "document_url"


def _encode_audio(content: FileContent) -> Wire:
    extra = content.extra
    value: object = content.data if content.data is not None else content.url
    if extra is None:
        return {"type": "input_audio", "input_audio": value}
    mime = chosen(extra, PROTOCOL, "mime", None)
    if content.data is not None and isinstance(mime, str):
        value = f"data:{mime};base64,{content.data}"
    if chosen(extra, PROTOCOL, "form", "string") == "object":
        value = {"data": value}
    return restore({"type": "input_audio", "input_audio": value}, extra, PROTOCOL)


def _url_of(content: ImageContent | FileContent, path: Path) -> str:
    if content.data is not None:
        if content.mime_type is None and chosen(content.extra, PROTOCOL, "mime", _UNKNOWN) == "":
            return f"data:;base64,{content.data}"
        return data_url(content.mime_type, content.data)
    if content.url is not None:
        return content.url
    raise EncodeError(f"the {content.kind} has no data or URL; set one of them", path=path)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_chunk(chunk: Block) -> UserContent:
    """Read one chunk; one of an unknown type becomes native content."""
    return decode_text(PROTOCOL, chunk) or decode_media(chunk) or decode_native(chunk)


def decode_native(chunk: Block) -> NativeContent:
    """Keep a chunk that only this protocol has, with a fallback for others."""
    return NativeContent(protocol=PROTOCOL, block=chunk, fallback=_fallback(chunk))


def _fallback(chunk: Block) -> tuple[FallbackContent, ...]:
    if chunk.get("type") == "resource":
        inner = decode_chunk(object_of(chunk.get("content")))
        return inner.fallback if inner.kind == "native" else (inner,)
    if chunk.get("type") == "resource_link":
        text = text_of(chunk.get("uri"))
    elif chunk.get("type") == "tool_reference" and (url := text_of(chunk.get("url"))) is not None:
        # A page that a tool of the provider found (mistralai 3.7.0: ToolReferenceChunk).
        label = f"source of {text_of(chunk.get('tool')) or 'a tool'}"
        text = labelled(label, [CitedPage(url, text_of(chunk.get("title")) or "").line()])
    elif chunk.get("type") == "thinking":
        text = join_thoughts(chunk.get("thinking"))
    else:
        text = text_of(chunk.get("text")) or text_of(chunk.get("content"))
    return (TextContent(text=text),) if text else ()


def join_thoughts(thinking: object) -> str | None:
    """Return the text of a thinking chunk; None when it holds something else than texts and references."""
    if isinstance(thinking, str):
        return thinking
    if not isinstance(thinking, (list, tuple)):
        return None
    texts: list[str] = []
    for inner in cast("Sequence[object]", thinking):
        chunk = object_of(inner)
        if not chunk:
            return None
        if chunk.get("type", "text") == "text":
            text = chunk.get("text")
            if not isinstance(text, str):
                return None
            texts.append(text)
    return "".join(texts)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_chunk(content: UserContent, path: Path) -> Wire:
    """Write content as a chunk.

    Raises:
        EncodeError: another protocol's block, or media without a source that this protocol supports.
    """
    match content.kind:
        case "text":
            return encode_text(PROTOCOL, content)
        case "image":
            return encode_image(content, path)
        case "file":
            return encode_file(content, path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
        case _:
            assert_never(content)


BLOCKS: Final = Blocks(PROTOCOL, decode_chunk, encode_chunk, decode_native)
