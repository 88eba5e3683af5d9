"""Where a Codex session holds what can be at fault; see `segue.histories.kit.repairing`.

Facts (Codex CLI 0.166.0, run 2026-11-18):
- An open call was not refused when the program continued the session: it closes them, or the emulator does not look.
- Assumed, not tried: the program takes the model from its settings, not from the session.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall, id_in
from segue.histories.kit.lines import Fields, text_of

_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_RESULTS: Final = ("function_call_output", "custom_tool_call_output", "tool_search_output")


def _answer(item: Fields, call: OpenCall) -> dict[str, Any]:
    kind = "custom_tool_call_output" if item.get("type") == "custom_tool_call" else "function_call_output"
    return {"type": kind, "call_id": call.id, "output": NO_RESULT}


def _picture(node: Fields) -> str | None:
    url = text_of(node.get("image_url")) if node.get("type") == "input_image" else None
    return None if url is None or not url.startswith("data:") else url.partition(",")[2]


ANATOMY: Final = Anatomy(
    carrier="payload",
    is_record=lambda node: "timestamp" in node and isinstance(node.get("payload"), dict),
    call_id=lambda node: id_in(node, _CALLS, "call_id"),
    result_id=lambda node: id_in(node, _RESULTS, "call_id"),
    is_holder=lambda node: node.get("type") in _CALLS,
    answer=_answer,
    signatures=frozenset({"encrypted_content"}),
    unsign=lambda node, _: None if node.get("type") == "reasoning" else dict(node),
    picture=_picture,
    note=lambda _, text: {"type": "input_text", "text": text},
    is_hollow=lambda node: node.get("type") == "message" and node.get("content") == [],
)
