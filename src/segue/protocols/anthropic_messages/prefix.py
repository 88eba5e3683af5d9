"""What Claude's thinking is bound to, on the Anthropic wire.

Facts this file relies on (Anthropic documentation: preserved thinking; anthropic 2.8.0; read 2026-11-16):
- The prefix of a thinking block is `system`, `tools` and every message before it, as the client sent them; behind a
  `compaction` block only what follows it. Cache marks do not count, nor does a tool with `defer_loading`.
- A string as the content of a message is short for one text block. Claude Code sends a message as a block with a cache
  mark while it is the newest, and as a string from then on.     (API reference: Messages; Claude Code 2.1.325, 2026-11)
- How the server is asked to drop, and what it answers: see `kit.claude_prefix`.
"""

from __future__ import annotations

from typing import Final, cast

from segue.protocols.anthropic_messages.cache import CACHE_CONTROL
from segue.protocols.kit.claude_prefix import BETA, TRANSFORMATIONS, has_drop, read_transformations, with_drop
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.prefix_form import Dropped, PrefixForm

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
