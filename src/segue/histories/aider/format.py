"""The record of aider.

Reads the chat history of aider: a Markdown file in the folder of the project.

Facts (aider 0.86.2, seen 2026-11-15):
- `# aider chat started at TIME` begins a chat, `#### ` is a line of the user, `> ` a line of the program. Everything
  else is the answer of the model.
- `--restore-chat-history` sends the texts of all chats in the file, without the lines of the program.
- Thinking is between `<thinking-content-HASH>` and its end tag; aider sends it again as part of the answer.
- `> Model: NAME with ...` names the model of the answers after it, `> Tokens: N sent, M received.` is about the last.
- There are no calls, no ids, and no times but that of the start of a chat. The time has no zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, Usage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, refuse_branch
from segue.histories.kit.envelope import find_title, with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import integer_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of

NAME: Final = "aider"
KNOWN_RECORDS: Final = frozenset({"line of the program"})
FILE: Final = ".aider.chat.history.md"
START: Final = "# aider chat started at "
_THINKING: Final = re.compile(r"<(thinking-content-[0-9a-f]+)>\s*(.*?)\s*</\1>\s*", re.DOTALL)
_MODEL: Final = re.compile(r"> (?:Main model|Model): (\S+)")
_TOKENS: Final = re.compile(r"> Tokens: ([\d.,]+k?) sent(?:, [\d.,]+k? cache \w+)*, ([\d.,]+k?) received")
_COST: Final = re.compile(r"Cost: \$([\d.]+) message")


@final
class _Line(NamedTuple):
    number: int
    kind: str
    text: str


def read(source: Source, view: View) -> History:
    """Read all chats of a file, or the one that began at the time `session`.

    Raises:
        LoadError: there is no such chat.
    """
    refuse_branch(view, "aider")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    chats = _split(source.data or b"")
    if source.session is not None:
        chats = {start: lines for start, lines in chats.items() if start == source.session}
        if not chats:
            raise LoadError(f"no chat began at {source.session!r}; `segue sessions FILE` lists them")
    if not any(line.kind in {"user", "answer"} for lines in chats.values() for line in lines):
        raise LoadError("no conversation found: the file has no chat of aider")
    messages = [message for start, lines in chats.items() for message in _read_chat(start, lines, notes)]
    starts = [time for start in chats if (time := milliseconds_of(start)) is not None]
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=source.session or next((start for start in chats if start), None),
        created=min(starts, default=None),
        updated=max(starts, default=None),
    )


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the chats of a file by the time of their start."""
    found: list[Session] = []
    for start, lines in _split(source.data or b"").items():
        messages = list(_read_chat(start, lines, Notes())) if start else []
        if not messages:
            continue
        title, time = find_title(messages), milliseconds_of(start)
        models = dict.fromkeys(message.model for message in messages if message.role == "assistant" and message.model)
        found.append(
            Session(
                format=NAME,
                id=start,
                path=source.path or source.name,
                title=None if title is None else title_of(title),
                created=time,
                updated=time,
                models=tuple(models),
                messages=len(messages),
            )
        )
    return tuple(found)


def _split(data: bytes) -> dict[str, list[_Line]]:
    """Split a file into chats by the time of their start; lines before the first one have none."""
    chats: dict[str, list[_Line]] = {}
    lines: list[_Line] = []
    for number, raw in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        text = raw.rstrip("\r")
        if text.startswith(START):
            lines = chats.setdefault(text.removeprefix(START).strip(), [])
        else:
            if not chats:
                chats[""] = lines
            lines.append(_Line(number, _kind(text), text))
    return chats


def _kind(text: str) -> str:
    if text.startswith("#### "):
        return "user"
    return "program" if text.startswith("> ") or text == ">" else "answer" if text.strip() else "blank"


def _read_chat(start: str, lines: list[_Line], notes: Notes) -> Iterator[Message]:
    time = milliseconds_of(start)
    model = ""
    waiting: tuple[list[_Line], str] | None = None
    for kind, group in _groups(lines):
        if kind == "program":
            usage = None
            for line in group:
                notes.record("line of the program", line.number, len(line.text), line.text if notes.keeps else None)
                model = found[1] if (found := _MODEL.match(line.text)) else model
                usage = _usage(line.text) or usage
            if waiting is not None:
                yield _answer(*waiting, usage, time)
                waiting = None
            continue
        if waiting is not None:
            yield _answer(*waiting, None, time)
            waiting = None
        if kind == "user":
            text = "\n".join(line.text.removeprefix("#### ").removesuffix("  ") for line in group if line.text.strip())
            yield _with_line(UserMessage(content=(TextContent(text=text),), timestamp=time), group)
        else:
            waiting = (group, model)
    if waiting is not None:
        yield _answer(*waiting, None, time)


def _groups(lines: list[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    """Group lines of one kind; blank ones belong to the group before them."""
    group: list[_Line] = []
    kind = ""
    for line in lines:
        if line.kind == "blank":
            if group:
                group.append(line)
        elif line.kind == kind:
            group.append(line)
        else:
            if group:
                yield kind, group
            kind, group = line.kind, [line]
    if group:
        yield kind, group


def _answer(group: list[_Line], model: str, usage: Usage | None, time: int | None) -> Message:
    text = "\n".join(line.text for line in group).strip()
    content: list[AssistantContent] = []
    end = 0
    for found in _THINKING.finditer(text):
        if before := text[end : found.start()].strip():
            content.append(TextContent(text=before))
        content.append(ThinkingContent(thinking=found[2]))
        end = found.end()
    if rest := text[end:].strip():
        content.append(TextContent(text=rest))
    origin = find_origin(model)
    message = AssistantMessage(
        content=tuple(content),
        protocol=origin.protocol,
        provider=origin.provider,
        model=origin.model,
        usage=usage,
        timestamp=time,
    )
    return _with_line(message, group)


def _with_line(message: UserMessage | AssistantMessage, group: list[_Line]) -> Message:
    return with_envelope(message, NAME, {"line": group[0].number})


def _usage(text: str) -> Usage | None:
    found = _TOKENS.match(text)
    if found is None:
        return None
    cost = _COST.search(text)
    return usage_of(_number(found[1]), _number(found[2]), cost=None if cost is None else _decimal(cost[1]))


def _number(text: str) -> int:
    """Read `657`, `1,234` or `2.5k`."""
    value = _decimal(text.removesuffix("k").replace(",", ""))
    return integer_of(int(min(value, 2**53) * (1000 if text.endswith("k") else 1)))


def _decimal(text: str) -> float:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return 0.0


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="aider",
    place=Place(folder=".aider", projects=(FILE,)),
    reads_lines=False,
    source="aider 0.86.2, run against a scripted model",
    read_on="2026-11-15",
)
