"""The record of ATIF: a trajectory with an agent and steps.

Steps of ATIF, the trajectory format of Harbor.

Facts (atif 1.8.0, 2026-11-15):
- A step of the agent holds its message, reasoning, calls, and the results in `observation`. `extra` is the only place
  for further data; any other unknown field is refused.
- Images are named by a path, so their bytes are not in the file.
- `extra.bound_state` of a step or a result has what binds it (`kit.bound_state`).
- `step_id` counts from 1. The model of a step that names none is `agent.model_name`. `metrics.prompt_tokens` includes
  cached tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import AssistantContent, ImageContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.histories.kit.bound_state import BOUND_STATE, state_of, with_bound_state
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, runs_of
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    framework_format,
    from_package,
    give_json,
    items_of,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    is_media,
    make_call,
    note_unsupported,
    shown,
    string_of,
    texts_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, milliseconds_of
from segue.histories.kit.templates import Template
from segue.projection.report import ChangeCode, Loss

NAME: Final = "atif"
TITLE: Final = "ATIF"
_SIGNATURE: Final = "thinking_signature"
_USAGE: Final = Template(
    "usage", {"prompt_tokens": "$whole_input", "completion_tokens": "$output", "cached_tokens": "$cache_read?"}
)


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    step = run[0]
    extra = object_of(step.get("extra"))
    default = text_of(object_of(reading.document.get("agent")).get("model_name")) or ""
    messages = _read_step(step, extra, find_origin(text_of(step.get("model_name")) or default))
    first = [_restored(message, extra, reading) for message in messages[:1]]
    results = objects_of(object_of(step.get("observation")).get("results"))
    others = zip(messages[1:], results, strict=False)
    return [*first, *(_restored(each, object_of(result.get("extra")), reading) for each, result in others)]


def _restored(message: Message, extra: Mapping[str, Any], reading: Reading) -> Message:
    return with_bound_state(message, extra.get(BOUND_STATE), reading.notes, ("steps", reading.line - 1))


def _read_step(step: Entry, extra: Mapping[str, Any], origin: Origin) -> list[Message]:
    content = _read_content(step.get("message"))
    time = milliseconds_of(step.get("timestamp"))
    match text_of(step.get("source")):
        case "system":
            return [SystemMessage(content=tuple(piece for piece in content if isinstance(piece, TextContent)))]
        case "user":
            return [UserMessage(content=content, timestamp=time)]
        case "agent":
            return _read_agent(step, extra, content, time, origin)
        case _:
            return []


def _read_content(value: object) -> tuple[UserContent, ...]:
    if isinstance(value, str):
        return (TextContent(text=value),) if value else ()
    found: list[UserContent] = []
    for part in objects_of(items_of(value)):
        source = object_of(part.get("source"))
        if isinstance(part.get("text"), str):
            found.append(TextContent(text=part["text"]))
        elif path := text_of(source.get("path")):
            found.append(ImageContent(url=path, mime_type=text_of(source.get("media_type"))))
    return tuple(found)


def _read_agent(
    step: Entry, extra: Mapping[str, Any], content: tuple[UserContent, ...], time: int | None, origin: Origin
) -> list[Message]:
    pieces: list[AssistantContent] = []
    if words := text_of(step.get("reasoning_content")):
        pieces.append(ThinkingContent(thinking=words, thinking_signature=string_of(extra.get(_SIGNATURE))))
    pieces += [piece for piece in content if isinstance(piece, TextContent)]
    calls = [
        make_call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments"))
        for call in objects_of(step.get("tool_calls"))
    ]
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    message = AssistantMessage(
        content=(*pieces, *calls), usage=_USAGE.read(object_of(step.get("metrics"))), stop_reason=stop, timestamp=time
    )
    results = objects_of(object_of(step.get("observation")).get("results"))
    return [set_origin(message, marked_origin(origin, extra)), *(_read_result(each, time) for each in results)]


def _read_result(result: Mapping[str, Any], time: int | None) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=text_of(result.get("source_call_id")) or "",
        content=_read_content(result.get("content")),
        is_error=object_of(result.get("extra")).get("is_error") is True,
        timestamp=time,
    )


_WITH_RESULTS: Final = frozenset({"assistant", "toolResult"})


def _join(messages: Sequence[Message]) -> list[list[Message]]:
    """Group a reply with the results that follow it into one run; everything else is alone."""
    return runs_of(messages, lambda before, each: each.role == "toolResult" and before.role in _WITH_RESULTS)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in _join(messages):
        first = run[0]
        results = [_write_result(each, writing) for each in run if isinstance(each, ToolResultMessage)]
        entry: Entry
        if isinstance(first, AssistantMessage):
            entry = _write_agent(first, writing)
        elif isinstance(first, ToolResultMessage):
            entry = {"source": "agent", "message": ""}
        else:
            entry = {"source": first.role, "message": _write_text(first, writing), **_extra(first)}
        if results:
            entry["observation"] = {"results": results}
        time = None if isinstance(first, SystemMessage) else first.timestamp
        entries.append(entry if time is None else {"timestamp": iso_of(time), **entry})
    return entries


def _extra(message: Message, **others: object) -> Entry:
    """Return `extra` of a step or a result, if there is something for it."""
    state = state_of(message)
    made = others if state is None else {**others, BOUND_STATE: state}
    return {"extra": made} if made else {}


def _write_text(message: Message, writing: Writing) -> str:
    texts: list[str] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            texts += [piece.text] if piece.text else []
        elif is_media(piece):
            note_unsupported(message, writing, piece, TITLE)
    if len(texts) > 1:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each step")
    return "\n".join(texts)


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    for piece in shown(message, writing):
        if is_media(piece):
            note_unsupported(message, writing, piece, TITLE)
    result: Entry = {"source_call_id": message.tool_call_id, "content": texts_of(message)}
    if writing.call_of(message) is None:
        writing.note(message, ChangeCode.RESULT_ORPHANED, Loss.NONE, f"{TITLE} refuses a result without a call")
        del result["source_call_id"]
    return {**result, **_extra(message, **({"is_error": True} if message.is_error else {}))}


def _write_agent(message: AssistantMessage, writing: Writing) -> Entry:
    thoughts = [piece for piece in message.content if piece.kind == "thinking"]
    entry: Entry = {"source": "agent"}
    if message.model:
        entry["model_name"] = message.model
    entry["message"] = _write_text(message, writing)
    others: Entry = dict(origin_mark(message, find_origin(message.model)))
    if thoughts:
        entry["reasoning_content"] = "\n".join(piece.thinking for piece in thoughts if piece.thinking)
        if len(thoughts) == 1 and thoughts[0].thinking and thoughts[0].thinking_signature is not None:
            others[_SIGNATURE] = thoughts[0].thinking_signature  # for readers that know this field alone
        elif len(thoughts) > 1:
            writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for reasoning")
    if calls := message.tool_calls():
        entry["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": dict(call.arguments)} for call in calls
        ]
    if message.usage is not None:
        entry["metrics"] = _USAGE.write(message.usage)
    return {**entry, **_extra(message, **others)}


def renumbered(entries: list[Entry]) -> list[Entry]:
    """Number the steps."""
    return [
        {"step_id": at, **{key: entry[key] for key in entry if key != "step_id"}} for at, entry in enumerate(entries, 1)
    ]


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=_join)


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one trajectory, one conversation
    whole = object_of(value)
    steps = list_of(whole.get("steps"))
    if not steps or "source" not in steps[0]:
        return None
    rest = {key: item for key, item in whole.items() if key != "steps"}
    return EntryList(steps, rest, id=text_of(whole.get("session_id")))


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:  # noqa: ARG001
    return renumbered(entries)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest:
        head = {key: rest[key] for key in ("schema_version", "session_id", "agent") if key in rest}
        return {**head, "steps": entries, **{key: rest[key] for key in rest if key not in head}}
    models = [entry.get("model_name") for entry in entries if entry["source"] == "agent"]
    # It is the model of every step that names none.
    named = {"model_name": models[-1]} if models and all(models) else {}
    agent = {"name": "segue", "version": "1", **named}
    return {"schema_version": "ATIF-v1.8", "session_id": draft.id, "agent": agent, "steps": entries}


def _plain(value: object) -> object:
    if not from_package(value, NAME):
        return value
    trajectory: Any = value
    return trajectory.to_json_dict()


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module(NAME)
    return types.Trajectory.model_validate(give_json(files))


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, complete=_complete, plain=_plain, file_name="trajectory.json"
)
FORMAT: Final = framework_format(
    FRAMEWORK, give=_give, samples=read_samples(__package__), source="atif 1.8.0, its own dump"
)
