"""How an emulated provider answers one request: refused by `check` and by its state, or answered by the script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.calls import Call
from segue.conversation.content import TextContent
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.errors import SegueError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.protocols.api import check, encode_response, find_endpoint
from segue.protocols.kit.codec import ErrorReply
from segue.protocols.kit.request_fields import FIELD_CODES
from segue.protocols.registry import get_protocol
from segue.reply_encoding import encode_error, encode_token_count, stream_encoder
from segue.testing.emulator.binding import Caller, Ledger, Transformation
from segue.testing.emulator.claude_state import ClaudeState, RequestState, add_transformations
from segue.testing.emulator.script import Script, Step, content_of
from segue.testing.emulator.signing import Signer, realm_of
from segue.tokens import estimate_tokens

_STATUS_KINDS: Final[Mapping[int, FailureKind]] = {
    400: FailureKind.INVALID_REQUEST,
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    413: FailureKind.PAYLOAD_TOO_LARGE,
    429: FailureKind.RATE_LIMIT,
    500: FailureKind.SERVER,
    502: FailureKind.SERVER,
    503: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}


@final
class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to send: a status, headers, and either a body or frames; `step` has the delays and cuts."""

    status: int
    headers: dict[str, str]
    body: dict[str, object] | None = None
    frames: list[object] | None = None
    step: Step = Step()
    refusal: str | None = None
    """Why the provider refuses the request: the codes of `check`, `beta`, `signature` or `prefix`."""
    transformations: tuple[Transformation, ...] = ()
    """What happened to the thinking of the request."""


