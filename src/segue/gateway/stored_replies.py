"""Stored replies of Responses and Interactions: read, delete, cancel, and list what they were made of.

A reply that the gateway stored is answered from the store. One that the provider keeps belongs to the operator's
account there: the provider is asked only if the reply is one that this client got itself.

Facts:
- A reply is `{"id", "object": "response", ...}`, a deleted one `{"id", "object": "response", "deleted": true}`; a list
  of items has `first_id`, `last_id`, `has_more`, 20 of them by default, 100 at most, the newest first.
                                                               (openai 3.49.0: resources/responses, ResponseItemList)
- The items are those "used to generate this response", so also those of the replies before it.        (openai 3.49.0)
- Only replies in the background can be cancelled; others are refused with 400, "Cannot cancel a synchronous response."
  Only they can be streamed again.                 (OpenAI documentation: background; vllm #57999; read 2026-11-17)
- An interaction begins with its input if `include_input` is true; the answer to its deletion is empty. Only one that is
  still running in the background can be cancelled.     (google-genai 3.1.0: interactions, Interaction; read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import urlencode

from segue.calls.reading import Call
from segue.client.flow.steps import Broken
from segue.errors import LoadError
from segue.failures.failure import Failure, FailureKind
from segue.foundation.quoting import quote_segment
from segue.gateway.answers import send_failure, send_fetched, send_json
from segue.gateway.intake import Admission
from segue.gateway.responses import KeptReply, find_kept, find_turns, model_of
from segue.gateway.service import Gateway
from segue.gateway.store.database import StoreError
from segue.gateway.writing import Send
from segue.protocols.api import encode_response
from segue.protocols.kit.held_content import StoredForm
from segue.protocols.registry import get_protocol

_METHODS: Final = {"retrieve": "GET", "delete": "DELETE", "cancel": "POST", "input_items": "GET"}
_PATHS: Final = {"cancel": "/cancel", "input_items": "/input_items"}
_PREFIXES: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc", "function_call_output": "fco"}
_MOST_ITEMS: Final = 100
_DEFAULT_ITEMS: Final = 20
_STORE_AWAY: Final = "The database with the stored replies does not answer; try again."


async def answer_stored(gateway: Gateway, admission: Admission, call: Call, client: str, send: Send) -> None:
    """Answer a request about one stored reply."""
    name = call.reply or ""
    try:
        kept = await find_kept(gateway, name, admission.tenant)
        if kept is None:
            await _refuse(send, call, f"{_form(call).noun} with id '{name[:200]}' not found.", 404)
        elif kept.messages:
            await _answer_own(gateway, admission, call, kept, send)
        else:
            await _ask_provider(gateway, admission, call, kept, send, client=client)
    except StoreError:
        failure = Failure(kind=FailureKind.OVERLOADED, status=503, message=_STORE_AWAY)
        await send_failure(send, failure, call.protocol, status=503)


def _form(call: Call) -> StoredForm:
    form = get_protocol(call.protocol).held_content.stored
    assert form is not None, "a protocol with endpoints for stored replies has their form"
    return form


async def _refuse(send: Send, call: Call, message: str, status: int = 400) -> None:
    """Send an error about the reply; not of the kind NOT_FOUND, by which clients read that the model does not exist."""
    encode = get_protocol(call.protocol).encode_error
    assert encode is not None, "a protocol with stored replies has errors"
    reply = encode(Failure(kind=FailureKind.INVALID_REQUEST, status=status, message=message))
    await send_json(send, status, reply.body)


async def _answer_own(gateway: Gateway, admission: Admission, call: Call, kept: KeptReply, send: Send) -> None:
    name, tenant, form = call.reply or "", admission.tenant, _form(call)
    try:
        admission.weigh(kept.turns or kept.messages)
        before, reply = await admission.run(kept.read, call.protocol)
    except LoadError:
        await _refuse(send, call, f"{form.noun} with id '{name}' cannot be read.", 404)
        return
    match call.kind:
        case "retrieve" if call.query.get("stream") == "true":
            text = f"Only {form.noun.lower()}s that were created in the background can be streamed again."
            await _refuse(send, call, text)
        case "retrieve":
            body = encode_response(reply, protocol=call.protocol, model=model_of(reply, call.protocol))
            if form.input_flag is not None and call.query.get(form.input_flag) == "true":
                body[form.turns] = [*before, *cast("list[object]", body[form.turns])]
            await send_json(send, 200, {**form.fields(kept.made, kept.previous), **body})
        case "delete":
            store = gateway.store.store
            assert store is not None, "what is stored has a store"
            await gateway.store.fetch(partial(store.delete_response, name, tenant))
            await send_json(send, 200, form.deleted(name))
        case "input_items":
            previous = kept.previous
            history = None if previous is None else await find_turns(gateway, previous, admission, call.protocol)
            items = await admission.run(list_items, [*(history or ()), *before], name)
            await _send_page(send, call, items)
        case _:
            await _refuse(send, call, f"Cannot cancel a synchronous {form.noun.lower()}.")


def list_items(turns: Sequence[object], name: str) -> list[dict[str, Any]]:
    """Write turns as the items of the list `name`: each has a type, its own id, and parts."""
    entries = cast("Sequence[Mapping[str, Any]]", turns)
    items: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        kind = str(entry.get("type") or "message")
        item: dict[str, Any] = {"type": kind, **entry}
        if item.get("id") is None or item["id"] in seen:
            digest = sha256(f"{name}/{index}".encode("utf-8", "replace")).hexdigest()[:32]
            item["id"] = f"{_PREFIXES.get(kind, 'item')}_{digest}"
        seen.add(item["id"])
        if kind == "message":
            part = "output_text" if item.get("role") == "assistant" else "input_text"
            if isinstance(item.get("content"), str):
                written = {"type": part, "text": item["content"]}
                item["content"] = [written if part == "input_text" else {**written, "annotations": []}]
        if kind != "reasoning":
            item.setdefault("status", "completed")
        items.append(item)
    return items


async def _send_page(send: Send, call: Call, items: list[dict[str, Any]]) -> None:
    query: Mapping[str, str] = call.query
    order, limit, after = query.get("order", "desc"), query.get("limit", str(_DEFAULT_ITEMS)), query.get("after")
    if order not in ("asc", "desc"):
        await _refuse(send, call, f"Invalid value for 'order': {order[:40]!r}; use 'asc' or 'desc'.")
        return
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 4 and 1 <= int(limit) <= _MOST_ITEMS):
        await _refuse(send, call, f"Invalid value for 'limit': use a number from 1 to {_MOST_ITEMS}.")
        return
    ordered = items if order == "asc" else items[::-1]
    if after is not None:
        at = next((at for at, item in enumerate(ordered) if item["id"] == after), None)
        if at is None:
            await _refuse(send, call, f"Item with id '{after[:200]}' not found.", 404)
            return
        ordered = ordered[at + 1 :]
    page = ordered[: int(limit)]
    body = {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(ordered) > len(page),
    }
    await send_json(send, 200, body)


async def _ask_provider(
    gateway: Gateway, admission: Admission, call: Call, kept: KeptReply, send: Send, *, client: str
) -> None:
    """Pass the request on to the provider that keeps the reply, with the account that it was made with."""
    name, runtime = call.reply or "", admission.runtime
    if not kept.model:
        text = f"{_form(call).noun} with id '{name}' is kept by a provider that is not known any more."
        await _refuse(send, call, text, 404)
        return
    router = runtime.router
    model = router.at_account(router.resolve(kept.model, call.protocol), kept.account)
    query = urlencode({key: value for key, value in call.query.items() if key != "key"})
    path = f"/{quote_segment(name, what='the id of the reply')}{_PATHS.get(call.kind, '')}"
    path += f"?{query}" if query else ""
    head, body = await runtime.client.fetch(model, path, method=_METHODS[call.kind])
    store = gateway.store.store
    if call.kind == "delete" and not isinstance(head, Broken) and head.status in (200, 404) and store is not None:
        await gateway.store.fetch(partial(store.delete_response, name, admission.tenant))
    await send_fetched(send, head, body, call.protocol, client=client, model=model)
