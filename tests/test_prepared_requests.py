"""What `prepare` makes from plain content is accepted by `check`, for models whose limits are narrower than others'.

Each row was sent and named once. The laws cannot find such rows: they draw from models and values that tests know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from segue import Context, Model, Options, ToolDefinition, UserMessage, check, get_model, prepare
from segue.conversation.messages import Message

HI: Final = UserMessage.of("hi")


def tool(name: str, **properties: object) -> ToolDefinition:
    return ToolDefinition(name=name, parameters={"type": "object", "properties": properties})


def on_chat(model: str) -> Model:
    return replace(get_model(model), protocol="openai-chat")


class Row:
    """A request in neutral form, and what is reported of it: the codes of the changes."""

    def __init__(
        self,
        model: str | Model,
        *changes: str,
        options: Options | None = None,
        messages: tuple[Message, ...] = (HI,),
        tools: tuple[ToolDefinition, ...] = (),
        prompt: str | None = None,
    ) -> None:
        self.model: Model = get_model(model) if isinstance(model, str) else model
        self.changes: list[str] = sorted(changes)
        self.options = options
        self.context = Context(messages=messages, tools=tools, system_prompt=prompt)


SCHEMA: Final = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
SETTINGS: Final[Mapping[str, Row]] = {
    "a stop text of Grok": Row(on_chat("xai/grok-4.3"), "option_removed", options=Options(stop=("END",))),
    "a seed of Mistral in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(seed=7)
    ),
    "a user id of Mistral in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(user_id="user-7")
    ),
    "an output schema of MiniMax": Row("minimax/MiniMax-M2.7", "option_removed", options=Options(output_schema=SCHEMA)),
    "a user id that is an address, at Anthropic": Row(
        "anthropic/claude-opus-4-5", "option_clamped", options=Options(user_id="joe@example.com")
    ),
    "a negative seed at Mistral": Row("mistral/mistral-large-latest", "option_removed", options=Options(seed=-1)),
    "a negative seed at Cohere": Row("cohere/command-a-03-2025", "option_removed", options=Options(seed=-1)),
    "a seed above 32 bits at Google": Row("google/gemini-2.5-flash", "option_removed", options=Options(seed=2**31)),
    "a seed below 32 bits at Google": Row(
        "google/gemini-2.5-flash", "option_removed", options=Options(seed=-(2**31) - 1)
    ),
    "the lowest seed at Google": Row("google/gemini-2.5-flash", options=Options(seed=-(2**31))),
    "long stop texts at Moonshot": Row(
        "moonshotai/kimi-k2.5", "option_clamped", options=Options(stop=("é" * 16, "é" * 17, "END"))
    ),
    "a single long stop text at Moonshot": Row(
        "moonshotai/kimi-k2.5", "option_removed", options=Options(stop=("E" * 33,))
    ),
    "sampling without a temperature at Mistral": Row(
        "mistral/mistral-large-latest", "option_removed", options=Options(temperature=0.0, top_p=0.9)
    ),
    "the same in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(temperature=0.0, top_p=0.9)
    ),
    "instructions alone, of another model at Alibaba": Row(
        "alibaba/deepseek-v4-flash", "turn_inserted", messages=(), prompt="Be brief."
    ),
    "thinking of Qwen at Groq": Row("groq/qwen/qwen3.6-27b", "thinking_level", options=Options(thinking="low")),
    "the highest level of GPT-5.6, which Responses alone has": Row(
        on_chat("openai/gpt-5.6-sol"), "thinking_level", options=Options(thinking="max")
    ),
    "parallel calls of the o-series": Row(
        on_chat("openai/o1-2024-12-17"),
        "option_removed",
        options=Options(parallel_tool_calls=True),
        tools=(tool("look"),),
    ),
}
FAMILIES: Final[Mapping[str, Row]] = {
    "a tool that Alibaba refuses for its name": Row("alibaba/qwen3.7-plus", "name_changed", tools=(tool("search"),)),
}
MEDIA: Final[Mapping[str, Row]] = {}
ROWS: Final = {**SETTINGS, **FAMILIES, **MEDIA}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_is_prepared_is_accepted_and_told(row: Row):
    request = prepare(row.context, row.model, options=row.options)
    assert check(request.body, protocol=row.model.protocol, model=row.model) == []
    assert sorted({change.code.value for change in request.report.changes}) == row.changes
