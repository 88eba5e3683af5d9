"""The record of pi."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

_OPENCLAW: Final = "agents/*/sessions/*.jsonl"
"""Where OpenClaw stores sessions, below `~/.openclaw` or the folder that its variable names (OpenClaw documentation:
CLI, sessions and transcripts, 2026-11-17)."""

FORMAT: Final = Format(
    **read_parts(__package__),
    title="pi",
    compacts=True,
    place=Place(
        folder=".pi/agent",
        variables=("PI_CODING_AGENT_DIR",),
        patterns=("sessions/*/*.jsonl",),
        projects=(f".openclaw/{_OPENCLAW}",),
        others=(Place(folder=".openclaw", variables=("OPENCLAW_STATE_DIR",), patterns=(_OPENCLAW,)),),
    ),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="pi 0.87.1, run against a scripted model; its session-format page",
    read_on="2026-11-15",
)
