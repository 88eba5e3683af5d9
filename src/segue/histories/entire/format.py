"""The record of compact transcripts of entire.io: one form for the sessions of all agents.

Facts (transcripts in public repositories of its maker; 2026-11-18; not run):
- Every line has `v`, `agent` and `cli_version`. Content of the user has no types; what the model called has its result
  inside the call. Thinking has no signature, and its words may be missing.
- The model and the session are not named.
"""

from __future__ import annotations

from typing import Any, Final

from segue.conversation.content import TextContent, ThinkingContent
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import decode_objects, object_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import make_call, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog, text_and_media
from segue.histories.kit.unread import note_unread, read_list

NAME: Final = "entire"


def read(source: Source, view: View) -> History:
    """Read one transcript.

    Raises:
        LoadError: the file has no line of a transcript.
    """
    refuse_branch(view, "entire.io")
    notes = Notes(keep=view.keep_records)
    log = TurnLog(NAME)
    for line, fields in decode_objects(source.data or b"", notes):
        since, kind = notes.left_out, text_of(fields.get("type")) or "unknown"
        content = fields.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else None
        if blocks is None:
            blocks = read_list(content, "content", line.number, notes)
        if kind == "user":
            made: list[object] = [*text_and_media(blocks)]
            log.ask(text_and_media(blocks), milliseconds_of(fields.get("ts")))
        elif kind == "assistant":
            made = _answer(log, blocks, milliseconds_of(fields.get("ts")))
        else:
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
            continue
        note_unread(fields, made, line.number, notes, since=since)
    messages = log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no line of a transcript of entire.io")
    return finish_history(NAME, notes, messages)


def _answer(log: TurnLog, blocks: list[dict[str, Any]], time: int | None) -> list[object]:
    """Read one answer, and the results inside its calls."""
    made: list[object] = []
    results: list[tuple[str, dict[str, Any]]] = []
    log.close_answer()
    for block in blocks:
        kind, text = block.get("type"), string_of(block.get("text"))
        if kind == "tool_use":
            call = make_call(block.get("id"), block.get("name"), block.get("input", block))
            log.reply([call], time)
            made.append(call)
            results += [(call.id, block)] if block.get("result") is not None else []
        elif kind == "thinking" and (words := text_of(block.get("thinking"))):
            log.reply([ThinkingContent(thinking=words)], time)
            made.append(words)
        elif text:
            log.reply([TextContent(text=text)], time)
            made.append(text)
    for call_id, block in results:
        result = object_of(block.get("result"))
        output = result.get("output", block["result"])
        content = [TextContent(text=json_text(output))] if output not in (None, "") else []
        log.answer(call_id, content, time, is_error=result.get("status") == "error")
        made += [content, result.get("file")]
    return made


FORMAT: Final = Format(
    name=NAME,
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="compact transcript of entire.io",
    source="entire.io: public transcripts",
    read_on="2026-11-18",
)
