"""A tool that takes one text keeps its form between OpenAI's wires, with its calls; other wires get a function."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from segue import Model, ToolCall, convert, decode_request, encode_request, project_reply
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import decode_response, encode_response

CHAT: Final = Model("gpt-5.4", "openai", "openai-chat")
RESPONSES: Final = Model("gpt-5.4", "openai", "openai-responses")
GRAMMAR: Final = {"syntax": "lark", "definition": "start: /.+/"}
FORMATS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"format": {"type": "text"}},
    {"format": {"type": "grammar", "grammar": GRAMMAR}},
)


def chat_body(form: dict[str, Any]) -> dict[str, Any]:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    return {
        "model": "gpt-5.4",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
            {"role": "user", "content": "Go on"},
        ],
        "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Patches.", **form}}],
        "tool_choice": {"type": "custom", "custom": {"name": "patch"}},
    }


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_freeform_tool_keeps_its_form_between_the_wires_of_openai(form: dict[str, Any]):
    body = chat_body(form)
    there = convert(body, source="openai-chat", target=RESPONSES)
    flat = {"type": "grammar", **GRAMMAR} if form.get("format", {}).get("type") == "grammar" else form.get("format")
    wanted = {"type": "custom", "name": "patch", "description": "Patches."}
    assert there.body["tools"] == [wanted | ({"format": flat} if flat else {})]
    assert there.body["tool_choice"] == {"type": "custom", "name": "patch"}
    items = [(item.get("type"), item.get("input"), item.get("output")) for item in there.body["input"]]
    assert items[1:3] == [("custom_tool_call", "*** Begin", None), ("custom_tool_call_output", None, "ok")]
    assert not there.report.changes
    given = {key: value for key, value in there.body.items() if key not in ("include", "store")}
    back = convert(given, source="openai-responses", target=CHAT)
    assert {key: back.body[key] for key in body} == body
    assert not back.report.changes


@pytest.mark.parametrize(
    "name", ["anthropic/claude-sonnet-4-5", "groq/llama-3.3-70b-versatile", "mistral/mistral-medium-latest"]
)
@pytest.mark.parametrize("source", ["openai-chat", "openai-responses"])
def test_a_freeform_tool_is_a_function_with_a_text_elsewhere_and_this_is_reported(source: str, name: str):
    body = chat_body({})
    if source == "openai-responses":
        body = dict(convert(body, source="openai-chat", target=RESPONSES).body)
    request = convert(body, source=source, target=name)
    tool = request.body["tools"][0]
    assert "custom" not in str(request.body)
    assert '"input"' in str(tool).replace("'", '"')
    told = [(one.code, one.loss) for one in request.report.changes if one.path == ("tools", 0)]
    assert (ChangeCode.TOOL_SCHEMA, Loss.CONTENT) in told


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_freeform_tool_of_chat_comes_out_as_it_was(form: dict[str, Any]):
    for choice in (
        {"type": "custom", "custom": {"name": "patch"}},
        {"type": "function", "function": {"name": "patch"}},
    ):
        body = {**chat_body(form), "tool_choice": choice}
        given = copy.deepcopy(body)
        prompt = decode_request(body, protocol="openai-chat", model=CHAT)
        assert encode_request(prompt, protocol="openai-chat", model=CHAT) == given


def reply_of(model: Model) -> dict[str, Any]:
    if model is CHAT:
        call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "*** Begin"}
    return {"id": "r", "object": "response", "status": "completed", "output": [item]}


@pytest.mark.parametrize(("source", "client"), [(CHAT, RESPONSES), (RESPONSES, CHAT)], ids=["chat", "responses"])
def test_a_call_of_a_freeform_tool_is_shown_in_the_form_of_the_client(source: Model, client: Model):
    asked = chat_body({})
    if client is RESPONSES:
        asked = dict(convert(asked, source="openai-chat", target=RESPONSES).body)
    tools = decode_request(asked, protocol=client.protocol, model=client).context.tools
    reply = decode_response(reply_of(source), protocol=source.protocol, model=source)
    shown = project_reply(reply, protocol=client.protocol, model=client, tools=tools).message
    assert [piece.arguments for piece in shown.content if isinstance(piece, ToolCall)] == [{"input": "*** Begin"}]
    written = encode_response(shown, protocol=client.protocol, model=client)
    if client is CHAT:
        assert (
            written["choices"][0]["message"]["tool_calls"][0]
            == reply_of(CHAT)["choices"][0]["message"]["tool_calls"][0]
        )
    else:
        item = written["output"][0]
        assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")
