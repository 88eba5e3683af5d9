"""Retry, fallback and decoding of a reply, without any I/O.

`Flow.run` is a generator that yields steps and receives their answers (see `steps`). It uses no network, no clock and
no random numbers. The sync and the async client perform the same steps, and tests answer them from lists.

Guarantees:
- The caller gets exactly one terminal event, as the last one.
- Once an event has reached the caller, no further request is sent for the same answer: an event cannot be taken back.
- Each attempt is recorded, and every failed one is also a diagnostic of the final message.
- The stored conversation is projected anew for each model and never changed.
- Messages that are left out are summarised before the request is sent, and the conversation is projected again.
- A conversation that a model refuses as too long is sent to it once more with less history, never a third time.
- A reply that does not fit the type which was asked for is sent back with the reason, as often as `Output` says; what
  is sent back is not part of the conversation. Its events have reached the caller, so the corrected reply comes whole,
  in the terminal event.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Final, Protocol, TypeAlias, TypeVar, final

import msgspec
from msgspec.structs import replace

from segue.client.flow.attempts import Attempt, note_attempt
from segue.client.flow.backoff import Retry
from segue.client.flow.billing import find_usage
from segue.client.flow.decisions import AttemptPlan, plan_next_attempt
from segue.client.flow.misreported_errors import (
    EMPTY_REPLY,
    explain_document,
    explain_error,
    is_empty_reply,
    note_empty,
)
from segue.client.flow.reading import (
    Ending,
    StreamReading,
    ending_of,
    is_streamed,
    read_whole,
    with_message,
)
from segue.client.flow.shortening import find_smaller_window, is_shorter, window_key, with_window
from segue.client.flow.steps import (
    CLOSE,
    DRAIN,
    NOW,
    READ,
    Aborted,
    Answer,
    Broken,
    Emit,
    Head,
    Moment,
    Note,
    ReadEvents,
    Send,
    Step,
    Steps,
    Summarise,
    Summarised,
    Wait,
)
from segue.client.output.ladder import MakeRequest, TypedRequest, WantedOutput, ask_for
from segue.client.output.replies import CallAsText, Judged, judge_reply
from segue.conversation.context import Context, Options
from segue.conversation.events import DoneEvent, ErrorEvent, Event, StartEvent
from segue.conversation.messages import AssistantMessage, Diagnostic, Sent, StopReason, Usage, UserMessage
from segue.conversation.stored import dump_message, load_message
from segue.errors import DecodeError, DoesNotFit, ProjectionRefused, SegueError
from segue.failures.classify import classify, is_context_overflow
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.planning.fallbacks import FallbackPolicy
from segue.projection.policy import Policy, fill
from segue.projection.report import Report, place_of
from segue.requests.prepare import Request, prepare


class Prepare(Protocol):
    """Projects and encodes a conversation for a model: for an account, and without signatures that were refused."""

    def __call__(
        self,
        context: Context,
        model: Model,
        *,
        options: Options | None,
        policy: Policy | None,
        account: str | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> Request:
        """Make a request."""
        ...


class KnownAccounts(Protocol):
    """Knows the accounts that requests are sent with."""

    def find(self, model: Model) -> str | None:
        """Return the label of the account; None if it is not known yet."""
        ...

    def learn(self, model: Model, named: str | None) -> str | None:
        """Remember the account that a reply named, and return its label; None if nothing is known about it."""
        ...

    def key_label(self, model: Model) -> str | None:
        """Return the label of the key that requests are sent with; None if there is none."""
        ...


WithWindow: TypeAlias = Callable[[Policy | None, int], Policy]
_Result = TypeVar("_Result")
_StepsFor: TypeAlias = Generator[Step, Answer, _Result]

_ERROR_BYTES: Final = 1_000_000
"""How many bytes of an error body are read: some servers answer with a web page."""
_ROUNDS: Final = 2
"""How many summaries are made for one attempt."""
_REQUEST_IDS: Final = (
    "request-id",  # Anthropic
    "x-request-id",  # OpenAI, Mistral, xAI, DeepSeek and most others
    "x-amzn-requestid",  # Bedrock
    "apim-request-id",  # Azure
)
"""Headers with the provider's id of a request.  (error pages and SDKs of the providers, read 2026-11-17)"""
_LONGEST_ID: Final = 200


