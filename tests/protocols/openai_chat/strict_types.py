"""The official SDK's request types as a strict validator of what we write.

As they are they prove nothing: unknown keys are ignored and iterables are validated lazily. Here every iterable is a
list, unknown keys are forbidden and nothing is coerced.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from functools import lru_cache

import typing_extensions
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import ConfigDict, TypeAdapter

from protocols.required_keys import is_required

_STRICT = ConfigDict(extra="forbid", strict=True)


@lru_cache
def request_type(*, stream: bool) -> TypeAdapter[object]:
    """Return the validator of whole request bodies."""
    kind = CompletionCreateParamsStreaming if stream else CompletionCreateParamsNonStreaming
    return TypeAdapter(_strict(kind))


_KNOWN: dict[type, type] = {}


def _strict(kind: typing.Any) -> typing.Any:
    if typing_extensions.is_typeddict(kind):
        return _strict_object(kind)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (collections.abc.Iterable, collections.abc.Sequence, list):
        return list[_strict(inner[0])]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_strict(member) for member in inner)]  # noqa: UP007  # made of what is only known now
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired):
        return origin[_strict(inner[0])]
    if origin is typing.Annotated:
        return _strict(inner[0])
    if origin in (dict, collections.abc.Mapping):
        return dict[inner[0], _strict(inner[1])]
    return kind


def _strict_object(kind: type) -> type:
    if kind not in _KNOWN:
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        fields = {}
        for name, hint in hints.items():
            bare = hint
            while typing.get_origin(bare) in (
                typing_extensions.Required,
                typing_extensions.NotRequired,
                typing.Required,
                typing.NotRequired,
            ):
                bare = typing.get_args(bare)[0]
            marker = typing_extensions.Required if is_required(kind, name, hint) else typing_extensions.NotRequired
            fields[name] = marker[_strict(bare)]
        make: typing.Any = typing_extensions.TypedDict
        strict = make(kind.__name__, fields)
        strict.__pydantic_config__ = _STRICT
        _KNOWN[kind] = strict
    return _KNOWN[kind]
