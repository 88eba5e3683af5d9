"""How an emulated provider answers one request: refused by `check` and by its state, or answered by the script."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls.reading import Call
from segue.calls.replies import encode_error, encode_token_count, stream_encoder
from segue.conversation.content import AssistantContent, NativeContent
from segue.conversation.context import Prompt
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.envelope.canonical import canonical_json, text_bytes
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.protocols.api import encode_response, find_checked
from segue.protocols.kit.capabilities import is_listed
from segue.protocols.kit.codec import ErrorReply
from segue.protocols.kit.facts import Namespaces, SignatureForm
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol, resolve_rules
from segue.requests.tokens import estimate_tokens
from segue.testing.emulator.binding import AccountLedger, Caller, Transformation
from segue.testing.emulator.claude_state import ClaudeState, RequestState, add_transformations
from segue.testing.emulator.edits import Edited, edit_messages, edit_responses, find_item_refusal, tokens_read
from segue.testing.emulator.items import add_removed
from segue.testing.emulator.prices import Bill, make_bill
from segue.testing.emulator.prompt_cache import PromptCache
from segue.testing.emulator.refusals import Refusal, refuse_body, refuse_model
from segue.testing.emulator.script import UNSCRIPTED, Script, Step, content_of
from segue.testing.emulator.signing import Signer

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

_SERVER_CALL: Final = {"type": "server_tool_use", "name": "web_search", "input": {"query": "weather"}}
"""The run of a tool of the provider in which a reply pauses. (anthropic 2.8.0, read 2026-11-17)"""


@final
class EmulatedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to send: a status, headers, and either a body or frames; `step` has the delays and cuts."""

    status: int
    headers: dict[str, str]
    body: dict[str, object] | None = None
    frames: list[object] | None = None
    step: Step = Step()
    refusal: str | None = None
    """Why the provider refuses the request: the codes of `check`, `beta`, `signature` or `prefix`."""
    rule: str | None = None
    """The rule that the body breaks, its row and its source."""
    transformations: tuple[Transformation, ...] = ()
    """What happened to the thinking of the request."""
    bill: Bill | None = None
    """What the request costs; None if it is not billed."""


