"""Roles in the wrong order, system text in the wrong place, turns without text, turns that never ended.

What providers answered: "roles must alternate between "user" and "assistant"", "Unexpected role 'user' after role
'tool'", "Expected last role User or Tool", "System message must be at the beginning.", "This model does not support
assistant message prefill", "text content blocks must be non-empty", "no low surrogate in string", "Extra inputs are not
permitted", "thinking.signature: Field required".                                (threads in each row, read 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from projection.building import (
    BEDROCK_DEEPSEEK,
    BEDROCK_NOVA,
    BEDROCK_OSS,
    BEDROCK_SONNET,
    EDITOR,
    FABLE,
    GEMINI_2,
    GPT,
    GPT_4O,
    GPT_CHAT,
    KIMI,
    MISTRAL,
    MISTRAL_CHAT,
    NIM_MISTRAL,
    OLLAMA,
    OPUS,
    PERPLEXITY,
    QWEN,
    SONNET,
    TARGETS,
    TEXTS,
    VLLM_MISTRAL,
    assistant,
    call,
    call_with,
    calls_of,
    conversation,
    missing,
    native,
    result,
    results_of,
    system,
    text,
    thinking,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.content import TextContent
from segue.conversation.context import ToolDefinition

CITED: Final = {"anthropic-messages": {"tool_call_ids": ["a"]}}
HALF: Final = "na\ud83d"
BRIEF: Final = "<system>\nbe brief\n</system>"

SEARCH: Final = native(
    "anthropic-messages", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
)
"""What the server was doing when it paused."""


ORDER: Final[Mapping[str, Row]] = {
    "consecutive user messages are one turn where turns alternate": Row(
        threads="coai#209, OpenManus#580, vllm#6862",
        given=conversation(user("one"), user("two"), assistant(GPT, "Hello."), user("three"), user("four")),
        targets=(PERPLEXITY, VLLM_MISTRAL, GEMINI_2, BEDROCK_NOVA, BEDROCK_SONNET),
        sends=(user("one", "two"), assistant(GPT, "Hello."), user("three", "four")),
        reports=("turn_merged at messages[1]", "turn_merged at messages[4]"),
    ),
    "neighbouring turns of the assistant are parted there": Row(
        threads="OpenManus#580, vllm#6862",
        given=conversation(user("one"), assistant(GPT, "a"), assistant(GPT, "b"), user("two")),
        targets=(PERPLEXITY, VLLM_MISTRAL, GEMINI_2, BEDROCK_NOVA, BEDROCK_SONNET),
        sends=(user("one"), assistant(GPT, "a"), user(TEXTS.last_turn), assistant(GPT, "b"), user("two")),
        reports=("turn_inserted at messages[1]",),
    ),
    "where they need not alternate both stay as they are": Row(
        threads="coai#209",
        given=(user("one"), user("two"), assistant(GPT, "a"), assistant(GPT, "b"), user("three")),
        targets=(SONNET, FABLE, GPT, GPT_4O, KIMI, OLLAMA),
        sends=(user("one"), user("two"), assistant(GPT, "a"), assistant(GPT, "b"), user("three")),
    ),
    "Mistral at other hosts gets a short assistant turn between a tool result and a user turn": Row(
        threads="zed#37021, hermes#20154, hermes#84944, mistral-vibe#578",
        given=(user("hi"), assistant(NIM_MISTRAL, call("abcdef123")), result("abcdef123", "ok"), user("stop")),
        targets=(NIM_MISTRAL,),
        sends=(
            user("hi"),
            assistant(NIM_MISTRAL, call("abcdef123")),
            result("abcdef123", "ok"),
            assistant(NIM_MISTRAL, TEXTS.bridge),
            user("stop"),
        ),
        reports=("turn_inserted at messages[2]",),
    ),
    "also where segue itself answered the call": Row(
        threads="hermes#20154",
        given=(user("hi"), assistant(NIM_MISTRAL, call("abcdef123")), user("stop")),
        targets=(NIM_MISTRAL,),
        sends=(
            user("hi"),
            assistant(NIM_MISTRAL, call("abcdef123")),
            missing("abcdef123"),
            assistant(NIM_MISTRAL, TEXTS.bridge),
            user("stop"),
        ),
        reports=("result_missing at messages[1]", "turn_inserted at messages[1]"),
    ),
    "Mistral's own service gets the user turn right after the tool result": Row(
        threads="hermes#20154",
        given=(user("hi"), assistant(MISTRAL, call("abcdef123")), result("abcdef123", "ok"), user("stop")),
        targets=(MISTRAL, MISTRAL_CHAT),
        sends=(user("hi"), assistant(MISTRAL, call("abcdef123")), result("abcdef123", "ok"), user("stop")),
    ),
    "a last assistant turn is followed by a short user turn, at Mistral": Row(
        threads="rig#1130",
        given=(user("hi"), assistant(GPT, "Hello.")),
        targets=(MISTRAL, VLLM_MISTRAL),
        sends=(user("hi"), assistant(GPT, "Hello."), user(TEXTS.last_turn)),
        reports=("turn_inserted at messages[1]",),
    ),
    "and where an answer cannot be begun for the model": Row(
        threads="llxprt#1977, llxprt#3695, copilot-api#261, hermes#50055",
        given=(user("hi"), assistant(SONNET, "The answer is")),
        targets=(FABLE, EDITOR, BEDROCK_DEEPSEEK),
        sends=(user("hi"), assistant(SONNET, "The answer is"), user(TEXTS.last_turn)),
        reports=("turn_inserted at messages[1]",),
    ),
    "where it can, it is": Row(
        threads="llxprt#1977",
        given=(user("hi"), assistant(SONNET, "The answer is")),
        targets=(SONNET, OPUS, BEDROCK_SONNET, GPT, GPT_4O),
        sends=(user("hi"), assistant(SONNET, "The answer is")),
    ),
    "the space at its end goes, also with a signature that the target does not get": Row(
        threads="langchain#35071",
        given=(user("hi"), assistant(SONNET, TextContent(text="The answer is ", text_signature="sig"))),
        targets=(SONNET,),
        sends=(user("hi"), assistant(SONNET, TextContent(text="The answer is", text_signature="sig"))),
        reports=("final_space at messages[1].content[0]",),
    ),
    "a turn that the provider paused is sent back as it is": Row(
        threads="copilot-api#261",
        given=(user("hi"), assistant(FABLE, "Searching", SEARCH, raw_stop="pause_turn")),
        targets=(FABLE,),
        sends=(user("hi"), assistant(FABLE, "Searching", SEARCH, raw_stop="pause_turn")),
    ),
    "a first assistant turn is preceded by a short user turn": Row(
        threads="hermes#41985",
        given=(assistant(GPT, "Welcome."), user("hi")),
        targets=(BEDROCK_NOVA, BEDROCK_OSS, GEMINI_2, MISTRAL),
        sends=(user(TEXTS.first_turn), assistant(GPT, "Welcome."), user("hi")),
        reports=("turn_inserted at messages",),
    ),
}

SYSTEM: Final[Mapping[str, Row]] = {
    "instructions in mid-conversation stay where they are allowed": Row(
        threads="Rapid-MLX#1543, Qwen3.8#164, langchain#38849",
        given=(
            user("hi"),
            assistant(GPT, "Hello."),
            user("more"),
            system("be brief"),
            assistant(GPT, "No."),
            user("ok"),
        ),
        targets=(FABLE, GPT, GPT_CHAT, KIMI),
        sends=(
            user("hi"),
            assistant(GPT, "Hello."),
            user("more"),
            system("be brief"),
            assistant(GPT, "No."),
            user("ok"),
        ),
    ),
    "where they are not they are the user's, in their place": Row(
        threads="Rapid-MLX#1543, Qwen3.8#164, langchain#38849",
        given=(
            user("hi"),
            assistant(GPT, "Hello."),
            user("more"),
            system("be brief"),
            assistant(GPT, "No."),
            user("ok"),
        ),
        targets=(SONNET, QWEN, MISTRAL),
        sends=(user("hi"), assistant(GPT, "Hello."), user("more"), user(BRIEF), assistant(GPT, "No."), user("ok")),
        reports=("system_as_user at messages[3]",),
    ),
    "and are merged with user turns where roles alternate": Row(
        threads="langchain#38849",
        given=(
            user("hi"),
            assistant(GPT, "Hello."),
            user("more"),
            system("be brief"),
            assistant(GPT, "No."),
            user("ok"),
        ),
        targets=(GEMINI_2, BEDROCK_NOVA, VLLM_MISTRAL),
        sends=(user("hi"), assistant(GPT, "Hello."), user("more", BRIEF), assistant(GPT, "No."), user("ok")),
        reports=("system_as_user at messages[3]", "turn_merged at messages[3]"),
    ),
    "newer Claude models accept them after the user and before the assistant only": Row(
        threads="langchain#38849",
        given=(user("hi"), assistant(FABLE, "Hello."), system("be brief"), user("more")),
        targets=(FABLE,),
        sends=(user("hi"), assistant(FABLE, "Hello."), user(BRIEF), user("more")),
        reports=("system_as_user at messages[2]",),
    ),
    "and after a tool's result, which is the user's turn there": Row(
        threads="langchain#38849",
        given=(user("hi"), assistant(FABLE, call("toolu_1")), result("toolu_1", "ok"), system("be brief")),
        targets=(FABLE,),
        sends=(user("hi"), assistant(FABLE, call("toolu_1")), result("toolu_1", "ok"), system("be brief")),
    ),
    "they never move to the system prompt: the cached prefix stays": Row(
        threads="langchain#38849",
        given=conversation(
            user("hi"), assistant(GPT, "Hello."), user("x"), system("be brief"), system_prompt="You are kind."
        ),
        targets=(SONNET, QWEN),
        holds=lambda projection: projection.context.system_prompt == "You are kind.",
        reports=("system_as_user at messages[3]",),
    ),
}

EMPTY: Final[Mapping[str, Row]] = {
    "a blank text is removed, and its turn with it if it has no other content": Row(
        threads="arunalabs/mode#9, LiteLLM: fills empty texts",
        given=(user("hi"), assistant(GPT, "", call("a")), result("a", "ok"), user("", "and?"), user("  ")),
        targets=(SONNET, FABLE, EDITOR),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "ok"), user("and?")),
        reports=(
            "text_blank at messages[1].content[0]",
            "text_blank at messages[3].content[0]",
            "text_blank at messages[4].content[0]",
            "turn_empty at messages[4]",
        ),
    ),
    "an assistant turn without anything goes": Row(
        threads="pydantic-ai and strands: leave out empty turns",
        given=(user("hi"), assistant(GPT), user("again")),
        targets=(SONNET, GPT, GPT_4O, MISTRAL, KIMI, OLLAMA),
        sends=(user("hi"), user("again")),
        reports=("turn_empty at messages[1]",),
    ),
    "and is a short text where the turns around it would merge": Row(
        threads="pydantic-ai and strands: leave out empty turns",
        given=(user("hi"), assistant(GPT), user("again")),
        targets=(GEMINI_2, BEDROCK_NOVA, BEDROCK_SONNET, VLLM_MISTRAL),
        sends=(user("hi"), assistant(GPT, TEXTS.empty_turn), user("again")),
        reports=("turn_filled at messages[1].content",),
    ),
    "white space in a turn that was signed is part of what was signed": Row(
        threads="vercel/ai: Bedrock turns with blank text beside reasoning",
        given=(
            user("hi"),
            assistant(BEDROCK_SONNET, thinking("hm", "sig0"), text("\n\n"), call("a")),
            result("a", "ok"),
        ),
        targets=(BEDROCK_SONNET,),
        sends=(
            user("hi"),
            assistant(BEDROCK_SONNET, thinking("hm", "sig0"), text("\n\n"), call("a")),
            result("a", "ok"),
        ),
    ),
    "white space in a signed turn is refused where it is the only text": Row(
        threads="LibreChat: turns whose only text is blank",
        given=(
            user("hi"),
            assistant(SONNET, thinking("hm", "sig0"), text("\n\n"), call("a")),
            result("a", "ok"),
            assistant(SONNET, thinking("hm", "sig0"), text("so"), text("\n\n"), call("b")),
            result("b", "ok"),
        ),
        targets=(SONNET,),
        sends=(
            user("hi"),
            assistant(SONNET, thinking("hm", "sig0"), call("a")),
            result("a", "ok"),
            assistant(SONNET, thinking("hm", "sig0"), text("so"), text("\n\n"), call("b")),
            result("b", "ok"),
        ),
        reports=("text_blank at messages[1].content[1]",),
    ),
}

CHARACTERS: Final[Mapping[str, Row]] = {
    "keys that another provider's wire knew are not sent": Row(
        threads="LibreChat#6724",
        given=(user("hi"), assistant(KIMI, text("Hello.", extra=CITED)), user("ok")),
        targets=(GPT, GPT_4O, SONNET),
        sends=(user("hi"), assistant(KIMI, text("Hello.")), user("ok")),
        lacks=("tool_call_ids",),
        reports=("extra_removed at messages[1]",),
    ),
    "half a surrogate pair is nowhere in a request: words, names, arguments, output, tools": Row(
        threads="claude-code#1709, claude-code#1832, claude-code#3277, opencode#13985, Zoo-Code#1605",
        given=conversation(
            user("a\ud83d"),
            assistant(OPUS, "b\ude48", call_with("c", {"k\ud83d": {"deep": ["v\ud83d"]}})),
            result("c", "d\ud83d"),
            tools=(
                ToolDefinition(
                    name="read",
                    description="e\ud83d",
                    parameters={
                        "type": "object",
                        "properties": {"f": {"type": "object", "properties": {"f\ud83d": {"type": "string"}}}},
                    },
                ),
            ),
            system_prompt="g\ud83d",
        ),
        targets=(SONNET, FABLE, GPT, GPT_4O, KIMI, GEMINI_2, BEDROCK_SONNET, OLLAMA),
        lacks=("\\ud83d", "\\ude48"),
        holds=lambda projection: (
            projection.context.system_prompt == "g\ufffd"
            and projection.context.messages[0] == user("a\ufffd")
            and projection.context.messages[1].content[1] == call_with("c", {"k\ufffd": {"deep": ["v\ufffd"]}})
        ),
        reports=(
            "surrogate_replaced at messages[0].content[0]",
            "surrogate_replaced at messages[1].content[0]",
            "surrogate_replaced at messages[1].content[1]",
            "surrogate_replaced at messages[2].content[0]",
            "surrogate_replaced at tools[0]",
            "surrogate_replaced at system_prompt",
        ),
    ),
    "a name with half a pair is one name everywhere, and leads back to the given one": Row(
        threads="claude-code#1709",
        given=conversation(
            user("hi"),
            assistant(OPUS, call("a", HALF)),
            result("a", "ok", name=HALF),
            tools=(ToolDefinition(name=HALF, parameters={"type": "object", "properties": {}}),),
        ),
        targets=(SONNET, GPT, GPT_4O, GEMINI_2, OLLAMA),
        holds=lambda projection: (
            {piece.name for piece in calls_of(projection.context.messages)}
            == {message.tool_name for message in results_of(projection.context.messages)}
            == {tool.name for tool in projection.context.tools if tool.kind == "function"}
            == projection.tool_names.keys()
            and set(projection.tool_names.values()) == {HALF}
        ),
        reports=(
            "name_changed at messages[1].content[0].name",
            "name_changed at messages[2].tool_name",
            "name_changed at tools[0].name",
        ),
    ),
    "a whole pair is a character and stays": Row(
        threads="claude-code#1709",
        given=(user("a🙈"), assistant(OPUS, "🙈"), user("ok")),
        targets=tuple(TARGETS.values()),
        sends=(user("a🙈"), assistant(OPUS, "🙈"), user("ok")),
    ),
}

UNFINISHED: Final[Mapping[str, Row]] = {
    "thinking that was cut off before its signature is removed with its turn": Row(
        threads="opencode#42735, oh-my-pi#2145",
        given=(user("hi"), assistant(SONNET, thinking("hm"), stop="aborted"), user("go on")),
        targets=(SONNET, FABLE, GPT),
        sends=(user("hi"), user("go on")),
        reports=("unfinished_turn at messages[1]",),
    ),
    "turns before an unfinished turn keep their thinking": Row(
        threads="oh-my-pi#2145",
        given=(
            user("hi"),
            assistant(SONNET, thinking("hm", "sig0"), "Hello."),
            user("more"),
            assistant(SONNET, thinking("so"), stop="aborted"),
            user("go on"),
        ),
        targets=(SONNET,),
        sends=(user("hi"), assistant(SONNET, thinking("hm", "sig0"), "Hello."), user("more"), user("go on")),
        reports=("unfinished_turn at messages[3]",),
    ),
    "the calls of a failed turn go with its thinking": Row(
        threads="opencode#38620",
        given=(
            user("hi"),
            assistant(SONNET, thinking("hm"), call("a"), stop="error", error="overloaded_error"),
            result("a", "ok"),
            user("again"),
        ),
        targets=(SONNET, FABLE, GPT),
        sends=(user("hi"), user("again")),
        reports=("unfinished_turn at messages[1]", "unfinished_result at messages[2]"),
    ),
    "the error message of one provider is not sent to the next": Row(
        threads="coai#209",
        given=(user("hi"), assistant(SONNET, stop="error", error="roles must alternate"), user("again")),
        targets=(GEMINI_2, BEDROCK_NOVA, VLLM_MISTRAL),
        sends=(user("hi", "again"),),
        lacks=("roles must alternate",),
        reports=("unfinished_turn at messages[1]", "turn_merged at messages[2]"),
    ),
}

ROWS: Final = {**ORDER, **SYSTEM, **EMPTY, **CHARACTERS, **UNFINISHED}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_turns_are_in_an_order_that_the_target_accepts(row: Row):
    prove(row)
