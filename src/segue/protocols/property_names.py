"""Names of tool properties that the target refuses: replaced in the definitions, and given back in calls.

Projection notes a replaced name with those of tools, `find.properties.user_id_Xy12abcd` for `find.properties.user id`,
so that it reaches every place that reads a reply. A call keeps the names on the wire as its format there: the model is
sent what it wrote, and reasoning after it stays valid.

Facts:
- Claude refuses other names than `[a-zA-Z0-9_.-]{1,64}` on the first level of a schema.      (the row `property_names`)
- MCP servers and forms have properties such as `$filter`, `user id` and `größe`.            (n8n #30590, 2026-05-17)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AssistantContent, ToolCall
from segue.conversation.events import DoneEvent, ErrorEvent, Event, ToolCallDelta
from segue.conversation.messages import AssistantMessage
from segue.models.rules import Rules
from segue.protocols.kit.codec import JsonObject
from segue.protocols.kit.json_values import EMPTY, Block, object_of
from segue.protocols.kit.schemas import refused_properties
from segue.protocols.kit.streaming import Frame, StreamDecoder
from segue.protocols.kit.verbatim import VERBATIM

_OTHER: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_LONGEST: Final = 64
_HASH: Final = 8
_PLACE: Final = ".properties."
_INPUT: Final = "input"
"""The key of a call on the wires of Claude, which alone restrict the names."""


def rename_properties(
    schema: JsonObject, rules: Rules, digest: Callable[[str, int, str | None], str]
) -> tuple[JsonObject, dict[str, str]]:
    """Return a schema with names that the target accepts, and the new name of each that it refuses."""
    names = {
        name: f"{_OTHER.sub('_', name)[: _LONGEST - _HASH - 1]}_{digest(name, _HASH, None)}"
        for name in refused_properties(schema, rules)
    }
    if not names:
        return schema, names
    properties = cast("JsonObject", schema["properties"])
    renamed: dict[str, object] = {**schema, "properties": {names.get(key, key): properties[key] for key in properties}}
    required = schema.get("required")
    if isinstance(required, list):
        listed = cast("list[object]", required)
        renamed["required"] = [names.get(key, key) if isinstance(key, str) else key for key in listed]
    return renamed, names


def place_of(tool: str, name: str) -> str:
    """Return the property of a tool as it is noted with the names of tools."""
    return f"{tool}{_PLACE}{name}"


def _properties(tool_names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the names of properties that were replaced: the tool -> the name on the wire -> the given name."""
    found: dict[str, dict[str, str]] = {}
    for wire, given in tool_names.items():
        if _PLACE in wire:
            tool, _, name = given.partition(_PLACE)
            found.setdefault(tool, {})[wire.partition(_PLACE)[2]] = name
    return found


def restore_properties(message: AssistantMessage, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Return a reply whose calls have the given names of properties; the same object if none was replaced."""
    names = _properties(tool_names) if tool_names else {}
    if not names or not any(call.name in names for call in message.tool_calls()):
        return message
    return replace(message, content=tuple(_restore(piece, names, message.protocol) for piece in message.content))


def restoring_decoder(decoder: StreamDecoder, tool_names: Mapping[str, str], protocol: str) -> StreamDecoder:
    """Return a decoder whose calls have the given names; the same object if none was replaced."""
    names = _properties(tool_names) if tool_names else {}
    return _RestoringDecoder(decoder, names, protocol) if names else decoder


def _restore(piece: AssistantContent, names: Mapping[str, Mapping[str, str]], protocol: str) -> AssistantContent:
    given = names.get(piece.name) if piece.kind == "toolCall" else None
    if piece.kind != "toolCall" or given is None or given.keys().isdisjoint(piece.arguments):
        return piece
    arguments = {given.get(key, key): value for key, value in piece.arguments.items()}
    known: Block = (piece.extra or {}).get(protocol, EMPTY)
    sent = {**object_of(known.get(VERBATIM)), _INPUT: {"from": arguments, "to": dict(piece.arguments)}}
    extra = {**(piece.extra or {}), protocol: {**known, VERBATIM: sent}}
    return replace(piece, arguments=arguments, arguments_text=None, extra=extra)


class _RestoringDecoder(StreamDecoder):
    """Restores names in the events of a stream: the arguments of a call with replaced names are given at its end."""

    __slots__ = ("_held", "_inner", "_names", "_protocol")

    def __init__(self, inner: StreamDecoder, names: Mapping[str, Mapping[str, str]], protocol: str) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._protocol = protocol
        self._inner = inner
        self._names = names
        self._held: set[int] = set()

    def stamp_with(self, stamp: Callable[[AssistantMessage], AssistantMessage]) -> None:
        """Have the message completed before it is given to anyone."""
        self._inner.stamp_with(stamp)

    def feed(self, frame: Frame) -> list[Event]:
        """Decode one frame."""
        return self._restored(self._inner.feed(frame))

    def finish(self) -> list[Event]:
        """End the stream."""
        return self._restored(self._inner.finish())

    def abort(self, reason: str = "the request was aborted") -> list[Event]:
        """End the reply with one `error` event."""
        return self._restored(self._inner.abort(reason))

    @property
    def message(self) -> AssistantMessage:
        """The message received so far."""
        return self._whole(self._inner.message)

    def _whole(self, message: AssistantMessage) -> AssistantMessage:
        return replace(
            message, content=tuple(_restore(piece, self._names, self._protocol) for piece in message.content)
        )

    def _restored(self, events: list[Event]) -> list[Event]:
        given: list[Event] = []
        for event in events:
            if event.type == "toolcall_start" and event.name in self._names:
                self._held.add(event.index)
            if event.type == "toolcall_delta" and event.index in self._held:
                continue
            if event.type == "toolcall_end" and event.index in self._held:
                self._held.discard(event.index)
                call = cast("ToolCall", _restore(event.tool_call, self._names, self._protocol))
                text = encode_arguments(call.arguments) if call.arguments_text is None else call.arguments_text
                given += [ToolCallDelta(index=event.index, delta=text), replace(event, tool_call=call)]
            elif isinstance(event, (DoneEvent, ErrorEvent)):
                given.append(replace(event, message=self._whole(event.message)))
            else:
                given.append(event)
        return given
