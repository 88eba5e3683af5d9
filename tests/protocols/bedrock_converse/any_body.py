"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import ODD, one, some
from protocols.bedrock_converse.endpoints import ANYONE, KIMI, NOVA_2, OPUS, OSS, SONNET

ENDPOINTS = (SONNET, OPUS, NOVA_2, KIMI, OSS, ANYONE)


def union(**values):
    """An object with one of these keys, mostly."""
    members = [st.fixed_dictionaries({key: st.one_of(value, value, ODD)}) for key, value in values.items()]
    return st.one_of(*members, some(**values))


SOURCE = union(bytes=one("AAAA", "-_-_"), s3Location=some(uri=one("s3://abc/d"), bucketOwner=one("1")), text=one("t"))
MEDIA = some(
    format=one("png", "pdf", "mp4", "video/mp4", "mpg"), source=SOURCE, name=one("a", "a.pdf", "b_c"), x=one(1)
)
INNER = union(
    text=one("hi", " "), json=one({"a": 1}, [1], "x"), image=MEDIA, document=MEDIA, video=MEDIA, searchResult=ODD
)
BLOCK = union(
    text=one("hi", " "),
    type=one("text", "odd"),
    image=MEDIA,
    document=MEDIA,
    video=MEDIA,
    audio=MEDIA,
    cachePoint=some(type=one("default"), ttl=one("5m", "1h")),
    toolUse=some(toolUseId=one("t1", "t2"), name=one("f"), input=one({}, {"a": 1}), type=one("server_tool_use", "x")),
    toolResult=some(
        toolUseId=one("t1", "t2"), content=st.lists(INNER, max_size=3), status=one("success", "error"), type=one("x")
    ),
    reasoningContent=union(
        reasoningText=some(text=one("hm", ""), signature=one("s", ""), x=one(1)),
        redactedContent=one("AAAA", "QUFBQQ=="),
    ),
    citationsContent=some(content=one([{"text": "a"}], []), citations=one([{"title": "t"}], [])),
    guardContent=ODD,
)
TURN = some(role=one("user", "assistant", "system", "tool"), content=st.lists(BLOCK, max_size=4), name=one("bob"))
SPEC = some(name=one("f", "a.b"), description=one("", "d"), inputSchema=some(json=one({"type": "object"})), strict=ODD)
BODY = some(
    modelId=one("m"),
    messages=st.lists(TURN, max_size=4),
    system=st.lists(BLOCK, max_size=2),
    inferenceConfig=some(maxTokens=one(100), temperature=one(0.5), topP=one(0.9), stopSequences=one(["x"]), x=one(1)),
    toolConfig=some(
        tools=st.lists(union(toolSpec=SPEC, systemTool=some(name=one("s")), cachePoint=one({"type": "default"}))),
        toolChoice=union(auto=one({}), any=one({}), tool=some(name=one("f"))),
    ),
    additionalModelRequestFields=some(
        thinking=some(type=one("enabled", "adaptive", "disabled"), budget_tokens=one(0, 1024, 5000), display=one("x")),
        output_config=some(effort=one("low", "xhigh", "heroic")),
        reasoning_effort=one("low", "none"),
        reasoning=some(effort=one("high")),
        reasoningConfig=some(type=one("enabled", "disabled"), maxReasoningEffort=one("low")),
        top_k=one(5),
    ),
    outputConfig=some(
        effort=one("low", "max"),
        textFormat=some(
            type=one("json_schema"),
            structure=some(jsonSchema=some(schema=one('{"type": "object"}', "x"), name=one("n"))),
        ),
    ),
    serviceTier=some(type=one("flex")),
)
REPLY = some(
    output=some(message=some(role=one("assistant"), content=st.lists(BLOCK, max_size=3), x=one(1)), y=one(2)),
    stopReason=one("end_turn", "tool_use", "max_tokens", "content_filtered", "new"),
    usage=some(inputTokens=one(1), outputTokens=one(2), totalTokens=one(3, 7), cacheDetails=ODD),
    metrics=some(latencyMs=one(1)),
    trace=some(promptRouter=some(invokedModelId=one("arn:x"))),
    message=one("No."),
    ResponseMetadata=some(RequestId=one("r1")),
)
FRAME = union(
    messageStart=some(role=one("assistant")),
    contentBlockStart=some(
        contentBlockIndex=one(0, 1), start=union(toolUse=some(toolUseId=one("t1"), name=one("f")), image=MEDIA)
    ),
    contentBlockDelta=some(
        contentBlockIndex=one(0, 1),
        delta=union(
            text=one("a"),
            toolUse=some(input=one("{", "}")),
            reasoningContent=union(text=one("t"), signature=one("s"), redactedContent=one("AAAA")),
            citation=one({"title": "t"}),
        ),
    ),
    contentBlockStop=some(contentBlockIndex=one(0, 1)),
    messageStop=some(stopReason=one("end_turn", "tool_use", "new")),
    metadata=some(usage=some(inputTokens=one(1), outputTokens=one(2)), metrics=some(latencyMs=one(1))),
    throttlingException=some(message=one("No.")),
)
