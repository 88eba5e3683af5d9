"""What differs between what was given and what came out, node by node, in the coordinates of what was given.

Written without a look at how projection works: messages are matched by identity, then by the timestamp that `histories`
gives each of them, and instructions by the messages around them; content by identity, then by where it stands between
pieces that are identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from segue.conversation.content import AnyContent
from segue.conversation.context import Context, Options, Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.projector import Projection
from segue.projection.report import ChangeCode
from segue.projection.workspace.surrogates import clean_text
from segue.protocols.shared_fields import read_column, read_shared
from segue.protocols.shared_rows import SHARED_FIELDS

Node = AnyContent | Message | Tool | Options


def unreported(given: Context, options: Options, projection: Projection) -> list[Path]:
    """Give the differing nodes that no change in the report accounts for."""
    return _silent(differences(given, options, projection), _paths(projection))


def idle(given: Context, options: Options, projection: Projection) -> list[Path]:
    """Give the paths of changes where nothing differs."""
    return _needless(differences(given, options, projection), _paths(projection))


def _silent(nodes: set[Path], paths: set[Path]) -> list[Path]:
    return sorted((node for node in nodes if not any(_lies_under(node, path) for path in paths)), key=str)


def _needless(nodes: set[Path], paths: set[Path]) -> list[Path]:
    return sorted((path for path in paths if not any(_meets(path, node) for node in nodes)), key=str)


def _paths(projection: Projection) -> set[Path]:
    """Give the path of every change; a change of several messages has one for each of them."""
    found: set[Path] = set()
    for change in projection.report.changes:
        if change.last is None:
            found.add(change.path)
        else:
            found |= {("messages", index) for index in range(int(change.path[1]), change.last + 1)}
    return found


def _lies_under(node: Path, path: Path) -> bool:
    # ("messages",) is where something was put in before all messages; it does not stand for all of them.
    return node == path if len(path) == 1 and path[0] == "messages" else node[: len(path)] == path


def _meets(path: Path, node: Path) -> bool:
    if path == ("messages",) or node == ("messages",):
        return path == node
    return node[: len(path)] == path or path[: len(node)] == node


def differences(given: Context, options: Options, projection: Projection) -> set[Path]:
    """Give every differing node: a field, a piece of content, a message, a tool, or the list something was put into.

    Instructions have neither a timestamp nor always a text of their own. Where it is not certain which of them a sent
    one was, the report is held against every possibility: it has to be right for one of them.
    """
    out = projection.context
    found = _prompt_differences(given, out)
    found |= _tool_differences(given.tools, out.tools, projection)
    sent = projection.options
    if read_shared(options) == read_shared(sent) and _other_fields(options) == _other_fields(sent):
        sent = replace(sent, extra=options.extra, shared=options.shared)  # the same, in the target's places
    found |= _field_differences(options, sent, ("options",))
    moved = {change.path[1] for change in projection.report.of(ChangeCode.RESULT_MOVED)}
    hoisted = {change.path[1] for change in projection.report.of(ChangeCode.SYSTEM_AS_PROMPT) if len(change.path) > 1}
    paths = _paths(projection)
    readings = (
        found | _message_differences(given.messages, out.messages, sources, moved)
        for sources in _sources(given.messages, out.messages, hoisted)
    )
    return min(readings, key=lambda nodes: len(_silent(nodes, paths)) + len(_needless(nodes, paths)))


def _other_fields(options: Options) -> dict[str, Any]:
    """Give the fields of `extra` that are not shared with another protocol."""
    found: dict[str, Any] = {}
    for protocol, part in (options.extra or {}).items():
        rest: Any = part
        for row in SHARED_FIELDS:
            for column in row.columns.get(protocol, ()) if row.level == "body" else ():
                rest = read_column(row, column, rest)[1]
        found |= {protocol: rest} if rest else {}
    return found


def _field_differences(given: Node, out: Node, path: Path, *, but: tuple[str, ...] = ()) -> set[Path]:
    return {
        (*path, name)
        for name in given.__struct_fields__
        if name not in but and getattr(given, name) != getattr(out, name)
    }


# -- the prompt and the tools ------------------------------------------------------------------------------------------


def _prompt_differences(given: Context, out: Context) -> set[Path]:
    before, after = given.system_prompt, out.system_prompt
    if before is after:
        return set()
    if isinstance(before, tuple) and before:
        if after is None:
            return {("system_prompt", position) for position in range(len(before))}
        if isinstance(after, tuple):
            return _content_differences(before, after, ("system_prompt",))
    return {("system_prompt",)} if before != after else set()


def _tool_differences(given: Sequence[Tool], out: Sequence[Tool], projection: Projection) -> set[Path]:
    found: set[Path] = set()
    left = list(out)
    for index, tool in enumerate(given):
        matches = [other for other in left if _is_same_tool(tool, other, projection)]
        # Of several tools with one name the first is sent, even if it becomes equal to a later one.
        is_first = tool.kind == "function" and not any(_has_name(other, tool.name) for other in given[:index])
        changed = (other for other in matches if is_first or other not in given)
        match = tool if tool in matches else next(changed, None)
        if match is None:
            found.add(("tools", index))
            continue
        left.remove(match)
        found |= _field_differences(tool, match, ("tools", index))
    if left:
        found.add(("tools",))
    return found


def _has_name(tool: Tool, name: str) -> bool:
    return tool.kind == "function" and tool.name == name


def _is_same_tool(given: Tool, out: Tool, projection: Projection) -> bool:
    if given.kind == "native" or out.kind == "native":
        return given.kind == out.kind
    return projection.tool_names.get(out.name, out.name) == given.name


# -- messages ----------------------------------------------------------------------------------------------------------


def _message_differences(
    given: Sequence[Message], out: Sequence[Message], sources: Sequence[int | None], moved: set[str | int]
) -> set[Path]:
    found: set[Path] = {("messages", index) for index in range(len(given)) if index not in sources}
    last: int | None = None
    for message, source in zip(out, sources, strict=True):
        if source is None:
            found.add(("messages",) if last is None else ("messages", last))
            continue
        last = source
        if message is given[source]:
            continue
        path = ("messages", source)
        if message.role != given[source].role:
            found.add(path)
            continue
        found |= _field_differences(given[source], message, path, but=("content",))
        found |= _content_differences(given[source].content, message.content, (*path, "content"))
    return found | _moved(given, [source for source in sources if source is not None], moved)


def _sources(
    given: Sequence[Message], out: Sequence[Message], hoisted: set[str | int]
) -> Iterator[Sequence[int | None]]:
    """Give, for every projected message, the index of the given message it is or was made from, in every possible way.

    `hoisted` are instructions that stand in the system prompt now.
    """
    by_identity = {id(message): index for index, message in enumerate(given)}
    by_time = {message.timestamp: index for index, message in enumerate(given) if message.role != "system"}
    sources: list[int | None] = []
    for message in out:
        source = by_identity.get(id(message))
        if source is None and message.role != "system":
            source = by_time.get(message.timestamp) if message.timestamp is not None else None
        sources.append(source)
    waiting = [index for index, message in enumerate(given) if message.role == "system" and index not in sources]
    waiting = [index for index in waiting if index not in hoisted]
    return _with_instructions(given, out, sources, waiting, 0)


def _with_instructions(
    given: Sequence[Message], out: Sequence[Message], sources: list[int | None], waiting: Sequence[int], start: int
) -> Iterator[Sequence[int | None]]:
    """Assign the waiting instructions to the projected ones from `start` on, each between the neighbours it has."""
    position = next((at for at in range(start, len(out)) if sources[at] is None and _is_instruction(out[at])), None)
    if position is None:
        yield tuple(sources)
        return
    # Results move, instructions do not.
    fixed = [None if source is None or given[source].role == "toolResult" else source for source in sources]
    lowest = max((source for source in fixed[:position] if source is not None), default=-1)
    highest = min((source for source in fixed[position:] if source is not None), default=len(given))
    possible: list[int | None] = [index for index in waiting if lowest < index < highest]
    if not possible or out[position].role == "user":  # the system prompt of a target without one is a user turn too
        possible.append(None)
    for source in possible:
        sources[position] = source
        yield from _with_instructions(given, out, sources, waiting, position + 1)
    sources[position] = None


def _is_instruction(message: Message) -> bool:
    """Whether a projected message without a source may be made from instructions: inserted turns are plain text."""
    if message.role == "user":
        return any(piece.kind != "text" or piece.text.startswith("<system>") for piece in message.content)
    return message.role == "system"


def _moved(given: Sequence[Message], order: Sequence[int], reported: set[str | int]) -> set[Path]:
    """Results that stand before something they stood behind, or the other way round; nothing else may move.

    Where two messages changed places, one of them moved and the other did not: the reported one, if it is one of them.
    """
    found: set[Path] = set()
    for position, source in enumerate(order):
        inverted = [other for other in order[:position] if other > source]
        inverted += [other for other in order[position + 1 :] if other < source]
        if given[source].role == "toolResult":
            if any(other not in reported for other in inverted):
                found.add(("messages", source))
        else:
            assert all(given[other].role == "toolResult" for other in inverted), "only results may move"
    return found


# -- content -----------------------------------------------------------------------------------------------------------


def _content_differences(given: Sequence[AnyContent], out: Sequence[AnyContent], path: Path) -> set[Path]:
    """Walk both lists between the pieces that are identical; what is left in a gap belongs together."""
    by_identity = {id(piece): position for position, piece in enumerate(given)}
    found: set[Path] = set()
    gap: list[AnyContent] = []
    start = 0
    for piece in (*out, None):
        position = len(given) if piece is None else by_identity.get(id(piece))
        if position is None and piece is not None:
            gap.append(piece)
            continue
        if position is not None and position >= start:
            found |= _gap_differences(given[start:position], gap, path, start)
            start, gap = position + 1, []
        else:
            found.add(path)  # moved within the list
    return found


def _gap_differences(given: Sequence[AnyContent], out: Sequence[AnyContent], path: Path, start: int) -> set[Path]:
    """Pair what is left by kind, in order; the rest differs as a whole."""
    if not given:
        return {path} if out else set()
    pairs = _by_kind(given, out)
    found: set[Path] = {(*path, start + position) for position in range(len(given))}
    for position, after in pairs:
        here = (*path, start + position)
        if given[position].kind == after.kind:
            found.remove(here)
            found |= _field_differences(given[position], after, here)
    if len(out) > len(pairs) == len(given) or _count_calls(out) > _count_calls(given):
        found.add(path)
    return found


def _count_calls(content: Sequence[AnyContent]) -> int:
    return sum(piece.kind == "toolCall" for piece in content)


_CALL, _SAME_TEXT = 10_000, 100
"""Calls are never left out, and a text that is still there is not another one that was changed: each counts more than
all pairs of the kinds below it together."""


def _likeness(given: AnyContent, out: AnyContent) -> int:
    """How much speaks for a piece being made from another; 0 if nothing does."""
    if given.kind == "thinking" and out.kind == "text":
        return _SAME_TEXT if clean_text(given.thinking) == out.text else 0
    if given.kind != out.kind:
        return 0
    if given.kind == "text" and out.kind == "text":
        return _SAME_TEXT if clean_text(given.text) == out.text else 1
    return _CALL if given.kind == "toolCall" else 1


def _by_kind(given: Sequence[AnyContent], out: Sequence[AnyContent]) -> list[tuple[int, AnyContent]]:
    """Pair the pieces that are most alike, in order: the heaviest common subsequence, calls counting most."""
    best: dict[tuple[int, int], tuple[int, list[tuple[int, AnyContent]]]] = {}
    for i in range(len(given), -1, -1):
        for j in range(len(out), -1, -1):
            if i == len(given) or j == len(out):
                best[i, j] = (0, [])
                continue
            best[i, j] = max(best[i + 1, j], best[i, j + 1], key=lambda option: option[0])
            if weight := _likeness(given[i], out[j]):
                score, pairs = best[i + 1, j + 1]
                if score + weight >= best[i, j][0]:
                    best[i, j] = (score + weight, [(i, out[j]), *pairs])
    return best[0, 0][1]
