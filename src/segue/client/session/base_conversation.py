"""What sync and async conversations share: the history, the model, and the rules for a request."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, Unpack, cast
from weakref import ref

from segue.client.flow.attempts import Attempt
from segue.client.flow.recall import Recall
from segue.client.flow.steps import Summarise as SummariseStep
from segue.client.flow.steps import Summarised
from segue.client.flow.tool_loop import ToolLoop, pending_calls
from segue.client.flow.typed_answers import make_output
from segue.client.http.async_streams import AsyncStream
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.running import RunEvent, RunPlace, RunSettings
from segue.client.http.shell import Shell
from segue.client.http.streams import Stream
from segue.client.session.history import ConversationHistory, new_result, new_user_message
from segue.client.session.outboxes import Outboxes
from segue.client.session.recorded_models import check_address, storable_model
from segue.client.session.settings import ConversationSettings
from segue.client.session.summarising import Summarise, Summarising
from segue.conversation.content import ToolCall, ToolResultContent, UserContent
from segue.conversation.context import Context, Options, Summary
from segue.conversation.media_checks import check_media
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import ConversationError, SettingsError, UnknownModel
from segue.foundation.plurals import counted
from segue.models.catalogue import Catalogue, get_model, installed_catalogue
from segue.models.model import Model
from segue.planning.fallbacks import FallbackPolicy
from segue.projection.policy import Policy
from segue.projection.report import Report
from segue.protocols.context_input import read_input

_Reply = TypeVar("_Reply", Stream, AsyncStream)
_Events = TypeVar("_Events", Iterator[RunEvent], AsyncIterator[RunEvent])


class _AnyHistory(Protocol):
    """`ConversationHistory` and `AsyncHistory`."""

    is_closed: bool

    @property
    def context(self) -> Context: ...

    def append(self, *messages: Message) -> None: ...

    def append_model(self, model: Model) -> None: ...

    def append_summary(self, summary: Summary) -> None: ...


class PendingTurn:
    """One request: whether its user message is stored, without which its answer is not stored either."""

    is_stored = False


class BaseConversation(Generic[_Reply, _Events]):
    """Everything that `Conversation` and `AsyncConversation` share: all but sending and opening the file."""

    def __init__(self, model: Model | str | None, settings: ConversationSettings, client: Client | AsyncClient) -> None:
        self._catalogue = client.catalogue
        self._has_key = client.has_key
        self._used: dict[str, Model] = {}  # by full name: models that no catalogue has
        self._from_file: Mapping[str, Model] = {}
        self._options = settings.get("options")
        self._policy = settings.get("policy")
        given = settings.get("fallback_models", ())
        self._fallback_models = given if isinstance(given, FallbackPolicy) else tuple(given)
        self._sticky = settings.get("sticky", False)
        self._first: tuple[Model, int] | None = None  # the model that a fallback replaces, and until when it rests
        self._reply: ref[Shell] | None = None  # the last reply; weak, so that an unreferenced reply is closed
        self._turn = Lock()  # when two threads ask at once, one of them is refused
        self._outboxes = Outboxes()
        self._recall = Recall()
        self._attempts: tuple[Attempt, ...] = ()
        self._unkept: AssistantMessage | None = None
        self._settings = settings
        self._summarise = _find_summariser(settings.get("summarise"), self._catalogue)
        self._refused: int | None = None  # the last message of a part whose summary failed: it is not tried again
        self._name = model if isinstance(model, str) else None
        self._model = self._remembered(model) if isinstance(model, Model) else None
        if self._name is not None:
            self._model = self._find_known(self._name)
            path = settings.get("path")
            if self._model is None and (path is None or not os.path.exists(path)):  # noqa: PTH110  # may be a string
                self._model = get_model(self._name, catalogue=self._catalogue)

    def _open(self) -> ConversationHistory:
        """Open the session file and choose the model, in one step that a thread can do."""
        settings = self._settings
        history = ConversationHistory(
            settings.get("path"),
            None if (given := settings.get("context")) is None else read_input(given),
            settings.get("system_prompt"),
            settings.get("tools"),
            fsync=settings.get("fsync", False),
        )
        try:
            self._from_file = {model.full_name().lower(): model for model in history.models}
            if self._model is None:
                name = self._name or _last_model(history.context, type(self).__name__)
                self._model = self._find_known(name) or self._find_used(name)
            is_described = self._model.full_name().lower() in self._from_file
            if not is_described and self._is_unknown(self._model) and _has_answer_of(self._model, history.context):
                history.append_model(storable_model(self._model))
        except BaseException:
            history.close()
            raise
        return history

    def _get_history(self) -> _AnyHistory:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.full_name()}, {counted(len(self.messages), 'message')})"

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
    def report(self) -> Report:
        """What was changed for the last request that was sent; empty before the first one."""
        return self._attempts[-1].report if self._attempts else Report(())

    @property
    def unkept(self) -> AssistantMessage | None:
        """The last answer, if it could not be written to the file. Once there is space, pass it to `add`."""
        return self._unkept

    def switch(self, model: Model | str) -> None:
        """Send the following requests to another model; the history does not change."""
        self._model = self.find_model(model)

    def find_model(self, model: Model | str) -> Model:
        """Find a model by its name: in the catalogue, or among those that this conversation or its file has used.

        Raises:
            UnknownModel: there is no such model; `suggestions` are similar names.
            SettingsError: only the session file describes it, and your key would be sent to the address in the file.
        """
        if isinstance(model, Model):
            return self._remembered(model)
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return get_model(model)  # which says what is expected
        found = self._find_known(model)
        if found is None:
            _ = self.context  # an AsyncConversation may still be reading its file
            found = self._find_used(model)
        return found

    def _find_known(self, name: str) -> Model | None:
        """Find a model that the catalogue lists; None if there is no such model."""
        try:
            found = get_model(name, catalogue=self._catalogue)
        except UnknownModel:
            return None
        is_listed = self._catalogue is not None and self._catalogue.has_name(found.full_name())
        return found if is_listed or not self._is_unknown(found) else None

    def _find_used(self, name: str) -> Model:
        """Find a model that no catalogue lists: used before, described by the file, or loaded by a server."""
        key = name.lower()
        if key in self._used:
            return self._used[key]
        if key in self._from_file:
            return check_address(self._from_file[key], self._has_key, type(self).__name__)
        return get_model(name, catalogue=self._catalogue)

    def _remembered(self, model: Model) -> Model:
        """Complete a model, and find it by its name from now on."""
        found = get_model(model, catalogue=self._catalogue)
        self._used[found.full_name().lower()] = found
        return found

    def _is_unknown(self, model: Model) -> bool:
        """Whether only this conversation can describe a model: no catalogue that every program has lists it."""
        return not installed_catalogue().has_name(model.full_name())

    def add(self, *messages: Message | str) -> None:
        """Append messages unchanged; a text is a message of the user.

        Raises:
            ConversationError: a reply has not ended, or the conversation was closed.
            ConversationError: an image or file could never be sent: its data is not base64, or its URL is a path.
            DumpError: a message cannot be stored.
            OSError: the file cannot be written.
        """
        self._refuse_while_running()
        timed = (new_user_message((each,)) if isinstance(each, str) else each for each in messages)
        added = Context().add(*timed).messages
        for message in added:
            check_media(message, () if self._policy is None else self._policy.media)
        self._get_history().append(*added)

    def add_result(
        self, call: ToolCall, *content: str | ToolResultContent, is_error: bool = False, details: object = None
    ) -> None:
        """Append the result of a tool call. Once every call has a result, `ask()` continues.

        Raises:
            ConversationError: it is not a call, or as in `add`.
        """
        if not isinstance(call, ToolCall):  # pyright: ignore[reportUnnecessaryIsInstance]
            name = type(cast("object", call)).__name__
            raise ConversationError(f"expected a ToolCall, got a value of type {name}; pass one of pending_calls()")
        self.add(new_result(call, content, is_error=is_error, details=details))

    def pending_calls(self) -> tuple[ToolCall, ...]:
        """List the calls of the last answer that have no result yet."""
        return pending_calls(self.messages)

    def _running(self) -> Shell | None:
        """Return the reply that has not ended, unless it is no longer referenced."""
        reply = None if self._reply is None else self._reply()
        return reply if reply is not None and not reply.is_over else None

    def _refuse_while_running(self) -> None:
        if self._running() is not None:
            raise ConversationError(
                "the last reply has not ended; read its stream to the end or close it before the next request"
            )

    def run_stream(
        self, *content: str | UserContent, model: Model | str | None = None, **settings: Unpack[RunSettings]
    ) -> _Events:
        """Run a loop like `run` and yield what happens: events, results of calls, and at the end the `Run`."""
        return self._run(content, model, settings, emits=True)

    def _run(
        self, content: tuple[str | UserContent, ...], model: Model | str | None, settings: RunSettings, *, emits: bool
    ) -> _Events:
        raise NotImplementedError

    def _start_loop(
        self, content: tuple[str | UserContent, ...], model: Model | str | None, settings: RunSettings, *, emits: bool
    ) -> tuple[ToolLoop, RunPlace[_Reply]]:
        """Return a loop with its tools and limits, and this conversation as the place where it runs."""
        recall = self._recall if settings.get("recall", True) else None
        loop, given = ToolLoop(settings["tools"], settings.get("limits"), recall), [content]

        def ask() -> _Reply:
            asked, options, policy = given.pop() if given else (), settings.get("options"), settings.get("policy")
            return self._ask(asked, model=model, options=options, policy=policy, emits=emits, tools=loop)

        return loop, RunPlace[_Reply](lambda: self.context, self.add, ask)

    def _begin(self, turn: PendingTurn) -> Callable[..., _Reply]:
        """Return the function of the client that makes a request."""
        raise NotImplementedError

    def _ask(
        self,
        content: Sequence[str | UserContent],
        *,
        model: Model | str | None,
        options: Options | None,
        policy: Policy | None,
        emits: bool,
        tools: ToolLoop | None = None,
        output: Any = None,  # noqa: ANN401 - a type form
        output_retries: int = 1,
    ) -> _Reply:
        """Make a request. The user message is stored before anything is sent."""
        asked, turn = make_output(output, output_retries, options or self._options), PendingTurn()
        with self._turn:
            self._refuse_while_running()
            messages = (new_user_message(content),) if content else ()
            for message in messages:  # before it is stored: a message that can never be sent would block the rest
                check_media(message, () if self._policy is None else self._policy.media)

            def keep(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> None:
                if turn.is_stored:  # otherwise nothing was sent
                    self._keep(message, attempts, is_override=model is not None)

            context = self.context.add(*messages)
            asked_of, fallbacks = self.model if model is None else self.find_model(model), self._fallback_models
            if model is None and self._first is not None and isinstance(fallbacks, FallbackPolicy):
                asked_of, fallbacks = self._choose_first(context, self._first, fallbacks)
            make = self._outboxes.prepare
            reply = self._begin(turn)(
                context if tools is None else tools.with_tools(context),
                asked_of,
                options=options or self._options,
                policy=policy or self._policy,
                fallback_models=fallbacks,
                emits=emits,
                prepare=make if tools is None or tools.recall is None else partial(tools.recall.prepare, make),
                on_end=keep,
                summarise=None if self._summarise is None else partial(self._perform_summary, turn),
                output=asked,
            )
            self._get_history().append(*messages)
            turn.is_stored = True
            self._reply = ref(reply)
            return reply

    def _choose_first(
        self, context: Context, replaced: tuple[Model, int], fallbacks: FallbackPolicy
    ) -> tuple[Model, FallbackPolicy]:
        """Return to the first model if it has rested and is worth it; it stays a fallback otherwise."""
        (first, rests_until), last, now = replaced, self.model, time.time_ns() // 1_000_000
        others = [each for each in map(self.find_model, fallbacks) if each not in (first, last)]
        if now >= rests_until and fallbacks.prefers_first(
            context, first, last, options=self._options, policy=self._policy, now=now
        ):
            return first, fallbacks.with_models((last, *others))
        return last, fallbacks.with_models((*others, first))

    def _perform_summary(self, turn: PendingTurn, step: SummariseStep) -> object:
        raise NotImplementedError

    def _begin_summary(self, turn: PendingTurn, step: SummariseStep) -> Summarising | None:
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

    def _note_first(self, attempts: tuple[Attempt, ...]) -> None:
        """Remember the model that a fallback replaces, and until when it rests."""
        if not isinstance(self._fallback_models, FallbackPolicy):
            return
        first = self.model if self._first is None else self._first[0]
        failed = [each for each in attempts if each.failure is not None and each.model == first]
        if attempts[-1].model == first:
            self._first = None
        elif failed:
            after = failed[-1].failure.retry_after if failed[-1].failure is not None else None
            seconds = max(self._fallback_models.rest_seconds, after or 0.0)
            self._first = first, failed[-1].started + round(seconds * 1000)

    def _keep(self, message: AssistantMessage, attempts: tuple[Attempt, ...], *, is_override: bool) -> None:
        """Store an answer, and with `sticky` the model that gave it."""
        self._attempts = attempts
        if self._sticky and not is_override and attempts and attempts[-1].failure is None:
            self._note_first(attempts)
            self._model = attempts[-1].model
        history = self._get_history()
        if not history.is_closed:
            self._unkept = message
            if attempts and self._is_unknown(attempts[-1].model):
                history.append_model(storable_model(attempts[-1].model))
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


def _has_answer_of(model: Model, context: Context) -> bool:
    return any(
        message.role == "assistant" and (message.provider, message.model) == (model.provider, model.id)
        for message in context.messages
    )


def check_client(client: object, wanted: type[Client | AsyncClient], name: str) -> None:
    """Check that a client is an object of the class that a conversation needs.

    Raises:
        SettingsError: it is the class itself, the client for the other kind of program, or something else.
    """
    if client is not None and not isinstance(client, wanted):
        given = (
            f"the class {client.__name__}" if isinstance(client, type) else f"a value of type {type(client).__name__}"
        )
        raise SettingsError(
            f"{name}(client=...) takes a client, got {given}; write client={wanted.__name__}(...)", key="client"
        )
