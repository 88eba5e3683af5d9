"""Would Bedrock accept this? What it is known to refuse is named, and nothing else."""

from __future__ import annotations

import pytest

from protocols import traffic
from protocols.bedrock_converse.endpoints import (
    ANYONE,
    DEEPSEEK,
    KIMI,
    LLAMA,
    NOVA,
    NOVA_2,
    OPUS,
    OSS,
    SONNET,
    SONNET_3,
    endpoint_of,
)
from protocols.exchanges import BEDROCK
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC

TEXT = {"text": "hi"}
CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "a", "content": [TEXT]}}
SPEC = {"name": "f", "inputSchema": {"json": {"type": "object"}}}
TOOLS = {"toolConfig": {"tools": [{"toolSpec": SPEC}]}}
SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
UNSIGNED = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
IMAGE = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
VIDEO = {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}
POINT = {"cachePoint": {"type": "default"}}
HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}
BUDGET = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2048}}}
DISABLED = {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def body(*turns, **more):
    return {"messages": list(turns), **more}


def document(name, **source):
    return {"document": {"format": "pdf", "name": name, "source": source or {"bytes": "AAAA"}}}


def tool(**changes):
    return {"toolConfig": {"tools": [{"toolSpec": {**SPEC, **changes}}]}}


def choice(**given):
    return {"toolConfig": {**TOOLS["toolConfig"], "toolChoice": given}}


def fields(**given):
    return {"additionalModelRequestFields": given}


def config(**given):
    return {"inferenceConfig": given}


CYCLE = (user(TEXT), assistant(CALL), user(RESULT))
S3 = {"s3Location": {"uri": "s3://bucket/a.pdf"}}

REFUSED = {
    # -- turns
    "no messages": ("messages_missing", body(), SONNET),
    "a role of another wire": ("role_unknown", body({"role": "tool", "content": [TEXT]}), SONNET),
    "a turn without content": ("content_missing", body(user()), SONNET),
    "a blank turn": ("text_blank", body(user({"text": " "})), SONNET),
    "the assistant begins": ("first_turn_wrong", body(assistant(TEXT), user(TEXT)), NOVA),
    "the last turn is the assistant's": ("last_turn_wrong", body(user(TEXT), assistant(TEXT)), DEEPSEEK),
    "the newest Claude is not begun for": ("last_turn_wrong", body(user(TEXT), assistant(TEXT)), OPUS),
    "a forced tool for a model that chooses itself": (
        "tool_choice_invalid",
        body(user(TEXT), toolConfig={**TOOLS["toolConfig"], "toolChoice": {"any": {}}}),
        endpoint_of("xx.anthropic.claude-sonnet-5-5"),
    ),
    "no thinking for a model that always thinks": (
        "thinking_mode_unsupported",
        body(user(TEXT), additionalModelRequestFields={"thinking": {"type": "disabled"}}),
        endpoint_of("xx.anthropic.claude-opus-5-5"),
    ),
    "stops for GPT": (
        "option_unsupported",
        body(user(TEXT), inferenceConfig={"stopSequences": ["x"]}),
        endpoint_of("openai.gpt-5.6"),
    ),
    "a limit beside Nova's highest effort": (
        "options_conflict",
        body(
            user(TEXT),
            inferenceConfig={"maxTokens": 9},
            additionalModelRequestFields={"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
        ),
        NOVA_2,
    ),
    "reasoning of the user's": ("block_misplaced", body(user(TEXT, SIGNED)), SONNET),
    "two turns of one role": ("turns_not_alternating", body(user(TEXT), user(TEXT)), SONNET),
    "a block of two kinds": ("fields_exclusive", body(user({**TEXT, **IMAGE})), SONNET),
    "results and text in one turn": (
        "result_misplaced",
        body(user(TEXT), assistant(CALL), user(RESULT, TEXT), **TOOLS),
        LLAMA,
    ),
    "half a surrogate pair": ("body_not_json", body(user({"text": "\ud800"})), SONNET),
    # -- calls and results
    "history with calls and no tools": ("tools_missing", body(*CYCLE), SONNET),
    "a text after a call": ("text_after_call", body(user(TEXT), assistant(CALL, TEXT), user(RESULT), **TOOLS), SONNET),
    "top_k while thinking": (
        "option_with_thinking",
        body(
            user(TEXT),
            additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2048}, "top_k": 5},
        ),
        SONNET,
    ),
    "a call without a result": ("result_missing", body(user(TEXT), assistant(CALL), user(TEXT), **TOOLS), SONNET),
    "a result without a call": ("result_orphaned", body(user(RESULT), **TOOLS), SONNET),
    "two results of one call": (
        "result_duplicate",
        body(user(TEXT), assistant(CALL), user(RESULT, RESULT), **TOOLS),
        SONNET,
    ),
    "two calls of one id": (
        "call_id_duplicate",
        body(user(TEXT), assistant(CALL, CALL), user(RESULT), **TOOLS),
        SONNET,
    ),
    "a call of the user's": ("block_misplaced", body(user(CALL), **TOOLS), SONNET),
    "an id with a space": (
        "call_id_invalid",
        body(
            user(TEXT),
            assistant({"toolUse": {"toolUseId": "a b", "name": "f", "input": {}}}),
            user({"toolResult": {"toolUseId": "a b", "content": [TEXT]}}),
            **TOOLS,
        ),
        NOVA,
    ),
    "an id with a dot, of Claude": (
        "call_id_invalid",
        body(
            user(TEXT),
            assistant({"toolUse": {"toolUseId": "a.b", "name": "f", "input": {}}}),
            user({"toolResult": {"toolUseId": "a.b", "content": [TEXT]}}),
            **TOOLS,
        ),
        SONNET,
    ),
    "input that is a text": (
        "arguments_invalid",
        body(user(TEXT), assistant({"toolUse": {"toolUseId": "a", "name": "f", "input": "{}"}}), user(RESULT), **TOOLS),
        SONNET,
    ),
    "a name with a dot": (
        "tool_name_invalid",
        body(user(TEXT), assistant({"toolUse": {"toolUseId": "a", "name": "a.b", "input": {}}}), user(RESULT), **TOOLS),
        SONNET,
    ),
    "JSON of a result that is no object": (
        "type_wrong",
        body(*CYCLE[:2], user({"toolResult": {"toolUseId": "a", "content": [{"json": [1]}]}}), **TOOLS),
        SONNET,
    ),
    "a status that is none": (
        "value_unknown",
        body(*CYCLE[:2], user({"toolResult": {"toolUseId": "a", "content": [TEXT], "status": "fine"}}), **TOOLS),
        SONNET,
    ),
    "an empty error": (
        "result_empty",
        body(*CYCLE[:2], user({"toolResult": {"toolUseId": "a", "content": [], "status": "error"}}), **TOOLS),
        SONNET,
    ),
    "an error with a picture": (
        "result_media_unsupported",
        body(*CYCLE[:2], user({"toolResult": {"toolUseId": "a", "content": [IMAGE], "status": "error"}}), **TOOLS),
        SONNET,
    ),
    # -- reasoning
    "reasoning that Claude did not sign": (
        "thinking_unsigned",
        body(user(TEXT), assistant(UNSIGNED, TEXT), user(TEXT)),
        SONNET,
    ),
    "a signature that gpt-oss does not take": (
        "signature_unsupported",
        body(user(TEXT), assistant(SIGNED, TEXT), user(TEXT)),
        OSS,
    ),
    "an empty signature, too": (
        "signature_unsupported",
        body(
            user(TEXT),
            assistant({"reasoningContent": {"reasoningText": {"text": "hm", "signature": ""}}}, TEXT),
            user(TEXT),
        ),
        KIMI,
    ),
    "reasoning without its text": (
        "thinking_text_missing",
        body(user(TEXT), assistant({"reasoningContent": {"reasoningText": {"signature": "s"}}}, TEXT), user(TEXT)),
        SONNET,
    ),
    "a turn that ends in reasoning": ("thinking_last", body(user(TEXT), assistant(SIGNED), user(TEXT)), SONNET),
    "calls without the reasoning before them": ("thinking_missing", body(*CYCLE, **TOOLS, **BUDGET), SONNET),
    "a cache point behind reasoning": (
        "cache_mark_misplaced",
        body(user(TEXT), assistant(SIGNED, POINT, TEXT), user(TEXT)),
        SONNET,
    ),
    "an answer begun while thinking is on": ("thinking_missing", body(user(TEXT), assistant(TEXT), **BUDGET), SONNET),
    "an answer begun with reasoning while thinking is off": (
        "thinking_while_off",
        body(user(TEXT), assistant(SIGNED, TEXT), **DISABLED),
        SONNET,
    ),
    "reasoning in a cycle while thinking is off": (
        "thinking_while_off",
        body(user(TEXT), assistant(SIGNED, CALL), user(RESULT), **TOOLS, **DISABLED),
        SONNET,
    ),
    # -- media
    "a picture of the assistant's": ("block_misplaced", body(user(TEXT), assistant(IMAGE), user(TEXT)), SONNET),
    "a video for Claude": ("media_unsupported", body(user(TEXT, VIDEO)), SONNET),
    "audio for Claude": (
        "media_unsupported",
        body(user(TEXT, {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}})),
        SONNET,
    ),
    "a document in S3 for Claude": ("media_source_unsupported", body(user(TEXT, document("a", **S3))), SONNET),
    "a picture of no bytes": (
        "media_bytes_invalid",
        body(user({"image": {"format": "png", "source": {"bytes": ""}}})),
        SONNET,
    ),
    "a picture that is too large": (
        "media_too_large",
        body(user({"image": {"format": "png", "source": {"bytes": "A" * 5_300_000}}})),
        SONNET,
    ),
    "a document without a text beside it": ("document_alone", body(user(document("a"))), SONNET),
    "a name with a dot, of a document": ("document_name_invalid", body(user(TEXT, document("a.pdf"))), SONNET),
    "a name with a tab": ("document_name_invalid", body(user(TEXT, document("a\tb"))), SONNET),
    "a name with two spaces": ("document_name_invalid", body(user(TEXT, document("a  b"))), SONNET),
    "a name of other letters": ("document_name_invalid", body(user(TEXT, document("分"))), NOVA),
    "an empty name": ("document_name_invalid", body(user(TEXT, document(""))), NOVA),
    "two documents of one name": (
        "value_duplicate",
        body(user(TEXT, document("a")), assistant(TEXT), user(TEXT, document("a"))),
        SONNET,
    ),
    "two of one name, one in a result": (
        "value_duplicate",
        body(
            user(TEXT, document("a")),
            assistant(CALL),
            user({"toolResult": {"toolUseId": "a", "content": [document("a")]}}),
            **TOOLS,
        ),
        NOVA,
    ),
    "six documents": ("media_too_many", body(user(TEXT, *(document(str(n)) for n in range(6)))), SONNET),
    "twenty-one pictures": ("media_too_many", body(user(*[IMAGE] * 21)), SONNET),
    # -- tools and settings
    "tools that are none": ("tool_list_empty", body(user(TEXT), toolConfig={"tools": []}), SONNET),
    "a tool's name with a dot": ("tool_name_invalid", body(user(TEXT), **tool(name="a.b")), SONNET),
    "a tool's name that is too long": ("tool_name_invalid", body(user(TEXT), **tool(name="x" * 65)), SONNET),
    "two tools of one name": (
        "value_duplicate",
        body(user(TEXT), toolConfig={"tools": [{"toolSpec": SPEC}, {"toolSpec": SPEC}]}),
        SONNET,
    ),
    "an empty description": ("tool_description_missing", body(user(TEXT), **tool(description="")), SONNET),
    "a schema of no object": (
        "schema_root_invalid",
        body(user(TEXT), **tool(inputSchema={"json": {"type": "string"}})),
        SONNET,
    ),
    "a tool that is not there": ("tool_choice_invalid", body(user(TEXT), **choice(tool={"name": "g"})), SONNET),
    "Llama cannot be made to call": ("tool_choice_invalid", body(user(TEXT), **choice(any={})), LLAMA),
    "a tool forced while thinking": ("tool_choice_with_thinking", body(user(TEXT), **choice(any={}), **BUDGET), SONNET),
    "a budget that is too small": (
        "thinking_budget_invalid",
        body(user(TEXT), **fields(thinking={"type": "enabled", "budget_tokens": 100})),
        SONNET,
    ),
    "a budget that leaves no room": (
        "thinking_budget_invalid",
        body(user(TEXT), **config(maxTokens=2048), **BUDGET),
        SONNET,
    ),
    "a temperature while thinking": (
        "option_with_thinking",
        body(user(TEXT), **config(temperature=0.5), **BUDGET),
        SONNET,
    ),
    "a temperature for the newest Claude": ("option_unsupported", body(user(TEXT), **config(temperature=0.5)), OPUS),
    "a temperature above one": ("value_out_of_range", body(user(TEXT), **config(temperature=1.5)), NOVA),
    "both sampling settings": ("options_conflict", body(user(TEXT), **config(temperature=0.5, topP=0.5)), SONNET),
    "a limit of nothing": ("value_out_of_range", body(user(TEXT), **config(maxTokens=0)), SONNET),
    "a limit above the model's": ("max_tokens_too_large", body(user(TEXT), **config(maxTokens=10**6)), SONNET),
    "an empty stop sequence": ("stop_invalid", body(user(TEXT), **config(stopSequences=[""])), SONNET),
    "a blank system prompt": ("text_blank", body(user(TEXT), system=[{"text": " "}]), SONNET),
    # -- cache points
    "five cache points": ("cache_marks_too_many", body(user(*[TEXT, POINT] * 5)), SONNET),
    "a cache point before anything": ("cache_mark_misplaced", body(user(POINT, TEXT)), SONNET),
    "an hour after five minutes": ("cache_mark_order", body(user(TEXT, POINT, TEXT, HOUR)), SONNET),
}


