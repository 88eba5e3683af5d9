"""Show what a reply has in common with the client's wire; `protocols.shared_replies` says where each has it.

Facts:
- A reply that ended at a stop text: `stop_sequence` of Claude and Bedrock, `STOP_SEQUENCE` of Cohere. Claude, Bedrock
  and Mistral also name a window that was full.       (anthropic 2.9.0, botocore 1.44.3, cohere 7.3.1, mistralai 3.7.0)
- A call that cannot be read ends a reply at Google and Bedrock; Claude pauses while a server tool runs.
- A refusal is a separate field in Chat, and a separate part in Responses.                              (openai 3.51.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent
from segue.conversation.messages import AssistantMessage, Usage
from segue.errors import SegueError
from segue.protocols.api import decode_response, encode_response
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.server_tools import merged
from segue.protocols.kit.verbatim import VERBATIM, choose
from segue.protocols.shared_fields import put
from segue.protocols.shared_replies import (
    ANSWERS,
    HOUSEKEEPING,
    REPLY_FIELDS,
    STOP_REASONS,
    ReplyField,
    places_of,
    share_citations,
)

_REFUSAL: Final = "refusal"
_REFUSALS: Final[Mapping[str, str]] = {"openai-chat": "content", "openai-responses": "text"}
"""Protocols with a separate place for a refusal -> the field that a text has otherwise."""


_PRESENT: Final = frozenset({"usage", "usageMetadata", "choices", "candidates"})
"""Keys that every written reply has."""
_EMPTY: Final[Mapping[str, object]] = {"stop_sequence": None, "total_tool_use_tokens": 0}
"""Keys that every written reply has, with the value that says nothing."""
_USAGE_DATA: Final = frozenset({"openai-chat", "bedrock-converse"})
"""Protocols that keep details of the usage with it."""
_COUNTED: Final[Mapping[str, Callable[[Usage], int]]] = {
    "input_modalities": lambda usage: usage.input + usage.cache_read + usage.cache_write,
    "output_modalities": lambda usage: usage.output,
}
"""Rows with tokens of each modality but text -> the number of all."""
_COUNTS: Final = {"cache_read": 1, "cache_write": 2, "reasoning": 4}
"""Fields of a usage that some protocols do not have, with a number for each."""
_TEXT: Final = "text"
"""The first key of a path that begins at a text of the reply."""


class SharedReply(NamedTuple):
    """What a reply has in common with the client's wire.

    The `extra` to add, that of the first text, the usage, and the names of the fields that are shown.
    """

    extra: Extra
    text: Extra
    usage: Usage | None
    names: frozenset[str]

    def put_into(self, content: tuple[AssistantContent, ...]) -> tuple[AssistantContent, ...]:
        """Return the parts of a reply, the first text with the fields that belong to it."""
        at = next((at for at, piece in enumerate(content) if piece.kind == "text"), None) if self.text else None
        if at is None:
            return content
        return (
            *content[:at],
            replace(content[at], extra={**(content[at].extra or {}), **self.text}),
            *content[at + 1 :],
        )


def share_reply(message: AssistantMessage, client: str, show: Callable[[AssistantMessage], Wire]) -> SharedReply:
    """Find what a reply of another protocol has that the client's protocol has a place for.

    `show` writes another answer as the client's protocol has a reply.
    """
    source, usage = message.protocol, message.usage
    patch, text, details = Wire(), Wire(), Wire()
    names: set[str] = set()
    entry = object_of(object_of((message.extra or EMPTY).get(REPLY)).get(message.protocol))
    for row in REPLY_FIELDS if message.extra is not None or usage is not None else ():
        if source not in row.places or client not in row.places:
            continue
        path, value = _shared(row, message, entry, client)
        first, _, rest = path.partition(".")
        if value is None or (first.startswith("usage") and usage is None):
            continue
        names |= {row.name, *(part for place in row.places[source] for part in place.path.split("."))} - _PRESENT
        if first == _TEXT:
            text[rest] = value
        elif first == "usage" and client in _USAGE_DATA:
            details = merged(details, put(EMPTY, rest, value))
        else:
            patch = merged(patch, _added(path.split("."), value))
    if usage is not None and details:
        usage = replace(usage, extra={client: details})
    key, shown_key = ANSWERS.get(source), ANSWERS.get(client)
    if key is not None and shown_key is not None and (answers := _further_answers(message, key)):
        listed = [
            {**object_of(list_of(show(answer).get(shown_key))[0]), "index": number}
            for number, answer in enumerate(answers, 1)
        ]
        patch = merged(patch, {"in": {shown_key: {"at": {}, "of": 1, "more": listed}}})
        names.add(key)
    extra: Extra = {REPLY: {client: patch}} if patch else {}
    return SharedReply(extra, {client: text} if text else {}, usage, frozenset(names))


def _shared(row: ReplyField, message: AssistantMessage, entry: Block, client: str) -> tuple[str, object]:
    """Return a field as the client's wire has it, with its path; None if the reply has none."""
    for place in row.places[message.protocol]:
        held = _received(message, entry, place.path)
        neutral = None if held is None else place.read(held)
        if neutral is not None and row.name in _COUNTED and message.usage is not None:
            rest = _COUNTED[row.name](message.usage) - sum(cast("Mapping[str, int]", neutral).values())
            neutral = {**({_TEXT: rest} if rest > 0 else {}), **object_of(neutral)}
        for own in row.places[client] if neutral is not None else ():
            written = own.write(neutral)
            if written is not None:
                return own.path, written
    return "", None


