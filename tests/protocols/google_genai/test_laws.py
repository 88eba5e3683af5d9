"""Laws of this protocol beyond those of all protocols, and the failures that it decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, ugly_contexts
from property_testing import scaled_examples
from protocols.every_protocol import without_fields
from protocols.google_genai.endpoints import NEWER, OLDER
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import EmptyConversation
from segue.protocols.api import resolve_endpoint
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare


def texts_first(context: Context) -> Context:
    """Give results with their texts before their media, the one order that the protocol does not keep, and signatures
    on the model's content only."""

    def plain(message):
        if message.role == "assistant":
            return message
        bare = [replace(p, text_signature=None) if p.kind == "text" else p for p in message.content]
        if message.role == "toolResult":
            bare.sort(key=lambda piece: piece.kind != "text")
        return replace(message, content=tuple(bare))

    prompt = context.system_prompt
    if isinstance(prompt, tuple):
        prompt = tuple(replace(p, text_signature=None) if p.kind == "text" else p for p in prompt)
    return replace(context, system_prompt=prompt, messages=tuple(plain(message) for message in context.messages))


@scaled_examples(1.5)
@given(data=st.data())
def test_a_projected_request_holds_every_piece_of_the_history(data):
    model = data.draw(st.sampled_from(TARGETS["google-genai"]))
    try:
        request = prepare(data.draw(ugly_contexts(model)), model)
    except EmptyConversation:
        return
    read = CODEC.decode_request(request.body, resolve_endpoint(model)).context
    forgets = (CODEC.not_carried - {"pieces"}) | {"extra"}
    sent = texts_first(request.projection.context)
    assert without_fields(texts_first(read), forgets) == without_fields(sent, forgets)


# -- failures ----------------------------------------------------------------------------------------------------------


def turn(*content, writer=NEWER.model, stop=StopReason.TOOL_USE):
    return AssistantMessage(
        content=content, protocol=writer.protocol, provider=writer.provider, model=writer.id, stop_reason=stop
    )


def result(call_id, text="ok", name=""):
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=(TextContent(text=text),))


CLAUDE = replace(NEWER.model, id="claude-opus-4-8", provider="anthropic", protocol="anthropic-messages")
SKIP = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


def parts(*messages, endpoint=NEWER) -> list[list[dict[str, Any]]]:
    body: Any = prepare(Context(messages=messages), endpoint.model).body
    assert CODEC.check(body, endpoint) == []
    return [content["parts"] for content in body["contents"]]


def test_every_foreign_step_gets_the_placeholder_on_its_first_call_beside_it():
    """Without it: `Function call is missing a thought_signature in functionCall parts` (litellm #16893)."""
    sent_parts = parts(
        UserMessage.of("hi"),
        turn(ToolCall(id="a", name="f"), ToolCall(id="b", name="f"), writer=CLAUDE),
        result("a"),
        result("b"),
        turn(ToolCall(id="c", name="f"), writer=CLAUDE),
        result("c"),
    )
    signatures = [[part.get("thoughtSignature") for part in sent_parts[at]] for at in (1, 3)]
    assert signatures == [[SKIP, None], [SKIP]]
    assert all("thoughtSignature" not in part["functionCall"] for part in sent_parts[1])  # claude-relay #967


def test_an_own_signature_is_sent_back_on_its_own_part():
    own = (
        ThinkingContent(thinking="hm"),
        TextContent(text="so", text_signature="dGV4dA=="),
        ToolCall(id="a", name="f", thought_signature="Y2FsbA=="),
        TextContent(text="", text_signature="bGF0ZQ=="),
    )
    sent_parts = parts(UserMessage.of("hi"), turn(*own), result("a"))
    assert sent_parts[1] == [
        {"text": "hm", "thought": True},
        {"text": "so", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "Y2FsbA=="},
        {"text": "", "thoughtSignature": "bGF0ZQ=="},
    ]


def test_no_foreign_signature_is_sent():
    """It would be answered with `Corrupted thought signature.` (9router #4136, CLIProxyAPI #994)."""
    sent_parts = parts(
        UserMessage.of("hi"),
        turn(
            ThinkingContent(thinking="hm", thinking_signature="claude-signature"),
            TextContent(text="so", text_signature="claude-signature"),
            ToolCall(id="a", name="f", thought_signature="claude-signature"),
            writer=CLAUDE,
        ),
        result("a"),
    )
    assert "claude-signature" not in str(sent_parts)


@pytest.mark.parametrize("endpoint", [OLDER, NEWER], ids=["an older model", "a newer one"])
def test_results_come_once_for_each_call_in_order_and_alone(endpoint):
    """Else: `number of function response parts is equal to the number of function call parts` (gemini-cli #4217)."""
    sent_parts = parts(
        UserMessage.of("hi"),
        turn(ToolCall(id="a", name="f"), ToolCall(id="b", name="g"), ToolCall(id="c", name="f"), writer=CLAUDE),
        UserMessage.of("wait"),
        result("b", "two"),
        result("a", "one"),
        endpoint=endpoint,
    )
    answers = [part["functionResponse"] for part in sent_parts[2]]
    assert [(answer["id"], answer["name"]) for answer in answers] == [("a", "f"), ("b", "g"), ("c", "f")]
    assert answers[2]["response"] == {"error": "No result provided"}
    assert sent_parts[3] == [{"text": "wait"}]


def test_an_older_model_gets_the_picture_of_a_result_behind_all_results():
    image = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
    history = (
        UserMessage.of("hi"),
        turn(ToolCall(id="a", name="f"), ToolCall(id="b", name="f"), writer=CLAUDE),
        ToolResultMessage(tool_call_id="a", tool_name="f", content=(TextContent(text="see"), image)),
        result("b"),
    )
    older, newer = parts(*history, endpoint=OLDER), parts(*history, endpoint=NEWER)
    assert [list(part) for part in older[2]] == [["functionResponse"], ["functionResponse"]]
    assert older[3][-1] == {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert newer[2][0]["functionResponse"]["parts"] == [older[3][-1]]


def test_a_history_that_begins_with_a_call_gets_a_users_turn_before_it():
    """Else: `function call turn comes immediately after a user turn` (gemini-cli #11814)."""
    sent_parts = parts(turn(ToolCall(id="a", name="f"), writer=CLAUDE), result("a"))
    assert list(sent_parts[0][0]) == ["text"]
