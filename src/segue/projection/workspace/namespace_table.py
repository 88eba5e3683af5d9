"""The functions of a request that are in namespaces, and those whose definitions are deferred."""

from __future__ import annotations

from collections import Counter
from typing import Final

from segue.conversation.context import Tool
from segue.protocols.kit.facts import FunctionName, Namespace, Namespaces
from segue.protocols.registry import find_protocol


class NamespaceTable:
    """The functions in namespaces of one request, and deferred functions; equal for equal names."""

    __slots__ = ("deferred", "functions", "key", "names", "taken")

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        found: list[tuple[Namespace, Namespaces]] = []
        self.taken: frozenset[str] = frozenset(tool.name for tool in tools if tool.kind == "function")
        self.deferred: set[FunctionName] = set()
        for tool in tools:
            protocols = (tool.protocol,) if tool.kind == "native" else tuple(tool.extra or ())
            for protocol in protocols:
                codec = find_namespaces(protocol)
                if codec is None:
                    continue
                if tool.kind == "native":
                    space = codec.read(tool)
                    if space is not None:
                        found.append((space, codec))
                elif codec.is_deferred(tool):
                    self.deferred.add((None, tool.name))
        counts = Counter(function.name for space, _ in found for function in space.functions)
        self.functions: dict[FunctionName, str] = {}
        """Each function of a namespace -> its name outside of the wire."""
        for space, codec in found:
            for function in space.functions:
                is_unique = counts[function.name] == 1 and function.name not in self.taken
                given = function.name if is_unique else f"{space.name}.{function.name}"
                self.functions[space.name, function.name] = given
                if codec.is_deferred(function):
                    self.deferred.add((space.name, function.name))
        self.names: dict[str, FunctionName] = {given: key for key, given in self.functions.items()}
        self.key: tuple[frozenset[FunctionName], frozenset[FunctionName], frozenset[str] | None] = (
            frozenset(self.functions),
            frozenset(self.deferred),
            self.taken if self.functions else None,
        )

    def is_empty(self) -> bool:
        """Whether there are neither namespaces nor deferred functions."""
        return not self.functions and not self.deferred


def find_namespaces(protocol: str) -> Namespaces | None:
    """Find how a protocol writes namespaces; None if it has none."""
    record = find_protocol(protocol)
    return None if record is None else record.namespaces


NO_NAMESPACES: Final = NamespaceTable(())


def read_table(tools: tuple[Tool, ...]) -> NamespaceTable:
    """Read the namespaces of a request; most have none."""
    if tools and any(tool.kind == "native" or tool.extra is not None for tool in tools):
        return NamespaceTable(tools)
    return NO_NAMESPACES
