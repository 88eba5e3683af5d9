"""References to content that a provider holds: which are lost, and whether the target has the earlier turns.

Facts:
- A request with `previous_response_id` or `cachedContent` has only the new turns: another provider answers without the
  others.                                                         (openai 3.49.0, google-genai 3.1.0; read 2026-11-15)
- Results may answer calls of the turns that the provider holds.                            (recorded traffic, 2026-11)
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import Extra, NativeContent
from segue.conversation.context import Options
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import HistoryNeeded
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import Target, Workspace
from segue.protocols.kit.held_content import NO_HELD_CONTENT, HeldContent, Reference
from segue.protocols.registry import find_protocol

ELSEWHERE: Final = ":elsewhere"
"""After the name of a protocol, where it is a key of `extra`: what only another provider or model of it accepts."""


def held_content_of(protocol: str) -> HeldContent:
    """Return what a protocol declares; nothing for an unknown one."""
    record = find_protocol(protocol.removesuffix(ELSEWHERE))
    return NO_HELD_CONTENT if record is None else record.held_content


def lost_references(extra: Extra, kept: Extra | None) -> list[tuple[str, Reference]]:
    """Return the references that are in an `extra` and not in what is kept of it, each with its protocol."""
    lost: list[tuple[str, Reference]] = []
    for protocol, part in extra.items():
        remaining = (kept or {}).get(protocol, {})
        found = held_content_of(protocol).references(part)
        lost += [(protocol, reference) for reference in found if reference.key not in remaining]
    return lost


def note_reference(workspace: Workspace, reference: Reference, path: Path) -> None:
    """Report a lost reference, and what the caller has to add instead."""
    name = clean_text(reference.id)
    detail = f"{reference.key}{f' {name}' if name else ''}: {reference.what}"
    workspace.note(ChangeCode.PROVIDER_HISTORY, path, Loss.CONTENT, detail)
    workspace.needed.append(HistoryNeeded(path=path, field=reference.key, reference=name, what=reference.what))


def reference_of_native(piece: NativeContent) -> Reference | None:
    """Return the reference of a native block without fallback content."""
    return None if piece.fallback else held_content_of(piece.protocol).reference_of(piece.block)


def holds_history(options: Options, target: Target) -> bool:
    """Whether the options refer to earlier turns that the target's provider holds."""
    part = (options.extra or {}).get(target.model.protocol)
    if part is None:
        return False
    held, refused = held_content_of(target.model.protocol), target.rules.refused_extra
    return any(found.key in held.history and found.key not in refused for found in held.references(part))


def is_continued(workspace: Workspace) -> bool:
    """Whether a result without a call may answer a call of a turn that the provider holds."""
    options = workspace.settings.options if workspace.settings is not None else None
    return workspace.prefix_state.has_references or (options is not None and holds_history(options, workspace.target))


def has_reference(message: Message, protocol: str) -> bool:
    """Whether a message that is not the assistant's names a stored item, by a block of this protocol."""
    return message.role != "assistant" and any(
        piece.kind == "native" and piece.protocol == protocol and reference_of_native(piece) is not None
        for piece in message.content
    )


def holds_content(options: Options, target_protocol: str) -> bool:
    """Whether fitted options refer to content that the target's provider holds."""
    part = (options.extra or {}).get(target_protocol)
    return part is not None and any(held_content_of(target_protocol).references(part))
