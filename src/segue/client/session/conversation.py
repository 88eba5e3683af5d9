"""A small object for applications: a history that grows, a model that can be changed, and a file it is kept in.

It holds nothing back: `context` is the conversation as any other function takes it, and everything here is done by
`Client`, `Context.add` and the functions for session files, in the order an application would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from types import TracebackType
from typing import Self, TypedDict, TypeVar, Unpack
from weakref import ref

from segue.client.flow.attempts import Attempt
from segue.client.http.async_streams import AsyncStream
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.shell import Shell
from segue.client.http.streams import Stream
from segue.client.session.history import History, new_result, new_user_message
from segue.client.session.outboxes import Outboxes
from segue.conversation.content import SystemContent, ToolCall, ToolResultContent, UserContent
from segue.conversation.context import Context, Options, Tool
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import ConversationError, SettingsError
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.sessions import StrPath

_Reply = TypeVar("_Reply", bound=Shell)


class ConversationSettings(TypedDict, total=False):
    """What a conversation can be told; everything has a usual value."""

    path: StrPath | None
    """The session file: goes on where it stopped, and has every message before the next step is taken."""
    fsync: bool
    """Wait until each message is on the disk."""
    context: Context | None
    """What the conversation begins with, unless the file has begun."""
    system_prompt: str | tuple[SystemContent, ...] | None
    tools: Sequence[Tool] | None
    options: Options | None
    policy: Policy | None
    fallback_models: Sequence[Model | str]
    sticky: bool
    """Stay with a fallback model that answered."""


class _BaseConversation:
    """What both conversations have in common: everything but the sending."""

    def __init__(
        self, model: Model | str | None, settings: ConversationSettings, catalogue: Catalogue | None = None
    ) -> None:
        unknown = sorted(set(settings) - set(ConversationSettings.__annotations__))
        if unknown:
            raise SettingsError(f"a conversation has no setting {unknown[0]!r}", key=unknown[0])
        self._catalogue = catalogue
        self._options = settings.get("options")
        self._policy = settings.get("policy")
        self._fallback_models = tuple(settings.get("fallback_models", ()))
        self._sticky = settings.get("sticky", False)
        self._reply: ref[Shell] | None = None  # the last one: asked of, not held
        self._turn = Lock()  # two threads that ask at once: one of them is refused
        self._outboxes = Outboxes()
        self._attempts: tuple[Attempt, ...] = ()
        self._unkept: AssistantMessage | None = None
        self._history = History(
            settings.get("path"),
            settings.get("context"),
            settings.get("system_prompt"),
            settings.get("tools"),
            fsync=settings.get("fsync", False),
        )
        try:
            self._model = get_model(_last_model(self.context) if model is None else model, catalogue=catalogue)
        except BaseException:
            self._history.close()
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model.full_name()}, {len(self.messages)} messages)"

    @property
    def context(self) -> Context:
        """The conversation as it is kept."""
        return self._history.context

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that was said."""
        return self._history.context.messages

    @property
    def model(self) -> Model:
        """Who is asked next."""
        return self._model

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What was tried for the last answer."""
        return self._attempts

    @property
    def unkept(self) -> AssistantMessage | None:
        """The last answer, where its file could not take it: when there is room again, `add` it."""
        return self._unkept

    def switch(self, model: Model | str) -> None:
        """Ask another model from now on; the history stays as it is."""
        self._model = get_model(model, catalogue=self._catalogue)

    def add(self, *messages: Message) -> None:
        """Add messages at the end, as they are."""
        self._refuse_while_running()
        self._history.append(*messages)

    def add_result(
        self, call: ToolCall, *content: str | ToolResultContent, is_error: bool = False, details: object = None
    ) -> None:
        """Answer a tool call; when all are answered, `ask()` goes on."""
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
        """Give the reply that has not ended, unless whoever read it has forgotten it."""
        reply = None if self._reply is None else self._reply()
        return reply if reply is not None and not reply.is_over else None

    def _refuse_while_running(self) -> None:
        if self._running() is not None:
            raise ConversationError("the last reply has not ended: read it to its end, or close it")

    def _ask(
        self,
        begin: Callable[..., _Reply],
        content: Sequence[str | UserContent],
        model: Model | str | None,
        options: Options | None,
        policy: Policy | None,
        *,
        emits: bool,
    ) -> _Reply:
        """Make a request of the conversation and what is said now, which is kept before anything is sent."""
        with self._turn:
            self._refuse_while_running()
            text = (new_user_message(content),) if content else ()
            stands = False

            def keep(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> None:
                if stands:  # else what was said could not be kept, so nothing was asked
                    self._keep(message, attempts, is_override=model is not None)

            reply = begin(
                self.context.add(*text),
                self._model if model is None else model,
                options=options or self._options,
                policy=policy or self._policy,
                fallback_models=self._fallback_models,
                emits=emits,
                prepare=self._outboxes.prepare,
                on_end=keep,
            )
            self._history.append(*text)
            stands = True
            self._reply = ref(reply)
            return reply

    def _keep(self, message: AssistantMessage, attempts: tuple[Attempt, ...], *, is_override: bool) -> None:
        self._attempts = attempts
        if self._sticky and not is_override and attempts and attempts[-1].failure is None:
            self._model = attempts[-1].model
        if not self._history.is_closed:
            self._unkept = message
            self._history.append(message)
            self._unkept = None


def _last_model(context: Context) -> str:
    """Name who answered last, for a file that is opened without saying whom to ask."""
    for message in reversed(context.messages):
        if message.role == "assistant" and message.model:
            return f"{message.provider}/{message.model}"
    raise SettingsError("say which model is asked: the conversation does not show it", key="model")


class Conversation(_BaseConversation):
    """A conversation with one model at a time, kept in memory and, with a `path`, in a session file.

    Without a `client` it makes one for itself, and closes it. Every other setting is optional: see
    `ConversationSettings`. Close it, or use it in a `with` block: the file is locked against other writers until then.

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
        self._client = client or Client()
        self._owns_client = client is None

    def ask(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage:
        """Say something, if anything, and give the answer; `model`, `options` and `policy` hold for this request alone.

        Both are kept, and so is an answer that broke off.

        Raises:
            RequestFailed: nobody answered as they should.
            OSError: the file cannot be written; an answer that came all the same stands in `unkept`.
        """
        with self._ask(self._client.begin, content, model, options, policy, emits=False) as reply:
            return reply.result()

    def stream(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> Stream:
        """Say something, if anything, and give the events of the answer; it is kept when it ends, however it ends."""
        return self._ask(self._client.begin, content, model, options, policy, emits=True)

    def close(self) -> None:
        """End a reply that is still coming, let others write to the file, close the client if it is its own."""
        if isinstance(reply := self._running(), Stream):
            reply.close()
        self._history.close()
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncConversation(_BaseConversation):
    """`Conversation` for asyncio. Messages are written to the file without leaving the event loop."""

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        client: AsyncClient | None = None,
        **settings: Unpack[ConversationSettings],
    ) -> None:
        super().__init__(model, settings, None if client is None else client.catalogue)
        self._client = client or AsyncClient()
        self._owns_client = client is None

    async def ask(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AssistantMessage:
        """Say something, if anything, and give the answer, like `Conversation.ask`."""
        async with self._ask(self._client.begin, content, model, options, policy, emits=False) as reply:
            return await reply.result()

    def stream(
        self,
        *content: str | UserContent,
        model: Model | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> AsyncStream:
        """Say something, if anything, and give the events of the answer, like `Conversation.stream`."""
        return self._ask(self._client.begin, content, model, options, policy, emits=True)

    async def close(self) -> None:
        """End a reply that is still coming, let others write to the file, close the client if it is its own."""
        if isinstance(reply := self._running(), AsyncStream):
            await reply.close()
        self._history.close()
        if self._owns_client:
            await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
