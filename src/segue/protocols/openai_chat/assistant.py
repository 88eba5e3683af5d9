"""An assistant message, in a request and in a reply, both ways.

Content is read in this order: thinking, text, refusal, native fields, calls.

Choices that messages keep: `content`, see `content.py`, and `field`, see `reasoning.py`.

Tool calls of an assistant message, both ways.

The input of a custom tool is the argument `input`. A `function_call` has the id `function_call`, and so has its result:
they are next to each other, and later calls have their own ids. The result of a `function_call` in a reply has the
role `tool`, so a request sends that call in `tool_calls`. A call of an unknown type without a function is native
content.

Choice that calls keep: `field`, "custom" or "function_call", not "function".

Facts:
- Its text is one string: some models imitate a list.                                           (pi-ai 1.5.0)
- Content is null with calls; vendors also send an empty string or leave it out.          (recorded traffic, 2026-11)
- Where null is refused, an empty string replaces it.                      (`null_content` of the dialect)
- Other fields of a reply (`annotations`, null fields, the index of a call) are refused by strict vendors in a request.
                                                                                    (LibreChat #6724, freellmapi #1093)
- `prefix` asks the model to continue the message.
                                     (DeepSeek API guides: chat prefix completion; LiteLLM: prefix; read 2026-11-15)
- `tool_calls[]` is `function` {name, arguments as text} or `custom` {name, input as text}; an older format has one
  `function_call` without an id.                                                              (openai 3.49.0)
- Vendors leave out the type or the id, add an `index`, or send arguments as an object, as null or not at all. In a
  request, arguments that are not JSON are refused.
                                                        (recorded traffic, 2026-11; vercel/ai #19274, ollama #12794)
- Gemini's signature of a call is `extra_content.google.thought_signature`.       (langchain #34056, ruby_llm #591)
- LiteLLM passes `cache_control` of a call on to Claude.   (LiteLLM: convert_to_anthropic_tool_invoke, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.families.chat_content import JoinedText, join_texts
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of
from segue.protocols.kit.reading import expect_list, expect_object
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_chat.content import (
    LIST,
    LIST_EXTRA,
    choice_extra,
    decode_fields,
    decode_part,
    decode_refusal_part,
    dump_value,
    encode_fields,
    encode_native,
    encode_part,
    encode_refusal_part,
    find_mark,
    finish,
    is_part,
    keep_assistant_part,
    keep_call,
    text_field,
)
from segue.protocols.openai_chat.fast_decode import Json
from segue.protocols.openai_chat.reasoning import (
    FIELDS,
    REASONING_KEYS,
    add_required_reasoning,
    decode_reasoning,
    encode_reasoning,
    in_tags,
    is_tagged,
    split_tags,
    write_text,
    write_thinking,
)
from segue.protocols.openai_chat.rules import PROTOCOL

OLD_ID: Final = "function_call"
CUSTOM: Final = choice_extra(choose("field", "function", "custom"))
"""The extra of a call of a custom tool."""
_FUNCTION_TYPES: Final = ("function", None, MISSING)
_NAMES: Final[Mapping[str, str]] = {}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_call(
    wire: object,
    endpoint: Endpoint,
    path: Path,
    notes: list[Diagnostic],
    tool_names: Mapping[str, str] = _NAMES,
    *,
    reply: bool = False,
) -> ToolCall | NativeContent:
    """Read one call. The format of a call in a reply is kept with the reply.

    Raises:
        DecodeError: it is not an object.
    """
    plain = decode_plain_call(cast("Json", wire), notes, tool_names)
    if plain is not None:
        return plain
    call = expect_object(wire, path)
    kind = call.get("type", MISSING)
    field = "custom" if kind == "custom" else "function"
    function = object_of(call.get(field))
    if not isinstance(function.get("name"), str) and kind not in _FUNCTION_TYPES:
        return keep_call(call)
    read = _read_call(call.get("id"), function, field, notes)
    if isinstance(call.get("extra_content"), Mapping):
        read = replace(read, thought_signature=find_signature(call["extra_content"], endpoint))
    if reply:
        return replace(read, name=tool_names.get(read.name, read.name))
    read = replace(read, cache_mark=find_mark(call))
    return _keep_format(read, call, choose("field", "function", field), endpoint, path)


def decode_old_call(
    wire: Block, endpoint: Endpoint, path: Path, notes: list[Diagnostic], tool_names: Mapping[str, str], *, reply: bool
) -> ToolCall:
    """Read a `function_call`."""
    read = _read_call(OLD_ID, wire, "function", notes)
    if reply:
        return replace(read, name=tool_names.get(read.name, read.name))
    choices = choose("field", "function", "function_call")
    return _keep_format(replace(read, extra=choice_extra(choices)), wire, choices, endpoint, path)


def decode_plain_call(call: Json, notes: list[Diagnostic], tool_names: Mapping[str, str] = _NAMES) -> ToolCall | None:
    """Read a call in the default format; None when it has another."""
    if not isinstance(call, dict) or len(call) != 3 or call.get("type") != "function":
        return None
    call_id, function = call.get("id"), call.get("function")
    if not isinstance(call_id, str) or not isinstance(function, dict) or len(function) != 2:
        return None
    name, text = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(text, str) or not text:
        return None
    parsed = parse_arguments(text)
    if parsed.diagnostic is not None:
        notes.append(parsed.diagnostic)
    name = tool_names.get(name, name)
    return ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text)


def _read_call(call_id: object, function: Block, field: str, notes: list[Diagnostic]) -> ToolCall:
    """Read what a call means. Arguments of an unknown format are none."""
    name, given = function.get("name"), function.get("input" if field == "custom" else "arguments")
    arguments: Mapping[str, object] = {}
    text: str | None = None
    if field == "custom":
        arguments = {"input": given} if isinstance(given, str) else {}
    else:
        parsed = parse_arguments(given) if isinstance(given, str) and given else read_arguments(given)
        arguments, text = parsed.arguments, parsed.text
        if parsed.diagnostic is not None:
            notes.append(parsed.diagnostic)
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        arguments_text=text,
        extra=CUSTOM if field == "custom" else None,
    )


def _keep_format(call: ToolCall, wire: Block, choices: Wire, endpoint: Endpoint, path: Path) -> ToolCall:
    try:
        default = encode_call(call, endpoint)
    except EncodeError as error:
        raise DecodeError(error.reason, path=path) from error
    return replace(call, extra=keep(PROTOCOL, wire, default, choices=choices))


def find_signature(extra_content: object, endpoint: Endpoint) -> str | None:
    """Find Gemini's signature in the `extra_content` of a call or of a message, where the vendor uses it."""
    if not endpoint.dialect.google_signatures:
        return None
    signature = object_of(object_of(extra_content).get("google")).get("thought_signature")
    return signature if isinstance(signature, str) else None


