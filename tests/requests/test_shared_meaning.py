"""What two wires have in another form arrives: blocks, tools that may be called, servers, and what is to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from segue import Context, Model, Options, ToolDefinition, UserMessage, convert, get_model, prepare
from segue.projection.report import ChangeCode, Loss
from segue.wire import check

CLAUDE: Final = get_model("anthropic/claude-sonnet-4-5")
BEDROCK: Final = get_model("amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
NOVA: Final = get_model("amazon-bedrock/amazon.nova-pro-v1:0")
INTERACTIONS: Final = Model("gemini-2.5-flash", "google", "google-interactions")

RESULT: Final[Mapping[str, Any]] = {
    "source": "https://a.org",
    "title": "A",
    "citations": {"enabled": True},
}
OF_ANTHROPIC: Final = {"type": "search_result", **RESULT, "content": [{"type": "text", "text": "fact 42"}]}
OF_BEDROCK: Final = {"searchResult": {**RESULT, "content": [{"text": "fact 42"}]}}


def _codes(made: Any) -> list[tuple[str, Loss]]:
    return [(change.code.value, change.loss) for change in made.report.changes]


# -- search results ----------------------------------------------------------------------------------------------------


def _anthropic(block: Mapping[str, Any], *, in_result: bool) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "a", "name": "find", "input": {}}
    turns: list[dict[str, Any]] = [{"role": "user", "content": [block, {"type": "text", "text": "hi"}]}]
    if in_result:
        result = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
        turns = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    tool = {"name": "find", "input_schema": {"type": "object", "properties": {}}}
    return {"model": CLAUDE.id, "max_tokens": 9, "messages": turns, "tools": [tool]}


@pytest.mark.parametrize("in_result", [False, True])
def test_a_search_result_stays_one_at_the_other_provider_of_claude(in_result):
    body = _anthropic(OF_ANTHROPIC, in_result=in_result)
    made = convert(body, source="anthropic-messages", target=BEDROCK)
    content = made.body["messages"][-1]["content"][0]
    assert (content["toolResult"]["content"][0] if in_result else content) == OF_BEDROCK
    assert _codes(made) == [("native_replaced", Loss.NONE)]
    assert check(made.body, protocol="bedrock-converse", model=BEDROCK) == []
    again = convert(made.body, source="bedrock-converse", source_model=BEDROCK, target=CLAUDE)
    content = again.body["messages"][-1]["content"][0]
    assert (content["content"][0] if in_result else content) == OF_ANTHROPIC


@pytest.mark.parametrize(
    ("block", "target"),
    [
        (OF_ANTHROPIC, NOVA),
        ({**OF_ANTHROPIC, "note": "x"}, BEDROCK),
        ({**OF_ANTHROPIC, "content": [{"type": "text", "text": "fact 42", "note": "x"}]}, BEDROCK),
    ],
    ids=["a model without search results", "a field that only one wire has", "one of its texts"],
)
def test_any_other_search_result_is_text(block, target):
    made = convert(_anthropic(block, in_result=False), source="anthropic-messages", target=target)
    texts = [part["text"] for part in made.body["messages"][0]["content"]]
    assert "fact 42" in texts[1]
    assert _codes(made)[0] == ("native_replaced", Loss.OPAQUE)


# -- allowed tools -----------------------------------------------------------------------------------------------------


def _chat(mode: str, names: Sequence[str], **fields: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "abc"]
    allowed = {"mode": mode, "tools": [{"type": "function", "function": {"name": name}} for name in names]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    turns = [{"role": "user", "content": "hi"}]
    return {"model": "gpt-4.1", "messages": turns, "tools": tools, "tool_choice": choice, **fields}


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize(
    "target", [CLAUDE, NOVA, get_model("groq/llama-3.3-70b-versatile"), get_model("mistral/mistral-large-latest")]
)
def test_only_the_allowed_tools_are_sent_where_the_target_has_no_such_choice(target, mode):
    made = convert(_chat(mode, ["c", "b"]), source="openai-chat", target=target)
    assert [getattr(tool, "name", "") for tool in made.projection.context.tools] == ["b", "c"]
    assert made.projection.options.tool_choice == ("required" if mode == "required" else None)
    assert [change.path for change in made.report.of(ChangeCode.TOOL_REMOVED)] == [("tools", 0)]
    assert all(change.loss is Loss.NONE for change in made.report.changes)
    assert any("allowed_tools: only b, c" in change.detail for change in made.report.changes)


def test_two_requests_with_other_allowed_tools_send_other_tools():
    target = get_model("groq/llama-3.3-70b-versatile")
    for name in "abca":
        made = convert(_chat("auto", [name]), source="openai-chat", target=target)
        assert [tool["function"]["name"] for tool in made.body["tools"]] == [name]


def test_allowed_tools_that_no_tool_has_are_reported():
    made = convert(_chat("auto", ["other"]), source="openai-chat", target=CLAUDE)
    assert len(made.body["tools"]) == 3
    assert any("allowed_tools" in change.detail and change.loss is not Loss.NONE for change in made.report.changes)


# -- MCP servers -------------------------------------------------------------------------------------------------------

SERVER: Final = {"type": "mcp", "server_label": "s", "server_url": "https://m.example", "require_approval": "never"}


def _with_tool(*tools: Mapping[str, Any]) -> list[Any]:
    made = convert({"model": "gpt-4.1", "input": "hi", "tools": tools}, source="openai-responses", target=INTERACTIONS)
    return [made.body.get("tools"), *(change.detail for change in made.report.changes)]


def test_an_mcp_server_is_the_other_providers():
    servers = _with_tool(SERVER, {**SERVER, "server_label": "t", "server_url": "https://n.example"})[0]
    assert servers == [
        {"type": "mcp_server", "name": "s", "url": "https://m.example"},
        {"type": "mcp_server", "name": "t", "url": "https://n.example"},
    ]
    body = {"model": INTERACTIONS.id, "input": "hi", "tools": servers[:1]}
    back = convert(body, source="google-interactions", target="openai/gpt-5.4").body
    assert back["tools"] == [SERVER]


@pytest.mark.parametrize(
    ("server", "detail"),
    [
        ({**SERVER, "allowed_tools": []}, "restricted by allowed_tools"),
        ({**SERVER, "allowed_tools": {"tool_names": ["a"], "read_only": True}}, "restricted by allowed_tools"),
        ({**SERVER, "allowed_tools": {"read_only": True}}, "restricted by allowed_tools"),
        ({**SERVER, "require_approval": "always"}, "only openai-responses supports it"),
        ({key: value for key, value in SERVER.items() if key != "require_approval"}, "only openai-responses"),
        ({key: value for key, value in SERVER.items() if key != "server_url"}, "only its provider knows the server"),
    ],
    ids=[
        "none of its tools",
        "tools by name that only read",
        "tools that only read",
        "approval",
        "approval by default",
        "no address",
    ],
)
def test_an_mcp_server_is_not_sent_where_it_could_do_more_than_was_allowed(server, detail):
    tools, *details = _with_tool(server)
    assert tools is None
    assert detail in details[0]


NAMED: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai-responses": {"model": "gpt-5.4", "input": "hi", "tools": [{**SERVER, "allowed_tools": ["a", "b"]}]},
    "google-interactions": {
        "model": INTERACTIONS.id,
        "input": "hi",
        "tools": [
            {
                "type": "mcp_server",
                "name": "s",
                "url": "https://m.example",
                "allowed_tools": [{"mode": "auto", "tools": ["a", "b"]}],
            }
        ],
    },
    "anthropic-messages": {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "mcp_servers": [{"type": "url", "name": "s", "url": "https://m.example"}],
        "tools": [
            {
                "type": "mcp_toolset",
                "mcp_server_name": "s",
                "default_config": {"enabled": False},
                "configs": {"a": {"enabled": True}, "b": {"enabled": True}},
            }
        ],
    },
}
"""One server of whose tools two may be called, as three wires have it."""
MODELS: Final[Mapping[str, Model]] = {
    "openai-responses": get_model("openai/gpt-5.4"),
    "google-interactions": INTERACTIONS,
    "anthropic-messages": get_model("anthropic/claude-opus-5-5"),
}


@pytest.mark.parametrize("source", NAMED)
@pytest.mark.parametrize("target", NAMED)
def test_only_the_tools_of_a_server_that_were_allowed_may_be_called_elsewhere(source: str, target: str):
    made = convert(NAMED[source], source=source, target=MODELS[target])
    keys = ("tools", "mcp_servers")
    assert {key: made.body.get(key) for key in keys} == {key: NAMED[target].get(key) for key in keys}
    assert not made.report.of(ChangeCode.TOOL_REMOVED)
    if source == target:
        assert made.report.changes == ()


def _toolset(**config: object) -> list[Any]:
    """Give what becomes of a toolset at OpenAI: its tools, what is left of its servers, and the report."""
    body = {**NAMED["anthropic-messages"]}
    body["tools"] = [{"type": "mcp_toolset", "mcp_server_name": "s", **config}]
    made = convert(body, source="anthropic-messages", target=MODELS["openai-responses"])
    return [made.body.get("tools"), *(change.detail for change in made.report.changes)]


def test_a_toolset_without_some_of_its_tools_is_not_sent_where_they_could_be_called():
    tools, *details = _toolset(configs={"a": {"enabled": False}})
    assert tools is None
    assert "restricted by allowed_tools.configs" in details[0]
    tools, *details = _toolset(default_config={"enabled": False})
    assert tools is None
    assert "restricted by allowed_tools.none" in details[0]


def test_a_toolset_of_all_tools_is_the_server():
    tools, *details = _toolset(cache_control={"type": "ephemeral"})
    assert tools == [SERVER]
    assert "mcp_toolset -> mcp" in details[0]


def test_a_toolset_is_sent_with_its_header_and_next_to_other_servers():
    body = {**NAMED["openai-responses"], "tools": [SERVER, {**SERVER, "server_label": "t"}]}
    made = convert(body, source="openai-responses", target=MODELS["anthropic-messages"])
    assert [server["name"] for server in made.body["mcp_servers"]] == ["s", "t"]
    assert made.headers["anthropic-beta"] == "mcp-client-2025-11-20"


def test_the_headers_of_an_mcp_server_stay_with_the_provider_that_they_were_meant_for():
    tools, *details = _with_tool({**SERVER, "headers": {"Authorization": "Bearer x"}})
    assert "Bearer" not in str([tools, details])
    assert "without headers.Authorization" in details[0]


# -- thinking that is to be shown --------------------------------------------------------------------------------------

TURNS: Final = [{"role": "user", "parts": [{"text": "hi"}]}]


@pytest.mark.parametrize(("shown", "display"), [(True, "summarized"), (False, "omitted")])
def test_thoughts_that_were_asked_for_are_asked_for_at_claude(shown, display):
    thinking = {"thinkingLevel": "MEDIUM", "includeThoughts": shown}
    body = {"contents": TURNS, "generationConfig": {"thinkingConfig": thinking}}
    made = convert(body, source="google-genai", target="anthropic/claude-opus-5-5")
    assert made.body["thinking"]["display"] == display
    made = convert(body, source="google-genai", target="openai/gpt-4.1")  # it has no thinking to show
    assert any("includeThoughts" in change.detail for change in made.report.changes)


def test_summaries_that_were_asked_for_are_asked_for_at_claude():
    generation = {"thinking_level": "medium", "thinking_summaries": "auto"}
    body = {"model": INTERACTIONS.id, "input": "hi", "generation_config": generation}
    made = convert(body, source="google-interactions", target="anthropic/claude-opus-5-5")
    assert made.body["thinking"]["display"] == "summarized"


# -- histories ---------------------------------------------------------------------------------------------------------

CHAT_MODEL: Final = Model("gpt-4.1", "openai", "openai-chat")
REFUSED: Final[Mapping[str, dict[str, Any]]] = {
    "openai-chat": {"role": "assistant", "content": None, "refusal": "I cannot."},
    "openai-responses": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I cannot."}],
    },
}


def _with_turn(protocol: str, turn: Mapping[str, Any]) -> dict[str, Any]:
    key = "messages" if protocol == "openai-chat" else "input"
    return {"model": "gpt-4.1", key: [{"role": "user", "content": "Hi"}, turn, {"role": "user", "content": "Why?"}]}


@pytest.mark.parametrize("source", REFUSED)
def test_a_refusal_of_the_history_stays_one(source: str):
    for target, model in (("openai-chat", CHAT_MODEL), ("openai-responses", get_model("openai/gpt-4.1"))):
        made = convert(_with_turn(source, REFUSED[source]), source=source, target=model)
        assert made.body == made.body | _with_turn(target, REFUSED[target]), target
        assert made.report.changes == ()
    elsewhere = convert(_with_turn(source, REFUSED[source]), source=source, target=CLAUDE).body
    assert elsewhere["messages"][1]["content"] == [{"type": "text", "text": "I cannot."}]


PAGES: Final = {
    "type": "page_location",
    "cited_text": "Bears live here.",
    "document_index": 0,
    "document_title": "D",
    "start_page_number": 2,
    "end_page_number": 3,
}
CITED: Final = {
    "title": "D",
    "sourceContent": [{"text": "Bears live here."}],
    "location": {"documentPage": {"documentIndex": 0, "start": 2, "end": 3}},
}


def test_what_claude_cited_is_cited_on_its_other_wire():
    asked, again = ({"role": "user", "content": [{"type": "text", "text": text}]} for text in ("Hi", "More"))
    said = {"role": "assistant", "content": [{"type": "text", "text": "Bears.", "citations": [PAGES]}]}
    given = {"model": CLAUDE.id, "max_tokens": 50, "messages": [asked, said, again]}
    there = convert(given, source="anthropic-messages", target=BEDROCK)
    block = {"citationsContent": {"content": [{"text": "Bears."}], "citations": [CITED]}}
    assert there.body["messages"][1]["content"] == [block]
    assert there.report.changes == ()
    back = convert(there.body, source="bedrock-converse", target=CLAUDE, source_model=BEDROCK)
    assert back.body["messages"] == given["messages"]
    nova = convert(given, source="anthropic-messages", target=NOVA)
    assert nova.body["messages"][1]["content"] == [{"text": "Bears."}]
    assert any("citations" in change.detail for change in nova.report.changes)


# -- one switch for all tools ------------------------------------------------------------------------------------------

COHERE: Final = get_model("cohere/command-a-03-2025")
CLOSED: Final = {"type": "object", "properties": {}, "additionalProperties": False}


def _chat_tools(*strict: bool | None) -> dict[str, Any]:
    functions = ({"name": f"f{at}", "description": "d", "parameters": CLOSED} for at in range(len(strict)))
    tools = [
        {"type": "function", "function": function if each is None else {**function, "strict": each}}
        for function, each in zip(functions, strict, strict=True)
    ]
    return {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}], "tools": tools}


@pytest.mark.parametrize(
    ("strict", "switch", "codes"),
    [((True, True), True, []), ((True, None), None, ["tool_schema"]), ((False,), None, []), ((None,), None, [])],
)
def test_strict_tools_are_one_switch_at_cohere(strict: tuple[bool | None, ...], switch: bool | None, codes: list[str]):
    made = convert(_chat_tools(*strict), source="openai-chat", target=COHERE)
    assert made.body.get("strict_tools") is switch
    assert all("strict" not in tool["function"] for tool in made.body["tools"])
    assert [change.code.value for change in made.report.changes] == codes


@pytest.mark.parametrize("switch", [True, False])
def test_the_switch_of_cohere_is_in_every_tool_elsewhere(switch: bool):
    body = {**_chat_tools(None, None), "model": COHERE.id, "strict_tools": switch}
    made = convert(body, source="cohere-chat", target=CHAT_MODEL)
    assert [tool["function"]["strict"] for tool in made.body["tools"]] == [switch, switch]
    assert made.report.changes == ()
    assert convert(body, source="cohere-chat", target=COHERE).body["strict_tools"] is switch
    asked = prepare(Context(messages=(UserMessage.of("hi"),), tools=TOOL), CHAT_MODEL, options=STRICT)
    assert asked.body["tools"][0]["function"]["strict"] is True


TOOL: Final = (ToolDefinition(name="f", description="d", parameters=CLOSED),)
STRICT: Final = Options(shared={"strict_tools": True})


# -- Google's two wires ------------------------------------------------------------------------------------------------

GENERATE: Final = get_model("google/gemini-2.0-flash")


def _both(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Compare fields of generateContent and of Interactions, in both directions."""
    body = {"contents": TURNS, **first}
    there = convert(body, source="google-genai", target=INTERACTIONS, source_model=GENERATE)
    assert there.body == there.body | second
    back = convert({"model": INTERACTIONS.id, "input": "hi", **second}, source="google-interactions", target=GENERATE)
    assert back.body == back.body | first
    assert (there.report.changes, back.report.changes) == ((), ())


