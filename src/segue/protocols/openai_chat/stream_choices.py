"""One choice of a streamed reply: its deltas, read into an assembly.

Facts this file rests on:
- A message has one text and one reasoning, however often they take turns; so its whole reply has them once, and here
  each stays open until the end.                                                       (pi-ai 1.5.0, ktsoator/or)
- Reasoning and text may share a delta, and reasoning comes first.                     (LiteLLM; pi-ai 1.5.0)
- A token that looks like a number may come as one: `"content": 6`, also in reasoning.
                                                           (Cloudflare Workers AI: cloudflare/ai #651 of 2026-09-02)

Nearly all of a stream is growth of what is open, so that is asked first, and it takes the short way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import NativeContent
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.openai_chat.calls import read_signature
from segue.protocols.openai_chat.content import restore_value
from segue.protocols.openai_chat.fast_decode import Delta
from segue.protocols.openai_chat.message_fields import REFUSED, audio_content, images_content, read_refusal
from segue.protocols.openai_chat.reasoning import FIELDS, dump_details, merge_details
from segue.protocols.openai_chat.stream_calls import CallReader
from segue.protocols.openai_chat.think_tags import TagReader
from segue.protocols.openai_chat.verbatim import Block, Json

_QUIET: Final = frozenset({"index", "delta", "message", "finish_reason", "usage", "error"})
_PLAIN_DELTA: Final = frozenset({"role", "content"})
_EMPTY: Final = frozenset({"content", *FIELDS, "reasoning_details", "tool_calls", "refusal", "images"})
"""Keys of a delta that vendors send along with nothing in them."""
_SOUND: Final = frozenset({"data", "transcript"})
"""What grows of an answer that is spoken."""


class ChoiceReader:
    """Reads the deltas of one choice into an assembly."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._text: Part | None = None
        self._tags: TagReader | None = None
        self._thinking: Part | None = None
        self._growing: dict[str, Part] = {}  # open parts, by the key that brings more of them
        self._details: list[dict[str, object]] = []
        self._calls = CallReader(endpoint)
        self._audio: dict[str, object] = {}
        self._images: list[object] = []
        self._fields: dict[str, Part] = {}  # what only this wire knows, by its key; it stands where it began
        self._encode_signature: str | None = None
        self.left: dict[str, object] = {}
        self.beside: dict[str, object] = {}
        self.reason: str | None = None
        self.finished = False

    def grow_by(self, delta: Delta, out: Assembly) -> bool:
        """Take in one value more of what is open; say whether there was one, and only one."""
        key, text = "content", delta.content
        if delta.reasoning_content:
            if text:
                return False
            key, text = "reasoning_content", delta.reasoning_content
        if delta.reasoning:
            if text:
                return False
            key, text = "reasoning", delta.reasoning
        if delta.tool_calls is not None:
            call = delta.tool_calls[0]
            return not text and self._calls.grow_call(call.index, call.function.arguments, out)
        part = self._growing.get(key)
        if part is None or not text:
            return False
        out.grow(part, text)
        return True

    def grow(self, choice: dict[str, Json], out: Assembly) -> bool:
        """Take in a choice that says nothing but more of what is open; say whether it was one.

        Most chunks bring one value, more words, reasoning or arguments, so they take the short way.
        """
        delta: Json = None
        for name, given in choice.items():
            if given is None:  # first, for that is what most of them are
                continue
            if name == "delta":
                delta = given
            elif name != "index" or given != 0:
                return False
        if not isinstance(delta, dict):
            return False
        key, value = "", None
        for name, given in delta.items():
            if given is None or name == "role" or (not given and name in _EMPTY):
                continue
            if value is not None:
                return False
            key, value = name, given
        if key == "tool_calls":
            return self._calls.grow(value, out)
        part = self._growing.get(key)
        if part is None or not isinstance(value, str):
            return False
        out.grow(part, value)
        return True

    def read(self, choice: Block, out: Assembly) -> None:
        """Take one choice of a chunk in."""
        delta = choice.get("delta")
        if delta is None:
            delta = choice.get("message")
        if isinstance(delta, dict) and delta:
            self._read_delta(cast("Block", delta), out)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.reason = reason
            self.finished = True
        for key, value in choice.items():
            if value is not None and key not in _QUIET:
                self._read_beside(key, value)

    def _read_beside(self, key: str, value: object) -> None:
        """Keep what a choice says of itself; lists in it, such as log probabilities, grow."""
        earlier = self.beside.get(key)
        if isinstance(value, Mapping) and isinstance(earlier, dict):
            known = cast("dict[str, object]", earlier)
            for name, inner in cast("Block", value).items():
                grown = known.get(name)
                if isinstance(inner, list) and isinstance(grown, list):
                    known[name] = [*cast("list[object]", grown), *cast("list[object]", inner)]
                elif inner is not None or name not in known:
                    known[name] = inner
        else:
            self.beside[key] = dict(cast("Block", value)) if isinstance(value, Mapping) else value

    def _read_delta(self, delta: Block, out: Assembly) -> None:
        content = delta.get("content")
        if type(content) is not str and (value := restore_value(content)) is not None:
            content = value
        if not delta.keys() <= _PLAIN_DELTA:
            self._read_reasoning(delta, out)
            if content:
                self._read_content(content, out)
            self._read_fields(delta, out)
        elif content:
            self._read_content(content, out)

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
                elif (refusal := read_refusal(block)) is not None:
                    opened = out.open_text()
                    opened.extra = refusal.extra
                    out.grow(opened, refusal.text)
                else:
                    out.add_native(dict(block))

    def _read_reasoning(self, delta: Block, out: Assembly) -> None:
        given, field = "", None
        for name in FIELDS:
            text = delta.get(name)
            if isinstance(text, (int, float)):
                text = restore_value(text)
            if isinstance(text, str) and text:
                given, field = text, name
                break
        if details := delta.get("reasoning_details"):
            readable = merge_details(self._details, details)
            given = given or readable
        if not given and not details:
            return
        if self._thinking is None:
            self._thinking = out.open_thinking()
        if field is not None:
            self._growing[field] = self._thinking
            if self._thinking.signature is None:
                self._thinking.signature = field
        if given:
            out.grow(self._thinking, given)

    def _read_fields(self, delta: Block, out: Assembly) -> None:
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
                    self._read_left(key, value)

    def _read_refusal(self, text: str, out: Assembly) -> None:
        part = self._growing.get("refusal")
        if part is None:
            part = self._growing["refusal"] = out.open_text()
            part.extra = REFUSED
        out.grow(part, text)

    def _read_left(self, key: str, value: object) -> None:
        """Keep fields nobody knows; lists in them, such as annotations, grow."""
        earlier = self.left.get(key)
        if isinstance(value, list) and isinstance(earlier, list):
            self.left[key] = [*cast("list[object]", earlier), *cast("list[object]", value)]
        else:
            self.left[key] = value

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
            if key in _SOUND and isinstance(piece, str):
                pieces = cast("list[str]", earlier) if isinstance(earlier, list) else list[str]()
                pieces.append(piece)
                self._audio[key] = pieces
            elif piece is not None or key not in self._audio:
                self._audio[key] = piece

    def _read_signature(self, value: object) -> None:
        wire_signature, rest = read_signature(value, self._endpoint)
        if wire_signature is not None:
            self._encode_signature = wire_signature
        elif rest:
            self._read_left("extra_content", rest)

    def finish(self, out: Assembly) -> None:
        """Say what can only be said at the end: seals, and what this wire alone knows."""
        if self._tags is not None:
            self._tags.finish()
        if self._details and self._thinking is not None:
            self._thinking.signature = dump_details(self._details)
        if self._encode_signature is not None:
            text = self._text or next((part for part in out.parts if part.kind == "text" and part.extra is None), None)
            if text is not None:
                text.signature = self._encode_signature
        for key, native in self._natives().items():
            self._fields[key].block, self._fields[key].fallback = native.block, native.fallback
        self._calls.finish()

    def _natives(self) -> dict[str, NativeContent]:
        found: dict[str, NativeContent] = {}
        if "audio" in self._fields:
            joined = {
                key: join_chunks(cast("list[str]", value)) if key in _SOUND and isinstance(value, list) else value
                for key, value in self._audio.items()
            }
            found["audio"] = audio_content(joined)
        if self._images:
            found["images"] = images_content(self._images)
        return found
