"""The resolved models that the tests use."""

from __future__ import annotations

from functools import lru_cache

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint


@lru_cache
def endpoint_of(model_id: str) -> Endpoint:
    return resolve_endpoint(Model(model_id, "ollama", "ollama-chat", reasoning=True))


QWEN = endpoint_of("qwen3")
GPT_OSS = endpoint_of("gpt-oss:20b")
