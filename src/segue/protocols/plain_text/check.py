"""Is this plain text? The form is ours, so what it refuses is what is not of the form: a role and words, turn by turn.

Keys beside them are nobody's business. That a turn has to have words is the rule of the form (`refused_text`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.protocols.kit.checking import check_json
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.plain_text.content import TURN_KEYS

_ROLES: Final = frozenset({"system", "user", "assistant"})


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what is not of the form."""
    return [*check_json(body), *_check_turns(body.get("messages"), endpoint)]


def _check_turns(given: object, endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(given, list | tuple) or not given:
        yield Violation(code="messages", path=("messages",), message="messages has to be a list with something in it")
        return
    for index, item in enumerate(cast("Sequence[object]", given)):
        path = ("messages", index)
        if not isinstance(item, Mapping):
            yield Violation(code="message", path=path, message="a message has to be an object")
            continue
        turn = cast("Mapping[str, object]", item)
        role, content = turn.get("role"), turn.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            yield Violation(code="role", path=(*path, "role"), message=f"{role!r} is no role here")
        if not isinstance(content, str):
            yield Violation(code="content", path=(*path, "content"), message="content has to be a string")
        elif endpoint.rules.refused_text == "blank" and not content.strip() and TURN_KEYS.issuperset(turn):
            yield Violation(code="blank_text", path=(*path, "content"), message="a turn has to have words")
