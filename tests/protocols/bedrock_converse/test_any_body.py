"""Bodies put together at random: whatever JSON comes, it is judged, read and written, or refused by name."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.bedrock_converse.endpoints import ANYONE, KIMI, NOVA_2, OPUS, OSS, SONNET
from protocols.bedrock_converse.test_fixtures import CASES, REQUESTS, part
from segue.errors import DecodeError
from segue.protocols.bedrock_converse.codec import CODEC
from segue.protocols.reading import standard_base64

ENDPOINTS = (SONNET, OPUS, NOVA_2, KIMI, OSS, ANYONE)
ODD = st.sampled_from([None, 0, -1, 1.5, True, "x", "", [], {}, ["x"], [{}], {"type": []}, {"a": None}, {"text": "t"}])


def some(**values):
    """Objects with any of these keys, each with what belongs there or with anything else."""
    return st.fixed_dictionaries({}, optional={key: st.one_of(value, ODD) for key, value in values.items()})


def one(*values):
    return st.sampled_from(values)


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


@settings(max_examples=400)
@given(body=BODY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_body_is_judged(body, endpoint):
    for violation in CODEC.check(body, endpoint):
        assert violation.message


@settings(max_examples=600)
@given(body=BODY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_body_that_can_be_read_comes_out_as_it_was(body, endpoint):
    with suppress(DecodeError):
        prompt = CODEC.decode_request(body, endpoint)
        assert as_standard(CODEC.encode_request(prompt, endpoint)) == as_standard(body)


@settings(max_examples=400)
@given(body=REPLY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_reply_that_can_be_read_comes_out_as_it_was(body, endpoint):
    with suppress(DecodeError):
        message = CODEC.decode_response(body, endpoint, {})
        assert CODEC.encode_response(message, endpoint) == body


def as_standard(value, key=None):
    """Spell base64 in the standard alphabet with padding: media come out in it, whatever they came in."""
    if isinstance(value, dict):
        return {name: as_standard(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_standard(inner) for inner in value]
    return standard_base64(value) if key == "bytes" and isinstance(value, str) else value


def read(decode, *given) -> tuple[Any, Any]:
    """Give what was read, else the place of what was refused."""
    try:
        return decode(*given), None
    except DecodeError as error:
        return None, error.path


MUTATIONS = st.tuples(st.integers(0, 10**6), st.sampled_from(["drop", "null", "add", "odd"]), ODD)


def places(value, path=()):
    """Give every place in a body."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield (*path, index)
            yield from places(inner, (*path, index))


def mutated(body, mutations):
    """Drop a key, make it null, add an unknown one or put something else in its place, here and there."""
    body = deepcopy(body)
    for number, kind, odd in mutations:
        found = list(places(body))
        if not found:
            break
        *path, last = found[number % len(found)]
        holder = body
        for step in path:
            holder = holder[step]
        if kind == "drop":
            del holder[last]
        elif kind == "null":
            holder[last] = None
        elif kind == "odd":
            holder[last] = deepcopy(odd)
        elif isinstance(holder, dict):
            holder["unknown"] = deepcopy(odd)
    return body


@settings(max_examples=400)
@given(st.sampled_from(REQUESTS), st.lists(MUTATIONS, min_size=1, max_size=3), st.sampled_from(ENDPOINTS))
def test_a_request_with_a_flaw_comes_out_as_it_was_or_is_refused_with_its_place(case, mutations, endpoint):
    body = mutated(part(case, "request"), mutations)
    CODEC.check(body, endpoint)
    prompt, refused_at = read(CODEC.decode_request, body, endpoint)
    assert refused_at or as_standard(CODEC.encode_request(prompt, endpoint)) == as_standard(body)


@settings(max_examples=300)
@given(st.sampled_from(CASES), st.lists(MUTATIONS, min_size=1, max_size=3), st.sampled_from(ENDPOINTS))
def test_a_reply_with_a_flaw_comes_out_as_it_was_or_is_refused_with_its_place(case, mutations, endpoint):
    body = mutated(part(case, "response"), mutations)
    message, refused_at = read(CODEC.decode_response, body, endpoint, {})
    assert refused_at or CODEC.encode_response(message, endpoint) == body


@settings(max_examples=300)
@given(st.sampled_from(CASES), st.lists(MUTATIONS, min_size=1, max_size=4), st.sampled_from(ENDPOINTS))
def test_a_stream_with_a_flaw_ends_once(case, mutations, endpoint):
    decoder = CODEC.stream_decoder(endpoint, {})
    frames = mutated(part(case, "stream"), mutations)
    events = [event for frame in frames if isinstance(frame, dict) for event in decoder.feed(frame)]
    kinds = [event.type for event in events + decoder.finish()]
    assert kinds[0] == "start"
    assert [kind in ("done", "error") for kind in kinds].count(True) == 1
    assert kinds[-1] in ("done", "error")
