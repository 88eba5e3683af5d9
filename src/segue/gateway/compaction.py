"""`POST /v1/responses/compact`: a history in a shorter form.

The provider of the model compacts it where the client asks for that model by its own id and the provider has such an
endpoint. Elsewhere the model of the route writes a summary, which the client gets in an item that only this gateway
reads; the next request with that item works for every model.

Facts:
- The output is all messages of the user, followed by one compaction item; `usage` is that of the compaction.
                                                                              (openai 3.49.0: CompactedResponse)

Messages of the developer are kept: a client that sends the output on would lose its instructions without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import msgspec
from msgspec.structs import replace

from segue.client.flow.attempts import Attempt
from segue.client.flow.steps import Broken
from segue.client.session.summarising import Summarising
from segue.conversation.context import Options
from segue.conversation.messages import Usage
from segue.envelope.compactions import write_compaction
from segue.errors import SegueError
from segue.failures.failure import Failure, FailureKind
from segue.gateway.answers import end_with_status, explain_error, send_failure, send_fetched, send_json
from segue.gateway.asking import RestoredRequest
from segue.gateway.exchange import Exchange, random_name
from segue.gateway.service import Gateway
from segue.gateway.stored_replies import list_items
from segue.gateway.writing import Send
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.policy import Policy
from segue.projection.requirements import SummaryWanted
from segue.protocols.api import decode_response, encode_response
from segue.protocols.kit.json_values import object_of

_WINDOW: Final = 128_000
"""Tokens of a window that is not known."""
_NOT_SERVED: Final = frozenset({401, 403, 404, 405, 501})
"""Statuses of providers that do not compact for this model or key."""
_KEPT: Final = frozenset({"user", "system", "developer"})
"""Roles of messages that stay as they are."""
_FAILED: Final = 300
"""The first status that is not an answer."""
_NO_SUMMARY: Final = Failure(kind=FailureKind.SERVER, status=502, message="The model wrote no summary; try again.")


async def answer_compact(gateway: Gateway, asked: RestoredRequest, turns: Sequence[object], send: Send) -> None:
    """Answer with a compacted history; `turns` are those of the history as the client sent them."""
    if asked.raw and asked.candidates:
        model, began = asked.candidates[0], monotonic()
        head, body = await asked.admission.runtime.client.fetch(model, "/compact", method="POST", content=asked.raw)
        if not isinstance(head, Broken) and head.status not in _NOT_SERVED:
            if head.status < _FAILED:
                _count(gateway, asked, model, body, monotonic() - began)
            await send_fetched(send, head, body, asked.call.protocol, client=asked.client, model=model)
            return
    if not asked.context.messages:
        failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message="There is no input to compact.")
        await send_failure(send, failure, asked.call.protocol)
        return
    await _summarise(gateway, asked, turns, send)


def _count(gateway: Gateway, asked: RestoredRequest, model: Model, body: bytes, duration: float) -> None:
    """Count what a provider's own compaction cost, and keep its row."""
    exchange = Exchange(gateway, asked, "req_" + random_name())
    with suppress(SegueError, ValueError):
        exchange.message = decode_response(msgspec.json.decode(body), protocol=model.protocol, model=model)
    usage = None if exchange.message is None else exchange.message.usage
    exchange.is_passed = True
    exchange.note_attempt(Attempt(model=model, duration=duration, usage=usage))
    exchange.record(200, "done")


async def _summarise(gateway: Gateway, asked: RestoredRequest, turns: Sequence[object], send: Send) -> None:
    messages, target = asked.context.messages, asked.candidates[0]
    wanted = SummaryWanted(first=0, last=len(messages) - 1, tokens=0)
    limit = target.max_input or target.context_window or _WINDOW
    work = await asked.admission.run(Summarising, asked.context, wanted, target, limit=limit, writer=target)
    usages: list[Usage] = []
    exchange = Exchange(gateway, asked, "req_" + random_name())
    while (task := work.task) is not None:
        question = replace(
            asked,
            context=task.context,
            sent=task.context,
            options=Options(max_tokens=asked.options.max_tokens),
            policy=Policy(),
            restored=0,
            raw=b"",
        )
        exchange = Exchange(gateway, question, "req_" + random_name())
        stream = None
        try:
            stream = await exchange.begin_apart(asked.candidates)
            message = await stream.result()
            work.take(message)
        except (SegueError, ValueError) as error:
            failure = explain_error(error) if isinstance(error, SegueError) else _NO_SUMMARY
            await end_with_status(exchange, send, failure, None if stream is None else stream.model)
            return
        exchange.message = message
        exchange.record(200, "done")
        usages.append(message.usage or Usage())
    model = exchange.reply_model()
    kept = [turn for turn in turns if object_of(turn).get("role") in _KEPT]
    items = await asked.admission.run(list_items, kept, exchange.reply_id)
    item = write_compaction(work.text, "cmp_" + random_name(), model.protocol, gateway.envelopes, asked.tenant)
    spent = replace(new_assistant_message(model), usage=_sum(usages))
    written = encode_response(spent, protocol=model.protocol, model=model)
    body = {
        "id": exchange.reply_id,
        "object": "response.compaction",
        "created_at": exchange.made,
        "output": [*items, item],
        "usage": written["usage"],
    }
    await send_json(send, 200, body, exchange.response_headers(exchange.attempts[-1].model))


def _sum(usages: list[Usage]) -> Usage:
    return Usage(
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cache_read=sum(usage.cache_read for usage in usages),
        cache_write=sum(usage.cache_write for usage in usages),
        reasoning=sum(usage.reasoning for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
    )
