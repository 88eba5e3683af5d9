"""What Claude's reasoning is bound to, on the Bedrock wire.

Facts this file relies on:
- Both endpoints of Bedrock check the prefix.             (Anthropic documentation: preserved thinking; read 2026-11-16)
- `thinking.block_binding` works in `additionalModelRequestFields`, where betas are named under `anthropic_beta`.
                                                        (a recorded test of another project; AWS documentation: Claude)
- Fields of the model's own reply are returned if `additionalModelResponseFieldPaths` names them. (botocore 1.44.0)
"""

from __future__ import annotations

from typing import Final, cast

from segue.protocols.bedrock_converse.cache import MARK
from segue.protocols.bedrock_converse.options import FIELDS
from segue.protocols.kit.claude_prefix import BETA, TRANSFORMATIONS, has_drop, read_transformations, with_drop
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.prefix_form import Dropped, PrefixForm

_REASONING: Final = "reasoningContent"
_BETAS: Final = "anthropic_beta"
_PATHS: Final = "additionalModelResponseFieldPaths"
_REPLY_FIELDS: Final = "additionalModelResponseFields"


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


def _ask(body: Wire, endpoint: Endpoint) -> bool:
    fields = object_of(body.get(FIELDS))
    thinking = with_drop(object_of(fields.get("thinking")), endpoint)
    if thinking is None:
        return False
    betas, paths = fields.get(_BETAS), body.get(_PATHS)
    known = list_of(betas)
    body[FIELDS] = {**fields, "thinking": thinking, _BETAS: [*known, *({BETA} - {*map(str, known)})]}
    named = list_of(paths)
    body[_PATHS] = [*named, *({f"/{TRANSFORMATIONS}"} - {*map(str, named)})]
    return True


def _dropped(reply: Block) -> list[Dropped] | None:
    return read_transformations(object_of(reply.get(_REPLY_FIELDS)).get(TRANSFORMATIONS))


PREFIX: Final = PrefixForm(
    system=_system,
    tools=_tools,
    turn=_turn,
    starts=_starts,
    signature=_signature,
    asks=_asks,
    ask=_ask,
    dropped=_dropped,
)
