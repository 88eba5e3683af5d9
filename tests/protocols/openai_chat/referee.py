"""The validator of a whole request, for tests that cover every protocol."""

from __future__ import annotations

from pydantic import ValidationError

from protocols.openai_chat.strict_types import request_type


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:  # the same in every folder
    """Say what the SDK's own types have against a request."""
    try:
        request_type(stream=bool(body.get("stream"))).validate_python(body)
    except ValidationError as error:
        return [str(error)]
    return []
