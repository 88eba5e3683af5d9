"""The session file of an `AsyncConversation`: no file work on the event loop, in order, errors raised where one waits.

No test measures time. A slow file is a function that waits for an event which only another task sets.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from client.wires import TEXT, WIRES
from segue.client.http.clients import AsyncClient
from segue.client.session import history
from segue.client.session.conversation import AsyncConversation
from segue.conversation.messages import StopReason, UserMessage
from segue.errors import ConversationError, DumpError, SessionLocked, SettingsError, UnknownModel
from segue.histories import sessions
from segue.histories.sessions import append_message, read_session
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]
DEADLOCK = 30.0
"""Seconds after which a blocked event loop is a failed test and not a test that hangs."""

STEPS = {
    "lock": (history, "SessionLock"),
    "read": (history, "read_session_models"),
    "header": (history, "append_header"),
    "append": (history, "append_line"),
    "fsync": (os, "fsync"),
}


class SlowStep:
    """Replaces one file function: it waits until another task of the event loop has run."""

    def __init__(self, original: Callable[..., object]) -> None:
        self.original = original
        self.has_begun = threading.Event()
        self.another_task_ran = threading.Event()
        self.threads: list[threading.Thread] = []

    def __call__(self, *args: object, **settings: object) -> object:
        self.threads.append(threading.current_thread())
        self.has_begun.set()
        assert self.another_task_ran.wait(DEADLOCK), "the event loop was blocked"
        return self.original(*args, **settings)

    async def run_beside(self) -> None:
        assert await asyncio.to_thread(self.has_begun.wait, DEADLOCK)
        self.another_task_ran.set()


@pytest.mark.parametrize("step", STEPS)
def test_other_tasks_run_during_slow_file_work(server: ScriptedServer, tmp_path: Path, monkeypatch, step: str):
    path = tmp_path / "session.jsonl"
    append_message(path, UserMessage.of("before"))
    server.reply(CHAT.answer())
    owner, name = STEPS[step]
    slow = SlowStep(getattr(owner, name))
    monkeypatch.setattr(owner, name, slow)

    async def run() -> None:
        beside = asyncio.create_task(slow.run_beside())
        async with AsyncConversation(
            CHAT.model(server.url), path=path, fsync=True, system_prompt="Be kind."
        ) as conversation:
            conversation.add(UserMessage.of("added"))
            assert (await conversation.ask("hello")).text() == TEXT
            await beside
            assert read_session(path) == conversation.context

    asyncio.run(run())
    assert slow.threads
    assert threading.main_thread() not in slow.threads


def test_messages_are_written_in_the_order_they_were_added(tmp_path: Path):
    path = tmp_path / "session.jsonl"

    async def run() -> None:
        async with AsyncConversation(CHAT.model("http://127.0.0.1"), path=path) as conversation:
            for number in range(200):
                conversation.add(UserMessage.of(str(number)))
            assert len(conversation.messages) == 200
            await conversation.flush()
            assert read_session(path) == conversation.context

    asyncio.run(run())


def test_messages_that_nobody_waited_for_are_written_by_close(tmp_path: Path):
    path = tmp_path / "session.jsonl"

    async def run() -> None:
        conversation = AsyncConversation(CHAT.model("http://127.0.0.1"), path=path)
        conversation.add(UserMessage.of("hello"))
        await conversation.close()
        assert len(read_session(path).messages) == 1
        with pytest.raises(ConversationError, match="was closed"):
            conversation.add(UserMessage.of("late"))

    asyncio.run(run())


@pytest.fixture
def failing_disk(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Make every write fail while the first event is set; the second tells that one has failed."""
    is_full, has_failed = threading.Event(), threading.Event()
    original = sessions.append_line

    def write(*args: object, **settings: object) -> None:
        if is_full.is_set():
            has_failed.set()
            raise OSError(28, "No space left on device")
        original(*args, **settings)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(history, "append_line", write)
    return is_full, has_failed


@pytest.fixture
def full_disk(failing_disk: tuple[threading.Event, threading.Event]) -> threading.Event:
    return failing_disk[0]


def test_a_user_message_that_cannot_be_written_is_not_sent(server: ScriptedServer, tmp_path: Path, full_disk):
    path = tmp_path / "session.jsonl"
    server.reply(CHAT.answer())

    async def run() -> None:
        async with AsyncConversation(CHAT.model(server.url), path=path) as conversation:
            full_disk.set()
            for ask in (lambda: conversation.ask("one"), lambda: conversation.stream("two").result()):
                with pytest.raises(OSError, match="No space"):
                    await ask()
                assert conversation.messages == ()
            full_disk.clear()
            assert (await conversation.ask("three")).text() == TEXT
            assert read_session(path) == conversation.context
            assert len(conversation.messages) == 2

    asyncio.run(run())
    assert len(server.requests) == 1


def test_messages_after_one_that_cannot_be_written_are_not_written_either(tmp_path: Path, failing_disk):
    path = tmp_path / "session.jsonl"
    full_disk, has_failed = failing_disk

    async def run() -> None:
        async with AsyncConversation(CHAT.model("http://127.0.0.1"), path=path) as conversation:
            conversation.add(UserMessage.of("kept"))
            await conversation.flush()
            full_disk.set()
            conversation.add(UserMessage.of("lost"))
            assert await asyncio.to_thread(has_failed.wait, DEADLOCK)
            full_disk.clear()
            conversation.add(UserMessage.of("too late"))
            with pytest.raises(OSError, match="No space"):
                await conversation.flush()
            assert [message.content[0].text for message in conversation.messages] == ["kept"]  # pyright: ignore[reportAttributeAccessIssue]
            assert read_session(path) == conversation.context

    asyncio.run(run())


