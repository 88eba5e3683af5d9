"""Tool calls on Ollama's wire, both ways.

The choice `arguments` holds arguments that were received as a string. They are written only with `verbatim`: when the
request is the received body, not a new one.

Images on Ollama's wire, both ways.

An image that the server refuses is read as well. Its received format is written only with `verbatim`: when the request
is the received body, not a new one. `extra` of an image describes the object `{"image": ...}`.

Facts:
- `tool_calls[]` is {id, function {index, name, arguments}}; arguments are an object: a string or an array answers 400,
  "cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments".
                                                                      (ollama #12794, langchain #34790, neuron-ai #219)
- Older servers give calls no id, and the Python client drops it.                (ollama 0.6.3, tried on 2026-11-15)
- `images` is a list of bare base64 without a type; a URL or a data URL answers 400.
                                         (ollama server source @fb30760; litellm convert_to_ollama_image; 2026-11-15)
- The first bytes of image formats.                                                      (the formats' descriptions)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import ParsedArguments, encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import ImageContent, NativeContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import expect_list, expect_object, split_data_url, standard_base64
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.ollama_chat.rules import PROTOCOL

_ARGUMENTS: Final = "arguments"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_call(
    wire: object, position: int, path: Path, notes: list[Diagnostic], *, reply: bool
) -> ToolCall | NativeContent:
    """Read one call. A call without a tool name is a native block; a call of a reply keeps no format.

    Raises:
        DecodeError: it is not an object, or its id has a type that the server refuses.
    """
    received = expect_object(wire, path)
    function = object_of(received.get("function"))
    name, call_id = function.get("name"), received.get("id")
    if not isinstance(name, str):
        return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(received)]})
    arguments = function.get(_ARGUMENTS)
    parsed = _decode_arguments(arguments, notes)
    if reply and not isinstance(call_id, str):
        call_id = None
    if not isinstance(call_id, str | None):
        raise DecodeError("the id of a call must be a string", path=(*path, "id"))
    is_default = bool(call_id) and len(received) == 2 and len(function) == 2 and isinstance(arguments, dict)
    call = ToolCall(
        id=call_id or make_call_id(position, name, parsed.arguments),
        name=name,
        arguments=parsed.arguments,
        arguments_text=parsed.text,
    )
    return call if reply or is_default else replace(call, extra=_keep_call(call, received))


def _keep_call(call: ToolCall, received: Block) -> Mapping[str, Block] | None:
    function, choices = object_of(received["function"]), Wire()
    text = function.get(_ARGUMENTS)
    if isinstance(text, str):
        choices = choose(_ARGUMENTS, call.arguments, text)
        received = {**received, "function": {**function, _ARGUMENTS: call.arguments}}
    known = ("type",) if received.get("type") == "function" else ()
    return keep(PROTOCOL, received, encode_call(call, ids=True, verbatim=False), known=known, choices=choices)


def make_call_id(position: int, name: str, arguments: Mapping[str, object]) -> str:
    """Make the id of a call without one. The same call at the same position always gets the same id."""
    try:
        written = encode_arguments(arguments)
    except EncodeError:  # a number that is not JSON; encoding the call reports it
        written = repr(arguments)
    source = f"{position}\0{name}\0{written}"
    return f"call_{blake2b(source.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def _decode_arguments(received: object, notes: list[Diagnostic]) -> ParsedArguments:
    parsed = parse_arguments(received) if isinstance(received, str) else read_arguments(received)
    if parsed.diagnostic is not None:
        notes.append(parsed.diagnostic)
    return parsed


def has_text_arguments(call: ToolCall) -> bool:
    """Whether the arguments were received as a string, which the server refuses."""
    return call.extra is not None and isinstance(chosen(call.extra, PROTOCOL, _ARGUMENTS, call.arguments), str)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_call(call: ToolCall, *, ids: bool, verbatim: bool) -> Wire:
    """Write one call."""
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    function: Wire = {"name": call.name, _ARGUMENTS: arguments}
    if verbatim and call.extra is not None:
        function[_ARGUMENTS] = chosen(call.extra, PROTOCOL, _ARGUMENTS, arguments)
    wire: Wire = {"id": call.id, "function": function} if ids else {"function": function}
    return wire if call.extra is None else restore(wire, call.extra, PROTOCOL)


def encode_calls(calls: Sequence[ToolCall | NativeContent], *, ids: bool, verbatim: bool) -> list[object]:
    """Write the calls of a turn."""
    wire: list[object] = []
    for call in calls:
        if call.kind == "native":
            wire += cast("list[object]", call.block["tool_calls"])
        else:
            wire.append(encode_call(call, ids=ids, verbatim=verbatim))
    return wire


def is_native_call(content: NativeContent) -> bool:
    """Whether a native block is a call without a tool name."""
    return content.protocol == PROTOCOL and isinstance(content.block.get("tool_calls"), list)


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
"""The position of a format's signature, the signature, the MIME type."""
_IMAGE: Final = "image"


def decode_images(received: object, path: Path) -> tuple[ImageContent, ...]:
    """Read the images of a message.

    Raises:
        DecodeError: it is not a list of strings.
    """
    if received is None:
        return ()
    return tuple(_decode_image(image, (*path, at)) for at, image in enumerate(expect_list(received, path)))


def _decode_image(received: object, path: Path) -> ImageContent:
    if not isinstance(received, str):
        raise DecodeError("an image must be a base64 string", path=path)
    if "://" in received[:16]:
        return ImageContent(url=received)
    mime, data = split_data_url(received) or (None, received)
    data = standard_base64(data)
    extra = None if data == received else keep(PROTOCOL, {_IMAGE: received}, {_IMAGE: data})
    return ImageContent(data=data, mime_type=mime or _find_type(data), extra=extra)


def _find_type(data: str) -> str | None:
    try:
        first = base64.b64decode(data[:24] + "=" * (-len(data[:24]) % 4))
    except (binascii.Error, ValueError):
        return None
    return next((mime for at, signature, mime in _FIRST_BYTES if first.startswith(signature, at)), None)


def is_refused(image: ImageContent) -> bool:
    """Whether the server refuses the image in its received format."""
    return image.data is None or (image.extra is not None and PROTOCOL in image.extra)


def encode_image(image: ImageContent, path: Path, *, verbatim: bool) -> object:
    """Write one image as bare base64; with `verbatim` as it was received.

    Raises:
        EncodeError: the image has a URL and no data.
    """
    if image.data is not None:
        wire: Wire = {_IMAGE: image.data}
        if verbatim and image.extra is not None:
            restore(wire, image.extra, PROTOCOL)
        return wire[_IMAGE]
    if verbatim and image.url is not None:
        return image.url
    raise EncodeError(f"{PROTOCOL} does not support images by reference; supply the bytes", path=path)


def native_images(received: object, images: tuple[ImageContent, ...]) -> NativeContent:
    """Keep images that have no neutral field: those of assistant messages and of system messages."""
    fallback = tuple(replace(image, extra=None) for image in images)
    return NativeContent(protocol=PROTOCOL, block={"images": received}, fallback=fallback)
