"""Details of how a source is recognised and opened: what is a document, what are lines, and how much is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from segue.errors import UnknownFormat
from segue.histories.kit.source import Source
from segue.histories.opening import How, Opened, open_source, open_value, recognise
from segue.histories.recognition import is_plain_request, look

ASKED = {"role": "user", "content": "Look."}
ROW = {"messages": [ASKED, {"role": "assistant", "content": "Yes."}]}


def lines(*entries: object) -> list[bytes]:
    return [json.dumps(entry).encode() + b"\n" for entry in entries]


class Pipe:
    """A pipe that stays open: who reads more lines than it has would wait for ever."""

    def __init__(self, given: list[bytes]) -> None:
        self.given = given

    def __iter__(self) -> Iterator[bytes]:
        yield from self.given
        raise AssertionError("it waits for another line")

    def seekable(self) -> bool:
        return False

    def readline(self) -> bytes:
        raise AssertionError("it is read by its lines")


def opened(pipe: list[bytes], **how: Any) -> Opened:
    return open_source(Pipe(pipe), How(**how))


def test_two_lines_of_a_pipe_show_that_each_is_a_conversation():
    rows = lines(ROW, ROW)
    for how in ({}, {"protocol": "openai-chat"}, {"format": "openai-chat"}):
        found = opened(rows, **how)
        assert found.document is None
        assert next(found.lines) == (1, rows[0])
        assert next(found.lines) == (2, rows[1])
    assert next(opened([b"\n", *rows]).lines) == (2, rows[0])


def test_a_pipe_with_the_lines_of_one_conversation_is_read_to_its_end():
    said = [{**ASKED, "timestamp": "2026-11-15T10:00:00Z"}, {"role": "assistant", "content": "Yes."}]
    with pytest.raises(AssertionError, match="another line"):
        opened(lines(*said))
    with pytest.raises(AssertionError, match="another line"):
        opened(lines(ROW))


def test_lines_of_messages_are_read_over_the_protocol_that_they_show():
    asked = {**ASKED, "timestamp": "2026-11-15T10:00:00Z"}
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]}
    found = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "alpha"}]}

    def read(*entries: object) -> tuple[str | None, list[str]]:
        document = open_source(b"".join(lines(*entries))).document
        assert document is not None
        return document.protocol, [message.role for message in document.prompt.context.messages]

    assert read(asked, called, found) == ("anthropic-messages", ["user", "assistant", "toolResult"])
    assert read(asked, {"role": "assistant", "content": "Yes."}) == ("openai-chat", ["user", "assistant"])


def test_a_value_is_opened_with_its_line_or_without_one():
    assert open_value(ROW).line is None
    assert open_value(ROW, line=7).line == 7
    assert open_value(ROW, line=7).prompt == open_value(ROW).prompt


PLAIN_CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
REQUESTS = {
    "texts": ([ASKED], True),
    "no messages": ([], False),
    "a message that is none": ([ASKED, "Look."], False),
    "another role": ([{"role": "model", "content": "Look."}], False),
    "a field of others": ([{**ASKED, "uuid": "u"}], False),
    "no content": ([{"role": "assistant", "content": None, "name": "n"}], False),
    "a call": ([ASKED, {"role": "assistant", "content": None, "tool_calls": [PLAIN_CALL]}], True),
    "a call with an object": (
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}],
        False,
    ),
    "calls next to blocks": (
        [{"role": "assistant", "content": [{"type": "text", "text": "a"}], "tool_calls": [PLAIN_CALL]}],
        False,
    ),
    "calls that are no list": ([{"role": "assistant", "content": "a", "tool_calls": {"a": 1}}], False),
    "a block of others": ([{"role": "user", "content": [{"type": "text", "text": "a", "mimeType": "b"}]}], False),
    "a call before another message": (
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": {}}}]}, {**ASKED, "uuid": "u"}],
        False,
    ),
}


@pytest.mark.parametrize(("messages", "plain"), REQUESTS.values(), ids=REQUESTS)
def test_a_plain_request_has_nothing_that_can_be_a_sign_of_others(messages, plain):
    assert is_plain_request({"messages": messages}) is plain


def test_a_call_with_an_object_is_not_one_of_chat_alone():
    call = {"type": "function", "function": {"name": "look", "arguments": {"at": 1}}}
    row = {"messages": [ASKED, {"role": "assistant", "content": "", "tool_calls": [call]}]}
    document = open_value(row)
    assert document.history is not None
    assert document.history.origin.format == "hf-messages"


def test_only_the_beginning_of_a_document_is_cut():
    whole = json.dumps([ASKED] * 3).encode()
    assert look(Source(data=whole)).cut is False
    assert look(Source(data=whole), head=True).cut is True
    assert look(Source(data=b"# A title\n")).cut is False
    beginning = look(Source(data=whole[:-10]))
    assert (beginning.value, beginning.cut) == ([ASKED, ASKED, {"role": "user"}], True)


def test_what_segue_does_not_read_is_named():
    value = {"model": "text-embedding-3-small", "input": "a text"}
    assert [claim.kind for claim in recognise(value)] == ["unreadable"]
    with pytest.raises(UnknownFormat, match=r"looks like a request for embeddings.*, which segue does not read"):
        open_value(value)
