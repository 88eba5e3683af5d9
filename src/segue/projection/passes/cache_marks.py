"""Move cache marks to where the target accepts them, and remove those beyond its limit; the newest are kept.

Facts:
- A mark on thinking, on a blank text or on a tool whose loading is deferred is refused.
      (Anthropic documentation: prompt caching; claude-code #55302; on Bedrock: opencode #36517, strands #1820)
- A mark on a document that is not a PDF is refused for Claude on Bedrock.      (strands harness-sdk #1966, 2026-03-24)
- A fifth mark is refused: "A maximum of 4 blocks with cache_control may be provided."     (sub2api #176, zeph #1568)
- A lifetime of an hour is refused after one of five minutes; order: tools, system, messages.         (headroom #2939)
- Later requests read from the newest marks. Marks on tools and on the system prompt count too.
- A target without cache marks may answer one with an error.   (AWS documentation: prompt caching, read 2026-11-15)

A mark does not change the meaning of a request, so removing one leaves the cached prefix valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from segue.conversation.content import AnyContent, CacheMark, SystemContent, UserContent
from segue.conversation.context import Context, Tool
from segue.conversation.messages import Message, ToolResultMessage
from segue.errors import Path
from segue.models.rules import Rules
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import SystemPrompt, Target, Workspace
from segue.protocols.kit.option_table import KNOWN_TTLS, LONG_TTLS

_Markable = TypeVar("_Markable", bound=UserContent)
_Content = TypeVar("_Content", bound=AnyContent)

_BESIDE: Final = "moved to the nearest content that may have one"
_COVERED: Final = "the nearest content that may have one has one already"

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


def move_marks(workspace: Workspace) -> None:
    """Move marks of thinking and of blank texts to the nearest other content of their message.

    It runs before passes that drop or convert thinking and blank texts, because the mark would be lost with them. A
    mark is not moved to another message: which messages are at hand depends on how the conversation is split.
    """
    if not (workspace.scan.extra and workspace.target.rules.cache_marks):
        return
    rules = workspace.target.rules
    for index, message in enumerate(workspace.messages):
        if message.role == "toolResult" and "result_content" in rules.values("cache_mark_places"):
            _mark_result(
                workspace, index, message, [at for at, piece in enumerate(message.content) if _is_marked(piece)]
            )
            continue
        moves = _find_moves(message.content, rules)
        if not moves:
            if message.role == "toolResult":
                _mark_result(workspace, index, message, _refused(message.content, rules))
            continue
        for position, nearest in moves:
            _note_move(workspace, index, position, nearest)
        workspace.put(index, replace(message, content=_moved(message.content, moves)), added=0)


def move_system_marks(
    pieces: tuple[SystemContent, ...], target: Target
) -> tuple[tuple[SystemContent, ...], list[Change]]:
    """Move marks of blank texts of the system prompt; the same object when there are none."""
    moves = _find_moves(pieces, target.rules) if target.rules.cache_marks else []
    changes: list[Change] = []
    for position, nearest in moves:
        changes += _changes(("system_prompt", position), ("system_prompt", nearest), pieces[nearest].cache_mark)
    return (_moved(pieces, moves) if moves else pieces), changes


def move_tool_marks(tools: list[Tool], given: list[int], rules: Rules, protocol: str) -> list[Change]:
    """Move marks of tools that may not have one, in place; `given` are the original indexes of the tools."""
    changes: list[Change] = []
    for position, tool in enumerate(tools):
        if tool.cache_mark is None or is_markable_tool(tool, rules, protocol):
            continue
        places = [place for place, other in enumerate(tools) if is_markable_tool(other, rules, protocol)]
        nearest = min(places, key=lambda place: (abs(place - position), place), default=None)
        tools[position] = replace(tool, cache_mark=None)
        if nearest is None:
            path: Path = ("tools", given[position])
            changes.append(
                Change(code=ChangeCode.CACHE_MARK_REMOVED, path=path, loss=Loss.NONE, detail="no other tool")
            )
            continue
        held = tools[nearest].cache_mark
        changes += _changes(("tools", given[position]), ("tools", given[nearest]), held)
        tools[nearest] = replace(tools[nearest], cache_mark=held or tool.cache_mark)
    return changes


def is_markable_tool(tool: Tool, rules: Rules, protocol: str) -> bool:
    """Whether a tool may have a mark; the target refuses it with some of the tool's own fields."""
    if "tool" in rules.values("cache_mark_places"):
        return False
    fields = tool.definition if tool.kind == "native" else (tool.extra or {}).get(protocol, {})
    return not any(fields.get(key) for key in rules.values("cache_mark_beside"))


def _is_markable(content: AnyContent, rules: Rules) -> bool:
    if content.kind == "file":
        return content.mime_type not in rules.values("cache_mark_beside")
    return content.kind != "thinking" and not (content.kind == "text" and not content.text.strip())


