"""Bodies put together at random from everything seen on this wire: what can be read comes out as it was."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.openai_chat.endpoints import endpoint, event_kinds
from segue.errors import DecodeError
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

ENDPOINTS = (
    endpoint(),
    endpoint("openai", "gpt-5.2", reasoning=True, thinking_levels={"off": "none", "high": "high"}),
    endpoint("deepseek", "deepseek-v4", reasoning=True),
    endpoint("deepseek", "deepseek-reasoner", reasoning=True),
    endpoint("minimax", "MiniMax-M3", reasoning=True),
    endpoint("openrouter", "google/gemini-3-pro", reasoning=True),
    endpoint("litellm", "some-model"),
    endpoint("zai", "glm-5", reasoning=True),
    endpoint("openai", dialect={"result_name": True, "usage_in_stream": False}),
)

WORDS = st.sampled_from(["", " ", "x", "<think>t</think>a", "<think></think>", "t</think>a", "café 😀"])
ODD = st.sampled_from([None, 0, 1.5, True, "x", "", [], {}, ["x"], {"a": None}])


def some(**values):
    """Objects with any of these keys."""
    return st.fixed_dictionaries({}, optional=values)


def one(*values):
    return st.sampled_from(values)


YES_OR_NO_OR_NULL = st.one_of(st.booleans(), st.none())
DETAIL = some(
    type=one("reasoning.text", "reasoning.encrypted"), text=WORDS, summary=WORDS, data=WORDS, index=one(0, 1, None)
)
SIGNATURE = one(
    {"google": {"thought_signature": "s"}}, {"google": {"thought_signature": "s", "x": 1}, "y": 2}, {"z": 1}, None
)
URL = one(
    "https://x.org/a",
    "data:image/png;base64,AAAA",
    "data:;base64,AAAA",
    "data:text/plain,x",
    "data:video/mp4;base64,AAAA",
)
PART = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}, optional={"cache_control": ODD}),
    st.fixed_dictionaries(
        {"type": st.just("image_url"), "image_url": st.one_of(URL, some(url=URL, detail=one("low", None)))},
        optional={"cache_control": ODD},
    ),
    st.fixed_dictionaries(
        {"type": one("video_url", "audio_url"), "video_url": some(url=URL), "audio_url": some(url=URL)}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("input_audio"),
            "input_audio": some(data=one("AAAA", "https://x.org"), format=one("mp3", "wav", "x")),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("file"),
            "file": some(
                file_data=one(
                    "data:application/pdf;base64,AAAA", "data:audio/wav;base64,AAAA", "AAAA", "https://x.org", None
                ),
                file_id=one("file-1", None),
                filename=one("a.pdf", "attachment.pdf", "attachment", None, ""),
                x=ODD,
            ),
        }
    ),
    st.fixed_dictionaries(
        {"type": one("refusal", "thinking", "odd", None)}, optional={"refusal": WORDS, "text": WORDS}
    ),
)
CONTENT = st.one_of(st.none(), WORDS, st.lists(PART, max_size=3))
FUNCTION = some(
    name=one("f", "g"), arguments=one("{}", '{"a": 1}', '{"a":1}', "", "{oops", "[]", {"a": 1}, {}, None), x=ODD
)
CALL = st.one_of(
    some(id=one("c1", "c2", "", None), type=one("function", None, "x"), index=one(0), extra_content=SIGNATURE).flatmap(
        lambda call: FUNCTION.map(lambda function: {**call, "function": {"name": "f", **function}})
    ),
    st.fixed_dictionaries(
        {
            "id": one("c1"),
            "type": st.just("custom"),
            "custom": some(input=one("x", "", None)).map(lambda it: {"name": "f", **it}),
        }
    ),
    some(id=one("c1", 7), type=one("mcp", "function", "custom"), mcp=ODD, custom=ODD, function=ODD),
)
MESSAGE = st.one_of(
    st.fixed_dictionaries(
        {"role": one("user", "system", "developer")}, optional={"content": CONTENT, "name": ODD, "x": ODD}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": CONTENT,
            "refusal": one(None, "", "no"),
            "audio": one(None, {"id": "a"}, {"id": "a", "data": "AAAA"}),
            "images": one(None, [], [{"type": "image_url", "image_url": {"url": "https://x.org"}}], ["x"]),
            "function_call": one(None, {"name": "f", "arguments": "{}"}, {"name": "f", "arguments": ""}),
            "tool_calls": st.one_of(st.none(), st.lists(CALL, max_size=2)),
            "reasoning": one(None, "", "t", "u", {"x": 1}),
            "reasoning_content": one(None, "", "t"),
            "reasoning_text": one(None, "t"),
            "reasoning_details": st.one_of(st.none(), st.lists(DETAIL, max_size=2)),
            "extra_content": SIGNATURE,
            "annotations": ODD,
            "prefix": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool")}, optional={"tool_call_id": one("c1", "", None), "content": CONTENT, "name": ODD}
    ),
    st.fixed_dictionaries({"role": st.just("function"), "name": one("f")}, optional={"content": CONTENT, "x": ODD}),
    st.fixed_dictionaries({"role": one("odd", None)}, optional={"content": CONTENT}),
)
TOOL = st.one_of(
    some(type=one("function"), x=ODD).flatmap(
        lambda tool: some(
            description=one("", "d", None),
            parameters=one({}, {"type": "object"}, None),
            strict=YES_OR_NO_OR_NULL,
            y=ODD,
        ).map(lambda function: {**tool, "function": {"name": "f", **function}})
    ),
    one({"type": "custom", "custom": {"name": "f"}}, {"type": "odd"}, {"type": "function", "function": {}}),
)
OPTIONS = {
    "model": one("m", "", None),
    "tools": st.one_of(st.none(), st.lists(TOOL, max_size=2)),
    "functions": one(None, [], [{"name": "f", "parameters": {}}]),
    "function_call": one("auto", {"name": "f"}, None),
    "tool_choice": one(
        "auto", "none", "x", {"type": "function", "function": {"name": "f"}}, {"function": {"name": "auto"}}, None
    ),
    "max_tokens": ODD,
    "max_completion_tokens": ODD,
    "temperature": ODD,
    "stop": one("x", ["x"], [], None, [1]),
    "seed": ODD,
    "stream": YES_OR_NO_OR_NULL,
    "stream_options": one({"include_usage": True}, {"include_usage": False}, None),
    "store": YES_OR_NO_OR_NULL,
    "tool_stream": st.booleans(),
    "parallel_tool_calls": YES_OR_NO_OR_NULL,
    "response_format": one(
        {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}, None
    ),
    "reasoning_effort": one("high", "none", "odd", None),
    "reasoning": one({"effort": "high"}, {"enabled": False}, {"max_tokens": 9}, {"exclude": True}, None),
    "thinking": one({"type": "enabled"}, {"type": "disabled"}, {"type": "odd"}, "low"),
    "enable_thinking": YES_OR_NO_OR_NULL,
    "thinking_budget": one(9, None),
    "chat_template_kwargs": one({"enable_thinking": True, "x": 1}, {"x": 1}),
    "prompt_cache_key": ODD,
    "prompt_cache_retention": one("24h", "in_memory", "odd", None),
    "user": ODD,
    "safety_identifier": ODD,
    "n": ODD,
}


@scaled_examples(3)
@given(
    at=st.sampled_from(ENDPOINTS),
    messages=st.lists(MESSAGE, max_size=3),
    options=st.fixed_dictionaries({}, optional=OPTIONS),
)
def test_any_request_comes_out_as_it_was(at, messages, options):
    body = {"messages": messages, **options}
    assert CODEC.encode_request(CODEC.decode_request(body, at), at) == body


USAGE = some(
    prompt_tokens=ODD,
    completion_tokens=one(3, None),
    total_tokens=one(4, 0, None),
    cached_tokens=one(1, None),
    prompt_tokens_details=one(None, {"cached_tokens": 1}),
    completion_tokens_details=one(None, {"reasoning_tokens": 2}),
    cost=one(0.5, {"total_cost": 1}, None, "x"),
)
CHOICE = some(
    index=one(0, 1, None),
    message=MESSAGE,
    finish_reason=one("stop", "odd", "", None),
    logprobs=ODD,
    usage=USAGE,
    error=one(None, {"message": "no"}),
)


@scaled_examples(3)
@given(
    at=st.sampled_from(ENDPOINTS),
    body=some(
        id=one("r", "", None),
        object=one("chat.completion", "x", None),
        model=one("m", "", None),
        created=ODD,
        choices=st.one_of(st.none(), st.lists(CHOICE, max_size=2)),
        usage=st.one_of(st.none(), USAGE),
        error=one(None, {"message": "no"}, "no"),
    ),
)
def test_any_reply_comes_out_as_it_was(at, body):
    if body.get("choices") is None and not body.get("error"):
        with pytest.raises(DecodeError):
            CODEC.decode_response(body, at, {})
        return
    assert CODEC.encode_response(CODEC.decode_response(body, at, {}), at) == body


@scaled_examples(1.5)
@given(
    at=st.sampled_from(ENDPOINTS),
    frames=st.lists(
        st.one_of(
            some(
                id=one("r", "", None),
                choices=st.one_of(
                    st.none(),
                    st.lists(
                        some(index=one(0, 1, None), delta=MESSAGE, finish_reason=one("stop", None), usage=USAGE),
                        max_size=2,
                    ),
                ),
                usage=st.one_of(st.none(), USAGE),
                error=one(None, {"message": "no"}),
            ),
            st.just("[DONE]"),
        ),
        max_size=5,
    ),
)
def test_any_stream_begins_and_ends_once(at, frames):
    decoder = CODEC.stream_decoder(at, {})
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    kinds = [event.type for event in events]
    assert kinds[0] == "start"
    assert kinds.count("start") == 1
    assert kinds[-1] in ("done", "error")
    assert kinds.count("done") + kinds.count("error") == 1
    for index, piece in enumerate(decoder.message.content):
        assert event_kinds(events, index) == {piece.kind.lower()}
    assert CODEC.encode_response(decoder.message, at)


JSON = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            one("role", "content", "tool_calls", "type", "function", "messages", "choices", "message", "tools"),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@scaled_examples(1.5)
@given(at=st.sampled_from(ENDPOINTS), value=JSON)
def test_nonsense_is_read_or_refused_and_nothing_else(at, value):
    for body in (value, {"messages": [value]}, {"messages": value}):
        if isinstance(body, (dict, list)):
            with suppress(DecodeError):
                CODEC.decode_request(body, at)
    for body in (value, {"choices": [value]}, {"choices": [{"message": value}]}):
        if isinstance(body, dict):
            with suppress(DecodeError):
                CODEC.decode_response(body, at, {})
            CODEC.check(body, at)
    CODEC.check({"messages": [value]}, at)
    CODEC.decode_error(value, None)
