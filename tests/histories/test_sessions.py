"""Session files: every line survives, a torn one is moved aside, a bad one is named."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import warnings
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ancestors import GO, GO_READ, PI, PI_READ
from property_testing import scaled_examples
from samples import EVERYTHING
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Origin, Summary, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.conversation.stored import dump, dump_message, dump_summary
from segue.errors import ConversationError, DumpError, LoadError, NewerFormat, SessionChanged, TornLine
from segue.histories import sessions
from segue.histories.sessions import (
    append_header,
    append_message,
    append_model,
    append_summary,
    read_session,
    read_session_models,
    session_file,
    write_session,
)
from segue.models.model import Model
from strategies import messages, storable_contexts, summaries

HEADER: Final = b'{"format":"segue/1"}'
HI: Final = b'{"role":"user","content":[{"type":"text","text":"hi"}]}'
HO: Final = b'{"role":"user","content":[{"type":"text","text":"ho"}]}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def torn(path: Path) -> Path:
    return path.with_name(path.name + ".torn")


def lines(*stored: bytes) -> bytes:
    return b"".join(line + b"\n" for line in stored)


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_session_begins_with_a_header_and_has_a_line_for_each_message(path):
    append_message(path, UserMessage.of("hi"))
    append_message(path, UserMessage.of("ho"))
    assert path.read_bytes() == lines(HEADER, HI, HO)
    assert read_session(path) == Context(messages=(UserMessage.of("hi"), UserMessage.of("ho")))


def test_a_header_holds_everything_but_the_messages(path):
    append_header(path, EVERYTHING)
    for message in EVERYTHING.messages:
        append_message(path, message)
    for summary in EVERYTHING.summaries:
        append_summary(path, summary)
    assert read_session(path) == EVERYTHING
    assert b'"messages"' not in path.read_bytes()
    assert b'"summaries"' not in path.read_bytes()


def test_a_header_further_down_replaces_the_one_before(path):
    append_header(path, Context(system_prompt="a", tools=(ToolDefinition(name="t"),), extra={"x": {}}))
    append_message(path, UserMessage.of("hi"))
    append_header(path, Context(system_prompt="b"))
    append_message(path, UserMessage.of("ho"))
    assert read_session(path) == Context(system_prompt="b", messages=(UserMessage.of("hi"), UserMessage.of("ho")))


def test_a_summary_is_a_line_of_its_own(path):
    summary = Summary(covers=1, text="a greeting", origin=Origin(protocol="p", provider="v", model="m"), timestamp=1)
    append_message(path, UserMessage.of("hi"))
    append_summary(path, summary)
    append_message(path, UserMessage.of("ho"))
    line = (
        b'{"type":"summary","covers":1,"text":"a greeting",'
        b'"origin":{"protocol":"p","provider":"v","model":"m"},"timestamp":1}'
    )
    assert path.read_bytes() == lines(HEADER, HI, line, HO)
    assert read_session(path) == Context(messages=(UserMessage.of("hi"), UserMessage.of("ho")), summaries=(summary,))


def test_a_summary_creates_a_file_and_moves_a_torn_line_away(path):
    append_summary(path, Summary(covers=0, text="a"))
    with path.open("ab") as file:
        file.write(HI[:-1])
    append_summary(path, Summary(covers=0, text="b"))
    assert path.read_bytes() == lines(
        HEADER, b'{"type":"summary","covers":0,"text":"a"}', b'{"type":"summary","covers":0,"text":"b"}'
    )
    assert torn(path).read_bytes() == HI[:-1] + b"\n"


def test_a_header_further_down_keeps_the_summaries(path):
    summary = Summary(covers=1, text="a greeting")
    append_message(path, UserMessage.of("hi"))
    append_summary(path, summary)
    append_header(path, Context(system_prompt="b", summaries=(Summary(covers=9, text="not stored in a header"),)))
    assert read_session(path) == Context(system_prompt="b", messages=(UserMessage.of("hi"),), summaries=(summary,))


def test_a_summary_that_cannot_be_stored_leaves_the_file_as_it_was(path):
    with pytest.raises(DumpError) as caught:
        append_summary(path, Summary(covers=-1, text="a"))
    assert caught.value.path == ("covers",)
    assert not path.exists()


@scaled_examples(0.3)
@given(summaries())
def test_the_line_of_any_summary_is_read(summary):
    line = dump_summary(summary)
    assert b"\n" not in line
    assert sessions.read_session_lines([HEADER, line], name="").summaries == (summary,)


def test_an_empty_file_gets_a_header(path):
    path.touch()
    append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == lines(HEADER, HI)


def test_a_path_may_be_text(path):
    append_message(str(path), UserMessage.of("hi"))
    assert read_session(str(path)).messages == (UserMessage.of("hi"),)


def test_each_line_is_one_write(path, monkeypatch):
    written: list[bytes] = []

    def write(handle: int, data: memoryview) -> int:
        written.append(bytes(data))
        return os_write(handle, data)

    os_write = os.write
    monkeypatch.setattr(sessions.os, "write", write)
    append_message(path, UserMessage.of("x" * 1_000_000))
    append_message(path, UserMessage.of("hi"))
    assert [data.count(b"\n") for data in written] == [1, 1, 1]
    assert b"".join(written) == path.read_bytes()


def test_a_partial_write_is_continued(path, monkeypatch):
    os_write = os.write
    monkeypatch.setattr(sessions.os, "write", lambda handle, data: os_write(handle, data[:7]))
    append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == lines(HEADER, HI)


@pytest.mark.parametrize("fsync", [False, True], ids=["in its own time", "before returning"])
def test_fsync_waits_for_the_disk(path, monkeypatch, fsync):
    synced: list[int] = []
    monkeypatch.setattr(sessions.os, "fsync", synced.append)
    append_header(path, Context(system_prompt="a"), fsync=fsync)
    append_message(path, UserMessage.of("hi"), fsync=fsync)
    append_summary(path, Summary(covers=1, text="a greeting"), fsync=fsync)
    assert len(synced) == 4 * fsync  # the file three times, and the directory of the new file


def identity(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def test_fsync_of_a_new_file_also_writes_its_directory_entry(path, monkeypatch):
    synced: list[tuple[int, int]] = []
    monkeypatch.setattr(sessions.os, "fsync", lambda handle: synced.append(identity(handle)))
    append_message(path, UserMessage.of("hi"), fsync=True)
    folder, file = ((found.st_dev, found.st_ino) for found in (path.parent.stat(), path.stat()))
    assert synced == [file, folder]
    append_message(path, UserMessage.of("ho"), fsync=True)
    assert synced == [file, folder, file]


def test_fsync_through_a_link_writes_the_directory_of_the_real_file(path, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(path)
    synced: list[tuple[int, int]] = []
    monkeypatch.setattr(sessions.os, "fsync", lambda handle: synced.append(identity(handle)))
    append_message(tmp_path / "elsewhere" / "link", UserMessage.of("hi"), fsync=True)
    assert synced[1] == (path.parent.stat().st_dev, path.parent.stat().st_ino)


def test_a_torn_line_is_on_the_disk_before_it_leaves_the_session(path, monkeypatch):
    path.write_bytes(lines(HEADER, HI) + b'{"role":')
    synced: list[tuple[tuple[int, int], int]] = []
    monkeypatch.setattr(sessions.os, "fsync", lambda handle: synced.append((identity(handle), path.stat().st_size)))
    append_message(path, UserMessage.of("ho"))
    whole = len(lines(HEADER, HI)) + len(b'{"role":')
    folder, moved = ((found.st_dev, found.st_ino) for found in (path.parent.stat(), torn(path).stat()))
    assert synced == [(moved, whole), (folder, whole)]


def test_a_message_that_cannot_be_stored_leaves_the_file_as_it_was(path):
    unstorable = ToolResultMessage(tool_call_id="a", content=(), details={"a": b"bytes"})
    with pytest.raises(DumpError) as caught:
        append_message(path, unstorable)
    assert caught.value.path == ("details", "a")
    assert not path.exists()


def test_a_file_system_without_locks_is_written(path, monkeypatch):
    def refuse(handle: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(sessions.fcntl, "flock", refuse)
    append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == lines(HEADER, HI)


def _append_many(path: Path, name: str) -> None:
    for number in range(25):
        append_message(path, UserMessage.of(f"{name}{number}" + "x" * 5000))


def test_two_processes_may_append_at_once(path):
    writers = [multiprocessing.get_context("fork").Process(target=_append_many, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    texts = [message.content[0].text.rstrip("x") for message in read_session(path).messages]  # type: ignore[union-attr]
    assert sorted(texts) == sorted(f"{name}{number}" for name in "ab" for number in range(25))
    assert [text for text in texts if text.startswith("a")] == [f"a{number}" for number in range(25)]
    assert not torn(path).exists()


def test_a_message_appended_while_the_file_is_replaced_is_in_the_new_file(path, monkeypatch):
    write_session(path, Context())
    lock = sessions.fcntl.flock
    replaced: list[int] = []

    def replace_first(handle: int, operation: int) -> None:
        """Another program replaces the file after this one has opened it, and before it has the lock."""
        monkeypatch.setattr(sessions.fcntl, "flock", lock)
        replaced.append(handle)
        write_session(path, Context(system_prompt="new"))
        lock(handle, operation)

    monkeypatch.setattr(sessions.fcntl, "flock", replace_first)
    append_message(path, UserMessage.of("hi"))
    assert replaced
    assert read_session(path) == Context(system_prompt="new", messages=(UserMessage.of("hi"),))


def test_a_file_is_not_replaced_while_another_program_appends(path, monkeypatch):
    write_session(path, Context())
    held: list[bool] = []
    replace = os.replace

    def look(source: str, target: str) -> None:
        with path.open("ab") as other, pytest.raises(BlockingIOError):
            sessions.fcntl.flock(other, sessions.fcntl.LOCK_EX | sessions.fcntl.LOCK_NB)
        held.append(True)
        replace(source, target)

    monkeypatch.setattr(sessions.os, "replace", look)
    write_session(path, Context(system_prompt="new"))
    assert held


@pytest.mark.skipif(os.name == "nt", reason="of links and permissions (Windows)")
def test_files_are_for_their_owner_alone(path, tmp_path):
    append_message(path, UserMessage.of("hi"))
    with path.open("ab") as file:
        file.write(b'{"role":')
    append_message(path, UserMessage.of("ho"))
    other = tmp_path / "other.jsonl"
    write_session(other, Context())
    assert {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {
        path.name: 0o600,
        torn(path).name: 0o600,
        other.name: 0o600,
    }


@pytest.mark.skipif(os.name == "nt", reason="of links and pipes (Windows)")
def test_a_torn_line_follows_no_planted_link_and_waits_for_no_planted_pipe(path, tmp_path):
    path.write_bytes(lines(HEADER, HI) + b'{"role":')
    victim = tmp_path / "victim"
    torn(path).symlink_to(victim)
    os.mkfifo(f"{torn(path)}.1")
    append_message(path, UserMessage.of("ho"))
    assert not victim.exists()
    assert Path(f"{torn(path)}.2").read_bytes() == b'{"role":\n'
    assert path.read_bytes() == lines(HEADER, HI, HO)


# -- reading ----------------------------------------------------------------------------------------------------------

READ: Final[Mapping[str, tuple[bytes, Context]]] = {
    "an empty file": (b"", Context()),
    "a header alone": (lines(b'{"format":"segue/1","systemPrompt":"a"}'), Context(system_prompt="a")),
    "a last line without a line break": (HEADER + b"\n" + HI, Context(messages=(UserMessage.of("hi"),))),
    "a header without a line break": (HEADER, Context()),
    "blank lines": (b"\n" + lines(HEADER, b"", b"  ", HI) + b" \t", Context(messages=(UserMessage.of("hi"),))),
    "line breaks of Windows": (HEADER + b"\r\n" + HI + b"\r\n", Context(messages=(UserMessage.of("hi"),))),
    "a byte order mark": (b"\xef\xbb\xbf" + lines(HEADER, HI), Context(messages=(UserMessage.of("hi"),))),
    "unknown fields in both kinds of line": (
        lines(b'{"format":"segue/1","a":1}', b'{"role":"user","content":[],"b":2}'),
        Context(messages=(UserMessage(content=(), extra={"stored": {"b": 2}}),), extra={"stored": {"a": 1}}),
    ),
    "a whole conversation on a line": (
        lines(dump(Context(system_prompt="a", messages=(UserMessage.of("hi"),))), HO),
        Context(system_prompt="a", messages=(UserMessage.of("hi"), UserMessage.of("ho"))),
    ),
    "a whole conversation with a summary on a line": (
        lines(dump(Context(messages=(UserMessage.of("hi"),), summaries=(Summary(covers=1, text="a"),))), HO),
        Context(messages=(UserMessage.of("hi"), UserMessage.of("ho")), summaries=(Summary(covers=1, text="a"),)),
    ),
    "a whole conversation behind other messages, whose summary does not cover those": (
        lines(HEADER, HI, dump(Context(messages=(UserMessage.of("ho"),), summaries=(Summary(covers=1, text="a"),)))),
        Context(messages=(UserMessage.of("hi"), UserMessage.of("ho"))),
    ),
    "a summary with unknown fields": (
        lines(
            HEADER,
            b'{"type":"summary","covers":1.0,"text":"a","a":1,"origin":{"protocol":"p","provider":"v",'
            b'"model":"m","b":2}}',
        ),
        Context(
            summaries=(
                Summary(
                    covers=1,
                    text="a",
                    origin=Origin(protocol="p", provider="v", model="m", extra={"stored": {"b": 2}}),
                    extra={"stored": {"a": 1}},
                ),
            )
        ),
    ),
    "a summary of an ancestor's lines": (
        lines(b'{"role":"system","content":"a"}', HI, b'{"type":"summary","covers":1,"text":"b"}'),
        Context(system_prompt="a", messages=(UserMessage.of("hi"),), summaries=(Summary(covers=1, text="b"),)),
    ),
    "messages of the Go library": (
        lines(*(json.dumps(message).encode() for message in GO["messages"])),  # type: ignore[union-attr]
        Context(messages=GO_READ.messages),
    ),
    "messages of pi": (
        lines(*(json.dumps(message).encode() for message in PI["messages"])),
        msgspec.structs.replace(PI_READ, tools=()),
    ),
    "an ancestor's lines, a header, and ours": (
        lines(
            b'{"role":"system","content":"a"}',
            b'{"role":"assistant","content":[],"api":"openai-completions"}',
            b'{"format":"segue/1","systemPrompt":"b"}',
            b'{"role":"assistant","content":[],"protocol":"openai-completions"}',
        ),
        Context(
            system_prompt="b",
            messages=(
                SystemMessage.of("a"),
                AssistantMessage(content=(), protocol="openai-chat"),
                AssistantMessage(content=(), protocol="openai-completions"),
            ),
        ),
    ),
    "lone surrogates": (
        lines(HEADER, rb'{"role":"user","content":[{"type":"text","text":"\ud800"}]}'),
        Context(messages=(UserMessage.of("\ud800"),)),
    ),
}


@pytest.mark.parametrize(("stored", "context"), READ.values(), ids=READ.keys())
def test_a_session_is_read_that_has(path, stored, context):
    path.write_bytes(stored)
    assert read_session(path) == context


@scaled_examples(0.3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(storable_contexts(max_messages=3))
def test_appended_messages_are_read(tmp_path, context):
    path = tmp_path / "session.jsonl"
    path.unlink(missing_ok=True)
    append_header(path, context)
    for message in context.messages:
        append_message(path, message)
    for summary in context.summaries:
        append_summary(path, summary)
    assert read_session(path) == context


class Bad(msgspec.Struct):
    stored: bytes
    line: int
    path: tuple[str | int, ...]


BAD: Final[Mapping[str, Bad]] = {
    "a line that is no JSON": Bad(lines(HEADER, b"{", HI), 2, ()),
    "a line that was cut off, with more after it": Bad(lines(HEADER, HI[:-1], HI), 2, ()),
    "a last line that is no JSON, with its line break": Bad(lines(HEADER, HI[:-1]), 2, ()),
    "a last line that is JSON and no message": Bad(lines(HEADER) + b'{"role":"nope"}', 2, ("role",)),
    "a number": Bad(lines(HEADER, b"", b"1"), 3, ()),
    "a wrong type": Bad(
        lines(HEADER, b'{"role":"user","content":[{"type":"text","text":1}]}'), 2, ("content", 0, "text")
    ),
    "neither a message nor a header": Bad(lines(HEADER, b'{"type":"session"}'), 2, ("role",)),
    "a summary without its text": Bad(lines(HEADER, b'{"type":"summary","covers":1}'), 2, ("text",)),
    "the same in the first line": Bad(lines(b'{"type":"session"}'), 1, ("role",)),
    "a foreign word in one of our lines": Bad(
        lines(HEADER, b'{"role":"assistant","content":[],"stopReason":"deferred"}'), 2, ("stopReason",)
    ),
    "an unknown format": Bad(lines(b'{"format":"x"}'), 1, ("format",)),
    "bytes that are no UTF-8": Bad(lines(HEADER, b'"\xff"'), 2, ()),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_line_is_named(path, bad):
    path.write_bytes(bad.stored)
    with pytest.raises(LoadError, match=rf"^{re.escape(str(path))}: line {bad.line}: ") as caught:
        read_session(path)
    assert (caught.value.line, caught.value.path) == (bad.line, bad.path)
    assert not isinstance(caught.value.__cause__, LoadError)
    assert path.read_bytes() == bad.stored


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b'{"format":"segue/2"}\n', id="a header"),
        pytest.param(b'\n \n{"format":"segue/2"}\n', id="behind blank lines"),
        pytest.param(b'{ "format" : "segue/2", "new": [1]}\n' + HI + b"\n", id="written by hand"),
        pytest.param(b'{"new":{"format":"segue/1"},"format":"segue/2"}\n', id="not the first field"),
        pytest.param(b'{"new":"' + b"x" * 100_000 + b'","format":"segue/2"}\n', id="a long header"),
        pytest.param(b'{"format":"segue/2"}', id="without a line break"),
        pytest.param(b'{"format":"segue/2","sys', id="cut off"),
        pytest.param(b'{"format":"segue/2"}\n{"role":"us', id="with a torn line"),
    ],
)
def test_nothing_is_written_to_a_file_of_a_newer_format(path, first):
    path.write_bytes(first)
    for append in (
        lambda: append_message(path, UserMessage.of("hi")),
        lambda: append_header(path, Context(system_prompt="a")),
    ):
        with pytest.raises(NewerFormat, match="upgrade segue") as caught:
            append()
        assert (caught.value.line, caught.value.path) == (1, ("format",))
    assert path.read_bytes() == first
    assert not torn(path).exists()


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(HI, id="a message"),
        pytest.param(b'{"role":"user","content":"{\\"format\\":\\"segue/2\\"}"}', id="a message about the format"),
        pytest.param(b'{"format":"other/2","messages":[]}', id="another format"),
        pytest.param(b"[1]", id="no header"),
        pytest.param(b"not JSON", id="no JSON"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_any_other_first_line_is_appended_to(path, first):
    path.write_bytes(first + b"\n")
    append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == lines(first, HI)


def test_a_newer_format_further_down_is_refused(path):
    path.write_bytes(lines(HEADER, HI, b'{"format":"segue/2"}'))
    with pytest.raises(NewerFormat) as caught:
        read_session(path)
    assert caught.value.line == 3


def test_a_file_that_is_not_there_is_reported_by_the_system(path):
    with pytest.raises(FileNotFoundError):
        read_session(path)


# -- torn lines -------------------------------------------------------------------------------------------------------

ONE_OF_EACH: Final[tuple[Message, ...]] = (UserMessage.of("é😀"), *EVERYTHING.messages[1:3])


def test_a_torn_last_line_is_skipped_with_a_warning(path):
    path.write_bytes(lines(HEADER, HI) + HO[:-1])
    with pytest.warns(TornLine, match="line 3") as caught:
        context = read_session(path)
    assert context.messages == (UserMessage.of("hi"),)
    assert caught[0].filename == __file__


def test_a_session_cut_off_anywhere_gives_everything_before_the_cut(path):
    whole = lines(HEADER, *(dump_message(message) for message in ONE_OF_EACH))
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            context = read_session(path)
        # A line that lacks only its line break is whole.
        complete = sum(cut >= end - 1 for end in ends)
        assert context.messages == ONE_OF_EACH[: max(0, complete - 1)]
        is_torn = cut not in {0, *ends, *(end - 1 for end in ends)}
        assert [warning.category for warning in caught] == [TornLine] * is_torn


def test_appending_to_a_session_cut_off_anywhere_loses_nothing(path):
    whole = lines(HEADER, *(dump_message(message) for message in ONE_OF_EACH))
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(1, len(whole), 3):
        path.write_bytes(whole[:cut])
        torn(path).unlink(missing_ok=True)
        append_message(path, UserMessage.of("next"))
        complete = sum(cut >= end - 1 for end in ends)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            context = read_session(path)
        assert context.messages == (*ONE_OF_EACH[: max(0, complete - 1)], UserMessage.of("next"))
        start = max((end for end in ends if end <= cut), default=0)
        is_torn = cut not in {start, *(end - 1 for end in ends)}
        assert path.read_bytes().startswith(whole[:start] if is_torn else whole[:cut])
        assert torn(path).exists() == is_torn
        assert not is_torn or torn(path).read_bytes() == whole[start:cut] + b"\n"


def test_torn_lines_are_collected(path):
    for half in (b'{"role":', b'{"ro'):
        with path.open("ab") as file:
            file.write(half)
        append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == lines(HEADER, HI, HI)
    assert torn(path).read_bytes() == lines(b'{"role":', b'{"ro')


def test_a_complete_last_line_gets_its_line_break(path):
    path.write_bytes(HEADER + b"\n" + HI)
    append_message(path, UserMessage.of("ho"))
    assert path.read_bytes() == lines(HEADER, HI, HO)
    assert not torn(path).exists()


def test_a_long_torn_line_is_moved_whole(path):
    long = dump_message(UserMessage.of("x" * 100_000))[:-1]
    path.write_bytes(lines(HEADER, HI) + long)
    append_header(path, Context(system_prompt="b"))
    assert torn(path).read_bytes() == long + b"\n"
    assert read_session(path) == Context(system_prompt="b", messages=(UserMessage.of("hi"),))


def test_every_byte_behind_the_last_line_break_is_read_once(path, monkeypatch):
    """An append that reads a torn line several times holds the lock for minutes."""
    read = os.read
    sizes: list[int] = []

    def counting(handle: int, size: int) -> bytes:
        data = read(handle, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(sessions.os, "read", counting)
    long = b'{"role":"user","content":"' + b"x" * 20_000_000
    path.write_bytes(lines(HEADER, HI) + long)
    append_message(path, UserMessage.of("ho"))
    assert sum(sizes) < len(long) + (1 << 23)
    assert len(sizes) < 40
    assert torn(path).read_bytes() == long + b"\n"
    assert path.read_bytes() == lines(HEADER, HI, HO)


@pytest.mark.parametrize("most", [1, 7, 4096])
def test_short_reads_lose_nothing(path, monkeypatch, most):
    read = os.read
    monkeypatch.setattr(sessions.os, "read", lambda handle, size: read(handle, min(size, most)))
    half = b'{"role":"user","content":"' + b"x" * 10_000
    path.write_bytes(lines(HEADER, HI) + half)
    append_message(path, UserMessage.of("ho"))
    assert path.read_bytes() == lines(HEADER, HI, HO)
    assert torn(path).read_bytes() == half + b"\n"


def test_zeros_that_a_crash_left_are_a_torn_line(path):
    path.write_bytes(lines(HEADER, HI) + b"\x00" * 100)
    with pytest.warns(TornLine):
        assert read_session(path).messages == (UserMessage.of("hi"),)


@scaled_examples(0.5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(messages(), min_size=1, max_size=2), st.binary(max_size=30))
def test_appending_keeps_every_earlier_line_whatever_the_end(tmp_path, earlier, rest):
    path = tmp_path / "session.jsonl"
    path.unlink(missing_ok=True)
    torn(path).unlink(missing_ok=True)
    for message in earlier:
        append_message(path, message)
    before = path.read_bytes()
    with path.open("ab") as file:
        file.write(rest)
    append_message(path, UserMessage(content=(TextContent(text="next"),)))
    assert path.read_bytes().startswith(before)
    assert path.read_bytes().endswith(b"\n" + dump_message(UserMessage.of("next")) + b"\n")


# -- whole sessions ----------------------------------------------------------------------------------------------------


def test_a_whole_session_is_written_and_replaced(path):
    context = Context(system_prompt="Be kind.", messages=ONE_OF_EACH)
    for _ in range(2):
        write_session(path, context)
        assert read_session(path) == context
    write_session(path, Context())
    assert read_session(path) == Context()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@given(context=storable_contexts())
@scaled_examples(1, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_conversation_can_be_written_as_a_session(path, context):
    write_session(path, context)
    assert read_session(path) == context


def test_what_cannot_be_stored_leaves_the_file_unchanged(path):
    write_session(path, Context(messages=ONE_OF_EACH))
    before = path.read_bytes()
    wrong = ToolResultMessage(tool_call_id="1", content=(), details={1: float("nan")})
    with pytest.raises(DumpError) as caught:
        write_session(path, Context(messages=(UserMessage.of("hi"), wrong)))
    assert caught.value.path[:3] == ("messages", 1, "details")
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="of links and permissions (Windows)")
def test_a_link_and_the_permissions_are_kept(path, tmp_path):
    write_session(path, Context())
    path.chmod(0o600)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    write_session(link, Context(messages=ONE_OF_EACH))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_session(path).messages == ONE_OF_EACH


def test_a_line_with_a_model_is_no_message(path):
    model = Model("tiny", "mine", "openai-chat", base_url="http://localhost:1/v1", headers={"x-api-key": "secret"})
    append_model(path, model)
    append_message(path, UserMessage.of("hi"))
    append_model(path, msgspec.structs.replace(model, base_url="http://localhost:2/v1"))
    with path.open("ab") as file:
        file.write(
            b'{"type":"model","id":"m","provider":"p","protocol":"openai-chat","laterField":1,"headers":{"a":"b"}}\n'
        )
    assert b"secret" not in path.read_bytes()
    context, models = read_session_models(path)
    assert context == read_session(path) == Context(messages=(UserMessage.of("hi"),))
    assert models == (
        Model("tiny", "mine", "openai-chat", base_url="http://localhost:2/v1"),
        Model("m", "p", "openai-chat"),
    )


def test_a_line_with_a_wrong_model_is_named(path):
    path.write_bytes(lines(HEADER, b'{"type":"model","id":1,"provider":"p","protocol":"x"}', HI))
    with pytest.raises(LoadError, match="remove the line") as caught:
        read_session(path)
    assert caught.value.line == 2


# -- several programs --------------------------------------------------------------------------------------------------


def _append_when_told(path: Path, opened: Connection) -> None:
    """Append a message, and tell when the file is open and the lock is asked for."""
    lock = sessions._lock

    def tell(handle: int) -> None:
        opened.send("waits")
        lock(handle)

    sessions._lock = tell
    append_message(path, UserMessage.of("appended"))
    opened.send("done")


def _start_appending(path: Path) -> tuple[BaseProcess, Connection]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_append_when_told, args=(path, there))
    process.start()
    assert here.recv() == "waits"
    return process, here


def _texts(path: Path) -> list[str]:
    return [message.text() for message in read_session(path).messages]


@pytest.mark.skipif(os.name == "nt", reason="of locks (Windows)")
def test_a_program_that_appends_waits_for_an_update_and_loses_nothing(path):
    for number in range(20):
        write_session(path, Context(messages=(UserMessage.of("first"),)))
        with session_file(path) as file:
            process, opened = _start_appending(path)
            assert not opened.poll(), "it waits"
            file.context = msgspec.structs.replace(file.context, system_prompt=f"new {number}")
            file.append("second")
        process.join()
        assert _texts(path) == ["first", "second", "appended"]
        assert read_session(path).system_prompt == f"new {number}"


def test_what_another_program_appended_since_the_reading_is_not_lost(path):
    write_session(path, Context(messages=(UserMessage.of("first"),)))
    context = read_session(path)
    process, _ = _start_appending(path)
    process.join()
    before = path.read_bytes()
    changed = msgspec.structs.replace(context, system_prompt="new")
    for written, base in ((context, None), (context.add("second"), None), (changed, context)):
        with pytest.raises(SessionChanged, match="session_file") as raised:
            write_session(path, written, base=base)
        assert raised.value.path == str(path)
        assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name], "no other file is left"
    write_session(path, read_session(path).add("second"))
    assert _texts(path) == ["first", "appended", "second"]


def test_a_header_that_another_program_appended_is_not_lost(path):
    write_session(path, Context(messages=(UserMessage.of("first"),)))
    context = read_session(path)
    append_header(path, Context(system_prompt="theirs"))
    with pytest.raises(SessionChanged):
        write_session(path, context.add("second"))
    assert read_session(path).system_prompt == "theirs"


def test_what_this_program_wrote_and_appended_itself_is_no_conflict(path, tmp_path):
    write_session(path, Context(messages=(UserMessage.of("first"),)))
    context = read_session(path)
    write_session(path, context.add("second"))
    write_session(path, context)
    append_message(path, UserMessage.of("third"))
    write_session(path, context.add(UserMessage.of("third")))
    write_session(tmp_path / "copy.jsonl", context)
    path.unlink()
    write_session(path, context)
    assert _texts(path) == _texts(tmp_path / "copy.jsonl") == ["first"]


def test_an_update_keeps_the_models_and_an_incomplete_line(path):
    model = Model("mine", "me", "openai-chat")
    append_message(path, UserMessage.of("first"))
    append_model(path, model)
    with path.open("ab") as file:
        file.write(b'{"role": "us')
    with session_file(path) as update:
        assert update.models == (model,)
        update.append("second")
    assert _texts(path) == ["first", "second"]
    assert sessions.read_session_models(path)[1] == (model,)
    assert torn(path).read_bytes() == b'{"role": "us\n'


def test_a_block_that_raises_or_changes_nothing_writes_nothing(path):
    with session_file(path) as file:
        assert file.context == Context()
    assert not path.exists()
    write_session(path, Context(messages=(UserMessage.of("first"),)))
    before = path.read_bytes()
    with pytest.raises(ConversationError), session_file(path) as file:
        file.append("second", 3)  # type: ignore[arg-type]
    assert path.read_bytes() == before
    with session_file(path) as file:
        assert [message.text() for message in file.context.messages] == ["first"]
    assert path.read_bytes() == before


def test_the_block_does_not_wait_for_itself(path):
    with session_file(path) as file:
        file.append("first")
        with pytest.raises(OSError, match="held by `session_file`"):
            append_message(path, UserMessage.of("second"))
        with pytest.raises(OSError, match="held by `session_file`"):
            write_session(path, Context())
    assert _texts(path) == ["first"]
    append_message(path, UserMessage.of("second"))
    assert _texts(path) == ["first", "second"]
