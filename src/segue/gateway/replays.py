"""A stored request that the operator sends again, to any model."""

from __future__ import annotations

from secrets import token_hex

import msgspec

from segue.client.flow.attempts import Attempt
from segue.conversation.context import Context, Options
from segue.conversation.stored import dump_message
from segue.errors import SegueError
from segue.gateway.records import RequestRow, attempt_rows
from segue.gateway.service import Gateway, now_ms
from segue.models.model import Model
from segue.models.price import add_usage

CLIENT = "segue console"
"""The client in the rows of such requests."""


async def send_again(gateway: Gateway, context: Context, options: Options, model: Model) -> dict[str, object]:
    """Send a request and give the reply, its usage and how long it took; it has its own row.

    Tools of the client are offered, and not run: the reply may end with their calls.
    """
    began, attempts = now_ms(), list[Attempt]()
    name = "req_replay_" + token_hex(8)
    message, problem = None, None
    try:
        stream = gateway.runtime.client.begin(
            context, model, options=msgspec.structs.replace(options, stream=False), on_attempt=attempts.append
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
