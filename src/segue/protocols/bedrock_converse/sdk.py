"""The arguments of boto3: members of the body, the model id next to them, and bytes instead of base64.

Facts:
- The members of type blob.                                          (botocore 1.44.0 service model, read 2026-11-15)
- boto3 accepts bytes for them and writes base64 itself; it encodes a text there once more.        (botocore, tried)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.errors import EncodeError, Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire

_Blobs: TypeAlias = "Mapping[str, _Blobs] | None"
"""The keys that lead to blobs; None is a blob. Items of lists are searched too."""

_MEDIA: Final[Mapping[str, _Blobs]] = {"source": {"bytes": None}}
_GUARDED: Final[Mapping[str, _Blobs]] = {"image": _MEDIA}
_IN_RESULT: Final[Mapping[str, _Blobs]] = {"image": _MEDIA, "document": _MEDIA, "video": _MEDIA}
_BLOBS: Final[Mapping[str, _Blobs]] = {
    "messages": {
        "content": {
            **_IN_RESULT,
            "audio": _MEDIA,
            "guardContent": _GUARDED,
            "toolResult": {"content": _IN_RESULT},
            "reasoningContent": {"redactedContent": None},
        }
    },
    "system": {"guardContent": _GUARDED},
}


def sdk_arguments(body: Mapping[str, object], endpoint: Endpoint) -> Wire:
    """Return the arguments of `converse` and of `converse_stream`.

    Raises:
        EncodeError: a member of type blob is not base64; `path` leads to it.
    """
    arguments = cast("Wire", _with_bytes(body, _BLOBS, ()))
    return {"modelId": endpoint.model.id, **arguments}


def _with_bytes(value: object, blobs: _Blobs, path: Path) -> object:
    """Decode the blobs of a value; the same object when it holds none."""
    if blobs is None:
        return _decode_blob(value, path)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return [_with_bytes(item, blobs, (*path, index)) for index, item in enumerate(items)]
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[str, object]", value)
    made = {key: _with_bytes(given[key], inner, (*path, key)) for key, inner in blobs.items() if key in given}
    return {**given, **made} if made else given


def _decode_blob(value: object, path: Path) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError) as error:
        raise EncodeError("the data of this blob is not valid base64; encode the bytes again", path=path) from error


def without_bytes(value: object) -> object:
    """Encode the bytes that boto3 returns as base64, as JSON has them; the same object when there are none."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        given = cast("Mapping[str, object]", value)
        made = {key: new for key, inner in given.items() if (new := without_bytes(inner)) is not inner}
        return {**given, **made} if made else given
    if isinstance(value, (list, tuple)):
        inners = cast("Sequence[object]", value)
        made = [without_bytes(inner) for inner in inners]
        return made if any(new is not old for new, old in zip(made, inners, strict=True)) else cast("object", value)
    return value
