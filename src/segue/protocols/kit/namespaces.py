"""Namespaces: groups of functions in the list of tools, as functions that one protocol lets a caller define."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias, final

import msgspec

from segue.conversation.content import ToolCall
from segue.conversation.context import NativeTool, Tool, ToolDefinition

FunctionName: TypeAlias = tuple[str | None, str]
"""The namespace of a function, None without one, and its name."""


@final
class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A group of functions."""

    name: str
    description: str = ""
    functions: tuple[ToolDefinition, ...] = ()


@final
class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol writes namespaces.

    - `read(tool)`: a tool that is a namespace; None for any other.
    - `find(call)`: the namespace of a call, as the provider wrote it; None without one. It is in the `extra` of the
      call, or in its signature, which then contains the text `key`.
    - `add(call, namespace)`: the same call with a namespace.
    - `is_deferred(tool)`: whether the definition of a function is loaded only when it is searched for.
    - `load(tool, names)`: the same tool with these functions not deferred.
    """

    read: Callable[[NativeTool], Namespace | None]
    find: Callable[[ToolCall], str | None]
    key: str
    add: Callable[[ToolCall, str], ToolCall]
    is_deferred: Callable[[ToolDefinition], bool]
    load: Callable[[Tool, Collection[str]], Tool]
