"""Read and write histories: sessions of agents, messages of frameworks, exports.

history = read_history("session.jsonl")
written = write_history(history, format="codex", model="openai/gpt-5.4")
save_history(written)
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context
from segue.conversation.stored import dump
from segue.errors import LoadError, ProjectionRefused, SettingsError, UnknownFormat
from segue.histories import places
from segue.histories.kit.envelope import name_results
from segue.histories.kit.format import Draft, Format
from segue.histories.kit.history import History, HistoryOrigin, Session, Written
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import first_time, make_id
from segue.histories.registry import (
    all_formats,
    each_format,
    find_format,
    format_names,
    formats_with_sessions,
    get_format,
)
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report

HISTORY: Final = "history"
"""The key of `Context.extra` with title, folder and times of the history, so that a stored conversation keeps them."""
_HEAD: Final = 64 * 1024
"""How much of a file is used to recognise its format."""
_CERTAIN: Final = 80
"""From this score on, a file is read as a session of an agent before anything else is tried."""
_SURE: Final = 95
"""From this score on, no further format is tried: most of them are not even loaded then."""
_FIRST: Final = frozenset({"agent", "export"})


def read_history(
    source: object,
    *,
    format: str | None = None,  # noqa: A002 - the name that the design gives it
    view: str = "active",
    keep_records: bool = False,
    session: str | None = None,
) -> History:
    """Read a stored history.

    `source` is a path, `"claude-code:last"` or `"codex:ID"` for a session on this machine, a `Session`, the bytes of a
    file, or the messages of a framework as JSON values or objects. The format is recognised by the content if it is not
    given. `view` is `active` (what the agent would send), `full` (nothing compacted away) or `branch=ID`.
    `keep_records` keeps the data of records that are no part of the conversation. `session` selects one of several
    conversations in a database or an export, by its id; by default the newest.

    Raises:
        LoadError: the source cannot be read; the message has the file and the line.
        UnknownFormat: no format has that name, or the format is not recognised.
    """
    asked = View.parse(view, keep_records=keep_records)
    opened, record = _open(source, format, session)
    try:
        with _without_collection():
            history = record.read(opened, asked)
    except RecursionError as error:
        raise LoadError("the history is nested too deeply to be read") from error
    return _with_facts(replace(history, origin=replace(history.origin, path=opened.path)))


@contextmanager
def _without_collection() -> Generator[None]:
    """Stop the search for cycles: a history is many objects without cycles, and each search looks at all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_history(
    history: History | Context,
    *,
    format: str,  # noqa: A002 - the same
    model: Model | str | None = None,
    cwd: str | None = None,
    policy: Policy | None = None,
    session_id: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Written:
    """Write a history in another format, ready to be continued there with a model.

    For the messages of a framework, `model` is the one that it will ask. Without one nothing is projected, and every
    turn keeps what its own model wrote. `framework_objects` gives the framework's own objects.

    Nothing is stored: `save_history` does that. `cwd` is the folder of the project, by default that of the history.
    `session_id` is the id of the new session, by default one that is derived from the history. `settings` are those of
    the program that the session has to agree with; `save_history` and the command line read them from its files.

    Raises:
        SettingsError: the format cannot be written, or needs a model.
        EmptyConversation: the history has no content.
        ProjectionRefused: the policy refuses a change.
    """
    from segue.histories.kit.ready import make_ready, make_ready_for_framework  # projection is not needed to read

    record = get_format(format)
    if record.write is None:
        raise SettingsError(f"{record.title} can only be read; choose a format that can be written", key="format")
    given = history if isinstance(history, History) else as_history(history)
    target = _find_target(record, given, model)
    notes = Notes()
    if record.kind == "framework":
        asked = None if model is None and record.wire is None else target
        ready = make_ready_for_framework(given.context, record.name, asked, policy, as_read=model is None)
    else:
        ready = make_ready(
            given.context,
            record.name,
            target,
            policy,
            notes,
            adds_own_text=record.adds_own_text,
            closes_calls=record.closes_calls,
        )
    fresh = session_id or make_id(record.name, target.full_name(), given.origin.id or "", dump(given.context))
    draft = Draft(
        history=given,
        messages=tuple(name_results(ready.messages)),
        model=target,
        id=fresh,
        cwd=cwd or given.cwd,
        started=first_time(ready.messages, given.created),
        settings=settings or {},
        notes=notes,
        positions=ready.positions,
    )
    output = record.write(draft)
    report = Report((*notes.report().changes, *ready.changes))
    _refuse(report, policy)
    return Written(
        format=record.name,
        id=fresh,
        files=output.files,
        resume=output.resume,
        resume_file=output.resume_file,
        setup=output.setup,
        report=report,
    )


def save_history(written: Written, folder: str | PathLike[str] | None = None) -> tuple[Path, ...]:
    """Store what `write_history` made: in the folder of the agent, or all files side by side in a folder of your own.

    Files get mode 600. A file that is there is never changed.

    Raises:
        HistoryExists: a file of that name is there already; nothing was written.
        SettingsError: the format has no folder on this machine; name one.
    """
    if folder is not None:
        return places.save_files(written, Path(folder), flat=not get_format(written.format).keeps_folders)
    place = get_format(written.format).place
    if place is None or not place.patterns:
        raise SettingsError(
            f"{written.format} has no folder of session files; pass folder=... and import the file", key="folder"
        )
    return places.save_files(written, places.find_folder(place), flat=False)


def framework_objects(written: Written) -> Any:  # noqa: ANN401 - the type depends on the framework, which is not imported here
    """Give what `write_history` made as the framework's own objects, such as a list of LangChain messages.

    Raises:
        SettingsError: the format has no objects, or the framework is not installed.
    """
    record = get_format(written.format)
    if record.give is None:
        raise SettingsError(f"{record.title} has no objects; use the JSON in `files` of what was written", key="format")
    try:
        return record.give(written.files)
    except ImportError as error:
        raise SettingsError(f"{record.title} is not installed here: {error}; install it", key="format") from error


def find_sessions(*, formats: Iterable[str] | None = None, cwd: str | None = None) -> Iterator[Session]:
    """List the sessions of agents on this machine, the newest first.

    `formats` are names of agents, by default all; `cwd` selects those of one project.
    """
    records = formats_with_sessions() if formats is None else [get_format(name) for name in formats]
    with _without_collection():
        found = [session for record in records for session in places.list_sessions(record)]
    found.sort(key=lambda session: (-(session.updated or 0), session.path))
    return (session for session in found if cwd is None or session.cwd == cwd)


def as_history(context: Context) -> History:
    """Give a history with this conversation, and with title, folder and times if it was read from a history before."""
    facts = (context.extra or {}).get(HISTORY, {})

    def text(name: str) -> str | None:
        value = facts.get(name)
        return value if isinstance(value, str) else None

    def number(name: str) -> int | None:
        value = facts.get(name)
        return value if isinstance(value, int) else None

    return History(
        context=context,
        origin=HistoryOrigin(format=text("format") or "segue", id=text("id")),
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


def _find_target(record: Format, history: History, model: Model | str | None) -> Model:
    if model is None:
        for message in reversed(history.context.messages):
            if message.role == "assistant" and message.model and message.protocol == record.wire:
                return Model(message.model, message.provider, message.protocol, reasoning=True)
        if record.kind == "agent":
            raise SettingsError(
                f"{record.title} needs model=..., the model that will continue the session", key="model"
            )
        model = record.example
    assert model is not None
    target = get_model(model)
    return target if record.wire is None else replace(target, protocol=record.wire)


def _refuse(report: Report, policy: Policy | None) -> None:
    refused = frozenset[object]() if policy is None else policy.refuse
    if any(change.code in refused or change.loss in refused for change in report.changes):
        raise ProjectionRefused("the policy refuses a change that the format needs", report=report)


# -- opening -----------------------------------------------------------------------------------------------------------


def find_format_of(source: Source) -> tuple[Format | None, int]:
    """Recognise the format of a source by its content, with how certain that is, from 0 to 100.

    JSON whose beginning no format recognises is parsed, because the order of keys in an object means nothing.
    """
    best, found = 0, None
    for record in each_format():
        if source.data is not None:
            score = record.detect(source.data[:_HEAD], source.name)
        else:
            score = record.detect_value(source.database if source.database is not None else source.value)
        if score > best:
            best, found = score, record
        if best >= _SURE:
            break
    if found is None and source.data is not None and source.data.lstrip()[:1] in (b"{", b"["):
        try:
            value: object = msgspec.json.decode(source.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None, 0
        return find_format_of(Source(value=value, name=source.name))
    return found, best


def is_session_file(head: bytes, name: str = "") -> bool:
    """Whether a file is a session of an agent or an export, and no file of segue, by its beginning.

    Messages of frameworks do not count: a list of messages is also a request.
    """
    if head.lstrip()[:40].replace(b" ", b"").startswith(b'{"format":"segue/'):
        return False
    if is_binary(head):
        return True
    record, score = find_format_of(Source(data=head[:_HEAD], name=name))
    return record is not None and record.kind in _FIRST and score >= _CERTAIN


def is_binary(head: bytes) -> bool:
    """Whether a file is a database, an archive, or compressed."""
    return head.startswith((b"SQLite format 3\x00", b"PK\x03\x04", b"\x28\xb5\x2f\xfd"))


def list_source(
    source: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the same
) -> list[Session]:
    """List the sessions in a database, an export or a folder of session files, the newest first.

    Raises:
        LoadError: the source cannot be read.
        UnknownFormat: the format is not recognised.
    """
    path = Path(source).expanduser()
    formats = all_formats() if format is None else [get_format(format)]
    if path.is_dir():
        return places.list_folder(path, formats)
    opened, record = _open(path, format, None)
    if record.list is not None:
        return sorted(record.list(opened), key=lambda session: -(session.updated or 0))
    described = places.describe_file(path, record)
    return [] if described is None else [described]


def _open(source: object, name: str | None, session: str | None) -> tuple[Source, Format]:
    if isinstance(source, Source):
        return source, _recognise(source, name)
    if isinstance(source, Session):
        record = get_format(source.format)
        return places.open_path(Path(source.path), (record,), source.id), record
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(cast("bytes", source))
        opened = places.open_data(
            data, [get_format(name)] if name else all_formats() if is_binary(data) else (), session
        )
        return opened, _recognise(opened, name)
    if isinstance(source, str):
        before, found, rest = source.partition(":")
        record = find_format(before) if found and rest else None
        if record is not None and record.place is not None:
            return _open_named(record, rest)
    if isinstance(source, (str, PathLike)):
        path = Path(cast("str | PathLike[str]", source)).expanduser()
        record = None if name is None else get_format(name)
        if path.is_dir():
            path = places.newest_file(path, all_formats() if record is None else [record])
        if record is None:
            record = _find_sure_format(path)
        opened = places.open_path(path, all_formats() if record is None else [record], session)
        return opened, _recognise(opened, None) if record is None else record
    opened = Source(value=source, session=session)
    return opened, _recognise(opened, name)


def _find_sure_format(path: Path) -> Format | None:
    """Recognise a file by its beginning; None if that is not certain, or a database or an archive has to be opened."""
    head = places.read_head(path, _HEAD)
    if not head or is_binary(head):
        return None
    record, score = find_format_of(Source(data=head, name=path.name))
    return record if score >= _SURE else None


def _open_named(record: Format, which: str) -> tuple[Source, Format]:
    """Open `last`, a session by its id or the beginning of it, or a file of that format."""
    sessions = places.list_sessions(record)
    if which == "last":
        matching = [session for session in sessions if session.parent is None or session.parent.kind == "fork"]
    else:
        matching = [session for session in sessions if session.id == which]
        matching = matching or [session for session in sessions if session.id.startswith(which)]
    if matching:
        return places.open_path(Path(matching[0].path), (record,), matching[0].id), record
    path = Path(which).expanduser()
    if path.is_file():
        return places.open_path(path, (record,)), record
    raise LoadError(f"{record.title} has no session {which!r} on this machine; `segue sessions` lists what there is")


def _recognise(source: Source, name: str | None) -> Format:
    if name is not None:
        return get_format(name)
    record, _ = find_format_of(source)
    if record is None:
        place = source.path or "this source"
        known = ", ".join(format_names())
        raise UnknownFormat(
            f"{place} is not recognised as a history; name its format with format=... (known: {known})", name=""
        )
    return record
