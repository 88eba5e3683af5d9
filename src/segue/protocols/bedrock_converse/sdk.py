"""What boto3 takes: the members of the body as arguments, the id of the model beside them, and bytes as bytes.

Facts this file rests on:
- The members of type blob.                                          (botocore 1.44.0 service model, read 2026-11-15)
- boto3 takes bytes for them and writes base64 itself; a text there is encoded once more.          (botocore, tried)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.errors import EncodeError, Path
from segue.protocols.bedrock_converse.verbatim import Wire
from segue.protocols.kit.codec import Endpoint

_Blobs: TypeAlias = "Mapping[str, _Blobs] | None"
"""Where blobs are: under which keys, at which depth; None is a blob. Lists are looked through."""

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
    """Give the arguments of `converse` and of `converse_stream`.

    Raises:
        EncodeError: what should be base64 is not; `path` leads to it.
    """
    arguments = cast("Wire", _with_bytes(body, _BLOBS, ()))
    return {"modelId": endpoint.model.id, **arguments}


def _with_bytes(value: object, blobs: _Blobs, path: Path) -> object:
    """Give a value with the bytes that it holds as bytes; the same object when it holds none."""
    if blobs is None:
        return _bytes_of(value, path)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return [_with_bytes(item, blobs, (*path, index)) for index, item in enumerate(items)]
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[str, object]", value)
    made = {key: _with_bytes(given[key], inner, (*path, key)) for key, inner in blobs.items() if key in given}
    return {**given, **made} if made else given


def _bytes_of(value: object, path: Path) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError) as error:
        raise EncodeError("this is no base64", path=path) from error
