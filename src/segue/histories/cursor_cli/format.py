"""The record of the command line of Cursor (`cursor-agent`): one database for each conversation.

Facts (specstoryai/getspecstory, which reads and writes it; 2026-11-18; not run, the places of the model and of
signatures are not certain):
- `meta` has one row, the hexadecimal text of a JSON object: `agentId`, `latestRootBlobId`, `name`, `createdAt`.
- `blobs` have messages as JSON, and nodes as protobuf. Field 1 of the root is the id of a message, 32 bytes, in the
  order of the conversation; field 2 is a node with the title. Roots of older versions have other nodes in field 1,
  which are followed in the order of the bytes. A blob that the root does not reach is not part of the conversation.
- Parts are those of the Vercel AI SDK. The words of the user are inside `<user_query>`; other tags are the program's.
- The folder is the MD5 of the project's folder, which is not stored. Results have no error flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.messages import Message, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, parse_object, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, text_of, without
from segue.histories.kit.logged_messages import read_logged_message
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "cursor-cli"
_DEAD: Final = "blob that is not reached"
_NODE: Final = "node"
KNOWN_RECORDS: Final = frozenset({_NODE})
_QUERY: Final = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_OWN: Final = re.compile(r"\s*<(?!user_query)\w+>")
_REFERENCE: Final = b"\x0a\x20"
"""The first field of a node, with a value of 32 bytes."""
_TITLE: Final = b"\x12\x20"
_ID_SIZE: Final = 32
_TEXT: Final = (b"{", b"[", b'"')
"""How a blob begins that is JSON and not a node."""


def read(source: Source, view: View) -> History:
    """Read the conversation of a database.

    Raises:
        LoadError: the database has none.
    """
    refuse_branch(view, "the command line of Cursor")
    if source.database is None:
        raise LoadError("a conversation of the command line of Cursor is a database, `store.db`")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    about = _about(source.database)
    blobs = {str(row.get("id")): _bytes(row.get("data")) for row in source.database.rows("blobs")}
    numbers = {name: number for number, name in enumerate(blobs, 1)}
    root = text_of(about.get("latestRootBlobId")) or ""
    if root not in blobs:
        notes.unreadable(0, "the root of the conversation is missing; all messages are read in the order of storing")
    reached = list(dict.fromkeys(_reach(blobs, root) if root in blobs else blobs))
    messages: list[Message] = []
    system: list[str] = []
    for name in reached:
        fields = parse_object(blobs[name])
        if not fields:
            if blobs[name][:1] in _TEXT:
                notes.unreadable(numbers[name], "the message is not valid JSON")
            elif name != root:
                notes.record(_NODE, numbers[name], len(blobs[name]), None)
            continue
        since, made = notes.left_out, list(_read(fields))
        note_unread({"message": fields}, made, numbers[name], notes, since=since)
        if not made and notes.left_out == since:
            notes.unreadable(numbers[name], "a message is expected")
        system += [plain_text(message) for message in made if message.role == "system"]
        messages += [message for message in made if message.role != "system"]
    for name, data in blobs.items():
        if name not in reached and name != root:
            kind = _DEAD if data[:1] in _TEXT else _NODE
            notes.record(kind, numbers[name], len(data), None)
    if not messages and not notes.records:
        raise LoadError("no conversation found: the database has no message of the command line of Cursor")
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(about.get("agentId")),
        title=text_of(about.get("name")),
        created=milliseconds_of(about.get("createdAt")),
        system_prompt="\n\n".join(system) or None,
    )


def _about(database: AgentDatabase) -> dict[str, Any]:
    for row in database.rows("meta", key="0"):
        value = row.get("value")
        try:
            return parse_object(bytes.fromhex(value)) if isinstance(value, str) else {}
        except ValueError:
            return parse_object(value)
    return {}


def _bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else data.encode("utf-8", "replace") if isinstance(data, str) else b""


def _reach(blobs: Mapping[str, bytes], root: str) -> Iterator[str]:
    """Yield the blobs that a node reaches, depth first, in the order of its bytes."""
    pending, seen = [root], {root}
    while pending:
        name = pending.pop()
        if name != root:
            yield name
        data = blobs[name]
        if data[:1] == b"{":
            continue
        inner = [each for each in _references(data) if each in blobs and each not in seen]
        seen.update(inner)
        pending += reversed(inner)


def _references(data: bytes) -> Iterator[str]:
    at = 0
    while at + 2 + _ID_SIZE <= len(data):
        mark = data[at : at + 2]
        if mark == _REFERENCE:
            yield data[at + 2 : at + 2 + _ID_SIZE].hex()
        at += 2 + _ID_SIZE if mark in (_REFERENCE, _TITLE) else 1


def _read(fields: dict[str, Any]) -> Iterator[Message]:
    cursor = object_of(object_of(fields.get("providerOptions")).get("cursor"))
    model = text_of(cursor.get("modelName")) or ""
    for message in read_logged_message(fields, find_origin(model)):
        envelope = without(fields, ("role", "content"))
        if not isinstance(message, UserMessage):
            yield with_envelope(message, NAME, envelope)
            continue
        text = plain_text(message)
        words = _QUERY.findall(text)
        own = not words and _OWN.match(text) is not None
        if words and _QUERY.sub("", text).strip():
            before = UserMessage(content=(TextContent(text=_QUERY.sub("", text).strip()),))
            yield with_envelope(before, NAME, envelope, own=True)
        if words:
            kept = tuple(piece for piece in message.content if not isinstance(piece, TextContent))
            message = replace(message, content=(TextContent(text="\n".join(words)), *kept))  # noqa: PLW2901
        yield with_envelope(message, NAME, envelope, own=own)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """Describe the one conversation of a database."""
    database = source.database
    if database is None or not {"blobs", "meta"} <= database.tables():
        return ()
    about = _about(database)
    found = Session(
        format=NAME,
        id=text_of(about.get("agentId")) or "",
        path=source.path or source.name,
        title=text_of(about.get("name")),
        created=milliseconds_of(about.get("createdAt")),
        updated=milliseconds_of(about.get("createdAt")),
    )
    return (found,) if found.id else ()


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Cursor CLI",
    place=Place(folder=".cursor", databases=("chats/*/*/store.db",)),
    reads_lines=False,
    source="specstoryai/getspecstory",
    read_on="2026-11-18",
)
