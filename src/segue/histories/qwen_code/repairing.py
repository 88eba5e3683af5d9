"""Where a Qwen Code session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (Qwen Code 0.24.4, run 2026-11-18):
- It ends with the provider's error for a result that is too long, and goes on after the repair. A picture that is
  refused, calls without a result and results without a call it leaves out itself.
- Assumed, not tried: it takes the model from its settings, not from the session.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall
from segue.histories.kit.google_repairing import call_of_part, picture_of_part, result_of_part, unsign_part
from segue.histories.kit.lines import Fields, object_of

_KEPT: Final = ("sessionId", "timestamp", "cwd", "version", "gitBranch")


def _answer(line: Fields, call: OpenCall) -> dict[str, Any]:
    part = {"functionResponse": {"id": call.id, "name": call.name, "response": {"error": NO_RESULT}}}
    kept = {key: line[key] for key in _KEPT if key in line}
    outcome = {"callId": call.id, "status": "error", "resultDisplay": NO_RESULT}
    return {**kept, "type": "tool_result", "message": {"role": "user", "parts": [part]}, "toolCallResult": outcome}


ANATOMY: Final = Anatomy(
    id_key="uuid",
    parent_key="parentUuid",
    is_record=lambda node: "uuid" in node and "sessionId" in node,
    call_id=call_of_part,
    result_id=result_of_part,
    is_holder=lambda node: "uuid" in node and "message" in node,
    answer=_answer,
    signatures=frozenset({"thoughtSignature"}),
    unsign=unsign_part,
    picture=picture_of_part,
    note=lambda _, text: {"text": text},
    is_hollow=lambda node: "message" in node and object_of(node.get("message")).get("parts") == [],
)
