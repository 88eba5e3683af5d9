"""Conversations and errors of storage: full disks, closed files, concurrent threads, messages that cannot be stored."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from client.wires import TEXT, WIRES
from segue.client.http.clients import Client
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.conversation.messages import StopReason, ToolResultMessage, UserMessage
from segue.errors import ConversationError, DumpError
from segue.histories.sessions import read_session
from servers.script import Phase
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]


@pytest.fixture
def client():
    with Client(retry=0, timeout=10.0) as made:
        yield made


FULL = """
import os, resource, sys, warnings
from segue import Model, read_session
from segue.client.http.clients import Client
from segue.client.session.conversation import Conversation

warnings.simplefilter("error")  # a torn line would raise
path, url = sys.argv[1:]
with Client(retry=0) as client, Conversation(
    Model("a-model", "mine", "openai-chat", base_url=url), client=client, path=path
) as conversation:
    conversation.ask("one")
    size = os.path.getsize(path)
    room = size + 150  # for the user message and half of the answer
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    for text in ("two", "x" * 500):
        try:
            conversation.ask(text)
        except OSError as error:
            print(type(error).__name__, len(conversation.messages), read_session(path) == conversation.context)
    answer = conversation.unkept
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    conversation.add(answer)
    conversation.ask("three")
    roles = [message.role for message in conversation.messages]
    print(conversation.unkept, read_session(path) == conversation.context, roles)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="of full disks (no resource limits)")
def test_a_full_disk_damages_neither_the_file_nor_the_answer(server: ScriptedServer, tmp_path: Path):
    server.reply(CHAT.answer(), CHAT.answer(), CHAT.answer())
    command = [sys.executable, "-c", FULL, str(tmp_path / "session.jsonl"), server.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "OSError 3 True",  # the user message is stored, the answer is not
        "OSError 3 True",  # a user message that cannot be stored is not sent
        "None True ['user', 'assistant', 'user', 'assistant', 'user', 'assistant']",
    ]
    assert len(server.requests) == 3


def test_concurrent_threads_do_not_mix_their_turns(server: ScriptedServer, client: Client):
    server.reply(*[CHAT.answer()] * 40)
    start = threading.Barrier(4)
    answers: list[str] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with Conversation(CHAT.model(server.url), client=client) as conversation:

        def ask() -> None:
            start.wait()
            for _ in range(8):
                try:
                    answers.append(conversation.ask("hello").text())
                except ConversationError:
                    answers.append("refused")

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
        answered = answers.count(TEXT)
        assert answered + answers.count("refused") == 32
        assert [message.role for message in conversation.messages] == ["user", "assistant"] * answered


def test_closing_a_conversation_ends_its_reply_and_stops_writing(
    server: ScriptedServer, client: Client, tmp_path: Path
):
    path = tmp_path / "session.jsonl"
    server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3))
    conversation = Conversation(CHAT.model(server.url), client=client, path=path)
    stream = conversation.stream("hello")
    next(stream)
    conversation.close()
    assert stream.message.stop_reason == StopReason.ABORTED
    assert read_session(path) == conversation.context
    assert [message.role for message in conversation.messages] == ["user", "assistant"]
    with Conversation(CHAT.model(server.url), client=client, path=path) as other:
        for late in (lambda: conversation.ask("late"), lambda: conversation.add(UserMessage.of("late"))):
            with pytest.raises(ConversationError, match="was closed"):
                late()
        assert read_session(path) == other.context
    assert len(server.requests) == 1


def test_closing_an_async_conversation_ends_its_reply(server: ScriptedServer, tmp_path: Path):
    import asyncio

    server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3))

    async def run() -> None:
        conversation = AsyncConversation(CHAT.model(server.url), path=tmp_path / "session.jsonl")
        stream = conversation.stream("hello")
        await anext(stream)
        await conversation.close()
        assert conversation.messages[-1] == stream.message
        assert stream.message.stop_reason == StopReason.ABORTED

    asyncio.run(run())


def test_an_unread_reply_does_not_block_the_next_request(server: ScriptedServer, client: Client):
    server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3), CHAT.answer())
    with Conversation(CHAT.model(server.url), client=client) as conversation:
        next(conversation.stream("hello"))
        assert conversation.ask("again").text() == TEXT
        assert [message.role for message in conversation.messages] == ["user", "assistant", "user", "assistant"]


DEEP: object = 1
for _ in range(300):
    DEEP = {"a": DEEP}
NOT_STORABLE = {
    "NaN": UserMessage.of("x", timestamp=float("nan")),  # pyright: ignore[reportArgumentType]
    "nested too deeply": ToolResultMessage(tool_call_id="a", tool_name="b", content=(), details=DEEP),
    "not a message": {"role": "user"},
}


@pytest.mark.parametrize("message", NOT_STORABLE.values(), ids=NOT_STORABLE.keys())
def test_a_message_that_cannot_be_stored_does_not_change_the_conversation(
    server: ScriptedServer, client: Client, tmp_path: Path, message
):
    path = tmp_path / "session.jsonl"
    server.reply(CHAT.answer())
    with Conversation(CHAT.model(server.url), client=client, path=path) as conversation:
        before = path.read_bytes()
        with pytest.raises((DumpError, ConversationError)):
            conversation.add(message)
        assert path.read_bytes() == before
        assert conversation.messages == ()
        assert conversation.ask("hello").text() == TEXT


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="of folders that nobody can write to (no /proc)")
def test_the_error_for_an_unwritable_folder_names_the_file(client: Client):
    with pytest.raises(OSError, match=r"session\.jsonl"):
        Conversation(CHAT.model("http://127.0.0.1"), client=client, path=f"/proc/{os.getpid()}/session.jsonl")
