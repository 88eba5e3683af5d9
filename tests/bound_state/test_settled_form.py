"""What is outside of a conversation does not change the form of what was sent of it.

Options, cache marks, limits, the window and details of the client differ from turn to turn here, and the conversation
itself only grows. So every request begins with what the one before it contained, and all reasoning comes back.

Compared without cache marks, and with the content of a message as a list: a string there is short for one text block
(API reference: Messages). Of `system` that is not known, so its form counts.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

import httpx2
import pytest
from msgspec.structs import replace

from bound_state.inbound import Chat, Inbound, Messages, Responses, show
from bound_state.machine import BEDROCK_OPUS, FABLE, GPT, LOOK, OPUS, SONNET, transport
from gateway.running import running
from golden.make_served import Gemini
from protocols.every_protocol import wire_messages
from segue import (
    AssistantMessage,
    Client,
    Context,
    Message,
    Model,
    Options,
    Outbox,
    TextContent,
    ToolResultMessage,
    UserMessage,
    dump,
    get_model,
    load,
    prepare,
)
from segue.testing.emulator import EmulatedCall, Emulator, Step

THINK: Final = Step(thinking="Hm.", text="Yes.")
CALL: Final = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
BASE: Final = Options(thinking="medium", max_tokens=2000)
VARIED: Final[dict[str, tuple[Options, ...]]] = {
    "marks begin": (BASE, replace(BASE, cache_retention="short"), replace(BASE, cache_retention="long")),
    "marks end": (replace(BASE, cache_retention="long"), replace(BASE, cache_retention="none"), BASE),
    "limits": (BASE, replace(BASE, max_tokens=1500), replace(BASE, max_tokens=None)),
    "thinking": (BASE, replace(BASE, thinking="high"), replace(BASE, thinking="low")),
    "stream": (BASE, replace(BASE, stream=True), replace(BASE, stream=False)),
    "names": (replace(BASE, user_id="a"), replace(BASE, user_id="b", session_id="s"), BASE),
    "choice": (BASE, replace(BASE, tool_choice="none"), replace(BASE, tool_choice="auto")),
    "sampling": (BASE, replace(BASE, temperature=0.3, stop=("END",)), replace(BASE, top_p=0.5, seed=1)),
    "answers": (
        BASE,
        replace(BASE, output_schema={"type": "object", "properties": {}, "additionalProperties": False}),
        BASE,
    ),
}
"""Options of the requests, one after the other; then the first ones again."""
SIGNATURES: Final = ("signature", "encrypted_content", "thoughtSignature", "redactedContent")


def settled(body: Any) -> tuple[str, str, list[str]]:
    """Give the instructions, the tools and the turns of a body, without cache marks."""
    cleaned = _clean(body)
    config = cleaned.get("toolConfig") or {}
    tools = json.dumps(cleaned.get("tools") or config.get("tools"))
    return json.dumps(cleaned.get("system")), tools, [json.dumps(turn) for turn in wire_messages(cleaned)]


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {key: _clean(each) for key, each in value.items() if key != "cache_control"}
        if "role" in cleaned and isinstance(cleaned.get("content"), str):
            cleaned["content"] = [{"type": "text", "text": cleaned["content"]}]
        return cleaned
    if isinstance(value, list):
        return [_clean(each) for each in value if not (isinstance(each, dict) and "cachePoint" in each)]
    return value


def signatures_in(body: Any) -> int:
    """Count the blocks of reasoning in a body."""
    text = json.dumps(body)
    return sum(text.count(f'"{key}"') for key in SIGNATURES)


class Watched:
    """Requests of one conversation: each has to begin with the one before it, and has all reasoning."""

    def __init__(self) -> None:
        self.before: tuple[str, str, list[str]] | None = None

    def see(self, body: Any, replies: int) -> None:
        """Compare a request with the one before it."""
        now = settled(body)
        if self.before is not None:
            assert now[:2] == self.before[:2], "the instructions and tools"
            assert now[2][: len(self.before[2])] == self.before[2], "the turns that were sent"
        self.before = now
        assert signatures_in(body) == replies, "all reasoning comes back"


@pytest.mark.parametrize("has_tools", [True, False])
@pytest.mark.parametrize("model", [OPUS, SONNET, FABLE, BEDROCK_OPUS, GPT], ids=Model.full_name)
@pytest.mark.parametrize("varied", VARIED.values(), ids=VARIED)
def test_options_change_nothing_that_was_sent(model: Model, varied: tuple[Options, ...], has_tools: bool) -> None:
    emulator = Emulator(strict=False)
    keys: dict[str, str] = dict.fromkeys(("anthropic", "amazon-bedrock", "openai"), "key")
    watched, outbox = Watched(), Outbox(model)
    context = Context(system_prompt="Be brief.", tools=(LOOK,) if has_tools else ())
    with Client(api_key=keys, transport=transport(lambda: emulator), environment={}) as client:
        for number, options in enumerate((*varied, varied[0], varied[1])):
            context = context.add(UserMessage.of(f"question {number}"))
            if number % 2 and has_tools and options.tool_choice != "none":
                emulator.script.add(CALL)
            else:
                emulator.script.add(THINK)
            whole = prepare(context, model, options=options, account="org")
            assert outbox.prepare(context, options=options, account="org").content == whole.content
            reply = client.complete(context, model, options=options)
            watched.see(emulator.requests[-1].body, number)
            results = [
                ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="seen"),))
                for call in reply.tool_calls()
            ]
            context = context.add(reply, *results)
    assert not [request.refusal for request in emulator.requests if request.refusal]


@pytest.mark.parametrize("start", [(), (AssistantMessage(content=(TextContent(text="Hi."),)),)], ids=["none", "reply"])
@pytest.mark.parametrize("model", [OPUS, BEDROCK_OPUS, get_model("anthropic/claude-opus-4-8")], ids=Model.full_name)
def test_a_turn_that_a_request_needed_is_in_the_next_one_too(model: Model, start: tuple[Message, ...]) -> None:
    emulator, watched, outbox = Emulator(strict=False), Watched(), Outbox(model)
    context = Context(system_prompt="Be brief.", messages=start)
    keys: dict[str, str] = dict.fromkeys(("anthropic", "amazon-bedrock"), "key")
    with Client(api_key=keys, transport=transport(lambda: emulator), environment={}) as client:
        for number in range(5):
            emulator.script.add(THINK)
            reply = client.complete(context, model, options=replace(BASE, stream=number == 3))
            watched.see(emulator.requests[-1].body, number)
            assert outbox.prepare(context, options=BASE).content == prepare(context, model, options=BASE).content
            context = load(dump(context.add(reply)))
            if number in (1, 3):
                context = context.add(UserMessage.of("And now?"))
    assert not [request.refusal for request in emulator.requests if request.refusal]


# -- through the gateway -----------------------------------------------------------------------------------------------

DETAILS: Final[dict[type[Inbound], tuple[dict[str, Any], ...]]] = {
    Chat: ({}, {"max_completion_tokens": 900}, {"user": "a", "stop": ["END"]}, {"temperature": 0.2}, {"seed": 3}),
    Responses: ({}, {"max_output_tokens": 900}, {"user": "a"}, {"prompt_cache_key": "k"}, {"metadata": {"a": "b"}}),
    Gemini: ({}, {"labels": {"a": "b"}}, {"safetySettings": []}, {}, {}),
    Messages: ({}, {"max_tokens": 1500}, {"metadata": {"user_id": "a"}}, {"stop_sequences": ["END"]}, {}),
}
"""What else the bodies of a client have, one after the other."""


@pytest.mark.parametrize("has_tools", [True, False])
@pytest.mark.parametrize("store", ["store", "none"])
@pytest.mark.parametrize("wire", DETAILS, ids=lambda wire: wire.__name__)
def test_a_gateway_changes_nothing_that_was_sent(
    wire: type[Inbound], store: str, has_tools: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = '[models."m-claude"]\ntry = ["anthropic/claude-opus-5-5"]'
    name = f"sqlite:{tmp_path}/g.db" if store == "store" else "none"
    with running(store=name, more=more) as gateway, httpx2.Client(base_url=gateway.url, timeout=60) as http:
        emulator, watched, client = gateway.upstream.emulator, Watched(), wire(http, "m-claude")
        plain = client.body
        for number, details in enumerate(DETAILS[wire]):

            def body(details: dict[str, Any] = details) -> dict[str, Any]:
                made = {**plain(), **details}
                if not has_tools:
                    made.pop("tools")
                return made

            monkeypatch.setattr(client, "body", body)
            emulator.script.add(THINK)
            response = client.ask(f"question {number}")
            assert response.status_code == 200, show(response)
            watched.see(cast("Any", emulator.requests[-1].body), number)
        assert not emulator.refused_for_state()
