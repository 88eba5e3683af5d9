"""What projection makes for a model of the catalogue passes the check of that model.

Each model gets the same conversations: media, tools with results, a late system message, each kind of server tool,
every level of thinking (also those that it does not have), an output schema, a forced tool. `make test` draws every
fortieth model, `make proof` takes all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from property_testing import tiers
from segue import (
    Context,
    FileContent,
    ImageContent,
    Model,
    NativeTool,
    Options,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    Violation,
    check,
    get_model,
    new_assistant_message,
    prepare,
)
from segue.models.catalogue import packaged_catalogue
from segue.models.thinking import THINKING_LEVELS
from segue.protocols.kit.check_codes import CheckCode

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = ImageContent(data=PNG, mime_type="image/png")
PAPER = FileContent(data="JVBERi0xLjcKdHJhaWxlcgo8PD4+CiUlRU9GCg==", mime_type="application/pdf", name="a.pdf")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
LOOK = ToolDefinition(name="look_up", description="Look something up.", parameters=SCHEMA)
SERVER_TOOLS = (
    NativeTool(protocol="openai-responses", definition={"type": "web_search"}),
    NativeTool(protocol="openai-responses", definition={"type": "code_interpreter", "container": {"type": "auto"}}),
    NativeTool(protocol="openai-responses", definition={"type": "file_search", "vector_store_ids": ["vs_1"]}),
    NativeTool(protocol="openai-responses", definition={"type": "image_generation"}),
    NativeTool(
        protocol="openai-responses",
        definition={"type": "mcp", "server_label": "s", "server_url": "https://example.org"},
    ),
    NativeTool(protocol="anthropic-messages", definition={"type": "web_fetch_20250910", "name": "web_fetch"}),
    NativeTool(protocol="google-genai", definition={"urlContext": {}}),
)
GPT = get_model("openai/gpt-5.4")
HI = UserMessage.of("Hi")
REPLY = new_assistant_message(GPT, content=(TextContent(text="Hello."),))
CALL = ToolCall(id="call_1", name="look_up", arguments={"q": "x"})
ASKED = new_assistant_message(GPT, content=(ThinkingContent(thinking="Hm."), TextContent(text="I look."), CALL))
FOUND = ToolResultMessage(tool_call_id="call_1", tool_name="look_up", content=(TextContent(text="found"), PICTURE))

PLAIN = Context(system_prompt="Be brief.", messages=(HI,))
MEDIA = Context(messages=(UserMessage.of("Look", PICTURE, PAPER), REPLY, UserMessage.of("And now?", PICTURE)))
TOOLS = Context(system_prompt="Be brief.", messages=(HI, ASKED, FOUND, UserMessage.of("Go on")), tools=(LOOK,))
LATE = Context(
    messages=(HI, REPLY, UserMessage.of("More"), SystemMessage(content=(TextContent(text="In French."),)), HI)
)
SERVED = tuple(Context(messages=(HI,), tools=(tool,)) for tool in SERVER_TOOLS)
MIXED = Context(messages=TOOLS.messages, tools=(LOOK, SERVER_TOOLS[0]))
SAMPLED = Options(temperature=0.5, top_p=0.9, stop=("END",), seed=3, max_tokens=500)


def asked_of() -> Iterator[tuple[Context, Options]]:
    """Yield what each model is asked."""
    for context in (PLAIN, MEDIA, TOOLS, LATE, MIXED, *SERVED):
        yield context, Options()
    for context in (PLAIN, MEDIA, TOOLS, LATE, SERVED[0]):
        yield context, SAMPLED
        for level in THINKING_LEVELS:
            yield context, Options(thinking=level)
    yield PLAIN, Options(output_schema=SCHEMA)
    yield TOOLS, Options(output_schema=SCHEMA)
    yield TOOLS, Options(tool_choice="required")
    yield TOOLS, Options(tool_choice="look_up", thinking="high")


def is_chat(model: Model) -> bool:
    """Whether a model answers text with text; models of speech and of live audio refuse any conversation of texts."""
    return not _find(model, PLAIN, Options())


def _find(model: Model, context: Context, options: Options) -> list[Violation]:
    return check(prepare(context, model, options=options).body, protocol=model.protocol, model=model)


MODELS = packaged_catalogue().models
STEP = 40


@pytest.mark.parametrize("start", tiers([0], range(1, STEP)))
def test_what_is_prepared_for_a_model_passes_its_own_check(start: int) -> None:
    tried = 0
    for model in MODELS[start::STEP]:
        if not is_chat(model):
            continue
        tried += 1
        for context, options in asked_of():
            assert _find(model, context, options) == [], model.full_name()
    assert tried > len(MODELS) // STEP * 0.9


def test_models_that_do_not_chat_are_named_as_such() -> None:
    """A refusal of a plain conversation says that another model is needed, or what this one needs: sound, a search."""
    others = [model for model in MODELS if not is_chat(model)]
    assert len(others) < len(MODELS) // 20
    for model in others:
        for violation in _find(model, PLAIN, Options()):
            is_named = "choose" in violation.message or violation.code is CheckCode.OPTION_NEEDS_OTHER
            assert is_named, f"{model.full_name()}: {violation}"


def test_a_planted_rule_is_found() -> None:
    """The law fails if projection does not follow a rule that `check` has."""
    model = Model("planted", "elsewhere", "openai-chat", rules={"max_tools": 1})
    many = Context(messages=(HI,), tools=(LOOK, ToolDefinition(name="other", parameters=SCHEMA)))
    assert _find(model, many, Options()) == []
    body = prepare(many, Model("planted", "elsewhere", "openai-chat")).body
    assert [one.code for one in check(body, protocol="openai-chat", model=model)] == [CheckCode.TOOLS_TOO_MANY]
