"""Conversations as JSON: `load` and `dump`, and the same for one message and one summary.

Facts:
- The first field of a file is its format, `segue/1`. A newer format is refused: reading only the known part would give
  another conversation. A file without a format is a foreign one, of pi-ai or ktsoator/or.            (our promise)
- Decoding into types costs less than decoding into dicts, as long as every field is known.            (measured)
- msgspec refuses lone surrogates both ways; the standard library writes them as escapes.  (msgspec 0.22.0, tried)

Loading and dumping each have a fast path and a slow path. The fast path lets msgspec do the work and checks only
free-form JSON. Whatever it cannot confirm goes to the slow path, which decides and locates the error. Both paths give
equal values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final, Literal, NamedTuple, cast, final, get_args

import msgspec

from segue.conversation.content import Extra, SystemContent, Value
from segue.conversation.context import Context, Summary, Tool
from segue.conversation.fast_checks import (
    WrongType,
    checked_values,
    checked_values_of,
    checked_values_of_summary,
    free_form_values,
    free_form_values_of,
    is_plain,
    is_shallow,
)
from segue.conversation.foreign import (
    FORMAT,
    PROTOCOLS,
    read_context,
    read_message,
    read_message_of_unknown_origin,
    read_summary,
)
from segue.conversation.limits import ABOVE_A_MESSAGE, Stored, check_limits, find_fault, parse_json
from segue.conversation.messages import Message
from segue.conversation.retired import may_be_retired, upgrade_context, upgrade_message
from segue.errors import DumpError, LoadError, Path


@final
class Document(Value, frozen=True, kw_only=True):
    """A stored conversation: its format, then what a `Context` holds."""

    format: Literal["segue/1"]
    system_prompt: str | tuple[SystemContent, ...] | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    summaries: tuple[Summary, ...] = ()
    pins: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    extra: Extra | None = None


@final
class ModelLine(NamedTuple):
    """A line of a session file with a model that no catalogue has; `fields` are those of `segue.Model`."""

    fields: Mapping[str, object]


MODEL_LINE: Final = "model"
"""The `type` of such a line. Messages have a role and no type."""

_ENCODER: Final = msgspec.json.Encoder()
_MESSAGES: Final = get_args(Message)

NOT_LOADABLE: Final = "this could not be loaded again: "
"""The first words of a `DumpError` about a value that JSON can represent and `load` refuses."""

_NOT_FAST: Final = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError, WrongType)
"""Errors that send a value to the slow path, which finds out whether something is wrong."""


@cache
def _documents() -> msgspec.json.Decoder[Document]:
    """Make the decoder of conversations when the first is loaded: that takes a third of the import."""
    return msgspec.json.Decoder(Document)


@cache
def _messages() -> msgspec.json.Decoder[Message]:
    return msgspec.json.Decoder[Message](Message)


# -- a conversation ---------------------------------------------------------------------------------------------------


def load(data: Stored) -> Context:
    """Read a conversation that segue stored, or a file of pi-ai or ktsoator/or.

    Unknown fields are kept under `extra["stored"]` of their object.

    Raises:
        LoadError: the data cannot be read; `path` locates the problem.
        NewerFormat: the file was written by a later version of segue.
    """
    try:
        document = _documents().decode(data)
        context = Context(
            system_prompt=document.system_prompt,
            messages=document.messages,
            tools=document.tools,
            summaries=document.summaries,
            pins=document.pins,
            extra=document.extra,
        )
        free = free_form_values(context)
        if is_shallow(free):
            return upgrade_context(context) if may_be_retired(free) else context
    except _NOT_FAST:
        pass
    return upgrade_context(read_context(parse_json(data)))


def dump(context: Context) -> bytes:
    """Write a conversation so that `load` returns an equal one.

    Constructors check nothing. So this checks what type checkers cannot see, the JSON in free-form fields, and the
    fields that programs often get wrong: content in the wrong role, texts, signatures, ids, stop reasons, timestamps,
    costs and tools. A list in place of a tuple is accepted and read as a tuple; a tuple in free-form JSON is read as a
    list. A cache mark or prefix that is still kept in `extra` is written as the typed field: see `retired.py`.

    Raises:
        DumpError: a value cannot be stored as JSON, or could not be loaded again; `path` locates it.
    """
    if type(context) is not Context:
        raise DumpError(f"expected a Context, got {type(context).__name__}; use dump_message() for a single message")
    document = Document(
        format=FORMAT,
        system_prompt=context.system_prompt,
        messages=context.messages,
        tools=context.tools,
        summaries=context.summaries,
        pins=context.pins,
        extra=context.extra,
    )
    try:
        data = _ENCODER.encode(document)
        free = checked_values(context)
        if is_plain(free):
            upgraded = upgrade_context(context) if may_be_retired(free) else context
            return data if upgraded is context else dump(upgraded)
    except _NOT_FAST:
        pass
    data = _encode_slowly(document)
    try:
        load(data)
    except LoadError as error:
        raise _not_loadable(error) from error
    for index, message in enumerate(context.messages):
        _check_is_message(message, ("messages", index))
    upgraded = upgrade_context(context)
    return data if upgraded is context else dump(upgraded)


# -- one message ------------------------------------------------------------------------------------------------------


def load_message(data: Stored) -> Message:
    """Read one message.

    A message alone has no format field. It is read as one of segue's own if it fits, unless its protocol has a name
    that only pi-ai or ktsoator/or use; otherwise it is read as a foreign message.

    Raises:
        LoadError: the message cannot be read; `path` locates the problem in it.
    """
    message = _load_own_message(data)
    if message is not None and not (message.role == "assistant" and message.protocol in PROTOCOLS):
        return message
    return upgrade_message(read_message_of_unknown_origin(parse_json(data, above=ABOVE_A_MESSAGE)))


def dump_message(message: Message) -> bytes:
    """Write one message, on one line, so that `load_message` returns an equal one.

    The data is loaded once before it is returned: a line that cannot be read would make its session file unreadable.
    For the rest see `dump`.

    Raises:
        DumpError: a value cannot be stored as JSON, or could not be loaded again; `path` locates it.
    """
    try:
        data = _ENCODER.encode(message)
        if _load_own_message(data) == message and is_plain(checked_values_of((message,))):
            return data
    except _NOT_FAST:
        pass
    data = _encode_slowly(message, above=ABOVE_A_MESSAGE)
    try:
        read_message(parse_json(data, above=ABOVE_A_MESSAGE), foreign=False)
    except LoadError as error:
        raise _not_loadable(error) from error
    _check_is_message(message, ())
    upgraded = upgrade_message(message)
    return data if upgraded is message else dump_message(upgraded)


def dump_summary(summary: Summary) -> bytes:
    """Write one summary, on one line of a session file. For the rest see `dump_message`.

    Raises:
        DumpError: a value cannot be stored as JSON, or could not be loaded again; `path` locates it.
    """
    if type(summary) is not Summary:
        raise DumpError(f"expected a Summary, got {type(summary).__name__}")
    try:
        data = _ENCODER.encode(summary)
        if is_plain(checked_values_of_summary(summary)):
            return data
    except _NOT_FAST:
        pass
    data = _encode_slowly(summary, above=ABOVE_A_MESSAGE)
    try:
        read_summary(parse_json(data, above=ABOVE_A_MESSAGE))
    except LoadError as error:
        raise _not_loadable(error) from error
    return data


def load_line(data: Stored, *, foreign: bool) -> Message | Summary | Context | ModelLine:
    """Read one line of a session file: a message, a summary, a model, or a header: a document without messages.

    `foreign` is set while no header has been read: then the line may be a message of pi-ai or ktsoator/or.

    Raises:
        LoadError: the line cannot be read; `path` locates the problem in it.
    """
    if not foreign and (message := _load_own_message(data)) is not None:
        return message
    value: object = parse_json(data)
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else None
    if fields is not None:
        if "format" in fields or "messages" in fields:
            return upgrade_context(read_context(fields))
        if "role" not in fields and fields.get("type") == MODEL_LINE:
            return ModelLine(fields)
    check_limits(cast("object", value), above=ABOVE_A_MESSAGE)
    if isinstance(value, dict) and "role" not in value and cast("dict[str, object]", value).get("type") == Summary.kind:
        return read_summary(cast("object", value))
    return upgrade_message(read_message(cast("object", value), foreign=foreign))


def _load_own_message(data: Stored) -> Message | None:
    """Read a message on the fast path; None when the slow path has to decide."""
    try:
        message = _messages().decode(data)
        free = free_form_values_of((message,))
        if not is_shallow(free):
            return None
        return upgrade_message(message) if may_be_retired(free) else message
    except _NOT_FAST:
        return None


# -- the slow path of dumping -----------------------------------------------------------------------------------------


def _check_is_message(value: object, path: Path) -> None:
    """Check that a value is a message, and not only an object with the same JSON."""
    if not isinstance(value, _MESSAGES):
        raise DumpError(f"expected a message, got {type(value).__name__}", path=path)


def _encode_slowly(value: Document | Message | Summary, *, above: int = 0) -> bytes:
    if fault := find_fault(value, above=above):
        raise DumpError(fault.reason, path=fault.path)
    try:
        return _encode_any_text(value)
    except (ValueError, RecursionError) as error:
        # sys.set_int_max_str_digits() is below its default, or the caller has nearly used up the stack.
        raise DumpError(str(error)) from error


def _encode_any_text(value: Document | Message | Summary) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_to_plain)
    except UnicodeEncodeError:
        plain: object = msgspec.to_builtins(value, enc_hook=_to_plain)
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def _to_plain(value: object) -> object:
    """Convert what `find_fault` accepts and msgspec does not: subclasses of str, int and float, and other mappings."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return dict(cast("Mapping[str, object]", value))


def _not_loadable(error: LoadError) -> DumpError:
    return DumpError(f"{NOT_LOADABLE}{error.reason}", path=error.path)