def _find_moves(content: Sequence[AnyContent], rules: Rules) -> list[tuple[int, int]]:
    """Return the positions of marks that have to move, each with the nearest position that may have one.

    The later of two equally near ones is used, because its mark covers the original one. Native blocks come last:
    some of them cannot have a mark, and a native cache point is one itself.
    """
    moves: list[tuple[int, int]] = []
    key = rules.cache_mark_key
    for position, piece in enumerate(content):
        if piece.cache_mark is None or _is_markable(piece, rules):
            continue
        free = [place for place, other in enumerate(content) if _is_markable(other, rules)]
        plain = [place for place in free if content[place].kind != "native"]
        spare = [place for place in free if key is None or key not in getattr(content[place], "block", {})]
        nearest = min(plain or spare, key=lambda place: (abs(place - position), -place), default=None)
        if nearest is not None:
            moves.append((position, nearest))
    return moves


def _moved(content: Sequence[_Content], moves: list[tuple[int, int]]) -> tuple[_Content, ...]:
    out = list(content)
    for position, nearest in moves:
        mark = out[nearest].cache_mark or out[position].cache_mark
        out[nearest] = replace(out[nearest], cache_mark=mark)
        out[position] = replace(out[position], cache_mark=None)
    return tuple(out)


def _refused(content: Sequence[AnyContent], rules: Rules) -> list[int]:
    return [position for position, piece in enumerate(content) if _is_marked(piece) and not _is_markable(piece, rules)]


def _mark_result(workspace: Workspace, index: int, message: ToolResultMessage, marked: list[int]) -> None:
    """Move marks of a result's content to the result itself."""
    if not marked:
        return
    if workspace.is_given(index):
        for position in marked:
            source, place = workspace.content_path(index, position), (*workspace.path(index), "cache_mark")
            workspace.changes += _changes(source, place, message.cache_mark)
    mark = message.cache_mark or message.content[marked[-1]].cache_mark
    content = tuple([replace(piece, cache_mark=None) if _is_marked(piece) else piece for piece in message.content])
    workspace.put(index, replace(message, content=content, cache_mark=mark))


def _note_move(workspace: Workspace, index: int, position: int, nearest: int) -> None:
    if workspace.is_given(index):
        held = workspace.messages[index].content[nearest].cache_mark
        source, place = workspace.content_path(index, position), workspace.content_path(index, nearest)
        workspace.changes += _changes(source, place, held)


def _changes(source: Path, place: Path, held: CacheMark | None) -> list[Change]:
    """Report a move at both places; only at the first if the second has a mark already."""
    code = ChangeCode.CACHE_MARK_MOVED
    if held is not None or source == place:
        return [Change(code=code, path=source, loss=Loss.NONE, detail=_COVERED if held is not None else _BESIDE)]
    return [Change(code=code, path=path, loss=Loss.NONE, detail=_BESIDE) for path in (source, place)]


class Limited:
    """A request whose marks are within the limit."""

    __slots__ = ("changes", "messages", "prompt", "tools")

    def __init__(self, messages: tuple[Message, ...], prompt: SystemPrompt, tools: tuple[Tool, ...]) -> None:
        self.messages: tuple[Message, ...] = messages
        self.prompt: SystemPrompt = prompt
        self.tools: tuple[Tool, ...] = tools
        self.changes: tuple[Change, ...] = ()


def limit_marks(
    target: Target,
    messages: tuple[Message, ...],
    marks: list[Mark],
    prompt: SystemPrompt,
    tools: tuple[Tool, ...],
    *,
    given: Context,
) -> Limited:
    """Remove marks beyond the limit, and shorten lifetimes that are refused in their place."""
    limited = Limited(messages, prompt, tools)
    _remove_excess(target, limited, marks, given=given)
    if target.rules.cache_marks and (marks or tools or isinstance(prompt, tuple)):
        lifetimes = _Lifetimes(ordered=target.rules.has("cache_mark_order"))
        tools_given, prompt_given = tools is given.tools, prompt is given.system_prompt
        _shorten(limited, marks, lifetimes, tools_given=tools_given, prompt_given=prompt_given)
    return limited


class _Lifetimes:
    """The lifetimes of marks, in the order of the request: where it counts, all are short after a short one.

    An unknown lifetime is a short one: none is sent. One that `extra` keeps is sent as it was given.
    """

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered
        self.is_short = False

    def is_refused(self, mark: CacheMark | None) -> bool:
        if mark is None:
            return False
        is_long = mark.ttl in LONG_TTLS
        self.is_short = self.is_short or not is_long
        if is_long:
            return self.ordered and self.is_short
        return mark.ttl not in KNOWN_TTLS and mark.extra is None


