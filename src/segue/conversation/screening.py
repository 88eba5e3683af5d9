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
from segue.conversation.context import Context, Tool
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)

_LEVELS: Final = 32
"""How deep to look; with everything that may stand above, this stays far from the limit."""

_USER_KINDS: Final = frozenset[type](get_args(UserContent))
_ASSISTANT_KINDS: Final = frozenset[type](get_args(AssistantContent))
_SYSTEM_KINDS: Final = frozenset[type](get_args(SystemContent))
_FALLBACK_KINDS: Final = frozenset[type](get_args(FallbackContent))
_TOOLS: Final = frozenset[type](get_args(Tool))

_Plain: TypeAlias = "str | float | bool | list[_Plain] | dict[object, _Plain] | None"
_Container: TypeAlias = "list[object] | dict[str, object]"
_OBJECT: Final[type] = dict
_STOP_REASONS: Final = frozenset(map(str, StopReason))
_SCALARS: Final = frozenset[type]({str, int, bool, type(None)})
"""What needs no second look. Floats do."""


class Misplaced(Exception):
    """Something stands where its type says it cannot. Caught where it is caused: the careful way names the place."""


# -- what msgspec just made: every field is what its type says --------------------------------------------------------


def free_values(context: Context) -> list[object]:
    """Gather everything that has no type of ours, in a conversation that was just read."""
    free = free_values_of(context.messages)
    if isinstance(context.system_prompt, tuple):
        for content in context.system_prompt:
            _gather(content, free)
    for tool in context.tools:
        free += (tool.parameters if tool.kind == "function" else tool.definition, tool.extra)
    free.append(context.extra)
    return free


def free_values_of(messages: Iterable[Message]) -> list[object]:
    """Gather the same from messages. Whatever is loaded goes through this loop: see above why it looks so."""
    free: list[object] = []
    for message in messages:
        if type(message) is ToolResultMessage:
            for content in message.content:
                if type(content) is not TextContent or content.extra is not None:
                    _gather(content, free)
            if message.details is not None or message.extra is not None:
                free += (message.details, message.extra)
        elif type(message) is AssistantMessage:
            for content in message.content:
                if type(content) is ToolCall and content.extra is None:
                    free.append(content.arguments)
                elif (
                    type(content) is not TextContent and type(content) is not ThinkingContent
                ) or content.extra is not None:
                    _gather(content, free)
            usage = message.usage
            if usage is not None and (usage.extra is not None or usage.cost is not None):
                free += (usage.extra, usage.cost and usage.cost.extra)
            if message.diagnostics or message.extra is not None:
                free.append(message.extra)
                for diagnostic in message.diagnostics:
                    free += (diagnostic.details, diagnostic.extra)
        else:
            for content in message.content:
                if type(content) is not TextContent or content.extra is not None:
                    _gather(content, free)
            free.append(message.extra)
    return free


def _gather(content: AnyContent, free: list[object]) -> None:
    free.append(content.extra)
    if content.kind == "toolCall":
        free.append(content.arguments)
    elif content.kind == "native":
        free.append(content.block)
        free += [fallback.extra for fallback in content.fallback]


# -- what anyone may have made: constructors check nothing -------------------------------------------------------------


def vetted_values(context: Context) -> list[object]:
    """Gather everything in a conversation that has no type of ours, and vouch for the rest.

    A wrong value would make a file that nobody can read, so everything is looked at but for what is hardly ever filled
    in by hand: the words of a reply's origin, the name of a result's tool and the counts of a usage.

    Raises:
        Misplaced: content in a role it cannot have, or a field that is not what it should be.
    """
    free = vetted_values_of(context.messages)
    if context.system_prompt is not None and not isinstance(context.system_prompt, str):
        for content in context.system_prompt:
            _vet(content, _SYSTEM_KINDS, free)
    for tool in context.tools:
        _vet_tool(tool, free)
    _vet_extra(context.extra, free)
    return free


