"""A tool loop: the same steps in a conversation and a client, sync, async and streamed, with limits and approval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Barrier
from typing import Any, cast

import httpx2
import pytest

from segue import (
    AsyncClient,
    AsyncConversation,
    Client,
    Conversation,
    Model,
    RequestFailed,
    Run,
    RunLimitReached,
    RunLimits,
    SettingsError,
    Toolbox,
    ToolCall,
    ToolResultMessage,
)
from segue.conversation.messages import Usage, UsageCost
from segue.models.price import add_usage
from segue.testing.emulator import Emulator

MODEL = Model("claude-opus-4-8", "anthropic", "anthropic-messages", base_url="http://emulated", reasoning=True)
LOOK: dict[str, Any] = {
    "calls": [{"name": "look", "arguments": {"at": "a"}}, {"name": "look", "arguments": {"at": "b"}}]
}
FAIL: dict[str, Any] = {"calls": [{"name": "look", "arguments": {"at": "missing"}}]}
DONE: dict[str, Any] = {"text": "Done."}


def look(at: str) -> str:
    """Look at something."""
    if at == "missing":
        raise LookupError("there is nothing")
    return f"seen {at}"


TOOLS = Toolbox(look)


class Place:
    """One of the four ways to run a loop: each gives the `Run` and everything that a streamed loop gave before it."""

    def __init__(self, *steps: dict[str, Any], is_async: bool, is_client: bool, is_streamed: bool) -> None:
        self.emulator = Emulator(*steps)
        self._is_async, self._is_client, self._is_streamed = is_async, is_client, is_streamed
        self.events: list[Any] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        reply = self.emulator.respond(
            request.method, request.url.raw_path.decode(), dict(request.headers), request.content
        )
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    def run(self, text: str = "Go", **settings: Any) -> Run:
        settings = {"tools": TOOLS, **settings}
        if self._is_async:
            return asyncio.run(self._run_async(text, settings))
        with Client(api_key="any", transport=httpx2.MockTransport(self.answer)) as client:
            if self._is_client:
                return self._last(client.run_stream if self._is_streamed else client.run, text, MODEL, **settings)
            with Conversation(MODEL, client=client) as conversation:
                run = conversation.run_stream if self._is_streamed else conversation.run
                found = self._last(run, text, **settings)
                assert conversation.context == found.context
                return found

    def _last(self, run: Callable[..., Any], *arguments: object, **settings: Any) -> Run:
        given = run(*arguments, **settings)
        if isinstance(given, Iterator):
            self.events = list(given)
            return self.events.pop()
        return given

    async def _run_async(self, text: str, settings: dict[str, Any]) -> Run:
        async with AsyncClient(api_key="any", transport=httpx2.MockTransport(self.answer)) as client:
            if self._is_client:
                run = client.run_stream if self._is_streamed else client.run
                return await self._last_async(run(text, MODEL, **settings))
            async with AsyncConversation(MODEL, client=client) as conversation:
                run = conversation.run_stream if self._is_streamed else conversation.run
                return await self._last_async(run(text, **settings))

    async def _last_async(self, given: Any) -> Run:
        if isinstance(given, AsyncIterator):
            self.events = [event async for event in given]
            return self.events.pop()
        return await given


WAYS = {
    f"{'async ' if is_async else ''}{'client' if is_client else 'conversation'}{', streamed' if is_streamed else ''}": {
        "is_async": is_async,
        "is_client": is_client,
        "is_streamed": is_streamed,
    }
    for is_async in (False, True)
    for is_client in (False, True)
    for is_streamed in (False, True)
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def results_of(run: Run) -> list[tuple[str, bool]]:
    results = [message for message in run.context.messages if message.role == "toolResult"]
    return [("".join(piece.text for piece in each.content if piece.kind == "text"), each.is_error) for each in results]


@every_way
def test_calls_run_until_an_answer_has_none_and_errors_are_results(way):
    place = Place(LOOK, FAIL, DONE, **way)
    run = place.run()
    assert run.text() == "Done."
    assert [bool(cast("dict[str, Any]", each.body).get("stream")) for each in place.emulator.requests] == [
        way["is_streamed"]
    ] * 3
    assert (run.requests, run.calls) == (3, 3)
    assert results_of(run) == [("seen a", False), ("seen b", False), ("LookupError: there is nothing", True)]
    roles = ["user", "assistant", "toolResult", "toolResult", "assistant", "toolResult", "assistant"]
    assert [message.role for message in run.context.messages] == roles
    assert run.usage.output == sum(
        message.usage.output for message in run.context.messages if message.role == "assistant" and message.usage
    )
    assert [request.refusal for request in place.emulator.requests] == [None] * 3
    if way["is_streamed"]:
        kinds = [type(event).__name__ if isinstance(event, ToolResultMessage) else event.type for event in place.events]
        assert [kind for kind in kinds if kind in ("done", "ToolResultMessage")] == [
            "done",
            "ToolResultMessage",
            "ToolResultMessage",
            "done",
            "ToolResultMessage",
            "done",
        ]
        assert "toolcall_delta" in kinds
        assert "text_delta" in kinds


@every_way
def test_a_call_that_is_not_approved_does_not_run(way):
    asked: list[ToolCall] = []

    def approve(call: ToolCall) -> bool | str:
        asked.append(call)
        return True if call.arguments["at"] == "a" else "ask me later" if len(asked) > 2 else False

    run = Place(LOOK, LOOK, DONE, **way).run(approve=approve)
    assert [call.arguments["at"] for call in asked] == ["a", "b", "a", "b"]
    assert results_of(run) == [
        ("seen a", False),
        ("The user did not allow this call.", True),
        ("seen a", False),
        ("ask me later", True),
    ]


LIMITS = {
    "requests": (RunLimits(requests=1), "its limit of 1 requests", 2),
    "calls": (RunLimits(calls=1), "its limit of 1 calls", 0),
    "tokens": (RunLimits(tokens=1), "its limit of 1 tokens", 2),
    "an unknown price": (RunLimits(cost=1.0), "the price of the model is not known", 2),
}


@every_way
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_stops_a_loop_and_nothing_is_lost(way, name):
    limits, reason, results = LIMITS[name]
    place = Place(LOOK, DONE, **way)
    with pytest.raises(RunLimitReached) as caught:
        place.run(limits=limits)
    assert reason in str(caught.value)
    run = caught.value.run
    assert len(results_of(run)) == results
    assert len(run.message.tool_calls()) == 2
    assert len(place.emulator.requests) == 1


def test_a_cost_stops_a_loop_where_the_price_is_known():
    loop = Place(LOOK, DONE, is_async=False, is_client=True, is_streamed=False)
    with (
        Client(api_key="any", transport=httpx2.MockTransport(loop.answer)) as client,
        pytest.raises(RunLimitReached, match=r"limit of \$0\.0001, with \$0\.0"),
    ):
        client.run("Go", "anthropic/claude-opus-4-8", tools=TOOLS, limits=RunLimits(cost=0.0001))


def test_calls_that_are_pending_run_first():
    place = Place(LOOK, DONE, is_async=False, is_client=False, is_streamed=False)
    with (
        Client(api_key="any", transport=httpx2.MockTransport(place.answer)) as client,
        Conversation(MODEL, client=client, tools=TOOLS) as conversation,
    ):
        conversation.ask("Go")
        run = conversation.run(tools=TOOLS)
    assert (run.text(), run.requests, run.calls) == ("Done.", 1, 2)
    first, second = (cast("dict[str, Any]", request.body) for request in place.emulator.requests)
    assert first["tools"] == second["tools"]


def test_a_stream_that_is_left_keeps_what_it_gave():
    place = Place(LOOK, DONE, is_async=False, is_client=False, is_streamed=True)
    with (
        Client(api_key="any", transport=httpx2.MockTransport(place.answer)) as client,
        Conversation(MODEL, client=client) as conversation,
    ):
        events = conversation.run_stream("Go", tools=TOOLS)
        next(event for event in events if isinstance(event, ToolResultMessage))
        assert [message.role for message in conversation.messages][2:] == ["toolResult", "toolResult"]
        assert conversation.run(tools=TOOLS).text() == "Done."


def test_calls_of_one_answer_run_at_once():
    both = Barrier(2, timeout=20)

    def look(at: str) -> str:
        both.wait()  # raises unless the other call runs at the same time
        return at

    run = Place(LOOK, DONE, is_async=False, is_client=True, is_streamed=False).run(tools=Toolbox(look))
    assert results_of(run) == [("a", False), ("b", False)]


@every_way
def test_a_failed_request_is_raised(way):
    with pytest.raises(RequestFailed):
        Place(LOOK, {"status": 400, "message": "no"}, **way).run()


def test_wrong_settings_are_refused_with_a_sentence():
    place = Place(LOOK, is_async=False, is_client=True, is_streamed=False)
    with pytest.raises(SettingsError, match=r"takes a Toolbox, got a value of type list; write tools=Toolbox\("):
        place.run(tools=[look])

    async def approve(_: ToolCall) -> bool:
        return True

    with pytest.raises(SettingsError, match="approve= is an async function"):
        place.run(approve=approve)


@pytest.mark.parametrize("is_client", [True, False])
def test_an_async_loop_awaits_the_approval(is_client):
    async def approve(call: ToolCall) -> bool:
        await asyncio.sleep(0)
        return call.arguments["at"] == "b"

    run = Place(LOOK, DONE, is_async=True, is_client=is_client, is_streamed=False).run(approve=approve)
    assert [is_error for _, is_error in results_of(run)] == [True, False]


def test_usage_is_added_and_a_cost_that_is_not_known_stays_unknown():
    one = Usage(input=1, output=2, cache_read=3, total_tokens=6, cost=UsageCost(output=0.5, total=0.5))
    both = Usage(input=2, output=4, cache_read=6, total_tokens=12, cost=UsageCost(output=1.0, total=1.0))
    assert add_usage([one, one]) == both
    assert add_usage([one, Usage(input=1, total_tokens=1)]).cost is None
    assert add_usage([]) == Usage()
