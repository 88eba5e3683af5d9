"""Conversations in the format of ShareGPT, read as requests of openai-chat.

Facts this file rests on:
- A row has `conversations`, a list of `{from, value}`. `from` is `human` or `user`, `gpt`, `chatgpt` or `assistant`, or
  `system`. LLaMA-Factory adds `function_call` (the value is JSON: name and arguments) and `observation` (its result),
  and `system` and `tools` beside the list.                       (LLaMA-Factory, README of its data, 2026-11-15)
- Calls and results have no ids; they belong together by their order.                                      (the same)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from segue.errors import DecodeError

COLUMN: Final = "conversations"
_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "function_call": "call",
    "tool_call": "call",
    "observation": "result",
    "function_response": "result",
    "tool": "result",
}


def read_sharegpt(row: Mapping[str, object]) -> dict[str, object]:
    """Give the body of an openai-chat request with the turns of a row; the other keys of the row stay.

    Raises:
        DecodeError: a turn has no known speaker, or its value is not a text.
    """
    body = {key: value for key, value in row.items() if key not in (COLUMN, "system")}
    messages: list[dict[str, object]] = []
    system = row.get("system")
    if isinstance(system, str) and system:
        messages.append({"role": "system", "content": system})
    waiting: deque[str] = deque()
    turns = row[COLUMN]
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise DecodeError("expected a list of turns", path=(COLUMN,))
    made = 0
    for index, turn in enumerate(cast("Sequence[object]", turns)):
        speaker, text = _read_turn(turn, index)
        role = _ROLES.get(speaker)
        if role is None:
            known = ", ".join(sorted(_ROLES))
            raise DecodeError(f"unknown speaker {speaker!r}; expected one of {known}", path=(COLUMN, index, "from"))
        if role == "call":
            calls = _read_calls(text, index)
            ids = [f"call_{made + at}" for at in range(len(calls))]
            made += len(calls)
            waiting.extend(ids)
            wired = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, (name, arguments) in zip(ids, calls, strict=True)
            ]
            messages.append({"role": "assistant", "content": None, "tool_calls": wired})
        elif role == "result":
            if not waiting:
                raise DecodeError("a result has no call before it", path=(COLUMN, index))
            messages.append({"role": "tool", "tool_call_id": waiting.popleft(), "content": text})
        else:
            messages.append({"role": role, "content": text})
    return {**body, "messages": messages}


def is_sharegpt(row: Mapping[str, object]) -> bool:
    """Whether a row has turns of `from` and `value`."""
    turns = row.get(COLUMN)
    if not isinstance(turns, list) or not turns:
        return False
    first = cast("list[object]", turns)[0]
    return isinstance(first, Mapping) and "from" in first and "value" in first


def _read_turn(turn: object, index: int) -> tuple[str, str]:
    if not isinstance(turn, Mapping):
        raise DecodeError("expected an object with `from` and `value`", path=(COLUMN, index))
    fields = cast("Mapping[str, object]", turn)
    speaker, text = fields.get("from"), fields.get("value")
    if not isinstance(speaker, str) or not isinstance(text, str):
        raise DecodeError("expected texts in `from` and `value`", path=(COLUMN, index))
    return speaker, text


def _read_calls(text: str, index: int) -> list[tuple[str, str]]:
    """Read one call or a list of calls; arguments that are no text are written as JSON."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(f"a call is not valid JSON: {error}", path=(COLUMN, index, "value")) from None
    calls = cast("list[object]", value) if isinstance(value, list) else [value]
    read: list[tuple[str, str]] = []
    for call in calls:
        fields = cast("Mapping[str, object]", call if isinstance(call, Mapping) else {})
        name, arguments = fields.get("name"), fields.get("arguments", {})
        if not isinstance(name, str):
            raise DecodeError("a call has no `name`", path=(COLUMN, index, "value"))
        read.append((name, arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()))
    return read
