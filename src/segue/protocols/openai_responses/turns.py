"""Items of the model's turn: messages, reasoning, calls, and items that only this protocol has.

What the server needs to recognise an item (id, status, encrypted content) is the signature of the content, see
`thinking`. Other models do not receive it.

Choices kept in `extra` (see `kit.verbatim`); items of a reply are items of the next request, so they have them too:
- `turn`: "same" for a text that is in the message item of the text before it. Default "new".
- `content`: "string" or "list". The default is a list for an item with an id, else a string.
- `field`: "refusal" for a text that was in a refusal part. Default "text".
- `type`: "custom" for a call of a custom tool. Default "function".
- `item`: the fields of an item that would be its signature, if the reasoning before it had one. They are valid only
  while that reasoning is in the turn, so the default is "unsigned" then, else "signed". `refused_item` is the same
  for an item whose id the provider does not accept.

Reasoning items, and the signatures that hold what the provider needs to recognise its items.

A signature is compact JSON of the item's fields that have no neutral field (`id`, `encrypted_content`, `status`).
Reasoning without encrypted content has no signature; its fields are format, kept as the choice `item` (see `turns`).

Ids of items, which a request may hold only once.

Fast path for the turns that most turns are: signed thinking, messages and calls in the default format.

Any other turn is left to `turns`, which writes every turn and writes these alike.

Facts:
- A reply is a list of items; adjacent items of the model form one turn.                            (openai 3.49.0)
- Item ids are sent with their reasoning or not at all; `call_id` always.             (mastra #10713, rig #751)
- `phase` of a message, `namespace` and `caller` of a call have to be sent back.       (openai 3.49.0)
- `type` of a message is optional, but llama.cpp recognises the model's messages by it alone. (llama.cpp #26394; tested)
- A custom tool takes one text, not an object.                                             (openai 3.49.0)
- Vendors leave the arguments of a call out, or send null or an object. It is a call all the same.   (seen 2026)
- A reasoning item is replayed whole, with its `encrypted_content`, and next to the item it led to; when nothing is
  stored, an `id` alone cannot be resolved.                    (vercel/ai #7099, mastra #8738, opencode #7724)
- Reasoning comes as several summaries, or as plain content from open models.    (recorded traffic, 2026-11; llama.cpp)
- "Duplicate item found with id msg_123. Remove duplicate items from your input and try again."  (vscode #321977 of
  2026-06-18, continue #10723, OpenRouter: ai-sdk-provider #254)
- An item of the model is accepted without its id, reasoning with its encrypted content too: codex sends none.
                                                                                     (codex @343074d4, read 2026-11-17)
- A message of the model has an id and a status, or neither.                   (openai 3.49, `EasyInputMessageParam`)

Facts (measured with CPython 3.11, 2026-11-15):
- The model's turns take four fifths of the time to write a request. Reading the signatures and writing the arguments of
  calls takes half of that, one function call for each item a quarter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Tool
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.protocols.kit.facts import ItemIds
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_object, kind_of, object_of, parse_text
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.verbatim import VERBATIM, choose, chosen, data_of, keep, restore
from segue.protocols.openai_responses.content import REPLAY, drop_replaced, is_item_id, native_item
from segue.protocols.openai_responses.rules import PROTOCOL

REFUSED_ITEM: Final = "refused_item"
"""The choice that keeps the fields of an item whose id the provider does not accept."""
UNSIGNED: Final = "unsigned"
"""The default of the choice `item`: it is made only while the reasoning before it is there and has no signature."""
_KEYS: Final = frozenset({"type", "summary", "content"})
_LENGTHS: Final = frozenset({"summary_lengths", "content_lengths"})
"""In a signature: the lengths of the texts that `thinking` joins, where it is more than one summary."""
_ABSENT: Final = "absent"
"""In a signature: the item had no such key."""

_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def write_signature(fields: Block) -> str | None:
    """Write the provider's own fields of an item as a signature; None when there are none.

    Half a surrogate pair is written as it is, not as an escape: projection drops a signature that has one.
    """
    if not fields:
        return None
    try:
        return _ENCODE(fields).decode()
    except (TypeError, ValueError):
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)


def read_signature(signature: str | None) -> Wire | None:
    """Read a signature that `write_signature` wrote; None for any other text."""
    if not signature or signature[0] != "{":
        return None
    try:
        return _DECODE(signature)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        parsed = parse_text(signature)  # half a surrogate pair, which msgspec refuses
        return parsed if is_object(parsed) else None


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_reasoning(item: Block, *, refused: bool = False) -> ThinkingContent:
    """Read a reasoning item: the summaries, then the content, joined by blank lines.

    Without a signature if its id is `refused`: it could not be sent.
    """
    fields: Wire = {key: value for key, value in item.items() if key not in _KEYS}
    given = item.get("content")
    summary = _texts(item.get("summary"), "summary_text")
    content = None if given is None else _texts(given, "reasoning_text")
    if summary is None or (given is not None and content is None):
        # Parts with more than a text are kept whole: the joined text cannot be split into them again.
        thinking = _join(_texts(item.get("summary"), None), _texts(given, None))
        fields["summary"] = item.get("summary", _ABSENT)
        if "content" in item:
            fields["content"] = given
    else:
        thinking = summary[0] if content is None and len(summary) == 1 else _join(summary, content)
        if content or len(summary) > 1 or summary == [""]:
            fields["summary_lengths"] = [len(text) for text in summary]
        if content is not None:
            fields["content_lengths"] = [len(text) for text in content]
        elif "content" in item:
            fields["content"] = None
    encrypted = fields.get("encrypted_content")
    if isinstance(encrypted, str) and encrypted and not refused:
        is_bare = len(fields) == 1 and encrypted[0] != "{"
        return ThinkingContent(thinking=thinking, thinking_signature=encrypted if is_bare else write_signature(fields))
    choices = choose(REFUSED_ITEM if refused else "item", UNSIGNED, fields)
    extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choices)
    return ThinkingContent(thinking=thinking, extra=extra)


def _join(summary: list[str] | None, content: list[str] | None) -> str:
    return "\n\n".join([*(summary or ()), *(content or ())])


def _texts(parts: object, kind: str | None) -> list[str] | None:
    """Return the texts of a list; with a `kind`, None when it has anything but plain parts of this kind."""
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


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_reasoning(piece: ThinkingContent, *, open_reasoning: bool, is_reply: bool = False) -> Wire:
    """Write a reasoning item. In a reply, unsigned thinking is a summary: clients show summaries only.

    Raises:
        EncodeError: unsigned thinking where the target only takes signed thinking.
    """
    signature, thinking = piece.thinking_signature, piece.thinking
    if signature:
        # A signature in any other form is the encrypted content itself.
        item = read_signature(signature) or {"encrypted_content": signature}
        if "summary" in item or not _LENGTHS.isdisjoint(item):
            return _rebuild(thinking, item)
        item["type"] = "reasoning"
        item["summary"] = _summary(thinking)
        return item
    kept = chosen(piece.extra, PROTOCOL, "item", UNSIGNED)
    if kept == UNSIGNED:
        kept = chosen(piece.extra, PROTOCOL, REFUSED_ITEM, UNSIGNED)
    if isinstance(kept, Mapping):
        return _rebuild(thinking, cast("Block", kept))
    if is_reply:
        return {"type": "reasoning", "summary": _summary(thinking)}
    if open_reasoning:
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": thinking}]}
    raise EncodeError(f"{PROTOCOL} does not support thinking without a signature; remove it or send it as text")


def _summary(thinking: str) -> list[Wire]:
    return [{"type": "summary_text", "text": thinking}] if thinking else []


def _rebuild(thinking: str, fields: Block) -> Wire:
    """Put a reasoning item together: the text is split where it was joined, unless it changed."""
    item: Wire = {key: value for key, value in fields.items() if value != _ABSENT and key not in _LENGTHS}
    item["type"] = "reasoning"
    summaries, contents = _lengths(fields.get("summary_lengths")), _lengths(fields.get("content_lengths"))
    if contents is not None:
        item["content"] = list[Wire]()
    lengths = [*(summaries or ()), *(contents or ())]
    if summaries is None or sum(lengths) + 2 * max(0, len(lengths) - 1) != len(thinking):
        if "summary" not in fields:
            item["summary"] = _summary(thinking)
        return item
    texts: list[str] = []
    start = 0
    for length in lengths:
        texts.append(thinking[start : start + length])
        start += length + 2
    item["summary"] = [{"type": "summary_text", "text": text} for text in texts[: len(summaries)]]
    if contents is not None:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in texts[len(summaries) :]]
    return item


def _lengths(given: object) -> list[int] | None:
    if not isinstance(given, list) or not all(isinstance(length, int) for length in cast("list[object]", given)):
        return None
    return cast("list[int]", given)


_CHOICES: Final = ("@item", f"@{REFUSED_ITEM}")
"""The choices of `turns` that keep the fields of an item instead of its signature."""
_Piece = TypeVar("_Piece", bound=TextContent | ThinkingContent | ToolCall)


def _choices(extra: Extra | None) -> Block:
    """Return the format that an `extra` keeps, with the choices."""
    return object_of(extra.get(PROTOCOL, {}).get(VERBATIM)) if extra is not None else {}


def _find(content: AssistantContent) -> str | None:
    if content.kind == "native":
        return None
    fields = read_signature(getattr(content, _SIGNATURES[content.kind]))
    if fields is not None:
        return text_of(fields.get("id"))
    if content.extra is None:
        return None
    kept = (object_of(_choices(content.extra).get(name)).get("to") for name in _CHOICES)
    return next((found for fields in kept if (found := text_of(object_of(fields).get("id")))), None)


_SIGNATURES: Final[Mapping[str, str]] = {
    "text": "text_signature",
    "thinking": "thinking_signature",
    "toolCall": "thought_signature",
}
"""The field with the signature, by the kind of the content."""


def _remove(content: AssistantContent) -> AssistantContent:
    if content.kind == "native":
        return content
    name = _SIGNATURES[content.kind]
    fields = read_signature(getattr(content, name))
    read = _without_choice(content)
    return read if fields is None else replace(read, **{name: write_signature(_without_id(fields, content))})


def _without_choice(content: _Piece) -> _Piece:
    extra, choices = content.extra, _choices(content.extra)
    if extra is None or choices.keys().isdisjoint(_CHOICES):
        return content
    kept = dict(choices)
    for name in choices.keys() & _CHOICES:
        choice = object_of(choices[name])
        fields = choice.get("to")
        if isinstance(fields, Mapping):
            kept[name] = {**choice, "to": _without_id(cast("Block", fields), content)}
    return replace(content, extra={**extra, PROTOCOL: {**extra[PROTOCOL], VERBATIM: kept}})


def _without_id(fields: Block, content: AssistantContent) -> Block:
    left_out = ("id", "status") if content.kind == "text" else ("id",)
    return {key: value for key, value in fields.items() if key not in left_out}


ITEM_IDS: Final = ItemIds(find=_find, remove=_remove, start='{"id":"', references=frozenset({"item_reference"}))


_REASONING_KEYS: Final = frozenset({"id", "encrypted_content", "status"})
"""The fields in the signature of a reasoning item with one summary."""


def write_turn_fast(items: list[Wire], content: Sequence[AssistantContent]) -> bool:
    """Add the items of a turn, in order; False, and nothing added, when it is not in the default format."""
    start = len(items)
    try:
        for piece in content:
            if type(piece) is ToolCall:
                if piece.extra is not None:
                    break
                text = piece.arguments_text
                text = encode_arguments(piece.arguments) if text is None else text
                signature = piece.thought_signature
                if signature is None:
                    item: Wire = {"type": "function_call", "call_id": piece.id, "name": piece.name, "arguments": text}
                else:
                    item = _DECODE(signature)
                    item["type"] = "function_call"
                    item["call_id"] = piece.id
                    item["name"] = piece.name
                    item["arguments"] = text
            elif type(piece) is TextContent:
                if piece.extra is not None:
                    break
                signature = piece.text_signature
                if signature is None:
                    item = {"type": "message", "role": "assistant", "content": piece.text}
                else:
                    item = _DECODE(signature)
                    item["type"] = "message"
                    item["role"] = "assistant"
                    item["content"] = (
                        [{"type": "output_text", "text": piece.text, "annotations": [], "logprobs": []}]
                        if "id" in item
                        else piece.text
                    )
                if piece.phase is not None:
                    item["phase"] = piece.phase
            elif type(piece) is ThinkingContent:
                signature, thinking = piece.thinking_signature, piece.thinking
                if signature is None or not thinking:
                    break
                item = _DECODE(signature)
                if not _REASONING_KEYS.issuperset(item):
                    break
                item["type"] = "reasoning"
                item["summary"] = [{"type": "summary_text", "text": thinking}]
            else:
                break
            items.append(item)
        else:
            return True
    except (EncodeError, msgspec.MsgspecError, ValueError, RecursionError):
        pass  # another form of signature, or arguments that are not JSON: `turns` writes it or names the place
    del items[start:]
    return False


_MESSAGE: Final[Block] = {"type": "message", "role": "assistant"}
_MESSAGE_KEYS: Final = frozenset({"type", "role", "content"})
_FUNCTION_KEYS: Final = frozenset({"type", "call_id", "name", "arguments"})
_CUSTOM_KEYS: Final = frozenset({"type", "call_id", "name", "input"})
_WITHOUT_ID: Final[Block] = {"call_id": ""}
"""What is written for the id of a call that was received without one, and is not there."""
_UNTYPED: Final = keep(PROTOCOL, {"message": {"role": "assistant"}}, {"message": _MESSAGE})
"""The extra of a text in a message without a type, which many clients write."""
_PART_TYPES: Final = frozenset({"output_text", "refusal", "input_text", "text"})
_EMPTY_LISTS: Final = ("annotations", "logprobs")
"""Lists that an `output_text` has although they are empty."""
_SIGNED: Final = "signed"
_CALLER: Final = "caller"


NAMESPACE: Final = "namespace"
"""The field of a call with the namespace of its function; a call without it is refused if the function is in one."""


# -- reading -----------------------------------------------------------------------------------------------------------


class TurnReader:
    """Reads the items of one turn in order."""

    __slots__ = ("_no_id", "checks_ids", "diagnostics", "is_reply", "reasoning", "tool_names")

    def __init__(
        self, tool_names: Mapping[str, str] | None = None, *, is_reply: bool = False, checks_ids: bool = False
    ) -> None:
        self.checks_ids: bool = checks_ids
        """Whether the provider accepts only its own ids of items."""
        self.diagnostics: list[Diagnostic] = []
        self.is_reply: bool = is_reply
        self._no_id: str | None = "" if is_reply else None  # a call of a reply is one also without an id
        self.reasoning: str = _SIGNED
        self.tool_names: Mapping[str, str] = tool_names or {}

    def begin_turn(self) -> None:
        """Begin another turn: what its reasoning allows does not depend on the turns before."""
        self.reasoning = _SIGNED

    def read_all(self, items: Iterable[Block]) -> tuple[AssistantContent, ...]:
        """Read a list of items."""
        return tuple(piece for item in items for piece in self.read(item))

    def read(self, item: Block) -> Sequence[AssistantContent]:
        """Read one item; a message may hold several texts."""
        kind = item.get("type")
        if kind == "function_call":
            return (self._call(item, "arguments"),)
        if kind == "reasoning":
            thinking = decode_reasoning(item, refused=self.checks_ids and not is_item_id(item.get("id"), "reasoning"))
            if thinking.thinking_signature is None:
                self.reasoning = UNSIGNED
            return (thinking,)
        if kind == "message" or (kind is None and "role" in item):
            return self._message(item)
        if kind == "custom_tool_call":
            return (self._call(item, "input"),)
        return (native_item(item),)

    def _sign(self, kind: str, fields: Wire, choices: Wire) -> str | None:
        """Return the signature; after unsigned reasoning an item with an id gets a choice instead."""
        if _CALLER in fields and REPLAY.reference_of(fields) is not None:
            del fields[_CALLER]
        if self.checks_ids and not is_item_id(fields.get("id"), kind):
            choices.update(choose(REFUSED_ITEM, self.reasoning, fields))
            return None
        if self.reasoning == UNSIGNED and "id" in fields:
            choices.update(choose("item", UNSIGNED, fields))
            return None
        return write_signature(fields)

    def _message(self, item: Block) -> Sequence[AssistantContent]:
        if item.get("role", "assistant") != "assistant":
            return (native_item(item),)
        content = item.get("content")
        if len(item) == 2 and isinstance(content, str) and "role" in item:
            return (TextContent(text=content, extra=_UNTYPED),)
        parts = cast("list[Block]", content) if isinstance(content, list) else []
        is_default = item.get("type") == "message" and "role" in item
        if is_default and len(item) == 3 and len(parts) == 1 and _has_text(parts[0], len(_BARE)):
            return (TextContent(text=str(parts[0]["text"]), extra=_LISTED),)
        fields: Wire = {key: value for key, value in item.items() if key not in _MESSAGE_KEYS}
        message: Block = _MESSAGE if is_default else {key: item[key] for key in _MESSAGE if key in item}
        default = "list" if "id" in fields else "string"
        phase = text_of(fields.pop("phase")) if isinstance(fields.get("phase"), str) else None
        if isinstance(content, str):
            choices = choose("content", default, "string")
            signature = self._sign("message", fields, choices) if fields else None
            extra = keep(PROTOCOL, {"message": message}, {"message": _MESSAGE}, choices=choices)
            return (TextContent(text=content, text_signature=signature, phase=phase, extra=extra),)
        is_common = is_default and len(parts) == 1 and _has_text(parts[0], len(_BARE) + len(_EMPTY_LISTS))
        is_common = is_common and parts[0].get("annotations") == parts[0].get("logprobs") == []
        if not is_common and (not parts or not all(map(_is_part, parts))):
            return (native_item(item),)
        choices = {} if default == "list" else choose("content", default, "list")
        signature = self._sign("message", fields, choices) if fields else None
        if is_common and not choices:
            return (TextContent(text=str(parts[0]["text"]), text_signature=signature, phase=phase),)
        read: list[AssistantContent] = []
        for part in parts:
            text, extra = _decode_part(part, message, choices)
            read.append(TextContent(text=text, text_signature=signature, phase=phase, extra=extra))
            message, choices, signature, phase = EMPTY, choose("turn", "new", "same"), None, None
        return read

    def _call(self, item: Block, key: str) -> AssistantContent:
        """Read a call; `key` is that of its input, by which custom tools differ from functions."""
        call_id, name, given = item.get("call_id", self._no_id), item.get("name"), item.get(key)
        if not isinstance(call_id, str) or not isinstance(name, str):
            return native_item(item)
        is_function = key == "arguments"
        choices = {} if is_function else choose("type", "function", "custom")
        known = _FUNCTION_KEYS if is_function else _CUSTOM_KEYS
        fields = {name: value for name, value in item.items() if name not in known}
        caller = _caller_of(item) if _CALLER in fields else EMPTY
        signature = self._sign(str(item["type"]), fields, choices) if fields else None
        if not is_function:
            given = {"input": _custom_input(given)}
        parsed = parse_arguments(given) if isinstance(given, str) else read_arguments(given)
        if parsed.diagnostic is not None:
            self.diagnostics.append(parsed.diagnostic)
        if isinstance(given, str):
            without = EMPTY if "call_id" in item else _WITHOUT_ID
            extra = keep(PROTOCOL, caller, without, without, choices) if choices or caller or without else None
        else:
            extra = self._keep_input(item, key, choices)
        return ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments=parsed.arguments,
            arguments_text=parsed.text,
            thought_signature=signature,
            extra=extra,
        )

    def _keep_input(self, item: Block, key: str, choices: Wire) -> Extra | None:
        """Keep the format of arguments that are not text. Only requests do: the next one after a reply sends text."""
        received = {} if self.is_reply or key not in item else {key: item[key]}
        default = {} if self.is_reply else {key: with_text_input(item)[key]}
        without = EMPTY if "call_id" in item else _WITHOUT_ID
        return keep(PROTOCOL, {**_caller_of(item), **received}, {**default, **without}, (key, *without), choices)


def with_text_ids(item: Block) -> Block:
    """Return a call of a reply without the ids that are null or numbers, as servers write missing ones."""
    is_odd = type(item.get("id", "")) is not str or type(item.get("call_id", "")) is not str
    if not is_odd or kind_of(item) not in _INPUTS:
        return item
    return {key: value for key, value in item.items() if key not in ("id", "call_id") or isinstance(value, str)}


_INPUTS: Final[Mapping[object, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The key of a call that holds its input, which is text, by the type of the item."""


