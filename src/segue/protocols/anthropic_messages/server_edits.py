"""Context editing and compaction of the Messages API.

Facts this file relies on (Anthropic documentation: context editing, compaction; anthropic 2.8.0; read 2026-11-17):
- `context_management.edits` lists what the server does before the model reads the conversation; what the client sends
  stays as it is, and so does the thinking in it. `clear_thinking` has to be the first.
- A block of threshold compaction has no signature. A request with one needs the edit too: 400 otherwise. (probed)
- The server reads such a block in place of all messages before it. One whose content is null is ignored.
- `context_management` is refused beside `compaction`, which asks for a summary at once.
- `usage.iterations` has the tokens of a compaction beside those of the reply. (BetaUsage.iterations)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.server_edits import ServerEdit, ServerEdits
from segue.protocols.kit.sources import objects_in

_FIELD: Final = "context_management"
_TYPES: Final[Mapping[ServerEdit, str]] = {"clear": "clear_tool_uses_20250919", "compact": "compact_20260112"}
_COMPACTION: Final = "compaction"


def edits_of(fields: Block) -> list[Block]:
    """Give the edits that a request asks for."""
    return objects_in(object_of(fields.get(_FIELD)).get("edits"))


def _ask(fields: Block, edit: ServerEdit, above: int | None) -> Block:
    edits = edits_of(fields)
    if fields.get(_COMPACTION) is not None or any(each.get("type") == _TYPES[edit] for each in edits):
        return fields
    added: dict[str, object] = {"type": _TYPES[edit]}
    if above is not None:
        added["trigger"] = {"type": "input_tokens", "value": above}
    return {**fields, _FIELD: {**object_of(fields.get(_FIELD)), "edits": [*edits, added]}}


def _needed(block: Block) -> ServerEdit | None:
    return "compact" if block.get("type") == _COMPACTION and block.get("signature") is None else None


def _covers(block: Block) -> bool:
    return block.get("type") == _COMPACTION and block.get("content") is not None


def _applied(reply: Mapping[str, object]) -> list[str]:
    notes = [
        f"the server cleared {each.get('cleared_tool_uses')} tool uses, {each.get('cleared_input_tokens')} tokens"
        for each in objects_in(object_of(reply.get(_FIELD)).get("applied_edits"))
        if each.get("type") == _TYPES["clear"]
    ]
    if any(map(_covers, objects_in(reply.get("content")))):
        notes.append("the server summarised everything before the reply")
    return notes


def _count(fields: dict[str, object], compactions: Sequence[tuple[int, int]]) -> None:
    if fields.get("type") in ("message", "message_delta"):
        usage = cast("dict[str, object]", fields["usage"])
        own = {name: usage[name] for name in ("input_tokens", "output_tokens") if name in usage}
        rows = [{"type": _COMPACTION, "input_tokens": read, "output_tokens": wrote} for read, wrote in compactions]
        usage["iterations"] = [*rows, {"type": "message", **own}]


SERVER_EDITS: Final = ServerEdits(
    form="edits", ask=_ask, needed=_needed, covers=_covers, applied=_applied, count=_count
)
