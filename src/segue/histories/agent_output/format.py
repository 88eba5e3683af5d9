"""The record of what agents print.

Reads what agents print of one run: `claude -p --output-format stream-json`, `codex exec --json` and their like.

Facts (seen running unless stated; 2026-11-18):
- Claude Code 2.1.326: lines `assistant` and `user` with Anthropic messages. The blocks of one answer come one on each
  line, with the same `message.id`; results between them belong after it. `parent_tool_use_id` marks a sub-agent.
  `stream_event` and `result` repeat. `--output-format json` prints the last object, with `--verbose` a list of all.
- Qwen Code 0.24.4: the same with an id for each line: neighbouring lines up to the next one of the user are an answer.
- Codex 0.169.0: `item.completed` has the item, `item.started` and `item.updated` are earlier states of it. There are no
  ids of calls and no names of tools: the item has both. The log does not say which calls were parallel. A resumed run
  numbers its items from 0 again.
- Gemini CLI 0.61.0: `message` with `delta` is a piece of a text. Other programs add fields and leave out `init`.
- opencode 1.18.33: a line has a part; a tool is printed with its result when it ended. The ids of parts ascend in the
  order in which they began, and opencode itself sorts the parts of a message by id.
- Cursor (vendor's page) and Droid (a fixture): calls and results are separate lines.
- Cline 3.0.65: an `iteration` is an answer; thoughts end after the text that they led to.
- A run that was stopped has no last line. Most programs do not print the prompt: none is invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, cast, final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.anthropic_turns import read_turn
from segue.histories.kit.documents import finish_history, json_text, parse_text, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import decode_objects, integer_of, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, set_origin
from segue.histories.kit.pieces import make_call, stop_of, string_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "agent-output"
KNOWN_RECORDS: Final = frozenset({
    "system", "result", "stream_event", "rate_limit_event", "tool_progress", "auth_status", "keep_alive",
    "thread.started", "turn.started", "turn.completed", "item.started", "item.updated",
    "init", "step_start", "step_finish", "step-start", "step-finish", "thinking", "completion",
    "hook_event", "agent_event", "run_result", "tool_call",
})  # fmt: skip
"""Kinds of lines that frame a run, or repeat what another line has."""
_FRAMES: Final = KNOWN_RECORDS - {"tool_call", "thinking", "completion"}
_CODEX_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": ("server", "tool", "arguments"),
    "collab_tool_call": ("tool", "prompt"),
    "web_search": ("query", "action"),
}
"""Items of Codex that are calls, and the fields that are their arguments."""
_CODEX_TEXTS: Final = frozenset({"agent_message", "reasoning", "todo_list", "plan", "error"})


@final
class _Run:
    """What was read so far: whole messages, and the answer that is being read."""

    def __init__(self, notes: Notes) -> None:
        self.notes: Final = notes
        self.messages: list[Message] = []
        self.id: str | None = None
        self.cwd: str | None = None
        self.version: str | None = None
        self.model: str | None = None
        self.key: object = None
        """What the pieces of one answer have in common; None where a piece after a result begins a new answer."""
        self.pieces: list[AssistantContent] = []
        self.results: dict[str, ToolResultMessage] = {}
        self.usage: Usage | None = None
        self.time: int | None = None
        self.items: dict[str, dict[str, Any]] = {}
        self.begun: dict[str, str] = {}
        """Texts that began and have not ended, as far as they were printed."""
        self.group = self.number = self.runs = 0
        self.program = ""

    def add(self, *pieces: AssistantContent, key: object = None, first: bool = False) -> None:
        """Add pieces of the answer with this key; `first` puts them before the others."""
        is_other = key is None or key != self.key
        if (self.results and is_other) or (self.pieces and key is not None and is_other):
            self.flush()
        self.key = key
        self.pieces[:0] = pieces if first else ()
        self.pieces += () if first else pieces

    def add_text(self, text: str, *, key: object = None, joined: bool = False) -> None:
        """Add a text; `joined` continues the one before it."""
        last = self.pieces[-1] if self.pieces and not self.results else None
        if joined and last is not None and last.kind == "text":
            self.pieces[-1] = TextContent(text=last.text + text)
        elif text:
            self.add(TextContent(text=text), key=key)

    def result(self, call_id: str, text: str, *, is_error: bool = False) -> None:
        """Add the result of a call; of two for one call the last one counts."""
        content = (TextContent(text=text),) if text else ()
        self.results[call_id] = ToolResultMessage(
            tool_call_id=call_id, tool_name="", content=content, is_error=is_error, timestamp=self.time
        )

    def ask(self, *messages: Message) -> None:
        """Add what the user wrote."""
        self.flush()
        self.messages += messages

    def has_call(self, call_id: str) -> bool:
        """Whether the answer that is being read has a call."""
        return any(piece.kind == "toolCall" and piece.id == call_id for piece in self.pieces)

    def flush(self) -> None:
        """End an answer: its results follow it, in the order of their calls."""
        if self.pieces:
            origin = find_origin(self.model) if self.model else UNKNOWN
            answer = AssistantMessage(
                content=tuple(self.pieces),
                stop_reason=stop_of(None, self.pieces),
                usage=self.usage,
                timestamp=self.time,
            )
            self.messages.append(with_envelope(set_origin(answer, origin), NAME, {"program": self.program}))
        order = [piece.id for piece in self.pieces if piece.kind == "toolCall"]
        ranked = sorted(self.results, key=lambda each: order.index(each) if each in order else len(order))
        self.messages += (self.results[each] for each in ranked)
        self.pieces, self.results, self.key, self.usage = [], {}, None, None


def read(source: Source, view: View) -> History:
    """Read one run.

    Raises:
        LoadError: no line of it is known.
    """
    refuse_branch(view, "an agent's output")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    run = _Run(notes)
    children: dict[str, int] = {}
    lines = list(_lines(source, notes))
    run.program, add = _find_program(fields for _, fields in lines)
    for number, fields in _in_parts_order(lines):
        run.number = number
        if parent := text_of(fields.get("parent_tool_use_id")):
            children[parent] = children.get(parent, 0) + 1
            notes.record("sub-agent", number, 0, fields if notes.keeps else None)
            continue
        run.time = milliseconds_of(fields.get("timestamp") or fields.get("ts")) or run.time
        since, count = notes.left_out, (len(run.messages), len(run.pieces), len(run.results))
        if not add(run, fields):
            kind = text_of(fields.get("type")) or text_of(fields.get("role")) or "unknown"
            notes.record(kind, number, 0, fields if notes.keeps else None)
        elif count == (len(run.messages), len(run.pieces), len(run.results)):
            note_unread(fields, [run.messages, run.pieces, list(run.results.values())], number, notes, since=since)
    if words := run.begun.pop("reasoning", None):
        run.add(ThinkingContent(thinking=words), key=run.group, first=True)
    run.add_text(run.begun.pop("text", ""), key=run.group)
    run.flush()
    if not run.messages:
        raise LoadError("no conversation found: no line has a message or a call of a program that segue knows")
    return finish_history(
        NAME,
        notes,
        run.messages,
        session_id=run.id,
        version=run.version,
        cwd=run.cwd,
        extra={"program": run.program},
        given=[(number, fields) for number, fields in lines if text_of(fields.get("type")) not in _FRAMES],
    )


def _lines(source: Source, notes: Notes) -> Iterable[tuple[int, dict[str, Any]]]:
    """Return the objects of lines, of a list, or the only one."""
    value = source.value
    if value is None and source.data is not None:
        start = source.data.lstrip()[:1]
        value = parse_text(source.data) if start in (b"[", b"{") else None
    if isinstance(value, (list, dict)):
        listed = [value] if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]
        return enumerate(objects_of(cast("object", listed)), 1)
    return ((line.number, fields) for line, fields in decode_objects(source.data or b"", notes))


_Add = Callable[[_Run, dict[str, Any]], bool]


def _find_program(lines: Iterable[dict[str, Any]]) -> tuple[str, _Add]:
    """Name the program that printed the lines, by the first line that only it prints."""
    for fields in lines:
        for program, (is_own, add) in _PROGRAMS.items():
            if is_own(fields):
                return program, add
    raise LoadError("no conversation found: the lines are of no program whose output segue knows")


def _anthropic(run: _Run, fields: dict[str, Any]) -> bool:
    """Read a line of Claude Code, Qwen Code or Amp."""
    run.id = run.id or text_of(fields.get("session_id"))
    kind = fields.get("type")
    if kind == "system":
        run.cwd, run.model = run.cwd or text_of(fields.get("cwd")), run.model or text_of(fields.get("model"))
        run.version = run.version or next(
            (text for name in ("claude_code_version", "qwen_code_version") if (text := text_of(fields.get(name)))), None
        )
        return False
    message = object_of(fields.get("message"))
    if kind == "result" and not run.messages and not run.pieces and (text := text_of(fields.get("result"))):
        run.model = run.model or next(iter(object_of(fields.get("modelUsage"))), None)
        run.add_text(text)  # the only object of `--output-format json`
        return True
    if kind not in ("assistant", "user") or not message:
        return False
    made = read_turn(message, run.number, run.notes, origin=None, time=run.time, usage=None)
    for each in made:
        if isinstance(each, AssistantMessage):
            own = message.get("id") if run.program != "Qwen Code" else f"answer {run.group}"
            run.model = text_of(message.get("model")) or run.model
            run.add(*each.content, key=own or None)
            run.usage = _usage(object_of(message.get("usage")))
        elif isinstance(each, ToolResultMessage):
            run.results[each.tool_call_id] = each
        elif each.content:
            run.ask(each)
    run.group += kind == "user"
    return True


def _usage(counts: Mapping[str, Any]) -> Usage | None:
    read, written = (integer_of(counts.get(f"cache_{name}_input_tokens")) for name in ("read", "creation"))
    whole = integer_of(counts.get("input_tokens")) + read + written
    return usage_of(whole, counts.get("output_tokens"), cache_read=read, cache_write=written)


def _codex(run: _Run, fields: dict[str, Any]) -> bool:
    kind, item = fields.get("type"), object_of(fields.get("item"))
    if kind == "thread.started":
        run.id = run.id or text_of(fields.get("thread_id"))
        run.flush()
        run.group += 1
        run.runs += 1
        run.items.clear()
        return False
    if kind == "turn.failed" or kind == "error":
        run.notes.unreadable(run.number, f"the run failed: {json_text(fields.get('error') or fields.get('message'))}")
        return True
    item_id, what = text_of(item.get("id")) or "", text_of(item.get("type")) or ""
    if kind in ("item.started", "item.updated"):
        if what in _CODEX_CALLS and (item_id not in run.items or "ended" in run.items[item_id]):
            _codex_call(run, item, item_id, what)
        elif what not in _CODEX_TEXTS and (item_id not in run.items or not what):
            run.notes.record("item of another form", run.number, 0, fields if run.notes.keeps else None)
        return False
    if kind != "item.completed":
        return False
    if what == "agent_message":
        _codex_step(run)
        run.add_text(text_of(item.get("text")) or "", key=run.group)
    elif what == "reasoning":
        _codex_step(run)
        run.add(ThinkingContent(thinking=text_of(item.get("text")) or ""), key=run.group)
    elif what in _CODEX_CALLS:
        if item_id not in run.items:
            _codex_call(run, item, item_id, what)
        name = run.items[item_id]["id"]
        run.items[item_id]["ended"] = True
        run.result(name, _codex_result(item), is_error=item.get("status") in ("failed", "declined"))
    else:
        run.notes.record(f"item {what}", run.number, 0, fields if run.notes.keeps else None)
    return True


def _codex_step(run: _Run) -> None:
    """Begin a new answer where a text or a thought follows calls: the log does not say which calls were parallel."""
    if any(piece.kind == "toolCall" for piece in run.pieces):
        run.flush()
        run.group += 1


def _codex_call(run: _Run, item: dict[str, Any], item_id: str, what: str) -> None:
    taken = {piece.id for message in run.messages if message.role == "assistant" for piece in message.tool_calls()}
    taken |= {piece.id for piece in run.pieces if piece.kind == "toolCall"}
    name = item_id if item_id not in taken else f"{item_id}_run_{run.runs}"  # a resumed run counts from 0 again
    name = name if name not in taken else f"{name}_{run.number}"
    run.items[item_id] = {"id": name}
    # Arguments at an unknown place stay with the call.
    arguments = {key: item[key] for key in _CODEX_CALLS[what] if key in item} or item
    called = text_of(item.get("tool")) if what == "mcp_tool_call" else None
    if called is not None:
        arguments = object_of(item.get("arguments"))
    run.add(make_call(name, called or what, arguments), key=run.group)


def _codex_result(item: dict[str, Any]) -> str:
    if "aggregated_output" in item:
        return string_of(item["aggregated_output"]) or ""
    if error := object_of(item.get("error")):
        return text_of(error.get("message")) or json_text(error)
    result = object_of(item.get("result"))
    texts = [text for part in objects_of(result.get("content")) if (text := text_of(part.get("text")))]
    return "\n".join(texts) or (json_text(result) if result else text_of(item.get("status")) or "")


def _gemini(run: _Run, fields: dict[str, Any]) -> bool:
    run.id, run.model = run.id or text_of(fields.get("session_id")), run.model or text_of(fields.get("model"))
    match fields.get("type"):
        case None if text_of(fields.get("response")):  # the only object of `--output-format json`
            run.model = run.model or next(iter(object_of(object_of(fields.get("stats")).get("models"))), None)
            run.add_text(fields["response"])
        case "message" if fields.get("role") == "user":
            run.ask(UserMessage.of(string_of(fields.get("content")) or "", timestamp=run.time))
        case "message":
            run.add_text(string_of(fields.get("content")) or "", joined=fields.get("delta") is True)
        case "tool_use":
            run.add(make_call(fields.get("tool_id"), fields.get("tool_name"), fields.get("parameters")))
        case "tool_result":
            error = object_of(fields.get("error"))
            text = string_of(fields.get("output")) or text_of(error.get("message")) or ""
            run.result(text_of(fields.get("tool_id")) or "", text, is_error=fields.get("status") == "error")
        case "error":
            run.notes.unreadable(run.number, f"the run reports an error: {json_text(fields.get('message'))}")
        case _:
            return False
    return True


def _in_parts_order(lines: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield lines with the parts of one message of opencode in the order in which they began."""

    def part_of(line: tuple[int, dict[str, Any]]) -> tuple[object, object]:
        part = object_of(line[1].get("part"))
        return part.get("messageID"), part.get("id")

    for message, group in groupby(lines, key=lambda line: part_of(line)[0]):
        listed = list(group)
        ids = [part_of(line)[1] for line in listed]
        is_sorted = message is not None and all(isinstance(each, str) for each in ids)
        yield from sorted(listed, key=lambda line: str(part_of(line)[1])) if is_sorted else listed


