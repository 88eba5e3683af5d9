"""Results of server tools as text that other models can read: what was done, then what it gave.

Facts this file rests on:
- A search has an `action`: a query with the sources that were asked for, an opened page, or a text that was looked for
  in a page. It has no titles and no contents; the text behind it cites pages in annotations (`sources.py`).
                                                                                   (openai 3.49.0, read 2026-11-15)
- xAI writes the arguments of the call instead of an action.                            (recorded traffic, 2026-11)
- Code has its outputs only if they were asked for (`include`).                         (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Iterable

from segue.protocols.kit.json_values import Block, list_of, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, labelled, objects_in, write_sources


def describe_search(item: Block) -> str:
    """Write a web search: its query or the page it opened, and the pages that it found."""
    action = object_of(item.get("action"))
    found = [*objects_in(action.get("sources")), *objects_in(item.get("results"))]
    pages = write_sources(
        Source(url, text_of(page.get("title")) or "") for page in found if (url := text_of(page.get("url")))
    )
    url, pattern = text_of(action.get("url")), text_of(action.get("pattern"))
    if url:
        return labelled(f"web page searched for {pattern}: {url}" if pattern else f"web page opened: {url}", pages)
    query = text_of(action.get("query")) or ", ".join(_texts(action.get("queries")))
    query = query or text_of(item.get("arguments")) or ""
    if not query and not pages:
        return ""
    return labelled(f"web search: {query}" if query else "web search results", pages)


def describe_file_search(item: Block) -> str:
    """Write a search in files: its queries, and what it found in which file."""
    query = ", ".join(_texts(item.get("queries")))
    found = [
        f"- {text_of(result.get('filename')) or text_of(result.get('file_id')) or 'file'}: {text}"
        for result in objects_in(item.get("results"))
        if (text := text_of(result.get("text")))
    ]
    if not query and not found:
        return ""
    return labelled(f"file search: {query}" if query else "file search results", found)


def describe_code(item: Block) -> str:
    """Write code that was run, and what it printed."""
    code = text_of(item.get("code")) or ""
    logs = [logs for output in objects_in(item.get("outputs")) if (logs := text_of(output.get("logs")))]
    parts = [labelled("code run", [code]) if code else "", labelled("output of the code", logs) if logs else ""]
    return "\n".join(part for part in parts if part)


def _texts(value: object) -> Iterable[str]:
    return [entry for entry in list_of(value) if isinstance(entry, str)]
