"""A small sample for the conformance kit, written by hand after a dump of ag2 1.2.1."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, MODEL, PATHS, PNG, REMARK
from segue.histories.kit.simple_samples import one_sample


def _event(name: str, /, **fields: object) -> dict[str, Any]:
    return {"__event__": f"ag2.events.{name}", "created_at": 1794744000.5, **fields}


def _data(name: str, /, **fields: object) -> dict[str, Any]:
    return {"__dataclass__": f"ag2.events.{name}", "data": fields}


def _text(text: str) -> dict[str, Any]:
    return _event("input_events.TextInput", metadata={}, content=text)


def _result(at: int, *parts: dict[str, Any]) -> dict[str, Any]:
    result = _data("tool_events.ToolResult", parts=list(parts), final=False, metadata={})
    return {"parent_id": f"toolu_{at}", "name": "read", "result": result}


def _response(text: str, calls: list[dict[str, Any]], reason: str, number: int) -> dict[str, Any]:
    nothing = {"cache_read_input_tokens": None, "cache_creation_input_tokens": None, "thinking_tokens": None}
    counts: dict[str, Any] = {"prompt_tokens": 20.0, "completion_tokens": 7.0, "total_tokens": 27.0, **nothing}
    return _event(
        "types.ModelResponse",
        response_force=False,
        files=[],
        message=_event("types.ModelMessage", metadata={}, content=text),
        tool_calls=_event("tool_events.ToolCallsEvent", calls=calls),
        usage=_data("types.Usage", **counts),
        model=MODEL,
        provider="anthropic",
        finish_reason=reason,
        response_id=f"msg_{number}",
    )


_IMAGE = _event(
    "input_events.BinaryInput",
    metadata={},
    data={"__bytes__": PNG},
    media_type="image/png",
    vendor_metadata={},
    kind={"__enum__": "ag2.events.input_events.BinaryType", "value": "image"},
)
_CALLS = [
    _event(
        "tool_events.ToolCallEvent",
        source=None,
        id=f"toolu_{at}",
        name="read",
        arguments=f'{{"path": "{path}"}}',
        vendor_metadata={},
    )
    for at, path in enumerate(PATHS, 1)
]
_FAILED = {"error": {"__exception__": "ValueError", "message": MISSING}}
_RESULTS = [
    _event("tool_events.ToolResultEvent", **_result(1, _text(FOUND), _IMAGE)),
    _event("tool_events.ToolErrorEvent", **_result(2, _text(MISSING)), **_FAILED),
]
samples: Final = one_sample(
    [
        _event("input_events.ModelRequest", parts=[_text(ASKED), _IMAGE]),
        _response(REMARK, _CALLS, "tool_use", 1),
        _event("tool_events.ToolCallsEvent", calls=_CALLS),
        *_CALLS,
        *_RESULTS,
        _event("tool_events.ToolResultsEvent", results=_RESULTS),
        _response(ANSWER, [], "end_turn", 2),
    ],
    thinking=False,
)
