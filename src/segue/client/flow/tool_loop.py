"""A tool loop: which calls run, when it ends, and what it used. `segue.client.http.running` performs it.

Facts:
- A model can call tools forever, so a loop needs a limit; 50 requests is the one that users of pydantic-ai know.
                                                                    (pydantic-ai 1.x, `UsageLimits`, read 2026-11-17)
- Every call needs a result, also one that is not allowed to run: most providers refuse a history without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, final

import msgspec
from msgspec.structs import replace

from segue.client.flow.recall import RECALL, Recall
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, Usage
from segue.errors import RunLimitReached, SettingsError
from segue.models.price import add_usage

Verdict: TypeAlias = bool | str
"""Whether a call may run; a text refuses it, and is the result that the model gets."""
_REFUSED = "The user did not allow this call."


class Tools(Protocol):
    """What runs calls: a `Toolbox`, or an object of your own with the same methods."""

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call."""
        ...

    def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResultMessage, ...]:
        """Run calls and return their results, in their order."""
        ...

    async def run_async(self, calls: Sequence[ToolCall]) -> tuple[ToolResultMessage, ...]:
        """Run calls in an event loop and return their results, in their order."""
        ...


@final
class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool loop stops: requests, calls, tokens (those of all replies), and their cost. None means no limit."""

    requests: int | None = 50
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


@final
class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A tool loop that ended: the last answer, the conversation with all turns, and what its replies used."""

    message: AssistantMessage
    context: Context
    requests: int
    calls: int
    usage: Usage

    def text(self) -> str:
        """Return the text of the last answer."""
        return self.message.text()


@final
class ToolLoop:
    """Counts the steps of one loop, and refuses those beyond its limits."""

    def __init__(self, tools: Tools, limits: RunLimits | None, recall: Recall | None = None) -> None:
        if not hasattr(tools, "definitions"):
            raise SettingsError(
                f"run(tools=...) takes a Toolbox, got a value of type {type(tools).__name__}; write"
                " tools=Toolbox(my_function)",
                key="tools",
            )
        self.tools = tools
        self.recall: Recall | None = None if any(tool.name == RECALL.name for tool in tools.definitions) else recall
        self._limits = limits or RunLimits()
        self._requests = self._calls = 0
        self._usages: list[Usage] = []

    def with_tools(self, context: Context) -> Context:
        """Return a context in which the model may call every tool of the loop."""
        known = {tool.name for tool in context.tools if tool.kind == "function"}
        missing = tuple(tool for tool in self.tools.definitions if tool.name not in known)
        return replace(context, tools=(*context.tools, *missing)) if missing else context

    def begin_calls(self, calls: Sequence[ToolCall], context: Context) -> None:
        """Count calls before they run.

        Raises:
            RunLimitReached: that many calls are not allowed.
        """
        limit = self._limits.calls
        if limit is not None and self._calls + len(calls) > limit:
            self._stop(f"{limit} calls", context)
        self._calls += len(calls)

    def own_calls(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that the tools run: all but those that look something up in the conversation."""
        return tuple(calls) if self.recall is None else tuple(call for call in calls if call.name != RECALL.name)

    def with_recalled(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResultMessage], context: Context, now: int
    ) -> tuple[ToolResultMessage, ...]:
        """Return a result for each call: the given ones for the calls of the tools, in their order."""
        if self.recall is None or len(results) == len(calls):
            return tuple(results)
        given, recall = iter(results), self.recall
        return tuple(
            _make_result(call, recall.answer(call, context), now) if call.name == RECALL.name else next(given)
            for call in calls
        )

    def begin_request(self, context: Context) -> None:
        """Count a request before it is sent.

        Raises:
            RunLimitReached: no further request is allowed.
        """
        limits, usage = self._limits, add_usage(self._usages)
        if limits.requests is not None and self._requests >= limits.requests:
            self._stop(f"{limits.requests} requests", context)
        if limits.tokens is not None and usage.total_tokens >= limits.tokens:
            self._stop(f"{limits.tokens:,} tokens, with {usage.total_tokens:,} used", context)
        if limits.cost is not None and self._usages:
            if usage.cost is None:
                self._stop(f"${limits.cost:.4f}, and the price of the model is not known", context)
            elif usage.cost.total >= limits.cost:
                self._stop(f"${limits.cost:.4f}, with ${usage.cost.total:.4f} spent", context)
        self._requests += 1

    def take(self, message: AssistantMessage) -> tuple[ToolCall, ...]:
        """Take a reply, and return the calls to run; none if the loop has ended."""
        self._usages.append(message.usage or Usage())
        return message.tool_calls()

    def finish(self, context: Context, message: AssistantMessage) -> Run:
        """Return the result of the loop."""
        usage = add_usage(self._usages)
        return Run(message=message, context=context, requests=self._requests, calls=self._calls, usage=usage)

    def _stop(self, limit: str, context: Context) -> None:
        last = next(
            (each for each in reversed(context.messages) if each.role == "assistant"), AssistantMessage(content=())
        )
        raise RunLimitReached(
            f"the tool loop reached its limit of {limit}; pass RunLimits(...) with a higher one, or run it again",
            run=self.finish(context, last),
        )


def allowed_calls(calls: Sequence[ToolCall], verdicts: Sequence[Verdict]) -> list[ToolCall]:
    """Return the calls that may run."""
    return [call for call, verdict in zip(calls, verdicts, strict=True) if verdict is True]


def all_results(
    calls: Sequence[ToolCall], verdicts: Sequence[Verdict], results: Sequence[ToolResultMessage], now: int
) -> tuple[ToolResultMessage, ...]:
    """Return a result for each call: the given ones for those that ran, and a refusal for the others."""
    given = iter(results)
    return tuple(
        next(given) if verdict is True else _refusal(call, verdict or _REFUSED, now)
        for call, verdict in zip(calls, verdicts, strict=True)
    )


def _refusal(call: ToolCall, text: str, now: int) -> ToolResultMessage:
    return replace(_make_result(call, text, now), is_error=True)


def _make_result(call: ToolCall, text: str, now: int) -> ToolResultMessage:
    content = (TextContent(text=text),)
    return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content, timestamp=now)


def pending_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """List the calls of the last answer that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "toolResult":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return tuple(call for call in message.tool_calls() if call.id not in answered)
    return ()
