"""State that is bound to what was sent before it, through the gateway: never refused, never given up without need."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import anthropic
import httpx2
import msgspec
import openai
import pytest
from msgspec.structs import replace

from gateway.bound_clients import WIRES
from gateway.bound_walk import OPUS, Served, Walk, called, served, signature_at
from gateway.raw_clients import RAW_WIRES
from segue.conversation.messages import AssistantMessage
from segue.envelope import attaching, state
from segue.gateway import straight
from segue.gateway.conversations import Conversations
from segue.projection.workspace.ownership import Ownership
from segue.protocols.api import check
from segue.protocols.kit.protocol import Protocol
from segue.requests.binding.bind import Sender, stamp_body
from segue.requests.binding.stamp import Stamp
from segue.testing.emulator import EmulatedCall, Step

CLIENT = httpx2.Client()
STORES = ("sqlite", "none")
BETA = "thinking-binding-controls-2026-08-01"
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="read", arguments={"n": 1}),))
TOOLS = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def _address(store: str, folder: Path) -> str:
    return store if store == "none" else f"sqlite:{folder}/gateway.db"


def _walk(server: Served, wire: str, seeds: range, steps: int) -> None:
    for seed in seeds:
        walk = Walk(wire, server, seed)
        try:
            walk.run(steps)
        except (AssertionError, openai.APIError, anthropic.APIError) as error:
            raise AssertionError(f"{wire}, store {server.store}, seed {seed}: {error}") from error
        finally:
            walk.close()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", WIRES)
def test_nothing_is_refused_given_up_or_sent_twice(wire: str, store: str, tmp_path: Path) -> None:
    """Clients with the official SDKs, over sockets."""
    with served(_address(store, tmp_path)) as server:
        _walk(server, wire, range(1), 4)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", RAW_WIRES)
def test_nothing_is_refused_in_many_conversations(wire: str, store: str, tmp_path: Path) -> None:
    with called(_address(store, tmp_path), strict=False) as server:
        _walk(server, wire, range(2), 6)


@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, 160, 40))
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", RAW_WIRES)
def test_a_hundred_thousand_steps(wire: str, store: str, first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 40, 4):
        with called(_address(store, tmp_path / str(seed)), strict=seed % 40 == 0) as server:
            _walk(server, wire, range(seed, seed + 4), 53)


# -- what a refusal teaches, and what passes straight through ----------------------------------------------------------


class Messages:
    """A conversation of a client of the Messages API, in raw bodies; first with the provider itself."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.emulator = server.upstream.emulator
        self.system = "Be brief."
        self.messages: list[Any] = []
        self.thinking: dict[str, Any] = {"type": "adaptive"}
        self.extra: dict[str, Any] = {}
        self.betas = ""
        self.last: httpx2.Response | None = None

    def say(self, text: str, step: Step | None = None, *, direct: bool = False) -> int:
        """Add a user message and send."""
        return self.send({"role": "user", "content": text}, step, direct=direct)

    def answer(self, step: Step | None = None) -> int:
        """Answer the newest call and send."""
        call = next(block for block in self.messages[-1]["content"] if block["type"] == "tool_use")
        return self.send(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "seen"}]}, step
        )

    def send(self, message: dict[str, Any], step: Step | None = None, *, direct: bool = False) -> int:
        """Add a message and send; gives the requests that the provider got. A reply is added."""
        self.messages.append(message)
        self.emulator.script.add(step or Step(thinking="Hm.", text=f"answer {len(self.emulator.requests)}"))
        before = len(self.emulator.requests)
        body = {
            "model": OPUS,
            "max_tokens": 2000,
            "system": self.system,
            "tools": TOOLS,
            "messages": self.messages,
            "thinking": self.thinking,
            **self.extra,
        }
        headers = {"x-api-key": "client-key", "anthropic-version": "2023-06-01"}
        if self.betas:
            headers["anthropic-beta"] = self.betas
        url = self.server.upstream.url if direct else self.server.url
        self.last = CLIENT.post(f"{url}/v1/messages", json=body, headers=headers)
        if self.last.status_code == 200:
            self.messages.append({"role": "assistant", "content": self.last.json()["content"]})
        return len(self.emulator.requests) - before

    def sent(self) -> int:
        """Give the number of blocks of thinking in the last request to the provider."""
        return str(self.emulator.requests[-1].body).count("'type': 'thinking', 'thinking'")

    @property
    def row(self) -> dict[str, Any]:
        """The row of the last request."""
        assert self.last is not None
        url = f"{self.server.url}/segue/requests/{self.last.headers['x-segue-request-id']}"
        for _ in range(1000):  # it is written after the reply
            if (reply := CLIENT.get(url)).status_code == 200:
                break
        return reply.json()

    def check(self, refused: int) -> None:
        """Check that the client got a reply, and how many requests were refused in all."""
        assert self.last is not None
        assert self.last.status_code == 200, self.last.text
        assert len(self.emulator.refused_for_state()) == refused
        assert not self.emulator.repeated()


