"""Instructions before the first turn: where they are sent, and requests that have nothing else."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from projection.building import (
    BEDROCK_SONNET,
    FABLE,
    GEMINI,
    GPT,
    GPT_CHAT,
    LLAMA_CPP,
    MISTRAL,
    OLLAMA,
    PERPLEXITY,
    SONNET,
    TEXTS,
    assistant,
    conversation,
    result,
    system,
    user,
)
from projection.histories import TARGETS, fresh
from property_testing import tiers
from segue.conversation.content import TextContent
from segue.conversation.context import Context
from segue.conversation.messages import Message, StopReason
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode
from segue.protocols.api import check
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.outbox import Outbox
from segue.requests.prepare import Request, convert, prepare

HI = user("hi")
GPT_OSS = replace(OLLAMA, id="gpt-oss:20b")
"""Its template takes system messages anywhere; those of Qwen, Llama and Gemma take one, at the beginning."""
BOTH = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]

WIRES: dict[str, tuple[Model, str, object]] = {
    "Claude: blocks of the system field": (SONNET, "system", BOTH),
    "the newest Claude, which accepts later system messages": (FABLE, "system", BOTH),
    "Gemini: parts of the instruction": (
        GEMINI,
        "systemInstruction",
        {"role": "user", "parts": [{"text": "A"}, {"text": "B"}]},
    ),
    "Bedrock: blocks of the system field": (BEDROCK_SONNET, "system", [{"text": "A"}, {"text": "B"}]),
    "Mistral: parts of the system message": (
        MISTRAL,
        "messages",
        [{"role": "system", "content": BOTH}, {"role": "user", "content": "hi"}],
    ),
    "a local server, whose template accepts one system message": (
        LLAMA_CPP,
        "messages",
        [{"role": "system", "content": BOTH}, {"role": "user", "content": "hi"}],
    ),
    "OpenAI: two messages": (
        GPT_CHAT,
        "messages",
        [
            {"role": "developer", "content": "A"},
            {"role": "developer", "content": "B"},
            {"role": "user", "content": "hi"},
        ],
    ),
    "Responses: two items": (
        GPT,
        "input",
        [
            {"role": "developer", "content": "A"},
            {"role": "developer", "content": "B"},
            {"role": "user", "content": "hi"},
        ],
    ),
    "Ollama: two messages": (
        GPT_OSS,
        "messages",
        [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}, {"role": "user", "content": "hi"}],
    ),
}


@pytest.mark.parametrize(("model", "key", "wire"), WIRES.values(), ids=WIRES.keys())
def test_a_second_leading_instruction_joins_the_first(model: Model, key: str, wire: object):
    request = prepare(Context(system_prompt="A", messages=(system("B"), HI)), model)
    assert request.body[key] == wire
    assert request.report.lossless
    assert not request.report.of(ChangeCode.SYSTEM_AS_USER)


SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat, system and developer": (
        "openai-chat",
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "A"},
                {"role": "developer", "content": "B"},
                {"role": "user", "content": "hi"},
            ],
        },
    ),
    "Responses, the field and an item": (
        "openai-responses",
        {
            "model": "gpt-5",
            "instructions": "A",
            "input": [{"role": "developer", "content": "B"}, {"role": "user", "content": "hi"}],
        },
    ),
    "Responses, two items": (
        "openai-responses",
        {
            "model": "gpt-5",
            "input": [
                {"type": "message", "role": "system", "content": "A"},
                {"role": "developer", "content": [{"type": "input_text", "text": "B"}]},
                {"role": "user", "content": "hi"},
            ],
        },
    ),
    "Ollama": (
        "ollama-chat",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "A"},
                {"role": "system", "content": "B"},
                {"role": "user", "content": "hi"},
            ],
        },
    ),
}


@pytest.mark.parametrize(("source", "body"), SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_converted_instructions_are_two_texts_and_no_user_turn(protocol: str, source: str, body: dict[str, Any]):
    for target in TARGETS[protocol]:
        request = convert(body, source=source, target=target)
        written = json.dumps(request.body)
        assert check(request.body, protocol=protocol, model=target) == []
        if "\\n\\n" in written:  # the wire has one text
            assert '"A\\n\\nB"' in written
            continue
        assert '"A"' in written
        if request.projection.context.system_prompt is not None:
            assert '"B"' in written
            assert "<system>" not in written


ALONE: dict[str, Context] = {
    "a prompt": Context(system_prompt="Greet the user."),
    "a prompt of pieces": Context(system_prompt=(TextContent(text="Greet"), TextContent(text="the user."))),
    "a system message": conversation(system("Greet the user.")),
    "both": Context(system_prompt="Greet the user.", messages=(system("In French."),)),
    "a prompt and a blank message": Context(system_prompt="Greet the user.", messages=(user("  "),)),
    "a prompt and a reply that failed": Context(
        system_prompt="Greet the user.", messages=(assistant(SONNET, "Hel", stop=StopReason.ABORTED),)
    ),
}


@pytest.mark.parametrize("context", ALONE.values(), ids=ALONE.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_instructions_alone_are_sent(protocol: str, context: Context):
    for model in TARGETS[protocol]:
        request = prepare(context, model)
        assert check(request.body, protocol=protocol, model=model) == []
        assert "Greet" in json.dumps(request.body)


FILLED: dict[str, tuple[Model, bool]] = {
    "Claude needs a message (langchain #31657)": (SONNET, True),
    "Claude on Bedrock": (BEDROCK_SONNET, True),
    "Gemini needs contents (langchain-google #1298)": (GEMINI, True),
    "Mistral needs a user message last": (MISTRAL, True),
    "templates of local servers (dify #33152)": (LLAMA_CPP, True),
    "Perplexity needs a user message last": (PERPLEXITY, True),
    "Claude behind a gateway": (Model("anthropic/claude-sonnet-4.5", "openrouter", "openai-chat"), True),
    "Gemini behind an OpenAI endpoint (chatgpt-plugin #733)": (Model("gemini-2.5-pro", "google", "openai-chat"), True),
    "OpenAI does not": (GPT_CHAT, False),
    "nor on Responses": (GPT, False),
    "Ollama does not": (GPT_OSS, False),
    "Qwen at Ollama does": (OLLAMA, True),
}


@pytest.mark.parametrize(("model", "is_filled"), FILLED.values(), ids=FILLED.keys())
def test_a_short_turn_is_added_where_the_target_needs_one(model: Model, is_filled: bool):
    request = prepare(Context(system_prompt="Greet the user."), model)
    assert request.projection.context.messages == ((user(TEXTS.first_turn),) if is_filled else ())
    assert [change.code for change in request.report.changes] == [ChangeCode.TURN_INSERTED] * is_filled
    assert request.report.lossless


REFUSED: dict[str, tuple[Context, str]] = {
    "nothing": (Context(), "no instructions and no messages"),
    "a blank message": (conversation(user(" ")), "only empty ones"),
    "an unfinished turn": (conversation(assistant(SONNET, "Hel", stop=StopReason.ERROR)), "unfinished turns"),
    "results alone": (conversation(result("a", "ok")), "tool results whose calls are missing"),
    "results beside instructions": (
        Context(system_prompt="Be brief.", messages=(result("a", "ok"),)),
        "tool results whose calls are missing",
    ),
}


@pytest.mark.parametrize(("context", "why"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refusal_says_why(protocol: str, context: Context, why: str):
    for model in TARGETS[protocol]:
        with pytest.raises(EmptyConversation, match=why):
            prepare(context, model)
        with pytest.raises(EmptyConversation, match=why):
            Outbox(model).prepare(context)


def test_results_alone_can_be_sent_as_text():
    request = prepare(conversation(result("a", "ok")), SONNET, policy=Policy(orphan_results="text"))
    assert request.report.of(ChangeCode.RESULT_AS_TEXT)


# -- what was sent does not change -------------------------------------------------------------------------------------

PIECES: dict[str, Message] = {
    "instructions": system("Be brief."),
    "user": HI,
    "blank": user(""),
    "reply": assistant(GPT, "yes"),
    "empty reply": assistant(GPT, " "),
}
FIRST = ("instructions", "blank")
SHORT = [(first, *names) for first in FIRST for length in range(3) for names in product(PIECES, repeat=length)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", tiers([7], [1]))
def test_an_answered_request_of_instructions_stays_a_prefix(protocol: str, step: int):
    key = get_protocol(protocol).turns_key
    assert key is not None
    for model, prompt, names in product((TARGETS[protocol][0],), (None, "Greet the user."), SHORT[::step]):
        context = Context(system_prompt=prompt, messages=fresh([PIECES[name] for name in names]))
        projector, outbox, sent = Projector(model), Outbox(model), list[Request]()
        for count in range(len(names) + 1):
            grown = replace(context, messages=context.messages[:count])
            assert projector.project(grown) == project(grown, model)
            try:
                request = prepare(grown, model)
            except EmptyConversation:
                continue
            assert outbox.prepare(grown).content == request.content
            for earlier in sent:
                turns = earlier.body[key]
                assert request.body[key][: len(turns)] == turns, names
                assert request.projection.context.system_prompt == earlier.projection.context.system_prompt
            if count and count < len(names) and "reply" in names[count] and "reply" not in names[count - 1]:
                sent.append(request)
