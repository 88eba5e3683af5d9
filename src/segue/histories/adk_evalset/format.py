"""The record of eval sets of Google ADK: `*.evalset.json` and `*.test.json`.

Facts (google-adk 2.13.0: types of eval cases; 2026-11-18; not run):
- Each case is a conversation of invocations: what the user said, calls in a flat list, and the final answer. Newer
  files have the results, and `invocation_events` with all contents in order. Names are in snake or in camel case.
- A case with a `conversation_scenario` has no conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.errors import LoadError
from segue.histories.kit.documents import choose, conversations_of, finish_history, json_text, load_value, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.framework import items_of
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog, text_and_media
from segue.histories.kit.unread import note_unread

NAME: Final = "adk-evalset"


def _get(fields: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a field by its name in snake case, or in camel case."""
    first, *others = name.split("_")
    return fields.get(name, fields.get(first + "".join(map(str.capitalize, others))))


def _cases(source: Source) -> list[dict[str, Any]]:
    return [
        case
        for value in conversations_of(load_value(source))
        for case in objects_of(_get(value, "eval_cases"))
        if isinstance(_get(case, "conversation"), list)
    ]


def _id_of(case: dict[str, Any]) -> str | None:
    return text_of(_get(case, "eval_id"))


def _time_of(case: dict[str, Any]) -> int | None:
    return milliseconds_of(_get(case, "creation_timestamp"))


def read(source: Source, view: View) -> History:
    """Read one case: the one that was asked for, or the newest.

    Raises:
        LoadError: no case has a conversation.
    """
    refuse_branch(view, "an eval set")
    notes = Notes(keep=view.keep_records)
    case = choose(_cases(source), source.session, notes, _id_of, _time_of)
    log = TurnLog(NAME)
    for number, invocation in enumerate(items_of(_get(case, "conversation")), 1):
        since, made = notes.left_out, list[object]()
        _take(log, object_of(invocation), made)
        note_unread({"invocation": invocation}, made, number, notes, since=since)
    messages = log.messages()
    if not messages:
        raise LoadError("no conversation found: the case has no invocation")
    return finish_history(NAME, notes, messages, session_id=_id_of(case), created=_time_of(case))


def _take(log: TurnLog, invocation: dict[str, Any], made: list[object]) -> None:
    """Read one invocation; what was read is added to `made`."""
    time = milliseconds_of(_get(invocation, "creation_timestamp"))
    asked = text_and_media(object_of(_get(invocation, "user_content")).get("parts"))
    log.ask(asked, time)
    data = object_of(_get(invocation, "intermediate_data"))
    events = objects_of(_get(data, "invocation_events"))
    made += asked
    for event in events:
        model = text_of(_get(event, "model_version"))
        _parts(log, object_of(event.get("content")), time, made, model)
    if not events:
        for entry in items_of(_get(data, "intermediate_responses")):
            _parts(log, {"parts": items_of((items_of(entry) or [None])[-1])}, time, made)
        uses, responses = objects_of(_get(data, "tool_uses")), objects_of(_get(data, "tool_responses"))
        _parts(log, {"parts": [{"functionCall": call} for call in uses]}, time, made)
        _parts(log, {"parts": [{"functionResponse": each} for each in responses]}, time, made)
        if not responses:
            log.close_answer()  # the results are not in the file; the answer came after them
    _parts(log, object_of(_get(invocation, "final_response")), time, made)


def _parts(
    log: TurnLog, content: dict[str, Any], time: int | None, made: list[object], model: str | None = None
) -> None:
    """Read the parts of a content of the model, or of results."""
    for part in objects_of(content.get("parts")):
        call, result = object_of(_get(part, "function_call")), object_of(_get(part, "function_response"))
        found: list[AssistantContent] = []
        if call:
            found = [make_call(call.get("id"), call.get("name"), call.get("args"))]
        elif result:
            text = json_text(result.get("response"))
            log.answer(text_of(result.get("id")) or "", [TextContent(text=text)], time)
            made.append(text)
        elif isinstance(text := part.get("text"), str) and text:
            found = [ThinkingContent(thinking=text) if part.get("thought") is True else TextContent(text=text)]
        made += found
        if found:
            log.reply(found, time, find_origin(model, "google") if model else UNKNOWN)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the cases.

    Raises:
        LoadError: it cannot be read.
    """
    return tuple(
        Session(format=NAME, id=_id_of(case) or "", path=source.path or source.name, updated=_time_of(case))
        for case in _cases(source)
    )


FORMAT: Final = Format(
    name=NAME,
    read=read,
    list=list_sessions,
    kind="export",
    samples=read_samples(__package__),
    title="eval set of Google ADK",
    reads_lines=False,
    source="google-adk 2.13.0: types",
    read_on="2026-11-18",
)
