"""Where an opencode session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (files of opencode 1.18.33, run 2026-11-15):
- A tool part holds the call and its result; one that is `running` or `pending` has none.
- With a signature that nobody made it ended with the provider's error, and went on after the repair. A call that never
  ended is answered by the program; a session that is too long is compacted. (1.18.33, run 2026-11-18)
- Assumed: the model of the next turn is that of the last message of the user, and reasoning without a signature is not
  sent to Claude.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, id_in
from segue.histories.kit.lines import Fields, object_of, text_of

_OPEN: Final = ("pending", "running")


def _close(part: dict[str, Any]) -> dict[str, Any]:
    state = object_of(part.get("state"))
    start = object_of(state.get("time")).get("start") or 0
    done = {
        "status": "error",
        "input": state.get("input") or {},
        "error": NO_RESULT,
        "time": {"start": start, "end": start},
    }
    return {**part, "state": done}


def _call_id(node: Fields) -> str | None:
    is_open = object_of(node.get("state")).get("status") in _OPEN
    return text_of(node.get("callID")) if node.get("type") == "tool" and is_open else None


def _picture(node: Fields) -> str | None:
    url = text_of(node.get("url")) if str(node.get("mime", "")).startswith("image/") else None
    return None if url is None or not url.startswith("data:") else url.partition(",")[2]


def _note(part: Fields, text: str) -> dict[str, Any]:
    kept = {key: part[key] for key in ("id", "messageID", "sessionID") if key in part}
    return {**kept, "type": "text", "text": text}


ANATOMY: Final = Anatomy(
    is_record=lambda node: "type" in node or "role" in node,
    call_id=_call_id,
    result_id=lambda node: id_in(node, ("tool",), "callID"),
    is_holder=lambda _: False,
    close=_close,
    answer=lambda _node, _call: {},
    signatures=frozenset({"signature", "reasoningEncryptedContent", "thoughtSignature", "redactedData"}),
    unsign=lambda node, name: {key: value for key, value in node.items() if key != name},
    picture=_picture,
    note=_note,
    is_hollow=lambda _: False,
    user_model=lambda provider, model: {"providerID": provider, "modelID": model},
)
