"""`previous_response_id`: conversations that the gateway keeps for the client, as providers of Responses do.

Other protocols have another key for it (`HeldContent.reply`): `previous_interaction_id` at Google.

A client that sends `store` (the default of the protocol) may name the last reply instead of sending the history. The
gateway then stores each reply with the new messages before it, and the id of the reply before that. This is the one
case in which it stores the content of a conversation; `store: false` in a request, or a gateway without a store, stores
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, final

import msgspec
from msgspec.structs import replace

from segue.calls import Call
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.conversation.stored import dump, load
from segue.errors import LoadError
from segue.gateway.service import Gateway
from segue.gateway.store.store import StoredReply
from segue.protocols.registry import find_protocol

_LONGEST: Final = 10_000
"""Replies of one conversation at most."""
_MOST_BYTES: Final = 64_000_000
"""Bytes of one conversation at most: twice the largest body of a request."""
_ROWS_AT_ONCE: Final = 50
"""Rows that are read before other requests have their turn."""


@final
class KeptReply(msgspec.Struct, frozen=True, array_like=True):
    """A reply with the messages before it that the reply `previous` does not have."""

    previous: str | None
    messages: bytes


def previous_id(call: Call) -> str | None:
    """Give the id of the reply that a request continues."""
    key = _reply_key(call.body_protocol)
    given = None if key is None or call.body is None else call.body.get(key)
    return given if isinstance(given, str) and given else None


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
    store = gateway.store.store
    if store is None:
        return None
    parts: list[tuple[Message, ...]] = []
    wanted: str | None = name
    read: set[str] = set()
    size = 0
    while wanted is not None:
        data = await gateway.store.fetch(partial(store.get_response, wanted, tenant))
        read.add(wanted)
        size += 0 if data is None else len(data)
        if data is None or len(read) > _LONGEST or size > _MOST_BYTES:
            return None
        try:
            kept = msgspec.msgpack.decode(data, type=KeptReply)
            if not kept.messages:
                return None  # the provider has it: see `keep_id`
            parts.append(load(kept.messages).messages)
        except (msgspec.MsgspecError, LoadError):
            return None
        wanted = kept.previous
        if wanted in read:
            return None  # a row that is its own ancestor has no history
        if len(read) % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return tuple(message for part in reversed(parts) for message in part)


def keep_reply(call: Call, new: Prompt, reply: AssistantMessage, name: str, tenant: str) -> StoredReply:
    """Make what is stored of a reply, as the client sees it."""
    context = Context(messages=(*new.context.messages, reply))
    kept = KeptReply(previous_id(call), dump(context))
    return StoredReply(name, tenant, msgspec.msgpack.encode(kept))


def keep_id(name: str, tenant: str) -> StoredReply:
    """Make what is stored of a reply that the provider itself keeps: whose it is, and nothing of its content."""
    return StoredReply(name, tenant, msgspec.msgpack.encode(KeptReply(None, b"")))


async def is_own_reply(gateway: Gateway, name: str, tenant: str) -> bool:
    """Whether a client with this key got the reply of this id.

    Raises:
        StoreError: the store cannot be read.
    """
    store = gateway.store.store
    return store is not None and await gateway.store.fetch(partial(store.get_response, name, tenant)) is not None


def without_previous(options: Options) -> Options:
    """Remove the id from the options: no provider knows it."""
    extra = options.extra or {}
    rest = {name: _without(part, _reply_key(name)) for name, part in extra.items()}
    return (
        options if rest == extra else replace(options, extra={key: part for key, part in rest.items() if part} or None)
    )


def _without(part: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
    return {each: value for each, value in part.items() if each != key}
