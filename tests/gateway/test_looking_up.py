"""Look-ups of a model through the gateway: answered there, never seen by the client, counted for its key."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from gateway.running import Running, running
from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.events import (
    DoneEvent,
    Event,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.conversation.messages import AssistantMessage, StopReason, UserMessage
from segue.conversation.replayed import message_events
from segue.gateway.looking_up import LookUps
from segue.models.catalogue import get_model
from segue.requests.prepare import prepare
from segue.testing.emulator import EmulatedCall, Step

FACT = "The harbour master of Grimsund is called Tordis Falkanger."
WORDS = ("ferry", "timber", "ledger", "granite", "signal", "anchor", "market", "winter", "copper", "meadow")
ASK = EmulatedCall(name="recall", arguments={"query": "harbour master Grimsund"})
READ = EmulatedCall(name="read", arguments={"n": 1})
DONE = Step(text="Tordis Falkanger.")
ROUTE = '[models."small"]\ntry = ["openai/gpt-4"]\nfit = true\n'
OFF = f"{ROUTE}recall = false\n"
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def _texts() -> list[str]:
    """The texts of users and replies, in turn: more than the window of GPT-4 has; the fact is far back."""
    chance = random.Random(5)
    filler = [" ".join(chance.choice(WORDS) for _ in range(180)) for _ in range(60)]
    filler[5] = f"{filler[5]}\n{FACT}\n{filler[6]}"
    return [*filler, "Who is the harbour master?"]


TEXTS = _texts()


def body_of(wire: str, texts: list[str], *, stream: bool = False) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body: dict[str, Any] = {"model": "small", "stream": stream}
    match wire:
        case "chat":
            tools = [{"type": "function", "function": {"name": "read", "parameters": schema}}]
            return {**body, "messages": messages, "tools": tools}
        case "messages":
            tools = [{"name": "read", "input_schema": schema}]
            return {**body, "messages": messages, "tools": tools, "max_tokens": 500}
        case _:
            tools = [{"type": "function", "name": "read", "parameters": schema}]
            return {**body, "input": messages, "tools": tools}


def ask(gateway: Running, wire: str, *, stream: bool = False, texts: list[str] | None = None) -> httpx2.Response:
    body = body_of(wire, texts or TEXTS, stream=stream)
    with httpx2.Client(timeout=60) as client:
        return client.post(gateway.url + PATHS[wire], json=body, headers={"x-session-id": f"{wire} {stream}"})


def sent(gateway: Running) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", request.body) for request in gateway.upstream.emulator.requests]


def row_of(gateway: Running, response: httpx2.Response) -> dict[str, Any]:
    url = f"{gateway.url}/segue/requests/{response.headers['x-segue-request-id']}"
    with httpx2.Client(timeout=30) as client:
        for _ in range(1000):  # the row is written after the reply
            if (reply := client.get(url)).status_code == 200:
                return cast("dict[str, Any]", reply.json())
    raise AssertionError("the request has no row")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize(
    "first", [Step(calls=(ASK,)), Step(text="Let me see.", calls=(ASK,))], ids=["alone", "after a text"]
)
def test_the_client_gets_one_reply_and_never_sees_the_look_up(
    first: Step, wire: str, stream: bool, tmp_path: Path
) -> None:
    with running(first, DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        response = ask(gateway, wire, stream=stream)
        assert response.status_code == 200, response.text
        assert "Tordis Falkanger." in response.text.replace('"}}\n\ndata', "").replace("\\n", "") or stream
        assert "recall" not in response.text
        assert FACT not in response.text
        bodies = sent(gateway)
        assert len(bodies) == 2
        assert FACT not in json.dumps(bodies[0])
        assert FACT in json.dumps(bodies[1]), "the look-up is answered"
        names = [(tool.get("function") or tool)["name"] for tool in bodies[0]["tools"]]
        assert names == ["read", "recall"]
        assert bodies[0]["tools"] == bodies[1]["tools"]
        row = row_of(gateway, response)
        assert row["outcome"] == "done"
        assert len(row["attempts"]) == 2
        assert "looked up" in " ".join(row["notes"])
        assert row["spent"]["totalTokens"] > row["usage"]["totalTokens"], "both requests are counted"
        if stream:
            assert response.text.count("[DONE]" if wire == "chat" else '"type":"message_start"') <= 1


@pytest.mark.parametrize("wire", PATHS)
def test_what_the_client_returns_continues_the_conversation(wire: str, tmp_path: Path) -> None:
    with running(Step(calls=(ASK,)), DONE, DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        assert ask(gateway, wire).status_code == 200
        again = ask(gateway, wire, texts=[*TEXTS, "Tordis Falkanger.", "Thanks."])
        assert again.status_code == 200, again.text
        first, _, third = sent(gateway)
        assert third["tools"] == first["tools"], "the tool stays"
        key = "messages" if "messages" in first else "input"
        assert third[key][: len(first[key])] == first[key], "what was sent before is not changed"


def test_it_is_off_where_the_route_says_so_or_nothing_is_cut(tmp_path: Path) -> None:
    with running(DONE, DONE, store="none", more=OFF) as gateway:
        ask(gateway, "chat")
        assert "recall" not in json.dumps(sent(gateway)[0])
    with running(DONE, DONE, store="none", more=ROUTE) as gateway:
        ask(gateway, "chat", texts=["Hello."])
        assert "recall" not in json.dumps(sent(gateway)[0])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_of_the_client_next_to_a_look_up_is_the_clients(stream: bool, tmp_path: Path) -> None:
    first = Step(calls=(ASK, READ))
    with running(first, DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        response = ask(gateway, "chat", stream=stream)
        assert len(sent(gateway)) == 1
        assert '"name":"read"' in response.text.replace(" ", "")
        assert "recall" not in response.text
        assert "had no answer" in " ".join(row_of(gateway, response)["notes"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_that_only_looks_up_ends(stream: bool, tmp_path: Path) -> None:
    steps = [Step(text=f"Round {number}.", calls=(ASK,)) for number in range(9)]
    with running(*steps, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        response = ask(gateway, "chat", stream=stream)
        assert response.status_code == 200
        assert len(sent(gateway)) == 5
        assert '"stop"' in response.text
        assert "tool_calls" not in response.text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_another_model_answers_if_the_one_that_looked_up_fails(stream: bool, tmp_path: Path) -> None:
    more = '[models."small"]\ntry = ["openai/gpt-4", "openai/gpt-5.4"]\nfit = true\n[limits]\nretries = 0\n'
    steps = (Step(calls=(ASK,)), Step(status=529, message="busy"), DONE)
    with running(*steps, store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        response = ask(gateway, "chat", stream=stream)
        assert response.status_code == 200, response.text
        assert response.headers["x-segue-model"] == "openai/gpt-5.4"
        assert "recall" not in response.text


# -- the events --------------------------------------------------------------------------------------------------------

MODEL = get_model("openai/gpt-4")


def looking_up() -> LookUps:
    """Look-ups after a request that was cut."""
    context = Context()
    for at, text in enumerate(TEXTS):
        context = context.add(
            UserMessage.of(text) if at % 2 == 0 else AssistantMessage(content=(TextContent(text=text),))
        )
    found = LookUps(context)
    found.recall.prepare(prepare, found.begin(), MODEL)
    return found


CALL = ToolCall(id="call_1", name="recall", arguments={"query": "Grimsund"})
OWN = ToolCall(id="call_2", name="read", arguments={"n": 1})


def reply(*content: Any) -> AssistantMessage:
    reason = StopReason.TOOL_USE if any(piece.kind == "toolCall" for piece in content) else StopReason.STOP
    return AssistantMessage(
        content=content, protocol=MODEL.protocol, provider="openai", model="gpt-4", stop_reason=reason
    )


ROUNDS: dict[str, tuple[AssistantMessage, ...]] = {
    "nothing looked up": (reply(TextContent(text="Yes.")),),
    "a call of the client": (reply(OWN),),
    "one look-up": (reply(CALL), reply(TextContent(text="Yes."))),
    "thinking and text before it": (
        reply(ThinkingContent(thinking="Hm."), TextContent(text="Wait."), CALL),
        reply(ThinkingContent(thinking="So."), TextContent(text="Yes."), OWN),
    ),
    "two at once, and again": (
        reply(CALL, CALL),
        reply(TextContent(text="More."), CALL),
        reply(TextContent(text="Yes.")),
    ),
    "with a call of the client": (reply(TextContent(text="Wait."), CALL, OWN),),
    "an empty end": (reply(CALL), reply()),
}


@pytest.mark.parametrize("rounds", ROUNDS.values(), ids=ROUNDS)
def test_streamed_and_whole_replies_are_the_same_for_the_client(rounds: tuple[AssistantMessage, ...]) -> None:
    whole, streamed = looking_up(), looking_up()
    events: list[Event] = []
    last: AssistantMessage | None = None
    for number, message in enumerate(rounds):
        for look_ups in (whole, streamed):
            look_ups.recall.prepare(prepare, look_ups.begin(), MODEL)
        last = whole.take(message)
        assert (last is None) is (number < len(rounds) - 1)
        events += streamed.feed(message_events(message))
        assert streamed.is_due is whole.is_due
    assert last is not None
    assert events[-1].type == "done"
    assert events[-1].message == last
    assert [event.type for event in events].count("start") <= 1
    assert not any(piece.kind == "toolCall" and piece.name == "recall" for piece in last.content)
    assert whole.context == streamed.context
    ended = {event.index: event for event in events if event.type.endswith("_end")}  # pyright: ignore[reportAttributeAccessIssue]
    assert sorted(ended) == list(range(len(last.content)))
    for index, event in ended.items():
        assert (event.tool_call if event.type == "toolcall_end" else event.content) == last.content[index]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_call_whose_name_comes_late_is_held_until_it_is_known() -> None:
    def late(call: ToolCall) -> list[Event]:
        message = reply(TextContent(text="Wait."), call)
        return [
            StartEvent(),
            TextStart(index=0),
            TextDelta(index=0, delta="Wait."),
            TextEnd(index=0, content=TextContent(text="Wait.")),
            ToolCallStart(index=1, id="", name=""),
            ToolCallDelta(index=1, delta="{}"),
            ToolCallEnd(index=1, tool_call=call),
            DoneEvent(reason=StopReason.TOOL_USE, message=message),
        ]

    assert [event.type for event in looking_up().feed(late(CALL))] == ["start", "text_start", "text_delta", "text_end"]
    assert looking_up().feed(late(OWN)) == late(OWN)
