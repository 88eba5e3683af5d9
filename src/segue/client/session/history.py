"""The history of a conversation: append-only, in memory and, with a path, in a session file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final, TypeAlias, cast, get_args

import msgspec

from segue.client.session.locks import SessionLock
from segue.conversation.content import SystemContent, TextContent, ToolCall, ToolResultContent, UserContent
from segue.conversation.context import Context, Summary, Tool
from segue.conversation.exact import is_exact
from segue.conversation.messages import Message, ToolResultMessage, UserMessage
from segue.errors import ConversationError
from segue.histories.sessions import (
    StrPath,
    append_header,
    append_line,
    append_message,
    append_summary,
    dump_model,
    read_session_models,
)
from segue.models.model import Model

MessageInput: TypeAlias = str | UserContent | UserMessage | Sequence[str | UserContent]
"""A new user message: a text, content, several of them, or a message."""
_CONTENT: Final = (str, *get_args(UserContent))


class ConversationHistory:
    """Messages that are stored one by one: each is written to the file before it is added in memory.

    An existing file is continued. A system prompt or tools that differ from those in the file are written to it and
    apply from then on. The file is locked until `close`.

    Raises:
        SessionLocked: another conversation writes to the file.
        ConversationError: the file holds messages, and `context` holds messages too.
    """

    def __init__(
        self,
        path: StrPath | None,
        context: Context | None,
        system_prompt: str | tuple[SystemContent, ...] | None,
        tools: Iterable[Tool] | None,
        *,
        fsync: bool,
    ) -> None:
        self._path = path
        self._fsync = fsync
        self._lock = None if path is None else SessionLock(path)
        self.is_closed: bool = False
        self.models: tuple[Model, ...] = ()  # those that the file describes
        self._turn = Lock()  # threads append one at a time: the file and the memory have the same order
        try:
            self.context: Context = self._open(context, system_prompt, tools)
        except BaseException:
            self.close()
            raise

    def _open(
        self,
        context: Context | None,
        system_prompt: str | tuple[SystemContent, ...] | None,
        tools: Iterable[Tool] | None,
    ) -> Context:
        path = self._path
        has_messages = path is not None and os.path.exists(path) and os.path.getsize(path) > 0  # noqa: PTH110, PTH202
        if has_messages and context is not None and context.messages:
            raise ConversationError(
                f"{os.fspath(path or '')} already holds a conversation, so context= cannot be used; leave context= out"
                " to continue the file, or choose another path="
            )
        stored = None
        if path is not None and has_messages:
            stored, self.models = read_session_models(path)
        initial = stored if stored is not None else context or Context()
        wanted = (
            initial
            if context is None or stored is None
            else msgspec.structs.replace(
                context, messages=initial.messages, summaries=initial.summaries, pins=initial.pins
            )
        )
        if system_prompt is not None:
            wanted = msgspec.structs.replace(wanted, system_prompt=system_prompt)
        if tools is not None:
            wanted = msgspec.structs.replace(wanted, tools=tuple(tools))
        if path is not None and (stored is None or not is_exact(wanted, stored)):
            append_header(path, wanted, fsync=self._fsync)
        if path is not None and stored is None:
            for message in wanted.messages:
                append_message(path, message, fsync=self._fsync)
            for summary in wanted.summaries:
                append_summary(path, summary, fsync=self._fsync)
        if self._lock is not None:
            self._lock.lock_file()  # the file exists now
        return wanted

    def append(self, *messages: Message) -> None:
        """Add messages at the end.

        Raises:
            ConversationError: the conversation was closed, so another process may own the file now.
        """
        with self._turn:
            written = 0
            try:
                for message in messages:
                    if self._path is not None:
                        if self.is_closed:
                            raise self.closed_error()
                        append_message(self._path, message, fsync=self._fsync)
                    written += 1
            finally:
                # At once: adding many messages one by one would copy the conversation for each.
                self.context = self.context.add(*messages[:written])

    def append_model(self, model: Model) -> None:
        """Write a model that no catalogue has to the file, if it is not there yet.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is not None and not self.is_closed and model not in self.models:
            self.write_line(dump_model(model))
            self.models = (*self.models, model)

    def append_summary(self, summary: Summary) -> None:
        """Add a summary.

        Raises:
            ConversationError: the conversation was closed.
        """
        with self._turn:
            if self._path is not None:
                if self.is_closed:
                    raise self.closed_error()
                append_summary(self._path, summary, fsync=self._fsync)
            self.context = self.context.add_summary(summary)

    def write_line(self, line: bytes) -> None:
        """Append one dumped message, summary or model to the file only; `context` stays unchanged.

        Raises:
            ConversationError: the conversation was closed.
            OSError: the file cannot be written.
        """
        with self._turn:
            if self.is_closed:
                raise self.closed_error()
            if self._path is not None:
                append_line(self._path, line, fsync=self._fsync)

    def closed_error(self) -> ConversationError:
        """Make the error for a message that is added after `close`."""
        return ConversationError(
            f"the conversation in {os.fspath(self._path or '')} was closed; to continue it, make a new Conversation"
            " with the same path="
        )

    def close(self) -> None:
        """Release the lock of the file."""
        with self._turn:
            self.is_closed = True
            if self._lock is not None:
                self._lock.release()


def now_ms() -> int:
    """Return the current time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def read_content(given: MessageInput) -> tuple[str | UserContent, ...]:
    """Return the content of a new user message.

    Raises:
        ConversationError: it is something else, such as a whole conversation.
    """
    if isinstance(given, UserMessage):
        return given.content
    content = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    for piece in content:
        if not isinstance(piece, _CONTENT):
            name = type(cast("object", piece)).__name__
            raise ConversationError(
                f"expected the text or content of one new message, got {name}; the conversation has the messages"
                ' before it: write conversation.complete("Hello")'
            )
    return cast("tuple[str | UserContent, ...]", content)


def new_user_message(content: Sequence[str | UserContent]) -> UserMessage:
    """Make a user message with the current time."""
    return UserMessage.of(*content, timestamp=now_ms())


def new_result(
    call: ToolCall, content: Sequence[str | ToolResultContent], *, is_error: bool, details: object
) -> ToolResultMessage:
    """Make the message with the result of a tool call, with the current time."""
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content)
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=pieces,
        is_error=is_error,
        details=details,
        timestamp=now_ms(),
    )
