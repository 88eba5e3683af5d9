"""Refusals in pairs: a body that is refused, and one next to it that differs in that value alone and is taken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import segue
from segue import CacheMark, Context, FileContent, Options, TextContent, UserMessage
from segue.models.model import Model

HI = {"role": "user", "content": "hi"}
CHAT, RESPONSES, MESSAGES, CONVERSE, GEMINI, MISTRAL, INTERACTIONS = (
    *("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse", "google-genai", "mistral-chat"),
    "google-interactions",
)
TURN = {"role": "user", "content": [{"text": "hi"}]}
IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
CHOICE = [{"type": "string"}, {"type": "integer"}]


def chat(**rest: Any) -> dict[str, Any]:
    return {"messages": [HI], **rest}


def calls(count: int) -> dict[str, Any]:
    made = [{"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(count)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in made]
    return {"messages": [HI, {"role": "assistant", "tool_calls": made}, *results]}


def one_call(*after: dict[str, Any], **rest: Any) -> dict[str, Any]:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": "x"}
    return {"messages": [HI, {"role": "assistant", "content": "", "tool_calls": [call], **rest}, result, *after]}


def converse_result(*content: Any, after: Any = ()) -> dict[str, Any]:
    used = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]}
    result = {"toolResult": {"toolUseId": "t1", "content": list(content)}}
    spec = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "properties": {}}}}}
    return {"messages": [TURN, used, {"role": "user", "content": [result, *after]}], "toolConfig": {"tools": [spec]}}


def function(schema: dict[str, Any] | None, **rest: Any) -> dict[str, Any]:
    inner = {"name": "f", **rest, **({} if schema is None else {"parameters": schema})}
    return chat(tools=[{"type": "function", "function": inner}])


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": closed()}}


def flat(schema: dict[str, Any] | None) -> dict[str, Any]:
    tool = {"type": "function", "name": "f", "strict": True, **({} if schema is None else {"parameters": schema})}
    return {"input": "hi", "tools": [tool]}


def claude(*blocks: dict[str, Any], **rest: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "x", **block} for block in blocks or ({},)]
    return {"max_tokens": 100, "messages": [{"role": "user", "content": content}], **rest}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def output(schema: dict[str, Any]) -> dict[str, Any]:
    return claude(output_config={"format": {"type": "json_schema", "schema": schema}})


def document(kind: str, *between: dict[str, Any]) -> dict[str, Any]:
    paper = {"document": {"format": kind, "name": "a", "source": {"bytes": "aGk="}}}
    point = {"cachePoint": {"type": "default"}}
    return {"messages": [{"role": "user", "content": [{"text": "x"}, paper, *between, point]}]}


def used(thinking: dict[str, Any]) -> dict[str, Any]:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
    tools = [{"name": "f", "input_schema": EMPTY}]
    return {"max_tokens": 8000, "messages": [HI, use, result], "tools": tools, "thinking": thinking}


def declared(schema: dict[str, Any], **rest: Any) -> dict[str, Any]:
    tool = {"functionDeclarations": [{"name": "f", "description": "x", "parameters": schema}]}
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [tool], **rest}


def answered(**rest: str) -> dict[str, Any]:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}, **rest}}]}
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    return declared(schema, contents=[{"role": "user", "parts": [{"text": "hi"}]}, call, result])


def level(value: str) -> dict[str, Any]:
    thinking = {"thinkingConfig": {"thinkingLevel": value}}
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": thinking}


EMPTY = closed()
TEXT = {"type": "text", "text": "x"}
REPLY = {"role": "assistant", "content": "x"}
K3, GROK, GLM = "moonshotai/kimi-k3", "xai/grok-4.5", "zai/glm-5.2"
GPT, CLAUDE, BEDROCK = "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "amazon-bedrock/us.anthropic.claude-sonnet-4-6"
DEVSTRAL, ROUTED = "mistral/devstral-medium-latest", "openrouter/openai/gpt-5"

Pair = tuple[str, str, dict[str, Any], dict[str, Any], tuple[Any, ...]]
PAIRS: dict[str, Pair] = {
    # -- efforts that a model does not have
    **{
        f"Kimi K3 and the effort {effort}": (
            K3,
            CHAT,
            chat(reasoning_effort=effort),
            chat(reasoning_effort="low"),
            ("reasoning_effort",),
        )
        for effort in ("none", "minimal", "medium", "xhigh")
    },
    "K3 of Kimi for Coding": (
        "kimi-coding/k3",
        CHAT,
        chat(reasoning_effort="none"),
        chat(reasoning_effort="max"),
        ("reasoning_effort",),
    ),
    **{
        f"Grok 4.5 and the effort {effort} over {protocol}": (GROK, protocol, refused, taken, path)
        for effort in ("none", "max")
        for protocol, refused, taken, path in (
            (CHAT, chat(reasoning_effort=effort), chat(reasoning_effort="minimal"), ("reasoning_effort",)),
            (
                RESPONSES,
                {"input": "hi", "reasoning": {"effort": effort}},
                {"input": "hi", "reasoning": {"effort": "xhigh"}},
                ("reasoning", "effort"),
            ),
        )
    },
    "Grok 4.6 always thinks": (
        "xai/grok-4.6",
        CHAT,
        chat(reasoning_effort="none"),
        chat(reasoning_effort="high"),
        ("reasoning_effort",),
    ),
    "a model behind OpenRouter that always thinks": (
        "openrouter/x-ai/grok-4.5",
        CHAT,
        chat(reasoning_effort="none"),
        chat(reasoning_effort="low"),
        ("reasoning_effort",),
    ),
    "GLM 5.3 and the effort medium": (
        "zai/glm-5.3",
        CHAT,
        chat(reasoning_effort="medium"),
        chat(reasoning_effort="high"),
        ("reasoning_effort",),
    ),
    "GLM 5.3 always thinks": (
        "zai/glm-5.3",
        CHAT,
        chat(thinking={"type": "disabled"}),
        chat(thinking={"type": "enabled"}),
        ("thinking", "type"),
    ),
    "Gemini 3 Pro and the level minimal": (
        "google/gemini-3.1-pro-preview",
        GEMINI,
        level("MINIMAL"),
        level("XHIGH"),
        ("generationConfig", "thinkingConfig", "thinkingLevel"),
    ),
    "Gemini over Interactions": (
        "google/gemini-3.1-pro-preview",
        INTERACTIONS,
        {"input": "hi", "generation_config": {"thinking_level": "minimal"}},
        {"input": "hi", "generation_config": {"thinking_level": "xhigh"}},
        ("generation_config", "thinking_level"),
    ),
    "Cerebras and the effort default of GLM 4.7": (
        "cerebras/zai-glm-4.7",
        CHAT,
        chat(reasoning_effort="default"),
        chat(reasoning_effort="low"),
        ("reasoning_effort",),
    ),
    "Qwen that always thinks": (
        "alibaba/qwen3-235b-a22b-thinking-2507",
        CHAT,
        chat(enable_thinking=False, stream=True),
        chat(enable_thinking=True, stream=True),
        ("enable_thinking",),
    ),
    # -- fields that a host does not have
    "a user at Codex": (
        "openai-codex/gpt-5.2-codex",
        RESPONSES,
        {"instructions": "", "store": False, "stream": True, "input": [HI], "user": "u"},
        {"instructions": "", "store": False, "stream": True, "input": [HI]},
        ("user",),
    ),
    "JSON mode of GPT-4": (
        "openai/gpt-4-0613",
        CHAT,
        {"messages": [{"role": "user", "content": "JSON"}], "response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": "JSON"}], "response_format": {"type": "text"}},
        ("response_format", "type"),
    ),
    **{
        f"{key} of a tool at Fireworks": (
            "fireworks/accounts/fireworks/models/kimi-k2p6",
            MESSAGES,
            claude(tools=[{"name": "f", "input_schema": closed(), key: value}]),
            claude(tools=[{"name": "f", "input_schema": closed()}]),
            ("tools", 0, key),
        )
        for key, value in (("eager_input_streaming", True), ("cache_control", {"type": "ephemeral"}))
    },
    "a search of Anthropic at Fireworks": (
        "fireworks/accounts/fireworks/models/minimax-m3",
        MESSAGES,
        claude(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        claude(tools=[{"type": "custom", "name": "f", "input_schema": closed()}]),
        ("tools", 0, "type"),
    ),
    # -- limits of output
    "GLM 5.2": (GLM, CHAT, chat(max_tokens=131_073), chat(max_tokens=131_072), ("max_tokens",)),
    "GLM 4.5 Air": ("zai/glm-4.5-air", CHAT, chat(max_tokens=98_305), chat(max_tokens=98_304), ("max_tokens",)),
    "GPT-5 behind OpenRouter": (ROUTED, CHAT, chat(max_tokens=15), chat(max_tokens=16), ("max_tokens",)),
    # -- tools
    "a strict tool without parameters": (
        GPT,
        CHAT,
        function(None, strict=True),
        function(EMPTY, strict=True),
        ("tools", 0, "function", "strict"),
    ),
    "a strict tool without parameters over Responses": (
        GPT,
        RESPONSES,
        flat(None),
        flat(EMPTY),
        ("tools", 0, "strict"),
    ),
    "129 calls in a message": (GPT, CHAT, calls(129), calls(128), ("messages", 1, "tool_calls")),
    "129 calls at Copilot": (
        "github-copilot/gpt-5.4",
        CHAT,
        calls(129),
        calls(128),
        ("messages", 1, "tool_calls"),
    ),
    "a schema that OpenAI refuses behind OpenRouter": (
        ROUTED,
        CHAT,
        function({"type": "object", "properties": {"a": {"type": "array"}}}),
        function({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
        ("tools", 0, "function", "parameters", "properties", "a"),
    ),
    "oneOf in an output schema of Claude": (
        CLAUDE,
        MESSAGES,
        output(closed(a={"oneOf": CHOICE})),
        output(closed(a={"anyOf": CHOICE})),
        ("output_config", "format", "schema", "properties", "a", "oneOf"),
    ),
    "oneOf in a strict tool of Claude": (
        CLAUDE,
        MESSAGES,
        claude(tools=[{"name": "f", "strict": True, "input_schema": closed(a={"oneOf": CHOICE})}]),
        claude(tools=[{"name": "f", "input_schema": closed(a={"oneOf": CHOICE})}]),
        ("tools", 0, "input_schema", "properties", "a", "oneOf"),
    ),
    # -- cache marks
    "a mark of the request as the fifth": (
        CLAUDE,
        MESSAGES,
        claude(MARK, MARK, MARK, MARK, {}, **MARK),
        claude(MARK, MARK, MARK, {}, **MARK),
        ("cache_control",),
    ),
    "a mark of the request beside four, one of them on the last block": (
        CLAUDE,
        MESSAGES,
        claude(MARK, MARK, MARK, MARK, **MARK),
        claude(MARK, MARK, MARK, **MARK),
        ("cache_control",),
    ),
    "a mark of the request with another lifetime than that of the last block": (
        CLAUDE,
        MESSAGES,
        claude(MARK, **HOUR),
        claude(HOUR, **HOUR),
        ("cache_control",),
    ),
    **{
        f"a cache point after a document of the format {kind}": (
            BEDROCK,
            CONVERSE,
            document(kind),
            taken,
            ("messages", 0, "content", 2),
        )
        for kind, taken in (("md", document("pdf")), ("docx", document("docx", {"text": "y"})))
    },
    # -- turns
    "a user turn after a result of Devstral": (
        DEVSTRAL,
        MISTRAL,
        one_call(HI),
        one_call({"role": "assistant", "content": "Done."}, HI),
        ("messages", 3, "role"),
    ),
    # -- Kimi's sampling, by whether it thinks
    "Kimi K2.6 thinks": ("moonshotai/kimi-k2.6", CHAT, chat(temperature=0.6), chat(temperature=1), ("temperature",)),
    "Kimi K2.6 does not think": (
        "moonshotai/kimi-k2.6",
        CHAT,
        chat(temperature=1, thinking={"type": "disabled"}),
        chat(temperature=0.6, thinking={"type": "disabled"}),
        ("temperature",),
    ),
    "Kimi K2.6 and top_p": ("moonshotai/kimi-k2.6", CHAT, chat(top_p=1), chat(top_p=0.95), ("top_p",)),
    # -- hosts and models of 2026
    "a chat model over Responses has one effort": (
        "openai/gpt-5.1-chat-latest",
        RESPONSES,
        {"input": "hi", "reasoning": {"effort": "high"}},
        {"input": "hi", "reasoning": {"effort": "medium"}},
        ("reasoning", "effort"),
    ),
    "a call of DeepSeek's reasoner without its reasoning": (
        "deepseek/deepseek-reasoner",
        CHAT,
        one_call(),
        one_call(reasoning_content="Hm."),
        ("messages", 1),
    ),
    **{
        f"NVIDIA and {key}": (f"nvidia/{model}", CHAT, chat(**{key: value}), chat(), (key,))
        for key, value, model in (
            ("prompt_cache_key", "k", "moonshotai/kimi-k2.6"),
            ("enable_thinking", True, "qwen/qwen3.5-397b-a17b"),
            ("reasoning_budget", 1000, "z-ai/glm4.7"),
        )
    },
    "Gemini's search over Chat": (
        "google/gemini-3.5-flash",
        CHAT,
        chat(tools=[{"google_search": {}}]),
        chat(),
        ("tools", 0, "google_search"),
    ),
    "the output limit of Grok 4.6": (
        "xai/grok-4.6",
        CHAT,
        chat(max_completion_tokens=500_000),
        chat(max_completion_tokens=496_000),
        ("max_completion_tokens",),
    ),
    "stop sequences of GLM at Bedrock": (
        "amazon-bedrock/zai.glm-5",
        CONVERSE,
        {"messages": [TURN], "inferenceConfig": {"stopSequences": ["END"]}},
        {"messages": [TURN], "inferenceConfig": {"maxTokens": 9}},
        ("inferenceConfig", "stopSequences"),
    ),
    "reasoning of Nova Pro": (
        "amazon-bedrock/us.amazon.nova-pro-v1:0",
        CONVERSE,
        {"messages": [TURN], "additionalModelRequestFields": {"reasoningConfig": {"type": "enabled"}}},
        {"messages": [TURN]},
        ("additionalModelRequestFields", "reasoningConfig"),
    ),
    "an image in a result for GPT at Bedrock": (
        "amazon-bedrock/us.openai.gpt-6-astra",
        CONVERSE,
        converse_result({"text": "x"}, IMAGE),
        converse_result({"text": "x"}, after=[IMAGE]),
        ("messages", 2, "content", 0, "toolResult", "content", 1, "image"),
    ),
    # -- refusals of the year to 2026-11
    "a summary of reasoning that Copilot does not have": (
        "github-copilot/gpt-5.4",
        RESPONSES,
        {"input": "hi", "reasoning": {"effort": "low", "summary": "off"}},
        {"input": "hi", "reasoning": {"effort": "low", "summary": "auto"}},
        ("reasoning", "summary"),
    ),
    "reasoning with content that is null, for Grok": (
        GROK,
        RESPONSES,
        {"input": [HI, {"type": "reasoning", "summary": [], "content": None}, REPLY, HI]},
        {"input": [HI, {"type": "reasoning", "summary": []}, REPLY, HI]},
        ("input", 1, "content"),
    ),
    "a tool of MiniMax without a type": (
        "minimax/MiniMax-M3",
        CHAT,
        chat(tools=[{"function": {"name": "f", "parameters": EMPTY}}]),
        function(EMPTY),
        ("tools", 0, "function"),
    ),
    "thinking of MiniMax M3 over Chat": (
        "minimax/MiniMax-M3",
        CHAT,
        chat(thinking={"type": "enabled"}),
        chat(thinking={"type": "adaptive"}),
        ("thinking", "type"),
    ),
    **{
        f"a cache of an hour, {model}": (
            f"amazon-bedrock/{model}",
            CONVERSE,
            {"messages": [TURN], "system": [{"text": "x"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
            {"messages": [TURN], "system": [{"text": "x"}, {"cachePoint": {"type": "default"}}]},
            ("system", 1, "cachePoint", "ttl"),
        )
        for model in ("us.anthropic.claude-sonnet-4-20250514-v1:0", "us.amazon.nova-pro-v1:0")
    },
    "a reference in a schema of the Gemini API": (
        "google/gemma-4-31b-it",
        GEMINI,
        declared({"type": "object", "properties": {"q": {"type": "array", "items": {"ref": "X"}}}}),
        declared({"type": "object", "properties": {"q": {"type": "array", "items": {"type": "string"}}}}),
        ("tools", 0, "functionDeclarations", 0, "parameters", "properties", "q", "items", "ref"),
    ),
    "ids of calls for Gemini 2.5 at Vertex": (
        "google-vertex/gemini-2.5-pro",
        GEMINI,
        answered(id="a"),
        answered(),
        ("contents", 2, "parts", 0, "functionResponse", "id"),
    ),
    "a call of DeepSeek without its thinking, over Messages": (
        "deepseek/deepseek-v4-pro",
        MESSAGES,
        used({"type": "enabled"}),
        used({"type": "disabled"}),
        ("messages", 1, "content", 0),
    ),
    "a forced tool of DeepSeek over Messages, where nothing is set": (
        "deepseek/deepseek-v4-pro",
        MESSAGES,
        claude(tools=[{"name": "f", "input_schema": EMPTY}], tool_choice={"type": "tool", "name": "f"}),
        claude(tools=[{"name": "f", "input_schema": EMPTY}], tool_choice={"type": "auto"}),
        ("tool_choice",),
    ),
    "a long reply of Fireworks without a stream": (
        "fireworks/accounts/fireworks/models/glm-5p3",
        CHAT,
        chat(max_tokens=4097),
        chat(max_tokens=4096),
        ("stream",),
    ),
    **{
        f"a strict schema that OpenAI refuses behind {provider}": (
            f"{provider}/{model}",
            RESPONSES,
            flat(closed(u={"type": "string", "format": "uri"})),
            flat(closed(u={"type": "string", "format": "date"})),
            ("tools", 0, "parameters", "properties", "u", "format"),
        )
        for provider, model in (("openrouter", "openai/gpt-5.1-codex-max"), ("github-copilot", "gpt-5.3-codex"))
    },
}

TAKEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Kimi K3 behind OpenRouter, which translates": (
        "openrouter/moonshotai/kimi-k3",
        CHAT,
        chat(reasoning_effort="none"),
    ),
    "Grok 4.3 can be told not to think": ("xai/grok-4.3", CHAT, chat(reasoning_effort="none")),
    "GPT-4o mini behind OpenRouter": ("openrouter/openai/gpt-4o-mini", CHAT, chat(max_tokens=10)),
    "gpt-oss behind OpenRouter": ("openrouter/openai/gpt-oss-120b", CHAT, chat(max_tokens=10)),
    "a user turn after a result of Mistral Small": ("mistral/mistral-small-latest", MISTRAL, one_call(HI)),
    "129 calls elsewhere": ("deepseek/deepseek-v4-pro", CHAT, {**calls(129), "thinking": {"type": "disabled"}}),
    "ids of calls for Gemini 3 at Vertex": ("google-vertex/gemini-3.1-pro-preview", GEMINI, answered(id="a")),
    "ids of calls at the Gemini API": ("google/gemini-2.5-pro", GEMINI, answered(id="a")),
    "thinking with a budget of MiniMax M3 over Messages": (
        "minimax/MiniMax-M3",
        MESSAGES,
        claude(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=8000),
    ),
    **{
        f"thinking without a signature of {name}": (
            name,
            MESSAGES,
            {
                "max_tokens": 4000,
                "temperature": 0.5,
                "thinking": {"type": "enabled", "budget_tokens": 500},
                "messages": [HI, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, TEXT]}, HI],
            },
        )
        for name in ("ollama/qwen3:8b", "deepseek/deepseek-v4-pro", "zai/glm-5.2", "openrouter/qwen/qwen3-max")
    },
    **{
        f"130 tools for {name}": (name, CHAT, chat(tools=[named(f"t{at}") for at in range(130)]))
        for name in ("openrouter/google/gemini-3.5-flash", "together/zai-org/GLM-5", "xai/grok-4.5", "vllm/any")
    },
    "a long reply of Fireworks in a stream": (
        "fireworks/accounts/fireworks/models/glm-5p3",
        CHAT,
        chat(max_tokens=8000, stream=True),
    ),
    "a format that Copilot's Claude is not asked about": (
        "github-copilot/claude-sonnet-4.6",
        CHAT,
        function(closed(u={"type": "string", "format": "uri"})),
    ),
    "a cache of an hour for Claude 4.5 at Bedrock": (
        "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        CONVERSE,
        {"messages": [TURN], "system": [{"text": "x"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
    ),
    "a cache point after Markdown for Nova": ("amazon-bedrock/us.amazon.nova-pro-v1:0", CONVERSE, document("md")),
}


def find(name: str, protocol: str, body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the places of what is refused."""
    try:
        model = replace(segue.get_model(name), protocol=protocol)
    except segue.UnknownModel:
        provider, _, model_id = name.partition("/")
        model = Model(model_id, provider, protocol)
    named = {} if protocol in (CONVERSE, GEMINI) else {"model": model.id}
    return [one.path for one in segue.check({**named, **body}, protocol=protocol, model=model)]