@pytest.fixture(params=STORES)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Served]:
    with served(_address(request.param, tmp_path)) as server:
        yield server


@pytest.fixture
def stored(tmp_path: Path) -> Generator[Served]:
    with served(_address("sqlite", tmp_path)) as server:
        yield server


def test_an_imported_history_passes_straight_and_is_known_from_then_on(stored: Served) -> None:
    talk = Messages(stored)
    talk.say("one", direct=True)
    talk.say("two", direct=True)
    for count in (2, 3, 4):
        assert talk.say(f"question {count}") == 1
        talk.check(refused=0)
        assert talk.sent() == count
        assert talk.row["straight"]
    talk.system = "Be long."
    assert talk.say("after the change") == 1
    talk.check(refused=0)
    assert talk.sent() == 0
    assert not talk.row.get("straight")
    assert {change.get("cause") for change in talk.row["changes"]} >= {"the system prompt has changed since"}
    assert talk.say("and on") == 1
    talk.check(refused=0)
    assert talk.sent() == 1


@pytest.mark.parametrize("thinks", [True, False], ids=["thinking", "no thinking"])
@pytest.mark.parametrize("in_loop", [True, False], ids=["in a tool loop", "after a turn"])
def test_a_refusal_is_learned_once(stored: Served, in_loop: bool, thinks: bool) -> None:
    talk = Messages(stored)
    reply = Step(thinking="Now." if thinks else None, text="the reply that follows the refusal")
    talk.say("one", direct=True)
    talk.say("two", CALL if in_loop else None, direct=True)
    talk.system = "Be long."
    requests = talk.answer(reply) if in_loop else talk.say("three", reply)
    assert requests == 2
    talk.check(refused=1)
    learned = copy.deepcopy(talk.messages)
    for number in range(2):
        assert talk.say(f"question {number}") == 1
        talk.check(refused=1)
        assert talk.sent() == int(thinks) + number
    stored.restart()
    assert talk.say("after a restart") == 1
    talk.check(refused=1)
    # A user goes back to before the reply that remembers the refusal.
    talk.messages = learned[:-2] if not in_loop else learned[:2]
    assert talk.say("another way") == 1
    talk.check(refused=1)


def test_a_refusal_is_learned_also_if_no_provider_answers_after_it(stored: Served) -> None:
    talk = Messages(stored)
    talk.say("one", direct=True)
    talk.system = "Be long."
    talk.emulator.script.add(*[Step(status=529)] * 2)
    talk.say("two", Step(status=529))
    assert talk.last is not None
    assert talk.last.status_code >= 500
    assert len(talk.emulator.refused_for_state()) == 1
    talk.emulator.script.take("")
    talk.messages.pop()
    talk.say("two again")
    talk.check(refused=1)


def test_a_refusal_is_learned_also_where_a_summary_replaces_the_first_message(anywhere: Served) -> None:
    """The gateway knows a conversation by its first message: with another one it has another name."""
    talk = Messages(anywhere)
    talk.say("one", direct=True)
    talk.say("two", direct=True)
    talk.system = "Be long."
    talk.say("three")
    refused = len(talk.emulator.refused_for_state())
    assert refused == int(anywhere.store != "none"), "without a store the server is asked to drop"
    talk.messages = [{"role": "user", "content": "a summary"}, *talk.messages[1:4]]
    assert talk.say("four") == 1
    talk.check(refused=refused)
    assert talk.sent() == 0


HINT = "First list what you need."


