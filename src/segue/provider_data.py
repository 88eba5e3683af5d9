"""What only one provider accepts of a request that was decoded: its own fields, and references to what it holds.

It gets the name of another protocol: projection removes it, and reports the loss.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import Message
from segue.models.catalogue import find_models
from segue.models.model import Model
from segue.projection.passes.held_content import SOURCE_MARK, held_content_of, holds_content
from segue.projection.passes.server_tools import server_tool_fields
from segue.protocols.kit.schemas import copy_title


def name_other_data(prompt: Prompt, model: Model, *, source: str, writer: Model | None = None) -> Prompt:
    """Rename what the target does not accept of a request of the protocol `source`; `writer` was its model."""
    if prompt.model is not None and held_content_of(source).is_stored_prompt(prompt.model) and prompt.model != model.id:
        stored = {f"{source}{SOURCE_MARK}prompt": {"modelId": prompt.model}}
        prompt = replace(prompt, options=replace(prompt.options, extra={**(prompt.options.extra or {}), **stored}))
    if source != model.protocol:
        prompt = replace(prompt, options=copy_title(prompt.options, source))
    else:
        named = prompt.model or (writer.id if writer is not None else "")
        provider = writer.provider if writer is not None else writer_of(prompt) or other_provider(prompt, model)
        other = f"{source}{SOURCE_MARK}{provider}" if provider not in (None, model.provider) else None
        if other is not None and named != model.id:
            prompt = rename_extra(prompt, source, other)
        if other is not None and (named != model.id or writer is not None):
            prompt = rename_references(prompt, source, other)
        elif named and named.removeprefix("models/") != model.id:
            prompt = rename_keys(prompt, source, f"{source}{SOURCE_MARK}{named}", held_content_of(source).per_model)
    return prompt


def other_provider(prompt: Prompt, model: Model) -> str | None:
    """Give the provider of a body with references and no replies, by the model that it names.

    None if the catalogue does not know that model, or the target's provider has it too.
    """
    named, protocol = prompt.model, model.protocol
    has_native = any(piece.kind == "native" for message in prompt.context.messages for piece in message.content)
    if named in (None, model.id) or not (has_native or holds_content(prompt.options, protocol)):
        return None
    providers = [each.provider for each in find_models(protocol=protocol) if each.id == named]
    return providers[0] if providers and model.provider not in providers else None


def rename_extra(prompt: Prompt, source: str, name: str) -> Prompt:
    """Rename the extra fields of the options, and drop those of the messages before the first answer.

    Server tools keep their name: the target may have the same ones.
    """
    extra = prompt.options.extra
    if extra is not None and source in extra:
        tools = (server_tool_fields(extra, source) or {}).get(source, {})
        rest = {key: value for key, value in extra[source].items() if key not in tools}
        parts = {**extra, source: tools, name: rest}
        extra = {key: part for key, part in parts.items() if part}
    options = replace(prompt.options, extra=extra)
    return replace(prompt, context=_strip_leading_extra(prompt.context, source), options=options)


def rename_references(prompt: Prompt, source: str, name: str) -> Prompt:
    """Rename the references to content that the source's provider holds."""
    held = held_content_of(source)
    prompt = rename_keys(prompt, source, name, held.keys.keys() | held.values.keys())
    messages = list(prompt.context.messages)
    for index, message in enumerate(messages):
        if held.blocks and any(piece.kind == "native" for piece in message.content):
            content = tuple(
                replace(piece, protocol=name)
                if piece.kind == "native" and piece.protocol == source and held.reference_of(piece.block) is not None
                else piece
                for piece in message.content
            )
            messages[index] = replace(message, content=content)
    return replace(prompt, context=replace(prompt.context, messages=tuple(messages)))


def rename_keys(prompt: Prompt, source: str, name: str, keys: AbstractSet[str]) -> Prompt:
    """Rename some keys of the options' extra fields."""
    extra = prompt.options.extra
    part = (extra or {}).get(source)
    if extra is None or part is None or keys.isdisjoint(part):
        return prompt
    lost = {key: value for key, value in part.items() if key in keys}
    rest = {key: value for key, value in part.items() if key not in keys}
    parts = {**extra, source: rest, name: lost}
    return replace(prompt, options=replace(prompt.options, extra={key: each for key, each in parts.items() if each}))


def writer_of(prompt: Prompt) -> str | None:
    """Give the provider of the first reply; None if there is none."""
    for message in prompt.context.messages:
        if message.role == "assistant":
            return message.provider
    return None


def _strip_leading_extra(context: Context, protocol: str) -> Context:
    """Drop another vendor's extra fields of the messages before the first answer; projection handles the later ones."""
    messages: list[Message] = []
    for position, message in enumerate(context.messages):
        if message.role == "assistant":
            messages.extend(context.messages[position:])
            break
        content = tuple(replace(piece, extra=_without(piece.extra, protocol)) for piece in message.content)
        messages.append(replace(message, content=content, extra=_without(message.extra, protocol)))
    return replace(context, messages=tuple(messages))


def _without(extra: Extra | None, protocol: str) -> Extra | None:
    if extra is None or protocol not in extra:
        return extra
    return {key: part for key, part in extra.items() if key != protocol} or None