# -- writing -----------------------------------------------------------------------------------------------------------


def is_old(call: ToolCall) -> bool:
    """Whether a call is written as `function_call`."""
    return call.extra is not None and call_field(call) == "function_call"


def call_field(call: ToolCall) -> object:
    """Return the field that holds a call: "function", "custom" or "function_call"."""
    return chosen(call.extra, PROTOCOL, "field", "function")


def encode_call(call: ToolCall, endpoint: Endpoint) -> Wire:
    """Write one call.

    Raises:
        EncodeError: its arguments are not JSON.
    """
    text = call.arguments_text
    if text is None:
        text = encode_arguments(call.arguments)
    wire: Wire
    function: Wire = {"name": call.name, "arguments": text}
    match call_field(call):
        case "function_call":
            return restore(function, call.extra, PROTOCOL)
        case "custom":
            given = call.arguments.get("input")
            custom: Wire = {"name": call.name, "input": given if isinstance(given, str) else text}
            wire = {"id": call.id, "type": "custom", "custom": custom}
        case _:
            wire = {"id": call.id, "type": "function", "function": function}
    if call.thought_signature is not None and endpoint.dialect.google_signatures:
        wire["extra_content"] = encode_signature(call.thought_signature)
    return finish(wire, call)


def encode_signature(signature: str) -> Wire:
    """Write Gemini's signature as an `extra_content`."""
    return {"google": {"thought_signature": signature}}


_Part: TypeAlias = TextContent | ThinkingContent | NativeContent

_THINKING: Final = FIELDS[0]
_COMMON: Final = frozenset({"role", "content", "tool_calls", _THINKING})
"""The keys of most messages."""
_READ_APART: Final = REASONING_KEYS | {"audio", "extra_content", "function_call", "images", "refusal"}
"""The other keys that are read."""


