"""Tool calls of an assistant message, both ways.

Facts this file rests on:
- `tool_calls[]` is `function` {name, arguments as text} or `custom` {name, input as text}; an older format has one
  `function_call` without an id.                                                              (openai 3.49.0)
- Vendors leave out the type or the id, add an `index`, or send arguments as an object, as null or not at all. In a
  request, arguments that are no JSON are refused.
                                                        (recorded traffic, 2026-11; vercel/ai #19274, ollama #12794)
- Gemini's signature of a call is `extra_content.google.thought_signature`.       (langchain #34056, ruby_llm #591)
- LiteLLM passes `cache_control` of a call on to Claude.   (LiteLLM: convert_to_anthropic_tool_invoke, 2026-11-15)

The input of a custom tool is the argument `input`. A `function_call` has the id `function_call`, and so has its result:
they stand next to each other, and later calls have ids of their own. The result of a `function_call` in a reply has the
role `tool`, so a request sends that call in `tool_calls`. A call of an unknown type without a function is native
content.

Choice that calls keep: `field`, "custom" or "function_call", not "function".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import NativeContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of
from segue.protocols.kit.reading import expect_object
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.cache import find_mark, write_mark
from segue.protocols.openai_chat.fast_decode import Json
from segue.protocols.openai_chat.native import choice_extra, keep_call
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
        DecodeError: it is no object.
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
    """Give the field that holds a call: "function", "custom" or "function_call"."""
    return chosen(call.extra, PROTOCOL, "field", "function")


def encode_call(call: ToolCall, endpoint: Endpoint) -> Wire:
    """Write one call.

    Raises:
        EncodeError: its arguments are no JSON.
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
    write_mark(wire, call.cache_mark)
    return wire if call.extra is None else restore(wire, call.extra, PROTOCOL)


def encode_signature(signature: str) -> Wire:
    """Write Gemini's signature as an `extra_content`."""
    return {"google": {"thought_signature": signature}}
