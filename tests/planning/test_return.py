"""What a model still has in its cache is read when a conversation returns to it after a long visit to another one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    CacheMark,
    Context,
    Model,
    Options,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    check,
    get_model,
    prepare,
)
from segue.models.origin import new_assistant_message
from segue.requests.outbox import Outbox
from segue.testing.emulator import Emulator, Step

CLAUDE, GPT = get_model("anthropic/claude-sonnet-4-5"), get_model("openai/gpt-5.4")
BEDROCK = get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")
TOOL = ToolDefinition(name="read", description="Read a file.", parameters={"type": "object", "properties": {}})
TEXT = "the test of the module fails on the second run " * 400
OPTIONS = Options(cache_retention="short", max_tokens=1000)


def send(emulator: Emulator, context: Context, model: Model) -> AssistantMessage:
    request = prepare(context, model, options=OPTIONS)
    assert [finding.code for finding in check(request.body, protocol=request.protocol, model=model)] == []
    headers = {**request.headers, "authorization": "Bearer x", "x-api-key": "x"}
    path = urlsplit(request.url).path
    reply = emulator.respond("POST", path, headers, request.content, step=Step(text="It does."))
    assert reply.status == 200, reply.body
    return request.decode(msgspec.json.decode(reply.body))


def visit(context: Context, model: Model, rounds: int) -> Context:
    """Let a model read some files."""
    for number in range(rounds):
        call = ToolCall(id=f"call_{number}", name="read", arguments={})
        text = (TextContent(text=f"line {number}"),)
        result = ToolResultMessage(tool_call_id=call.id, tool_name="read", content=text)
        context = context.add(new_assistant_message(model, content=(call,)), result)
    return context.add(new_assistant_message(model, content=(TextContent(text="Done."),)))


def places(value: Any, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the places of marks in a body."""
    if isinstance(value, dict):
        found = [path] if "cache_control" in value or "cachePoint" in value else []
        return found + [each for key, inner in value.items() for each in places(inner, (*path, key))]
    return (
        [each for at, inner in enumerate(value) for each in places(inner, (*path, at))]
        if isinstance(value, list)
        else []
    )


def start(emulator: Emulator, model: Model) -> Context:
    context = Context(system_prompt=TEXT, tools=(TOOL,), messages=(UserMessage.of(TEXT),))
    return context.add(send(emulator, context, model))


@pytest.mark.parametrize("model", [CLAUDE, BEDROCK])
@pytest.mark.parametrize("rounds", [1, 30])
def test_a_return_reads_the_prefix_of_the_last_visit(model: Model, rounds: int) -> None:
    emulator = Emulator(clock=lambda: 0.0)
    first = start(emulator, model)
    usage = first.messages[-1].usage if first.messages[-1].role == "assistant" else None
    assert usage is not None
    away = visit(first.add(UserMessage.of("Read the files.")), GPT, rounds)
    back = send(emulator, away.add(UserMessage.of("Go on.")), model)
    assert back.usage is not None
    assert back.usage.cache_read == usage.cache_write > 6_000
    again = send(emulator, away.add(UserMessage.of("Go on."), back, UserMessage.of("And then?")), model)
    assert again.usage is not None
    assert again.usage.cache_read == back.usage.cache_read + back.usage.cache_write


def test_many_parallel_calls_of_one_turn_do_not_lose_the_prefix() -> None:
    emulator = Emulator(clock=lambda: 0.0)
    calls = tuple(ToolCall(id=f"toolu_{number}", name="read", arguments={"at": number}) for number in range(15))
    results = [
        ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(TextContent(text="yes"),)) for call in calls
    ]
    context = start(emulator, CLAUDE)
    last = context.messages[-1]
    assert last.role == "assistant"
    context = replace(context, messages=(*context.messages[:-1], replace(last, content=calls))).add(*results)
    usage = send(emulator, context, CLAUDE).usage
    assert usage is not None
    assert usage.cache_read > 6_000


def test_the_marks_are_four_at_most_and_only_where_they_are_needed() -> None:
    first = Context(system_prompt=TEXT, tools=(TOOL,), messages=(UserMessage.of(TEXT),))
    first = first.add(new_assistant_message(CLAUDE, content=(TextContent(text="It does."),)))
    near, far = (visit(first, GPT, rounds).add(UserMessage.of("Go on.")) for rounds in (3, 30))
    marks = [places(prepare(each, CLAUDE, options=OPTIONS).body) for each in (near, far)]
    assert [len(each) for each in marks] == [3, 4]
    assert ("messages", 0, "content", 0) in marks[1]
    # Without the request for marks, for a model that was never asked, and for one without marks, nothing is added.
    assert places(prepare(far, CLAUDE, options=Options(max_tokens=1000)).body) == []
    assert len(places(prepare(far, get_model("anthropic/claude-opus-4-8"), options=OPTIONS).body)) == 3
    assert places(prepare(far, GPT, options=OPTIONS).body) == []


def test_marks_of_the_caller_stay_the_only_ones() -> None:
    first = Context(system_prompt=TEXT, tools=(TOOL,), messages=(UserMessage.of(TEXT),))
    first = first.add(new_assistant_message(CLAUDE, content=(TextContent(text="It does."),)))
    marked = TextContent(text="Go on.", cache_mark=CacheMark())
    own = visit(first, GPT, 30).add(UserMessage(content=(marked,)))
    assert len(places(prepare(own, CLAUDE, options=OPTIONS).body)) == 1


def test_an_outbox_writes_the_same_bytes() -> None:
    outbox, context = Outbox(CLAUDE), Context(system_prompt=TEXT, tools=(TOOL,), messages=(UserMessage.of(TEXT),))
    for rounds in (0, 30, 2, 12, 0):
        assert outbox.prepare(context, options=OPTIONS).content == prepare(context, CLAUDE, options=OPTIONS).content
        context = context.add(new_assistant_message(CLAUDE, content=(TextContent(text="It does."),)))
        context = visit(context, GPT, rounds).add(UserMessage.of("Go on."))
