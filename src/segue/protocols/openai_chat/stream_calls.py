"""Tool calls in a stream: which call a delta belongs to, and how its arguments grow.

Facts this file rests on:
- A call is found by its index; id and name come with its first delta.                             (openai 3.49.0)
- Some give every call the index 0, or none: a new id is a new call.   (maka #1976, vercel/ai #14277, smolagents #1958)
- Some repeat the name in every delta, and some send neither id nor index: then a second name, or arguments that begin
  anew behind complete ones, are a new call.                              (maka #1976, Qwen-Agent #943, gcli2api #406)
- Some send the name in pieces: before its arguments begin, another name under the same index goes on with it.
                                                      (openai 3.49.0: its accumulator joins whatever texts deltas bring)
- Arguments come as text, as an object, or as null.                                (vercel/ai #19274; recorded traffic)
- Deltas of custom tools carry `custom.input`; the wire's types do not name them.                  (openai 3.49.0)

A call of a kind that nobody knows, and that names no function, grows in silence and is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import msgspec

from segue.conversation.arguments import encode_arguments
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM
from segue.protocols.openai_chat.calls import OLD_ID, read_signature
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import Block, Json, object_of


class _Call:
    """A call under way."""

    __slots__ = ("custom", "id", "name", "part")

    def __init__(self, part: Part, call_id: str, name: str) -> None:
        self.part = part
        self.id = call_id
        self.name = name  # as the wire has it; the part's may be mapped back
        self.custom: list[str] | None = None


class CallReader:
    """Reads deltas of calls into an assembly."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._by_index: dict[int, _Call] = {}
        self._unknown: dict[int | None, dict[str, object]] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._old: _Call | None = None
        self._custom: list[_Call] = []

    def grow(self, deltas: Json, out: Assembly) -> bool:
        """Take in a delta that says nothing but more arguments of one known call; say whether it was one."""
        if not isinstance(deltas, list) or len(deltas) != 1:
            return False
        entry = deltas[0]
        if not isinstance(entry, dict) or (len(entry) > 2 and (entry.get("id") or "extra_content" in entry)):
            return False
        function, index = entry.get("function"), entry.get("index")
        if not isinstance(index, int) or not isinstance(function, dict):
            return False
        arguments = function.get("arguments")
        if not isinstance(arguments, str) or (len(function) > 1 and function.get("name")):
            return False
        return self.grow_call(index, arguments, out)

    def grow_call(self, index: int, arguments: str, out: Assembly) -> bool:
        """Take in more arguments of a known call; say whether there were any."""
        call = self._by_index.get(index)
        if call is None or call.custom is not None or not arguments:
            return False
        self._last = call
        out.grow(call.part, arguments)
        return True

    def read(self, deltas: object, out: Assembly) -> None:
        """Take the calls of one delta in."""
        for entry in cast("list[object]", deltas) if isinstance(deltas, list) else ():
            if isinstance(entry, dict):
                self._read_entry(cast("Block", entry), out)

    def read_old(self, delta: object, out: Assembly) -> None:
        """Take a piece of a `function_call` in; there is only one."""
        if not isinstance(delta, Mapping):
            return
        function = cast("Block", delta)
        name = function.get("name")
        if self._old is None:
            wire_name = name if isinstance(name, str) else ""
            self._old = _Call(out.open_call(OLD_ID, wire_name), OLD_ID, wire_name)
            self._old.part.arguments = {}
        if isinstance(name, str) and name:
            _name(self._old, name, out)
        _grow(self._old, function.get("arguments"), out)

    def finish(self) -> None:
        """Spell the input of custom tools the way a whole reply would have it."""
        for call in self._custom:
            if call.custom is not None and call.part.closed is None:
                call.part.chunks = [encode_arguments({"input": join_chunks(call.custom)})]

    def _read_entry(self, entry: Block, out: Assembly) -> None:
        inner = entry.get("function")
        if inner is None and self._read_unknown(entry, out):
            return
        is_custom = inner is None and "custom" in entry
        function = cast("Block", inner) if isinstance(inner, dict) else object_of(entry.get("custom"))
        wire_id, wire_name_given, index = entry.get("id"), function.get("name"), entry.get("index")
        call_id = wire_id if isinstance(wire_id, str) else ""
        name = wire_name_given if isinstance(wire_name_given, str) else ""
        place = index if isinstance(index, int) else None
        arguments = function.get("input" if is_custom else "arguments")
        call = self._find(place, call_id, name, arguments)
        if call is None:
            call = _Call(out.open_call(call_id, name), call_id, name)
            call.part.arguments = {}  # until there are some
            if is_custom or entry.get("type") == "custom":
                call.part.extra = {PROTOCOL: {VERBATIM: {"type": "custom"}}}
                call.custom = []
                self._custom.append(call)
        else:
            self._complete(call, call_id, name, out)
        if place is not None:
            self._by_index[place] = call
        if call_id:
            self._by_id[call_id] = call
        self._last = call
        if "extra_content" in entry:
            wire_signature, _ = read_signature(entry["extra_content"], self._endpoint)
            call.part.signature = wire_signature or call.part.signature
        if call.custom is None:
            _grow(call, arguments, out)
        elif isinstance(arguments, str) and arguments:
            _grow_custom(call, arguments, out)

    def _read_unknown(self, entry: Block, out: Assembly) -> bool:
        """Take in a piece of a call that nobody knows; say whether it was one."""
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
        """Find the call a delta goes on with; None when it begins a new one."""
        known = self._by_index.get(index) if index is not None else self._by_id.get(call_id) if call_id else self._last
        if known is None:
            return None
        if call_id and known.id:
            return known if known.id == call_id else self._by_id.get(call_id) if index is None else None
        if not name or not known.name:
            return known
        if name != known.name:
            return known if index is not None and not known.part.chunks else None
        return None if _begins_anew(known, arguments) else known

    def _complete(self, call: _Call, call_id: str, name: str, out: Assembly) -> None:
        """Take an id or a name that came late, or more of the name."""
        if call_id and not call.id:
            call.id = call.part.id = call_id
        if name:
            _name(call, name, out)