def with_text_input(item: Block) -> Block:
    """Return a call whose input is text, as segue writes it; the same object if it is, or is not a call."""
    kind = item.get("type")
    key = _INPUTS.get(kind) if isinstance(kind, str) else None
    if key is None or isinstance(item.get(key), str):
        return item
    given = item.get(key)
    return {**item, key: _custom_input(given) if key == "input" else _arguments_text(given)}


def _arguments_text(given: object) -> str:
    """Return the text of arguments that were not text, as segue writes a call that was read from them."""
    parsed = read_arguments(given)
    return encode_arguments(parsed.arguments) if parsed.text is None else parsed.text


def _custom_input(given: object) -> str:
    """Return the input of a custom tool as text: JSON for another value than text, nothing for null."""
    if given is None or isinstance(given, str):
        return given or ""
    return encode_arguments({"": given})[len('{"":') : -1]


def _caller_of(item: Block) -> Block:
    """Return the `caller` of a call that a program made: data, because the program may not be sent with it."""
    caller = item.get(_CALLER)
    return {_CALLER: caller} if caller is not None and REPLAY.reference_of(item) is not None else EMPTY


def is_custom(call: ToolCall | Tool) -> bool:
    """Whether a call is one of a custom tool, or a tool is one."""
    return call.extra is not None and chosen(call.extra, PROTOCOL, "type", "function") == "custom"


