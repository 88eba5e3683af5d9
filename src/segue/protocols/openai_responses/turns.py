"""Items of the model's turn: messages, reasoning, calls, and items that only this protocol has.

Facts this file rests on:
- A reply is a list of items; adjacent items of the model form one turn.                            (openai 3.49.0)
- Item ids are sent with their reasoning or not at all; `call_id` always.             (mastra #10713, rig #751)
- `phase` of a message, `namespace` and `caller` of a call have to be sent back.       (openai 3.49.0)
- `type` of a message is optional, but llama.cpp recognises the model's messages by it alone. (llama.cpp #26394; tested)
- A custom tool takes one text, not an object.                                             (openai 3.49.0)
- Vendors leave the arguments of a call out, or send null or an object. It is a call all the same.   (seen 2026)

What the server needs to recognise an item (id, status, encrypted content) is the signature of the content, see
`thinking`. Other models do not receive it.

Choices kept in `extra` (see `kit.verbatim`); items of a reply are items of the next request, so they have them too:
- `turn`: "same" for a text that stands in the message item of the text before it. Default "new".
- `content`: "string" or "list". The default is a list for an item with an id, else a string.
- `field`: "refusal" for a text that stood in a refusal part. Default "text".
- `type`: "custom" for a call of a custom tool. Default "function".
- `item`: the fields of an item that would be its signature, if the reasoning before it had one. They are valid only
  while that reasoning stands in the turn, so the default is "unsigned" then, else "signed". `refused_item` is the same
  for an item whose id the provider does not accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Tool
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_responses.content import drop_replaced
from segue.protocols.openai_responses.native import REPLAY, is_item_id, native_item
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.thinking import (
    REFUSED_ITEM,
    UNSIGNED,
    decode_reasoning,
    encode_reasoning,
    read_signature,
    write_signature,
)

_MESSAGE: Final[Block] = {"type": "message", "role": "assistant"}
_MESSAGE_KEYS: Final = frozenset({"type", "role", "content"})
_CALL_KEYS: Final = frozenset({"type", "call_id", "name", "arguments"})
_CUSTOM_KEYS: Final = frozenset({"type", "call_id", "name", "input"})
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

    __slots__ = ("checks_ids", "diagnostics", "is_reply", "reasoning", "tool_names")

    def __init__(
        self, tool_names: Mapping[str, str] | None = None, *, is_reply: bool = False, checks_ids: bool = False
    ) -> None:
        self.checks_ids: bool = checks_ids
        """Whether the provider accepts only its own ids of items."""
        self.diagnostics: list[Diagnostic] = []
        self.is_reply: bool = is_reply
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
            return (self._call(item),)
        if kind == "reasoning":
            thinking = decode_reasoning(item, refused=self.checks_ids and not is_item_id(item.get("id"), "reasoning"))
            if thinking.thinking_signature is None:
                self.reasoning = UNSIGNED
            return (thinking,)
        if kind == "message" or (kind is None and "role" in item):
            return self._message(item)
        if kind == "custom_tool_call":
            return (self._custom_call(item),)
        return (native_item(item),)

    def _sign(self, kind: str, fields: Wire, choices: Wire) -> str | None:
        """Give the signature; behind unsigned reasoning an item with an id gets a choice instead."""
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
        fields: Wire = {key: value for key, value in item.items() if key not in _MESSAGE_KEYS}
        message: Block = {key: item[key] for key in _MESSAGE if key in item}
        default = "list" if "id" in fields else "string"
        phase, content = text_of(fields.get("phase")), item.get("content")
        if phase is not None:
            del fields["phase"]
        if isinstance(content, str):
            choices = choose("content", default, "string")
            signature = self._sign("message", fields, choices)
            extra = keep(PROTOCOL, {"message": message}, {"message": _MESSAGE}, choices=choices)
            return (TextContent(text=content, text_signature=signature, phase=phase, extra=extra),)
        parts = list_of(content)
        if not parts or not all(_is_part(part) for part in parts):
            return (native_item(item),)
        choices = {} if default == "list" else choose("content", default, "list")
        signature = self._sign("message", fields, choices)
        read: list[AssistantContent] = []
        for part in cast("list[Block]", parts):
            text, extra = _decode_part(part, message, choices)
            read.append(TextContent(text=text, text_signature=signature, phase=phase, extra=extra))
            message, choices, signature, phase = EMPTY, choose("turn", "new", "same"), None, None
        return read

    def _call(self, item: Block) -> AssistantContent:
        call_id, name, given = item.get("call_id"), item.get("name"), item.get("arguments")
        if not isinstance(call_id, str) or not isinstance(name, str):
            return native_item(item)
        choices: Wire = {}
        fields = {key: value for key, value in item.items() if key not in _CALL_KEYS}
        caller = _caller_of(item) if _CALLER in fields else EMPTY
        signature = self._sign("function_call", fields, choices) if fields else None
        parsed = parse_arguments(given) if isinstance(given, str) else read_arguments(given)
        if parsed.diagnostic is not None:
            self.diagnostics.append(parsed.diagnostic)
        if isinstance(given, str):
            extra = keep(PROTOCOL, caller, EMPTY, choices=choices) if choices or caller else None
        else:
            extra = self._keep_input(item, "arguments", choices)
        return ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments=parsed.arguments,
            arguments_text=parsed.text,
            thought_signature=signature,
            extra=extra,
        )

    def _custom_call(self, item: Block) -> AssistantContent:
        call_id, name = item.get("call_id"), item.get("name")
        if not isinstance(call_id, str) or not isinstance(name, str):
            return native_item(item)
        choices = choose("type", "function", "custom")
        fields = {key: value for key, value in item.items() if key not in _CUSTOM_KEYS}
        signature = self._sign("custom_tool_call", fields, choices)
        return ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments={"input": _custom_input(item.get("input"))},
            thought_signature=signature,
            extra=self._keep_input(item, "input", choices),
        )

    def _keep_input(self, item: Block, key: str, choices: Wire) -> Extra | None:
        """Keep the format of arguments that are no text. Only requests do: the next one after a reply sends text."""
        received = {} if self.is_reply or key not in item else {key: item[key]}
        default = {} if self.is_reply else {key: with_text_input(item)[key]}
        return keep(PROTOCOL, {**_caller_of(item), **received}, default, (key,), choices)


_INPUTS: Final[Mapping[object, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The key of a call that holds its input, which is text, by the type of the item."""


