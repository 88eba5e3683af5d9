"""Small logs for the conformance kit, written by hand after the tables of llm 0.36."""

from __future__ import annotations

import base64
import json
from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.tables import MemoryDatabase

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_ATTACHMENT = {"id": "a1", "type": "image/png", "path": None, "url": None, "content": base64.b64decode(_PNG)}
_CALL = {"name": "read", "arguments": {"path": "a"}, "tool_call_id": "call_1"}
_RESULT = {"name": "read", "output": "no such file", "tool_call_id": "call_1", "exception": "FileNotFoundError"}


def _part(at: int, message: str, kind: str, text: str | None = None, payload: object = None) -> dict[str, Any]:
    stored = None if payload is None else json.dumps(payload)
    return {"id": at, "message_hash": message, "position": at, "type": kind, "text": text, "payload": stored}


def _message(name: str, parent: str | None, role: str) -> dict[str, Any]:
    return {"hash": name, "parent_hash": parent, "role": role, "provider_metadata": None}


def _turn(name: str, tip: str, **fields: object) -> dict[str, Any]:
    turn = {"id": name, "thread_id": "t1", "tip_message_hash": tip, "model": "anthropic/claude-sonnet-4-5"}
    return {**turn, "input_tokens": 10, "output_tokens": 7, "datetime_utc": "2026-11-15T10:00:01+00:00", **fields}


_SIGNED = {"provider_metadata": {"anthropic": {"signature": "c2ln"}}}
_THREADS = MemoryDatabase(
    {
        "threads": [{"id": "t1", "name": "Look", "tip_message_hash": "m4", "forked_from": None,
                     "datetime_utc": "2026-11-15 10:00:09+00:00"}],
        "turns": [_turn("1", "m2"), _turn("2", "m4"), _turn("3", "m9")],
        "messages": [_message("m0", None, "system"), _message("m1", "m0", "user"), _message("m2", "m1", "assistant"),
                     _message("m3", "m2", "tool"), _message("m4", "m3", "assistant"),
                     _message("m9", "m1", "assistant")],
        "parts": [
            _part(0, "m0", "text", "Be brief."),
            _part(1, "m1", "text", "Look."), _part(2, "m1", "attachment", payload={"attachment": {"id": "a1"}}),
            _part(3, "m2", "reasoning", "I read.", _SIGNED), _part(4, "m2", "tool_call", payload=_CALL),
            _part(5, "m3", "tool_result", payload=_RESULT), _part(6, "m4", "text", "It is not there."),
            _part(7, "m9", "text", "Another answer."),
        ],
        "attachments": [_ATTACHMENT],
    }
)  # fmt: skip
_OLD = MemoryDatabase(
    {
        "conversations": [{"id": "c1", "name": "Look", "model": "claude-sonnet-4-5"}],
        "responses": [
            {"id": "r1", "conversation_id": "c1", "model": "anthropic/claude-sonnet-4-5", "prompt": "Look.",
             "system": "Be brief.", "response": "", "datetime_utc": "2026-11-15T10:00:01"},
            {"id": "r2", "conversation_id": "c1", "model": "anthropic/claude-sonnet-4-5", "prompt": "",
             "system": None, "response": "It is not there.", "datetime_utc": "2026-11-15T10:00:02"},
        ],
        "tool_calls": [{"response_id": "r1", "name": "read", "arguments": '{"path": "a"}', "tool_call_id": "call_1"}],
        "tool_results": [{"response_id": "r2", **_RESULT}],
        "prompt_attachments": [{"response_id": "r1", "attachment_id": "a1", "order": 0}],
        "attachments": [_ATTACHMENT],
    }
)  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the samples: a thread with a signature, an attachment and a failed call, and an older conversation."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    asked = {"role": "user", "content": [{"type": "text", "text": "Look."}, image]}
    call = {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "no such file", "is_error": True}
    rest: list[object] = [{"role": "user", "content": [result]}, {"role": "assistant", "content": "It is not there."}]
    thinking = {"type": "thinking", "thinking": "I read.", "signature": "c2ln"}
    return (
        FormatSample(
            "thread",
            Source(database=_THREADS, name="logs.db"),
            [asked, {"role": "assistant", "content": [thinking, call]}, *rest],
            wire="anthropic-messages",
        ),
        FormatSample(
            "older",
            Source(database=_OLD, name="logs.db"),
            [asked, {"role": "assistant", "content": [call]}, *rest],
            wire="anthropic-messages",
        ),
    )
