"""Conversations: what is kept and when, models that change, files that are opened again, and only one writer."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from client.both_clients import AT_ONCE
from client.wires import TEXT, WIRES
from segue.client.http.clients import AsyncClient, Client
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import ConversationError, EmptyConversation, RequestFailed, SessionLocked, SettingsError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.sessions import append_message, read_session
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

CHAT, CLAUDE = WIRES["openai-chat"], WIRES["anthropic-messages"]
TOOL = ToolDefinition(name="look", parameters={"type": "object"})
CALL = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "a-model",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
        }
    ],
}


@pytest.fixture
def client():
    with Client(api_key="a-key-of-nobody", retry=AT_ONCE, timeout=10.0) as made:
        yield made


def roles(context: Context) -> list[str]:
    return [message.role for message in context.messages]


def test_what_is_asked_and_answered_is_kept(server: ScriptedServer, client: Client, tmp_path):
    server.reply(CHAT.answer(), CHAT.answer())
    path = tmp_path / "session.jsonl"
    with Conversation(
        CHAT.model(server.url), client=client, path=path, system_prompt="Be kind.", tools=[TOOL]
    ) as conversation:
        answer = conversation.ask("hello")
        assert conversation.messages[-1] is answer
        conversation.ask("and now?")
        assert read_session(path) == conversation.context
    assert roles(conversation.context) == ["user", "assistant", "user", "assistant"]
    assert all(message.timestamp for message in conversation.messages if message.role != "system")
    assert conversation.context.system_prompt == "Be kind."
    turns = server.requests[1].json()["messages"]
    assert isinstance(turns, list)
    assert [turn["role"] for turn in turns] == ["developer", "user", "assistant", "user"] or turns[0][
        "role"
    ] == "system"


def test_a_call_is_answered_and_the_conversation_goes_on(server: ScriptedServer, client: Client):
    server.reply(Reply.json(CALL), CHAT.answer())
    with Conversation(CHAT.model(server.url), client=client, tools=[TOOL]) as conversation:
        conversation.ask("look")
        [call] = conversation.pending_calls()
        conversation.add_result(call, "a tree", details={"seen": 1})
        assert conversation.pending_calls() == ()
        assert conversation.ask().text() == TEXT
    assert roles(conversation.context) == ["user", "assistant", "toolResult", "assistant"]
    result = conversation.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert (result.tool_call_id, result.tool_name, result.details) == ("call_1", "look", {"seen": 1})


def test_another_model_for_one_request_and_from_now_on(server: ScriptedServer, client: Client):
    server.reply(CHAT.answer(), CLAUDE.answer(), CHAT.answer(), CLAUDE.answer(), CLAUDE.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    with Conversation(mine, client=client) as conversation:
        conversation.ask("one")
        assert conversation.ask("two", model=other).provider == "anthropic"
        assert conversation.ask("three").provider == "openai"
        conversation.switch(other)
        assert conversation.model is other
        conversation.ask("four")
        conversation.ask("five")
    assert [request.path for request in server.requests] == [
        "/chat/completions",
        "/v1/messages",
        "/chat/completions",
        "/v1/messages",
        "/v1/messages",
    ]


@pytest.mark.parametrize("sticky", [True, False])
def test_a_fallback_is_stayed_with_only_when_asked(server: ScriptedServer, client: Client, sticky: bool):
    down = Reply.json({"error": {"message": "no such model", "type": "not_found_error"}}, status=404)
    server.reply(down, CLAUDE.answer(), CLAUDE.answer() if sticky else CHAT.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    with Conversation(mine, client=client, fallback_models=[other], sticky=sticky) as conversation:
        conversation.ask("one")
        assert [attempt.model.provider for attempt in conversation.attempts] == ["openai", "anthropic"]
        assert conversation.model == (other if sticky else mine)
        conversation.ask("two")
        assert len(conversation.attempts) == 1


def test_a_client_stays_with_the_model_that_worked(server: ScriptedServer):
    down = Reply.json({"error": {"message": "no such model", "type": "not_found_error"}}, status=404)
    server.reply(down, CLAUDE.answer(), CLAUDE.answer(), down, CHAT.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    hello = Context(messages=(UserMessage.of("hello"),))
    with Client(sticky=True, retry=0, api_key={"openai": "key-of-openai"}) as client:
        for _ in range(3):
            client.complete(hello, mine, fallback_models=[other])
    paths = [request.path for request in server.requests]
    assert paths == ["/chat/completions", "/v1/messages", "/v1/messages", "/v1/messages", "/chat/completions"]
    assert "key-of-openai" not in str([request.headers for request in server.requests if "messages" in request.path])


def test_a_failed_request_is_kept_as_one(server: ScriptedServer, client: Client, tmp_path):
    server.reply(Reply.json({"error": {"message": "bad"}}, status=400), CHAT.answer())
    path = tmp_path / "session.jsonl"
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        with pytest.raises(RequestFailed) as raised:
            conversation.ask("hello")
        assert conversation.messages[-1] == raised.value.message
        assert raised.value.message.stop_reason == StopReason.ERROR
        assert conversation.ask().text() == TEXT
        assert read_session(path) == conversation.context
    assert [turn["role"] for turn in server.requests[1].json()["messages"]] == ["user"]  # pyright: ignore[reportGeneralTypeIssues]


def test_what_cannot_be_asked_leaves_nothing_behind(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        for wrong in ((), ("   ",)):
            with pytest.raises(EmptyConversation):
                conversation.ask(*wrong)
        assert conversation.messages == ()
        assert read_session(path).messages == ()


def test_a_stream_is_kept_however_it_ends(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    server.reply(
        CHAT.stream(), CHAT.stream().broken(Phase.BODY, "stall", 3), CHAT.stream().broken(Phase.BODY, "reset", 3)
    )
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        for event in conversation.stream("whole"):
            if event.type == "done":
                assert read_session(path).messages[-1] == event.message
        with conversation.stream("aborted") as stream:
            for event in stream:
                if event.type == "text_delta":
                    break
            with pytest.raises(ConversationError, match="has not ended"):
                conversation.ask("too early")
        list(conversation.stream("broken"))
        assert read_session(path) == conversation.context
    reasons = [message.stop_reason for message in conversation.messages if message.role == "assistant"]
    assert reasons == [StopReason.STOP, StopReason.ABORTED, StopReason.ERROR]


def test_a_session_is_opened_where_it_stopped(server: ScriptedServer, client: Client, tmp_path):
    server.reply(CHAT.answer(), CHAT.answer())
    path = tmp_path / "session.jsonl"
    model = CHAT.model(server.url)
    with Conversation(model, client=client, path=path, system_prompt="Be kind.") as conversation:
        conversation.ask("hello")
        before = conversation.context
    with Conversation(model, client=client, path=path, fsync=True) as conversation:
        assert conversation.context == before
        conversation.ask("again")
    with Conversation(model, client=client, path=path, system_prompt="Be brief.") as conversation:
        assert conversation.context.system_prompt == "Be brief."
        assert len(conversation.messages) == 4
    assert read_session(path) == conversation.context
    assert [each.name for each in tmp_path.iterdir()] == ["session.jsonl"]


def test_a_session_that_has_begun_cannot_begin_with_another(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    begun = Context(
        system_prompt="p", messages=(UserMessage.of("a"), AssistantMessage(content=(TextContent(text="b"),)))
    )
    with Conversation(CHAT.model(server.url), client=client, path=path, context=begun) as conversation:
        assert read_session(path) == conversation.context == begun
    with pytest.raises(ConversationError, match="holds a conversation already"):
        Conversation(CHAT.model(server.url), client=client, path=path, context=begun)
    Conversation(CHAT.model(server.url), client=client, path=path).close()


def test_the_last_model_is_asked_again_when_none_is_named(client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    with pytest.raises(SettingsError, match="which model"):
        Conversation(client=client, path=path)
    append_message(path, UserMessage.of("a"))
    append_message(path, new_assistant_message("anthropic/claude-opus-4-5", content=(TextContent(text="b"),)))
    with Conversation(client=client, path=path) as conversation:
        assert conversation.model.full_name() == "anthropic/claude-opus-4-5"


def test_a_request_costs_what_is_new_and_says_the_same(server: ScriptedServer, client: Client, monkeypatch):
    from segue.outbox import Outbox
    from segue.request import prepare

    made: list[Model] = []

    def counted(self: Outbox, model: Model, *rest: object) -> None:
        made.append(model)
        original(self, model, *rest)  # pyright: ignore[reportArgumentType]

    original = Outbox.__init__
    monkeypatch.setattr(Outbox, "__init__", counted)
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    server.reply(*[CHAT.answer(), CHAT.answer(), CLAUDE.answer(), CHAT.answer(), CLAUDE.answer()])
    with Conversation(mine, client=client, system_prompt="Be kind.", tools=[TOOL]) as conversation:
        for number, model in enumerate((mine, mine, other, mine, other)):
            conversation.ask(f"number {number}", model=model)
            asked = Context(system_prompt="Be kind.", tools=(TOOL,), messages=conversation.messages[:-1])
            assert server.requests[-1].body == prepare(asked, model).content
    assert made == [mine, other]


# -- one writer --------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_until_the_first_is_done(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    model = CHAT.model(server.url)
    with Conversation(model, client=client, path=path), pytest.raises(SessionLocked):
        Conversation(model, client=client, path=path)
    with Conversation(model, client=client, path=path):
        pass
    assert not (tmp_path / "session.jsonl.lock").exists()


HOLDER = """
import sys
from segue.client.session.locks import SessionLock
lock = SessionLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_writer_in_another_process_is_refused_and_a_dead_one_is_not(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SessionLocked):
            Conversation(CHAT.model(server.url), client=client, path=path)
        holder.kill()
        holder.wait()
    assert (tmp_path / "session.jsonl.lock").exists()
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        conversation.add(UserMessage.of("hello"))
    assert len(read_session(path).messages) == 1


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_the_same_with_tasks(server: ScriptedServer, tmp_path):
    path = tmp_path / "session.jsonl"
    server.reply(Reply.json(CALL), CHAT.stream(), CHAT.stream().broken(Phase.BODY, "stall", 3))

    async def run() -> None:
        client = AsyncClient(timeout=10.0)
        model = CHAT.model(server.url)
        async with client, AsyncConversation(model, client=client, path=path, tools=[TOOL]) as conversation:
            await conversation.ask("look")
            conversation.add_result(conversation.pending_calls()[0], "a tree")
            assert (await conversation.stream().result()).text() == TEXT
            stream = conversation.stream("and more")
            async for event in stream:
                if event.type == "text_delta":
                    await stream.close()
            assert stream.message.stop_reason == StopReason.ABORTED
            assert conversation.messages[-1] == stream.message
            assert read_session(path) == conversation.context

    asyncio.run(run())
    assert [message.role for message in read_session(path).messages][:4] == [
        "user",
        "assistant",
        "toolResult",
        "assistant",
    ]


def test_a_call_that_was_answered_is_not_pending():
    talked = Context(messages=(AssistantMessage(content=(ToolCall(id="a", name="x", arguments={}),)),))
    with Conversation(Model("m", "p", "openai-chat", base_url="http://127.0.0.1"), context=talked) as conversation:
        assert [call.id for call in conversation.pending_calls()] == ["a"]
        conversation.add_result(conversation.pending_calls()[0], "done")
        assert conversation.pending_calls() == ()
