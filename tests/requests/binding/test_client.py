"""The client and `Conversation` with a strict server: refusals, restarts, accounts, and what the server dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from bound_state.strict_server import StrictServer, blocks_of
from bound_state.talking import LOOK, OPUS
from segue import (
    ChangeCode,
    Client,
    Context,
    Conversation,
    UserMessage,
    get_model,
    prepare,
    read_session,
)

SONNET = get_model("anthropic/claude-sonnet-5-5")


def sse(reply: dict) -> bytes:
    """Write a whole reply as a stream."""
    start = {**reply, "content": [], "stop_reason": None}
    frames = [{"type": "message_start", "message": start}]
    for index, block in enumerate(reply["content"]):
        frames += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    frames += [
        {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames).encode()


class Provider:
    """A strict server behind HTTP; keys belong to organizations."""

    def __init__(self, *, names_account: bool = True) -> None:
        self.server = StrictServer()
        self.organizations = {"key-a": "org-a", "key-a2": "org-a", "key-b": "org-b"}
        self.names_account = names_account

    def client(self, key: str = "key-a") -> Client:
        """Make a client with one of the keys."""
        return Client(api_key=key, transport=httpx2.MockTransport(self.handle))

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        account = self.organizations[request.headers["x-api-key"]]
        body = json.loads(request.content)
        status, reply = self.server.answer(body, dict(request.headers), account=account)
        headers = {"anthropic-organization-id": account} if self.names_account else {}
        if status == 200 and body.get("stream"):
            headers["content-type"] = "text/event-stream"
            return httpx2.Response(200, headers=headers, content=sse(reply))
        return httpx2.Response(status, headers=headers, json=reply)

    def blocks(self) -> list[int]:
        """Give how many blocks of thinking each request had."""
        return [len(list(blocks_of(body))) for body in self.server.bodies]


@pytest.fixture
def provider() -> Provider:
    return Provider()


def test_a_conversation_whose_system_prompt_changes_is_never_refused(provider, tmp_path):
    path = tmp_path / "session.jsonl"
    with Conversation(OPUS, client=provider.client(), path=path, system_prompt="It is Monday.") as talk:
        talk.ask("Hi.")
        talk.ask("Go on.")
    with Conversation(OPUS, client=provider.client(), path=path, system_prompt="It is Tuesday.") as talk:
        talk.ask("Go on.")
        talk.ask("Go on.")
    with Conversation(OPUS, client=provider.client(), path=path) as talk:
        talk.ask("Go on.")
    assert not provider.server.refused
    assert provider.blocks() == [0, 1, 0, 1, 2]


def imported(provider: Provider, *, looping: bool = False) -> Context:
    """Give a conversation with thinking that was made after something else, of which nothing is remembered."""
    provider.server.calls += [("look", {})] if looping else []
    context = Context(system_prompt="Elsewhere.", tools=(LOOK,), messages=(UserMessage.of("Hi."),))
    request = prepare(context, OPUS)
    _, reply = provider.server.answer(request.body, request.headers, account="org-a")
    message = replace(request.decode(reply), sent=None)
    provider.server.bodies.clear()
    return Context(tools=(LOOK,), messages=(*context.messages, message))


STUBBORN = replace(OPUS, rules={"drops_unbound": False, "bound_prefix": False})
"""A model whose refusals segue does not expect."""


@pytest.mark.parametrize("is_looping", [False, True], ids=["between questions", "inside a tool loop"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_refusal_is_learned_from_once(provider, tmp_path, is_looping, streamed):
    path = tmp_path / "session.jsonl"
    with Conversation(
        STUBBORN, client=provider.client(), path=path, context=imported(provider, looping=is_looping)
    ) as talk:
        if is_looping:
            talk.add_result(talk.pending_calls()[0], "seen")
        ask = talk.stream if streamed else talk.ask
        content = () if is_looping else ("Go on.",)
        reply: Any = ask(*content)
        if streamed:
            reply.result()
        assert [attempt.reason for attempt in talk.attempts] == ["first", "without_reasoning"]
        talk.ask("Go on.")
    with Conversation(STUBBORN, client=provider.client(), path=path) as talk:
        talk.ask("Go on.")
    assert len(provider.server.refused) == 1
    assert provider.blocks() == [1, 0, 1, 2]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_the_server_dropped_is_reported_and_an_event(provider, streamed):
    talk = Conversation(OPUS, client=provider.client(), context=imported(provider))
    if streamed:
        events = list(talk.stream("Go on."))
        [notice] = [event for event in events if event.type == "notice"]
        assert notice.diagnostic.type == "reasoning_dropped"
    else:
        talk.ask("Go on.")
    [change] = talk.attempts[-1].report.of(ChangeCode.REASONING_REJECTED)
    assert (change.path, change.detail) == (("messages", 1, "content", 0), "prefix_binding_mismatch")
    newest: Any = talk.messages[-1]
    [diagnostic] = newest.diagnostics
    assert diagnostic.details == {"dropped": [{"path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]}
    assert len(newest.sent.dropped) == 1
    talk.ask("Go on.")
    assert provider.blocks() == [1, 1]
    assert not provider.server.refused


def accounts_in(path: Path) -> list[str]:
    """Give the accounts of the replies in a session."""
    sent = [message.sent for message in read_session(path).messages if message.role == "assistant"]
    return [each.account or "" for each in sent if each is not None]


def test_a_rotated_key_keeps_the_reasoning_and_another_organization_does_not(provider, tmp_path):
    path = tmp_path / "session.jsonl"
    for key, asks in (("key-a", 2), ("key-a2", 2), ("key-b", 2)):
        with Conversation(SONNET, client=provider.client(key), path=path) as talk:
            for _ in range(asks):
                talk.ask("Go on.")
    accounts = accounts_in(path)
    assert accounts == ["org-a"] * 4 + ["org-b"] * 2
    # The first request of a new key is sent before its organization is known; the server drops what it cannot read.
    assert provider.blocks() == [0, 1, 2, 3, 4, 1]
    assert not provider.server.refused


def test_a_key_stands_for_the_account_where_the_provider_names_none(tmp_path):
    provider = Provider(names_account=False)
    model = replace(SONNET, dialect={"account_header": None})
    path = tmp_path / "session.jsonl"
    for key in ("key-a", "key-b"):
        with Conversation(model, client=provider.client(key), path=path) as talk:
            talk.ask("Go on.")
            talk.ask("Go on.")
    labels = accounts_in(path)
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert all(label.startswith("key:") and "key-a" not in label for label in labels)
    assert provider.blocks() == [0, 1, 0, 1]


def test_the_users_own_beta_header_is_kept(provider):
    client = Client(
        api_key="key-a", transport=httpx2.MockTransport(provider.handle), headers={"anthropic-beta": "my-beta"}
    )
    Conversation(OPUS, client=client, context=imported(provider)).ask("Go on.")
    assert provider.server.headers[-1]["anthropic-beta"] == "my-beta,thinking-binding-controls-2026-08-01"


def test_arguments_for_the_sdk_carry_the_header(provider):
    context = imported(provider).add(UserMessage.of("Go on."))
    arguments = prepare(context, OPUS).sdk_arguments()
    assert arguments["extra_headers"] == {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    assert "extra_headers" not in prepare(context, STUBBORN).sdk_arguments()
