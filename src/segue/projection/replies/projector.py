"""`project_reply` and `ReplyProjector`: what a client of one protocol is shown of a reply that any model gave.

The client takes the reply for one of the model that it asked for, and sends it back as such. So nothing may be in it
that this model's provider would have to accept as its own and did not make:

- A signature stays only if the model that the client asked for wrote the reply (`Ownership`), else it is left out;
  `sign` may give an opaque text of the caller's own in its place.
- A native block of another protocol becomes the equivalent of the client's protocol where that has no data which only
  the provider can make (`ReplyForm`), else its fallback, a labelled text.
- Fields that only another protocol has are left out; pages that they cite are cited as the client's protocol does it.
- Names and ids of calls that the client's protocol does not accept are replaced, and mapped back when they return.

A whole reply is projected as the stream of its events, so both give the same. Events are passed on as they arrive.
What waits, and for what: thinking for its first text, because it is left out if it has none; the first half of a
search of two blocks for the second; the end of a text for the next event, where citations are part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import Extra, TextContent, ThinkingContent
from segue.conversation.context import Tool
from segue.conversation.events import (
    DoneEvent,
    ErrorEvent,
    Event,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.conversation.messages import AssistantMessage, StopReason
from segue.conversation.replayed import message_events
from segue.errors import Path
from segue.models.model import Model
from segue.projection.passes.extra import lost_extra
from segue.projection.policy import Policy, fill
from segue.projection.replies.calls import CallForms
from segue.projection.replies.natives import Natives
from segue.projection.replies.shared import (
    SharedReply,
    begun_refusal,
    refusal_mark,
    share_reply,
    share_text,
    stop_reason,
)
from segue.projection.replies.shown import Delta, Parts, ReplyClient, Sign, refusal_in
from segue.projection.report import ChangeCode, Loss, Report
from segue.protocols.kit.json_values import EMPTY
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.readable_signatures import read_wrapped
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.server_tools import merged
from segue.protocols.kit.sources import CitedPage
from segue.protocols.registry import get_protocol
from segue.protocols.shared_replies import moved

_Treatment: TypeAlias = Literal["thinking", "text", "drop"]
_DEFAULT_POLICY: Final = Policy()
_PASSED: Final = frozenset({"usage", "ping", "notice"})


@final
class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply as a client may see it.

    `tool_names` and `ids` map the names and ids of calls that were replaced back: what the client returns -> what the
    model wrote.
    """

    message: AssistantMessage
    report: Report
    tool_names: Mapping[str, str]
    ids: Mapping[str, str]


def project_reply(
    message: AssistantMessage,
    *,
    protocol: str,
    model: Model | str | None = None,
    policy: Policy | None = None,
    tools: Sequence[Tool] = (),
    sign: Sign | None = None,
) -> Reply:
    """Return a reply as a client of this protocol may see it; write it with `encode_response`.

    `model` is the model that the client asked for; without it, the protocol's own provider is taken to serve the model
    that answered. `tools` are those of the client's request: calls are written as it declared them. `sign` gives an
    opaque text of your own in the place of a signature that the client may not get.

    Raises:
        ProjectionRefused: the policy refuses a change that is needed.
        UnknownProtocol: there is no such protocol.
    """
    if isinstance(model, Model) and _is_unchanged(message, get_protocol(protocol), model, tools):
        shown = replace(message, response_model=model.id)
        return Reply(message=shown, report=Report(()), tool_names={}, ids={})
    projector = ReplyProjector(protocol=protocol, model=model, policy=policy, source=message, tools=tools, sign=sign)
    shown = message
    for event in message_events(message, with_deltas=False):
        for made in projector.feed(event):
            if isinstance(made, (DoneEvent, ErrorEvent)):
                shown = made.message
    return Reply(message=shown, report=projector.report, tool_names=projector.tool_names, ids=projector.ids)


def _is_unchanged(message: AssistantMessage, record: Protocol, model: Model, tools: Sequence[Tool]) -> bool:
    """Whether a client of the model itself is sure to get a reply as it is, which is so for nearly all."""
    origin, form, calls = (message.protocol, message.provider, message.model), record.reply_form, message.tool_calls()
    if origin != (record.name, model.provider, model.id) or model.router or not (record.rules.tools or not calls):
        return False
    ids = {call.id for call in calls}
    has_loss = "arguments_text" in record.not_carried and any(call.arguments_text is not None for call in calls)
    thinks = not form.thinking and any(piece.kind == "thinking" for piece in message.content)
    if len(ids) < len(calls) or "" in ids or has_loss or thinks:
        return False
    declare, named = form.as_declared, {tool.name: tool for tool in tools if calls and tool.kind == "function"}
    return declare is None or all(declare(call, named[call.name])[0] is call for call in calls if call.name in named)


