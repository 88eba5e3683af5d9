"""Laws over replies that are shown to clients: `project_reply` and `ReplyProjector` for a protocol.

A generated reply has a mark in every place that only its own provider may fill: signatures, encrypted thinking, native
blocks, unknown fields. None of them may reach a client that asked for another model.
"""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import DoneEvent, ErrorEvent, Event
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.models.model import Model
from segue.projection.passes.ids import is_legal_id
from segue.projection.passes.names import wire_name
from segue.projection.replies.projector import Reply, ReplyProjector, project_reply
from segue.projection.report import ChangeCode
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.registry import all_protocols
from segue.testing.broken_law import expect_equal, fail
from segue.testing.stream_laws import decode_frames, encode_events

MARK: Final = "Zm9yZWlnbi1vcGFxdWU"
"""The content of every opaque place. It is base64, which some protocols require there."""
_LABEL: Final = "[web search results]"


def make_foreign_reply(seed: int, protocol: str) -> AssistantMessage:
    """Generate a reply of a model of another provider over this protocol, with marks in every opaque place."""
    dice = Random(seed)  # noqa: S311 - the same choices on every platform
    content: list[AssistantContent] = []
    extra = {protocol: {"opaque": MARK}}
    if dice.random() < 0.8:
        content.append(ThinkingContent(thinking=dice.choice(("Let me see.", "", "Ünder")), thinking_signature=MARK))
    if dice.random() < 0.4:
        content.append(ThinkingContent(thinking="", thinking_signature=MARK, redacted=True))
    if dice.random() < 0.5:
        block = {"type": "something_encrypted", "encrypted_content": MARK}
        fallback = (TextContent(text=_LABEL),) if dice.random() < 0.5 else ()
        content.append(NativeContent(protocol=protocol, block=block, fallback=fallback))
    if dice.random() < 0.8:
        content.append(TextContent(text="Here it is.", text_signature=dice.choice((MARK, None)), extra=extra))
    content += [
        ToolCall(
            id=dice.choice((f"call_{number}", "a|b: c/é" * 20, "same")),
            name=dice.choice(("read_file", "mcp.server/very long name" * 4)),
            arguments={"path": "ü"},
            thought_signature=MARK,
            extra=extra,
        )
        for number in range(dice.choice((0, 1, 2)))
    ]
    if not any(piece.kind in ("text", "toolCall") for piece in content):
        content.append(TextContent(text="Here it is."))
    has_calls = content[-1].kind == "toolCall"
    usage = Usage(input=70, output=30, cache_read=dice.choice((0, 20)), reasoning=dice.choice((0, 10)))
    return AssistantMessage(
        content=tuple(content),
        protocol=protocol,
        provider="another",
        model="another-model",
        response_id="r1",
        stop_reason=StopReason.TOOL_USE if has_calls else dice.choice((StopReason.STOP, StopReason.LENGTH)),
        raw_stop_reason="of_another",
        usage=replace(usage, total_tokens=100 + usage.cache_read),
        extra={**extra, "reply": {protocol: {"in": {"opaque": {"to": MARK}}}}},
    )


def check_foreign_replies(record: Protocol, model: Model, seed: int) -> None:
    """A reply of another model is shown without what only its provider may write, and with everything else.

    Raises:
        BrokenLaw: a mark is written, something readable is missing, the stream differs from the whole reply, or an id
            or a name is not one that the client's provider accepts.
    """
    # One protocol for each way in which reasoning is signed.
    signed = {each.signatures.holder: each.name for each in reversed(all_protocols()) if each.signatures.holder}
    for protocol in dict.fromkeys((record.name, *signed.values())):
        _check_foreign(record, model, make_foreign_reply(seed, protocol), f"seed {seed}, from {protocol}")


