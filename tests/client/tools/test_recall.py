"""The look-up tool: what it finds, when a tool loop offers it, and that its calls are answered without the program."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, cast

import httpx2
import pytest
from msgspec.structs import replace

from segue import (
    AsyncClient,
    AsyncConversation,
    Client,
    Context,
    Conversation,
    Message,
    Model,
    NativeTool,
    Options,
    Run,
    TextContent,
    Toolbox,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    new_assistant_message,
)
from segue.client.flow.recall import RECALL, Recall, recall_room, search
from segue.counting.counter import TokenCounter
from segue.requests.prepare import Request, prepare
from segue.testing.emulator import Emulator

MODEL = Model(
    "claude-opus-4-8",
    "anthropic",
    "anthropic-messages",
    base_url="http://emulated",
    context_window=6_000,
    max_tokens=1_000,
)
LARGE = replace(MODEL, context_window=200_000)
COUNTER = TokenCounter(MODEL)
FACT = "The harbour master of Grimsund is called Tordis Falkanger."
WORDS = ("ferry", "timber", "ledger", "granite", "signal", "anchor", "market", "winter", "copper", "meadow")


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


TOOLS = Toolbox(look)


def history(turns: int = 40, fact_at: int = 3) -> Context:
    """Make a history that does not fit the small window, with one fact far back in a result."""
    chance, context = random.Random(5), Context()
    for turn in range(turns):
        filler = " ".join(chance.choice(WORDS) for _ in range(120))
        call = ToolCall(id=f"toolu_{turn}", name="look", arguments={"at": f"place {turn}"})
        text = f"{filler}\n{FACT}\n{filler}" if turn == fact_at else filler
        result = ToolResultMessage(tool_call_id=call.id, tool_name="look", content=(TextContent(text=text),))
        context = context.add(
            UserMessage.of(f"Question {turn}"),
            new_assistant_message(MODEL, content=(call,)),
            result,
            new_assistant_message(MODEL, content=(TextContent(text=f"Answer {turn}."),)),
        )
    return context


# -- the search --------------------------------------------------------------------------------------------------------


def found(query: str, messages: tuple[Message, ...] | None = None, room: float = 400) -> str:
    return search(history().messages if messages is None else messages, query, room, COUNTER)


@pytest.mark.parametrize(
    "query",
    ["harbour master of Grimsund", "GRIMSUND", "who is the harbour master?", "Tordis", "falkanger tordis ferry"],
)
def test_the_passage_with_the_words_is_found_whatever_their_case(query: str) -> None:
    assert FACT in found(query)


@pytest.mark.parametrize(
    ("query", "text"), [("港の名前", "この港の名前はグリムスンです"), ("порт", "Этот порт закрыт")]
)
def test_other_scripts_are_searched(query: str, text: str) -> None:
    assert text in found(query, (*history().messages, UserMessage.of(text)))


def test_parts_of_names_are_words() -> None:
    path = "src/harbour/tide_table.py:41: def next_tide(self)"
    assert path in found("tide_table next_tide", (*history().messages, UserMessage.of(path)))


def test_nothing_is_invented() -> None:
    assert "Nothing of the omitted 160 messages matches" in found("zzyzx")
    assert "The query is empty" in found(" . ")


@pytest.mark.parametrize("room", [250, 600, 2_000])
def test_an_answer_has_room_and_says_where_each_passage_is_from(room: int) -> None:
    text = found("ferry timber ledger", room=room)
    assert COUNTER.text(text) <= room
    assert "[message 2, result of look]" in found("Grimsund ferry " * 3, history(2, 0).messages)
    assert "the user]" in found("Question 7", room=room)


def test_a_passage_that_is_too_large_is_shortened() -> None:
    text = found("needle", (UserMessage.of("needle " + "x" * 5_000),), room=120)
    assert "needle" in text
    assert COUNTER.text(text) <= 120


def test_what_the_request_shows_is_not_repeated() -> None:
    messages = history().messages
    assert FACT not in search(messages, "Grimsund", 400, COUNTER, (UserMessage.of(FACT), *messages[12:16]))


def test_the_same_question_has_the_same_answer() -> None:
    assert found("ferry granite") == found("ferry granite")


def test_a_long_history_is_searched() -> None:
    messages = history(400).messages
    assert FACT in found("Tordis Falkanger", messages)


def cost(messages: tuple[Message, ...], query: str, shown: tuple[Message, ...] = ()) -> float:
    """Measure the CPU seconds of a search: the least of three."""

    def once() -> float:
        began = time.process_time()
        search(messages, query, 2_000, COUNTER, shown)
        return time.process_time() - began

    return min(once() for _ in range(3))


def test_passages_that_the_request_shows_cost_no_more_in_a_long_history() -> None:
    """Each is looked for in all of what is shown, but not without end."""

    def cost_of(count: int) -> float:
        texts = [f"k{number:07} needle" for number in range(count)]
        return cost(tuple(map(UserMessage.of, texts)), "needle", (UserMessage.of(" ".join(texts)),))

    small, large = cost_of(1_000), cost_of(16_000)
    assert large < 64 * max(small, 0.002)  # 16 times the work; quadratic would be 256 times


def test_a_query_of_many_words_costs_little_more_than_one_of_few() -> None:
    chance = random.Random(3)
    words = [f"word{number}" for number in range(3_000)]
    messages = tuple(UserMessage.of(" ".join(chance.choice(words) for _ in range(100))) for _ in range(400))
    assert cost(messages, " ".join(words[:48])) < 4 * max(cost(messages, "word1 word2"), 0.002)


def test_a_query_is_read_up_to_its_first_words() -> None:
    assert "Nothing of" in found("x" * 1_000_000)
    assert FACT in found("Grimsund " + "漢" * 1_000_000)


# -- when it is offered ------------------------------------------------------------------------------------------------


def names_of(request: Request) -> list[str]:
    return [tool["name"] for tool in request.body.get("tools", ())]


def made(
    context: Context, model: Model = MODEL, options: Options | None = None, *, recall: Recall | None = None
) -> Request:
    return (recall or Recall()).prepare(prepare, context, model, options=options)


def test_it_is_offered_where_something_was_cut_and_only_there() -> None:
    asked = replace(history().add(UserMessage.of("And now?")), tools=TOOLS.definitions)
    assert names_of(made(asked)) == ["look", "recall"]
    assert names_of(made(asked, LARGE)) == ["look"]
    assert names_of(made(asked, options=Options(tool_choice="none"))) == ["look"]


def test_a_tool_of_that_name_of_the_program_is_its_own() -> None:
    own = ToolDefinition(name="recall", description="Calls a product back.")
    inner = {"type": "function", "name": "recall", "parameters": {"type": "object", "properties": {}}}
    for below in ({"type": "custom", "name": "recall"}, {"type": "namespace", "name": "shop", "tools": [inner]}):
        native = NativeTool(protocol=MODEL.protocol, definition=below)
        recall = Recall()
        made(replace(history().add(UserMessage.of("And now?")), tools=(native,)), recall=recall)
        assert not recall.is_offered
    asked = replace(history().add(UserMessage.of("And now?")), tools=(own,))
    recall = Recall()
    [tool] = made(asked, recall=recall).body["tools"]
    assert tool["description"] == own.description
    assert not recall.is_offered


def test_it_stays_while_the_history_grows_and_changes_nothing_before_it() -> None:
    recall, context = Recall(), replace(history(), tools=TOOLS.definitions)
    before: Any = None
    for turn in range(4):
        context = context.add(UserMessage.of(f"Next {turn}"))
        body = made(context, recall=recall).body
        again = made(context).body
        assert body == again, "another process sends the same"
        if before is not None:
            assert body["tools"] == before["tools"]
            assert body["messages"][: len(before["messages"])] == before["messages"]
        before = body
        context = context.add(new_assistant_message(MODEL, content=(TextContent(text="Yes."),)))


# -- in a tool loop ----------------------------------------------------------------------------------------------------

ASK: dict[str, Any] = {"calls": [{"name": "recall", "arguments": {"query": "harbour master Grimsund"}}]}
BOTH: dict[str, Any] = {"calls": [*ASK["calls"], {"name": "look", "arguments": {"at": "the pier"}}]}
DONE: dict[str, Any] = {"text": "Tordis Falkanger."}


class Loop:
    """Runs a loop in one of the ways that there are."""

    def __init__(self, *steps: dict[str, Any]) -> None:
        self.emulator = Emulator(*steps)

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        reply = self.emulator.respond(
            request.method, request.url.raw_path.decode(), dict(request.headers), request.content
        )
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    def bodies(self) -> list[dict[str, Any]]:
        return [cast("dict[str, Any]", request.body) for request in self.emulator.requests]

    def client(self, context: Context, **settings: Any) -> Run:
        with Client(api_key="any", transport=httpx2.MockTransport(self.respond)) as client:
            return client.run(context.add(UserMessage.of("Who was it?")), MODEL, tools=TOOLS, **settings)

    def conversation(self, context: Context, **settings: Any) -> Run:
        with (
            Client(api_key="any", transport=httpx2.MockTransport(self.respond)) as client,
            Conversation(MODEL, client=client, context=context) as conversation,
        ):
            run = [*conversation.run_stream("Who was it?", tools=TOOLS, **settings)][-1]
            assert isinstance(run, Run)
            assert conversation.context == run.context
            return run

    def async_conversation(self, context: Context, **settings: Any) -> Run:
        async def go() -> Run:
            async with (
                AsyncClient(api_key="any", transport=httpx2.MockTransport(self.respond)) as client,
                AsyncConversation(MODEL, client=client, context=context) as conversation,
            ):
                return await conversation.run("Who was it?", tools=TOOLS, **settings)

        return asyncio.run(go())


WAYS: tuple[Callable[..., Run], ...] = (Loop.client, Loop.conversation, Loop.async_conversation)


def sent_results(body: dict[str, Any]) -> list[str]:
    last = body["messages"][-1]["content"]
    return [str(block["content"]) for block in last if block["type"] == "tool_result"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("step", [ASK, BOTH], ids=["alone", "with a call of the program"])
def test_a_look_up_is_answered_in_the_loop(way: Callable[..., Run], step: dict[str, Any]) -> None:
    loop, asked = Loop(step, DONE), list[str]()

    def approve(call: ToolCall) -> bool:
        asked.append(call.name)
        return True

    run = way(loop, history(), approve=approve)
    assert run.text() == DONE["text"]
    first, second = loop.bodies()
    assert FACT not in str(first), "it was cut"
    results = sent_results(second)
    assert FACT in results[0]
    assert asked == [call["name"] for call in step["calls"][1:]], "only calls of the program are approved by it"
    assert len(results) == len(step["calls"])
    kept = [message for message in run.context.messages if message.role == "toolResult"][-len(results) :]
    assert [message.tool_name for message in kept] == [call["name"] for call in step["calls"]]
    assert run.calls == len(step["calls"])
    assert all(tool.name != RECALL.name for tool in run.context.tools if tool.kind == "function"), "it is not stored"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_is_off_where_the_caller_says_so(way: Callable[..., Run]) -> None:
    loop = Loop(ASK, DONE)
    way(loop, history(), recall=False)
    first, second = loop.bodies()
    assert "recall" not in str(first["tools"])
    assert "there is no tool 'recall'" in sent_results(second)[0]


def test_a_call_that_was_pending_is_answered_before_the_first_request() -> None:
    call = ToolCall(id="toolu_last", name="recall", arguments={"query": "Grimsund"})
    context = history().add(UserMessage.of("Who was it?"), new_assistant_message(MODEL, content=(call,)))
    loop = Loop(DONE)
    with Client(api_key="any", transport=httpx2.MockTransport(loop.respond)) as client:
        client.run(context, MODEL, tools=TOOLS)
    assert FACT in sent_results(loop.bodies()[0])[0]


def test_answers_are_larger_in_larger_windows() -> None:
    assert [recall_room(limit) for limit in (1_000, 16_000, 200_000)] == [200, 1_000, 2_000]
