"""Switching models: back and forth, within a tool cycle, from a file, with an invalid history; and the known failures.

`KNOWN` lists public threads in which providers refused a conversation after a change of model; each line is one kind of
failure. Every thread is a row of one of the tables, or is in `ELSEWHERE` with the part of segue that handles it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from projection import (
    test_failures_items,
    test_failures_media,
    test_failures_pairing,
    test_failures_reasoning,
    test_failures_turns,
)
from projection.building import (
    FABLE,
    GEMINI,
    GPT,
    KIMI,
    OPUS,
    READ,
    SONNET,
    TARGETS,
    TEXTS,
    assistant,
    call,
    call_with,
    calls_of,
    conversation,
    file,
    image,
    is_paired,
    native,
    redacted,
    result,
    results_of,
    signatures_of,
    system,
    text,
    thinking,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.context import Options
from segue.conversation.messages import Message
from segue.conversation.stored import dump, load
from segue.models.model import Model
from segue.projection.projector import Projector, project
from segue.projection.requirements import ThinkingOff
from segue.protocols.registry import resolve_rules

SKIP: Final = TEXTS.call_signature
OWN: Final = (
    user("hi"),
    assistant(GPT, thinking("hm", "rs_1"), call("call_1", signature="fc_1")),
    result("call_1", "ok"),
    assistant(GPT, thinking("", "rs_2"), text("Done.", "msg_2")),
    user("and you?"),
)
FOREIGN: Final = (
    assistant(SONNET, thinking("so", "sig0"), call("toolu_1")),
    result("toolu_1", "ok"),
    assistant(SONNET, "Done as well."),
    user("and you again?"),
)

SWITCHES: Final[Mapping[str, Row]] = {
    "the first model gets its own turns unchanged, followed by the turns of the other": Row(
        threads="opencode#6418",
        given=(*OWN, *FOREIGN),
        targets=(GPT,),
        sends=(
            *OWN,
            assistant(SONNET, "so", call("toolu_1")),
            result("toolu_1", "ok"),
            assistant(SONNET, "Done as well."),
            user("and you again?"),
        ),
        reports=("thinking_as_text at messages[5].content[0]",),
    ),
    "from GPT to Claude between a result and the answer": Row(
        threads="vscode#316536, pipecat#5809",
        given=OWN[:3],
        targets=(SONNET, OPUS),
        options=Options(thinking="high"),
        sends=(user("hi"), assistant(GPT, "hm", call("call_1")), result("call_1", "ok")),
        lacks=("rs_1", "fc_1"),
        reports=("thinking_as_text at messages[1].content[0]", "signature_removed at messages[1].content[1]"),
        requires=(ThinkingOff(path=("options", "thinking")),),
    ),
    "from Claude to GPT between a result and the answer": Row(
        threads="vscode#316536, pipecat#5809",
        given=(user("hi"), *FOREIGN[:2]),
        targets=(GPT,),
        options=Options(thinking="high"),
        sends=(user("hi"), assistant(SONNET, "so", call("toolu_1")), result("toolu_1", "ok")),
        lacks=("sig0",),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "from Claude to Gemini between a result and the answer": Row(
        threads="pipecat#5809",
        given=(user("hi"), *FOREIGN[:2]),
        targets=(GEMINI,),
        options=Options(thinking="high"),
        sends=(user("hi"), assistant(SONNET, thinking("so"), call("toolu_1", signature=SKIP)), result("toolu_1", "ok")),
        lacks=("'sig0'",),
        reports=("thinking_unsigned at messages[1].content[0]", "signature_placeholder at messages[1].content[1]"),
    ),
    "from Gemini to GPT between a result and the answer": Row(
        threads="pipecat#5809",
        given=(
            user("hi"),
            assistant(GEMINI, call("a", signature="thought"), call("b")),
            result("a", "1"),
            result("b", "2"),
        ),
        targets=(GPT, KIMI, FABLE),
        options=Options(thinking="high"),
        sends=(user("hi"), assistant(GEMINI, call("a"), call("b")), result("a", "1"), result("b", "2")),
        lacks=("thought'",),
        reports=("signature_removed at messages[1].content[0]",),
    ),
}


@pytest.mark.parametrize("row", SWITCHES.values(), ids=SWITCHES.keys())
def test_a_conversation_changes_its_model(row: Row):
    prove(row)


POISON: Final[tuple[Message, ...]] = (
    assistant(OPUS, "I begin."),
    assistant(OPUS, thinking("", "s1"), redacted(None), redacted("p"), thinking("cut \ud83d", "s2"), text("", "s3")),
    result("nobody", "asked", image("not base64"), image(url="https://example.com/x.png"), file(mime="x/unknown")),
    user(),
    user("", image(mime=None), file(file_id="files/\ud83d"), file("AAAA", mime="video/mp4"), "  "),
    system(),
    system("be brief"),
    assistant(
        KIMI, call("functions.a:0", "a.b/c", original="{broken"), "after", call("functions.a:0", ""), thinking("end")
    ),
    result("functions.a:0", error=True),
    assistant(GPT, stop="error", error="400"),
    assistant(
        GEMINI,
        call_with("", {"\udc00": "\ud800"}, "x" * 300, signature="t"),
        native("google-genai", {"executableCode": {}}),
    ),
    user("hurry \ude48"),
    result("", "late", image()),
    result("", "again"),
    assistant(
        SONNET, native("anthropic-messages", {"type": "server_tool_use", "id": "srvtoolu_1"}, image()), stop="length"
    ),
    system("and polite"),
    assistant(FABLE, thinking("half"), call("x"), stop="aborted"),
    result("x", "never mind"),
    user("ok"),
)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_one_bad_message_does_not_make_later_requests_fail(target: Model):
    """kimi-code#2669, Kiro#8884, codegraff#752: what was stored once was refused for ever."""
    projection = project(conversation(*POISON, tools=(READ,)), target)
    sent, rules = projection.context.messages, resolve_rules(target)
    assert is_paired(sent)
    assert sent[-1].role in ("user", "system")
    assert "\\ud8" not in ascii(sent)
    assert "\\udc00" not in ascii(sent)
    assert all(0 < len(piece.id) <= (rules.call_id_max or 999) for piece in calls_of(sent))
    assert all(0 < len(piece.name) <= (rules.tool_name_max or 999) for piece in calls_of(sent))
    assert all(piece.arguments_text is None for piece in calls_of(sent))
    roles = [message.role for message in sent]
    if rules.alternate:
        assert ("user", "user") not in pairwise(roles)
        assert ("assistant", "assistant") not in pairwise(roles)
    if rules.first_user:
        assert roles[0] == "user"
    again = project(projection.context, target)
    assert again.context is projection.context


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_a_poisoned_history_that_grows_is_projected_as_the_whole_is(target: Model):
    projector = Projector(target)
    for end in range(1, len(POISON) + 1):
        context = conversation(*POISON[:end], tools=(READ,))
        assert projector.project(context) == project(context, target), f"after {end} messages"


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_a_stored_conversation_is_projected_as_the_one_it_was(target: Model):
    """anthropic-sdk-python#1598: a store that changed the base64 format broke every signature."""
    signatures = ("EqQBCkYIAxgCKkA+/==", "gAAAAAB_-_-=", "\u2028 odd \u2029")
    context = conversation(
        user("hi"),
        *(
            assistant(target, thinking("hm", signature), text("a", signature), call("c", signature=signature))
            for signature in signatures[:1]
        ),
        result("c", "ok", image()),
        *(assistant(target, thinking(f" {signature} ", signature), text("b", signature)) for signature in signatures),
        user("ok"),
        tools=(READ,),
    )
    stored = load(dump(context))
    assert stored == context
    one, other = project(context, target), project(stored, target)
    assert (one.context, one.report) == (other.context, other.report)


