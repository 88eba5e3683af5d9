"""Repairs a stored session that its program, or the provider, no longer accepts; `repair_files` stores it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast, final

from segue.conversation.context import Context, Prompt
from segue.errors import SegueError, SettingsError
from segue.failures.classify import classify
from segue.failures.failure import FailureKind
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, objects_of
from segue.histories.kit.repairing import (
    FaultKind,
    Faults,
    Repairer,
    Stored,
    add_bound_signatures,
    find_faults,
    join_lines,
    read_lines,
)
from segue.histories.kit.source import MemoryFiles, Source, View
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss, Report
from segue.requests.tokens import measure

FAULT_KINDS: Final[tuple[FaultKind, ...]] = ("line", "call", "signature", "size", "image", "model")
_LAST: Final = 12
"""How many records at the end of a session are searched for the error that ended it."""
_ERROR_WORDS: Final = ("error", "invalid", "too long", "exceed", "could not", "not found", "400", "404", "413")
_ERROR_TYPES: Final = frozenset({"error", "session.error", "stream_error"})
_LONGEST_ERROR: Final = 20_000
_WINDOW: Final = 200_000
_SHARE: Final = 0.9
"""Tokens of a model whose window is not known, and how much of a window the repaired session may use."""
_LIMITS: Final = (400_000, 200_000, 100_000, 50_000, 25_000, 12_000, 6_000, 3_000)
"""Characters that a result may keep, tried until the session fits."""
_REPORTED_LIMIT: Final = 25_000
_REPORTED: Final[dict[FailureKind, FaultKind]] = {
    FailureKind.OPAQUE_REJECTED: "signature",
    FailureKind.OVERFLOW: "size",
    FailureKind.NOT_FOUND: "model",
}
_IMAGE_WORDS: Final = ("could not process image", "image", "media_type", "media type")


@final
@dataclass(frozen=True)
class Repaired:
    """A repaired session, not stored yet. `data` is None for a database; `advice` is what only the user can do."""

    record: Format
    source: Source
    history: History
    report: Report
    data: bytes | None
    rows: tuple[tuple[str, str, str, str | None], ...] = ()
    """Table, id, data as it was, and as it shall be; None removes the row."""
    advice: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether there is something to store."""
        return bool(self.rows) or (self.data is not None and self.data != self.source.data)


def repair(source: Source, record: Format, *, kinds: Collection[FaultKind] = (), model: str | None = None) -> Repaired:
    """Repair a session; nothing is stored.

    `kinds` are kinds of faults that the user knows of: of these, everything is taken out that could be meant. `model`
    is the one that goes on.

    Raises:
        LoadError: the session cannot be read, also not without its broken lines.
        UnknownModel: there is no such model.
    """
    if record.anatomy is None:
        raise SettingsError(f"{record.title}: its sessions cannot be repaired", key="format")
    records, build = _records_of(source)
    repairer = Repairer(records, record.anatomy)
    if source.database is None:
        repairer.drop_broken_lines()
    history = record.read(build(repairer.records), View())
    reported, advice = set(kinds), list[str]()
    reported |= _reported_kinds(repairer.records)
    target = _target(history.context, model)
    faults = find_faults(history.context, record.anatomy, FAULT_KINDS, reported, model=target.id)
    if repairer.changes:
        faults.note(0)
    faults.longest = _find_limit(history.context, target, is_reported="size" in reported)
    if faults.longest is not None:
        faults.note(0)
    add_bound_signatures(history.context, faults)
    if faults:
        repairer.repair(faults)
    if model is not None:
        _set_model(repairer, record, get_model(model), advice)
    elif "model" in reported:
        advice.append("the model of the session is not there any more; name another one with --model")
    made = build(repairer.records)
    after = record.read(made, View())
    advice += _check_again(after.context, record, faults, target)
    rows = _changed_rows(records, repairer.records) if source.database is not None else ()
    return Repaired(
        record=record,
        source=source,
        history=after,
        report=Report(tuple(repairer.changes)),
        data=made.data if source.database is None else None,
        rows=rows,
        advice=tuple(advice),
    )


