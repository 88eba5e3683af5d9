"""The SDK's own request types as strict validators of our requests.

As they stand they prove nothing: unknown keys are ignored and iterables are looked at only when they are used. So they
are written anew: every typed dict forbids what it does not name, and every iterable is a list.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from functools import lru_cache

import typing_extensions
from anthropic._types import SequenceNotStr
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from pydantic import ConfigDict, TypeAdapter, ValidationError

from protocols.required_keys import is_required

_ITERABLES = (collections.abc.Iterable, collections.abc.Sequence, SequenceNotStr, list)
_PLAIN = (str, int, float, bool, object, type(None))
_UNSENT = object()
"""Files, paths, streams and the SDK's own reply objects; a body of ours is plain values."""
_MARKS = (typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired)


@lru_cache
def validator(*, beta: bool = False) -> TypeAdapter:
    """Give what accepts a request body, or raises."""
    module = beta_message_create_params if beta else message_create_params
    strict = _Strict()
    forms = (module.MessageCreateParamsNonStreaming, module.MessageCreateParamsStreaming)
    return TypeAdapter(_union(tuple(strict.rewritten(form) for form in forms)))


def _union(members: tuple[object, ...]) -> type:
    # Types that are made here are no types to a checker: `operator.or_` does not know all of them, indexing does.
    return typing.cast("type", getattr(typing.Union, "__getitem__")(members))  # noqa: B009 - the same


class _Strict:
    def __init__(self) -> None:
        self.done: dict[type, object] = {}

    def rewritten(self, kind: object) -> object:
        if typing_extensions.is_typeddict(kind):
            return self._typed_dict(typing.cast("type", kind))
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.rewritten(arguments[0])
        if origin in _MARKS:
            return self.rewritten(arguments[0])
        if origin in (typing.Union, types.UnionType):
            members = tuple(made for argument in arguments if (made := self.rewritten(argument)) is not _UNSENT)
            return _union(members) if members else _UNSENT
        if origin in _ITERABLES:
            return list[self.rewritten(arguments[0])]
        if origin in (dict, collections.abc.Mapping):
            return dict[str, object]
        if origin is typing.Literal or kind in _PLAIN:
            return kind
        return _UNSENT

    def _typed_dict(self, kind: type) -> object:
        if kind in self.done:
            return self.done[kind]
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        is_open = getattr(kind, "__pydantic_config__", {}).get("extra") == "allow"
        self.done[kind] = dict[str, object]  # for a type that holds itself
        fields: dict[str, object] = {}
        for name, hint in hints.items():
            inner = self.rewritten(hint)
            mark = typing_extensions.Required if is_required(kind, name, hint) else typing_extensions.NotRequired
            fields[name] = mark[inner]
        make = typing.cast("typing.Callable[[str, object], type]", typing_extensions.TypedDict)
        made = make(kind.__name__, fields)
        setattr(made, "__pydantic_config__", ConfigDict(extra="allow" if is_open else "forbid", strict=True))  # noqa: B010 - unknown to the checker
        self.done[kind] = made
        return made


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:  # the same in every folder
    """List what the SDK's own types refuse in a request; sampling parameters are no longer among them."""
    named = {key: value for key, value in body.items() if key not in ("temperature", "top_p", "top_k")}
    try:
        validator(beta="mcp_servers" in named).validate_python(named)  # with the header of that beta
    except ValidationError as error:
        return [str(error)]
    return []
