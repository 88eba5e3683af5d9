"""The context of a document: text that the model reads with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from projection.histories import PDF
from segue.conversation.content import FileContent, TextContent
from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import project
from segue.protocols.api import check, decode_request, encode_request
from segue.requests.prepare import convert, prepare

KINDS = ("text", "image", "document")
CLAUDE = Model("claude-opus-4-8", "anthropic", "anthropic-messages", input=KINDS)
BEDROCK = Model("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "bedrock-converse", input=KINDS)
GPT = Model("gpt-5", "openai", "openai-responses", input=KINDS)
CHAT = Model("gpt-5", "openai", "openai-chat", input=KINDS)
GEMINI = Model("gemini-2.5-flash", "google", "google-genai", input=KINDS)
OLLAMA = Model("qwen3", "ollama", "ollama-chat")

DOCUMENT = {"format": "pdf", "name": "a", "source": {"bytes": PDF}, "context": "From the archive."}
BODIES = {
    "bedrock-converse": {"messages": [{"role": "user", "content": [{"text": "see"}, {"document": DOCUMENT}]}]},
    "anthropic-messages": {
        "model": "m",
        "max_tokens": 99,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                        "title": "a",
                        "context": "From the archive.",
                    },
                ],
            }
        ],
    },
}
FILE = FileContent(data=PDF, mime_type="application/pdf", name="a", context="From the archive.")


@pytest.mark.parametrize("protocol", BODIES)
def test_a_context_is_read_and_sent_where_the_target_has_it(protocol):
    body = BODIES[protocol]
    prompt = decode_request(body, protocol=protocol)
    assert prompt.context.messages[0].content[1] == FILE
    assert encode_request(prompt, protocol=protocol) == body
    for model in (CLAUDE, BEDROCK):
        request = convert(body, source=protocol, target=model)
        assert request.body["messages"][0]["content"][1] == BODIES[model.protocol]["messages"][0]["content"][1]
        assert request.report.lossless


@pytest.mark.parametrize("model", [GPT, CHAT, GEMINI, OLLAMA], ids=lambda model: model.protocol)
def test_a_context_becomes_text_elsewhere(model):
    context = Context(messages=(UserMessage.of("see", FILE),))
    projection = project(context, model)
    content = projection.context.messages[0].content
    assert content[1] == TextContent(text="From the archive.")
    assert content[2] == replace(FILE, context=None) or model is OLLAMA
    assert "file_context_as_text" in [change.code for change in projection.report.changes]
    assert check(prepare(context, model).body, protocol=model.protocol, model=model) == []


def test_a_file_that_the_policy_supplies_has_the_context_of_the_given_one():
    given = FileContent(file_id="file-1", mime_type="application/pdf", context="From the archive.")
    policy = Policy(media={"file-1": replace(FILE, context=None)})
    sent = project(Context(messages=(UserMessage.of("see", given),)), BEDROCK, policy=policy).context
    assert sent.messages[0].content[1] == FILE


def test_an_empty_context_is_only_format():
    body = {"messages": [{"role": "user", "content": [{"text": "see"}, {"document": {**DOCUMENT, "context": ""}}]}]}
    prompt = decode_request(body, protocol="bedrock-converse")
    assert prompt.context.messages[0].content[1].context is None  # pyright: ignore[reportAttributeAccessIssue]
    assert encode_request(prompt, protocol="bedrock-converse") == body
