"""A stored request that the operator sends again, to any model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import TypeAlias

import msgspec

from segue.client.flow.attempts import Attempt
from segue.client.http.async_streams import AsyncStream
from segue.conversation.context import Context, Options
from segue.conversation.stored import dump_message
from segue.errors import SegueError
from segue.gateway.records import RequestRow, attempt_rows
from segue.gateway.service import Gateway, now_ms
from segue.models.model import Model
from segue.models.price import add_usage
from segue.projection.policy import Policy
from segue.requests.prepare import Request, prepare_again

_Run: TypeAlias = Callable[[Callable[[], AsyncStream]], Awaitable[AsyncStream]]

CLIENT = "segue console"
"""The client in the rows of such requests."""


async def send_again(
    gateway: Gateway,
    context: Context,
    options: Options,
    model: Model,
    *,
    run: _Run,
) -> dict[str, object]:
    """Send a request and give the reply, its usage and how long it took; it has its own row.

    `run` prepares it, in a thread. Tools of the client are offered, and not called: the reply may end with their calls.
    """
    began, attempts = now_ms(), list[Attempt]()
    name = "req_replay_" + token_hex(8)
    message, problem = None, None
    try:
        client, given = gateway.runtime.client, msgspec.structs.replace(options, stream=False)
        stream = await run(
            lambda: client.begin(context, model, options=given, prepare=_prepare, on_attempt=attempts.append)
        )
        message = await stream.result()
    except SegueError as error:
        problem = str(error)
    billed = [attempt.usage for attempt in attempts if attempt.usage is not None]
    duration = now_ms() - began
    row = RequestRow(
        id=name,
        time=began,
        client=CLIENT,
        conversation=name,
        protocol=model.protocol,
        asked=model.full_name(),
        model=model.full_name(),
        stream=False,
        status=200 if problem is None else 502,
        outcome="done" if problem is None else "error",
        attempts=attempt_rows(attempts),
        usage=None if message is None else message.usage,
        duration_ms=duration,
        spent=add_usage(billed) if len(billed) > 1 else None,
    )
    gateway.keep_row(row, "")
    reply = None if message is None else msgspec.Raw(dump_message(message))
    return {"id": name, "reply": reply, "usage": row.usage, "durationMs": duration, "problem": problem}


def _prepare(
    context: Context,
    model: Model,
    *,
    options: Options | None,
    policy: Policy | None,
    account: str | None = None,
    refused: frozenset[str] = frozenset(),
) -> Request:
    """Prepare a request with its body: otherwise that is encoded when it is sent, on the event loop."""
    request = prepare_again(context, model, options=options, policy=policy, account=account, refused=refused)
    _ = request.content
    return request
