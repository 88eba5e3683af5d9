"""Pass 6, part 2: replace tool names that the target refuses.

Facts:
- MCP servers use names with dots and slashes, and long ones.      (tester-mcp-client #11; `^[a-zA-Z0-9_-]{1,64}$`)
- Tools, tool choice and history have to use the same name.        (tester-mcp-client #11)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage
from segue.models.rules import Rules
from segue.projection.passes.ids import characters_of, digest, uses_alphabet
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text, is_clean
from segue.projection.workspace.workspace import Workspace

_HASH_LENGTH: Final = 8
_DEFAULT_LENGTH: Final = 64


def wire_name(name: str, rules: Rules) -> str:
    """Return the name if the target accepts it, otherwise a legal one: the name with other characters, and its hash.

    The hash of the given name keeps different names different, independently of the rest of the request.
    """
    if _is_legal(name, rules):
        return name
    longest = rules.tool_name_max or _DEFAULT_LENGTH
    alphabet = rules.tool_name_alphabet
    filler = "_" if uses_alphabet(alphabet, "_") else characters_of(alphabet)[0]
    mark = digest(name, min(_HASH_LENGTH, max(1, longest - 2)), alphabet)
    kept = "".join(character if uses_alphabet(alphabet, character) else filler for character in name)
    if not kept or not _begins(kept, rules):
        kept = f"{_first_character(rules)}{filler}{kept}"
    return f"{kept[: max(1, longest - len(mark) - 1)]}{filler}{mark}"[:longest]


def _is_legal(name: str, rules: Rules) -> bool:
    if not name or (rules.tool_name_max and len(name) > rules.tool_name_max):
        return False
    return uses_alphabet(rules.tool_name_alphabet, name) and _begins(name, rules)


def _begins(name: str, rules: Rules) -> bool:
    return rules.tool_name_first is None or re.match(f"[{rules.tool_name_first}]", name) is not None


def _first_character(rules: Rules) -> str:
    characters = [first for first in characters_of(rules.tool_name_alphabet) if _begins(first, rules)]
    return "t" if "t" in characters else characters[0]


def map_names(workspace: Workspace) -> None:
    """Replace names in the calls and results of the history, as in the tools."""
    called, named = _names(workspace)
    mapped: dict[str, str] = {}
    known = workspace.prefix_state.called
    for name in (*called, *named):
        if name in known:  # as a name on the wire it is legal
            continue
        new_name = wire_name(name, workspace.target.rules)
        if new_name != name:
            mapped[name] = new_name
    for name in called:
        workspace.prefix_state.called[mapped.get(name, name)] = None
    if mapped:
        workspace.prefix_state.wire_names.update(mapped)
        _rename(workspace, mapped)


def _names(workspace: Workspace) -> tuple[Iterable[str], Iterable[str]]:
    """Return the names of the tools that are called, in order, and of those that occur only in results."""
    scan = workspace.scan
    if scan.paired and not scan.unfinished:
        return scan.names, scan.result_names - {""}
    called: dict[str, None] = {}
    named: set[str] = set()
    for message in workspace.messages:
        if message.role == "assistant":
            called.update((call.name, None) for call in message.tool_calls())
        elif message.role == "toolResult" and message.tool_name:
            named.add(message.tool_name)
    return called, named


def _rename(workspace: Workspace, mapped: dict[str, str]) -> None:
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant":
            _rename_calls(workspace, index, message, mapped)
        elif message.role == "toolResult" and message.tool_name and message.tool_name in mapped:
            new_name = mapped[message.tool_name]
            if workspace.is_given(index):
                workspace.note(ChangeCode.NAME_CHANGED, (*workspace.path(index), "tool_name"), Loss.NONE, new_name)
            workspace.put(index, replace(message, tool_name=new_name))


def _rename_calls(workspace: Workspace, index: int, message: AssistantMessage, mapped: dict[str, str]) -> None:
    content: list[AssistantContent] = list(message.content)
    renamed = False
    for position, piece in enumerate(content):
        if piece.kind == "toolCall" and piece.name in mapped:
            renamed = True
            path = (*workspace.content_path(index, position), "name")
            workspace.note(ChangeCode.NAME_CHANGED, path, Loss.NONE, mapped[piece.name])
            content[position] = replace(piece, name=mapped[piece.name])
    if renamed:
        workspace.put(index, replace(message, content=tuple(content)))


def clean_names(workspace: Workspace) -> None:
    """Remove halves of surrogate pairs from names; nothing else is replaced."""
    if all(map(is_clean, (*workspace.scan.names, *workspace.scan.result_names))):
        return
    names = (*workspace.scan.names, *workspace.scan.result_names)
    _rename(workspace, {name: clean_text(name) for name in names if not is_clean(name)})
