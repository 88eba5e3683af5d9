"""The record of Qwen Code."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.qwen_code.read import KNOWN_RECORDS, NAME, read
from segue.histories.qwen_code.write import describe, write
from segue.models.model import Model

FORMAT: Final = Format(
    name=NAME,
    title="Qwen Code",
    wire="google-genai",
    read=read,
    write=write,
    describe=describe,
    place=Place(
        folder=".qwen",
        variables=("QWEN_RUNTIME_DIR", "QWEN_HOME"),
        patterns=("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl"),
    ),
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True, max_tokens=8000),
    source="Qwen Code 0.15.10, run against a scripted model; its source",
    read_on="2026-11-16",
)
