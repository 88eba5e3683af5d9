"""The endpoints of the tests: models of this wire, resolved."""

from __future__ import annotations

from functools import lru_cache

from protocols.every_protocol import find_model
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint


@lru_cache
def endpoint_of(model_id: str) -> Endpoint:
    """Give the endpoint of a model: the catalogue's entry if there is one, else one of one's own."""
    model = find_model(model_id, "amazon-bedrock") or Model(model_id, "amazon-bedrock", "bedrock-converse")
    return resolve_endpoint(model)


SONNET = endpoint_of("anthropic.claude-sonnet-4-5-20250929-v1:0")
OPUS = endpoint_of("anthropic.claude-opus-4-8")
SONNET_3 = endpoint_of("us.anthropic.claude-3-7-sonnet-20250219-v1:0")
NOVA = endpoint_of("amazon.nova-pro-v1:0")
NOVA_2 = endpoint_of("us.amazon.nova-2-lite-v1:0")
LLAMA = endpoint_of("us.meta.llama3-3-70b-instruct-v1:0")
KIMI = endpoint_of("moonshot.kimi-k2-thinking")
OSS = endpoint_of("openai.gpt-oss-120b-1:0")
GPT = endpoint_of("openai.gpt-5.4")
DEEPSEEK = endpoint_of("deepseek.v3.2")
ANYONE = endpoint_of("somebody.new-model-v1:0")
