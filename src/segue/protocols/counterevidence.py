"""Requests that were answered although a check calls them refused: rows that lower the grade of a finding.

A reply that was recorded is stronger than documentation, a thread or a rule of another host. It may mean that the
endpoint accepts the value (`unsure`), or that it overlooks it (`ignored`); both keep the finding for a strict check.

Figures are pairs of recorded replies and recorded refusals with the finding, counted over 22,951 replies and 460
refusals on 2026-11-18. A finding that was seen on refusals as well is lowered only where its replies come from other
hosts, models or places than its refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from segue.models.evidence import Grade
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation


class Answered(NamedTuple):
    """Findings of one code that are not refusals.

    `path` is a pattern of places, joined with dots. `providers` limits the row to some providers, `others` to all but
    these; `models` is a pattern of ids.
    """

    protocol: str
    code: CheckCode
    source: str
    path: str = ""
    providers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    models: str = ""
    grade: Grade = "unsure"

    def holds(self, provider: str, model_id: str) -> bool:
        """Whether the row is about an endpoint."""
        if (self.providers and provider not in self.providers) or provider in self.others:
            return False
        return not self.models or re.search(self.models, model_id, re.IGNORECASE) is not None


_OPENAI: Final = ("openai", "azure")
_PAIRING: Final = (*_OPENAI, "openai-codex", "deepseek", "mistral", "moonshotai", "moonshotai-cn", "minimax", "alibaba")
"""Hosts of Chat Completions that were seen to refuse calls without results."""

ROWS: Final = (
    Answered("mistral-chat", CheckCode.CALL_ID_INVALID, "29 replies, 0 refusals"),
    Answered("mistral-chat", CheckCode.FIRST_TURN_WRONG, "13 replies, 0 refusals"),
    Answered("openai-chat", CheckCode.RESULT_ORPHANED, "20 replies, 0 refusals", others=_PAIRING),
    Answered("openai-chat", CheckCode.RESULT_MISSING, "20 replies, 0 refusals", others=_PAIRING),
    Answered("openai-chat", CheckCode.CALL_ID_TOO_LONG, "13 replies, 0 refusals", others=_OPENAI),
    Answered("openai-chat", CheckCode.TOOL_CHOICE_INVALID, "4 replies, 0 refusals", others=_OPENAI),
    Answered("openai-responses", CheckCode.REFERENCE_UNKNOWN, "6 replies, 0 refusals"),
    Answered("google-genai", CheckCode.RESULT_COUNT_WRONG, "12 replies, 0 refusals", models=r"gemini-[12]\b"),
    Answered("google-genai", CheckCode.SCHEMA_FORMAT_UNSUPPORTED, "5 replies, 0 refusals"),
    Answered("anthropic-messages", CheckCode.VALUE_OUT_OF_RANGE, "2 replies, 0 refusals", path=r"^top_p$"),
    Answered(
        "anthropic-messages",
        CheckCode.MEDIA_BYTES_INVALID,
        "2 replies of Claude 3.5 to a wrong type",
        models=r"claude-3",
    ),
)
"""Findings of the checks of protocols, of capabilities and of limits."""

FIELD_ROWS: Final = (
    Answered(
        "mistral-chat", CheckCode.FIELD_UNKNOWN, "5 replies, 0 refusals", path=r"^stream_options$", grade="ignored"
    ),
    Answered("openai-chat", CheckCode.VALUE_UNKNOWN, "7 replies, 0 refusals", others=_OPENAI),
    Answered(
        "openai-chat", CheckCode.TYPE_WRONG, "a reply of GPT-4 Vision", models="vision-preview", path="image_url$"
    ),
    Answered(
        "openai-responses",
        CheckCode.FIELD_UNKNOWN,
        "90 replies, 1 refusal, of another key: most have the function of a Chat tool",
        path=r"^tools\.\d+\.function$",
        grade="ignored",
    ),
    Answered("openai-responses", CheckCode.FIELD_UNKNOWN, "replies of gpt-5 and gpt-5.5", path=r"^input\.\d+\.status$"),
    Answered("google-genai", CheckCode.VALUE_UNKNOWN, "13 replies, 0 refusals"),
    Answered("cohere-chat", CheckCode.VALUE_UNKNOWN, "4 replies, 0 refusals"),
    Answered("google-interactions", CheckCode.VALUE_UNKNOWN, "google-genai 3.3.0 has more", path=r"thinking_level$"),
)
"""Findings of the comparison with the fields of an SDK, whose lists of values and keys may be older than the server."""


@lru_cache(maxsize=256)
def _rows_for(rows: tuple[Answered, ...], protocol: str, provider: str, model_id: str) -> tuple[Answered, ...]:
    return tuple(row for row in rows if row.protocol == protocol and row.holds(provider, model_id))


def graded(found: Iterable[Violation], endpoint: Endpoint, rows: tuple[Answered, ...] = ROWS) -> list[Violation]:
    """Return the findings with their grades; without those that are not refusals, unless the endpoint is cautious."""
    violations = list(found)
    if not violations:
        return violations
    model = endpoint.model
    answered = _rows_for(rows, model.protocol, model.provider, model.id)
    if answered:
        violations = [_lowered(violation, answered) for violation in violations]
    return violations if endpoint.cautious else [one for one in violations if one.grade == "refused"]


def _lowered(violation: Violation, rows: tuple[Answered, ...]) -> Violation:
    place = ".".join(map(str, violation.path))
    for row in rows:
        if row.code == violation.code and (not row.path or re.search(row.path, place)):
            return replace(violation, grade=row.grade)
    return violation
