"""Places of citations in a text: characters here, which some wires count as bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Mapping

from segue.protocols.kit.sources import CitedPage


def read_span(text: str, start: object, end: object, *, in_bytes: bool = False) -> tuple[int, int] | None:
    """Read a place in a text; None if it is not one."""
    if not isinstance(end, int) or not isinstance(start, int | None):
        return None
    first, last = start or 0, end
    if in_bytes:
        data = text.encode("utf-8", "replace")
        first, last = (len(data[:place].decode("utf-8", "ignore")) for place in (first, last))
    return (first, last) if 0 <= first < last <= len(text) else None


def write_span(text: str, source: CitedPage, *, in_bytes: bool = False) -> Mapping[str, int]:
    """Return the place of a source in a text, which is its end if none is known."""
    places = source.span or (len(text), len(text))
    if in_bytes:
        places = tuple(len(text[:place].encode("utf-8", "replace")) for place in places)
    return dict(zip(("start_index", "end_index"), places, strict=True))
