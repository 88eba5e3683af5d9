"""Two conversations side by side, message by message: what the page shows of a pair of them.

The pair is a stored conversation and the request made from it, the requests for two targets, or two histories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, final

from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.errors import render_path
from segue.foundation.json_text import encode_valid_json
from segue.inspector.alignment import AlignedPair, align_equal
from segue.inspector.pieces import (
    Json,
    Keep,
    describe_message,
    digest,
    instruction_pieces,
    message_pieces,
    show_pair,
    show_pieces,
)
from segue.projection.report import SENTENCES, Change, describe_loss

_MOST_CHANGES: Final = 50
"""How many of the changes of one message the page gets."""
_FOLDED: Final = 4
"""How many messages in a row that are not on the right become one row."""


def compare_histories(left: Context, right: Context) -> SideBySide:
    """Put two histories side by side; messages are the same if the page would show the same for both."""
    return _compare(left, right, _shown_of)


def compare_sent(given: Context, sent: Context, changes: Sequence[Change]) -> SideBySide:
    """Put a history next to the request that was sent for it, as a reader of the request finds it.

    A request does not say which model wrote a turn, and writes arguments of calls in its own way: neither is a
    difference. `changes` are those of the request; each is in the row of its message.
    """
    side = _compare(given, sent, _content_of)
    side.changes = place_changes(side.pairs, changes)
    return side


def place_changes(pairs: Sequence[AlignedPair], changes: Sequence[Change]) -> dict[int, list[Change]]:
    """Assign each change to the row of its message; changes of instructions, tools and options to the first row."""
    places = {row.stored: at for at, row in enumerate(pairs) if at and row.stored is not None}
    placed: dict[int, list[Change]] = {}
    for change in changes:
        number = change.path[1] if len(change.path) > 1 and change.path[0] == "messages" else None
        at = places.get(number, 0) if isinstance(number, int) else 0
        placed.setdefault(at, []).append(change)
    return placed


def _compare(left: Context, right: Context, key: Callable[[Message], str]) -> SideBySide:
    keys = [[key(message) for message in context.messages] for context in (left, right)]
    same = instruction_pieces(left, digest) == instruction_pieces(right, digest)
    return SideBySide(left, right, align_equal(left.messages, right.messages, keys), has_same_instructions=same)


@final
class SideBySide:
    """Rows of two conversations. The first row has the instructions; `changes` are those of a row."""

    def __init__(
        self, left: Context, right: Context, pairs: Sequence[AlignedPair], *, has_same_instructions: bool
    ) -> None:
        self._left = left
        self._right = right
        self.pairs: Sequence[AlignedPair] = [AlignedPair(None, None, same=has_same_instructions), *pairs]
        self.changes: Mapping[int, Sequence[Change]] = {}

    def summary(self) -> Json:
        """Say which rows there are: how many, the changed ones, the message on the left of each, the long gaps."""
        return {
            "rows": len(self.pairs),
            "changed": [at for at, row in enumerate(self.pairs) if not row.same or at in self.changes],
            "stored": [row.stored for row in self.pairs],
            "notSent": self._gaps(),
        }

    def _gaps(self) -> list[tuple[int, int]]:
        """Return the first and the last row of each long run of messages that are only on the left."""
        gaps: list[tuple[int, int]] = []
        for is_gone, run in groupby(enumerate(self.pairs), lambda each: bool(each[0]) and each[1].sent is None):
            places = [at for at, _ in run]
            if is_gone and len(places) >= _FOLDED:
                gaps.append((places[0], places[-1]))
        return gaps

    def find(self, text: str) -> list[int]:
        """Return the rows that contain a text, on either side."""
        wanted = text.casefold()
        found: list[int] = []
        for at, row in enumerate(self.pairs):
            sides = (
                None if row.stored is None else self._left.messages[row.stored],
                None if row.sent is None or row.same else self._right.messages[row.sent],
            )
            if any(side is not None and wanted in _words_of(side).casefold() for side in sides):
                found.append(at)
        return found

    def rows(self, wanted: Sequence[int], length: int, keep: Keep) -> list[Json]:
        """Return rows with at most `length` characters of each piece; `keep` gets the images of these rows."""
        return [self._show(at, length, keep) for at in wanted if 0 <= at < len(self.pairs)]

    def _show(self, at: int, length: int, keep: Keep) -> Json:
        row = self.pairs[at]
        changes = self.changes.get(at, ())
        shown: Json = {"at": at, "same": row.same, "changes": [show_change(it) for it in changes[:_MOST_CHANGES]]}
        if len(changes) > _MOST_CHANGES:
            shown["moreChanges"] = len(changes) - _MOST_CHANGES
        if at == 0:
            head: Json = {"role": "instructions"}
            stored = instruction_pieces(self._left, keep)
            if row.same:
                return shown | {"stored": head | {"pieces": show_pieces(stored, length)}}
            before, after = show_pair(stored, instruction_pieces(self._right, keep), length)
            return shown | {"stored": head | {"pieces": before}, "sent": head | {"pieces": after}}
        given = None if row.stored is None else self._left.messages[row.stored]
        sent = None if row.sent is None else self._right.messages[row.sent]
        old = [] if given is None else message_pieces(given, keep)
        if row.same or sent is None:
            before, after = show_pieces(old, length), []
        else:
            before, after = show_pair(old, message_pieces(sent, keep), length)
        if given is not None and row.stored is not None:
            shown["stored"] = describe_message(given, row.stored) | {"pieces": before}
        if sent is not None and row.sent is not None and not row.same:
            shown["sent"] = describe_message(sent, row.sent) | {"pieces": after}
        return shown


def _shown_of(message: Message) -> str:
    """Return a digest of what the page shows of a message."""
    return digest(repr((describe_message(message, 0), message_pieces(message, digest))))


def _content_of(message: Message) -> str:
    """Return a digest of what a message says, without who wrote it and how its calls are written."""
    pieces = [
        piece._replace(text=_render(content.arguments)) if content.kind == "toolCall" else piece
        for piece, content in zip(message_pieces(message, digest), message.content, strict=True)
    ]
    about = message.tool_call_id if message.role == "toolResult" else ""
    return digest(repr((message.role, about, pieces)))


def _render(arguments: object) -> str:
    return encode_valid_json(arguments).decode()


def _words_of(message: Message) -> str:
    """Return all readable text of a message."""
    words: list[str] = []
    for piece in message.content:
        match piece.kind:
            case "text":
                words.append(piece.text)
            case "thinking":
                words.append(piece.thinking)
            case "toolCall":
                words += (piece.name, piece.id, encode_valid_json(piece.arguments).decode())
            case "file":
                words.append(piece.name or "")
            case "image" | "native":
                pass
    return "\n".join(words)


def show_change(change: Change) -> Json:
    """Return what is shown of a change."""
    return {
        "code": change.code.value,
        "loss": change.loss.value,
        "dropped": describe_loss(change.code, change.loss),
        "where": render_path(change.path),
        "sentence": SENTENCES[change.code],
        "detail": change.detail,
    }
