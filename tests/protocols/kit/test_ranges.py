"""`check` finds numbers and stop texts out of range in bodies that were not projected."""

from __future__ import annotations

import pytest

from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import UserMessage
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol

TARGETS = {
    "anthropic-messages": Model("claude-sonnet-4-5", "anthropic", "anthropic-messages"),
    "openai-chat": Model("gpt-4o", "openai", "openai-chat"),
    "openai-responses": Model("gpt-4.1", "openai", "openai-responses"),
    "google-genai": Model("gemini-2.5-flash", "google", "google-genai"),
    "bedrock-converse": Model("amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse"),
    "mistral-chat": Model("mistral-large-latest", "mistral", "mistral-chat"),
    "cohere-chat": Model("command-a", "cohere", "cohere-chat"),
}
NAMED = {
    "a temperature that is too high": (Options(temperature=9.0), TARGETS.keys()),
    "a top_p above one": (Options(top_p=1.5), TARGETS.keys()),
    "a top_p of zero": (Options(top_p=0.0), {"cohere-chat", "mistral-chat"}),
    "a negative number of tokens": (Options(max_tokens=-5), TARGETS.keys()),
    "an empty stop": (Options(stop=("",)), {"anthropic-messages", "bedrock-converse"}),
    "a blank stop": (Options(stop=("\n",)), {"anthropic-messages"}),
}


def is_possible(protocol: str, options: Options) -> bool:
    return not (protocol == "openai-responses" and options.stop)  # it has no such parameter


@pytest.mark.parametrize(
    ("protocol", "case"),
    [(protocol, case) for case in NAMED for protocol in TARGETS if is_possible(protocol, NAMED[case][0])],
)
def test_a_value_out_of_range_is_a_violation_where_it_is_refused(protocol, case):
    options, protocols = NAMED[case]
    codec, endpoint = get_protocol(protocol), resolve_endpoint(TARGETS[protocol])
    prompt = Prompt(context=Context(messages=(UserMessage.of("hello"),)), options=options)
    found = codec.check(codec.encode_request(prompt, endpoint), endpoint)
    assert len(found) == (protocol in protocols), found


def test_a_local_server_accepts_no_limit():
    endpoint = resolve_endpoint(Model("qwen3", "lmstudio", "openai-chat"))
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "hello"}], "max_tokens": -1}
    assert get_protocol("openai-chat").check(body, endpoint) == []
