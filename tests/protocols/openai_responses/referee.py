"""Validates requests with the types of the official client, for tests over all protocols."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import pydantic
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from protocols.openai_responses.strict_types import strict


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:  # the same in every folder
    """List the errors of the SDK's types for a request."""
    try:
        _validator(stream=bool(body.get("stream"))).validate_python(body)
    except pydantic.ValidationError as error:
        return [str(error)]
    return []


@lru_cache
def _validator(*, stream: bool) -> pydantic.TypeAdapter[object]:
    kind = ResponseCreateParamsStreaming if stream else ResponseCreateParamsNonStreaming
    return pydantic.TypeAdapter(cast("Any", strict(kind)))
