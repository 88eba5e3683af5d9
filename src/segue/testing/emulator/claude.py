"""What the emulator knows about Claude models: which check a conversation, whose thinking they read, whose is shared.

It is typed here a second time, on purpose: an emulator that read these facts from segue's own tables would agree with
every mistake in them.

Facts, read 2026-11-16:
- These models accept thinking only after the conversation that it was made in: Fable and Mythos from 5.1, Opus, Sonnet
  and Haiku from 5.5; the check also runs at Bedrock.                      (Anthropic documentation: preserved thinking)
- Fable and Mythos 5.2 and Mythos 5.1 refuse a mismatch on every account, the others on accounts created since
  2026-08-31. On older accounts these let it through.                       (Anthropic documentation, 2026-11-09)
- Which model reads whose thinking is documented for each model; what it cannot read is dropped. For models that the
  documentation does not name, a model reads its own thinking only: no other rule was found.
                                                                           (Anthropic documentation, 2026-09 to 2026-11)
- Thinking of Sonnet and Haiku 5.5 works only in the account that made it; an account at Bedrock is another one than an
  account at Anthropic. Fable and Mythos 5.2, and later versions of all, are taken to be like that.
                                                                            (Anthropic documentation; inferred)
- From Opus 4.8, Sonnet and Haiku 5.5, Fable and Mythos 5 on, system messages may come between messages.
                                                                            (Anthropic documentation, 2026-09)
- Fable and Mythos from 5, Opus and Sonnet from 5.5 always think; others if `thinking` asks for it.
                                                                            (Anthropic documentation: models, 2026-11)
- The text of thinking is empty unless `thinking.display` asks for it.      (Anthropic documentation, Claude 5)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, final

from segue.protocols.kit.facts import ClaudeWire

Version: TypeAlias = tuple[int, int]

_ID: Final = re.compile(
    r"(?:arn:[^/]+/)?(?:[a-z-]+\.)?(?:anthropic[./])?"
    r"claude-(?P<family>opus|sonnet|haiku|fable|mythos)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?![\d])"
)


@final
class Claude(NamedTuple):
    """A Claude model: its family and version."""

    family: str
    version: Version


@lru_cache(maxsize=1024)
def claude_of(model_id: str) -> Claude | None:
    """Read a model id of the Claude API or of Bedrock; None if it is not a Claude model."""
    match = _ID.match(model_id)
    return None if match is None else Claude(match["family"], (int(match["major"]), int(match["minor"] or 0)))


_BINDS_SINCE: Final[Mapping[str, Version]] = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 5),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
_REFUSES_ON_OLD_ACCOUNTS_SINCE: Final[Mapping[str, Version]] = {"fable": (5, 2), "mythos": (5, 1)}
_ACCOUNT_BOUND_SINCE: Final[Mapping[str, Version]] = {
    "fable": (5, 2),
    "mythos": (5, 2),
    "opus": (5, 6),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
_SYSTEM_MESSAGES_SINCE: Final[Mapping[str, Version]] = {
    "fable": (5, 0),
    "mythos": (5, 0),
    "opus": (4, 8),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
_THINKS_ALWAYS_SINCE: Final[Mapping[str, Version]] = {
    "fable": (5, 0),
    "mythos": (5, 0),
    "opus": (5, 5),
    "sonnet": (5, 5),
}
_HIDES_THINKING_SINCE: Final[Version] = (5, 0)

_EARLIER: Final[Mapping[str, Version]] = {
    "fable": (5, 0),
    "mythos": (5, 0),
    "opus": (5, 0),
    "sonnet": (5, 0),
    "haiku": (4, 5),
}
"""The newest version of each family before Fable 5.1."""
_READS: Final[Mapping[Claude, Mapping[str, Version]]] = {
    Claude("fable", (5, 1)): _EARLIER,
    Claude("mythos", (5, 1)): _EARLIER,
    Claude("opus", (5, 5)): {"opus": (5, 0), "sonnet": (5, 0), "haiku": (4, 5)},
    Claude("sonnet", (5, 5)): {"opus": (4, 8), "sonnet": (5, 0), "haiku": (4, 5)},
}
"""For each reader, the newest version of each family whose thinking it reads, in addition to its own."""
_READS_ALSO: Final[frozenset[tuple[ClaudeWire, Claude, Claude]]] = frozenset(
    (
        ("messages", Claude("fable", (5, 1)), Claude("opus", (5, 5))),
        ("messages", Claude("mythos", (5, 1)), Claude("opus", (5, 5))),
        ("messages", Claude("opus", (5, 5)), Claude("sonnet", (5, 5))),
    )
)
"""Wire, reader, producer."""
_TWINS: Final[frozenset[str]] = frozenset(("fable", "mythos"))
"""Families that read each other's thinking of the same version."""


def _since(floor: Mapping[str, Version], model: Claude) -> bool:
    return model.family in floor and model.version >= floor[model.family]


def binds(model: Claude) -> bool:
    """Whether this model checks the conversation before thinking."""
    return _since(_BINDS_SINCE, model)


def enforces(model: Claude, *, old_account: bool) -> bool:
    """Whether a mismatch is refused if the request does not say otherwise."""
    return binds(model) and (not old_account or _since(_REFUSES_ON_OLD_ACCOUNTS_SINCE, model))


def is_account_bound(producer: Claude) -> bool:
    """Whether thinking of this model works in one account only."""
    return _since(_ACCOUNT_BOUND_SINCE, producer)


def takes_system_messages(model: Claude) -> bool:
    """Whether system messages may come between messages."""
    return _since(_SYSTEM_MESSAGES_SINCE, model)


def thinks_always(model: Claude) -> bool:
    """Whether this model thinks without being asked."""
    return _since(_THINKS_ALWAYS_SINCE, model)


def hides_thinking(model: Claude) -> bool:
    """Whether the text of thinking is empty unless asked for."""
    return model.version >= _HIDES_THINKING_SINCE


def reads(wire: ClaudeWire, reader: Claude, producer: Claude) -> bool:
    """Whether a model reads the thinking of another model."""
    if reader == producer:
        return True
    if reader.version == producer.version and frozenset((reader.family, producer.family)) == _TWINS:
        return True
    newest = _READS.get(reader, {}).get(producer.family)
    return (newest is not None and producer.version <= newest) or (wire, reader, producer) in _READS_ALSO
