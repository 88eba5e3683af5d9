"""The record of steps of smolagents: `agent.memory.get_full_steps()`, `get_succinct_steps()` or a result of a run.

Facts (smolagents 1.26.0, its own dump; 2026-11-18):
- The first item is the task, the others steps: what the model wrote, its calls, and one text of observations for all
  of them, which is read as the result of the first call. The error of a step is reported, or the result if there is no
  other.
- A call of `final_answer` is the answer; that of an agent that writes code is the `action_output` of its last step, and
  the `output` of a run (`RunResult`). `model_input_messages` repeats everything before, `model_output_message` the
  step.
"""

from __future__ import annotations

from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ToolCall
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, load_value, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog
from segue.histories.kit.unread import note_unread

NAME: Final = "smolagents"
_ANSWER: Final = "final_answer"
_COPIES: Final = ("model_input_messages", "model_output_message", "action_output")


def read(source: Source, view: View) -> History:
    """Read the steps of one run.

    Raises:
        LoadError: there is no task and no step.
    """
    refuse_branch(view, "smolagents")
    notes = Notes(keep=view.keep_records)
    value = load_value(source)
    whole = object_of(value)
    listed = whole.get("steps", value)
    log, final = TurnLog(NAME), set[str]()
    steps = cast("list[object]", listed) if isinstance(listed, list) else []
    for number, item in enumerate(steps, 1):
        step, since = object_of(item), notes.left_out
        made = _take(log, step, number, notes, final)
        note_unread({"step": without(step, _COPIES) if step else item}, made, number, notes, since=since)
    if whole.get("output") is not None and json_text(whole["output"]) not in final:
        log.reply([TextContent(text=json_text(whole["output"]))], None)
    messages = log.messages()
    if not messages:
        raise LoadError("no conversation found: there is no task and no step of smolagents")
    items = ((number, without(object_of(item), _COPIES)) for number, item in enumerate(steps, 1))
    return finish_history(NAME, notes, messages, given=items)


def _take(log: TurnLog, step: dict[str, Any], number: int, notes: Notes, final: set[str]) -> list[object]:
    """Read one step and return what was made of it; its answer is added to `final`."""
    time = milliseconds_of(object_of(step.get("timing")).get("start_time"))
    asked = text_of(step.get("task"))
    if asked is not None:
        log.ask([TextContent(text=asked)], time)
        return [asked]
    found: list[AssistantContent] = [
        TextContent(text=text) for key in ("plan", "model_output") if (text := _words(step.get(key)))
    ]
    calls: list[ToolCall] = []
    answers: list[str] = []
    for given in objects_of(step.get("tool_calls")):
        function = object_of(given.get("function"))
        call = make_call(given.get("id"), function.get("name"), function.get("arguments", given))
        if call.name == _ANSWER and "answer" in call.arguments:
            answers.append(json_text(call.arguments["answer"]))
        else:
            calls.append(call)
    found += calls
    found += (TextContent(text=answer) for answer in answers)
    log.reply(found, time)
    observed, failed = text_of(step.get("observations")), text_of(object_of(step.get("error")).get("message"))
    if calls and (observed or failed):
        log.answer(calls[0].id, [TextContent(text=observed or failed or "")], time, is_error=failed is not None)
    if failed and observed:
        notes.record("error of a step", number, len(failed), step.get("error"))
    elif observed and not calls and observed not in answers:
        log.ask([TextContent(text=observed)], time)
    if step.get("is_final_answer") is True and not answers and step.get("action_output") is not None:
        answers.append(json_text(step["action_output"]))
        log.reply([TextContent(text=answers[0])], time)
    final.update(answers)
    return [*found, observed, failed, step.get("code_action")]


def _words(value: object) -> str | None:
    """Return what the model wrote, which is a text or a list of texts."""
    if isinstance(value, str):
        return value or None
    return "\n".join(text for part in objects_of(value) if (text := text_of(part.get("text")))) or None


FORMAT: Final = Format(
    name=NAME,
    known_records=frozenset({"error of a step"}),
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="steps of smolagents",
    reads_lines=False,
    source="smolagents 1.26.0, its own dump",
    read_on="2026-11-18",
)
