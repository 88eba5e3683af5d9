"""Tool calls in a stream: which call a delta belongs to, and its arguments.

Facts this file rests on:
- A call is identified by its index; id and name come with its first delta.                        (openai 3.49.0)
- Some vendors send the index 0 for every call, or none: a new id is a new call.
                                                                      (maka #1976, vercel/ai #14277, smolagents #1958)
- Some repeat the name in every delta, and some send neither id nor index: then a second name, or arguments that start
  again behind complete ones, are a new call.                             (maka #1976, Qwen-Agent #943, gcli2api #406)
- Some send the name in pieces: before its arguments begin, another name under the same index continues it.
                                                      (openai 3.49.0: its accumulator joins all texts of deltas)
- Arguments are a text, an object, or null.                                        (vercel/ai #19274; recorded traffic)
- Deltas of custom tools have `custom.input`, which the types of the SDK do not name.              (openai 3.49.0)

A call of an unknown type without a function is assembled without events and becomes native content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.conversation.arguments import encode_arguments
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.openai_chat.calls import CUSTOM, OLD_ID, find_signature
from segue.protocols.openai_chat.fast_decode import Json


class _Call:
    """A call that is being assembled."""

    __slots__ = ("custom", "id", "name", "part")

    def __init__(self, part: Part, call_id: str, name: str) -> None:
        self.part = part
        self.id = call_id
        self.name = name  # as on the wire; the name of the part may be mapped back
        self.custom: list[str] | None = None


_OLD: Final[Wire] = {"field": "function_call"}
_CUSTOM: Final[Wire] = {"field": "custom"}
"""The fields of calls that are no functions, for the start event."""


class CallReader:
    """Reads deltas of calls into an assembly."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._by_index: dict[int, _Call] = {}
        self._unknown: dict[int | None, Wire] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._old: _Call | None = None
        self._custom: list[_Call] = []

    def find_growing(self, index: int, arguments: str) -> Part | None:
        """Give the part of the call that arguments are added to; None if it is not known or there are none."""
        call = self._by_index.get(index)
        if call is None or call.custom is not None or not arguments:
            return None
        self._last = call
        return call.part

    def read(self, deltas: Json, out: Assembly) -> None:
        """Read the calls of one delta."""
        for entry in deltas if isinstance(deltas, list) else ():
            if isinstance(entry, dict):
                self._read_entry(entry, out)

    def read_old(self, delta: object, out: Assembly) -> None:
        """Read a piece of the `function_call`; a message has only one."""
        if not isinstance(delta, Mapping):
            return
        function = cast("Block", delta)
        name = function.get("name")
        if self._old is None:
            wire_name = name if isinstance(name, str) else ""
            self._old = _Call(out.open_call(OLD_ID, wire_name, _OLD), OLD_ID, wire_name)
            self._old.part.arguments = {}
        if isinstance(name, str) and name:
            _name(self._old, name, out)
        _grow(self._old, function.get("arguments"), out)

    @property
    def has_old(self) -> bool:
        """Whether there is a `function_call`."""
        return self._old is not None

    def finish(self) -> None:
        """Write the input of custom tools as a whole reply has it."""
        for call in self._custom:
            if call.custom is not None and call.part.closed is None:
                call.part.chunks = [encode_arguments({"input": join_chunks(call.custom)})]

    def _read_entry(self, entry: dict[str, Json], out: Assembly) -> None:
        inner = entry.get("function")
        if inner is None and self._read_unknown(entry, out):
            return
        is_custom = inner is None and "custom" in entry
        function: Block = inner if isinstance(inner, dict) else object_of(entry.get("custom"))
        given_id, given_name, index = entry.get("id"), function.get("name"), entry.get("index")
        call_id = given_id if isinstance(given_id, str) else ""
        name = given_name if isinstance(given_name, str) else ""
        place = index if isinstance(index, int) else None
        arguments = function.get("input" if is_custom else "arguments")
        call = self._find(place, call_id, name, arguments)
        if call is None:
            is_custom = is_custom or entry.get("type") == "custom"
            call = _Call(out.open_call(call_id, name, _CUSTOM if is_custom else None), call_id, name)
            call.part.arguments = {}  # until there are some
            if is_custom:
                call.part.extra = CUSTOM
                call.custom = []
                self._custom.append(call)
        elif call_id or name:
            self._complete(call, call_id, name, out)
        if place is not None:
            self._by_index[place] = call
        if call_id:
            self._by_id[call_id] = call
        self._last = call
        if "extra_content" in entry:
            signature = find_signature(entry["extra_content"], self._endpoint)
            call.part.signature = signature or call.part.signature
        if call.custom is None:
            _grow(call, arguments, out)
        elif isinstance(arguments, str) and arguments:
            _grow_custom(call, arguments, out)

    def _read_unknown(self, entry: Block, out: Assembly) -> bool:
        """Read a piece of a call of an unknown type; give whether it was one."""
        index = entry.get("index")
        place = index if isinstance(index, int) else None
        call = self._unknown.get(place)
        if call is None or (entry.get("id") and call.get("id") and entry["id"] != call["id"]):
            if entry.get("type") in (None, "function", "custom"):
                return False
            call = self._unknown[place] = {}
            out.add_native({"tool_calls": [call]})
        _merge(call, {key: value for key, value in entry.items() if key != "index"})
        return True

    def _find(self, index: int | None, call_id: str, name: str, arguments: object) -> _Call | None:
        """Find the call that a delta continues; None when it begins a new one."""
        known = self._by_index.get(index) if index is not None else self._by_id.get(call_id) if call_id else self._last
        if known is None:
            return None
        if call_id and known.id:
            return known if known.id == call_id else self._by_id.get(call_id) if index is None else None
        if not name or not known.name:
            return known
        if name != known.name:
            return known if index is not None and not known.part.chunks else None
        return None if _starts_again(known, arguments) else known

    def _complete(self, call: _Call, call_id: str, name: str, out: Assembly) -> None:
        """Add an id or a name that came late, or more of the name."""
        if call_id and not call.id:
            call.id = call.part.id = call_id
        if name:
            _name(call, name, out)


