"""Writes a session as a database of Crush, in a new folder.

Facts (sources of Crush: migrations, messages, options of the command line; read 2026-11-18; not run, because its
package downloads the program from elsewhere):
- `crush --data-dir FOLDER --session ID` opens `crush.db` in any folder, and continues a session of it.
- The schema is built by migrations, whose versions are in `goose_db_version`; the program runs those that are missing.
- Of a message it sends the first text and the first reasoning, with the signature of Claude; images as `binary`. Rows
  of the role `system` and pictures by URL are not sent.
- Rows are ordered by `created_at`, in seconds, then as they were inserted. An unknown type of a part is an error;
  unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from segue.conversation.content import AnyContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope
from segue.histories.kit.format import Draft, Output
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import text_of
from segue.histories.kit.origins import find_origin, origin_mark
from segue.histories.kit.pieces import arguments_text, encode_json
from segue.histories.kit.stamps import iso_of, make_id, time_of
from segue.histories.kit.tables import make_database
from segue.histories.kit.writing import Clock, note_lost, placed
from segue.projection.report import ChangeCode, Loss

NAME: Final = "crush"
TITLE: Final = "Crush"
_VERSIONS: Final = (0, 20250424200609, 20250515105448, 20250624000000, 20250627000000, 20250810000000)
"""The migrations after which the tables are as they are written here; the program runs the later ones."""
_TABLES: Final = """
CREATE TABLE goose_db_version (
 id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL,
 tstamp TIMESTAMP DEFAULT (datetime('now')));
CREATE TABLE sessions (
 id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0,
 prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
 updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT);
CREATE TABLE files (
 id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL,
 version INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
 FOREIGN KEY (session_id) REFERENCES sessions (id) ON DELETE CASCADE, UNIQUE (path, session_id, version));
CREATE TABLE messages (
 id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts BLOB NOT NULL DEFAULT '[]', model TEXT,
 created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
 is_summary_message INTEGER NOT NULL DEFAULT 0,
 FOREIGN KEY (session_id) REFERENCES sessions (id) ON DELETE CASCADE);
"""
_RULES: Final = """
CREATE TRIGGER update_sessions_updated_at AFTER UPDATE ON sessions
 BEGIN UPDATE sessions SET updated_at = strftime('%s', 'now') WHERE id = new.id; END;
CREATE TRIGGER update_files_updated_at AFTER UPDATE ON files
 BEGIN UPDATE files SET updated_at = strftime('%s', 'now') WHERE id = new.id; END;
CREATE TRIGGER update_messages_updated_at AFTER UPDATE ON messages
 BEGIN UPDATE messages SET updated_at = strftime('%s', 'now') WHERE id = new.id; END;
CREATE TRIGGER update_session_message_count_on_insert AFTER INSERT ON messages
 BEGIN UPDATE sessions SET message_count = message_count + 1 WHERE id = new.session_id; END;
CREATE TRIGGER update_session_message_count_on_delete AFTER DELETE ON messages
 BEGIN UPDATE sessions SET message_count = message_count - 1 WHERE id = old.session_id; END;
CREATE INDEX idx_files_session_id ON files (session_id);
CREATE INDEX idx_files_path ON files (path);
CREATE INDEX idx_messages_session_id ON messages (session_id);
CREATE INDEX idx_sessions_created_at ON sessions (created_at);
CREATE INDEX idx_messages_created_at ON messages (created_at);
CREATE INDEX idx_files_created_at ON files (created_at);
"""
"""What keeps the counts and times; created after the rows, so that it does not change them."""
_REASONS: Final = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
    StopReason.ABORTED: "canceled",
    StopReason.ERROR: "error",
}


def write(draft: Draft) -> Output:
    """Write one session."""
    clock = Clock(draft)
    rows: list[dict[str, Any]] = []
    ids: set[str] = set()
    now = draft.started // 1000
    for entries in runs_of(list(placed(draft, TITLE, _holds)), _is_same_row):
        at, first = entries[0]
        now = max(now, clock.at(time_of(first)) // 1000)
        envelope = find_envelope(first, NAME) or {}
        name = text_of(envelope.get("id"))
        if name is None or name in ids:
            name = make_id(draft.id, "message", str(len(rows)))
        ids.add(name)
        row: dict[str, Any] = {"id": name, "session_id": draft.id, "role": _role(first), "model": "", "provider": None}
        row |= {
            "created_at": now,
            "updated_at": now,
            "is_summary_message": int(bool(envelope.get("is_summary_message"))),
        }
        if isinstance(first, AssistantMessage):
            row |= {"model": envelope.get("model") if envelope else first.model, "finished_at": now}
            row["provider"] = envelope.get("provider") if envelope else first.provider or None
            parts = _reply(first, at, draft, now)
        else:
            if first.role == "system":
                draft.notes.add(ChangeCode.SYSTEM_AS_USER, ("messages", at), Loss.NONE)
            parts = [part for place, message in entries for part in _given(message, place, draft)]
            parts.append({"type": "finish", "data": {"reason": "stop", "time": 0}})
        rows.append({**row, "parts": encode_json(parts)})
    session = {
        "id": draft.id,
        "title": draft.history.title or "Session",
        "message_count": len(rows),
        "created_at": draft.started // 1000,
        "updated_at": now,
    }
    applied = iso_of(draft.started)[:19].replace("T", " ")
    versions = [{"version_id": version, "is_applied": 1, "tstamp": applied} for version in _VERSIONS]
    tables = {"goose_db_version": versions, "sessions": [session], "messages": rows}
    data = make_database(_TABLES, tables, _RULES)
    resume = ("crush", "--data-dir", "{folder}", "--session", draft.id)
    return Output((WrittenFile(name=f"{draft.id}/crush.db", data=data),), resume, resume_file=resume)


def _is_same_row(before: tuple[int, Message], entry: tuple[int, Message]) -> bool:
    """Whether two messages share a row: the results of one answer do."""
    if not before[1].role == entry[1].role == "toolResult":
        return False
    one, other = ((find_envelope(each[1], NAME) or {}).get("id") for each in (before, entry))
    return one == other


def _role(message: Message) -> str:
    return {"toolResult": "tool", "system": "user"}.get(message.role, message.role)


def _holds(message: Message, piece: AnyContent) -> bool:
    """Whether the program stores a piece: texts and data, not addresses of other programs' pictures."""
    if message.role == "assistant" or piece.kind == "text":
        return True
    is_own = find_envelope(message, NAME) is not None
    return piece.kind in {"image", "file"} and (getattr(piece, "data", None) is not None or is_own)


