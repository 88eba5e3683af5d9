"""Thinking and signatures that reached a model which did not produce them, or were not replayed to the one that did.

What providers answered: "Invalid `signature` in `thinking` block", "Corrupted thought signature.", "This model doesn't
support the reasoningContent.reasoningText.signature field", "Expected `thinking` or `redacted_thinking`, but found
`tool_use`", "thinking or redacted_thinking blocks in the latest assistant message cannot be modified", "The
`reasoning_content` in the thinking mode must be passed back to the API."          (threads in each row, read 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import pytest

from projection.building import (
    BEDROCK_DEEPSEEK,
    BEDROCK_GLM,
    BEDROCK_KIMI,
    BEDROCK_OSS,
    BEDROCK_SONNET,
    DEEPSEEK,
    FABLE,
    GEMINI,
    GEMINI_2,
    GLM,
    GPT,
    GPT_4O,
    GPT_CHAT,
    GROQ,
    KIMI,
    LLAMA_CPP,
    MINIMAX,
    MISTRAL,
    OPUS,
    QWEN,
    SONNET,
    TARGETS,
    TEXTS,
    VERTEX_SONNET,
    assistant,
    call,
    conversation,
    native,
    redacted,
    result,
    text,
    thinking,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.content import AssistantContent, TextContent
from segue.conversation.context import Options
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project
from segue.projection.requirements import ThinkingOff

PROXY_OPUS: Final = Model("claude-opus-4-5", "some-proxy", "anthropic-messages", reasoning=True)
CHAT_SONNET: Final = Model("claude-sonnet-4-5", "anthropic", "openai-chat", reasoning=True)
MISTRAL_OVER_CHAT: Final = Model("magistral-medium-latest", "mistral", "openai-chat", reasoning=True)
THINK: Final = Options(thinking="high")


def has_no_thinking(projection: Projection) -> bool:
    return all(piece.kind != "thinking" for message in projection.context.messages for piece in message.content)


def has_no_tags(projection: Projection) -> bool:
    return "think>" not in repr(projection.context) and "thinking>" not in repr(projection.context)


ACROSS: Final[Mapping[str, Row]] = {
    "a signature of one Claude never reaches another Claude of the same provider": Row(
        threads="llxprt-code#2335, UncommonRoute#19, anthropic-sdk-python#1598",
        given=(user("hi"), assistant(OPUS, thinking("Let me see.", "opus-sig"), "Hello."), user("ok")),
        targets=(SONNET, FABLE),
        sends=(user("hi"), assistant(OPUS, "Let me see.", "Hello."), user("ok")),
        lacks=("opus-sig",),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "signed thinking is not sent as redacted thinking instead": Row(
        threads="llxprt-code#2337",
        given=(user("hi"), assistant(OPUS, thinking("Let me see.", "opus-sig"), "Hello."), user("ok")),
        targets=(SONNET, FABLE),
        policy=Policy(reasoning="drop"),
        sends=(user("hi"), assistant(OPUS, "Hello."), user("ok")),
        lacks=("opus-sig",),
        reports=("thinking_dropped at messages[1].content[0]",),
    ),
    "a fake signature of an Anthropic-compatible provider never reaches Anthropic": Row(
        threads="opencode#6418, 9router#922",
        given=(user("hi"), assistant(MINIMAX, thinking("Let me see.", "fake-sig"), "Hello."), user("ok")),
        targets=(SONNET, FABLE, OPUS),
        sends=(user("hi"), assistant(MINIMAX, "Let me see.", "Hello."), user("ok")),
        lacks=("fake-sig",),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "the same id behind a proxy is another model": Row(
        threads="opencode#6418, 9router#922",
        given=(user("hi"), assistant(PROXY_OPUS, thinking("Let me see.", "proxy-sig"), "Hello."), user("ok")),
        targets=(OPUS,),
        sends=(user("hi"), assistant(PROXY_OPUS, "Let me see.", "Hello."), user("ok")),
        lacks=("proxy-sig",),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "the same id over another protocol is another model: its signature is the name of a field": Row(
        threads="opencode#6418",
        given=(user("hi"), assistant(CHAT_SONNET, thinking("Let me see.", "reasoning_content"), "Hello."), user("ok")),
        targets=(SONNET,),
        sends=(user("hi"), assistant(CHAT_SONNET, "Let me see.", "Hello."), user("ok")),
        lacks=("reasoning_content",),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "Gemini gets no signature of Claude, though its calls need one": Row(
        threads="9router#4136, CLIProxyAPI#994, LiteLLM and Strands: Claude signatures in thoughtSignature",
        given=(
            user("hi"),
            assistant(SONNET, thinking("Let me see.", "claude-sig"), call("a"), call("b")),
            result("a", "1"),
            result("b", "2"),
        ),
        targets=(GEMINI,),
        sends=(
            user("hi"),
            assistant(SONNET, thinking("Let me see."), call("a", signature=TEXTS.call_signature), call("b")),
            result("a", "1"),
            result("b", "2"),
        ),
        lacks=("claude-sig",),
        reports=(
            "thinking_unsigned at messages[1].content[0]",
            "signature_placeholder at messages[1].content[1]",
        ),
    ),
    "a call with the id of an earlier signed call does not inherit its signature": Row(
        threads="CLIProxyAPI#994",
        given=(
            user("hi"),
            assistant(GEMINI, call("call_0", signature="gemini-sig")),
            result("call_0", "1"),
            assistant(SONNET, call("call_0")),
            result("call_0", "2"),
        ),
        targets=(GEMINI,),
        sends=(
            user("hi"),
            assistant(GEMINI, call("call_0", signature="gemini-sig")),
            result("call_0", "1"),
            assistant(SONNET, call("call_0", signature=TEXTS.call_signature)),
            result("call_0", "2"),
        ),
        reports=("signature_placeholder at messages[3].content[0]",),
    ),
    "a signed call of Gemini's goes on with Claude, in the middle of its tool cycle": Row(
        threads="opencode-antigravity-auth#70",
        given=(
            user("hi"),
            assistant(GEMINI, thinking("Let me see.", "gemini-sig"), call("a", signature="gemini-sig")),
            result("a", "1"),
        ),
        targets=(SONNET, OPUS),
        options=THINK,
        sends=(user("hi"), assistant(GEMINI, "Let me see.", call("a")), result("a", "1")),
        lacks=("gemini-sig",),
        reports=(
            "thinking_as_text at messages[1].content[0]",
            "signature_removed at messages[1].content[1]",
        ),
        requires=(ThinkingOff(path=("options", "thinking")),),
    ),
    "on Bedrock the open models get Claude's thinking and no signature, not even an empty one": Row(
        threads="strands#682, strands#790, pi#1505",
        given=(user("hi"), assistant(BEDROCK_SONNET, thinking("Let me see.", "sig0"), "Hello."), user("ok")),
        targets=(BEDROCK_OSS, BEDROCK_KIMI, BEDROCK_GLM),
        sends=(user("hi"), assistant(BEDROCK_SONNET, thinking("Let me see."), "Hello."), user("ok")),
        reports=("thinking_unsigned at messages[1].content[0]",),
    ),
    "DeepSeek on Bedrock gets no reasoning content at all": Row(
        threads="strands#682, pi#1505",
        given=(user("hi"), assistant(BEDROCK_SONNET, thinking("Let me see.", "sig0"), "Hello."), user("ok")),
        targets=(BEDROCK_DEEPSEEK,),
        sends=(user("hi"), assistant(BEDROCK_SONNET, "Let me see.", "Hello."), user("ok")),
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "redacted thinking is dropped for another model": Row(
        threads="pi#1665",
        given=(user("hi"), assistant(OPUS, redacted("payload"), "Hello."), user("ok")),
        targets=tuple(target for target in TARGETS.values() if target != OPUS),
        sends=(user("hi"), assistant(OPUS, "Hello."), user("ok")),
        lacks=("payload",),
        reports=("thinking_dropped at messages[1].content[0]",),
    ),
    "thinking shown as text carries no tags for the model to imitate": Row(
        threads="pydantic-ai#5869, pydantic-ai#6692",
        given=(user("hi"), assistant(GPT, thinking("Let me see.", "rs_1"), "Hello."), user("ok")),
        targets=(SONNET, FABLE, GPT_CHAT, GROQ),
        sends=(user("hi"), assistant(GPT, "Let me see.", "Hello."), user("ok")),
        holds=has_no_tags,
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "and can be removed": Row(
        threads="pydantic-ai#5869, pydantic-ai#6692",
        given=(user("hi"), assistant(GPT, thinking("Let me see.", "rs_1"), "Hello."), user("ok")),
        targets=tuple(target for target in TARGETS.values() if target != GPT),
        policy=Policy(reasoning="drop"),
        sends=(user("hi"), assistant(GPT, "Hello."), user("ok")),
        reports=("thinking_dropped at messages[1].content[0]",),
    ),
    "a strict vendor of the chat wire gets no reasoning of others": Row(
        threads="qwen-code#3304, qwen-code#3315, suitenumerique#402, suitenumerique#439, strands#1150",
        given=(user("hi"), assistant(DEEPSEEK, thinking("Let me see.", "reasoning_content"), "Hello."), user("ok")),
        targets=(GROQ, GPT_CHAT, MISTRAL_OVER_CHAT),
        sends=(user("hi"), assistant(DEEPSEEK, "Let me see.", "Hello."), user("ok")),
        holds=has_no_thinking,
        reports=("thinking_as_text at messages[1].content[0]",),
    ),
    "nor is it sent to a model that does not reason": Row(
        threads="strands#1150",
        given=(user("hi"), assistant(DEEPSEEK, thinking("Let me see.", "reasoning_content"), "Hello."), user("ok")),
        targets=(MISTRAL, GPT_4O),
        sends=(user("hi"), assistant(DEEPSEEK, "Hello."), user("ok")),
        holds=has_no_thinking,
        reports=("thinking_dropped at messages[1].content[0]",),
    ),
    "a field that one provider of a protocol supports is not sent to another": Row(
        threads="qwen-code#3304, qwen-code#3315",
        given=(
            user("hi"),
            assistant(DEEPSEEK, "Hello.", extra={"openai-chat": {"reasoning_details": [{"type": "reasoning.text"}]}}),
            user("ok"),
        ),
        targets=(GROQ, GPT_CHAT, KIMI),
        sends=(user("hi"), assistant(DEEPSEEK, "Hello."), user("ok")),
        reports=("extra_removed at messages[1]",),
    ),
    "where reasoning is required on every turn, the thinking of other models is sent as reasoning": Row(
        threads="pi#3636, kimi-cli#2141, openclaw#73417, openclaude#878, langchain#35093, openai-agents#2669",
        given=(
            user("hi"),
            assistant(SONNET, thinking("Let me see.", "sig0"), call("a")),
            result("a", "ok"),
            assistant(SONNET, thinking("So it is.", "sig0"), "It is."),
            user("ok"),
        ),
        targets=(DEEPSEEK, KIMI),
        sends=(
            user("hi"),
            assistant(SONNET, thinking("Let me see."), call("a")),
            result("a", "ok"),
            assistant(SONNET, thinking("So it is."), "It is."),
            user("ok"),
        ),
        reports=(
            "thinking_unsigned at messages[1].content[0]",
            "thinking_unsigned at messages[3].content[0]",
        ),
    ),
    "readable reasoning passes from one open family to another": Row(
        threads="oh-my-pi#1995",
        given=(user("hi"), assistant(GLM, thinking("Let me see.", "reasoning_content"), "Hello."), user("ok")),
        targets=(QWEN, KIMI, BEDROCK_OSS),
        sends=(user("hi"), assistant(GLM, thinking("Let me see."), "Hello."), user("ok")),
        reports=("thinking_unsigned at messages[1].content[0]",),
    ),
}

OWN: Final[Mapping[str, Row]] = {
    "the same Claude at another provider gets its thinking back": Row(
        threads="pydantic-ai#3757",
        given=(
            user("hi"),
            assistant(BEDROCK_SONNET, thinking("Let me see.", "sig0"), call("a")),
            result("a", "ok"),
        ),
        targets=(SONNET, VERTEX_SONNET, BEDROCK_SONNET),
        options=THINK,
        sends=(
            user("hi"),
            assistant(BEDROCK_SONNET, thinking("Let me see.", "sig0"), call("a")),
            result("a", "ok"),
        ),
    ),
    "a signature without text is not an empty block": Row(
        threads="strands#2704, langchain#38638, langchain#38977, litellm#38809, langchain4j#6244",
        given=(user("hi"), assistant(SONNET, thinking("", "sig0"), "Hello."), user("ok")),
        targets=(SONNET, BEDROCK_SONNET, VERTEX_SONNET),
        sends=(user("hi"), assistant(SONNET, thinking("", "sig0"), "Hello."), user("ok")),
    ),
    "signed thinking is replayed unchanged: spaces, tabs, control characters, rare scripts": Row(
        threads="claude-code#63203, strands#3425",
        given=(
            user("hi"),
            assistant(SONNET, thinking(" a \t\n\n\x00\u200b e\u0301 🙈 \n", "sig0=="), text("  Hello. \n"), call("a")),
            result("a", "ok"),
        ),
        targets=(SONNET, BEDROCK_SONNET),
        sends=(
            user("hi"),
            assistant(SONNET, thinking(" a \t\n\n\x00\u200b e\u0301 🙈 \n", "sig0=="), text("  Hello. \n"), call("a")),
            result("a", "ok"),
        ),
    ),
    "two adjacent signed blocks stay two": Row(
        threads="strands#3425",
        given=(user("hi"), assistant(SONNET, thinking("a", "sig-1"), thinking("b", "sig-2"), "Hello."), user("ok")),
        targets=(SONNET, BEDROCK_SONNET),
        sends=(user("hi"), assistant(SONNET, thinking("a", "sig-1"), thinking("b", "sig-2"), "Hello."), user("ok")),
    ),
    "a signed block that cannot be sent unchanged is removed, not repaired": Row(
        threads="claude-code#63203",
        given=(user("hi"), assistant(SONNET, thinking("cut \ud83d", "sig0"), "Hello."), user("ok")),
        targets=(SONNET,),
        sends=(user("hi"), assistant(SONNET, "Hello."), user("ok")),
        lacks=("sig0",),
        reports=("signed_block_unusable at messages[1].content[0]",),
    ),
    "the other signed blocks of that turn are removed with it": Row(
        threads="claude-code#63203",
        given=(
            user("hi"),
            assistant(SONNET, thinking("cut \ud83d", "sig-1"), thinking("b", "sig-2"), "Hello."),
            user("ok"),
        ),
        targets=(SONNET,),
        sends=(user("hi"), assistant(SONNET, "b", "Hello."), user("ok")),
        lacks=("sig-1", "sig-2"),
        reports=(
            "signed_block_unusable at messages[1].content[0]",
            "thinking_as_text at messages[1].content[1]",
        ),
    ),
    "thinking between the provider's own tools keeps its order": Row(
        threads="litellm#23047",
        given=(
            user("hi"),
            assistant(
                SONNET,
                thinking("first", "sig-1"),
                native("anthropic-messages", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}),
                native("anthropic-messages", {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1"}),
                thinking("second", "sig-2"),
                text("Hello."),
                call("toolu_1"),
            ),
            result("toolu_1", "ok"),
        ),
        targets=(SONNET,),
        holds=lambda projection: (
            [piece.kind for piece in projection.context.messages[1].content]
            == ["thinking", "native", "native", "thinking", "text", "toolCall"]
        ),
    ),
    "redacted thinking is replayed to its model": Row(
        threads="pi#1665",
        given=(user("hi"), assistant(OPUS, redacted("payload"), thinking("a", "sig0"), "Hello."), user("ok")),
        targets=(OPUS,),
        sends=(user("hi"), assistant(OPUS, redacted("payload"), thinking("a", "sig0"), "Hello."), user("ok")),
    ),
    "empty thinking without a signature is always removed": Row(
        threads="opencode#11571",
        given=(user("hi"), assistant(SONNET, thinking(""), "Hello."), user("ok")),
        targets=tuple(TARGETS.values()),
        sends=(user("hi"), assistant(SONNET, "Hello."), user("ok")),
        reports=("thinking_blank at messages[1].content[0]",),
    ),
    "blank thinking is sent to no model, including its own": Row(
        threads="opencode#11571",
        given=(user("hi"), assistant(LLAMA_CPP, thinking("\n"), "Hello."), user("ok")),
        targets=(LLAMA_CPP,),
        sends=(user("hi"), assistant(LLAMA_CPP, "Hello."), user("ok")),
        reports=("thinking_blank at messages[1].content[0]",),
    ),
    "a local model gets its reasoning back, so that its template gives the same prefix": Row(
        threads="Crow#60",
        given=(
            user("hi"),
            assistant(LLAMA_CPP, thinking("Let me see.", "reasoning_content"), call("a")),
            result("a", "ok"),
            assistant(LLAMA_CPP, thinking("So."), "It is."),
            user("ok"),
        ),
        targets=(LLAMA_CPP,),
        sends=(
            user("hi"),
            assistant(LLAMA_CPP, thinking("Let me see.", "reasoning_content"), call("a")),
            result("a", "ok"),
            assistant(LLAMA_CPP, thinking("So."), "It is."),
            user("ok"),
        ),
    ),
}

CYCLES: Final[Mapping[str, Row]] = {
    "a tool cycle that another model opened is finished without thinking": Row(
        threads="opencode#3077, litellm#15601, openai-agents#1704, pydantic-ai#2040, pydantic-ai#2075, kilocode#5219",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        targets=(SONNET, OPUS, BEDROCK_SONNET),
        options=THINK,
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        requires=(ThinkingOff(path=("options", "thinking")),),
        reports=(),
    ),
    "the turn that opened the cycle decides, not the last one in it": Row(
        threads="opencode#3077, kilocode#5219",
        given=(
            user("hi"),
            assistant(GPT, call("a")),
            result("a", "1"),
            assistant(SONNET, thinking("So.", "sig0"), call("b")),
            result("b", "2"),
        ),
        targets=(SONNET,),
        options=THINK,
        requires=(ThinkingOff(path=("options", "thinking")),),
    ),
    "a cycle that the target opened with thinking goes on with thinking": Row(
        threads="litellm#15601",
        given=(
            user("hi"),
            assistant(GPT, call("a")),
            result("a", "1"),
            assistant(GPT, "It is."),
            user("and b?"),
            assistant(SONNET, thinking("So.", "sig0"), call("b")),
            result("b", "2"),
        ),
        targets=(SONNET,),
        options=THINK,
    ),
    "after the next user message it can think again": Row(
        threads="pydantic-ai#2040",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "ok"), assistant(GPT, "It is."), user("and now?")),
        targets=(SONNET, OPUS, BEDROCK_SONNET),
        options=THINK,
    ),
    "nothing is asked of a caller who did not want thinking": Row(
        threads="openai-agents#1704",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        targets=(SONNET, BEDROCK_SONNET),
        options=Options(thinking="off"),
    ),
    "newer Claudes do not mind": Row(
        threads="opencode#3077",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        targets=(FABLE,),
        options=THINK,
    ),
    "a cycle whose signed thinking is removed has no thinking": Row(
        threads="opencode#3077",
        given=(user("hi"), assistant(OPUS, thinking("hm", "sig0"), call("a")), result("a", "ok")),
        targets=(SONNET,),
        options=Options(thinking=4096),
        lacks=("sig0",),
        reports=("thinking_as_text at messages[1].content[0]",),
        requires=(ThinkingOff(path=("options", "thinking")),),
    ),
}

ROWS: Final = {**ACROSS, **OWN, **CYCLES}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_thinking_is_replayed_converted_or_removed(row: Row):
    prove(row)


GROWING: Final = {
    "old Claude": SONNET,
    "new Claude": FABLE,
    "GPT": GPT,
    "Gemini 2": GEMINI_2,
    "Gemini 3": GEMINI,
    "Kimi": KIMI,
    "DeepSeek": DEEPSEEK,
    "gpt-oss on a local server": LLAMA_CPP,
    "Claude at Bedrock": BEDROCK_SONNET,
}


@pytest.mark.parametrize("model", GROWING.values(), ids=GROWING.keys())
@pytest.mark.parametrize("writer", [None, OPUS], ids=["of its own", "of another model"])
def test_thinking_of_earlier_turns_is_not_rewritten(model: Model, writer: Model | None):
    """zeroclaw#10786, magic-context#125, pi-condense#3: the cached prefix ended at the system prompt."""
    speaker = writer or model
    turns = (
        user("one"),
        assistant(speaker, thinking("a", "sig0"), call("c1")),
        result("c1", "1"),
        assistant(speaker, thinking("b", "sig0"), "One."),
        user("two"),
        assistant(speaker, thinking("c", "sig0"), "Two."),
        user("three"),
    )
    asked = [index + 1 for index, message in enumerate(turns) if message.role in ("user", "toolResult")]
    sent = [project(conversation(*turns[:end]), model).context.messages for end in asked]
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier


PHASE: Final = TextContent(text="first", phase="of OPUS")
ALONE: Final[Mapping[str, tuple[AssistantContent, Model]]] = {
    "a signature of a text": (text("a page", "of OPUS"), GPT),
    "a signature of a call": (call("a", signature="of OPUS"), GPT_4O),
    "a phase, which the target's own texts may have": (PHASE, GPT),
    "thinking, which the target takes as it is": (thinking("of OPUS"), GEMINI),
    "a phase of what is sent for a native block": (native("x-wire", {"type": "x"}, PHASE), GPT),
}


@pytest.mark.parametrize(("piece", "model"), ALONE.values(), ids=ALONE.keys())
def test_what_only_another_model_may_send_is_removed_where_nothing_else_changes(piece: AssistantContent, model: Model):
    given = conversation(user("hi"), assistant(OPUS, text("first"), piece), user("on"))
    sent = project(given, model, policy=Policy(reasoning="drop")).context.messages[1]
    assert "of OPUS" not in repr(sent.content)
