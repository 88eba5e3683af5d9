"""Check whether a body is plain text: turns of a role and a string.

The format is segue's own. Other keys are ignored. A turn must have text (`refused_text`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.plain_text.content import TURN_KEYS

_ROLES: Final = frozenset({"system", "user", "assistant"})


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the format does not allow."""
    return [*_check_turns(body.get("messages"), endpoint)]


def _check_turns(given: object, endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(given, list | tuple) or not given:
        yield Violation(code="messages", path=("messages",), message="`messages` must be a list; add a message")
        return
    for index, item in enumerate(cast("Sequence[object]", given)):
        path = ("messages", index)
        if not isinstance(item, Mapping):
            yield Violation(code="message", path=path, message="a message must be an object with `role` and `content`")
            continue
        turn = cast("Mapping[str, object]", item)
        role, content = turn.get("role"), turn.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            yield Violation(
                code="role",
                path=(*path, "role"),
                message=f"the role {role!r} is unknown; use system, user or assistant",
            )
        if not isinstance(content, str):
            yield Violation(
                code="content", path=(*path, "content"), message="`content` must be a string; join its texts"
            )
        elif endpoint.rules.refused_text == "blank" and not content.strip() and TURN_KEYS.issuperset(turn):
            yield Violation(code="blank_text", path=(*path, "content"), message="the turn has no text; remove it")
