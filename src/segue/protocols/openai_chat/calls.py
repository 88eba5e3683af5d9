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
from segue.protocols.kit.reading import VERBATIM, expect_object, left_over, verbatim_of
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import MISSING, Block, Json, fill_in, object_of

OLD_ID: Final = "function_call"
_DEFAULT_TYPES: Final = ("function", None, MISSING)
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
    default = _fast_decode_call(cast("Json", wire), tool_names, notes)
    if default is not None:
        return default
    call = expect_object(wire, path)
    kind = call.get("type", MISSING)
    inner_key = "custom" if kind == "custom" else "function"
    inner = call.get(inner_key)
    function = object_of(inner)
    name = function.get("name")
    if not isinstance(name, str) and kind not in _DEFAULT_TYPES:
        return native_call(call)
    verbatim: dict[str, object] = {}
    if kind != "function":
        verbatim["type"] = "absent" if kind is MISSING else kind
    call_id = call.get("id")
    known = {"id", "type", inner_key, "extra_content"}
    if not isinstance(call_id, str):
        verbatim["id"] = "null" if "id" in call and call_id is None else "absent"
        if call_id is not None:
            known.discard("id")
    arguments, wire_format = _read_arguments(function, inner_key, verbatim, notes)
    if not isinstance(inner, (dict, Mapping)):
        verbatim["function"] = "odd"  # it is left over, or not there
        known.discard(inner_key)
    left = {key: value for key, value in call.items() if key not in known}
    beyond = _read_beyond(function, inner_key, verbatim)
    if beyond:
        left[inner_key] = beyond
    wire_name = name if isinstance(name, str) else ""
    signature = None
    if "extra_content" in call:
        signature, rest = read_signature(call["extra_content"], endpoint)
        if rest is not MISSING:
            left["extra_content"] = rest
    if verbatim:
        left[VERBATIM] = verbatim
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=tool_names.get(wire_name, wire_name),
        arguments=arguments,
        arguments_text=wire_format,
        thought_signature=signature,
        extra={PROTOCOL: left} if left else None,
    )


def native_call(call: Block) -> NativeContent:
    """Keep a call that only this wire knows."""
    return NativeContent(protocol=PROTOCOL, block={"tool_calls": [dict(call)]})


def _read_beyond(function: Block, kind: str, verbatim: dict[str, object]) -> dict[str, object]:
    """Give what a function says beyond its name and arguments, and those too where they are no such thing."""
    given = "input" if kind == "custom" else "arguments"
    known = {"name", given}
    if not isinstance(function.get("name"), str):
        verbatim["name"] = "odd"
        known.discard("name")
    if verbatim.get("arguments") == "odd":
        known.discard(given)
    return {key: value for key, value in function.items() if key not in known}


def _fast_decode_call(call: Json, tool_names: Mapping[str, str], notes: list[Diagnostic]) -> ToolCall | None:
    """Read a call that says its id, its name and its arguments and nothing else; None when it is another."""
    if not isinstance(call, dict) or len(call) != 3 or call.get("type") != "function":
        return None
    call_id, function = call.get("id"), call.get("function")
    if not isinstance(call_id, str) or not isinstance(function, dict) or len(function) != 2:
        return None
    name, given = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(given, str) or not given:
        return None
    parsed = parse_arguments(given)
    if parsed.diagnostic is not None:
        notes.append(parsed.diagnostic)
    name = tool_names.get(name, name)
    return ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text)


def decode_old_call(wire: Block, tool_names: Mapping[str, str], notes: list[Diagnostic]) -> ToolCall:
    """Read a `function_call`."""
    verbatim: dict[str, object] = {"old": True}
    arguments, wire_format = _read_arguments(wire, "function", verbatim, notes)
    name = wire.get("name")
    wire_name = name if isinstance(name, str) else ""
    left = _read_beyond(wire, "function", verbatim)
    left[VERBATIM] = verbatim
    return ToolCall(
        id=OLD_ID,
        name=tool_names.get(wire_name, wire_name),
        arguments=arguments,
        arguments_text=wire_format,
        extra={PROTOCOL: left},
    )


def _read_arguments(
    function: Block, kind: str, verbatim: dict[str, object], notes: list[Diagnostic]
) -> tuple[Mapping[str, object], str | None]:
    if kind == "custom":
        given = function.get("input")
        if not isinstance(given, str):
            verbatim["arguments"] = "absent" if "input" not in function else "null" if given is None else "odd"
            return {}, None
        return {"input": given}, None
    given = function.get("arguments", MISSING)
    if given == "":
        verbatim["arguments"] = "empty"
        return {}, None
    if isinstance(given, str):
        parsed = parse_arguments(given)
        if parsed.diagnostic is not None:
            notes.append(parsed.diagnostic)
        return parsed.arguments, parsed.text
    if isinstance(given, Mapping):
        verbatim["arguments"] = "object"
        return cast("Block", given), None
    verbatim["arguments"] = "absent" if given is MISSING else "null" if given is None else "odd"
    return {}, None


