"""Error bodies are read in any format; `check` names what a body shows and passes what was accepted."""

from __future__ import annotations

import pytest

from protocols.openai_chat.endpoints import GPT, endpoint
from segue.protocols.kit.codec import WireError
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

ERRORS = {
    "OpenAI's": (
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": "context_length_exceeded"}},
        400,
        WireError(status=400, code="context_length_exceeded", type="invalid_request_error", message="m"),
    ),
    "a gateway's": (
        {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "slow down"}}},
        None,
        WireError(status=429, code="429", message="Provider returned error: slow down"),
    ),
    "a bare string": (
        {"error": "no such model", "error_type": "t"},
        404,
        WireError(status=404, type="t", message="no such model"),
    ),
    "at the top": (
        {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
        None,
        WireError(status=400, code="400", type="BadRequestError", message="too long"),
    ),
    "a detail": ({"detail": "Not Found"}, 404, WireError(status=404, message="Not Found")),
    "a list of details": (
        {"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]},
        422,
        WireError(status=422, type="missing", message="field required"),
    ),
    "in a list": (
        [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}],
        None,
        WireError(status=400, code="400", message="m"),
    ),
    "JSON as text": ('{"error": {"message": "m"}}', 500, WireError(status=500, message="m")),
    "bytes": (b"upstream timed out", 504, WireError(status=504, message="upstream timed out")),
    "text that only looks like JSON": ("{oops", None, WireError(message="{oops")),
    "nothing": (None, 500, WireError(status=500)),
    "an object of another kind": ({"oops": 1}, None, WireError(message='{"oops": 1}')),
}


