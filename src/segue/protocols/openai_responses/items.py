"""The items of a model's turn, both ways: messages, reasoning, calls, and what only this wire knows.

Facts this file rests on:
- A reply is a list of items; neighbouring items of the model's are one turn.                       (openai 3.49.0)
- A reasoning item is replayed whole, with its `encrypted_content`, and next to the item it led to; with nothing stored,
  a bare `id` leads nowhere.                                   (vercel/ai #7099, mastra #8738, opencode #7724)
- Item ids are sent with their reasoning or not at all; `call_id` always.             (mastra #10713, rig #751)
- `phase` of a message, `namespace` and `caller` of a call are to be sent back.        (openai 3.49.0)
- The type of a message may be left out; llama.cpp knows one of the model's by nothing else.   (llama.cpp #26394; tried)
- A custom tool takes one text and not an object.                                          (openai 3.49.0)
- Reasoning comes as several summaries, or as plain content from open models.    (recorded traffic, 2026-11; llama.cpp)

How it is kept. What the server needs to recognise an item as its own (ids, encrypted content, status, phase) is the
signature of the content, as compact JSON, and goes where signatures go: home or nowhere. A reasoning item that carries
nothing encrypted has no signature; what it said, and the ids of the items that follow it, are kept as spelling, and are
written only as long as that thinking stands in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

import msgspec

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.protocols.kit.reading import VERBATIM, extra_of, left_over, verbatim_of
from segue.protocols.openai_responses.content import ABSENT, Wire, object_of
from segue.protocols.openai_responses.native import Item, native_item
from segue.protocols.openai_responses.rules import PROTOCOL

_MESSAGE_KEYS: Final = frozenset({"type", "role", "content"})
_REASONING_KEYS: Final = frozenset({"type", "summary", "content"})
_CALL_KEYS: Final = frozenset({"type", "call_id", "name", "arguments"})
_CUSTOM_KEYS: Final = frozenset({"type", "call_id", "name", "input"})
_PART_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
    "input_text": frozenset({"type", "text"}),
    "text": frozenset({"type", "text"}),
}
_EMPTY_LISTS: Final = ("annotations", "logprobs")
"""Lists that an `output_text` carries although they are empty."""

_LENGTHS: Final = frozenset({"summary_lengths", "content_lengths"})
"""In a signature: how long the texts were that `thinking` joins, where one summary does not say it all."""

_ENCODER: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def wire_signature(fields: Mapping[str, object]) -> str | None:
    """Write what belongs to the provider as a signature; None when there is nothing."""
    return _ENCODER.encode(fields).decode() if fields else None


def decode_signature(signature: str | None) -> dict[str, object] | None:
    """Read a signature that `wire_signature` wrote; None for any other text."""
    if not signature or signature[0] != "{":
        return None
    try:
        return _DECODE(signature)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


# -- reading -----------------------------------------------------------------------------------------------------------


class TurnReader:
    """Reads the items of one turn in order; `bare` once thinking has come by that cannot be replayed."""

    __slots__ = ("bare", "diagnostics", "tool_names")

    def __init__(self, tool_names: Mapping[str, str] | None = None) -> None:
        self.bare = False
        self.diagnostics: list[Diagnostic] = []
        self.tool_names = tool_names or {}

    def read_all(self, items: Iterable[object]) -> tuple[AssistantContent, ...]:
        """Read a list of items; what is no object at all is left to the caller's exactness."""
        content: list[AssistantContent] = []
        for item in items:
            if isinstance(item, (dict, Mapping)):
                content.extend(self.read(cast("Item", item)))
        return tuple(content)

    def read(self, item: Item) -> Sequence[AssistantContent]:
        """Read one item; a message may hold several texts."""
        kind = item.get("type")
        if kind == "function_call":
            return (self._call(item),)
        if kind == "reasoning":
            return (self._reasoning(item),)
        if kind == "message" or (kind is None and "role" in item):
            return self._message(item)
        if kind == "custom_tool_call":
            return (self._custom_call(item),)
        return (native_item(item),)

    def _signed(self, fields: Wire, verbatim: Wire) -> str | None:
        """Give the signature, or put it into the shape when the thinking before it cannot be replayed."""
        text = wire_signature(fields)
        if self.bare and "id" in fields:
            verbatim["signature"] = text
            return None
        return text

    def _message(self, item: Item) -> Sequence[AssistantContent]:
        content = item.get("content")
        fields: Wire = {key: value for key, value in item.items() if key not in _MESSAGE_KEYS}
        if item.get("role", "assistant") != "assistant":
            return (native_item(item),)
        verbatim: Wire = {} if "role" in item else {"role": ABSENT}
        owned = "id" in fields
        if item.get("type") != "message":
            verbatim["type"] = item.get("type", ABSENT)
        if isinstance(content, str):
            if owned:
                verbatim["list"] = False
            signature = self._signed(fields, verbatim)
            return (TextContent(text=content, text_signature=signature, extra=_extra_of_verbatim(verbatim)),)
        parts = cast("list[object]", content) if isinstance(content, list) else []
        if not parts or not all(_is_part(part) for part in parts):
            return (native_item(item),)
        if not owned:
            verbatim["list"] = True
        signature = self._signed(fields, verbatim)
        read = [_decode_part(cast("Item", parts[0]), verbatim, signature)]
        read.extend(_decode_part(cast("Item", part), {"joined": True}, None) for part in parts[1:])
        return read

    def _reasoning(self, item: Item) -> AssistantContent:
        fields: Wire = {key: value for key, value in item.items() if key not in _REASONING_KEYS}
        given = item.get("content")
        summary = _texts(item.get("summary"), "summary_text")
        content = None if given is None else _texts(given, "reasoning_text")
        whole = summary is not None and (given is None or content is not None)
        thinking = "\n\n".join([*(summary or ()), *(content or ())]) if whole else thinking_of(item)
        if summary is None or not whole:
            # Parts that say more than their text are kept whole; cutting the joined words would not bring them back.
            fields["summary"] = item.get("summary", ABSENT)
            if "content" in item:
                fields["content"] = item["content"]
        else:
            if content or summary != ([thinking] if thinking else []):
                fields["summary_lengths"] = _lengths(summary)
            if content is not None:
                fields["content_lengths"] = _lengths(content)
            elif "content" in item:
                fields["content"] = None
        secret = fields.get("encrypted_content")
        if isinstance(secret, str) and secret:
            signature = secret if len(fields) == 1 and secret[0] != "{" else wire_signature(fields)
            return ThinkingContent(thinking=thinking, thinking_signature=signature)
        self.bare = True
        return ThinkingContent(thinking=thinking, extra={PROTOCOL: {VERBATIM: {"reasoning": fields}}})

    def _call(self, item: Item) -> AssistantContent:
        call_id, name, text = item.get("call_id"), item.get("name"), item.get("arguments")
        if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(text, str):
            return native_item(item)
        parsed = parse_arguments(text)
        if parsed.diagnostic is not None:
            self.diagnostics.append(parsed.diagnostic)
        verbatim: Wire = {}
        signature = None
        if len(item) > 4:
            signature = self._signed({key: value for key, value in item.items() if key not in _CALL_KEYS}, verbatim)
        return ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments=parsed.arguments,
            arguments_text=parsed.text,
            thought_signature=signature,
            extra=_extra_of_verbatim(verbatim),
        )

    def _custom_call(self, item: Item) -> AssistantContent:
        call_id, name, text = item.get("call_id"), item.get("name"), item.get("input")
        if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(text, str):
            return native_item(item)
        verbatim: Wire = {"custom": True}
        signature = self._signed({key: value for key, value in item.items() if key not in _CUSTOM_KEYS}, verbatim)
        return ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments={"input": text},
            thought_signature=signature,
            extra=_extra_of_verbatim(verbatim),
        )