def _shorten(
    limited: Limited, marks: list[Mark], lifetimes: _Lifetimes, *, tools_given: bool, prompt_given: bool
) -> None:
    paths: dict[Path, None] = {}
    tools = list(limited.tools)
    for index, tool in enumerate(tools):
        if lifetimes.is_refused(tool.cache_mark):
            tools[index] = replace(tool, cache_mark=_shortened(tool.cache_mark))
            paths[("tools", index) if tools_given else ("tools",)] = None
            limited.tools = tuple(tools)
    pieces = list(limited.prompt) if isinstance(limited.prompt, tuple) else []
    for index, piece in enumerate(pieces):
        if lifetimes.is_refused(piece.cache_mark):
            pieces[index] = replace(piece, cache_mark=_shortened(piece.cache_mark))
            paths[("system_prompt", index) if prompt_given else ("system_prompt",)] = None
            limited.prompt = tuple(pieces)
    changed: dict[int, Message] = {}
    for index, position, path in sorted(marks, key=lambda mark: (mark[0], mark[1] is None, mark[1] or 0)):
        message = changed.get(index, limited.messages[index])
        if position is None:
            if message.role == "toolResult" and lifetimes.is_refused(message.cache_mark):
                changed[index] = replace(message, cache_mark=_shortened(message.cache_mark))
                paths[path] = None
        elif lifetimes.is_refused(mark := message.content[position].cache_mark):
            content: list[AnyContent] = list(message.content)
            content[position] = replace(content[position], cache_mark=_shortened(mark))
            changed[index] = replace(message, content=tuple(content))
            paths[path] = None
    if changed:
        limited.messages = tuple([changed.get(index, message) for index, message in enumerate(limited.messages)])
    if paths:
        limited.changes += tuple(Change(code=ChangeCode.CACHE_MARK_SHORTENED, path=p, loss=Loss.NONE) for p in paths)


def _shortened(mark: CacheMark | None) -> CacheMark | None:
    return mark and replace(mark, ttl=None)


def _remove_excess(target: Target, limited: Limited, marks: list[Mark], *, given: Context) -> None:
    """Remove the oldest marks until the rest is allowed: first from tools, then from the prompt, then from messages.

    Marks of content that may not have one, and that found no other place, are removed first. A mark of the prompt or of
    a tool is reported at its place only if the others are as `given`; otherwise its original place is not known here.
    """
    messages, prompt, tools = limited.messages, limited.prompt, limited.tools
    if not marks and not tools and not isinstance(prompt, tuple):
        return
    pieces = prompt if isinstance(prompt, tuple) else ()
    places: list[Path] = [("tools", index) for index, tool in enumerate(tools) if tool.cache_mark is not None]
    if pieces:
        places += [("system_prompt", index) for index, piece in enumerate(pieces) if _is_marked(piece)]
    if not marks and len(places) <= target.rules.cache_marks:
        return
    is_input = "assistant" in target.rules.values("cache_mark_places")
    refused = [
        mark
        for mark in marks
        if mark[1] is not None
        and (
            not _is_markable(messages[mark[0]].content[mark[1]], target.rules)
            or (is_input and messages[mark[0]].role == "assistant")
        )
    ]
    if refused:
        marks = [mark for mark in marks if mark not in refused]
    excess = max(0, len(places) + len(marks) - target.rules.cache_marks)
    if not excess and not refused:
        return
    new_tools, new_pieces, new_messages = list(tools), list(pieces), list(messages)
    for root, index in places[:excess]:
        if root == "tools":
            new_tools[int(index)] = replace(new_tools[int(index)], cache_mark=None)
        else:
            new_pieces[int(index)] = replace(new_pieces[int(index)], cache_mark=None)
    removed = [*refused, *marks[: max(0, excess - len(places))]]
    positions: dict[int, list[int | None]] = {}
    for index, position, _ in removed:
        positions.setdefault(index, []).append(position)
    for index, marked in positions.items():
        new_messages[index] = _without_marks(new_messages[index], marked)
    roots = {root for root, _ in places[:excess]}
    limited.tools = tuple(new_tools) if "tools" in roots else tools
    limited.prompt = tuple(new_pieces) if "system_prompt" in roots else prompt
    limited.messages = tuple(new_messages) if removed else messages
    changed = {"tools": tools is not given.tools, "system_prompt": prompt is not given.system_prompt}
    paths: list[Path] = [(str(root),) if changed[str(root)] else (root, index) for root, index in places[:excess]]
    paths = [*dict.fromkeys(paths), *(path for _, _, path in removed)]
    limited.changes = tuple(Change(code=ChangeCode.CACHE_MARK_REMOVED, path=path, loss=Loss.NONE) for path in paths)


def _without_marks(message: Message, positions: Sequence[int | None]) -> Message:
    """Return a message without the marks of some of its content; None is the mark of the message itself."""
    content: list[AnyContent] = list(message.content)
    for position in positions:
        if position is not None:
            content[position] = replace(content[position], cache_mark=None)
    changed = replace(message, content=tuple(content))
    return replace(changed, cache_mark=None) if None in positions else changed


def moved_mark(content: _Markable, mark: CacheMark | None) -> _Markable:
    """Return content with the mark of the content that it replaces; a mark of its own stays."""
    return content if mark is None or content.cache_mark is not None else replace(content, cache_mark=mark)


def last_mark(content: Sequence[AnyContent]) -> CacheMark | None:
    """Return the last mark among texts that are joined to one; it covers the earlier ones."""
    marks = [piece.cache_mark for piece in content if piece.kind == "text" and piece.cache_mark is not None]
    return marks[-1] if marks else None


def _is_marked(content: AnyContent) -> bool:
    return content.cache_mark is not None
