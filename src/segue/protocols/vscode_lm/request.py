"""A VS Code language model request, both ways: `{"messages": [...], "options": {"tools", "toolMode", ...}}`.

Facts this file rests on:
- `sendRequest` takes messages and options: justification, modelOptions, tools, toolMode (Auto 1, Required 2). A tool is
  name, description and, if it likes, inputSchema.                             (@types/vscode 1.140.0, read 2026-11-15)
- There is no place for instructions, for a model's name or for settings; `modelOptions` are the model's own. (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import Context, NativeTool, Options, Prompt, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_objects, extra_of, left_over, text_of, verbatim_of
from segue.protocols.vscode_lm.content import Wire
from segue.protocols.vscode_lm.rules import PROTOCOL
from segue.protocols.vscode_lm.turns import Reading, encode_turns

_MODES: Final[Mapping[str, int]] = {"auto": 1, "required": 2}
_MODES_BACK: Final[Mapping[object, str]] = {1: "auto", 2: "required"}
_TOOL_KEYS: Final = frozenset({"name", "description", "inputSchema"})
_BODY: Final = "body"
"""Where the options keep what a body said beside them."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or something in it is not of the form.
    """
    whole = body if isinstance(body, Mapping) else {"messages": list(body)}
    if "messages" not in whole:
        raise DecodeError("a request has to have messages", path=("messages",))
    model = text_of(whole.get("model"))
    reading = Reading(endpoint, model or endpoint.model.id)
    reading.read(expect_objects(whole["messages"], ("messages",)))
    given = whole.get("options")
    if not isinstance(given, Mapping | None):
        raise DecodeError("options has to be an object", path=("options",))
    asked: Mapping[str, object] = cast("Mapping[str, object]", given or {})
    verbatim: Wire = {}
    if "options" in whole and not given:
        verbatim["options"] = given
    if "tools" in asked and not asked["tools"]:
        verbatim["tools"] = asked["tools"]
    if model is not None:
        verbatim["model"] = True  # the form has no place for it: one that was given is given back
    tools = _decode_tools(asked.get("tools"))
    options = _decode_options(whole, asked, verbatim)
    return Prompt(context=Context(messages=tuple(reading.messages), tools=tools), options=options, model=model)


def _decode_options(whole: Mapping[str, object], asked: Mapping[str, object], verbatim: Wire) -> Options:
    given = asked.get("toolMode")
    mode = _MODES_BACK.get(given) if isinstance(given, int) and not isinstance(given, bool) else None
    kept = {key: value for key, value in asked.items() if key != "tools" and (key != "toolMode" or mode is None)}
    known = {"messages", "options", *(("model",) if "model" in verbatim else ())}
    beyond = {key: value for key, value in whole.items() if key not in known}
    if beyond:
        kept[_BODY] = beyond
    if verbatim:
        kept[VERBATIM] = verbatim
    return Options(tool_choice=mode, extra={PROTOCOL: kept} if kept else None)


def _decode_tools(given: object) -> tuple[Tool, ...]:
    if not given:
        return ()
    return tuple(_decode_tool(tool) for tool in expect_objects(given, ("options", "tools")))


def _decode_tool(wire: Mapping[str, object]) -> Tool:
    name, description, schema = wire.get("name"), wire.get("description"), wire.get("inputSchema")
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, Mapping | None):
        return NativeTool(protocol=PROTOCOL, definition=dict(wire))
    verbatim: Wire | None = None
    if schema is None:
        verbatim = {"inputSchema": "null" if "inputSchema" in wire else "absent"}
    return ToolDefinition(
        name=name,
        description=description,
        parameters=cast("Mapping[str, object]", schema or {}),
        extra=extra_of(PROTOCOL, wire, _TOOL_KEYS, verbatim),
    )


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: something has no word here; `path` leads to it. Projection tells what can be told.
    """
    context, options = prompt.context, prompt.options
    if context.system_prompt is not None and context.system_prompt != ():
        raise EncodeError("this API has no place for a system prompt", path=("system_prompt",))
    for name in sorted(endpoint.rules.refused_options):
        if getattr(options, name) is not None:
            raise EncodeError("this API has no word for it", path=("options", name))
    verbatim, kept = verbatim_of(options.extra, PROTOCOL), left_over(options.extra, PROTOCOL)
    body: Wire = {"messages": encode_turns(context.messages)}
    if verbatim.get("model") and prompt.model is not None:
        body["model"] = prompt.model
    asked = _encode_options(context, options, verbatim, kept)
    if asked:
        body["options"] = asked
    elif "options" in verbatim:
        body["options"] = verbatim["options"]
    beyond = kept.get(_BODY)
    for key, value in cast("Mapping[str, object]", beyond).items() if isinstance(beyond, Mapping) else ():
        body.setdefault(key, value)
    return body


def _encode_options(
    context: Context, options: Options, verbatim: Mapping[str, object], kept: Mapping[str, object]
) -> Wire:
    asked: Wire = {}
    if context.tools:
        asked["tools"] = [_encode_tool(tool, index) for index, tool in enumerate(context.tools)]
    elif "tools" in verbatim:
        asked["tools"] = verbatim["tools"]
    if options.tool_choice is not None:
        mode = _MODES.get(options.tool_choice)
        if mode is None:
            raise EncodeError("this API can ask for any tool or leave it open", path=("options", "tool_choice"))
        asked["toolMode"] = mode
    for key, value in kept.items():
        if key != _BODY:
            asked.setdefault(key, value)
    return asked


def _encode_tool(tool: Tool, index: int) -> Wire:
    if tool.kind == "native":
        if tool.protocol != PROTOCOL:
            raise EncodeError(f"a tool of {tool.protocol} has no place here", path=("tools", index))
        return dict(tool.definition)
    wire: Wire = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
    received = verbatim_of(tool.extra, PROTOCOL).get("inputSchema")
    if not tool.parameters and received == "absent":
        del wire["inputSchema"]
    elif not tool.parameters and received == "null":
        wire["inputSchema"] = None
    for key, value in left_over(tool.extra, PROTOCOL).items():
        wire.setdefault(key, value)
    return wire
