"""Real agent programs through a gateway to a Claude model that binds its thinking to the conversation.

Each program runs a loop of twenty tool steps, continues the session in a new process after the gateway was restarted,
uses another provider's model and comes back, and compacts the conversation. The provider refuses nothing, all thinking
that it would accept is sent, and requests that the gateway writes ask for prompt caching. Programs that are not
installed are installed first; see `agent_programs`.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final

import pytest

from gateway.agent_runs import Agent, Answering, find_shell
from gateway.bound_walk import Served
from segue.testing.emulator import EmulatorServer, serve_in_thread
from segue.testing.emulator.app import RecordedRequest
from segue.testing.emulator.bodies import BodyReader
from segue.testing.emulator.prices import Bill

pytestmark = pytest.mark.proof

OPUS = "claude-opus-5-5"
FABLE = "claude-fable-5-1"
OTHER = "gpt-5.4"


@final
class Case(NamedTuple):
    """A program, the protocol that it uses, and a window in which its loop does not fit.

    "command": it compacts by a command. The window has to hold the conversation once it is compacted: where it does
    not, opencode compacts for ever. Its own prompt, most of what it sends, differs between versions and machines, so
    its window is "measured" from what its first and its last request held.
    """

    agent: str
    wire: str
    window: int | Literal["command", "measured"]
    model: str = OPUS
    changes: bool = False
    """Whether the program changes what it sent before, so that the provider takes little of the thinking after it."""


CASES = (
    Case("claude-code", "messages", "command"),
    Case("codex", "responses", 12_500),
    Case("claude-code", "messages", "command", FABLE, changes=True),  # 2.1.327 sends a hint with the last result only
    Case("codex", "responses", 12_500, FABLE),
    Case("gemini-cli", "gemini", 14_000),
    Case("pi", "messages", 19_000),
    Case("pi", "responses", 19_000),
    Case("pi", "chat", 19_000),
    Case("pi", "gemini", 19_000),
    Case("opencode", "messages", "measured"),
    Case("opencode", "responses", "measured"),
    Case("opencode", "chat", "measured"),
)


class Session:
    """One session of a program."""

    def __init__(self, case: Case, store: str, folder: Path, upstream: Answering, server: Served) -> None:
        self.upstream = upstream
        self.emulator = upstream.emulator
        self.wire = case.wire
        self.model = case.model
        self.has_store = store != "none"
        self.agent = Agent(case.agent, case.wire, folder / "home", server)

    def ask(self, prompt: str, *, calls: int, model: str = "") -> None:
        """Let the program do a prompt with so many calls, and check everything that the provider got."""
        self.upstream.left = calls
        first = len(self.emulator.requests)
        done = self.agent.ask(prompt, model or self.model)
        assert done.code == 0, done.said[-2000:]
        assert self.upstream.left == 0, done.said[-2000:]
        refused = [request for request in self.emulator.requests if request.status != 200 or request.transformations]
        assert not refused, [(request.path, request.refusal, request.transformations) for request in refused]
        rows = self.agent.rows()
        assert {row["status"] for row in rows} <= {200}, [row for row in rows if row["status"] != 200]
        known = self.emulator.ledger.bound() if self.has_store else ()
        for request in self.main(first):
            assert not self.emulator.withheld(request, known), "valid thinking was given up"
            # Bodies of the provider's own protocol pass as they are, with the marks of the program.
            assert self.wire == "messages" or "cache_control" in json.dumps(request.body), "the prompt is paid in full"
        others = [each for each in self.emulator.requests[first:] if each.model == OTHER and find_shell(each.body)]
        keyed = ["prompt_cache_key" in cast("dict[str, Any]", each.body) for each in others]
        assert self.wire == "responses" or all(keyed), "requests of one conversation reach different caches"

    def main(self, first: int = 0) -> list[RecordedRequest]:
        """Give the requests of the conversation itself to Claude."""
        return [each for each in self.emulator.requests[first:] if each.model == self.model and find_shell(each.body)]

    def last(self) -> RecordedRequest | None:
        """Give the last one of them."""
        return next(reversed(self.main()), None)

    def sent(self) -> int:
        """Give the number of thinking blocks in that request."""
        last = self.last()
        return 0 if last is None else len(_read(last).blocks)

    def window(self) -> int:
        """Give a window for opencode that holds what a compacted conversation needs, but not all of this one.

        It leaves a quarter of the window to the answer.
        """
        first, *_, last = [bill.input + bill.cache_read + bill.cache_write for bill in map(_bill, self.main())]
        return (first + 2 * last) // 3 * 4 // 3

    def turns(self) -> tuple[str, ...]:
        """Give the messages of that request."""
        last = self.last()
        return () if last is None else _read(last).messages


def _bill(request: RecordedRequest) -> Bill:
    assert request.bill is not None
    return request.bill


def _read(request: RecordedRequest) -> Any:
    return BodyReader().read("messages", cast("dict[str, Any]", request.body))


@pytest.fixture(name="upstream")
def _upstream() -> Answering:
    return Answering()


@pytest.fixture(name="server", params=["sqlite", "none"])
def _server(request: pytest.FixtureRequest, upstream: Answering, tmp_path: Path) -> Generator[Served]:
    store = request.param if request.param == "none" else f"sqlite:{tmp_path}/gateway.db"
    with serve_in_thread(upstream) as url:
        server = Served(store, EmulatorServer(url, upstream.emulator))
        try:
            yield server
        finally:
            server.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.agent}-{case.wire}-{case.model}")
def test_a_session_of_a_program(case: Case, server: Served, upstream: Answering, tmp_path: Path) -> None:
    session = Session(case, server.store, tmp_path, upstream, server)
    session.ask("Do twenty steps.", calls=20)
    assert session.sent() == 20 or case.changes, "the loop keeps all of its thinking"
    server.restart()
    session.ask("Do one more.", calls=1)
    assert session.sent() == 22 or case.changes or not session.has_store
    session.ask("Go on as another model.", calls=1, model=OTHER)
    session.ask("Come back.", calls=1)
    assert session.sent() == 24 or case.changes or not session.has_store
    assert upstream.emulator.repeated() == []
    before = session.turns()
    if case.window == "command":
        session.ask("/compact", calls=0)
        session.ask("Go on after that.", calls=2)
    else:
        session.agent.window = session.window() if case.window == "measured" else case.window
        session.ask("Go on in a smaller window.", calls=2)
    session.agent.window = 200_000
    session.ask("Do the last steps.", calls=2)
    after = session.turns()
    assert after[: len(before)] != before[: len(after)], "the conversation was compacted"
    assert session.sent() >= 2 or case.changes, "thinking since then is kept"
    assert upstream.emulator.repeated() == []
