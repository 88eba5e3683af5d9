"""Trees of Claude Code as its program reads them: each case was compared with what the program sent for such a file."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from typing import Any

import pytest

from segue import History, Loss, Policy, read_history, write_history
from segue.histories.claude_code import tree as path
from segue.histories.claude_code import turns as lines_module
from segue.histories.kit import lines as kit_lines
from segue.histories.kit.envelope import find_envelope, is_own_text, plain_text
from segue.projection.report import ChangeCode

SESSION = "11111111-1111-4111-8111-111111111111"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
Line = dict[str, Any]


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> Line:
    settings = {"userType": "external", "entrypoint": "cli", "version": "2.1.325", "gitBranch": "", "cwd": "/p"}
    place = {"uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": SESSION}
    return {"type": kind, **place, **settings, **fields}


def asked(uuid: str, parent: str | None, content: Any, **fields: Any) -> Line:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def said(uuid: str, parent: str | None, *blocks: Any, reply: str | None = None) -> Line:
    message = {
        "id": reply or f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
        "stop_reason": "end_turn",
        "stop_sequence": None,
    }
    return line("assistant", uuid, parent, message=message)


def call(name: str) -> Line:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": "Read", "input": {"path": name}}


def result(uuid: str, parent: str, name: str) -> Line:
    return asked(uuid, parent, [{"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": name}])


def turns(prefix: str, count: int, parent: str | None = None) -> list[Line]:
    """Give questions and answers that hang under each other: `A1`, `A2`, ..."""
    lines: list[Line] = []
    for at in range(count):
        lines.append(asked(f"{prefix}{2 * at + 1}", parent, f"{prefix}{2 * at + 1}"))
        lines.append(said(f"{prefix}{2 * at + 2}", f"{prefix}{2 * at + 1}", f"{prefix}{2 * at + 2}"))
        parent = f"{prefix}{2 * at + 2}"
    return lines


def compaction(name: str, after: str, **metadata: Any) -> list[Line]:
    """Give a compaction and its summary, `name`."""
    boundary = line(
        "system", f"boundary {name}", None,
        logicalParentUuid=after, subtype="compact_boundary", compactMetadata=metadata,
    )  # fmt: skip
    return [boundary, asked(name, f"boundary {name}", name, isCompactSummary=True)]


def segment(head: str, anchor: str, tail: str) -> Line:
    return {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}


def checkpoint(leaf: str | None, **fields: Any) -> Line:
    return {"type": "last-prompt", "leafUuid": leaf, "sessionId": SESSION, **fields}


def read(*lines: Line, view: str = "active") -> History:
    stamped = [
        {"timestamp": f"2026-11-15T10:{at // 60:02d}:{at % 60:02d}.000Z", **fields} for at, fields in enumerate(lines)
    ]
    data = "".join(f"{json.dumps(fields)}\n" for fields in stamped).encode()
    return read_history(data, format="claude-code", view=view)


def words(history: History) -> str:
    """Give the texts, calls and results of a history in short."""
    found: list[str] = []
    for message in history.context.messages:
        found += (f"call {content.arguments['path']}" for content in message.content if content.kind == "toolCall")
        found.append(f"result {plain_text(message)}" if message.role == "toolResult" else plain_text(message))
    return " ".join(word for word in found if word)


PATHS: dict[str, tuple[list[Line], str]] = {
    "two compactions": (
        [*turns("A", 2), *compaction("S", "A4"), *turns("B", 1, "S"), *compaction("T", "B2"), *turns("C", 1, "T")],
        "T C1 C2",
    ),
    "two compactions that keep messages": (
        [
            *turns("A", 2), *compaction("S", "A4", preservedSegment=segment("A3", "S", "A4")), *turns("B", 2, "A4"),
            *compaction("T", "B4", preservedSegment=segment("B3", "T", "B4")), *turns("C", 1, "B4"),
        ],
        "T B3 B4 C1 C2",
    ),
    "a compaction that keeps messages of the one before": (
        [
            *turns("A", 2), *compaction("S", "A4", preservedSegment=segment("A3", "S", "A4")), *turns("B", 1, "A4"),
            *compaction("T", "B2", preservedSegment=segment("A3", "T", "B2")), *turns("C", 1, "B2"),
        ],
        "T A3 A4 B1 B2 C1 C2",
    ),
    "a list of messages that are kept": (
        [
            *turns("A", 3), *compaction("S", "A6", preservedMessages={"anchorUuid": "S", "uuids": ["A3", "A6"]}),
            *turns("B", 1, "S"),
        ],
        "S A3 A6 B1 B2",
    ),
    "messages that are kept before the summary": (
        [
            *turns("A", 2),
            *compaction("S", "A4", preservedMessages={"anchorUuid": "boundary S", "uuids": ["A1", "A2"]}),
            *turns("B", 1, "S"),
        ],
        "A1 A2 S B1 B2",
    ),
    "a list with a message that is missing": (
        [
            *turns("A", 2), *compaction("S", "A4", preservedMessages={"anchorUuid": "S", "uuids": ["A3", "gone"]}),
            *turns("B", 1, "S"),
        ],
        "S B1 B2",
    ),
    "a line that hangs under one that a compaction removed": (
        [
            *turns("A", 2), *compaction("S", "A4", preservedSegment=segment("A3", "S", "A4")), *turns("B", 1, "A1"),
        ],
        "S A3 A4 B1 B2",
    ),
    "a compaction that nothing follows": (
        [*turns("A", 2), *compaction("S", "A4", preservedSegment=segment("A3", "S", "A4"))], "S A3 A4",
    ),
    "back to before a compaction": ([*turns("A", 2), *compaction("S", "A4"), *turns("B", 1, "A2")], "A1 A2 B1 B2"),
    "a checkpoint on another branch": ([*turns("A", 2), *turns("B", 1, "A2"), checkpoint("A4")], "A1 A2 A3 A4"),
    "a checkpoint that the newest line continues": ([*turns("A", 2), checkpoint("A2")], "A1 A2 A3 A4"),
    "a checkpoint that the user chose": ([*turns("A", 2), checkpoint("A2", explicit=True)], "A1 A2"),
    "a checkpoint that the user chose, with a line behind it": (
        [*turns("A", 2), checkpoint("A4", explicit=True), *turns("B", 1, "A2")], "A1 A2 A3 A4",
    ),
    "a checkpoint that is not there": ([*turns("A", 1), *turns("B", 1, "A2"), checkpoint("gone")], "A1 A2 B1 B2"),
    "a checkpoint before a compaction": (
        [*turns("A", 1), checkpoint("A2"), *compaction("S", "A2"), *turns("B", 1, "S")], "S B1 B2",
    ),
    "a checkpoint before the first line": ([*turns("A", 1), checkpoint(None, explicit=True)], ""),
    "the same with a line behind it": (
        [*turns("A", 1), checkpoint(None, explicit=True), *turns("B", 1)], "B1 B2",
    ),
    "a checkpoint on one of several results": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), said("C", "B", call("y"), reply="m"),
            result("D", "B", "x"), checkpoint("D"), result("E", "C", "y"), said("F", "E", "F"),
        ],
        "A1 A2 call x call y result x result y F",
    ),
    "a parent that is missing": ([*turns("A", 1), *turns("B", 1, "gone")], "A1 A2 B1 B2"),
    "a parent that is missing for long": (
        [*turns("A", 1), *({**each, "timestamp": "2026-11-15T11:00:00Z"} for each in turns("B", 1, "gone"))], "B1 B2",
    ),
    "results of parallel calls, the next line under the first of them": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), said("C", "B", call("y"), reply="m"),
            result("D", "C", "y"), result("E", "B", "x"), said("F", "E", "F"),
        ],
        "A1 A2 call x call y result y result x F",
    ),
    "calls that are carried out one after another": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), result("C", "B", "x"),
            said("D", "B", call("y"), reply="m"), result("E", "D", "y"), said("F", "E", "F"),
        ],
        "A1 A2 call x call y result x result y F",
    ),
    "a call of the same reply under the result of the one before": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), result("C", "B", "x"),
            said("D", "C", call("y"), reply="m"), result("E", "D", "y"), said("F", "E", "F"),
        ],
        "A1 A2 call x call y result x result y F",
    ),
    "a call under a progress line, and a result under one": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), result("C", "B", "x"),
            said("D", "C", call("y"), reply="m"), line("progress", "P", "D"),
            said("E", "P", call("z"), reply="m"), result("F", "E", "z"), result("G", "P", "y"), said("H", "F", "H"),
        ],
        "A1 A2 call x call y call z result x result z result y H",
    ),
    "a call of the same reply under the result of another, beside the path": (
        [
            *turns("A", 1), said("B", "A2", call("x"), reply="m"), result("C", "B", "x"),
            said("D", "C", call("y"), reply="m"), result("E", "D", "y"), said("F", "C", "F"),
        ],
        "A1 A2 call x call y result x result y F",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "wanted"), PATHS.values(), ids=PATHS.keys())
def test_the_path_is_the_one_that_the_program_sends(lines, wanted):
    history = read(*lines)
    assert words(history) == wanted
    counted = {change.code for change in history.report.changes}
    left_out = {fields["message"]["content"] for fields in lines if fields["type"] == "user"} if not wanted else set()
    assert not left_out or ChangeCode.BRANCH_LEFT_OUT in counted


@pytest.mark.parametrize("lines", [lines for lines, wanted in PATHS.values() if wanted])
def test_every_line_is_in_the_full_view_or_in_a_branch(lines):
    history = read(*lines, view="full")
    found = words(history) + " ".join(compaction.summary.text for compaction in history.compactions)
    for branch in history.branches:
        found += words(read(*lines, view=f"branch={branch.id}"))
    texts = [fields["message"]["content"] for fields in lines if fields["type"] == "user"]
    assert [text for text in texts if isinstance(text, str) and text not in found] == []


def attached(uuid: str, parent: str, attachment: Line, **fields: Any) -> Line:
    return line("attachment", uuid, parent, attachment=attachment, **fields)


def test_what_the_user_attached_is_kept_and_goes_to_another_agent():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    history = read(
        *turns("A", 1),
        attached("F", "A2", {"type": "file", "filename": "a.txt", "content": {"file": {"content": "the file"}}}),
        attached("G", "F", {"type": "file", "content": {"type": "image", "file": {"base64": PICTURE}}}),
        attached("H", "G", {"type": "queued_command", "prompt": "another wish"}),
        attached("I", "H", {"type": "queued_command", "prompt": [{"type": "text", "text": "see"}, image]}),
        attached("J", "I", {"type": "queued_command"}, rendered=[{"content": "a third wish"}]),
        attached("K", "J", {"type": "date"}, rendered=[{"content": "the date"}]),
        attached("L", "K", {"type": "brand_new", "text": "unknown"}),
        said("M", "L", "done"),
    )
    own = [plain_text(message) for message in history.context.messages if is_own_text(message)]
    assert own == ["the date"]
    assert "attachment/brand_new" in {record.kind for record in history.records}
    assert [change.path for change in history.report.of(ChangeCode.RECORD_LEFT_OUT) if change.loss != "none"]
    (file,) = write_history(history, format="pi", model="anthropic/claude-sonnet-4-5").files
    for wanted in (b"the file", b"another wish", b"a third wish", PICTURE.encode()):
        assert wanted in file.data
    (home,) = write_history(history, format="claude-code", model="anthropic/claude-sonnet-4-5").files
    assert read_history(home.data).context.messages == history.context.messages


def test_a_command_of_the_user_is_sent_and_written_back():
    shown = "<command-name>/cost</command-name>"
    history = read(
        *turns("A", 1), line("system", "C", "A2", subtype="local_command", content=shown), *turns("B", 1, "C")
    )
    assert shown in words(history)
    (home,) = write_history(history, format="claude-code", model="anthropic/claude-sonnet-4-5").files
    assert b'"local_command"' in home.data
    assert read_history(home.data).context.messages == history.context.messages


HIDDEN: dict[str, tuple[list[Line], str]] = {
    "a caveat, the command and its output": (
        [
            asked("C", "A2", "<local-command-caveat>Caveat: ...</local-command-caveat>", isMeta=True),
            asked("D", "C", "<command-name>/model</command-name> <command-args></command-args>"),
            asked("E", "D", "<local-command-stdout>Set model to sonnet</local-command-stdout>"),
        ],
        "",
    ),
    "a caveat of an older version": (
        [
            asked(
                "C", "A2", "Caveat: The messages below were generated by the user while running local commands. x",
                isMeta=True,
            ),
        ],
        "",
    ),
    "a typed command and its body": (
        [
            asked("C", "A2", "<command-message>plan</command-message>\n<command-name>/plan</command-name>"),
            asked("D", "C", [{"type": "text", "text": "Base directory for this skill: /s\n\nPlan it."}], isMeta=True),
        ],
        "CD",
    ),
    "the body of a skill that the model started": (
        [asked("C", "A2", [{"type": "text", "text": "# Keys"}], isMeta=True, sourceToolUseID="toolu_x")], "C",
    ),
    "the caption of an image": (
        [asked("C", "A2", [{"type": "text", "text": "[Image: source: /tmp/a.png]"}], isMeta=True)], "",
    ),
    "a text of the user in brackets": ([asked("C", "A2", "[Image: source: /tmp/a.png]")], "C"),
    "the pages of a document": (
        [
            asked(
                "C", "A2",
                [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}],
                isMeta=True,
            )
        ],
        "C",
    ),
    "the feedback of a hook": ([asked("C", "A2", "Stop hook feedback:\ntests fail", isMeta=True)], "C"),
    "a prompt of the program": ([asked("C", "A2", "Continue from where you left off.", isMeta=True)], ""),
    "the same words of the user": ([asked("C", "A2", "Continue from where you left off.")], "C"),
    "a message of another agent": (
        [asked("C", "A2", "Continue from where you left off.", isMeta=True, origin={"kind": "coordinator"})], "C",
    ),
    "a shell command of the user": ([asked("C", "A2", "<bash-input>ls</bash-input>")], "C"),
    "a command that only the program knows": (
        [line("system", "C", "A2", subtype="local_command", content="<command-name>/cost</command-name>")], "",
    ),
    "a prompt that was typed while the model worked": (
        [line("attachment", "C", "A2", attachment={"type": "queued_command", "prompt": "wait"})], "C",
    ),
    "a prompt that the program queued": (
        [line("attachment", "C", "A2", attachment={"type": "queued_command", "prompt": "wait", "isMeta": True})], "",
    ),
    "what a hook added": (
        [line("attachment", "C", "A2", attachment={"type": "hook_additional_context", "content": ["be brief"]})], "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "wanted"), HIDDEN.values(), ids=HIDDEN.keys())
def test_a_hidden_line_goes_over_unless_the_program_wrote_it_and_that_is_reported(lines, wanted):
    history = read(*turns("A", 1), *lines, said("Z", lines[-1]["uuid"], "Z"))
    (_, _, *middle, _) = history.context.messages
    kept = [message for message in middle if not is_own_text(message)]
    assert len(middle) == len(lines)  # the program sends all of them
    assert "".join(str((find_envelope(message, "claude-code") or {})["uuid"]) for message in kept) == wanted
    report = write_history(history, format="codex", model="openai/gpt-5.4").report
    losses = [change.loss for change in report.of(ChangeCode.AGENT_TEXT_LEFT_OUT)]
    assert losses == [Loss.CONTENT] * (len(lines) - len(kept))
    (home,) = write_history(history, format="claude-code", model="anthropic/claude-sonnet-4-5").files
    assert read_history(home.data).context.messages == history.context.messages


UNSIGNED: dict[str, Line] = {
    "an empty signature": {"signature": ""},
    "no signature": {},
    "a signature that is null": {"signature": None},
}


@pytest.mark.parametrize("fields", UNSIGNED.values(), ids=UNSIGNED.keys())
def test_thinking_without_a_signature_is_never_written_back_as_thinking(fields):
    thought = {"type": "thinking", "thinking": "Hm.", **fields}
    signed = {"type": "thinking", "thinking": "Yes.", "signature": "c2lnbmVk"}
    history = read(*turns("A", 1), asked("B", "A2", "B"), said("C", "B", thought, "C"), *turns("D", 1, "C"),
                   said("E", "D2", signed, "E"))  # fmt: skip
    written = write_history(history, format="claude-code", model="anthropic/claude-sonnet-4-5")
    blocks = [
        block
        for row in written.files[0].data.splitlines()
        if (fields := json.loads(row))["type"] == "assistant"
        for block in fields["message"]["content"]
    ]
    assert [block["signature"] for block in blocks if block["type"] == "thinking"] == ["c2lnbmVk"]
    assert {"type": "text", "text": "Hm."} in blocks
    assert [change.path for change in written.report.of(ChangeCode.THINKING_AS_TEXT)] == [("messages", 3, "content", 0)]
    dropped = write_history(
        history, format="claude-code", model="anthropic/claude-sonnet-4-5", policy=Policy(reasoning="drop")
    )
    assert b"Hm." not in dropped.files[0].data
    assert dropped.report.of(ChangeCode.THINKING_DROPPED)


UNUSUAL: dict[str, Line] = {
    "nothing": {},
    "another model": {"model": "claude-opus-4-1"},
    "an unknown model": {"model": "my-model"},
    "a refusal": {"stop_reason": "refusal"},
    "no stop reason": {"stop_reason": None},
    "a stop sequence": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
    "tokens": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 11}},
    "tokens of a long cache": {
        "usage": {"cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 4}}
    },
    "tokens of thinking": {"usage": {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}},
    "odd tokens": {"usage": {"input_tokens": -1, "output_tokens": True, "cache_read_input_tokens": "x"}},
    "no id": {"id": None},
    "an empty id": {"id": ""},
    "a call": {"content": [call("x")], "stop_reason": "tool_use"},
    "a call without its reason": {"content": [call("x")]},
    "thinking": {
        "content": [{"type": "thinking", "thinking": "so", "signature": "c2ln"}, {"type": "text", "text": "x"}]
    },
    "unknown fields": {"content": [{"type": "text", "text": "x", "new": 1}], "container": {"id": "y"}},
    "an unknown block": {"content": [{"type": "new", "x": 1}, {"type": "text", "text": "x"}]},
    "no content": {"content": []},
    "content as text": {"content": "x"},
}


@pytest.mark.parametrize("fields", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_replies_on_the_fast_path_are_those_of_the_codec(fields, monkeypatch):
    reply = said("A2", "A1", "A2")
    lines = [asked("A1", None, "A1"), {**reply, "message": {**reply["message"], **fields}}, *turns("B", 1, "A2")]
    fast = read(*lines)
    monkeypatch.setattr(lines_module, "plain_reply", lambda *_: None)
    assert fast == read(*lines)


ANSWER: Line = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "x"}
ASKED: dict[str, object] = {
    "a text": "hello",
    "no text": "",
    "the text that is the name of a kind": "text",
    "texts": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
    "a result": [ANSWER],
    "a result that is the name of a kind": [{**ANSWER, "content": "text"}],
    "a failure": [{**ANSWER, "is_error": True}],
    "a success": [{**ANSWER, "is_error": False}],
    "an odd flag": [{**ANSWER, "is_error": 1}],
    "a flag that is null": [{**ANSWER, "is_error": None}],
    "unknown fields": [{**ANSWER, "new": 1}],
    "a result of blocks": [{**ANSWER, "content": [{"type": "text", "text": "x"}]}],
    "a result without content": [{"type": "tool_result", "tool_use_id": "toolu_x"}],
    "results": [ANSWER, {**ANSWER, "tool_use_id": "toolu_y"}],
    "a result and a text": [ANSWER, {"type": "text", "text": "x"}],
    "no id": [{**ANSWER, "tool_use_id": None}],
    "nothing": None,
}


@pytest.mark.parametrize("content", ASKED.values(), ids=ASKED.keys())
def test_turns_of_the_user_on_the_fast_path_are_those_of_the_codec(content, monkeypatch):
    lines = [*turns("A", 1), said("A3", "A2", call("x")), asked("A4", "A3", content), *turns("B", 1, "A4")]
    fast = read(*lines)
    monkeypatch.setattr(lines_module, "plain_turn", lambda _: ())
    assert fast == read(*lines)


def test_a_search_for_missing_parents_passes_each_line_once(monkeypatch):
    """Lines whose parents are missing are looked up in an index; without it every one is compared with every other."""
    count = 600
    lines = [
        {
            "type": "user",
            "uuid": f"u{at}",
            "parentUuid": f"missing-{at}",
            "timestamp": "2026-11-18T10:00:00.000Z",
            "sessionId": "s",
            "message": {"role": "user", "content": f"Question {at}"},
        }
        for at in range(count)
    ]
    asked = 0
    is_gone = path._Links._is_gone

    def counted(self, node):
        nonlocal asked
        asked += 1
        return is_gone(self, node)

    monkeypatch.setattr(path._Links, "_is_gone", counted)
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    history = read_history(data, format="claude-code")
    assert [message.content[0].text for message in history.context.messages] == [
        f"Question {at}" for at in range(count)
    ]
    assert asked < 2 * count


def test_a_bad_line_that_is_repeated_is_parsed_once(monkeypatch):
    parsed: list[bytes] = []
    parse = kit_lines.parse_json
    monkeypatch.setattr(kit_lines, "parse_json", lambda data: parsed.append(data) or parse(data))
    good = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Why?"}}
    data = json.dumps(good).encode() + b"\n" + b'{"type": "user", [[[[[[[\n' * 50
    history = read_history(data, format="claude-code")
    assert len(history.report.of(ChangeCode.LINE_UNREADABLE)) == 50
    assert len(parsed) <= 2


def test_a_count_of_tokens_that_no_program_can_hold_is_none():
    usage = dict.fromkeys(
        ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), 1
    )
    reply = said("B", "A", "Because.")
    reply["message"]["usage"] = {**usage, "input_tokens": 10**400}
    data = b"\n".join(json.dumps(each).encode() for each in (asked("A", None, "Why?"), reply))
    usage = read_history(data).context.messages[1].usage
    assert usage is not None
    assert usage.input == 0
