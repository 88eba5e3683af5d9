"""Objects at providers in requests of a shared gateway: what is checked is what is sent, and names only a key's own.

Accounts are the operator's, and their files, containers and stored conversations may be those of other clients. A key
may name what a reply of this gateway gave it, and nothing else. `ObjectPlaces` says where a body names something.

A body is parsed once. Two keys of the same name in an object are refused, because a provider may read the other one;
and what is passed on without projection is the parsed value, written again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from msgspec.structs import replace

from segue.calls.reading import Call
from segue.conversation.content import AssistantContent
from segue.conversation.context import Context
from segue.errors import Path
from segue.failures.failure import FailureKind
from segue.foundation.json_text import encode_json
from segue.gateway.config import SAME
from segue.gateway.histories import ReadRequest
from segue.gateway.intake import Admission, Refused
from segue.gateway.object_places import NamedObject, ObjectPlaces, find_places, fold_name
from segue.gateway.responses import is_own_reply
from segue.gateway.routing import is_priced
from segue.gateway.service import Gateway
from segue.models.catalogue import Catalogue
from segue.models.model import Price
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.registry import find_protocol, get_protocol

_MOST_IDS: Final = 1_000
"""Names of one request that are looked up."""
_PIECE: Final = 256_000
"""Bytes of a body that are searched at once: a search holds the interpreter's lock."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WHOLE: Final = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""What a piece of JSON has before a string that does not end in it."""
_SHOWN: Final = 80
_OWN_MODELS: Final = re.compile(
    r"(?:^|/)(?:ft|ag|arn):|:ft-|-ft(?:-|$)|(?:^|/)agent[_:]|@preset/"
    r"|(?:^|/)(?:ep|bot)-[0-9]|(?:^|/)(?:tunedmodels|projects|accounts|endpoints|agents|dynamic)/"
)
"""Names of models that an account made: fine-tuned ones, agents, profiles and prompts of Bedrock, endpoints of Vertex.

(OpenAI: `ft:...`; Azure: `...:ft-...`; Cohere: `...-ft`; Alibaba: `...-ft-...`; Mistral: `ag:...`; Bedrock: ARNs;
Google: `tunedModels/...`, `projects/...`, `dynamic/...`; Fireworks: `accounts/...`; OpenRouter: `@preset/...`; Volcano
Engine: `ep-2024...`; documentation, 2026-11-19)"""


def check_body(
    raw: bytes, body: Mapping[str, object] | None, protocol: str | None, read: ReadRequest | None = None
) -> bool:
    """Check that a body has one meaning: no object in it has two keys of the same name.

    What is known of it from earlier requests (`read`) is not written again, if nothing is between its pieces. Returns
    whether its bytes are known to be those of `checked_bytes`.

    Raises:
        Refused: one has.
    """
    if body is None or not raw or (read is not None and _is_plain(raw, body, read)):
        return False
    written = encode_json(body)
    is_written = written == raw
    if is_written or count_members(written) == count_members(raw):
        if read is not None and read.head is not None:
            read.head.is_checked = True
        return is_written
    key = _find_duplicate(raw)
    raise Refused(
        f"an object of the body has two keys {key[:_SHOWN]!r}; send each key once",
        400,
        FailureKind.INVALID_REQUEST,
        protocol,
    )


def _is_plain(raw: bytes, body: Mapping[str, object], read: ReadRequest) -> bool:
    """Whether a body is what was checked before and new turns, each of them as it would be written.

    A key that is there twice, or has escapes, makes the body longer than its pieces with what has to be between them:
    `"":` and a comma for each field, `{"":[]}` around all, and a comma for each turn but one.
    """
    text, head = read.text, read.head
    key = get_protocol(read.call.body_protocol).turns_key
    if text is None or key is None or (read.seam is None and (head is None or not head.is_checked)):
        return False
    pieces = (key, *text.turns, *text.fields, *text.fields.values())
    between = len('"":,') * len(text.fields) + len('{"":[]}') + len(text.turns) - 1
    if len(raw) != sum(map(len, pieces)) + between:
        return False
    first = _count_checked(read)
    new = cast("list[object]", body[key])[first:]
    return encode_json(new) == b"[%b]" % b",".join(text.turns[first:])


def _count_checked(read: ReadRequest) -> int:
    """Return how many of the first turns were checked in earlier requests."""
    if read.seam is not None:
        return read.seam.turns
    return 0 if read.head is None or read.text is None else read.head.count_checked(read.text.turns)


