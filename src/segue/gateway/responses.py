"""`previous_response_id`: conversations that the gateway keeps for the client, as providers of Responses do.

Other protocols have another key for it (`HeldContent.reply`): `previous_interaction_id` at Google.

A client that sends `store` (the default of the protocol) may name the last reply instead of sending the history. The
gateway then stores each reply with the new turns before it, and the id of the reply before that. This is the one case
in which it stores the content of a conversation; `store: false` in a request, or a gateway without a store, stores
nothing.

Turns are stored as the client sent them, and a continued request is read like one that sends all of them: what is read
from a turn depends on its place, on those before it, and on the model and the fields of the request.

Facts:
- `instructions` of the request before are not carried over; its input and output items are.
                                                        (openai 3.49.0: response_create_params; read 2026-11-18)
- Interactions are treated alike: `system_instruction`, `tools` and `generation_config` are those of each request.
                                    (google-genai 3.1.0 names `previous_interaction_id` and does not say; an analogy)
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls.reading import Call, check_name, read_continued
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.limits import parse_json
from segue.conversation.messages import AssistantMessage, Message
from segue.conversation.stored import dump_message, load, load_message
from segue.errors import EncodeError, LoadError
from segue.failures.failure import FailureKind
from segue.foundation.json_text import encode_json
from segue.gateway.intake import Admission, Refused
from segue.gateway.object_places import find_places
from segue.gateway.service import Gateway
from segue.gateway.store.database import StoreError
from segue.gateway.store.store import StoredReply
from segue.models.model import Model
from segue.protocols.api import encode_request, encode_response
from segue.protocols.kit.held_content import StoredForm
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import find_protocol, get_protocol

_LONGEST: Final = 10_000
"""Replies of one conversation at most."""
_MOST_BYTES: Final = 64_000_000
"""Bytes of one conversation at most: twice the largest body of a request."""
_ROWS_AT_ONCE: Final = 50
"""Rows that are read before other requests have their turn."""


@final
class KeptReply(msgspec.Struct, frozen=True, array_like=True):
    """A reply with the turns before it that the reply `previous` does not have.

    `made` is when, in Unix seconds. A reply that the provider keeps has nothing else here but the model and the account
    that it is asked for with.

    `turns` are the turns as the client sent them, a list in JSON; `messages` is the reply alone then. Without `turns`,
    `messages` is a conversation that ends with the reply: versions before 2026-11-18 wrote that.
    """

    previous: str | None
    messages: bytes
    made: int = 0
    model: str = ""
    account: str = ""
    turns: bytes = b""

    def read(self, protocol: str) -> tuple[list[object], AssistantMessage]:
        """Return the turns before the reply, and the reply.

        Raises:
            LoadError: they cannot be read.
        """
        if self.turns:
            reply, turns = load_message(self.messages), parse_json(self.turns)
        else:
            *before, reply = load(self.messages).messages or (None,)
            model = None if not isinstance(reply, AssistantMessage) else model_of(reply, protocol)
            turns = None if model is None else _write_turns(before, model)
        if not isinstance(reply, AssistantMessage) or not isinstance(turns, list):
            raise LoadError("a stored reply ends with a message of the model")
        return cast("list[object]", turns), reply


def model_of(reply: AssistantMessage, protocol: str) -> Model:
    """Return the model that the client of a stored reply believes it speaks with, for encoders."""
    return Model(reply.response_model or "", get_protocol(protocol).provider, protocol, reasoning=True)


def _write_turns(messages: Sequence[Message], model: Model) -> list[object]:
    if not messages:
        return []
    prompt = Prompt(context=Context(messages=tuple(messages)))
    # Thinking is listed as the client got it, also where no provider signed it.
    listed = replace(model, rules={"reasoning_replay": "open"})
    record = get_protocol(model.protocol)
    try:
        return _form(record).as_turns(encode_request(prompt, model=listed)[record.turns_key or ""])
    except EncodeError as error:
        raise LoadError(str(error)) from error


def turns_of_reply(reply: AssistantMessage, model: Model) -> list[object]:
    """Return the turns of a reply, as a client that keeps its history sends them."""
    body = encode_response(reply, protocol=model.protocol, model=model)
    return cast("list[object]", body[_form(get_protocol(model.protocol)).turns])


def turns_of_request(call: Call) -> list[object]:
    """Return the turns that a client sent, in one list."""
    record = get_protocol(call.body_protocol)
    return [] if call.body is None else _form(record).as_turns(call.body.get(record.turns_key or ""))


def _form(record: Protocol) -> StoredForm:
    form = record.held_content.stored
    assert form is not None, "a protocol whose replies are stored has their form"
    return form


def previous_id(call: Call) -> str | None:
    """Return the id of the reply that a request continues.

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


