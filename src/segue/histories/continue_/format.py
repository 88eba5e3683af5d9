"""The record of Continue.

Reads a session of Continue.

Facts (Continue CLI 1.5.47, seen 2026-11-15; continuedev/continue 2026-06-18, core/index.d.ts, read):
- An entry of `history` has a message, the context that the user attached, and the states of its calls. The results of
  calls are in the states; `errored` and `canceled` are failures.
- Thinking is a separate entry before the answer (role `thinking`), with its signature; the CLI does not store it.
- An entry with `conversationSummary` and all before it are replaced by that summary.
- `sessions.json` next to the files has the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.context import Summary
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.errors import LoadError
from segue.histories.kit.documents import (
    describe_document,
    finish_history,
    json_text,
    load_value,
    parse_text,
    refuse_branch,
)
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import Compaction, History, Session
from segue.histories.kit.lines import number_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import image_of, make_call, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "continue"
INDEX: Final = "sessions.json"
_FAILED: Final = frozenset({"errored", "canceled"})
SUMMARY: Final = "Summary of the conversation so far:\n"


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no history of Continue.
    """
    refuse_branch(view, "Continue")
    notes = Notes(keep=view.keep_records)
    document = object_of(load_value(source))
    if not isinstance(document.get("history"), list):
        raise LoadError("no conversation found: the file has no `history` of Continue")
    entries = [object_of(entry) for entry in document["history"]]
    last = next((at for at in reversed(range(len(entries))) if entries[at].get("conversationSummary")), -1)
    reader = _Reader(document, notes)
    older, newer = reader.messages(entries[: last + 1], 1), reader.messages(entries[last + 1 :], last + 2)
    compaction = None
    active = newer
    if last >= 0:
        text = json_text(entries[last]["conversationSummary"])
        compaction = Compaction(summary=Summary(covers=len(older), text=text), messages=tuple(older))
        summary = UserMessage(content=(TextContent(text=SUMMARY + text),))
        active = [with_envelope(summary, NAME, {"conversationSummary": True}), *newer]
    full = view.name == "full" and compaction is not None
    session = text_of(document.get("sessionId"))
    index = source.name.removesuffix(source.name.rpartition("/")[2]) + INDEX
    rows = objects_of(parse_text(source.neighbours.read(index)))
    nothing: dict[str, Any] = {}
    row = next((row for row in rows if row.get("sessionId") == session), nothing)
    date = row.get("dateCreated")
    title = text_of(document.get("title"))
    return finish_history(
        NAME,
        notes,
        [*older, *newer] if full else active,
        session_id=session,
        title=None if title in {"Untitled Session", "New Session"} else title,
        cwd=_folder(text_of(document.get("workspaceDirectory"))),
        created=milliseconds_of(int(date[:20]) if isinstance(date, str) and date.isdecimal() else date),
        compaction=compaction,
        shows_compacted=full,
        extra={"session": without(document, ("history",))},
    )


def _folder(address: str | None) -> str | None:
    if address is None or not address.startswith("file://"):
        return address
    return unquote(address.removeprefix("file://"))


class _Reader:
    """Makes messages of entries."""

    def __init__(self, document: dict[str, Any], notes: Notes) -> None:
        self._notes = notes
        self._model = text_of(document.get("chatModelTitle")) or ""

    def messages(self, entries: Sequence[dict[str, Any]], first: int) -> list[Message]:
        """Return the messages of entries; `first` is the number of the first one."""
        made: list[Message] = []
        thinking: list[AssistantContent] = []
        for number, entry in enumerate(entries, first):
            since, start = self._notes.left_out, len(made)
            message = object_of(entry.get("message"))
            if not isinstance(message.get("content"), (str, list)):
                self._notes.unreadable(number, "a message without content")
            envelope = without(entry, ("message", "toolCallStates", "contextItems", "editorState"))
            if items := [without(item, ("content",)) for item in objects_of(entry.get("contextItems"))]:
                envelope["contextItems"] = items
            match message.get("role"):
                case "user":
                    content = (*_context(entry), *_content(message.get("content")))
                    made.append(with_envelope(UserMessage(content=content), NAME, envelope))
                    for item in objects_of(entry.get("contextItems")):
                        if text_of(item.get("content")) is None:
                            self._notes.record(
                                "context item", number, len(json_text(item)), item if self._notes.keeps else None
                            )
                case "assistant":
                    made += self._assistant(entry, message, thinking, envelope, number)
                    thinking = []
                case "thinking":
                    thinking.append(_thinking(message))
                case "system":
                    made.append(with_envelope(SystemMessage.of(_text(message.get("content"))), NAME, envelope))
                case "tool":
                    call_id = text_of(message.get("toolCallId")) or ""
                    content = _content(message.get("content"))
                    made.append(ToolResultMessage(tool_call_id=call_id, tool_name="", content=content))
                case role:
                    self._notes.unreadable(number, f"an entry of the role {role!r}")
            note_unread(entry, (made[start:], thinking), number, self._notes, since=since)
        if thinking:
            made.append(AssistantMessage(content=tuple(thinking), protocol="openai-chat", provider="", model=""))
        return made

    def _assistant(
        self,
        entry: dict[str, Any],
        message: dict[str, Any],
        thinking: Sequence[AssistantContent],
        envelope: dict[str, object],
        number: int,
    ) -> list[Message]:
        content: list[AssistantContent] = list(thinking)
        if text := _text(message.get("content")):
            content.append(TextContent(text=text))
        calls = objects_of(message.get("toolCalls"))
        content += (_call(call) for call in calls)
        usage = object_of(message.get("usage"))
        model = text_of(usage.get("model")) or _logged_model(entry) or self._model
        origin = find_origin(model)
        turn = AssistantMessage(
            content=tuple(content),
            protocol=origin.protocol,
            provider=origin.provider,
            model=origin.model,
            usage=_usage(usage),
            stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
        )
        return [with_envelope(turn, NAME, envelope), *self._results(entry, calls, number)]

    def _results(self, entry: dict[str, Any], calls: Sequence[dict[str, Any]], number: int) -> list[Message]:
        states = objects_of(entry.get("toolCallStates"))
        made: list[Message] = []
        for call in calls:
            own = text_of(call.get("id"))
            state = next((each for each in states if own is not None and each.get("toolCallId") == own), None)
            if state is not None:
                states.remove(state)
                made += _result(call, state)
        for state in states:
            self._notes.record("state of a call", number, len(json_text(state)), state if self._notes.keeps else None)
        return made