def count_members(text: bytes) -> int:
    """Count the members of all objects of a JSON text: the colons outside of strings."""
    found, at = 0, 0
    while at < len(text):
        whole = _WHOLE.match(text, at, at + _PIECE)
        end = at if whole is None else whole.end()
        if end == at:  # a string that is longer than a piece
            whole = _STRING.match(text, at)
            end = len(text) if whole is None else whole.end()
        else:
            found += _STRING.sub(b"", text[at:end]).count(b":")
        at = end
    return found


def _find_duplicate(raw: bytes) -> str:
    found: list[str] = []

    def read(pairs: list[tuple[str, object]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys) and not found:
            found.append(next(key for at, key in enumerate(keys) if key in keys[:at]))

    with suppress(ValueError, RecursionError):
        json.loads(raw, object_pairs_hook=read)
    return found[0] if found else ""


async def check_objects(
    gateway: Gateway, admission: Admission, call: Call, read: ReadRequest | None = None, *, is_continued: bool = False
) -> frozenset[str]:
    """Check that a client names nothing of the operator's accounts but what it got in a reply of this gateway.

    `read` is what is known of the body from earlier requests, which were checked before they were kept: then only the
    turns after that are checked. `is_continued`: the reply that the request continues was found. Give the ids that
    must not be sent: those of items which are sent as their text alone.

    Raises:
        Refused: it names something else, or the store cannot be read.
    """
    record, body = find_protocol(call.body_protocol), call.body
    if not admission.tenant or body is None or record is None:
        return frozenset()
    held, may_share = record.held_content, admission.runtime.config.listen.provider_ids
    places = find_places(call.body_protocol)
    rights = admission.key.rights
    is_limited = bool(rights.routes or rights.models or rights.has_money_budget)
    # The ids that must not be sent are needed whole: a part that is known may still be read again.
    is_split = places is None or not places.has_texts
    read = read if is_split else None
    first, body = _find_unchecked(read, record.turns_key, body)
    if not may_share and (read is None or read.seam is None):
        _check_model(admission, call)
    continued = held.reply if is_continued else None
    looked_up: set[str] = set()
    items: set[str] = set()
    left_out: set[str] = set()
    named = await admission.run(_find, places, held, body)
    if read is not None and read.head is not None and read.text is not None and not named:
        read.head.names_nothing, read.head.checked = True, read.text.turns  # whatever this key may do
    for found in named:
        if found.kind == "model":
            if not may_share and _is_own_model(found.value, admission.runtime.router.catalogue):
                raise _refuse_model(found.value, call)
            if is_limited:
                _check_further(admission, call, found)
            continue
        if may_share and found.kind != "variant":
            continue
        if continued is not None and found.path == (continued,) and isinstance(body[continued], str):
            continue
        if found.kind == "item":
            if found.value not in items:
                items.add(found.value)
                if len(items) > _MOST_IDS or not await is_own_reply(gateway, found.value, admission, call):
                    left_out.add(found.value)
            continue
        if found.value in looked_up:
            continue
        looked_up.add(found.value)
        is_name = found.kind in ("object", "address") and bool(found.value) and len(looked_up) <= _MOST_IDS
        if not is_name or not await is_own_reply(gateway, found.value, admission, call):
            shown = _show(_shift(found.path, record.turns_key, first))
            raise Refused(_explain(found, shown, call), 400, FailureKind.INVALID_REQUEST, call.protocol)
    return frozenset(left_out)


def _find_unchecked(
    read: ReadRequest | None, turns_key: str | None, body: Mapping[str, object]
) -> tuple[int, Mapping[str, object]]:
    """Return the part of a body that was not checked before: from which turn on, with what is next to the turns."""
    if read is None or turns_key is None or read.text is None:
        return 0, body
    if read.seam is None and (read.head is None or not read.head.names_nothing):
        return 0, body
    first = _count_checked(read)
    return first, {turns_key: cast("list[object]", body[turns_key])[first:]}


def without_items(context: Context, ids: frozenset[str], protocol: str) -> Context:
    """Remove the ids of items from a history, whose texts stay."""
    record = find_protocol(protocol)
    form = None if record is None else record.item_ids
    if form is None:
        return context

    def id_of(piece: AssistantContent) -> object:
        return piece.block.get("id") if piece.kind == "native" else form.find(piece)

    def without_id(piece: AssistantContent) -> AssistantContent:
        if id_of(piece) not in ids:
            return piece
        if piece.kind == "native":
            return replace(piece, block={key: value for key, value in piece.block.items() if key != "id"})
        return form.remove(piece)

    messages = tuple(
        replace(message, content=tuple(map(without_id, message.content)))
        if message.role == "assistant" and any(id_of(piece) in ids for piece in message.content)
        else message
        for message in context.messages
    )
    return replace(context, messages=messages)


def _find(places: ObjectPlaces | None, held: HeldContent, body: Mapping[str, object]) -> Sequence[NamedObject]:
    if places is not None:
        return list(places.find(body))
    # A protocol of an extension declares its names in `HeldContent` alone.
    return [NamedObject((found.key,), found.id, found.what, "object") for found in held.find_ids(body)]


def _is_own_model(name: str, catalogue: Catalogue) -> bool:
    """Whether only an account can have made a model of this name; those of the catalogue are everybody's."""
    if _OWN_MODELS.search(fold_name(name)) is None:
        return False
    return not any(name in (model.id, model.full_name()) for model in catalogue.models)


def _check_model(admission: Admission, call: Call) -> None:
    """Check that the name of the model is not that of an object of the account, unless a route or the key has it."""
    name, router, rights = call.model or "", admission.runtime.router, admission.key.rights
    if name in router.config.models or rights.routes or rights.models or not _is_own_model(name, router.catalogue):
        return
    if SAME in router.find(name, call.protocol).route.targets:
        raise _refuse_model(name, call)


def _refuse_model(name: str, call: Call) -> Refused:
    text = (
        f"model {name[:_SHOWN]!r} is one that an account at the provider made; ask the operator for a route of this"
        " gateway that names it, or to set listen.provider_ids"
    )
    return Refused(text, 400, FailureKind.INVALID_REQUEST, call.protocol)


def _check_further(admission: Admission, call: Call, found: NamedObject) -> None:
    """Check a model that the provider would run next to the one that is asked for, with a key that is limited.

    Where money is limited, it must not be dearer: a reply is counted at the price of the model that is asked for.
    """
    rights, router = admission.key.rights, admission.runtime.router
    for model in router.find(call.model or "", call.protocol).models:
        name = f"{model.provider}/{found.value}"
        other = model if found.value == model.id else router.catalogue.lookup(name)
        is_listed = not rights.routes or rights.may_ask(found.value) or other is model
        if is_listed and rights.may_use(name):
            if not rights.has_money_budget:
                continue
            if other is not None and is_priced(other) and _is_at_most(other.cost, model.cost):
                continue
        shown = _show(found.path)
        text = f"{shown} names the model {found.value[:_SHOWN]!r}, which this key may not use next to {model.id!r}"
        why = " and its budget in dollars could not count" if is_listed and rights.may_use(name) else ""
        raise Refused(f"{text}{why}; leave it out", 403, FailureKind.AUTH, call.protocol)


def _is_at_most(price: Price, other: Price) -> bool:
    return price.input <= other.input and price.output <= other.output


def _explain(found: NamedObject, where: str, call: Call) -> str:
    value = f" {found.value[:_SHOWN]!r}" if found.value else ""
    operator = "or ask the operator to set listen.provider_ids"
    match found.kind:
        case "object" | "item":
            text = f"{where}{value} names {found.what} at the provider that this key did not get from this gateway"
            return f"{text}; send the content itself, {operator}"
        case "address":
            text = f"{where}{value} is not an address of the public web, and this key did not get it from this gateway"
            return f"{text}; send the content itself, {operator}"
        case "unknown":
            text = f"{where}{value} may name something at the provider: {call.body_protocol} has no such field"
            return f"{text} that this gateway knows; leave it out, {operator}"
        case "model" | "variant":
            return f"{where} is another form of the key {found.what!r}; send the body with {found.what!r} alone"


def _shift(path: Path, turns_key: str | None, by: int) -> Path:
    """Return the path in the whole body of one in its new turns."""
    if by and len(path) > 1 and path[0] == turns_key and isinstance(path[1], int):
        return (path[0], path[1] + by, *path[2:])
    return path


def _show(path: Path) -> str:
    shown = "".join(f"[{each}]" if isinstance(each, int) else f".{each[:_SHOWN]}" for each in path)
    return shown.removeprefix(".")


def checked_bytes(raw: bytes, body: Mapping[str, object] | None) -> bytes:
    """Return the bytes of the body that was checked, to be passed on in place of those that arrived."""
    return raw if body is None else encode_json(body)