def find_request_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request."""
    for name in _REQUEST_IDS:
        if found := headers.get(name):
            return found if len(found) <= _LONGEST_ID and found.isprintable() else None
    return None


@final
class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer from the first candidate that gives one.

    With `emits` the caller gets all events as they arrive, otherwise only the terminal event.
    """

    context: Context
    candidates: tuple[Model, ...]
    owner: str = ""
    """The provider that an `api_key` without a provider name is for."""
    options: Options | None = None
    policy: Policy | None = None
    retry: Retry = Retry()
    emits: bool = True
    prepare: Prepare = prepare
    windows: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Windows that earlier requests found to be smaller than those of the catalogue, by `window_key`."""
    with_window: WithWindow = with_window
    accounts: KnownAccounts | None = None
    """Where reasoning is bound to the account, names it."""
    summarises: bool = False
    """Whether the shell can summarise messages that are left out."""
    output: WantedOutput | None = None
    """The type of the value that the reply has to hold."""
    fallbacks: FallbackPolicy | None = None
    """Chooses the next candidate after a failure; without it the candidates are tried in their order."""


@final
class _Outcome(msgspec.Struct, frozen=True):
    """How an attempt ended: the events not yet passed on, the last one terminal, and the failure if there was one."""

    events: list[Event]
    failure: Failure | None = None
    is_whole: bool = True
    """Whether the reply was read to its end."""


class Flow:
    """One request, from the first attempt to the terminal event. `conceal` removes secrets from a text."""

    def __init__(self, ask: Ask, conceal: Callable[[str], str] = str) -> None:
        self.ask = ask
        self._conceal = conceal
        self.attempts: tuple[Attempt, ...] = ()
        self.ending: Ending | None = None
        self.report: Report = Report(())
        self._candidates = ask.candidates
        self._context = ask.context
        self._may_summarise = ask.summarises
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._plan = AttemptPlan()
        self._began = Moment(0.0, 0, 0.0)
        self._reading: StreamReading | None = None
        self._is_open = False
        self._has_emitted = False
        self._outcome: _Outcome | None = None
        self._is_recorded = False
        self._request_id: str | None = None
        self._is_billed = False  # whether the provider began to answer, or may have
        self._sender: tuple[str | None, str | None] = (None, None)  # account and key of the current attempt
        self._refused: frozenset[str] = frozenset()  # marks that some attempt showed to be refused
        self.judged: Judged = Judged()  # the value of the last reply that ended, if a type is asked for
        self._asked: TypedRequest | None = None  # how the current request asks for it
        self._misfit: _Outcome | None = None  # the last reply that was sent back
        self._repairs = 0
        self._request: Request | None = None  # of the current attempt; after an overflow, the one that is sent next

    @property
    def model(self) -> Model:
        """The model of the current attempt."""
        return self._candidates[self._plan.index]

    @property
    def message(self) -> AssistantMessage:
        """The message so far; at the end, the finished message."""
        if self.ending is not None:
            return self.ending.message
        if self._outcome is not None and (ending := ending_of(self._outcome.events)) is not None:
            return ending.message
        if self._reading is not None:
            return self._reading.message
        return new_assistant_message(self.model)

    def run(self) -> Steps:
        """Make attempts until one succeeds or no candidate is left, then emit the terminal event."""
        try:
            events = yield from self._run_attempts()
        except Aborted as aborted:
            events = yield from self._abort(aborted.reason)
        yield Emit(self._with_clean_ending(events))

    def _run_attempts(self) -> _StepsFor[list[Event]]:
        ask = self.ask
        while True:
            outcome = yield from self._attempt()
            if outcome.failure is None:
                plan = None if ask.output is None else self._plan_repair(outcome, ask.output)
            elif self._has_emitted and self._misfit is None:
                plan = None
            else:
                plan = self._plan_shortened(outcome.failure) or self._plan_next(outcome.failure)
                if plan is not None and plan.reason == "fallback" and ask.fallbacks is not None:
                    self._arrange(ask.fallbacks)
                    plan = self._plan_next(outcome.failure)
            if plan is None:
                return self._final_events(outcome)
            self._refused |= plan.refused
            if plan.reason != "shortened":
                self._request = None
            self._outcome = self._reading = None
            self._is_recorded = False
            self._plan = plan
            if plan.wait > 0:
                yield Wait(plan.wait)

    def _plan_next(self, failure: Failure) -> AttemptPlan | None:
        return plan_next_attempt(
            self._plan,
            failure,
            self._candidates,
            self._context,
            retry=self.ask.retry,
            chance=self._began.chance,
            request=self._request,
        )

    def _arrange(self, fallbacks: FallbackPolicy) -> None:
        """Put the candidates that are left in the order of the moment, without those that exceed a limit."""
        at, ask = self._plan.index + 1, self.ask
        taken, left_out = fallbacks.arrange(
            self._context,
            self._candidates[at:],
            options=ask.options,
            policy=ask.policy,
            now=self._began.unix_ms,
            failed=self.model,
        )
        self._candidates = (*self._candidates[:at], *taken)
        notes = (
            Diagnostic(type="fallback_left_out", message=each.reason, details={"model": each.model.full_name()})
            for each in left_out
        )
        self._diagnostics = (*self._diagnostics, *notes)

    def _plan_repair(self, outcome: _Outcome, output: WantedOutput) -> AttemptPlan | None:
        """Read the value of a reply; if it does not fit, plan an attempt that sends it back with the reason."""
        ending = ending_of(outcome.events)
        assert ending is not None, "a reply that was read to its end has a terminal event"
        self.judged = judge_reply(ending.message, output.type)
        problem = self.judged.problem
        if problem is None or problem.kind != "invalid" or self._repairs >= output.retries:
            return None
        self._repairs += 1
        self._misfit = outcome
        self._may_summarise = False  # its messages are counted from the start of the stored conversation
        note = Diagnostic(type="output_invalid", message=problem.reason, details={"model": self.model.full_name()})
        self._diagnostics = (*self._diagnostics, note)
        text = fill((self.ask.policy or _POLICY).texts.output_again, reason=problem.reason)
        self._context = self._context.add(ending.message, UserMessage.of(text))
        return replace(self._plan, reason="repair", wait=0.0, retries=0)

    def _final_events(self, outcome: _Outcome) -> list[Event]:
        """Return the last events: the terminal one of a corrected reply, or those of a reply that was not corrected."""
        if self._misfit is None:
            return outcome.events
        if outcome.failure is None:
            return outcome.events[-1:]
        self._outcome = self._misfit
        return self._misfit.events

    # -- one attempt ---------------------------------------------------------------------------------------------------

    def _attempt(self) -> _StepsFor[_Outcome]:
        self._began = _as_moment((yield NOW))
        self._request_id = None
        self._is_billed = False
        request = self._request or self._prepare(self._plan)
        if not isinstance(request, Failure):
            request = yield from self._with_summaries(request)
        self._request = None if isinstance(request, Failure) else request
        if isinstance(request, Failure):
            outcome = self._failed(request)
        else:
            self.report = request.report
            self._is_open = (
                True  # set before sending: if the caller aborts while the request is sent, a reply may still arrive
            )
            answer = yield Send(request)
            if isinstance(answer, Head):
                self._request_id = find_request_id(answer.headers)
                outcome = yield from self._read_reply(request, answer)
            else:
                self._is_open = False
                self._is_billed = isinstance(answer, Broken) and answer.is_unanswered
                outcome = self._failed(self._broken(answer))
        self._outcome = outcome
        if self._is_open:
            yield DRAIN if outcome.is_whole else CLOSE
            self._is_open = False
        yield from self._record(outcome.failure)
        return outcome

    def _record(self, failure: Failure | None) -> _StepsFor[None]:
        moment = _as_moment((yield NOW))
        usage, is_estimated = self._find_usage(failure)
        attempt = Attempt(
            model=self.model,
            reason=self._plan.reason,
            report=self.report,
            failure=failure,
            window=self._window(self._plan),
            started=self._began.unix_ms,
            waited=self._plan.wait,
            duration=moment.clock - self._began.clock,
            request_id=self._request_id,
            usage=usage,
            is_estimated=is_estimated,
        )
        self._began = replace(self._began, chance=moment.chance)
        self.attempts = (*self.attempts, attempt)
        self._is_recorded = True
        yield Note(attempt)

    def _find_usage(self, failure: Failure | None) -> tuple[Usage | None, bool]:
        """Return the usage billed for the current attempt, and whether it is an estimate; a refusal costs nothing."""
        if not self._is_billed:
            return None, False
        ending = None if self._outcome is None else ending_of(self._outcome.events)
        message = self.message if ending is None else ending.message
        is_empty = not message.content and message.usage is None
        if is_empty and failure is not None and failure.kind != FailureKind.NETWORK and failure.evidence != "aborted":
            return None, False  # an error that has the status of a reply
        usage = find_usage(message, is_whole=failure is None, request=self._request, model=self.model)
        return usage, usage is not message.usage

    def _with_summaries(self, request: Request) -> _StepsFor[Request]:
        """Summarise the messages that a request leaves out; the request is unchanged if that fails.

        A summary is longer than the note that it replaces, so a message more may have to go: then once more.
        """
        for _ in range(_ROUNDS if self._may_summarise else 0):
            wanted = next((each for each in request.requirements if each.kind == "summaryWanted"), None)
            if wanted is None:
                break
            answer = yield Summarise(self._context, request, wanted)
            if not isinstance(answer, Summarised) or answer.context is None:
                self._may_summarise = False
                if isinstance(answer, Summarised):
                    details: dict[str, object] = {"first": wanted.first, "last": wanted.last}
                    note = Diagnostic(type="summary_failed", message=answer.problem, details=details)
                    self._diagnostics = (*self._diagnostics, note)
                break
            self._context = answer.context
            projected = self._prepare(self._plan)
            if isinstance(projected, Failure):
                break
            request = projected
        return request

    def _window(self, plan: AttemptPlan) -> int | None:
        return plan.window or self.ask.windows.get(window_key(self.model))

    def _plan_shortened(self, failure: Failure) -> AttemptPlan | None:
        """After an overflow, plan one more attempt with less history; None if that was tried or nothing can go."""
        request, plan, policy = self._request, self._plan, self.ask.policy
        if failure.kind != FailureKind.OVERFLOW or plan.window is not None or request is None:
            return None
        window = find_smaller_window(failure, request, policy)
        if window is None:
            return None
        plan = replace(plan, reason="shortened", wait=0.0, window=window)
        report = self.report
        try:
            shortened = self._prepare(plan)
        except SegueError:
            return None
        finally:
            self.report = report
        if isinstance(shortened, Failure) or not is_shorter(shortened, request, policy):
            return None
        self._request = shortened
        return plan

    def _prepare(self, plan: AttemptPlan) -> Request | Failure:
        """Project and encode the stored conversation for this model; a failure here may not occur for another model.

        Before the first attempt the error is the caller's and is raised. Later it is the failure of this attempt.
        """
        ask = self.ask
        context, policy = self._context, ask.policy
        if (window := self._window(plan)) is not None:
            policy = ask.with_window(policy, window)
        account = None if ask.accounts is None else ask.accounts.find(self.model)
        model = self.model

        def make_request(context: Context, options: Options | None) -> Request:
            return ask.prepare(context, model, options=options, policy=policy, account=account, refused=plan.refused)

        try:
            return self._make_request(context, policy, make_request)
        except DoesNotFit as error:
            if len(ask.candidates) == 1 and not self.attempts:
                raise
            self.report = Report(())
            return Failure(
                kind=FailureKind.OVERFLOW,
                provider=self.model.provider,
                used=error.needed,
                limit=error.limit,
                evidence="the estimate of the tokens",
                message=str(error),
            )
        except ProjectionRefused as error:
            if len(ask.candidates) == 1 and not plan.refused:
                raise
            self.report = error.report
            return replace(classify(error, provider=self.model.provider), evidence="the policy refuses a change")
        except SegueError as error:
            if not self.attempts:
                raise
            self.report = Report(())
            return replace(classify(error), provider=self.model.provider)

    def _make_request(self, context: Context, policy: Policy | None, make_request: MakeRequest) -> Request:
        ask = self.ask
        if ask.output is None:
            return make_request(context, ask.options)
        self._asked = ask_for(ask.output, context, self.model, ask.options, policy, make_request=make_request)
        return self._asked.request

    # -- the reply -----------------------------------------------------------------------------------------------------

    def _read_reply(self, request: Request, head: Head) -> _StepsFor[_Outcome]:
        if head.status >= 300:
            return (yield from self._read_error(head))
        self._is_billed = True
        named, accounts = request.account_in(head.headers), self.ask.accounts
        if accounts is None:
            self._sender = named, None
        else:
            self._sender = accounts.learn(self.model, named), accounts.key_label(self.model)
        if is_streamed(request, head.headers):
            return (yield from self._read_stream(request, head))
        body = yield from self._read_body()
        if isinstance(body, Broken):
            return self._failed(self._broken(body), is_whole=False)
        return self._read_document(body, request, head)

    def _read_document(self, body: bytes, request: Request, head: Head) -> _Outcome:
        try:
            message = read_whole(body, request, *self._sender)
        except DecodeError as error:
            text = self._conceal(body.decode("utf-8", "replace"))
            return self._failed(explain_document(text, self._conceal_head(head), self.model.provider, error))
        if (answer := self._call_as_text()) is not None:
            message = answer.message(message)
        event = ErrorEvent if message.stop_reason in _BAD_ENDS else DoneEvent
        return self._check_reply([StartEvent(), event(reason=message.stop_reason, message=message)])

    def _read_stream(self, request: Request, head: Head) -> _StepsFor[_Outcome]:
        reading = self._reading = StreamReading(request, *self._sender, self._call_as_text())
        emits = self.ask.emits and self._misfit is None
        answer = yield ReadEvents(reading.feed if emits or not self.ask.emits else reading.feed_quietly, emits)
        if answer is None and (document := reading.document) is not None:
            self._reading = None
            return self._read_document(document, request, head)
        new_events = answer if isinstance(answer, list) else []
        if isinstance(answer, Broken):
            new_events = reading.fail(answer.text)
        elif answer is None:
            new_events = reading.finish()
        # A stream has one start event. If it is not among the last events, the caller already has it.
        self._has_emitted |= emits and new_events[0].type != "start"
        if isinstance(answer, Broken):
            failure = None if new_events[-1].type == "done" else self._broken(answer)
            return _Outcome(new_events, failure, is_whole=False)
        return self._check_reply(new_events)

    def _call_as_text(self) -> CallAsText | None:
        """Make what turns the answer of a function into text, if the current request asks by one."""
        asked = self._asked
        return None if asked is None or asked.function is None else CallAsText(asked.function, is_only=asked.is_only)

    def _read_error(self, head: Head) -> _StepsFor[_Outcome]:
        body = yield from self._read_body(_ERROR_BYTES)
        is_whole = isinstance(body, bytes) and len(body) <= _ERROR_BYTES
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
        failure = explain_error(self._conceal(text), self._conceal_head(head), self.model.provider)
        return self._failed(failure, is_whole=is_whole)

    def _conceal_head(self, head: Head) -> Head:
        return Head(head.status, {name: self._conceal(value) for name, value in head.headers.items()})

    def _read_body(self, limit: int | None = None) -> _StepsFor[bytes | Broken]:
        pieces: list[bytes] = []
        size = 0
        while True:
            chunk = yield READ
            if type(chunk) is bytes:
                pieces.append(chunk)
                size += len(chunk)
                if limit is None or size <= limit:
                    continue
                return b"".join(pieces)
            return chunk if isinstance(chunk, Broken) else b"".join(pieces)

    # -- what went wrong -----------------------------------------------------------------------------------------------

    def _check_reply(self, events: list[Event]) -> _Outcome:
        """Find out whether a reply that arrived is a failure; a silent context overflow shows in the token counts."""
        ending = ending_of(events)
        assert ending is not None, "a reply that was read to its end has a terminal event"
        model, request = self.model, self._request
        if request is not None and (dropped := request.note_dropped(ending.message)):
            self.report = Report(tuple(sorted((*self.report.changes, *dropped), key=place_of)))
        if ending.type == "error":
            message = self._without_secrets(ending.message)
            events[-1] = with_message(ending, message)
            return _Outcome(events, classify(message, provider=model.provider))
        if not self._has_emitted and is_context_overflow(ending.message, model.context_window):
            evidence = "the token counts of the reply"
            return _Outcome(events, Failure(kind=FailureKind.OVERFLOW, provider=model.provider, evidence=evidence))
        if not self._has_emitted and is_empty_reply(ending.message, self._context):
            events[-1] = with_message(ending, note_empty(ending.message))
            return _Outcome(events, Failure(kind=FailureKind.SERVER, provider=model.provider, evidence=EMPTY_REPLY))
        return _Outcome(events)

    def _without_secrets(self, message: AssistantMessage) -> AssistantMessage:
        """Remove secrets that the server repeated anywhere in a failed message."""
        text = dump_message(message).decode()
        purged = self._conceal(text)
        if purged == text:
            return message
        clean = load_message(purged.encode())
        assert clean.role == "assistant", "removing secrets does not change the role"
        return clean

    def _broken(self, answer: Answer) -> Failure:
        assert isinstance(answer, Broken), "a shell answers a read with bytes, None or Broken"
        return Failure(kind=answer.kind, provider=self.model.provider, evidence="the connection", message=answer.text)

    def _failed(self, failure: Failure, *, is_whole: bool = True) -> _Outcome:
        """Make the outcome of an attempt without a reply."""
        message_text = failure.message or failure.evidence or str(failure.kind)
        return _Outcome(self._ending_events(message_text, StopReason.ERROR), failure, is_whole)

    def _ending_events(self, text: str, reason: StopReason) -> list[Event]:
        message = replace(new_assistant_message(self.model), stop_reason=reason, error_message=text)
        return [StartEvent(), ErrorEvent(reason=reason, message=message)]

    # -- the end -------------------------------------------------------------------------------------------------------

    def _abort(self, reason: str) -> _StepsFor[list[Event]]:
        """Release the reply and end; a reply that was already complete is kept."""
        outcome, reading = self._outcome, self._reading
        if self._is_open:
            self._is_open = False
            self._is_billed = True  # the request was sent
            yield CLOSE
        if outcome is None:
            events = self._ending_events(reason, StopReason.ABORTED) if reading is None else reading.abort(reason)
            outcome = _Outcome(
                events,
                Failure(kind=FailureKind.UNKNOWN, provider=self.model.provider, evidence="aborted", message=reason),
            )
            self._outcome = outcome
        if not self._is_recorded:
            yield from self._record(outcome.failure)
        return self._final_events(outcome)

    def _with_clean_ending(self, events: list[Event]) -> list[Event]:
        """Add the time of the request and the failed attempts to the message."""
        ending = ending_of(events)
        assert ending is not None, "the last event is a terminal one"
        notes = tuple(note_attempt(attempt) for attempt in self.attempts[:-1] if attempt.failure is not None)
        message = replace(
            ending.message,
            timestamp=self._began.unix_ms,
            diagnostics=(*ending.message.diagnostics, *self._diagnostics, *notes),
            sent=self._remember_refused(ending.message.sent),
        )
        self.ending = with_message(ending, message)
        new_events = events if self.ask.emits else events[-1:]
        return [*new_events[:-1], self.ending]

    def _remember_refused(self, sent: Sent | None) -> Sent | None:
        """Remember what was refused with the message, whichever attempt brought it, and also if all of them failed."""
        known = () if sent is None else sent.dropped
        new = sorted(self._refused.difference(known))
        return replace(sent or Sent(), dropped=(*known, *new)) if new else sent


_POLICY: Final = Policy()
_BAD_ENDS: Final = frozenset({StopReason.ERROR, StopReason.ABORTED})


def _as_moment(answer: Answer) -> Moment:
    assert isinstance(answer, Moment), "a shell answers `Now` with a moment"
    return answer
