"""What real agent programs pay through a gateway for a run of twenty steps, by the bill of the emulated provider.

The same requests are billed a second time without the marks and the keys of caches: what a run would cost whose client
and gateway ask for nothing. Implicit caching is part of both bills. Programs that are missing are installed first;
see `agent_programs`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.agent_runs import Agent, Answering, find_shell
from gateway.bound_walk import Served
from segue.testing.emulator import Bill, Emulator, EmulatorServer, serve_in_thread
from segue.testing.emulator.app import RecordedRequest

pytestmark = pytest.mark.proof

STEPS = 20
MARKS = ("cache_control", "prompt_cache_key", "prompt_cache_options", "prompt_cache_breakpoint")
PROGRAMS = (("codex", "responses"), ("gemini-cli", "gemini"), ("opencode", "chat"), ("pi", "chat"))


def without_marks(value: Any) -> Any:
    """Give a JSON value without what asks for caching."""
    if isinstance(value, list):
        return [without_marks(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: without_marks(inner) for key, inner in fields.items() if key not in MARKS}
    return value


def bill_plain(requests: list[RecordedRequest], emulator: Emulator) -> Bill:
    """Bill requests as a provider would that is not asked to cache."""
    plain, total = Emulator(ledger=emulator.ledger), Bill()
    for request in requests:
        body = json.dumps(without_marks(request.body)).encode()
        reply = plain.respond("POST", request.path, request.headers, body, step={"text": "Yes."})
        assert reply.status == 200, reply.body
        total += plain.requests[-1].bill or Bill()
    return total


@pytest.mark.parametrize("model", ["claude-opus-5-5", "gpt-5.4"])
@pytest.mark.parametrize(("agent", "wire"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_a_run_of_twenty_steps_pays_little_at_the_full_price(agent: str, wire: str, model: str, tmp_path: Path) -> None:
    upstream = Answering()
    with serve_in_thread(upstream) as url:
        server = Served(f"sqlite:{tmp_path}/gateway.db", EmulatorServer(url, upstream.emulator))
        try:
            upstream.left = STEPS
            done = Agent(agent, wire, tmp_path / "home", server).ask("Say the steps, one after the other.", model)
        finally:
            server.close()
    assert (done.code, upstream.left) == (0, 0), done.said[-2000:]
    requests = [each for each in upstream.emulator.requests if find_shell(each.body)]
    assert len(requests) > STEPS
    assert not [each.refusal for each in requests if each.status != 200]
    paid = sum((each.bill for each in requests if each.bill), Bill())
    plain = bill_plain(requests, upstream.emulator)
    sent = paid.input + paid.cache_read + paid.cache_write
    sys.stderr.write(
        f"{agent} to {model}: {paid.input} tokens at the full price of {sent}, {plain.input} without marks and keys"
        f" ({paid.input / plain.input:.1%})\n"
    )
    assert plain.input + plain.cache_read + plain.cache_write == pytest.approx(sent, rel=0.02)
    assert paid.input <= 0.15 * sent
    if not plain.cache_read:  # a model that caches by itself saves the same without marks
        assert paid.input <= 0.15 * plain.input
