"""The record of Amp: a thread as its command line exports it, and as older versions stored it.

Facts (other readers' code and counts over real threads; the help text of the program; 2026-11-18):
- A thread has `v`, `id` (mostly `T-...`), `created` and `messages`, each with a `messageId`. Newer versions keep
  threads on the server; `amp threads export ID` writes the same document.
- Content is that of Anthropic, except results: `toolUseID` with `run {status, result, error}`. `result` is a text, a
  number, a list, or an object with `output`, `content` or `diff`. Older threads have Anthropic's own results.
- `usage` of an answer has the model. The folder is a percent-encoded address in `env.initial.trees`.
"""

from __future__ import annotations

from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from segue.conversation.messages import Message, Usage
from segue.errors import LoadError
from segue.histories.kit.anthropic_turns import read_turn
from segue.histories.kit.documents import describe_document, finish_history, json_text, load_value, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "amp"
KNOWN_RECORDS: Final = frozenset({"call without an end"})
_OWN: Final = ("complete", "provider", "startTime", "finalTime", "metadata", "blockState", "openAIReasoning")
"""Fields of blocks that only the program has."""
_FAILED: Final = frozenset({"error", "cancelled", "rejected-by-user"})


def read(source: Source, view: View) -> History:
    """Read one thread.

    Raises:
        LoadError: the document has no messages of Amp.
    """
    refuse_branch(view, "Amp")
    thread = object_of(load_value(source))
    given = thread.get("messages")
    if not isinstance(given, list):
        raise LoadError("no conversation found: the document has no `messages` of Amp")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    messages: list[Message] = []
    for number, item in enumerate(cast("list[object]", given), 1):
        fields = object_of(item)
        if fields:
            messages += _read(fields, number, notes)
        else:
            notes.unreadable(number, "a message is an object")
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(thread.get("id")),
        title=text_of(thread.get("title")),
        cwd=_folder(thread),
        created=milliseconds_of(thread.get("created")),
        extra=without(thread, ("messages",)),
        given=(
            (number, object_of(item).get("content", item)) for number, item in enumerate(cast("list[object]", given), 1)
        ),
    )


def _read(fields: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    since = notes.left_out
    content, usage = fields.get("content"), object_of(fields.get("usage"))
    listed: list[object] = cast("list[object]", content) if isinstance(content, list) else [content] if content else []
    blocks = [_block(object_of(each) or {"type": "text", "text": each}, number, notes) for each in listed]
    model = text_of(usage.get("model"))
    time = milliseconds_of(usage.get("timestamp")) or milliseconds_of(object_of(fields.get("meta")).get("sentAt"))
    made = read_turn(
        {"role": fields.get("role"), "content": [block for block in blocks if block is not None]},
        number,
        notes,
        origin=None if model is None else find_origin(model),
        time=time,
        usage=_usage(usage),
    )
    shown = [without(object_of(each), ("run",)) if object_of(each) else each for each in listed]
    results = [block.get("content") for block in blocks if block is not None and block.get("type") == "tool_result"]
    note_unread({"content": shown}, [[message.content for message in made], results], number, notes, since=since)
    return [with_envelope(message, NAME, without(fields, ("content", "role"))) for message in made]


def _block(block: dict[str, Any], number: int, notes: Notes) -> dict[str, Any] | None:
    """Write a block as Anthropic does; None for a result that has not come yet."""
    if block.get("type") != "tool_result" or "run" not in block:
        source = object_of(block.get("source"))
        if "mediaType" in source and "media_type" not in source:
            block = {**block, "source": {**without(source, ("mediaType",)), "media_type": source["mediaType"]}}
        return without(block, _OWN)
    run = object_of(block.get("run"))
    status = text_of(run.get("status")) or "done"
    if status not in {"done", *_FAILED} and "result" not in run:
        notes.record("call without an end", number, len(json_text(block)), block if notes.keeps else None)
        return None
    text = _text(run.get("result"))
    if status in _FAILED:
        error = run.get("error")
        text = text_of(object_of(error).get("message")) or (json_text(error) if error else text or status)
    return {
        "type": "tool_result",
        "tool_use_id": block.get("toolUseID") or block.get("tool_use_id") or "",
        "content": text,
        "is_error": status in _FAILED,
    }


def _text(result: object) -> str:
    """Return what a tool gave as a text."""
    fields = object_of(result)
    for name in ("output", "content", "diff"):
        if isinstance(fields.get(name), str):
            return fields[name]
    parts = objects_of(result)
    if parts and all(isinstance(part.get("text"), str) for part in parts):
        return "\n".join(part["text"] for part in parts)
    return "" if result is None else json_text(result)


def _usage(given: dict[str, Any]) -> Usage | None:
    read, written = integer_of(given.get("cacheReadInputTokens")), integer_of(given.get("cacheCreationInputTokens"))
    whole = integer_of(given.get("inputTokens")) + read + written
    return usage_of(whole, given.get("outputTokens"), cache_read=read, cache_write=written)


def _folder(thread: dict[str, Any]) -> str | None:
    trees = objects_of(object_of(object_of(thread.get("env")).get("initial")).get("trees"))
    address = text_of(trees[0].get("uri")) if trees else None
    try:
        return None if address is None else unquote(urlsplit(address).path) or None
    except ValueError:
        return None


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a thread by its file."""
    return describe_document(excerpt, NAME, read, excerpt.name.rpartition("/")[2].removesuffix(".json"))


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Amp",
    place=Place(folder=".local/share/amp", variables=("XDG_DATA_HOME/amp",), patterns=("threads/T-*.json",)),
    reads_lines=False,
    source="readers of other projects, with counts over real threads",
    read_on="2026-11-18",
)
