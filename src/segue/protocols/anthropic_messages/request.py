"""An Anthropic request, both ways: the conversation, its tools, and what is asked besides.

Facts this file rests on:
- `system` is a string or a list of text blocks, beside the messages.             (anthropic 2.8.0, read 2026-11-15)
- A tool without a type, or of type `custom`, is the application's; all others (versioned server tools, the nameless
  toolsets, MCP toolsets) are the provider's own kinds.                                                   (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, NativeTool, Prompt, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError
from segue.protocols.anthropic_messages.cache import place_marks
from segue.protocols.anthropic_messages.content import decode_system_block, encode_user_content
from segue.protocols.anthropic_messages.native import marked, unmarked
from segue.protocols.anthropic_messages.options import decode_options, encode_model, encode_options
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.turns import decode_turns, encode_turns
from segue.protocols.anthropic_messages.verbatim import keep, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, verbatim_of

_TOOL_KEYS: Final = frozenset({"type", "name", "description", "input_schema", "strict"})


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or something in it is not what the protocol says.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "messages" not in body:
        raise DecodeError("a request has to have messages", path=("messages",))
    named = body.get("model")
    model = named if isinstance(named, str) else None
    verbatim: dict[str, object] = {}
    context = Context(
        system_prompt=_decode_system(body, verbatim),
        messages=decode_turns(body["messages"], endpoint, model or endpoint.model.id),
        tools=_decode_tools(body, endpoint, verbatim),
        extra={PROTOCOL: {VERBATIM: verbatim}} if verbatim else None,
    )
    return Prompt(context=context, options=decode_options(body, endpoint), model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: something has no word on this wire; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    retention = options.cache_retention
    marks = retention is not None and retention != "none"
    body = encode_model(prompt.model, options, endpoint)
    # A mark needs a block to stand on. So that a turn is written alike with and without one, no content is a string
    # in a conversation that is marked.
    body["messages"] = encode_turns(context.messages, endpoint, strings=not marks)
    body.update(encode_options(options, endpoint, prompt.model))
    verbatim = verbatim_of(context.extra, PROTOCOL)
    _encode_system(context, verbatim, body)
    if context.tools:
        body["tools"] = [_encode_tool(tool, endpoint, index) for index, tool in enumerate(context.tools)]
    elif "tools" in verbatim:
        body["tools"] = verbatim["tools"]
    if marks and retention is not None:
        place_marks(body, endpoint, retention)
    return body


# -- system prompt -----------------------------------------------------------------------------------------------------


def _decode_system(body: Mapping[str, object], verbatim: dict[str, object]) -> str | tuple[SystemContent, ...] | None:
    system = body.get("system")
    if isinstance(system, str):
        return system
    if system is None:
        if "system" in body:
            verbatim["system"] = None
        return None
    blocks = enumerate(expect_list(system, ("system",)))
    return tuple(decode_system_block(expect_object(block, ("system", index))) for index, block in blocks)


def _encode_system(context: Context, verbatim: Mapping[str, object], body: dict[str, object]) -> None:
    system = context.system_prompt
    if system is None:
        if "system" in verbatim:
            body["system"] = None
    elif isinstance(system, str):
        body["system"] = system
    else:
        blocks: list[dict[str, object]] = []
        for index, piece in enumerate(system):
            try:
                blocks.append(encode_user_content(piece))
            except EncodeError as error:
                raise EncodeError(error.reason, path=("system_prompt", index)) from error
        body["system"] = blocks


# -- tools -------------------------------------------------------------------------------------------------------------


def _decode_tools(body: Mapping[str, object], endpoint: Endpoint, verbatim: dict[str, object]) -> tuple[Tool, ...]:
    given = body.get("tools")
    if not given:
        if "tools" in body:
            verbatim["tools"] = given
        return ()
    tools = enumerate(expect_list(given, ("tools",)))
    return tuple(_decode_tool(expect_object(tool, ("tools", index)), endpoint) for index, tool in tools)


def _decode_tool(tool: Mapping[str, object], endpoint: Endpoint) -> Tool:
    name, schema, strict = tool.get("name"), tool.get("input_schema"), tool.get("strict")
    description = tool.get("description", "")
    is_custom = tool.get("type") in (None, "custom")
    if not is_custom or not isinstance(name, str) or not isinstance(schema, Mapping):
        definition, extra = unmarked(tool)
        return NativeTool(protocol=PROTOCOL, definition=definition, extra=extra)
    verbatim: dict[str, object] = {}
    if "type" in tool:
        verbatim["type"] = tool["type"]
    if "description" in tool and not description:
        verbatim["description"] = description
    if "strict" in tool and not (isinstance(strict, bool) and endpoint.dialect.strict_tools):
        verbatim["strict"] = strict
    return ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Mapping[str, object]", schema),
        strict=strict if isinstance(strict, bool) else None,
        extra=keep(tool, _TOOL_KEYS, verbatim),
    )


def _encode_tool(tool: Tool, endpoint: Endpoint, index: int) -> dict[str, object]:
    if tool.kind == "native":
        if tool.protocol != PROTOCOL:
            raise EncodeError(f"a tool of {tool.protocol} has no place on this wire", path=("tools", index))
        return marked(tool.definition, tool.extra)
    verbatim = verbatim_of(tool.extra, PROTOCOL)
    wire: dict[str, object] = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    elif "description" in verbatim:
        wire["description"] = verbatim["description"]
    wire["input_schema"] = tool.parameters
    if tool.strict is not None and endpoint.dialect.strict_tools:
        wire["strict"] = tool.strict
    elif "strict" in verbatim:
        wire["strict"] = verbatim["strict"]
    if "type" in verbatim:
        wire["type"] = verbatim["type"]
    wire.update(put_back(tool.extra))
    return wire