def thinking_of(item: Item) -> str:
    """Give what a reasoning item says: its summaries, then its content, with blank lines between them."""
    summary, content = _texts(item.get("summary"), None), _texts(item.get("content"), None)
    return "\n\n".join([*(summary or ()), *(content or ())])


def is_custom(call: ToolCall) -> bool:
    """Say whether a call is one of a tool that takes a text."""
    return call.extra is not None and verbatim_of(call.extra, PROTOCOL).get("custom") is True


def _extra_of_verbatim(verbatim: Wire) -> Extra | None:
    return {PROTOCOL: {VERBATIM: verbatim}} if verbatim else None


def _is_part(part: object) -> bool:
    if not isinstance(part, (dict, Mapping)):
        return False
    known = cast("Item", part)
    kind = known.get("type")
    if not isinstance(kind, str) or kind not in _PART_KEYS:
        return False
    return isinstance(known.get("refusal" if kind == "refusal" else "text"), str)


def _decode_part(part: Item, verbatim: Wire, signature: str | None) -> TextContent:
    kind = str(part["type"])
    known = _PART_KEYS[kind]
    if kind == "output_text":
        known = {"type", "text"}
        for key in _EMPTY_LISTS:
            if key not in part:
                verbatim[key] = ABSENT
            elif part[key] == []:
                known.add(key)
    else:
        verbatim["part"] = kind
    text = cast("str", part["refusal" if kind == "refusal" else "text"])
    return TextContent(text=text, text_signature=signature, extra=extra_of(PROTOCOL, part, known, verbatim))


