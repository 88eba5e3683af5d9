"""Reads a Markdown file of SpecStory: the record of a session of another agent.

Facts this file rests on (specstoryai/getspecstory; 254 public files; read 2026-11-16):
- `_**User (TIME)**_` and `_**Agent (MODEL TIME)**_` begin a message; the extension of editors writes
  `_**Agent (model M, mode Agent)**_`, older ones `_**Assistant (MODEL)**_`. ` - sidechain` marks a sub-agent.
- One answer has many headers, and in files of the extension `---` between its parts.
- A call and its result are one block `<tool-use data-tool-name="NAME">`. The arguments are listed under `**Input:**`,
  the result is in a fence under `**Result:**` or `**Error:**`; most tools are shown in a form of their own.
- Headers inside of fences and blocks are text: these files quote one another.
- There are no ids of calls, no signatures, no images, and no folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import History, Session
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.pieces import stop_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of

NAME: Final = "specstory"
KNOWN_RECORDS: Final = frozenset({"heading"})
_HEADER: Final = re.compile(r"_\*\*(User|Agent|Assistant)( - sidechain)?(?: \((.*)\))?\*\*_\s*")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_MODEL: Final = re.compile(r"(?:model )?([^\s,]+)")
_SESSION: Final = re.compile(r"<!-- (.+) Session (\S+) \((.*)\) -->")
_TITLE: Final = re.compile(r"# (.*?)(?: \(" + _TIME.pattern + r"\))?\s*")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_TOOL: Final = re.compile(r'<tool-use\b[^>]*?data-tool-name="([^"]*)"[^>]*>')
_END: Final = "</tool-use>"
_THINK: Final = re.compile(r"<think><details><summary>[^<]*</summary>\n?(.*?)\n?</details></think>", re.DOTALL)
_SUMMARY: Final = re.compile(r"\s*<details>\s*<summary>(.*?)</summary>(.*?)(?:</details>)?\s*\Z", re.DOTALL)
_INPUT: Final = re.compile(r"^- ([^\s:]+): `(.*)`$")
_RESULT: Final = re.compile(r"^\*\*(Result|Error):\*\*$", re.MULTILINE)
_UNKNOWN: Final = "default"


@final
class _Part(NamedTuple):
    """The lines below one header."""

    number: int
    order: int
    """Its line, and its place among the headers."""
    role: str
    about: str
    is_side: bool
    lines: list[str]


def read(source: Source, view: View) -> History:
    """Read one file.

    Raises:
        LoadError: it has no message of SpecStory.
    """
    refuse_branch(view, "SpecStory")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    heading, parts = _split((source.data or b"").decode("utf-8", "replace"))
    if not parts:
        raise LoadError("no conversation found: the file has no message of SpecStory")
    session_id = title = None
    for number, line in enumerate(heading, 1):
        if found := _SESSION.fullmatch(line.strip()):
            session_id = found[2]
        elif (found := _TITLE.fullmatch(line)) and title is None:
            title = None if _TIME.fullmatch(found[1]) else found[1]
        elif line.strip() and not line.startswith("<!--"):
            notes.unreadable(number, "a text before the first message")
        elif line.strip():
            notes.record("heading", number, len(line), line if notes.keeps else None)
    messages: list[Message] = []
    for part in parts:
        if part.is_side:
            notes.record("sub-agent", part.number, sum(map(len, part.lines)), part.lines if notes.keeps else None)
        elif part.role == "User":
            messages += _read_user(part)
        else:
            _add_answer(messages, part)
    return finish_history(NAME, notes, messages, session_id=session_id, title=title)


def _split(text: str) -> tuple[list[str], list[_Part]]:
    """Split a file at its headers; those in fences and blocks of tools are no headers."""
    heading: list[str] = []
    parts: list[_Part] = []
    fence, is_tool = "", False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif found := _FENCE.match(line):
            fence = found[1]
        elif is_tool or _TOOL.match(line):
            is_tool = _END not in line
        elif found := _HEADER.fullmatch(line):
            parts.append(_Part(number, len(parts), found[1], found[3] or "", bool(found[2]), []))
            continue
        (parts[-1].lines if parts else heading).append(line)
    return heading, parts


def _trim(lines: Sequence[str]) -> str:
    """Join lines without the rules, ids and blank lines around them."""
    kept = list(lines)
    while kept and (not kept[0].strip() or kept[0].strip() == "---" or kept[0].startswith("<!-- message-id:")):
        del kept[0]
    while kept and kept[-1].strip() in ("", "---"):
        del kept[-1]
    return "\n".join(kept)


def _time_of(part: _Part) -> int | None:
    found = _TIME.search(part.about)
    return None if found is None else milliseconds_of(found[0])


def _read_user(part: _Part) -> Iterator[Message]:
    if text := _trim(part.lines):
        message = UserMessage(content=(TextContent(text=text),), timestamp=_time_of(part))
        yield with_envelope(message, NAME, {"header": part.about})


def _add_answer(messages: list[Message], part: _Part) -> None:
    """Add the pieces of one header to the answer before it, unless that has results already."""
    model = _MODEL.match(_TIME.sub("", part.about).strip())
    name = "" if model is None or model[1] == _UNKNOWN else model[1]
    for piece, result in _read_pieces(part):
        before = messages[-1] if messages else None
        after_results = 0
        while isinstance(before, ToolResultMessage) and isinstance(piece, ToolCall):
            after_results += 1
            before = messages[-1 - after_results]
        if isinstance(before, AssistantMessage) and (not name or before.model == name):
            content = (*before.content, piece)
            made = AssistantMessage(
                content=content,
                protocol=before.protocol,
                provider=before.provider,
                model=before.model,
                stop_reason=stop_of(None, content),
                timestamp=before.timestamp,
                extra=before.extra,
            )
            messages[-1 - after_results] = made
        else:
            made = AssistantMessage(content=(piece,), stop_reason=stop_of(None, (piece,)), timestamp=_time_of(part))
            made = set_origin(made, find_origin(name)) if name else made
            messages.append(with_envelope(made, NAME, {"header": part.about}))
        if result is not None:
            messages.append(result)


def _read_pieces(part: _Part) -> Iterator[tuple[AssistantContent, ToolResultMessage | None]]:
    """Read the thinking, texts and calls below a header, each call with its result."""
    text = "\n".join(part.lines)
    at = 0
    for count, found in enumerate(re.finditer(f"{_THINK.pattern}|{_TOOL.pattern}", text, re.DOTALL)):
        if found.start() < at:
            continue  # inside of the block before
        if words := _trim(text[at : found.start()].split("\n")):
            yield TextContent(text=words), None
        at = found.end()
        if found[1] is not None:
            yield ThinkingContent(thinking=found[1]), None
            continue
        end = _end_of_tool(text, at)
        yield _read_tool(found[2], text[at:end], f"call_{part.order}_{count}", _time_of(part))
        at = end + len(_END)
    if words := _trim(text[at:].split("\n")):
        yield TextContent(text=words), None


def _end_of_tool(text: str, start: int) -> int:
    """Find the end of a block: outside of fences, or at all in files whose fences are broken."""
    fence, at = "", start
    for line in text[start:].split("\n"):
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif found := _FENCE.match(line):
            fence = found[1]
        elif _END in line:
            return at + line.index(_END)
        at += len(line) + 1
    found_at = text.find(_END, start)
    return len(text) if found_at < 0 else found_at


def _read_tool(name: str, block: str, call_id: str, time: int | None) -> tuple[ToolCall, ToolResultMessage]:
    found = _SUMMARY.match(block)
    summary, body = (found[1], found[2]) if found else ("", block)
    label = f"Tool use: **{name}**"
    shown = summary.strip().removeprefix(label).strip(" •")
    mark = _RESULT.search(body)
    before, after = (body[: mark.start()], body[mark.end() :]) if mark else _at_fence(body, has_summary=bool(shown))
    arguments: dict[str, object] = {}
    rest: list[str] = []
    for line in before.split("\n"):
        if given := _INPUT.match(line):
            arguments[given[1]] = given[2]
        elif line.strip() not in ("", "**Input:**"):
            rest.append(line.strip())
    if shown or rest:
        arguments["shown"] = "\n".join([*([shown] if shown else []), *rest])
    result = ToolResultMessage(
        tool_call_id=call_id,
        tool_name=name,
        content=(TextContent(text=_unfenced(after)),),
        is_error=mark is not None and mark[1] == "Error",
        timestamp=time,
    )
    return ToolCall(id=call_id, name=name, arguments=arguments), result


def _at_fence(body: str, *, has_summary: bool) -> tuple[str, str]:
    """Part what was asked from what came back: at the first fence, or all is one of them."""
    lines = body.split("\n")
    first = next((at for at, line in enumerate(lines) if _FENCE.match(line)), None)
    if first is None:
        return ("", body) if has_summary else (body, "")
    return "\n".join(lines[:first]), "\n".join(lines[first:])


def _unfenced(text: str) -> str:
    """Give what stands in a fence, or a text without one as it is."""
    lines = text.strip("\n").split("\n")
    while lines and not lines[-1].strip():
        del lines[-1]
    if len(lines) > 1 and (found := _FENCE.match(lines[0])) and lines[-1].strip().startswith(found[1]):
        return "\n".join(lines[1:-1])
    return "\n".join(lines).strip()


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a file for a list."""
    return describe_document(excerpt, NAME, read, excerpt.name.rpartition("/")[2].removesuffix(".md"))
