"""The record of ATIF: a trajectory with an agent and steps.

Steps of ATIF, the trajectory format of Harbor.

Facts (atif 1.8.0, 2026-11-15):
- A step of the agent holds its message, reasoning, calls, and the results in `observation`. `extra` is the only place
  for further data; any other unknown field is refused.
- Images are named by a path, so their bytes are not in the file.
- `step_id` counts from 1. `metrics.prompt_tokens` includes cached tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import AssistantContent, ImageContent, TextContent, ThinkingContent, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
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
    note_signatures,
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


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a step needs nothing around it
    step = run[0]
    content = _read_content(step.get("message"))
    time = milliseconds_of(step.get("timestamp"))
    match text_of(step.get("source")):
        case "system":
            return [SystemMessage(content=tuple(piece for piece in content if isinstance(piece, TextContent)))]
        case "user":
            return [UserMessage(content=content, timestamp=time)]
        case "agent":
            return _read_agent(step, content, time)
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


def _read_agent(step: Entry, content: tuple[UserContent, ...], time: int | None) -> list[Message]:
    extra = object_of(step.get("extra"))
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
    origin = marked_origin(find_origin(text_of(step.get("model_name")) or ""), extra)
    results = objects_of(object_of(step.get("observation")).get("results"))
    return [set_origin(message, origin), *(_read_result(each, time) for each in results)]


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
            entry = {"source": first.role, "message": _write_text(first, writing)}
        if results:
            entry["observation"] = {"results": results}
        time = None if isinstance(first, SystemMessage) else first.timestamp
        entries.append(entry if time is None else {"timestamp": iso_of(time), **entry})
    return entries


def _write_text(message: Message, writing: Writing) -> str:
    texts: list[str] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            texts.append(piece.text)
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
    return {**result, "extra": {"is_error": True}} if message.is_error else result


def _write_agent(message: AssistantMessage, writing: Writing) -> Entry:
    thoughts = [piece for piece in message.content if piece.kind == "thinking"]
    entry: Entry = {"source": "agent"}
    if message.model:
        entry["model_name"] = message.model
    entry["message"] = _write_text(message, writing)
    extra: Entry = dict(origin_mark(message, find_origin(message.model)))
    if thoughts:
        entry["reasoning_content"] = "\n".join(piece.thinking for piece in thoughts)
        if len(thoughts) == 1 and thoughts[0].thinking and thoughts[0].thinking_signature is not None:
            extra[_SIGNATURE] = thoughts[0].thinking_signature
        elif len(thoughts) > 1 or not thoughts[0].thinking:
            note_signatures(message, writing, TITLE)
            writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for reasoning")
    if any(call.thought_signature is not None for call in message.tool_calls()):
        note_signatures(message, writing, TITLE)
    if calls := message.tool_calls():
        entry["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": dict(call.arguments)} for call in calls
        ]
    if message.usage is not None:
        entry["metrics"] = _USAGE.write(message.usage)
    return {**entry, **({"extra": extra} if extra else {})}


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
    model = next((entry["model_name"] for entry in reversed(entries) if "model_name" in entry), None)
    agent = {"name": "segue", "version": "1", **({} if model is None else {"model_name": model})}
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
