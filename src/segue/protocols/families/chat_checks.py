"""What the checks of the wires with chat messages share: reading messages, and the pairs of calls and results.

Which refusals apply to a wire, and their sources, are in the `check` of its protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias, cast

from segue.protocols.families.tool_checks import Pairs
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found
from segue.protocols.kit.codec import JsonObject, Violation
from segue.protocols.kit.json_values import Block

Messages: TypeAlias = list[Block]


def messages_of(body: JsonObject) -> Messages | Violation:
    """Return the messages of a body, or the violation if they are missing or not objects."""
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        return Violation(
            CheckCode.MESSAGES_MISSING, ("messages",), "`messages` has to be a list with a message; add one"
        )
    messages: Messages = []
    for index, message in enumerate(cast("list[object]", given)):
        if not isinstance(message, Mapping):
            return Violation(CheckCode.TYPE_WRONG, ("messages", index), "a message has to be an object; change it")
        messages.append(cast("Block", message))
    return messages


_URL_KEYS: Final = ("url", "image_url", "file_data", "document_url")


def data_urls(block: Block) -> Iterable[str]:
    """Yield the keys of an object of OpenAI's protocols that hold base64: data URLs, and the data of a sound."""
    for key in _URL_KEYS:
        text = block.get(key)
        if isinstance(text, str) and text[:5] == "data:" and ";base64," in text[:200]:
            yield key
    # Encrypted reasoning has the same two keys, and a type.
    if "format" in block and "type" not in block and isinstance(block.get("data"), str):
        yield "data"


def calls_of(message: Block) -> list[Block]:
    """Return the tool calls of a message; none if its role is not `assistant`."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [cast("Block", call) for call in cast("list[object]", calls) if isinstance(call, Mapping)]


def check_pairs(messages: Messages, *, ends: Collection[object] | None = None, is_required: bool = True) -> Found:
    """Check that results have calls, and calls have results if `is_required`.

    Results follow the message with their calls; other messages end them, or only those of the roles in `ends`.
    """
    pairs = Pairs("right after it")
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            yield from pairs.add_result(message.get("tool_call_id"), ("messages", index, "tool_call_id"))
            continue
        calls = calls_of(message)
        if not calls and ends is not None and message.get("role") not in ends:
            continue
        yield from pairs.end()
        for position, call in enumerate(calls):
            # A call of an unknown type may have no id; no result can name it.
            if "id" in call or "function" in call:
                path = ("messages", index, "tool_calls", position)
                yield from pairs.add_call(call.get("id"), path, is_awaited=is_required)
    yield from pairs.end()
