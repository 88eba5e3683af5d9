"""Sources: web pages that a reply cites, and the text that names the result of a server tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast, final

import msgspec
from msgspec.structs import replace

from segue.protocols.kit.json_values import Block


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
    return [cast("Block", item) for item in listed if isinstance(item, (dict, Mapping))]
