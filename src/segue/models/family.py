"""Families of models: rules and dialect of a group of models over one protocol, selected by their id.

Newer models refuse what older ones accept. Catalogue entries do not record that, and a model of your own has no entry.
So each protocol has rows `pattern -> overrides`, applied after the provider's and before the model's own. Rows apply
from top to bottom; a later one overrides an earlier one.

Facts this file rests on:
- Claude ids: a name and a generation (`-4-5`, elsewhere `-4.5`; once before the name: `claude-3-7-sonnet`), no date
  from 4.6 on. Bedrock adds a region and `anthropic.` before the id and `-v1:0` behind it, Vertex adds `@date`.
                                                  (Anthropic models overview; catalogue of pi-ai 1.5.0; read 2026-11-15)
- OpenAI ids: `o1`, `o3`, `o4` and `gpt-5` onwards reason; gateways add `openai/` or `openai.` before the id. (the same)
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
"""The last models that accept a thinking budget, a prefilled answer and sampling parameters."""
CLAUDE_4_6: Final = r"claude-(?:(?:opus|sonnet)-4[-.]6|4[-.]6-(?:opus|sonnet))(?!\d)"
"""Adaptive thinking, no prefill; sampling parameters are still accepted."""
CLAUDE_READS_SYSTEM: Final = (
    r"claude-(?:opus-4[-.](?:[89]|\d\d)(?!\d)|opus-(?:[5-9]|\d\d)(?!\d)|(?:fable|mythos)-\d"
    r"|(?:sonnet|haiku)-(?:5[-.][5-9]|[6-9]|\d\d)(?!\d))"
)
"""Opus 4.8 and later: system messages in the middle of a conversation are accepted. Sources disagree on Sonnet 5."""
CLAUDE_ADAPTIVE_THINKING_ONLY: Final = r"claude-(?:(?:fable|mythos)-5[-.]1|(?:opus|sonnet)-5[-.]5)(?!\d)"
"""These refuse a forced tool choice, with and without thinking."""
CLAUDE_ALWAYS_THINKS: Final = r"claude-(?:(?:fable|mythos)-(?:\d|preview)|(?:opus|sonnet)-5[-.]5(?!\d))"
"""Thinking cannot be disabled."""

GEMINI_3_ON: Final = r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"
"""These sign their calls and refuse calls without a signature."""

OPENAI_O_SERIES: Final = r"(?:^|[/.])o[134](?:-|$)"
OPENAI_GPT_5_ALONE: Final = r"(?:^|[/.])gpt-5(?!\.\d|\d|-chat)"
"""GPT-5 with its mini, nano, pro and codex variants. Thinking cannot be disabled."""
OPENAI_GPT_5_1_TO_4: Final = r"(?:^|[/.])gpt-5\.[1-4](?!\d|-chat)"
"""Thinking can be disabled, and only then sampling parameters are accepted."""
OPENAI_GPT_5_5_UP: Final = r"(?:^|[/.])gpt-5\.(?:[5-9]|\d\d)(?!\d)"
"""Thinking is on unless it is disabled, and only then sampling parameters are accepted."""
OPENAI_GPT_6_ON: Final = r"(?:^|[/.])gpt-(?:[6-9]|\d\d)(?!\d)"
OPENAI_GPT_5_5_ON: Final = f"{OPENAI_GPT_5_5_UP}|{OPENAI_GPT_6_ON}"


@final
class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides for models whose id contains `pattern`, a regular expression without regard to case.

    `rules` and `dialect` override single fields by name. `providers` limits the row to these providers; empty means
    all.
    """

    pattern: str
    rules: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    dialect: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    source: str
    read: str
    providers: tuple[str, ...] = ()

    def includes(self, provider: str, model_id: str) -> bool:
        """Whether this provider's model belongs to the family."""
        return (not self.providers or provider in self.providers) and bool(_compiled(self.pattern).search(model_id))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