def test_the_same_history_gives_the_same_request_in_every_process():
    """LiteLLM made results from a set: the order, and with it the cached prefix, hung on the hash seed."""
    script = (
        "from projection import test_failures as t; from segue.projection.projector import project;"
        "print([ascii((p.context, p.report, p.requirements)) for model in t.TARGETS.values()"
        " for p in [project(t.conversation(*t.POISON, tools=(t.READ,)), model)]])"
    )
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent / "src")])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_no_target_gets_a_signature_of_another_model():
    """All rows together: signatures of every model in one history; each target gets only its own."""
    signatures = {name: f"sig of {name}" for name in TARGETS}
    turns = tuple(
        message
        for model, signature in zip(TARGETS.values(), signatures.values(), strict=True)
        for message in (
            user(f"hi {model.id}"),
            assistant(
                model,
                thinking("hm", signature),
                text("a", signature),
                call("c", signature=signature),
            ),
            result("c", "ok"),
            assistant(model, text("Done.", signature)),
        )
    )
    for name, target in TARGETS.items():
        sent = project(conversation(*turns, user("ok"), tools=(READ,)), target).context.messages
        one_claude = {signatures["old Claude"], signatures["Claude at Bedrock"]}
        own = one_claude if signatures[name] in one_claude else {signatures[name]}
        assert signatures_of(sent) <= own | {SKIP}, name
        assert len(results_of(sent)) == len(TARGETS)


# -- the count ---------------------------------------------------------------------------------------------------------

