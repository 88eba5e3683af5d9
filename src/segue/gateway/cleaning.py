"""Removes texts that clients put into a prompt for their own provider.

Facts:
- The first system text of Claude Code is `x-anthropic-billing-header: ...`. Other providers have no use for it, and
  where it changes with each request it spoils their prompt caches.                       (claude-code 2.1.325, 2026-11)
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Context

_BILLING: Final = "x-anthropic-billing-header:"


def without_client_texts(context: Context) -> Context:
    """Remove them from the system prompt; the same object if there are none."""
    prompt = context.system_prompt
    if not isinstance(prompt, tuple):
        return context
    kept = tuple(piece for piece in prompt if piece.kind != "text" or not piece.text.startswith(_BILLING))
    return context if len(kept) == len(prompt) else replace(context, system_prompt=kept)
