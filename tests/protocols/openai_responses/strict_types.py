"""The official client's parameter types, made strict: unknown keys refused, lists looked into.

As they are they prove little: extra keys pass, `Iterable` members are never looked at.      (openai 3.49.0, tried)
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Literal, Required, Union, get_args, get_origin, get_type_hints

import pydantic
from typing_extensions import is_typeddict

from protocols.required_keys import is_required

_STRICT = pydantic.ConfigDict(extra="forbid", strict=True, protected_namespaces=())


def strict(given: object) -> object:
    """Rewrite a type so that it can be failed."""
    origin, inner = get_origin(given), get_args(given)
    if is_typeddict(given):
        return _model(given)
    if origin in (Required, Annotated) or str(origin) == "typing.NotRequired":
        return strict(inner[0])
    if origin in (Union, types.UnionType):
        return Union[tuple(strict(kind) for kind in inner)]  # noqa: UP007
    if origin is Iterable or (isinstance(origin, type) and issubclass(origin, list)):
        return list[strict(inner[0])]
    if isinstance(origin, type) and issubclass(origin, dict):
        return dict[strict(inner[0]), strict(inner[1])]
    if origin is Literal:
        return given
    return given


@cache
def _model(given: type) -> type[pydantic.BaseModel]:
    fields = {}
    for index, (name, kind) in enumerate(get_type_hints(given, include_extras=True).items()):
        needed = is_required(given, name, kind)
        # A key may be a name that pydantic reserves, so fields are numbered and the key is an alias.
        fields[f"field_{index}"] = (strict(kind), pydantic.Field(default=... if needed else None, alias=name))
    return pydantic.create_model(given.__name__, __config__=_STRICT, **fields)