async def find_turns(gateway: Gateway, name: str, admission: Admission, protocol: str) -> list[object] | None:
    """Return the turns of a conversation up to a reply, and its own; None if it is not stored.

    They are read in a thread if they are large, and so is what follows.

    Raises:
        StoreError: the store cannot be read.
    """
    parts: list[list[object]] = []
    wanted: str | None = name
    read: set[str] = set()
    size = count = 0
    while wanted is not None:
        kept = await find_kept(gateway, wanted, admission.tenant)
        read.add(wanted)
        size += 0 if kept is None else len(kept.messages) + len(kept.turns)
        if kept is None or not kept.messages or len(read) > _LONGEST or size > _MOST_BYTES:
            return None  # without messages, the provider has it: see `keep_id`
        admission.weigh(kept.turns or kept.messages)
        try:
            turns, own = await admission.run(_read_kept, kept, protocol)
        except LoadError:
            return None
        parts += (own, turns)
        count += len(turns)
        admission.weigh_history(count)
        wanted = kept.previous
        if wanted in read:
            return None  # a row that is its own ancestor has no history
        if len(read) % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return [turn for part in reversed(parts) for turn in part]


def _read_kept(kept: KeptReply, protocol: str) -> tuple[list[object], list[object]]:
    """Return the turns before a stored reply, and its own."""
    turns, reply = kept.read(protocol)
    return turns, turns_of_reply(reply, model_of(reply, protocol))


@final
class WholeRequest(NamedTuple):
    """A request that names the reply before it, read with the whole history: `turns` are all of its turns."""

    call: Call
    turns: list[object]


async def find_whole(gateway: Gateway, admission: Admission, call: Call) -> WholeRequest | None:
    """Read a request with the whole history before it; None if it names no reply, or one that is not stored here.

    Raises:
        Refused: the store cannot be read.
        CallError: the history cannot be read with this request.
    """
    name = previous_id(call)
    if name is None or call.prompt is None:
        return None
    with _refusing(call):
        before = await find_turns(gateway, name, admission, call.body_protocol)
    if before is None:
        return None
    turns = [*before, *turns_of_request(call)]
    return WholeRequest(await admission.run(read_continued, call, turns, admission.runtime.router.catalogue), turns)


@contextmanager
def _refusing(call: Call) -> Generator[None]:
    try:
        yield
    except StoreError as error:
        text = "The database with the stored replies does not answer; try again, or send the whole history."
        raise Refused(text, 503, FailureKind.OVERLOADED, call.protocol) from error


async def find_kept(gateway: Gateway, name: str, tenant: str) -> KeptReply | None:
    """Return what is stored of one reply of a tenant; None if there is nothing, or if it cannot be read.

    Raises:
        StoreError: the store cannot be read.
    """
    store = gateway.store.store
    data = None if store is None else await gateway.store.fetch(partial(store.get_response, name, tenant))
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=KeptReply)
    except msgspec.MsgspecError:
        return None


def keep_reply(call: Call, reply: AssistantMessage, name: str, tenant: str, *, made: int) -> StoredReply:
    """Make what is stored of a reply, as the client sees it."""
    turns = encode_json(turns_of_request(call))
    kept = KeptReply(previous_id(call), dump_message(reply), made, turns=turns)
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


def keep_made_ids(
    message: AssistantMessage, seen: AssistantMessage, call: Call, tenant: str, model: Model, *, made: int
) -> list[StoredReply]:
    """Make what is stored of the ids in a reply, so that this client may name them later.

    `message` is the reply of the model, `seen` as the client got it. Ids of texts, reasoning and calls are names only
    where the provider keeps the reply, and the id of the reply itself where the request asks for that.
    """
    is_same = seen.content is message.content and seen.extra is message.extra and call.protocol == model.protocol
    found = _made_ids(message, model.protocol) | (set[str]() if is_same else _made_ids(seen, call.protocol))
    record = find_protocol(call.protocol)
    if record is not None and record.item_ids is not None and is_stored(call):
        found |= {own for piece in seen.content if (own := record.item_ids.find(piece))}
    places = find_places(call.body_protocol)
    if places is not None and call.body is not None and places.names_reply(call.body):
        found |= {own for own in (message.response_id, seen.response_id) if own}  # either may be shown
    return [keep_id(each, tenant, model, made=made) for each in sorted(found)]


def _made_ids(message: AssistantMessage, protocol: str) -> set[str]:
    record = find_protocol(protocol)
    parts: list[object] = [message.extra]
    for piece in message.content:
        parts += (piece.extra, piece.block) if piece.kind == "native" else (piece.extra,)
    if record is None or not (parts := [part for part in parts if part]):
        return set()
    places = find_places(protocol)
    return record.held_content.made_ids(parts) if places is None else places.names_in(parts)


def without_previous(options: Options) -> Options:
    """Remove the id from the options: no provider knows it."""
    extra = options.extra or {}
    rest = {name: _without(part, _reply_key(name)) for name, part in extra.items()}
    return (
        options if rest == extra else replace(options, extra={key: part for key, part in rest.items() if part} or None)
    )


def _without(part: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
    return {each: value for each, value in part.items() if each != key}
