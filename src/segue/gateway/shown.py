"""What the console shows of contents: messages as the inspector renders them, changes by kind, titles, and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.conversation.stored import load, load_message
from segue.envelope.conversation import UNKNOWN
from segue.errors import SegueError, render_path
from segue.foundation.json_text import encode_valid_json
from segue.gateway.contents import KeptExchange, is_missing
from segue.gateway.records import ChangeRow
from segue.histories.kit.lines import title_of
from segue.histories.opening import How, open_value
from segue.inspector.pieces import Json, Keep, describe_message, digest, find_image, message_pieces, show_pieces
from segue.inspector.side_by_side import SideBySide, compare_sent
from segue.projection.report import SENTENCES, Change, ChangeCode, Loss, describe_loss

CHUNK: Final = 24
SHORT: Final = 1200
"""How many rows, and how many characters of each text, are in the first answer; `page/rows.js` has the same."""
_LONGEST: Final = 200_000
"""How many characters of each text of a reply are shown."""
_MOST_PLACES: Final = 20
"""How many of the places of one kind of change are listed."""
_IN_REPLY: Final = ("content",)
"""How the paths of changes begin that were made to a reply, for the client."""
_OUTLINED: Final = frozenset({"type", "text", "thinking", "id", "name", "mimeType"})
_NAMES: Final = ("role", "provider", "model", "protocol", "stopReason")
"""What a redacted reply has unchanged, or as a length."""
_SEVERITY: Final = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)


class _Described(msgspec.Struct, rename="camel"):
    """The part of a row that its contents are shown with."""

    protocol: str
    model: str | None = None
    straight: bool = False
    changes: tuple[ChangeRow, ...] = ()


_ROW: Final = msgspec.json.Decoder(_Described)


@final
class ShownContent:
    """A request next to what the model was sent, and the reply."""

    def __init__(self, content: KeptExchange, row: bytes, sent_protocol: str | None) -> None:
        described = _ROW.decode(row)
        self._images: dict[str, str] = {}
        self._reply = _read_reply(content)
        given = _read_given(content, described.protocol)
        self.problem: str = "" if given is not None else "it cannot be shown as messages; its JSON is below"
        sent = given if described.straight else _read_body(content.sent, sent_protocol)
        self.is_sent: bool = sent is not None
        changes = [change for change in _read_changes(described.changes) if change.path[:1] != _IN_REPLY]
        left, right = _without_names(given), _without_names(sent or given, of_all=not described.straight)
        self.side: SideBySide = compare_sent(left, right, changes)

    def view(self) -> Json:
        """Return the first screen: which rows there are, the first of them, and the reply."""
        rows = self.side.rows(range(CHUNK), SHORT, self._keep) if not self.problem else []
        reply = self._reply
        return {
            "problem": self.problem,
            "isSent": self.is_sent,
            "summary": self.side.summary(),
            "rows": rows,
            "reply": None if reply is None else show_message(reply, self._keep),
        }

    def rows(self, wanted: Sequence[int], length: int) -> list[Json]:
        """Return rows with at most so many characters of each text."""
        return self.side.rows(wanted, length, self._keep)

    def find_image(self, key: str) -> tuple[bytes, str] | None:
        """Return an image of rows that were shown, with its MIME type; None if there is none."""
        data = self._images.get(key)
        return None if data is None else find_image(data)

    def _keep(self, data: str) -> str:
        key = digest(data)
        self._images[key] = data
        return key


def show_message(message: Message, keep: Keep = digest) -> Json:
    """Return what is shown of one message; without `keep`, its images are only named."""
    return describe_message(message, 0) | {"pieces": show_pieces(message_pieces(message, keep), _LONGEST)}


def _without_names(context: Context | None, *, of_all: bool = False) -> Context:
    """Leave out who wrote a turn where it is not known; `of_all`: in a request, which does not say it of any."""
    if context is None:
        return Context()
    messages = [
        replace(message, provider="", model="")
        if message.role == "assistant" and (of_all or message.provider == UNKNOWN)
        else message
        for message in context.messages
    ]
    return replace(context, messages=tuple(messages))


def _read_reply(content: KeptExchange) -> Message | None:
    if is_missing(content.reply):
        return None
    try:
        return load_message(_outline(content.reply) if content.redacted else bytes(content.reply))
    except SegueError:
        return None


def _outline(reply: msgspec.Raw) -> bytes:
    """Return the part of a redacted reply that can be shown: elsewhere, texts replace other values."""
    given: dict[str, object] = msgspec.json.decode(reply)
    content = given.get("content")
    pieces = cast("list[dict[str, object]]", content if isinstance(content, list) else [])
    kept: list[dict[str, object]] = [
        {name: value for name, value in piece.items() if name in _OUTLINED}
        | ({"arguments": {}} if "id" in piece else {})
        for piece in pieces
    ]
    names = {name: given[name] for name in _NAMES if name in given}
    return encode_valid_json({**names, "content": kept})


def _read_given(content: KeptExchange, protocol: str) -> Context | None:
    """Read the history; of a redacted one only the body of the client is kept."""
    if is_missing(content.context):
        return _read_body(content.received, protocol)
    try:
        return load(bytes(content.context))
    except SegueError:
        return None


def _read_body(body: msgspec.Raw, protocol: str | None) -> Context | None:
    if is_missing(body) or protocol is None:
        return None
    try:
        return open_value(msgspec.json.decode(body), How(format=protocol)).prompt.context
    except SegueError:  # a text that replaces a redacted value may be refused
        return None


def _read_changes(rows: Sequence[ChangeRow]) -> list[Change]:
    """Read the changes of a row; codes that a newer gateway wrote are left out."""
    codes, losses = {str(code): code for code in ChangeCode}, {str(loss): loss for loss in Loss}
    return [
        Change(code=codes[row.code], path=row.path, loss=losses[row.loss], detail=row.cause or "")
        for row in rows
        if row.code in codes and row.loss in losses
    ]


def group_changes(changes: Sequence[Change]) -> list[Json]:
    """Describe changes, those of one kind together, the most severe first."""
    kinds: dict[tuple[Loss, ChangeCode], list[Change]] = {}
    for change in changes:
        kinds.setdefault((change.loss, change.code), []).append(change)
    return [
        {
            "code": code.value,
            "loss": loss.value,
            "dropped": describe_loss(code, loss),
            "sentence": SENTENCES[code],
            "count": len(found),
            "places": [_place(change) for change in found[:_MOST_PLACES]],
        }
        for (loss, code), found in sorted(kinds.items(), key=lambda each: (_SEVERITY.index(each[0][0]), each[0][1]))
    ]


def _place(change: Change) -> str:
    where = f"reply.{render_path(change.path)}" if change.path[:1] == _IN_REPLY else render_path(change.path)
    return f"{where}{f' ({change.detail})' if change.detail else ''}"


def with_kinds(row: bytes) -> Mapping[str, object]:
    """Return a row with its changes grouped by kind."""
    return {**msgspec.json.decode(row), "kinds": group_changes(_read_changes(_ROW.decode(row).changes))}


def title_of_content(content: KeptExchange) -> str:
    """Return the first words of the user, as the title of a conversation; empty if there are none."""
    if is_missing(content.context):
        return ""
    try:
        messages = load(bytes(content.context)).messages
    except SegueError:
        return ""
    asked = [message for message in messages if message.role == "user"]
    texts = [piece.text.strip() for message in asked for piece in message.content if piece.kind == "text"]
    # Agents put reminders in tags before what the user wrote.
    own = next((text for text in texts if text and not text.startswith("<")), next(filter(None, texts), ""))
    return title_of(own)
