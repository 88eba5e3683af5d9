"""What the conformance tests do not ask for: provider state, switches of model, fallbacks, the sum of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_segue import ChatSegue
from pydantic import BaseModel

from segue import RequestFailed
from segue.testing.emulator import EmulatorServer, emulate

MODELS = (
    "anthropic/claude-opus-5-5",
    "openai/gpt-5.4",
    "google/gemini-3.1-pro-preview",
    "deepseek/deepseek-v4-pro",
)
CALL = {"name": "look", "arguments": {"at": "sky"}}
STEP = {"thinking": "I have to look.", "text": "Let me see.", "calls": [CALL]}


def look(at: str) -> str:
    """Look at something."""
    return f"{at}: blue"


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with emulate() as running:
        yield running


def make(server: EmulatorServer, model: str, **fields: Any) -> ChatSegue:
    names = [model, *fields.get("fallbacks", ())]
    by_provider = {name.partition("/")[0]: server.url for name in names}
    keys = dict.fromkeys(by_provider, "any")
    return ChatSegue(model=model, api_key=keys, base_url=by_provider, max_tokens=2000, max_retries=0, **fields)


def ask(model: ChatSegue, messages: list[BaseMessage], way: str) -> BaseMessage:
    bound = model.bind_tools([look])
    if way == "invoke":
        return bound.invoke(messages)
    if way == "ainvoke":
        return asyncio.run(bound.ainvoke(messages))
    whole = None
    if way == "stream":
        for chunk in bound.stream(messages):
            whole = chunk if whole is None else whole + chunk
        return whole

    async def read() -> BaseMessage:
        found = None
        async for each in bound.astream(messages):
            found = each if found is None else found + each
        return found

    return asyncio.run(read())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_reasoning_comes_back_with_the_next_request_and_is_accepted(server, name, way):
    """The emulator signs reasoning, and refuses or drops what is not the one that it made."""
    server.emulator.script.add(STEP)
    model = make(server, name, thinking="low")
    start = [HumanMessage("What colour is the sky?")]
    reply = ask(model, start, way)
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("look", {"at": "sky"})]
    assert reply.usage_metadata["input_tokens"] > 0
    stored = messages_from_dict(messages_to_dict([*start, reply]))  # as a checkpoint stores it
    result = ToolMessage("blue", tool_call_id=reply.tool_calls[0]["id"])
    ask(model, [*stored, result, HumanMessage("And the sea?")], "invoke")
    first, second = server.emulator.requests
    assert (first.refusal, second.refusal) == (None, None)
    signatures = [each["extras"]["signature"] for each in reply.content if "signature" in each.get("extras", {})]
    assert signatures
    assert server.emulator.withheld(second, signatures) == ()
    if name.startswith(("anthropic", "google")):  # elsewhere, a signature is the fields of an item
        assert all(each in str(second.body) for each in signatures)


@pytest.mark.parametrize("name", MODELS[:3])
def test_the_sum_of_a_stream_is_the_message_of_a_whole_reply(server, name):
    server.emulator.script.add(STEP, STEP)
    model = make(server, name, thinking="low")
    whole, summed = (ask(model, [HumanMessage("Hi")], way) for way in ("invoke", "stream"))

    def shown(message: BaseMessage) -> Any:
        left_out = {"index", "id"}
        blocks = [{key: value for key, value in block.items() if key not in left_out} for block in message.content]
        return [{**block, "extras": sorted(block.get("extras", {}))} for block in blocks]

    assert shown(summed) == shown(whole)
    assert summed.response_metadata.keys() == whole.response_metadata.keys()


@pytest.mark.parametrize("after", [name for name in MODELS if not name.startswith("anthropic")])
def test_a_switch_of_model_and_back_keeps_the_signature_of_the_first(server, after):
    server.emulator.script.add(STEP)
    first, second = make(server, MODELS[0], thinking="low"), make(server, after)
    messages: list[BaseMessage] = [HumanMessage("What colour is the sky?")]
    reply = ask(first, messages, "stream")
    messages += [reply, ToolMessage("blue", tool_call_id=reply.tool_calls[0]["id"]), HumanMessage("And the sea?")]
    messages += [ask(second, messages, "stream"), HumanMessage("And the grass?")]
    ask(first, messages, "invoke")
    assert [each.refusal for each in server.emulator.requests] == [None, None, None]
    signature = reply.content[0]["extras"]["signature"]
    assert signature not in str(server.emulator.requests[1].body)
    assert signature in str(server.emulator.requests[2].body)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_fallback_gets_the_history_projected_for_it(server, way):
    server.emulator.script.add(STEP)
    messages: list[BaseMessage] = [HumanMessage("What colour is the sky?")]
    reply = ask(make(server, MODELS[0], thinking="low"), messages, "invoke")
    messages += [reply, ToolMessage("blue", tool_call_id=reply.tool_calls[0]["id"]), HumanMessage("And the sea?")]
    server.emulator.script.add({"status": 529, "model": "claude-opus-5-5"})
    answer = ask(make(server, MODELS[0], fallbacks=[MODELS[1]]), messages, way)
    assert answer.response_metadata["model_name"] == "gpt-5.4"
    assert answer.text == "You wrote: And the sea?"
    assert server.emulator.requests[-1].refusal is None


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_failure_is_raised(server, way):
    server.emulator.script.add({"status": 400, "message": "no"})
    with pytest.raises(RequestFailed):
        ask(make(server, MODELS[1]), [HumanMessage("Hi")], way)


def test_a_cut_stream_is_raised_behind_what_arrived(server):
    server.emulator.script.add({"text": "one two three four", "cut-after": 4})
    seen = []
    with pytest.raises(RequestFailed):  # noqa: PT012 - the loop is the point
        for chunk in make(server, MODELS[0]).stream("Hi"):
            seen.append(chunk.text)  # noqa: PERF401 - what was seen before the failure counts
    assert "".join(seen).startswith("one ")


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("any", {"type": "any"}),
        (True, {"type": "any"}),
        ("none", {"type": "none"}),
        ("look", {"type": "tool", "name": "look"}),
        ({"type": "function", "function": {"name": "look"}}, {"type": "tool", "name": "look"}),
        ({"type": "tool", "name": "look"}, {"type": "tool", "name": "look"}),
        ({"type": "any"}, {"type": "any"}),
    ],
    ids=str,
)
def test_tool_choices(server, given, sent):
    make(server, "anthropic/claude-opus-4-8").bind_tools([look], tool_choice=given).invoke("Hi")
    assert server.emulator.requests[0].body["tool_choice"] == sent


def test_tools_of_the_provider_are_sent_as_they_are(server):
    search = {"type": "web_search_20250305", "name": "web_search"}
    make(server, "anthropic/claude-opus-4-8").bind_tools([search, look]).invoke("Hi")
    assert server.emulator.requests[0].body["tools"][0] == search


class Colour(BaseModel):
    """A colour."""

    name: str


@pytest.mark.parametrize("name", MODELS[:3])
def test_structured_output_by_the_schema_of_the_provider(server, name):
    server.emulator.script.add({"text": '{"name": "blue"}'}, {"text": "no JSON"})
    model = make(server, name).with_structured_output(Colour, method="json_schema", include_raw=True)
    assert model.invoke("Hi")["parsed"] == Colour(name="blue")
    failed = model.invoke("Hi")
    assert failed["parsed"] is None
    assert failed["parsing_error"] is not None


def test_an_unknown_argument_is_refused_with_the_known_ones(server):
    with pytest.raises(TypeError, match=r"unexpected argument 'temperatur'.*temperature"):
        make(server, MODELS[0]).invoke("Hi", temperatur=1)


def test_no_secret_is_shown():
    model = ChatSegue(model=MODELS[0], api_key="sk-secret", settings={"headers": {"x-key": "sk-secret"}})
    assert "sk-secret" not in repr(model) + str(model.model_dump()) + str(model.dict())