def _logged_model(entry: dict[str, Any]) -> str | None:
    logs = objects_of(entry.get("promptLogs"))
    return text_of(logs[-1].get("modelTitle")) if logs else None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for piece in objects_of(content) if (text := text_of(piece.get("text"))))


def _content(content: object) -> tuple[TextContent, ...] | tuple[UserContent, ...]:
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    made: list[UserContent] = []
    for piece in objects_of(content):
        if (image := image_of(url=object_of(piece.get("imageUrl")).get("url"))) is not None:
            made.append(image)
        elif isinstance(piece.get("text"), str):
            made.append(TextContent(text=piece["text"]))
        else:
            made.append(TextContent(text=json_text(piece)))
    return tuple(made)


def _context(entry: dict[str, Any]) -> list[UserContent]:
    """Return what the user attached; the program sends it before the question."""
    texts = (text_of(item.get("content")) for item in objects_of(entry.get("contextItems")))
    return [TextContent(text=text) for text in texts if text is not None]


def _thinking(message: dict[str, Any]) -> ThinkingContent:
    redacted = text_of(message.get("redactedThinking"))
    if redacted is not None:
        return ThinkingContent(thinking="", thinking_signature=redacted, redacted=True)
    return ThinkingContent(thinking=_text(message.get("content")), thinking_signature=text_of(message.get("signature")))


def _call(call: dict[str, Any]) -> ToolCall:
    function = object_of(call.get("function"))
    return make_call(call.get("id"), function.get("name"), function.get("arguments"))


def _result(call: dict[str, Any], state: dict[str, Any]) -> list[Message]:
    status = text_of(state.get("status"))
    output = state.get("output")
    if status != "done" and status not in _FAILED and not output:
        return []
    pieces = [piece.get("content", piece) for piece in objects_of(output)] or ([output] if output else [])
    text = "\n\n".join(json_text(piece) for piece in pieces if piece is not None)
    result = ToolResultMessage(
        tool_call_id=text_of(call.get("id")) or "",
        tool_name=text_of(object_of(call.get("function")).get("name")) or "",
        content=(TextContent(text=text),) if text else (),
        is_error=status in _FAILED,
    )
    envelope = without(state, ("toolCall", "parsedArgs", "output"))
    if shown := [fields for piece in objects_of(output) if (fields := without(piece, ("content",)))]:
        envelope["output"] = shown
    return [with_envelope(result, NAME, envelope)]


def _usage(usage: dict[str, Any]) -> Usage | None:
    details, cents = object_of(usage.get("prompt_tokens_details")), number_of(usage.get("cost_cents"))
    return usage_of(
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        cache_read=details.get("cached_tokens"),
        cache_write=details.get("cache_write_tokens"),
        cost=cents and cents / 100,
    )


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by its file."""
    name = excerpt.name.rpartition("/")[2]
    return None if name == INDEX else describe_document(excerpt, NAME, read, name.removesuffix(".json"))


FORMAT: Final = Format(
    name=NAME,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Continue",
    place=Place(folder=".continue", variables=("CONTINUE_GLOBAL_DIR",), patterns=("sessions/*.json",)),
    reads_lines=False,
    source="Continue CLI 1.5.47, run against a scripted model; continuedev/continue 2026-06-18",
    read_on="2026-11-15",
)
