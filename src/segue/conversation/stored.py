"""Conversations as JSON: `load` and `dump`, and the same for one message.

Facts this file rests on:
- A file says which format it has, `segue/1`, before anything else. A newer one is refused whole: half of it would be
  another conversation. A file that does not say was written by one of segue's ancestors.            (our promise)
- Reading into types costs less than reading into dicts, as long as every field is known.              (measured)
- msgspec refuses lone surrogates both ways; the standard library writes them as escapes.  (msgspec 0.22.0, tried)

There are two ways in and two ways out. The fast ones leave the work to msgspec and look only at what has no type of
ours; whatever they do not vouch for takes the careful ones, which judge and name the place. Both give equal values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal, cast, final

import msgspec

from segue.conversation.content import Extra, SystemContent, Value
from segue.conversation.context import Context, Tool
from segue.conversation.foreign import (
    FORMAT,
    PROTOCOLS,
    read_context,
    read_message,
    read_message_of_unknown_origin,
)
from segue.conversation.limits import ABOVE_A_MESSAGE, Stored, check_limits, find_fault, parse_json
from segue.conversation.messages import Message
from segue.conversation.screening import (
    Misplaced,
    free_values,
    free_values_of,
    is_plain,
    is_shallow,
    vetted_values,
    vetted_values_of,
)
from segue.errors import DumpError, LoadError


@final
class Document(Value, frozen=True, kw_only=True):
    """A stored conversation: its format, then what a `Context` holds."""

    format: Literal["segue/1"]
    system_prompt: str | tuple[SystemContent, ...] | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    extra: Extra | None = None


_DOCUMENTS: Final = msgspec.json.Decoder(Document)
_MESSAGES: Final[msgspec.json.Decoder[Message]] = msgspec.json.Decoder(Message)
_ENCODER: Final = msgspec.json.Encoder()

_NOT_FAST: Final = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError, Misplaced)
"""What the fast ways stumble over. The careful ways find out why, and whether it matters."""


# -- a conversation ---------------------------------------------------------------------------------------------------


def load(data: Stored) -> Context:
    """Read a conversation that segue stored, or a file of one of its ancestors.

    Fields that segue has no word for are kept under `extra["stored"]` of the object they stand on.

    Raises:
        LoadError: it cannot be read; `path` says where. `NewerFormat`, its child, for a file of a later segue.
    """
    try:
        document = _DOCUMENTS.decode(data)
        context = Context(
            system_prompt=document.system_prompt,
            messages=document.messages,
            tools=document.tools,
            extra=document.extra,
        )
        if is_shallow(free_values(context)):
            return context
    except _NOT_FAST:
        pass
    return read_context(parse_json(data))


def dump(context: Context) -> bytes:
    """Write a conversation so that `load` gives an equal one.

    Constructors check nothing, so this looks at what type checkers cannot see, the JSON in free-form fields, and at
    what programs get wrong: the place of content, words, seals, ids, stop reasons, times, costs and tools. A list where
    a tuple belongs is written, and read as a tuple; a tuple in free-form JSON is read as a list.

    Raises:
        DumpError: JSON has no word for something in it, or could not give it back; `path` says where.
    """
    if type(context) is not Context:
        raise DumpError(f"expected a Context, got a value of type {type(context).__name__}")
    document = Document(
        format=FORMAT,
        system_prompt=context.system_prompt,
        messages=context.messages,
        tools=context.tools,
        extra=context.extra,
    )
    try:
        data = _ENCODER.encode(document)
        if is_plain(vetted_values(context)):
            return data
    except _NOT_FAST:
        pass
    data = _encode_carefully(document)
    try:
        load(data)
    except LoadError as error:
        raise _cannot_be_read(error) from error
    return data


# -- one message ------------------------------------------------------------------------------------------------------


def load_message(data: Stored) -> Message:
    """Read one message.

    A message does not say who wrote it. It is taken for one of segue's own if it fits, unless its protocol has a name
    that only the ancestors use; otherwise it is read like one of theirs.

    Raises:
        LoadError: it cannot be read; `path` says where in the message.
    """
    message = _load_own_message(data)
    if message is not None and not (message.role == "assistant" and message.protocol in PROTOCOLS):
        return message
    return read_message_of_unknown_origin(parse_json(data, above=ABOVE_A_MESSAGE))


def dump_message(message: Message) -> bytes:
    """Write one message, on one line, so that `load_message` gives an equal one.

    What was written is read again before it is handed out: a line that nobody can read would spoil the file that it
    is appended to. For the rest see `dump`.

    Raises:
        DumpError: JSON has no word for something in it, or could not give it back; `path` says where.
    """
    try:
        data = _ENCODER.encode(message)
        if _load_own_message(data) == message and is_plain(vetted_values_of((message,))):
            return data
    except _NOT_FAST:
        pass
    data = _encode_carefully(message, above=ABOVE_A_MESSAGE)
    try:
        read_message(parse_json(data, above=ABOVE_A_MESSAGE), foreign=False)
    except LoadError as error:
        raise _cannot_be_read(error) from error
    return data


def load_line(data: Stored, *, foreign: bool) -> Message | Context:
    """Read one line of a session file: a message, or a header, which is a document without messages.

    `foreign` says that no header came before, so that the line may be an ancestor's.

    Raises:
        LoadError: it cannot be read; `path` says where in the line.
    """
    if not foreign and (message := _load_own_message(data)) is not None:
        return message
    value = parse_json(data)
    if isinstance(value, dict) and ("format" in value or "messages" in value):
        return read_context(cast("object", value))
    check_limits(cast("object", value), above=ABOVE_A_MESSAGE)
    return read_message(cast("object", value), foreign=foreign)


def _load_own_message(data: Stored) -> Message | None:
    """Read a message the fast way; None means only that someone must look closer."""
    try:
        message = _MESSAGES.decode(data)
        return message if is_shallow(free_values_of((message,))) else None
    except _NOT_FAST:
        return None


# -- the careful way out ----------------------------------------------------------------------------------------------


def _encode_carefully(value: Document | Message, *, above: int = 0) -> bytes:
    if fault := find_fault(value, above=above):
        raise DumpError(fault.reason, path=fault.path)
    try:
        return _encode_whatever_text(value)
    except (ValueError, RecursionError) as error:
        # The interpreter was told to convert fewer digits than it does by itself, or the caller left it little stack.
        raise DumpError(str(error)) from error


def _encode_whatever_text(value: Document | Message) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_made_plain)
    except UnicodeEncodeError:
        plain: object = msgspec.to_builtins(value, enc_hook=_made_plain)
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def _made_plain(value: object) -> object:
    """Say what `find_fault` let pass in words that msgspec knows: text and numbers of other classes, other mappings."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return dict(cast("Mapping[str, object]", value))


def _cannot_be_read(error: LoadError) -> DumpError:
    return DumpError(f"this would be written and never read again: {error.reason}", path=error.path)