def _opencode(run: _Run, fields: dict[str, Any]) -> bool:
    run.id = run.id or text_of(fields.get("sessionID"))
    part = object_of(fields.get("part"))
    key = part.get("messageID")
    match fields.get("type"):
        case "text":
            run.add_text(string_of(part.get("text")) or "", key=key)
        case "reasoning":
            run.add(ThinkingContent(thinking=string_of(part.get("text")) or ""), key=key)
        case "tool_use":
            state = object_of(part.get("state"))
            call_id = text_of(part.get("callID")) or ""
            run.add(make_call(call_id, part.get("tool"), state.get("input")), key=key)
            failed = state.get("status") == "error"
            text = string_of(state.get("error" if failed else "output")) or ""
            if state.get("status") not in ("pending", "running"):
                run.result(call_id, text, is_error=failed)
        case "error":
            run.notes.unreadable(run.number, f"the run reports an error: {json_text(fields.get('error'))}")
        case _:
            return False
    return True


def _cursor(run: _Run, fields: dict[str, Any]) -> bool:
    if fields.get("type") != "tool_call":
        if fields.get("type") == "thinking" and fields.get("subtype") == "delta":
            last = run.pieces[-1] if run.pieces and not run.results else None
            words = string_of(fields.get("text")) or ""
            if last is not None and last.kind == "thinking":
                run.pieces[-1] = ThinkingContent(thinking=last.thinking + words)
            else:
                run.add(ThinkingContent(thinking=words))
            return True
        return fields.get("type") != "result" and _anthropic(run, fields)
    call_id = text_of(fields.get("call_id")) or ""
    called = object_of(fields.get("tool_call"))
    name = next(iter(called), "")
    body = object_of(called.get(name))
    if fields.get("subtype") == "started" or not run.has_call(call_id):
        run.add(make_call(call_id, name, body.get("args")))
    if fields.get("subtype") == "completed":
        result = object_of(body.get("result"))
        # The one key of a result is its outcome: `success`, `error`, `rejected` and others.
        outcome = next(iter(result), "success") if len(result) == 1 else "success"
        error = object_of(result.get("error")) or (outcome != "success" and object_of(result.get(outcome)))
        given = error or object_of(result.get("success")) or result
        names = ("errorMessage", "message", "reason", "content", "output", "stdout")
        text = next((text for key in names if (text := text_of(given.get(key)))), json_text(given) if given else "")
        run.result(call_id, text, is_error=bool(error))
    return True


