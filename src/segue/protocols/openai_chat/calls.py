"""Tool calls in an assistant message, both ways.

Facts this file rests on:
- `tool_calls[]` is `function` {name, arguments as text} or `custom` {name, input as text}; before that there was one
  `function_call` without an id.                                                              (openai 3.49.0)
- Vendors leave out the type or the id, add an `index`, or give arguments as an object, null or nothing; sent back,
  arguments that are no JSON are refused.
                                                        (recorded traffic, 2026-11; vercel/ai #19274, ollama #12794)
- Gemini's seal on a call travels in `extra_content.google.thought_signature`.    (langchain #34056, ruby_llm #591)

The input of a custom tool becomes the argument `input`. A call of the old kind has the id `function_call`, and so has
its result: they stand next to each other, and ids of later turns are their own. Where a reply has one, its result will
have the role `tool`, so a request repeats it as a call of the new kind. A call of a kind that nobody knows, and
that names no function, is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import NativeContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import SHAPE, expect_object, left_over, shape_of
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import MISSING, Block, Json, fill_in, object_of

OLD_ID: Final = "function_call"
_USUAL_TYPES: Final = ("function", None, MISSING)
_CUSTOM: Final[Mapping[str, object]] = {"type": "custom"}
"""The shape of a call that says what it is, and not only how it was spelt."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_call(
    wire: object, endpoint: Endpoint, tool_names: Mapping[str, str], path: Path, notes: list[Diagnostic]
) -> ToolCall | NativeContent:
    """Read one call; one of a kind that nobody knows is kept as it is.

    Raises:
        DecodeError: it is no object.
    """
    usual = _decode_usual_call(cast("Json", wire), tool_names, notes)
    if usual is not None:
        return usual
    call = expect_object(wire, path)
    kind = call.get("type", MISSING)
    inner_key = "custom" if kind == "custom" else "function"
    inner = call.get(inner_key)
    function = object_of(inner)
    name = function.get("name")
    if not isinstance(name, str) and kind not in _USUAL_TYPES:
        return native_call(call)
    shape: dict[str, object] = {}
    if kind != "function":
        shape["type"] = "absent" if kind is MISSING else kind
    call_id = call.get("id")
    known = {"id", "type", inner_key, "extra_content"}
    if not isinstance(call_id, str):
        shape["id"] = "null" if "id" in call and call_id is None else "absent"
        if call_id is not None:
            known.discard("id")
    arguments, spelling = _read_arguments(function, inner_key, shape, notes)
    if not isinstance(inner, (dict, Mapping)):
        shape["function"] = "odd"  # it is left over, or not there
        known.discard(inner_key)
    left = {key: value for key, value in call.items() if key not in known}
    beyond = _read_beyond(function, inner_key, shape)
    if beyond:
        left[inner_key] = beyond
    wire_name = name if isinstance(name, str) else ""
    signature = None
    if "extra_content" in call:
        signature, rest = read_seal(call["extra_content"], endpoint)
        if rest is not MISSING:
            left["extra_content"] = rest
    if shape:
        left[SHAPE] = shape
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=tool_names.get(wire_name, wire_name),
        arguments=arguments,
        arguments_text=spelling,
        thought_signature=signature,
        extra={PROTOCOL: left} if left else None,
    )


def native_call(call: Block) -> NativeContent:
    """Keep a call that only this wire knows."""
    return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(call)]})


def _read_beyond(function: Block, kind: str, shape: dict[str, object]) -> dict[str, object]:
    """Give what a function says beyond its name and arguments, and those too where they are no such thing."""
    said = "input" if kind == "custom" else "arguments"
    known = {"name", said}
    if not isinstance(function.get("name"), str):
        shape["name"] = "odd"
        known.discard("name")
    if shape.get("arguments") == "odd":
        known.discard(said)
    return {key: value for key, value in function.items() if key not in known}


def _decode_usual_call(call: Json, tool_names: Mapping[str, str], notes: list[Diagnostic]) -> ToolCall | None:
    """Read a call that says its id, its name and its arguments and nothing else; None when it is another."""
    if not isinstance(call, dict) or len(call) != 3 or call.get("type") != "function":
        return None
    call_id, function = call.get("id"), call.get("function")
    if not isinstance(call_id, str) or not isinstance(function, dict) or len(function) != 2:
        return None
    name, said = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(said, str) or not said:
        return None
    parsed = parse_arguments(said)
    if parsed.diagnostic is not None:
        notes.append(parsed.diagnostic)
    name = tool_names.get(name, name)
    return ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text)


def decode_old_call(wire: Block, tool_names: Mapping[str, str], notes: list[Diagnostic]) -> ToolCall:
    """Read a `function_call`."""
    shape: dict[str, object] = {"old": True}
    arguments, spelling = _read_arguments(wire, "function", shape, notes)
    name = wire.get("name")
    wire_name = name if isinstance(name, str) else ""
    left = _read_beyond(wire, "function", shape)
    left[SHAPE] = shape
    return ToolCall(
        id=OLD_ID,
        name=tool_names.get(wire_name, wire_name),
        arguments=arguments,
        arguments_text=spelling,
        extra={PROTOCOL: left},
    )


def _read_arguments(
    function: Block, kind: str, shape: dict[str, object], notes: list[Diagnostic]
) -> tuple[Mapping[str, object], str | None]:
    if kind == "custom":
        said = function.get("input")
        if not isinstance(said, str):
            shape["arguments"] = "absent" if "input" not in function else "null" if said is None else "odd"
            return {}, None
        return {"input": said}, None
    said = function.get("arguments", MISSING)
    if said == "":
        shape["arguments"] = "empty"
        return {}, None
    if isinstance(said, str):
        parsed = parse_arguments(said)
        if parsed.diagnostic is not None:
            notes.append(parsed.diagnostic)
        return parsed.arguments, parsed.text
    if isinstance(said, Mapping):
        shape["arguments"] = "object"
        return cast("Block", said), None
    shape["arguments"] = "absent" if said is MISSING else "null" if said is None else "odd"
    return {}, None


