"""Read what was recognised: a request, a session of segue or a history of a format becomes a `OpenedDocument`."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context, Prompt
from segue.conversation.limits import parse_json, without_line
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories import places
from segue.histories.kit.evidence import Sight
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, HistoryOrigin
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import lacks_content, note_unread, with_content
from segue.histories.sessions import read_session_lines
from segue.models.model import Model
from segue.projection.report import Change, ChangeCode, Loss, Report

if TYPE_CHECKING:
    from segue.projection.policy import Policy
    from segue.requests.prepare import Request

HISTORY: Final = "history"
"""The key of `Context.extra` with title, folder and times of the history, so that a stored conversation keeps them."""


NEITHER: Final = "this is neither a conversation nor a request; a JSON object or a list of messages is expected"


Lines: TypeAlias = Iterator[tuple[int, bytes]]


@cache
def _requests() -> ModuleType:
    """Import what makes requests: a list of sessions does not need it, and each row of a corpus asks for it."""
    from segue.requests import prepare

    return prepare


@final
class OpenedDocument(NamedTuple):
    """One conversation that was read, and what it was read from."""

    prompt: Prompt
    protocol: str | None = None
    """The protocol of a request; None for any other source."""
    body: Mapping[str, object] | list[object] | None = None
    line: int | None = None
    """The line of a conversation in a file with one on each line."""
    data: bytes | None = None
    """The JSON of a file with one conversation."""
    lines: tuple[int, ...] = ()
    """The line of each message of a session."""
    history: History | None = None
    """What a history has in addition to its messages; None for a request and for what segue stored."""

    def prepare(self, model: Model, policy: Policy) -> Request:
        """Make a request for a model.

        Raises:
            EmptyConversation: the conversation has no content to send.
            ProjectionRefused: the policy refuses a necessary change.
        """
        requests = _requests()
        if self.protocol is None:
            return requests.prepare(self.prompt.context, model, policy=policy)
        return requests.prepare_prompt(self.prompt, model, source=self.protocol, policy=policy)

    def as_history(self) -> History:
        """Return the conversation as a history; one of segue has the origin that it was stored with."""
        history = self.history or as_history(self.prompt.context, format_name=self.protocol or "segue")
        if self.protocol is None or self.body is None:
            return history
        notes = Notes()
        context = self.prompt.context
        made = [context.system_prompt, *(message.content for message in context.messages)]
        for at, turn in enumerate(_turns_of(self.body), 1):
            if lacks_content(turn):
                note_unread(cast("dict[str, object]", turn), made, at, notes, since=notes.left_out)
        changes = notes.report().changes
        return replace(history, report=Report((*history.report.changes, *changes))) if changes else history


@final
class How(NamedTuple):
    """How a source is read: what is known about it, and what is wanted of it.

    `format` names a format or a protocol, `protocol` a protocol; without both, the source is recognised. `model` wrote
    the answers of a request. `session` selects one of several conversations, by its id or its number.
    """

    format: str | None = None
    protocol: str | None = None
    model: Model | None = None
    session: str | None = None
    view: View = View()


def read_body(value: object, protocol: str, model: Model | None) -> OpenedDocument:
    """Read a request of a protocol."""
    from segue.protocols.api import decode_request  # histories of agents are listed without it

    if not isinstance(value, (dict, list)):
        raise LoadError(NEITHER)
    body = cast("dict[str, object] | list[object]", value)
    if any(map(lacks_content, turns := _turns_of(body))):
        given = [with_content(cast("dict[str, object]", turn)) if isinstance(turn, dict) else turn for turn in turns]
        body = given if isinstance(body, list) else {**body, "messages": given}
    return OpenedDocument(decode_request(body, protocol=protocol, model=model), protocol, body)


def _turns_of(body: Mapping[str, object] | list[object]) -> list[object]:
    turns = body if isinstance(body, list) else body.get("messages")
    return cast("list[object]", turns) if isinstance(turns, list) else []


def read_session_file(source: Source, sight: Sight) -> OpenedDocument:
    """Read a session of segue, with the line of each message."""
    data = source.data if source.data is not None else msgspec.json.encode(sight.value)
    numbers: list[int] = []
    lines = _with_blank_lines(numbered(iter(data.splitlines(keepends=True))))
    context = read_session_lines(lines, name=source.path or source.name, numbers=numbers)
    return OpenedDocument(Prompt(context=context), lines=tuple(numbers), data=data)


def read_as(record: Format, source: Source, how: How) -> OpenedDocument:
    """Read a history of a format; what else it holds is stored with them."""
    source = places.settle(source, record)
    try:
        with without_collection():
            history = record.read(source, how.view)
    except RecursionError as error:
        raise LoadError("the history is nested too deeply to be read") from error
    if source.path is not None:
        history = replace(history, origin=replace(history.origin, path=source.path))
    history = _judged(history, record)
    if how.model is not None:
        history = replace(history, context=_written_by(history.context, how.model))
    history = _with_facts(history)
    return OpenedDocument(Prompt(context=history.context), history=history)


def _judged(history: History, record: Format) -> History:
    """Report a history if more of it was left out than read.

    Raises:
        LoadError: there is no message, and there are lines or records that cannot be read.
    """
    unread = sum(change.code == ChangeCode.LINE_UNREADABLE for change in history.report.changes)
    unread += sum(each.kind not in record.known_records for each in history.records)
    read = len(history.context.messages)
    if not (read or unread or history.records or history.compactions or history.branches):
        raise LoadError(f"no message was found in it, read as {record.title}")
    if unread <= read:
        return history
    missing = counted(unread, "line or record", "lines or records")
    if not read:
        raise LoadError(
            f"no message was read as {record.title}, and {missing} could not be; if it is data of another program,"
            " name its format with format=..."
        )
    detail = f"{missing} could not be read, and only {counted(read, 'message')} could"
    change = Change(code=ChangeCode.RECORD_LEFT_OUT, path=("records",), loss=Loss.CONTENT, detail=detail)
    return replace(history, report=Report((change, *history.report.changes)))


def _written_by(context: Context, model: Model) -> Context:
    """Attribute answers without a model to the model that wrote them."""
    origin = {"provider": model.provider, "protocol": model.protocol, "model": model.id}
    messages = (
        replace(message, **origin) if message.role == "assistant" and not message.model else message
        for message in context.messages
    )
    return replace(context, messages=tuple(messages))


@contextmanager
def without_collection() -> Generator[None]:
    """Stop the search for cycles: a history is many objects without cycles, and each search looks at all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def as_history(context: Context, *, format_name: str = "segue") -> History:
    """Return a history with this conversation; with title, folder and times if it was read from a history before."""
    facts = (context.extra or {}).get(HISTORY, {})

    def text(name: str) -> str | None:
        value = facts.get(name)
        return value if isinstance(value, str) else None

    def number(name: str) -> int | None:
        value = facts.get(name)
        return value if isinstance(value, int) else None

    return History(
        context=context,
        origin=HistoryOrigin(format=text("format") or format_name, id=text("id")),
        title=text("title"),
        cwd=text("cwd"),
        created=number("created"),
        updated=number("updated"),
    )


