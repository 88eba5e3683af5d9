"""Small sessions for the conformance kit, written by hand after the format of Gemini CLI 0.61.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_ID = "44444444-4444-4444-8444-444444444444"
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_HEADER = {
    "sessionId": _ID,
    "projectHash": "0" * 64,
    "startTime": "2026-11-15T10:00:00.000Z",
    "lastUpdated": "2026-11-15T10:00:00.000Z",
    "kind": "main",
    "directories": ["/home/user/project"],
}
_IMAGE = {"inlineData": {"mimeType": "image/png", "data": _PNG}}


def _message(kind: str, name: str, second: int, content: object, **fields: object) -> dict[str, Any]:
    time = f"2026-11-15T10:00:{second:02d}.000Z"
    return {"id": name, "timestamp": time, "type": kind, "content": content, **fields}


def _asked(name: str, second: int, text: str, *more: dict[str, Any]) -> dict[str, Any]:
    return _message("user", name, second, [{"text": text}, *more])


def _answer(name: str, second: int, text: str, **fields: object) -> dict[str, Any]:
    tokens = {"input": 20, "output": 7, "cached": 5, "thoughts": 2, "tool": 0, "total": 29}
    return _message("gemini", name, second, text, model="gemini-2.5-pro", tokens=tokens, **fields)


def _response(call_id: str, **response: object) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": "read_file", "response": response}}


_FOUND = _response("read_file__c1", output="alpha")
_FAILED = _response("read_file__c2", error="no such file")
_TOOL_CALLS = [
    {"id": "read_file__c1", "name": "read_file", "args": {"path": "a"}, "status": "success", "result": [_FOUND]},
    {"id": "read_file__c2", "name": "read_file", "args": {"path": "b"}, "status": "error", "result": [_FAILED]},
]
_CONTEXT = _asked("ctx", 0, "<session_context>\nToday.</session_context>")
_FIRST = [
    _asked("u1", 1, "Read both files."),
    _answer("m1", 2, "I read them.", thoughts=[{"subject": "Plan", "description": "Both at once."}]),
    _answer("m1", 2, "I read them.", thoughts=[{"subject": "Plan", "description": "Both at once."}],
            toolCalls=_TOOL_CALLS),
    _message("user", "r1", 3, [_FOUND, _FAILED]),
    _answer("m2", 4, "One is there."),
]  # fmt: skip
_PARALLEL = [
    _HEADER,
    {"$set": {"messages": [_CONTEXT]}},
    *_FIRST,
    _message("info", "i1", 4, "Shown only."),
    _message("user", "c1", 5, "/stats"),
    # A second start: the messages are set anew, and the results stand there twice.
    {"$set": {"messages": [_CONTEXT]}},
    {"$set": {"messages": [
        _CONTEXT,
        _message("user", "u1", 30, [{"text": "Read both files."}]),
        _message("gemini", "m1", 30, [
            {"text": "**Plan** Both at once.", "thought": True}, {"text": "I read them."},
            *({"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}} for call in _TOOL_CALLS),
        ]),
        _message("user", "m1_response", 30, [_FOUND, _FAILED]),
        _message("user", "r1", 30, [_FOUND, _FAILED]),
        _message("gemini", "m2", 30, [{"text": "One is there."}]),
    ]}},
    _asked("u2", 31, "And this?", _IMAGE),
    _answer("m3", 32, "A dot."),
    _asked("u3", 33, "Taken back."),
    {"$rewindTo": "u3"},
]  # fmt: skip
_COMPRESSED = [
    _HEADER,
    {"$set": {"messages": [_CONTEXT]}},
    _asked("u1", 1, "An old question."),
    _answer("m1", 2, "An old answer."),
    {"$set": {"messages": [
        _CONTEXT, _asked("s1", 3, "The summary."),
        _message("gemini", "s2", 3, [{"text": "Got it. Thanks for the additional context!"}]),
    ]}},
    _asked("u2", 4, "A question behind the summary."),
    _answer("m2", 5, "The last answer."),
]  # fmt: skip


def _source(lines: list[dict[str, Any]]) -> Source:
    data = b"".join(json_line(line) for line in lines)
    return Source(data=data, name=f"tmp/project/chats/session-2026-11-15T10-00-{_ID[:8]}.jsonl")


def _turn(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def samples() -> tuple[FormatSample, ...]:
    """Give the samples: parallel calls over two starts with a rewind, and a compression."""
    calls = [{"functionCall": {"id": f"c{at}", "name": "read_file", "args": {"path": "ab"[at - 1]}}} for at in (1, 2)]
    results = [_response("c1", output="alpha"), _response("c2", error="no such file")]
    return (
        FormatSample(
            "parallel",
            _source(_PARALLEL),
            [
                _turn("user", {"text": "Read both files."}),
                _turn("model", {"text": "**Plan** Both at once.", "thought": True}, {"text": "I read them."}, *calls),
                _turn("user", *results),
                _turn("model", {"text": "One is there."}),
                _turn("user", {"text": "And this?"}, _IMAGE),
                _turn("model", {"text": "A dot."}),
            ],
        ),
        FormatSample(
            "compressed",
            _source(_COMPRESSED),
            [
                _turn("user", {"text": "The summary."}),
                _turn("user", {"text": "A question behind the summary."}),
                _turn("model", {"text": "The last answer."}),
            ],
        ),
    )