def empty_content(endpoint: Endpoint) -> str | None:
    """Return the content of a message without text."""
    return None if endpoint.dialect.null_content else ""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_assistant(
    wire: Block, endpoint: Endpoint, path: Path, required: str | None = None
) -> tuple[tuple[AssistantContent, ...], bool, Extra | None]:
    """Read an assistant message of a request: its content, whether it is a prefix, and its extra.

    `required` is the field that the provider requires on each of them.

    Raises:
        DecodeError: content or calls are not in the format of the protocol.
    """
    if wire.keys() <= _COMMON:
        common = _decode_common(wire, endpoint, path, required)
        if common is not None:
            return common, False, None
    known: set[str] = set()
    pieces, choices = _decode_pieces(wire, endpoint, path, [], known=known)
    if len(wire) == 2 and choices == LIST and all(piece.kind == "text" and piece.extra is None for piece in pieces):
        return tuple(pieces), False, LIST_EXTRA
    prefix = wire.get(endpoint.dialect.prefix_field)
    if isinstance(prefix, bool):
        known.add(endpoint.dialect.prefix_field)
    default = encode_assistant(
        pieces,
        endpoint,
        path,
        extra=choice_extra(choices),
        prefix=prefix is True,
        required=None if REASONING_KEYS.isdisjoint(wire) else required,
    )
    return tuple(pieces), prefix is True, keep(PROTOCOL, wire, default, known, choices)


def decode_reply(
    wire: Block, endpoint: Endpoint, path: Path, tool_names: Mapping[str, str]
) -> tuple[tuple[AssistantContent, ...], tuple[Diagnostic, ...], Wire | None]:
    """Read the content of an assistant message of a reply. Its format is kept with the reply.

    The third value is the message in the default format, if that is known without writing it.

    Raises:
        DecodeError: content or calls are not in the format of the protocol.
    """
    plain = _decode_plain_reply(wire, endpoint) if not tool_names or not wire.get("tool_calls") else None
    if plain is not None:
        return plain
    notes: list[Diagnostic] = []
    pieces, _ = _decode_pieces(wire, endpoint, path, notes, known=set(), tool_names=tool_names)
    return tuple(pieces), tuple(notes), None


def _decode_plain_reply(
    wire: Block, endpoint: Endpoint
) -> tuple[tuple[AssistantContent, ...], tuple[Diagnostic, ...], Wire] | None:
    """Read a reply of a text and calls in the default format, as most are; None when it has more."""
    text, calls = wire.get("content"), wire.get("tool_calls")
    if not _READ_APART.isdisjoint(wire) and any(wire.get(key) is not None for key in _READ_APART):
        return None
    if text is not None and (type(text) is not str or "think>" in text):
        return None
    notes: list[Diagnostic] = []
    pieces: list[AssistantContent] = [TextContent(text=text)] if text else []
    default: Wire = {"role": "assistant", "content": text or empty_content(endpoint)}
    if calls:
        if not isinstance(calls, list):
            return None
        for call in cast("list[Json]", calls):
            plain = decode_plain_call(call, notes)
            if plain is None:
                return None
            pieces.append(plain)
        default["tool_calls"] = cast("object", calls)
    return tuple(pieces), tuple(notes), default


def _decode_common(
    wire: Block, endpoint: Endpoint, path: Path, required: str | None
) -> tuple[AssistantContent, ...] | None:
    """Read a message of common keys in the default format; None when it has another."""
    thinking, text, calls = wire.get(_THINKING, MISSING), wire.get("content", MISSING), wire.get("tool_calls", MISSING)
    pieces: list[AssistantContent] = []
    if isinstance(thinking, str) and thinking:
        pieces.append(ThinkingContent(thinking=thinking, thinking_signature=_THINKING))
    elif thinking is not MISSING and (thinking != "" or required != _THINKING):
        return None
    if isinstance(text, str) and not endpoint.dialect.think_tags:
        if text or endpoint.dialect.null_content:
            pieces.append(TextContent(text=text))
    elif text is not None or not endpoint.dialect.null_content:
        return None
    if isinstance(calls, list) and calls:
        notes: list[Diagnostic] = []
        for index, call in enumerate(cast("list[Json]", calls)):
            plain = decode_plain_call(call, notes)
            pieces.append(plain or decode_call(call, endpoint, (*path, "tool_calls", index), notes))
    elif calls is not MISSING:
        return None
    return tuple(pieces)


