"""Tools and the choice among them, both ways.

Facts this file rests on:
- A tool is `function` {name, description, parameters, strict} or `custom`; before that there were bare `functions`.
                                                                                    (openai 3.49.0; read 2026-11-15)
- Gateways and hosts run tools of their own under other types.                         (recorded traffic, 2026-11)
- A choice is a word or an object that names a tool, with or without its type; `allowed_tools` narrows it and is kept
  as it is.                                                            (openai 3.49.0; recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, left_over, native_definition, verbatim_of
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import MISSING, fill_in, object_of

_KNOWN: Final[Mapping[str, type]] = {"name": str, "description": str, "parameters": Mapping, "strict": bool}
_CHOICE_VALUES: Final = frozenset({"auto", "none", "required"})


# -- tools -------------------------------------------------------------------------------------------------------------


def decode_tools(body: Mapping[str, object], verbatim: dict[str, object], endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools of a body, also those of the old kind; note in `verbatim` a list that is empty or null.

    Raises:
        DecodeError: they are no list of objects.
    """
    tools: list[Tool] = []
    given = body.get("tools", MISSING)
    if given is None or given == []:
        verbatim["tools"] = "null" if given is None else "empty"
    elif given is not MISSING:
        for index, tool in enumerate(expect_list(given, ("tools",))):
            tools.append(_decode_tool(expect_object(tool, ("tools", index)), endpoint))
    old = body.get("functions")
    if isinstance(old, list):
        for index, function in enumerate(cast("list[object]", old)):
            tools.append(_decode_old(expect_object(function, ("functions", index)), endpoint))
    return tuple(tools)


def _decode_old(function: Mapping[str, object], endpoint: Endpoint) -> ToolDefinition:
    # A tool does not say whom it was meant for: its shape does, and only there it is a function of old again.
    return _decode_function(function, {}, {"old": endpoint.model.provider}, endpoint)


def _decode_tool(tool: Mapping[str, object], endpoint: Endpoint) -> Tool:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, Mapping):
        return NativeTool(protocol=PROTOCOL, definition=dict(tool))
    inner = cast("Mapping[str, object]", function)
    if not isinstance(inner.get("name"), str):
        return NativeTool(protocol=PROTOCOL, definition=dict(tool))
    left = {key: value for key, value in tool.items() if key not in ("type", "function")}
    return _decode_function(inner, left, {} if "type" in tool else {"type": "absent"}, endpoint)


def _decode_function(
    function: Mapping[str, object], left: dict[str, object], verbatim: dict[str, object], endpoint: Endpoint
) -> ToolDefinition:
    description, parameters = function.get("description", MISSING), function.get("parameters", MISSING)
    strict = function.get("strict", MISSING)
    if description is None or description == "":
        verbatim["description"] = description
    if not isinstance(parameters, Mapping):
        verbatim["parameters"] = "null" if parameters is None else "absent"
    if strict is None:
        verbatim["strict"] = "null"
    elif isinstance(strict, bool) and not endpoint.dialect.strict_tools:
        verbatim["strict"] = "said"
    name = function.get("name")
    if not isinstance(name, str):
        verbatim["name"] = "absent"
    beyond = {key: value for key, value in function.items() if key not in _KNOWN or not _is_sound(key, value)}
    if beyond:
        left["function"] = beyond
    if verbatim:
        left[VERBATIM] = verbatim
    return ToolDefinition(
        name=name if isinstance(name, str) else "",
        description=description if isinstance(description, str) else "",
        parameters=cast("Mapping[str, object]", parameters) if isinstance(parameters, Mapping) else {},
        strict=strict if isinstance(strict, bool) else None,
        extra={PROTOCOL: left} if left else None,
    )


def _is_sound(key: str, value: object) -> bool:
    """Whether a key of a function has a value that it can have; one that has not is kept as it is."""
    return (value is None and key != "name") or isinstance(value, _KNOWN[key])


def encode_tools(body: dict[str, object], tools: Sequence[Tool], endpoint: Endpoint) -> None:
    """Write the tools into a body.

    Raises:
        EncodeError: a tool that another protocol's provider runs.
    """
    wire: list[object] = []
    old: list[object] = []
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            wire.append(_encode_native(tool, ("tools", index)))
        elif tool.extra is None:
            wire.append({"type": "function", "function": _encode_function(tool, endpoint)})
        else:
            _encode_restored(tool, endpoint, wire, old)
    if wire:
        body["tools"] = wire
    if old:
        body["functions"] = old


def _encode_native(tool: NativeTool, path: Path) -> dict[str, object]:
    return fill_in(dict(native_definition(PROTOCOL, tool, path)), left_over(tool.extra, PROTOCOL))


def _encode_function(tool: ToolDefinition, endpoint: Endpoint) -> dict[str, object]:
    function: dict[str, object] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None and endpoint.dialect.strict_tools:
        function["strict"] = tool.strict
    return function


def _encode_restored(tool: ToolDefinition, endpoint: Endpoint, wire: list[object], old: list[object]) -> None:
    verbatim = verbatim_of(tool.extra, PROTOCOL)
    function = _encode_function(tool, endpoint)
    if "description" in verbatim and not tool.description:
        function["description"] = verbatim["description"]
    if not tool.parameters and "parameters" in verbatim:
        if verbatim["parameters"] == "null":
            function["parameters"] = None
        else:
            del function["parameters"]
    if tool.strict is None and verbatim.get("strict") == "null":
        function["strict"] = None
    elif tool.strict is not None and verbatim.get("strict") == "said":
        function["strict"] = tool.strict
    if "name" in verbatim and not tool.name:
        del function["name"]
    left = dict(left_over(tool.extra, PROTOCOL))
    beyond = left.pop("function", None)
    fill_in(function, object_of(beyond))
    if verbatim.get("old") == endpoint.model.provider:
        old.append(fill_in(function, left))
    elif verbatim.get("type") == "absent":
        wire.append(fill_in({"function": function}, left))
    else:
        wire.append(fill_in({"type": "function", "function": function}, left))


# -- the choice --------------------------------------------------------------------------------------------------------


def decode_tool_choice(body: Mapping[str, object], _: Endpoint) -> str | None:
    """Read a choice of the new or the old kind; None when it says more than a word or a name."""
    given = body.get("tool_choice")
    if isinstance(given, str):
        return given if given in _CHOICE_VALUES else None
    if isinstance(given, Mapping):
        choice = cast("Mapping[str, object]", given)
        for key in ("function", "custom"):
            if choice.get("type", key) == key and isinstance(inner := choice.get(key), Mapping):
                return _name(cast("Mapping[str, object]", inner))
        return None
    if given is not None:
        return None
    old = body.get("function_call")
    if isinstance(old, str):
        return old if old in _CHOICE_VALUES else None
    return _name(cast("Mapping[str, object]", old)) if isinstance(old, Mapping) else None


def _name(inner: Mapping[str, object]) -> str | None:
    name = inner.get("name")
    # A tool that is called like one of the words could not be told from it.
    return name if isinstance(name, str) and name not in _CHOICE_VALUES else None


def encode_tool_choice(choice: str) -> object:
    """Write a choice: a word, or the tool's name."""
    return choice if choice in _CHOICE_VALUES else {"type": "function", "function": {"name": choice}}
