"""Errors for values of the wrong type in a conversation or in options.

Constructors check nothing, so a string in place of a tuple raises only where some code uses it. Checking every value
first would slow every call down. So the conversation is checked only after something has raised, to report the path of
the wrong value. Options are small and are checked every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from math import isfinite
from typing import Final, ParamSpec, TypeAlias, TypeVar, cast, get_args

import msgspec

from segue.conversation.content import Content, FileContent, ImageContent
from segue.conversation.context import Context, Options, ThinkingLevel, Tool
from segue.conversation.messages import Message
from segue.conversation.shared_options import SharedOptions
from segue.conversation.stored import NOT_LOADABLE, dump, dump_message
from segue.errors import ConversationError, DumpError, Path, SettingsError

_JSON_WORDS: Final = {" | null": " or None", "`array": "`list", "`object": "`dict", "`": ""}
"""Words in the messages of msgspec -> those of Python."""
_MESSAGES: Final = get_args(Message)
_TOOLS: Final = get_args(Tool)
_LEVELS: Final[tuple[str, ...]] = get_args(ThinkingLevel)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def explain_misuse(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a function so that a value of the wrong type raises an error with its path.

    The first parameter of the function is a conversation, or a list of messages if it is called `messages`.

    Raises:
        ConversationError: a value has the wrong type; `path` locates it.
    """
    takes_messages = next(iter(signature(function).parameters)) == "messages"

    @wraps(function)
    def explained(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, ValueError, KeyError, RecursionError) as error:
            given = args[0] if args else next(iter(kwargs.values()), None)
            fault = _message_fault(given, ()) if takes_messages else _context_fault(given)
            if fault is None:
                raise
            raise ConversationError(fault[0], path=fault[1]) from error

    return explained


_Fault: TypeAlias = tuple[str, Path]


def _context_fault(given: object) -> _Fault | None:
    """Find the first value of the wrong type, with its path; None when there is none."""
    if not isinstance(given, Context):
        return f"expected a Context, got {_type_name(given)}; build one with Context(messages=(...,))", ()
    fault = _message_fault(given.messages, ("messages",))
    if fault is not None:
        return fault
    for index, tool in enumerate(given.tools):
        if not isinstance(tool, _TOOLS):
            advice = "; write Toolbox(function).definitions" if callable(tool) else ""
            return f"expected a ToolDefinition or NativeTool, got {_type_name(tool)}{advice}", ("tools", index)
        if tool.kind == "function" and not isinstance(cast("object", tool.parameters), Mapping):
            return f"expected a JSON schema as a dict, got {_type_name(tool.parameters)}", (
                "tools",
                index,
                "parameters",
            )
    try:
        dump(given)
    except DumpError as error:
        return error.reason.removeprefix(NOT_LOADABLE), error.path
    return None


def _message_fault(given: object, path: Path) -> _Fault | None:
    if not isinstance(given, (list, tuple)):
        return f"expected a tuple of messages, got {_type_name(given)}", path
    for index, message in enumerate(cast("list[object]", given)):
        place = (*path, index)
        if not isinstance(message, _MESSAGES):
            return (
                f"expected a message, got {_type_name(message)}; use UserMessage.of(...) or another message type",
                place,
            )
        candidate = cast("Message", message)
        content = cast("object", candidate.content)
        if not isinstance(content, (list, tuple)):
            return f"expected a tuple of content, got {_type_name(content)}; write (TextContent(text=...),)", (
                *place,
                "content",
            )
        for position, piece in enumerate(cast("list[object]", content)):
            if not isinstance(piece, Content):
                reason = f"expected content, got {_type_name(piece)}; use TextContent(text=...) or another content type"
                return reason, (*place, "content", position)
            if isinstance(piece, ImageContent | FileContent) and (fault := _media_fault(piece)):
                return fault[0], (*place, "content", position, *fault[1])
        try:
            dump_message(candidate)
        except DumpError as error:
            return error.reason.removeprefix(NOT_LOADABLE), (*place, *error.path)
    return None


def _media_fault(piece: ImageContent | FileContent) -> _Fault | None:
    """Find a path or an open file where bytes, base64 or a URL belong."""
    for name in ("data", "url"):
        value = cast("object", getattr(piece, name))
        if value is not None and not isinstance(value, str):
            helper = f"{type(piece).__name__}.from_file(path)"
            return f"expected bytes, base64 or a URL, got {_type_name(value)}; for a file use {helper}", (name,)
    return None


def _type_name(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def check_options(options: Options) -> None:
    """Check the types and values of options.

    Raises:
        SettingsError: one of them is wrong; `key` names it.
    """
    if not isinstance(options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(
            f"options: expected an Options, got {_type_name(options)}; write Options(max_tokens=...)", key="options"
        )
    thinking = options.thinking
    if isinstance(thinking, str) and thinking not in _LEVELS:
        levels = ", ".join(_LEVELS)
        raise SettingsError(
            f"options.thinking: got {thinking!r}, expected a number of tokens or one of {levels}", key="thinking"
        )
    if isinstance(options.stop, str):
        raise SettingsError(
            f"options.stop: expected a tuple of strings, got a string; write ({options.stop!r},)", key="stop"
        )
    schema = cast("object", options.output_schema)
    if schema is not None and not isinstance(schema, Mapping):
        name = schema.__name__ if isinstance(schema, type) else "Type"
        raise SettingsError(
            f"options.output_schema: expected a JSON schema as a dict, got {_type_name(schema)}; write"
            f" Options(output_schema=json_schema({name}))",
            key="output_schema",
        )
    for key in ("temperature", "top_p"):
        value = cast("object", getattr(options, key))
        if isinstance(value, float) and not isfinite(value):
            raise SettingsError(f"options.{key}: got {value}, expected a finite number or None", key=key)
    unknown = [key for key in options.shared or () if key not in SharedOptions.__annotations__]
    if unknown:
        names = ", ".join(sorted(SharedOptions.__annotations__))
        raise SettingsError(f"options.shared: there is no option {unknown[0]!r}; there are {names}", key="shared")
    try:
        msgspec.convert(msgspec.to_builtins(options), Options)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise _explain_option(error, options) from error


def _explain_option(error: Exception, options: Options) -> SettingsError:
    """Name the option that has the wrong type or value."""
    reason, at, place = str(error).rstrip("`").partition(" - at `$.")
    if at:
        fields = dict(zip(Options.__struct_encode_fields__, Options.__struct_fields__, strict=True))
        first, dot, rest = place.partition(".")
        key = fields.get(first, first)
        for word, name in _JSON_WORDS.items():
            reason = reason.replace(word, name)
        return SettingsError(f"options.{key}{dot}{rest}: {reason[:1].lower()}{reason[1:]}", key=key)
    for key in Options.__struct_fields__:
        value = cast("object", getattr(options, key))
        try:
            msgspec.to_builtins(value)
        except (TypeError, ValueError):
            reason = f"JSON cannot represent {_type_name(value)}; convert it to plain values"
            return SettingsError(f"options.{key}: {reason}", key=key)
    return SettingsError(f"options: {error}", key="options")
