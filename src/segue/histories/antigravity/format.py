"""The record of Antigravity: the transcript that its command line keeps of a conversation.

Facts (two other readers of it; 2026-11-18; not run, the form of the steps of tools is not certain):
- Every line is a step. `USER_EXPLICIT` steps are the user's; their words are inside `<USER_REQUEST>`, the rest of the
  content is the program's. `SYSTEM` steps are the program's.
- A `MODEL` step of the type `PLANNER_RESPONSE` is an answer. The steps of the model after it are the results of its
  calls, in their order: there are no ids. A failed one has `error`.
- The conversation is named by the folder of the transcript. No model is named.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, refuse_branch
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, first_objects, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog
from segue.histories.kit.unread import note_unread, read_list

NAME: Final = "antigravity"
_SYSTEM: Final = "system step"
KNOWN_RECORDS: Final = frozenset({_SYSTEM})
_REQUEST: Final = re.compile(r"<USER_REQUEST>\n?(.*?)\n?</USER_REQUEST>\n?", re.DOTALL)
_ID: Final = re.compile(r"([^/]+)/\.system_generated/")


def read(source: Source, view: View) -> History:
    """Read one conversation.

    Raises:
        LoadError: the file has no step.
    """
    refuse_branch(view, "Antigravity")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    log, waiting = TurnLog(NAME), list[str]()
    for index, (line, step) in enumerate(decode_objects(source.data or b"", notes)):
        since, time = notes.left_out, milliseconds_of(step.get("created_at"))
        owner, kind = text_of(step.get("source")) or "unknown", text_of(step.get("type"))
        if owner == "USER_EXPLICIT":
            made: list[object] = [*_ask(log, step, time)]
        elif owner == "MODEL" and (kind == "PLANNER_RESPONSE" or step.get("tool_calls") or not waiting):
            pieces = _pieces(step, index, line.number, notes)
            log.close_answer()
            log.reply(pieces, time)
            waiting = [piece.id for piece in pieces if piece.kind == "toolCall"]
            made = [*pieces]
        elif owner == "MODEL":
            failed = text_of(step.get("error"))
            content = [TextContent(text=text) for text in dict.fromkeys((text_of(step.get("content")), failed)) if text]
            log.answer(waiting.pop(0), content, time, is_error=failed is not None)
            made = [*content]
        else:
            name = _SYSTEM if owner == "SYSTEM" else owner
            notes.record(name, line.number, len(line.data), step if notes.keeps else None)
            continue
        note_unread(step, made, line.number, notes, since=since)
    messages = log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no step of Antigravity")
    return finish_history(NAME, notes, messages, session_id=_id_of(source.path or source.name))


def _id_of(name: str) -> str | None:
    found = _ID.search(name)
    return found[1] if found else None


def _ask(log: TurnLog, step: dict[str, Any], time: int | None) -> list[UserContent]:
    """Add the words of the user, and before them what the program wrote around them."""
    content = text_of(step.get("content")) or ""
    words = _REQUEST.findall(content)
    rest = _REQUEST.sub("", content).strip() if words else ""
    added = [TextContent(text=rest)] if rest else []
    asked = [TextContent(text="\n".join(words))] if words else [TextContent(text=content)] if content else []
    log.ask(added, time, own=True)
    log.ask(asked, time)
    return [*added, *asked]


def _pieces(step: dict[str, Any], index: int, number: int, notes: Notes) -> list[AssistantContent]:
    """Return the content of an answer; its calls have no ids, so the place of the step among the steps names them."""
    pieces: list[AssistantContent] = []
    if words := text_of(step.get("thinking")):
        pieces.append(ThinkingContent(thinking=words))
    if text := text_of(step.get("content")):
        pieces.append(TextContent(text=text))
    for at, call in enumerate(read_list(step.get("tool_calls"), "tool_calls", number, notes)):
        pieces.append(make_call(f"call_{index}_{at}", call.get("name"), call.get("args", call)))
    return pieces


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a conversation by the beginning of its transcript."""
    if not any("step_index" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, _id_of(excerpt.name) or excerpt.name)
    if found is None or excerpt.whole:
        return found
    return replace(found, updated=excerpt.modified, messages=None)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Antigravity",
    place=Place(folder=".gemini/antigravity-cli", patterns=("brain/*/.system_generated/logs/transcript.jsonl",)),
    source="two other readers of its transcripts",
    read_on="2026-11-18",
)
