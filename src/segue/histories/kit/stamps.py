"""Times and ids. Both are derived from the history: the same history gives the same bytes on every run.

The time of writing is used only for a history without any time.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable

from segue.conversation.messages import Message

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def milliseconds_of(value: object) -> int | None:
    """Read a time: ISO 8601 text, or a number of seconds or milliseconds. None if it is not a time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = int(value if value > 100_000_000_000 else value * 1000)  # seconds until the year 5138
        except (OverflowError, ValueError):
            return None
        return number if 0 <= number < 2**53 else None
    if not isinstance(value, str) or not value[:4].isdecimal():
        return None
    try:
        time = dt.datetime.fromisoformat(value)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    try:
        since = time - _EPOCH
    except OverflowError:
        return None
    number = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return number if number >= 0 else None


def iso_of(milliseconds: int) -> str:
    """Write a time as agents do: `2026-11-15T12:44:04.202Z`."""
    milliseconds = min(max(milliseconds, 0), 253_402_300_799_999)  # the last one that a date can hold
    time = _EPOCH + dt.timedelta(milliseconds=milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def file_time_of(milliseconds: int) -> str:
    """Write a time for the name of a file: `2026-11-15T12-44-04`."""
    return iso_of(milliseconds)[:19].replace(":", "-")


def make_id(*seeds: str | bytes) -> str:
    """Make a UUID (version 8: a hash) of some texts."""
    digest = hashlib.sha256()
    for seed in seeds:
        data = seed.encode("utf-8", "surrogatepass") if isinstance(seed, str) else seed
        digest.update(len(data).to_bytes(8, "big") + data)
    text = digest.hexdigest()
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-{'89ab'[int(text[16], 16) % 4]}{text[17:20]}-{text[20:32]}"


def time_of(message: Message) -> int | None:
    """Return the time of a message; instructions have none."""
    return None if message.role == "system" else message.timestamp


def first_time(messages: Iterable[Message], default: int | None, now: int) -> int:
    """Return the time at which a conversation begins; `now` for one without any time."""
    times = (time_of(message) for message in messages)
    found = next((time for time in times if time is not None), None)
    if found is None:
        return now if default is None else default
    return found if default is None else min(found, default)
