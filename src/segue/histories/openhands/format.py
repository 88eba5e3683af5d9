"""The record of OpenHands."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.histories.openhands.read import STATE

FORMAT: Final = Format(
    **read_parts(__package__),
    title="OpenHands",
    place=Place(folder=".openhands", patterns=(f"conversations/*/{STATE}",)),
    reads_lines=False,
    source="OpenHands/software-agent-sdk, openhands-sdk 1.58.0",
    read_on="2026-11-16",
)
