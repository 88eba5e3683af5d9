"""The same conversation for many vendors: each gets the format of its dialect, and no vendor is in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import segue.protocols.openai_chat as folder
from protocols.every_protocol import wire_messages
from protocols.openai_chat.endpoints import PROTOCOL, endpoint, read, write
from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.api import check
from segue.protocols.kit.json_values import object_of
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

HELLO = UserMessage.of("hi")
ANSWER = AssistantMessage(content=(TextContent(text="a"),))
TOOL = ToolDefinition(name="f", parameters={"type": "object"})
LEVELS = {"off": "none", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
ALWAYS = {"off": None}


def message_given(options: Options, at, **context: object) -> dict[str, object]:
    body = write(HELLO, at=at, options=options, **context)
    return {key: value for key, value in body.items() if key not in ("model", "messages", "tools")}


THINKING = {
    # provider, fields of the model, what the options ask for, what the body has
    "OpenAI by effort": ("openai", {"thinking_levels": LEVELS}, "high", {"store": False, "reasoning_effort": "high"}),
    "OpenAI not at all": ("openai", {"thinking_levels": LEVELS}, "off", {"store": False, "reasoning_effort": "none"}),
    "OpenAI, of a model without a value for it": ("openai", {}, "off", {"store": False}),
    "OpenAI by a budget": ("openai", {}, 2000, {"store": False, "reasoning_effort": "low"}),
    "OpenAI, an unknown level": ("openai", {}, "max", {"store": False, "reasoning_effort": "max"}),
    "DeepSeek": ("deepseek", {}, "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    "DeepSeek off": ("deepseek", {}, "off", {"thinking": {"type": "disabled"}}),
    "Moonshot without effort": ("moonshotai", {}, "high", {"thinking": {"type": "enabled"}}),
    "Moonshot that always thinks": ("moonshotai", {"thinking_levels": ALWAYS}, "off", {}),
    "Z.ai": (
        "zai",
        {"dialect": {"effort": False}},
        "low",
        {"thinking": {"type": "enabled", "clear_thinking": False}},
    ),
    "Z.ai off": ("zai", {}, "off", {"thinking": {"type": "disabled"}}),
    "Qwen": ("alibaba", {"dialect": {"effort": False}}, "low", {"enable_thinking": True}),
    "Qwen by a budget": ("alibaba", {}, 500, {"enable_thinking": True, "thinking_budget": 500}),
    "Qwen off": ("alibaba", {}, "off", {"enable_thinking": False}),
    "OpenRouter": ("openrouter", {"thinking_levels": LEVELS}, "max", {"reasoning": {"effort": "max"}}),
    "OpenRouter by a budget": ("openrouter", {}, 500, {"reasoning": {"max_tokens": 500}}),
    "OpenRouter off": ("openrouter", {}, "off", {"reasoning": {"effort": "none"}}),
    "OpenRouter that always thinks": ("openrouter", {"thinking_levels": ALWAYS}, "off", {}),
    "Snowflake": ("snowflake", {}, "low", {"reasoning": {"effort": "low"}}),
    "Together": ("together", {}, "high", {"reasoning": {"enabled": True}}),
    "Together off": ("together", {}, "off", {"reasoning": {"enabled": False}}),
    "Baseten": (
        "baseten",
        {"dialect": {"thinking_format": "baseten"}},
        "high",
        {"chat_template_args": {"enable_thinking": True}, "reasoning_effort": "high"},
    ),
    "vLLM by a budget": ("vllm", {}, 500, {"thinking_token_budget": 500}),
    "llama.cpp by a budget": ("llama.cpp", {}, 500, {"thinking_budget_tokens": 500}),
    "a template": (
        "vllm",
        {"dialect": {"thinking_format": "chat-template"}},
        "off",
        {"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "Qwen's template": (
        "vllm",
        {"dialect": {"thinking_format": "qwen-template"}},
        "low",
        {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
    ),
    "a value": ("vllm", {"dialect": {"thinking_format": "word"}}, "low", {"thinking": "low"}),
    "a value for off": ("vllm", {"dialect": {"thinking_format": "word"}}, "off", {"thinking": "none"}),
    "Ling with known values": (
        "ant-ling",
        {"thinking_levels": {"high": "deep"}},
        "high",
        {"reasoning": {"effort": "deep"}},
    ),
    "Ling with unknown values": ("ant-ling", {}, "high", {}),
    "xAI takes no effort": ("xai", {}, "high", {}),
    "Xiaomi off": ("xiaomi", {}, "off", {"thinking": {"type": "disabled"}}),
    "a model that does not reason": ("openai", {"reasoning": False}, "off", {"store": False}),
}


@pytest.mark.parametrize(("provider", "fields", "asked", "wire"), THINKING.values(), ids=THINKING.keys())
def test_thinking_is_written_in_the_vendors_format(provider, fields, asked, wire):
    at = endpoint(provider, "some-model", **({"reasoning": True} | fields))
    assert message_given(Options(thinking=asked), at) == wire


@pytest.mark.parametrize("level", ["low", "medium", "high", "off"])
@pytest.mark.parametrize("provider", ["openai", "deepseek", "zai", "openrouter", "alibaba", "snowflake"])
def test_a_level_is_read_back(provider, level):
    at = endpoint(provider, "some-model", reasoning=True, thinking_levels=LEVELS)
    body = write(HELLO, at=at, options=Options(thinking=level))
    assert CODEC.decode_request(body, at).options.thinking == level


LIMITS = {
    "openai": "max_completion_tokens",
    "azure": "max_completion_tokens",
    "groq": "max_completion_tokens",
    "deepseek": "max_tokens",
    "moonshotai": "max_tokens",
    "zai": "max_tokens",
    "together": "max_tokens",
    "nvidia": "max_tokens",
    "perplexity": "max_tokens",
    "vllm": "max_tokens",
    "llama.cpp": "max_tokens",
    "lmstudio": "max_tokens",
    "litellm": "max_tokens",
}


@pytest.mark.parametrize(("provider", "field"), LIMITS.items(), ids=LIMITS.keys())
def test_the_limit_has_the_vendors_name(provider, field):
    body = message_given(Options(max_tokens=9), endpoint(provider, "some-model"))
    assert {key: value for key, value in body.items() if "tokens" in key} == {field: 9}


ROLES = {
    "OpenAI, reasoning": ("openai", True, "developer"),
    "OpenAI, not reasoning": ("openai", False, "system"),
    "DeepSeek, reasoning": ("deepseek", True, "system"),
    "Groq, reasoning": ("groq", True, "system"),
}


@pytest.mark.parametrize(("provider", "reasoning", "role"), ROLES.values(), ids=ROLES.keys())
def test_instructions_have_the_vendors_role(provider, reasoning, role):
    at = endpoint(provider, "some-model", reasoning=reasoning)
    body = write(HELLO, SystemMessage.of("b"), at=at, system_prompt="a")
    assert [message["role"] for message in body["messages"]] == [role, "user", role]
    given = CODEC.decode_request(body, at)
    assert given.context.system_prompt == "a"
    assert given.context.messages == (HELLO, SystemMessage.of("b"))


REQUIRED = {
    "deepseek": "reasoning_content",
    "moonshotai": "reasoning_content",
    "xiaomi": "reasoning_content",
}


@pytest.mark.parametrize(("provider", "field"), REQUIRED.items(), ids=REQUIRED.keys())
def test_reasoning_stands_on_every_turn_where_it_has_to(provider, field):
    at = endpoint(provider, "some-model", reasoning=True)
    thought = AssistantMessage(content=(ThinkingContent(thinking="t"), TextContent(text="a")))
    body = write(HELLO, ANSWER, HELLO, thought, at=at)
    assert [message.get(field) for message in body["messages"]] == [None, "", None, "t"]
    assert CODEC.encode_request(CODEC.decode_request(body, at), at) == body


def test_turns_that_came_without_reasoning_go_back_without_it():
    at = endpoint("deepseek", "deepseek-chat")
    body = {
        "model": "deepseek-chat",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "a", "reasoning_content": ""},
            {"role": "assistant", "content": "b"},
        ],
    }
    prompt = CODEC.decode_request(body, at)
    assert [message.extra for message in prompt.context.messages] == [None, None, None]
    assert CODEC.encode_request(prompt, at) == body
    # A later request is written our way, for the field has to be there.
    later = write(*prompt.context.messages, at=at)
    assert [message.get("reasoning_content") for message in later["messages"]] == [None, "", ""]


FIELDS = {"groq": "reasoning", "cerebras": "reasoning", "zai": "reasoning_content", "openrouter": "reasoning_content"}


@pytest.mark.parametrize(("provider", "field"), FIELDS.items(), ids=FIELDS.keys())
def test_thinking_without_a_signature_goes_into_the_vendors_field(provider, field):
    message = AssistantMessage(content=(ThinkingContent(thinking="t"), TextContent(text="a")))
    wire = write(message, at=endpoint(provider, "some-model"))["messages"][0]
    assert {key: value for key, value in wire.items() if key.startswith("reasoning")} == {field: "t"}


@pytest.mark.parametrize(
    ("provider", "model", "tag"),
    [
        ("minimax", "some-model", "think"),
        ("perplexity", "some-model", "think"),
        ("minimax", "MiniMax-M3", "mm:think"),
        ("minimax-cn", "MiniMax-M3.1-Flash", "mm:think"),
    ],
)
def test_thinking_is_written_in_tags_where_tags_are_the_custom(provider, model, tag):
    at = endpoint(provider, model)
    message = AssistantMessage(content=(ThinkingContent(thinking="t"), TextContent(text="a")))
    wire = write(message, at=at)["messages"][0]
    assert wire["content"] == f"<{tag}>t</{tag}>a"
    content = read(wire, at=at).context.messages[0].content
    assert [piece.kind for piece in content] == ["thinking", "text"]


def test_a_result_repeats_its_tools_name_where_it_has_to():
    at = endpoint("openai", dialect={"result_name": True})
    result = ToolResultMessage(tool_call_id="c", tool_name="f", content=(TextContent(text="x"),))
    wire = {"role": "tool", "tool_call_id": "c", "content": "x", "name": "f"}
    assert write(result, at=at)["messages"] == [wire]
    assert read(wire, at=at).context.messages == (result,)
    nameless = {"role": "tool", "tool_call_id": "c", "content": "x"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert write(*read(asked, nameless, at=at).context.messages, at=at)["messages"] == [asked, nameless]


def test_an_empty_list_of_tools_goes_with_calls_behind_litellm():
    at = endpoint("litellm", "some-model")
    called = AssistantMessage(content=(ToolCall(id="c", name="f"),))
    assert write(HELLO, called, at=at)["tools"] == []
    assert "tools" not in write(HELLO, at=at)
    body = {"model": "m", "messages": write(HELLO, called, at=at)["messages"]}
    assert CODEC.encode_request(CODEC.decode_request(body, at), at) == body


def test_streamed_arguments_are_requested_where_that_is_an_option():
    at = endpoint("zai", "some-model")
    assert message_given(Options(stream=True), at, tools=(TOOL,))["tool_stream"] is True
    assert "tool_stream" not in message_given(Options(stream=True), at)
    assert "tool_stream" not in message_given(Options(), at, tools=(TOOL,))


def test_usage_is_not_requested_where_it_is_unknown():
    at = endpoint("openai", dialect={"usage_in_stream": False})
    assert message_given(Options(stream=True), at) == {"stream": True, "store": False}


def test_r1_at_deepseek_accepts_a_system_prompt_and_requires_a_user_message_first():
    # "The first message (except the system message) of deepseek-reasoner must be a user message" (lobehub #5620)
    model = Model("deepseek-reasoner", "deepseek", PROTOCOL, reasoning=True)
    request = prepare(Context(system_prompt="be brief", messages=(HELLO,)), model)
    assert request.report.changes == ()
    assert [object_of(message).get("role") for message in wire_messages(request.body)] == ["system", "user"]
    begun = AssistantMessage(content=(TextContent(text="Welcome."),))
    request = prepare(Context(system_prompt="be brief", messages=(begun, HELLO)), model)
    assert [object_of(message).get("role") for message in wire_messages(request.body)] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("model_id", ["deepseek-ai/DeepSeek-R1", "deepseek-r1-distill-llama-70b"])
def test_r1_keeps_its_system_prompt_at_every_provider(model_id):
    # DeepSeek advises against one; every provider accepts one.
    request = prepare(Context(system_prompt="be brief", messages=(HELLO,)), Model(model_id, "together", PROTOCOL))
    assert request.report.changes == ()
    assert check({**request.body, "model": model_id}, protocol=PROTOCOL) == []


def test_the_path_is_the_wires_own_unless_the_vendor_has_another():
    stream = True
    assert CODEC.path(endpoint(), stream) == "/chat/completions"
    assert CODEC.path(endpoint("ollama"), stream) == "/v1/chat/completions"


@pytest.mark.parametrize(
    "provider", [name for name, row in PROVIDERS.items() if PROTOCOL in {row.protocol, *row.dialect}]
)
def test_every_vendor_can_be_written_to_and_read_back(provider):
    at = endpoint(provider, "some-model", reasoning=True)
    thought = ThinkingContent(thinking="t", thinking_signature="reasoning_content")
    turn = AssistantMessage(content=(thought, TextContent(text="a"), ToolCall(id="c", name="f")))
    result = ToolResultMessage(tool_call_id="c", tool_name="f", content=(TextContent(text="x"),))
    options = Options(max_tokens=9, thinking="low", stream=True, tool_choice="auto")
    body = write(HELLO, turn, result, at=at, options=options, system_prompt="s", tools=(TOOL,))
    assert CODEC.encode_request(CODEC.decode_request(body, at), at) == body


def test_no_vendor_is_named_in_the_code():
    vendors = "azure|deepseek|moonshot|kimi|zai|glm|minimax|dashscope|xai|groq|cerebras|together|fireworks"
    vendors += "|openrouter|huggingface|nvidia|perplexity|snowflake|vllm|llama|lmstudio|litellm|mistral"
    for file in Path(str(folder.__file__)).parent.glob("*.py"):
        if file.name in ("rules.py", "limits.py", "server_tools.py", "batch_forms.py"):  # tables of facts about vendors
            continue
        code = re.sub(r'""".*?"""|#.*', "", file.read_text("utf-8"), flags=re.DOTALL)
        found = set(re.findall(rf"\b(?:{vendors})\b", code, flags=re.IGNORECASE))
        # The formats of a dialect are called after those who had them first.
        assert found <= ({"openrouter", "deepseek", "together", "zai"} if file.name == "thinking.py" else set())


WORKERS = {
    "Workers AI": endpoint("cloudflare-workers-ai", "@cf/meta/llama-4-scout"),
    "its gateway": endpoint("cloudflare-ai-gateway", "workers-ai/@cf/meta/llama-4-scout"),
}
CALLS = AssistantMessage(content=(ToolCall(id="c1", name="f"),))
SPELT = AssistantMessage(content=(ToolCall(id="c1", name="f"),), extra={PROTOCOL: {"x": 1}})


@pytest.mark.parametrize("message", [CALLS, SPELT], ids=["the short way", "the long way"])
@pytest.mark.parametrize("at", WORKERS.values(), ids=WORKERS.keys())
def test_a_turn_of_calls_has_an_empty_text_where_null_is_refused(at, message):
    assert write(message, at=at)["messages"][0]["content"] == ""
    assert write(message, at=endpoint("groq", "llama-4-scout"))["messages"][0]["content"] is None


CALLED = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
CONTENTS_OF_CALLS = {
    "an empty text": {"content": ""},
    "null": {"content": None},
    "nothing": {},
    "text": {"content": "a"},
}


@pytest.mark.parametrize("message_given", CONTENTS_OF_CALLS.values(), ids=CONTENTS_OF_CALLS.keys())
def test_there_a_turn_of_calls_comes_out_as_it_was(message_given):
    at = WORKERS["Workers AI"]
    body = {"model": at.model.id, "messages": [{"role": "assistant", **message_given, "tool_calls": CALLED}]}
    prompt = CODEC.decode_request(body, at)
    assert CODEC.encode_request(prompt, at) == body
    assert [piece.kind for piece in prompt.context.messages[0].content][:-1] == (
        ["text"] if message_given.get("content") else []
    )
    reply = {"choices": [{"index": 0, "message": body["messages"][0], "finish_reason": "tool_calls"}]}
    assert CODEC.encode_response(CODEC.decode_response(reply, at, {}), at) == reply


STOPS = {
    "o1-mini": False,
    "o3-mini": True,
    "openai/o3-mini-2025-01-31": True,
    "o3": False,
    "o4-mini": False,
    "gpt-5": False,
    "gpt-5.4": False,
    "gpt-4.1": True,
}


@pytest.mark.parametrize(("model", "taken"), STOPS.items(), ids=STOPS.keys())
def test_one_reasoning_model_accepts_stop_texts(model, taken):
    prepared = prepare(Context(messages=(HELLO,)), Model(model, "openai", PROTOCOL), options=Options(stop=("x",)))
    assert prepared.body.get("stop") == (["x"] if taken else None)


@pytest.mark.parametrize("has_thinking", [True, False])
def test_reasoning_of_earlier_turns_is_kept_without_a_level(has_thinking):
    thought = (ThinkingContent(thinking="t", thinking_signature="reasoning_content"),) if has_thinking else ()
    content = (*thought, TextContent(text="a"))
    turn = AssistantMessage(content=content, protocol=PROTOCOL, provider="zai", model="glm-5.3")
    prepared = prepare(Context(messages=(HELLO, turn, HELLO)), "zai/glm-5.3")
    kept = {"type": "enabled", "clear_thinking": False}
    assert prepared.body.get("thinking") == (kept if has_thinking else None)
    body = {key: value for key, value in prepared.body.items() if key != "thinking"}
    at = endpoint("zai", "glm-5.3", reasoning=True)
    assert CODEC.encode_request(CODEC.decode_request(body, at), at) == body
