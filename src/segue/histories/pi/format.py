"""The record of pi."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.pi.describe import describe
from segue.histories.pi.read import KNOWN_RECORDS, NAME, read
from segue.histories.pi.write import write
from segue.models.model import Model

_OPENCLAW: Final = "agents/*/sessions/*.jsonl"
"""Where OpenClaw stores sessions, below `~/.openclaw` or the folder that its variable names (OpenClaw documentation:
CLI, sessions and transcripts, 2026-11-17)."""

FORMAT: Final = Format(
    name=NAME,
    title="pi",
    read=read,
    write=write,
    compacts=True,
    describe=describe,
    place=Place(
        folder=".pi/agent",
        variables=("PI_CODING_AGENT_DIR",),
        patterns=("sessions/*/*.jsonl",),
        projects=(f".openclaw/{_OPENCLAW}",),
        others=(Place(folder=".openclaw", variables=("OPENCLAW_STATE_DIR",), patterns=(_OPENCLAW,)),),
    ),
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="pi 0.87.1, run against a scripted model; its session-format page",
    read_on="2026-11-15",
)
