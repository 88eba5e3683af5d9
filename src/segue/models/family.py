"""Families of models: what one kind of model wants on one wire, told by its id.

A wire serves many models, and newer ones refuse what older ones took. No catalogue entry says so, and a model of one's
own has no entry at all; so each protocol keeps rows `pattern -> overrides`, applied after the provider's and before the
model's own. Rows are read from top to bottom, and a later one wins.

Facts this file rests on:
- Claude ids: a name, a generation (`-4-5`, elsewhere `-4.5`; once before the name: `claude-3-7-sonnet`), from 4.6 on no
  date. Bedrock puts a region and `anthropic.` in front and `-v1:0` behind, Vertex `@date`.
                                                  (Anthropic models overview; catalogue of pi-ai 1.5.0; read 2026-11-15)
- OpenAI ids: `o1`, `o3`, `o4` and `gpt-5` onwards reason; gateways put `openai/` or `openai.` in front.     (the same)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, final

import msgspec

CLAUDE: Final = r"claude-"
CLAUDE_UP_TO_4_5: Final = (
    r"claude-(?:instant|v?[123](?:[-.:@]|$)"
    r"|(?:opus|sonnet|haiku)-4(?:[-.][0-5])?(?:[-.@:]\D|[-@]\d{8}|$)"
    r"|4(?:[-.][0-5])?-(?:opus|sonnet|haiku))"
)
"""The last that take a budget for thinking, a prefilled answer and sampling settings alike."""
CLAUDE_4_6: Final = r"claude-(?:(?:opus|sonnet)-4[-.]6|4[-.]6-(?:opus|sonnet))(?!\d)"
"""Adaptive thinking, no prefill; sampling settings are still taken."""
CLAUDE_READS_SYSTEM: Final = (
    r"claude-(?:opus-4[-.](?:[89]|\d\d)(?!\d)|opus-(?:[5-9]|\d\d)(?!\d)|(?:fable|mythos)-\d"
    r"|(?:sonnet|haiku)-(?:5[-.][5-9]|[6-9]|\d\d)(?!\d))"
)
"""Opus 4.8 and what came after it: instructions in mid-conversation have a role. Of Sonnet 5 the sources disagree."""
CLAUDE_ADAPTIVE_THINKING_ONLY: Final = r"claude-(?:(?:fable|mythos)-5[-.]1|(?:opus|sonnet)-5[-.]5)(?!\d)"
"""No tool can be demanded of them, thinking or not."""
CLAUDE_ALWAYS_THINKS: Final = r"claude-(?:(?:fable|mythos)-(?:\d|preview)|(?:opus|sonnet)-5[-.]5(?!\d))"
"""They refuse to be told not to think."""

GEMINI_3_ON: Final = r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"
"""They sign their calls and refuse those that are not signed."""

OPENAI_O_SERIES: Final = r"(?:^|[/.])o[134](?:-|$)"
OPENAI_GPT_5_ALONE: Final = r"(?:^|[/.])gpt-5(?!\.\d|\d|-chat)"
"""GPT-5 itself with its mini, nano, pro and codex, which always think."""
OPENAI_GPT_5_1_TO_4: Final = r"(?:^|[/.])gpt-5\.[1-4](?!\d|-chat)"
"""They can be asked not to think, and only then take sampling settings."""
OPENAI_GPT_5_5_UP: Final = r"(?:^|[/.])gpt-5\.(?:[5-9]|\d\d)(?!\d)"
"""They think unless asked not to, and only then take sampling settings."""
OPENAI_GPT_6_ON: Final = r"(?:^|[/.])gpt-(?:[6-9]|\d\d)(?!\d)"
OPENAI_GPT_5_5_ON: Final = f"{OPENAI_GPT_5_5_UP}|{OPENAI_GPT_6_ON}"


@final
class Family(msgspec.Struct, frozen=True, kw_only=True):
    """What the models whose id contains `pattern` (a regular expression, case ignored) want on one wire.

    `rules` and `dialect` override single fields by name. `providers` narrows the row to those who serve the model so;
    empty means everyone.
    """

    pattern: str
    rules: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    dialect: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    source: str
    read: str
    providers: tuple[str, ...] = ()

    def includes(self, provider: str, model_id: str) -> bool:
        """Say whether this provider's model belongs to the family."""
        return (not self.providers or provider in self.providers) and bool(_compiled(self.pattern).search(model_id))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