class EmulatedProvider:
    """The emulated providers: a script, a signer, what Claude models remember, and prompt caches."""

    def __init__(
        self,
        script: Script,
        signer: Signer,
        ledger: AccountLedger,
        cache: PromptCache,
        *,
        strict: bool = True,
        models: Collection[str] = (),
        withholds: bool = False,
    ) -> None:
        self.script: Script = script
        self._signer = signer
        self._ledger = ledger
        self._claude = ClaudeState(signer, ledger)
        self._cache = cache
        self._strict = strict
        self._models = frozenset(models)
        self.withholds: bool = withholds

    def answer(self, call: Call, caller: Caller) -> EmulatedAnswer:
        """Answer a request for a reply or for a count of tokens."""
        assert call.prompt is not None, "only requests with a prompt are answered here"
        model = self._model(call)
        state = self._claude.read(call, caller)
        refusal = self._find_refusal(call, model, caller, state)
        if refusal is not None:
            return refuse(call, refusal)
        if call.kind == "count":
            body = encode_token_count(estimate_tokens(call.prompt, model), protocol=call.protocol)
            answer = EmulatedAnswer(status=200, headers={}, body=body)
        else:
            step = self.script.take(call.model or "")
            if step.status is not None:
                return _fault(call, step)
            answer = self._reply(call, model, step, caller, state)
        if state is None:
            removed = self._removed(call, model, caller)
            if removed is None or call.kind == "count":
                return answer
            add_removed(answer.body, answer.frames, removed)
            return replace(answer, transformations=removed)
        add_transformations(answer.body, answer.frames, state)
        return replace(answer, transformations=state.verdict.transformations)

    def _removed(self, call: Call, model: Model, caller: Caller) -> tuple[Transformation, ...] | None:
        """Return what is withheld from the model; None if this provider does not say."""
        form = get_protocol(call.protocol).signatures
        if call.prompt is None or not self._is_withholding(form) or (call.body or {}).get("previous_response_id"):
            return None
        return self._ledger.items.judge(call.prompt, form, model.id, _realm_of(form, caller))

    def _is_withholding(self, form: SignatureForm) -> bool:
        return self.withholds and form.holder == "item"

    def given_up(self, call: Call, caller: Caller, known: Collection[str]) -> tuple[str, ...]:
        """Return the known tokens that a request does not send although they would be accepted."""
        form = get_protocol(call.protocol).signatures
        if call.prompt is None or (call.body or {}).get("previous_response_id"):
            return ()
        model, binds = self._model(call).id, self._is_withholding(form)
        return self._ledger.items.given_up(call.prompt, known, form, model, _realm_of(form, caller), binds=binds)

    def _model(self, call: Call) -> Model:
        """Return the model that a request names; a model that is not in the catalogue can do everything."""
        endpoint = find_checked({"model": call.model or ""}, call.protocol, None, None)
        named = replace(endpoint.model, id=call.model or endpoint.model.id)
        return named if is_listed(endpoint) else replace(named, reasoning=True)

    def _find_refusal(self, call: Call, model: Model, caller: Caller, state: RequestState | None) -> Refusal | None:
        assert call.prompt is not None, "only requests with a prompt are checked"
        if state is not None and state.beta_refusal is not None:
            failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=state.beta_refusal)
            return Refusal(failure, "beta")
        if self._strict and (refusal := self._refuse_strictly(call, model, caller)) is not None:
            return refusal
        if state is not None:
            text, reason = state.verdict.refusal, "signature" if state.is_damaged else "prefix"
        else:
            form, reason = get_protocol(call.protocol).signatures, "signature"
            realm = _realm_of(form, caller)
            withholds = self._is_withholding(form)
            text = self._signer.find_refusal(call.prompt.context.messages, form, model.id, realm, withholds=withholds)
            edits = get_protocol(call.protocol).server_edits
            if text is None and edits is not None and edits.form == "list" and call.body is not None:
                text = find_item_refusal(call.body, self._signer)
        if text is None:
            return None
        return Refusal(Failure(kind=FailureKind.OPAQUE_REJECTED, status=400, message=text), reason)

    def _refuse_strictly(self, call: Call, model: Model, caller: Caller) -> Refusal | None:
        """Refuse a model that is not served, a reply that was never stored, and what a body shows."""
        is_served = call.model in self._models or self.script.names(call.model or "")
        if not is_served and (refusal := refuse_model(call)) is not None:
            return refusal
        earlier = (call.body or {}).get("previous_response_id")
        if isinstance(earlier, str) and (caller.organization, earlier) not in self._ledger.stored:
            text = f"Previous response with id '{earlier}' not found."
            failure = Failure(kind=FailureKind.NOT_FOUND, status=400, message=text)
            return Refusal(failure, "previous_response", "previous_response_id", "previous_response_not_found")
        if call.kind != "generate" or call.body is None or call.body_protocol != call.protocol:
            return None
        return refuse_body(call, model)

    def _reply(
        self, call: Call, model: Model, step: Step, caller: Caller, state: RequestState | None
    ) -> EmulatedAnswer:
        assert call.prompt is not None, "only requests with a prompt are answered here"
        number = self._ledger.next_reply()
        prompt = call.prompt
        record = get_protocol(call.protocol)
        ids = [self._name(record.state_slots.prefix, number, at) for at in range(len(step.calls))]
        content = _name_namespaces(content_of(step, prompt, ids), prompt, record.namespaces)
        if step is UNSCRIPTED and not _asks_for_thinking(call, state):
            content = [piece for piece in content if piece.kind != "thinking"]
        if not record.reply_form.thinking:
            content = [piece for piece in content if piece.kind != "thinking"]
        if state is not None and state.hides_thinking:
            content = [replace(piece, thinking="") if piece.kind == "thinking" else piece for piece in content]
        form = record.signatures
        content, paused = _with_server_tool(content, step, prompt, model)
        edited = self._edit(call, model, _realm_of(form, caller))
        searches, blocks = (step.searches, record.searches.blocks) if record.searches is not None else (0, ())
        content = [*edited.content, *_searched(call.protocol, blocks, searches), *(() if edited.is_all else content)]
        signed = self._signer.sign(content, form, model.id, _realm_of(form, caller), number)
        if state is not None:
            self._claude.record(state, signed)
        bill = self._charge(call, model, caller, signed, searches)
        edits = record.server_edits
        compacts = edits is not None and edits.count is not None and not edited.is_all  # before it answers
        summaries = [piece.block for piece in edited.content if piece.kind == "native"] if compacts else []
        compacted = [
            self._charge_compaction(bill, model, block) for block in summaries if block.get("type") == "compaction"
        ]
        usage = Usage(
            input=bill.input,
            output=bill.output,
            cache_read=bill.cache_read,
            cache_write=bill.cache_write,
            total_tokens=bill.input + bill.cache_read + bill.cache_write + bill.output,
        )
        identity = self._name(record.reply_form.id_prefix or "emu-", number, 99)
        if (call.body or {}).get("store") is not False:
            self._ledger.stored.add((caller.organization, identity))
        ended = StopReason.TOOL_USE if step.calls else StopReason.STOP
        message = AssistantMessage(
            content=signed,
            protocol=call.protocol,
            provider=model.provider,
            model=model.id,
            response_model=model.id,
            response_id=identity,
            usage=usage,
            stop_reason=StopReason.LENGTH if step.too_long else ended,
            raw_stop_reason=paused,
        )
        if state is None:
            self._ledger.items.record(message, form, model.id, _realm_of(form, caller), prompt)
        if not call.stream:
            body = encode_response(message, protocol=call.protocol, model=model)
            _add_long_writes(body, bill)
            _add_counts(body, record, searches, compacted)
            body.update(edited.fields)
            return EmulatedAnswer(status=200, headers={}, body=body, step=step, bill=sum(compacted, bill))
        frames = _frames(call, model, message, step)
        _add_long_writes(frames, bill)
        for frame in frames:
            _add_counts(frame, record, searches, compacted)
        for frame in frames:
            if isinstance(frame, dict) and cast("dict[str, object]", frame).get("type") == "message_delta":
                cast("dict[str, object]", frame).update(edited.fields)
        return EmulatedAnswer(status=200, headers={}, frames=frames, step=step, bill=sum(compacted, bill))

    def compact(self, call: Call, caller: Caller) -> EmulatedAnswer:
        """Compact a history of the Responses API."""
        assert call.prompt is not None, "a request to compact has a prompt"
        model = self._model(call)
        token = self._signer.token(model.id, b"compaction", _realm_of(get_protocol(call.protocol).signatures, caller))
        item: dict[str, object] = {"type": "compaction", "id": "cmp_1", "encrypted_content": token}
        bill = self._charge(call, model, caller, [NativeContent(protocol=call.protocol, block=item)])
        usage = Usage(input=bill.input, output=bill.output, cache_read=bill.cache_read, cache_write=bill.cache_write)
        usage = replace(usage, total_tokens=bill.input + bill.cache_read + bill.cache_write + bill.output)
        message = AssistantMessage(content=(), protocol=call.protocol, provider=model.provider, model=model.id)
        written = encode_response(replace(message, usage=usage), protocol=call.protocol, model=model)
        body = {"id": "resp_compacted", "object": "response.compaction", "created_at": 1}
        return EmulatedAnswer(
            status=200, headers={}, body={**body, "output": [item], "usage": written["usage"]}, bill=bill
        )

    def _charge_compaction(self, bill: Bill, model: Model, block: Mapping[str, object]) -> Bill:
        """Price the compaction before a reply: it reads the whole history, and no cache."""
        total = bill.input + bill.cache_read + bill.cache_write
        output = 1 + len(str(block.get("content"))) // 4
        made = make_bill(model.id, total=total, cache_read=0, cache_write=0, cache_write_long=0, output=output)
        return replace(made, requests=0)

    def _edit(self, call: Call, model: Model, realm: str) -> Edited:
        """Shorten the conversation where the request asks for it."""
        assert call.prompt is not None, "only requests with a prompt are answered here"
        edits = get_protocol(call.protocol).server_edits
        if edits is None or call.body is None or call.body_protocol != call.protocol:
            return Edited()
        if edits.form == "edits":
            return edit_messages(call.body, call.prompt, model, self._signer, call.protocol)
        return edit_responses(call.body, call.prompt, model, self._signer, call.protocol, realm=realm)

    def _charge(
        self, call: Call, model: Model, caller: Caller, content: Sequence[AssistantContent], searches: int = 0
    ) -> Bill:
        """Count and price a request and its reply, thinking and calls included."""
        assert call.prompt is not None, "only requests with a prompt are answered here"
        total = tokens_read(call.prompt, model, call.protocol)
        turns_key = get_protocol(call.protocol).turns_key or "messages"
        used = self._cache.use(model.id, caller.organization, call.body or {}, turns_key, total)
        return make_bill(
            model.id,
            total=total,
            cache_read=used.read,
            cache_write=used.write,
            cache_write_long=used.long,
            output=1 + sum(len(_written(piece)) for piece in content) // 4,
            searches=searches,
        )

    def _name(self, prefix: str, number: int, at: int) -> str:
        return prefix + sha256(f"{number}/{at}".encode()).hexdigest()[:22]


