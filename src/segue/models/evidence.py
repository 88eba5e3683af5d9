"""How much is known about a rule: its grade, and the kind of its source.

A rule that is wrong does harm in two ways: `check` reports a request that the provider would have answered, and
projection removes what the model would have read. So each row has a grade, and only *refused* changes a request:

| grade | what is known | `check` | projection |
| --- | --- | --- | --- |
| `refused` | a refusal was seen, or the provider's own text states it | reports it | follows it |
| `ignored` | it is accepted and has no effect | reports it if asked to (`strict`) | sends it |
| `unsure` | a flag of somebody's catalogue, an analogy, another host | reports it if asked to (`strict`) | sends it |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

Grade: TypeAlias = Literal["refused", "ignored", "unsure"]

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
"""All grades, the surest first."""

EvidenceKind: TypeAlias = Literal["recorded", "probe", "thread", "provider", "sdk", "program"]
"""Where a rule comes from: recorded traffic, a request made to find out, a public thread, the provider's own words (a
document, or a refusal), the types of an SDK, the source of another program."""

_KINDS: Final[Mapping[EvidenceKind, str]] = {
    "recorded": r"\brecord(?:ed|ings)\b",
    "probe": r"\blive\b|\bprobes?\b|\btried\b",
    "thread": r"#\d|\breported\b",
    "provider": r"^['\"]|documentation|\bAPI\b|reference|announcement|what's new|service model",
    "sdk": r"(?<!pi-ai )(?<!litellm )\b\d+\.\d+\.\d+",
    "program": r"pi-ai|litellm|pydantic-ai|strands",
}
"""Kinds -> the words by which a source shows its kind, the surest kind first."""


def kind_of(source: str) -> EvidenceKind | None:
    """Return the kind of a source, the surest where it names several; None if it shows none."""
    return next((kind for kind, words in _KINDS.items() if re.search(words, source)), None)
