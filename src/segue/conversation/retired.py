"""Read cache marks and prefixes of stored conversations that were written before these had typed fields.

Facts:
- Earlier versions wrote `segue/1` files with a cache mark as data in `extra`: `cache_control` under
  `anthropic-messages` and `openai-chat`, `cachePoint` under `bedrock-converse`. They wrote the prefix flag of an
  assistant message as `extra[protocol]["shape"]["prefix"]`.                          (segue before `cache_mark`)
- No codec of this version produces such an `extra`: it decodes a mark into `cache_mark` and a prefix into `prefix`. A
  mark of an unknown type, on thinking, or on an OpenAI tool message stays data in both versions.       (the codecs)

`load`, `load_message` and `read_session` return the typed fields. `dump` and `dump_message` write them, so that a value
that still has the old `extra`, built by hand or by an older program, is stored like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import CacheMark, Content, Extra
from segue.conversation.context import Context, NativeTool, ToolDefinition
from segue.conversation.messages import Message, ToolResultMessage

_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic-messages": ("cache_control", "ephemeral"),
    "openai-chat": ("cache_control", "ephemeral"),
    "bedrock-converse": ("cachePoint", "default"),
}
"""The key of a mark in `extra[protocol]`, and the type of a mark that the protocol defines."""

_RESULT_MARKS: Final = {name: mark for name, mark in _MARKS.items() if name != "openai-chat"}
"""The same for tool results. An OpenAI tool message itself has no mark, only its text parts do."""

_FORMAT: Final = "shape"
_PREFIX: Final = "prefix"
_RETIRED: Final = frozenset({_FORMAT, *(key for key, _ in _MARKS.values())})

_Marked = TypeVar("_Marked", bound=Content | ToolResultMessage | ToolDefinition | NativeTool)


def may_be_retired(values: Iterable[object]) -> bool:
    """Whether one of these values is an `extra` that may hold a mark or a prefix in the retired form.

    This is a quick test for all free-form values of a conversation. It may be wrong about a value outside `extra`.
    """
    for value in values:
        if type(value) is dict:
            for part in value.values():  # pyright: ignore[reportUnknownVariableType] - `cast` would take half of the time
                if type(part) is dict and not _RETIRED.isdisjoint(part):  # pyright: ignore[reportUnknownArgumentType]
                    return True
    return False


def upgrade_context(context: Context) -> Context:
    """Replace every retired mark and prefix by the typed field; the same object when there is none."""
    messages = _changed(context.messages, [upgrade_message(message) for message in context.messages])
    tools = _changed(context.tools, [_upgrade(tool, _MARKS) for tool in context.tools])
    prompt = context.system_prompt
    if isinstance(prompt, tuple):
        prompt = _changed(prompt, [_upgrade(content, _MARKS) for content in prompt])
    if messages is context.messages and tools is context.tools and prompt is context.system_prompt:
        return context
    return replace(context, messages=messages, tools=tools, system_prompt=prompt)


def upgrade_message(message: Message) -> Message:
    """Replace every retired mark and prefix of one message by the typed field; the same object when there is none."""
    content = _changed(message.content, [_upgrade(item, _MARKS) for item in message.content])
    if content is not message.content:
        message = replace(message, content=content)
    if message.extra is None:
        return message
    if message.role == "toolResult":
        return _upgrade(message, _RESULT_MARKS)
    if message.role == "assistant" and not message.prefix:
        for protocol, part in message.extra.items():
            wire_format = part.get(_FORMAT)
            if isinstance(wire_format, dict) and cast("dict[str, object]", wire_format).get(_PREFIX) is True:
                rest = _without(cast("dict[str, object]", wire_format), _PREFIX)
                kept = {**part, _FORMAT: rest} if rest else _without(part, _FORMAT)
                return replace(message, prefix=True, extra=_with_part(message.extra, protocol, kept))
    return message


def _upgrade(value: _Marked, marks: Mapping[str, tuple[str, str]]) -> _Marked:
    """Replace a retired mark of one value by `cache_mark`, if the value has that field and it is not set."""
    extra = cast("Extra | None", getattr(value, "extra", None))
    if extra is None or getattr(value, "cache_mark", value) is not None:
        return value
    for protocol, (key, kind) in marks.items():
        part = extra.get(protocol)
        mark = part.get(key) if part is not None else None
        if part is not None and isinstance(mark, dict):
            fields = cast("dict[str, object]", mark)
            if fields.get("type") == kind:
                kept = _with_part(extra, protocol, _without(part, key))
                return replace(value, cache_mark=_read_mark(fields, protocol), extra=kept)
    return value


def _read_mark(fields: Mapping[str, object], protocol: str) -> CacheMark:
    """Read a mark; fields other than `type` and `ttl` are data."""
    ttl = fields.get("ttl")
    data = {key: item for key, item in fields.items() if key != "type" and not (key == "ttl" and isinstance(ttl, str))}
    return CacheMark(ttl=ttl if isinstance(ttl, str) else None, extra={protocol: data} if data else None)


def _with_part(extra: Extra, protocol: str, part: Mapping[str, object]) -> Extra | None:
    return {**extra, protocol: part} if part else _without(extra, protocol) or None


_Item = TypeVar("_Item")


def _without(mapping: Mapping[str, _Item], key: str) -> dict[str, _Item]:
    return {name: item for name, item in mapping.items() if name != key}


def _changed(before: tuple[_Item, ...], after: list[_Item]) -> tuple[_Item, ...]:
    """Return the tuple itself when every item is the same object."""
    return before if all(map(_is, before, after)) else tuple(after)


def _is(one: object, other: object) -> bool:
    return one is other
