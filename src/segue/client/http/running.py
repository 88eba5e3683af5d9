"""Performs a tool loop: asks, runs the calls, adds the results, asks again. `flow.tool_loop` decides."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from typing import Generic, NamedTuple, Required, TypeAlias, TypedDict, TypeVar

from segue.client.flow.recall import Recall
from segue.client.flow.tool_loop import (
    Run,
    RunLimits,
    ToolLoop,
    Tools,
    Verdict,
    all_results,
    allowed_calls,
    pending_calls,
)
from segue.client.http.async_streams import AsyncStream
from segue.client.http.streams import Stream, refuse_awaitable
from segue.conversation.content import ToolCall
from segue.conversation.context import Context, Options
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.context_input import ContextInput, read_input
from segue.requests.prepare import prepare

Approve: TypeAlias = Callable[[ToolCall], Verdict | Awaitable[Verdict]]
"""Asked before each call: True runs it; False, or a text for the model, refuses it. May be async in async loops."""
RunEvent: TypeAlias = Event | ToolResultMessage | Run
"""What a streamed tool loop yields: the events of each reply, the results of its calls, and at the end the `Run`."""
_Reply = TypeVar("_Reply", Stream, AsyncStream)


class RunSettings(TypedDict, total=False):
    """The settings of a tool loop; all but `tools` are optional."""

    tools: Required[Tools]
    """What runs the calls: a `Toolbox`. Tools that the conversation does not have are added to the requests."""
    limits: RunLimits | None
    """Where the loop stops; 50 requests by default."""
    approve: Approve | None
    """Asked before each call: True runs it; False, or a text for the model, refuses it."""
    options: Options | None
    policy: Policy | None
    recall: bool
    """Whether the model may look up what does not fit its window, with the tool `recall`; True by default."""


class RunPlace(NamedTuple, Generic[_Reply]):
    """Where a loop runs: the conversation so far, how results are kept, and how the next request is made."""

    context: Callable[[], Context]
    keep: Callable[..., None]
    ask: Callable[[], _Reply]


class _Growing(Generic[_Reply]):
    """The conversation of a loop that no session keeps: it grows by each reply and its results."""

    def __init__(self, context: Context, begin: Callable[..., _Reply]) -> None:
        self._context = context
        self._begin = begin

    def place(self) -> RunPlace[_Reply]:
        """Return this conversation as the place where a loop runs."""
        return RunPlace(lambda: self._context, self._add, lambda: self._begin(self._context, on_end=self._end))

    def _add(self, *messages: Message) -> None:
        self._context = self._context.add(*messages)

    def _end(self, message: AssistantMessage, _: object) -> None:
        self._add(message)


def start_loop(
    begin: Callable[..., _Reply],
    context: ContextInput,
    model: Model | str,
    fallback_models: Sequence[Model | str],
    settings: RunSettings,
    *,
    emits: bool,
) -> tuple[ToolLoop, RunPlace[_Reply]]:
    """Return a loop with its tools and limits, and the conversation that it runs in."""
    recall = Recall() if settings.get("recall", True) else None
    loop = ToolLoop(settings["tools"], settings.get("limits"), recall)
    begins = partial(
        begin,
        prepare=None if loop.recall is None else partial(loop.recall.prepare, prepare),
        model=model,
        options=settings.get("options"),
        policy=settings.get("policy"),
        fallback_models=fallback_models,
        emits=emits,
    )
    return loop, _Growing(loop.with_tools(read_input(context)), begins).place()


def run_tools(loop: ToolLoop, place: RunPlace[Stream], approve: Approve | None, *, emits: bool) -> Iterator[RunEvent]:
    """Run a loop to its end, and yield what happens in it.

    Raises:
        RunLimitReached: a limit was reached; the calls that did not run are pending.
        RequestFailed: a reply failed.
    """
    calls = pending_calls(place.context().messages)
    while True:
        if calls:
            loop.begin_calls(calls, place.context())
            own = loop.own_calls(calls)
            verdicts = [_decide(call, approve) for call in own]
            ran = loop.tools.run(allowed_calls(own, verdicts))
            now = time.time_ns() // 1_000_000
            results = loop.with_recalled(calls, all_results(own, verdicts, ran, now), place.context(), now)
            place.keep(*results)
            yield from results
        loop.begin_request(place.context())
        with place.ask() as reply:
            if emits:
                yield from reply
            message = reply.result()
        calls = loop.take(message)
        if not calls:
            yield loop.finish(place.context(), message)
            return


async def run_tools_async(
    loop: ToolLoop, place: RunPlace[AsyncStream], approve: Approve | None, *, emits: bool
) -> AsyncGenerator[RunEvent]:
    """Run a loop in an event loop, like `run_tools`."""
    calls = pending_calls(place.context().messages)
    while True:
        if calls:
            loop.begin_calls(calls, place.context())
            own = loop.own_calls(calls)
            verdicts = [await _decide_async(call, approve) for call in own]
            ran = await loop.tools.run_async(allowed_calls(own, verdicts))
            now = time.time_ns() // 1_000_000
            results = loop.with_recalled(calls, all_results(own, verdicts, ran, now), place.context(), now)
            place.keep(*results)
            for result in results:
                yield result
        loop.begin_request(place.context())
        async with place.ask() as reply:
            if emits:
                async for event in reply:
                    yield event
            message = await reply.result()
        calls = loop.take(message)
        if not calls:
            yield loop.finish(place.context(), message)
            return


def _decide(call: ToolCall, approve: Approve | None) -> Verdict:
    return True if approve is None else refuse_awaitable(approve(call), "approve")


async def _decide_async(call: ToolCall, approve: Approve | None) -> Verdict:
    if approve is None:
        return True
    verdict = approve(call)
    return await verdict if isawaitable(verdict) else verdict


def last_of(events: Iterator[RunEvent]) -> Run:
    """Run a loop to its end and return its result."""
    *_, run = events
    assert isinstance(run, Run)
    return run


async def last_of_async(events: AsyncIterator[RunEvent]) -> Run:
    """Run a loop to its end and return its result."""
    run = None
    async for event in events:
        run = event
    assert isinstance(run, Run)
    return run
