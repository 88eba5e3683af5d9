"""Small sessions for the conformance kit, written by hand after the format of Codex CLI 0.166.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.writing import json_line

_ID = "22222222-2222-7222-8222-222222222222"
_BASE = "33333333-3333-7333-8333-333333333333"
_DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_PNG = f"data:image/png;base64,{_DATA}"


def _lines(*entries: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        json_line({"timestamp": f"2026-11-15T10:00:{at:02d}.000Z", "ordinal": at, "type": kind, "payload": payload})
        for at, (kind, payload) in enumerate(entries)
    )


def _meta(session: str, **fields: object) -> tuple[str, dict[str, Any]]:
    meta = {"id": session, "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/home/user/project"}
    meta |= {"originator": "codex_cli_rs", "cli_version": "0.166.0", "model_provider": "openai"}
    return "session_meta", {**meta, "base_instructions": {"text": "You are an agent."}, **fields}


def _item(**fields: object) -> tuple[str, dict[str, Any]]:
    return "response_item", fields


def _asked(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(content)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _answer(text: str) -> dict[str, Any]:
    part: dict[str, object] = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{len(text)}", "role": "assistant", "status": "completed", "content": [part]}


_MODEL = ("turn_context", {"model": "gpt-5.4", "cwd": "/home/user/project"})
_REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Both at once."}],
    "encrypted_content": "c2VhbGVkIHJlYXNvbmluZw==",
}
_CALLS = [
    {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": '{"cmd": "cat a"}', "call_id": "call_1"},
    {"type": "function_call", "id": "fc_2", "name": "view_image", "arguments": '{"path": "b"}', "call_id": "call_2"},
]
_OUTPUTS = [
    {"type": "function_call_output", "call_id": "call_1", "output": "alpha"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_image", "image_url": _PNG}]},
]
_USAGE = (
    "token_usage_record",
    {"response_id": "resp_1", "usage": {"input_tokens": 20, "cached_input_tokens": 5, "output_tokens": 7,
                                        "total_tokens": 27}},
)  # fmt: skip

_PARALLEL = _lines(
    _meta(_ID),
    _item(type="message", role="developer", content=[_text("<permissions>All.</permissions>")]),
    _item(**_asked(_text("<environment_context>\n</environment_context>"))),
    _MODEL,
    _item(**_asked(_text("Read both files."))),
    ("event_msg", {"type": "user_message", "message": "Read both files."}),
    _item(**_REASONING),
    *(_item(**call) for call in _CALLS),
    _USAGE,
    *(_item(**output) for output in _OUTPUTS),
    _item(**_answer("Both are there.")),
    _item(**_asked(_text("And this?"), {"type": "input_image", "image_url": _PNG})),
    _item(**_answer("A dot.")),
)
_BEFORE = _lines(
    _meta(_BASE),
    _MODEL,
    _item(**_asked(_text("An old question."))),
    _item(**_answer("An old answer.")),
    (
        "compacted",
        {
            "message": "The summary.",
            "replacement_history": [_asked(_text("An old question.")), _asked(_text("The summary."))],
        },
    ),
    _item(**_asked(_text("A question behind the summary."))),
    _item(**_answer("Its answer.")),
    _item(**_asked(_text("Not in the fork."))),
)
_FORK = _lines(
    _meta(_ID, forked_from_id=_BASE, history_base={"thread_id": _BASE, "end_ordinal_exclusive": 7}),
    _MODEL,
    _item(**_asked(_text("In the fork."))),
    _item(**_answer("The last answer.")),
)
_FOLDER = "sessions/2026/11/15/rollout-2026-11-15T10-00-00"


def samples() -> tuple[FormatSample, ...]:
    """Give the samples: parallel calls with an image, and a fork of a session that was compacted."""
    files = MemoryFiles({f"{_FOLDER}-{_BASE}.jsonl": _BEFORE})
    return (
        FormatSample(
            "parallel",
            Source(data=_PARALLEL, name=f"{_FOLDER}-{_ID}.jsonl"),
            [
                _asked(_text("Read both files.")),
                _REASONING,
                *_CALLS,
                *_OUTPUTS,
                _answer("Both are there."),
                _asked(_text("And this?"), {"type": "input_image", "image_url": _PNG}),
                _answer("A dot."),
            ],
        ),
        FormatSample(
            "fork of a compacted session",
            Source(data=_FORK, name=f"{_FOLDER}-{_ID}.jsonl", neighbours=files),
            [
                _asked(_text("An old question.")),
                _asked(_text("The summary.")),
                _asked(_text("A question behind the summary.")),
                _answer("Its answer."),
                _asked(_text("In the fork.")),
                _answer("The last answer."),
            ],
        ),
    )
