"""Conversations: what is stored and when, model switches, continued session files, one writer for each file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from client.both_clients import AT_ONCE
from client.wires import TEXT, WIRES
from segue.client.http.clients import AsyncClient, Client
from segue.client.session import locks
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.client.tools.toolbox import Toolbox
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import ConversationError, EmptyConversation, RequestFailed, SessionLocked, SettingsError
from segue.histories.sessions import append_message, read_session
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.planning.fallbacks import FallbackPolicy
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


def test_questions_and_answers_are_stored(server: ScriptedServer, client: Client, tmp_path):
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


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
def test_a_window_that_is_smaller_than_expected_is_found_once(server: ScriptedServer, is_async: bool):
    message = "This model's maximum context length is 4000 tokens. However, your messages resulted in 5000 tokens."
    refused = Reply.json({"error": {"code": "context_length_exceeded", "message": message}}, status=400)
    server.reply(refused, CHAT.answer(), CHAT.answer())
    long = tuple(
        message
        for number in range(20)
        for message in (
            UserMessage.of(f"question {number}"),
            AssistantMessage(content=(TextContent(text="word " * 200),)),
        )
    )
    model, context = CHAT.model(server.url), Context(messages=long)

    async def ask_async() -> list[str]:
        client = AsyncClient(api_key="a-key-of-nobody")
        async with client, AsyncConversation(model, client=client, context=context) as conversation:
            await conversation.ask("one")
            reasons = [attempt.reason for attempt in conversation.attempts]
            await conversation.ask("two")
            return [*reasons, *(attempt.reason for attempt in conversation.attempts)]

    def ask() -> list[str]:
        with (
            Client(api_key="a-key-of-nobody") as client,
            Conversation(model, client=client, context=context) as conversation,
        ):
            conversation.ask("one")
            reasons = [attempt.reason for attempt in conversation.attempts]
            conversation.ask("two")
            return [*reasons, *(attempt.reason for attempt in conversation.attempts)]

    assert (asyncio.run(ask_async()) if is_async else ask()) == ["first", "shortened", "first"]
    whole, shortened, later = (received.json()["messages"] for received in server.requests)
    assert isinstance(whole, list)
    assert isinstance(shortened, list)
    assert isinstance(later, list)
    assert len(shortened) < len(whole) / 2
    assert later[: len(shortened)] == shortened


def test_the_conversation_continues_after_a_tool_result(server: ScriptedServer, client: Client):
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
def test_a_fallback_model_is_kept_only_with_sticky(server: ScriptedServer, client: Client, sticky: bool):
    down = Reply.json({"error": {"message": "no such model", "type": "not_found_error"}}, status=404)
    server.reply(down, CLAUDE.answer(), CLAUDE.answer() if sticky else CHAT.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    with Conversation(mine, client=client, fallback_models=[other], sticky=sticky) as conversation:
        conversation.ask("one")
        assert [attempt.model.provider for attempt in conversation.attempts] == ["openai", "anthropic"]
        assert conversation.model == (other if sticky else mine)
        conversation.ask("two")
        assert len(conversation.attempts) == 1


def test_a_sticky_client_starts_at_the_model_that_answered_last(server: ScriptedServer):
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


def test_a_sticky_client_starts_at_the_first_model_where_the_candidates_are_others(server: ScriptedServer):
    down = Reply.json({"error": {"message": "no such model", "type": "not_found_error"}}, status=404)
    server.reply(down, CLAUDE.answer(), CHAT.answer(), CLAUDE.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    third = replace(mine, id="a-third-model")
    hello = Context(messages=(UserMessage.of("hello"),))
    with Client(sticky=True, retry=0, api_key="nobody") as client:
        client.complete(hello, mine, fallback_models=[other])
        client.complete(hello, mine, fallback_models=[third, other])
        client.complete(hello, mine, fallback_models=[other])
    paths = [request.path for request in server.requests]
    assert paths == ["/chat/completions", "/v1/messages", "/chat/completions", "/v1/messages"]


def test_a_failed_request_is_stored(server: ScriptedServer, client: Client, tmp_path):
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


def test_an_empty_request_stores_nothing(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        for wrong in ((), ("   ",)):
            with pytest.raises(EmptyConversation):
                conversation.ask(*wrong)
        assert conversation.messages == ()
        assert read_session(path).messages == ()


def test_a_stream_is_stored_however_it_ends(server: ScriptedServer, client: Client, tmp_path):
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


def test_an_existing_session_is_continued(server: ScriptedServer, client: Client, tmp_path):
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


def test_a_file_with_messages_refuses_a_context_with_messages(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    begun = Context(
        system_prompt="p", messages=(UserMessage.of("a"), AssistantMessage(content=(TextContent(text="b"),)))
    )
    with Conversation(CHAT.model(server.url), client=client, path=path, context=begun) as conversation:
        assert read_session(path) == conversation.context == begun
    with pytest.raises(ConversationError, match="already holds a conversation"):
        Conversation(CHAT.model(server.url), client=client, path=path, context=begun)
    Conversation(CHAT.model(server.url), client=client, path=path).close()


def test_without_a_model_the_last_one_of_the_file_is_used(client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    with pytest.raises(SettingsError, match="pass a model"):
        Conversation(client=client, path=path)
    append_message(path, UserMessage.of("a"))
    append_message(path, new_assistant_message("anthropic/claude-opus-4-5", content=(TextContent(text="b"),)))
    with Conversation(client=client, path=path) as conversation:
        assert conversation.model.full_name() == "anthropic/claude-opus-4-5"


def test_a_conversation_keeps_one_outbox_for_each_model(server: ScriptedServer, client: Client, monkeypatch):
    from segue.requests.outbox import Outbox
    from segue.requests.prepare import prepare

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


def test_a_second_writer_is_refused_until_the_first_is_closed(server: ScriptedServer, client: Client, tmp_path):
    path = tmp_path / "session.jsonl"
    model = CHAT.model(server.url)
    with Conversation(model, client=client, path=path), pytest.raises(SessionLocked):
        Conversation(model, client=client, path=path)
    with Conversation(model, client=client, path=path):
        mode = (tmp_path / "session.jsonl.lock").stat().st_mode
        assert os.name == "nt" or not mode & 0o111, "nobody runs it"
    with Conversation(model, client=client, path=path):
        pass
    assert not (tmp_path / "session.jsonl.lock").exists()


def through_a_symbolic_link(path: Path, link: Path) -> Path:
    link.symlink_to(path)
    return link


def through_a_linked_folder(path: Path, link: Path) -> Path:
    link.symlink_to(path.parent)
    return link / path.name


def through_a_relative_link(path: Path, link: Path) -> Path:
    link.symlink_to(os.path.relpath(path, link.parent))
    return link


def through_a_hard_link(path: Path, link: Path) -> Path:
    link.hardlink_to(path)
    return link


LINKS = [through_a_symbolic_link, through_a_linked_folder, through_a_relative_link]
if sys.platform == "linux":
    LINKS.append(through_a_hard_link)


@pytest.mark.parametrize("is_new", [True, False], ids=["a new file", "an existing file"])
@pytest.mark.parametrize("first_is_linked", [False, True], ids=["the link second", "the link first"])
@pytest.mark.parametrize("make_link", LINKS, ids=lambda make: make.__name__)
def test_one_file_has_one_writer_whatever_path_leads_to_it(
    server: ScriptedServer, client: Client, tmp_path, make_link, first_is_linked, is_new
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    path = tmp_path / "a" / "session.jsonl"
    model = CHAT.model(server.url)
    if not is_new or (make_link is through_a_hard_link and first_is_linked):
        append_message(path, UserMessage.of("hi"))
    link = tmp_path / "b" / "link"
    is_late = make_link is through_a_hard_link and not path.exists()
    other = path if is_late else make_link(path, link)
    first, second = (other, path) if first_is_linked else (path, other)
    with Conversation(model, client=client, path=first) as conversation:
        second = make_link(path, link) if is_late else second
        with pytest.raises(SessionLocked, match="close it first"):
            Conversation(model, client=client, path=second)
        conversation.add(UserMessage.of("ho"))
        append_message(second, UserMessage.of("by hand"))  # single lines may be appended by others
    with Conversation(model, client=client, path=second) as conversation:
        texts = [message.content[0] for message in conversation.messages]
    assert texts[-2:] == [TextContent(text="ho"), TextContent(text="by hand")]
    assert not list(tmp_path.rglob("*.lock"))


def test_a_lock_that_would_keep_appends_out_is_given_up(tmp_path, monkeypatch):
    """On a network file system the two kinds of locks are one."""
    path = tmp_path / "session.jsonl"
    append_message(path, UserMessage.of("hi"))
    monkeypatch.setattr(locks, "_blocks_appends", lambda session: True)
    lock = locks.SessionLock(path)
    append_message(path, UserMessage.of("ho"))
    with pytest.raises(SessionLocked):
        locks.SessionLock(path)
    lock.release()


HOLDER = """
import sys
from pathlib import Path
from segue.client.session.locks import SessionLock
lock = SessionLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_the_lock_of_another_process_holds_until_that_process_ends(server: ScriptedServer, client: Client, tmp_path):
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


