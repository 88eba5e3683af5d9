"""The SDK's own types as a strict validator of our requests."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, get_type_hints

from cohere.v2.client import V2Client
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model

from protocols.strict_models import Strict


@lru_cache
def validator() -> TypeAdapter[object]:
    """Give what accepts a request body, or raises: the arguments of the client's method are the keys of the body."""
    strict, method = Strict(), V2Client.chat
    hints = get_type_hints(method)
    fields: dict[str, Any] = {"stream": (bool, False)}
    for name, parameter in inspect.signature(method).parameters.items():
        if name not in ("self", "request_options"):
            required = parameter.default is inspect.Parameter.empty
            fields[name] = (strict.rewritten(hints[name]), ... if required else None)
    return TypeAdapter(create_model("ChatRequest", __config__=ConfigDict(extra="forbid", strict=True), **fields))


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:
    """List the errors of the SDK's own types for a request."""
    try:
        validator().validate_python(body)
    except ValidationError as error:
        return [str(error)]
    return []
