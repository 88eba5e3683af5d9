"""The history of an asyncio conversation: in memory at once, in its session file by a thread.

Facts:
- Reading, locking, appending and `fsync` block. On an event loop they would stop every other task.       (asyncio)
- Messages are written in the order they were appended: one queue, one thread at a time.           (`FileWork`)
- After a failed write, no later message is written until the error has been raised. The context then holds exactly
  the messages that the file holds.                                                                   (our promise)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from msgspec.structs import replace

from segue.client.http.loops import find_loop
from segue.client.session.file_work import FileWork, wait_for_work
from segue.client.session.history import ConversationHistory
from segue.conversation.context import Context, Summary
from segue.conversation.messages import Message
from segue.conversation.stored import dump_message, dump_summary
from segue.errors import SegueError
from segue.models.model import Model


class AsyncHistory:
    """Messages that are added in memory at once and written to the session file by a thread, in order.

    `wait_until_open` and `flush` wait without blocking the event loop. `context` and `append` block only if they are
    called before the file is open.
    """

    def __init__(self, open_history: Callable[[], ConversationHistory], *, has_file: bool) -> None:
        self._work = FileWork()
        self._has_file = has_file
        self._history: ConversationHistory | None = None
        self._context: Context | None = None
        self._written = 0  # the messages of the context that the file holds
        self._summaries_written = 0
        self._last: Future[None] | None = None
        self._error: OSError | SegueError | None = None
        self.removed: tuple[Message, ...] = ()  # by the last error
        self.is_closed: bool = False
        if has_file and find_loop() is not None:
            self._opening = self._work.submit(open_history)
        else:
            self._opening: Future[ConversationHistory] = Future()
            self._opening.set_result(open_history())

    @property
    def history(self) -> ConversationHistory:
        """The opened history.

        Raises:
            SessionLocked, LoadError, OSError: the file cannot be opened.
        """
        if self._history is None:
            self._history = self._opening.result()
        return self._history

    @property
    def context(self) -> Context:
        """The conversation, with the messages that are still being written."""
        if self._context is None:
            self._context = self.history.context
            self._written = len(self._context.messages)
            self._summaries_written = len(self._context.summaries)
        return self._context

    async def wait_until_open(self) -> None:
        """Wait until the file is locked and read.

        Raises:
            SessionLocked, LoadError, OSError: the file cannot be opened.
        """
        if self._history is None:
            self._history = await wait_for_work(self._opening)

    def append(self, *messages: Message) -> None:
        """Add messages at the end; `flush` raises the error if they cannot be written.

        Raises:
            ConversationError: the conversation was closed.
            DumpError: a message cannot be stored; none was added.
            OSError: no event loop runs, and a message cannot be written.
        """
        context, history = self.context, self.history
        if self._has_file:
            if self.is_closed:
                raise history.closed_error()
            lines = [dump_message(message) for message in messages]
            for line in lines:
                self._last = self._work.submit(lambda line=line: self._write(history, line))
        self._context = context.add(*messages)
        if find_loop() is None:
            self._raise_error()  # without an event loop the messages have been written by now

    def append_model(self, model: Model) -> None:
        """Write a model that no catalogue has to the file, before the messages that are added later."""
        history = self.history
        if self._has_file and not self.is_closed:
            self._last = self._work.submit(lambda: self._write_model(history, model))

    def append_summary(self, summary: Summary) -> None:
        """Add a summary; `flush` raises the error if it cannot be written.

        Raises:
            ConversationError: the conversation was closed.
            DumpError: the summary cannot be stored.
        """
        context, history = self.context, self.history
        if self._has_file:
            if self.is_closed:
                raise history.closed_error()
            line = dump_summary(summary)
            self._last = self._work.submit(lambda: self._write(history, line, is_summary=True))
        self._context = context.add_summary(summary)

    def _write(self, history: ConversationHistory, line: bytes, *, is_summary: bool = False) -> None:
        if self._error is not None:
            return
        try:
            history.write_line(line)
        except (OSError, SegueError) as error:
            self._error = error
        else:
            if is_summary:
                self._summaries_written += 1
            else:
                self._written += 1

    def _write_model(self, history: ConversationHistory, model: Model) -> None:
        if self._error is None:
            try:
                history.append_model(model)
            except (OSError, SegueError) as error:
                self._error = error

    async def flush(self) -> None:
        """Wait until every message is written.

        Raises:
            OSError: one could not be written. It and all later ones are no longer part of the conversation.
        """
        while self._last is not None and not self._last.done():
            await wait_for_work(self._last)
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            context = self.context
            self.removed = context.messages[self._written :]
            self._context = replace(
                context,
                messages=context.messages[: self._written],
                summaries=context.summaries[: self._summaries_written],
            )
            raise error

    async def close(self) -> None:
        """Wait until every message is written, then release the lock of the file.

        Raises:
            OSError: a message could not be written. The lock is released all the same.
        """
        self.is_closed = True
        await wait_for_work(self._work.submit(self._close))
        await self.flush()

    def abandon(self) -> None:
        """Release the lock once the file is open, without waiting for it."""
        self.is_closed = True
        self._work.submit(self._close)

    def _close(self) -> None:
        if self._opening.exception() is None:
            self._opening.result().close()
