"""What the workers of one gateway do for each other: what one of them has in memory alone, the others ask it for.

A gateway without a board is its only worker, and asks nobody.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple, final

import msgspec

from segue.gateway.board import Board
from segue.gateway.metrics import Dump, Metrics
from segue.gateway.service import Gateway, now_ms
from segue.gateway.store.store import UsedStates

_SAVE_SECONDS: Final = 0.5
"""How often the figures of a worker are saved for its successor."""


@final
class Figures(NamedTuple):
    """What is counted since the start: for `/metrics`, new names in replies, and the requests that run."""

    metrics: Dump
    drift: dict[str, int]
    running: int = 0


async def settle(gateway: Gateway) -> None:
    """Wait until everything is stored that was put before: rows and contents are written after the replies."""
    await gateway.store.put(UsedStates(()), now_ms())


async def settle_all(gateway: Gateway) -> None:
    """Wait until all workers have stored what was put before."""
    await asyncio.gather(settle(gateway), ask_others(gateway, "settle"))


async def ask_others(gateway: Gateway, call: str, **given: object) -> dict[int, Any]:
    """Ask the other workers, if there are any."""
    return {} if gateway.board is None else await gateway.board.ask(call, **given)


async def answer_peer(gateway: Gateway, call: str, given: Mapping[str, Any]) -> object:
    """Answer what another worker asks."""
    match call:
        case "settle":
            await settle(gateway)
        case "forget row":
            gateway.forget_row(given["name"], given["tenant"])
        case "forget conversation":
            gateway.forget_rows(given["name"], given["tenant"])
            gateway.conversations.forget(given["name"], given["tenant"])
        case "find reply":
            return gateway.conversations.find_reply(given["request"])
        case "choose":
            gateway.conversations.choose_keys(given["keys"], given["model"], given["tenant"])
        case "load keys":
            await gateway.load_keys()
        case "figures":
            return _own_figures(gateway)
        case _:
            raise ValueError(f"there is no call {call!r}")
    return None


async def choose_after(gateway: Gateway, request: str, model: str | None, tenant: str | None) -> bool:
    """Send what continues a request to a model, at every worker; False if no worker knows the request any more."""
    conversations = gateway.conversations
    found = conversations.find_reply(request)
    if found is None:
        answers = await ask_others(gateway, "find reply", request=request)
        found = next((tuple(each) for each in answers.values() if each is not None), None)
    if found is None or tenant not in (None, found[0]):
        return False
    owner, keys = found
    conversations.choose_keys(keys, model, owner)
    await ask_others(gateway, "choose", keys=keys, model=model, tenant=owner)
    return True


# -- figures -----------------------------------------------------------------------------------------------------------


def _own_figures(gateway: Gateway) -> Figures:
    return Figures(gateway.metrics.dump(), dict(gateway.drift), gateway.intake.running)


async def sum_figures(gateway: Gateway) -> tuple[Metrics, Counter[str], int]:
    """Add up the figures of all workers: of one that has just ended, what it saved last."""
    board = gateway.board
    if board is None:
        return gateway.metrics, gateway.drift, gateway.intake.running
    answers = await board.ask("figures")
    metrics, drift, running = Metrics(), Counter[str](), 0
    for index in range(board.count):
        if index == board.index:
            figures = _own_figures(gateway)
        elif index in answers:
            figures = msgspec.convert(answers[index], Figures)
        else:
            figures = _load(board.read(_file(index)))
        if figures is not None:
            metrics.add_dump(figures.metrics)
            drift.update(figures.drift)
            running += figures.running
    return metrics, drift, running


@asynccontextmanager
async def with_peers(gateway: Gateway) -> AsyncGenerator[None]:
    """Answer other workers, if there are any, until the end of the block.

    The figures go on with those of the worker that was at this place before: counters never go back.
    """
    board = gateway.board
    if board is None:
        yield
        return
    if (saved := _load(board.read(_file(board.index)))) is not None:
        gateway.metrics.add_dump(saved.metrics)
        gateway.drift.update(saved.drift)
    await board.listen(partial(answer_peer, gateway))
    saving = asyncio.create_task(_keep_saved(gateway, board))
    try:
        yield
    finally:
        saving.cancel()
        await board.close()
        _save(gateway, board)


async def _keep_saved(gateway: Gateway, board: Board) -> None:
    while True:
        await asyncio.sleep(_SAVE_SECONDS)
        _save(gateway, board)


def _save(gateway: Gateway, board: Board) -> None:
    figures = _own_figures(gateway)._replace(running=0)
    with suppress(OSError):
        board.write(_file(board.index), msgspec.json.encode(figures))


def _file(index: int) -> str:
    return f"{index}.figures"


def _load(data: bytes | None) -> Figures | None:
    return None if data is None else msgspec.json.decode(data, type=Figures)
