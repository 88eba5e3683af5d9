"""Families of models: what the models whose ids match a pattern need on one protocol.

A protocol serves many models, and newer ones refuse what older ones accepted. No catalogue entry says so, and a model
of a user's own has no entry at all. So each protocol has rows `pattern -> overrides`, applied after the provider's and
before the model's own. Rows are read from top to bottom, and a later one wins. Patterns that several protocols use are
in `models.model_ids`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, final

import msgspec

from segue.models.evidence import Grade

_READ: Final = 300
"""Characters of an id that patterns are looked for in: ids are shorter, and a client may send any."""


@final
class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides for models whose id contains `pattern`, a regular expression without regard to case.

    `rules` and `dialect` override single fields by name. `providers` limits the row to these providers; empty means
    all. `grade` says whether the source shows a refusal: rows of another grade are followed only by a strict `check`.
    """

    pattern: str
    rules: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    dialect: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    source: str
    read: str
    providers: tuple[str, ...] = ()
    grade: Grade = "refused"

    def includes(self, provider: str, model_id: str) -> bool:
        """Whether this provider's model belongs to the family."""
        return (not self.providers or provider in self.providers) and bool(
            _compiled(self.pattern).search(model_id, 0, _READ)
        )


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
