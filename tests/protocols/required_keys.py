"""Which keys of an SDK's typed dict have to be there.

Where annotations are kept as text, as in every SDK module, `__required_keys__` knows nothing of the marks in them
(Python 3.11, tried): the marks of the resolved hints say it.
"""

from __future__ import annotations

import typing

import typing_extensions


def is_required(kind: type, name: str, hint: object) -> bool:
    """Say whether a key has to be there; `hint` is its type, resolved, with its marks."""
    origin = typing.get_origin(hint)
    while origin is typing.Annotated:
        hint = typing.get_args(hint)[0]
        origin = typing.get_origin(hint)
    if origin in (typing.Required, typing_extensions.Required):
        return True
    if origin in (typing.NotRequired, typing_extensions.NotRequired):
        return False
    return name in getattr(kind, "__required_keys__", frozenset[str]())