def _name(call: _Call, given: str, out: Assembly) -> None:
    """Go on with the name of a call whose arguments have not begun; whoever says the same again adds nothing."""
    if given != call.name and not (call.name and call.part.chunks):
        call.name += given
        call.part.name = out.tool_names.get(call.name, call.name)


def _merge(known: dict[str, object], piece: Block) -> None:
    """Add a piece to an object: texts grow but for id and type, objects are merged, everything else replaces."""
    for key, value in piece.items():
        earlier = known.get(key)
        if isinstance(value, dict) and isinstance(earlier, dict):
            merged = dict(cast("dict[str, object]", earlier))
            _merge(merged, cast("Block", value))
            known[key] = merged
        elif isinstance(value, str) and isinstance(earlier, str) and key not in ("id", "type"):
            known[key] = earlier + value
        elif value is not None or key not in known:
            known[key] = value


def _begins_anew(call: _Call, arguments: object) -> bool:
    """Whether arguments start from the beginning although those of the call are complete."""
    if isinstance(arguments, Mapping):
        return bool(call.part.chunks)
    if not isinstance(arguments, str) or not arguments.startswith("{") or not call.part.chunks:
        return False
    try:
        msgspec.json.decode("".join(call.part.chunks))
    except (msgspec.DecodeError, ValueError):
        return False
    return True


def _grow(call: _Call, arguments: object, out: Assembly) -> None:
    if isinstance(arguments, str):
        if arguments:
            out.grow(call.part, arguments)
    elif isinstance(arguments, Mapping):
        out.grow(call.part, encode_arguments(cast("Block", arguments)))


def _grow_custom(call: _Call, given: str, out: Assembly) -> None:
    """Tell the input of a custom tool as the JSON that it becomes."""
    pieces = cast("list[str]", call.custom)
    opening = "" if pieces else '{"input":"'
    pieces.append(given)
    out.grow(call.part, opening + json.dumps(given, ensure_ascii=False)[1:-1])
