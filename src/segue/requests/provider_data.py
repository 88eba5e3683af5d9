"""What only one provider accepts of a request that was decoded: its own fields, and references to what it holds.

It moves to another key of `extra` (`ELSEWHERE`): projection removes it, and reports the loss.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import Message
from segue.models.catalogue import find_models
from segue.models.model import Model
from segue.models.providers import find_row
from segue.models.rules import Rules
from segue.projection.passes.extra import portable_fields
from segue.projection.passes.held_content import ELSEWHERE, held_content_of, holds_content
from segue.projection.passes.server_tools import server_tool_fields
from segue.protocols.api import find_endpoint, resolve_endpoint
from segue.protocols.counterevidence import FIELD_ROWS, graded
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.request_fields import check_fields
from segue.protocols.kit.schemas import copy_form, lost_form
from segue.protocols.provider_fields import fields_of_providers
from segue.protocols.shared_fields import has_field, shared_keys


def set_other_data_apart(prompt: Prompt, model: Model, *, source: str, writer: Model | None = None) -> Prompt:
    """Set apart what the target does not accept of a request of the protocol `source`; `writer` was its model."""
    held, named = held_content_of(source), prompt.model or (writer.id if writer is not None else "")
    if prompt.model is not None and held.is_stored_prompt(prompt.model) and prompt.model != model.id:
        prompt = _with_extra(prompt, {f"{source}{ELSEWHERE}": {"modelId": prompt.model}})
    prompt = _with_prefix(prompt, source, model)
    if source != model.protocol:
        if lost := lost_form(prompt.options, source, model.protocol):
            prompt = _with_extra(prompt, {f"{source}{ELSEWHERE}": {"output_schema": lost}})
        return replace(prompt, options=copy_form(prompt.options, source, model.protocol))
    provider = writer.provider if writer is not None else writer_of(prompt) or other_provider(prompt, model)
    if provider is None and named != model.id and _is_elsewhere(named, source, model):
        # As after the first answer, which names this provider: what was sent once stays as it was.
        prompt = replace(prompt, options=copy_form(prompt.options, source, source))
        return _move_extra(prompt, source, model)
    if provider in (None, model.provider):
        prompt = _move(prompt, source, _unknown_keys(prompt, source, model) - held.keys.keys())
        return prompt if named.removeprefix("models/") in ("", model.id) else _move(prompt, source, held.per_model)
    if named != model.id or writer is not None:
        prompt = replace(prompt, options=copy_form(prompt.options, source, source))
        prompt = _move_extra(prompt, source, model, leading=named != model.id)
        prompt = _move_references(prompt, source)
    return prompt


def _unknown_keys(prompt: Prompt, source: str, model: Model) -> frozenset[str]:
    """Return the keys of a body that its provider is known to refuse, because only others have such a field.

    A key that nobody has may be one that is newer than the lists.
    """
    part = (prompt.options.extra or {}).get(source)
    if not part:
        return frozenset()
    endpoint = resolve_endpoint(model)
    found = graded(check_fields(part, endpoint), endpoint, FIELD_ROWS)
    unknown = [one for one in found if one.code == CheckCode.FIELD_UNKNOWN and one.grade == "refused"]
    others = shared_keys("body", source).union(*fields_of_providers().values())
    return frozenset(str(one.path[0]) for one in unknown if len(one.path) == 1) & part.keys() & others


_BOUND: Final = frozenset({"logit_bias", "stop_token_ids", "allowed_token_ids"})
"""Keys with ids of tokens, which belong to the tokenizer of one model."""


_CONTINUED: Final = frozenset({"anthropic-messages", "bedrock-converse"})
"""Protocols whose models continue a last turn of the assistant. (Anthropic documentation: prefill, 2026-11)"""


def _with_prefix(prompt: Prompt, source: str, model: Model) -> Prompt:
    """Say that a last turn of the assistant is to be continued, where the target has a field for it."""
    messages = prompt.context.messages
    last = messages[-1] if messages else None
    if source not in _CONTINUED or last is None or last.role != "assistant" or last.tool_calls():
        return prompt
    if not resolve_endpoint(model).rules.assistant_prefix:
        return prompt
    context = replace(prompt.context, messages=(*messages[:-1], replace(last, prefix=True)))
    return replace(prompt, context=context)


def other_provider(prompt: Prompt, model: Model) -> str | None:
    """Return the provider of a body with references and no replies, by the model that it names.

    None if the catalogue does not know that model, or the target's provider has it too.
    """
    named, protocol = prompt.model, model.protocol
    has_native = any(piece.kind == "native" for message in prompt.context.messages for piece in message.content)
    if named in (None, model.id) or not (has_native or holds_content(prompt.options, protocol)):
        return None
    providers = [each.provider for each in find_models(protocol=protocol) if each.id == named]
    return providers[0] if providers and model.provider not in providers else None


def _is_elsewhere(named: str, protocol: str, model: Model) -> bool:
    """Whether decoding names another provider as the writer of replies in a body that names this model.

    A server of the user's own takes what was written for anyone.
    """
    if not named or find_row(model.provider, model.base_url) is None:
        return False
    return find_endpoint(protocol, None, named).model.provider != model.provider


def _move_extra(prompt: Prompt, source: str, model: Model, *, leading: bool = True) -> Prompt:
    """Move the extra fields of the options that the target does not have, and those before the first answer.

    Server tools stay: the target may have the same ones. So do the keys that the target's provider has; those of shared
    fields move, and projection writes them as the target has them.
    """
    extra = prompt.options.extra or {}
    tools = (server_tool_fields(extra, source) or {}).get(source, {})
    shared = shared_keys("body", source) | _BOUND
    moved = {key for key in extra.get(source, {}) if key in shared or not has_field(source, model.provider, key)}
    prompt = _move(prompt, source, moved - tools.keys())
    return replace(prompt, context=_move_leading_extra(prompt.context, source, model)) if leading else prompt


def _move_references(prompt: Prompt, source: str) -> Prompt:
    """Move the references to content that the source's provider holds."""
    held = held_content_of(source)
    prompt = _move(prompt, source, held.keys.keys() | held.values.keys())
    messages = list(prompt.context.messages)
    for index, message in enumerate(messages):
        if held.blocks and any(piece.kind == "native" for piece in message.content):
            content = tuple(
                replace(piece, protocol=f"{source}{ELSEWHERE}")
                if piece.kind == "native" and piece.protocol == source and held.reference_of(piece.block) is not None
                else piece
                for piece in message.content
            )
            messages[index] = replace(message, content=content)
    return replace(prompt, context=replace(prompt.context, messages=tuple(messages)))