def read_signature(extra_content: object, endpoint: Endpoint) -> tuple[str | None, object]:
    """Take Gemini's seal out of `extra_content`; give what is left of that, `MISSING` when nothing is."""
    content = object_of(extra_content)
    google = object_of(content.get("google"))
    wire_signature = google.get("thought_signature")
    if not endpoint.dialect.google_signatures or not isinstance(wire_signature, str):
        return None, extra_content
    rest = {key: value for key, value in content.items() if key != "google"}
    beside = {key: value for key, value in google.items() if key != "thought_signature"}
    if beside:
        rest["google"] = beside
    return wire_signature, rest or MISSING


def write_signature(wire: dict[str, object], wire_signature: str) -> None:
    """Put Gemini's seal beside what else `extra_content` says."""
    beside = object_of(wire.get("extra_content"))
    wire["extra_content"] = {
        **beside,
        "google": {**object_of(beside.get("google")), "thought_signature": wire_signature},
    }


# -- writing -----------------------------------------------------------------------------------------------------------


def is_old(call: ToolCall) -> bool:
    """Whether it came as a `function_call`."""
    return call.extra is not None and verbatim_of(call.extra, PROTOCOL).get("old") is True


def encode_call(call: ToolCall, endpoint: Endpoint) -> dict[str, object]:
    """Write one call."""
    text = call.arguments_text
    if text is None:
        text = encode_arguments(call.arguments)
    function: dict[str, object] = {"name": call.name, "arguments": text}
    wire: dict[str, object] = {"id": call.id, "type": "function", "function": function}
    if call.extra is not None:
        wire = _restored(call, wire, function)
    if call.thought_signature is not None and endpoint.dialect.google_signatures:
        write_signature(wire, call.thought_signature)
    return wire


def encode_old_call(call: ToolCall) -> dict[str, object]:
    """Write a call as a `function_call`."""
    text = call.arguments_text
    wire: dict[str, object] = {
        "name": call.name,
        "arguments": encode_arguments(call.arguments) if text is None else text,
    }
    verbatim = verbatim_of(call.extra, PROTOCOL)
    _restore_arguments(call, wire, verbatim.get("arguments"))
    if not call.name and "name" in verbatim:
        del wire["name"]
    return fill_in(wire, left_over(call.extra, PROTOCOL))


def _restored(call: ToolCall, wire: dict[str, object], function: dict[str, object]) -> dict[str, object]:
    verbatim = verbatim_of(call.extra, PROTOCOL)
    kind, wire_id = verbatim.get("type", MISSING), verbatim.get("id")
    inner_key = "function"
    if kind == "custom":
        inner_key = "custom"
        given = call.arguments.get("input")
        custom: dict[str, object] = {"name": function["name"], "input": given}
        if not isinstance(given, str):
            custom["input"] = function["arguments"]
            _restore_arguments(call, custom, verbatim.get("arguments"), key="input")
        wire = {"id": call.id, "type": "custom", "custom": custom}
    elif kind == "absent":
        del wire["type"]
    elif kind is not MISSING:
        wire["type"] = kind
    if wire_id == "absent" and not call.id:
        del wire["id"]
    elif wire_id == "null" and not call.id:
        wire["id"] = None
    if inner_key == "function":
        _restore_arguments(call, function, verbatim.get("arguments"))
        if not call.name and "name" in verbatim:
            del function["name"]
        if not function and "function" in verbatim:
            del wire["function"]
    for key, value in left_over(call.extra, PROTOCOL).items():
        if key == inner_key and key in wire and isinstance(value, Mapping):
            fill_in(cast("dict[str, object]", wire[key]), cast("Block", value))
        else:
            wire.setdefault(key, value)
    return wire


def _restore_arguments(call: ToolCall, wire: dict[str, object], verbatim: object, *, key: str = "arguments") -> None:
    if verbatim == "object":
        wire[key] = call.arguments
    elif not call.arguments and verbatim == "empty":
        wire[key] = ""
    elif not call.arguments and verbatim == "null":
        wire[key] = None
    elif not call.arguments and verbatim in ("absent", "odd"):
        del wire[key]  # odd ones are left over


def take_original(call: ToolCall) -> tuple[ToolCall, Mapping[str, object] | None]:
    """Part a call of a reply from how it was spelt there: a request is written our way, whatever the reply did."""
    if call.extra is None:
        return call, None
    part = call.extra[PROTOCOL]
    verbatim = verbatim_of(call.extra, PROTOCOL)
    meant = _CUSTOM if verbatim.get("type") == "custom" else {}
    original: dict[str, object] = {key: value for key, value in part.items() if key != VERBATIM}
    rest = {key: value for key, value in verbatim.items() if key not in meant}
    if rest:
        original[VERBATIM] = rest
    kept = {PROTOCOL: {VERBATIM: dict(meant)}} if meant else None
    return _with_extra(call, kept), original or None


def with_original(call: ToolCall, original: Mapping[str, object]) -> ToolCall:
    """Put a reply's spelling back on a call."""
    meant = verbatim_of(call.extra, PROTOCOL)
    merged = {**meant, **object_of(original.get(VERBATIM))}
    part: dict[str, object] = {key: value for key, value in original.items() if key != VERBATIM}
    if merged:
        part[VERBATIM] = merged
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
