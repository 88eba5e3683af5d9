"""Strict versions of the pydantic request models of SDKs.

The original models accept almost anything: they ignore unknown keys, allow any string for an enumeration, and accept
values that match no member of a union. The strict models forbid unknown keys, convert nothing, and leave out union
members that accept any value.
"""

from __future__ import annotations

import collections.abc
import types
import typing

import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

_PLAIN = (str, int, float, bool, type(None))
_OPEN = object()
"""Marks union members that accept any value: unknown variants, unset values, `Any` beside literals."""


class Strict:
    """Makes strict versions of types; caches models."""

    def __init__(self) -> None:
        self._done: dict[type, object] = {}

    def adapter(self, kind: object) -> TypeAdapter[object]:
        """Give a validator for the strict version of a type."""
        return TypeAdapter(typing.cast("type[object]", self.rewritten(kind)))

    def rewritten(self, kind: object) -> object:
        """Give the strict version of a type."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, typing_extensions.TypeAliasType):
            return self.rewritten(kind.__value__)
        if isinstance(origin, typing_extensions.TypeAliasType):
            return self.rewritten(origin.__value__[arguments])
        if origin is typing.Annotated:
            return self.rewritten(arguments[0])
        if origin in (typing.Union, types.UnionType):
            made = [inner for argument in arguments if (inner := self.rewritten(argument)) is not _OPEN]
            if made == [type(None)] and len(arguments) > 1:
                return _OPEN  # an optional value of any type
            return getattr(typing.Union, "__getitem__")(tuple(made)) if made else _OPEN  # noqa: B009 - types made here
        if origin in (list, collections.abc.Sequence):
            inner = self.rewritten(arguments[0])
            return list[object] if inner is _OPEN else list[inner]  # pyright: ignore[reportInvalidTypeArguments]
        if origin in (dict, collections.abc.Mapping):
            return dict[str, object]
        if origin is typing.Literal or kind in _PLAIN:
            return kind
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return _OPEN if "Unknown" in kind.__name__ or kind.__name__ == "Unset" else self._model(kind)
        return _OPEN

    def _model(self, kind: type[BaseModel]) -> object:
        if kind not in self._done:
            self._done[kind] = dict[str, object]  # for a recursive model, and for one that names no key
            if not kind.model_fields:
                return self._done[kind]
            fields: dict[str, typing.Any] = {}
            for name, field in kind.model_fields.items():
                inner = self.rewritten(field.annotation)
                default = ... if field.is_required() else None
                fields[name] = (object if inner is _OPEN else inner, Field(default, alias=field.alias))
            config = ConfigDict(extra="forbid", strict=True)
            self._done[kind] = create_model(kind.__name__, __config__=config, **fields)
        return self._done[kind]