def _droid(run: _Run, fields: dict[str, Any]) -> bool:
    run.id, run.model = run.id or text_of(fields.get("session_id")), run.model or text_of(fields.get("model"))
    match fields.get("type"):
        case "message" if fields.get("role") == "user":
            run.ask(UserMessage.of(string_of(fields.get("text")) or "", timestamp=run.time))
        case "message":
            run.add_text(string_of(fields.get("text")) or "")
        case "tool_call":
            name = fields.get("toolName") or fields.get("toolId")
            run.add(make_call(fields.get("toolCallId"), name, fields.get("parameters")))
        case "tool_result":
            value = fields.get("value")
            text = "" if value is None else json_text(value)
            run.result(text_of(fields.get("toolCallId")) or "", text, is_error=fields.get("isError") is True)
        case "completion":
            text = string_of(fields.get("finalText")) or ""
            last = run.pieces[-1] if run.pieces else None
            if not run.results and last is not None and last.kind == "text" and last.text == text:
                return False
            run.add_text(text)
        case _:
            return False
    return True


def _cline(run: _Run, fields: dict[str, Any]) -> bool:
    event = object_of(fields.get("event"))
    if fields.get("type") == "run_result":
        model = text_of(object_of(fields.get("model")).get("id"))
        origin = None if model is None else find_origin(model)
        run.flush()
        if origin is not None:
            run.messages = [set_origin(m, origin) if m.role == "assistant" else m for m in run.messages]
        return False
    if event.get("type") == "iteration_start":
        run.flush()
        run.group += 1
    match (event.get("type"), event.get("contentType")):
        case ("content_start", "text" | "reasoning" as kind):
            run.begun[kind] = string_of(event.get("accumulated", event.get(kind))) or ""
            return False
        case ("content_end", "text"):
            run.begun.pop("text", None)
            run.add_text(string_of(event.get("text")) or "", key=run.group)
        case ("content_end", "reasoning"):
            run.begun.pop("reasoning", None)
            run.add(ThinkingContent(thinking=string_of(event.get("reasoning")) or ""), key=run.group, first=True)
        case ("content_start", "tool"):
            run.add(make_call(event.get("toolCallId"), event.get("toolName"), event.get("input")), key=run.group)
        case ("content_end", "tool"):
            text, is_error = _cline_output(event.get("output"))
            run.result(text_of(event.get("toolCallId")) or "", text, is_error=is_error)
        case _:
            return False
    return True


