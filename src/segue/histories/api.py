"""Read and write histories: sessions of agents, messages of frameworks, exports.

history = read_history("session.jsonl")
written = write_history(history, format="codex", model="openai/gpt-5.4")
save_history(written)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.conversation.stored import dump
from segue.errors import LoadError, ProjectionRefused, SettingsError
from segue.histories import places
from segue.histories.kit.bound_state import StateFault, find_faults
from segue.histories.kit.envelope import name_results
from segue.histories.kit.format import Draft, Format
from segue.histories.kit.history import History, Originals, Session, Written
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import View
from segue.histories.kit.stamps import first_time, make_id
from segue.histories.opening import all_sessions, choose_line, locate_history, open_source
from segue.histories.reading import How, as_history
from segue.histories.registry import all_formats, formats_with_sessions, get_format
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report

if TYPE_CHECKING:
    from segue.histories.kit.ready import Ready


def read_history(
    source: object,
    *,
    format: str | None = None,  # noqa: A002 - the name that the design gives it
    view: str = "active",
    keep_records: bool = False,
    session: str | None = None,
) -> History:
    """Read a stored history.

    `source` is a path, `"claude-code:last"`, `"codex:ID"`, `"last"` or an id for a session on this machine (the
    beginning of the id is enough where no other session has it), a `Session`, the bytes of a file, or the messages of a
    framework as JSON values or objects. A stored conversation, a session file of segue, a request of any protocol and a
    row of a data set are histories too. What the source is, is recognised by its content if `format` does not name a
    format or a protocol. `view` is `active` (what the agent would send), `full` (nothing compacted away) or
    `branch=ID`. `keep_records` keeps the data of records that are not part of the conversation.
    `session` selects one of several conversations in a database or an export, by its id, by default the newest; in a
    file of lines by its number, by default the first.

    Raises:
        LoadError: the source cannot be read; the message has the file and the line.
        DecodeError: the source is a request, and not a valid one.
        UnknownFormat: no format has that name, the source is not recognised, or two formats cannot be distinguished.
    """
    how = How(format=format, session=session, view=View.parse(view, keep_records=keep_records))
    return choose_line(open_source(source, how), how).as_history()


def check_bound_state(source: object, *, format: str | None = None) -> tuple[StateFault, ...]:  # noqa: A002 - the same
    """Check what binds the replies of a stored history to their models: signatures, accounts and prefixes.

    For a session in ATIF or Agent Trail, the objects of the profile are compared with the steps next to them; for every
    history, chains of reasoning have to be whole. `source` and `format` are those of `read_history`.

    Raises:
        LoadError: the source cannot be read.
        DecodeError: the source is a request, and not a valid one.
        UnknownFormat: no format has that name, or the source is not recognised.
    """
    history = read_history(source, format=format)
    return tuple(find_faults(history.context.messages, history.report))


def write_history(
    history: History | Context,
    *,
    format: str,  # noqa: A002 - the same
    model: Model | str | None = None,
    cwd: str | None = None,
    policy: Policy | None = None,
    session_id: str | None = None,
    settings: Mapping[str, str] | None = None,
    now: int | None = None,
) -> Written:
    """Write a history in another format, ready to be continued there with a model.

    For the messages of a framework or an export, `model` is the one that is asked next. Without one nothing is
    projected, and every turn keeps what its own model wrote. `framework_objects` returns the framework's own objects.

    Nothing is stored: `save_history` does that. `cwd` is the folder of the project, by default that of the history.
    `session_id` is the id of the new session, by default one that is derived from the history and its time. `settings`
    are those of the program that the session has to agree with; `save_history` and the command line read them from its
    files. `now` is the time, in Unix milliseconds, that a history without any time is dated; by default that of the
    clock.

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
    if record.kind != "agent":
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
            compacts=record.compacts,
            sends_thinking=record.sends_thinking,
        )
    started = first_time(ready.messages, given.created, places.read_clock() if now is None else now)
    # A stored session has its time in the id too: one that is dated now has another name than that of a minute ago.
    dated = () if record.place is None else (str(started),)
    seeds = (record.name, target.full_name(), given.origin.id or "", dump(given.context), *dated)
    fresh = session_id or make_id(*seeds)
    draft = Draft(
        history=given,
        messages=tuple(name_results(ready.messages)),
        model=target,
        id=fresh,
        cwd=cwd or given.cwd,
        started=started,
        settings=settings or {},
        notes=notes,
        positions=ready.positions,
        cut=ready.cut,
    )
    output = record.write(draft)
    report = Report((*notes.report().changes, *ready.changes))
    _refuse(report, policy)
    return Written(
        format=record.name,
        id=output.id or fresh,
        files=output.files,
        resume=output.resume,
        resume_file=output.resume_file,
        setup=output.setup,
        report=report,
        originals=_originals(given, ready) if record.kind == "agent" else None,
    )


