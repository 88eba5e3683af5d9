"""Generated table of the fields that several wires have: where each of them has a field, and its range."""

from __future__ import annotations

from doc_tables import table

from segue.protocols.kit.json_values import object_of
from segue.protocols.provider_fields import fields_of_providers
from segue.protocols.shared_replies import REPLY_FIELDS
from segue.protocols.shared_rows import SHARED_FIELDS, Column, SharedField

_LEVELS = {
    "body": "the request",
    "message": "a message",
    "text": "a text",
    "image": "an image",
    "file": "a document or video",
    "tool": "a function",
}


def shared_fields(what: str) -> str:
    """List the places of each field of requests or replies, or the providers of Chat that have it."""
    return {"providers": _providers, "replies": _replies, "places": _places}[what]()


def _replies() -> str:
    rows = [
        (f"`{row.name}`", f"`{protocol}`", "; ".join(f"`{_first(place.path)}`" for place in places))
        for row in REPLY_FIELDS
        for protocol, places in row.places.items()
    ]
    return table(("field", "protocol", "place"), rows)


def _first(path: str) -> str:
    return path.replace(".0.", "[0].").replace("text.", "output[0].content[0].")


def _places() -> str:
    rows = [
        (f"`{row.name}`", _LEVELS[row.level], f"`{protocol}`", "; ".join(dict.fromkeys(map(_shown, columns))))
        for row in SHARED_FIELDS
        for protocol, columns in row.columns.items()
    ]
    return table(("field", "of", "protocol", "place"), rows)


def _shown(column: Column) -> str:
    form = object_of(column.values[0][1] if column.values else None).get("to")
    words = [f"the form `{form}`" if column.path.startswith("verbatim.") else f"`{column.path}`"]
    if column.least is not None or column.most is not None:
        words.append(f"from {column.least if column.least is not None else 'any'} to {column.most}")
    if column.member:
        words.append(f"with `{column.member}`")
    if column.only:
        words.append(f"at {', '.join(sorted(column.only))}")
    return ", ".join(words)


def _providers() -> str:
    rows = [
        (f"`{row.name}`", ", ".join(names)) for row in SHARED_FIELDS if row.level == "body" and (names := _having(row))
    ]
    return table(("field", "providers of `openai-chat` that have it"), rows)


def _having(row: SharedField) -> list[str]:
    return [
        provider
        for provider, keys in fields_of_providers().items()
        if any(
            column.path.partition(".")[0] in keys and (not column.only or provider in column.only)
            for column in row.columns.get("openai-chat", ())
        )
    ]
