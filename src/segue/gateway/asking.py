"""What a client asks: its history, restored from states, and the models that are tried for it."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import final

import msgspec
from msgspec.structs import replace

from segue.calls import Call
from segue.client.session.outboxes import Outboxes
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.envelope.compactions import open_compactions
from segue.envelope.conversation import FoundStates, Stored, find_states, restore
from segue.envelope.keys import START_OF_CHAIN, Chain
from segue.envelope.restoring import rename_ids
from segue.envelope.state import State
from segue.gateway.hints import find_client, find_conversation
from segue.gateway.intake import Admission
from segue.gateway.responses import check_ids, without_previous
from segue.gateway.routing import Routed
from segue.gateway.service import Gateway, now_ms
from segue.gateway.spending import check_name, select_models
from segue.gateway.straight import has_no_options, is_unchanged
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.policy import Fit, Policy
from segue.projection.report import Report
from segue.protocols.registry import resolve_dialect


@final
class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation up to a reply, as the next request of the same connection continues it.

    - `messages`: the history with all of its states, and with the reply as its model wrote it.
    - `ids`: the ids of calls as the client knows them, and their own.
    - `chain`: the digests of the history as the client knows it (`keys_of_reply`).
    """

    conversation: str
    messages: tuple[Message, ...]
    ids: Mapping[str, str]
    chain: Chain

    def with_own_ids(self, new: Context) -> Context:
        """Give new messages whose results have the own ids of their calls."""
        renamed = (
            replace(message, tool_call_id=rename_ids(self.ids, message.tool_call_id))
            if message.role == "toolResult"
            else message
            for message in new.messages
        )
        return replace(new, messages=tuple(renamed))


@final
class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose history is restored: the context to send, as the client sent it, and the models to try."""

    admission: Admission
    call: Call
    name: str
    sent: Context
    context: Context
    options: Options
    policy: Policy
    routed: Routed
    candidates: tuple[Model, ...]
    restored: int
    report: Report
    conversation: str
    client: str
    tenant: str
    headers: Mapping[str, str]
    chain: Chain
    """The digests of the history as the client knows it (`keys_of_reply`)."""
    has_store: bool
    """Whether the state of the reply can be stored; if not, all of it is in envelopes."""
    refused: frozenset[str] = frozenset()
    """The marks of signatures that a provider refused, which no reply of the history remembers."""
    raw: bytes = b""
    """The body, if it can be passed on as it is to the model of the client's name; else empty."""
    body: bytes = b""
    """The body as it came."""
    continued: Continuation | None = None
    """What stands before `sent`, if the connection has it."""
    outboxes: Outboxes | None = None
    """What was encoded of the earlier requests of the connection."""


async def read_asked(
    gateway: Gateway,
    admission: Admission,
    call: Call,
    headers: Mapping[str, str],
    *,
    raw: bytes = b"",
    context: Context | None = None,
    continued: Continuation | None = None,
    outboxes: Outboxes | None = None,
) -> Asked:
    """Restore the history of a request and find its models. `context` replaces the history of the body `raw`.

    `continued` is what stands before the messages of the body; nothing of it has to be restored.

    Raises:
        UnknownModel: there is no model of that name.
        Refused: the request names something that another client may have at the provider.
    """
    runtime, tenant = admission.runtime, admission.tenant
    prompt = call.prompt
    assert prompt is not None, "only requests with a prompt are sent on"
    name = call.model or ""
    await check_ids(gateway, admission, call, raw)
    sent = open_compactions(prompt.context if context is None else context, gateway.envelopes, tenant)
    given = prompt.options if context is None and continued is None else without_previous(prompt.options)
    conversation = find_conversation(headers, prompt, tenant) if continued is None else continued.conversation
    router, key = runtime.router, admission.key
    check_name(name, key, call.protocol)
    named = router.find(name, call.protocol)
    await gateway.conversations.load(conversation)
    chosen = gateway.conversations.chosen(conversation)
    routed = named if chosen is None or not key.rights.may_ask(chosen) else router.find(chosen, call.protocol)
    author = named.author
    is_known = author is not None and author.protocol == call.body_protocol
    after = START_OF_CHAIN if continued is None else continued.chain
    new = sent if continued is None else continued.with_own_ids(sent)
    found, stored = await _find_states(gateway, admission, new, after)

    def base_url(state: State) -> str | None:
        return router.base_url_of(state.provider, state.model, state.endpoint)

    origin = new_assistant_message(author) if author is not None and is_known else None
    restored = await admission.run(restore, new, found, stored, author=origin, base_urls=base_url)
    whole = restored.context
    if continued is not None:
        whole = replace(whole, messages=(*continued.messages, *whole.messages))
    is_straight = (
        bool(raw)
        and context is None
        and author is not None
        and is_known
        and call.protocol == call.body_protocol
        and call.transport == resolve_dialect(author).transport
        and routed is named
        and author.id == name
        and gateway.store.is_available
        and has_no_options(routed.route)
        and is_unchanged(raw, found, stored, author)
    )
    route = routed.route
    options = replace(
        given,
        stream=call.stream,
        thinking=given.thinking if route.thinking is None else route.thinking,
        max_tokens=given.max_tokens if route.max_tokens is None else route.max_tokens,
        temperature=given.temperature if route.temperature is None else route.temperature,
    )
    fit = Fit(server=route.fit) if isinstance(route.fit, str) else Fit() if route.fit else None
    policy = Policy(reasoning=route.reasoning, instructions=route.instructions, fit=fit)
    ordered = gateway.conversations.order_accounts(
        conversation,
        gateway.conversations.order(conversation, routed),
        whole.messages,
        router,
        runtime.client.find_account,
    )
    ordered = select_models(ordered, key, call.protocol)
    await gateway.spending.begin(admission, ordered[0], options if call.kind != "count" else None, call.protocol)
    return Asked(
        admission=admission,
        call=call,
        name=name,
        sent=sent,
        context=whole,
        options=options,
        policy=policy,
        routed=routed,
        candidates=runtime.breaker.order(ordered, monotonic()),
        restored=restored.restored,
        report=restored.report,
        conversation=conversation,
        client=find_client(headers),
        tenant=tenant,
        headers=headers,
        chain=found.chain,
        has_store=gateway.store.is_available,
        refused=gateway.conversations.refused(conversation, tenant, whole.messages),
        raw=raw if is_straight else b"",
        body=raw,
        continued=continued,
        outboxes=outboxes,
    )


async def _find_states(
    gateway: Gateway, admission: Admission, new: Context, after: Chain
) -> tuple[FoundStates, Stored]:
    limits = admission.limits
    found = await admission.run(
        find_states,
        new,
        gateway.envelopes,
        admission.tenant,
        most=limits.envelopes,
        most_bytes=round(limits.envelope_megabytes * 1_000_000),
        after=after,
    )
    return found, await gateway.store.get_states(found.wanted(), now_ms())
