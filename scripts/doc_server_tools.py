"""Generated tables of the server tools: which tool of one provider stands for which of another, and its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from doc_tables import table

from segue.protocols import Protocol, all_protocols
from segue.protocols.kit.server_tools import LOCATION, ServerTool, ServerToolKind, ToolOption

_KINDS: Final[dict[ServerToolKind, str]] = {
    "web_search": "search of the web",
    "web_fetch": "reading of web pages",
    "code_execution": "execution of code",
    "file_search": "search in files",
}


def server_tools(what: str) -> str:
    """List the tools of each kind, or the options of each tool."""
    return _kinds() if what == "kinds" else _options()


def _tools() -> Iterator[tuple[Protocol, ServerTool]]:
    return ((record, tool) for record in all_protocols() for tool in record.server_tools if tool.kind in _KINDS)


def _kinds() -> str:
    rows: list[tuple[str, str, str, str, str]] = []
    for kind, title in _KINDS.items():
        for record, tool in _tools():
            if tool.kind == kind or kind in tool.covers:
                use = "read" if tool.template is None else "read and written"
                rows.append((title, f"`{record.name}`", f"`{tool.name}`", use, tool.source))
    return table(("kind", "protocol", "tool", "use", "source"), rows)


def _options() -> str:
    names: list[str] = [name for name in get_args(ToolOption) if name not in LOCATION[1:]]
    rows: list[tuple[str, str, str]] = []
    for record, tool in _tools():
        if tool.template is not None:
            options = ", ".join(f"`{_title(name)}`" for name in names if _has(tool, name))
            rows.append((f"`{record.name}`", f"`{tool.name}`", options or "none"))
    return table(("protocol", "tool", "options"), rows)


def _has(tool: ServerTool, name: str) -> bool:
    return name in tool.options or name in tool.body_options


def _title(name: str) -> str:
    return "user_location" if name in LOCATION else name
