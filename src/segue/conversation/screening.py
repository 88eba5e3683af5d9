"""The quick look at a conversation on its way in or out: what nearly all of them pass, at little cost.

Facts this file rests on:
- msgspec writes NaN and infinities as null, `{1: 2}` with the key "1", bytes as base64, sets as lists and dates as
  text, all without a word: what has no type of ours has to be looked at before it is trusted.  (msgspec 0.22.0, tried)
- A dict that the garbage collector does not track holds nothing it would have to follow: no dict and no list.
                                                          (CPython 3.11, `gc.is_tracked`; relied upon for what was read)
- The interpreter specialises a line that always meets the same class. A loop that asks for one attribute of one class
  at a time costs a quarter of what tables, `match` or a call for each message cost.          (measured 2026-11-15)

Nothing here says no. What is not vouched for goes to `limits.find_fault`, which counts exactly and knows the place.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable
from typing import Final, TypeAlias, cast, get_args

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    Extra,
    FallbackContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import Context
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)

_LEVELS: Final = 32
"""How deep to look; with everything that may stand above, this stays far from the limit."""

_USER_KINDS: Final = frozenset[type](get_args(UserContent))
_ASSISTANT_KINDS: Final = frozenset[type](get_args(AssistantContent))
_SYSTEM_KINDS: Final = frozenset[type](get_args(SystemContent))
_FALLBACK_KINDS: Final = frozenset[type](get_args(FallbackContent))

_Plain: TypeAlias = "str | float | bool | list[_Plain] | dict[object, _Plain] | None"
_Container: TypeAlias = "list[object] | dict[str, object]"
_OBJECT: Final[type] = dict
_TIMES: Final = frozenset[type]({int, type(None)})
_SCALARS: Final = frozenset[type]({str, int, bool, type(None)})
"""What needs no second look. Floats do."""


class Misplaced(Exception):
    """Something stands where its type says it cannot. Caught where it is caused: the careful way names the place."""


def free_values(context: Context, *, trusted: bool) -> list[object]:
    """Gather everything in a conversation that has no type of ours.

    `trusted` values were just made by msgspec. Of others, the fields that programs get wrong most easily are looked at
    too (words, ids, times, costs), because constructors check nothing and a `None` there would make a file that nobody
    can read.

    Raises:
        Misplaced: content in a role it cannot have, or a field that is not what it should be.
    """
    free = free_values_of(context.messages, trusted=trusted)
    if context.system_prompt is not None and not isinstance(context.system_prompt, str):
        for content in context.system_prompt:
            _gather(content, _SYSTEM_KINDS, free)
    for tool in context.tools:
        free.append(_require(_OBJECT, tool.parameters if tool.kind == "function" else tool.definition))
        _gather_extra(tool.extra, free)
    _gather_extra(context.extra, free)
    return free


def free_values_of(messages: Iterable[Message], *, trusted: bool) -> list[object]:
    """Gather the same from messages. Whatever is loaded or dumped goes through this loop: see above why it looks so.

    Raises:
        Misplaced: content in a role it cannot have, or a field that is not what it should be.
    """
    free: list[object] = []
    for message in messages:
        if type(message) is ToolResultMessage:
            for content in message.content:
                if (
                    type(content) is not TextContent
                    or content.extra is not None
                    or not (trusted or type(content.text) is str)
                ):
                    _gather(content, _USER_KINDS, free)
            if (
                message.details is not None
                or message.extra is not None
                or not (trusted or (type(message.tool_call_id) is str and type(message.timestamp) in _TIMES))
            ):
                _gather_result(message, free)
        elif type(message) is AssistantMessage:
            for content in message.content:
                if type(content) is ToolCall:
                    if content.extra is None and (
                        trusted
                        or (
                            type(content.arguments) is _OBJECT and type(content.id) is str and type(content.name) is str
                        )
                    ):
                        free.append(content.arguments)
                    else:
                        _gather(content, _ASSISTANT_KINDS, free)
                elif type(content) is TextContent:
                    if content.extra is not None or not (trusted or type(content.text) is str):
                        _gather(content, _ASSISTANT_KINDS, free)
                elif (
                    type(content) is not ThinkingContent
                    or content.extra is not None
                    or not (trusted or type(content.thinking) is str)
                ):
                    _gather(content, _ASSISTANT_KINDS, free)
            usage = message.usage
            if usage is not None and (
                usage.extra is not None
                or ((cost := usage.cost) is not None and (cost.extra is not None or not (trusted or _is_finite(cost))))
            ):
                _gather_usage(usage, free)
            if message.diagnostics or message.extra is not None or not (trusted or type(message.timestamp) in _TIMES):
                _gather_remarks(message, free)
        else:
            _gather_rare(message, free)
    return free


def _gather_result(message: ToolResultMessage, free: list[object]) -> None:
    _require(str, message.tool_call_id)
    _require_time(message.timestamp)
    free.append(message.details)
    _gather_extra(message.extra, free)


def _gather_usage(usage: Usage, free: list[object]) -> None:
    _gather_extra(usage.extra, free)
    if usage.cost is not None:
        if not _is_finite(usage.cost):
            raise Misplaced
        _gather_extra(usage.cost.extra, free)


def _is_finite(cost: UsageCost) -> bool:
    """Vouch that costs are numbers: their sum is one then, unless they are very large."""
    return math.isfinite(cost.input + cost.output + cost.cache_read + cost.cache_write + cost.total)


def _gather_remarks(message: AssistantMessage, free: list[object]) -> None:
    _require_time(message.timestamp)
    _gather_extra(message.extra, free)
    for diagnostic in message.diagnostics:
        _require_time(diagnostic.timestamp)
        free.append(diagnostic.details)
        _gather_extra(diagnostic.extra, free)


def _gather_rare(message: Message, free: list[object]) -> None:
    if not isinstance(message, UserMessage | SystemMessage):
        raise Misplaced
    for content in message.content:
        _gather(content, _USER_KINDS if message.role == "user" else _SYSTEM_KINDS, free)
    if message.role == "user":
        _require_time(message.timestamp)
    _gather_extra(message.extra, free)


def _gather(content: AnyContent, allowed: frozenset[type], free: list[object]) -> None:
    """Gather from one piece of content, of any kind."""
    if type(content) not in allowed:
        raise Misplaced
    _gather_extra(content.extra, free)
    match content.kind:
        case "text":
            _require(str, content.text)
        case "thinking":
            _require(str, content.thinking)
        case "toolCall":
            _require(str, content.id)
            _require(str, content.name)
            free.append(_require(_OBJECT, content.arguments))
        case "native":
            free.append(_require(_OBJECT, content.block))
            for fallback in content.fallback:
                _gather(fallback, _FALLBACK_KINDS, free)
        case "image" | "file":
            _require(str, content.data or "")


def _gather_extra(extra: Extra | None, free: list[object]) -> None:
    if extra is not None:
        free.append(extra)
        for fields in extra.values():
            _require(_OBJECT, fields)


def _require(kind: type, value: object) -> object:
    if type(value) is not kind:
        raise Misplaced
    return value


def _require_time(moment: int | None) -> None:
    if type(moment) not in _TIMES:
        raise Misplaced


def is_shallow(values: list[object]) -> bool:
    """Vouch that values that were just read from JSON stay far from the limit of nesting, wherever they stand."""
    tracked = gc.is_tracked
    level = cast("list[_Container]", [value for value in values if tracked(value)])
    for _ in range(_LEVELS):
        if not level:
            return True
        level = cast(
            "list[_Container]",
            [item for value in level for item in (value.values() if type(value) is dict else value) if tracked(item)],
        )
    return False


def is_plain(values: list[object]) -> bool:
    """Vouch that values are JSON of at most `_LEVELS` levels; False means only that someone must look closer."""
    level = cast("list[_Plain]", values)
    for _ in range(_LEVELS):
        below: list[_Plain] = []
        for value in level:
            if type(value) is dict:
                for key, item in value.items():
                    if type(key) is not str:
                        return False
                    if type(item) is not str and type(item) not in _SCALARS:
                        below.append(item)
            elif type(value) is list:
                below += [item for item in value if type(item) not in _SCALARS]
            elif type(value) is float:
                if not math.isfinite(value):
                    return False
            elif type(value) not in _SCALARS:
                return False
        if not below:
            return True
        level = below
    return False
