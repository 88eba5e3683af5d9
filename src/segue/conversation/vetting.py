"""Telling people what they got wrong: values that are not what their types say.

Constructors check nothing, so a string where a tuple belongs is found only when something looks at it, deep inside.
Looking at everything first would cost every caller; so this looks only after something has gone wrong, and names the
place in the words the caller used. Options are few and small: they are looked at every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from math import isfinite
from typing import Final, ParamSpec, TypeAlias, TypeVar, cast, get_args

import msgspec

from segue.conversation.content import Content
from segue.conversation.context import Context, Options, ThinkingLevel, Tool
from segue.conversation.messages import Message
from segue.conversation.stored import dump, dump_message
from segue.errors import ConversationError, DumpError, Path, SettingsError

_MESSAGES: Final = get_args(Message)
_TOOLS: Final = get_args(Tool)
_LEVELS: Final[tuple[str, ...]] = get_args(ThinkingLevel)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def explain_misuse(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Turn what breaks deep inside over a value of the wrong type into an error that names the value.

    The first argument of the function is a conversation, or the messages of one if it is called `messages`.

    Raises:
        ConversationError: what was given is not what its types say; `path` says where.
    """
    takes_messages = next(iter(signature(function).parameters)) == "messages"

    @wraps(function)
    def explained(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            given = args[0] if args else next(iter(kwargs.values()), None)
            fault = _message_fault(given, ()) if takes_messages else _context_fault(given)
            if fault is None:
                raise
            raise ConversationError(fault[0], path=fault[1]) from error

    return explained


_Fault: TypeAlias = tuple[str, Path]


def _context_fault(given: object) -> _Fault | None:
    """Say what is wrong with a conversation, and where; None when nothing is."""
    if not isinstance(given, Context):
        return f"expected a Context, got {_name(given)}", ()
    fault = _message_fault(given.messages, ("messages",))
    if fault is not None:
        return fault
    for index, tool in enumerate(given.tools):
        if not isinstance(tool, _TOOLS):
            return f"expected a tool, got {_name(tool)}", ("tools", index)
        if tool.kind == "function" and not isinstance(cast("object", tool.parameters), Mapping):
            return f"parameters are a JSON schema, not {_name(tool.parameters)}", ("tools", index, "parameters")
    try:
        dump(given)
    except DumpError as error:
        return _plainly(error), error.path
    return None


def _message_fault(given: object, path: Path) -> _Fault | None:
    if not isinstance(given, (list, tuple)):
        return f"expected messages, got {_name(given)}", path
    for index, message in enumerate(cast("list[object]", given)):
        place = (*path, index)
        if not isinstance(message, _MESSAGES):
            return f"expected a message, got {_name(message)}", place
        candidate = cast("Message", message)
        content = cast("object", candidate.content)
        if not isinstance(content, (list, tuple)):
            return f"content is a tuple of pieces, not {_name(content)}", (*place, "content")
        for position, piece in enumerate(cast("list[object]", content)):
            if not isinstance(piece, Content):
                return f"expected a piece of content, got {_name(piece)}", (*place, "content", position)
        try:
            dump_message(candidate)
        except DumpError as error:
            return _plainly(error), (*place, *error.path)
    return None


def _plainly(error: DumpError) -> str:
    return error.reason.removeprefix("this would be written and never read again: ")


def _name(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def check_options(options: Options) -> None:
    """Let pass options whose values are what they should be.

    Raises:
        SettingsError: one is not; `key` names it.
    """
    if not isinstance(options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"options have to be an Options, not {_name(options)}", key="options")
    thinking = options.thinking
    if isinstance(thinking, str) and thinking not in _LEVELS:
        levels = ", ".join(_LEVELS)
        raise SettingsError(
            f"thinking cannot be {thinking!r}: it is a number of tokens or one of {levels}", key="thinking"
        )
    if isinstance(options.stop, str):
        raise SettingsError(f"stop is a tuple of texts: write ({options.stop!r},)", key="stop")
    for key in ("temperature", "top_p"):
        value = cast("object", getattr(options, key))
        if isinstance(value, float) and not isfinite(value):
            raise SettingsError(f"{key} cannot be {value}: it is a finite number", key=key)
    try:
        msgspec.convert(msgspec.to_builtins(options), Options)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        key = str(error).rpartition("$.")[2].strip("`") or "options"
        raise SettingsError(f"options: {error}", key=key) from error
