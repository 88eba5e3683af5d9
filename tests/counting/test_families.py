"""Which family a model belongs to, and what a family adds to the texts of a request."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage
from segue.counting.counter import TokenCounter
from segue.counting.families import FAMILIES, find_family
from segue.counting.tokenizers import TOKENIZERS
from segue.models.catalogue import find_models
from segue.models.model import Model

CHOSEN = {
    ("claude-sonnet-4-5", "anthropic", "anthropic-messages"): "Claude Sonnet 4.5 and Haiku 4.5",
    ("us.anthropic.claude-opus-4-6-v1", "amazon-bedrock", "bedrock-converse"): "Claude 4.5 and 4.6",
    ("anthropic/claude-sonnet-4.5", "openrouter", "openai-chat"): "Claude Sonnet 4.5 and Haiku 4.5",
    ("claude-opus-4-5", "anthropic", "anthropic-messages"): "Claude 4.5 and 4.6",
    ("claude-3-7-sonnet-latest", "anthropic", "anthropic-messages"): "Claude up to 4.1",
    ("claude-opus-4-1", "anthropic", "anthropic-messages"): "Claude up to 4.1",
    ("claude-opus-4-7", "anthropic", "anthropic-messages"): "Claude Opus 4.7",
    ("claude-fable-5", "anthropic", "anthropic-messages"): "Claude Sonnet 5 and later",
    ("gpt-4o", "openai", "openai-chat"): "GPT up to 4.1",
    ("gpt-4.1-mini", "openai", "openai-responses"): "GPT up to 4.1, in patches",
    ("gpt-5-mini", "openai", "openai-chat"): "GPT-5 and later, o-series",
    ("gpt-5-mini", "openai", "openai-responses"): "GPT-5 and later, o-series, over Responses",
    ("openai/gpt-5", "openrouter", "openai-chat"): "GPT-5 and later, o-series, at a router",
    ("o3:batch", "openrouter", "openai-chat"): "GPT-5 and later, o-series, at a router",
    ("gpt-chat-latest", "openai", "openai-responses"): "GPT-5 and later, o-series, over Responses",
    ("openai/gpt-oss-120b", "groq", "openai-chat"): "gpt-oss",
    ("gemini-2.0-flash", "google", "google-genai"): "Gemini 1.5 and 2.0 at Google",
    ("gemini-2.5-flash", "google", "google-genai"): "Gemini 2.5",
    ("gemini-2.5-flash", "google-vertex", "google-genai"): "Gemini 2.5 on Vertex",
    ("gemini-3-pro-preview", "google", "google-genai"): "Gemini 3 and later",
    ("gemini-3-pro-preview", "google-vertex", "google-genai"): "Gemini 3 and later on Vertex",
    ("gemma-3-27b-it", "google", "google-genai"): "Gemma",
    ("mistral-large-latest", "mistral", "mistral-chat"): "Mistral",
    ("mistral-small-latest", "mistral", "mistral-chat"): "Mistral Small and Magistral Small",
    ("labs-devstral-small-2512", "mistral", "mistral-chat"): "Mistral",
    ("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse"): "Nova 2",
    ("amazon.nova-micro-v1:0", "amazon-bedrock", "bedrock-converse"): "Nova",
    ("meta-llama/llama-4-scout", "groq", "openai-chat"): "Llama 4",
    ("llama-3.3-70b-versatile", "groq", "openai-chat"): "Llama",
    ("qwen3:8b", "ollama", "ollama-chat"): "Qwen at Ollama",
    ("qwen3-max", "alibaba", "openai-chat"): "Qwen",
    ("deepseek-chat", "deepseek", "openai-chat"): "DeepSeek at DeepSeek",
    ("us.deepseek.r1-v1:0", "amazon-bedrock", "bedrock-converse"): "DeepSeek",
    ("glm-4.6", "zai", "openai-chat"): "GLM",
    ("k3", "kimi-coding", "anthropic-messages"): "Kimi",
    ("command-a-03-2025", "cohere", "cohere-chat"): "Command A",
    ("command-r-08-2024", "cohere", "cohere-chat"): "Command",
    ("grok-4.3", "xai", "openai-responses"): "Grok 4.3",
    ("grok-4-1-fast", "azure", "openai-chat"): "Grok 4.1 at Azure",
    ("us.meta.llama4-maverick-17b-instruct-v1:0", "amazon-bedrock", "bedrock-converse"): "Llama 4 at Bedrock",
    ("my-model", "acme", "openai-chat"): "unknown",
}


@pytest.mark.parametrize(("model", "family"), CHOSEN.items(), ids=["/".join(key[1::-1]) for key in CHOSEN])
def test_a_model_has_the_family_of_its_id(model, family):
    assert find_family(Model(*model)).name == family


def test_every_model_of_the_catalogue_has_the_family_of_its_vendor():
    vendors = {"claude": "Claude", "gemini": "Gemini", "gpt-oss": "gpt-oss", "gpt-": "GPT", "devstral": "Mistral"}
    wrong: list[str] = []
    for model in find_models():
        name = find_family(model).name
        expected = next((vendor for part, vendor in vendors.items() if part in model.id.lower()), "")
        if expected not in name:
            wrong.append(f"{model.provider}/{model.id}: {name}")
    assert wrong == []


def test_most_models_of_the_catalogue_have_a_family():
    models = find_models()
    assert sum(find_family(model).name != "unknown" for model in models) > 0.7 * len(models)


def test_every_row_is_complete_and_the_last_one_matches_everything():
    assert [family.tokenizer for family in FAMILIES if family.tokenizer not in TOKENIZERS] == []
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert not FAMILIES[-1].pattern
    assert FAMILIES[-1].includes(Model("anything", "anyone", "openai-chat"))


# -- what a family adds ------------------------------------------------------------------------------------------------

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages")
OPUS = Model("claude-opus-4-1", "anthropic", "anthropic-messages")
GPT = Model("gpt-5", "openai", "openai-responses")
LLAMA = Model("meta-llama/llama-4-scout", "groq", "openai-chat")
GEMINI = Model("gemini-3-pro-preview", "google", "google-genai")
VERTEX = Model("gemini-3-pro-preview", "google-vertex", "google-genai")
TOOL = ToolDefinition(
    name="look", description="Look at a place.", parameters={"type": "object", "properties": {"at": {"type": "string"}}}
)
TOOLS = Context(tools=(TOOL,))
NO_OPTIONS = Options()


def fixed(model: Model, context: Context = TOOLS, **options: object) -> float:
    return TokenCounter(model).fixed(context, Options(**options))  # pyright: ignore[reportArgumentType]


def test_tools_add_a_constant_and_their_words():
    family, none = find_family(CLAUDE), Context()
    assert fixed(CLAUDE, none) == family.base
    assert family.tools < fixed(CLAUDE) - fixed(CLAUDE, none) < family.tools + 60
    two = Context(tools=(TOOL, TOOL))
    assert 0 < fixed(CLAUDE, two) - fixed(CLAUDE) < 60


def test_a_forced_choice_and_thinking_add_constants():
    family = find_family(CLAUDE)
    assert fixed(CLAUDE, tool_choice="required") == pytest.approx(fixed(CLAUDE) + family.forced)
    assert fixed(CLAUDE, tool_choice="look") == pytest.approx(fixed(CLAUDE) + family.forced)
    assert fixed(CLAUDE, tool_choice="auto") == fixed(CLAUDE)
    assert fixed(CLAUDE, thinking=2000) == pytest.approx(fixed(CLAUDE) + family.thinking)
    assert fixed(CLAUDE, thinking="off") == fixed(CLAUDE)
    assert fixed(GEMINI, tool_choice="auto") == pytest.approx(fixed(GEMINI) + find_family(GEMINI).chosen)


def test_without_options_the_most_is_counted():
    most = TokenCounter(CLAUDE).fixed(TOOLS, None)
    assert most == pytest.approx(fixed(CLAUDE, tool_choice="required", thinking="high"))


def test_unused_tools_count_only_where_they_are_sent():
    assert fixed(CLAUDE, tool_choice="none") == fixed(CLAUDE)
    assert fixed(LLAMA, tool_choice="none") == fixed(LLAMA, Context())


def test_the_punctuation_of_schemas_counts_by_key():
    deep = {"type": "object", "properties": {"at": {"type": "array", "items": {"type": "array", "items": {}}}}}
    assert TokenCounter(GEMINI).tools((ToolDefinition(name="n", description="", parameters=deep),)) > TokenCounter(
        GEMINI
    ).tools((ToolDefinition(name="n", description="", parameters={"type": "object"}),))
    assert TokenCounter(CLAUDE).tools((NativeTool(protocol="anthropic-messages", definition={"type": "x"}),)) > 0


def test_an_output_schema_counts_by_its_family():
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    assert fixed(CLAUDE, output_schema=schema) > fixed(GPT, output_schema=schema) - fixed(GPT) + fixed(CLAUDE)
    assert fixed(GEMINI, output_schema=schema) == fixed(GEMINI)


def turn(*content: TextContent | ThinkingContent | ToolCall | NativeContent) -> AssistantMessage:
    return AssistantMessage(content=content, protocol="p", provider="q", model="m")


def test_a_call_and_its_result_have_one_constant():
    counter = TokenCounter(CLAUDE)
    call = ToolCall(id="a", name="look", arguments={"at": "roof"})
    result = ToolResultMessage(tool_call_id="a", tool_name="look", content=(TextContent(text=""),))
    assert counter.message(result) == (0.0, 0.0)
    assert counter.message(turn(call))[0] == pytest.approx(counter.family.message + counter.piece(call))
    assert counter.piece(call) > counter.family.call


def test_texts_of_people_count_less_than_results():
    counter = TokenCounter(Model("gpt-5-mini", "openai", "openai-chat"))
    text = "The report of the third quarter is on the table, next to the window. " * 40
    said, _ = counter.message(UserMessage.of(text))
    (seen, _), (nothing, _) = (
        counter.message(ToolResultMessage(tool_call_id="c", tool_name="f", content=(TextContent(text=each),)))
        for each in (text, "")
    )
    assert said - counter.family.message == pytest.approx(0.95 * (seen - nothing))


def test_thinking_counts_until_the_next_user_message_where_the_provider_drops_it():
    thinking = ThinkingContent(thinking="The roof has a hole. " * 10, thinking_signature="sig")
    lasting, passing = TokenCounter(OPUS).message(turn(thinking, TextContent(text="Yes.")))
    assert passing > 20 > lasting
    keeps = Model("claude-opus-4-5", "anthropic", "anthropic-messages")
    lasting, passing = TokenCounter(keeps).message(turn(thinking, TextContent(text="Yes.")))
    assert lasting > 20
    assert passing == 0


def test_the_reasoning_that_the_provider_counted_bounds_its_signature():
    model = Model("grok-4.3", "xai", "openai-responses")
    thinking = ThinkingContent(thinking="", thinking_signature="x" * 4000)
    made = turn(thinking, TextContent(text="Yes."))
    unknown = sum(TokenCounter(model).message(made))
    known = sum(TokenCounter(model).message(replace(made, usage=Usage(reasoning=100))))
    assert unknown > 500
    assert known < 120


def test_signatures_count_on_the_gemini_api_alone():
    call = ToolCall(id="a", name="look", arguments={}, thought_signature="x" * 4920)
    bare = ToolCall(id="a", name="look", arguments={})
    api, vertex = TokenCounter(GEMINI), TokenCounter(VERTEX)
    assert api.message(turn(call))[0] - api.message(turn(bare))[0] == pytest.approx(1000)
    assert vertex.message(turn(call)) == vertex.message(turn(bare))


def test_opaque_texts_of_native_blocks_count_less_than_words():
    counter = TokenCounter(CLAUDE)
    opaque = NativeContent(protocol="p", block={"type": "x", "data": "q" * 4000})
    words = NativeContent(protocol="p", block={"type": "x", "data": ["word " * 800]})
    assert counter.piece(opaque) == pytest.approx(1000, rel=0.01)
    assert counter.piece(words) > 500


def test_the_callers_counter_counts_every_text_and_no_constant():
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 1000

    counter = TokenCounter(CLAUDE, count)
    context = Context(system_prompt="Be brief.", tools=(TOOL,))
    family = find_family(CLAUDE)
    assert counter.is_own
    assert counter.fixed(context, NO_OPTIONS) > 3000 + family.tools
    call = ToolCall(id="a", name="look", arguments={"at": "roof"})
    assert counter.message(turn(TextContent(text="So."), call))[0] == 3000 + family.call + family.message
    assert counter.message(UserMessage.of("Hello."))[0] == 1000 + family.message
    assert {"Be brief.", "So.", "look", '{"at":"roof"}', "Hello."} <= set(seen)
    assert any("properties" in text and "{" not in text for text in seen)
