"""Check whether a body is plain text: turns of a role and a string.

The format is segue's own. Other keys are ignored. A turn must have text (`refused_text`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.plain_text.content import TURN_KEYS

_ROLES: Final = frozenset({"system", "user", "assistant"})


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the format does not allow."""
    return [*_check_turns(body.get("messages"), endpoint)]


def _check_turns(given: object, endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(given, list | tuple) or not given:
        yield Violation(
            CheckCode.MESSAGES_MISSING, ("messages",), "`messages` has to be a list with a message; add one"
        )
        return
    for index, item in enumerate(cast("Sequence[object]", given)):
        path = ("messages", index)
        if not isinstance(item, Mapping):
            yield Violation(
                CheckCode.TYPE_WRONG, path, "a message has to be an object with `role` and `content`; change it"
            )
            continue
        turn = cast("Mapping[str, object]", item)
        role, content = turn.get("role"), turn.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            yield Violation(
                CheckCode.ROLE_UNKNOWN, (*path, "role"), f"unknown role {role!r}; use system, user or assistant"
            )
        if not isinstance(content, str):
            yield Violation(CheckCode.TYPE_WRONG, (*path, "content"), "`content` has to be a string; join its texts")
        elif endpoint.rules.refused_text == "blank" and not content.strip() and TURN_KEYS.issuperset(turn):
            yield Violation(CheckCode.TEXT_BLANK, (*path, "content"), "the message has no text; add some or remove it")
