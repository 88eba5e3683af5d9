"""What the formats of frameworks share: a JSON document round a list of entries.

No framework is imported to read or write its JSON. Its objects are turned into JSON by the framework itself, which is
installed where there are such objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast, final

import msgspec

from segue.conversation.content import SystemContent, TextContent
from segue.conversation.context import Context, Tool
from segue.conversation.messages import Message, SystemMessage
from segue.errors import EmptyConversation, LoadError, Path
from segue.histories.kit.documents import load_value
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, read_entries, write_entries
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.evidence import Form
from segue.histories.kit.format import Draft, Format, FormatSample, Output, Place
from segue.histories.kit.history import History, HistoryOrigin, WrittenFile
from segue.histories.kit.lines import object_of, text_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import make_id, time_of
from segue.histories.kit.writing import json_line
from segue.models.model import Model
from segue.projection.report import Change, ChangeCode, Loss

DOCUMENT: Final = "document"
"""The field of `Context.extra` with what a document has in addition to its entries."""
CLAUDE: Final = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000)
"""The example model of frameworks that ask any model."""
SYSTEM: Final = "system"
"""The field of `Context.extra` with the envelope of the instructions at the beginning."""
INSTRUCTIONS: Final = "instructions"
"""The field of `Context.extra` that says that the document has the instructions next to its messages."""


@final
class EntryList(NamedTuple):
    """A list of entries, and what is around it.

    `rest` is written back unchanged. `others` counts further conversations in the same source, `changes` report
    entries that the framework would not send.
    """

    entries: list[Entry]
    rest: Mapping[str, Any] = {}
    id: str | None = None
    title: str | None = None
    created: int | None = None
    updated: int | None = None
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    others: int = 0
    changes: tuple[Change, ...] = ()


def same_value(value: object) -> object:
    """Return a value that is JSON already."""
    return value


def same_entries(entries: list[Entry], draft: Draft) -> list[Entry]:  # noqa: ARG001 - other frameworks need it
    """Return entries that are complete already."""
    return entries


@final
@dataclass(frozen=True, kw_only=True)
class Framework:
    """One framework: its codec, and the document around its entries.

    `open` finds the entries in a parsed document, None if it is not one of this framework. `open_database` does so in
    an SQLite database, and `open_source` in a source with the files next to it. `close` makes the document; `complete`
    adds to entries what the framework needs and segue has no value for, such as ids; `further` returns files next to
    the document. `plain` makes JSON of the framework's objects. `stores_system` and `stores_tools`: the document
    has instructions and tools; they are reported otherwise. `separate_system` says that `close` writes instructions;
    it does so too where `has_separate_instructions`.
    """

    codec: EntryCodec
    title: str
    open: Callable[[object, str | None], EntryList | None]
    close: Callable[[list[Entry], Mapping[str, Any], Draft], object]
    open_source: Callable[[Source], EntryList | None] | None = None
    open_database: Callable[[AgentDatabase, str | None], EntryList] | None = None
    complete: Callable[[list[Entry], Draft], list[Entry]] = same_entries
    further: Callable[[object, Draft], tuple[WrittenFile, ...]] | None = None
    plain: Callable[[object], object] = same_value
    stores_system: bool = True
    stores_tools: bool = False
    separate_system: bool = False
    file_name: str = field(default="messages.json")
    lines: bool = False

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.codec.name

    def read(self, source: Source, view: View) -> History:
        """Read one conversation.

        Raises:
            LoadError: the source is not a document of this framework.
        """
        document = self._open(source)
        if view.branch is not None:
            raise LoadError(f"the source has no branch {view.branch!r}; {self.title} stores a list without branches")
        notes = Notes(keep=view.keep_records)
        messages = read_entries(self.codec, document.entries, Reading(notes, document.rest))
        for change in document.changes:
            notes.add(change.code, change.path, change.loss, change.detail)
        if document.others:
            count = f"{document.others} further conversations; `session` selects one"
            notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "conversation"), Loss.CONTENT, count)
        own: dict[str, Any] = {DOCUMENT: document.rest} if document.rest else {}
        system: str | tuple[SystemContent, ...] | None = document.system
        if system is None and (place := _prompt_place(document.rest)) is not None:
            system = _fields_at(document.rest, place)[place[-1]]
        if system is not None:
            own[INSTRUCTIONS] = True
        elif messages and messages[0].role == "system":
            first = messages.pop(0)
            system = _prompt_of(cast("SystemMessage", first))
            own[SYSTEM] = find_envelope(first, self.name)
        times = [time for message in messages if (time := time_of(message)) is not None]
        title = document.title or find_title(messages)
        return History(
            context=Context(
                system_prompt=system,
                messages=tuple(messages),
                tools=document.tools,
                extra={self.name: own} if own else None,
            ),
            origin=HistoryOrigin(format=self.name, id=document.id),
            title=None if title is None else title_of(title),
            created=document.created or min(times, default=None),
            updated=document.updated or max(times, default=None),
            records=notes.records,
            report=notes.report(),
        )

    def _open(self, source: Source) -> EntryList:
        document: EntryList | None = None
        if source.database is not None:
            if self.open_database is not None:
                document = self.open_database(source.database, source.session)
        elif self.open_source is not None:
            document = self.open_source(source)
        else:
            document = self.open(self.plain(load_value(source, lines=self.lines)), source.session)
        if document is None:
            raise LoadError(f"no conversation found: the source has no messages of {self.title}")
        return document

    def write(self, draft: Draft) -> Output:
        """Write one conversation."""
        context = draft.history.context
        own = (context.extra or {}).get(self.name, {})
        rest = own.get(DOCUMENT)
        kept: Mapping[str, Any] = cast("Mapping[str, Any]", rest) if isinstance(rest, Mapping) else {}
        messages, positions = list(draft.messages), list(draft.positions)
        is_separate = self.separate_system or has_separate_instructions(context, self.name)
        if is_separate and (place := _prompt_place(kept)) is not None:
            kept = _with_prompt(kept, place, prompt_text(context))
        if context.system_prompt and self.stores_system and not is_separate:
            messages.insert(0, self._instructions(context, own.get(SYSTEM), draft.notes))
            positions.insert(0, None)
        elif not self.stores_system:
            leading = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
            detail = f"{self.title} stores instructions elsewhere"
            paths: list[Path] = [("system_prompt",)] if context.system_prompt else []
            paths += [("messages",) if at is None else ("messages", at) for at in positions[:leading]]
            for path in paths:
                draft.notes.add(ChangeCode.INSTRUCTIONS_LEFT_OUT, path, Loss.CONTENT, detail)
            del messages[:leading], positions[:leading]
            if not messages:
                raise EmptyConversation("the history has no content to write: it has only instructions")
        if context.tools and not self.stores_tools:
            draft.notes.add(ChangeCode.TOOL_REMOVED, ("tools",), Loss.CONTENT, f"{self.title} stores tools elsewhere")
        writing = Writing(messages, draft.notes, positions, draft.settings)
        halves = [message for message in messages if has_half(message)]
        for message in halves:
            detail = "parsers of frameworks refuse half a character"
            writing.note(message, ChangeCode.SURROGATE_REPLACED, Loss.CONTENT, detail)
        entries = write_entries(self.codec, messages, writing)
        if not entries:
            raise EmptyConversation(f"the history has no content that {self.title} can store")
        value = self.close(self.complete(entries, draft), kept, draft)
        if halves:
            value = without_halves(value)
        first = WrittenFile(name=self.file_name, data=json_line(value))
        return Output((first, *(self.further(value, draft) if self.further is not None else ())))

    def _instructions(self, context: Context, envelope: object, notes: Notes) -> Message:
        prompt = context.system_prompt or ""
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt
        if isinstance(envelope, Mapping):
            return SystemMessage(content=content, extra={self.name: cast("Mapping[str, object]", envelope)})
        texts = tuple(piece for piece in content if piece.kind == "text")
        if len(texts) < len(content):
            notes.add(ChangeCode.NATIVE_DROPPED, ("system_prompt",), Loss.OPAQUE)
        return SystemMessage(content=texts)


def has_half(message: Message) -> bool:
    """Whether a message has half a surrogate pair."""
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        return True
    return False


def without_halves(value: object) -> object:
    """Replace half a surrogate pair, in every text of a JSON value."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (list, tuple)):
        return [without_halves(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {cast("str", without_halves(key)): without_halves(item) for key, item in fields.items()}
    return value


def framework_format(
    framework: Framework,
    *,
    samples: Callable[[], tuple[FormatSample, ...]],
    source: str,
    give: Callable[[tuple[WrittenFile, ...]], object] | None = None,
    example: Model = CLAUDE,
    wire: str | None = None,
    place: Place | None = None,
    title: str | None = None,
    forms: tuple[Form, ...] = (),
    read_on: str = "2026-11-15",
) -> Format:
    """Make the record of a framework; `forms` are those of a package, which `histories.forms` does not have.

    `source` and `read_on` say where the facts come from, and when that was read.
    """
    return Format(
        name=framework.name,
        title=title or framework.title,
        kind="framework",
        wire=wire,
        read=framework.read,
        write=framework.write,
        give=give,
        place=place,
        adds_own_text=False,
        closes_calls=False,
        reads_lines=False,
        keeps_folders=framework.further is not None,
        forms=forms,
        samples=samples,
        example=example,
        source=source,
        read_on=read_on,
    )


def give_json(files: tuple[WrittenFile, ...]) -> object:
    """Return the document itself, for frameworks whose messages are plain JSON."""
    return cast("object", msgspec.json.decode(files[0].data))


def _prompt_of(message: SystemMessage) -> str | tuple[SystemContent, ...]:
    if len(message.content) == 1 and message.content[0] == TextContent(text=getattr(message.content[0], "text", "")):
        return cast("TextContent", message.content[0]).text
    return message.content


def has_separate_instructions(context: Context, name: str) -> bool:
    """Whether a conversation was read from a document of this format that has the instructions next to its messages."""
    return (context.extra or {}).get(name, {}).get(INSTRUCTIONS) is True


_PROMPT_KEYS: Final = ("system", "system_prompt")
_AROUND: Final = "around"
_HOLDERS: Final = (_AROUND, "state", "body")
"""Fields of `EntryList.rest` with the fields of the object that has the messages."""


def _prompt_place(rest: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Find the instructions that a document has next to its messages."""
    for place in ((), *((name,) for name in _HOLDERS)):
        for key in _PROMPT_KEYS:
            if text_of(_fields_at(rest, (*place, key)).get(key)):
                return (*place, key)
    return None


def _fields_at(rest: Mapping[str, Any], place: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the object that has the last key of a place."""
    return rest if len(place) == 1 else object_of(rest.get(place[0]))


def _with_prompt(rest: Mapping[str, Any], place: tuple[str, ...], prompt: str | None) -> Mapping[str, Any]:
    fields = {**_fields_at(rest, place), place[-1]: prompt}
    return fields if len(place) == 1 else {**rest, place[0]: fields}


def prompt_text(context: Context) -> str | None:
    """Return the instructions as one text, for formats that have one field for them."""
    prompt = context.system_prompt
    if prompt is None or isinstance(prompt, str):
        return prompt
    return "\n\n".join(piece.text for piece in prompt if piece.kind == "text")


# -- documents ---------------------------------------------------------------------------------------------------------


def items_of(value: object) -> list[object]:
    """Return the items of a list or a tuple; none for any other value."""
    return list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else []


def list_of(value: object) -> list[Entry] | None:
    """Return a list of objects; None for any other value."""
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("list[object]", value)
    if not all(isinstance(item, dict) for item in items):
        return None
    return [cast("Entry", item) for item in items]


def from_package(value: object, *packages: str) -> bool:
    """Whether a value, or the first item of a list, is an object of one of these packages."""
    first = (*items_of(value), value)[0]
    module = type(first).__module__
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def dumped_by(method: str, *packages: str, alone: bool = False, **arguments: object) -> Callable[[object], object]:
    """Make `plain` for objects of packages that have a method for it; unless `alone`, one object becomes a list."""

    def plain(value: object) -> object:
        if not from_package(value, *packages):
            return value
        items = items_of(value)
        dumped = [getattr(each, method)(**arguments) for each in items or [value]]
        dumped = [msgspec.json.decode(each) if isinstance(each, str) else each for each in dumped]
        return dumped[0] if alone and not items else dumped

    return plain


# -- documents that are a list of messages -----------------------------------------------------------------------------


def list_opener(
    is_message: Callable[[Mapping[str, Any]], bool], *, bare: bool = False
) -> Callable[[object, str | None], EntryList | None]:
    """Make `open` for documents that are a list of messages, or (unless `bare`) an object with `messages`."""

    def open_list(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list, one conversation
        rest: dict[str, Any] = {}
        if not bare and isinstance(value, dict):
            whole = cast("dict[str, Any]", value)
            rest = {_AROUND: {key: item for key, item in whole.items() if key != "messages"}}
            value = cast("object", whole.get("messages"))
        entries = list_of(value)
        return EntryList(entries, rest) if entries and any(is_message(entry) for entry in entries) else None

    return open_list


def close_list(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    """Write a list of messages, inside the object that it was read from."""
    around = rest.get(_AROUND)
    return {"messages": entries, **cast("Mapping[str, Any]", around)} if isinstance(around, Mapping) else entries


def add_ids(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add an id to every entry that has none."""
    return [
        entry if entry.get("id") else {"id": make_id(draft.id, "message", str(at)), **entry}
        for at, entry in enumerate(entries)
    ]