def _check_foreign(record: Protocol, model: Model, message: AssistantMessage, where: str) -> None:
    law, endpoint = "a reply of another model is shown without its opaque data", resolve_endpoint(model)
    reply = project_reply(message, protocol=record.name, model=model)
    whole = record.encode_response(reply.message, endpoint)
    if MARK in repr(whole):
        fail(record, law, where, f"the reply has an opaque value of another provider: {whole!r}")
    for code in (ChangeCode.SIGNATURE_REMOVED, ChangeCode.NATIVE_DROPPED):
        wanted = _count(message, code, has_tools=record.rules.tools)
        if len(reply.report.of(code)) < wanted:
            fail(record, law, where, f"the report has fewer than {wanted} changes of {code}: {reply.report.changes}")
    _check_calls(record, model, message, reply, where)
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    if not all(text in reply.message.text() for text in texts):
        fail(record, law, where, f"{texts} are not all in {reply.message.text()!r}")
    expect_equal(record, law, where, reply.message.usage, message.usage)
    expect_equal(record, law, where, reply.message.stop_reason, message.stop_reason)
    events = _project_stream(record, model, message)
    last = events[-1]
    shown = last.message if isinstance(last, (DoneEvent, ErrorEvent)) else None
    expect_equal(record, "a streamed reply is shown as a whole one", where, shown, reply.message)
    if record.stream_encoder is not None:
        frames = encode_events(record, events)
        if MARK in repr(frames):
            fail(record, law, where, "the stream has an opaque value of another provider")
        _, back = decode_frames(record, frames)
        expect_equal(record, law, where, _readable(back), _readable(reply.message))


def _project_stream(record: Protocol, model: Model, message: AssistantMessage) -> list[Event]:
    projector = ReplyProjector(protocol=record.name, model=model, source=message)
    events = [made for event in message_events(message) for made in projector.feed(event)]
    return [*events, *projector.finish()]


def _count(message: AssistantMessage, code: ChangeCode, *, has_tools: bool) -> int:
    """Count the parts of a reply for which the report has to have such a change."""
    if code == ChangeCode.NATIVE_DROPPED:
        return sum(piece.kind == "native" and not piece.fallback for piece in message.content)
    signed = sum(piece.kind == "text" and piece.text_signature is not None for piece in message.content)
    return signed + (len(message.tool_calls()) if has_tools else 0)


def _check_calls(record: Protocol, model: Model, message: AssistantMessage, reply: Reply, where: str) -> None:
    law, rules = "calls have ids and names of the client's form", resolve_endpoint(model).rules
    if not record.rules.tools:
        expect_equal(record, law, where, reply.message.tool_calls(), ())
        return
    calls = reply.message.tool_calls()
    expect_equal(record, law, where, len({call.id for call in calls}), len(calls))
    for call, given in zip(calls, message.tool_calls(), strict=True):
        if not is_legal_id(call.id, rules) or wire_name(call.name, rules) != call.name:
            fail(record, law, where, f"{call.id!r} {call.name!r}")
        expect_equal(record, law, where, reply.ids.get(call.id, call.id), given.id)
        expect_equal(record, law, where, reply.tool_names.get(call.name, call.name), given.name)
        expect_equal(record, law, where, call.arguments, given.arguments)


def _readable(message: AssistantMessage) -> object:
    """Return the part of a reply that every protocol carries."""
    return {
        "text": "".join("".join(piece.text.split()) for piece in message.content if piece.kind == "text"),
        "thinking": "".join("".join(piece.thinking.split()) for piece in message.content if piece.kind == "thinking"),
        "calls": [(call.name, call.arguments) for call in message.tool_calls()],
    }


def check_own_replies(record: Protocol, sample: Sample) -> None:
    """A reply of the model that the client asked for is shown unchanged, whole and streamed.

    Raises:
        BrokenLaw: something is changed or reported.
    """
    if sample.response is None and sample.stream is None:
        return
    law, endpoint = "a reply of the model that was asked for is shown unchanged", resolve_endpoint(record.example)
    if sample.response is not None:
        message = record.decode_response(sample.response, endpoint, {})
        shown = project_reply(message, protocol=record.name, model=record.example)
        wanted = replace(message, response_model=record.example.id)
        expect_equal(record, law, sample.name, shown.message, wanted)
        expect_equal(record, law, sample.name, shown.report.changes, ())
    if sample.stream is not None:
        events, message = decode_frames(record, sample.stream)
        projector = ReplyProjector(protocol=record.name, model=record.example, source=message)
        made = [event for given in events for event in projector.feed(given)]
        expect_equal(record, law, sample.name, made[1:-1], events[1:-1])
        expect_equal(record, law, sample.name, projector.report.changes, ())
