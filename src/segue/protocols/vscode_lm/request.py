"""A VS Code language model request, both ways: `{"messages": [...], "options": {"tools", "toolMode", ...}}`.

Facts:
- `sendRequest` accepts messages and options: justification, modelOptions, tools, toolMode (Auto 1, Required 2). A tool
  is name, description and an optional inputSchema.                            (@types/vscode 1.140.0, read 2026-11-15)
- There is no field for instructions, for a model or for settings; `modelOptions` depends on the model.     (the same)

`extra` of the options describes the object `options` of the body; the other keys of the body are under `body`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import Context, NativeTool, Options, Prompt, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import body_with_messages, expect_objects, native_definition, text_of
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.vscode_lm.rules import PROTOCOL
from segue.protocols.vscode_lm.turns import TurnReader, encode_turns

_MODES: Final[Mapping[str, int]] = {"auto": 1, "required": 2}
_MODES_BACK: Final[Mapping[object, str]] = {1: "auto", 2: "required"}
_BODY: Final = "body"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or a value of an unexpected type.
    """
    whole = body_with_messages(body)
    model = text_of(whole.get("model"))
    reader = TurnReader(endpoint, model or endpoint.model.id)
    reader.read(expect_objects(whole["messages"], ("messages",)))
    received = whole.get("options")
    if not isinstance(received, Mapping | None):
        raise DecodeError("`options` must be an object; remove it", path=("options",))
    tools = object_of(whole.get("options")).get("tools")
    context = Context(
        messages=tuple(reader.messages),
        tools=tuple(map(_decode_tool, expect_objects(tools, ("options", "tools")))) if tools else (),
    )
    return Prompt(context=context, options=_decode_options(whole, endpoint, model), model=model)


def _decode_options(whole: Block, endpoint: Endpoint, model: str | None) -> Options:
    received = object_of(whole.get("options"))
    mode = received.get("toolMode")
    options = Options(tool_choice=_MODES_BACK.get(mode) if type(mode) is int else None)
    known: set[str] = {"body.options", "tools"} if model is None else {"body.options", "body.model", "tools"}
    beside = {key: value for key, value in whole.items() if key != "messages" and (key != "options" or not value)}
    node: Wire = {key: value for key, value in received.items() if key != "tools" or not value}
    node[_BODY] = beside
    default: Wire = {**_default_options(options), _BODY: {}}
    return replace(options, extra=keep(PROTOCOL, node, default, known=known, only_for=model or endpoint.model.id))


def _decode_tool(wire: Block) -> Tool:
    name, description, schema = wire.get("name"), wire.get("description"), wire.get("inputSchema")
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, Mapping | None):
        return NativeTool(protocol=PROTOCOL, definition=dict(wire))
    tool = ToolDefinition(name=name, description=description, parameters=cast("Block", schema or EMPTY))
    if len(wire) == 3 and schema is not None:
        return tool
    return replace(tool, extra=keep(PROTOCOL, wire, _default_tool(tool)))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: the API does not support something; `path` leads to it. `prepare` converts what can be converted.
    """
    context, options = prompt.context, prompt.options
    if context.system_prompt is not None and context.system_prompt != ():
        reason = f"{PROTOCOL} does not support a system prompt; send a user message"
        raise EncodeError(reason, path=("system_prompt",))
    refuse_options(PROTOCOL, options, sorted(endpoint.rules.refused_options))
    body: Wire = {"messages": encode_turns(context.messages)}
    node = _default_options(options)
    if context.tools:
        node["tools"] = [_encode_tool(tool, index) for index, tool in enumerate(context.tools)]
    if options.extra is not None:
        node[_BODY] = {}
        restore(node, options.extra, PROTOCOL, model=prompt.model or endpoint.model.id)
        beside = object_of(node.pop(_BODY, EMPTY))
        body.update((key, value) for key, value in beside.items() if key != "messages")
    if node:
        body["options"] = node
    return body


def _default_options(options: Options) -> Wire:
    if options.tool_choice is None:
        return {}
    mode = _MODES.get(options.tool_choice)
    if mode is None:
        reason = f"{PROTOCOL} does not support `tool_choice` {options.tool_choice!r}; use auto or required"
        raise EncodeError(reason, path=("options", "tool_choice"))
    return {"toolMode": mode}


def _encode_tool(tool: Tool, index: int) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, ("tools", index)))
    return restore(_default_tool(tool), tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition) -> Wire:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