def test_an_answer_that_cannot_be_written_is_handed_back(server: ScriptedServer, tmp_path: Path, full_disk):
    path = tmp_path / "session.jsonl"
    server.reply(CHAT.answer())

    async def run() -> None:
        client = AsyncClient(on_attempt=lambda _: full_disk.set())
        async with client, AsyncConversation(CHAT.model(server.url), client=client, path=path) as conversation:
            with pytest.raises(OSError, match="No space"):
                await conversation.ask("hello")
            answer = conversation.unkept
            assert answer is not None
            assert [message.role for message in conversation.messages] == ["user"]
            full_disk.clear()
            conversation.add(answer)
            await conversation.flush()
            assert read_session(path) == conversation.context
            assert conversation.messages[-1] is answer

    asyncio.run(run())


def test_close_raises_a_write_error_and_still_releases_the_file(tmp_path: Path, full_disk):
    path = tmp_path / "session.jsonl"

    async def run() -> None:
        conversation = AsyncConversation(CHAT.model("http://127.0.0.1"), path=path)
        full_disk.set()
        conversation.add(UserMessage.of("lost"))
        with pytest.raises(OSError, match="No space"):
            await conversation.close()
        async with AsyncConversation(CHAT.model("http://127.0.0.1"), path=path) as second:
            assert second.messages == ()

    asyncio.run(run())


def test_a_message_that_cannot_be_stored_is_refused_at_once(tmp_path: Path):
    async def run() -> None:
        async with AsyncConversation(CHAT.model("http://127.0.0.1"), path=tmp_path / "session.jsonl") as conversation:
            with pytest.raises(DumpError):
                conversation.add(UserMessage.of("x", timestamp=float("nan")))  # pyright: ignore[reportArgumentType]
            assert conversation.messages == ()

    asyncio.run(run())


def test_a_second_writer_is_refused_by_async_with_and_by_ask(tmp_path: Path):
    path = tmp_path / "session.jsonl"
    model = CHAT.model("http://127.0.0.1")

    async def run() -> None:
        async with AsyncConversation(model, path=path):
            with pytest.raises(SessionLocked):
                async with AsyncConversation(model, path=path):
                    pass
            second = AsyncConversation(model, path=path)
            with pytest.raises(SessionLocked):
                await second.ask("hello")
            await second.close()
        assert not (tmp_path / "session.jsonl.lock").exists()

    asyncio.run(run())


def test_a_task_that_is_cancelled_while_the_file_opens_leaves_no_lock(tmp_path: Path, monkeypatch):
    path = tmp_path / "session.jsonl"
    slow = SlowStep(history.SessionLock)
    monkeypatch.setattr(history, "SessionLock", slow)

    async def enter() -> None:
        async with AsyncConversation(CHAT.model("http://127.0.0.1"), path=path):
            raise AssertionError("the task is cancelled before the file is open")

    async def run() -> None:
        task = asyncio.create_task(enter())
        assert await asyncio.to_thread(slow.has_begun.wait, DEADLOCK)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.another_task_ran.set()

    asyncio.run(run())
    assert not (tmp_path / "session.jsonl.lock").exists()


def test_a_task_that_is_cancelled_while_it_asks_has_its_turn_stored(server: ScriptedServer, tmp_path: Path):
    from servers.script import Phase

    path = tmp_path / "session.jsonl"
    server.reply(CHAT.answer().broken(Phase.HEADERS, "stall"))

    async def run() -> None:
        async with AsyncConversation(CHAT.model(server.url), path=path) as conversation:
            task = asyncio.create_task(conversation.ask("hello"))
            await asyncio.to_thread(server.wait_until, lambda it: it.stalled > 0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert read_session(path) == conversation.context
            last = conversation.messages[-1]
            assert last.role == "assistant"
            assert last.stop_reason == StopReason.ABORTED

    asyncio.run(run())


def test_without_an_event_loop_the_file_is_opened_and_written_at_once(tmp_path: Path, full_disk):
    path = tmp_path / "session.jsonl"
    model = CHAT.model("http://127.0.0.1")
    conversation = AsyncConversation(model, path=path)
    with pytest.raises(SessionLocked):
        AsyncConversation(model, path=path)
    conversation.add(UserMessage.of("hello"))
    assert read_session(path) == conversation.context
    full_disk.set()
    with pytest.raises(OSError, match="No space"):
        conversation.add(UserMessage.of("lost"))
    assert read_session(path) == conversation.context
    asyncio.run(conversation.close())


def test_a_model_is_checked_before_the_file_is_opened(tmp_path: Path):
    path = tmp_path / "session.jsonl"

    async def run() -> None:
        with pytest.raises(UnknownModel):
            AsyncConversation("no-such-model", path=path)
        with pytest.raises(SettingsError, match="pass a model"):
            async with AsyncConversation(path=path):
                pass

    asyncio.run(run())
    assert not (tmp_path / "session.jsonl.lock").exists()