class Provider:
    """The emulated providers: a script, a signer, and what Claude models remember."""

    def __init__(self, script: Script, signer: Signer, ledger: Ledger, *, strict: bool = True) -> None:
        self.script: Script = script
        self._signer = signer
        self._ledger = ledger
        self._claude = ClaudeState(signer, ledger)
        self._strict = strict

    def answer(self, call: Call, caller: Caller) -> Answer:
        """Answer a request for a reply or for a count of tokens."""
        assert call.prompt is not None, "only requests with a prompt are answered here"
        model = self._model(call)
        state = self._claude.read(call, caller)
        refusal = self._find_refusal(call, model, caller, state)
        if refusal is not None:
            return self._refuse(call, *refusal)
        if call.kind == "count":
            body = encode_token_count(estimate_tokens(call.prompt, model), protocol=call.protocol)
            answer = Answer(status=200, headers={}, body=body)
        else:
            step = self.script.take(call.model or "")
            if step.status is not None:
                return _fault(call, step)
            answer = self._reply(call, model, step, caller, state)
        if state is None:
            return answer
        add_transformations(answer.body, answer.frames, state)
        return replace(answer, transformations=state.verdict.transformations)

    def _model(self, call: Call) -> Model:
        found = find_endpoint(call.protocol, None, call.model).model
        return replace(found, id=call.model or found.id, reasoning=True)

    def _find_refusal(
        self, call: Call, model: Model, caller: Caller, state: RequestState | None
    ) -> tuple[Failure, str] | None:
        assert call.prompt is not None, "only requests with a prompt are checked"
        if state is not None and state.beta_refusal is not None:
            return Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=state.beta_refusal), "beta"
        if self._strict and call.kind == "generate" and call.body is not None and call.body_protocol == call.protocol:
            # One emulator stands for every provider of a protocol, so the fields of one SDK do not decide.
            found = check(call.body, protocol=call.protocol, model=model)
            violations = [violation for violation in found if violation.code not in FIELD_CODES]
            if violations:
                first = violations[0]
                text = f"{'.'.join(map(str, first.path))}: {first.message}"
                failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=text)
                return failure, ", ".join(dict.fromkeys(violation.code for violation in violations))
        if state is not None:
            text, reason = state.verdict.refusal, "signature" if state.is_damaged else "prefix"
        else:
            form, reason = get_protocol(call.protocol).signatures, "signature"
            realm = realm_of(form, caller)
            text = self._signer.find_refusal(call.prompt.context.messages, form, model.id, realm)
        if text is None:
            return None
        return Failure(kind=FailureKind.OPAQUE_REJECTED, status=400, message=text), reason

    def _refuse(self, call: Call, failure: Failure, reason: str) -> Answer:
        status, headers, body = encode_error(failure, protocol=call.protocol, transport=call.transport)
        return Answer(status=status, headers=headers, body=body, refusal=reason)

    def _reply(self, call: Call, model: Model, step: Step, caller: Caller, state: RequestState | None) -> Answer:
        assert call.prompt is not None, "only requests with a prompt are answered here"
        number = self._ledger.next_reply()
        prompt = call.prompt
        record = get_protocol(call.protocol)
        ids = [self._name(record.state_slots.prefix, number, at) for at in range(len(step.calls))]
        content = content_of(step, prompt, ids)
        if not record.reply_form.thinking:
            content = [piece for piece in content if piece.kind != "thinking"]
        if state is not None and state.hides_thinking:
            content = [replace(piece, thinking="") if piece.kind == "thinking" else piece for piece in content]
        form = record.signatures
        signed = self._signer.sign(content, form, model.id, realm_of(form, caller), number)
        if state is not None:
            self._claude.record(state, signed)
        usage = self._usage(
            call,
            model,
            len(b"".join(text.text.encode("utf-8", "replace") for text in content if isinstance(text, TextContent))),
        )
        ended = StopReason.TOOL_USE if step.calls else StopReason.STOP
        message = AssistantMessage(
            content=signed,
            protocol=call.protocol,
            provider=model.provider,
            model=model.id,
            response_model=model.id,
            response_id=self._name(record.reply_form.id_prefix or "emu-", number, 99),
            usage=usage,
            stop_reason=StopReason.LENGTH if step.too_long else ended,
        )
        if not call.stream:
            body = encode_response(message, protocol=call.protocol, model=model)
            return Answer(status=200, headers={}, body=body, step=step)
        return Answer(status=200, headers={}, frames=_frames(call, model, message, step), step=step)

    def _usage(self, call: Call, model: Model, size: int) -> Usage:
        assert call.prompt is not None, "only requests with a prompt are answered here"
        try:
            tokens = estimate_tokens(call.prompt, model)
        except SegueError:
            tokens = 0
        return Usage(input=tokens, output=1 + size // 4, total_tokens=tokens + 1 + size // 4)

    def _name(self, prefix: str, number: int, at: int) -> str:
        return prefix + sha256(f"{number}/{at}".encode()).hexdigest()[:22]


def _fault(call: Call, step: Step) -> Answer:
    assert step.status is not None, "a fault has a status"
    kind = _STATUS_KINDS.get(step.status, FailureKind.SERVER)
    failure = Failure(kind=kind, status=step.status, retry_after=step.retry_after, message=step.message or "")
    reply: ErrorReply = encode_error(failure, protocol=call.protocol, transport=call.transport)
    headers = dict(reply.headers)
    if step.retry_after is None:
        headers.pop("retry-after", None)
    return Answer(status=step.status, headers=headers, body=reply.body, step=step)


def _frames(call: Call, model: Model, message: AssistantMessage, step: Step) -> list[object]:
    assert call.prompt is not None, "only requests with a prompt are streamed"
    encoder = stream_encoder(protocol=call.protocol, model=model, options=call.prompt.options)
    frames: list[object] = []
    for event in _divided(message_events(message)):
        frames += encoder.feed(event)
        if step.fail_after is not None and len(frames) >= step.fail_after:
            frames = frames[: step.fail_after]
            failure = classify(step.message or "Overloaded")
            return [*frames, *encoder.fail(failure)]
    return [*frames, *encoder.finish()]


def _divided(events: Sequence[Event]) -> list[Event]:
    """Divide the deltas of texts into words, as a model sends them."""
    divided: list[Event] = []
    for event in events:
        if isinstance(event, StartEvent):
            divided.append(event)
        elif event.type == "text_delta" or event.type == "thinking_delta":
            words = event.delta.split(" ")
            pieces = [word + " " for word in words[:-1]] + words[-1:]
            divided += [replace(event, delta=piece) for piece in pieces if piece]
        else:
            divided.append(event)
    return divided


def framing_of(call: Call) -> str:
    """Give how a stream is framed."""
    return call.framing or get_protocol(call.protocol).framing
