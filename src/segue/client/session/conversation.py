"""Conversations for applications: a growing history, a model that can be changed, and an optional session file.

`context` is the conversation in the form that every other function takes. Everything here uses only `Client`,
`Context.add` and the functions for session files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from threading import Lock
from typing import Final, Protocol, Self, TypedDict, TypeVar, Unpack, cast
from weakref import ref

from segue.client.flow.attempts import Attempt
from segue.client.flow.steps import Summarise as SummariseStep
from segue.client.flow.steps import Summarised
from segue.client.http.async_streams import AsyncStream
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.client.http.shell import Shell
from segue.client.http.streams import Stream
from segue.client.session.async_history import AsyncHistory
from segue.client.session.history import History, new_result, new_user_message
from segue.client.session.outboxes import Outboxes
from segue.client.session.summarising import Answer, Summarise, Summarising
from segue.conversation.content import SystemContent, ToolCall, ToolResultContent, UserContent
from segue.conversation.context import Context, Options, Summary, Tool
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import ConversationError, SettingsError
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.sessions import StrPath

_Reply = TypeVar("_Reply", bound=Shell)


class ConversationSettings(TypedDict, total=False):
    """Settings of a conversation; all are optional."""

    path: StrPath | None
    """The session file. An existing file is continued. Every message is in the file before the next request is sent."""
    fsync: bool
    """Wait until each message is on the disk."""
    context: Context | None
    """The initial conversation. It may have messages only if the file is new."""
    system_prompt: str | tuple[SystemContent, ...] | None
    tools: Sequence[Tool] | None
    options: Options | None
    policy: Policy | None
    fallback_models: Sequence[Model | str]
    """Models to try, in order, when a request to the model fails."""
    sticky: bool
    """Keep using a fallback model after it has answered."""
    summarise: Model | str | Summarise | None
    """Who summarises messages that no longer fit the window: a model, or a function that gets a `SummaryTask` and
    returns a text or a reply. It may be async in an `AsyncConversation`. The summary is stored beside the messages. If
    it fails, a short note is sent in its place."""


_OF_OPTIONS: Final = frozenset(Options.__struct_fields__)
_OF_POLICY: Final = frozenset(Policy.__struct_fields__)


def refuse_unknown_settings(name: str, settings: Mapping[str, object]) -> None:
    """Check the names of settings; `name` is the class that was called.

    Raises:
        SettingsError: a setting does not exist. The message names where it belongs.
    """
    known = ConversationSettings.__annotations__
    for key in sorted(set(settings) - set(known)):
        client = "AsyncClient" if name.startswith("Async") else "Client"
        nearest = get_close_matches(key, known, n=1)
        if key in ClientSettings.__annotations__:
            advice = f"pass client={client}({key}=...)"
        elif key in _OF_OPTIONS:
            advice = f"pass options=Options({key}=...)"
        elif key in _OF_POLICY:
            advice = f"pass policy=Policy({key}=...)"
        elif nearest:
            advice = f"did you mean {nearest[0]}=...?"
        else:
            advice = f"the settings are {', '.join(sorted(known))}, client and model"
        raise SettingsError(f"{name}() got an unexpected setting {key!r}; {advice}", key=key, suggestions=nearest)


class _AnyHistory(Protocol):
    """`History` and `AsyncHistory`."""

    is_closed: bool

    @property
    def context(self) -> Context: ...

    def append(self, *messages: Message) -> None: ...

    def append_summary(self, summary: Summary) -> None: ...


class _Turn:
    """One request: whether its user message is stored, without which its answer is not stored either."""

    is_stored = False


class _BaseConversation:
    """Everything that `Conversation` and `AsyncConversation` share: all but sending and opening the file."""

    def __init__(
        self, model: Model | str | None, settings: ConversationSettings, catalogue: Catalogue | None = None
    ) -> None:
        refuse_unknown_settings(type(self).__name__, settings)
        self._catalogue = catalogue
        self._options = settings.get("options")
        self._policy = settings.get("policy")
        self._fallback_models = tuple(settings.get("fallback_models", ()))
        self._sticky = settings.get("sticky", False)
        self._reply: ref[Shell] | None = None  # the last reply; weak, so that an unreferenced reply is closed
        self._turn = Lock()  # when two threads ask at once, one of them is refused
        self._outboxes = Outboxes()
        self._attempts: tuple[Attempt, ...] = ()
        self._unkept: AssistantMessage | None = None
        self._settings = settings
        self._summarise = _find_summariser(settings.get("summarise"), catalogue)
        self._refused: int | None = None  # the last message of a part whose summary failed: it is not tried again
        self._model = None if model is None else get_model(model, catalogue=catalogue)

    def _open(self) -> History:
        """Open the session file and choose the model, in one step that a thread can do."""
        settings = self._settings
        history = History(
            settings.get("path"),
            settings.get("context"),
            settings.get("system_prompt"),
            settings.get("tools"),
            fsync=settings.get("fsync", False),
        )
        try:
            if self._model is None:
                last = _last_model(history.context, type(self).__name__)
                self._model = get_model(last, catalogue=self._catalogue)
        except BaseException:
            history.close()
            raise
        return history

    def _get_history(self) -> _AnyHistory:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.full_name()}, {len(self.messages)} messages)"

    @property
    def context(self) -> Context:
        """The conversation: system prompt, messages and tools."""
        return self._get_history().context

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, the first one first."""
        return self.context.messages

    @property
    def model(self) -> Model:
        """The model that the next request goes to."""
        if self._model is None:
            _ = self.context  # an AsyncConversation may still be reading its file
        assert self._model is not None, "an open conversation has a model"
        return self._model

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts of the last request."""
        return self._attempts

    @property
    def unkept(self) -> AssistantMessage | None:
        """The last answer, if it could not be written to the file. Once there is space, pass it to `add`."""
        return self._unkept

    def switch(self, model: Model | str) -> None:
        """Send the following requests to another model; the history does not change."""
        self._model = get_model(model, catalogue=self._catalogue)

    def add(self, *messages: Message) -> None:
        """Append messages unchanged.

        Raises:
            ConversationError: a reply has not ended, or the conversation was closed.
            DumpError: a message cannot be stored.
            OSError: the file cannot be written.
        """
        self._refuse_while_running()
        self._get_history().append(*messages)

    def add_result(
        self, call: ToolCall, *content: str | ToolResultContent, is_error: bool = False, details: object = None
    ) -> None:
        """Append the result of a tool call. Once every call has a result, `ask()` continues."""
        self.add(new_result(call, content, is_error=is_error, details=details))

    def pending_calls(self) -> tuple[ToolCall, ...]:
        """List the calls of the last answer that have no result yet."""
        answered: set[str] = set()
        for message in reversed(self.messages):
            if message.role == "toolResult":
                answered.add(message.tool_call_id)
            elif message.role == "assistant":
                return tuple(call for call in message.tool_calls() if call.id not in answered)
        return ()

    def _running(self) -> Shell | None:
        """Return the reply that has not ended, unless it is no longer referenced."""
        reply = None if self._reply is None else self._reply()
        return reply if reply is not None and not reply.is_over else None

    def _refuse_while_running(self) -> None:
        if self._running() is not None:
            raise ConversationError(
                "the last reply has not ended; read its stream to the end or close it before the next request"
            )

    def _ask(
        self,
        turn: _Turn,
        begin: Callable[..., _Reply],
        content: Sequence[str | UserContent],
        *,
        model: Model | str | None,
        options: Options | None,
        policy: Policy | None,
        emits: bool,
    ) -> _Reply:
        """Make a request. The user message is stored before anything is sent."""
        with self._turn:
            self._refuse_while_running()
            messages = (new_user_message(content),) if content else ()

            def keep(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> None:
                if turn.is_stored:  # otherwise nothing was sent
                    self._keep(message, attempts, is_override=model is not None)

            reply = begin(
                self.context.add(*messages),
                self.model if model is None else model,
                options=options or self._options,
                policy=policy or self._policy,
                fallback_models=self._fallback_models,
                emits=emits,
                prepare=self._outboxes.prepare,
                on_end=keep,
                summarise=None if self._summarise is None else partial(self._perform_summary, turn),
            )
            self._get_history().append(*messages)
            turn.is_stored = True
            self._reply = ref(reply)
            return reply

    def _perform_summary(self, turn: _Turn, step: SummariseStep) -> object:
        raise NotImplementedError

    def _begin_summary(self, turn: _Turn, step: SummariseStep) -> Summarising | None:
        """Prepare a summary; None if there is none to make, or the last one of these messages failed."""
        window = step.request.projection.window
        if not turn.is_stored or window is None or self._refused == step.wanted.last:
            return None
        writer = self._summarise if isinstance(self._summarise, Model) else None
        making = Summarising(step.context, step.wanted, step.request.model, limit=window.limit, writer=writer)
        return making if making.is_worthwhile else None

    def _end_summary(self, step: SummariseStep, making: Summarising) -> Summarised:
        """Store a finished summary."""
        summary = making.finish()
        self._get_history().append_summary(summary)
        self._refused = None
        return Summarised(step.context.add_summary(summary))

    def _refuse_summary(self, step: SummariseStep, error: Exception) -> Summarised:
        """Go on without a summary: the note stays, and the answer has a diagnostic."""
        self._refused = step.wanted.last
        return Summarised(None, str(error) or type(error).__name__)

    def _keep(self, message: AssistantMessage, attempts: tuple[Attempt, ...], *, is_override: bool) -> None:
        """Store an answer, and with `sticky` the model that gave it."""
        self._attempts = attempts
        if self._sticky and not is_override and attempts and attempts[-1].failure is None:
            self._model = attempts[-1].model
        history = self._get_history()
        if not history.is_closed:
            self._unkept = message
            history.append(message)
            self._unkept = None


def _find_summariser(given: Model | str | Summarise | None, catalogue: Catalogue | None) -> Model | Summarise | None:
    return get_model(given, catalogue=catalogue) if isinstance(given, (str, Model)) else given


def _last_model(context: Context, name: str) -> str:
    """Return the name of the model that wrote the last answer."""
    for message in reversed(context.messages):
        if message.role == "assistant" and message.model:
            return f"{message.provider}/{message.model}"
    raise SettingsError(
        f"{name}() needs to know which model to ask, and the conversation has no answer that names one; pass a model,"
        f' such as {name}("anthropic/claude-opus-4-5")',
        key="model",
    )


class Conversation(_BaseConversation):
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
        super().__init__(model, settings, None if client is None else client.catalogue)
        if iscoroutinefunction(self._summarise):
            raise SettingsError(
                "summarise= is an async function, which Conversation cannot await; use AsyncConversation, or pass a"
                " sync function",
                key="summarise",
            )
        self._history = self._open()
        self._client = client or Client()
        self._owns_client = client is None

    def _get_history(self) -> History:
        return self._history

    def ask(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage:
        """Send a user message, if any, and return the answer.

        `model`, `options` and `policy` apply to this request only. The message and the answer are stored, even if the
        answer is incomplete.

        Raises:
            RequestFailed: no model gave a complete answer.
            OSError: the file cannot be written. An answer that arrived all the same is in `unkept`.
        """
        with self._ask(
            _Turn(), self._client.begin, content, model=model, options=options, policy=policy, emits=False
        ) as reply:
            return reply.result()

    def stream(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> Stream:
        """Send a user message, if any, and return the events of the answer. The answer is stored however it ends."""
        return self._ask(_Turn(), self._client.begin, content, model=model, options=options, policy=policy, emits=True)

    def _perform_summary(self, turn: _Turn, step: SummariseStep) -> Summarised | None:
        try:
            making = self._begin_summary(turn, step)
            if making is None:
                return None
            while (task := making.task) is not None:
                writer = self._summarise
                if isinstance(writer, Model):
                    making.take(self._client.complete(task.context, writer))
                elif writer is not None:
                    making.take(cast("Answer", writer(task)))
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


class AsyncConversation(_BaseConversation):
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
        super().__init__(model, settings, None if client is None else client.catalogue)
        self._history = AsyncHistory(self._open, has_file=settings.get("path") is not None)
        self._client = client or AsyncClient()
        self._owns_client = client is None

    def _get_history(self) -> AsyncHistory:
        return self._history

    async def ask(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage:
        """Send a user message, if any, and return the answer, like `Conversation.ask`."""
        await self._history.wait_until_open()
        turn = _Turn()
        begin = partial(self._client.begin, settle=partial(self._settle, turn))
        reply = self._ask(turn, begin, content, model=model, options=options, policy=policy, emits=False)
        async with reply:
            return await reply.result()

    def stream(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AsyncStream:
        """Send a user message, if any, and return the events of the answer, like `Conversation.stream`."""
        turn = _Turn()
        begin = partial(self._client.begin, settle=partial(self._settle, turn))
        return self._ask(turn, begin, content, model=model, options=options, policy=policy, emits=True)

    async def _perform_summary(self, turn: _Turn, step: SummariseStep) -> Summarised | None:
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

    async def _settle(self, turn: _Turn) -> None:
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
