"""No request takes the event loop for long: the CPU time of every step is counted, for shapes of requests of all kinds.

The gate counts the CPU time of each step of a request (`Gate.on_step`); work in threads is no step of the loop.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
from collections.abc import Callable
from math import log10
from pathlib import Path
from typing import Any

import pytest

from gateway.asgi_client import Client
from gateway.test_keyed_attacks import BODIES, SIZES
from segue.gateway.config import load_config
from segue.gateway.intake import Admission
from segue.gateway.service import Gateway, freeze_memory

KEY = "sgw-key-of-the-tests-of-steps"
LONGEST = 0.1
"""CPU seconds of the longest step that is allowed."""
CONFIG = """
[listen]
keys = ["env:KEY"]
[providers.google]
base_url = "http://127.0.0.1:9/v1beta"
[models."echo"]
try = ["segue/echo"]
[models."gemini"]
try = ["google/gemini-3.1-pro-preview"]
[limits]
retries = 1
[state]
content = "full"
"""
KINDS = [kind for kind in BODIES if kind not in ("socket", "continued", "new key")]
SHAPES = [(kind, size) for kind in KINDS for size in SIZES[kind]]
LARGEST = {"messages": 48_000, "tools": 12_000, "parts": 140_000, "metadata": 300_000, "count": 20_000}
"""Shapes that took the event loop for seconds once."""


def draw(seed: int, number: int) -> list[tuple[str, int]]:
    """Draw other shapes: of every kind, up to the largest of it."""
    source = random.Random(seed)
    kinds = [kind for kind in LARGEST for _ in range(number)]
    return [(kind, round(10 ** source.uniform(2, log10(LARGEST[kind])))) for kind in kinds]


def longest_steps(
    folder: Path, shapes: list[tuple[str, int]], before: Callable[[Gateway], None] = lambda _: None
) -> dict[str, float]:
    """Send a request of each shape, to the echo and to a provider that is away, and find its longest step."""

    async def run() -> dict[str, float]:
        environment = {"KEY": KEY, "GEMINI_API_KEY": "k", "XDG_STATE_HOME": str(folder)}
        gateway = Gateway(load_config(f'{CONFIG}store = "sqlite:{folder}/g.db"'), environment=environment)
        gateway.warm_up()
        await gateway.start()
        before(gateway)
        steps: list[float] = []
        gateway.gate.on_step = lambda _, seconds: steps.append(seconds)
        found: dict[str, float] = {}
        try:
            for number, (kind, size) in enumerate(shapes):
                for model in ("echo", "gemini"):
                    made: dict[str, Any] = BODIES[kind](number, size)
                    body = json.dumps(made if kind == "unknown model" else {**made, "model": model}).encode()
                    client = Client(gateway, body, stays=True)
                    path = "/v1/messages/count_tokens" if kind == "count" else "/v1/messages"
                    gc.collect()  # garbage of the test itself is not counted
                    steps.clear()
                    await client.ask(path, {"x-api-key": KEY, "content-length": str(len(body))})
                    assert client.status in (200, 400, 404, 502), client.body
                    found[f"{kind}, {size}, {model}"] = max(steps)
        finally:
            await gateway.close()
        return found

    return asyncio.run(run())


@pytest.mark.parametrize(
    "shape", [*SHAPES, *LARGEST.items(), *draw(50, 3)], ids=lambda shape: f"{shape[0]}, {shape[1]}"
)
@pytest.mark.proof
def test_no_step_of_the_loop_is_long(shape: tuple[str, int], tmp_path: Path) -> None:
    found = longest_steps(tmp_path, [shape])
    assert max(found.values()) < LONGEST, found


def test_no_step_of_the_loop_is_long_for_bodies_of_some_thousand_values(tmp_path: Path) -> None:
    found = longest_steps(tmp_path, [(kind, size) for kind, size in SHAPES if size <= 10_000 and kind != "count"])
    assert max(found.values()) < LONGEST, found


def test_work_on_the_loop_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def here(_: Admission, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return work(*given, **named)

    monkeypatch.setattr(Admission, "run", here)
    found = longest_steps(tmp_path, [("messages", 20_000)])
    assert max(found.values()) > LONGEST, found


def test_the_process_of_a_gateway_freezes_what_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[str] = []
    monkeypatch.setattr("segue.gateway.service.freeze_memory", lambda: called.append("frozen"))
    path = tmp_path / "gateway.toml"
    path.write_text('[state]\nstore = "none"\n[models."a"]\ntry = ["segue/echo"]\n')

    async def run(*, owns: bool) -> None:
        gateway = Gateway(load_config(path.read_text()), path=path, environment={"XDG_STATE_HOME": str(tmp_path)})
        gateway.owns_process = owns
        await gateway.start()
        path.write_text(path.read_text() + "\n")
        assert gateway.reload() is None
        await gateway.close()

    asyncio.run(run(owns=False))
    assert called == []  # the memory of an application around it is not the gateway's
    asyncio.run(run(owns=True))
    assert called == ["frozen", "frozen"]


def test_freezing_moves_what_is_there_out_of_the_collections() -> None:
    before = gc.get_threshold()
    try:
        freeze_memory()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == (10_000, 20, 50)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