KNOWN: Final = (
    # thinking and signatures
    "llxprt-code#2335, UncommonRoute#19, anthropic-sdk-python#1598",
    "llxprt-code#2337",
    "opencode#6418, 9router#922",
    "9router#4136, CLIProxyAPI#994, LiteLLM and Strands: Claude signatures in thoughtSignature",
    "opencode-antigravity-auth#70",
    "strands#682, strands#790, pi#1505",
    "pydantic-ai#3757",
    "strands#2704, langchain#38638, langchain#38977, litellm#38809, langchain4j#6244",
    "opencode#3077, litellm#15601, openai-agents#1704, pydantic-ai#2040, pydantic-ai#2075, kilocode#5219",
    "claude-code#63203, strands#3425",
    "litellm#23047",
    "pi#1665",
    "opencode#11571",
    "pydantic-ai#5869, pydantic-ai#6692",
    "qwen-code#3304, qwen-code#3315, suitenumerique#402, suitenumerique#439, strands#1150",
    "pi#3636, kimi-cli#2141, openclaw#73417, openclaude#878, langchain#35093, openai-agents#2669",
    "oh-my-pi#1995",
    "Crow#60",
    "zeroclaw#10786, magic-context#125, pi-condense#3",
    # items of Responses
    "vercel/ai#7099, vercel/ai#8379, continue#8933, openai-agents-js#326, mastra#14048",
    "mastra#8738, mastra#10713, rig#751, agency-swarm#367, laravel/ai#1052",
    "opencode#7724, opencode#8987, oh-my-pi#41, vercel/ai#7543",
    "codex#8119, sub2api#2863, sub2api#3038, opencodex#2269, rowboat#832",
    "vscode#316536, eca#465, litellm#27333, codex#33176, opencode#44587, inspect_ai#1545",
    "fastllm#45, 9router#393",
    "langmanus#119, autogen#6377, Portkey#1062, vercel/ai#8132, openclaw#875",
    "livekit#5092, octofriend#233, kernl#60",
    "pydantic-ai#4882, pi#6832, pi#4570, OpenMinis#222, vellum#39919, maki#641",
    "llm: two ciphertexts of one item in a stream",
    "hindsight#3121",
    # contents of Gemini
    "litellm#16893, strands#1764, openai-agents#2109, pipecat#5809",
    "claude-relay#967",
    "langchain#34056, ruby_llm#591, securo#884",
    "gemini-cli#4217",
    "bifrost#1391",
    "gemini-cli#11814, gemini-cli#26956, Antigravity#3396, lobehub#10049",
    "langchain#27799",
    "CLIProxyAPI#2104, aimux#127",
    "vellum#26282",
    "crewAI#6973",
    "gcli2api#406",
    # calls and results
    "claude-code#1237, kilocode#5163",
    "ellmer#459",
    "eca#209, cline#7225, positron#15719, openclaw#52024",
    "pi#7777",
    "LiteLLM: deletes the user's message",
    "LiteLLM: results from a set",
    "hindsight#4250, kilocode#3772",
    "eca#233, pydantic-ai: pairs by response",
    "pydantic-ai#895",
    "forgecode#1142, ClawRouter#17, Roo#10649, nanobot#4356",
    "opencode#1680, gptel#1203, omlx#1997, langchain#24668",
    "claude-code-hub#470",
    "koda#501, codegraff#752, vercel/ai#19274, kimi-cli#2196, vllm-fork#684",
    "cai#76, neuron-ai#219, ollama#12794, langchain#34790",
    "tester-mcp-client#11, LiteLLM: truncates names, Bedrock: sanitises names",
    "vercel/ai#7537, pydantic-ai#1966, strands#998, langchain-aws#591, timothy#282",
    "vercel/ai#8318, xum#1437",
    "strands: Nemotron refuses an empty result",
    "any-llm: merges only what begins with a result",
    "any-llm: drops the text beside calls",
    # turns
    "coai#209, OpenManus#580, vllm#6862",
    "zed#37021, hermes#20154, hermes#84944, mistral-vibe#578",
    "rig#1130",
    "Rapid-MLX#1543, Qwen3.8#164, langchain#38849",
    "langchain#35071",
    "llxprt#1977, llxprt#3695, copilot-api#261, hermes#50055",
    "arunalabs/mode#9, LiteLLM: fills empty texts",
    "pydantic-ai and strands: leave out empty turns",
    "vercel/ai: Bedrock turns with blank text beside reasoning",
    "LibreChat: turns whose only text is blank",
    "hermes#41985",
    "langchain#31657",
    "chatgpt-md#189, PI-Desktop#30, pi#2946, pi#5456",
    "LibreChat#6724",
    "claude-code#1709, claude-code#1832, claude-code#3277, opencode#13985, Zoo-Code#1605",
    "control characters that a database refuses",
    # media
    "kimi-code#2669, wisp#503, codex#11349, kelivo#622, Eta#62",
    "opencodex#1742",
    "OpenHands#7700, vllm#43203, OpenKB#242, openai-openapi#523",
    "openai-node#1030",
    "Vercel and Strands: throw on a PDF in the history",
    "gsd-2#2874, claude-code#34120, pi#401",
    "LiteLLM: force_base64",
    "pydantic-ai: files of one provider only",
    "docker-agent#2819",
    # server tools, citations, refusals, caching
    "LangChain: passes server tools on, LiteLLM: makes them ordinary calls",
    "LangChain: strips citations for others",
    "LangChain: keeps refusals for Responses only",
    "sub2api#176, zeph#1568, pydantic-ai: limits cache points",
    "LiteLLM and any-llm: strip cache_control",
    "context-guru#24, tsforge#277, oh-my-pi#6998",
    "magic-context#419",
    # turns that never ended
    "opencode#42735, oh-my-pi#2145",
    "opencode#38620",
    "OmniRoute#7929, gajae#115, openclaw#116987",
    # the whole
    "Kiro#8884",
)

