"""Events as JSON Lines: `dump_events` and `load_events`.

The first line is the version of the format, `{"format": "segue-events/1"}`; every other line is one event. A newer
format is refused: an event that is skipped would change the folded message.

Facts:
- msgspec refuses lone surrogates both ways, and a delta may end in half a surrogate pair; the standard library writes
  it as an escape.                                                                          (msgspec 0.22.0, tried)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import msgspec

from segue.conversation.events import Event
from segue.conversation.limits import Stored
from segue.errors import DumpError, LoadError, NewerFormat
from segue.foundation.json_text import encode_json

EVENTS_FORMAT: Final = "segue-events/1"
_NAME: Final = "segue-events/"


class _Header(msgspec.Struct):
    format: str


_EVENTS: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)
_HEADERS: Final = msgspec.json.Decoder(_Header)
_ENCODER: Final = msgspec.json.Encoder()
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def dump_events(events: Iterable[Event]) -> bytes:
    """Write events as JSON Lines, so that `load_events` returns equal ones.

    Raises:
        DumpError: a value cannot be stored as JSON; `path` begins with the number of the event.
    """
    lines = [_ENCODER.encode(_Header(format=EVENTS_FORMAT))]
    for number, event in enumerate(events):
        try:
            lines.append(_ENCODER.encode(event))
        except (TypeError, ValueError, RecursionError):
            lines.append(_dump_slowly(event, number))
    return b"\n".join((*lines, b""))


def _dump_slowly(event: Event, number: int) -> bytes:
    """Write what msgspec refuses: lone surrogates."""
    try:
        return encode_json(event)
    except (TypeError, ValueError, RecursionError) as error:
        raise DumpError(f"an event holds a value that JSON cannot represent: {error}", path=(number,)) from error


def load_events(data: Stored) -> list[Event]:
    """Read events that `dump_events` wrote.

    Raises:
        LoadError: the data cannot be read; `path` is the number of the event.
        NewerFormat: the data was written by a later version of segue.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    first, _, rest = raw.partition(b"\n")
    try:
        found = _HEADERS.decode(first).format
    except _UNREADABLE as error:
        raise LoadError(f'stored events begin with a line {{"format": "{EVENTS_FORMAT}"}}') from error
    if found != EVENTS_FORMAT:
        kind = NewerFormat if found.startswith(_NAME) else LoadError
        raise kind(f"the format of these events is {found}, and this version of segue reads {EVENTS_FORMAT}")
    events: list[Event] = []
    for number, line in enumerate(line for line in rest.split(b"\n") if line.strip()):
        try:
            events.append(_load(line))
        except _UNREADABLE as error:
            raise LoadError(f"this is not an event: {error}", path=(number,)) from error
    return events


def _load(line: bytes) -> Event:
    try:
        return _EVENTS.decode(line)
    except _UNREADABLE:
        return msgspec.convert(json.loads(line), type=Event)  # lone surrogates, which msgspec refuses