@pytest.mark.parametrize(("name", "protocol", "refused", "taken", "path"), PAIRS.values(), ids=PAIRS.keys())
def test_the_one_is_named_and_the_other_is_not(name, protocol, refused, taken, path):
    assert path in find(name, protocol, refused)
    assert find(name, protocol, taken) == []


@pytest.mark.parametrize(("name", "protocol", "body"), TAKEN.values(), ids=TAKEN.keys())
def test_where_no_refusal_is_known_nothing_is_named(name, protocol, body):
    assert find(name, protocol, body) == []


@pytest.mark.parametrize("value", ["XHIGH", "xhigh"])
def test_a_strict_check_still_notes_an_effort_that_no_list_has(value):
    model = segue.get_model("google/gemini-3.1-pro-preview")
    found = segue.check(level(value), protocol=GEMINI, model=model, strict=True)
    assert [one.grade for one in found] == ["unsure"]


# -- what projection makes of them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mime", "place"), [("text/markdown", "text"), ("application/pdf", "file")], ids=["Markdown", "PDF"]
)
def test_a_mark_of_a_document_moves_where_the_target_cannot_have_it(mime, place):
    paper = FileContent(data="aGk=", mime_type=mime, name="a", cache_mark=CacheMark())
    model = segue.get_model(BEDROCK)
    request = segue.prepare(Context(messages=(UserMessage(content=(TextContent(text="x"), paper)),)), model)
    kinds = [next(iter(block)) for block in request.body["messages"][0]["content"]]
    assert kinds == (["text", "cachePoint", "document"] if place == "text" else ["text", "document", "cachePoint"])
    assert segue.check(request.body, protocol=CONVERSE, model=model) == []


def test_a_choice_becomes_one_that_claude_reads():
    model = segue.get_model(CLAUDE)
    options = Options(output_schema=closed(a={"oneOf": CHOICE}))
    request = segue.prepare(Context(messages=(UserMessage.of("hi"),)), model, options=options)
    schema = request.body["output_config"]["format"]["schema"]
    assert schema["properties"]["a"] == {"anyOf": CHOICE}
    assert segue.check(request.body, protocol=MESSAGES, model=model) == []
