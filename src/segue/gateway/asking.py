"""What a client asks: its history, restored from states, and the models that are tried for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from time import monotonic
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.calls.reading import Call
from segue.client.session.outboxes import Outboxes
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.compactions import open_compactions
from segue.envelope.conversation import FoundStates, Stored, find_states, restore
from segue.envelope.keys import START_OF_CHAIN, Chain
from segue.envelope.state import State
from segue.gateway.config import ModelRoute
from segue.gateway.fallbacks import may_return, return_to_first
from segue.gateway.hints import Identity, find_client, find_conversation
from segue.gateway.histories import ReadRequest, Seam
from segue.gateway.intake import Admission
from segue.gateway.looking_up import answer_unseen
from segue.gateway.provider_objects import check_objects, checked_bytes, without_items
from segue.gateway.routing import Routed, Router
from segue.gateway.service import Gateway, now_ms
from segue.gateway.spending import Planned, check_name, select_models
from segue.gateway.straight import has_no_options, is_unchanged
from segue.models.model import Model
from segue.projection.policy import Fit, InstructionsPolicy, Policy, ReasoningPolicy
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.projection.workspace.workspace import KnownTools
from segue.protocols.kit.facts import ServerEdit
from segue.protocols.registry import get_protocol, resolve_dialect

_NOTHING: Final[frozenset[str]] = frozenset()


@final
class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation up to a reply, as the next request of the same connection continues it.

    - `call`: the request before the reply, with the prompt of its whole history, as the client knows it.
    - `turns`, `reply`: all turns of that request, and those of the reply; none if no reply was asked for.
    - `messages`: the history of that request with all of its states.
    - `chain`: the digests of that history as the client knows it (`keys_of_reply`).

    The reply itself is restored like one that the client sends: so a client that sends its history whole after all, on
    another connection, does not change what was sent before.
    """

    conversation: str
    is_sure: bool
    call: Call
    turns: Sequence[object]
    reply: Sequence[object]
    messages: tuple[Message, ...]
    chain: Chain


@final
class RestoredRequest(msgspec.Struct, frozen=True, kw_only=True):
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
    is_sure: bool
    """Whether the conversation has a name of its own (`Identity`)."""
    chosen: str | None
    """The model that was chosen for the conversation."""
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
    """What is before `sent`, if the connection has it."""
    outboxes: Outboxes | None = None
    """What was encoded of the earlier requests of the connection."""
    tools: KnownTools | None = None
    """What was fitted of the tools, if other requests had the same."""