def _originals(given: History, ready: Ready) -> Originals | None:
    """Return what the way back needs; None if the program's own messages are written unchanged."""
    positions = tuple(at for at in ready.positions if at is not None)
    if not positions or len(positions) != len(ready.messages):
        return None
    messages = ready.messages
    if ready.cut is not None:  # its text is the first message that the program sends
        at = ready.cut.at
        messages, positions = (UserMessage.of(ready.cut.text), *messages[at:]), (0, *positions[at:])
    return Originals(context=given.context, messages=messages, positions=positions)


def save_history(written: Written, folder: str | PathLike[str] | None = None) -> tuple[Path, ...]:
    """Store what `write_history` made: in the folder of the agent, or all files side by side in a folder of your own.

    Files get mode 600. A file that is there is never changed.

    Raises:
        HistoryExists: a file of that name is there already; nothing was written.
        SettingsError: the format has no folder on this machine; name one.
    """
    record = get_format(written.format)
    if folder is not None:
        stored = places.save_files(written, Path(folder), flat=not record.keeps_folders)
        keep_originals(written, folder)
        return stored
    place = record.place
    if place is None or not place.patterns:
        raise SettingsError(
            f"{written.format} has no folder of session files; pass folder=... and import the file", key="folder"
        )
    stored = places.save_files(written, places.find_folder(place), flat=False)
    keep_originals(written)
    return stored


def keep_originals(written: Written, folder: str | PathLike[str] | None = None) -> None:
    """Store what was given to `write_history`, in the folder of the files or, by default, in segue's own.

    `save_history` does it. A program that keeps its sessions in a database takes the files from any folder; the
    originals of such a session are found in segue's own folder only.
    """
    from segue.histories.kit.originals import pack

    if written.originals is None:
        return
    read = get_format(written.format).read(places.written_source(written), View())
    places.save_originals(written.id, pack(written.originals, read), None if folder is None else Path(folder))


def restore_history(history: History) -> History:
    """Return a session that `segue` wrote for an agent, and that the agent continued, with the original messages.

    Signed reasoning, ids and everything else that the other agent could not hold is back, and the turns that it added
    follow. What was changed there stays changed, which the report lists. A history without kept originals is given
    back. The originals are found by the id of the session, that of the one it was forked from, or its first messages.

    Raises:
        LoadError: the file with the originals is damaged.
    """
    from segue.histories.kit.originals import matches, restore, unpack

    ids = [each for each in (history.origin.id, history.parent and history.parent.id) if each]
    beside = None if history.origin.path is None else Path(history.origin.path).parent
    for path in places.find_originals(ids, beside):
        is_named = path.stem in ids
        kept = unpack(places.read_originals(path, whole=is_named))
        if kept is not None and matches(kept, history, is_named=is_named):
            whole = kept if is_named else unpack(places.read_originals(path)) or kept
            try:
                return restore(history, whole)
            except LoadError as error:
                raise LoadError(f"{path}: the kept originals cannot be read: {error}; remove the file") from error
    return history


def framework_objects(written: Written) -> Any:  # noqa: ANN401 - the type depends on the framework, which is not imported here
    """Return what `write_history` made as the framework's own objects, such as a list of LangChain messages.

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

    `formats` are names of agents, by default all; `cwd` selects those of one project. Sessions that are stored in the
    folder of a project are found in the current one, in `cwd`, and in those of the other sessions.
    """
    records = formats_with_sessions() if formats is None else [get_format(name) for name in formats]
    return (session for session in all_sessions(records, cwd) if cwd is None or session.cwd == cwd)


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
    if path.is_dir():
        return places.list_folder(path, all_formats() if format is None else [get_format(format)])
    opened, record = locate_history(path, How(format=format))
    if record.list is not None:
        return sorted(record.list(opened), key=lambda session: -(session.updated or 0))
    described = places.describe_file(path, record)
    return [] if described is None else [described]
