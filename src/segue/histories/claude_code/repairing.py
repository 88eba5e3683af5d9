"""Where a Claude Code session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (Claude Code 2.1.325, run 2026-11-18):
- Assumed, not tried: the program takes the model from its settings, not from the session.
- A line whose parent is missing is the first one that is sent.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall, id_in
from segue.histories.kit.lines import Fields, object_of, text_of

_KEPT: Final = (
    "isSidechain",
    "userType",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "timestamp",
    "entrypoint",
)
_OWN: Final = ("claude", "opus", "sonnet", "haiku", "fable", "<synthetic>")


def _answer(line: Fields, call: OpenCall) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": NO_RESULT, "is_error": True}
    message = {"role": "user", "content": [block]}
    return {"type": "user", **{key: line[key] for key in _KEPT if key in line}, "message": message}


def _picture(node: Fields) -> str | None:
    source = object_of(node.get("source"))
    return text_of(source.get("data")) if node.get("type") == "image" else None


def _is_hollow(node: Fields) -> bool:
    content = object_of(node.get("message")).get("content")
    if "message" in node and isinstance(content, list):
        return not content
    return node.get("type") == "tool_result" and node.get("content") == []


ANATOMY: Final = Anatomy(
    id_key="uuid",
    parent_key="parentUuid",
    is_record=lambda node: isinstance(node.get("type"), str) and ("uuid" in node or "sessionId" in node),
    call_id=lambda node: id_in(node, ("tool_use",), "id"),
    result_id=lambda node: id_in(node, ("tool_result",), "tool_use_id"),
    is_holder=lambda node: "uuid" in node and "message" in node,
    group=lambda node: object_of(node.get("message")).get("id") if node.get("type") == "assistant" else None,
    answer=_answer,
    signatures=frozenset({"signature", "data"}),
    unsign=lambda node, _: None if node.get("type") in {"thinking", "redacted_thinking"} else dict(node),
    picture=_picture,
    note=lambda _, text: {"type": "text", "text": text},
    is_hollow=_is_hollow,
    own_models=lambda model: any(name in model for name in _OWN),
)
