"""A request in the form that the official client accepts: `models.generate_content(model=, contents=, config=)`.

Facts this file rests on:
- The client accepts contents as dicts with keys under both names, bytes as bytes, and everything else in `config`: the
  keys of `generationConfig` and the keys beside it, flat.                  (google-genai 3.1.0, read 2026-11-15)
- Keys that its config has no field for go into `http_options.extra_body`, merged into the body.          (the same)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.protocols.google_genai.keys import TO_CAMEL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import standard_base64

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
    """Give the arguments of `generate_content` and `generate_content_stream`."""
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
    """Give a value with bytes where the client expects bytes."""
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