# -- asyncio -----------------------------------------------------------------------------------------------------------


def test_an_async_conversation_stores_the_same_messages(server: ScriptedServer, tmp_path):
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


def test_a_call_with_a_result_is_not_pending():
    context = Context(messages=(AssistantMessage(content=(ToolCall(id="a", name="x", arguments={}),)),))
    with Conversation(Model("m", "p", "openai-chat", base_url="http://127.0.0.1"), context=context) as conversation:
        assert [call.id for call in conversation.pending_calls()] == ["a"]
        conversation.add_result(conversation.pending_calls()[0], "done")
        assert conversation.pending_calls() == ()


# -- wrong settings ----------------------------------------------------------------------------------------------------

MISTAKES = {
    "a setting of the client": ({"api_key": "x"}, r"pass client=Client\(api_key=\.\.\.\)"),
    "another setting of the client": ({"timeout": 3}, r"pass client=Client\(timeout=\.\.\.\)"),
    "an option": ({"temperature": 1.0}, r"pass options=Options\(temperature=\.\.\.\)"),
    "a field of the policy": ({"reasoning": "drop"}, r"pass policy=Policy\(reasoning=\.\.\.\)"),
    "a typo": ({"system_promt": "x"}, r"did you mean system_prompt=\.\.\.\?"),
    "an unknown name": ({"zzz": 1}, "the settings are .*path.*client and model"),
}


