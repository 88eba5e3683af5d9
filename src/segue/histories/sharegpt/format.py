"""The record of ShareGPT: rows with `conversations`, `tools` as JSON text, and the names of `images`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from segue.conversation.limits import parse_json
from segue.errors import DecodeError, LoadError
from segue.histories.kit.chat_messages import read_tools, write_functions
from segue.histories.kit.documents import LINES, load_value
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, give_json, items_of, list_of
from segue.histories.kit.lines import object_of
from segue.histories.kit.pictures import PICTURES, picture_addresses
from segue.histories.kit.pieces import encode_json
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Neighbours, Source
from segue.histories.sharegpt.codec import CODEC, IMAGES, MARK, TITLE
from segue.projection.report import Change, ChangeCode, Loss

_FILES: Final = "image_files"
_TYPES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def _rows(value: object) -> list[dict[str, Any]]:
    whole = object_of(value)
    items = items_of(whole[LINES]) if LINES in whole else items_of(value) or [value]
    return [object_of(row) for row in items]


def _turns_of(row: Mapping[str, Any]) -> list[Entry]:
    turns = list_of(row.get("conversations"))
    return turns if turns and "from" in turns[0] else []


def _open(value: object, session: str | None) -> EntryList | None:
    return _open_row(value, session, None)


def _open_source(source: Source) -> EntryList | None:
    value = load_value(source, lines=True)
    return _open_row(value, source.session, source.neighbours)


def _open_row(value: object, session: str | None, files: Neighbours | None) -> EntryList | None:
    rows = [(row, turns) for row in _rows(value) if (turns := _turns_of(row))]
    if not rows:
        return None
    at = int(session) if session is not None and session.isdecimal() and int(session) < len(rows) else 0
    row, entries = rows[at]
    column = next((name for name in PICTURES if row.get(name)), IMAGES)
    images = items_of(row.get(column)) or ([row[column]] if row.get(column) else [])
    names = [name for name in images if isinstance(name, str)]
    addresses, changes = _find_images(names, files)
    if images != names:
        names = []
        try:
            addresses, changes = picture_addresses(images, column), []
        except DecodeError as error:
            reason = str(error)
            changes.append(Change(code=ChangeCode.LINE_UNREADABLE, path=(column,), loss=Loss.CONTENT, detail=reason))
    if addresses:
        entries = _with_images(entries, addresses)
    rest = {key: item for key, item in row.items() if key not in {"conversations", IMAGES}}
    if names:
        rest[_FILES] = names
    return EntryList(
        entries,
        rest,
        tools=read_tools(_parsed(row.get("tools"))),
        others=len(rows) - 1,
        changes=tuple(changes),
    )


def _with_images(turns: list[Entry], addresses: list[str]) -> list[Entry]:
    """Give each turn the images that it has marks of."""
    entries: list[Entry] = []
    for turn in turns:
        value = turn.get("value")
        count = value.count(MARK) if isinstance(value, str) else 0
        own, addresses = addresses[:count], addresses[count:]
        entries.append({**turn, IMAGES: own} if own else turn)
    return entries


def _find_images(names: list[str], files: Neighbours | None) -> tuple[list[str], list[Change]]:
    """Give the addresses of images: data URLs where the files are there."""
    addresses: list[str] = []
    changes: list[Change] = []
    for at, name in enumerate(names):
        data = None if files is None or ":" in name else files.read(name)
        if data is not None:
            kind = _TYPES.get(name.rpartition(".")[2].lower(), "image/png")
            addresses.append(f"data:{kind};base64,{base64.b64encode(data).decode()}")
            continue
        addresses.append(name)
        if ":" not in name:
            path = ("images", at)
            changes.append(Change(code=ChangeCode.FILE_MISSING, path=path, loss=Loss.CONTENT, detail=name))
    return addresses, changes


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value.encode("utf-8", "surrogatepass"))
    except (LoadError, UnicodeError):
        return None


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    names = [name for name in items_of(rest.get(_FILES)) if isinstance(name, str)]
    images: list[object] = []
    turns: list[Entry] = []
    for entry in entries:
        turns.append({key: value for key, value in entry.items() if key != IMAGES})
        for address in items_of(entry.get(IMAGES)):
            images.append(names[len(images)] if len(images) < len(names) else address)
    made: dict[str, Any] = {"conversations": turns, **{key: rest[key] for key in rest if key != _FILES}}
    tools = draft.history.context.tools
    if tools and read_tools(_parsed(rest.get("tools"))) != tools:
        made["tools"] = encode_json(write_functions(tools))
    return {**made, IMAGES: images} if images and made.keys().isdisjoint(PICTURES) else made


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    open_source=_open_source,
    close=_close,
    stores_tools=True,
    lines=True,
    file_name="conversations.jsonl",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    source="LLaMA-Factory's description of the form; data sets in this form",
)