async def read_asked(
    gateway: Gateway,
    admission: Admission,
    call: Call,
    headers: Mapping[str, str],
    *,
    raw: bytes = b"",
    is_continued: bool = False,
    continued: Continuation | None = None,
    outboxes: Outboxes | None = None,
    read: ReadRequest | None = None,
) -> RestoredRequest:
    """Restore the history of a request and find its models.

    `is_continued`: the body names the reply before it, and the prompt has the history of that too; so the body `raw`
    cannot be sent on as it is. `continued` is what the prompt begins with; nothing of it has to be restored. `read` is
    what is known of the beginning of the body from earlier requests: nor has that.

    Raises:
        UnknownModel: there is no model of that name.
        Refused: the request names something that another client may have at the provider.
    """
    runtime, tenant = admission.runtime, admission.tenant
    prompt = call.prompt
    assert prompt is not None, "only requests with a prompt are sent on"
    name = call.model or ""
    left_out = await check_objects(gateway, admission, call, read, is_continued=is_continued) if tenant else _NOTHING
    if continued is None:
        identity = find_conversation(headers, prompt, tenant, call.body)
    else:
        identity = Identity(continued.conversation, is_sure=continued.is_sure)
    conversation = identity.name
    router, key = runtime.router, admission.key
    check_name(name, key, call.protocol)
    named = router.find(name, call.protocol)
    if identity.is_sure:
        chosen = gateway.conversations.chosen(conversation)  # as far as it is known without the store
    else:
        chosen = gateway.conversations.chosen_after(prompt.context.messages, tenant)
    author = named.author
    is_known = author is not None and author.protocol == call.body_protocol
    is_available = gateway.store.is_available
    may_pass = (
        bool(raw)
        and not is_continued
        and author is not None
        and is_known
        and call.protocol == call.body_protocol
        and call.transport == resolve_dialect(author).transport
        and (chosen is None or not key.rights.may_ask(chosen))
        and author.id == name
        and is_available
        and has_no_options(named.route)
        and (not tenant or _names_model(call, name))
        and not left_out
    )
    restored = await _restore(
        gateway,
        admission,
        prompt.context,
        router=router,
        origin=named.origin if is_known else None,
        passing=(author, raw) if author is not None and may_pass else None,
        continued=continued,
        read=read,
        identity=identity,
        is_sure=is_available or not gateway.has_store,
        left_out=(left_out, call.body_protocol),
    )
    whole = restored.context
    if identity.is_sure:
        chosen = gateway.conversations.chosen(conversation)
    routed = named if chosen is None or not key.rights.may_ask(chosen) else router.find(chosen, call.protocol)
    route = routed.route
    options = options_with(prompt.options, route, is_streamed=call.stream)
    passed = raw if restored.passes and routed is named else b""
    if passed and tenant and not admission.is_written:
        passed = await admission.run(checked_bytes, raw, call.body)
    policy = _make_policy(route.reasoning, route.instructions, route.fit)
    ordered = gateway.conversations.order_accounts(
        conversation,
        gateway.conversations.order(conversation, routed),
        whole.messages,
        router,
        runtime.client.find_account,
    )
    ordered = select_models(ordered, key, call.protocol)
    if may_return(routed, ordered, runtime.breaker, monotonic()):
        ordered = await admission.run(
            return_to_first, routed, ordered, whole, options=options, policy=policy, now=now_ms()
        )
    report = restored.report
    granted = None
    if key.id:  # others are not counted
        planned = Planned(
            ordered,
            whole,
            None if call.kind == "count" else options,
            call.body or {},
            call.body_protocol,
            is_held=not is_continued and continued is None and _is_held(call),
        )
        granted = await gateway.spending.begin(admission, planned, call.protocol)
    if granted is not None:
        options, passed = replace(options, max_tokens=granted.max_tokens), b""
        path = ("options", "max_tokens")
        change = Change(code=ChangeCode.OPTION_CLAMPED, path=path, loss=Loss.NONE, detail=granted.detail)
        report = Report((*report.changes, change))
    return RestoredRequest(
        admission=admission,
        call=call,
        name=name,
        sent=restored.sent,
        context=whole,
        options=options,
        policy=policy,
        routed=routed,
        candidates=runtime.breaker.order(ordered, monotonic()),
        restored=restored.turns,
        report=report,
        conversation=conversation,
        is_sure=identity.is_sure,
        chosen=chosen,
        client=find_client(headers),
        tenant=tenant,
        headers=headers,
        chain=restored.chain,
        has_store=gateway.store.is_available,
        refused=gateway.conversations.refused(conversation, tenant, whole.messages),
        raw=passed,
        body=raw,
        continued=continued,
        outboxes=restored.outboxes or outboxes,
        tools=None if read is None or read.head is None else read.head.tools,
    )


def options_with(given: Options, route: ModelRoute, *, is_streamed: bool) -> Options:
    """Return the options of a client with those of a route."""
    if given.stream is is_streamed and has_no_options(route):
        return given
    return replace(
        given,
        stream=is_streamed,
        thinking=given.thinking if route.thinking is None else route.thinking,
        max_tokens=given.max_tokens if route.max_tokens is None else route.max_tokens,
        temperature=given.temperature if route.temperature is None else route.temperature,
    )


def _is_held(call: Call) -> bool:
    """Whether the provider has a part of the input, such as the replies before it."""
    held, body = get_protocol(call.protocol).held_content, call.body or {}
    named = [body[key] for key in (*held.keys, *held.values) if key in body]
    return any(value not in (None, call.model) for value in named)


def _names_model(call: Call, name: str) -> bool:
    """Whether a body names no other model than the one whose rights were checked, which may come from the path."""
    given = None if call.body is None else call.body.get("model")
    return given is None or given == name