def _with_server_tool(
    content: Sequence[AssistantContent], step: Step, prompt: Prompt, model: Model
) -> tuple[Sequence[AssistantContent], str | None]:
    """Continue the server tool's run in which the last reply paused; pause in one if the step asks for it.

    Returns the content, and the reason why the reply ends if it pauses.
    """
    last = prompt.context.messages[-1] if prompt.context.messages else None
    opened = last.content[-1] if last is not None and last.role == "assistant" and last.content else None
    if opened is not None and opened.kind == "native" and opened.block.get("type") == _SERVER_CALL["type"]:
        result: dict[str, object] = {"type": "web_search_tool_result", "tool_use_id": opened.block["id"], "content": []}
        content = [NativeContent(protocol=model.protocol, block=result), *content]
    stops = resolve_rules(model).values("resumable_stops")
    if not step.paused or not stops:
        return content, None
    block = {**_SERVER_CALL, "id": f"srvtoolu_{len(prompt.context.messages)}"}
    return [*content, NativeContent(protocol=model.protocol, block=block)], min(stops)


def _searched(protocol: str, blocks: Sequence[Mapping[str, object]], searches: int) -> list[AssistantContent]:
    """Return the content that searches add to a reply."""
    found: list[AssistantContent] = []
    for at in range(searches):
        for block in blocks:
            ids = {key: value.format(at) for key, value in block.items() if isinstance(value, str) and "{}" in value}
            found.append(NativeContent(protocol=protocol, block={**block, **ids}))
    return found


