"""Files of every format with traps: other versions, results out of order, damage, images, sub-agents, compactions.

`variants.json` has invented files with the reading that a person expects, and the kinds of reports that they need.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segue import History, Loss, read_history
from segue.histories.kit.envelope import is_own_text

VARIANTS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("variants.json").read_bytes())
MEDIA = {"image", "file"}


def read(variant: dict[str, Any], folder: Path) -> History:
    for name, text in variant["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return read_history(folder / next(iter(variant["files"])))


def shown(history: History) -> list[list[Any]]:
    """Give what a person sees of a conversation, without what the program added itself."""
    made: list[list[Any]] = []
    for message in history.context.messages:
        if is_own_text(message):
            continue
        if message.role == "toolResult":
            texts = [piece.text for piece in message.content if piece.kind == "text"]
            made.append(["r", "\n".join(texts), message.is_error])
            made += [["img"] for piece in message.content if piece.kind in MEDIA]
            continue
        for piece in message.content:
            if piece.kind == "text" and piece.text.strip():
                made.append([{"user": "u", "assistant": "t"}.get(message.role, message.role), piece.text])
            elif piece.kind == "thinking" and piece.thinking.strip():
                made.append(["th", piece.thinking])
            elif piece.kind == "toolCall":
                made.append(["c", piece.name, dict(piece.arguments)])
            elif piece.kind == "native":
                made.append(["native", str(piece.block.get("type"))])
            elif piece.kind in MEDIA:
                made.append(["img"])
    return made


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_a_file_with_traps_is_read_as_expected(variant, tmp_path):
    history = read(variant, tmp_path)
    assert history.origin.format == variant["format"]
    assert shown(history) == variant["messages"]
    reported = {str(change.path[-1]) for change in history.report.changes if change.loss != Loss.NONE and change.path}
    assert reported >= set(variant["reported"])


def test_no_summary_of_a_compaction_is_left_out_for_another_agent(tmp_path):
    histories = [read(variant, tmp_path / str(at)) for at, variant in enumerate(VARIANTS)]
    compacted = [each for each in histories if each.compactions]
    assert len({each.origin.format for each in compacted}) >= 2
    for history in compacted:
        summary = history.compactions[-1].summary.text
        assert any(
            summary in getattr(piece, "text", "")
            for message in history.context.messages
            if not is_own_text(message)
            for piece in message.content
        )
