"""How Claude is asked to drop thinking that is not valid after its prefix, and how it says what it dropped.

Facts (anthropic 2.8.0; Anthropic documentation: preserved thinking; read 2026-11-16):
- With the beta `thinking-binding-controls-2026-08-01`, `thinking.block_binding` says what happens if the prefix
  differs: "error" or "drop_block". It is accepted with the types `adaptive` and `enabled` alone.
- The reply then has `input_transformations`: what was dropped, by its path in the request, and why. Unknown types are
  to be ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from segue.conversation.messages import Diagnostic
from segue.models.family import Family
from segue.models.model_ids import CLAUDE_BINDS_ACCOUNT, CLAUDE_BINDS_PREFIX
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reply_form import note_withheld

BETA: Final = "thinking-binding-controls-2026-08-01"
BINDING: Final = "block_binding"
_BEHAVIOR: Final = "prefix_mismatch_behavior"
_DROP: Final = "drop_block"
_ACCEPTED_BESIDE: Final = frozenset({"adaptive", "enabled"})

CLAUDE_BINDING: Final[tuple[Family, ...]] = (
    Family(
        pattern=CLAUDE_BINDS_PREFIX,
        rules={"bound_prefix": True},
        source="Anthropic documentation: preserved thinking (2026-11-09); refusals recorded on Fable 5.1 and Opus 5.5",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_BINDS_PREFIX,
        rules={"drops_unbound": True},
        providers=("anthropic", "google-vertex", "amazon-bedrock"),
        source="anthropic 2.8.0: thinking.block_binding, beta thinking-binding-controls-2026-08-01; a recorded test at"
        " Bedrock",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_BINDS_ACCOUNT,
        rules={"bound_account": "dropped"},
        source="Anthropic documentation: Claude Sonnet 5.5, Claude Haiku 5.5 (2026-10); 5.2 by conclusion",
        read="2026-11-16",
    ),
)
"""Which models bind thinking to what, at Anthropic's own API and at Bedrock."""


def with_drop(thinking: Block) -> Wire | None:
    """Return the options of thinking with the request to drop; None if they do not allow it.

    A model that always thinks needs no options, and to name its only type changes nothing. One that thinks on request
    (Haiku 5.5) thinks in this request: its history has thinking, and the server is asked once. Thinking that was turned
    off stays off.
    """
    kind = thinking.get("type") if thinking else "adaptive"
    if kind not in _ACCEPTED_BESIDE:
        return None
    return {**thinking, "type": kind, BINDING: {**object_of(thinking.get(BINDING)), _BEHAVIOR: _DROP}}


def has_drop(thinking: Block) -> bool:
    """Whether the options of thinking have the request to drop."""
    return object_of(thinking.get(BINDING)).get(_BEHAVIOR) == _DROP


def _read(given: object) -> dict[str, str]:
    entries = [each for each in map(object_of, list_of(given)) if each.get("type") == "thinking_dropped"]
    return {str(entry.get("path")): str(entry.get("reason")) for entry in entries}


def note_transformations(given: object) -> tuple[Diagnostic, ...]:
    """Say what the provider did not read of a request; empty if it read everything, or does not say."""
    return note_withheld([{"path": path, "reason": reason} for path, reason in _read(given).items()]) if given else ()


def find_dropped(given: object, body: Block, signature: Callable[[Block], str | None]) -> dict[str, str] | None:
    """Return the signatures of a body that a reply's `input_transformations` name, with the reasons.

    None if there is no such list.
    """
    if not isinstance(given, list):
        return None
    reasons = _read(cast("list[object]", given))
    blocks = (
        (f"messages.{turn}.content.{at}", object_of(block))
        for turn, message in enumerate(list_of(body.get("messages")) if reasons else ())
        for at, block in enumerate(list_of(object_of(message).get("content")))
    )
    return {token: reasons[path] for path, block in blocks if path in reasons and (token := signature(block))}
