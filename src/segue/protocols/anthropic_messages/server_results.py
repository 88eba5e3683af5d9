"""Results of server tools as text that other models can read: what was done, then what it gave.

Facts this file rests on:
- The fields of each result.                                                       (anthropic 2.8.0, read 2026-11-15)
- A result that failed has an `error_code`; the text of pages found is encrypted, titles and addresses are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, objects_in

_LABELS: Final[Mapping[str, str]] = {
    "web_search_tool_result": "web search results",
    "web_fetch_tool_result": "fetched web page",
    "code_execution_tool_result": "output of executed code",
    "bash_code_execution_tool_result": "output of an executed command",
    "text_editor_code_execution_tool_result": "result of editing a file",
    "tool_search_tool_result": "tools found",
    "mcp_tool_result": "result of an MCP tool",
    "advisor_tool_result": "advice",
}


def label_of(block: Block) -> str:
    """Name what a result is the result of; empty for a result of the application's own tools."""
    kind = text_of(block.get("type")) or ""
    if kind == "tool_result" or not kind.endswith("_tool_result"):
        return ""
    label = _LABELS.get(kind) or f"result of {kind.removesuffix('_tool_result').replace('_', ' ')}"
    failed = object_of(block.get("content")).get("error_code") is not None or block.get("is_error") is True
    return f"{label}: failed" if failed else label


def result_lines(inner: Block) -> list[str]:
    """Read the plain fields of one result: pages, output of a program, names of tools, a reason of failure."""
    lines: list[str] = []
    if (url := text_of(inner.get("url"))) is not None:
        page = object_of(inner.get("content"))
        lines.append(Source(url, text_of(inner.get("title")) or text_of(page.get("title")) or "").line())
        source = object_of(page.get("source"))
        if source.get("type") == "text" and (text := text_of(source.get("data"))):
            lines.append(text)
    elif title := text_of(inner.get("title")):
        lines.append(title)
    lines += [text.rstrip("\n") for key in ("stdout", "stderr") if (text := text_of(inner.get(key)))]
    if isinstance(code := inner.get("return_code"), int) and code:
        lines.append(f"return code {code}")
    named = [inner, *objects_in(inner.get("tool_references"))]
    lines += [name for found in named if (name := text_of(found.get("tool_name")))]
    if (code := text_of(inner.get("error_code"))) is not None:
        lines.append(code)
    return lines


def has_page_text(inner: Block) -> bool:
    """Whether a result holds the text of a page, which `result_lines` writes."""
    return object_of(object_of(inner.get("content")).get("source")).get("type") == "text"
