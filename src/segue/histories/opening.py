"""Open anything that can be read: the one opener of the library, the command line, a corpus and the inspector.

`recognition` decides what data is, `reading` reads it. A source is a file, the name of a session, bytes, a parsed
value, or objects of a framework. It holds one conversation, or lines with one each, which are read one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace as replace_fields
from itertools import chain
from os import PathLike
from pathlib import Path  # opens nothing: `places` does
from typing import BinaryIO, Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls.batch_forms import read_request_line
from segue.conversation.context import Prompt
from segue.conversation.limits import without_line
from segue.conversation.stored import load
from segue.errors import DecodeError, LoadError, SegueError, UnknownFormat
from segue.foundation.plurals import counted
from segue.histories import places
from segue.histories.data_rows import as_body, is_as_sent
from segue.histories.explaining import Unexplained, is_marked, refusal, refuse_unexplained
from segue.histories.kit.evidence import Sight
from segue.histories.kit.format import Format
from segue.histories.kit.history import Session, SessionName
from segue.histories.kit.lines import objects_of
from segue.histories.kit.source import Source
from segue.histories.reading import (
    NEITHER,
    How,
    Lines,
    OpenedDocument,
    numbered,
    parse,
    parse_lines,
    read_as,
    read_body,
    read_session_file,
    without_collection,
)
from segue.histories.recognition import (
    HEAD,
    Recognition,
    choose,
    is_plain_request,
    look,
    look_at_value,
    recognise_sight,
)
from segue.histories.registry import all_formats, find_format, formats_with_sessions, get_format
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.protocols.detection import detect_protocol
from segue.protocols.registry import PROTOCOLS

_WHOLE: Final = frozenset({"history", "session", "chat lines", "unreadable"})
"""What a file of several lines can be as a whole."""


@final
class BadLine(NamedTuple):
    """A line that cannot be read, and the reason."""

    line: int
    reason: str


@final
class Opened(NamedTuple):
    """An opened source: either one conversation, or lines with one each."""

    document: OpenedDocument | None
    lines: Lines = iter(())


_RECOGNISE: Final = How()
LAST: Final = "last"
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{3,}")
"""What can be an id of a session, or its beginning; it also has a digit, so that a word is looked for as a file."""
_LISTED: Final = 4
"""How many sessions an error names."""


def open_source(source: object, how: How = _RECOGNISE, *, name: str = "") -> Opened:
    """Open a source; `name` is what errors call it if it has no path.

    Raises:
        LoadError: the source cannot be read; the message has the file and the line.
        DecodeError: it is a request, and not a valid one.
        UnknownFormat: it is not recognised, or two formats cannot be distinguished.
    """
    how = _with_protocol(how)
    if hasattr(source, "readline"):
        return _open_file(cast("BinaryIO", source), how, name)
    opened, record = _locate(source, how)
    return _open(opened, record, how, name or opened.path or "this source")


def _with_protocol(how: How) -> How:
    if how.format is None or find_format(how.format) is not None or how.format not in PROTOCOLS:
        return how
    return how._replace(format=None, protocol=how.format)


def open_value(
    value: object,
    how: How = _RECOGNISE,
    *,
    line: int | None = None,
    data: bytes | str | None = None,
    arranged: bool = False,
) -> OpenedDocument:
    """Read one conversation from parsed JSON; `data` is its text if there is one.

    `arranged` says that a request in it is unchanged, so that no column of a row has to be looked for.

    Raises:
        LoadError, DecodeError, UnknownFormat: as `open_source`.
    """
    if not isinstance(value, (dict, list)):
        raise LoadError(NEITHER)
    how = _with_protocol(how)
    value = cast("object", value)
    if how.protocol is not None:
        document = read_body(value, how.protocol, how.model)
    elif how.format is not None:
        document = read_as(get_format(how.format), Source(value=value), how)
    elif is_plain_request(value) and (protocol := detect_protocol(value)) is not None:
        row = cast("dict[str, object]", value)
        document = read_body(row if arranged or is_as_sent(row) else as_body(row), protocol, how.model)
    else:
        sight = look_at_value(value)
        claim = choose(recognise_sight(sight), "this", sight)
        source = Source(data=data.encode() if isinstance(data, str) else data, value=value)
        document = _read(claim, source, sight, how)
    return document if line is None else document._replace(line=line)


def open_history_row(value: dict[str, object], how: How, *, data: bytes | str | None = None) -> OpenedDocument | None:
    """Read a row that is a history in some format; None for a request and for other rows of data sets.

    Raises:
        LoadError, UnknownFormat: as `open_source`.
    """
    if is_plain_request(value):
        return None
    sight = look_at_value(value)
    found = recognise_sight(sight, history=True)
    if not any(claim.kind == "history" for claim in found):
        return None
    source = Source(data=data.encode() if isinstance(data, str) else data, value=value)
    return _read(choose(found, "this"), source, sight, how)


def open_line(data: bytes, how: How, line: int) -> OpenedDocument | BadLine:
    """Read one conversation of many; an error is returned, not raised."""
    try:
        return open_value(parse(data), how, line=line, data=data)
    except SegueError as error:
        return BadLine(line, without_line(str(error)))


def recognise(source: object) -> list[Recognition]:
    """Return everything that some data may be, with the evidence for each; what is certain comes first.

    `source` is what `read_history` takes. An empty list means that nothing is recognised. Of a file with one
    conversation on each line, the first one is looked at.

    Raises:
        LoadError: the source cannot be read.
    """
    opened, record = _locate(source, _RECOGNISE)
    if record is None and opened.format:
        record = get_format(opened.format)
    if record is not None:
        return [Recognition(record.name, "history", "certain", (f"a session of {record.title}",))]
    found, _, sight = _recognise(opened)
    if not found and sight.value is None and sight.lines:
        found = recognise_sight(look_at_value(sight.lines[0]))
    return found


def locate_history(source: object, how: How) -> tuple[Source, Format]:
    """Find the data of a source and its format, without reading it.

    Raises:
        UnknownFormat: it is not a history in a known format.
    """
    opened, record = _locate(source, how)
    if record is None and opened.format:
        record = get_format(opened.format)
    if record is None:
        claim = choose(_recognise(opened)[0], opened.path or "this source")
        record = get_format(claim.format)
    return places.settle(opened, record), record


# -- files -------------------------------------------------------------------------------------------------------------


def _open_file(file: BinaryIO, how: How, name: str) -> Opened:
    """Open a file. Of lines with one conversation each, only the beginning is read here.

    A pipe may stay open for long: two lines that are conversations are enough there.
    """
    if name and how.protocol is None and places.is_long(name, file):
        return _open(*_locate(Path(name), how), how, name)
    head: list[bytes] = []
    size = filled = 0
    is_pipe = not file.seekable()
    for line in file:
        head.append(line)
        size += len(line)
        if line.isspace():
            continue
        filled += 1
        if filled > 1 and (size >= HEAD or (is_pipe and filled == 2)) and how.format is None:
            sight = look(Source(data=b"".join(head), name=name), head=True)
            is_lines = sight.value is None and bool(sight.lines) and (how.protocol or not _claims_whole(sight))
            if is_lines and (size >= HEAD or recognise_sight(look_at_value(sight.lines[0]))):
                return Opened(None, numbered(chain(head, file)))
            if size >= HEAD:
                break
    data = b"".join(head)
    path = Path(name)
    is_file = bool(name) and path.is_file()
    source = Source(
        data=places.as_utf8(data + file.read()),
        name=path.absolute().as_posix() if is_file else name,
        path=name if is_file else None,
        session=how.session,
    )
    return _open(source, None if how.format is None else get_format(how.format), how, name)


def _claims_whole(sight: Sight) -> bool:
    return any(claim.kind in _WHOLE for claim in recognise_sight(sight))


def is_one_conversation(head: bytes, name: str) -> bool:
    """Whether a file of lines is one conversation, by its beginning."""
    return _claims_whole(look(Source(data=head, name=name), head=True))


def _locate(source: object, how: How) -> tuple[Source, Format | None]:
    """Find the data of a source, and its format where that is known without looking at the data."""
    record = None if how.format is None else get_format(how.format)
    if isinstance(source, Source):
        return source, record
    if isinstance(source, Session):
        record = get_format(source.format)
        return places.open_path(Path(source.path), (record,), source.id), record
    if isinstance(source, SessionName):
        record = get_format(source.format)
        found = find_listed(source)
        return places.open_path(Path(found.path), (record,), found.id), record
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(cast("bytes", source))
        return places.open_data(data, [record] if record else all_formats, how.session), record
    if isinstance(source, str):
        before, found, rest = source.partition(":")
        named = find_format(before) if found and rest else None
        if named is not None and named.place is not None:
            return _find_session(named, rest), named
        if not found and (session := find_bare_id(source)) is not None:
            return _locate(session, how)
    if isinstance(source, (str, PathLike)):
        path = Path(cast("str | PathLike[str]", source)).expanduser()
        if path.is_dir():
            path = places.newest_file(path, all_formats() if record is None else [record])
        return places.open_path(path, [record] if record else all_formats, how.session), record
    return Source(value=source, session=how.session), record


def _find_session(record: Format, which: str) -> Source:
    """Open what a user names `AGENT:NAME`: a session, or else a file of that format."""
    try:
        found = find_listed(SessionName(format=record.name, id=which))
    except _NotListed:
        path = Path(which).expanduser()
        if not _is_there(path):
            raise
        return places.open_path(path, (record,))
    return places.open_path(Path(found.path), (record,), found.id)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that no file can be named
        return False


@final
class _NotListed(LoadError):
    """No list of sessions has this one."""


def find_listed(name: SessionName) -> Session:
    """Find a session in the list of its agent; a path is never looked for.

    Raises:
        LoadError: the list does not have it, or several ids begin like that.
        UnknownFormat: there is no such agent.
    """
    record = get_format(name.format)
    sessions = [] if record.place is None else all_sessions([record])
    found = choose_session(sessions, name.id)
    if found is None and not sessions and record.place is not None:
        where = places.find_folder(record.place)
        variable = next((each.partition("/")[0] for each in record.place.variables), "")
        hint = f"; if they are elsewhere, set {variable}" if variable else ""
        raise _NotListed(f"no sessions of {record.title} were found in {where}{hint}, or name a file")
    if found is None:
        raise _NotListed(
            f"{record.title} has no session {name.id!r} on this machine; `segue sessions` lists what there is"
        )
    return found


def parse_session_name(text: str) -> SessionName | None:
    """Read `AGENT:ID`; None if this is not the name of a session of an agent."""
    agent, _, which = text.partition(":")
    record = find_format(agent) if which else None
    return None if record is None or record.place is None else SessionName(format=record.name, id=which)


def all_sessions(records: Sequence[Format], cwd: str | None = None) -> list[Session]:
    """List the sessions of agents on this machine, the newest first, also those in the folders of projects."""
    with without_collection():
        found = [session for record in records for session in places.list_sessions(record)]
        folders = dict.fromkeys((*([cwd] if cwd else ()), *places.current_projects()))
        folders |= dict.fromkeys(session.cwd for session in found if session.cwd)
        known = {(session.path, session.id) for session in found}
        for record in records:
            for session in places.list_projects(record, folders):
                if (session.path, session.id) not in known:
                    known.add((session.path, session.id))
                    found.append(session)
    found.sort(key=lambda session: (-(session.updated or 0), session.path, session.id))
    return found


def choose_session(sessions: Sequence[Session], which: str) -> Session | None:
    """Find a session of a list, the newest first, by `last`, its id, or the beginning of it; None if there is none.

    Raises:
        LoadError: several ids begin like that.
    """
    if which == LAST:
        return next((each for each in sessions if each.parent is None or each.parent.kind == "fork"), None)
    matching = [each for each in sessions if each.id == which]
    matching = matching or [each for each in sessions if each.id.startswith(which)]
    if len({each.id for each in matching}) > 1:
        names = ", ".join(f"{each.format}:{each.id}" for each in matching[:_LISTED])
        raise LoadError(f"{which!r} is the beginning of {len(matching)} ids: {names}; write more of the one you mean")
    return matching[0] if matching else None


def describe_folders() -> str:
    """Name the folders in which sessions are looked for."""
    folders = [places.find_folder(record.place) for record in formats_with_sessions() if record.place is not None]
    shown = ", ".join(map(str, folders[:_LISTED]))
    return f"{shown} and the folders of {len(folders) - _LISTED} other agents" if len(folders) > _LISTED else shown


def find_bare_id(which: str) -> Session | None:
    """Find a session of any agent by `last`, its id, or the beginning of it; None if this is not an id, or is a file.

    Raises:
        LoadError: several ids begin like that.
    """
    if which != LAST and (_ID.fullmatch(which) is None or not any(map(str.isdigit, which))):
        return None
    if Path(which).exists():
        return None
    found = choose_session(all_sessions(formats_with_sessions()), which)
    if found is None and which == LAST:
        raise LoadError(f"no sessions of agents were found in {describe_folders()}; name a file")
    return found


def _open(source: Source, record: Format | None, how: How, place: str) -> Opened:
    if source.long is not None:
        return Opened(read_as(get_format(source.format), source, how))
    if source.data is not None and (not source.data or source.data.isspace()):
        raise LoadError("the file is empty; a conversation in JSON or JSON Lines is expected")
    if record is not None:
        return Opened(read_as(record, source, how))
    sight = look(source)
    is_lines = sight.value is None and bool(sight.lines)
    if how.protocol is not None:
        if is_lines and source.data is not None:
            return Opened(None, numbered(iter(source.data.splitlines(keepends=True))))
        body = sight.value if source.data is None or not sight.cut else parse(source.data)
        return Opened(read_body(body, how.protocol, how.model)._replace(data=source.data))
    found, source, sight = _recognise(source)
    if not found and is_lines and source.data is not None:
        if any(sight.lines) and not any(recognise_sight(look_at_value(line)) for line in sight.lines):
            choose(found, place, sight)  # raises: not even one of the lines is a conversation
        return Opened(None, numbered(iter(source.data.splitlines(keepends=True))))
    if not found and source.data is not None and not isinstance(parse(source.data), (dict, list)):
        raise LoadError(NEITHER)
    return Opened(_read(choose(found, place, sight), source, sight, how, place)._replace(data=source.data))


def _recognise(source: Source) -> tuple[list[Recognition], Source, Sight]:
    """Recognise a source; what only its beginning does not show, the whole does."""
    sight = look(source)
    found = recognise_sight(sight)
    if sight.cut and source.data is not None and not any(claim.certainty == "certain" for claim in found):
        with suppress(LoadError):
            sight = Sight(value=parse(source.data), text=source.data[:HEAD], name=source.name)
            found = recognise_sight(sight)
    if source.data is None and not any(claim.certainty == "certain" for claim in found):
        entries = objects_of(source.value)
        lines = Sight(lines=entries, name=source.name)
        whole = [claim for claim in recognise_sight(lines) if claim.kind in ("history", "unreadable")]
        if whole and whole[0].certainty == "certain":
            data = b"\n".join(map(msgspec.json.encode, entries))
            return whole, replace_fields(source, data=data, value=None), lines
    return found, source, sight


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(claim: Recognition, source: Source, sight: Sight, how: How, place: str = "this") -> OpenedDocument:
    """Read what was recognised; a reading that does not explain every item is refused."""
    try:
        document = _read_claimed(claim, source, sight, how)
    except LoadError as error:
        if claim.kind != "session" or is_marked(claim):
            raise
        raise refusal(Unexplained(0, str(error)), claim, sight, place) from error
    return refuse_unexplained(document, claim, sight, place)


def _read_claimed(claim: Recognition, source: Source, sight: Sight, how: How) -> OpenedDocument:
    match claim.kind:
        case "history":
            return read_as(get_format(claim.format), source, how)
        case "session":
            return read_session_file(source, sight)
        case "stored":
            data = source.data if source.data is not None else msgspec.json.encode(source.value)
            return OpenedDocument(Prompt(context=load(data)))
        case "chat lines":
            messages = parse_lines(source) if source.data is not None else [sight.value]
            return read_body(messages, detect_protocol(messages) or claim.format, how.model)
        case "row":
            body = as_body(_value(source, sight))
            return read_body(body, detect_protocol(body) or claim.format, how.model)
        case "batch line":
            line = read_request_line(_value(source, sight))
            assert line is not None, "it was recognised by its envelope"
            return read_body(line.body, line.protocol, how.model)
        case "exchange":
            return _read_exchange(_value(source, sight), how)
        case "request":
            value = _value(source, sight)
            if type(value) is dict and not is_as_sent(value):
                value = as_body(value)
                return read_body(value, detect_protocol(value) or claim.format, how.model)
            return read_body(value, claim.format, how.model)
        case "unreadable":
            raise AssertionError("`choose` refuses it")


def _value(source: Source, sight: Sight) -> dict[str, object]:
    value = parse(source.data) if sight.cut and source.data is not None else sight.value
    return cast("dict[str, object]", value)


def _read_exchange(value: dict[str, object], how: How) -> OpenedDocument:
    """Read a request with the reply after its messages."""
    from segue.protocols.api import decode_response

    document = open_value(value["request"], how)
    reply = value["response"]
    if document.protocol is None or not isinstance(reply, dict):
        return document
    try:
        answer = decode_response(cast("dict[str, object]", reply), protocol=document.protocol, model=how.model)
    except DecodeError:  # an error of the provider is not part of the conversation
        return document
    context = document.prompt.context
    messages = (*context.messages, answer)
    return document._replace(prompt=replace(document.prompt, context=replace(context, messages=messages)), body=None)


def choose_line(opened: Opened, how: How) -> OpenedDocument:
    """Return the conversation of an opened source; of several lines the first, or the one that `how.session` numbers.

    Raises:
        LoadError: there is no such line, or it cannot be read.
    """
    if opened.document is not None:
        return opened.document
    wanted = int(how.session) if how.session is not None and how.session.isdecimal() else 1
    chosen: tuple[int, bytes] | None = None
    count = 0
    for count, each in enumerate(opened.lines, 1):
        if count == wanted:
            chosen = each
    if chosen is None:
        raise LoadError(f"there is no conversation {how.session!r}; the file has {counted(count, 'conversation')}")
    try:
        document = open_value(parse(chosen[1]), how, line=chosen[0], data=chosen[1])
    except UnknownFormat:
        raise
    except SegueError as error:
        raise LoadError(without_line(str(error)), line=chosen[0]) from error
    if count == 1:
        return document
    detail = f"{counted(count - 1, 'further conversation')}; `session` selects one by its number, from 1"
    change = Change(code=ChangeCode.RECORD_LEFT_OUT, path=("records", "conversation"), loss=Loss.CONTENT, detail=detail)
    history = document.as_history()
    return document._replace(history=replace(history, report=Report((*history.report.changes, change))))