def _with_facts(history: History) -> History:
    """Store title, folder and times in the conversation, where a stored file keeps them."""
    values = {
        "format": history.origin.format,
        "id": history.origin.id,
        "title": history.title,
        "cwd": history.cwd,
        "created": history.created,
        "updated": history.updated,
    }
    facts = {name: value for name, value in values.items() if value is not None}
    context = replace(history.context, extra={**(history.context.extra or {}), HISTORY: facts})
    return replace(history, context=context)


def numbered(lines: Iterator[bytes]) -> Lines:
    """Return the lines that are not blank, with their numbers."""
    return ((number, line) for number, line in enumerate(lines, 1) if not line.isspace())


def _with_blank_lines(lines: Lines) -> Iterator[bytes]:
    """Add the blank lines again that were left out, so that the others keep their numbers."""
    last = 0
    for number, line in lines:
        yield from repeat(b"\n", number - last - 1)
        yield line
        last = number


def parse_lines(source: Source) -> list[object]:
    """Parse the messages of a file with one on each line.

    Raises:
        LoadError: a line is not JSON.
    """
    messages: list[object] = []
    for number, line in numbered(iter((source.data or b"").splitlines(keepends=True))):
        try:
            messages.append(parse(line))
        except LoadError as error:
            raise LoadError(without_line(error.reason), line=number) from None
    return messages


def parse(data: bytes | str) -> object:
    """Parse JSON. `parse_json` is slower, accepts more and explains errors.

    Raises:
        LoadError: the data is not JSON.
    """
    try:
        return cast("object", msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return parse_json(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
