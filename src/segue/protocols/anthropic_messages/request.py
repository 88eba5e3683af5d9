"""An Anthropic request, both ways: the conversation, its tools, and the options.

Facts this file relies on:
- `system` is a string or a list of text blocks, beside the messages.             (anthropic 2.8.0, read 2026-11-15)
- A tool without a type, or of type `custom`, is run by the application; all others (versioned server tools, toolsets
  without a name, MCP toolsets) are run by the provider.                                                  (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, NativeTool, Prompt, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError
from segue.protocols.anthropic_messages.cache import (
    CACHE_CONTROL,
    decode_mark,
    encode_mark,
    join_mark,
    place_marks,
    split_mark,
)
from segue.protocols.anthropic_messages.content import decode_system_block, encode_user_content
from segue.protocols.anthropic_messages.options import decode_options, encode_options
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.transports import TRANSPORTS
from segue.protocols.anthropic_messages.turns import decode_turns, encode_turns
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.reading import expect_objects, native_definition, text_of
from segue.protocols.kit.verbatim import keep, restore

_FRAME: Final = ("system", "tools")
_TOOL_TYPES: Final[Mapping[str, type]] = {"type": str, "description": str, "strict": bool}
"""Keys of a tool that the default may leave out, and the type of a value that is read."""


def decode_request(body: Block | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or something in it is not what the protocol defines.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "messages" not in body:
        raise DecodeError("the request has no `messages`; add a list of messages", path=("messages",))
    model = text_of(body.get("model"))
    empty = {key: body[key] for key in _FRAME if key in body and _is_empty(key, body[key])}
    context = Context(
        system_prompt=_decode_system(body.get("system")),
        messages=decode_turns(body["messages"], endpoint, model or endpoint.model.id),
        tools=_decode_tools(body.get("tools"), endpoint),
        extra=keep(PROTOCOL, empty, EMPTY, known=_FRAME) if empty else None,
    )
    return Prompt(context=context, options=decode_options(body, endpoint), model=model)


def _is_empty(key: str, value: object) -> bool:
    return value is None or (key == "tools" and not value)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: the protocol does not support something; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    retention = options.cache_retention
    marks = retention is not None and retention != "none"
    asked = encode_options(options, endpoint, prompt.model)
    if endpoint.dialect.transport is not None:
        asked = {
            key: value for key, value in asked.items() if key not in TRANSPORTS[endpoint.dialect.transport].removed
        }
    body: Wire = {"model": asked.pop("model")} if "model" in asked else {}
    # A mark needs a block. So that a turn is written alike with and without one, no content is a string in a
    # conversation that is marked.
    body["messages"] = encode_turns(context.messages, endpoint, strings=not marks)
    body.update(asked)
    if context.system_prompt is not None:
        body["system"] = _encode_system(context.system_prompt)
    if context.tools:
        body["tools"] = [_encode_tool(tool, endpoint, index) for index, tool in enumerate(context.tools)]
    if context.extra is not None:
        restore(body, context.extra, PROTOCOL)
    if retention is not None and marks:
        place_marks(body, endpoint, retention, anchored=prompt.anchored, plain_system=prompt.plain_system)
    return body


# -- system prompt -----------------------------------------------------------------------------------------------------


def _decode_system(system: object) -> str | tuple[SystemContent, ...] | None:
    if system is None or isinstance(system, str):
        return system
    return tuple(map(decode_system_block, expect_objects(system, ("system",))))


def _encode_system(system: str | tuple[SystemContent, ...]) -> object:
    if isinstance(system, str):
        return system
    blocks: list[Wire] = []
    for index, piece in enumerate(system):
        try:
            blocks.append(encode_user_content(piece))
        except EncodeError as error:
            raise EncodeError(error.reason, path=("system_prompt", index)) from error
    return blocks


# -- tools -------------------------------------------------------------------------------------------------------------


def _decode_tools(given: object, endpoint: Endpoint) -> tuple[Tool, ...]:
    if not given:
        return ()
    return tuple(_decode_tool(tool, endpoint) for tool in expect_objects(given, ("tools",)))


def _decode_tool(tool: Block, endpoint: Endpoint) -> Tool:
    name, schema, strict, description = (tool.get(key) for key in ("name", "input_schema", "strict", "description"))
    is_custom = tool.get("type") in (None, "custom")
    if not is_custom or not isinstance(name, str) or not isinstance(schema, Mapping):
        definition, mark = split_mark(tool)
        return NativeTool(protocol=PROTOCOL, definition=definition, cache_mark=mark)
    definition = ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", schema),
        strict=strict if isinstance(strict, bool) else None,
        cache_mark=decode_mark(tool),
    )
    known = [key for key, kind in _TOOL_TYPES.items() if isinstance(tool.get(key), kind)]
    return replace(definition, extra=keep(PROTOCOL, tool, _encode_tool(definition, endpoint, 0), known))


def _encode_tool(tool: Tool, endpoint: Endpoint, index: int) -> Wire:
    if tool.kind == "native":
        return join_mark(native_definition(PROTOCOL, tool, ("tools", index)), tool.cache_mark)
    wire: Wire = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    wire["input_schema"] = tool.parameters
    if tool.strict is not None and endpoint.dialect.strict_tools:
        wire["strict"] = tool.strict
    if tool.cache_mark is not None:
        wire[CACHE_CONTROL] = encode_mark(tool.cache_mark)
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)
