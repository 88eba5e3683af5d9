"""What providers do themselves about long conversations when a request asks for it: context editing and compaction.

Facts:
- `context_management.edits` of the Messages API: each edit needs its header, `clear_thinking` has to be the first one,
  and the trigger of a compaction is at least 50,000 tokens, by default 150,000.
                                             (Anthropic documentation; anthropic 2.8.0; probed 2026-09; read 2026-11-17)
- A compaction block without a signature is refused without the edit, and ends what is before it; `compaction` asks for
  a summary at once, which is signed and comes first in later requests. It is refused with `context_management`,
  stop sequences, an output format, a forced tool choice and an unanswered call.                            (the same)
- `context_management` of the Responses API is a list; the reply has an encrypted `compaction` item.
                                              (OpenAI documentation: compaction; openai 3.49.0; read 2026-11-17)
- The wording of these refusals is not recorded, except for the codes of signed blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent
from segue.conversation.context import Prompt
from segue.errors import SegueError
from segue.models.model import Model
from segue.requests.tokens import estimate_tokens
from segue.testing.emulator.signing import Signer

Body: TypeAlias = Mapping[str, Any]

_FIELD: Final = "context_management"
_CLEAR: Final = "clear_tool_uses_20250919"
_CLEAR_THINKING: Final = "clear_thinking_20251015"
_COMPACT: Final = "compact_20260112"
_ON_DEMAND_BETA: Final = "compact-2026-09-04"
_BETAS: Final[Mapping[str, str]] = {
    _CLEAR: "context-management-2025-06-27",
    _CLEAR_THINKING: "context-management-2025-06-27",
    _COMPACT: "compact-2026-01-12",
}
_LEAST_TRIGGER: Final = 50_000
_DEFAULT_TRIGGERS: Final[Mapping[str, int]] = {_CLEAR: 100_000, _COMPACT: 150_000}
_KEPT_USES: Final = 3


@final
class Edited(NamedTuple):
    """What a server did: content before that of the reply, fields next to it, and whether the reply is only that."""

    content: tuple[AssistantContent, ...] = ()
    fields: Mapping[str, object] = {}
    is_all: bool = False


def find_edit_refusal(body: Body, betas: Collection[str], signer: Signer) -> str | None:
    """Return the message about the first part that a request to a Claude model may not have; None if there is none."""
    return next(_refusals(body, betas, signer), None)


def _refusals(body: Body, betas: Collection[str], signer: Signer) -> Iterator[str]:
    edits = _edits(body)
    for at, edit in enumerate(edits):
        kind = str(edit.get("type"))
        if _BETAS.get(kind) not in betas:
            yield f"{_FIELD}: Extra inputs are not permitted"
        if kind == _CLEAR_THINKING and at:
            yield f"{_FIELD}.edits.{at}: `{kind}` must be the first edit"
        if kind == _COMPACT and _trigger(edit) < _LEAST_TRIGGER:
            yield f"{_FIELD}.edits.{at}.trigger.value: Input should be greater than or equal to {_LEAST_TRIGGER}"
    if body.get("compaction") is not None:
        yield from _on_demand_refusals(body, betas)
    for at, message in enumerate(_objects(body.get("messages"))):
        for piece, block in enumerate(_objects(message.get("content"))):
            if block.get("type") != "compaction":
                continue
            place, signature = f"messages.{at}.content.{piece}", block.get("signature")
            if signature is None and not any(edit.get("type") == _COMPACT for edit in edits):
                yield f"{place}: `compaction` blocks require the `{_COMPACT}` edit in `{_FIELD}`"
            elif signature is not None and (at or piece):
                yield f"{place}: compaction_block_misplaced"
            elif signature is not None and signer.read(str(signature), str(block.get("content")).encode()) is None:
                yield f"{place}: compaction_signature_invalid"


def _on_demand_refusals(body: Body, betas: Collection[str]) -> Iterator[str]:
    if _ON_DEMAND_BETA not in betas:
        yield "compaction: Extra inputs are not permitted"
    for field in (_FIELD, "stop_sequences"):
        if body.get(field):
            yield f"compaction: not supported with `{field}`"
    if _object(body.get("output_config")).get("format"):
        yield "compaction: not supported with `output_config.format`"
    if _object(body.get("tool_choice")).get("type") in ("any", "tool"):
        yield "compaction: not supported with a forced `tool_choice`"
    messages = _objects(body.get("messages"))
    blocks = _objects(messages[-1].get("content")) if messages else []
    if any(block.get("type") == "tool_use" for block in blocks):
        yield "compaction: the last message has an unanswered `tool_use`"


def edit_messages(body: Body, prompt: Prompt, model: Model, signer: Signer, protocol: str) -> Edited:
    """Do what a request to a Claude model asks for."""
    if body.get("compaction") is not None:
        block = {"type": "compaction", "content": _summary(prompt)}
        block["signature"] = signer.token(model.id, block["content"].encode())
        return Edited((NativeContent(protocol=protocol, block=block),), is_all=True)
    edits = _edits(body)
    if not edits:
        return Edited()
    tokens = tokens_read(prompt, model, protocol)
    content: tuple[AssistantContent, ...] = ()
    applied: list[object] = []
    for edit in edits:
        kind = edit.get("type")
        if kind not in _DEFAULT_TRIGGERS or tokens <= _trigger(edit):
            continue
        if kind == _COMPACT:
            block = {"type": "compaction", "content": _summary(prompt)}
            content = (NativeContent(protocol=protocol, block=block),)
            continue
        uses = [message for message in prompt.context.messages if message.role == "toolResult"]
        kept = _object(edit.get("keep")).get("value", _KEPT_USES)
        if gone := uses[: max(0, len(uses) - int(kept))]:
            only = replace(prompt, context=replace(prompt.context, messages=tuple(gone), tools=(), system_prompt=None))
            applied.append(
                {
                    "type": kind,
                    "cleared_tool_uses": len(gone),
                    "cleared_input_tokens": estimate_tokens(only, model),
                }
            )
    return Edited(content, {_FIELD: {"applied_edits": applied}})


def edit_responses(body: Body, prompt: Prompt, model: Model, signer: Signer, protocol: str, *, realm: str) -> Edited:
    """Do what a request of the Responses API asks for."""
    for entry in _objects(body.get(_FIELD)):
        threshold = entry.get("compact_threshold")
        is_long = tokens_read(prompt, model, protocol) > (threshold if threshold is not None else 200_000)
        if entry.get("type") == "compaction" and is_long:
            token = signer.token(model.id, b"compaction", realm)
            block = {"type": "compaction", "id": f"cmp_{len(prompt.context.messages)}", "encrypted_content": token}
            return Edited((NativeContent(protocol=protocol, block=block),))
    return Edited()


def find_item_refusal(body: Body, signer: Signer) -> str | None:
    """Return the message about a compaction item that no reply contained; None if there is none."""
    for at, item in enumerate(_objects(body.get("input"))):
        if item.get("type") == "compaction" and signer.read(str(item.get("encrypted_content")), b"compaction") is None:
            return f"input[{at}].encrypted_content: could not be verified"
    return None


def tokens_read(prompt: Prompt, model: Model, protocol: str) -> int:
    """Estimate what the server reads: what follows the newest compaction; 0 if the content cannot be read.

    Content before the block is ignored, so the usage of a reply does not count it.
                                                              (Anthropic documentation: compaction, read 2026-11-17)
    """
    messages = prompt.context.messages
    start = max(
        (
            at
            for at, message in enumerate(messages)
            for piece in message.content
            if piece.kind == "native" and piece.protocol == protocol and piece.block.get("type") == "compaction"
        ),
        default=0,
    )
    behind = replace(prompt, context=replace(prompt.context, messages=messages[start:]))
    try:
        return estimate_tokens(behind, model)
    except SegueError:
        return 0


def _summary(prompt: Prompt) -> str:
    return f"Summary of {len(prompt.context.messages)} messages."


def _edits(body: Body) -> list[Body]:
    return _objects(_object(body.get(_FIELD)).get("edits"))


def _trigger(edit: Body) -> int:
    value = _object(edit.get("trigger")).get("value")
    return value if isinstance(value, int) else _DEFAULT_TRIGGERS.get(str(edit.get("type")), 0)


def _object(value: object) -> Body:
    return cast("Body", value) if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[Body]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Body", each) for each in listed if isinstance(each, Mapping)]
