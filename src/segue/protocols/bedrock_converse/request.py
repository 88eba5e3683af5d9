"""A Bedrock request, both ways: the conversation, its tools, the options.

`extra` of the context holds a system prompt or a list of tools that was received empty.

What Claude's reasoning is bound to, on the Bedrock wire.

Facts:
- `system` is a list of blocks next to the messages, tools are in `toolConfig`; the address names the model, and
  boto3 names it next to the body (`modelId`).                        (botocore 1.44.0 service model, read 2026-11-15)
- Both endpoints of Bedrock check the prefix.             (Anthropic documentation: preserved thinking; read 2026-11-16)
- `thinking.block_binding` works in `additionalModelRequestFields`, where betas are named under `anthropic_beta`.
                                                        (a recorded test of another project; AWS documentation: Claude)
- Fields of the model's own reply are returned if `additionalModelResponseFieldPaths` names them. (botocore 1.44.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, Prompt
from segue.errors import DecodeError, EncodeError
from segue.protocols.bedrock_converse.content import encode_user_blocks
from segue.protocols.bedrock_converse.native import MARK, DocumentNames, place_marks
from segue.protocols.bedrock_converse.options import (
    FIELDS,
    REPLY_FIELDS,
    decode_options,
    decode_tools,
    encode_options,
    encode_tools,
)
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.turns import decode_system, decode_turns, encode_turns
from segue.protocols.families.claude_prefix import BETA, find_dropped, has_drop, with_drop
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import expect_objects, text_of
from segue.protocols.kit.reply_form import TRANSFORMATIONS
from segue.protocols.kit.verbatim import keep, restore

_SYSTEM: Final = "system"
_TOOLS: Final = "tools"
_KNOWN: Final = frozenset({_SYSTEM, _TOOLS})


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, the arguments of boto3, or a bare list of messages.

    Raises:
        DecodeError: it has no messages, or a value of an unexpected type.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "messages" not in body:
        raise DecodeError("the request has no `messages`; add them", path=("messages",))
    model = text_of(body.get("modelId"))
    config = object_of(body.get("toolConfig"))
    system, tools = body.get(_SYSTEM), config.get(_TOOLS)
    empty: Wire = {}
    if not system and _SYSTEM in body:
        empty[_SYSTEM] = system
    if not tools and _TOOLS in config:
        empty[_TOOLS] = tools
    context = Context(
        system_prompt=_decode_system(system) if system else None,
        messages=decode_turns(body["messages"], endpoint, model or endpoint.model.id),
        tools=decode_tools(expect_objects(tools, ("toolConfig", "tools")), endpoint) if tools else (),
        extra=keep(PROTOCOL, empty, EMPTY, known=_KNOWN) if empty else None,
    )
    return Prompt(context=context, options=decode_options(body, endpoint, model), model=model)


def _decode_system(system: object) -> str | tuple[SystemContent, ...]:
    pieces = decode_system(expect_objects(system, ("system",)))
    only = pieces[0] if len(pieces) == 1 else None
    if only is not None and only.kind == "text" and only.extra is None and only.cache_mark is None:
        return only.text
    return pieces


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: the wire does not support something; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    body: Wire = {"messages": encode_turns(context.messages, endpoint)}
    frame: Wire = {}
    if context.system_prompt is not None and context.system_prompt != ():
        frame[_SYSTEM] = _encode_system(context.system_prompt)
    if context.tools:
        frame[_TOOLS] = encode_tools(context.tools, endpoint)
    if context.extra is not None:
        restore(frame, context.extra, PROTOCOL)
    if _SYSTEM in frame:
        body[_SYSTEM] = frame[_SYSTEM]
    body.update(encode_options(options, endpoint, prompt.model))
    if _TOOLS in frame:
        body["toolConfig"] = {_TOOLS: frame[_TOOLS], **object_of(body.get("toolConfig"))}
    if options.cache_retention is not None and options.cache_retention != "none":
        place_marks(body, endpoint, options.cache_retention, anchored=prompt.anchored)
    return body


def _encode_system(system: str | tuple[SystemContent, ...]) -> list[Wire]:
    if isinstance(system, str):
        return [{"text": system}]
    try:
        return encode_user_blocks(system, DocumentNames())
    except EncodeError as error:
        raise EncodeError(error.reason, path=("system_prompt",)) from error


_REASONING: Final = "reasoningContent"
_BETAS: Final = "anthropic_beta"
_PATHS: Final = "additionalModelResponseFieldPaths"


def _unmarked(blocks: object) -> object:
    if not isinstance(blocks, list):
        return blocks
    return [block for block in cast("list[Block]", blocks) if MARK not in block] or None


def _system(body: Block) -> object:
    return _unmarked(body.get("system"))


def _tools(body: Block) -> object:
    return _unmarked(object_of(body.get("toolConfig")).get("tools"))


def _turn(turn: Block) -> Block:
    content = turn.get("content")
    if type(content) is not list:
        return turn
    blocks = cast("list[Block]", content)
    return {**turn, "content": [block for block in blocks if MARK not in block and _REASONING not in block]}


def _starts(turn: Block) -> bool:  # noqa: ARG001 - common signature; Converse has no block of this kind
    return False


def _signature(block: Block) -> str | None:
    reasoning = object_of(block.get(_REASONING))
    value = object_of(reasoning.get("reasoningText")).get("signature") or reasoning.get("redactedContent")
    return value if isinstance(value, str) else None


def _asks(body: Block) -> bool:
    return has_drop(object_of(object_of(body.get(FIELDS)).get("thinking")))


def _ask(body: Wire) -> bool:
    fields = object_of(body.get(FIELDS))
    thinking = with_drop(object_of(fields.get("thinking")))
    if thinking is None:
        return False
    betas, paths = fields.get(_BETAS), body.get(_PATHS)
    known = list_of(betas)
    body[FIELDS] = {**fields, "thinking": thinking, _BETAS: [*known, *({BETA} - {*map(str, known)})]}
    named = list_of(paths)
    body[_PATHS] = [*named, *({f"/{TRANSFORMATIONS}"} - {*map(str, named)})]
    return True


def find_withheld(reply: Block, body: Block) -> dict[str, str] | None:
    """Return the signatures of a body that the model did not read, by what its reply says."""
    return find_dropped(object_of(reply.get(REPLY_FIELDS)).get(TRANSFORMATIONS), body, _signature)


PREFIX: Final = PrefixForm(
    system=_system,
    tools=_tools,
    turn=_turn,
    starts=_starts,
    signature=_signature,
    asks=_asks,
    ask=_ask,
)
