"""Logs with one event for each piece: an answer is what the model wrote and called between two results or prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, final

from segue.conversation.content import AssistantContent, TextContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.lines import objects_of
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import read_media, stop_of


@final
class TurnLog:
    """The messages so far."""

    def __init__(self, format_name: str) -> None:
        self._format: Final = format_name
        self._messages: list[Message] = []
        self._pieces: list[AssistantContent] = []
        self._time: int | None = None
        self._origin = UNKNOWN
        self._finish: Callable[[AssistantMessage], AssistantMessage] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an answer that has not ended."""
        return bool(self._pieces) or self._finish is not None

    def finish_with(self, finish: Callable[[AssistantMessage], AssistantMessage]) -> None:
        """Set what completes the next answer; it is made even without a piece."""
        self._close()
        self._finish = finish

    def ask(self, content: Iterable[UserContent], time: int | None = None, *, own: bool = False) -> None:
        """Add what the user wrote."""
        self._close()
        if given := tuple(content):
            made = UserMessage(content=given, timestamp=time)
            self._messages.append(with_envelope(made, self._format, {}, own=own))

    def add(self, message: Message) -> None:
        """Add a message that is made already."""
        self._close()
        self._messages.append(message)

    def reply(self, pieces: Iterable[AssistantContent], time: int | None = None, origin: Origin = UNKNOWN) -> None:
        """Add what the model wrote or called, to the answer that is open."""
        if not self._pieces:
            self._time = time
        self._pieces += pieces
        self._origin = origin if origin is not UNKNOWN else self._origin

    def answer(
        self, call_id: str, content: Iterable[UserContent], time: int | None = None, *, is_error: bool = False
    ) -> None:
        """Add the result of a call."""
        self._close()
        made = ToolResultMessage(
            tool_call_id=call_id, tool_name="", content=tuple(content), is_error=is_error, timestamp=time
        )
        self._messages.append(with_envelope(made, self._format, {}))

    def close_answer(self) -> None:
        """End the answer that is open: what follows came after results that the file does not have."""
        self._close()

    def has(self, piece: AssistantContent) -> bool:
        """Whether the answer that is open has a piece already."""
        return piece in self._pieces

    def messages(self) -> list[Message]:
        """Return the messages, the last answer included."""
        self._close()
        return self._messages

    def _close(self) -> None:
        if self.is_open:
            pieces = tuple(self._pieces)
            made = AssistantMessage(content=pieces, stop_reason=stop_of(None, pieces), timestamp=self._time)
            made = set_origin(made, self._origin)
            finished = made if self._finish is None else self._finish(made)
            if finished.content:
                self._messages.append(with_envelope(finished, self._format, {}))
        self._pieces, self._origin, self._finish = [], UNKNOWN, None


def text_and_media(content: object) -> list[UserContent]:
    """Read content that is a text, or a list of texts and media."""
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    found: list[UserContent] = []
    for block in objects_of(content):
        text: Any = block.get("text")
        if isinstance(text, str):
            found += [TextContent(text=text)] if text else []
        elif (media := read_media(block)) is not None:
            found.append(media)
    return found