def with_text_input(item: Block) -> Block:
    """Give a call whose input is text, as segue writes it; the same object if it is, or is no call."""
    kind = item.get("type")
    key = _INPUTS.get(kind) if isinstance(kind, str) else None
    if key is None or isinstance(item.get(key), str):
        return item
    given = item.get(key)
    return {**item, key: _custom_input(given) if key == "input" else _arguments_text(given)}


def _arguments_text(given: object) -> str:
    """Give the text of arguments that were no text, as segue writes a call that was read from them."""
    parsed = read_arguments(given)
    return encode_arguments(parsed.arguments) if parsed.text is None else parsed.text


def _custom_input(given: object) -> str:
    """Give the input of a custom tool as text: JSON for another value than text, nothing for null."""
    if given is None or isinstance(given, str):
        return given or ""
    return encode_arguments({"": given})[len('{"":') : -1]


def _caller_of(item: Block) -> Block:
    """Give the `caller` of a call that a program made: data, because the program may not be sent with it."""
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


def _decode_part(part: Block, message: Block, choices: Wire) -> tuple[str, Extra | None]:
    """Give the text of a part, and what it and the message it begins differ in from the default."""
    kind = part["type"]
    is_default = len(part) == 4 and kind == "output_text" and part.get("annotations") == part.get("logprobs") == []
    if is_default and not choices and message == _MESSAGE:
        return cast("str", part["text"]), None
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
            arguments that are no JSON; its path begins with the index in the content.
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
    """Give what the provider needs to recognise its item, as a new object."""
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