def _is_part(part: object) -> bool:
    if not isinstance(part, (dict, Mapping)):
        return False
    known = cast("Block", part)
    kind = known.get("type")
    if not isinstance(kind, str) or kind not in _PART_TYPES or "message" in known:
        return False
    return isinstance(known.get("refusal" if kind == "refusal" else "text"), str)


def _has_text(part: object, keys: int) -> bool:
    """Whether a part of this many keys is a text."""
    wire = object_of(part)
    return len(wire) == keys and wire.get("type") == "output_text" and isinstance(wire.get("text"), str)


def _decode_part(part: Block, message: Block, choices: Wire) -> tuple[str, Extra | None]:
    """Return the text of a part, and what it and the message it begins differ in from the default."""
    kind = part["type"]
    field = "refusal" if kind == "refusal" else "text"
    text = cast("str", part[field])
    default = _default_part(text, field)
    choices = {**choices, **choose("field", "text", field)}
    drop_replaced(default, part, *_EMPTY_LISTS)
    received: Wire = dict(part)
    if message:
        received["message"], default["message"] = message, _MESSAGE
    return text, keep(PROTOCOL, received, default, choices=choices)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_turn(
    items: list[Wire], content: Sequence[AssistantContent], *, open_reasoning: bool = False, is_reply: bool = False
) -> bool:
    """Add the items of a turn, in order; gives whether a call in it has `extra`.

    Raises:
        EncodeError: thinking without a signature where only signed thinking can be sent, another protocol's block, or
            arguments that are not JSON; its path begins with the index in the content.
    """
    has_extra = False
    reasoning = _SIGNED
    parts: list[Wire] | None = None
    index = 0
    try:
        for index, piece in enumerate(content):  # noqa: B007 - the place of a failure
            if type(piece) is TextContent:
                parts = _write_text(piece, items, parts, reasoning)
                continue
            parts = None
            if type(piece) is ToolCall:
                items.append(_encode_call(piece, reasoning))
                has_extra = has_extra or piece.extra is not None
            elif type(piece) is ThinkingContent:
                reasoning = reasoning if piece.thinking_signature else UNSIGNED
                items.append(encode_reasoning(piece, open_reasoning=open_reasoning, is_reply=is_reply))
            else:
                items.append(dict(native_block(PROTOCOL, piece)))
    except EncodeError as error:
        raise EncodeError(error.reason, path=(index, *error.path)) from error
    return has_extra


