"""Look-ups of a model through the gateway: answered there, never seen by the client, counted for its key."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from google.genai import types

from gateway.bound_clients import WIRES, Question, WireClient
from gateway.running import Running, config_text, make_gateway, running
from segue.client.flow.recall import search
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
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.looking_up import LookUps
from segue.models.catalogue import get_model
from segue.protocols.api import check
from segue.requests.prepare import prepare
from segue.testing.emulator import EmulatedCall, Step, emulate, serve_in_thread

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
def test_without_a_store_a_look_up_next_to_a_call_of_the_client_has_no_answer(stream: bool) -> None:
    with running(Step(calls=(ASK, READ)), DONE, store="none", more=ROUTE) as gateway:
        response = ask(gateway, "chat", stream=stream)
        assert len(sent(gateway)) == 1
        assert '"name":"read"' in response.text.replace(" ", "")
        assert "recall" not in response.text


@pytest.mark.parametrize(
    ("stream", "calls"),
    [(False, (ASK, READ)), (True, (READ, ASK)), (True, (ASK, READ, ASK))],
    ids=["before", "after, streamed", "around, streamed"],
)
@pytest.mark.parametrize("wire", WIRES)
def test_a_look_up_next_to_a_call_of_the_client_is_answered_with_its_result(
    wire: str, stream: bool, calls: tuple[EmulatedCall, ...], tmp_path: Path
) -> None:
    mixed, own = Step(text="Let me see.", calls=calls), Step(calls=(READ,))
    names = [call.name for call in calls]
    with emulate(mixed, own, mixed, DONE) as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=ROUTE))
        history = list[Any]()
        for steps in (3, 1):  # the second gateway knows nothing but the store
            gateway = make_gateway(config)
            with serve_in_thread(create_app(gateway=gateway)) as url:
                talk = Talk(Running(url, gateway, upstream), wire, history)
                for _ in range(steps):
                    talk.step(stream=stream)
                history, notes = talk.history, talk.notes()
                assert "answered with their results" in notes
                assert "had no answer" not in notes
    bodies = [body["input"] for body in sent(Running("", gateway, upstream))]
    assert len(bodies) == 4, "a call of the client is not delayed by another request"
    for number, (before, after) in enumerate(itertools.pairwise(bodies)):
        assert after[: len(before)] == before, "what was sent before is not changed"
        new = after[len(before) :]
        if number == 1:
            assert _calls_in(new) == ["read"]
            continue
        assert _calls_in(new) == names
        texts = _results_in(new)
        assert len(texts) == len(names)
        assert sum("omitted" in text for text in texts) == names.count("recall")
        # What an earlier answer says is not said again.
        assert sum(FACT in text for text in texts) == (names.count("recall") if number == 0 else 0)
        assert texts.count("seen") == 1


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_thinking_before_a_look_up_next_to_a_call_stays_valid(wire: str, tmp_path: Path) -> None:
    rows = {"id": "claude-opus-5-5", "provider": "anthropic", "context_window": 12_000, "reasoning": True}
    catalogue = tmp_path / "models.json"
    catalogue.write_text(json.dumps({"models": [{**rows, "protocol": "anthropic-messages"}]}))
    more = '[models."small"]\ntry = ["anthropic/claude-opus-5-5"]\nfit = true\n'
    steps = [Step(thinking=f"Thought {number}.", calls=(ASK, READ) if number % 2 else (READ,)) for number in range(6)]
    with emulate(*steps) as upstream:
        text = config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more)
        gateway = make_gateway(load_config(f'catalogue = "{catalogue}"\n{text}'))
        with serve_in_thread(create_app(gateway=gateway)) as url:
            talk = Talk(Running(url, gateway, upstream), wire, [])
            for number in range(6):
                talk.step(stream=number % 3 == 0)
    emulator = upstream.emulator
    assert [request.status for request in emulator.requests] == [200] * 6
    assert not any(request.transformations for request in emulator.requests)
    last = emulator.requests[-1]
    assert not emulator.withheld(last, emulator.ledger.bound()), "valid thinking was given up"
    assert json.dumps(last.body).count('"signature"') >= 3  # the answers are long: the history is cut once on the way


def test_what_is_looked_up_is_not_in_the_store(tmp_path: Path) -> None:
    """It is found again in the history that the client sends."""
    with running(Step(calls=(ASK, READ)), DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        talk = Talk(gateway, "chat", [])
        talk.step()
        talk.step()
        assert FACT in json.dumps(sent(gateway)[-1])
    assert b"Tordis" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("drop", ["result", "call"])
def test_a_client_that_leaves_its_call_out_is_answered(drop: str, tmp_path: Path) -> None:
    """As when a user interrupts the program."""
    with running(Step(text="Wait.", calls=(ASK, READ)), DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        talk = Talk(gateway, "chat", [])
        talk.step()
        talk.history.pop()
        if drop == "call":
            talk.history[-1].pop("tool_calls")
        talk.history.append({"role": "user", "content": "Stop. Who is it?"})
        talk.step()
        assert not check(sent(gateway)[-1], protocol="openai-responses", model="openai/gpt-4")


@pytest.mark.parametrize("count", [1, 30])
def test_few_look_ups_of_one_reply_are_searched(count: int, tmp_path: Path) -> None:
    """Each is a search in all that was cut, and the model decides how many there are."""
    for step in (Step(calls=(ASK,) * count), Step(calls=(*(ASK,) * count, READ))):
        with running(step, DONE, store=f"sqlite:{tmp_path}/{len(step.calls)}.db", more=ROUTE) as gateway:
            talk = Talk(gateway, "chat", [])
            talk.step()
            if READ in step.calls:
                talk.step()
            texts = _results_in(sent(gateway)[-1]["input"])
            assert len(texts) == len(step.calls)
            assert sum(FACT in text for text in texts) == min(count, 8)


@pytest.mark.parametrize("calls", [(ASK,), (ASK, READ)], ids=["alone", "next to a call"])
def test_a_large_history_is_searched_in_a_thread(
    calls: tuple[EmulatedCall, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop: list[bool] = []

    def spy(*given: Any) -> str:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            on_loop.append(True)
            return search(*given)
        on_loop.append(False)
        return search(*given)

    monkeypatch.setattr("segue.client.flow.recall.search", spy)
    with running(Step(calls=calls), DONE, store=f"sqlite:{tmp_path}/g.db", more=ROUTE) as gateway:
        talk = Talk(gateway, "chat", [])
        talk.history = [{"role": "user", "content": "old " * 100_000}, *talk.history]
        talk.step()
        talk.step()
    assert on_loop == [False]


class Talk:
    """A client, an official SDK, that has its own call answered and goes on."""

    def __init__(self, gateway: Running, wire: str, history: list[Any]) -> None:
        self.gateway, self.wire = gateway, wire
        with closing(WIRES[wire](gateway.url)) as client:
            self.history = history or [item for text in _texts_of(client, wire) for item in text]

    def step(self, *, stream: bool = False) -> None:
        """Send the history, and add the reply and the results of its calls."""
        with closing(WIRES[self.wire](self.gateway.url)) as client:
            items, calls = client.ask(Question("small", "Be brief.", ("read",), stream), self.history)
            results = client.results(calls, "seen").items if calls else []
        assert [call.name for call in calls] in ([], ["read"]), "the client sees its own call alone"
        self.history = [*self.history, *items, *results]

    def notes(self) -> str:
        """What the rows say."""
        with httpx2.Client(timeout=30) as client:
            return client.get(f"{self.gateway.url}/segue/requests").text


def _texts_of(client: WireClient, wire: str) -> Iterator[list[Any]]:
    for at, text in enumerate(TEXTS):
        if at % 2 == 0:
            yield client.user(text).items
        elif wire == "gemini":
            yield [types.Content(role="model", parts=[types.Part(text=text)])]
        else:
            yield [{"role": "assistant", "content": text}]


def _calls_in(turns: list[Any]) -> list[str]:
    """The names of the calls in items of OpenAI's Responses protocol."""
    return [turn["name"] for turn in turns if turn.get("type") == "function_call"]


def _results_in(turns: list[Any]) -> list[str]:
    return [turn["output"] for turn in turns if turn.get("type") == "function_call_output"]


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
