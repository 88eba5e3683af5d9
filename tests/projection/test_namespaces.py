"""Functions in namespaces, and deferred ones, at targets with and without namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from projection.building import GEMINI, GPT, GPT_NEXT, SONNET, assistant, call, result, user
from segue import check, convert, decode_request, decode_response, prepare
from segue.conversation.context import Context
from segue.models.model import Model
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode
from segue.requests.outbox import Outbox

P = "openai-responses"
GROK = Model("grok-4", "xai", P)
OBJECT = {"type": "object", "properties": {}}


def function(name: str, **fields: object) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "d", "parameters": OBJECT, "strict": False, **fields}


def namespace(name: str, *functions: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": f"About {name}.", "tools": list(functions)}


CRM = namespace("crm", function("find"), function("merge"))
DOCS = namespace("docs", function("find"))


def item(name: str, call_id: str, **fields: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **fields}


def output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def body(*tools: dict[str, Any], items: tuple[dict[str, Any], ...] = (), model: str = "gpt-5.4") -> dict[str, Any]:
    return {"model": model, "input": [{"role": "user", "content": "hi"}, *items], "tools": list(tools)}


CALLED = (item("merge", "c1", id="fc_1", namespace="crm"), output("c1"))


@pytest.mark.parametrize(
    "target", [SONNET, GEMINI, GROK, Model("gpt-4o", "openai", "openai-chat")], ids=Model.full_name
)
def test_functions_and_their_calls_have_the_same_name(target):
    request = convert(body(CRM, DOCS, items=CALLED), source=P, target=target)
    tools = [tool.name for tool in request.projection.context.tools if tool.kind == "function"]
    assert tools == ["crm__find", "crm__merge", "docs__find"]
    turn, answer = request.projection.context.messages[1:]
    assert [one.name for one in turn.tool_calls()] == ["crm__merge"]  # pyright: ignore[reportAttributeAccessIssue]
    assert answer.tool_name == "crm__merge"  # pyright: ignore[reportAttributeAccessIssue]
    assert request.tool_names == {"crm__find": "crm.find", "crm__merge": "merge", "docs__find": "docs.find"}
    assert [change.path for change in request.report.of(ChangeCode.NAMESPACE_FLATTENED)][:2] == [
        ("tools", 0),
        ("tools",),
    ]
    assert request.report.of(ChangeCode.TOOL_REMOVED) == ()
    assert check(request.body, protocol=target.protocol, model=target) == []


def test_a_description_of_the_namespace_is_part_of_each_function():
    [tool] = convert(body(namespace("crm", function("find"))), source=P, target=SONNET).body["tools"]
    assert tool["description"] == "About crm.\n\nd"


def test_a_reply_of_another_model_is_sent_back_with_its_namespace():
    prompt = decode_request(body(CRM, DOCS, items=CALLED), protocol=P)
    request = prepare(prompt.context, SONNET)
    blocks = [
        {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in ("crm__merge", "docs__find")
    ]
    reply = request.decode({"type": "message", "role": "assistant", "content": blocks, "model": SONNET.id})
    assert [one.name for one in reply.tool_calls()] == ["merge", "docs.find"]
    results = [result(one.id, name=one.name) for one in reply.tool_calls()]
    longer = prompt.context.add(reply, *results)
    sent = prepare(longer, GPT).body
    calls = [(one["name"], one.get("namespace")) for one in sent["input"] if one.get("type") == "function_call"]
    assert calls == [("merge", "crm"), ("merge", "crm"), ("find", "docs")]
    assert check(sent, protocol=P, model=GPT) == []
    back = prepare(longer, SONNET).body
    names = [block["name"] for turn in back["messages"] for block in turn["content"] if block["type"] == "tool_use"]
    assert names == ["crm__merge", "crm__merge", "docs__find"]


def test_another_model_of_the_provider_gets_the_namespace_too():
    request = convert(body(CRM, items=CALLED), source=P, target=GPT_NEXT)
    [one] = [one for one in request.body["input"] if one.get("type") == "function_call"]
    assert (one["name"], one["namespace"]) == ("merge", "crm")
    assert "id" not in one
    again = project(request.projection.context, GPT_NEXT)
    assert again.report.changes == ()


def test_a_call_without_its_namespace_is_found():
    lost = body(CRM, items=(item("merge", "c1"), output("c1")))
    assert [(found.code, found.path) for found in check(lost, protocol=P, model=GPT)] == [
        ("namespace_missing", ("input", 1, "namespace"))
    ]
    assert check(body(CRM, items=CALLED), protocol=P, model=GPT) == []
    assert check(body(CRM, function("merge"), items=(item("merge", "c1"), output("c1"))), protocol=P, model=GPT) == []


def test_a_name_that_is_taken_stays_unique():
    request = convert(body(CRM, function("crm__find")), source=P, target=SONNET)
    names = [tool["name"] for tool in request.body["tools"]]
    assert len(set(names)) == len(names) == 3
    assert set(request.tool_names) >= {name for name in names if name not in ("crm__find", "crm__merge")}


DEFERRED = function("rate", defer_loading=True)
LOADED = (item("rate", "c1", id="fc_1", namespace="rate"), output("c1"))


def test_a_deferred_function_that_another_model_called_is_sent_in_full():
    tools = decode_request(body({"type": "tool_search"}, DEFERRED, function("other", defer_loading=True)), protocol=P)
    context = tools.context.add(assistant(SONNET, call("a", "rate")), result("a", name="rate"))
    request = prepare(context, GPT)
    sent = {tool.get("name"): tool for tool in request.body["tools"]}
    assert "defer_loading" not in sent["rate"]
    assert sent["other"]["defer_loading"] is True
    assert [change.path for change in request.report.of(ChangeCode.TOOL_LOADED)] == [("tools", 1)]


def test_a_deferred_function_in_a_namespace_that_another_model_called_is_sent_in_full():
    space = namespace("crm", function("find", defer_loading=True), function("merge", defer_loading=True))
    context = decode_request(body({"type": "tool_search"}, space), protocol=P).context
    context = context.add(assistant(SONNET, call("a", "find")), result("a", name="find"))
    request = prepare(context, GPT)
    inner = request.body["tools"][1]["tools"]
    assert ["defer_loading" in tool for tool in inner] == [False, True]
    assert request.body["input"][1]["namespace"] == "crm"


def test_the_model_that_found_a_deferred_function_gets_its_call_unchanged():
    given = body({"type": "tool_search"}, DEFERRED, items=LOADED)
    request = convert(given, source=P, target=GPT, source_model=GPT)
    assert request.body["tools"][1]["defer_loading"] is True
    assert request.body["input"][1]["namespace"] == "rate"
    assert request.report.changes == ()


def test_the_call_of_a_deferred_function_keeps_its_name_elsewhere():
    request = convert(body({"type": "tool_search"}, DEFERRED, items=LOADED), source=P, target=SONNET)
    assert [tool["name"] for tool in request.body["tools"]] == ["rate"]
    assert request.body["messages"][1]["content"][0]["name"] == "rate"


def test_a_growing_conversation_gives_the_same_names_as_the_whole():
    context = decode_request(body(CRM, DOCS, items=CALLED), protocol=P).context
    later = decode_request(body(namespace("crm", function("merge"))), protocol=P).context
    for target in (SONNET, GPT, GPT_NEXT):
        projector, outbox = Projector(target), Outbox(target)
        grown = context
        for turn in range(4):
            more = assistant(SONNET, call(f"a{turn}", "merge"))
            grown = grown.add(more, result(f"a{turn}", name="merge"), user("go on"))
            assert projector.project(grown) == project(grown, target)
            assert outbox.prepare(grown).content == prepare(grown, target).content
        fewer = Context(messages=grown.messages, tools=later.tools)
        assert projector.project(fewer) == project(fewer, target)
        assert outbox.prepare(fewer).content == prepare(fewer, target).content


def test_a_reply_with_a_namespace_is_read_and_sent_back():
    reply = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.4", "output": [CALLED[0]]}
    message = decode_response(reply, protocol=P, model=GPT)
    context = decode_request(body(CRM), protocol=P).context.add(message, result("c1", name="merge"))
    assert prepare(context, GPT).body["input"][1] == CALLED[0]


def test_a_call_that_only_gets_its_namespace_is_reported_where_it_stands():
    prompt = decode_request(body(CRM), protocol=P)
    messages = (user("hi"), assistant(SONNET, call("c1", name="merge")), result("c1", name="merge"))
    projection = project(Context(messages=messages, tools=prompt.context.tools), GPT)
    [change] = projection.report.of(ChangeCode.NAME_CHANGED)
    assert change.path == ("messages", 1, "content", 0, "extra")
    assert change.detail == "merge of crm"


def test_the_new_name_of_a_result_is_reported_too():
    report = convert(body(CRM, items=CALLED), source=P, target=SONNET).report
    changed = [change.path[2:] for change in report.of(ChangeCode.NAME_CHANGED) if change.path[0] == "messages"]
    assert changed == [("content", 0, "name"), ("tool_name",)]
