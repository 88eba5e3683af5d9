"""One choice of a streamed reply: its deltas, read into an assembly.

Nearly every chunk adds to an open part, so that case has a fast path.

Tool calls in a stream: which call a delta belongs to, and its arguments.

A call of an unknown type without a function is assembled without events and becomes native content.

Facts:
- A message has one text and one reasoning, even if their deltas alternate. A whole reply has each of them once, so here
  each stays open until the end.                                                       (pi-ai 1.5.0, ktsoator/or)
- Reasoning and text may share a delta, and reasoning comes first.                     (LiteLLM; pi-ai 1.5.0)
- Groq sends an entry of `executed_tools` when the tool starts and again, under the same index, when it has ended.
                                                                        (groq 1.5.0: ChoiceDelta.executed_tools)
- A token that looks like a number may arrive as one: `"content": 6`, also in reasoning.
                                                           (Cloudflare Workers AI: cloudflare/ai #651 of 2026-09-02)
- A call is identified by its index; id and name come with its first delta.                        (openai 3.49.0)
- Some vendors send the index 0 for every call, or none: a new id is a new call.
                                                                      (maka #1976, vercel/ai #14277, smolagents #1958)
- Some repeat the name in every delta, and some send neither id nor index: then a second name, or arguments that start
  again after complete ones, are a new call.                             (maka #1976, Qwen-Agent #943, gcli2api #406)
- Some send the name in pieces: before its arguments begin, another name under the same index continues it.
                                                      (openai 3.49.0: its accumulator joins all texts of deltas)
- Arguments are a text, an object, or null.                                        (vercel/ai #19274; recorded traffic)
- Deltas of custom tools have `custom.input`, which the types of the SDK do not name.              (openai 3.49.0)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import NativeContent
from segue.conversation.events import Event
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.openai_chat.assistant import CUSTOM, OLD_ID, find_signature
from segue.protocols.openai_chat.content import (
    REFUSAL_FIELD,
    audio_content,
    decode_refusal_part,
    dump_value,
    images_content,
)
from segue.protocols.openai_chat.fast_decode import Delta, Json
from segue.protocols.openai_chat.reasoning import FIELDS, StreamedDetails, TagReader, dump_details, leading_tag


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
"""The fields of calls that are not functions, for the start event."""


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
        """Return the part of the call that arguments are added to; None if it is not known or there are none."""
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
        """Read a piece of a call of an unknown type; return whether it was one."""
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


_READ_KEYS: Final = frozenset({"index", "delta", "message", "finish_reason", "usage", "error"})
_PLAIN_DELTA: Final = frozenset({"role", "content"})
_EMPTY: Final = frozenset({"content", *FIELDS, "reasoning_details", "tool_calls", "refusal", "images"})
"""Keys of a delta that vendors send with empty values."""
_AUDIO_TEXTS: Final = frozenset({"data", "transcript"})
"""Keys of audio that grow."""


class ChoiceReader:
    """Reads the deltas of one choice into an assembly."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._text: Part | None = None
        self._tags: TagReader | None = None
        self._lead = ""  # the beginning of the text, as long as it may become a tag
        self._thinking: Part | None = None
        self._growing: dict[str, Part] = {}  # open parts, by the key that adds to them
        self._details = StreamedDetails()
        self._detailed = 0
        """How many characters of the reasoning the details have so far."""
        self._calls = CallReader(endpoint)
        self._audio: Wire = {}
        self._images: list[object] = []
        self._fields: dict[str, Part] = {}  # native parts, by their key; each keeps its first place
        self._signature: str | None = None
        self.message_fields: Wire = {}
        self.choice_fields: Wire = {}
        self.reason: str | None = None
        self.finished: bool = False

    def grow_by(self, delta: Delta) -> list[Event] | None:
        """Read a delta of the fast path; None unless it has exactly one value, and that adds to an open part."""
        key, text = "content", delta.content
        if delta.reasoning_content:
            if text:
                return None
            key, text = "reasoning_content", delta.reasoning_content
        if delta.reasoning:
            if text:
                return None
            key, text = "reasoning", delta.reasoning
        if delta.tool_calls is not None:
            call = delta.tool_calls[0]
            if text:
                return None
            text = call.function.arguments
            part = self._calls.find_growing(call.index, text)
        else:
            part = self._growing.get(key)
        return part.extend(text) if part is not None and text else None

    def read(self, choice: dict[str, Json], out: Assembly) -> None:
        """Read one choice of a chunk."""
        for key, value in choice.items():
            if value is None:  # first, because most of them are null
                continue
            if key == "delta" or (key == "message" and choice.get("delta") is None):
                if isinstance(value, dict):
                    self._read_delta(value, out)
            elif key == "finish_reason":
                if isinstance(value, str) and value:
                    self.reason, self.finished = value, True
            elif key not in _READ_KEYS:
                self._keep_of_choice(key, value)

    def _keep_of_choice(self, key: str, value: object) -> None:
        """Keep a key of the choice; lists in it, such as log probabilities, grow."""
        earlier = self.choice_fields.get(key)
        if isinstance(value, Mapping) and isinstance(earlier, dict):
            known = cast("Wire", earlier)
            for name, inner in cast("Block", value).items():
                grown = known.get(name)
                if isinstance(inner, list) and isinstance(grown, list):
                    known[name] = [*cast("list[object]", grown), *cast("list[object]", inner)]
                elif inner is not None or name not in known:
                    known[name] = inner
        else:
            self.choice_fields[key] = dict(cast("Block", value)) if isinstance(value, Mapping) else value

    def _read_delta(self, delta: dict[str, Json], out: Assembly) -> None:
        key, value, count = "", None, 0
        for name, given in delta.items():
            if given is None or name == "role" or (not given and name in _EMPTY and given != 0):
                continue
            key, value, count = name, given, count + 1
        part = self._growing.get(key) if count == 1 else None
        if part is not None and isinstance(value, str):  # nearly all
            out.grow(part, value)
        elif count == 1 and key == "tool_calls":
            self._calls.read(value, out)
        elif count:
            self._read_reasoning(delta, out)
            content = delta.get("content")
            if type(content) is not str and (written := dump_value(content)) is not None:
                content = written
            if content:
                self._read_content(content, out)
            self._read_fields(delta, out)

    def _read_content(self, content: object, out: Assembly) -> None:
        if isinstance(content, str):
            if self._tags is None and self._text is None:
                content = self._lead + content
                is_tag = True if self._endpoint.dialect.think_tags else leading_tag(content)
                self._lead = content if is_tag is None else ""
                if is_tag is None:
                    return
                if is_tag:
                    self._tags = TagReader(out, leads=not self._endpoint.dialect.think_tags)
            if self._tags is not None:
                self._tags.feed(content)
                return
            if self._text is None:
                self._text = self._growing["content"] = out.open_text()
            out.grow(self._text, content)
        elif isinstance(content, list):
            for part in cast("list[object]", content):
                if not isinstance(part, Mapping):
                    continue
                block = cast("Block", part)
                if block.get("type") == "text" and isinstance(text := block.get("text"), str):
                    self._read_content(text, out)
                elif (refusal := decode_refusal_part(block)) is not None:
                    opened = out.open_text()
                    opened.extra = refusal.extra
                    out.grow(opened, refusal.text)
                else:
                    out.add_native(dict(block))

    def _read_reasoning(self, delta: Block, out: Assembly) -> None:
        added, field = "", None
        for name in FIELDS:
            text = delta.get(name)
            if isinstance(text, (int, float)):
                text = dump_value(text)
            if isinstance(text, str) and text:
                added, field = text, name
                break
        if details := delta.get("reasoning_details"):
            readable = self._details.add(details)
            added = added or self._unrepeated(readable)
            self._detailed += len(readable)
        if not added and not details:
            return
        if self._thinking is None:
            self._thinking = out.open_thinking(None if field is None else {"field": field})
        if field is not None:
            self._growing[field] = self._thinking
            if self._thinking.signature is None:
                self._thinking.signature = field
        if added:
            out.grow(self._thinking, added)

    def _unrepeated(self, readable: str) -> str:
        """Return the text of details that come alone, or nothing if a field before them had the same text."""
        if not readable or self._thinking is None or self._thinking.signature is None:
            return readable
        streamed = join_chunks(self._thinking.chunks)
        return "" if streamed.startswith(readable, self._detailed) else readable

    def _read_fields(self, delta: dict[str, Json], out: Assembly) -> None:
        for key, value in delta.items():
            if value is None or key in _PLAIN_DELTA:
                continue
            match key:
                case "tool_calls":
                    self._calls.read(value, out)
                case "function_call":
                    self._calls.read_old(value, out)
                case "refusal":
                    if isinstance(value, str) and value:
                        self._read_refusal(value, out)
                case "audio":
                    self._read_audio(value, out)
                case "images":
                    self._read_images(value, out)
                case "extra_content":
                    self._read_signature(value)
                case "reasoning_details" | "reasoning_content" | "reasoning" | "reasoning_text":
                    pass
                case _:
                    self._keep_of_message(key, value)

    def _read_refusal(self, text: str, out: Assembly) -> None:
        part = self._growing.get("refusal")
        if part is None:
            part = self._growing["refusal"] = out.open_text({"field": "refusal"})
            part.extra = REFUSAL_FIELD
        out.grow(part, text)

    def _keep_of_message(self, key: str, value: object) -> None:
        """Keep a key of the message; a list, such as annotations, grows."""
        earlier = self.message_fields.get(key)
        if isinstance(value, list) and isinstance(earlier, list):
            self.message_fields[key] = _merge_entries(cast("list[object]", earlier), cast("list[object]", value))
        else:
            self.message_fields[key] = value

    def _read_images(self, value: object, out: Assembly) -> None:
        if not isinstance(value, list) or not value:
            return
        if not self._images:
            self._fields["images"] = out.add_native({"images": []})
        self._images += cast("list[object]", value)

    def _read_audio(self, value: object, out: Assembly) -> None:
        if not isinstance(value, Mapping):
            return
        if "audio" not in self._fields:
            self._fields["audio"] = out.add_native({"audio": {}})
        for key, piece in cast("Block", value).items():
            earlier = self._audio.get(key)
            if key in _AUDIO_TEXTS and isinstance(piece, str):
                pieces = cast("list[str]", earlier) if isinstance(earlier, list) else list[str]()
                pieces.append(piece)
                self._audio[key] = pieces
            elif piece is not None or key not in self._audio:
                self._audio[key] = piece

    def _read_signature(self, value: object) -> None:
        signature = find_signature(value, self._endpoint)
        if signature is not None:
            self._signature = signature
        elif value:
            self._keep_of_message("extra_content", value)

    @property
    def has_old_call(self) -> bool:
        """Whether a call was streamed as `function_call`."""
        return self._calls.has_old

    def finish(self, out: Assembly) -> None:
        """Add what is complete only at the end: signatures, and native content."""
        if self._lead:
            self._text = out.open_text()
            out.grow(self._text, self._lead)
        if self._tags is not None:
            self._tags.finish()
        if self._details and self._thinking is not None:
            if self._thinking.signature is not None:
                # The field next to the details repeats their text.
                self.message_fields[self._thinking.signature] = join_chunks(self._thinking.chunks)
            self._thinking.signature = dump_details(self._details.entries())
        if self._signature is not None:
            text = self._text or next((part for part in out.parts if part.kind == "text" and part.extra is None), None)
            if text is not None:
                text.signature = self._signature
        for key, native in self._natives().items():
            self._fields[key].block, self._fields[key].fallback = native.block, native.fallback
        self._calls.finish()

    def _natives(self) -> dict[str, NativeContent]:
        found: dict[str, NativeContent] = {}
        if "audio" in self._fields:
            joined = {
                key: join_chunks(cast("list[str]", value)) if key in _AUDIO_TEXTS and isinstance(value, list) else value
                for key, value in self._audio.items()
            }
            found["audio"] = audio_content(joined)
        if self._images:
            found["images"] = images_content(self._images)
        return found


def _merge_entries(known: list[object], added: list[object]) -> list[object]:
    """Add entries to a list; an entry whose index is known replaces the values of the earlier one."""
    merged = list(known)
    for entry in added:
        at = _find_entry(merged, entry)
        if at is None:
            merged.append(entry)
        else:
            merged[at] = {**cast("Block", merged[at]), **cast("Block", entry)}
    return merged


def _find_entry(entries: list[object], entry: object) -> int | None:
    index = cast("Block", entry).get("index") if isinstance(entry, dict) else None
    if not isinstance(index, int):
        return None
    for at, earlier in enumerate(entries):
        if isinstance(earlier, dict) and cast("Block", earlier).get("index") == index:
            return at
    return None