def _provider_fields(signature: str | None, extra: Extra | None, reasoning: str) -> Wire:
    """Return what the provider needs to recognise its item, as a new object."""
    fields = read_signature(signature)
    if fields is None and extra is not None:
        fields = dict(object_of(chosen(extra, PROTOCOL, "item", reasoning)))
        fields = fields or dict(object_of(chosen(extra, PROTOCOL, REFUSED_ITEM, reasoning)))
    return fields or {}


def _write_text(piece: TextContent, items: list[Wire], parts: list[Wire] | None, reasoning: str) -> list[Wire] | None:
    """Write a text as a message, or into the message before it; gives the parts that the next text may join."""
    extra, field = piece.extra, "text"
    if extra is not None:
        field = "refusal" if chosen(extra, PROTOCOL, "field", "text") == "refusal" else "text"
        if parts is not None and piece.phase is None and chosen(extra, PROTOCOL, "turn", "new") == "same":
            parts.append(restore(_default_part(piece.text, field, extra), extra, PROTOCOL))
            return parts
    item = _provider_fields(piece.text_signature, extra, reasoning)
    items.append(item)
    form: object = "list" if "id" in item else "string"
    part = _default_part(piece.text, field, extra)
    if extra is None:
        item.update(_MESSAGE)
    else:
        is_list = field == "refusal" or bool(data_of(extra, PROTOCOL))
        form = "list" if is_list else chosen(extra, PROTOCOL, "content", form)
        part["message"] = _MESSAGE
        item.update(object_of(restore(part, extra, PROTOCOL).pop("message", None)))
    if piece.phase is not None:
        item["phase"] = piece.phase
    joinable = [part] if form == "list" else None
    item["content"] = piece.text if joinable is None else joinable
    return joinable


