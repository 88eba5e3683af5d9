"""One request of a client, from its prompt to the end of the reply.

The history is restored from states, sent to the models of the route, and the reply is shown in the client's protocol
with its state attached. The state is stored before the end of the reply is sent.
"""

from __future__ import annotations

import asyncio
import os
from binascii import b2a_base64
from contextlib import nullcontext, suppress
from functools import cached_property, lru_cache, partial
from time import monotonic
from typing import Any, Final, Self, TypeAlias

from msgspec.structs import replace

from segue.client.flow.attempts import Attempt
from segue.client.flow.billing import find_usage
from segue.client.http.async_streams import AsyncStream
from segue.client.http.first_attempts import FirstAttempt
from segue.conversation.context import Context, Options
from segue.conversation.events import DoneEvent, ErrorEvent, Event, StartEvent
from segue.conversation.messages import AssistantMessage, Sent, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.envelope.attaching import DELTAS, Attachment, state_of_whole
from segue.envelope.keys import keys_of_reply
from segue.envelope.state import State
from segue.errors import EncodeError, SegueError
from segue.failures.failure import Failure, FailureKind
from segue.foundation.json_text import encode_json
from segue.foundation.plurals import counted
from segue.gateway.asking import Continuation, RestoredRequest
from segue.gateway.caching import find_saving, with_caching
from segue.gateway.cleaning import without_client_texts
from segue.gateway.contents import dump_content
from segue.gateway.fallbacks import make_policy
from segue.gateway.looking_up import MOST, LookUps
from segue.gateway.records import Figures, RequestRow, attempt_rows, change_rows, describe_failure
from segue.gateway.responses import is_stored, keep_id, keep_made_ids, keep_reply, turns_of_reply
from segue.gateway.routing import name_of
from segue.gateway.service import LOG, Gateway, now_ms
from segue.gateway.spending import clamp_usage, count_choices
from segue.gateway.store.store import StoredContent, StoredState
from segue.gateway.straight import straight_request
from segue.gateway.straight_replies import StraightReply, repair_body
from segue.gateway.stream_usage import UsageFilter, ask_for_usage
from segue.gateway.tracing import RequestTrace
from segue.gateway.transport import TAP
from segue.models.model import Model
from segue.models.price import add_usage, find_cost
from segue.projection.policy import Policy
from segue.projection.replies.projector import ReplyProjector
from segue.projection.report import Report
from segue.protocols.api import OneModel, resolve_endpoint
from segue.protocols.drift import find_drift
from segue.protocols.registry import get_protocol
from segue.requests.prepare import Request, prepare_again

_TRACE_HEADERS: Final = ("traceparent", "tracestate")
"""Headers of a client that are sent on to a provider if `telemetry.propagate` is set and no span is written here."""
_UNCOMPRESSED: Final = {"accept-encoding": "identity"}
_CONTENT: Final = frozenset(
    {"text_start", "thinking_start", "toolcall_start", "text_delta", "thinking_delta", "toolcall_delta", "native"}
)
_FAILED: Final = StopReason.ERROR, StopReason.ABORTED
_TRANSIENT: Final = frozenset({FailureKind.OVERLOADED, FailureKind.SERVER, FailureKind.NETWORK, FailureKind.RATE_LIMIT})
"""Failures that open the circuit of a model."""
_RESTING: Final = _TRANSIENT | {FailureKind.AUTH, FailureKind.QUOTA}
"""Failures after which one of several accounts is tried after the others for some time."""
_LONGEST_REST: Final = 3600.0
_REPAIRED: Final = "the provider did not keep to its protocol; the reply was repaired"
_UNTRACED: Final = nullcontext()
_NOT_TRIED: Final = "{} was not tried: {}"
_IMPOSSIBLE: Final = "the provider reported an impossible usage: figures below 0 or beyond the model; it was clamped"


_SYMBOLS: Final = bytes.maketrans(b"+/", b"Aa")


def random_name() -> str:
    """Return 22 random letters and digits, of 132 random bits: the random part of an id."""
    return b2a_base64(os.urandom(18)).translate(_SYMBOLS)[:22].decode()


def timed_name() -> str:
    """Return a name that begins with the time, so that indexes grow at their end, and has 107 random bits."""
    return f"{now_ms():011x}{random_name()[:18]}"


