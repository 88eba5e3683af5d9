"""Where a session of GitHub Copilot CLI holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (Copilot CLI 1.0.40; the schema of its log; 2026-11-16):
- The last `session.model_change` is the model of the next turn.
- Calls without a result, results without a call, long results and broken lines do not stop 1.0.102: it went on before
  and after their repair. (run 2026-11-18)
- The program answers a call without a result itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall
from segue.histories.kit.lines import Fields, object_of, text_of
from segue.histories.kit.stamps import make_id


def _answer(event: Fields, call: OpenCall) -> dict[str, Any]:
    data = {"toolCallId": call.id, "success": False, "error": {"message": NO_RESULT, "code": "failure"}}
    return {"type": "tool.execution_complete", "data": data, "timestamp": event.get("timestamp")}


def _call_id(node: Fields) -> str | None:
    return text_of(node.get("toolCallId")) if "name" in node and "arguments" in node else None


def _result_id(node: Fields) -> str | None:
    return text_of(node.get("toolCallId")) if "success" in node else None


def _picture(node: Fields) -> str | None:
    kind = str(node.get("mimeType") or node.get("mediaType") or node.get("type") or "")
    return text_of(node.get("data")) if "image" in kind or node.get("type") == "blob" else None


def _model(events: Sequence[Fields], _provider: str, model: str) -> dict[str, Any]:
    last = next(each for each in reversed(events) if each.get("id"))
    fresh = make_id("repair", str(last.get("id")), model)
    stamp = {"id": fresh, "timestamp": last.get("timestamp"), "parentId": last.get("id")}
    return {"type": "session.model_change", "data": {"newModel": model}, **stamp}


def _is_hollow(node: Fields) -> bool:
    data = object_of(node.get("data"))
    return node.get("type") == "assistant.message" and not data.get("content") and not data.get("toolRequests")


ANATOMY: Final = Anatomy(
    id_key="id",
    parent_key="parentId",
    carrier="data",
    is_record=lambda node: isinstance(node.get("type"), str) and isinstance(node.get("data"), dict) and "id" in node,
    call_id=_call_id,
    result_id=_result_id,
    is_holder=lambda node: node.get("type") == "assistant.message",
    answer=_answer,
    signatures=frozenset({"reasoningOpaque", "encryptedContent"}),
    unsign=lambda node, name: {key: value for key, value in node.items() if key != name},
    picture=_picture,
    note=lambda _node, _text: None,
    is_hollow=_is_hollow,
    model_record=_model,
)
