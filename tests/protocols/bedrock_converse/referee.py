"""botocore's own description of the service, walked strictly, as a validator of our requests.

boto3 itself checks types and required members and leaves enumerations, patterns and most limits to the server; here
they count: no member that is not named, unions with exactly one, every word, pattern and length as described.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import botocore.session
from botocore.model import Shape

from segue.protocols.kit.codec import Endpoint


@lru_cache
def request_shape() -> Any:
    """Give the description of what `converse` takes."""
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


def complaints(body: Mapping[str, Any], endpoint: Endpoint) -> list[str]:
    """List where a body is not what the service describes; the model stands in the address, so it is added."""
    return list(_validate({"modelId": endpoint.model.id, **body}, request_shape(), ""))


def _validate(value: Any, shape: Shape, path: str) -> Iterator[str]:
    validator = _VALIDATORS.get(shape.type_name)
    if getattr(shape, "is_document_type", False):
        return
    if validator is None:
        yield f"{path}: {shape.type_name} is not known to the referee"
        return
    yield from validator(value, shape, path)


def _structure(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: an object is wanted"
        return
    yield from (f"{path}.{name}: no such member" for name in value if name not in shape.members)
    yield from (f"{path}.{name}: required" for name in shape.required_members if name not in value)
    if shape.is_tagged_union and len(value) != 1:
        yield f"{path}: a union has one member, not {sorted(value)}"
    for name, inner in value.items():
        if name in shape.members:
            yield from _validate(inner, shape.members[name], f"{path}.{name}")


def _list(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: a list is wanted"
        return
    yield from _length(len(value), shape, path)
    for index, inner in enumerate(value):
        yield from _validate(inner, shape.member, f"{path}[{index}]")


def _map(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: an object is wanted"
        return
    yield from _length(len(value), shape, path)
    for name, inner in value.items():
        yield from _validate(name, shape.key, f"{path} key")
        yield from _validate(inner, shape.value, f"{path}.{name}")


def _string(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path}: a text is wanted"
        return
    yield from _length(len(value), shape, path)
    if shape.enum and value not in shape.enum:
        yield f"{path}: {value!r} is none of {shape.enum}"
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        yield f"{path}: {value!r} does not match {pattern}"


def _blob(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path}: base64 is wanted"
        return
    try:
        yield from _length(len(base64.b64decode(value, validate=False)), shape, path)
    except binascii.Error:
        yield f"{path}: this is no base64"


def _number(*kinds: type) -> Callable[[Any, Any, str], Iterator[str]]:
    def validator(value: Any, shape: Any, path: str) -> Iterator[str]:
        if not isinstance(value, kinds) or isinstance(value, bool):
            yield f"{path}: a number is wanted"
        else:
            yield from _length(value, shape, path)

    return validator


def _boolean(value: Any, shape: Any, path: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{path}: true or false is wanted"


def _length(size: float, shape: Any, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and size < least) or (most is not None and size > most):
        yield f"{path}: {size} is not between {least} and {most}"


_VALIDATORS: dict[str, Callable[[Any, Any, str], Iterator[str]]] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _string,
    "blob": _blob,
    "boolean": _boolean,
    "integer": _number(int),
    "long": _number(int),
    "float": _number(int, float),
    "double": _number(int, float),
}
