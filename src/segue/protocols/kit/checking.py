"""What checks of a body have in common: is it JSON, are there messages, which calls wait, how is a word spelt.

Which of it a provider minds is said by its protocol's `check`, with the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, cast

import msgspec

from segue.protocols.kit.codec import JsonObject, Violation
from segue.protocols.kit.json_values import Block

Found: TypeAlias = Iterator[Violation]
Messages: TypeAlias = list[Block]


def check_json(body: JsonObject) -> Found:
    """Find out that a body cannot be written: a number that is none, half a character, something that is no value.

    "The request body is not valid JSON: no low surrogate in string" (Anthropic and Bedrock: claude-code #1709);
    "Invalid JSON payload received." (Google documentation: troubleshooting).
    """
    try:
        msgspec.json.encode(body)
    except (UnicodeEncodeError, ValueError, TypeError, RecursionError) as error:
        yield Violation(code="not_json", path=(), message=f"the body is not valid JSON: {error}")


def messages_of(body: JsonObject) -> Messages | Violation:
    """Give the messages of a body, or what stands in the way of looking at them."""
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        return Violation(code="messages_missing", path=("messages",), message="there has to be a message")
    messages: Messages = []
    for index, message in enumerate(cast("list[object]", given)):
        if not isinstance(message, Mapping):
            return Violation(code="message_not_object", path=("messages", index), message="a message is an object")
        messages.append(cast("Block", message))
    return messages


def objects_of(value: object) -> Iterator[tuple[int, Block]]:
    """Give the objects of a list with their places; anything else has none."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("Sequence[object]", value)):
            if isinstance(item, Mapping):
                yield index, cast("Block", item)


def calls_of(message: Block) -> list[Block]:
    """Give the calls of a message; only an assistant's has any."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [cast("Block", call) for call in cast("list[object]", calls) if isinstance(call, Mapping)]


def unanswered(index: int, ids: list[object]) -> Violation:
    """Say that calls of a message have no results."""
    named = ", ".join(map(str, ids))
    return Violation(
        code="call_without_result", path=("messages", index, "tool_calls"), message=f"no result for {named}"
    )


def matches_alphabet(literal: str, alphabet: str, *, least: int = 1, most: int = 0) -> bool:
    """Whether an id or a name has these letters and no others, and as many as it should; 0 is any number of them."""
    return _pattern(alphabet, least, most).fullmatch(literal) is not None


@lru_cache(maxsize=64)
def _pattern(alphabet: str, least: int, most: int) -> re.Pattern[str]:
    return re.compile(f"[{alphabet}]{{{least},{most or ''}}}")
