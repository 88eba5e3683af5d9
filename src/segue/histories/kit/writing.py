"""What every format that is written in JSON Lines uses."""

from __future__ import annotations

import json
from typing import final

import msgspec

from segue.histories.kit.format import Draft
from segue.projection.report import ChangeCode, Loss

_ENCODER = msgspec.json.Encoder()


def json_line(value: object) -> bytes:
    """Write one value as a line of JSON; half a surrogate pair is written as an escape."""
    try:
        return _ENCODER.encode(value) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode() + b"\n"


@final
class Clock:
    """Gives each record a time: its own, or one millisecond after the one before it, which is reported once."""

    def __init__(self, draft: Draft) -> None:
        self._now = draft.started
        self._notes = draft.notes
        self._noted = False

    def at(self, time: int | None) -> int:
        """Give the time of the next record."""
        if time is None:
            self._now += 1
            if not self._noted:
                self._noted = True
                self._notes.add(ChangeCode.TIME_MADE, ("messages",), Loss.NONE, "one millisecond after the last time")
            return self._now
        self._now = max(self._now, time)
        return time