def test_a_client_of_another_kind_is_refused():
    for wrong in (Client, AsyncClient(), "client"):
        with pytest.raises(
            SettingsError, match=r"Conversation\(client=...\) takes a client, got .*; write client=Client"
        ):
            Conversation("echo", client=wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(SettingsError, match=r"write client=AsyncClient"):
            AsyncConversation("echo", client=Client())  # pyright: ignore[reportArgumentType]


def test_only_messages_and_results_of_calls_are_added():
    with Conversation("echo") as conversation:
        with pytest.raises(ConversationError, match=r"got dict; write context.add\(UserMessage.of"):
            conversation.add({"role": "user", "content": "hi"})  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConversationError, match=r"got a value of type str; pass one of pending_calls"):
            conversation.add_result("call_1", "rain")  # pyright: ignore[reportArgumentType]
        assert conversation.messages == ()


def test_a_toolbox_is_a_list_of_tools():
    def weather(city: str) -> str:
        return city

    toolbox = Toolbox(weather)
    with Conversation("echo", tools=toolbox) as conversation:
        assert conversation.context.tools == toolbox.definitions
    with (
        Conversation("echo", tools=[weather]) as conversation,  # pyright: ignore[reportArgumentType]
        pytest.raises(ConversationError, match=r"tools\[0\]: .*type function; write Toolbox\(function\).definitions"),
    ):
        conversation.ask("hi")


@pytest.mark.parametrize(("settings", "advice"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_unknown_setting_is_refused_with_advice(settings: dict[str, object], advice: str):
    name = next(iter(settings))
    with pytest.raises(
        SettingsError, match=rf"Conversation\(\) got an unexpected setting '{name}'; {advice}"
    ) as raised:
        Conversation("anthropic/claude-opus-4-5", **settings)  # pyright: ignore[reportArgumentType]
    assert raised.value.key == name


def test_advice_for_an_async_conversation_names_the_async_client():
    with pytest.raises(SettingsError, match=r"AsyncConversation\(\) got .* pass client=AsyncClient\(api_key=\.\.\.\)"):
        AsyncConversation("anthropic/claude-opus-4-5", api_key="x")  # pyright: ignore[reportCallIssue]


def test_a_conversation_with_a_policy_returns_to_its_first_model_when_it_has_rested(
    server: ScriptedServer, client: Client
):
    down = Reply.json({"error": {"message": "no such model", "type": "not_found_error"}}, status=404)
    server.reply(down, CLAUDE.answer(), CLAUDE.answer(), CHAT.answer(), CHAT.answer())
    mine, other = CHAT.model(server.url), CLAUDE.model(server.url)
    policy = FallbackPolicy([other], rest_seconds=3600.0)
    with Conversation(mine, client=client, fallback_models=policy, sticky=True) as conversation:
        conversation.ask("one")
        assert conversation.model == other
        conversation.ask("two")
        assert conversation.model == other
        conversation._first = (mine, 0)  # it has rested
        conversation.ask("three")
        assert conversation.model == mine
        conversation.ask("four")
    paths = [request.path for request in server.requests]
    assert paths == ["/chat/completions", "/v1/messages", "/v1/messages", "/chat/completions", "/chat/completions"]
