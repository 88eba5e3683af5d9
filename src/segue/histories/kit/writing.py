"""What every format that is written in JSON Lines uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AnyContent
from segue.conversation.messages import AssistantMessage, Message
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


def is_text(message: Message, piece: AnyContent) -> bool:
    """Whether a piece is no image and no file: all that many programs store."""
    return message.role == "assistant" or piece.kind == "text"


def placed(
    draft: Draft, title: str, holds: Callable[[Message, AnyContent], bool] = is_text
) -> Iterator[tuple[int, Message]]:
    """Yield each message with its position in the given history, for a program without blocks of providers.

    A message that projection inserted has the position of the one before it. Native blocks are replaced by what stands
    for them, and media that the program does not store (`holds`) are left out, which is reported; a message of which
    nothing is left is not written.
    """
    last = 0
    for at, message in enumerate(draft.messages):
        place = draft.positions[at] if at < len(draft.positions) else at
        last = last if place is None else place
        content: list[AnyContent] = []
        pending: list[AnyContent] = list(message.content)
        while pending:
            piece = pending.pop(0)
            if piece.kind == "native":
                code = ChangeCode.NATIVE_REPLACED if piece.fallback else ChangeCode.NATIVE_DROPPED
                draft.notes.add(code, ("messages", last), Loss.OPAQUE, f"a block of {piece.protocol}")
                pending = [*piece.fallback, *pending]
            elif holds(message, piece):
                content.append(piece)
            else:
                detail = f"{title} does not store it"
                draft.notes.add(ChangeCode.MEDIA_OMITTED, ("messages", last), Loss.CONTENT, detail)
        if message.role == "toolResult" or any(piece.kind != "text" or piece.text for piece in content):
            yield last, message if tuple(content) == message.content else _with_content(message, content)


def _with_content(message: Message, content: Sequence[AnyContent]) -> Message:
    return replace(message, content=cast("Any", tuple(content)))


def note_lost(draft: Draft, message: AssistantMessage, at: int, title: str, *, redacted: bool = False) -> None:
    """Report what a program that signs thinking alone has no field for; `redacted`: it keeps hidden thinking."""
    for piece in message.content:
        code = None
        if piece.kind == "thinking" and piece.redacted and not redacted:
            code = ChangeCode.THINKING_DROPPED
        elif (piece.kind == "text" and piece.text_signature) or (piece.kind == "toolCall" and piece.thought_signature):
            code = ChangeCode.SIGNATURE_REMOVED
        if code is not None:
            draft.notes.add(code, ("messages", at), Loss.OPAQUE, f"{title} has no field for it")
