"""Small sessions for the conformance kit, written by hand after the format of Claude Code 2.1.325."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.writing import json_line

_SESSION = "11111111-1111-4111-8111-111111111111"
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_SIGNATURE = "c2lnbmF0dXJlIG9mIGEgc2FtcGxl"


def _line(kind: str, uuid: str, parent: str | None, second: int, **fields: object) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "uuid": uuid,
        "timestamp": f"2026-11-15T10:00:{second:02d}.000Z",
        "userType": "external",
        "entrypoint": "cli",
        "cwd": "/home/user/project",
        "sessionId": _SESSION,
        "version": "2.1.325",
        "gitBranch": "main",
        **fields,
    }


def _asked(uuid: str, parent: str | None, second: int, content: object, **fields: object) -> dict[str, Any]:
    return _line("user", uuid, parent, second, message={"role": "user", "content": content}, **fields)


def _block(uuid: str, parent: str, second: int, reply: str, block: object, *, stop: str = "end_turn") -> dict[str, Any]:
    message = {
        "id": reply,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [block],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7},
    }
    return _line("assistant", uuid, parent, second, message=message, requestId=f"req_{reply}")


def _result(uuid: str, parent: str, second: int, call: str, content: object, **fields: object) -> dict[str, Any]:
    block = {"tool_use_id": call, "type": "tool_result", "content": content, **fields}
    return _asked(uuid, parent, second, [block], toolUseResult={"stdout": "kept"})


def _call(call: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


_THINKING = {"type": "thinking", "thinking": "Both at once.", "signature": _SIGNATURE}
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}

_PARALLEL = [
    {"type": "mode", "mode": "normal", "sessionId": _SESSION},
    _asked("u1", None, 1, "Read both files."),
    _line(
        "attachment", "u2", "u1", 2,
        attachment={"type": "date"}, rendered=[{"content": "<system-reminder>A date.</system-reminder>"}],
        renderedRole="system",
    ),
    _block("a1", "u2", 3, "msg_1", _THINKING, stop="tool_use"),
    _block("a2", "a1", 3, "msg_1", _call("toolu_1", "Read", file_path="a.txt"), stop="tool_use"),
    _block("a3", "a2", 3, "msg_1", _call("toolu_2", "Read", file_path="b.png"), stop="tool_use"),
    _result("r2", "a3", 4, "toolu_2", [_IMAGE]),
    _result("r1", "a2", 5, "toolu_1", "no such file", is_error=True),
    # The next line hangs under the result of the last call only.
    _block("a4", "r2", 6, "msg_2", {"type": "text", "text": "One is there."}),
    _asked("u3", "a4", 7, [{"type": "text", "text": "And this?"}, _IMAGE]),
    _block("a5", "u3", 8, "msg_3", {"type": "text", "text": "A dot."}),
]  # fmt: skip

_BRANCHED = [
    _asked("u1", None, 1, "First question."),
    _block("a1", "u1", 2, "msg_1", {"type": "text", "text": "First answer."}),
    _asked("u2", "a1", 3, "A question that was taken back."),
    _block("a2", "u2", 4, "msg_2", {"type": "text", "text": "Its answer."}),
    _asked("u3", "a1", 5, "Another question."),
    _block("a3", "u3", 6, "msg_3", {"type": "text", "text": "Another answer."}),
]

_COMPACTED = [
    _asked("u1", None, 1, "An old question."),
    _block("a1", "u1", 2, "msg_1", {"type": "text", "text": "An old answer."}),
    _asked("u2", "a1", 3, "A question that is kept."),
    _block("a2", "u2", 4, "msg_2", {"type": "text", "text": "An answer that is kept."}),
    _line(
        "system", "s1", None, 5, logicalParentUuid="a2", subtype="compact_boundary", content="Conversation compacted",
        compactMetadata={"preservedSegment": {"headUuid": "u2", "anchorUuid": "s2", "tailUuid": "a2"}},
    ),
    _asked("s2", "s1", 6, "The summary of what came before.", isCompactSummary=True),
    _asked("u3", "a2", 7, "A question behind the summary."),
    _block("a3", "u3", 8, "msg_3", {"type": "text", "text": "The last answer."}),
]  # fmt: skip


def _source(lines: list[dict[str, Any]]) -> Source:
    name = f"projects/-home-user-project/{_SESSION}.jsonl"
    return Source(data=b"".join(map(json_line, lines)), name=name, neighbours=MemoryFiles({}))


def samples() -> tuple[FormatSample, ...]:
    """Give the samples: parallel calls with an error and an image, a branch, a compaction that keeps messages."""
    return (
        FormatSample(
            "parallel",
            _source(_PARALLEL),
            [
                {"role": "user", "content": "Read both files."},
                {
                    "role": "assistant",
                    "content": [
                        _THINKING,
                        _call("toolu_1", "Read", file_path="a.txt"),
                        _call("toolu_2", "Read", file_path="b.png"),
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"tool_use_id": "toolu_2", "type": "tool_result", "content": [_IMAGE]},
                        {"tool_use_id": "toolu_1", "type": "tool_result", "content": "no such file", "is_error": True},
                    ],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "One is there."}]},
                {"role": "user", "content": [{"type": "text", "text": "And this?"}, _IMAGE]},
                {"role": "assistant", "content": [{"type": "text", "text": "A dot."}]},
            ],
        ),
        FormatSample(
            "branched",
            _source(_BRANCHED),
            [
                {"role": "user", "content": "First question."},
                {"role": "assistant", "content": [{"type": "text", "text": "First answer."}]},
                {"role": "user", "content": "Another question."},
                {"role": "assistant", "content": [{"type": "text", "text": "Another answer."}]},
            ],
        ),
        FormatSample(
            "compacted",
            _source(_COMPACTED),
            [
                {"role": "user", "content": "The summary of what came before."},
                {"role": "user", "content": "A question that is kept."},
                {"role": "assistant", "content": [{"type": "text", "text": "An answer that is kept."}]},
                {"role": "user", "content": "A question behind the summary."},
                {"role": "assistant", "content": [{"type": "text", "text": "The last answer."}]},
            ],
        ),
    )