_Given: TypeAlias = "tuple[Context, Model, Options | None, Policy | None, str | None, frozenset[str]]"
"""What a request to a provider is made of: history, model, options, policy, account, marks that were refused."""


class Exchange:
    """The exchange of one request: attempts, the state of the reply, and the row that is kept.

    At the end of its `with` block it drops what refers to it: in a cycle, a body and all that was made of it would wait
    for the collector.
    """

    def __init__(self, gateway: Gateway, asked: RestoredRequest, request_id: str) -> None:
        self.gateway: Gateway = gateway
        self.asked: RestoredRequest = asked
        self.id: str = request_id
        self.attempts: list[Attempt] = []
        self.tap: list[bytes] = []
        """Bytes of the provider's reply that the client has not got yet, if they are passed on as they are."""
        self._arrived: list[bytes] | None = [] if gateway.keeps_bytes else None
        """The bytes of the provider's reply, if the store keeps them."""
        if asked.raw or self._arrived is not None:
            TAP.set(self._take if self._arrived is not None else self.tap.append)
        self.first_byte: int | None = None
        self._protocol = get_protocol(asked.call.protocol)
        self._began = now_ms()
        self._attachment: Attachment | None = None
        self._unchanged: State | None = None
        """The state of a whole reply that the client gets unchanged: nothing has to be attached to it."""
        self._projector: ReplyProjector | None = None
        self._model: Model | None = None
        self._has_store = asked.has_store
        self.is_unstored: bool = False
        """Whether the state of the reply, or a reply that the client asked to store, could not be stored."""
        self.message: AssistantMessage | None = None
        """The reply of the provider, once it is complete."""
        self.is_left: bool = False
        """Whether the client left before the end of the reply."""
        self._notes: list[str] = []
        self.is_passed: bool = False
        """Whether the body of the last request to a provider are the client's own bytes."""
        self._filter: UsageFilter | None = None
        """Takes out of the bytes what the client did not ask for."""
        self._stream: AsyncStream | None = None
        self._request: Request | None = None
        self._first: Request | None = None
        """The request of an attempt that was made already."""
        self.look_ups: LookUps | None = None
        """The look-ups of the model in what was cut, if the route lets it look up."""
        self._given: _Given | None = None
        """What the last request was made of."""
        self._trace: RequestTrace | None = None
        if gateway.tracing is not None:
            ids = {"gen_ai.conversation.id": asked.conversation, "segue.request.id": request_id}
            model, name, headers = asked.candidates[0], asked.name, asked.headers
            self._trace = RequestTrace(gateway.tracing, model, name=name, ids=ids, headers=headers, began=self._began)

    @cached_property
    def reply_id(self) -> str:
        """The id of the reply, where the gateway writes it."""
        return self._protocol.reply_form.id_prefix + random_name()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._attachment = self._stream = self._first = self._request = self.look_ups = None
        if (lease := self.asked.admission.lease) is not None:
            lease.progress = None

    # -- the provider --------------------------------------------------------------------------------------------------

    def begin(self, candidates: tuple[Model, ...], first: FirstAttempt | None = None) -> AsyncStream:
        """Make the request to the first of the models that answers, without sending it.

        `first` is the first attempt, which was made before: what it received is read again.
        """
        asked = self.asked
        self._first = None if first is None else first.request
        context = asked.context if self.look_ups is None else self.look_ups.begin()
        with self._trace or _UNTRACED:
            self._stream = asked.admission.runtime.client.begin(
                context,
                candidates[0],
                options=asked.options,
                policy=asked.policy,
                fallback_models=make_policy(asked.routed.route, candidates[1:]) or candidates[1:],
                emits=asked.call.stream,
                prepare=self._prepare,
                on_attempt=self.note_attempt,
                first=first,
            )
        return self._stream

    def try_first(self) -> FirstAttempt | None:
        """Make the first attempt of a request whose reply is not streamed; None if a flow has to make it."""
        asked = self.asked
        if asked.call.stream or self.look_ups is not None:
            return None
        client = asked.admission.runtime.client
        try:
            with self._trace or _UNTRACED:
                first = client.try_first(
                    asked.context,
                    asked.candidates[0],
                    options=asked.options,
                    policy=asked.policy,
                    prepare=self._prepare,
                )
            if first is not None:
                _ = first.request.content  # encoded here, in the thread of a large body
        except SegueError:  # another model may be asked, and the flow says what is wrong
            return None
        return first

    async def send_first(self, first: FirstAttempt) -> AssistantMessage | None:
        """Send the first attempt, and note how it ended; None if a flow has to go on with it."""
        try:
            await first.send()
        except BaseException:
            await self.begin(self.asked.candidates, first).close()  # what was sent is counted, and has a span
            raise
        if first.message is None or first.attempt is None:
            return None
        self.message = first.message
        self.note_attempt(first.attempt)
        return first.message

    async def begin_apart(self, candidates: tuple[Model, ...], first: FirstAttempt | None = None) -> AsyncStream:
        """Begin, in a thread if the history is large, and give up the turn: what follows is the provider's time."""
        stream = await self.asked.admission.run(self._begin_encoded, candidates, first)
        self.asked.admission.turn.leave()
        return stream

    def _begin_encoded(self, candidates: tuple[Model, ...], first: FirstAttempt | None) -> AsyncStream:
        """Begin, and encode the body as well: otherwise that is done when it is sent, on the event loop."""
        stream = self.begin(candidates, first)
        if self._request is not None:
            with suppress(EncodeError):  # it is reported when the request is sent
                _ = self._request.content
        return stream

    def _progress(self) -> Usage | None:
        """Return what the attempt that runs has cost so far; None if nothing of a reply is there."""
        stream = self._stream
        if stream is None or stream.is_over or not stream.message.content:
            return None
        return find_usage(stream.message, is_whole=False, request=None, model=stream.model)

    def _sent(self) -> Sent | None:
        """Return what the reply is made after, as far as it is known."""
        message = self.message if self._stream is None else self._stream.message
        return None if message is None else message.sent

    def learn(self) -> None:
        """Note what providers refused of the history, also if none of them answered."""
        sent, asked = self._sent(), self.asked
        if sent is not None and sent.dropped:
            self.gateway.conversations.note_refused(asked.conversation, sent.dropped, tenant=asked.tenant, now=now_ms())

    def _prepare(
        self,
        context: Context,
        model: Model,
        options: Options | None,
        policy: Policy | None,
        *,
        account: str | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> Request:
        if self._first is not None:
            request, self._first = self._first, None
            return request
        given = (context, model, options, policy, account, refused)
        self._request, self._given = self._make_request(given), given
        return self._request

    def _is_again(self, given: _Given) -> bool:
        """Whether the same is asked for again, as for a retry: the history is compared as an object."""
        before = self._given
        return before is not None and before[0] is given[0] and before[1:] == given[1:]

    def _make_request(self, given_to: _Given) -> Request:
        context, model, options, policy, account, refused = given_to
        asked, is_lowered = self.asked, False
        if (lease := asked.admission.lease) is not None:
            self.gateway.spending.begin_attempt(lease)
            lease.progress = self._progress
            if options is not None and (again := lease.output_again()) < lease.output:
                options, is_lowered = replace(options, max_tokens=again), True
                self._notes.append(f"an attempt that was billed left {again} output tokens for the next one")
        self.tap.clear()
        if self._arrived is not None:
            self._arrived.clear()
            model = replace(model, headers={**model.headers, **_UNCOMPRESSED})
        if self._request is not None and not is_lowered and self._is_again(given_to):
            self._filter = None if self._filter is None else UsageFilter()
            return self._request
        self.is_passed = False
        known = refused | asked.refused
        if model.protocol == asked.call.protocol:
            names = self._protocol.forwarded_headers
            if self._trace is None and self.gateway.config.telemetry.propagate:
                names = (*names, *_TRACE_HEADERS)
            given = {name: value for name in names if (value := asked.headers.get(name))}
            if asked.raw:
                given |= _UNCOMPRESSED  # the bytes of the reply are passed on
            if given:
                model = _with_headers(OneModel(model), tuple(given.items()))
            if asked.raw and not refused and not is_lowered:  # the same body would be refused again
                request = self._pass(context, model, options, account, known)
                if request is not None:
                    self.is_passed = True
                    return request
        else:
            context = without_client_texts(context)
        # A client whose bodies can pass as they are has its own marks, or none: instructions with a mark are written
        # in another form, and its reasoning would be invalid after that.
        if asked.routed.route.caching and options is not None and not asked.raw:
            options = with_caching(options, context, model, asked.conversation)
        make = partial(prepare_again, cache=self.gateway.digests.of(asked.tenant), known=asked.tools)
        if asked.outboxes is not None:
            make = asked.outboxes.prepare
        if self.look_ups is not None:
            make = partial(self.look_ups.recall.prepare, make)
        return make(context, model, options=options, policy=policy, account=account, refused=known)

    def let_look_up(self) -> None:
        """Let the model look up what is cut, unless the route or the budget of the key forbids it.

        A further request cannot be reserved beforehand.
        """
        route = self.asked.routed.route
        if route.fit and route.recall and not self.is_reserved:
            self.look_ups = LookUps(self.asked.context, has_store=self._has_store)

    def next_round(self, model: Model) -> tuple[Model, ...]:
        """Return the models for the request with the answer to a look-up of a model; none if there was none."""
        if self.look_ups is None or not self.look_ups.is_due:
            return ()
        return (model, *(each for each in self.asked.candidates if name_of(each) != name_of(model)))

    def _note_look_ups(self, found: LookUps) -> None:
        if found.rounds:
            self._notes.append(f"the model looked up what does not fit its window, {counted(found.rounds, 'time')}")
        if found.unseen:
            count = counted(len(found.unseen), "look-up")
            self._notes.append(f"{count} next to calls of the client: answered with their results")
        if found.left_out:
            self._notes.append(f"{counted(found.left_out, 'look-up')} next to calls, or after {MOST}, had no answer")

    def _pass(
        self, context: Context, model: Model, options: Options | None, account: str | None, refused: frozenset[str]
    ) -> Request | None:
        """Make a request with the client's own bytes, for the version of the API that it names."""
        body = self.asked.call.body
        assert body is not None, "a request with a prompt has a body"
        versions = self._protocol.versions
        if versions is not None and (version := self.asked.headers.get(versions.header)):
            model = _with_headers(OneModel(model), ((versions.header, version),))
        cache, raw = self.gateway.digests.of(self.asked.tenant), self.asked.raw
        measured = ask_for_usage(body, resolve_endpoint(model)) if self.asked.call.stream else None
        self._filter = None if measured is None else UsageFilter()
        if measured is not None:
            body, raw = measured, encode_json(measured)
        return straight_request(raw, body, context, model, options, account=account, refused=refused, cache=cache)

    @property
    def is_straight(self) -> bool:
        """Whether bytes are passed on as they are."""
        return bool(self.asked.raw)

    def straight_reply(self, model: Model) -> StraightReply:
        """Make what compares the bytes of a streamed reply with its protocol."""
        call = self.asked.call
        return StraightReply(call.framing, call.protocol, model, self.asked.sent.tools)

    def repair_whole(self, message: AssistantMessage, model: Model) -> object:
        """Return the bytes of a whole reply, or what replaces them if the provider did not keep to its protocol."""
        data = self.take_bytes()
        body = repair_body(data, message, self.asked.call.protocol, model, self.asked.sent.tools) if data else data
        if body is not data:
            self.note_repair()
        return body

    def note_repair(self) -> None:
        """Note that a reply, or the rest of it, is written anew."""
        self._notes.append(_REPAIRED)

    def _take(self, chunk: bytes) -> None:
        """Take a piece of the provider's reply."""
        assert self._arrived is not None, "it is kept"
        self._arrived.append(chunk)
        if self.asked.raw:
            self.tap.append(chunk)

    def take_bytes(self, *, is_last: bool = False) -> bytes:
        """Take the bytes that arrived, as the client may see them."""
        data = b"".join(self.tap)
        self.tap.clear()
        return data if self._filter is None else self._filter.feed(data, is_last=is_last)

    def take_rest(self) -> bytes:
        """Take the beginning of a frame that is held back."""
        return b"" if self._filter is None else self._filter.take_rest()

    def note_attempt(self, attempt: Attempt) -> None:
        """Note how a request to a provider ended."""
        failure, lease = attempt.failure, self.asked.admission.lease
        if attempt.usage is not None:
            usage = self._clamp(attempt.usage, attempt.model)
            if usage is not attempt.usage:
                self._notes.append(_IMPOSSIBLE)
                LOG.warning(
                    "%s: %s reported an impossible usage; it is counted within its limits",
                    self.id,
                    name_of(attempt.model),
                )
                attempt = replace(attempt, usage=usage)
            if lease is not None:
                is_known = usage.cost is not None or not lease.rights.has_money_budget
                if not is_known:  # a price that is not known may not be spent without end: the list price counts
                    usage = replace(usage, cost=find_cost(attempt.model.cost, usage))
                is_reserved = self.is_left and attempt.is_estimated and self.is_reserved
                is_measured = is_known and not attempt.is_estimated
                self.gateway.spending.count(lease, usage, is_measured=is_measured, is_reserved=is_reserved)
                if is_measured:
                    self.gateway.spending.learn(lease, attempt.model, usage)
        self.attempts.append(attempt)
        if failure is None or failure.kind in _TRANSIENT:
            self.asked.admission.runtime.breaker.note(attempt.model, monotonic(), failed=failure is not None)
        if failure is None or failure.kind not in _RESTING:
            return
        runtime = self.asked.admission.runtime
        if self.asked.routed.route.fallback is not None:
            runtime.breaker.note_failure(attempt.model, monotonic(), failure.retry_after)
        if attempt.model.account:
            seconds = runtime.config.limits.cooldown_seconds
            if failure.kind == FailureKind.RATE_LIMIT and failure.retry_after is not None:
                seconds = min(failure.retry_after, _LONGEST_REST)
            runtime.breaker.rest(attempt.model, monotonic() + seconds)

    def _clamp(self, usage: Usage, model: Model) -> Usage:
        clamped = clamp_usage(usage, model)
        if clamped is usage:  # of several replies, more is possible
            return usage
        return clamp_usage(usage, model, choices=count_choices(self.asked.call.body or {}))

    @property
    def is_reserved(self) -> bool:
        """Whether all that the request may cost is reserved: then a reply is read to its end for the true figure."""
        lease = self.asked.admission.lease
        return lease is not None and lease.rights.has_reserve and lease.reserving != "loose"

    async def rest_after(self, candidates: tuple[Model, ...], failed: Model) -> tuple[Model, ...]:
        """Return the models to try after the one that failed; with a policy, in the order of the moment."""
        names, asked = [name_of(model) for model in candidates], self.asked
        at = names.index(name_of(failed)) if name_of(failed) in names else len(names)
        fallbacks = make_policy(asked.routed.route, ())
        if fallbacks is None:
            return candidates[at + 1 :]
        self._note_left_out()
        tried = {name_of(failed), *(name_of(attempt.model) for attempt in self.attempts)}
        untried = tuple(model for model in candidates if name_of(model) not in tried)
        arrange = partial(fallbacks.arrange, options=asked.options, policy=asked.policy, now=now_ms(), failed=failed)
        taken, left_out = await asked.admission.run(arrange, asked.context, untried)
        self._notes += [_NOT_TRIED.format(each.model.full_name(), each.reason) for each in left_out]
        return taken

    def _note_left_out(self) -> None:
        """Note the models that the policy of the route left out of the request that ended."""
        if self.asked.routed.route.fallback is None or self._stream is None:
            return
        self._notes += [
            _NOT_TRIED.format((note.details or {}).get("model"), note.message)
            for note in self._stream.message.diagnostics
            if note.type == "fallback_left_out"
        ]

    # -- what the client sees ------------------------------------------------------------------------------------------

    def keeps_native(self, model: Model) -> bool:
        """Whether the client gets signatures and ids unchanged: the name that it asks for has this author only."""
        author = self.asked.routed.author
        return (
            author is not None
            and (author is model or author.full_name() == model.full_name())
            and model.protocol == self.asked.call.protocol == self.asked.call.body_protocol
            and self.asked.routed.name == self.asked.name
            and self._has_store
        )

    def attach(self, model: Model) -> Attachment:
        """Make what attaches the state of the reply of a model."""
        if self._attachment is None:
            native, self._model = self.keeps_native(model), model
            if not native:
                self._projector = ReplyProjector(
                    protocol=self.asked.call.protocol,
                    model=self.reply_model(),
                    source=model,
                    tools=self.asked.sent.tools,
                )
            self._attachment = Attachment(
                self._protocol.state_slots,
                model,
                model.base_url,
                write=lambda state: self.gateway.envelopes.write(state, self.asked.tenant),
                new_id=random_name,
                keeps_native=native,
                has_store=self._has_store,
                sent=self._sent,
            )
        return self._attachment

    def _show(self, event: Event) -> list[Event]:
        """Return what the client may see of an event."""
        return [event] if self._projector is None else self._projector.feed(event)

    def convert(self, events: list[Event], model: Model) -> list[Event]:
        """Return the events for the client in place of the provider's."""
        attachment = self._attachment or self.attach(model)
        if len(events) == 1 and type(events[0]) in DELTAS:  # nearly all events
            return attachment.feed(events[0], self._show(events[0]))
        attachment.look_ahead(events)
        written: list[Event] = []
        for event in events:
            if event.type == "start":
                written.append(self._named_start(event))
            else:
                for shown in attachment.feed(event, self._show(event)):
                    if shown.type == "done" or shown.type == "error":
                        written.append(replace(shown, message=self.named(shown.message)))
                    else:
                        written.append(shown)
        return written

    def _named_start(self, event: StartEvent) -> StartEvent:
        extra = event.extra if self._projector is None else None
        if self.is_straight:
            return event
        return StartEvent(id=self.reply_id, model=self.asked.name, usage=event.usage, extra=extra)

    def named(self, message: AssistantMessage) -> AssistantMessage:
        """Return a reply under the names that the client knows."""
        return replace(message, response_id=self.reply_id, response_model=self.asked.name)

    def convert_whole(self, message: AssistantMessage, model: Model) -> AssistantMessage:
        """Return a whole reply as the client sees it, but for its names (`named`)."""
        if message.stop_reason not in _FAILED and self.keeps_native(model):
            self._model, self._unchanged = model, state_of_whole(message, model.base_url)
            return message
        attachment = self.attach(model)
        events = message_events(message, with_deltas=False)
        attachment.look_ahead(events)
        for event in events:
            attachment.feed(event, self._show(event))
        assert attachment.seen is not None, "the last event is terminal"
        return attachment.seen

    def reply_model(self) -> Model:
        """Return the model that the client believes it speaks with, for encoders."""
        return _reply_model(self.asked.name, self.asked.call.protocol)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def store_state(self, message: AssistantMessage) -> None:
        """Store the state of a complete reply; wait until it is on disk."""
        self.message = message
        self.learn()
        attachment, asked, now = self._attachment, self.asked, now_ms()
        if self._model is not None:
            self.gateway.conversations.note(
                asked.conversation,
                self._model,
                client=asked.client,
                tenant=asked.tenant,
                now=now,
                is_sure=asked.is_sure,
            )
        wants_stored = asked.call.prompt is not None and is_stored(asked.call)
        wants_reply = wants_stored and not self.is_straight
        if self._unchanged is not None:
            state, seen = self._unchanged, message
        elif attachment is None or attachment.state is None or attachment.seen is None:
            return
        else:
            state, seen = attachment.state, attachment.seen
        if self.look_ups is not None:
            state = self.look_ups.complete(state)
        if not self.gateway.has_store:
            self.is_unstored = wants_reply
            return
        native = self._projector is None
        keys = keys_of_reply((), seen, asked.tenant, native=native, after=asked.chain)
        # Conversations that begin alike have one name: what a request left is erased by the request then.
        owner = asked.conversation if asked.is_sure else self.id
        if not asked.is_sure:
            strong = self.gateway.conversations.note_reply(self.id, keys, asked.chosen, tenant=asked.tenant)
            if self.gateway.board is not None and asked.chosen is not None:
                await self.gateway.board.ask("choose", keys=strong, model=asked.chosen, tenant=asked.tenant)
        put = self.gateway.store.put
        # A state may still be stored later. A reply may not: the client is told that it is not stored.
        stored = [put(StoredState(asked.tenant, keys, state, owner, now), now, is_kept=True, is_alone=True)]
        if wants_reply:
            kept = keep_reply(asked.call, self.named(seen), self.reply_id, asked.tenant, made=self.made)
            stored.append(put(replace(kept, conversation=owner), now, is_alone=True))
        elif wants_stored and message.response_id is not None and self._model is not None:
            # Only clients with this key may continue or retrieve it.
            kept = keep_id(message.response_id, asked.tenant, self._model, made=self.made)
            stored.append(put(replace(kept, conversation=owner), now, is_alone=True))
        if asked.tenant and self._model is not None:
            made = keep_made_ids(message, self.named(seen), asked.call, asked.tenant, self._model, made=self.made)
            stored += [put(replace(each, conversation=owner), now, is_kept=True, is_alone=True) for each in made]
        durable = await asyncio.gather(*stored) if len(stored) > 1 else [await stored[0]]
        self.is_unstored = not all(durable)

    def unanswered(self) -> Continuation:
        """Return what the next request of the same connection continues if no reply was asked for."""
        asked = self.asked
        return Continuation(
            conversation=asked.conversation,
            is_sure=asked.is_sure,
            call=asked.call,
            turns=(),
            reply=(),
            messages=asked.context.messages,
            chain=asked.chain,
        )

    def continuation(self) -> Continuation | None:
        """Return what the next request of the same connection continues; None if the reply is not complete."""
        attachment = self._attachment
        if self.message is None or attachment is None or attachment.seen is None:
            return None
        return replace(self.unanswered(), reply=turns_of_reply(self.named(attachment.seen), self.reply_model()))

    @property
    def made(self) -> int:
        """When the reply was asked for, in Unix seconds."""
        return self._began // 1000

    def attach_again(self) -> bool:
        """Begin the reply again with all of its state in envelopes; False if nothing would change by that."""
        if not self._has_store or self.is_straight:
            return False
        self._has_store, self._unchanged, self._attachment, self._projector = False, None, None, None
        return True

    def mark_stored(self, body: dict[str, Any]) -> None:
        """Write into a whole reply whether it is stored, if the client asked to store it, and when it was made."""
        flag = self._protocol.held_content.reply_flag
        if flag is not None and is_stored(self.asked.call):
            body[flag] = not self.is_unstored
            body.setdefault("created_at", self.made)

    def record(self, status: int, outcome: str, *, failure: Failure | None = None) -> None:
        """Keep the row of the request."""
        asked, message = self.asked, self.message
        if self.is_left and outcome == "done":
            status, outcome = 499, "aborted"
        drift = () if message is None else find_drift(message)
        usage = self._find_usage()
        self._note_left_out()
        if self.look_ups is not None:
            self._note_look_ups(self.look_ups)
        now = now_ms()
        if self.first_byte is None and outcome == "done":
            self.first_byte = now  # the whole reply is sent next
        if drift:
            self.gateway.count_drift(drift)
        notes = (*asked.routed.notes, *self._notes)
        figures, spent = self._find_spent(usage)
        row = RequestRow(
            id=self.id,
            time=self._began,
            client=asked.client,
            conversation=asked.conversation,
            protocol=asked.call.protocol,
            asked=asked.name,
            model=None if not self.attempts else self.attempts[-1].model.full_name(),
            stream=asked.call.stream,
            status=status,
            outcome=outcome,
            straight=self.is_passed,
            restored=asked.restored,
            attempts=attempt_rows(self.attempts),
            changes=change_rows(*self._reports()),
            usage=usage,
            figures=figures,
            price=None if usage is None else "unknown" if usage.cost is None else "known",
            saved=None if usage is None or not self.attempts else find_saving(self.attempts[-1].model, usage),
            first_byte_ms=None if self.first_byte is None else self.first_byte - self._began,
            duration_ms=now - self._began,
            unstored=self.is_unstored,
            error=None if failure is None else describe_failure(failure),
            drift=drift,
            key=asked.admission.key.name,
            alike=not asked.is_sure,
            spent=spent,
            notes=tuple(dict.fromkeys(notes)) if notes else (),
        )
        self._keep_content(row.time)
        if self._trace is not None:
            self._trace.end(row, self.attempts[-1].model if self.attempts else None)
        self.gateway.keep_row(row, asked.tenant, self._trace)

    def _find_usage(self) -> Usage | None:
        """Return the usage of the reply, within what is possible."""
        given = None if self.message is None else self.message.usage
        if given is None or not self.attempts or given is self.attempts[-1].usage:  # that is within it already
            return given
        return self._clamp(given, self.attempts[-1].model)

    def _find_spent(self, usage: Usage | None) -> tuple[Figures | None, Usage | None]:
        """Say whether tokens and dollars are those of the providers; return what all attempts were billed.

        That is None if it is the usage of the reply alone.
        """
        billed = [attempt.usage for attempt in self.attempts if attempt.usage is not None]
        if not billed:
            return None, None
        is_estimated = any(attempt.is_estimated for attempt in self.attempts if attempt.usage is not None)
        alone = self.message is not None and len(billed) == 1 and billed[0] == usage
        return "estimated" if is_estimated else "measured", None if alone else add_usage(billed)

    def _keep_content(self, time: int) -> None:
        """Keep what the request and its reply say, if the configuration asks for that."""
        kind, asked = self.gateway.config.state.content, self.asked
        if kind == "off" or not self.gateway.has_store:
            return
        message, request, arrived = self.message, self._request, b"".join(self._arrived or ())

        def dump() -> bytes:
            return dump_content(
                received=asked.call.body,
                sent=None if request is None else request.content,
                context=asked.context,
                options=asked.options,
                reply=message,
                is_redacted=kind == "redacted",
                received_bytes=asked.body,
                reply_bytes=arrived,
            )

        def put(data: bytes) -> None:
            self.gateway.store.put_later(StoredContent(self.id, asked.tenant, data, asked.conversation), time)

        async def dump_apart() -> None:
            put(await asked.admission.in_thread(dump))

        if asked.admission.is_large:
            self.gateway.spawn(dump_apart())
        else:
            put(dump())

    def _reports(self) -> list[Report]:
        """Return the reports of the history, of the request, and of the reply."""
        shown = () if self._projector is None else (self._projector.report,)
        return [self.asked.report, *[attempt.report for attempt in self.attempts[-1:]], *shown]

    def response_headers(self, model: Model | None, *, is_running: bool = False) -> dict[str, str]:
        """Return the headers that describe the exchange; `is_running`: the last attempt has not ended."""
        changes = self.asked.report.changes
        if self.attempts:
            changes += self.attempts[-1].report.changes
        losses = Report(changes).losses if changes else ()
        headers = {
            "x-segue-request-id": self.id,
            "x-segue-attempts": str(max(1, len(self.attempts) + is_running)),
            "x-segue-changes": str(len(losses)),
        }
        cuts = [change for change in losses if change.tokens]
        if cuts:
            headers["x-segue-lost-messages"] = str(sum(change.messages for change in cuts))
            headers["x-segue-lost-tokens"] = str(sum(change.tokens for change in cuts))
        if self.is_unstored or (self.gateway.has_store and not self.asked.has_store):
            headers["x-segue-stored"] = "false"
        if not is_running and self.attempts and (name := self.attempts[-1].request_id):
            headers["x-segue-provider-request-id"] = name
        if model is not None:
            headers["x-segue-model"] = model.full_name()
        return headers


@lru_cache(maxsize=32)  # rules are looked up by the object
def _with_headers(given: OneModel, headers: tuple[tuple[str, str], ...]) -> Model:
    return replace(given.model, headers={**given.model.headers, **dict(headers)})


@lru_cache(maxsize=256)  # rules are looked up by the object
def _reply_model(name: str, protocol: str) -> Model:
    return Model(name, get_protocol(protocol).provider, protocol, reasoning=True)


def is_content(event: Event) -> bool:
    """Whether an event has content for the client."""
    return event.type in _CONTENT


def failure_of(stream: AsyncStream) -> Failure:
    """Return the failure with which a reply ended."""
    failure = stream.attempts[-1].failure if stream.attempts else None
    return failure or Failure(kind=FailureKind.UNKNOWN, message=stream.message.error_message or "")


def is_terminal(event: Event) -> bool:
    """Whether an event ends the reply."""
    return isinstance(event, (DoneEvent, ErrorEvent))
