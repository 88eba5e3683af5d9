"""Blocks that change tools, and the beta headers that the content of a request needs: it is refused without them.

Facts this file relies on (anthropic 2.8.0: beta types; Anthropic documentation; read 2026-11-16):
- A compaction block with a signature was made on demand, one without by a threshold: each has its own header.
- A tool that is added by its definition needs another header than one that is added or removed by its name.
- `clear_at` and `output_config` of a message need one each, and so do `thinking.block_binding`, the edits of
  `context_management`, and `compaction`, which asks for a summary at once.
- `output_format`, the older name of `output_config.format`, is a field of the beta that introduced it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from segue.conversation.context import Prompt
from segue.conversation.messages import Message
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.server_edits import edits_of
from segue.protocols.kit.claude_prefix import BETA, BINDING
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.verbatim import VERBATIM, data_of

_HEADER: Final = "anthropic-beta"
_ON_DEMAND: Final = "compact-2026-09-04"
_BY_THRESHOLD: Final = "compact-2026-01-12"
_EDITING: Final = "context-management-2025-06-27"
_OUTPUT_FORMAT: Final = "structured-outputs-2025-11-13"
_TOOL_CHANGES: Final = "mid-conversation-tool-changes-2026-07-01"
_INLINE_TOOLS: Final = "inline-tools-2026-09-15"
_MESSAGE_FIELDS: Final[Mapping[str, str]] = {
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "output_config": "mid-conversation-output-config-2026-07-01",
}


def needed_headers(prompt: Prompt) -> Mapping[str, str]:
    """Give the headers that a request needs."""
    betas: dict[str, None] = {}
    if prompt.options.extra is not None:
        betas.update(dict.fromkeys(_betas_of_fields(data_of(prompt.options.extra, PROTOCOL))))
        if "@output_format" in object_of(prompt.options.extra.get(PROTOCOL, {}).get(VERBATIM)):
            betas[_OUTPUT_FORMAT] = None
    for message in prompt.context.messages:
        betas.update(dict.fromkeys(_betas_of(message)))
    return {_HEADER: ",".join(betas)} if betas else {}


def _betas_of_fields(fields: Block) -> Iterator[str]:
    if BINDING in object_of(fields.get("thinking")):
        yield BETA
    if fields.get("compaction") is not None:
        yield _ON_DEMAND
    for edit in edits_of(fields):
        yield _BY_THRESHOLD if edit.get("type") == "compact_20260112" else _EDITING


def _betas_of(message: Message) -> Iterator[str]:
    if message.role == "system" and message.extra is not None:
        fields = data_of(message.extra, PROTOCOL)
        yield from (beta for field, beta in _MESSAGE_FIELDS.items() if field in fields)
    for piece in message.content:
        if piece.kind == "native" and piece.protocol == PROTOCOL:
            yield from _betas_of_block(piece.block)


def _betas_of_block(block: Block) -> Iterator[str]:
    match block.get("type"):
        case "compaction":
            yield _BY_THRESHOLD if block.get("signature") is None else _ON_DEMAND
        case "tool_addition" | "tool_removal":
            is_inline = object_of(block.get("tool")).get("type") == "tool_definition"
            yield _INLINE_TOOLS if is_inline else _TOOL_CHANGES
        case _:
            pass


def tool_changes(
    defined: Sequence[Mapping[str, object]], named: Sequence[str], removed: Sequence[str]
) -> list[dict[str, object]]:
    """Write the blocks that add tools, by definition or by name, and remove them."""
    added = [
        *({"type": "tool_definition", "definition": dict(tool)} for tool in defined),
        *({"type": "tool_reference", "name": name} for name in named),
    ]
    gone = [{"type": "tool_reference", "name": name} for name in removed]
    return [
        *({"type": "tool_addition", "tool": tool} for tool in added),
        *({"type": "tool_removal", "tool": tool} for tool in gone),
    ]