def read_seal(extra_content: object, endpoint: Endpoint) -> tuple[str | None, object]:
    """Take Gemini's seal out of `extra_content`; give what is left of that, `MISSING` when nothing is."""
    content = object_of(extra_content)
    google = object_of(content.get("google"))
    seal = google.get("thought_signature")
    if not endpoint.dialect.google_signatures or not isinstance(seal, str):
        return None, extra_content
    rest = {key: value for key, value in content.items() if key != "google"}
    beside = {key: value for key, value in google.items() if key != "thought_signature"}
    if beside:
        rest["google"] = beside
    return seal, rest or MISSING


def write_seal(wire: dict[str, object], seal: str) -> None:
    """Put Gemini's seal beside what else `extra_content` says."""
    beside = object_of(wire.get("extra_content"))
    wire["extra_content"] = {**beside, "google": {**object_of(beside.get("google")), "thought_signature": seal}}


# -- writing -----------------------------------------------------------------------------------------------------------


def is_old(call: ToolCall) -> bool:
    """Whether it came as a `function_call`."""
    return call.extra is not None and shape_of(call.extra, PROTOCOL).get("old") is True


def encode_call(call: ToolCall, endpoint: Endpoint) -> dict[str, object]:
    """Write one call."""
    text = call.arguments_text
    if text is None:
        text = encode_arguments(call.arguments)
    function: dict[str, object] = {"name": call.name, "arguments": text}
    wire: dict[str, object] = {"id": call.id, "type": "function", "function": function}
    if call.extra is not None:
        wire = _respelt(call, wire, function)
    if call.thought_signature is not None and endpoint.dialect.google_signatures:
        write_seal(wire, call.thought_signature)
    return wire


def encode_old_call(call: ToolCall) -> dict[str, object]:
    """Write a call as a `function_call`."""
    text = call.arguments_text
    wire: dict[str, object] = {
        "name": call.name,
        "arguments": encode_arguments(call.arguments) if text is None else text,
    }
    shape = shape_of(call.extra, PROTOCOL)
    _respell_arguments(call, wire, shape.get("arguments"))
    if not call.name and "name" in shape:
        del wire["name"]
    return fill_in(wire, left_over(call.extra, PROTOCOL))


def _respelt(call: ToolCall, wire: dict[str, object], function: dict[str, object]) -> dict[str, object]:
    shape = shape_of(call.extra, PROTOCOL)
    kind, said_id = shape.get("type", MISSING), shape.get("id")
    inner_key = "function"
    if kind == "custom":
        inner_key = "custom"
        said = call.arguments.get("input")
        custom: dict[str, object] = {"name": function["name"], "input": said}
        if not isinstance(said, str):
            custom["input"] = function["arguments"]
            _respell_arguments(call, custom, shape.get("arguments"), key="input")
        wire = {"id": call.id, "type": "custom", "custom": custom}
    elif kind == "absent":
        del wire["type"]
    elif kind is not MISSING:
        wire["type"] = kind
    if said_id == "absent" and not call.id:
        del wire["id"]
    elif said_id == "null" and not call.id:
        wire["id"] = None
    if inner_key == "function":
        _respell_arguments(call, function, shape.get("arguments"))
        if not call.name and "name" in shape:
            del function["name"]
        if not function and "function" in shape:
            del wire["function"]
    for key, value in left_over(call.extra, PROTOCOL).items():
        if key == inner_key and key in wire and isinstance(value, Mapping):
            fill_in(cast("dict[str, object]", wire[key]), cast("Block", value))
        else:
            wire.setdefault(key, value)
    return wire


def _respell_arguments(call: ToolCall, wire: dict[str, object], shape: object, *, key: str = "arguments") -> None:
    if shape == "object":
        wire[key] = call.arguments
    elif not call.arguments and shape == "empty":
        wire[key] = ""
    elif not call.arguments and shape == "null":
        wire[key] = None
    elif not call.arguments and shape in ("absent", "odd"):
        del wire[key]  # odd ones are left over


def set_spelling_aside(call: ToolCall) -> tuple[ToolCall, Mapping[str, object] | None]:
    """Part a call of a reply from how it was spelt there: a request is written our way, whatever the reply did."""
    if call.extra is None:
        return call, None
    part = call.extra[PROTOCOL]
    shape = shape_of(call.extra, PROTOCOL)
    meant = _CUSTOM if shape.get("type") == "custom" else {}
    spelt: dict[str, object] = {key: value for key, value in part.items() if key != SHAPE}
    rest = {key: value for key, value in shape.items() if key not in meant}
    if rest:
        spelt[SHAPE] = rest
    kept = {PROTOCOL: {SHAPE: dict(meant)}} if meant else None
    return _with_extra(call, kept), spelt or None


def with_spelling(call: ToolCall, spelt: Mapping[str, object]) -> ToolCall:
    """Put a reply's spelling back on a call."""
    meant = shape_of(call.extra, PROTOCOL)
    merged = {**meant, **object_of(spelt.get(SHAPE))}
    part: dict[str, object] = {key: value for key, value in spelt.items() if key != SHAPE}
    if merged:
        part[SHAPE] = merged
    return _with_extra(call, {PROTOCOL: part})


def _with_extra(call: ToolCall, extra: Mapping[str, Mapping[str, object]] | None) -> ToolCall:
    return ToolCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        arguments_text=call.arguments_text,
        thought_signature=call.thought_signature,
        extra=extra,
    )
