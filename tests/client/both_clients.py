"""How the tests ask: the same request through both clients, and what has to hold after any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from segue.client.flow.attempts import Attempt
from segue.client.flow.backoff import Retry
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.conversation.context import Context, Options
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.conversation.stored import dump_message, load_message
from segue.models.model import Model
from segue.projection.policy import Policy

HELLO = Context(messages=(UserMessage.of("hello", timestamp=1),))
AT_ONCE = Retry(first_wait=0.0, longest_wait=0.0)
"""Retries without waiting: what is tested is whether, not when."""
ONCE = Retry(max_retries=0)


@dataclass
class Received:
    """What came of a streamed request."""

    events: list[Event]
    message: AssistantMessage
    attempts: tuple[Attempt, ...]
    idle: list[bool]
    """For each connection the client still holds: whether it is free."""

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def check(self) -> Received:
        """See that it ended once, that what is left can be stored, and that no connection is stuck."""
        ends = [event for event in self.events if event.type == "done" or event.type == "error"]
        assert len(ends) == 1
        assert ends[0] is self.events[-1]
        assert self.events[0].type == "start"
        assert ends[0].message == self.message
        assert load_message(dump_message(self.message)) == self.message
        assert self.message.timestamp is not None
        assert all(self.idle)
        return self


def idle_connections(client: Client | AsyncClient) -> list[bool]:
    http = client._http if isinstance(client, Client) else client._http.here()
    pool = http._transport._pool  # pyright: ignore[reportAttributeAccessIssue]
    assert not pool._requests
    return [connection.is_idle() for connection in pool.connections]


def stream_reply(
    model: Model,
    *,
    context: Context = HELLO,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model] = (),
    is_async: bool = False,
    **settings: object,
) -> Received:
    """Stream a reply to its end through one of the clients."""
    given: ClientSettings = {"timeout": 10.0, "retry": ONCE, **settings}  # pyright: ignore[reportAssignmentType]
    asked: dict[str, Any] = {"options": options, "policy": policy, "fallback_models": fallback_models}
    if is_async:
        return asyncio.run(_stream_async(model, context, asked, given))
    with Client(**given) as client:
        with client.stream(context, model, **asked) as stream:
            events = list(stream)
        return Received(events, stream.message, stream.attempts, idle_connections(client))


async def _stream_async(model: Model, context: Context, asked: dict[str, Any], settings: ClientSettings) -> Received:
    async with AsyncClient(**settings) as client:
        async with client.stream(context, model, **asked) as stream:
            events = [event async for event in stream]
        assert len(asyncio.all_tasks()) == 1
        return Received(events, stream.message, stream.attempts, idle_connections(client))