def _cline_output(output: object) -> tuple[str, bool]:
    outcomes = objects_of(output)
    if not outcomes or not all("success" in each or "result" in each for each in outcomes):
        return ("" if output is None else json_text(output)), False
    texts = [json_text(each.get("error" if each.get("success") is False else "result") or "") for each in outcomes]
    return "\n".join(filter(None, texts)), all(each.get("success") is False for each in outcomes)


def _kimi(run: _Run, fields: dict[str, Any]) -> bool:
    match fields.get("role"):
        case "user":
            run.ask(UserMessage.of(_words(fields.get("content")), timestamp=run.time))
        case "assistant":
            run.flush()
            run.add_text(_words(fields.get("content")))
            for call in objects_of(fields.get("tool_calls")):
                function = object_of(call.get("function"))
                run.add(make_call(call.get("id"), function.get("name"), function.get("arguments")))
        case "tool":
            run.result(text_of(fields.get("tool_call_id")) or "", _words(fields.get("content")))
        case "meta":
            run.id, run.version = (
                text_of(fields.get("session_id")) or run.id,
                text_of(fields.get("version")) or run.version,
            )
            run.notes.record("system", run.number, 0, fields if run.notes.keeps else None)
        case _:
            return False
    return True


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in objects_of(content) if (text := text_of(part.get("text"))))


