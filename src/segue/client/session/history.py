"""The history of a conversation: append-only, in memory and, where it has a path, in a session file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from threading import Lock

import msgspec

from segue.client.session.locks import SessionLock
from segue.conversation.content import SystemContent, TextContent, ToolCall, ToolResultContent, UserContent
from segue.conversation.context import Context, Tool
from segue.conversation.messages import Message, ToolResultMessage, UserMessage
from segue.errors import ConversationError
from segue.sessions import StrPath, append_header, append_message, read_session


class History:
    """Messages that are kept one by one: each is in the file before it is in memory.

    Where the file exists, the history goes on from there; a system prompt or tools that are given and differ from the
    file's hold from now on. Another writer of the same file is refused.
    """

    def __init__(
        self,
        path: StrPath | None,
        context: Context | None,
        system_prompt: str | tuple[SystemContent, ...] | None,
        tools: Sequence[Tool] | None,
        *,
        fsync: bool,
    ) -> None:
        self._path = path
        self._fsync = fsync
        self._lock = None if path is None else SessionLock(path)
        self.is_closed: bool = False
        self._turn = Lock()  # threads that append take turns: the file and the memory have one order
        try:
            self.context: Context = self._open(context, system_prompt, tools)
        except BaseException:
            self.close()
            raise

    def _open(
        self,
        context: Context | None,
        system_prompt: str | tuple[SystemContent, ...] | None,
        tools: Sequence[Tool] | None,
    ) -> Context:
        path = self._path
        has_begun = path is not None and os.path.exists(path) and os.path.getsize(path) > 0  # noqa: PTH110, PTH202
        if has_begun and context is not None and context.messages:
            raise ConversationError(
                f"{os.fspath(path or '')} holds a conversation already: it cannot begin with another"
            )
        stored = read_session(path) if path is not None and has_begun else None
        begun = stored if stored is not None else context or Context()
        wanted = (
            begun if context is None or stored is None else msgspec.structs.replace(context, messages=begun.messages)
        )
        if system_prompt is not None:
            wanted = msgspec.structs.replace(wanted, system_prompt=system_prompt)
        if tools is not None:
            wanted = msgspec.structs.replace(wanted, tools=tuple(tools))
        if path is not None and (stored is None or wanted != stored):
            append_header(path, wanted, fsync=self._fsync)
        if path is not None and stored is None:
            for message in wanted.messages:
                append_message(path, message, fsync=self._fsync)
        return wanted

    def append(self, *messages: Message) -> None:
        """Add messages at the end.

        Raises:
            ConversationError: the file was closed; it may be someone else's by now.
        """
        with self._turn:
            for message in messages:
                if self._path is not None:
                    if self.is_closed:
                        raise ConversationError(f"{os.fspath(self._path)} was closed: open it again to go on")
                    append_message(self._path, message, fsync=self._fsync)
                self.context = self.context.add(message)

    def close(self) -> None:
        """Let others write to the file."""
        with self._turn:
            self.is_closed = True
            if self._lock is not None:
                self._lock.release()


def now_ms() -> int:
    """Give the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def new_user_message(content: Sequence[str | UserContent]) -> UserMessage:
    """Make the user's message, dated."""
    return UserMessage.of(*content, timestamp=now_ms())


def new_result(
    call: ToolCall, content: Sequence[str | ToolResultContent], *, is_error: bool, details: object
) -> ToolResultMessage:
    """Make the message that answers a call, dated."""
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content)
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=pieces,
        is_error=is_error,
        details=details,
        timestamp=now_ms(),
    )
