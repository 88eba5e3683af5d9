"""The law of recognition: a reading explains every item of its data, or the data is refused.

The data is what is no session at all, and samples of all formats that were cut, mixed or renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest

from segue import History, UnknownFormat, read_history
from segue.errors import SegueError
from segue.histories.kit.unread import find_unread
from segue.histories.registry import FORMATS
from segue.projection.report import ChangeCode, Loss


def document(value: object) -> bytes:
    return json.dumps(value).encode()


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


OTHER_DATA: dict[str, bytes] = {
    "users with roles": document([{"id": 1, "name": "Ann", "role": "admin"}, {"id": 2, "name": "Bob", "role": "user"}]),
    "users": document([{"id": 1, "name": "Ann Lee", "role": "user"}, {"id": 2, "name": "Bob Ray", "role": "user"}]),
    "a play": document([{"role": "Hamlet", "content": "To be, or not"}, {"role": "Ophelia", "content": "My lord"}]),
    "a play in an object": document({"messages": [{"role": "Hamlet", "content": "To be, or not to be"}]}),
    "messages with types": document(
        {"messages": [{"type": "user", "content": "How do I?"}, {"type": "model", "content": "So."}]}
    ),
    "messages of a chat program": document({"messages": [{"from": "ann", "text": "hi there", "ts": 1}]}),
    "an export of Slack": document([{"type": "message", "user": "U1", "text": "hello there", "ts": "1.2"}]),
    "mail": document({"messages": [{"id": "1", "subject": "Hello", "body": "a text", "from": "a@x"}]}),
    "translations": document({"messages": {"hello": "Hello", "bye": "Bye"}}),
    "results of a linter": document([{"filePath": "/a.js", "messages": [{"ruleId": "x", "message": "bad thing"}]}]),
    "a message file of opencode": document({"id": "msg_1", "sessionID": "ses_1", "role": "user", "agent": "build"}),
    "a part file of opencode": document({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "text": "A part."}),
    "one message without content": document({"id": "m1", "role": "user", "summary": {"title": "Two tables"}}),
    "a question and its answer": document({"input": "What is this thing?", "output": "An answer."}),
    "a configuration": document({"system": "linux", "model": "T480", "messages": []}),
    "a list of a bucket": document({"contents": [{"key": "a", "parts": [{"n": 1}]}]}),
    "parts of a machine": document([{"role": "assembly", "parts": [{"type": "bolt"}]}]),
    "a log": lines(*[{"level": "info", "message": "server started", "timestamp": "2026-01-01T00:00:00Z"}] * 3),
    "a log with roles": lines({"role": "primary", "content": "ok"}, {"role": "replica", "content": "lag of 2 s"}),
    "a log that begins with a message": lines({"role": "user", "content": "Go on."}, {"event": "scroll", "y": 3}),
    "clicks": lines({"sessionId": "s1", "type": "click", "x": 1}, {"sessionId": "s1", "type": "view", "page": "/a"}),
    "a log of changes": lines({"uuid": "a", "parentUuid": None, "type": "node", "message": {"content": "a label"}}),
    "events of a forge": lines({"id": "1", "type": "PushEvent", "payload": {"commits": []}}),
    "events of a cloud": lines({"specversion": "1.0", "id": "1", "type": "user.message", "data": {"text": "words"}}),
    "a trace": document({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a", "name": "x"}]}]}]}),
    "a package": document({"name": "x", "version": "1.0.0", "dependencies": {"a": "1"}}),
    "a lock file": document({"name": "x", "lockfileVersion": 3, "packages": {"": {"name": "x"}}}),
    "a notebook": document({"cells": [{"cell_type": "code", "source": ["x"], "outputs": []}], "nbformat": 4}),
    "an interface": document({"openapi": "3.0.0", "info": {"title": "x"}, "paths": {"/messages": {"get": {}}}}),
    "a recording of a browser": document({"log": {"entries": [{"request": {}, "response": {"status": 200}}]}}),
    "places": document({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}}]}),
    "a task list": document([{"id": "1", "content": "write tests", "status": "pending"}]),
    "requests of an editor": lines({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
    "a table": b"id,role,content\n1,user,hi\n",
    "a log in plain text": b"2026-01-01 INFO started\n2026-01-01 ERROR message: x\n",
    "a document": b"# User guide\n\n## User\n\nhello\n\n## Assistant\n\nhi\n",
    "settings of a program": document({"appName": "shop", "userId": "u1", "theme": "dark"}),
    "a key map": document({"mapping": {"a": "b"}, "title": "Keys"}),
    "a path of a robot": document({"trajectory": [[0, 1], [1, 2]], "history": [0.1, 0.2]}),
    "a list of calls": document([{"call_id": "1", "caller": "+49", "duration": 3}]),
    "parts without words": document([{"kind": "request", "parts": [{"x": 1}]}]),
    "a request for a picture": document({"prompt": "a cat on a mat", "negative_prompt": "dog", "steps": 20, "cfg": 7}),
    "requests for pictures": lines({"prompt": "a cat", "seed": 1, "steps": 20}, {"prompt": "a dog", "width": 512}),
    "a request for a label": document({"model": "resnet50", "input": "image.png"}),
    "a request for an embedding": document({"model": "text-embedding-3-small", "input": "The harbour at night"}),
    "a request for speech": document({"model": "voices-1", "input": "The harbour at night", "voice": "ann"}),
    "a page with parts": document(
        {"contents": [{"title": "The harbour at night", "parts": [{"text": "It is dark."}]}]}
    ),
    "a result of Chat next to blocks of Anthropic": document(
        [
            {"role": "user", "content": "Count it."},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "With the shell."}]},
            {"role": "tool", "tool_call_id": "c", "content": "two lines of it"},
        ]
    ),
    "an interchange file without its first line": lines(
        {
            "type": "message",
            "id": "1",
            "role": "user",
            "timestamp": "t",
            "content": [{"type": "text", "text": "Go on."}],
        },
        {
            "type": "message",
            "id": "2",
            "role": "assistant",
            "timestamp": "t",
            "content": [{"type": "text", "text": "I do."}],
        },
        {"type": "tool-call", "id": "3", "timestamp": "t", "name": "run", "arguments": {"command": "wc -l a.txt"}},
    ),
    "thoughts of an unknown form": document(
        [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "Yes.", "reasoning_content": {"v": "I will do it."}},
        ]
    ),
    "a page of blocks": document([{"blocks": [{"type": "paragraph"}], "role": "page"}]),
}


@pytest.mark.parametrize("data", OTHER_DATA.values(), ids=OTHER_DATA.keys())
def test_what_is_no_session_is_refused(data):
    with pytest.raises(SegueError):
        read_history(data)


def test_rows_of_a_chat_with_numbers_are_not_taken_for_a_framework():
    history = read_history(document([{"id": 1, "role": "user", "content": "abc def", "toolCallId": None}]))
    assert history.origin.format == "openai-chat"


def test_a_refusal_names_what_the_data_resembles_and_what_speaks_against_it():
    stream = lines(
        {"type": "message", "role": "user", "content": "Compare the tables.", "ts": 1},
        {"type": "step", "tool": "read_file", "parameters": {"path": "north.csv"}, "ts": 2},
    )
    with pytest.raises(UnknownFormat, match=r"resembles .+ \(.*\), but line 2: role"):
        read_history(stream)
    with pytest.raises(UnknownFormat, match=r"gemini-cli \(.*sessionId.*\), but it has no projectHash"):
        read_history(document({"sessionId": "s", "messages": [{"type": "user", "words": "a"}]}))


def items_of(data: bytes) -> tuple[str, list[Any]]:
    try:
        value = json.loads(data)
    except ValueError:
        try:
            return "lines", [json.loads(line) for line in data.splitlines() if line.strip()]
        except ValueError:
            return "text", []
    return ("list", value) if isinstance(value, list) else ("one", [value])


def written(kind: str, items: list[Any]) -> bytes:
    return lines(*items) if kind == "lines" else document(items if kind == "list" else items[0])


def renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {new if key == old else key: renamed(inner, old, new) for key, inner in value.items()}
    return [renamed(inner, old, new) for inner in value] if isinstance(value, list) else value


PARSED = {
    f"{name}, {sample.name}": items_of(sample.source.data)
    for name, record in FORMATS.items()
    for sample in record.samples()
    if sample.source.data is not None
}
NAMES = (
    ("role", "sender"),
    ("type", "sort"),
    ("parts", "pieces"),
    ("message", "entry"),
    ("content", "words"),
    ("text", "words"),
)
OTHER_ITEM = {"type": "weather.report", "text": "a gale from the north", "data": {"text": "a gale from the north"}}
SHOWN_NAMES = {"responderUsername"}
"""Fields with the name under which a screen shows the assistant, which no message has."""


def changed(name: str) -> Iterator[tuple[str, bytes]]:
    kind, items = PARSED[name]
    if kind != "one" and len(items) > 2:
        yield "cut", written(kind, items[1:])
        yield "halved", written(kind, items[len(items) // 2 :])
    for old, new in NAMES:
        if (other := renamed(items, old, new)) != items:
            yield f"{old} renamed", written(kind, other)
    for other_name, (other_kind, others) in list(PARSED.items())[::5]:
        if other_kind == kind != "one" and other_name.partition(",")[0] != name.partition(",")[0]:
            yield f"with {other_name}", written(kind, [*items[:3], *others])
            yield (
                f"mixed with {other_name}",
                written(
                    kind, [item for pair in zip_longest(items[:6], others[:6]) for item in pair if item is not None]
                ),
            )


@pytest.mark.parametrize("name", [name for name, (kind, _) in PARSED.items() if kind != "text"])
def test_a_changed_sample_is_refused_or_every_item_is_explained(name):
    silent: dict[str, object] = {}
    for what, data in changed(name):
        try:
            history = read_history(data)
        except SegueError:
            continue
        left_out = {ChangeCode.RECORD_LEFT_OUT, ChangeCode.BRANCH_LEFT_OUT}
        if any(change.loss != Loss.NONE or change.code in left_out for change in history.report.changes):
            continue
        context = history.context
        made = [context.system_prompt, context.tools, context.extra, history.title, history.cwd]
        contents = [*made, *(message.content for message in context.messages)]
        for item in items_of(data)[1]:
            path = find_unread(item, contents, names=False)
            if path is not None and SHOWN_NAMES.isdisjoint(map(str, path)):
                silent[what] = (history.origin.format, path)
    assert silent == {}


def left_out(history: History) -> int:
    return len(history.records) + len(history.report.of(ChangeCode.LINE_UNREADABLE)) + len(history.branches)


@pytest.mark.parametrize("name", [name for name, (kind, _) in PARSED.items() if kind in {"lines", "list"}])
def test_an_item_of_another_kind_is_read_or_reported_or_refuses_the_file(name):
    kind, items = PARSED[name]
    half = len(items) // 2
    before = read_history(written(kind, items), format=name.partition(",")[0])
    try:
        after = read_history(written(kind, [*items[:half], OTHER_ITEM, *items[half:]]), format=before.origin.format)
    except SegueError:
        return
    contents = [message.content for message in after.context.messages]
    assert find_unread(OTHER_ITEM, contents, names=False) is None or left_out(after) > left_out(before)