def test_a_method_of_a_safety_setting_is_kept():
    given = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH", "method": "SEVERITY"}
    _both(
        {"safetySettings": [given, {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "OFF"}]},
        {
            "safety_settings": [
                {"type": "harassment", "threshold": "block_only_high", "method": "severity"},
                {"type": "hate_speech", "threshold": "off"},
            ]
        },
    )


def test_voices_of_several_speakers_are_kept():
    voices = [
        {"speaker": name, "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}
        for name, voice in (("Ann", "Kore"), ("Bob", "Puck"))
    ]
    _both(
        {"generationConfig": {"speechConfig": {"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": voices}}}},
        {
            "generation_config": {
                "speech_config": [{"speaker": "Ann", "voice": "Kore"}, {"speaker": "Bob", "voice": "Puck"}]
            }
        },
    )


def test_a_filter_of_a_search_in_files_is_kept():
    body = {
        "model": INTERACTIONS.id,
        "input": "hi",
        "tools": [
            {"type": "file_search", "file_search_store_names": ["fileSearchStores/a"], "metadata_filter": "y = 1"}
        ],
    }
    made = convert(body, source="google-interactions", target=get_model("google/gemini-2.5-flash"))
    search = {"fileSearchStoreNames": ["fileSearchStores/a"], "metadataFilter": "y = 1"}
    assert made.body["tools"] == [{"fileSearch": search}]
