"""Find the required keys of an SDK's `TypedDict`.

If annotations are strings, as in every SDK module, `__required_keys__` ignores `Required` and `NotRequired` in them
(Python 3.11, tried). So they are read from the resolved hints.
"""

from __future__ import annotations

import typing

import typing_extensions


def is_required(kind: type, name: str, hint: object) -> bool:
    """Whether a key is required; `hint` is its resolved type, with `Required` or `NotRequired`."""
    origin = typing.get_origin(hint)
    while origin is typing.Annotated:
        hint = typing.get_args(hint)[0]
        origin = typing.get_origin(hint)
    if origin in (typing.Required, typing_extensions.Required):
        return True
    if origin in (typing.NotRequired, typing_extensions.NotRequired):
        return False
    return name in getattr(kind, "__required_keys__", frozenset[str]())