def _move(prompt: Prompt, source: str, keys: AbstractSet[str]) -> Prompt:
    """Move some keys of the options' extra fields."""
    part = (prompt.options.extra or {}).get(source, {})
    if keys.isdisjoint(part):
        return prompt
    moved = {key: value for key, value in part.items() if key in keys}
    rest = {key: value for key, value in part.items() if key not in keys}
    before = (prompt.options.extra or {}).get(f"{source}{ELSEWHERE}", {})
    return _with_extra(prompt, {source: rest, f"{source}{ELSEWHERE}": {**before, **moved}})


def _with_extra(prompt: Prompt, parts: Extra) -> Prompt:
    extra = {key: part for key, part in {**(prompt.options.extra or {}), **parts}.items() if part}
    return replace(prompt, options=replace(prompt.options, extra=extra))


def writer_of(prompt: Prompt) -> str | None:
    """Return the provider of the first reply; None if there is none."""
    for message in prompt.context.messages:
        if message.role == "assistant":
            return message.provider
    return None


def _move_leading_extra(context: Context, protocol: str, model: Model) -> Context:
    """Move another vendor's extra fields of the messages before the first answer; projection handles the later ones."""
    rules = resolve_endpoint(model).rules
    messages: list[Message] = []
    for position, message in enumerate(context.messages):
        if message.role == "assistant":
            messages.extend(context.messages[position:])
            break
        content = tuple(replace(piece, extra=_elsewhere(piece.extra, protocol, rules)) for piece in message.content)
        messages.append(replace(message, content=content, extra=_elsewhere(message.extra, protocol, rules)))
    return replace(context, messages=tuple(messages), extra=_system_elsewhere(context.extra, protocol))


def _system_elsewhere(extra: Extra | None, protocol: str) -> Extra | None:
    """Move the fields of the system prompt that only some providers have, such as a name."""
    part = (extra or {}).get(protocol, {})
    system = object_of(part.get("system"))
    moved = {key: system[key] for key in shared_keys("message", protocol) & system.keys()}
    if extra is None or not moved:
        return extra
    rest = {key: value for key, value in part.items() if key != "system"}
    rest |= {"system": kept} if (kept := _less(system, moved)) else {}
    others = {key: inner for key, inner in extra.items() if key != protocol}
    return {**others, **({protocol: rest} if rest else {}), f"{protocol}{ELSEWHERE}": {"system": moved}}


def _elsewhere(extra: Extra | None, protocol: str, rules: Rules) -> Extra | None:
    """Move the fields that the target may not have."""
    part = extra.get(protocol) if extra is not None else None
    if extra is None or part is None:
        return extra
    kept = portable_fields(part, rules)
    moved = {
        key: _less(value, kept[key]) if key in kept else value for key, value in part.items() if kept.get(key) != value
    }
    others = {key: inner for key, inner in extra.items() if key != protocol}
    return {**others, **({protocol: kept} if kept else {}), **({f"{protocol}{ELSEWHERE}": moved} if moved else {})}


def _less(value: object, kept: object) -> object:
    return {key: item for key, item in object_of(value).items() if key not in object_of(kept)}
