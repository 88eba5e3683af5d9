"""Results of code that Google ran, as text that other models can read.

Facts this file rests on:
- `codeExecutionResult` has an `outcome` and an `output`: what was printed, or the error.
                                                                               (google-genai 3.1.0, read 2026-11-15)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.json_values import Block
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import labelled

_FINISHED: Final = ("OUTCOME_OK", "OUTCOME_UNSPECIFIED")


def describe_output(result: Block) -> str | None:
    """Write what a program printed, or how it failed; None without output."""
    output, outcome = text_of(result.get("output")), text_of(result.get("outcome")) or _FINISHED[0]
    failed = outcome not in _FINISHED
    if not (output and output.strip()) and not failed:
        return None
    label = "output of executed code"
    if failed:
        label += f": {outcome.removeprefix('OUTCOME_').lower().replace('_', ' ')}"
    return labelled(label, [(output or "").rstrip("\n")])
