"""`previous_response_id`: conversations that the gateway keeps for the client, as providers of Responses do.

Other protocols have another key for it (`HeldContent.reply`): `previous_interaction_id` at Google.

A client that sends `store` (the default of the protocol) may name the last reply instead of sending the history. The
gateway then stores each reply with the new messages before it, and the id of the reply before that. This is the one
case in which it stores the content of a conversation; `store: false` in a request, or a gateway without a store, stores
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls import Call, check_name
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.conversation.stored import dump, load
from segue.errors import LoadError
from segue.failures.failure import FailureKind
from segue.gateway.histories import Read
from segue.gateway.intake import Admission, Refused
from segue.gateway.service import Gateway
from segue.gateway.store.database import StoreError
from segue.gateway.store.store import StoredReply
from segue.models.model import Model
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.registry import find_protocol

_LONGEST: Final = 10_000
"""Replies of one conversation at most."""
_MOST_BYTES: Final = 64_000_000
"""Bytes of one conversation at most: twice the largest body of a request."""
_ROWS_AT_ONCE: Final = 50
"""Rows that are read before other requests have their turn."""


@final
class KeptReply(msgspec.Struct, frozen=True, array_like=True):
    """A reply with the messages before it that the reply `previous` does not have.

    `made` is when, in Unix seconds. A reply that the provider keeps has no messages here, but the model and the account
    that it is asked for with.
    """

    previous: str | None
    messages: bytes
    made: int = 0
    model: str = ""
    account: str = ""


def previous_id(call: Call) -> str | None:
    """Give the id of the reply that a request continues.

    Raises:
        CallError: it is longer than any id.
    """
    key = _reply_key(call.body_protocol)
    given = None if key is None or call.body is None else call.body.get(key)
    if not isinstance(given, str) or not given:
        return None
    check_name(given, f"{key}", call.protocol)
    return given


def _reply_key(protocol: str) -> str | None:
    record = find_protocol(protocol)
    return None if record is None else record.held_content.reply


def is_stored(call: Call) -> bool:
    """Whether the client asks to store the reply."""
    is_kept = call.protocol == call.body_protocol and _reply_key(call.protocol) is not None
    return is_kept and call.body is not None and call.body.get("store") is not False


async def find_history(gateway: Gateway, name: str, tenant: str) -> tuple[Message, ...] | None:
    """Give the messages of a conversation up to a reply; None if it is not stored.

    Raises:
        StoreError: the store cannot be read.
    """
    parts: list[tuple[Message, ...]] = []
    wanted: str | None = name
    read: set[str] = set()
    size = 0
    while wanted is not None:
        kept = await find_kept(gateway, wanted, tenant)
        read.add(wanted)
        size += 0 if kept is None else len(kept.messages)
        if kept is None or not kept.messages or len(read) > _LONGEST or size > _MOST_BYTES:
            return None  # without messages, the provider has it: see `keep_id`
        try:
            parts.append(load(kept.messages).messages)
        except LoadError:
            return None
        wanted = kept.previous
        if wanted in read:
            return None  # a row that is its own ancestor has no history
        if len(read) % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return tuple(message for part in reversed(parts) for message in part)


async def find_reply_context(gateway: Gateway, admission: Admission, call: Call) -> Context | None:
    """Give the whole history of a request that names the reply before it; None if that reply is not stored here.

    Raises:
        Refused: the store cannot be read.
    """
    name, prompt = previous_id(call), call.prompt
    if name is None or prompt is None:
        return None
    with _refusing(call):
        history = await find_history(gateway, name, admission.tenant)
    return None if history is None else replace(prompt.context, messages=(*history, *prompt.context.messages))


@contextmanager
def _refusing(call: Call) -> Generator[None]:
    try:
        yield
    except StoreError as error:
        text = "The database with the stored replies does not answer; try again, or send the whole history."
        raise Refused(text, 503, FailureKind.OVERLOADED, call.protocol) from error


async def find_kept(gateway: Gateway, name: str, tenant: str) -> KeptReply | None:
    """Give what is stored of one reply of a tenant; None if there is nothing, or if it cannot be read.

    Raises:
        StoreError: the store cannot be read.
    """
    store = gateway.store.store
    data = None if store is None else await gateway.store.fetch(partial(store.get_response, name, tenant))
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=KeptReply)
    except msgspec.MsgspecError:
        return None


def keep_reply(call: Call, new: Prompt, reply: AssistantMessage, name: str, tenant: str, *, made: int) -> StoredReply:
    """Make what is stored of a reply, as the client sees it."""
    context = Context(messages=(*new.context.messages, reply))
    kept = KeptReply(previous_id(call), dump(context), made)
    return StoredReply(name, tenant, msgspec.msgpack.encode(kept))


def keep_id(name: str, tenant: str, model: Model, *, made: int) -> StoredReply:
    """Make what is stored of a reply that the provider itself keeps: whose it is, and nothing of its content."""
    kept = KeptReply(None, b"", made, model.full_name(), model.account)
    return StoredReply(name, tenant, msgspec.msgpack.encode(kept))


async def is_own_reply(gateway: Gateway, name: str, admission: Admission, call: Call) -> bool:
    """Whether a client with this key got the reply of this id.

    Raises:
        Refused: the store cannot be read.
    """
    with _refusing(call):
        return await find_kept(gateway, name, admission.tenant) is not None


_MOST_IDS: Final = 1_000
"""Ids of one request that are looked up."""
_MARKS: Final = (b"s3://", b"gs://", b"files/", b"googleapis.com/", b"\\u00", b"\\/")
"""Bytes of a body in which an address of the account may stand, or a name in an escaped form."""


_PIECE: Final = 256_000
"""Bytes of a body that are searched at once."""


def may_have_ids(raw: bytes, held: HeldContent) -> bool:
    """Whether a body can name anything that an account has: most bodies have none of these bytes.

    It looks at a piece at a time: a search of 30 MB holds the interpreter's lock for 10 ms, and there are many.
    """
    marks = (*_MARKS, *[name.encode() for name in (*held.keys, *held.values, *held.ids, *held.blocks)])
    overlap = max(map(len, marks))
    pieces = (raw[at : at + _PIECE + overlap] for at in range(0, len(raw), _PIECE))
    return any(mark in piece for piece in pieces for mark in marks)


async def check_ids(gateway: Gateway, admission: Admission, call: Call, raw: bytes, read: Read | None = None) -> None:
    """Check that a client names nothing of the operator's accounts but what it got in a reply of this gateway.

    Accounts are the operator's, and their files, containers and stored conversations may be those of other clients. The
    reply that a request continues is checked where it is looked up. `read` is what is known of the body `raw` from
    earlier requests, which were checked before they were kept: then only the turns behind that are checked.

    Raises:
        Refused: it names something else, or the store cannot be read.
    """
    runtime, record = admission.runtime, find_protocol(call.body_protocol)
    if not admission.tenant or runtime.config.listen.provider_ids or call.body is None or record is None:
        return
    held, body = record.held_content, call.body
    if read is not None and read.text is not None and read.seam is not None and record.turns_key is not None:
        raw = b"".join(read.text.turns[read.seam.turns :])
        body = {record.turns_key: cast("list[object]", body[record.turns_key])[read.seam.turns :]}
    if raw and not await admission.run(may_have_ids, raw, held):
        return
    found = await admission.run(lambda: {*held.find_ids(body)})
    for at, reference in enumerate(found):
        if reference.key == held.reply or reference.id == call.model:
            continue
        if at >= _MOST_IDS or not reference.id or not await is_own_reply(gateway, reference.id, admission, call):
            named = f"{reference.key} {reference.id[:80]!r}" if reference.id else reference.key
            raise Refused(
                f"{named} names {reference.what} at the provider that this key did not get from this gateway; send the"
                " content itself, or ask the operator to set listen.provider_ids",
                400,
                FailureKind.INVALID_REQUEST,
                call.protocol,
            )


def keep_made_ids(message: AssistantMessage, tenant: str, model: Model, *, made: int) -> list[StoredReply]:
    """Make what is stored of the ids in a reply, so that this client may name them later."""
    record = find_protocol(model.protocol)
    parts: list[object] = [message.extra]
    for piece in message.content:
        parts += (piece.extra, piece.block) if piece.kind == "native" else (piece.extra,)
    found = () if record is None or not any(parts) else record.held_content.made_ids(parts)
    return [keep_id(name, tenant, model, made=made) for name in sorted(found)]


def without_previous(options: Options) -> Options:
    """Remove the id from the options: no provider knows it."""
    extra = options.extra or {}
    rest = {name: _without(part, _reply_key(name)) for name, part in extra.items()}
    return (
        options if rest == extra else replace(options, extra={key: part for key, part in rest.items() if part} or None)
    )


def _without(part: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
    return {each: value for each, value in part.items() if each != key}
