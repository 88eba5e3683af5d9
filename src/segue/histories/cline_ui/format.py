"""The record of `ui_messages.json`: what the screen of Cline, Roo Code and Kilo Code showed.

Facts (readers of other projects and their fixtures, 2026-11-18):
- A list of `{ts, type, say | ask, text}`. `task`, `user_feedback` and `user_feedback_diff` are the person's words;
  `text`, `completion_result`, `plan_mode_respond` and `reasoning` the model's. `partial` marks an unfinished copy.
- `tool` has the call as JSON text, `command` as the command itself; `command_output` and `mcp_server_response` are
  results. Those of file tools are not in the file, and no call has an id.
- `api_req_started` and others are bookkeeping. The whole conversation is in `api_conversation_history.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, load_value, parse_object, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, task_id, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, set_origin
from segue.histories.kit.pieces import image_of, make_call, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.projection.report import ChangeCode, Loss

NAME: Final = "cline-ui"
KNOWN_RECORDS: Final = frozenset({
    "api_req_started", "api_req_finished", "api_req_retried", "api_req_deleted", "checkpoint_created", "task_progress",
    "resume_task", "resume_completed_task", "shell_integration_warning", "mcp_server_request_started", "partial",
    "empty", "completion_result", "deleted_api_reqs", "checkpoint_saved",
})  # fmt: skip
_PERSON: Final = frozenset({"task", "user_feedback", "user_feedback_diff"})
_MODEL: Final = frozenset({"text", "completion_result", "plan_mode_respond", "followup"})
_CALLS: Final[Mapping[str, str]] = {"command": "command", "browser_action": "action", "use_mcp_server": "request"}
"""Kinds of calls whose text is the one argument, and its name."""
_KEYS: Final = frozenset({
    "ts", "type", "say", "ask", "text", "images", "files", "partial", "modelInfo", "conversationHistoryIndex",
    "conversationHistoryDeletedRange", "lastCheckpointHash", "isCheckpointCheckedOut", "isOperationOutsideWorkspace",
    "commandCompleted",
})  # fmt: skip
_RESULTS: Final = frozenset({"command_output", "mcp_server_response", "browser_action_result"})


class _Screen:
    """Makes messages of what was shown, in its order."""

    def __init__(self, notes: Notes) -> None:
        self.messages: list[Message] = []
        self._notes: Final = notes
        self._origin: Origin = UNKNOWN
        self._pieces: list[AssistantContent] = []
        self._time: int | None = None
        self._open: str | None = None

    def take(self, item: dict[str, Any], number: int) -> None:
        """Read one entry."""
        kind = text_of(item.get(text_of(item.get("type")) or "")) or "unknown"
        text, time = text_of(item.get("text")) or "", milliseconds_of(item.get("ts"))
        info = object_of(item.get("modelInfo"))
        if name := text_of(info.get("modelId")):
            self.close()
            self._origin = find_origin(name, text_of(info.get("providerId")) or "")
        if item.get("partial") is True:
            self._record("partial", item, number)
        elif kind in _PERSON:
            self.close()
            images = [image_of(url=each) for each in _list(item.get("images"))]
            content = (*((TextContent(text=text),) if text else ()), *(each for each in images if each is not None))
            self.messages.append(with_envelope(UserMessage(content=content, timestamp=time), NAME, {"kind": kind}))
        elif not text:
            self._record("empty" if _is_empty(item) else "text of another form", item, number)
        elif kind == "reasoning":
            self._add(ThinkingContent(thinking=text), time)
        elif kind in _MODEL:
            given = parse_object(text)
            self._add(TextContent(text=text_of(given.get("response")) or text_of(given.get("question")) or text), time)
        elif kind == "tool" or kind in _CALLS:
            given = parse_object(text) or {_CALLS.get(kind, "text"): text}
            self._open = f"call_{number}"
            self._add(make_call(self._open, text_of(given.get("tool")) or kind, given), time)
        elif kind in _RESULTS:
            call_id, content = self._open or "", (TextContent(text=text),)
            last = None if self._pieces or not self.messages else self.messages[-1]
            self.close()
            if isinstance(last, ToolResultMessage) and last.tool_call_id == call_id:
                self.messages[-1] = replace(last, content=(*last.content, *content))
                return
            self.messages.append(ToolResultMessage(tool_call_id=call_id, tool_name="", content=content, timestamp=time))
        else:
            self._record(kind, item, number)

    def _add(self, piece: AssistantContent, time: int | None) -> None:
        self._pieces.append(piece)
        self._time = self._time if self._time is not None else time

    def _record(self, kind: str, item: dict[str, Any], number: int) -> None:
        self._notes.record(kind, number, len(str(item.get("text"))), item if self._notes.keeps else None)

    def close(self) -> None:
        """End the answer."""
        if self._pieces:
            answer = AssistantMessage(
                content=tuple(self._pieces), stop_reason=stop_of(None, self._pieces), timestamp=self._time
            )
            self.messages.append(with_envelope(set_origin(answer, self._origin), NAME, {}))
        self._pieces, self._time = [], None


def _is_empty(item: dict[str, Any]) -> bool:
    return isinstance(item.get("text", ""), str) and item.keys() <= _KEYS


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def read(source: Source, view: View) -> History:
    """Read what was shown.

    Raises:
        LoadError: the file is not a list of entries.
    """
    refuse_branch(view, "Cline")
    value = load_value(source)
    if not isinstance(value, list):
        raise LoadError("no conversation found: the file is not a list of what the screen of Cline showed")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    screen = _Screen(notes)
    for number, item in enumerate(cast("list[object]", value), 1):
        fields = object_of(item)
        if fields:
            screen.take(fields, number)
        else:
            notes.unreadable(number, "an entry is an object")
    screen.close()
    detail = "results of file tools are not in it; api_conversation_history.json of the same task has them"
    notes.add(ChangeCode.FILE_MISSING, ("messages",), Loss.CONTENT, detail)
    return finish_history(
        NAME,
        notes,
        screen.messages,
        session_id=task_id(source.name) or task_id(source.path or ""),
        given=enumerate(cast("list[object]", value), 1),
    )


FORMAT: Final = Format(
    name=NAME,
    kind="export",
    known_records=KNOWN_RECORDS,
    read=read,
    samples=read_samples(__package__),
    title="the screen of Cline",
    reads_lines=False,
    source="readers of other projects and their fixtures",
    read_on="2026-11-18",
)
