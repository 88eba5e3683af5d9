"""What agents print of a run: each thing once, results after their calls, and nothing invented."""

from __future__ import annotations

import json
from typing import Any

from segue import read_history


def read(*lines: dict[str, Any]) -> list[tuple[str, list[str]]]:
    history = read_history("".join(json.dumps(line) + "\n" for line in lines).encode())
    assert history.origin.format == "agent-output"
    return [
        (message.role, [getattr(piece, "text", None) or getattr(piece, "id", piece.kind) for piece in message.content])
        for message in history.context.messages
    ]


def test_a_second_run_of_codex_numbers_its_items_again():
    def command(status: str) -> dict[str, Any]:
        return {
            "id": "item_0",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a",
            "status": status,
        }

    started = {"type": "thread.started", "thread_id": "t"}
    ended = {"type": "item.completed", "item": command("completed")}
    assert read(started, ended, started, {"type": "item.started", "item": command("in_progress")}) == [
        ("assistant", ["item_0"]),
        ("toolResult", ["a"]),
        ("assistant", ["item_0_run_2"]),
    ]


def test_lines_of_a_sub_agent_and_partial_messages_are_left_out():
    base = {"session_id": "s", "parent_tool_use_id": None}
    said = {
        "id": "m1",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Done."}],
    }
    assert read(
        {"type": "system", "subtype": "init", "claude_code_version": "2.1.326", "session_id": "s", "cwd": "/p"},
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": "Do"}}, **base},
        {"type": "assistant", "message": {**said, "id": "m0"}, "session_id": "s", "parent_tool_use_id": "t9"},
        {"type": "assistant", "message": said, **base},
        {"type": "result", "subtype": "success", "num_turns": 1, "result": "Done.", "session_id": "s"},
    ) == [("assistant", ["Done."])]


def test_a_stream_of_gemini_without_its_frame_is_not_a_request():
    stamp = {"timestamp": "2026-11-18T10:00:00Z"}
    assert read(
        {"type": "message", "role": "user", "content": "Look.", **stamp},
        {"type": "message", "role": "assistant", "content": "I lo", "delta": True, **stamp},
        {"type": "message", "role": "assistant", "content": "ok.", "delta": True, **stamp},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "l1", "parameters": {}, **stamp},
        {"type": "tool_result", "tool_id": "l1", "status": "success", **stamp},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "l2", "parameters": {}, **stamp},
    ) == [
        ("user", ["Look."]),
        ("assistant", ["I look.", "l1"]),
        ("toolResult", []),
        ("assistant", ["l2"]),
    ]


def test_calls_of_opencode_are_in_the_order_in_which_they_began():
    def tool(name: str) -> dict[str, Any]:
        state = {"status": "completed", "input": {}, "output": f"result of {name}"}
        part = {"id": f"prt_{name}", "messageID": "msg_1", "type": "tool", "tool": "ls", "callID": name, "state": state}
        return {"type": "tool_use", "timestamp": 1, "sessionID": "ses_1", "part": part}

    assert read(tool("c2"), tool("c1")) == [
        ("assistant", ["c1", "c2"]),
        ("toolResult", ["result of c1"]),
        ("toolResult", ["result of c2"]),
    ]


def test_a_stream_that_begins_with_a_system_line_is_not_always_that_of_claude_code():
    assert read(
        {"type": "system", "subtype": "init", "cwd": "/p", "session_id": "s", "tools": [], "model": "m"},
        {"type": "message", "role": "user", "id": "1", "text": "Look.", "session_id": "s"},
        {"type": "tool_call", "toolName": "Read", "toolCallId": "c1", "parameters": {"file": "a"}, "session_id": "s"},
        {"type": "tool_result", "toolCallId": "c1", "isError": False, "value": "two lines", "session_id": "s"},
        {"type": "completion", "finalText": "Done.", "session_id": "s"},
    ) == [("user", ["Look."]), ("assistant", ["c1"]), ("toolResult", ["two lines"]), ("assistant", ["Done."])]


def test_a_stream_of_kimi_without_its_first_line_is_read():
    assert read(
        {"role": "assistant", "content": "Done."},
        {"role": "meta", "type": "session.resume_hint", "session_id": "session_1", "content": "kimi -S session_1"},
    ) == [("assistant", ["Done."])]
