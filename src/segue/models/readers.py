"""Which models read the reasoning of other models: signatures that are valid for more than the model that made them.

Facts:
- Fable 5.2 and Mythos 5.2 read each other, and no other model reads theirs. Fable 5.1 and Mythos 5.1 read each other,
  every earlier Claude, and Opus 5.5 on the Claude API only. Opus 5.5 reads Opus 5 and earlier Opus, Sonnet and Haiku
  models, and Sonnet 5.5 on the Claude API and Google Cloud. Sonnet 5.5 reads Sonnet 5, Opus 4.8, Haiku 4.5 and earlier.
                      (Anthropic documentation: preserved thinking, the guides of these models, 2026-09 to 2026-11-09)
- What a model cannot read is dropped by the API without an error, and is back when the conversation returns to a model
  that can. Nothing is known about Haiku 5.5 and about models before 5.1: here they read their own only.    (the same)
- The thinking of Sonnet 5.5, Haiku 5.5 and, by conclusion, Fable and Mythos 5.2 is read only in the account that it was
  made in: Anthropic, Bedrock and Google Cloud are three accounts.                                         (the same)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from segue.models.equivalence import find_model_family_id, is_equivalent
from segue.models.model_ids import CLAUDE_BINDS_ACCOUNT, CLAUDE_VERSION

Version: TypeAlias = tuple[int, int]

_ALL: Final = ("opus", "sonnet", "haiku", "fable", "mythos", "instant")


class _Row(NamedTuple):
    """Models of these lines and this version read those of other lines, from one version up to another."""

    readers: tuple[str, ...]
    version: Version
    writers: tuple[str, ...]
    since: Version
    up_to: Version
    providers: tuple[str, ...] = ()
    """Where that holds; empty: everywhere."""


_FIRST: Final = (0, 0)
_ROWS: Final[tuple[_Row, ...]] = (
    _Row(("fable", "mythos"), (5, 2), ("fable", "mythos"), (5, 2), (5, 2)),
    _Row(("fable", "mythos"), (5, 1), ("fable", "mythos"), (5, 1), (5, 1)),
    _Row(("fable", "mythos"), (5, 1), _ALL, _FIRST, (5, 0)),
    _Row(("fable", "mythos"), (5, 1), ("opus",), (5, 5), (5, 5), ("anthropic",)),
    _Row(("opus",), (5, 5), ("opus", "sonnet", "haiku"), _FIRST, (5, 0)),
    _Row(("opus",), (5, 5), ("sonnet",), (5, 5), (5, 5), ("anthropic", "google-vertex")),
    _Row(("sonnet",), (5, 5), ("sonnet",), _FIRST, (5, 0)),
    _Row(("sonnet",), (5, 5), ("opus",), _FIRST, (4, 8)),
    _Row(("sonnet",), (5, 5), ("haiku",), _FIRST, (4, 5)),
)
"""Read 2026-11-16."""


@lru_cache(maxsize=4096)
def reads_reasoning(writer: str, writer_id: str, reader: str, reader_id: str) -> bool:
    """Whether the model `reader_id` of the provider `reader` accepts the signatures of another provider or model."""
    if writer != reader and re.search(CLAUDE_BINDS_ACCOUNT, writer_id, re.IGNORECASE):
        return False
    if is_equivalent(writer, writer_id, reader, reader_id):
        return True
    wrote, reads = _parse(writer, writer_id), _parse(reader, reader_id)
    if wrote is None or reads is None:
        return False
    (line, version), (own_line, own_version) = wrote, reads
    return any(
        own_line in row.readers
        and own_version == row.version
        and line in row.writers
        and row.since <= version <= row.up_to
        and (not row.providers or reader in row.providers)
        for row in _ROWS
    )


def _parse(provider: str, model_id: str) -> tuple[str, Version] | None:
    """Return the line and the version of a Claude: `claude-opus-5-5` is ("opus", (5, 5))."""
    family = find_model_family_id(provider, model_id)
    found = re.fullmatch(CLAUDE_VERSION, family[1]) if family is not None and family[0] == "claude" else None
    if found is None:
        return None
    line = found["line"] or found["old_line"]
    return line, (int(found["major"] or found["old_major"]), int(found["minor"] or found["old_minor"] or 0))
