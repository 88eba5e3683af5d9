"""How Claude is asked to drop thinking that is not valid behind its prefix, and how it says what it dropped.

Facts this file relies on (anthropic 2.8.0; Anthropic documentation: preserved thinking; read 2026-11-16):
- With the beta `thinking-binding-controls-2026-08-01`, `thinking.block_binding` says what happens if the prefix
  differs: "error" or "drop_block". It is accepted beside the types `adaptive` and `enabled` alone.
- The reply then has `input_transformations`: what was dropped, by its path in the request, and why. Unknown types are
  to be ignored.
"""

from __future__ import annotations

import re
from typing import Final, cast

from segue.conversation.messages import Diagnostic
from segue.foundation.plurals import counted
from segue.models.family import Family
from segue.models.model_ids import CLAUDE_BINDS_ACCOUNT, CLAUDE_BINDS_PREFIX
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.prefix_form import Dropped

BETA: Final = "thinking-binding-controls-2026-08-01"
BINDING: Final = "block_binding"
TRANSFORMATIONS: Final = "input_transformations"
_BEHAVIOR: Final = "prefix_mismatch_behavior"
_DROP: Final = "drop_block"
_ACCEPTED_BESIDE: Final = frozenset({"adaptive", "enabled"})
_PATH: Final = re.compile(r"messages\.(\d+)\.content\.(\d+)")

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


def with_drop(thinking: Block, endpoint: Endpoint) -> Wire | None:
    """Give the options of thinking with the request to drop; None if they do not allow it.

    A model that always thinks needs no options, and to name its only type changes nothing. For any other, thinking
    would be turned on.
    """
    kind = thinking.get("type")
    if not thinking and "off" not in endpoint.rules.thinking_levels:
        kind = "adaptive"
    if kind not in _ACCEPTED_BESIDE:
        return None
    return {**thinking, "type": kind, BINDING: {**object_of(thinking.get(BINDING)), _BEHAVIOR: _DROP}}


def has_drop(thinking: Block) -> bool:
    """Whether the options of thinking have the request to drop."""
    return object_of(thinking.get(BINDING)).get(_BEHAVIOR) == _DROP


def read_transformations(given: object) -> list[Dropped] | None:
    """Read `input_transformations`; None if there is no such list."""
    if not isinstance(given, list):
        return None
    found: list[Dropped] = []
    for entry in map(object_of, cast("list[object]", given)):
        path = _PATH.fullmatch(str(entry.get("path")))
        if path is not None and entry.get("type") == "thinking_dropped":
            found.append(Dropped(int(path[1]), int(path[2]), str(entry.get("reason"))))
    return found


def note_transformations(given: object) -> tuple[Diagnostic, ...]:
    """Say what the provider did not read of a request; empty if it read everything, or does not say."""
    dropped = read_transformations(given)
    if not dropped:
        return ()
    places = [{"path": f"messages.{each.turn}.content.{each.block}", "reason": each.reason} for each in dropped]
    message = f"the provider did not read {counted(len(dropped), 'block')} of thinking: {dropped[0].reason}"
    return (Diagnostic(type="reasoning_dropped", message=message, details={"dropped": places}),)
