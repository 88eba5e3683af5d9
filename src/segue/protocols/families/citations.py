"""Citations: where a reply has them, and their places in a text: characters, which some wires count as UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from segue.conversation.content import Extra
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import reply_extra
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
