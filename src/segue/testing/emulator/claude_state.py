"""A request to a Claude model: what its body says about thinking, what the check finds, and what the reply reports.

Facts:
- `input_transformations` is in replies and counts of tokens if the header is sent; in streams it is in `message_start`.
                                                                                    (anthropic 2.8.0, read 2026-11-16)
- Bedrock returns fields of the model's reply that `additionalModelResponseFieldPaths` names, in a stream with
  `messageStop`. That this holds for `input_transformations` is inferred.           (botocore 1.44.0, read 2026-11-16)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, final

from segue.calls.reading import Call
from segue.conversation.content import AssistantContent
from segue.protocols.kit.facts import ClaudeWire
from segue.protocols.registry import get_protocol
from segue.testing.emulator.betas import behavior_of, find_beta_refusal, thinking_of
from segue.testing.emulator.binding import BINDING_BETA, DAMAGED, AccountLedger, Caller, Recipient, Verdict
from segue.testing.emulator.bodies import AskedBody, BodyReader
from segue.testing.emulator.claude import Claude, claude_of, hides_thinking, thinks_always
from segue.testing.emulator.edits import find_edit_refusal
from segue.testing.emulator.signing import Signer

_THINKS: Final = ("enabled", "adaptive", "between_tools")
_SHOWN: Final = ("summarized", "updates")
_REPORT_PATH: Final = "/input_transformations"


@final
class RequestState(NamedTuple):
    """A request to a Claude model, and what the check says about it."""

    reader: Recipient
    asked: AskedBody
    verdict: Verdict
    is_damaged: bool
    beta_refusal: str | None
    asks_for_thinking: bool
    hides_thinking: bool
    is_reported: bool


class ClaudeState:
    """Reads requests to Claude models, checks their thinking, and remembers the replies."""

    def __init__(self, signer: Signer, ledger: AccountLedger) -> None:
        self._signer = signer
        self._ledger = ledger
        self._bodies = BodyReader()

    def read(self, call: Call, caller: Caller) -> RequestState | None:
        """Read and check a request; None unless it asks a Claude model in one of Claude's own protocols."""
        model, wire = claude_of(call.model or ""), get_protocol(call.protocol).signatures.claude
        if model is None or wire is None or call.body is None or call.body_protocol != call.protocol:
            return None
        body = request_body(call)
        caller = caller.with_betas(_betas_in(body) | frozenset(call.headers.get("anthropic-beta", "").split(",")))
        reader = Recipient(wire, model, caller)
        asked = self._bodies.read(wire, body)
        verdict, is_damaged = self._judge(body, asked, reader)
        return RequestState(
            reader=reader,
            asked=asked,
            verdict=verdict,
            is_damaged=is_damaged,
            beta_refusal=find_beta_refusal(wire, body, model, caller.betas)
            or (find_edit_refusal(body, caller.betas, self._signer) if wire == "messages" else None),
            asks_for_thinking=thinks_always(model) or thinking_of(wire, body).get("type") in _THINKS,
            hides_thinking=hides_thinking(model) and thinking_of(wire, body).get("display") not in _SHOWN,
            is_reported=_is_reported(wire, body, caller),
        )

    def _judge(self, body: Mapping[str, Any], asked: AskedBody, reader: Recipient) -> tuple[Verdict, bool]:
        producers: dict[str, Claude] = {}
        for block in asked.blocks:
            token = self._signer.read(block.token, block.text.encode("utf-8", "surrogatepass"))
            producer = None if token is None else claude_of(token.model)
            if producer is None:
                return Verdict(DAMAGED.format(path=block.path), (), None), True
            producers[block.token] = producer
        return self._ledger.judge(asked, producers, reader, behavior_of(reader.wire, body)), False

    def record(self, state: RequestState, content: Sequence[AssistantContent]) -> None:
        """Remember what the thinking of a reply was made after."""
        tokens = [piece.thinking_signature for piece in content if piece.kind == "thinking"]
        asked, end = state.asked, len(state.asked.messages)
        if any(piece.kind == "native" and piece.block.get("type") == "compaction" for piece in content):
            asked = asked._replace(start=end)  # the reply itself is where the prefix starts from now on
        prefix = asked.before(end)
        self._ledger.record(
            [token for token in tokens if token is not None],
            state.reader.model,
            state.reader.caller.organization,
            prefix,
            state.verdict.last,
        )


def request_body(call: Call) -> Mapping[str, Any]:
    """Return the body of the request for which a reply or a token count is requested."""
    assert call.body is not None, "only requests with a body are read"
    counted = get_protocol(call.protocol).token_count if call.kind == "count" else None
    return call.body if counted is None else counted.request_in(call.body)


def add_transformations(body: dict[str, object] | None, frames: Sequence[object] | None, state: RequestState) -> None:
    """Report in a reply what happened to the thinking of the request, if the request asks for it."""
    if not state.is_reported:
        return
    report = list(state.verdict.transformations)
    if state.reader.wire == "converse":
        fields: dict[str, object] = {"additionalModelResponseFields": {"input_transformations": report}}
        holders = [body] if frames is None else [_held(frame, "messageStop") for frame in frames]
    else:
        fields = {"input_transformations": report}
        holders = [body] if frames is None else [_held(frame, "message") for frame in frames]
    for holder in holders:
        if holder is not None:
            holder.update(fields)


def _held(frame: object, key: str) -> dict[str, object] | None:
    value = cast("dict[str, object]", frame).get(key) if isinstance(frame, dict) else None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _betas_in(body: Mapping[str, Any]) -> frozenset[str]:
    fields = body.get("additionalModelRequestFields")
    named = cast("Mapping[str, Any]", fields).get("anthropic_beta") if isinstance(fields, Mapping) else None
    return frozenset(map(str, cast("list[object]", named))) if isinstance(named, list) else frozenset()


def _is_reported(wire: ClaudeWire, body: Mapping[str, Any], caller: Caller) -> bool:
    if wire == "converse":
        paths = body.get("additionalModelResponseFieldPaths")
        return isinstance(paths, list) and _REPORT_PATH in paths
    return BINDING_BETA in caller.betas