def _add_counts(value: object, record: Protocol, searches: int, compacted: Sequence[Bill]) -> None:
    """Say in a body, or in a frame at the end of a stream, how often the provider searched, and what it compacted."""
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if searches and record.searches is not None and record.searches.count is not None:
        record.searches.count(fields, searches)
    if compacted and record.server_edits is not None and record.server_edits.count is not None:
        record.server_edits.count(fields, [(bill.input, bill.output) for bill in compacted])


def _asks_for_thinking(call: Call, state: RequestState | None) -> bool:
    """Whether a reply to this request shows thinking, where a request has to ask for it."""
    if state is not None:
        return state.asks_for_thinking
    asks = get_protocol(call.protocol).signatures.asks_for_thinking
    return asks is None or asks(call.body or {})


def refuse(call: Call, refusal: Refusal) -> EmulatedAnswer:
    """Write a refusal in the form of the provider."""
    status, headers, body = refusal.write(call)
    return EmulatedAnswer(status=status, headers=headers, body=body, refusal=refusal.reason, rule=refusal.rule)


def _written(piece: AssistantContent) -> bytes:
    """Return what the model wrote for a piece of content."""
    match piece.kind:
        case "text":
            return text_bytes(piece.text)
        case "thinking":
            return text_bytes(piece.thinking)
        case "toolCall":
            return text_bytes(piece.name) + canonical_json(piece.arguments)
        case "native":
            return b""


def _add_long_writes(value: object, bill: Bill) -> None:
    """Say in the usage of a reply how much of the written tokens lives longer, where the wire has a field for it."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            _add_long_writes(item, bill)
    elif isinstance(value, dict) and bill.cache_write_long:
        fields = cast("dict[str, object]", value)
        short, long = bill.cache_write - bill.cache_write_long, bill.cache_write_long
        if "cache_creation_input_tokens" in fields:
            fields["cache_creation"] = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
        elif "cacheWriteInputTokens" in fields:
            rows = (("5m", short), ("1h", long))
            fields["cacheDetails"] = [{"ttl": ttl, "inputTokens": count} for ttl, count in rows if count]
        for inner in list(fields.values()):
            _add_long_writes(inner, bill)


def _fault(call: Call, step: Step) -> EmulatedAnswer:
    assert step.status is not None, "a fault has a status"
    kind = _STATUS_KINDS.get(step.status, FailureKind.SERVER)
    failure = Failure(kind=kind, status=step.status, retry_after=step.retry_after, message=step.message or "")
    reply: ErrorReply = encode_error(failure, protocol=call.protocol, transport=call.transport)
    headers = dict(reply.headers)
    if step.retry_after is None:
        headers.pop("retry-after", None)
    return EmulatedAnswer(status=step.status, headers=headers, body=reply.body, step=step)


def _name_namespaces(
    content: list[AssistantContent], prompt: Prompt, namespaces: Namespaces | None
) -> list[AssistantContent]:
    """Name the namespace of each called function that is in one, as the provider does."""
    if namespaces is None:
        return content
    found = [namespaces.read(tool) for tool in prompt.context.tools if tool.kind == "native"]
    owners = {function.name: group.name for group in found if group is not None for function in group.functions}
    return [
        namespaces.add(piece, owners[piece.name]) if piece.kind == "toolCall" and piece.name in owners else piece
        for piece in content
    ]


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


def _realm_of(form: SignatureForm, caller: Caller) -> str:
    """Return where a signature is valid: in an organization, or at one of a provider's endpoints."""
    return {"organization": caller.organization, "endpoint": caller.surface, None: ""}[form.valid_in]


def framing_of(call: Call) -> str:
    """Return the framing of a stream."""
    return call.framing or get_protocol(call.protocol).framing
