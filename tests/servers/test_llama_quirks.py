"""What llama.cpp's server does, seen without segue: it completes, streams and calls on three wires, in its own way.

The list stands at the top of `llama.py`. A test that fails here after an update says that a quirk is gone, and that a
codec may have one reason less to be careful.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue import SseDecoder
from servers.llama import WEATHER, WIRES, LlamaServer, need_wheels, running_llama

Body = dict[str, Any]
ASKED: Body = {"role": "user", "content": "How is the weather?"}
FUNCTION: Body = {"name": WEATHER.name, "description": WEATHER.description, "parameters": WEATHER.parameters}
PATHS: Mapping[str, str] = dict(zip(WIRES, ("/v1/chat/completions", "/v1/responses", "/v1/messages"), strict=True))
QUESTIONS: Mapping[str, Body] = {
    "openai-chat": {"messages": [ASKED], "max_tokens": 400},
    "openai-responses": {"input": [ASKED], "max_output_tokens": 400},
    "anthropic-messages": {"messages": [ASKED], "max_tokens": 400},
}
TOOLS: Mapping[str, Body] = {
    "openai-chat": {"tools": [{"type": "function", "function": FUNCTION}]},
    "openai-responses": {"tools": [{"type": "function", **FUNCTION}]},
    "anthropic-messages": {
        "tools": [{"name": WEATHER.name, "description": WEATHER.description, "input_schema": WEATHER.parameters}]
    },
}


def post(server: LlamaServer, wire: str, **body: Any) -> httpx2.Response:
    with httpx2.Client(timeout=60) as client:
        return client.post(server.origin + PATHS[wire], json={"temperature": 0, **QUESTIONS[wire], **body})


def events(server: LlamaServer, wire: str, **body: Any) -> list[Body]:
    reply = post(server, wire, stream=True, **body)
    assert reply.headers["content-type"] == "text/event-stream"
    frames = [event.data for event in SseDecoder().feed(reply.content)]
    return [json.loads(frame) for frame in frames if frame != b"[DONE]"]


def test_the_model_is_the_same_every_time(tmp_path: Path):
    need_wheels()
    from servers.tiny_model import write_tiny_model

    for name in ("one", "two"):
        write_tiny_model(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").stat().st_size < 500_000


def test_a_stopped_server_leaves_nothing_behind(tmp_path: Path):
    need_wheels()
    with running_llama(tmp_path) as server:
        assert httpx2.get(server.origin + "/health").status_code == 200
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(server.origin + "/health")


@pytest.mark.parametrize("wire", WIRES)
def test_it_answers_in_text_and_is_deterministic(llama_server: LlamaServer, wire: str):
    first, second = post(llama_server, wire).json(), post(llama_server, wire).json()
    given = {
        "openai-chat": lambda reply: reply["choices"][0]["message"],
        "openai-responses": lambda reply: [item["content"][0]["text"] for item in reply["output"]],
        "anthropic-messages": lambda reply: reply["content"],
    }[wire]
    assert given(first) == given(second)
    assert json.dumps(given(first)).count(" ") > 3


def test_chat_streams_a_call(llama_server: LlamaServer):
    chunks = events(llama_server, "openai-chat", **TOOLS["openai-chat"], stream_options={"include_usage": True})
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert any("reasoning_content" in delta for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [call["function"]["name"] for call in calls if "id" in call] == [WEATHER.name]
    assert "city" in json.loads("".join(call["function"]["arguments"] for call in calls))
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert "timings" in chunks[-1]


def test_responses_streams_a_call_without_an_index(llama_server: LlamaServer):
    result = events(llama_server, "openai-responses", **TOOLS["openai-responses"])
    assert not any("output_index" in event or "sequence_number" in event for event in result)
    kinds = [event["type"].removeprefix("response.") for event in result]
    assert kinds[-1] == "completed"
    assert kinds.index("output_item.done") > kinds.index("function_call_arguments.delta")
    thought, *_, call = result[-1]["response"]["output"]
    assert (thought["type"], thought["encrypted_content"], thought["summary"]) == ("reasoning", "", [])
    assert (call["type"], call["name"]) == ("function_call", WEATHER.name)
    assert "city" in json.loads(call["arguments"])


def test_anthropic_blocks_overlap_and_stop_together(llama_server: LlamaServer):
    result = events(llama_server, "anthropic-messages", **TOOLS["anthropic-messages"])
    starts = [event["content_block"] for event in result if event["type"] == "content_block_start"]
    assert starts[0] == {"type": "thinking", "thinking": ""}
    assert starts[-1]["type"] == "tool_use"
    assert "input" not in starts[-1]
    kinds = [event["type"] for event in result]
    first_stop = kinds.index("content_block_stop")
    assert set(kinds[first_stop:]) == {"content_block_stop", "message_delta", "message_stop"}
    assert result[first_stop - 1]["delta"] == {"type": "signature_delta", "signature": ""}
    assert result[-2]["delta"]["stop_reason"] == "tool_use"


def test_anthropic_thinking_cannot_be_turned_off(llama_server: LlamaServer):
    reply = post(llama_server, "anthropic-messages", thinking={"type": "disabled"}).json()
    assert reply["content"][0]["type"] == "thinking"


def test_responses_reports_complete_at_the_token_limit(llama_server: LlamaServer):
    reply = post(llama_server, "openai-responses", max_output_tokens=3).json()
    assert (reply["usage"]["output_tokens"], reply["status"]) == (3, "completed")


REFUSED: Mapping[str, Body] = {
    "an assistant's item without a type": {"role": "assistant", "content": "Hm."},
    "reasoning with a summary alone": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
}


@pytest.mark.parametrize("item", REFUSED.values(), ids=REFUSED.keys())
def test_responses_refuses_input_that_openai_accepts(llama_server: LlamaServer, item: Body):
    assert post(llama_server, "openai-responses", input=[ASKED, item, ASKED]).status_code == 400


def test_arguments_that_are_not_json_get_status_500(llama_server: LlamaServer):
    call = {"id": "c", "type": "function", "function": {"name": WEATHER.name, "arguments": '{"city": "Zü'}}
    turns = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "20"}]
    assert post(llama_server, "openai-chat", messages=[ASKED, *turns]).status_code == 500


@pytest.mark.parametrize("wire", WIRES)
def test_an_overflow_has_the_same_error_on_every_protocol(llama_server: LlamaServer, wire: str):
    long = [{"role": "user", "content": "word " * llama_server.window}]
    reply = post(llama_server, wire, **{"input" if wire == "openai-responses" else "messages": long})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["type"]) == (400, 400, "exceed_context_size_error")
    assert error["n_prompt_tokens"] > error["n_ctx"] == llama_server.window