ELSEWHERE: Final[Mapping[str, str]] = {
    "llm: two ciphertexts of one item in a stream": "the stream decoder keeps the last one",
    "hindsight#3121": "a fallback's options, not its history",
    "claude-relay#967": "the codec puts a signature beside the call and not into it",
    "CLIProxyAPI#2104": "the codec writes the name of the call that a result answers",
    "aimux#127": "the codec writes the name of the call that a result answers",
    "vellum#26282": "the dialect decides whether the codec writes an id",
    "gcli2api#406": "the stream decoder counts calls itself",
    "langchain#31657": "`prepare` refuses a conversation without anything to send",
    "chatgpt-md#189": "the dialect has the role of the system prompt",
    "PI-Desktop#30": "the dialect has the role of the system prompt",
    "pi#2946": "the dialect has the role of the system prompt",
    "pi#5456": "the dialect has the role of the system prompt",
    "control characters that a database refuses": "JSON carries them; no provider is known to refuse them",
    "docker-agent#2819": "the size of a body is known when it is written; `classify` distinguishes it from an overflow",
    "OmniRoute#7929": "the client retries without signatures",
    "gajae#115": "the client retries without signatures",
    "openclaw#116987": "the client retries without signatures",
}

BY_TESTS: Final = {
    "zeroclaw#10786": test_failures_reasoning.test_thinking_of_earlier_turns_is_not_rewritten,
    "magic-context#125": test_failures_reasoning.test_thinking_of_earlier_turns_is_not_rewritten,
    "pi-condense#3": test_failures_media.test_eviction_changes_the_prefix_once_a_step_and_not_once_a_turn,
    "magic-context#419": test_failures_media.test_eviction_changes_the_prefix_once_a_step_and_not_once_a_turn,
    "context-guru#24": test_failures_media.test_a_growing_history_begins_as_the_last_request_did,
    "tsforge#277": test_failures_media.test_a_growing_history_begins_as_the_last_request_did,
    "oh-my-pi#6998": test_failures_media.test_a_growing_history_begins_as_the_last_request_did,
    "LiteLLM: results from a set": test_the_same_history_gives_the_same_request_in_every_process,
    "Kiro#8884": test_one_bad_message_does_not_make_later_requests_fail,
}
"""Threads that ask for a property and not for a history: the test that holds it."""

TABLES: Final[tuple[Mapping[str, Row], ...]] = (
    test_failures_reasoning.ROWS,
    test_failures_items.ROWS,
    test_failures_pairing.ROWS,
    test_failures_turns.ROWS,
    test_failures_media.ROWS,
    SWITCHES,
)


def threads(line: str) -> set[str]:
    return {name.strip() for name in line.split(",")}


def test_every_known_failure_is_a_row_or_is_handled_elsewhere():
    known = set().union(*map(threads, KNOWN))
    rows = set().union(*(row.thread_names() for table in TABLES for row in table.values()))
    assert known - rows - ELSEWHERE.keys() - BY_TESTS.keys() == set()
    assert rows - known == set(), "a row names a thread that is not listed"
    assert ELSEWHERE.keys() - known == set()
    assert BY_TESTS.keys() - known == set()
    assert ELSEWHERE.keys() & (rows | BY_TESTS.keys()) == set(), "a row that is listed under ELSEWHERE"


def test_a_thread_that_a_test_holds_is_named_by_it():
    for name, test in BY_TESTS.items():
        assert name.partition(":")[0] in (test.__doc__ or ""), name
