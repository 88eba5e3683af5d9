"""An Anthropic request, both ways: the conversation, its tools, and the options.

How clouds take requests of the Messages protocol: Bedrock InvokeModel, and rawPredict of Vertex AI.

What Claude's thinking is bound to, on the Anthropic wire.

Facts:
- `system` is a string or a list of text blocks, next to the messages.             (anthropic 2.8.0, read 2026-11-15)
- A tool without a type, or of type `custom`, is run by the application; all others (versioned server tools, toolsets
  without a name, MCP toolsets) are run by the provider.                                                  (the same)
- Bedrock: `POST /model/{model}/invoke` and `/invoke-with-response-stream`. The body has `anthropic_version` and
  `anthropic_beta`, a list, and neither `model` nor `stream`. A stream is an AWS event stream whose `chunk`s have the
  events as base64. An error is one of AWS: `{"message"}`, its type in a header.
                                                                   (anthropic 2.8.0: lib/bedrock; botocore 1.44.0)
- Vertex: `.../publishers/anthropic/models/{model}:rawPredict` and `:streamRawPredict`. The body has
  `anthropic_version` and no `model`. Betas are in their header; Claude Code writes them into the body, and both are
  read. A stream is SSE.                              (anthropic 2.8.0: lib/vertex; Claude Code documentation: gateways)
- The body names the version "2026-10-21"; the older one is `bedrock-2023-05-31` or `vertex-2023-10-16`.
                                                                          (anthropic 2.8.0, and the majors before it)

Facts (Anthropic documentation: preserved thinking; anthropic 2.8.0; read 2026-11-16):
- The prefix of a thinking block is `system`, `tools` and every message before it, as the client sent them; after a
  `compaction` block only what follows it. Cache marks do not count, nor does a tool with `defer_loading`.
- A string as the content of a message is short for one text block. Claude Code sends a message as a block with a cache
  mark while it is the newest, and as a string from then on.     (API reference: Messages; Claude Code 2.1.325, 2026-11)
- Whether a string as `system` equals one text block is not stated. So a conversation keeps the form that its replies
  were made after.                                                     (Anthropic documentation: preserved thinking)
- How the server is asked to drop, and what it answers: see `families.claude_prefix`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, NativeTool, Prompt, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError
from segue.protocols.anthropic_messages.content import decode_system_block, encode_user_content
from segue.protocols.anthropic_messages.native import (
    CACHE_CONTROL,
    decode_mark,
    encode_mark,
    join_mark,
    place_marks,
    split_mark,
)
from segue.protocols.anthropic_messages.options import SERVER_EDITS, decode_options, encode_options
from segue.protocols.anthropic_messages.response import encode_error
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.turns import decode_turns, encode_turns
from segue.protocols.families.claude_prefix import BETA, find_dropped, has_drop, with_drop
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, native_definition, text_of
from segue.protocols.kit.reply_form import TRANSFORMATIONS
from segue.protocols.kit.transports import Transport
from segue.protocols.kit.verbatim import keep, restore

_VERSION_HEADER: Final = "anthropic-version"
_VERSION_KEY: Final = "anthropic_version"
_BETAS: Final = {"anthropic-beta": "anthropic_beta"}
_VERTEX_MODEL: Final = (
    "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/anthropic/models/{model}"
)
_READ: Final = "2026-11-17"

_AWS_ERRORS: Final[Mapping[int, tuple[int, str]]] = {
    # botocore 1.44.0 service model: errors of InvokeModel, with their statuses
    401: (403, "AccessDeniedException"),
    402: (400, "ServiceQuotaExceededException"),
    403: (403, "AccessDeniedException"),
    404: (404, "ResourceNotFoundException"),
    408: (408, "ModelTimeoutException"),
    429: (429, "ThrottlingException"),
    500: (500, "InternalServerException"),
    502: (424, "ModelErrorException"),
    503: (503, "ServiceUnavailableException"),
    529: (503, "ServiceUnavailableException"),
}
"""The status and the type of an error at Bedrock, by the status of the same error at Anthropic."""


def _encode_aws_error(fault: Fault) -> ErrorReply:
    status, headers, body = encode_error(fault)
    status, kind = _AWS_ERRORS.get(status, (status, "ValidationException"))
    message = object_of(body["error"])["message"]
    return ErrorReply(status, {**headers, "x-amzn-errortype": kind}, {"message": message})


TRANSPORTS: Final[Mapping[str, Transport]] = {
    "bedrock-invoke": Transport(
        paths=("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
        framing="aws-chunks",
        removed=frozenset({"model", "stream"}),
        version_key=_VERSION_KEY,
        version_header=_VERSION_HEADER,
        versions={"2023-06-01": "bedrock-2023-05-31"},
        lists=_BETAS,
        moves_lists=True,
        encode_error=_encode_aws_error,
        source="anthropic 2.8.0: lib/bedrock; botocore 1.44.0: bedrock-runtime",
        read=_READ,
    ),
    "vertex-raw-predict": Transport(
        paths=(f"{_VERTEX_MODEL}:rawPredict", f"{_VERTEX_MODEL}:streamRawPredict"),
        removed=frozenset({"model"}),
        version_key=_VERSION_KEY,
        version_header=_VERSION_HEADER,
        versions={"2023-06-01": "vertex-2023-10-16"},
        lists=_BETAS,
        moves_lists=False,
        source="anthropic 2.8.0: lib/vertex; Claude Code documentation: gateways",
        read=_READ,
    ),
}


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
    turns = encode_turns(context.messages, endpoint, strings=not marks)
    body["messages"] = turns if "compaction" not in asked else [_without_summary(turn) for turn in turns]
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


def _without_summary(turn: Wire) -> Wire:
    """Leave out the summary of an edit: the edit is refused in a request that asks for a summary of everything.

    What the summary covers is in the request. A turn of nothing else becomes a text.
    """
    content = turn.get("content")
    blocks = cast("list[Block]", content) if isinstance(content, list) else []
    if not any(SERVER_EDITS.needed(block) for block in blocks):
        return turn
    kept = [block for block in blocks if SERVER_EDITS.needed(block) is None]
    return {**turn, "content": kept or [{"type": "text", "text": str(blocks[0].get("content"))}]}


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


_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def _without_mark(block: Block) -> Block:
    """Return a block or tool without cache marks, also without those of the content of a result."""
    inner = block.get("content")
    if type(inner) is list and block.get("type") == "tool_result":
        blocks = cast("list[Block]", inner)
        if any(CACHE_CONTROL in each for each in blocks):
            block = {**block, "content": [_without_mark(each) for each in blocks]}
    if CACHE_CONTROL not in block:
        return block
    return {key: value for key, value in block.items() if key != CACHE_CONTROL}


def _system(body: Block) -> object:
    system = body.get("system")
    return [_without_mark(block) for block in cast("list[Block]", system)] if isinstance(system, list) else system


def _system_block(text: str) -> object:
    return [{"type": "text", "text": text}]


def _tools(body: Block) -> object:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return None
    return [_without_mark(tool) for tool in cast("list[Block]", tools) if not tool.get("defer_loading")] or None


def _turn(turn: Block) -> Block:
    # One of the few functions that every turn of every request passes: most turns have neither marks nor thinking.
    content = turn.get("content")
    if type(content) is not list:
        return turn
    blocks = cast("list[Block]", content)
    is_changed = False
    for block in blocks:
        if CACHE_CONTROL in block or block["type"] in _THINKING:
            is_changed = True
            break
        inner = block.get("content")
        if type(inner) is list:
            for each in cast("list[Block]", inner):
                if CACHE_CONTROL in each:
                    is_changed = True
    if is_changed:
        blocks = [_without_mark(block) for block in blocks if block["type"] not in _THINKING]
    if len(blocks) == 1 and len(blocks[0]) == 2 and "text" in blocks[0] and blocks[0]["type"] == "text":
        return {**turn, "content": blocks[0]["text"]}
    return {**turn, "content": blocks} if is_changed else turn


def _starts(turn: Block) -> bool:
    content = turn.get("content")
    if type(content) is not list:
        return False
    for block in cast("list[Block]", content):  # noqa: SIM110 - every assistant turn passes here
        if block.get("type") == "compaction":
            return True
    return False


def _signature(block: Block) -> str | None:
    kind = block.get("type")
    value = block.get("signature") if kind == "thinking" else block.get("data") if kind == "redacted_thinking" else None
    return value if isinstance(value, str) else None


def _asks(body: Block) -> bool:
    return has_drop(object_of(body.get("thinking")))


def _ask(body: Wire) -> bool:
    thinking = with_drop(object_of(body.get("thinking")))
    if thinking is not None:
        body["thinking"] = thinking
    return thinking is not None


def find_withheld(reply: Block, body: Block) -> dict[str, str] | None:
    """Return the signatures of a body that the model did not read, by what its reply says."""
    return find_dropped(reply.get(TRANSFORMATIONS), body, _signature)


PREFIX: Final = PrefixForm(
    system=_system,
    tools=_tools,
    turn=_turn,
    starts=_starts,
    system_block=_system_block,
    signature=_signature,
    asks=_asks,
    ask=_ask,
    headers={"anthropic-beta": BETA},
)
