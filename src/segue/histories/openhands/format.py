"""The record of OpenHands."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.openhands.read import KNOWN_RECORDS, NAME, STATE, describe, read

FORMAT: Final = Format(
    name=NAME,
    title="OpenHands",
    read=read,
    describe=describe,
    place=Place(folder=".openhands", patterns=(f"conversations/*/{STATE}",)),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="OpenHands/software-agent-sdk, openhands-sdk 1.58.0",
    read_on="2026-11-16",
)
