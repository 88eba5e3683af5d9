"""Run the calls of a model: functions as tools, several calls at once, errors as results.

A model that gets an error as a result can correct its call. So nothing that a function raises ends the loop: not a call
of a tool that does not exist, not arguments that are cut off or of the wrong type.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from difflib import get_close_matches
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, NamedTuple, cast, final

import msgspec

from segue.client.http.loops import find_loop
from segue.client.output.schemas import read_value, write_value
from segue.client.session.history import new_result
from segue.client.tools.signatures import define
from segue.conversation.arguments import parse_arguments
from segue.conversation.content import FileContent, ImageContent, TextContent, ToolCall, ToolResultContent
from segue.conversation.context import ToolDefinition
from segue.conversation.messages import ToolResultMessage
from segue.errors import SettingsError

_CONTENT: Final = (TextContent, ImageContent, FileContent)
_MOST_AT_ONCE: Final = 16
_REPAIRED: Final = {"mode": "repaired"}
"""The details of arguments that were repaired without a loss; others are cut off, or not an object."""


@final
class _Entry(NamedTuple):
    definition: ToolDefinition
    function: Callable[..., object]
    arguments: type[msgspec.Struct] | None
    """The type that arguments are read as; None if they are passed on unchanged."""


@final
class Toolbox:
    """Tools for a model, made from Python functions; runs the calls of its answers.

    Functions may be async, and several calls run at once: sync functions in threads, unless `parallel` is false. A
    result is a text, content such as an image, a list of both, or any other value, which is written as JSON.

    Pass `definitions` to a conversation. While it has `pending_calls`, add the results that `run` returns for them, and
    ask again.

    Raises:
        SettingsError: two functions have one name, or the parameters of one cannot be described by a JSON schema.
    """

    def __init__(self, *functions: Callable[..., object], parallel: bool = True) -> None:
        self._entries: dict[str, _Entry] = {}
        self._most: int = _MOST_AT_ONCE if parallel else 1
        for function in functions:
            definition, arguments = define(function, name=None, description=None, strict=None)
            self._add(_Entry(definition, function, arguments))

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(self._entries)})"

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self.definitions)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions, for `Context(tools=...)` and `Conversation(tools=...)`."""
        return tuple(entry.definition for entry in self._entries.values())

    def add(self, definition: ToolDefinition, function: Callable[..., object]) -> None:
        """Add a tool with its own definition, such as one of an MCP server.

        The function gets the arguments of a call as keywords; the schema is not checked.

        Raises:
            SettingsError: there is a tool of that name.
        """
        self._add(_Entry(definition, function, None))

    def _add(self, entry: _Entry) -> None:
        name = entry.definition.name
        if name in self._entries:
            raise SettingsError(f"there are two tools with the name {name!r}; rename one of them", key=name)
        self._entries[name] = entry

    def run(self, calls: Iterable[ToolCall]) -> tuple[ToolResultMessage, ...]:
        """Run calls and return their results, in the order of the calls. An exception is a result with `is_error`."""
        given = tuple(calls)
        # An async function cannot be run where a loop runs already, as in a notebook.
        if (len(given) <= 1 or self._most == 1) and find_loop() is None:
            return tuple(self._run_one(call) for call in given)
        with ThreadPoolExecutor(max(1, min(len(given), self._most)), "segue-tool") as pool:
            # Each call has a copy of the context variables, such as the current span of a tracer.
            started = [pool.submit(copy_context().run, self._run_one, call) for call in given]
            return tuple(each.result() for each in started)

    async def run_async(self, calls: Iterable[ToolCall]) -> tuple[ToolResultMessage, ...]:
        """Run calls in an event loop, like `run`. If it is cancelled, async functions are cancelled too."""
        limit = asyncio.Semaphore(self._most)

        async def run_one(call: ToolCall) -> ToolResultMessage:
            async with limit:
                return await self._run_one_async(call)

        async with asyncio.TaskGroup() as group:
            started = [group.create_task(run_one(call)) for call in calls]
        return tuple(each.result() for each in started)

    def _run_one(self, call: ToolCall) -> ToolResultMessage:
        try:
            entry, arguments = self._read(call)
            value = entry.function(**arguments)
            if isawaitable(value):
                value = asyncio.run(_wait(value))
            return new_result(call, _content(value), is_error=False, details=None)
        except Exception as error:  # noqa: BLE001 - whatever a function raises, the model gets it as a result
            return _failed(call, error)

    async def _run_one_async(self, call: ToolCall) -> ToolResultMessage:
        try:
            entry, arguments = self._read(call)
            if iscoroutinefunction(entry.function):
                value = await entry.function(**arguments)
            else:
                value = await asyncio.to_thread(entry.function, **arguments)
                if isawaitable(value):
                    value = await value
            return new_result(call, _content(value), is_error=False, details=None)
        except Exception as error:  # noqa: BLE001 - as above
            return _failed(call, error)

    def _read(self, call: ToolCall) -> tuple[_Entry, dict[str, Any]]:
        """Find the function of a call and read its arguments."""
        entry = self._entries.get(call.name)
        if entry is None:
            near = get_close_matches(call.name, self._entries, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the tools are: {', '.join(self._entries) or 'none'}"
            raise _Refused(f"there is no tool {call.name!r}; {hint}")
        problem = parse_arguments(call.arguments_text).diagnostic if call.arguments_text is not None else None
        if problem is not None and problem.details != _REPAIRED:
            raise _Refused(f"the function was not run: {problem.message}")
        if entry.arguments is None:
            return entry, dict(call.arguments)
        try:
            read = read_value(dict(call.arguments), entry.arguments)
        except ValueError as error:
            raise _Refused(f"the function was not run, because the arguments do not fit: {error}") from error
        return entry, {name: getattr(read, name) for name in entry.arguments.__struct_fields__}


class _Refused(Exception):
    """A call that is not run; the model gets the text."""


async def _wait(value: object) -> object:
    return await cast("Coroutine[Any, Any, object]", value)


def _failed(call: ToolCall, error: Exception) -> ToolResultMessage:
    text = str(error) if isinstance(error, _Refused) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return new_result(call, (text,), is_error=True, details=None)


def _content(value: object) -> Sequence[str | ToolResultContent]:
    """Return the content of a result."""
    if isinstance(value, (str, *_CONTENT)):
        return (value,)
    pieces = cast("Sequence[object]", value if isinstance(value, (list, tuple)) else ())
    if any(isinstance(piece, _CONTENT) for piece in pieces):
        return tuple(piece if isinstance(piece, (str, *_CONTENT)) else write_value(piece) for piece in pieces)
    return (write_value(cast("object", value)),)