def _texts(parts: object, kind: str | None) -> list[str] | None:
    """Give the texts of a list of parts; None when it is not made of such parts alone (any, where no kind is asked)."""
    if not isinstance(parts, list):
        return None
    found: list[str] = []
    for part in cast("list[object]", parts):
        item = object_of(part)
        text = item.get("text")
        if isinstance(text, str) and (kind is None or (len(item) == 2 and item.get("type") == kind)):
            found.append(text)
        elif kind is not None:
            return None
    return found


def _lengths(texts: list[str]) -> list[int]:
    return [len(text) for text in texts]


# -- writing -----------------------------------------------------------------------------------------------------------


def write_turn(items: list[Wire], content: Sequence[AssistantContent], *, open_reasoning: bool = False) -> bool:
    """Add the items of a turn, in order; says whether one of its calls was spelt in a way of its own.

    Raises:
        EncodeError: thinking without a signature where only signed thinking can be told, another protocol's block, or
            arguments that are no JSON; its path begins with the place in the content.
    """
    bare = has_original_call = False
    joinable: list[Wire] | None = None
    index = 0
    try:
        for index, piece in enumerate(content):  # noqa: B007 - the place of a failure
            if type(piece) is ToolCall:
                items.append(_encode_call(piece, bare=bare))
                has_original_call = has_original_call or piece.extra is not None
            elif type(piece) is TextContent:
                joinable = _write_text(piece, items, joinable, bare=bare)
                continue
            elif type(piece) is ThinkingContent:
                bare = bare or not piece.thinking_signature
                items.append(_encode_thinking(piece, open_reasoning=open_reasoning))
            else:
                items.append(_encode_native(piece))
            joinable = None
    except EncodeError as error:
        raise EncodeError(error.reason, path=(index, *error.path)) from error
    return has_original_call


def _fields(signature: str | None, extra: Extra | None, *, bare: bool) -> Wire:
    """Give what the provider needs to recognise its item. It was read just now: an item may be built upon it."""
    fields = decode_signature(signature)
    if fields is None and bare and extra is not None:
        kept = verbatim_of(extra, PROTOCOL).get("signature")
        fields = decode_signature(kept) if isinstance(kept, str) else None
    return fields or {}