def _check_again(context: Context, record: Format, before: Faults, target: Model) -> list[str]:
    """Say what could not be repaired."""
    assert record.anatomy is not None
    left = find_faults(context, record.anatomy, ("call", "image"), ())
    advice = [
        f"the call {each} still has no result; `segue handover` to the same program adds one"
        for each in left.open_calls
        if each in before.open_calls
    ]
    length = _measure(context, target)
    if length > (target.context_window or _WINDOW):
        advice.append(
            f"it is still about {length:,} tokens long, more than {target.full_name()} takes; compact it in the program"
        )
    return advice


# -- records ---------------------------------------------------------------------------------------------------------


def _records_of(source: Source) -> tuple[list[Stored], Callable[[Sequence[Stored]], Source]]:
    """Return the records of a session, and what makes a source of them again."""
    if source.database is not None:
        rows = [
            Stored((table, str(row.get("id")), str(row.get("message_id"))), str(row.get("data")).encode(), _parsed(row))
            for table in ("message", "part")
            for row in source.database.rows(table, **({"session_id": source.session} if source.session else {}))
        ]
        return rows, lambda records: _document_source(source, records)
    data = source.data or b""
    whole = _whole(data)
    if whole is not None and ("messages" in whole or "info" in whole) and b"\n{" not in data.strip():
        return [Stored(1, data, whole)], lambda records: _file_source(source, _document(records, data))
    return read_lines(data), lambda records: _file_source(source, join_lines(records))


def _whole(data: bytes) -> dict[str, Any] | None:
    try:
        return object_of(json.loads(data)) or None
    except (ValueError, RecursionError):
        return None


def _document(records: Sequence[Stored], before: bytes) -> bytes:
    (record,) = records
    if not record.is_changed:
        return before
    indent = 2 if before.startswith(b"{\n") else None
    return json.dumps(record.fields, ensure_ascii=False, indent=indent).encode("utf-8", "surrogatepass")


def _parsed(row: object) -> dict[str, Any] | None:
    try:
        return object_of(json.loads(cast("Any", row)["data"]))
    except (ValueError, TypeError, RecursionError):
        return None


def _file_source(source: Source, data: bytes) -> Source:
    return Source(data=data, name=source.name, path=source.path, neighbours=source.neighbours, session=source.session)


def _document_source(source: Source, records: Sequence[Stored]) -> Source:
    """Make the document of an export of the rows of a database, as it would be read."""
    assert source.database is not None
    equal = {"id": source.session} if source.session else {}
    session = max(
        source.database.rows("session", **equal), key=lambda row: int(cast("Any", row.get("time_updated")) or 0)
    )
    messages: dict[str, dict[str, Any]] = {}
    for record in records:
        table, name, _ = cast("tuple[str, str, str]", record.key)
        if table == "message" and record.fields is not None:
            messages[name] = {"info": {**record.fields, "id": name, "sessionID": session.get("id")}, "parts": []}
    for record in sorted(records, key=lambda each: cast("tuple[str, str, str]", each.key)[1]):
        table, name, message = cast("tuple[str, str, str]", record.key)
        if table == "part" and record.fields is not None and message in messages:
            part = {**record.fields, "id": name, "messageID": message, "sessionID": session.get("id")}
            messages[message]["parts"].append(part)
    info = {"id": session.get("id"), "directory": session.get("directory"), "title": session.get("title")}
    info |= {"time": {"created": session.get("time_created"), "updated": session.get("time_updated")}}
    data = json.dumps({"info": info, "messages": list(messages.values())}).encode()
    return Source(data=data, name=source.name, neighbours=MemoryFiles({}))


def _changed_rows(before: Sequence[Stored], after: Sequence[Stored]) -> tuple[tuple[str, str, str, str | None], ...]:
    kept = {record.key: record for record in after}
    rows: list[tuple[str, str, str, str | None]] = []
    for record in before:
        table, name, _ = cast("tuple[str, str, str]", record.key)
        new = kept.get(record.key)
        if new is None:
            rows.append((table, name, record.raw.decode(), None))
        elif new.is_changed:
            rows.append((table, name, record.raw.decode(), json.dumps(new.fields, ensure_ascii=False)))
    return tuple(rows)


# -- what is at fault ------------------------------------------------------------------------------------------------


