"""Compaction by the server in the Responses API.

Facts this file relies on (OpenAI documentation: compaction; openai 3.49.0; read 2026-11-17):
- `context_management: [{"type": "compaction", "compact_threshold": ...}]` makes the server compact a longer input. The
  reply has a `compaction` item, encrypted, which stands for everything before it and is sent back like other items.
- What stands before the newest such item may be left out. (`previous_response_id`: it must not.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.json_values import Block
from segue.protocols.kit.server_edits import ServerEdit, ServerEdits
from segue.protocols.kit.sources import objects_in

_FIELD: Final = "context_management"
_COMPACTION: Final = "compaction"


def _ask(fields: Block, edit: ServerEdit, above: int | None) -> Block:
    entries = objects_in(fields.get(_FIELD))
    if edit != "compact" or any(map(_covers, entries)):
        return fields
    added: dict[str, object] = {"type": _COMPACTION}
    if above is not None:
        added["compact_threshold"] = above
    return {**fields, _FIELD: [*entries, added]}


def _needed(block: Block) -> ServerEdit | None:  # noqa: ARG001 - common signature
    return None


def _covers(block: Block) -> bool:
    return block.get("type") == _COMPACTION


def _applied(reply: Mapping[str, object]) -> list[str]:
    is_compacted = any(map(_covers, objects_in(reply.get("output"))))
    return ["the server compacted everything before the reply"] if is_compacted else []


SERVER_EDITS: Final = ServerEdits(form="list", ask=_ask, needed=_needed, covers=_covers, applied=_applied)
