"""Fast checks of a conversation that is loaded or dumped. Nearly every conversation passes them.

Facts:
- msgspec writes NaN and infinities as null, `{1: 2}` with the key "1", bytes as base64, sets as lists and dates as
  text, without an error. So free-form JSON has to be checked before it is dumped.               (msgspec 0.22.0, tried)
- A dict that the garbage collector does not track holds no dict and no list.
                                                      (CPython 3.11, `gc.is_tracked`; used only for values just decoded)
- The interpreter specialises a line that always sees the same class. A loop that reads one attribute of one class at a
  time costs a quarter of what tables, `match` or a call for each message cost.               (measured 2026-11-15)

Nothing here reports an error. What does not pass goes to the slow path, `limits.find_fault`, which counts exactly and
gives the path.
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
from segue.conversation.context import Context, Origin, Summary, Tool
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    Sent,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)

_LEVELS: Final = 32
"""How many levels are checked; with everything above them, this stays far below the limit."""

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
"""Types of values that are always storable. Floats are not: they may be NaN."""
_LISTED: Final = frozenset[type]({str, bool, type(None)})
"""Types of items of a list that need no check."""
_LARGEST: Final = 1 << 64
"""Larger integers go to the slow path, which counts their digits."""
_MANY: Final = 100_000
_COMMON_DEPTH: Final = 8
_MANY_BELOW: Final = 256
"""The number of containers in one level from which on equal ones are checked once; fewer below the common depth."""


class WrongType(Exception):
    """A field holds a value of the wrong type. `stored` catches it, and the slow path reports the path."""


# -- values that msgspec just decoded: every typed field is valid ------------------------------------------------------


def free_form_values(context: Context) -> list[object]:
    """Collect all free-form JSON of a conversation that was just decoded."""
    free = free_form_values_of(context.messages)
    if isinstance(context.system_prompt, tuple):
        for content in context.system_prompt:
            _gather(content, free)
    for tool in context.tools:
        free += (tool.parameters if tool.kind == "function" else tool.definition, tool.extra)
    for summary in context.summaries:
        free += (summary.extra, summary.origin and summary.origin.extra)
    free.append(context.extra)
    return free


def free_form_values_of(messages: Iterable[Message]) -> list[object]:  # noqa: C901 - see above
    """Collect the same from messages. Every loaded message passes this loop; the facts above explain its form."""
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
            if message.sent is not None and message.sent.extra is not None:
                free.append(message.sent.extra)
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


# -- values built by any program: constructors check nothing -----------------------------------------------------------


def checked_values(context: Context) -> list[object]:
    """Check the typed fields of a conversation and collect its free-form JSON.

    A wrong value would make the file unreadable. So everything is checked except fields that are rarely filled in by
    hand: the origin of a reply, the tool name of a result and the counts of a usage.

    Raises:
        WrongType: content in a role that does not allow it, or a field of the wrong type.
    """
    free = checked_values_of(context.messages)
    if context.system_prompt is not None and not isinstance(context.system_prompt, str):
        for content in context.system_prompt:
            _check_content(content, _SYSTEM_KINDS, free)
    for tool in context.tools:
        _check_tool(tool, free)
    for summary in context.summaries:
        _check_summary(summary, free)
    if context.pins and not all(type(at) is int and at >= 0 for at in context.pins):
        raise WrongType
    _check_extra(context.extra, free)
    return free


def checked_values_of_summary(summary: Summary) -> list[object]:
    """Check and collect the same from one summary.

    Raises:
        WrongType: a field has the wrong type.
    """
    free: list[object] = []
    _check_summary(summary, free)
    return free


def checked_values_of(messages: Iterable[Message]) -> list[object]:  # noqa: C901, PLR0912 - calls cost too much here
    """Check and collect the same from messages. Every dumped message passes this loop; see the facts above.

    The conditions here cover the common cases. Other values are not wrong: a function checks all of their fields.

    Raises:
        WrongType: content in a role that does not allow it, or a field of the wrong type.
    """
    free: list[object] = []
    checked: Extra | None = None  # many texts share one
    for message in messages:
        if type(message) is ToolResultMessage:
            for content in message.content:
                if (
                    type(content) is not TextContent
                    or type(content.text) is not str
                    or content.text_signature is not None
                    or content.extra is not None
                ):
                    _check_content(content, _USER_KINDS, free)
            if (
                type(message.tool_call_id) is not str
                or type(message.is_error) is not bool
                or message.details is not None
                or message.extra is not None
                or (type(message.timestamp) is not int and message.timestamp is not None)
            ):
                _check_result(message, free)
        elif type(message) is AssistantMessage:
            for content in message.content:
                if type(content) is ToolCall:
                    if (
                        type(content.arguments) is _OBJECT
                        and type(content.id) is str
                        and type(content.name) is str
                        and (content.arguments_text is None or type(content.arguments_text) is str)
                        and (content.thought_signature is None or type(content.thought_signature) is str)
                        and content.extra is None
                    ):
                        free.append(content.arguments)
                    else:
                        _check_content(content, _ASSISTANT_KINDS, free)
                elif type(content) is TextContent:
                    if (
                        type(content.text) is not str
                        or (type(content.text_signature) is not str and content.text_signature is not None)
                        or (content.extra is not None and content.extra is not checked)
                    ):
                        _check_content(content, _ASSISTANT_KINDS, free)
                        checked = content.extra
                elif (
                    type(content) is not ThinkingContent
                    or type(content.thinking) is not str
                    or (type(content.thinking_signature) is not str and content.thinking_signature is not None)
                    or content.redacted is not False
                    or content.extra is not None
                ):
                    _check_content(content, _ASSISTANT_KINDS, free)
            usage = message.usage
            if usage is not None and (usage.extra is not None or usage.cost is not None):
                _check_usage(usage, free)
            if (
                type(message.stop_reason) is not StopReason
                or message.error_message is not None
                or message.diagnostics
                or message.sent is not None
                or (type(message.timestamp) is not int and message.timestamp is not None)
            ):
                _check_assistant(message, free)
            if message.extra is not None:
                _check_extra(message.extra, free)
        elif type(message) is UserMessage:
            for content in message.content:
                if (
                    type(content) is not TextContent
                    or type(content.text) is not str
                    or content.text_signature is not None
                    or content.extra is not None
                ):
                    _check_content(content, _USER_KINDS, free)
            if message.extra is not None or (type(message.timestamp) is not int and message.timestamp is not None):
                _allow(int, message.timestamp)
                _check_extra(message.extra, free)
        else:
            _check_system(message, free)
    return free


def _check_result(message: ToolResultMessage, free: list[object]) -> None:
    _require(str, message.tool_call_id)
    _require(bool, message.is_error)
    _allow(int, message.timestamp)
    free.append(message.details)
    _check_extra(message.extra, free)


def _check_usage(usage: Usage, free: list[object]) -> None:
    if usage.extra is not None:
        _check_extra(usage.extra, free)
    cost = usage.cost
    if cost is not None:
        # The sum is finite unless one of the numbers is not, or they are very large.
        if not math.isfinite(cost.input + cost.output + cost.cache_read + cost.cache_write + cost.total):
            raise WrongType
        if cost.extra is not None:
            _check_extra(cost.extra, free)


def _check_assistant(message: AssistantMessage, free: list[object]) -> None:
    if message.stop_reason not in _STOP_REASONS:
        raise WrongType
    _allow(str, message.error_message)
    _allow(int, message.timestamp)
    if message.sent is not None:
        _check_sent(message.sent, free)
    for diagnostic in message.diagnostics:
        _require(str, diagnostic.type)
        _allow(str, diagnostic.message)
        _allow(_OBJECT, diagnostic.details)
        _allow(int, diagnostic.timestamp)
        free.append(diagnostic.details)
        _check_extra(diagnostic.extra, free)


def _check_sent(sent: Sent, free: list[object]) -> None:
    if type(sent) is not Sent:
        raise WrongType
    for text in (sent.system, sent.tools, sent.messages, *sent.blocks, *sent.accepted, *sent.dropped):
        _require(str, text)
    _allow(str, sent.before)
    _allow(str, sent.account)
    _allow(str, sent.key)
    _allow(str, sent.inserted)
    _allow(_OBJECT, sent.instructions)
    _require(bool, sent.is_appended)
    free.append(sent.instructions)
    _check_extra(sent.extra, free)


def _check_system(message: SystemMessage, free: list[object]) -> None:
    if type(message) is not SystemMessage:
        raise WrongType
    for content in message.content:
        _check_content(content, _SYSTEM_KINDS, free)
    _check_extra(message.extra, free)


def _check_content(content: AnyContent, allowed: frozenset[type], free: list[object]) -> None:
    """Check all fields of one content of any kind."""
    if type(content) not in allowed:
        raise WrongType
    _check_extra(content.extra, free)
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
                _check_content(fallback, _FALLBACK_KINDS, free)
        case "image":
            _allow(str, content.data, content.url, content.mime_type)
        case "file":
            _allow(str, content.data, content.url, content.file_id, content.mime_type, content.name, content.context)


def _check_tool(tool: Tool, free: list[object]) -> None:
    if type(tool) not in _TOOLS:
        raise WrongType
    _check_extra(tool.extra, free)
    if tool.kind == "function":
        _require(str, tool.name, tool.description)
        _require(_OBJECT, tool.parameters)
        _allow(bool, tool.strict)
        free.append(tool.parameters)
    else:
        _require(str, tool.protocol)
        _require(_OBJECT, tool.definition)
        free.append(tool.definition)


def _check_summary(summary: Summary, free: list[object]) -> None:
    if type(summary) is not Summary or type(summary.covers) is not int or summary.covers < 0:
        raise WrongType
    _require(str, summary.text)
    _allow(int, summary.timestamp)
    _check_extra(summary.extra, free)
    if summary.origin is not None:
        _require(Origin, summary.origin)
        _require(str, summary.origin.protocol, summary.origin.provider, summary.origin.model)
        _check_extra(summary.origin.extra, free)


def _check_extra(extra: Extra | None, free: list[object]) -> None:
    if extra is not None:
        free.append(extra)
        for value in extra.values():
            if type(value) is not _OBJECT:
                raise WrongType


def _require(kind: type, *values: object) -> None:
    for value in values:
        if type(value) is not kind:
            raise WrongType


def _allow(kind: type, *values: object) -> None:
    for value in values:
        if value is not None and type(value) is not kind:
            raise WrongType


# -- free-form JSON ---------------------------------------------------------------------------------------------------


def is_shallow(values: list[object]) -> bool:
    """Whether values that were just decoded from JSON are nested far less than the limit."""
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


def is_plain(values: list[object]) -> bool:  # noqa: C901 - calls cost too much here
    """Whether values are JSON of at most `_LEVELS` levels; False means that the slow path has to decide."""
    level = cast("list[_Plain]", values)
    for depth in range(_LEVELS):
        below: list[_Plain] = []
        for value in level:
            if type(value) is dict:
                for key, item in value.items():
                    if type(key) is not str:
                        return False
                    if type(item) is not str and type(item) is not bool:
                        if type(item) is not int:
                            below.append(item)
                        elif not -_LARGEST < item < _LARGEST:
                            return False
            elif type(value) is list:
                below += [item for item in value if type(item) not in _LISTED]
            elif type(value) is float:
                if not math.isfinite(value):
                    return False
            elif type(value) is int:
                if not -_LARGEST < value < _LARGEST:
                    return False
            elif type(value) not in _SCALARS:
                return False
        if not below:
            return True
        # A value that contains itself twice would double the work with each level.
        is_growing = len(below) > _MANY_BELOW if depth > _COMMON_DEPTH else len(below) > _MANY
        level = list({id(item): item for item in below}.values()) if is_growing else below
    return False
