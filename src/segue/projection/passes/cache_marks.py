"""Remove cache marks beyond the limit of the target; the newest are kept.

Facts this file rests on:
- A fifth mark is refused: "A maximum of 4 blocks with cache_control may be provided."     (sub2api #176, zeph #1568)
- Later requests read from the newest marks. Marks on tools and on the system prompt count too.
- A target without cache marks may answer one with an error.   (AWS documentation: prompt caching, read 2026-11-15)

A mark does not change the meaning of a request, so removing one leaves the cached prefix valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from segue.conversation.content import AnyContent, CacheMark, UserContent
from segue.conversation.context import Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import SystemPrompt, Target, Workspace

_Markable = TypeVar("_Markable", bound=UserContent)

Mark = tuple[int, int | None, Path]
"""Index of the marked message in the projection; index of the marked content, None for the message itself; path in the
given history."""


def find_marks(workspace: Workspace, first: int) -> list[Mark]:
    """Find the marks in a processed segment; `first` is the index of its first message in the projection."""
    if not workspace.scan.extra:
        return []
    marks: list[Mark] = []
    for index, message in enumerate(workspace.messages):
        if message.role == "toolResult" and message.cache_mark is not None:
            marks.append((first + index, None, (*workspace.path(index), "cache_mark")))
        for position, content in enumerate(message.content):
            if _is_marked(content):
                marks.append((first + index, position, workspace.content_path(index, position)))
    return marks


class Limited:
    """A request whose marks are within the limit."""

    __slots__ = ("changes", "messages", "prompt", "tools")

    def __init__(self, messages: tuple[Message, ...], prompt: SystemPrompt, tools: tuple[Tool, ...]) -> None:
        self.messages: tuple[Message, ...] = messages
        self.prompt: SystemPrompt = prompt
        self.tools: tuple[Tool, ...] = tools
        self.changes: tuple[Change, ...] = ()


def limit_marks(
    target: Target, messages: tuple[Message, ...], marks: list[Mark], prompt: SystemPrompt, tools: tuple[Tool, ...]
) -> Limited:
    """Remove the oldest marks until the rest is allowed: first from tools, then from the prompt, then from messages."""
    limited = Limited(messages, prompt, tools)
    pieces = prompt if isinstance(prompt, tuple) else ()
    places: list[Path] = [("tools", index) for index, tool in enumerate(tools) if tool.cache_mark is not None]
    places += [("system_prompt", index) for index, piece in enumerate(pieces) if _is_marked(piece)]
    excess = len(places) + len(marks) - target.rules.cache_marks
    if excess <= 0:
        return limited
    new_tools, new_pieces, new_messages = list(tools), list(pieces), list(messages)
    for root, index in places[:excess]:
        if root == "tools":
            new_tools[int(index)] = replace(new_tools[int(index)], cache_mark=None)
        else:
            new_pieces[int(index)] = replace(new_pieces[int(index)], cache_mark=None)
    removed = marks[: max(0, excess - len(places))]
    positions: dict[int, list[int | None]] = {}
    for index, position, _ in removed:
        positions.setdefault(index, []).append(position)
    for index, marked in positions.items():
        new_messages[index] = _without_marks(new_messages[index], marked)
    limited.tools, limited.messages = tuple(new_tools), tuple(new_messages)
    limited.prompt = tuple(new_pieces) if pieces else prompt
    paths = [*places[:excess], *(path for _, _, path in removed)]
    limited.changes = tuple(Change(code=ChangeCode.CACHE_MARK_REMOVED, path=path, loss=Loss.NONE) for path in paths)
    return limited


def _without_marks(message: Message, positions: Sequence[int | None]) -> Message:
    """Give a message without the marks of some of its content; None is the mark of the message itself."""
    content: list[AnyContent] = list(message.content)
    for position in positions:
        if position is not None:
            content[position] = replace(content[position], cache_mark=None)
    changed = replace(message, content=tuple(content))
    return replace(changed, cache_mark=None) if None in positions else changed


def moved_mark(content: _Markable, mark: CacheMark | None) -> _Markable:
    """Give content with the mark of the content that it replaces; a mark of its own stays."""
    return content if mark is None or content.cache_mark is not None else replace(content, cache_mark=mark)


def last_mark(content: Sequence[AnyContent]) -> CacheMark | None:
    """Give the last mark among texts that are joined to one; it covers the earlier ones."""
    marks = [piece.cache_mark for piece in content if piece.kind == "text" and piece.cache_mark is not None]
    return marks[-1] if marks else None


def _is_marked(content: AnyContent) -> bool:
    return content.kind != "thinking" and content.cache_mark is not None