def _decode_pieces(
    wire: Block,
    endpoint: Endpoint,
    path: Path,
    notes: list[Diagnostic],
    *,
    known: set[str],
    tool_names: Mapping[str, str] | None = None,
) -> tuple[list[AssistantContent], Wire]:
    """Read the content, and the choices to keep; add the understood keys to `known`. Only a reply has `tool_names`."""
    reply = tool_names is not None
    thinking, choices = (None, {}) if REASONING_KEYS.isdisjoint(wire) else decode_reasoning(wire, known)
    pieces: list[AssistantContent] = [] if thinking is None else [thinking]
    value = wire.get("content", MISSING)
    content = _decode_content(value, endpoint, (*path, "content"), reply=reply)
    if content and isinstance(value, list) and not any(map(_needs_list, content)):
        choices = {**choices, **LIST}
    pieces += content
    if "extra_content" in wire:
        _add_signature(pieces, wire["extra_content"], endpoint)
    pieces += decode_fields(wire, known, reply=reply)
    old, calls, names = wire.get("function_call"), wire.get("tool_calls"), tool_names or {}
    if old:
        place = (*path, "function_call")
        pieces.append(decode_old_call(expect_object(old, place), endpoint, place, notes, names, reply=reply))
    if calls:
        for index, call in enumerate(expect_list(calls, (*path, "tool_calls"))):
            place = (*path, "tool_calls", index)
            pieces.append(decode_call(call, endpoint, place, notes, names, reply=reply))
    known.update([key for key, found in (("function_call", old), ("tool_calls", calls)) if found or found == []])
    return pieces, choices


def _decode_content(value: object, endpoint: Endpoint, path: Path, *, reply: bool) -> Sequence[AssistantContent]:
    if value is None or value is MISSING:
        return ()
    if isinstance(value, str):
        if (not value and reply) or value == empty_content(endpoint):
            return ()
        has_tags = endpoint.dialect.think_tags
        return split_tags(value, leads=not has_tags) if has_tags or reply else (TextContent(text=value),)
    if reply and (text := dump_value(value)) is not None:
        return (TextContent(text=text),)
    return [_decode_part(block, (*path, index)) for index, block in enumerate(expect_list(value, path))]


def _decode_part(block: object, path: Path) -> TextContent | NativeContent:
    part = expect_object(block, path)
    if part.get("type") == "text":
        content = decode_part(part, path)
        if content.kind == "text":
            return content
    return decode_refusal_part(part) or keep_assistant_part(part)


def _add_signature(pieces: list[AssistantContent], extra_content: object, endpoint: Endpoint) -> None:
    """Put Gemini's signature on the text of the message, if it has exactly one."""
    signature = find_signature(extra_content, endpoint)
    texts = [index for index, piece in enumerate(pieces) if piece.kind == "text" and text_field(piece) == "content"]
    if signature is not None and len(texts) == 1:
        pieces[texts[0]] = replace(cast("TextContent", pieces[texts[0]]), text_signature=signature)


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_assistant(
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    *,
    reply: bool = False,
    extra: Extra | None = None,
    prefix: bool = False,
    required: str | None = None,
) -> Wire:
    """Write an assistant message.

    Raises:
        EncodeError: a block of another protocol, or arguments that are not JSON.
    """
    is_plain = extra is None or PROTOCOL not in extra
    message = fast_encode(content, None, empty_content(endpoint)) if is_plain else None
    if message is None:
        message = slow_encode(content, endpoint, path, extra, reply=reply)
    if prefix:
        message[endpoint.dialect.prefix_field] = True
    if required is not None:
        add_required_reasoning(message, required)
    return restore(message, extra, PROTOCOL)


