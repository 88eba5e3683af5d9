"""Clients: they hold connections and settings, and send conversations to models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypedDict, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from segue.client.flow.attempts import Attempt
from segue.client.flow.deciding import C, Choices, Deciding, Decision, Question
from segue.client.flow.request_flow import Ask, Prepare
from segue.client.flow.shortening import window_key, with_window
from segue.client.flow.steps import Broken, Head
from segue.client.flow.tool_loop import Run
from segue.client.flow.typed_answers import Answer, T, make_output
from segue.client.http.async_sending import AsyncWire, find_direct
from segue.client.http.async_streams import (
    AsyncStream,
    AsyncSummariseStep,
    AsyncTypedStream,
    Settle,
    ask_once_async,
    fetch_async,
)
from segue.client.http.counting import AskedDecision, Counting
from segue.client.http.first_attempts import FirstAttempt
from segue.client.http.loops import HttpByLoop
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.running import (
    RunEvent,
    RunSettings,
    last_of,
    last_of_async,
    run_tools,
    run_tools_async,
    start_loop,
)
from segue.client.http.sending import Wire
from segue.client.http.settings import ClientSettings, OnAttempt, Setup, import_httpx2, shared_tls
from segue.client.http.shell import OnEnd
from segue.client.http.streams import Stream, SummariseStep, TypedStream, ask_once
from segue.client.local.echo import EchoOnly
from segue.client.output.ladder import WantedOutput
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage
from segue.errors import MissingExtra
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.planning.fallbacks import FallbackPolicy
from segue.projection.policy import Policy
from segue.projection.projector import with_routers
from segue.protocols.context_input import ContextInput, read_input
from segue.requests.prepare import prepare as make_request

if TYPE_CHECKING:
    import httpx2

_MAX_IDLE: Final = 100  # idle connections that are kept; connections in use are not limited
_FITTED: Final = 8  # policies for smaller windows that are kept

_Reply = TypeVar("_Reply", Stream, AsyncStream)
_Events = TypeVar("_Events", Iterator[RunEvent], AsyncIterator[RunEvent])


class SendSettings(TypedDict, total=False):
    """The settings of one request; all are optional."""

    options: Options | None
    policy: Policy | None
    fallback_models: Sequence[Model | str]
    """Models to try, in order, when a request to the model fails; a `FallbackPolicy` chooses the order by cost."""
    on_attempt: OnAttempt | None
    """Called after each attempt."""


class StreamSettings(SendSettings, total=False):
    """The settings of one streamed request; all are optional."""

    on_end: OnEnd | None
    """Called once with the finished message and the attempts, before the terminal event is returned."""


class _BaseClient(Generic[_Reply, _Events]):
    """Everything that `Client` and `AsyncClient` share: all but sending, which `begin` and `_run_tools` do."""

    begin: Callable[..., _Reply]
    _run_tools: Callable[..., _Events]

    def __init__(self, settings: ClientSettings) -> None:
        self._setup = Setup(settings)
        self._builder = RequestBuilder(self._setup)
        self._routed: tuple[Policy | None, Policy | None] = (None, with_routers(None, self._setup.catalogue))
        self._answered: dict[tuple[str, ...], str] = {}  # by the candidates: the model that answered last
        self._windows: dict[str, int] = {}  # by the model: a window that proved to be smaller than the known one
        self._fitted: list[tuple[Policy | None, int, Policy]] = []  # the last policies for such windows

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _ask(
        self,
        context: ContextInput,
        model: Model | str,
        options: Options | None,
        policy: Policy | None,
        fallback_models: Sequence[Model | str],
        *,
        emits: bool,
        prepare: Prepare | None,
        summarises: bool = False,
        output: WantedOutput | None = None,
    ) -> Ask:
        """Collect the arguments of a request. With `sticky`, the model that answered last is the first candidate."""
        candidates = self._builder.find_candidates(model, fallback_models)
        owner = candidates[0].provider
        if self._setup.sticky:
            last = self._answered.get(_names(candidates))
            candidates = tuple(sorted(candidates, key=lambda each: each.full_name() != last))
        if emits:
            options = replace(options or Options(), stream=True)
        return Ask(
            context=read_input(context),
            candidates=candidates,
            owner=owner,
            options=options,
            policy=self._find_policy(policy),
            retry=self._setup.retry,
            emits=emits,
            prepare=prepare or make_request,
            windows=dict(self._windows),
            with_window=self._with_window,
            accounts=self._builder.accounts,
            summarises=summarises,
            output=output,
            fallbacks=fallback_models if isinstance(fallback_models, FallbackPolicy) else None,
        )

    def run_stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        fallback_models: Sequence[Model | str] = (),
        **settings: Unpack[RunSettings],
    ) -> _Events:
        """Run a loop like `run` and yield what happens: events, results of calls, and at the end the `Run`."""
        return self._run(context, model, fallback_models, settings, emits=True)

    def _run(
        self,
        context: ContextInput,
        model: Model | str,
        fallback_models: Sequence[Model | str],
        settings: RunSettings,
        *,
        emits: bool,
    ) -> _Events:
        loop, place = start_loop(self.begin, context, model, fallback_models, settings, emits=emits)
        return self._run_tools(loop, place, settings.get("approve"), emits=emits)

    @property
    def catalogue(self) -> Catalogue | None:
        """The models and providers of the user's own, if any."""
        return self._setup.catalogue

    def find_account(self, model: Model) -> str | None:
        """Return the label of the account that requests to a model are sent with; None if the account is irrelevant."""
        return self._builder.accounts.find(model)

    def has_key(self, model: Model) -> bool:
        """Whether a request to a model would carry a key, a token or a signature."""
        return self._builder.has_key(model)

    def find_missing(self, model: Model) -> str | None:
        """Describe what every request to a model would fail for, such as a key that is not set; None if nothing."""
        return self._builder.find_missing(model)

    def _find_policy(self, policy: Policy | None) -> Policy | None:
        """Return a policy that recognises the user's routers: one object for one policy, as outboxes need it."""
        given, routed = self._routed
        if given is not policy:
            routed = with_routers(policy, self._setup.catalogue)
            self._routed = (policy, routed)
        return routed

    def _counting(
        self, context: ContextInput, model: Model | str, options: Options | None, policy: Policy | None
    ) -> Counting:
        (target,) = self._builder.find_candidates(model, ())
        return Counting(self._builder, read_input(context), target, options, self._find_policy(policy))

    def _deciding(
        self, question: Question[C], context: ContextInput, model: Model | str, policy: Policy | None
    ) -> Deciding[C]:
        (target,) = self._builder.find_candidates(model, ())
        return Deciding(question, read_input(context), target, self._find_policy(policy))

    def _with_window(self, policy: Policy | None, window: int) -> Policy:
        """Return a policy for another window: one object for one policy and window, as outboxes need it."""
        for given, known, fitted in self._fitted:
            if given is policy and known == window:
                return fitted
        fitted = with_window(policy, window)
        self._fitted = [*self._fitted[1 - _FITTED :], (policy, window, fitted)]
        return fitted

    def _hooks(self, ask: Ask, on_attempt: OnAttempt | None, on_end: OnEnd | None) -> tuple[OnAttempt | None, OnEnd]:
        listeners = [listener for listener in (self._setup.on_attempt, on_attempt) if listener is not None]

        def notify(attempt: Attempt) -> None:
            for listener in listeners:
                listener(attempt)

        def end(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> None:
            if self._setup.sticky and attempts and attempts[-1].failure is None:
                self._answered[_names(ask.candidates)] = attempts[-1].model.full_name()
            if attempts and attempts[-1].failure is None and attempts[-1].window is not None:
                self._windows[window_key(attempts[-1].model)] = attempts[-1].window
            if on_end is not None:
                on_end(message, attempts)

        return (notify if listeners else None), end


def _names(candidates: Sequence[Model]) -> tuple[str, ...]:
    """Return the names of the candidates, sorted."""
    return tuple(sorted(candidate.full_name() for candidate in candidates))


class Client(_BaseClient[Stream, Iterator[RunEvent]]):
    """Sends conversations to models. Thread-safe; keeps connections open for reuse.

    Every setting is optional: see `ClientSettings`. Close it, or use it in a `with` block.
    """

    _run_tools = staticmethod(run_tools)

    def __init__(self, **settings: Unpack[ClientSettings]) -> None:
        super().__init__(settings)
        try:
            http = import_httpx2()
        except MissingExtra:
            self._http = cast("httpx2.Client", EchoOnly())  # other models raise it
            return
        self._http: httpx2.Client = http.Client(
            timeout=self._setup.resolve_timeout(),
            limits=http.Limits(max_connections=None, max_keepalive_connections=_MAX_IDLE),
            **self._setup.transports(),
            verify=shared_tls(),
        )

    @overload
    def complete(
        self, context: ContextInput, model: Model | str, *, output: None = None, **settings: Unpack[SendSettings]
    ) -> AssistantMessage: ...
    @overload
    def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[SendSettings],
    ) -> Answer[T]: ...
    @overload
    def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[SendSettings],
    ) -> Answer[Any]: ...
    def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        on_attempt: OnAttempt | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a conversation and return the whole reply; with `options.stream` the HTTP reply is streamed.

        With `output`, a type, the result is an `Answer` whose `value` is of that type: a dataclass, a TypedDict, a
        NamedTuple, a msgspec Struct, a model of pydantic, or a type made of them. Each model is asked for it in the
        best form that it has. A reply that does not fit is sent back with the reason, `output_retries` times.

        Raises:
            OutputError: the reply has no value of the type; its classes say why.
            RequestFailed: neither the model nor any of the `fallback_models` gave a complete answer.
            EmptyConversation, ProjectionRefused, UnknownModel: the request cannot be made.
        """
        with self.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            emits=False,
            on_attempt=on_attempt,
            output=make_output(output, output_retries, options),
        ) as reply:
            return cast("TypedStream[Any]", reply).answer() if output is not None else reply.result()

    @overload
    def stream(
        self, context: ContextInput, model: Model | str, *, output: None = None, **settings: Unpack[StreamSettings]
    ) -> Stream: ...
    @overload
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[StreamSettings],
    ) -> TypedStream[T]: ...
    @overload
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[StreamSettings],
    ) -> TypedStream[Any]: ...
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
    ) -> Stream:
        """Send a conversation and return the events of the reply as they arrive; a failure is the last event.

        The request is sent when the first event is read; the stream is not awaitable itself. `on_end` is called once
        with the finished message and the attempts, before the terminal event is returned. For `output` see
        `complete`: `partial` is what has arrived of the value, and `answer()` returns all of it.

        Raises:
            EmptyConversation, ProjectionRefused, UnknownModel: the request cannot be made.
        """
        return self.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            on_attempt=on_attempt,
            on_end=on_end,
            output=make_output(output, output_retries, options),
        )

    def run(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        fallback_models: Sequence[Model | str] = (),
        **settings: Unpack[RunSettings],
    ) -> Run:
        """Send a conversation, run the calls of the reply, and ask again, until a reply has none.

        The `Run` has the whole conversation. Calls of the conversation that are pending run first.

        Raises:
            RunLimitReached: a limit was reached; its `run.context` can be run again.
            RequestFailed, EmptyConversation, ProjectionRefused, UnknownModel: as in `complete`.
        """
        return last_of(self._run(context, model, fallback_models, settings, emits=False))

    def begin(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        emits: bool = True,
        prepare: Prepare | None = None,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
        summarise: SummariseStep | None = None,
        output: WantedOutput | None = None,
    ) -> Stream:
        """Make a request without sending it. With `emits=False` the only event is the terminal one.

        `prepare` replaces projection and encoding: with an `Outbox` only new messages are encoded. `summarise` is
        called before a request is sent that leaves messages out without a summary. With `output` it is a `TypedStream`.
        """
        ask = self._ask(
            context,
            model,
            options,
            policy,
            fallback_models,
            emits=emits,
            prepare=prepare,
            summarises=summarise is not None,
            output=output,
        )
        notify, end = self._hooks(ask, on_attempt, on_end)
        kind = Stream if output is None else TypedStream[Any]
        return kind(ask, self._builder, Wire(self._http), on_attempt=notify, on_end=end, summarise=summarise)

    def count_tokens(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> int:
        """Count the input tokens of a conversation for a model, with nothing left out, before sending it.

        The provider counts them where it has an endpoint for that and answers; otherwise they are estimated, like
        `estimate_tokens`. The model does not run, and nothing is retried.

        Raises:
            UnknownModel: the catalogue has no model of that name.
        """
        counting = self._counting(context, model, options, policy)
        counted = ask_once(counting, self._builder, Wire(self._http))
        return counting.estimate() if counted is None else counted

    def decide(
        self,
        context: ContextInput,
        question: str,
        choices: Choices[C],
        model: Model | str,
        *,
        ordered: bool = False,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> Decision[C]:
        """Let a model answer a closed question about a conversation, which is not changed.

        `choices` is `bool` for yes or no, a list of texts, or a dict of texts to what each means; with `ordered`, they
        are the levels of a scale, the lowest first. A model with an endpoint for decisions answers with probabilities;
        if it does not answer there, and with all other models, the model is asked by schema, like `complete(output=)`.

        Raises:
            OutputError: the reply has no answer; its classes say why.
            RequestFailed: the model gave no complete answer.
            SettingsError: the choices cannot be used.
            EmptyConversation, ProjectionRefused, UnknownModel: the request cannot be made.
        """
        deciding = self._deciding(Question(question, choices, ordered=ordered), context, model, policy)
        native = AskedDecision(self._builder, deciding, options)
        found = ask_once(native, self._builder, Wire(self._http))
        if found is not None:
            return found
        asked = deciding.question.ask_in_words(deciding.context)
        return deciding.of(
            self.complete(asked, model, output=cast("object", deciding.question.output), options=options, policy=policy)
        )

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _run_here(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
    return work()


class AsyncClient(_BaseClient[AsyncStream, AsyncIterator[RunEvent]]):
    """`Client` for asyncio. Each event loop has its own connections.

    Every setting is optional: see `ClientSettings`. Close it, or use it in an `async with` block.
    """

    _run_tools = staticmethod(run_tools_async)

    def __init__(self, **settings: Unpack[ClientSettings]) -> None:
        super().__init__(settings)
        http = import_httpx2()

        def connect() -> httpx2.AsyncClient:
            return http.AsyncClient(
                timeout=self._setup.resolve_timeout(),
                limits=http.Limits(max_connections=None, max_keepalive_connections=_MAX_IDLE),
                **self._setup.transports(),
                verify=shared_tls(),
            )

        self._http = HttpByLoop(connect)
        self._direct = find_direct(self._setup.transport)

    def _wire(self) -> AsyncWire:
        return AsyncWire(self._http.here, self._direct)

    @overload
    async def complete(
        self, context: ContextInput, model: Model | str, *, output: None = None, **settings: Unpack[SendSettings]
    ) -> AssistantMessage: ...
    @overload
    async def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[SendSettings],
    ) -> Answer[T]: ...
    @overload
    async def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[SendSettings],
    ) -> Answer[Any]: ...
    async def complete(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        on_attempt: OnAttempt | None = None,
    ) -> AssistantMessage | Answer[Any]:
        """Send a conversation and return the whole reply, like `Client.complete`."""
        async with self.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            emits=False,
            on_attempt=on_attempt,
            output=make_output(output, output_retries, options),
        ) as reply:
            typed = cast("AsyncTypedStream[Any]", reply)
            return await (reply.result() if output is None else typed.answer())

    @overload
    def stream(
        self, context: ContextInput, model: Model | str, *, output: None = None, **settings: Unpack[StreamSettings]
    ) -> AsyncStream: ...
    @overload
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: type[T],
        output_retries: int = 1,
        **settings: Unpack[StreamSettings],
    ) -> AsyncTypedStream[T]: ...
    @overload
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: object,
        output_retries: int = 1,
        **settings: Unpack[StreamSettings],
    ) -> AsyncTypedStream[Any]: ...
    def stream(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        output: Any = None,
        output_retries: int = 1,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
    ) -> AsyncStream:
        """Send a conversation and return the events of the reply as they arrive, like `Client.stream`."""
        return self.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            on_attempt=on_attempt,
            on_end=on_end,
            output=make_output(output, output_retries, options),
        )

    async def run(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        fallback_models: Sequence[Model | str] = (),
        **settings: Unpack[RunSettings],
    ) -> Run:
        """Send a conversation and run the calls of the replies, like `Client.run`."""
        return await last_of_async(self._run(context, model, fallback_models, settings, emits=False))

    def begin(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
        fallback_models: Sequence[Model | str] = (),
        emits: bool = True,
        prepare: Prepare | None = None,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
        settle: Settle | None = None,
        summarise: AsyncSummariseStep | None = None,
        output: WantedOutput | None = None,
        first: FirstAttempt | None = None,
    ) -> AsyncStream:
        """Make a request without sending it, like `Client.begin`. `settle` is awaited before sending and at the end.

        `first` is an attempt that was made (`try_first`): the request begins with what it received.
        """
        ask = self._ask(
            context,
            model,
            options,
            policy,
            fallback_models,
            emits=emits,
            prepare=prepare,
            summarises=summarise is not None,
            output=output,
        )
        notify, end = self._hooks(ask, on_attempt, on_end)
        kind = AsyncStream if output is None else AsyncTypedStream[Any]
        return kind(
            ask,
            self._builder,
            self._wire() if first is None else first.rewind(),
            on_attempt=notify,
            on_end=end,
            settle=settle,
            summarise=summarise,
            began=None if first is None else first.began,
            observation=None if first is None else first.observation,
        )

    def try_first(
        self, context: Context, model: Model, *, options: Options | None, policy: Policy | None, prepare: Prepare
    ) -> FirstAttempt | None:
        """Make an attempt that is not streamed, without a flow and without sending it. Raises what `prepare` raises.

        None if a flow is needed from the beginning: for hooks, tokens of a function, signatures, or a window that
        proved to be smaller.
        """
        setup, builder = self._setup, self._builder
        if (
            setup.on_request is not None
            or setup.on_attempt is not None
            or setup.sticky
            or (self._windows and window_key(model) in self._windows)
            or not builder.sends_plainly(model)
        ):
            return None
        account, policy = self.find_account(model), self._find_policy(policy)
        request = prepare(context, model, options=options, policy=policy, account=account, refused=frozenset())
        return FirstAttempt(request, model, context, self._wire(), builder)

    async def count_tokens(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> int:
        """Count the input tokens of a conversation for a model, like `Client.count_tokens`."""
        return await self.count_tokens_by(_run_here, context, model, options=options, policy=policy)

    async def count_tokens_by(
        self,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        context: ContextInput,
        model: Model | str,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> int:
        """Count like `count_tokens`; `run` does what takes time, such as in a thread."""
        counting: Counting = await run(lambda: self._counting(context, model, options, policy))
        counted = await ask_once_async(counting, self._builder, self._wire(), run)
        return await run(counting.estimate) if counted is None else counted

    async def decide(
        self,
        context: ContextInput,
        question: str,
        choices: Choices[C],
        model: Model | str,
        *,
        ordered: bool = False,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> Decision[C]:
        """Let a model answer a closed question about a conversation, like `Client.decide`."""
        deciding = self._deciding(Question(question, choices, ordered=ordered), context, model, policy)
        native = AskedDecision(self._builder, deciding, options)
        found = await ask_once_async(native, self._builder, self._wire(), _run_here)
        if found is not None:
            return found
        asked = deciding.question.ask_in_words(deciding.context)
        output: object = deciding.question.output
        return deciding.of(await self.complete(asked, model, output=output, options=options, policy=policy))

    async def fetch(
        self, model: Model, path: str, *, method: str = "GET", content: bytes = b""
    ) -> tuple[Head | Broken, bytes]:
        """Ask the provider of a model about something that it keeps: `path` is below the endpoint of replies.

        Returns the head of the answer and its body, whatever the status is. Nothing is retried.

        Raises:
            SettingsError: the key, the URL or a header cannot be sent.
        """
        wire = self._wire()
        return await fetch_async(model, path, self._builder, wire, method=method, content=content)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
