"""Conversations for applications: a growing history, a model that can be changed, and an optional session file.

`context` is the conversation in the form that every other function takes. Everything here uses only `Client`,
`Context.add` and the functions for session files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Self, TypedDict, Unpack, cast, overload

from segue.client.flow.steps import Summarise as SummariseStep
from segue.client.flow.steps import Summarised
from segue.client.flow.tool_loop import Run
from segue.client.flow.typed_answers import Answer, T
from segue.client.http.async_streams import AsyncStream, AsyncTypedStream
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.running import (
    RunEvent,
    RunSettings,
    last_of,
    last_of_async,
    run_tools,
    run_tools_async,
)
from segue.client.http.streams import Stream, TypedStream
from segue.client.session.async_history import AsyncHistory
from segue.client.session.base_conversation import BaseConversation, PendingTurn, check_client
from segue.client.session.history import ConversationHistory, MessageInput, read_content
from segue.client.session.settings import ConversationSettings, refuse_unknown_settings
from segue.client.session.summarising import Answer as SummaryAnswer
from segue.conversation.content import UserContent
from segue.conversation.context import Options
from segue.conversation.messages import AssistantMessage
from segue.errors import SettingsError
from segue.models.model import Model
from segue.projection.policy import Policy


class RequestSettings(TypedDict, total=False):
    """What applies to one request of a conversation in place of its own settings; all are optional."""

    options: Options | None
    policy: Policy | None


class AskSettings(RequestSettings, total=False):
    """The same, with the model."""

    model: Model | str | None


class Conversation(BaseConversation[Stream, Iterator[RunEvent]]):
    """A conversation with one model at a time, kept in memory and, with a `path`, in a session file.

    Without a `client` it makes its own and closes it. Every other setting is optional: see `ConversationSettings`.
    Close it, or use it in a `with` block: until then the file is locked against other writers.

    Raises:
        SessionLocked: another conversation writes to the file.
    """

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        client: Client | None = None,
        **settings: Unpack[ConversationSettings],
    ) -> None:
        refuse_unknown_settings(type(self).__name__, settings)
        check_client(client, Client, type(self).__name__)
        self._client = client or Client()
        self._owns_client = client is None
        try:
            super().__init__(model, settings, self._client)
            _refuse_async(self._summarise)
            self._history = self._open()
        except BaseException:
            if self._owns_client:
                self._client.close()
            raise

    def _get_history(self) -> ConversationHistory:
        return self._history

    def _begin(self, turn: PendingTurn) -> Callable[..., Stream]:  # noqa: ARG002 - nothing is left to wait for
        return self._client.begin

    @overload
    def ask(
        self, *content: str | UserContent, output: None = None, **settings: Unpack[AskSettings]
    ) -> AssistantMessage: ...
    @overload
    def ask(
        self, *content: str | UserContent, output: type[T], output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> Answer[T]: ...
    @overload
    def ask(
        self, *content: str | UserContent, output: object, output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> Answer[Any]: ...
    def ask(
        self,
        *content: str | UserContent,
        output: Any = None,
        output_retries: int = 1,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a user message, if any, and return the answer.

        `model`, `options` and `policy` apply to this request only. The message and the answer are stored, even if the
        answer is incomplete. With `output`, a type, the result is an `Answer` with a value of that type, as in
        `Client.complete`; what helps the model to produce it is not stored.

        Raises:
            OutputError: the answer has no value of the type; its classes say why.
            RequestFailed: no model gave a complete answer.
            OSError: the file cannot be written. An answer that arrived all the same is in `unkept`.
        """
        with self._ask(
            content,
            model=model,
            options=options,
            policy=policy,
            emits=False,
            output=output,
            output_retries=output_retries,
        ) as reply:
            return cast("TypedStream[Any]", reply).answer() if output is not None else reply.result()

    @overload
    def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: None = None,
        **settings: Unpack[RequestSettings],
    ) -> AssistantMessage: ...
    @overload
    def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[RequestSettings],
    ) -> Answer[T]: ...
    @overload
    def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[RequestSettings],
    ) -> Answer[Any]: ...
    def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a user message, if any, and return the answer: `ask` with the arguments of `Client.complete`."""
        given = read_content(content)
        return self.ask(
            *given, output=output, output_retries=output_retries, model=model, options=options, policy=policy
        )

    @overload
    def stream(self, *content: str | UserContent, output: None = None, **settings: Unpack[AskSettings]) -> Stream: ...
    @overload
    def stream(
        self, *content: str | UserContent, output: type[T], output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> TypedStream[T]: ...
    @overload
    def stream(
        self, *content: str | UserContent, output: object, output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> TypedStream[Any]: ...
    def stream(
        self,
        *content: str | UserContent,
        output: Any = None,
        output_retries: int = 1,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> Stream:
        """Send a user message, if any, and return the events of the answer. The answer is stored however it ends."""
        return self._ask(
            content,
            model=model,
            options=options,
            policy=policy,
            emits=True,
            output=output,
            output_retries=output_retries,
        )

    def run(
        self, *content: str | UserContent, model: Model | str | None = None, **settings: Unpack[RunSettings]
    ) -> Run:
        """Send a user message, if any, run the calls of the answer, and ask again, until an answer has none.

        Calls that are pending run first: a loop that was stopped continues.

        Raises:
            RunLimitReached: a limit was reached; `run` again continues.
            RequestFailed, OSError: as in `ask`.
        """
        return last_of(self._run(content, model, settings, emits=False))

    def _run(
        self, content: tuple[str | UserContent, ...], model: Model | str | None, settings: RunSettings, *, emits: bool
    ) -> Iterator[RunEvent]:
        loop, place = self._start_loop(content, model, settings, emits=emits)
        return run_tools(loop, place, settings.get("approve"), emits=emits)

    def _perform_summary(self, turn: PendingTurn, step: SummariseStep) -> Summarised | None:
        try:
            making = self._begin_summary(turn, step)
            if making is None:
                return None
            while (task := making.task) is not None:
                writer = self._summarise
                if isinstance(writer, Model):
                    making.take(self._client.complete(task.context, writer))
                elif writer is not None:
                    making.take(cast("SummaryAnswer", writer(task)))
            return self._end_summary(step, making)
        except Exception as error:  # noqa: BLE001  # whatever a summariser raises, the request can be sent
            return self._refuse_summary(step, error)

    def close(self) -> None:
        """End a running reply, release the lock of the file, and close the client if the conversation made it."""
        if isinstance(reply := self._running(), Stream):
            reply.close()
        self._history.close()
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncConversation(BaseConversation[AsyncStream, AsyncIterator[RunEvent]]):
    """`Conversation` for asyncio. A thread reads, locks and writes the session file, in order.

    Use it in an `async with` block, which waits until the file is open. Without one, `ask` waits; the other methods
    and properties block until the file is open. Errors of the file are raised where it is waited for: by
    `async with`, `ask`, the iteration of a stream, `flush` and `close`. A message that could not be written is not
    part of the conversation.
    """

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        client: AsyncClient | None = None,
        **settings: Unpack[ConversationSettings],
    ) -> None:
        refuse_unknown_settings(type(self).__name__, settings)
        check_client(client, AsyncClient, type(self).__name__)
        self._client = client or AsyncClient()
        self._owns_client = client is None
        super().__init__(model, settings, self._client)
        self._history = AsyncHistory(self._open, has_file=settings.get("path") is not None)

    def _get_history(self) -> AsyncHistory:
        return self._history

    def _begin(self, turn: PendingTurn) -> Callable[..., AsyncStream]:
        return partial(self._client.begin, settle=partial(self._settle, turn))

    @overload
    async def ask(
        self, *content: str | UserContent, output: None = None, **settings: Unpack[AskSettings]
    ) -> AssistantMessage: ...
    @overload
    async def ask(
        self, *content: str | UserContent, output: type[T], output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> Answer[T]: ...
    @overload
    async def ask(
        self, *content: str | UserContent, output: object, output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> Answer[Any]: ...
    async def ask(
        self,
        *content: str | UserContent,
        output: Any = None,
        output_retries: int = 1,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a user message, if any, and return the answer, like `Conversation.ask`."""
        await self._history.wait_until_open()
        async with self._ask(
            content,
            model=model,
            options=options,
            policy=policy,
            emits=False,
            output=output,
            output_retries=output_retries,
        ) as reply:
            typed = cast("AsyncTypedStream[Any]", reply)
            return await (reply.result() if output is None else typed.answer())

    @overload
    async def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: None = None,
        **settings: Unpack[RequestSettings],
    ) -> AssistantMessage: ...
    @overload
    async def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[RequestSettings],
    ) -> Answer[T]: ...
    @overload
    async def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[RequestSettings],
    ) -> Answer[Any]: ...
    async def complete(
        self,
        content: MessageInput = (),
        model: Model | str | None = None,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a user message, if any, and return the answer: `ask` with the arguments of `AsyncClient.complete`."""
        given = read_content(content)
        return await self.ask(
            *given, output=output, output_retries=output_retries, model=model, options=options, policy=policy
        )

    @overload
    def stream(
        self, *content: str | UserContent, output: None = None, **settings: Unpack[AskSettings]
    ) -> AsyncStream: ...
    @overload
    def stream(
        self, *content: str | UserContent, output: type[T], output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> AsyncTypedStream[T]: ...
    @overload
    def stream(
        self, *content: str | UserContent, output: object, output_retries: int = 1, **settings: Unpack[AskSettings]
    ) -> AsyncTypedStream[Any]: ...
    def stream(
        self,
        *content: str | UserContent,
        output: Any = None,
        output_retries: int = 1,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AsyncStream:
        """Send a user message, if any, and return the events of the answer. The answer is stored however it ends."""
        return self._ask(
            content,
            model=model,
            options=options,
            policy=policy,
            emits=True,
            output=output,
            output_retries=output_retries,
        )

    async def run(
        self, *content: str | UserContent, model: Model | str | None = None, **settings: Unpack[RunSettings]
    ) -> Run:
        """Send a user message, if any, and run the calls of the answers, like `Conversation.run`."""
        return await last_of_async(self._run(content, model, settings, emits=False))

    async def _run(
        self, content: tuple[str | UserContent, ...], model: Model | str | None, settings: RunSettings, *, emits: bool
    ) -> AsyncIterator[RunEvent]:
        await self._history.wait_until_open()
        loop, place = self._start_loop(content, model, settings, emits=emits)
        async with aclosing(run_tools_async(loop, place, settings.get("approve"), emits=emits)) as events:
            async for event in events:
                yield event

    async def _perform_summary(self, turn: PendingTurn, step: SummariseStep) -> Summarised | None:
        try:
            making = self._begin_summary(turn, step)
            if making is None:
                return None
            while (task := making.task) is not None:
                writer = self._summarise
                if isinstance(writer, Model):
                    making.take(await self._client.complete(task.context, writer))
                elif writer is not None:
                    answer = writer(task)
                    making.take(await answer if isawaitable(answer) else answer)
            return self._end_summary(step, making)
        except Exception as error:  # noqa: BLE001  # whatever a summariser raises, the request can be sent
            return self._refuse_summary(step, error)

    async def _settle(self, turn: PendingTurn) -> None:
        """Wait until every message is written. If one cannot be, the answer is not stored either."""
        try:
            await self.flush()
        except OSError:
            turn.is_stored = False
            raise

    async def flush(self) -> None:
        """Wait until every message that was added is in the file.

        Raises:
            OSError: a message could not be written. It and those after it were removed from the conversation; if the
                last answer is one of them, it is in `unkept`.
        """
        try:
            await self._history.flush()
        except OSError:
            removed = reversed(self._history.removed)
            self._unkept = next((each for each in removed if each.role == "assistant"), self._unkept)
            raise

    async def close(self) -> None:
        """End a running reply, release the lock of the file, and close the client if the conversation made it.

        Raises:
            OSError: a message could not be written.
        """
        try:
            if isinstance(reply := self._running(), AsyncStream):
                await reply.close()
        finally:
            try:
                await self._history.close()
            finally:
                if self._owns_client:
                    await self._client.close()

    async def __aenter__(self) -> Self:
        try:
            await self._history.wait_until_open()
        except BaseException:
            self._history.abandon()
            if self._owns_client:
                await self._client.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _refuse_async(summarise: object) -> None:
    if iscoroutinefunction(summarise):
        raise SettingsError(
            "summarise= is an async function, which Conversation cannot await; use AsyncConversation, or pass a sync"
            " function",
            key="summarise",
        )