def _is(kind: str, *keys: str) -> Callable[[dict[str, Any]], bool]:
    return lambda fields: fields.get("type") == kind and all(key in fields for key in keys)


def _any(*tests: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], bool]:
    return lambda fields: any(test(fields) for test in tests)


_PROGRAMS: Final[Mapping[str, tuple[Callable[[dict[str, Any]], bool], _Add]]] = {
    "Codex": (_any(_is("thread.started", "thread_id"), _is("item.completed", "item")), _codex),
    "Qwen Code": (_is("system", "qwen_code_version"), _anthropic),
    "Gemini CLI": (
        _any(
            _is("tool_use", "tool_name", "tool_id"),
            _is("tool_result", "tool_id"),
            _is("init", "session_id", "model"),
            _is("message", "role", "content", "timestamp"),
            lambda fields: "response" in fields and "stats" in fields,
        ),
        _gemini,
    ),
    "opencode": (lambda fields: "sessionID" in fields and "part" in fields, _opencode),
    "Cursor": (
        _any(
            _is("tool_call", "call_id", "tool_call"),
            lambda fields: (
                fields.get("subtype") == "init" and "apiKeySource" in fields and "claude_code_version" not in fields
            ),
        ),
        _cursor,
    ),
    "Droid": (
        _any(
            _is("tool_call", "toolCallId", "parameters"), _is("completion", "finalText"), _is("message", "role", "text")
        ),
        _droid,
    ),
    "Cline": (_any(_is("agent_event", "event"), _is("hook_event", "hookEventName")), _cline),
    "Kimi Code": (lambda fields: fields.get("role") == "meta", _kimi),
    "Claude Code": (
        _any(
            _is("system", "claude_code_version"),  # other programs begin with a system line, too
            _is("assistant", "message", "session_id"),
            _is("user", "message", "session_id"),
            _is("result", "subtype", "session_id"),
        ),
        _anthropic,
    ),
}
"""The programs: what only their lines have, and how a line is read."""


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    samples=read_samples(__package__),
    title="output of an agent's run",
    kind="export",
    source=(
        "Claude Code 2.1.326, Qwen Code 0.24.4, Codex 0.169.0, Gemini CLI 0.61.0, opencode 1.18.33, Kimi Code 2.1.0 and"
        " Cline 3.0.65, run; Cursor and Droid, read"
    ),
    read_on="2026-11-18",
)
