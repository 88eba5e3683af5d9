"""Summaries of messages that no longer fit: who is asked what, what is stored and sent, and what a failure leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from client.both_clients import AT_ONCE
from client.wires import WIRES
from segue.client.http.clients import AsyncClient, Client
from segue.client.session import history as history_module
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.client.session.settings import ConversationSettings
from segue.client.session.summarising import Summarising, SummaryTask
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Origin, Summary
from segue.conversation.messages import AssistantMessage, Diagnostic, Message, ToolResultMessage, UserMessage
from segue.counting.counter import TokenCounter
from segue.errors import SettingsError
from segue.histories.sessions import read_session
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.projector import project
from segue.projection.requirements import SummaryWanted
from servers.script import Reply
from servers.scripted import Received, ScriptedServer

CHAT, CLAUDE = WIRES["openai-chat"], WIRES["anthropic-messages"]
SHORT = "Goal: count. Done: the first questions."


def reply_to(request: Received) -> Reply:
    """Answer like the provider whose path was asked."""
    wire = CLAUDE if request.path == "/v1/messages" else CHAT
    return wire.stream() if request.json().get("stream") else wire.answer()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply_to) as running:
        yield running


def history(count: int) -> tuple[Message, ...]:
    found: list[Message] = []
    for number in range(count):
        found += (
            UserMessage.of(f"question {number}"),
            AssistantMessage(content=(TextContent(text=f"answer {number}: " + "word " * 200),)),
        )
    return tuple(found)


LONG = Context(messages=history(40))


def target(server: ScriptedServer) -> Model:
    return CHAT.model(server.url, context_window=8000, max_tokens=1000)


def sent(server: ScriptedServer, number: int = -1) -> str:
    return json.dumps(server.requests[number].json()["messages"])


def run(
    server: ScriptedServer, *questions: str, is_async: bool = False, streams: bool = False, **settings: object
) -> Context:
    """Ask the questions in one conversation, and give its context."""
    given: ConversationSettings = {"context": LONG, **settings}  # pyright: ignore[reportAssignmentType]
    model = target(server)
    if not is_async:
        client = Client(api_key="a-key-of-nobody", retry=AT_ONCE, timeout=10.0)
        with client, Conversation(model, client=client, **given) as conversation:
            for question in questions:
                if streams:
                    conversation.stream(question).result()
                else:
                    conversation.ask(question)
            return conversation.context

    async def ask() -> Context:
        client = AsyncClient(api_key="a-key-of-nobody", retry=AT_ONCE, timeout=10.0)
        async with client, AsyncConversation(model, client=client, **given) as conversation:
            for question in questions:
                if streams:
                    await conversation.stream(question).result()
                else:
                    await conversation.ask(question)
            return conversation.context

    return asyncio.run(ask())


def diagnostics(context: Context) -> list[Diagnostic]:
    last = context.messages[-1]
    assert last.role == "assistant"
    return [each for each in last.diagnostics if each.type == "summary_failed"]


both_clients = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
whole_and_streamed = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


@both_clients
@whole_and_streamed
def test_messages_that_are_left_out_are_summarised_before_the_request(
    server: ScriptedServer, tmp_path: Path, is_async: bool, streams: bool
):
    tasks: list[SummaryTask] = []

    def summarise(task: SummaryTask) -> str:
        tasks.append(task)
        assert not server.requests
        return SHORT

    path = tmp_path / "session.jsonl"
    context = run(server, "now?", is_async=is_async, streams=streams, summarise=summarise, path=path)
    assert tasks
    assert [message.role for message in context.messages[-2:]] == ["user", "assistant"]
    assert len(context.messages) == len(LONG.messages) + 2
    assert context.summaries
    assert all(summary.text == SHORT and summary.origin is None and summary.timestamp for summary in context.summaries)
    assert len(server.requests) == 1
    assert SHORT in sent(server)
    assert "question 0" in sent(server)
    assert read_session(path) == context
    assert not diagnostics(context)
    assert project(context, target(server)).requirements == ()


def test_the_prefix_breaks_once_and_the_summary_stays(server: ScriptedServer):
    calls: list[SummaryTask] = []

    def summarise(task: SummaryTask) -> str:
        calls.append(task)
        return SHORT

    run(server, "one", "two", "three", summarise=summarise)
    bodies = [request.json()["messages"] for request in server.requests]
    for earlier, later in pairwise(bodies):
        assert isinstance(earlier, list)
        assert isinstance(later, list)
        assert later[: len(earlier)] == earlier
    assert len(calls) <= 2


@both_clients
def test_a_model_summarises(server: ScriptedServer, is_async: bool):
    writer = CLAUDE.model(server.url, context_window=200_000)
    context = run(server, "now?", is_async=is_async, summarise=writer)
    assert context.summaries[0].origin == Origin(
        protocol="anthropic-messages", provider=CLAUDE.provider, model="a-model"
    )
    first = server.requests[0]
    assert first.path == "/v1/messages"
    body = first.json()
    assert "do not continue it" in json.dumps(body["system"])
    [turn] = body["messages"]  # pyright: ignore[reportGeneralTypeIssues]
    assert "<conversation>" in json.dumps(turn)
    assert "question 1" in json.dumps(turn)
    assert server.requests[-1].path != "/v1/messages"


@both_clients
def test_an_async_function_is_awaited(server: ScriptedServer, is_async: bool):

    async def summarise(task: SummaryTask) -> AssistantMessage:
        await asyncio.sleep(0)
        writer = Model("my-model", "local", "openai-chat")
        return replace(new_assistant_message(writer), content=(TextContent(text=SHORT),))

    if is_async:
        context = run(server, "now?", is_async=True, summarise=summarise)
        assert context.summaries[0].origin == Origin(protocol="openai-chat", provider="local", model="my-model")
    else:
        with pytest.raises(SettingsError, match="AsyncConversation"):
            run(server, "now?", summarise=summarise)


def _fails(_: SummaryTask) -> str:
    raise RuntimeError("no summariser today")


FAILURES: dict[str, tuple[Callable[[SummaryTask], object], str]] = {
    "raises": (_fails, "no summariser today"),
    "returns nothing": (lambda _: None, "no text"),
    "returns blanks": (lambda _: " \n", "no text"),
    "returns another value": (lambda _: 5, "no text"),
    "returns more than it replaces": (lambda _: "word " * 30_000, "what it replaces has"),
}


@pytest.mark.parametrize(("summarise", "reason"), FAILURES.values(), ids=FAILURES.keys())
@both_clients
def test_the_note_stays_where_the_summariser(
    server: ScriptedServer, summarise: Callable[[SummaryTask], object], reason: str, is_async: bool
):
    tried: list[SummaryTask] = []

    def hook(task: SummaryTask) -> object:
        tried.append(task)
        return summarise(task)

    context = run(server, "now?", "and now?", is_async=is_async, summarise=hook)
    assert len(server.requests) == 2
    assert context.summaries == ()
    assert "earlier messages omitted here" in sent(server)
    assert len(tried) == 1, "the same part is not tried again"
    asked = context.messages[-3]
    assert asked.role == "assistant"
    [note] = [each for each in asked.diagnostics if each.type == "summary_failed"]
    assert reason in (note.message or "")
    assert note.details is not None
    assert set(note.details) == {"first", "last"}
    assert not diagnostics(context)


def test_a_summariser_that_is_down_leaves_the_note(server: ScriptedServer):
    context = run(server, "now?", summarise=CLAUDE.model("http://127.0.0.1:9"))
    assert context.summaries == ()
    assert len(diagnostics(context)) == 1


def test_half_a_character_in_a_summary_is_stored_and_never_sent(server: ScriptedServer):
    context = run(server, "now?", summarise=lambda _: "half \ud800 a character")
    assert context.summaries[0].text == "half \ud800 a character"
    assert "half \\ufffd a character" in sent(server)


def test_nothing_is_summarised_while_all_fits(server: ScriptedServer):
    context = run(server, "now?", summarise=_fails, context=Context(messages=history(3)))
    assert context.summaries == ()
    assert not diagnostics(context)


def test_a_stored_summary_is_used_after_a_restart_by_another_model(server: ScriptedServer, tmp_path: Path):
    path = tmp_path / "session.jsonl"
    run(server, "now?", summarise=lambda _: SHORT, path=path)
    context = run(server, "and now?", summarise=_fails, path=path, context=None)
    assert SHORT in sent(server)
    assert not diagnostics(context)
    large = project(context, CHAT.model(server.url, context_window=1_000_000))
    assert SHORT not in str(large.context.messages)
    assert large.report.lossless


# -- what the summariser gets ------------------------------------------------------------------------------------------

TARGET = Model("a-model", "openai", "openai-chat", context_window=8000)


def tasks_of(context: Context, wanted: SummaryWanted, writer: Model | None = None) -> list[SummaryTask]:
    making = Summarising(context, wanted, TARGET, limit=7000, writer=writer)
    found: list[SummaryTask] = []
    while (task := making.task) is not None:
        found.append(task)
        making.take(f"summary {len(found)}")
    return found


def test_a_part_is_quoted_and_shortened():
    messages: tuple[Message, ...] = (
        UserMessage(content=(TextContent(text="look at </conversation> this"), ImageContent(data="AAAA"))),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="secret thoughts"),
                TextContent(text="I look."),
                ToolCall(id="1", name="read", arguments={"path": "/a/b.py"}),
            )
        ),
        ToolResultMessage(tool_call_id="1", tool_name="read", content=(TextContent(text="x" * 5000),)),
        AssistantMessage(content=(TextContent(text="Done."),)),
    )
    [task] = tasks_of(Context(messages=messages), SummaryWanted(first=0, last=3, tokens=1))
    assert "secret thoughts" not in task.text
    assert "[image]" in task.text
    assert 'calls read with {"path": "/a/b.py"}' in task.text
    assert "3001 characters omitted" in task.text
    assert len(task.text) < 2500
    [question] = task.context.messages
    assert str(question).count("</conversation>") == 1
    assert "Goal" in str(task.context.system_prompt)
    assert (task.first, task.last, task.previous) == (0, 3, None)


def test_a_long_part_comes_in_pieces_that_fit_the_summariser():
    small = Model("small", "openai", "openai-chat", context_window=4000)
    tasks = tasks_of(LONG, SummaryWanted(first=1, last=60, tokens=1), small)
    assert len(tasks) > 3
    count = TokenCounter(small)
    for task in tasks:
        assert project(task.context, small).report.lossless
        assert sum(count.text(str(message.content)) for message in task.context.messages) < 4000
    assert [task.previous for task in tasks] == [None, *(f"summary {n}" for n in range(1, len(tasks)))]
    assert all("summary_so_far" in str(task.context.messages) for task in tasks[1:])
    joined = "".join(task.text for task in tasks)
    assert all(f"answer {number}:" in joined for number in range(30))


def test_a_message_larger_than_the_window_of_the_summariser_is_divided():
    small = Model("small", "openai", "openai-chat", context_window=4000)
    whole = Context(messages=(UserMessage.of("start"), UserMessage.of("word " * 20_000)))
    tasks = tasks_of(whole, SummaryWanted(first=1, last=1, tokens=1), small)
    assert len(tasks) > 5
    assert sum(task.text.count("word") for task in tasks) >= 19_900
    assert all(project(task.context, small).report.lossless for task in tasks)


def test_the_last_summary_stands_in_front_and_is_not_summarised_again():
    context = LONG.add_summary(Summary(covers=10, text="so far")).add_summary(Summary(covers=60, text="too much"))
    [first, *_] = tasks_of(context, SummaryWanted(first=10, last=30, tokens=1))
    assert first.previous == "so far"
    assert "answer 4:" not in first.text
    assert "question 5" in first.text


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_summary_that_cannot_be_written_leaves_the_note(server: ScriptedServer, tmp_path: Path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(history_module, "append_summary", full)
    path = tmp_path / "session.jsonl"
    context = run(server, "now?", summarise=lambda _: SHORT, path=path)
    assert context.summaries == ()
    assert "no space left" in (diagnostics(context)[0].message or "")
    assert read_session(path) == context


def test_in_a_thread_a_summary_that_cannot_be_written_raises_where_the_file_is_waited_for(
    server: ScriptedServer, tmp_path: Path, monkeypatch
):
    write = history_module.append_line

    def full(path: Path, line: bytes, *, fsync: bool) -> None:
        if b'"type":"summary"' in line:
            raise OSError("no space left on device")
        write(path, line, fsync=fsync)

    monkeypatch.setattr(history_module, "append_line", full)
    path = tmp_path / "session.jsonl"
    with pytest.raises(OSError, match="no space left"):
        run(server, "now?", is_async=True, summarise=lambda _: SHORT, path=path)
    assert not server.requests
    stored = read_session(path)
    assert stored.summaries == ()
    assert stored.messages[-1].role == "user"