def _write_text(piece: TextContent, items: list[Wire], joinable: list[Wire] | None, *, bare: bool) -> list[Wire] | None:
    """Write a text as a message, or into the message before it; gives the list of parts, which the next may join."""
    verbatim, data = verbatim_of(piece.extra, PROTOCOL), left_over(piece.extra, PROTOCOL)
    if joinable is not None and verbatim.get("joined") is True:
        joinable.append(_encode_part(piece, verbatim))
        return joinable
    item = _fields(piece.text_signature, piece.extra, bare=bare)
    items.append(item)
    owned = "id" in item
    kind = verbatim.get("type", "message")
    if kind != ABSENT:
        item["type"] = kind
    if verbatim.get("role") != ABSENT:
        item["role"] = "assistant"
    if not (verbatim.get("list", owned) or data or "part" in verbatim or verbatim.get("joined")):
        item["content"] = piece.text
        return None
    parts = [_encode_part(piece, verbatim)]
    item["content"] = parts
    return parts


def _encode_part(piece: TextContent, verbatim: Mapping[str, object]) -> Wire:
    part = dict(left_over(piece.extra, PROTOCOL))
    kind = verbatim.get("part", "output_text")
    part["type"] = kind
    part["refusal" if kind == "refusal" else "text"] = piece.text
    if kind == "output_text":
        for key in _EMPTY_LISTS:
            if key not in part and verbatim.get(key) != ABSENT:
                part[key] = []
    return part


def _encode_call(call: ToolCall, *, bare: bool) -> Wire:
    item = _fields(call.thought_signature, call.extra, bare=bare)
    if is_custom(call) and isinstance(given := call.arguments.get("input"), str):
        return {**item, "type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": given}
    text = call.arguments_text
    arguments = encode_arguments(call.arguments) if text is None else text
    return {**item, "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _encode_native(piece: NativeContent) -> Wire:
    if piece.protocol != PROTOCOL:
        raise EncodeError(f"a block of {piece.protocol}")
    return dict(piece.block)


def _encode_thinking(piece: ThinkingContent, *, open_reasoning: bool) -> Wire:
    signature, thinking = piece.thinking_signature, piece.thinking
    if signature:
        # A signature in another form than ours is the encrypted content itself.
        item = decode_signature(signature) or {"encrypted_content": signature}
        if "summary" in item or not _LENGTHS.isdisjoint(item):
            return _rebuilt(thinking, item)
        item["type"] = "reasoning"
        item["summary"] = [{"type": "summary_text", "text": thinking}] if thinking else []
        return item
    kept = verbatim_of(piece.extra, PROTOCOL).get("reasoning")
    if isinstance(kept, Mapping):
        return _rebuilt(thinking, cast("Mapping[str, object]", kept))
    if open_reasoning:
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": thinking}]}
    raise EncodeError("thinking without a signature; this wire replays signed thinking alone")


def _rebuilt(thinking: str, fields: Mapping[str, object]) -> Wire:
    """Put a reasoning item together again: its words cut where they were joined."""
    item: Wire = {key: value for key, value in fields.items() if value != ABSENT and key not in _LENGTHS}
    item["type"] = "reasoning"
    summaries, contents = _cuts(fields.get("summary_lengths")), _cuts(fields.get("content_lengths"))
    if contents is not None:
        item["content"] = list[Wire]()
    lengths = [*(summaries or ()), *(contents or ())]
    if summaries is None or sum(lengths) + 2 * max(0, len(lengths) - 1) != len(thinking):
        if "summary" not in fields:
            item["summary"] = [{"type": "summary_text", "text": thinking}] if thinking else []
        return item
    texts: list[str] = []
    place = 0
    for length in lengths:
        texts.append(thinking[place : place + length])
        place += length + 2
    item["summary"] = [{"type": "summary_text", "text": text} for text in texts[: len(summaries)]]
    if contents is not None:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in texts[len(summaries) :]]
    return item


def _cuts(given: object) -> list[int] | None:
    return cast("list[int]", given) if isinstance(given, list) else None