def _reported_kinds(records: Sequence[Stored]) -> set[FaultKind]:
    """Find what a provider refused, in the errors that the program stored at the end of the session."""
    found: set[FaultKind] = set()
    for record in [each for each in records if each.fields is not None][-_LAST:]:
        for text in _error_texts(record.fields):
            failure = classify(text)
            lowered = text.lower()
            if failure.kind in _REPORTED:
                found.add(_REPORTED[failure.kind])
            elif any(word in lowered for word in _IMAGE_WORDS) and failure.kind != FailureKind.UNKNOWN:
                found.add("image")
    return found


def _error_texts(value: object, *, is_error: bool = False) -> list[str]:
    """Return the texts of a record that are errors: by the field, or by the record that has them."""
    if isinstance(value, str):
        return [value[:_LONGEST_ERROR]] if is_error and any(word in value.lower() for word in _ERROR_WORDS) else []
    if isinstance(value, list):
        return [text for each in cast("list[object]", value) for text in _error_texts(each, is_error=is_error)]
    if not isinstance(value, dict):
        return []
    fields = cast("dict[str, object]", value)
    here = is_error or fields.get("isApiErrorMessage") is True or fields.get("type") in _ERROR_TYPES
    texts: list[str] = []
    for key, each in fields.items():
        is_result = key in {"toolUseResult", "result", "toolCalls", "state", "output"}
        named = key in {"error", "errorMessage", "error_message"} and fields.get("toolCallId") is None
        texts += [] if is_result else _error_texts(each, is_error=here or named)
    return texts


def _target(context: Context, model: str | None) -> Model:
    if model is not None:
        return get_model(model)
    for message in reversed(context.messages):
        if message.role == "assistant" and message.model:
            with suppress(SegueError):
                return get_model(f"{message.provider}/{message.model}" if message.provider else message.model)
            return Model(message.model, message.provider or "unknown", message.protocol or "openai-chat")
    return Model("unknown", "unknown", "openai-chat")


def _measure(context: Context, target: Model) -> int:
    try:
        return measure(Prompt(context=context), target).whole
    except SegueError:
        return sum(len(str(message)) for message in context.messages) // 4


def _find_limit(context: Context, target: Model, *, is_reported: bool) -> int | None:
    """Find how many characters a result may keep, so that the session fits the window; None if nothing has to go."""
    texts = [
        len(piece.text)
        for message in context.messages
        if message.role == "toolResult"
        for piece in message.content
        if piece.kind == "text"
    ]
    longest = max(texts, default=0)
    most = (target.context_window or _WINDOW) * _SHARE
    length = sum(texts) // 8 and _measure(context, target)
    if length > most:
        for limit in _LIMITS:
            saved = sum(size - limit for size in texts if size > limit) / 5
            if length - saved <= most:
                return limit if longest > limit else None
        return _LIMITS[-1] if longest > _LIMITS[-1] else None
    return _REPORTED_LIMIT if is_reported and longest > _REPORTED_LIMIT else None


def _set_model(repairer: Repairer, record: Format, model: Model, advice: list[str]) -> None:
    assert record.anatomy is not None
    detail = f"{model.full_name()} goes on"
    if record.anatomy.user_model is not None:
        _set_user_model(repairer, record.anatomy.user_model(model.provider, model.id), detail)
        return
    fields = [each.fields for each in repairer.records if each.fields is not None]
    made = record.anatomy.model_record(fields, model.provider, model.id)
    if made is None:
        advice.append(f"{record.title} takes the model from its settings or its option --model, not from the session")
        return
    repairer.append(made, ChangeCode.MODEL_UNKNOWN, detail)


def _set_user_model(repairer: Repairer, chosen: dict[str, Any], detail: str) -> None:
    """Set the model of the last message of the user, in a row or in a document."""
    for at in range(len(repairer.records) - 1, -1, -1):
        record = repairer.records[at]
        fields = record.fields or {}
        if fields.get("role") == "user":
            repairer.records[at] = Stored(record.key, record.raw, {**fields, "model": chosen}, is_changed=True)
        elif entries := objects_of(fields.get("messages")):
            users = [each for each in entries if object_of(each.get("info")).get("role") == "user"]
            if not users:
                continue
            made = [
                {**each, "info": {**each["info"], "model": chosen}} if each is users[-1] else each for each in entries
            ]
            repairer.records[at] = Stored(record.key, record.raw, {**fields, "messages": made}, is_changed=True)
        else:
            continue
        repairer.note(ChangeCode.MODEL_UNKNOWN, record.key if isinstance(record.key, int) else None, Loss.NONE, detail)
        return