def _name(call: _Call, piece: str, out: Assembly) -> None:
    """Add to the name of a call whose arguments have not begun; a repeated name adds nothing."""
    if piece != call.name and not (call.name and call.part.chunks):
        call.name += piece
        call.part.name = out.tool_names.get(call.name, call.name)


def _merge(known: Wire, piece: Block) -> None:
    """Add a piece to an object: texts grow except id and type, objects are merged, other values replace."""
    for key, value in piece.items():
        earlier = known.get(key)
        if isinstance(value, dict) and isinstance(earlier, dict):
            merged = dict(cast("Wire", earlier))
            _merge(merged, cast("Block", value))
            known[key] = merged
        elif isinstance(value, str) and isinstance(earlier, str) and key not in ("id", "type"):
            known[key] = earlier + value
        elif value is not None or key not in known:
            known[key] = value


def _starts_again(call: _Call, arguments: object) -> bool:
    """Whether arguments start again although those of the call are complete."""
    if isinstance(arguments, Mapping):
        return bool(call.part.chunks)
    if not isinstance(arguments, str) or not arguments.startswith("{") or not call.part.chunks:
        return False
    try:
        msgspec.json.decode("".join(call.part.chunks))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _grow(call: _Call, arguments: object, out: Assembly) -> None:
    if isinstance(arguments, str):
        if arguments:
            out.grow(call.part, arguments)
    elif isinstance(arguments, Mapping):
        out.grow(call.part, encode_arguments(cast("Block", arguments)))


def _grow_custom(call: _Call, text: str, out: Assembly) -> None:
    """Add to the input of a custom tool, as the JSON of its arguments."""
    pieces = cast("list[str]", call.custom)
    opening = "" if pieces else '{"input":"'
    pieces.append(text)
    out.grow(call.part, opening + json.dumps(text, ensure_ascii=False)[1:-1])
