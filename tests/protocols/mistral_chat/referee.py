"""The provider's own code as a strict validator of our requests: the SDK's types and the library's validators.

mistral-common knows the order of roles, ids and chunks by the version of a model's tokenizer. It has a format of
its own: thinking is a string there, and documents are not known; so a body is converted to it first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client import models
from pydantic import TypeAdapter, ValidationError

from protocols.strict_models import Strict

VERSIONS = (TokenizerVersion.v11, TokenizerVersion.v13, TokenizerVersion.v15)
"""The first that knows thinking, and those after it."""


@lru_cache
def validator() -> TypeAdapter[object]:
    """Give what accepts a request body, or raises."""
    return Strict().adapter(models.ChatCompletionRequest)


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:
    """List the errors of the SDK's own types and the library's validators for a request."""
    try:
        validator().validate_python(body)
    except ValidationError as error:
        return [str(error)]
    return [complaint for version in VERSIONS for complaint in objections(body, version)]


def objections(body: dict[str, Any], version: TokenizerVersion) -> list[str]:
    """List the errors of the validator of one tokenizer version for a request."""
    try:
        request = ChatCompletionRequest.model_validate(
            {
                "model": body["model"],
                "messages": [_to_library_format(message) for message in body["messages"]],
                "tools": [tool for tool in body.get("tools") or [] if "function" in tool] or None,
            }
        )
        get_validator(version, ValidationMode.serving).validate_request(request)
    except (MistralCommonException, ValidationError, ValueError) as error:
        return [f"{version}: {error}"]
    return []


def _to_library_format(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    given = dict(message)
    if isinstance(content, list):
        given["content"] = [_chunk(chunk) for chunk in content] or ""
    if "tool_calls" in given:
        given["tool_calls"] = [
            {key: value for key, value in call.items() if key != "index"} for call in given["tool_calls"] or []
        ] or None
    return given


def _chunk(chunk: dict[str, Any]) -> dict[str, Any]:
    if chunk["type"] == "thinking":
        text = "".join(inner.get("text", "") for inner in chunk["thinking"])
        return {"type": "thinking", "thinking": text, "closed": chunk.get("closed", True)}
    if chunk["type"] in ("document_url", "file", "input_audio"):
        return {"type": "text", "text": "(a file)"}
    return chunk
