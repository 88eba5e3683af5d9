"""Calls without results, results without calls, ids and names and arguments that were refused.

What providers answered: "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected
`tool_use_id` found in `tool_result` blocks", "Messages with role 'tool' must be a response to a preceding message with
'tool_calls'", "each tool_use must have a single result", "String should match pattern '^[a-zA-Z0-9_-]+$'", "must be
a-z, A-Z, 0-9, with a length of 9", "Input should be a valid dictionary", "The toolConfig field must be defined when
using toolUse and toolResult content blocks."                                    (threads in each row, read 2026-11)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from projection.building import (
    BEDROCK_NOVA,
    BEDROCK_SONNET,
    DEEPSEEK,
    FABLE,
    GEMINI_2,
    GPT,
    GPT_4O,
    GPT_CHAT,
    KIMI,
    MAGISTRAL,
    MISTRAL,
    NVIDIA,
    OLLAMA,
    OPUS,
    READ,
    SONNET,
    TARGETS,
    VLLM_MISTRAL,
    assistant,
    call,
    calls_of,
    conversation,
    is_paired,
    missing,
    native,
    result,
    results_of,
    text,
    thinking,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.context import Options, ToolDefinition
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project

MCP: Final = "files.server/read"
LONG_NAME: Final = "mcp__" + "a" * 70
SEARCH: Final = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "cats"}}
FOUND: Final = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []}


def wire_ids(pattern: str) -> Callable[[Projection], bool]:
    """Check that ids match one pattern, are all different, and each result follows its call."""

    def holds(projection: Projection) -> bool:
        sent = projection.context.messages
        ids = [piece.id for piece in calls_of(sent)]
        return is_paired(sent) and len(set(ids)) == len(ids) and all(re.fullmatch(pattern, given) for given in ids)

    return holds


def one_name(projection: Projection) -> bool:
    """Ask whether tool, choice, call and result bear one name, and whether it leads back to the given one."""
    context = projection.context
    names = {piece.name for piece in calls_of(context.messages)}
    names |= {message.tool_name for message in results_of(context.messages)}
    names |= {tool.name for tool in context.tools if tool.kind == "function"}
    names |= {str(projection.options.tool_choice)}
    given = {projection.tool_names.get(name) for name in names}
    return (
        len(names) == 1
        and len(given) == 1
        and all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names)
        and given <= {MCP, LONG_NAME, "search"}
    )


def contains(*words: str) -> Callable[[Projection], bool]:
    def holds(projection: Projection) -> bool:
        sent = [
            piece.text for message in projection.context.messages for piece in message.content if piece.kind == "text"
        ]
        return [piece for piece in sent if piece in words] == list(words)

    return holds


PAIRS: Final[Mapping[str, Row]] = {
    "a call that was interrupted is answered by an error, the same every time": Row(
        threads="claude-code#1237, kilocode#5163",
        given=(user("hi"), assistant(SONNET, "Looking.", call("toolu_1")), user("stop")),
        targets=(SONNET, FABLE, BEDROCK_SONNET, OPUS),
        sends=(user("hi"), assistant(SONNET, "Looking.", call("toolu_1")), missing("toolu_1"), user("stop")),
        reports=("result_missing at messages[1]",),
    ),
    "over chat as well, one for each call": Row(
        threads="ellmer#459",
        given=(user("hi"), assistant(GPT_CHAT, call("call_1"), call("call_2")), user("stop")),
        targets=(GPT_CHAT, GPT_4O, DEEPSEEK),
        sends=(
            user("hi"),
            assistant(GPT_CHAT, call("call_1"), call("call_2")),
            missing("call_1"),
            missing("call_2"),
            user("stop"),
        ),
        reports=("result_missing at messages[1]",),
    ),
    "a result without its call goes": Row(
        threads="eca#209, cline#7225, positron#15719, openclaw#52024",
        given=(user("summary"), result("toolu_1", "lost"), assistant(SONNET, "Well."), user("ok")),
        targets=tuple(TARGETS.values()),
        sends=(user("summary"), assistant(SONNET, "Well."), user("ok")),
        reports=("result_orphaned at messages[1]",),
    ),
    "the results of a turn that failed go with it": Row(
        threads="pi#7777",
        given=(user("hi"), assistant(GPT_CHAT, call("call_1"), stop="error"), result("call_1", "ok"), user("again?")),
        targets=(GPT_CHAT, GPT, SONNET),
        sends=(user("hi"), user("again?")),
        reports=("unfinished_turn at messages[1]", "unfinished_result at messages[2]"),
    ),
    "text between a call and its result is kept, after the result": Row(
        threads="LiteLLM: deletes the user's message",
        given=(user("hi"), assistant(GPT, call("a")), user("hurry"), result("a", "1"), user("thanks")),
        targets=(SONNET, GPT, GPT_CHAT, KIMI),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "1"), user("hurry"), user("thanks")),
        reports=("result_moved at messages[3]",),
    ),
    "of two results for one call the first is sent": Row(
        threads="hindsight#4250, kilocode#3772",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", "1"), result("a", "2"), user("ok")),
        targets=(SONNET, FABLE, BEDROCK_SONNET, GPT),
        sends=(user("hi"), assistant(SONNET, call("a")), result("a", "1"), user("ok")),
        reports=("result_duplicate at messages[3]",),
    ),
    "or the last, if the policy says so, also if it comes late": Row(
        threads="hindsight#4250, kilocode#3772",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", "1"), user("and?"), result("a", "2"), user("ok")),
        targets=(SONNET, FABLE),
        policy=Policy(duplicate_results="last"),
        sends=(user("hi"), assistant(SONNET, call("a")), result("a", "2"), user("and?"), user("ok")),
        reports=("result_duplicate at messages[2]", "result_moved at messages[4]"),
    ),
    "an id that comes again in a later turn belongs to that turn": Row(
        threads="eca#233, pydantic-ai: pairs by response",
        given=(
            user("hi"),
            assistant(KIMI, call("functions.read:0"), call("functions.read:1")),
            result("functions.read:0", "1"),
            result("functions.read:1", "2"),
            assistant(KIMI, call("functions.read:0")),
            user("stop"),
            assistant(KIMI, call("functions.read:0")),
            result("functions.read:0", "4"),
        ),
        targets=(KIMI, GPT_4O),
        sends=(
            user("hi"),
            assistant(KIMI, call("functions.read:0"), call("functions.read:1")),
            result("functions.read:0", "1"),
            result("functions.read:1", "2"),
            assistant(KIMI, call("functions.read:0")),
            missing("functions.read:0"),
            user("stop"),
            assistant(KIMI, call("functions.read:0")),
            result("functions.read:0", "4"),
        ),
        reports=("result_missing at messages[4]",),
    ),
    "text is sent after the results, even if it came before them": Row(
        threads="vercel/ai#8318",
        given=(user("hi"), assistant(GPT, call("a"), call("b")), user("see:"), result("a", "1"), result("b", "2")),
        targets=(SONNET, FABLE),
        sends=(user("hi"), assistant(GPT, call("a"), call("b")), result("a", "1"), result("b", "2"), user("see:")),
        reports=("result_moved at messages[3]",),
    ),
    "text that another model wrote after its call is moved before it": Row(
        threads="vercel/ai#8318, xum#1437",
        given=(user("hi"), assistant(GPT, call("a"), "I looked."), result("a", "1")),
        targets=(SONNET, FABLE, BEDROCK_SONNET),
        holds=lambda projection: (
            [piece.kind for piece in projection.context.messages[1].content] == ["text", "toolCall"]
        ),
        reports=("call_moved at messages[1].content",),
    ),
    "text that the target itself wrote after its call is moved before it too": Row(
        threads="vercel/ai#8318",
        given=(user("hi"), assistant(SONNET, call("a"), "I looked."), result("a", "1")),
        targets=(SONNET, BEDROCK_SONNET),
        holds=lambda projection: (
            [piece.kind for piece in projection.context.messages[1].content] == ["text", "toolCall"]
        ),
        reports=("call_moved at messages[1].content",),
    ),
    "results of one batch stand together, whatever stood between them": Row(
        threads="any-llm: merges only what begins with a result",
        given=(
            user("hi"),
            assistant(GPT, call("a"), call("b")),
            result("a", "1"),
            user("one"),
            result("b", "2"),
            user("two"),
        ),
        targets=(SONNET, FABLE),
        sends=(
            user("hi"),
            assistant(GPT, call("a"), call("b")),
            result("a", "1"),
            result("b", "2"),
            user("one"),
            user("two"),
        ),
        reports=("result_moved at messages[4]",),
    ),
    "text beside a call is sent on every route": Row(
        threads="any-llm: drops the text beside calls",
        given=(
            user("hi"),
            assistant(OPUS, "I shall look.", call("abcdef123"), call("abcdef124")),
            result("abcdef123", "seen"),
            result("abcdef124", "as well"),
            assistant(OPUS, "It is."),
            user("ok"),
        ),
        targets=tuple(target for target in TARGETS.values() if target.id != "gemini-3.1-pro-preview"),
        holds=contains("I shall look.", "seen", "as well", "It is."),
    ),
    "an empty result is filled where it is refused": Row(
        threads="strands: Nemotron refuses an empty result",
        given=(user("hi"), assistant(GPT, call("a")), result("a"), user("ok")),
        targets=(NVIDIA, BEDROCK_NOVA),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "(no tool output)"), user("ok")),
        reports=("result_filled at messages[2].content",),
    ),
    "white space of any script is blank": Row(
        threads="strands: Nemotron refuses an empty result",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "\u3000\u2003"), user("ok")),
        targets=(BEDROCK_NOVA, BEDROCK_SONNET),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "(no tool output)"), user("ok")),
        reports=("text_blank at messages[2].content[0]", "result_filled at messages[2].content"),
    ),
    "a blank one as well": Row(
        threads="strands: Nemotron refuses an empty result",
        given=(user("hi"), assistant(GPT, call("a")), result("a", " \n"), user("ok")),
        targets=(BEDROCK_NOVA, BEDROCK_SONNET),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "(no tool output)"), user("ok")),
        reports=("text_blank at messages[2].content[0]", "result_filled at messages[2].content"),
    ),
}

IDS: Final[Mapping[str, Row]] = {
    "calls without ids get some from their place": Row(
        threads="pydantic-ai#895",
        given=(
            user("hi"),
            assistant(GEMINI_2, call(""), call("")),
            result("", "1"),
            result("", "2"),
            assistant(GEMINI_2, call("")),
            result("", "3"),
        ),
        targets=(GPT, GPT_4O, SONNET, KIMI),
        holds=wire_ids("[a-zA-Z0-9_-]+"),
        reports=(
            "id_changed at messages[1].content[0].id",
            "id_changed at messages[1].content[1].id",
            "id_changed at messages[2].tool_call_id",
            "id_changed at messages[5].tool_call_id",
        ),
    ),
    "ids with dots and colons are replaced for Claude, and stay apart": Row(
        threads="forgecode#1142, ClawRouter#17, Roo#10649, nanobot#4356",
        given=(
            user("hi"),
            assistant(KIMI, call("functions.read:0"), call("functions_read_0"), call("functions.read_0")),
            result("functions.read:0", "1"),
            result("functions_read_0", "2"),
            result("functions.read_0", "3"),
        ),
        targets=(SONNET, FABLE, BEDROCK_SONNET),
        holds=wire_ids("[a-zA-Z0-9_-]{1,64}"),
        reports=(
            "id_changed at messages[1].content[0].id",
            "id_changed at messages[2].tool_call_id",
        ),
    ),
    "a legal id stays as it is": Row(
        threads="forgecode#1142",
        given=(user("hi"), assistant(KIMI, call("call_1-a")), result("call_1-a", "1")),
        targets=(SONNET, FABLE, BEDROCK_SONNET, GPT, GPT_4O, KIMI, OLLAMA),
        sends=(user("hi"), assistant(KIMI, call("call_1-a")), result("call_1-a", "1")),
    ),
    "sixty ids that begin alike are sixty ids of nine letters at Mistral": Row(
        threads="opencode#1680, gptel#1203, omlx#1997, langchain#24668",
        given=(
            user("hi"),
            assistant(BEDROCK_SONNET, *(call(f"tooluse_{number:02}") for number in range(60))),
            *(result(f"tooluse_{number:02}", "ok") for number in range(60)),
        ),
        targets=(MISTRAL, MAGISTRAL, VLLM_MISTRAL),
        holds=wire_ids("[a-zA-Z0-9]{9}"),
        reports=(
            "id_changed at messages[1].content[0].id",
            "id_changed at messages[1].content[59].id",
            "id_changed at messages[61].tool_call_id",
        ),
    ),
    "in one turn each or in turns of their own": Row(
        threads="opencode#1680, omlx#1997",
        given=(
            user("hi"),
            *(
                message
                for number in range(60)
                for message in (
                    assistant(BEDROCK_SONNET, call(f"tooluse_{number:02}")),
                    result(f"tooluse_{number:02}", "ok"),
                )
            ),
        ),
        targets=(MISTRAL, MAGISTRAL, VLLM_MISTRAL),
        holds=wire_ids("[a-zA-Z0-9]{9}"),
        reports=("id_changed at messages[1].content[0].id", "id_changed at messages[2].tool_call_id"),
    ),
    "the id of a provider's own tool is not changed for the same model": Row(
        threads="claude-code-hub#470",
        given=(
            user("hi"),
            assistant(
                SONNET,
                native("anthropic-messages", SEARCH),
                native("anthropic-messages", FOUND),
                "Cats.",
                call("toolu_1"),
            ),
            result("toolu_1", "ok"),
        ),
        targets=(SONNET,),
        holds=lambda projection: (
            [piece.block for piece in projection.context.messages[1].content if piece.kind == "native"]
            == [SEARCH, FOUND]
        ),
    ),
    "and is no call for anybody else, nor is anybody else's call such a tool": Row(
        threads="claude-code-hub#470",
        given=(
            user("hi"),
            assistant(
                SONNET,
                native("anthropic-messages", SEARCH, "Searched for cats."),
                native("anthropic-messages", FOUND),
                "Cats.",
            ),
            user("ok"),
        ),
        targets=(GPT, GPT_4O, OPUS, KIMI),
        sends=(user("hi"), assistant(SONNET, "Searched for cats.", "Cats."), user("ok")),
        lacks=("srvtoolu", "server_tool_use"),
        reports=("native_replaced at messages[1].content[0]", "native_dropped at messages[1].content[1]"),
    ),
}

ARGUMENTS: Final[Mapping[str, Row]] = {
    "arguments that broke off are sent as what could be read, and their result is kept": Row(
        threads="koda#501, codegraff#752, kimi-cli#2196, vllm-fork#684",
        given=(
            user("hi"),
            assistant(GPT, call("a", original='{"path": "/etc', path="/etc")),
            result("a", "bad arguments", error=True),
        ),
        targets=(SONNET, FABLE, BEDROCK_SONNET, GEMINI_2),
        sends=(user("hi"), assistant(GPT, call("a", path="/etc")), result("a", "bad arguments", error=True)),
        lacks=('{"path": "/etc',),
        reports=("arguments_unparsed at messages[1].content[0]",),
    ),
    "arguments that are not JSON are an empty object": Row(
        threads="koda#501, codegraff#752",
        given=(user("hi"), assistant(GPT, call("a", original="rm -rf")), result("a", "ok")),
        targets=(SONNET, GPT, GPT_4O, KIMI, OLLAMA),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        lacks=("rm -rf",),
        reports=("arguments_unparsed at messages[1].content[0]",),
    ),
    "an object inside a string is not sent as a string": Row(
        threads="vercel/ai#19274",
        given=(user("hi"), assistant(GPT, call("a", original='"{\\"path\\": \\"x\\"}"', path="x")), result("a", "ok")),
        targets=(GPT_4O, KIMI, DEEPSEEK, SONNET),
        sends=(user("hi"), assistant(GPT, call("a", path="x")), result("a", "ok")),
        reports=("arguments_unparsed at messages[1].content[0]",),
    ),
    "nor is an array": Row(
        threads="langchain#34790, cai#76, neuron-ai#219, ollama#12794",
        given=(user("hi"), assistant(GPT, call("a", original="[1, 2]")), result("a", "ok")),
        targets=(OLLAMA, GPT_4O, SONNET),
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        reports=("arguments_unparsed at messages[1].content[0]",),
    ),
    "an original text of the same arguments is kept": Row(
        threads="vercel/ai#19274",
        given=(user("hi"), assistant(GPT, call("a", original='{ "path" : "x" }', path="x")), result("a", "ok")),
        targets=(GPT, GPT_4O, SONNET),
        sends=(user("hi"), assistant(GPT, call("a", original='{ "path" : "x" }', path="x")), result("a", "ok")),
    ),
}

TOOLS: Final[Mapping[str, Row]] = {
    "a name with dots is one legal name in tools, choice, calls and results": Row(
        threads="tester-mcp-client#11, LiteLLM: truncates names, Bedrock: sanitises names",
        given=conversation(
            user("hi"),
            assistant(KIMI, call("a", MCP)),
            result("a", "ok", name=MCP),
            tools=(ToolDefinition(name=MCP, parameters=READ.parameters),),
        ),
        targets=(SONNET, FABLE, GPT, GPT_4O, BEDROCK_SONNET),
        options=Options(tool_choice=MCP),
        holds=one_name,
        lacks=(MCP,),
        reports=(
            "name_changed at messages[1].content[0].name",
            "name_changed at messages[2].tool_name",
            "name_changed at tools[0].name",
            "name_changed at options.tool_choice",
        ),
    ),
    "so is one that is too long": Row(
        threads="tester-mcp-client#11",
        given=conversation(
            user("hi"),
            assistant(KIMI, call("a", LONG_NAME)),
            result("a", "ok", name=LONG_NAME),
            tools=(ToolDefinition(name=LONG_NAME, parameters=READ.parameters),),
        ),
        targets=(GPT_4O, BEDROCK_SONNET),
        options=Options(tool_choice=LONG_NAME),
        holds=one_name,
        reports=(
            "name_changed at messages[1].content[0].name",
            "name_changed at messages[2].tool_name",
            "name_changed at tools[0].name",
            "name_changed at options.tool_choice",
        ),
    ),
    "Bedrock gets definitions of tools that only the history uses": Row(
        threads="vercel/ai#7537, pydantic-ai#1966, strands#998, langchain-aws#591, timothy#282",
        given=conversation(user("hi"), assistant(GPT, call("a", "list")), result("a", "ok", name="list"), user("ok")),
        targets=(BEDROCK_SONNET, BEDROCK_NOVA),
        holds=lambda projection: (
            [tool.name for tool in projection.context.tools if tool.kind == "function"] == ["list"]
        ),
        reports=("tool_added at tools",),
    ),
    "others need none": Row(
        threads="vercel/ai#7537",
        given=conversation(user("hi"), assistant(GPT, call("a", "list")), result("a", "ok", name="list"), user("ok")),
        targets=(SONNET, GPT, GPT_4O, GEMINI_2, KIMI),
        holds=lambda projection: projection.context.tools == (),
    ),
}

ROWS: Final = {**PAIRS, **IDS, **ARGUMENTS, **TOOLS}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_calls_and_results_are_paired(row: Row):
    prove(row)


BROKEN: Final[tuple[Message, ...]] = (
    user("hi"),
    assistant(OPUS, thinking("hm", "sig0"), *(call(f"functions.read:{number}") for number in range(20))),
    *(result(f"functions.read:{number}", text(f"{number}")) for number in (7, 3, 11, 3)),
    user("stop"),
)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_inserted_results_are_in_call_order(target: Model):
    """LiteLLM made them from a set: another order in every process, and never the same prefix twice."""
    sent = project(conversation(*BROKEN, tools=(READ,)), target).context.messages
    assert is_paired(sent)
    real = [message.content for message in results_of(sent) if not message.is_error]
    assert [content[0].text for content in real if content[0].kind == "text"] == ["3", "7", "11"]
