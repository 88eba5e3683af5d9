"""Fields of replies that several wires have: where each has them.

A field of a reply that no neutral type holds is kept in `extra` as a patch of the body (`kit.json_patch`). What another
wire has a place for is put into the patch of that wire.

Facts:
- The tier that a request was served with decides its price: `service_tier` of Chat and Responses, `usage.service_tier`
  of Claude (standard, priority, batch), `serviceTier.type` of Bedrock.      (openai 3.51.0, anthropic 2.9.0, botocore
  1.44.3, read 2026-11-18)
- Tokens of audio have their own price: `prompt_tokens_details.audio_tokens` of Chat, a list by modality at Google.
                                                                        (openai 3.51.0, google-genai 3.3.0, the same)
- A reply that ended at a stop text: `stop_sequence` of Claude and Bedrock, `STOP_SEQUENCE` of Cohere.
                                                                        (anthropic 2.9.0, botocore 1.44.3, cohere 7.3.1)
- A refusal is a separate field in Chat, and a separate part in Responses.                              (openai 3.51.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.messages import AssistantMessage, Usage
from segue.errors import SegueError
from segue.protocols.api import decode_response
from segue.protocols.kit.json_values import Wire, list_of, object_of
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.verbatim import VERBATIM, choose

STOP_SEQUENCES: Final[Mapping[str, str]] = {
    "anthropic-messages": "stop_sequence",
    "bedrock-converse": "stop_sequence",
    "cohere-chat": "STOP_SEQUENCE",
}
_REFUSAL: Final = "refusal"
_REFUSALS: Final[Mapping[str, str]] = {"openai-chat": "content", "openai-responses": "text"}
"""Protocols with a separate place for a refusal -> the field that a text has otherwise."""


_ANSWERS: Final[Mapping[str, str]] = {"openai-chat": "choices", "mistral-chat": "choices", "google-genai": "candidates"}
"""Protocols whose replies may have several answers -> the key of their list."""


class _Tier(NamedTuple):
    path: tuple[str, ...]
    default: str


_TIERS: Final[Mapping[str, _Tier]] = {
    "openai-chat": _Tier(("service_tier",), "default"),
    "openai-responses": _Tier(("service_tier",), "default"),
    "anthropic-messages": _Tier(("usage", "service_tier"), "standard"),
    "bedrock-converse": _Tier(("serviceTier", "type"), "default"),
}


class _Audio(NamedTuple):
    usage: str
    details: str
    modality: str
    number: str


_AUDIO: Final[Mapping[str, _Audio]] = {
    "google-genai": _Audio("usageMetadata", "promptTokensDetails", "AUDIO", "tokenCount"),
    "google-interactions": _Audio("usage", "input_tokens_by_modality", "audio", "tokens"),
}


class SharedReply(NamedTuple):
    """What a reply has in common with the client's wire: the `extra` to add, its usage, the fields that are shown."""

    extra: Extra
    usage: Usage | None
    names: frozenset[str]


def share_reply(message: AssistantMessage, client: str, show: Callable[[AssistantMessage], Wire]) -> SharedReply:
    """Find what a reply of another protocol has that the client's protocol has a place for.

    `show` writes another answer as the client's protocol has a reply.
    """
    source = message.protocol
    patch: Wire = {}
    names: set[str] = set()
    given, wanted = _TIERS.get(source), _TIERS.get(client)
    tier = None if given is None else _received(message, given.path)
    if given is not None and wanted is not None and isinstance(tier, str):
        patch = _patch(wanted.path, wanted.default if tier == given.default else tier)
        names.update((given.path[0], given.path[-1]))
    usage = message.usage
    audio = audio_tokens(message)
    if usage is not None and audio:
        form = _AUDIO.get(client)
        if form is not None:
            text = usage.input + usage.cache_read + usage.cache_write - audio
            kinds = ((form.modality, audio), (form.modality.replace("AUDIO", "TEXT").replace("audio", "text"), text))
            listed = [{"modality": kind, form.number: count} for kind, count in kinds if count > 0]
            patch = {**patch, "in": {form.usage: {"add": {form.details: listed}}}}
        elif client == "openai-chat":
            usage = replace(usage, extra={client: {"prompt_tokens_details": {"audio_tokens": audio}}})
        if form is not None or client == "openai-chat":
            names.add("audio_tokens")
    key, shown_key = _ANSWERS.get(source), _ANSWERS.get(client)
    if key is not None and shown_key is not None and (answers := _further_answers(message, key)):
        listed = [
            {**object_of(list_of(show(answer).get(shown_key))[0]), "index": number}
            for number, answer in enumerate(answers, 1)
        ]
        inner: Wire = {**object_of(patch.get("in")), shown_key: {"at": {}, "of": 1, "more": listed}}
        patch = {**patch, "in": inner}
        names.add(key)
    return SharedReply({REPLY: {client: patch}} if patch else {}, usage, frozenset(names))


def _further_answers(message: AssistantMessage, key: str) -> list[AssistantMessage]:
    """Return the answers of a reply after the first, each as a separate message."""
    entry = object_of(object_of((message.extra or {}).get(REPLY)).get(message.protocol))
    more = list_of(object_of(object_of(entry.get("in")).get(key)).get("more"))
    bodies: list[Wire] = [{"model": message.model, key: [{**object_of(one), "index": 0}]} for one in more]
    try:
        return [decode_response(body, protocol=message.protocol) for body in bodies]
    except SegueError:
        return []  # what cannot be read is reported


def audio_tokens(message: AssistantMessage) -> int:
    """Return the tokens of audio among the input that a reply reports."""
    form = _AUDIO.get(message.protocol)
    if form is None:
        extra = None if message.usage is None else message.usage.extra
        details = object_of((extra or {}).get("openai-chat"))
        count = object_of(details.get("prompt_tokens_details")).get("audio_tokens")
        return count if isinstance(count, int) else 0
    for one in list_of(_received(message, (form.usage, form.details))):
        count = object_of(one).get(form.number)
        if object_of(one).get("modality") == form.modality and isinstance(count, int):
            return count
    return 0


def refusal_mark(protocol: str) -> Extra | None:
    """Return the `extra` of a text that is a refusal; None if a protocol has no separate place for one."""
    field = _REFUSALS.get(protocol)
    return None if field is None else {protocol: {VERBATIM: choose("field", field, _REFUSAL)}}


def begun_refusal(extra: Extra | None, protocol: str) -> Extra | None:
    """Return what the beginning of a text says for the client, if it says that a refusal begins."""
    is_refusal = any(part.get("field") == _REFUSAL for part in (extra or {}).values())
    return {protocol: {"field": _REFUSAL}} if is_refusal and protocol in _REFUSALS else None


def _received(message: AssistantMessage, path: tuple[str, ...]) -> object:
    """Return a field of the body of a reply, if the patch of its protocol has it."""
    entry = object_of(object_of((message.extra or {}).get(REPLY)).get(message.protocol))
    for position, key in enumerate(path):
        added = object_of(entry.get("add"))
        if key in added:
            value = added[key]
            for inner in path[position + 1 :]:
                value = object_of(value).get(inner)
            return value
        entry = object_of(object_of(entry.get("in")).get(key))
    return entry.get("to")


def _patch(path: tuple[str, ...], value: object) -> Wire:
    """Return the patch that adds a field to a body; the usage of a reply is there already."""
    if path[0] == "usage":
        return {"in": {"usage": {"add": {path[1]: value}}}}
    added: object = value
    for key in reversed(path):
        added = {key: added}
    return {"add": added}