@lru_cache(1_000)
def _make_policy(reasoning: ReasoningPolicy, instructions: InstructionsPolicy, fit: bool | ServerEdit) -> Policy:
    """Make the policy of a route: once, because a policy checks all of its values."""
    made = Fit(server=fit) if isinstance(fit, str) else Fit() if fit else None
    return Policy(reasoning=reasoning, instructions=instructions, fit=made)


class _Restored(msgspec.Struct, frozen=True):
    """A history with its states; `sent` is the part that had to be looked at, `passes` whether its bytes can be sent.

    `outboxes` are those of the earlier requests, if there were any.
    """

    sent: Context
    context: Context
    chain: Chain
    turns: int
    """How many got their state back."""
    report: Report
    passes: bool | None
    outboxes: Outboxes | None


async def _restore(
    gateway: Gateway,
    admission: Admission,
    given: Context,
    *,
    router: Router,
    origin: AssistantMessage | None,
    passing: tuple[Model, bytes] | None,
    continued: Continuation | None,
    read: ReadRequest | None,
    identity: Identity,
    is_sure: bool,
    left_out: tuple[frozenset[str], str],
) -> _Restored:
    """Restore a history, or what is new of it, and keep it for the next request.

    `origin` is the author of turns without a state, `passing` the model that may get the body as it is,
    `left_out` are ids of items that are not sent, and their protocol. `is_sure`: what is not found is not stored.
    """
    history, seam = (None, None) if read is None or not is_sure else (read.history, read.seam)
    if seam is not None and passing is not None and seam.is_unchanged is None:
        seam = None  # it was not asked before
    after = START_OF_CHAIN if continued is None else continued.chain
    if continued is not None:
        known = continued.call.prompt
        assert known is not None, "it was read"
        given = replace(given, messages=given.messages[len(known.context.messages) :])
    elif seam is not None:
        after, given = seam.chain, replace(given, messages=given.messages[seam.messages :])
    sent = open_compactions(given, gateway.envelopes, admission.tenant)
    found, stored = await _find_states(gateway, admission, sent, after, identity)

    def base_url(state: State) -> str | None:
        return router.base_url_of(state.provider, state.model, state.endpoint)

    restored = await admission.run(restore, sent, found, stored, author=origin, base_urls=base_url)
    whole, count, report = restored.context, restored.restored, restored.report
    before: tuple[Message, ...] = ()
    if continued is not None:
        before = continued.messages
    elif history is not None and seam is not None:
        before = history.whole[: seam.whole]
    if restored.look_ups:
        answered = await admission.run(answer_unseen, before, whole.messages, restored.look_ups)
        whole = replace(whole, messages=answered)
    if left_out[0]:
        whole = without_items(whole, *left_out)
    passes = None if passing is None else is_unchanged(passing[1], found, stored, passing[0])
    if before:
        whole = replace(whole, messages=(*before, *whole.messages))
    if history is not None and seam is not None:
        count += seam.restored
        report = Report((*seam.report.changes, *report.shifted(seam.messages).changes))
        passes = passes and seam.is_unchanged
    if read is not None and read.text is not None and is_sure and sent is given:
        messages = len(sent.messages) + (0 if seam is None else seam.messages)
        end = Seam(len(read.text.turns), messages, len(whole.messages), found.chain, report, count, passes)
        read = read if seam is not None else replace(read, history=None, seam=None)
        gateway.histories.keep(read, admission.runtime, whole.messages, end, identity.name)
    outboxes = None if history is None or seam is None else history.outboxes
    return _Restored(sent, whole, found.chain, count, report, passes, outboxes)


async def _find_states(
    gateway: Gateway, admission: Admission, new: Context, after: Chain, identity: Identity
) -> tuple[FoundStates, Stored]:
    """Look up the states of a history, and its conversation with the same query."""
    found = await admission.run(
        find_states,
        new,
        gateway.envelopes,
        admission.tenant,
        most=admission.limits.envelopes,
        most_bytes=round(admission.limits.envelope_megabytes * 1_000_000),
        after=after,
        digested=identity.digested,
    )
    stored, kept = await gateway.store.find(found.wanted(), identity.name, now_ms(), admission.tenant)
    gateway.conversations.keep(kept)
    return found, stored