@pytest.mark.parametrize("is_kept", [False, True], ids=["taken back", "cleared by the server"])
def test_a_text_that_is_only_in_the_newest_request_costs_no_refusal(anywhere: Served, is_kept: bool) -> None:
    """On Fable 5.1, Claude Code 2.1.327 adds a hint to the newest system message and takes it back in the next request.

    To an address that is not Anthropic's it sends neither `block_binding` nor `clear_at`. After a refusal it sends the
    request again without any thinking, in every step of a loop.                                       (seen 2026-11-18)
    With `clear_at` the hint stays, and all thinking is valid.
    """
    talk = Messages(anywhere)
    talk.extra = {"model": "claude-fable-5-1"}
    talk.betas = "mid-conversation-system-clear-at-2026-08-21" if is_kept else ""
    talk.say("one", CALL)
    counts: list[int] = []
    for number in range(5):
        call = next(block for block in talk.messages[-1]["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"seen {number}"}
        talk.messages.append({"role": "user", "content": [result]})
        left = {"type": "text", "text": f"{number} left"}
        hint = (
            {"clear_at": "next_user_message", "content": HINT}
            if is_kept
            else {"content": [left, {**left, "text": HINT}]}
        )
        assert talk.send({"role": "system", **hint}, CALL) == 1
        talk.check(refused=0)
        counts.append(talk.sent())
        request, known = talk.emulator.requests[-1], talk.emulator.ledger.bound()
        assert not talk.emulator.withheld(request, known), "valid thinking was given up"
        if not is_kept:
            talk.messages[-2]["content"] = [left]
    assert counts == ([1, 2, 3, 4, 5] if is_kept else [1, 1, 1, 1, 1])


def test_a_client_that_asks_the_server_to_drop_gets_its_answer(stored: Served) -> None:
    talk = Messages(stored)
    talk.betas, talk.thinking = BETA, DROP
    talk.say("one")
    talk.say("two")
    talk.system = "Be long."
    assert talk.say("three") == 1
    talk.check(refused=0)
    sent = talk.emulator.requests[-1]
    assert cast("dict[str, Any]", sent.body)["thinking"] == DROP
    assert sent.headers["anthropic-beta"] == BETA
    assert talk.last is not None
    dropped = talk.last.json()["input_transformations"]
    assert dropped == [dict(each) for each in sent.transformations]
    assert [each["path"] for each in dropped] == ["messages.1.content.0", "messages.3.content.0"]
    gone = [signature_at(sent.body, each["path"]) for each in dropped]
    talk.betas, talk.thinking = "", {"type": "adaptive"}
    assert talk.say("four, without asking") == 1
    talk.check(refused=0)
    assert talk.sent() == 1
    assert not any(signature in str(talk.emulator.requests[-1].body) for signature in gone)


@pytest.mark.parametrize("turns", [0, 2], ids=["instead of the history", "in the middle"])
def test_thinking_after_a_summary_that_the_client_keeps_is_not_dropped(anywhere: Served, turns: int) -> None:
    """As opencode 1.18.33 compacts: it asks for a summary with other instructions, and keeps it with its thinking.

    It asks the server to drop what is not valid, and the server drops all thinking after the first block that fails.
                                                          (seen 2026-11-19; Anthropic documentation: preserved thinking)
    """
    talk = Messages(anywhere)
    talk.betas, talk.thinking = BETA, DROP
    for number in range(turns):
        talk.say(f"question {number}")
    kept = talk.messages
    talk.system, talk.messages = "Summarize.", []
    talk.say("The conversation so far: ...", Step(thinking="Sum up.", text="A summary."))
    talk.system = "Be brief."
    talk.messages = [*kept, {"role": "user", "content": "What did we do so far?"}, talk.messages[-1]]
    counts: list[int] = []
    for number in range(4):
        assert talk.say(f"go on {number}", CALL) == 1
        assert talk.answer() == 1
        talk.check(refused=0)
        request = talk.emulator.requests[-1]
        counts.append(talk.sent() - len(request.transformations))
        # The server has to be asked about the summary once.
        assert number == 0 or not request.transformations
        assert not talk.emulator.withheld(request, talk.emulator.ledger.bound()), "valid thinking was given up"
    assert counts == [turns + 1 + 2 * number for number in range(4)]
    assert cast("dict[str, Any]", talk.emulator.requests[-1].body)["thinking"] == DROP


def test_a_text_that_becomes_a_string_when_its_cache_mark_moves_keeps_the_thinking(stored: Served) -> None:
    """As Claude Code does: the newest message is a block with a mark, and a string from then on."""
    talk = Messages(stored)
    for number in range(4):
        if talk.messages:
            talk.messages[-2]["content"] = talk.messages[-2]["content"][0]["text"]
        marked = {"type": "text", "text": f"question {number}", "cache_control": {"type": "ephemeral"}}
        assert talk.send({"role": "user", "content": [marked]}) == 1
        talk.check(refused=0)
        assert talk.sent() == number
        assert talk.row["straight"]


@pytest.mark.parametrize(
    ("thinking", "extra"),
    [
        ({"type": "enabled", "budget_tokens": 1500}, {}),
        ({"type": "disabled"}, {}),
        ({"type": "adaptive"}, {"temperature": 0.5}),
    ],
    ids=["thinking with a budget", "no thinking", "a temperature"],
)
def test_options_that_the_model_is_known_to_refuse_do_not_pass_straight(
    stored: Served, thinking: dict[str, Any], extra: dict[str, Any]
) -> None:
    talk = Messages(stored)
    talk.say("first")
    assert talk.row["straight"]
    talk.thinking, talk.extra = thinking, extra
    assert talk.say("as for another model") == 1
    talk.check(refused=0)
    body = cast("dict[str, Any]", talk.emulator.requests[-1].body)
    assert not check(body, protocol="anthropic-messages", model=OPUS)
    assert talk.sent() == 1
    assert not talk.row.get("straight")
    assert talk.row["changes"]


def test_a_date_in_the_system_prompt_costs_reasoning_and_is_reported(anywhere: Served) -> None:
    emulator = anywhere.upstream.emulator
    client = openai.OpenAI(base_url=f"{anywhere.url}/v1", api_key="k", max_retries=0)
    history: list[Any] = []
    for day in range(4):
        history.append({"role": "user", "content": f"question {day}"})
        emulator.script.add(Step(thinking="Hm.", text=f"answer {day}"))
        system: Any = {"role": "system", "content": f"Today is day {day}."}
        reply = client.chat.completions.with_raw_response.create(model=OPUS, messages=[system, *history])
        history.append(reply.parse().choices[0].message.model_dump(exclude_none=True))
        assert int(reply.headers["x-segue-changes"]) >= day
    client.close()
    assert [request.status for request in emulator.requests] == [200] * 4
    assert not any("signature" in str(request.body) for request in emulator.requests)


@pytest.mark.parametrize("pause", [0.0, 0.005], ids=["at once", "one by one"])
def test_a_chat_client_that_returns_only_the_ids_of_calls_keeps_the_thinking(anywhere: Served, pause: float) -> None:
    """As opencode does, which also replaces characters; without a store, the id holds what came before the call."""
    emulator = anywhere.upstream.emulator
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    messages: list[Any] = [{"role": "user", "content": "Go on."}]
    for number in range(4):
        emulator.script.add(replace(CALL, pause=pause))
        body = {"model": OPUS, "messages": messages, "tools": tools, "stream": True}
        reply = CLIENT.post(f"{anywhere.url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"})
        frames = [msgspec.json.decode(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
        deltas = [call for frame in frames for each in frame["choices"] for call in each["delta"].get("tool_calls", ())]
        made = {"name": "read", "arguments": "".join(each["function"].get("arguments") or "" for each in deltas)}
        call = {"id": re.sub(r"[^a-zA-Z0-9_-]", "_", deltas[0]["id"]), "type": "function", "function": made}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "seen"},
        ]
        assert emulator.requests[-1].status == 200
        assert str(emulator.requests[-1].body).count("'signature'") == number


# -- faults that are noticed -------------------------------------------------------------------------------------------


def _forget_head(message: AssistantMessage, *rest: Any) -> state.State:
    return state.finish_state(replace(message, sent=None), *rest)


def _forget_partial(*given: Any) -> state.State:
    return state.make_state(*given[:3])


def _pass_everything(codec: Protocol, body: Any, messages: object, sender: Sender) -> Stamp:
    return stamp_body(codec, sender.endpoint, body)


def _forget_refusals(server: Served) -> None:
    talk = Messages(server)
    talk.say("one", direct=True)
    talk.system = "Be long."
    talk.say("two")
    talk.messages = talk.messages[:2]
    talk.say("another way")
    talk.check(refused=1)


def _walk_briefly(wire: str) -> Callable[[Served], None]:
    def run(server: Served) -> None:
        walk = Walk(wire, server, 0)
        try:
            for day in (1, 1, 2, 2):
                walk.day = day
                walk.turn()
        finally:
            walk.close()

    return run


def _walk_with(model: str) -> Callable[[Served], None]:
    def run(server: Served) -> None:
        walk = Walk("chat", server, 0)
        walk.model = model
        try:
            for _ in range(3):
                walk.turn()
        finally:
            walk.close()

    return run


FAULTS: dict[str, tuple[str, object, str, object, Callable[[Served], None]]] = {
    "items are lost": ("sqlite", Ownership, "is_own", lambda *_: False, _walk_with("m-responses")),
    "parts are lost": ("none", Ownership, "is_own", lambda *_: False, _walk_with("m-gemini")),
    "a stored state forgets": ("sqlite", attaching, "finish_state", _forget_head, _walk_briefly("chat")),
    "an envelope forgets": ("none", attaching, "make_state", _forget_partial, _walk_briefly("responses")),
    "known state passes straight": ("sqlite", straight, "pass_body", _pass_everything, _walk_briefly("messages")),
    "a refusal is forgotten": ("sqlite", Conversations, "note_refused", lambda *_, **__: None, _forget_refusals),
}


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=str)
def test_a_fault_is_noticed(fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for store, place, name, value, run in FAULTS.values() if fault is None else (FAULTS[fault],):
        with served(_address(store, tmp_path / name)) as server, monkeypatch.context() as patch:
            if fault is None:
                run(server)
                continue
            patch.setattr(place, name, value)
            with pytest.raises(AssertionError):
                run(server)
