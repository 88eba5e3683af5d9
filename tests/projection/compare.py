"""What differs between what was given and what came out, node by node, in the coordinates of what was given.

Written without a look at how projection works: messages are matched by identity, then by the timestamp that `histories`
gives each of them; content by identity, then by where it stands between pieces that are identical.
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.content import AnyContent
from segue.conversation.context import Context, Options, Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.projector import Projection
from segue.projection.report import ChangeCode
from segue.projection.workspace.surrogates import clean_text, clean_value

Node = AnyContent | Message | Tool | Options


def unreported(given: Context, options: Options, projection: Projection) -> list[Path]:
    """Give the differing nodes that no change in the report accounts for."""
    paths = _paths(projection)
    return sorted(
        (
            node
            for node in differences(given, options, projection)
            if not any(_lies_under(node, path) for path in paths)
        ),
        key=str,
    )


def idle(given: Context, options: Options, projection: Projection) -> list[Path]:
    """Give the paths of changes where nothing differs."""
    nodes = differences(given, options, projection)
    paths = _paths(projection)
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
    """Give every differing node: a field, a piece of content, a message, a tool, or the list something was put into."""
    out = projection.context
    found = _prompt_differences(given, out)
    moved = {change.path[1] for change in projection.report.of(ChangeCode.RESULT_MOVED)}
    hoisted = {change.path[1] for change in projection.report.of(ChangeCode.SYSTEM_AS_PROMPT) if len(change.path) > 1}
    found |= _message_differences(given.messages, out.messages, moved, hoisted)
    found |= _tool_differences(given.tools, out.tools, projection)
    found |= _field_differences(options, projection.options, ("options",))
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
    given: Sequence[Message], out: Sequence[Message], moved: set[str | int], hoisted: set[str | int]
) -> set[Path]:
    sources = _sources(given, out, hoisted)
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


def _sources(given: Sequence[Message], out: Sequence[Message], hoisted: set[str | int]) -> list[int | None]:
    """Return for every projected message the index of the given message it is or was made from.

    `hoisted` are instructions that stand in the system prompt now; another message may have the same text.
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
    _find_instructions(given, out, sources, [index for index in waiting if index not in hoisted])
    return sources


def _find_instructions(
    given: Sequence[Message], out: Sequence[Message], sources: list[int | None], waiting: list[int]
) -> None:
    """Instructions have no timestamp: find their text in the remaining messages, after the neighbours already found."""
    for position, message in enumerate(out):
        if sources[position] is not None or message.role not in ("user", "system"):
            continue
        # Results move, instructions do not.
        fixed = [None if source is None or given[source].role == "toolResult" else source for source in sources]
        lowest = max((source for source in fixed[:position] if source is not None), default=-1)
        highest = min((source for source in fixed[position:] if source is not None), default=len(given))
        behind = [index for index in waiting if lowest < index < highest and given[index].content]
        likely = [index for index in behind if _is_made_of(message, given[index])]
        if not likely and (message.role == "system" or _is_wrapped(message)):
            likely = behind
        if likely:
            # Of two whose texts it has, it is the one with more of them, and with fewer others; without any, the first.
            has = {piece.text for piece in message.content if piece.kind == "text"}
            source = max(likely, key=lambda index: _share_in(has, given[index]))
            sources[position] = source
            waiting.remove(source)


def _share_in(has: set[str], instructions: Message) -> tuple[int, int]:
    found = [piece.kind == "text" and clean_text(piece.text) in has for piece in instructions.content]
    return sum(found), sum(found) - len(found) if any(found) else 0


def _is_wrapped(message: Message) -> bool:
    return any(piece.kind == "text" and piece.text.startswith("<system>") for piece in message.content)


def _is_made_of(message: Message, instructions: Message) -> bool:
    texts: list[str] = []
    for piece in instructions.content:
        spares = piece.fallback if piece.kind == "native" else (piece,)
        texts += [clean_text(spare.text) for spare in spares if spare.kind == "text"]
        # The context of a document becomes a text where the target has no place for it.
        texts += [clean_text(spare.context) for spare in spares if spare.kind == "file" and spare.context]
    natives = {str(clean_value(piece.block)) for piece in instructions.content if piece.kind == "native"}
    kept = {str(piece.block) for piece in message.content if piece.kind == "native"}
    if kept & natives:
        return True
    words = [piece.text for piece in message.content if piece.kind == "text"]
    if message.role == "user":
        longest = max(texts, key=len, default="").strip()
        return bool(longest) and bool(words) and words[0].startswith("<system>") and longest in words[0]
    return any(word in texts for word in words)


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


def _likeness(given: AnyContent, out: AnyContent) -> int:
    """How much speaks for a piece being made from another; 0 if nothing does."""
    if given.kind == "thinking" and out.kind == "text":
        return 2 if clean_text(given.thinking) == out.text else 0
    if given.kind != out.kind:
        return 0
    if given.kind == "text" and out.kind == "text":
        return 2 if clean_text(given.text) == out.text else 1
    return 10 if given.kind == "toolCall" else 1


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