def lost_replies(message: AssistantMessage) -> dict[str, object]:
    """Return the shared fields that a reply has, by name."""
    found: dict[str, object] = {}
    entry = object_of(object_of((message.extra or EMPTY).get(REPLY)).get(message.protocol))
    begins = {_TEXT, "usage", *object_of(entry.get("add")), *object_of(entry.get("in"))}
    for name, place, first in places_of(message.protocol):
        held = _received(message, entry, place.path) if first in begins and name not in HOUSEKEEPING else None
        neutral = None if not held else place.read(held)
        if neutral is None and name == "logprobs":
            neutral = held  # in a form that no other wire has
        if neutral:
            found[name] = neutral
    return found


@lru_cache(maxsize=64)
def missing_usage(protocol: str) -> frozenset[str]:
    """Return the fields of a usage that the replies of a protocol do not have: it is written and read again."""
    counted = sum(_COUNTS.values()) - _COUNTS["reasoning"]
    usage = replace(Usage(total_tokens=counted), **_COUNTS)
    given = AssistantMessage(content=(TextContent(text="-"),), protocol=protocol, model="-", usage=usage)
    read = decode_response(encode_response(given, protocol=protocol), protocol=protocol).usage
    return frozenset(name for name, count in _COUNTS.items() if getattr(read, name, 0) != count)


def share_text(
    extra: Extra | None, source: str, client: str, *, cites: bool = True
) -> tuple[Extra | None, Extra | None]:
    """Return what a text has in common with the client's wire, and what else its `extra` has.

    Citations are part of it with `cites`; else they are shown in another way.
    """
    part = (extra or {}).get(source)
    if extra is None or not part:
        return None, extra
    citations: Mapping[str, list[Wire]] = share_citations(part, source, client) if cites else {}
    read = set(citations)
    if "logprobs" in part and source == "openai-responses" and client in _places("logprobs"):
        read.add("logprobs")  # they are shown with the reply
    if not read:
        return None, extra
    rest = {key: value for key, value in part.items() if key not in read}
    others = {key: value for key, value in extra.items() if key != source}
    shown: Extra | None = {client: citations} if citations else None
    return shown, ({**others, source: rest} if rest else others) or None


def _places(name: str) -> Mapping[str, object]:
    return next(row.places for row in REPLY_FIELDS if row.name == name)


def _further_answers(message: AssistantMessage, key: str) -> list[AssistantMessage]:
    """Return the answers of a reply after the first, each as a separate message."""
    entry = object_of(object_of((message.extra or {}).get(REPLY)).get(message.protocol))
    more = list_of(object_of(object_of(entry.get("in")).get(key)).get("more"))
    bodies: list[Wire] = [{"model": message.model, key: [{**object_of(one), "index": 0}]} for one in more]
    try:
        return [decode_response(body, protocol=message.protocol) for body in bodies]
    except SegueError:
        return []  # what cannot be read is reported


def stop_reason(raw: str | None, source: str, client: str) -> str | None:
    """Return the client's word for the reason why a reply ended, where no neutral type has it."""
    return next((words.get(client) for words in STOP_REASONS if raw is not None and words.get(source) == raw), None)


def refusal_mark(protocol: str) -> Extra | None:
    """Return the `extra` of a text that is a refusal; None if a protocol has no separate place for one."""
    field = _REFUSALS.get(protocol)
    return None if field is None else {protocol: {VERBATIM: choose("field", field, _REFUSAL)}}


def begun_refusal(extra: Extra | None, protocol: str) -> Extra | None:
    """Return what the beginning of a text says for the client, if it says that a refusal begins."""
    is_refusal = any(part.get("field") == _REFUSAL for part in (extra or {}).values())
    return {protocol: {"field": _REFUSAL}} if is_refusal and protocol in _REFUSALS else None


def _received(message: AssistantMessage, entry: Block, path: str) -> object:
    """Return a field of the body of a reply, if the message has kept it."""
    first, _, rest = path.partition(".")
    if first == _TEXT:
        parts = [(piece.extra or {}).get(message.protocol, {}) for piece in message.content if piece.kind == "text"]
        found = [one for part in parts for one in list_of(part.get(rest))]
        return found or None
    if first == "usage" and message.usage is not None and message.usage.extra:
        held: object = message.usage.extra.get(message.protocol)
        for key in rest.split("."):
            held = object_of(held).get(key)
        if held is not None:
            return held
    if first not in object_of(entry.get("add")) and first not in object_of(entry.get("in")):
        return None
    keys = path.split(".")
    for position, key in enumerate(keys):
        added = object_of(entry.get("add"))
        if key in added:
            value = added[key]
            for inner in keys[position + 1 :]:
                value = object_of(value).get(inner)
            return value
        entry = object_of(object_of(entry.get("at" if key.isdigit() else "in")).get(key))
    return entry.get("to")


def _added(keys: list[str], value: object) -> Wire:
    """Return the patch that adds a field to a body."""
    key, inner = keys[0], keys[1:]
    if key in _PRESENT and inner:
        return {"in": {key: _added(inner, value)}}
    if key.isdigit():
        return {"at": {key: _added(inner, value)}, "of": 1}
    if key in _EMPTY:
        return {"in": {key: {"from": _EMPTY[key], "to": value}}}
    for outer in reversed(inner):
        value = {outer: value}
    return {"add": {key: value}}