@pytest.mark.parametrize(("code", "wire", "endpoint"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_named(code, wire, endpoint):
    assert {violation.code for violation in CODEC.check(wire, endpoint)} == {code}


TAKEN = {
    "two turns of the user's, of Titan": (body(user(TEXT), user(TEXT)), endpoint_of("amazon.titan-text-express-v1")),
    "Claude begins": (body(assistant(TEXT), user(TEXT)), SONNET),
    "an older Claude is begun for": (body(user(TEXT), assistant(TEXT)), SONNET),
    "a blank text beside other text": (body(user(TEXT), assistant({"text": "\n"}, TEXT), user(TEXT)), SONNET),
    "results, text and a cache point": (body(*CYCLE[:2], user(RESULT, POINT, TEXT), **TOOLS), SONNET),
    "a budget where the user's words end the cycle": (
        body(*CYCLE[:2], user(RESULT, TEXT), **TOOLS, **BUDGET),
        SONNET,
    ),
    "an id of Kimi's": (
        body(
            user(TEXT),
            assistant({"toolUse": {"toolUseId": "functions.f:0", "name": "f", "input": {}}}),
            user({"toolResult": {"toolUseId": "functions.f:0", "content": [TEXT], "status": "success"}}),
            **TOOLS,
        ),
        KIMI,
    ),
    "the same id in a later turn": (body(*CYCLE, *CYCLE[1:], **TOOLS), SONNET),
    "the provider's own tools": (
        body(
            user(TEXT),
            assistant(
                {"toolUse": {"toolUseId": "s", "name": "g", "input": {}, "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": "s", "content": [TEXT]}},
                TEXT,
            ),
            user(TEXT),
            toolConfig={"tools": [{"systemTool": {"name": "g"}}]},
        ),
        NOVA_2,
    ),
    "unsigned reasoning where no signature is required": (body(user(TEXT), assistant(UNSIGNED, TEXT), user(TEXT)), OSS),
    "signed reasoning before calls": (
        body(user(TEXT), assistant(SIGNED, CALL), user(RESULT), **TOOLS, **BUDGET),
        SONNET_3,
    ),
    "a budget beside an earlier cycle without reasoning": (
        body(*CYCLE, assistant(TEXT), user(TEXT), **TOOLS, **BUDGET),
        SONNET,
    ),
    "a last turn of the assistant for Nova": (body(user(TEXT), assistant(TEXT)), NOVA),
    "and for the next Nova": (body(user(TEXT), assistant(TEXT)), NOVA_2),
    "a video in S3 for Nova": (
        body(user({"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a.mp4"}}}})),
        NOVA_2,
    ),
    "a format by its MIME type": (
        body(user(TEXT, {"video": {"format": "video/mp4", "source": {"bytes": "AAAA"}}})),
        NOVA,
    ),
    "a document with a text beside it": (body(user(TEXT, document("Report (1) [a]-b"))), SONNET),
    "an underscore in a name, of which accounts differ": (body(user(TEXT, document("a_b"))), SONNET),
    "unknown blocks": (body(user({"hologram": {}}, TEXT)), SONNET),
    "a stored prompt": (body(), endpoint_of("arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1")),
    "one sampling setting": (body(user(TEXT), **config(topP=0.9)), SONNET),
    "both, of an older Claude": (body(user(TEXT), **config(temperature=0.5, topP=0.9)), SONNET_3),
    "a temperature of one while thinking": (body(user(TEXT), **config(temperature=1), **BUDGET), SONNET),
    "cache points in their order": (body(user(TEXT, HOUR, TEXT, POINT), system=[TEXT, HOUR]), SONNET),
    "an empty tool config key": (body(user(TEXT), system=[], inferenceConfig={}), ANYONE),
}


