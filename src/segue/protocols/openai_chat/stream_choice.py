"""One choice of a streamed reply: its deltas, read into an assembly.

Facts this file rests on:
- A message has one text and one reasoning, even if their deltas alternate. A whole reply has each of them once, so here
  each stays open until the end.                                                       (pi-ai 1.5.0, ktsoator/or)
- Reasoning and text may share a delta, and reasoning comes first.                     (LiteLLM; pi-ai 1.5.0)
- Groq sends an entry of `executed_tools` when the tool starts and again, under the same index, when it has ended.
                                                                        (groq 1.5.0: ChoiceDelta.executed_tools)
- A token that looks like a number may arrive as one: `"content": 6`, also in reasoning.
                                                           (Cloudflare Workers AI: cloudflare/ai #651 of 2026-09-02)

Nearly every chunk adds to an open part, so that case has a fast path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import NativeContent
from segue.conversation.events import Event
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.openai_chat.calls import find_signature
from segue.protocols.openai_chat.content import dump_value
from segue.protocols.openai_chat.fast_decode import Delta, Json
from segue.protocols.openai_chat.native import REFUSAL_FIELD, audio_content, decode_refusal_part, images_content
from segue.protocols.openai_chat.reasoning import FIELDS, StreamedDetails, dump_details
from segue.protocols.openai_chat.stream_calls import CallReader
from segue.protocols.openai_chat.think_tags import TagReader

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
            if self._endpoint.dialect.think_tags:
                if self._tags is None:
                    self._tags = TagReader(out)
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
        """Give the text of details that come alone, or nothing if a field before them had the same text."""
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
        if self._tags is not None:
            self._tags.finish()
        if self._details and self._thinking is not None:
            if self._thinking.signature is not None:
                # The field beside the details repeats their text.
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