def _default_part(text: str, field: str, extra: Extra | None = None) -> Wire:
    if field == "refusal":
        return {"type": "refusal", "refusal": text}
    part: Wire = {"type": "output_text", "text": text}
    data = data_of(extra, PROTOCOL)
    for key in _EMPTY_LISTS:
        if key not in data:
            part[key] = []
    return part


_BARE: Final[Block] = {"type": "output_text", "text": ""}
_LISTED: Final = keep(PROTOCOL, _BARE, _default_part("", "text"), choices=choose("content", "string", "list"))
"""The extra of a text in a message whose part has only its text."""


def _encode_call(call: ToolCall, reasoning: str) -> Wire:
    item = _provider_fields(call.thought_signature, call.extra, reasoning)
    if call.extra is not None and isinstance(namespace := data_of(call.extra, PROTOCOL).get(NAMESPACE), str):
        item[NAMESPACE] = namespace
    if call.extra is not None and _CALLER in (data := data_of(call.extra, PROTOCOL)):
        item[_CALLER] = data[_CALLER]
    if is_custom(call) and isinstance(given := call.arguments.get("input"), str):
        item |= {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": given}
    else:
        text = call.arguments_text
        arguments = encode_arguments(call.arguments) if text is None else text
        item |= {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
    return item if call.extra is None else restore(item, call.extra, PROTOCOL)