def _texts(texts: Sequence[str], *, is_own: bool) -> list[dict[str, Any]]:
    given = texts if is_own else ["\n".join(texts)]
    return [{"type": "text", "data": {"text": text}} for text in given if text]


def _reply(message: AssistantMessage, at: int, draft: Draft, now: int) -> list[dict[str, Any]]:
    envelope = find_envelope(message, NAME)
    note_lost(draft, message, at, TITLE)
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    thoughts = [piece for piece in message.content if piece.kind == "thinking" and not piece.redacted]
    if envelope is None and (len(texts) > 1 or len(thoughts) > 1):
        draft.notes.add(ChangeCode.TURN_MERGED, ("messages", at), Loss.NONE, f"{TITLE} has one text for each message")
    signatures = [piece.thinking_signature for piece in thoughts if piece.thinking_signature]
    is_signed = len(signatures) == len(thoughts) == 1 and message.protocol == "anthropic-messages"
    if signatures and not is_signed and envelope is None:
        detail = f"{TITLE} has one signature for each message, of Claude"
        draft.notes.add(ChangeCode.SIGNATURE_REMOVED, ("messages", at), Loss.OPAQUE, detail)
    parts: list[dict[str, Any]] = []
    if envelope is not None:
        thought_data = [(piece.thinking, piece.thinking_signature or "") for piece in thoughts]
    else:
        words = "\n".join(piece.thinking for piece in thoughts)
        thought_data = [(words, (signatures[0] or "") if is_signed else "")] if words or is_signed else []
    for words, signature in thought_data:
        parts.append({"type": "reasoning", "data": {"thinking": words, "signature": signature}})
    parts += _texts(texts, is_own=envelope is not None)
    for call in message.tool_calls():
        data = {"id": call.id, "name": call.name, "input": arguments_text(call), "finished": True}
        parts.append({"type": "tool_call", "data": {**data, "provider_executed": False}})
    own = message.raw_stop_reason if envelope is not None else None
    reason = own or _REASONS.get(message.stop_reason, "end_turn")
    given = (message.model, message.provider) if envelope is None else (envelope.get("model"), envelope.get("provider"))
    mark = origin_mark(message, find_origin(*(text_of(name) or "" for name in given)))
    return [*parts, {"type": "finish", "data": {"reason": reason, "time": now}, **mark}]


def _given(message: Message, at: int, draft: Draft) -> list[dict[str, Any]]:
    """Write a message of the user, or a result."""
    is_own = find_envelope(message, NAME) is not None
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    media = [piece for piece in message.content if piece.kind in {"image", "file"}]
    if len(texts) > 1 and not is_own:
        draft.notes.add(ChangeCode.TURN_MERGED, ("messages", at), Loss.NONE, f"{TITLE} has one text for each message")
    if isinstance(message, ToolResultMessage):
        data: dict[str, Any] = {"tool_call_id": message.tool_call_id, "name": message.tool_name}
        data |= {"content": "\n".join(texts), "data": "", "mime_type": "", "metadata": "", "is_error": message.is_error}
        for piece in media[:1]:
            data |= {"data": getattr(piece, "data", None) or "", "mime_type": getattr(piece, "mime_type", None) or ""}
        if media[1:]:
            detail = f"{TITLE} stores one picture for each result"
            draft.notes.add(ChangeCode.MEDIA_OMITTED, ("messages", at), Loss.CONTENT, detail)
        return [{"type": "tool_result", "data": data}]
    parts = _texts(texts, is_own=is_own)
    for piece in media:
        address = getattr(piece, "url", None)
        if (content := getattr(piece, "data", None)) is not None:
            named = {"Path": getattr(piece, "name", None) or "", "MIMEType": getattr(piece, "mime_type", None) or ""}
            parts.append({"type": "binary", "data": {**named, "Data": content}})
        elif address is not None:
            parts.append({"type": "image_url", "data": {"url": address}})
    return parts
