"""What the checks of the wires with chat messages share: reading messages, and the pairs of calls and results.

Which refusals apply to a wire, and their sources, are in the `check` of its protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias, cast

from segue.errors import Path
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
    waiting: dict[str, list[object]] = {}
    batch: set[str] = set()
    called_at = 0
    for index, message in enumerate(messages):
        path: Path = ("messages", index, "tool_call_id")
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            ids = waiting.get(repr(call_id))
            if ids:
                ids.pop()
            elif str(call_id) in batch:
                yield Violation(CheckCode.RESULT_DUPLICATE, path, f"the call {call_id!r} has two results; keep one")
            else:
                text = f"no call before it has the id {call_id!r}; remove the result, or add the call"
                yield Violation(CheckCode.RESULT_ORPHANED, path, text)
            continue
        calls = calls_of(message)
        if not calls and ends is not None and message.get("role") not in ends:
            continue
        if is_required:
            yield from _unanswered(called_at, waiting)
        # A call of an unknown type may have no id; no result can name it.
        named = [call.get("id") for call in calls if "id" in call or "function" in call]
        waiting, batch, called_at = {}, set(map(str, named)), index
        for call_id in named:
            waiting.setdefault(repr(call_id), []).append(call_id)
        if len(batch) < len(named):
            text = "two calls have the same id; change one"
            yield Violation(CheckCode.CALL_ID_DUPLICATE, ("messages", index, "tool_calls"), text)
    if is_required:
        yield from _unanswered(called_at, waiting)


def _unanswered(index: int, waiting: Mapping[str, list[object]]) -> Found:
    ids = [str(call_id) for left in waiting.values() for call_id in left]
    if ids:
        message = f"the call {', '.join(ids)} has no result; add one right after it"
        yield Violation(CheckCode.RESULT_MISSING, ("messages", index, "tool_calls"), message)