@final
class ReplyProjector:
    """Projects the events of one streamed reply: `feed` each event, then call `finish`; both give events.

    `source` is the model that writes the reply, or a message with its origin. Without it no signature is kept, because
    a stream names its author only at the end. The other arguments are those of `project_reply`.
    """

    def __init__(
        self,
        *,
        protocol: str,
        model: Model | str | None = None,
        policy: Policy | None = None,
        source: Model | AssistantMessage | None = None,
        tools: Sequence[Tool] = (),
        sign: Sign | None = None,
    ) -> None:
        self._client = client = ReplyClient(protocol, model, policy or _DEFAULT_POLICY, _origin(source), sign)
        self._parts: Parts = Parts()
        self._places: Mapping[int, int] = self._parts.places
        self._natives: Natives = Natives(client, self._parts)
        self._calls: CallForms = CallForms(client, tools)
        self._has_tools: bool = client.record.rules.tools  # of the protocol: the client declared what is called
        self._has_objects: bool = "arguments_text" in client.record.not_carried  # a call cut off becomes a whole one
        self._treatment: _Treatment = _treatment(client)
        deltas = (TextDelta, ThinkingDelta, ToolCallDelta) if self._has_tools else (TextDelta, ThinkingDelta)
        self._deltas: frozenset[type] = frozenset(deltas)
        self._waiting: dict[int, ThinkingStart] = {}  # thinking without text so far
        self._ended: tuple[TextEnd, list[CitedPage]] | None = None  # the end of a text that may get citations
        self._is_done = False

    @property
    def report(self) -> Report:
        """Every change so far; paths begin at the message."""
        return Report(tuple(self._client.changes))

    @property
    def tool_names(self) -> Mapping[str, str]:
        """The names that were replaced: what the client returns -> what the model wrote."""
        return self._calls.names

    @property
    def ids(self) -> Mapping[str, str]:
        """The ids that were replaced: what the client returns -> what the model wrote."""
        return self._calls.ids

    def feed(self, event: Event) -> list[Event]:
        """Project one event.

        Raises:
            ProjectionRefused: the policy refuses a change that is needed.
        """
        if type(event) in self._deltas:
            delta: Delta = event  # pyright: ignore[reportAssignmentType] - narrowed by the test above
            index = delta.index
            if self._places.get(index) == index:  # nearly all events
                return [event]
            if type(event) is not ThinkingDelta:
                return [self._parts.moved(delta)]
        if self._is_done:
            return []
        if event.type in _PASSED:
            return [event]
        out: list[Event] = []
        if event.type not in ("done", "error"):
            self._release(out)
        self._feed(event, out)
        return out

    def finish(self) -> list[Event]:
        """End the stream: give what still waits. There is nothing if the stream had its terminal event."""
        out: list[Event] = []
        if not self._is_done:
            self._stop()
            self._natives.flush(out)
            self._release(out)
        return out

    def _stop(self) -> None:
        """Pass nothing on after the end, also no deltas."""
        self._is_done = True
        self._deltas = frozenset()

    def _feed(self, event: Event, out: list[Event]) -> None:
        client = self._client
        match event.type:
            case "start":
                name = client.model_name or event.model
                out.append(replace(event, model=name, extra=client.kept_first(event.extra)))
            case "text_start":
                first = client.kept_first(event.extra) or begun_refusal(event.extra, client.record.name)
                out.append(TextStart(index=self._parts.open(event.index), extra=first))
            case "text_end":
                self._end_text(event, out)
            case "thinking_start":
                self._waiting[event.index] = event
            case "thinking_delta":
                self._think(event, out)
            case "thinking_end":
                self._end_thinking(event, out)
            case "toolcall_start" if self._has_tools:
                self._start_call(event, out)
            case "toolcall_end":
                self._end_call(event, out)
            case "native":
                self._natives.show(event, out)
            case "done" | "error":
                self._end(event, out)
            case _:  # deltas and starts of calls that become text
                pass

    def _release(self, out: list[Event]) -> None:
        if self._ended is not None:
            (event, _), self._ended = self._ended, None
            self._parts.content[event.index] = event.content
            out.append(event)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _end_text(self, event: TextEnd, out: list[Event]) -> None:
        place, content, client = self._parts.close(event.index), event.content, self._client
        if client.is_same:
            self._parts.content[place] = content
            out.append(event if place == event.index else replace(event, index=place))
            return
        path: Path = ("content", event.index)
        pages = self._natives.pages_of_text(content)
        refusal = refusal_mark(client.record.name) if refusal_in(content.extra) else None
        source = client.record.name if client.origin is None else client.origin.protocol
        common, others = share_text(content.extra, source, client.record.name, cites=not pages)
        kept = None if refusal else client.kept_extra(others, path, is_read=bool(pages))
        shown = TextContent(
            text=content.text,
            text_signature=client.signature(content, content.text_signature, path),
            phase=content.phase,
            extra=refusal or (cast("Extra", merged(kept, common)) if kept and common else kept or common),
        )
        cite = client.form.cite_in_text
        if cite is not None:
            if pages:
                shown = cite(shown, pages)
                self._note_places(AssistantMessage(content=(shown,), model=""), pages)
            self._ended = (TextEnd(index=place, content=shown), pages)
            return
        if pages:
            before = len(AssistantMessage(content=self._parts.whole()).text())
            self._natives.cited += [moved(page, -before, before + len(shown.text)) for page in pages]
        self._parts.content[place] = shown
        out.append(TextEnd(index=place, content=shown))

    # -- thinking ------------------------------------------------------------------------------------------------------

    def _think(self, event: ThinkingDelta, out: list[Event]) -> None:
        if self._treatment != "thinking":
            return  # its end has the whole text
        if not self._parts.is_open(event.index):
            self._open_thinking(event.index, out)
        out.append(self._parts.moved(event))

    def _open_thinking(self, index: int, out: list[Event]) -> None:
        start = self._waiting.pop(index, None)
        first = None if start is None else self._client.kept_first(start.extra)
        out.append(ThinkingStart(index=self._parts.open(index), extra=first))

    def _end_thinking(self, event: ThinkingEnd, out: list[Event]) -> None:
        content, index, client = event.content, event.index, self._client
        path: Path = ("content", index)
        if client.is_own and self._treatment == "thinking":
            shown = replace(content, extra=client.kept_extra(content.extra, path))
        else:
            shown = self._unsigned(content, path)
            if shown is None and self._parts.is_open(index):
                shown = ThinkingContent(thinking=content.thinking)  # blank, and begun already
        if shown is not None and self._treatment == "thinking":
            if not self._parts.is_open(index):
                self._open_thinking(index, out)
                if shown.thinking:
                    out.append(self._parts.moved(ThinkingDelta(index=index, delta=shown.thinking)))
            place = self._parts.close(index)
            self._parts.content[place] = shown
            out.append(ThinkingEnd(index=place, content=shown))
        elif shown is not None:
            self._parts.add_text(shown.thinking, out)
        self._waiting.pop(index, None)

    def _unsigned(self, content: ThinkingContent, path: Path) -> ThinkingContent | None:
        """Return thinking of another model without its signature; None if it is left out."""
        client, signature = self._client, content.thinking_signature
        text = content.thinking or read_wrapped(signature) or ""
        if signature and client.sign is not None and self._treatment == "thinking":
            given = client.sign(content)
            if given is not None:
                return ThinkingContent(thinking=content.thinking, thinking_signature=given, redacted=content.redacted)
        loss = Loss.OPAQUE if signature else lost_extra(content.extra)
        if not text.strip():
            code = ChangeCode.THINKING_DROPPED if content.redacted else ChangeCode.THINKING_BLANK
            client.note(code, path, loss)
            return None
        if self._treatment == "drop":
            client.note(ChangeCode.THINKING_DROPPED, path, Loss.CONTENT)
            return None
        if self._treatment == "text":
            client.note(ChangeCode.THINKING_AS_TEXT, path, loss)
        elif signature:
            client.note(ChangeCode.THINKING_UNSIGNED, path, loss)
        return ThinkingContent(thinking=text)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _start_call(self, event: ToolCallStart, out: list[Event]) -> None:
        place = self._parts.open(event.index)
        kept = self._client.kept_first(event.extra)
        if not event.id or not event.name:  # they come with the end
            out.append(ToolCallStart(index=place, id="", name="", extra=kept))
            return
        call_id, name, first = self._calls.begin(event.id, event.name, event.index)
        own = self._client.record.name
        extra: Extra | None = {own: {**(kept or {}).get(own, EMPTY), **first}} if first else kept
        out.append(ToolCallStart(index=place, id=call_id, name=name, extra=extra))

    def _end_call(self, event: ToolCallEnd, out: list[Event]) -> None:
        call, client = event.tool_call, self._client
        path: Path = ("content", event.index)
        if not self._has_tools:
            client.note(ChangeCode.CALL_AS_TEXT, path, Loss.NONE)
            text = call.arguments_text or encode_arguments(call.arguments)
            self._parts.add_text(fill(client.policy.texts.call, name=call.name, arguments=text), out)
            return
        shown = self._calls.end(call, event.index)
        if self._has_objects and call.arguments_text is not None and not parse_arguments(call.arguments_text).is_whole:
            client.note(ChangeCode.ARGUMENTS_UNPARSED, path, Loss.CONTENT)
        if not client.is_same:
            extra = {**(client.kept_extra(call.extra, path) or EMPTY), **(shown.extra or EMPTY)}
            signature = client.signature(call, call.thought_signature, path)
            shown = replace(shown, thought_signature=signature, extra=extra or None)
        place = self._parts.close(event.index)
        self._parts.content[place] = shown
        out.append(ToolCallEnd(index=place, tool_call=shown))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _end(self, event: DoneEvent | ErrorEvent, out: list[Event]) -> None:
        client, message = self._client, event.message
        self._stop()
        self._natives.flush(out)
        pages = [] if client.is_same else self._natives.pages_of_reply(message)
        in_reply, queries = client.form.cite_in_reply, self._natives.queries
        if pages and in_reply is None:
            self._cite(message, pages, out)
        self._release(out)
        shared = None if client.is_same else share_reply(message, client.record.name, self._show_answer)
        shown = replace(
            message,
            content=self._parts.whole() if shared is None else shared.put_into(self._parts.whole()),
            response_model=client.model_name or message.response_model,
            raw_stop_reason=self._stop_reason(message),
            usage=message.usage if shared is None else shared.usage,
            extra=self._extra(message, shared, is_read=bool(pages)),
        )
        if in_reply is not None and (pages or queries):
            shown = in_reply(shown, client.endpoint, pages, queries)
            self._note_places(shown, pages)
        out.append(type(event)(reason=event.reason, message=shown))

    def _show_answer(self, message: AssistantMessage) -> dict[str, object]:
        """Write another answer of the same reply as the client's protocol has a reply."""
        client = self._client
        reply = project_reply(message, protocol=client.record.name, model=client.endpoint.model, policy=client.policy)
        return client.record.encode_response(reply.message, client.endpoint)

    def _cite(self, message: AssistantMessage, pages: Sequence[CitedPage], out: list[Event]) -> None:
        """Cite pages in the last text if it can hold them, else list them as text."""
        cite = self._client.form.cite_in_text
        if cite is None or self._ended is None:
            self._release(out)
            self._natives.list_pages(message, pages, out)
            return
        event, before = self._ended
        plain, size = replace(event.content, extra=None), len(event.content.text)
        here = [moved(page, len(message.text()) - size, size) for page in pages]
        cited = cite(plain, [*before, *here])
        places = [new if new.span else old for new, old in zip(here, pages, strict=True)]
        self._note_places(AssistantMessage(content=(cited,), model=""), places)
        self._ended = (replace(event, content=cited), before)

    def _note_places(self, shown: AssistantMessage, pages: Sequence[CitedPage]) -> None:
        """Report that a page is not cited for the part of a text that it was cited for: the wire cannot say it."""
        read = self._client.record.cited_sources
        cited = [] if read is None else [(page.url, page.span) for page in read(shown)]
        if any(page.span is not None and (page.url, page.span) not in cited for page in pages):
            self._client.note(ChangeCode.EXTRA_REMOVED, ("content",), Loss.OPAQUE, "places of cited pages")

    def _stop_reason(self, message: AssistantMessage) -> str | None:
        """Return the provider's own stop reason, if it is one of the client's protocol."""
        raw = message.raw_stop_reason
        if self._client.is_same_protocol:
            return raw
        source = self._client.source or self._client.record
        if message.stop_reason == StopReason.ERROR and raw in source.reply_form.refusals:
            return next(iter(self._client.form.refusals), raw)
        return stop_reason(raw, message.protocol, self._client.record.name)

    def _extra(self, message: AssistantMessage, shared: SharedReply | None, *, is_read: bool) -> Extra | None:
        if shared is not None:
            self._client.note_reply_fields(message, shared.names)
        if message.extra is None or self._client.is_same:
            return message.extra if shared is None or not shared.extra else shared.extra
        data = {key: part for key, part in message.extra.items() if key != REPLY}
        kept = self._client.kept_extra(data, ("extra",), is_read=is_read) or {}
        return {**kept, **(shared.extra if shared is not None else {})} or None


def _treatment(client: ReplyClient) -> _Treatment:
    """Say how readable thinking is shown: as thinking, as text, or not at all."""
    if not client.is_own and client.policy.reasoning in ("text", "drop"):
        return "text" if client.policy.reasoning == "text" else "drop"
    return "thinking" if client.form.thinking else "drop"


def _origin(source: Model | AssistantMessage | None) -> AssistantMessage | None:
    """Return a message that has only the origin of a reply."""
    if source is None:
        return None
    if isinstance(source, Model):
        return AssistantMessage(content=(), protocol=source.protocol, provider=source.provider, model=source.id)
    return AssistantMessage(
        content=(),
        protocol=source.protocol,
        provider=source.provider,
        model=source.model,
        response_model=source.response_model,
    )
