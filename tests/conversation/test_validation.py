"""Values of the wrong type raise one error that names the path, never an error from inside."""

from __future__ import annotations

from typing import Any

import pytest

from segue import (
    AssistantMessage,
    Context,
    ConversationError,
    Model,
    Options,
    Policy,
    Projector,
    SegueError,
    SettingsError,
    TextContent,
    ToolCall,
    ToolDefinition,
    UserMessage,
    get_model,
    prepare,
    project,
    transform_messages,
)

MODEL = Model("m", "p", "openai-chat")
USER = UserMessage.of("hi")


def wrong(value: object) -> Any:
    """Hide a value's type from the type checker, which would have caught it."""
    return value


CONVERSATIONS: dict[str, tuple[Any, tuple[object, ...]]] = {
    "a string as content": (Context(messages=(UserMessage(content=wrong("hi")),)), ("messages", 0, "content")),
    "a dict for a message": (Context(messages=wrong(({"role": "user"},))), ("messages", 0)),
    "a dict for content": (
        Context(messages=(USER, UserMessage(content=wrong(({"type": "text"},))))),
        ("messages", 1, "content", 0),
    ),
    "a dict for a tool": (Context(messages=(USER,), tools=wrong(({"name": "f"},))), ("tools", 0)),
    "no schema": (
        Context(messages=(USER,), tools=(ToolDefinition(name="f", parameters=wrong(None)),)),
        ("tools", 0, "parameters"),
    ),
    "a prompt that is neither text nor a tuple": (
        Context(system_prompt=wrong(TextContent(text="x")), messages=(USER,)),
        ("systemPrompt",),
    ),
    "arguments as text": (
        Context(messages=(AssistantMessage(content=(ToolCall(id="1", name="f", arguments=wrong("{}")),)),)),
        ("messages", 0, "content", 0, "arguments"),
    ),
    "nothing": (None, ()),
}


@pytest.mark.parametrize(("given", "path"), CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_a_value_of_the_wrong_type_is_reported_with_its_path(given, path):
    for use in (project, prepare, lambda context, model: Projector(model).project(context)):
        with pytest.raises(ConversationError) as caught:
            use(given, MODEL)
        assert caught.value.path == path


@pytest.mark.parametrize(
    "given", [None, Context(messages=(USER,)), ({"role": "user"},)], ids=["None", "a Context", "a dict"]
)
def test_messages_have_to_be_messages(given):
    with pytest.raises(ConversationError):
        transform_messages(wrong(given), MODEL)


OPTIONS: dict[str, tuple[Any, str]] = {
    "a dict": ({"max_tokens": 5}, "options"),
    "a level that does not exist": (Options(thinking=wrong("huge")), "thinking"),
    "a temperature that is no number": (Options(temperature=float("nan")), "temperature"),
    "an infinite share": (Options(top_p=float("inf")), "top_p"),
    "one text instead of a tuple": (Options(stop=wrong("END")), "stop"),
    "a number as text": (Options(max_tokens=wrong("5")), "max_tokens"),
    "a retention that does not exist": (Options(cache_retention=wrong("forever")), "cache_retention"),
}


@pytest.mark.parametrize(("options", "key"), OPTIONS.values(), ids=OPTIONS.keys())
def test_a_wrong_option_is_named(options, key):
    with pytest.raises(SettingsError) as caught:
        project(Context(messages=(USER,)), MODEL, options=options)
    assert caught.value.key == key


SENTENCES = {
    "a type as a schema": (
        Options(output_schema=wrong(int)),
        (
            "options.output_schema: expected a JSON schema as a dict, got a value of type type; write"
            " Options(output_schema=json_schema(int))"
        ),
    ),
    "a text as a number": (
        Options(temperature=wrong("warm")),
        "options.temperature: expected float or None, got str",
    ),
    "a word that is none": (
        Options(cache_retention=wrong("forever")),
        "options.cache_retention: invalid enum value 'forever'",
    ),
    "a type anywhere": (
        Options(tool_choice=wrong(int)),
        "options.tool_choice: JSON cannot represent a value of type type; convert it to plain values",
    ),
}


@pytest.mark.parametrize(("options", "sentence"), SENTENCES.values(), ids=SENTENCES.keys())
def test_a_wrong_option_is_explained(options, sentence):
    with pytest.raises(SettingsError) as caught:
        prepare(Context(messages=(USER,)), MODEL, options=options)
    assert str(caught.value) == sentence


def test_a_model_a_policy_and_a_normaliser_of_the_wrong_type_are_refused():
    context = Context(messages=(USER, AssistantMessage(content=(ToolCall(id="1", name="f"),))))
    for use in (
        lambda: get_model(wrong(None)),
        lambda: project(context, wrong(3)),
        lambda: project(context, MODEL, policy=wrong({"reasoning": "drop"})),
        lambda: transform_messages(context.messages, MODEL, wrong(lambda *_: None)),
        lambda: Policy(reasoning=wrong("loud")),
    ):
        with pytest.raises(SegueError):
            use()


def test_a_list_of_messages_is_taken_for_a_tuple():
    assert prepare(Context(messages=wrong([USER])), MODEL).body["messages"] == [{"role": "user", "content": "hi"}]
