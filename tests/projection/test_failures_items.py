"""OpenAI's items and Gemini's contents: separated pairs, ids of other items, turns in the wrong order.

What providers answered: "Item 'rs_...' of type 'reasoning' was provided without its required following item.", "Item
'fc_...' of type 'function_call' was provided without its required 'reasoning' item", "The encrypted content ... could
not be verified.", "Expected an ID that begins with 'rs'.", "string too long. Expected a string with maximum length
64", "Function call is missing a thought_signature", "the number of function response parts is equal to the number of
function call parts", "function call turn comes immediately after a user turn".  (threads in each row, read 2026-11)

The id of an item acts as a signature: it is replayed only to the model that produced the item, with its other items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from projection.building import (
    FABLE,
    GEMINI,
    GEMINI_2,
    GEMINI_LAST_USER,
    GPT,
    GPT_4O,
    GPT_AZURE,
    GPT_CHAT,
    GPT_NEXT,
    SONNET,
    TEXTS,
    assistant,
    call,
    calls_of,
    is_paired,
    missing,
    result,
    text,
    thinking,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.context import Options
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection

SKIP: Final = TEXTS.call_signature
ROUTED_GPT: Final = Model("openai/gpt-5.4", "openrouter", "openai-responses", reasoning=True)
GEMINI_OVER_CHAT: Final = Model("gemini-3.1-pro-preview", "google", "openai-chat", reasoning=True)
CODEX: Final = get_model("openai-codex/gpt-6-sol")
STREAMED: Final = Options(stream=True)
ITEMS: Final = (
    user("hi"),
    assistant(GPT, thinking("hm", "rs_1:gAAA"), call("call_1", signature="fc_1")),
    result("call_1", "ok"),
    assistant(GPT, thinking("", "rs_2:gAAA"), text("Done.", "msg_2")),
    user("ok"),
)
BARE: Final = (
    user("hi"),
    assistant(GPT, "hm", call("call_1")),
    result("call_1", "ok"),
    assistant(GPT, "Done."),
    user("ok"),
)
LONG: Final = "call_" + "x" * 50 + "|fc_" + "y" * 57
LONGER: Final = LONG[:-1] + "z"


def ids_within(limit: int):
    def holds(projection: Projection) -> bool:
        sent = projection.context.messages
        ids = [piece.id for piece in calls_of(sent)]
        return is_paired(sent) and len(set(ids)) == 2 and all(0 < len(call_id) <= limit for call_id in ids)

    return holds


RESPONSES: Final[Mapping[str, Row]] = {
    "reasoning that was broken off before its item goes with its turn": Row(
        threads="vercel/ai#7099, vercel/ai#8379, continue#8933, openai-agents-js#326, mastra#14048",
        given=(user("hi"), assistant(GPT, thinking("hm", "rs_1:gAAA"), stop="aborted"), user("again")),
        targets=(GPT,),
        sends=(user("hi"), user("again")),
        lacks=("rs_1",),
        reports=("unfinished_turn at messages[1]",),
    ),
    "reasoning that nothing followed is not sent, though the turn was finished": Row(
        threads="vercel/ai#7099, continue#8933",
        given=(user("hi"), assistant(GPT, thinking("hm", "rs_1:gAAA")), user("again")),
        targets=(GPT,),
        sends=(user("hi"), user("again")),
        lacks=("rs_1",),
        reports=("thinking_dropped at messages[1].content[0]", "turn_empty at messages[1]"),
    ),
    "nor reasoning at the end of a turn with text": Row(
        threads="openai-agents-js#326, mastra#14048",
        given=(user("hi"), assistant(GPT, text("Hello.", "msg_1"), thinking("hm", "rs_1:gAAA")), user("again")),
        targets=(GPT,),
        sends=(user("hi"), assistant(GPT, text("Hello.", "msg_1")), user("again")),
        lacks=("rs_1",),
        reports=("thinking_dropped at messages[1].content[1]",),
    ),
    "an item and its reasoning are replayed together": Row(
        threads="mastra#8738, mastra#10713, rig#751, agency-swarm#367, laravel/ai#1052",
        given=ITEMS,
        targets=(GPT,),
        sends=ITEMS,
    ),
    "another model of the same provider gets neither": Row(
        threads="mastra#8738, mastra#10713, rig#751, agency-swarm#367, laravel/ai#1052",
        given=ITEMS,
        targets=(GPT_NEXT,),
        sends=BARE,
        lacks=("rs_", "fc_", "msg_", "gAAA"),
        reports=(
            "thinking_as_text at messages[1].content[0]",
            "signature_removed at messages[1].content[1]",
            "thinking_blank at messages[3].content[0]",
            "signature_removed at messages[3].content[1]",
        ),
    ),
    "reasoning without encrypted content is not sent as a reasoning item, and adjacent items lose their ids": Row(
        threads="opencode#7724, opencode#8987, oh-my-pi#41, vercel/ai#7543",
        given=(user("hi"), assistant(GPT, thinking("hm"), call("call_1", signature="fc_1")), result("call_1", "ok")),
        targets=(GPT,),
        sends=(user("hi"), assistant(GPT, "hm", call("call_1")), result("call_1", "ok")),
        lacks=("fc_1",),
        reports=(
            "thinking_as_text at messages[1].content[0]",
            "signature_removed at messages[1].content[1]",
        ),
    ),
    "ciphertext stays with the model, the endpoint and the wire it was made for": Row(
        threads="codex#8119, sub2api#2863, sub2api#3038, opencodex#2269, rowboat#832",
        given=ITEMS,
        targets=(GPT_NEXT, GPT_AZURE, GPT_CHAT, ROUTED_GPT, CODEX),
        options=STREAMED,
        sends=BARE,
        lacks=("gAAA",),
        reports=(
            "thinking_as_text at messages[1].content[0]",
            "signature_removed at messages[1].content[1]",
            "thinking_blank at messages[3].content[0]",
            "signature_removed at messages[3].content[1]",
        ),
    ),
    "no id of anybody else's is sent as an item's": Row(
        threads="vscode#316536, eca#465, litellm#27333, codex#33176, opencode#44587, inspect_ai#1545",
        given=(
            user("hi"),
            assistant(
                SONNET,
                thinking("hm", "thinking_0"),
                text("Looking.", "chatcmpl-1"),
                call("toolu_1", signature="toolu_x"),
            ),
            result("toolu_1", "ok"),
        ),
        targets=(GPT, CODEX),
        options=STREAMED,
        sends=(user("hi"), assistant(SONNET, "hm", "Looking.", call("toolu_1")), result("toolu_1", "ok")),
        lacks=("thinking_0", "chatcmpl-1", "toolu_x"),
        reports=(
            "thinking_as_text at messages[1].content[0]",
            "signature_removed at messages[1].content[1]",
            "signature_removed at messages[1].content[2]",
        ),
    ),
    "an id of more than 64 characters is replaced in call and result alike": Row(
        threads="fastllm#45, 9router#393",
        given=(
            user("hi"),
            assistant(SONNET, call(LONG), call(LONGER)),
            result(LONG, "1"),
            result(LONGER, "2"),
        ),
        targets=(GPT, GPT_NEXT, CODEX),
        options=STREAMED,
        holds=ids_within(64),
        lacks=(LONG, LONGER),
        reports=(
            "id_changed at messages[1].content[0].id",
            "id_changed at messages[1].content[1].id",
            "id_changed at messages[2].tool_call_id",
            "id_changed at messages[3].tool_call_id",
        ),
    ),
    "over chat 40 characters are the limit": Row(
        threads="langmanus#119, autogen#6377, Portkey#1062, vercel/ai#8132, openclaw#875",
        given=(
            user("hi"),
            assistant(SONNET, call("t" * 41), call("t" * 40 + "u")),
            result("t" * 41, "1"),
            result("t" * 40 + "u", "2"),
        ),
        targets=(GPT_CHAT, GPT_4O),
        holds=ids_within(40),
        reports=("id_changed at messages[1].content[0].id", "id_changed at messages[2].tool_call_id"),
    ),
    "an id of 40 characters stays": Row(
        threads="autogen#6377",
        given=(user("hi"), assistant(SONNET, call("t" * 40)), result("t" * 40, "1")),
        targets=(GPT_CHAT, GPT_4O, GPT),
        sends=(user("hi"), assistant(SONNET, call("t" * 40)), result("t" * 40, "1")),
    ),
    "a call without an output gets one": Row(
        threads="livekit#5092, octofriend#233, kernl#60",
        given=(user("hi"), assistant(GPT, call("call_1"), call("call_2")), result("call_1", "ok"), user("stop")),
        targets=(GPT, GPT_NEXT, CODEX),
        options=STREAMED,
        sends=(
            user("hi"),
            assistant(GPT, call("call_1"), call("call_2")),
            result("call_1", "ok"),
            missing("call_2"),
            user("stop"),
        ),
        reports=("result_missing at messages[2]",),
    ),
    "an output whose call was cut away goes": Row(
        threads="pydantic-ai#4882, pi#6832, pi#4570, OpenMinis#222, vellum#39919, maki#641",
        given=(user("summary"), result("call_00_x", "ok"), user("go on")),
        targets=(GPT, GPT_CHAT, SONNET),
        sends=(user("summary"), user("go on")),
        reports=("result_orphaned at messages[1]",),
    ),
    "or is sent as a user's text": Row(
        threads="pydantic-ai#4882, pi#6832",
        given=(user("summary"), result("call_00_x", "ok"), user("go on")),
        targets=(GPT, GPT_CHAT, SONNET),
        policy=Policy(orphan_results="text"),
        sends=(user("summary"), user("[Result of tool read]\nok"), user("go on")),
        reports=("result_as_text at messages[1]",),
    ),
}

CONTENTS: Final[Mapping[str, Row]] = {
    "the first call of every unsigned step is signed with the placeholder, all through the history": Row(
        threads="litellm#16893, strands#1764, openai-agents#2109, pipecat#5809",
        given=(
            user("hi"),
            assistant(SONNET, call("a"), call("b")),
            result("a", "1"),
            result("b", "2"),
            assistant(SONNET, "And", call("c")),
            result("c", "3"),
            assistant(GEMINI, call("d", signature="own")),
            result("d", "4"),
            assistant(GEMINI, call("e")),
            result("e", "5"),
        ),
        targets=(GEMINI,),
        sends=(
            user("hi"),
            assistant(SONNET, call("a", signature=SKIP), call("b")),
            result("a", "1"),
            result("b", "2"),
            assistant(SONNET, "And", call("c", signature=SKIP)),
            result("c", "3"),
            assistant(GEMINI, call("d", signature="own")),
            result("d", "4"),
            assistant(GEMINI, call("e", signature=SKIP)),
            result("e", "5"),
        ),
        reports=(
            "signature_placeholder at messages[1].content[0]",
            "signature_placeholder at messages[4].content[1]",
            "signature_placeholder at messages[8].content[0]",
        ),
    ),
    "the same at Gemini's OpenAI-compatible endpoint": Row(
        threads="langchain#34056, ruby_llm#591, securo#884",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", "1")),
        targets=(GEMINI_OVER_CHAT,),
        sends=(user("hi"), assistant(SONNET, call("a", signature=SKIP)), result("a", "1")),
        reports=("signature_placeholder at messages[1].content[0]",),
    ),
    "as many results as calls, in their order, and nothing between": Row(
        threads="gemini-cli#4217",
        given=(
            user("hi"),
            assistant(SONNET, call("a"), call("b"), call("c")),
            result("c", "3"),
            result("a", "1"),
            user("and?"),
        ),
        targets=(GEMINI_2,),
        sends=(
            user("hi"),
            assistant(SONNET, call("a"), call("b"), call("c")),
            result("a", "1"),
            missing("b"),
            result("c", "3"),
            user("and?"),
        ),
        reports=("result_moved at messages[3]", "result_missing at messages[3]"),
    ),
    "text between the results of a step is sent after them": Row(
        threads="bifrost#1391",
        given=(
            user("hi"),
            assistant(SONNET, call("a"), call("b")),
            result("a", "1"),
            user("hurry"),
            result("b", "2"),
            user("please"),
        ),
        targets=(GEMINI_2,),
        sends=(
            user("hi"),
            assistant(SONNET, call("a"), call("b")),
            result("a", "1"),
            result("b", "2"),
            user("hurry", "please"),
        ),
        reports=("result_moved at messages[4]", "turn_merged at messages[3]", "turn_merged at messages[5]"),
    ),
    "a history that begins with a call gets a user's turn before it": Row(
        threads="gemini-cli#11814, gemini-cli#26956, Antigravity#3396, lobehub#10049",
        given=(assistant(SONNET, call("a")), result("a", "1"), user("and?")),
        targets=(GEMINI_2,),
        sends=(user(TEXTS.first_turn), assistant(SONNET, call("a")), result("a", "1"), user("and?")),
        reports=("turn_inserted at messages",),
    ),
    "a call directly after a text turn of the model is separated from it": Row(
        threads="gemini-cli#11814, gemini-cli#26956",
        given=(user("hi"), assistant(SONNET, "Looking."), assistant(SONNET, call("a")), result("a", "1")),
        targets=(GEMINI_2,),
        sends=(
            user("hi"),
            assistant(SONNET, "Looking."),
            user(TEXTS.last_turn),
            assistant(SONNET, call("a")),
            result("a", "1"),
        ),
        reports=("turn_inserted at messages[1]",),
    ),
    "a response without its call goes": Row(
        threads="langchain#27799",
        given=(user("hi"), result("a", "1"), assistant(SONNET, "Well."), user("ok")),
        targets=(GEMINI, GEMINI_2),
        sends=(user("hi"), assistant(SONNET, "Well."), user("ok")),
        reports=("result_orphaned at messages[1]",),
    ),
    "a conversation that ends with the model is followed by a short user turn": Row(
        threads="crewAI#6973",
        given=(user("hi"), assistant(SONNET, "Hello.")),
        targets=(GEMINI_LAST_USER, FABLE),
        sends=(user("hi"), assistant(SONNET, "Hello."), user(TEXTS.last_turn)),
        reports=("turn_inserted at messages[1]",),
    ),
}

ROWS: Final = {**RESPONSES, **CONTENTS}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_items_are_sent_with_the_items_they_depend_on(row: Row):
    prove(row)