@pytest.mark.parametrize(("wire", "endpoint"), TAKEN.values(), ids=TAKEN.keys())
def test_what_is_taken_passes(wire, endpoint):
    assert CODEC.check(wire, endpoint) == []


EVERYTHING = resolve_endpoint(
    Model(
        "amazon.nova-2-lite-v1:0",
        "amazon-bedrock",
        "bedrock-converse",
        rules={"cache_mark_places": None, "refused_extra": ["-outputConfig"]},
    )
)


@pytest.mark.parametrize(
    "case", [case for case in BEDROCK.having("request") if case not in ("redacted-reasoning", "reasoning-then-calls")]
)
def test_what_we_wrote_for_tests_passes(case):
    found = CODEC.check(BEDROCK.part(case, "request"), EVERYTHING)
    assert [one for one in found if one.path[-1] != "ttl"] == []  # only Claude caches for an hour


NAMED = {"document.source.type: Field required": "media_source_unsupported", "video content block": "media_unsupported"}
"""The text of recorded errors -> the code of the violation."""


def named(recorded) -> set[str]:
    return {code for words, code in NAMED.items() if words in str(recorded["response"]["message"])}


@pytest.mark.traffic
@traffic.each_exchange(
    traffic.of_protocol("bedrock-converse"), lambda row, recorded: row["status"] == 400 and bool(named(recorded))
)
def test_a_recorded_refusal_is_named_where_the_body_shows_it(row):
    recorded = traffic.read(row["file"])
    found = {violation.code for violation in CODEC.check(recorded["request"], endpoint_of(row["model"]))}
    assert named(recorded) <= found