@pytest.mark.parametrize(("body", "status", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read(body, status, error):
    assert CODEC.decode_error(body, status) == error


HI = {"role": "user", "content": "hi"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def call(call_id="c1", name="f"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def asks(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls) or [call()]}


def answers(call_id="c1", content: object = "x"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def body(*messages, **beside):
    return {"model": "m", "messages": list(messages), **beside}


def tool(name="f", parameters=None):
    return {
        "type": "function",
        "function": {"name": name, "parameters": parameters or {"type": "object", "properties": {}}},
    }


def strict(*required: str):
    inner = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "additionalProperties": False,
    }
    function = {"name": "f", "parameters": {**inner, "required": list(required)}, "strict": True}
    return {"type": "function", "function": function}


PERPLEXITY = endpoint("perplexity", "sonar")
KIMI = endpoint("moonshotai", "kimi-k2")
THINKER = endpoint("deepseek", "deepseek-v4", reasoning=True)
THINK = {"thinking": {"type": "enabled"}}


def arguing(arguments: object):
    return body(
        HI, asks({"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}), answers()
    )


def with_fields(**given: object):
    return body(HI, {"role": "assistant", **given}, HI)


REFUSED = {
    "no messages": (body(), GPT, ["messages_missing"]),
    "a message that is no object": (body("hi"), GPT, ["type_wrong"]),
    "an unknown role": (body({"role": "wizard", "content": "x"}), GPT, ["role_unknown"]),
    "a call that is not answered": (body(HI, asks(), HI), GPT, ["result_missing"]),
    "a call that is not answered yet": (body(HI, asks()), GPT, ["result_missing"]),
    "one of two calls that is not answered": (
        body(HI, asks(call(), call("c2")), answers(), HI),
        GPT,
        ["result_missing"],
    ),
    "a result without a call": (body(HI, answers()), GPT, ["result_orphaned"]),
    "a result too late": (body(HI, asks(), HI, answers()), GPT, ["result_missing", "result_orphaned"]),
    "an id that is too long": (body(HI, asks(call("c" * 41)), answers("c" * 41)), GPT, ["call_id_too_long"]),
    "an id of other letters": (
        body(HI, asks(call("call_1")), answers("call_1")),
        endpoint("nvidia", "mistralai/mistral-large"),
        ["call_id_invalid"],
    ),
    "a tool whose name has a dot": (body(HI, tools=[tool("a.b")]), GPT, ["tool_name_invalid"]),
    "a tool whose name is too long": (body(HI, tools=[tool("a" * 65)]), GPT, ["tool_name_invalid"]),
    "a call whose name has a dot": (body(HI, asks(call(name="a.b")), answers()), GPT, ["tool_name_invalid"]),
    "too many tools": (body(HI, tools=[tool(f"f{n}") for n in range(129)]), GPT, ["tools_too_many"]),
    "a schema that is no object": (body(HI, tools=[tool(parameters={"type": "string"})]), GPT, ["schema_root_invalid"]),
    "a choice without tools": (body(HI, tool_choice="auto"), GPT, ["tool_choice_without_tools"]),
    "a picture in a result": (body(HI, asks(), answers(content=[PICTURE])), GPT, ["result_media_unsupported"]),
    "a picture of the assistant's": (body(HI, {"role": "assistant", "content": [PICTURE]}), GPT, ["block_misplaced"]),
    "a picture by its address": (body({"role": "user", "content": [PICTURE]}), KIMI, ["media_source_unsupported"]),
    "audio for a model that does not accept audio": (
        body({"role": "user", "content": [SOUND]}),
        endpoint("openai", "gpt-5-mini"),
        ["media_type_unsupported"],
    ),
    "instructions for a model that takes none": (
        body({"role": "system", "content": "s"}, HI),
        endpoint("openai", "o1-mini"),
        ["system_unsupported"],
    ),
    "instructions that do not come first": (
        body(HI, {"role": "system", "content": "s"}),
        endpoint("vllm", "qwen3"),
        ["system_misplaced"],
    ),
    "two user turns": (body(HI, HI), PERPLEXITY, ["turns_not_alternating"]),
    "an assistant first": (body({"role": "assistant", "content": "a"}, HI), PERPLEXITY, ["first_turn_wrong"]),
    "an assistant last": (body(HI, {"role": "assistant", "content": "a"}), PERPLEXITY, ["last_turn_wrong"]),
    "a user behind a result": (
        body(HI, asks(call("a" * 9)), answers("a" * 9), HI),
        endpoint("nvidia", "mistralai/mistral-large"),
        ["user_after_result"],
    ),
    "a user without text": (body({"role": "user", "content": ""}), KIMI, ["text_blank"]),
    "a result of no parts": (body(HI, asks(), answers(content=[])), endpoint("nvidia", "x"), ["result_empty"]),
    "too hot": (body(HI, temperature=2.5), GPT, ["value_out_of_range"]),
    "too many stops": (body(HI, stop=list("abcde")), GPT, ["stop_invalid"]),
    "no choices": (body(HI, n=0), GPT, ["value_out_of_range"]),
    "likelihoods without likelihoods": (body(HI, top_logprobs=3), GPT, ["value_out_of_range"]),
    "a search by a model that does not": (body(HI, web_search_options={}), GPT, ["option_unsupported"]),
    "a call that is answered twice": (body(HI, asks(), answers(), answers()), GPT, ["result_duplicate"]),
    "two calls of one id": (body(HI, asks(call(), call()), answers(), answers()), GPT, ["call_id_duplicate"]),
    "arguments that are an object": (arguing({}), GPT, ["arguments_invalid"]),
    "arguments that are a list": (arguing("[]"), GPT, ["arguments_invalid"]),
    "arguments that were cut off": (arguing('{"a": 1'), GPT, ["arguments_invalid"]),
    "a picture for a model that does not see": (
        body({"role": "user", "content": [PICTURE]}),
        endpoint("deepseek", "deepseek-chat", input=("text",)),
        ["media_unsupported"],
    ),
    "an assistant message of null": (with_fields(content=None), GPT, ["content_missing"]),
    "an empty assistant message": (with_fields(), GPT, ["content_missing"]),
    "an assistant with no calls, in a list": (
        with_fields(content=None, tool_calls=[]),
        GPT,
        ["tool_list_empty", "content_missing"],
    ),
    "a part of another wire": (
        with_fields(content=[{"type": "thinking", "thinking": "t", "signature": "s"}]),
        GPT,
        ["block_type_unknown"],
    ),
    "a film for the inventor of the wire": (
        body({"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://x.org/a"}}]}),
        GPT,
        ["block_type_unknown"],
    ),
    "a file whose data have another name": (
        body({"role": "user", "content": [{"type": "file", "file": {"data": "data:application/pdf;base64,AAAA"}}]}),
        GPT,
        ["field_unknown"],
    ),
    "a part without a type": (with_fields(content=[{"role": "system", "content": "a"}]), GPT, ["block_type_unknown"]),
    "a strict tool with something to leave out": (body(HI, tools=[strict("a")]), GPT, ["schema_not_strict"]),
    "stop texts for a model that has none": (
        body(HI, stop=["x"]),
        endpoint("openai", "gpt-5-mini"),
        ["option_unsupported"],
    ),
    "a temperature for a model that has none unless thinking is off": (
        body(HI, temperature=0.5),
        endpoint("openai", "gpt-5.5"),
        ["option_unsupported"],
    ),
    "a temperature for a model that has one": (
        body(HI, temperature=0.5),
        endpoint("openai", "o3-mini"),
        ["option_unsupported"],
    ),
    "the old name of the limit": (body(HI, max_tokens=9), endpoint("openai", "gpt-5-mini"), ["option_renamed"]),
    "reasoning that is not passed back": (
        body(HI, {"role": "assistant", "content": "a"}, HI, **THINK),
        THINKER,
        ["reasoning_missing"],
    ),
}


@pytest.mark.parametrize(("wire", "at", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_provider_would_refuse_is_named(wire, at, codes):
    found = CODEC.check(wire, at)
    assert [violation.code for violation in found] == codes
    assert all(violation.message and violation.path for violation in found)


ACCEPTED = {
    "a conversation": (body({"role": "system", "content": "s"}, HI, asks(), answers(), HI), GPT),
    "two user turns": (body(HI, HI), GPT),
    "an assistant last": (body(HI, {"role": "assistant", "content": "a"}), GPT),
    "results in any order": (body(HI, asks(call(), call("c2")), answers("c2"), answers()), GPT),
    "a call without a result at Ollama": (body(HI, asks()), endpoint("ollama", "qwen3")),
    "the same before a user turn": (body(HI, asks(), HI), endpoint("ollama", "qwen3")),
    "a result without a call at Ollama": (body(HI, answers()), endpoint("ollama", "qwen3")),
    "ids that come again in a later turn": (body(HI, asks(), answers(), asks(), answers()), GPT),
    "an empty list of tools": (body(HI, tools=[]), endpoint("huggingface", "x")),
    "a tool without a schema": (body(HI, tools=[{"type": "function", "function": {"name": "f"}}]), GPT),
    "a tool of the provider's own": (body(HI, tools=[{"type": "openrouter:advisor"}]), endpoint("openrouter", "x")),
    "long ids where they are accepted": (body(HI, asks(call("c" * 43)), answers("c" * 43)), endpoint("xai", "grok-4")),
    "audio for a model that accepts audio": (
        body({"role": "user", "content": [SOUND]}),
        endpoint("openai", "gpt-4o-audio-preview"),
    ),
    "a search by a model that does": (body(HI, web_search_options={}), endpoint("openai", "gpt-4o-search-preview")),
    "a search elsewhere": (body(HI, web_search_options={}), PERPLEXITY),
    "no arguments": (arguing(""), GPT),
    "arguments with spaces": (arguing('{ "a": 1 }'), GPT),
    "an assistant who refused": (with_fields(content=None, refusal="no"), GPT),
    "a call of an unknown kind without an id": (with_fields(content=None, tool_calls=[{"type": "odd"}]), GPT),
    "a picture in an assistant's turn, at a gateway": (
        body(
            HI, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://x.org/a"}}]}, HI
        ),
        endpoint("openrouter", "google/gemini-2.5-flash-image"),
    ),
    "an assistant who only thought": (with_fields(content=None, reasoning="hm"), endpoint("groq", "x")),
    "a choice without tools elsewhere": (body(HI, tool_choice="none"), endpoint("groq", "x")),
    "instructions for a model that is better off without": (
        body({"role": "system", "content": "a"}, {"role": "system", "content": "b"}, HI),
        endpoint("deepseek", "deepseek-reasoner"),
    ),
    "instructions for such a model, whoever serves it": (
        body({"role": "system", "content": "a"}, HI),
        endpoint("openai", "deepseek-r1-distill-llama-70b"),
    ),
    "a file of another vendor's": (
        body({"role": "user", "content": [{"type": "file", "file": {"file_data": "https://x.org/a.pdf", "x": 1}}]}),
        endpoint("openrouter", "x"),
    ),
    "a strict tool": (body(HI, tools=[strict("a", "b")]), GPT),
    "a strict tool elsewhere": (body(HI, tools=[strict("a")]), endpoint("together", "x")),
    "stop texts": (body(HI, stop=["x"]), endpoint("openai", "o3-mini")),
    "the only temperature there is": (body(HI, temperature=1), endpoint("openai", "gpt-5-nano")),
    "a temperature of a model that does not think": (
        body(HI, temperature=0.5, reasoning_effort="none"),
        endpoint("openai", "gpt-5.6"),
    ),
    "an assistant message with images": (with_fields(content=None, images=[{"type": "image_url"}]), GPT),
    "an assistant message with audio": (with_fields(content=None, audio={"id": "a"}), GPT),
    "an assistant message with a legacy function call": (
        with_fields(content=None, function_call={"name": "f", "arguments": "{}"}),
        GPT,
    ),
    "a film where they are looked at": (
        body({"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://x.org/a"}}]}),
        endpoint("vllm", "x"),
    ),
    "the old name of the limit for an old model": (body(HI, max_tokens=9), GPT),
    "the old name of the limit elsewhere": (body(HI, max_tokens=9), endpoint("groq", "openai/gpt-5")),
    "reasoning that is passed back": (
        body(HI, {"role": "assistant", "content": "a", "reasoning_content": ""}, HI, **THINK),
        THINKER,
    ),
    "no reasoning where thinking is off": (body(HI, {"role": "assistant", "content": "a"}, HI), THINKER),
    "an assistant message to be continued": (
        body(HI, {"role": "assistant", "content": "a", "prefix": True}),
        endpoint("llama.cpp", "x"),
    ),
}


@pytest.mark.parametrize(("wire", "at"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_provider_takes_passes(wire, at):
    assert CODEC.check(wire, at) == []
