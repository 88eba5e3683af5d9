"""Where a Gemini CLI session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (Gemini CLI 0.61.0, run 2026-11-18; its source, read 2026-11-15):
- A broken picture is sent as it is. Other faults were not tried with the program.
- Assumed, not tried: the program takes the model from its settings, not from the session.
- A call is a part, or an entry of `toolCalls` that holds its result as well.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall
from segue.histories.kit.google_repairing import call_of_part, picture_of_part, result_of_part, unsign_part
from segue.histories.kit.lines import Fields, text_of
from segue.histories.kit.stamps import make_id


def _call_id(node: Fields) -> str | None:
    if "args" in node and "name" in node and "status" in node:
        found = text_of(node.get("id"))
        return None if found is None else found.removeprefix(f"{node['name']}__")
    return call_of_part(node)


def _close(node: dict[str, Any]) -> dict[str, Any] | None:
    if "status" not in node:
        return None
    answer = {"id": _call_id(node), "name": node["name"], "response": {"error": NO_RESULT}}
    return {**node, "status": "error", "result": [{"functionResponse": answer}]}


def _answer(message: Fields, call: OpenCall) -> dict[str, Any]:
    part = {"functionResponse": {"id": call.id, "name": call.name, "response": {"error": NO_RESULT}}}
    fresh = make_id("repair", call.id)
    return {"id": fresh, "timestamp": message.get("timestamp"), "type": "user", "content": [part]}


ANATOMY: Final = Anatomy(
    is_record=lambda node: ("type" in node and "id" in node) or "$set" in node or "sessionId" in node,
    call_id=_call_id,
    result_id=result_of_part,
    is_holder=lambda node: node.get("type") == "gemini" and "content" in node,
    close=_close,
    answer=_answer,
    signatures=frozenset({"thoughtSignature"}),
    unsign=unsign_part,
    picture=picture_of_part,
    note=lambda _, text: {"text": text},
    is_hollow=lambda node: (
        node.get("type") in {"user", "gemini"} and node.get("content") == [] and not node.get("toolCalls")
    ),
)