def fast_encode(
    content: Sequence[AssistantContent], field: str | None, empty: str | None = None
) -> dict[str, object] | None:
    """Write a message whose content has no signature, mark or extra; None when it is another.

    `field` is the field for thinking that names none; None where such thinking is in tags. `empty` is the content
    of a message without text.
    """
    texts: list[str] = []
    thinking: str | None = None
    target = field
    calls: list[dict[str, object]] = []
    for piece in content:
        if type(piece) is ToolCall:
            if piece.extra is not None or piece.thought_signature is not None or piece.cache_mark is not None:
                return None
            arguments = piece.arguments_text
            if arguments is None:
                try:
                    arguments = encode_arguments(piece.arguments)
                except EncodeError:
                    return None  # `slow_encode` raises it with the path
            calls.append({"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": arguments}})
        elif type(piece) is TextContent:
            if piece.extra is not None or piece.text_signature is not None or piece.cache_mark is not None:
                return None
            texts.append(piece.text)
        elif type(piece) is ThinkingContent:
            target = field if piece.thinking_signature is None else piece.thinking_signature
            if thinking is not None or not piece.thinking or target not in FIELDS:
                return None
            thinking = piece.thinking
        else:
            return None
    message: dict[str, object] = {"role": "assistant", "content": join_texts(texts) if texts else empty}
    if thinking is not None and target is not None:
        message[target] = thinking
    if calls:
        message["tool_calls"] = calls
    return message


def slow_encode(
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    extra: Extra | None = None,
    *,
    reply: bool = False,
) -> Wire:
    """Write a message of any content.

    Raises:
        EncodeError: as for `encode_assistant`.
    """
    message: Wire = {"role": "assistant", "content": None}
    calls: list[object] = []
    try:
        for piece in content:
            if piece.kind == "toolCall":
                call = encode_call(piece, endpoint)
                if is_old(piece):
                    message["function_call"] = call
                else:
                    calls.append(call)
            elif piece.kind == "native" and "tool_calls" in piece.block and piece.protocol == PROTOCOL:
                calls += cast("list[object]", piece.block["tool_calls"])
    except EncodeError as error:
        raise EncodeError(error.reason, path=path) from error
    _encode_pieces(message, content, endpoint, path, extra, reply=reply)
    if calls:
        message["tool_calls"] = calls
    return message


def _encode_pieces(
    message: Wire,
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    extra: Extra | None,
    *,
    reply: bool,
) -> None:
    """Write the content of a message, without its calls."""
    parts: list[_Part] = []
    thoughts: list[ThinkingContent] = []
    refusals: list[str] = []
    signature: str | None = None
    for piece in content:
        match piece.kind:
            case "text" if text_field(piece) == "refusal":
                refusals.append(piece.text)
            case "text":
                parts.append(piece)
                signature = piece.text_signature or signature
            case "thinking" if is_tagged(piece, endpoint):
                parts.append(in_tags(piece, endpoint))
            case "thinking":
                thoughts.append(piece)
            case "native" if is_part(piece):
                parts.append(piece)
            case "native":
                block = encode_native(piece, path)
                if "tool_calls" not in block:
                    message.update(encode_fields(piece, reply=reply))
            case "toolCall":
                pass
    if any(map(_needs_list, parts)) or (parts and chosen(extra, PROTOCOL, "content", "string") == "list"):
        message["content"] = [_encode_part(piece, path) for piece in parts]
    else:
        message["content"] = _join_parts(parts) if parts else empty_content(endpoint)
    if thoughts:
        encode_reasoning(message, thoughts, endpoint, extra)
    if refusals:
        message["refusal"] = "".join(refusals)
    if signature is not None and endpoint.dialect.google_signatures:
        message["extra_content"] = encode_signature(signature)


def _needs_list(piece: _Part | ToolCall) -> bool:
    """Whether a piece cannot be written as a string."""
    match piece.kind:
        case "native":
            return True
        case "text":
            is_marked = piece.cache_mark is not None or bool(data_of(piece.extra, PROTOCOL))
            return is_marked or text_field(piece) == "part.refusal"
        case "thinking" | "toolCall":
            return False


def _join_parts(parts: Sequence[_Part]) -> str:
    text = JoinedText()
    text.append(_text_of(parts[0]))
    for earlier, piece in pairwise(parts):
        if piece.kind == "text" and earlier.kind == "text" and piece.extra is None:
            text.join(piece.text)
        else:
            text.append(_text_of(piece))
    return str(text)


def _text_of(piece: _Part) -> str:
    match piece.kind:
        case "text":
            return write_text(piece)
        case "thinking":
            return write_thinking(piece)
        case "native":
            return ""


def _encode_part(piece: _Part, path: Path) -> Wire:
    if piece.kind == "thinking":
        return {"type": "text", "text": write_thinking(piece)}
    if piece.kind == "text" and text_field(piece) == "part.refusal":
        return encode_refusal_part(piece)
    return encode_part(piece, path)
