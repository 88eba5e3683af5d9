"""Pictures and tool calls on Ollama's wire, both ways.

Facts this file rests on:
- `images` is a list of bare base64 without a type; a URL or a data URL answers 400.
                                         (ollama server source @fb30760; litellm convert_to_ollama_image; 2026-11-15)
- `tool_calls[]` is {id, function {index, name, arguments}}; arguments are an object: a text or an array answers 400,
  "cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments".
                                                                      (ollama #12794, langchain #34790, neuron-ai #219)
- Older servers give calls no id, and the Python client drops it.                (ollama 0.6.3, tried on 2026-11-15)
- What a picture's bytes begin with.                                                       (the formats' descriptions)

What the server would refuse is read all the same, and written back only to the very body it was read from: `verbatim`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, cast

from segue.conversation.arguments import ParsedArguments, encode_arguments, parse_arguments
from segue.conversation.content import ImageContent, NativeContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.reading import (
    VERBATIM,
    expect_list,
    expect_object,
    split_data_url,
    standard_base64,
    verbatim_of,
)
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.verbatim import Json, Wire, keep, object_of, own_part, put_back

_FIRST_BYTES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
)
"""Where a format's mark stands, the mark, the type."""
_RECEIVED: Final = "said"
"""The shape of a picture that was not spelt as bare base64: a data URL, another alphabet, no padding."""
_AS_TEXT: Final = "as_text"
"""The shape of a call whose arguments came as text."""


# -- pictures ----------------------------------------------------------------------------------------------------------


def decode_image(given: object, path: Path) -> ImageContent:
    """Read one picture; its type is told by how its bytes begin.

    Raises:
        DecodeError: it is no text.
    """
    if not isinstance(given, str):
        raise DecodeError("a picture has to be base64", path=path)
    if "://" in given[:16]:
        return ImageContent(url=given)
    mime, data = _bare(given)
    extra = None if data == given else {PROTOCOL: {VERBATIM: {_RECEIVED: given}}}
    return ImageContent(data=data, mime_type=mime or _type_of(data), extra=extra)


def _bare(given: str) -> tuple[str | None, str]:
    """Give a picture's type, where it is said, and its bytes as the server takes them."""
    mime, data = split_data_url(given) or (None, given)
    return mime, standard_base64(data)


def is_refused(image: ImageContent) -> bool:
    """Whether the server would answer 400 to the picture as it was spelt."""
    return image.data is None or _RECEIVED in verbatim_of(image.extra, PROTOCOL)


def _type_of(data: str) -> str | None:
    try:
        first = base64.b64decode(data[:24] + "=" * (-len(data[:24]) % 4))
    except (binascii.Error, ValueError):
        return None
    return next((mime for at, mark, mime in _FIRST_BYTES if first.startswith(mark, at)), None)


def encode_image(image: ImageContent, path: Path, *, verbatim: bool) -> str:
    """Write one picture as bare base64.

    Raises:
        EncodeError: only where it lies is known.
    """
    if image.data is not None:
        received = verbatim_of(image.extra, PROTOCOL).get(_RECEIVED) if verbatim else None
        return received if isinstance(received, str) and _bare(received)[1] == image.data else image.data
    if verbatim and image.url is not None:
        return image.url
    raise EncodeError("this wire takes a picture's bytes, not its address", path=path)


# -- calls -------------------------------------------------------------------------------------------------------------


def make_call_id(position: int, name: str, arguments: Mapping[str, object]) -> str:
    """Give a call without an id one: the same call in the same place always has the same."""
    try:
        written = encode_arguments(arguments)
    except EncodeError:  # a number that is none; whoever sends the call will hear of it
        written = repr(arguments)
    received = f"{position}\0{name}\0{written}"
    return f"call_{blake2b(received.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def decode_call(
    wire: object, position: int, tool_names: Mapping[str, str], path: Path, notes: list[Diagnostic]
) -> tuple[ToolCall | NativeContent, Wire]:
    """Read one call, and say how it was spelt; one that names no tool is kept as it is.

    Raises:
        DecodeError: it is no object, or its id or arguments are of a type that the server refuses.
    """
    call = expect_object(wire, path)
    function = object_of(call.get("function"))
    name, call_id = function.get("name"), call.get("id")
    if not isinstance(name, str):
        return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(call)]}), {}
    given = function.get("arguments")
    parsed = _decode_arguments(given, (*path, "function", "arguments"), notes)
    if not isinstance(call_id, str | None):
        raise DecodeError("the id of a call has to be a string", path=(*path, "id"))
    if not call_id:
        call_id = make_call_id(position, name, parsed.arguments)
    default: Wire = {"name": name, "arguments": parsed.arguments}
    inner = keep(function, default, skip=("arguments",) if isinstance(given, str) else ())
    if isinstance(given, str):
        inner[VERBATIM] = {**object_of(inner.get(VERBATIM)), _AS_TEXT: given}
    part = keep(call, {"id": call_id}, skip=("function",))
    if inner:
        part["function"] = inner
    name = tool_names.get(name, name)
    return ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text), part


def _decode_arguments(given: object, path: Path, notes: list[Diagnostic]) -> ParsedArguments:
    if isinstance(given, str):
        parsed = parse_arguments(given)
        if parsed.diagnostic is not None:
            notes.append(parsed.diagnostic)
        return parsed
    if given is None or isinstance(given, dict):
        return ParsedArguments(arguments=cast("Wire", given or {}))
    raise DecodeError("arguments have to be an object", path=path)


def has_text_arguments(part: Json) -> bool:
    """Whether a call, spelt as `part` says, had its arguments as text, which the server refuses."""
    return _AS_TEXT in object_of(object_of(part.get("function")).get(VERBATIM))


def encode_call(call: ToolCall, part: Json | None, *, ids: bool, verbatim: bool) -> Wire:
    """Write one call, as `part` says it was spelt."""
    arguments: object = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    if part is None:
        function: Wire = {"name": call.name, "arguments": arguments}
        return {"id": call.id, "function": function} if ids else {"function": function}
    inner = object_of(part.get("function"))
    text = object_of(inner.get(VERBATIM)).get(_AS_TEXT) if verbatim else None
    if isinstance(text, str) and parse_arguments(text).arguments == arguments:
        arguments = text
    wire: Wire = {"id": call.id} if ids else {}
    wire["function"] = put_back({"name": call.name, "arguments": arguments}, inner)
    return put_back(wire, part)


def encode_calls(
    calls: Sequence[ToolCall | NativeContent], parts: Mapping[str, Json] | None, *, ids: bool, verbatim: bool
) -> list[object]:
    """Write the calls of a turn; `parts` says how those of a reply were spelt, by their place among them."""
    wire: list[object] = []
    for position, call in enumerate(calls):
        if call.kind == "native":
            wire += cast("list[object]", call.block["tool_calls"])
        else:
            part = own_part(call.extra) if parts is None else parts.get(str(position))
            wire.append(encode_call(call, part, ids=ids, verbatim=verbatim))
    return wire


def is_native_call(content: NativeContent) -> bool:
    """Whether a block of this wire is a call that names no tool."""
    return content.protocol == PROTOCOL and isinstance(content.block.get("tool_calls"), list)


def decode_images(given: object, path: Path) -> tuple[ImageContent, ...]:
    """Read the pictures of a message.

    Raises:
        DecodeError: it is no list of texts.
    """
    if given is None:
        return ()
    return tuple(decode_image(image, (*path, at)) for at, image in enumerate(expect_list(given, path)))
