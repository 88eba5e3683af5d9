"""Sources: web pages that a reply cites, and the text that names the result of a server tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import reply_extra


@final
class CitedPage(msgspec.Struct, frozen=True):
    """A web page: its address and, where known, its title and the characters of the text that it is cited for."""

    url: str
    title: str = ""
    span: tuple[int, int] | None = None

    def line(self) -> str:
        """Write the page as one line of a list."""
        title = " ".join(self.title.split())
        return f"- {title}: {self.url}" if title and title != self.url else f"- {self.url}"


def distinct(sources: Iterable[CitedPage]) -> list[CitedPage]:
    """Return each page once for each place, with the first title that is known."""
    found: dict[tuple[str, tuple[int, int] | None], CitedPage] = {}
    for source in sources:
        known = found.get((source.url, source.span))
        if source.url and (known is None or (not known.title and source.title)):
            found[source.url, source.span] = source
    placed = {source.url for source in found.values() if source.span is not None}
    return [source for source in found.values() if source.span is not None or source.url not in placed]


def write_sources(sources: Iterable[CitedPage]) -> list[str]:
    """Write pages as the lines of a list."""
    return [source.line() for source in distinct(replace(source, span=None) for source in sources)]


def labelled(label: str, lines: Sequence[str]) -> str:
    """Write the result of a server tool: what was done in brackets, then what it gave."""
    return "\n".join([f"[{label}]", *(line for line in lines if line.strip())])


def objects_in(value: object) -> list[Block]:
    """Return the objects of a list; nothing when it is none."""
    listed = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return [cast("Block", item) for item in listed if isinstance(item, Mapping)]


def find_in_reply(extra: Extra | None, protocol: str, *path: str) -> object:
    """Find a value of a reply that was kept because no neutral field holds it; None if it has none.

    What was kept is a patch (`kit.json_patch`): `in` and `at` lead into objects and lists, `to` and `add` hold what was
    received.
    """
    node: object = reply_extra(extra, protocol) if extra is not None else None
    is_patch = True
    for step in path:
        if isinstance(node, list | tuple):
            listed = cast("Sequence[object]", node)
            node = listed[int(step)] if step.isdecimal() and int(step) < len(listed) else None
            continue
        held = object_of(node)
        if is_patch:
            added = object_of(held.get("add"))
            is_patch = step not in added
            held = (object_of(held.get("in")) or object_of(held.get("at"))) if is_patch else added
        node = held.get(step)
        if is_patch and "to" in object_of(node):
            node, is_patch = object_of(node)["to"], False
    return None if is_patch else node
