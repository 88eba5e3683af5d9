"""A generateContent request, both ways: the conversation, its tools and the options.

A system prompt that is a string is written as a content without a role. One made of pieces is written with the role
`user`, as the official client does. So each is read back as what it was. Any other form is format, in `extra` of the
context.

A request in the form that the official client accepts: `models.generate_content(model=, contents=, config=)`.

Facts:
- Instructions are a content next to the others; its role has no meaning. A text, one part, or a list of parts
  represents one as well.                                                     (google-genai 3.1.0, read 2026-11-15)
- The model is named in the URL; some clients repeat it in the body.                  (google-genai 3.1.0: batches)
- The client accepts contents as dicts with keys under both names, bytes as bytes, and everything else in `config`: the
  keys of `generationConfig` and the keys next to it, flat.                  (google-genai 3.1.0, read 2026-11-15)
- Keys that its config has no field for go into `http_options.extra_body`, merged into the body.          (the same)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, Prompt
from segue.errors import DecodeError, EncodeError
from segue.protocols.google_genai.content import (
    TO_CAMEL,
    decode_native,
    decode_user_part,
    encode_user_content,
    keep_format,
    name_in,
)
from segue.protocols.google_genai.options import decode_options, decode_tools, encode_options, encode_tools
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.turns import decode_turns, default_turn, encode_turns, parts_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import standard_base64, text_of
from segue.protocols.kit.verbatim import restore

_BYTES: Final = frozenset({"thoughtSignature", "thought_signature", "continuationToken", "continuation_token"})
_BLOBS: Final = frozenset({"inlineData", "inline_data"})
_VERBATIM: Final = frozenset({"args", "response", "partMetadata", "part_metadata"})
"""Objects of a part that the application defines: they hold no bytes."""
_BESIDE: Final = frozenset(
    {
        "systemInstruction",
        "tools",
        "toolConfig",
        "safetySettings",
        "cachedContent",
        "labels",
        "serviceTier",
        "store",
        "continuationToken",
        "modelArmorConfig",
    }
)
"""Keys of a body that are fields of the client's config."""


def sdk_arguments(body: Block, endpoint: Endpoint) -> dict[str, object]:
    """Return the arguments of `generate_content` and `generate_content_stream`."""
    config: Wire = {}
    beyond: Wire = {}
    contents: object = []
    for raw, value in body.items():
        key = TO_CAMEL.get(raw, raw)
        if key == "contents":
            contents = value
        elif key == "generationConfig":
            config.update(object_of(value))
        elif key in _BESIDE:
            config[key] = _with_bytes(value) if key != "tools" else value
        elif key != "model":
            beyond[raw] = value
    if beyond:
        config["http_options"] = {"extra_body": beyond}
    arguments: Wire = {"model": endpoint.model.id, "contents": _with_bytes(contents)}
    return {**arguments, "config": config} if config else arguments


def _with_bytes(value: object) -> object:
    """Return a value with bytes where the client expects bytes."""
    if isinstance(value, (list, tuple)):
        return [_with_bytes(item) for item in cast("Sequence[object]", value)]
    if not isinstance(value, Mapping):
        return value
    out: Wire = {}
    for key, inner in cast("Block", value).items():
        if key in _VERBATIM:
            out[key] = inner
        elif key in _BYTES and isinstance(inner, str):
            out[key] = _decoded(inner)
        elif key in _BLOBS and isinstance(inner, Mapping):
            blob = dict(cast("Block", inner))
            data = blob.get("data")
            if isinstance(data, str):
                blob["data"] = _decoded(data)
            out[key] = blob
        else:
            out[key] = _with_bytes(inner)
    return out


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(standard_base64(text), validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")


_SYSTEM: Final = "systemInstruction"


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of contents.

    Raises:
        DecodeError: it has no contents, or something in it is not what the protocol defines.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "contents" not in body:
        raise DecodeError("a request needs `contents`", path=("contents",))
    model = text_of(body.get("model"))
    contents, tools = _decode_contents(body["contents"]), body.get("tools")
    default: Wire = {"contents": contents}
    if tools:
        default["tools"] = tools = [cast("Block", tools)] if isinstance(tools, Mapping) else tools
    context = Context(
        system_prompt=_decode_system(body, default),
        messages=decode_turns(contents, endpoint, model or endpoint.model.id),
        tools=decode_tools(tools) if tools else (),
    )
    # Contents and tools are written as they were received, so only what is around them can differ.
    received = {key: body[key] for key in ("contents", "tools", name_in(body, _SYSTEM)) if key in body}
    extra = keep_format(received, default, received)
    if extra is not None:
        context = replace(context, extra=extra)
    return Prompt(context=context, options=decode_options(body, endpoint, received, context.tools), model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: the protocol does not support something; `path` leads to it.
    """
    context = prompt.context
    body: Wire = {"contents": encode_turns(context.messages, endpoint)}
    if context.system_prompt is not None:
        body[_SYSTEM] = _encode_system(context.system_prompt)
    if context.tools:
        body["tools"] = encode_tools(context.tools)
    if context.extra is not None:
        restore(body, context.extra, PROTOCOL)
    body.update(encode_options(prompt.options, endpoint, prompt.model, context.tools))
    return body


def _decode_contents(given: object) -> object:
    if isinstance(given, Mapping):
        return [cast("Block", given)]
    return [{"role": "user", "parts": [{"text": given}]}] if isinstance(given, str) else given


# -- instructions ------------------------------------------------------------------------------------------------------


def _decode_system(body: Block, default: Wire) -> str | tuple[SystemContent, ...] | None:
    """Read instructions; `default` gets their default format."""
    key = name_in(body, _SYSTEM)
    given = body.get(key)
    if given is None:
        return None
    if isinstance(given, str):
        default[_SYSTEM] = {"parts": [{"text": given}]}
        return given
    if not isinstance(given, (list, Mapping)):
        raise DecodeError("instructions have to be a content, a list of parts or a text", path=(key,))
    content = cast("Block", given) if isinstance(given, Mapping) else {"parts": cast("object", given)}
    if "text" in content and "parts" not in content:
        content = {"parts": [content]}
    parts = parts_of(content, (key,))
    default[_SYSTEM] = wire = default_turn("user", content, parts)
    if content is given and "role" not in content and len(parts) == 1 and len(parts[0]) == 1:
        text = parts[0].get("text")
        if isinstance(text, str):
            del wire["role"]
            return text
    return tuple(_decode_piece(part) for part in parts)


def _decode_piece(part: Block) -> SystemContent:
    piece = decode_user_part(part)
    return piece if piece.kind == "text" or piece.kind == "native" else decode_native(part)


def _encode_system(prompt: str | tuple[SystemContent, ...]) -> Wire:
    if isinstance(prompt, str):
        return {"parts": [{"text": prompt}]}
    parts: list[Wire] = []
    for index, piece in enumerate(prompt):
        try:
            parts.append(encode_user_content(piece))
        except EncodeError as error:
            raise EncodeError(error.reason, path=("system_prompt", index)) from error
    return {"role": "user", "parts": parts}