def vetted_values_of(messages: Iterable[Message]) -> list[object]:  # noqa: C901, PLR0912 - calls cost too much here
    """Gather the same from messages. Whatever is dumped goes through this loop: see above why it looks so.

    What a line here does not let pass is rare, not wrong: it goes to a function that looks at all of it.

    Raises:
        Misplaced: content in a role it cannot have, or a field that is not what it should be.
    """
    free: list[object] = []
    for message in messages:
        if type(message) is ToolResultMessage:
            for content in message.content:
                if (
                    type(content) is not TextContent
                    or type(content.text) is not str
                    or content.text_signature is not None
                    or content.extra is not None
                ):
                    _vet(content, _USER_KINDS, free)
            if (
                type(message.tool_call_id) is not str
                or type(message.is_error) is not bool
                or message.details is not None
                or message.extra is not None
                or (type(message.timestamp) is not int and message.timestamp is not None)
            ):
                _vet_result(message, free)
        elif type(message) is AssistantMessage:
            for content in message.content:
                if type(content) is ToolCall:
                    if (
                        type(content.arguments) is _OBJECT
                        and type(content.id) is str
                        and type(content.name) is str
                        and content.arguments_text is None
                        and content.thought_signature is None
                        and content.extra is None
                    ):
                        free.append(content.arguments)
                    else:
                        _vet(content, _ASSISTANT_KINDS, free)
                elif type(content) is TextContent:
                    if type(content.text) is not str or content.text_signature is not None or content.extra is not None:
                        _vet(content, _ASSISTANT_KINDS, free)
                elif (
                    type(content) is not ThinkingContent
                    or type(content.thinking) is not str
                    or (type(content.thinking_signature) is not str and content.thinking_signature is not None)
                    or content.redacted is not False
                    or content.extra is not None
                ):
                    _vet(content, _ASSISTANT_KINDS, free)
            usage = message.usage
            if usage is not None and (usage.extra is not None or usage.cost is not None):
                _vet_usage(usage, free)
            if (
                type(message.stop_reason) is not StopReason
                or message.error_message is not None
                or message.diagnostics
                or message.extra is not None
                or (type(message.timestamp) is not int and message.timestamp is not None)
            ):
                _vet_reply(message, free)
        elif type(message) is UserMessage:
            for content in message.content:
                if (
                    type(content) is not TextContent
                    or type(content.text) is not str
                    or content.text_signature is not None
                    or content.extra is not None
                ):
                    _vet(content, _USER_KINDS, free)
            if message.extra is not None or (type(message.timestamp) is not int and message.timestamp is not None):
                _allow(int, message.timestamp)
                _vet_extra(message.extra, free)
        else:
            _vet_instructions(message, free)
    return free


def _vet_result(message: ToolResultMessage, free: list[object]) -> None:
    _require(str, message.tool_call_id)
    _require(bool, message.is_error)
    _allow(int, message.timestamp)
    free.append(message.details)
    _vet_extra(message.extra, free)


def _vet_usage(usage: Usage, free: list[object]) -> None:
    _vet_extra(usage.extra, free)
    cost = usage.cost
    if cost is not None:
        # A sum of numbers is a finite one, unless one of them is not or they are very large.
        if not math.isfinite(cost.input + cost.output + cost.cache_read + cost.cache_write + cost.total):
            raise Misplaced
        _vet_extra(cost.extra, free)


def _vet_reply(message: AssistantMessage, free: list[object]) -> None:
    if message.stop_reason not in _STOP_REASONS:
        raise Misplaced
    _allow(str, message.error_message)
    _allow(int, message.timestamp)
    _vet_extra(message.extra, free)
    for diagnostic in message.diagnostics:
        _require(str, diagnostic.type)
        _allow(str, diagnostic.message)
        _allow(_OBJECT, diagnostic.details)
        _allow(int, diagnostic.timestamp)
        free.append(diagnostic.details)
        _vet_extra(diagnostic.extra, free)


def _vet_instructions(message: SystemMessage, free: list[object]) -> None:
    if type(message) is not SystemMessage:
        raise Misplaced
    for content in message.content:
        _vet(content, _SYSTEM_KINDS, free)
    _vet_extra(message.extra, free)


def _vet(content: AnyContent, allowed: frozenset[type], free: list[object]) -> None:
    """Vouch for one piece of content, of any kind."""
    if type(content) not in allowed:
        raise Misplaced
    _vet_extra(content.extra, free)
    match content.kind:
        case "text":
            _require(str, content.text)
            _allow(str, content.text_signature)
        case "thinking":
            _require(str, content.thinking)
            _require(bool, content.redacted)
            _allow(str, content.thinking_signature)
        case "toolCall":
            _require(str, content.id, content.name)
            _require(_OBJECT, content.arguments)
            _allow(str, content.arguments_text, content.thought_signature)
            free.append(content.arguments)
        case "native":
            _require(str, content.protocol)
            _require(_OBJECT, content.block)
            free.append(content.block)
            for fallback in content.fallback:
                _vet(fallback, _FALLBACK_KINDS, free)
        case "image":
            _allow(str, content.data, content.url, content.mime_type)
        case "file":
            _allow(str, content.data, content.url, content.file_id, content.mime_type, content.name)


def _vet_tool(tool: Tool, free: list[object]) -> None:
    if type(tool) not in _TOOLS:
        raise Misplaced
    _vet_extra(tool.extra, free)
    if tool.kind == "function":
        _require(str, tool.name, tool.description)
        _require(_OBJECT, tool.parameters)
        _allow(bool, tool.strict)
        free.append(tool.parameters)
    else:
        _require(str, tool.protocol)
        _require(_OBJECT, tool.definition)
        free.append(tool.definition)


def _vet_extra(extra: Extra | None, free: list[object]) -> None:
    if extra is not None:
        free.append(extra)
        _require(_OBJECT, *extra.values())


def _require(kind: type, *values: object) -> None:
    for value in values:
        if type(value) is not kind:
            raise Misplaced


def _allow(kind: type, *values: object) -> None:
    for value in values:
        if value is not None and type(value) is not kind:
            raise Misplaced


# -- free-form JSON ---------------------------------------------------------------------------------------------------


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
                    if type(item) is not str and type(item) is not int and type(item) is not bool:
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
