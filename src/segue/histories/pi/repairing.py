"""Where a pi session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (pi 0.87.1, run 2026-11-18; its session-format page):
- The program closes open calls by itself, and sends a result without a call as it is.
- Its page says that the last `model_change`, or the model of the last answer, is that of the next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall, id_in
from segue.histories.kit.lines import Fields, object_of, text_of
from segue.histories.kit.stamps import make_id, milliseconds_of


def _answer(entry: Fields, call: OpenCall) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "toolResult", "toolCallId": call.id, "toolName": call.name, "isError": True}
    message |= {
        "content": [{"type": "text", "text": NO_RESULT}],
        "timestamp": milliseconds_of(entry.get("timestamp")) or 0,
    }
    return {"type": "message", "timestamp": entry.get("timestamp"), "message": message}


def _result_id(node: Fields) -> str | None:
    return text_of(node.get("toolCallId")) if node.get("role") == "toolResult" else None


def _model(entries: Sequence[Fields], provider: str, model: str) -> dict[str, Any]:
    last = next(each for each in reversed(entries) if each.get("id"))
    return {
        "type": "model_change",
        "id": make_id("repair", str(last.get("id")), model)[:8],
        "parentId": last.get("id") if last.get("type") != "session" else None,
        "timestamp": last.get("timestamp"),
        "provider": provider,
        "modelId": model,
    }


ANATOMY: Final = Anatomy(
    id_key="id",
    parent_key="parentId",
    carrier="message",
    is_record=lambda node: isinstance(node.get("type"), str) and "id" in node and "timestamp" in node,
    call_id=lambda node: id_in(node, ("toolCall",), "id"),
    result_id=_result_id,
    is_holder=lambda node: node.get("type") == "message" and "parentId" in node,
    answer=_answer,
    signatures=frozenset({"thinkingSignature", "textSignature", "thoughtSignature"}),
    unsign=lambda node, name: {key: value for key, value in node.items() if key != name},
    picture=lambda node: id_in(node, ("image",), "data"),
    note=lambda _, text: {"type": "text", "text": text},
    is_hollow=lambda node: "message" in node and object_of(node.get("message")).get("content") == [],
    model_record=_model,
)
