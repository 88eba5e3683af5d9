"""A target of one's own, and the message that begins with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import UnknownModel
from segue.models.model import Model, Price
from segue.models.origin import new_assistant_message
from segue.models.thinking import clamp_thinking_level, supported_thinking_levels

DEFAULTS = {
    "name": "",
    "base_url": None,
    "reasoning": False,
    "input": ("text", "image"),
    "context_window": 0,
    "max_tokens": 0,
    "max_input": 0,
    "cost": Price(),
    "router": False,
    "thinking_levels": {},
    "deprecated": None,
    "rules": {},
    "dialect": {},
    "headers": {},
    "account": "",
    "flags": {},
    "guessed_from": "",
}


def test_three_strings_make_a_model_and_the_rest_has_defaults():
    model = Model("my-model", "my-provider", "openai-chat")
    assert model == Model(id="my-model", provider="my-provider", protocol="openai-chat")
    assert {name: getattr(model, name) for name in model.__struct_fields__[3:]} == DEFAULTS
    assert model.full_name() == "my-provider/my-model"


def test_a_target_cannot_be_changed():
    with pytest.raises(AttributeError):
        Model("a", "b", "c").id = "d"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_reply_begins_with_its_origin():
    begun = new_assistant_message(Model("my-model", "my-provider", "openai-chat"), timestamp=7)
    assert begun == AssistantMessage(
        content=(), protocol="openai-chat", provider="my-provider", model="my-model", timestamp=7
    )
    assert begun.stop_reason == StopReason.STOP
    assert begun.usage is None
    assert begun.text() == ""


def test_a_reply_may_begin_with_content():
    content = (TextContent(text="hi"),)
    assert new_assistant_message(Model("a", "b", "c"), content=content).content == content


def test_a_name_of_the_catalogue_serves_as_a_model():
    begun = new_assistant_message("anthropic/claude-sonnet-4-5")
    assert (begun.protocol, begun.provider, begun.model) == ("anthropic-messages", "anthropic", "claude-sonnet-4-5")
    assert supported_thinking_levels("openai/gpt-4o") == ("off",)
    assert clamp_thinking_level("openai/gpt-4o", "high") == "off"


@pytest.mark.parametrize("ask", [new_assistant_message, supported_thinking_levels], ids=lambda ask: ask.__name__)
def test_a_name_that_the_catalogue_does_not_have_is_refused(ask):
    with pytest.raises(UnknownModel):
        ask("anthropic/claude-sonet-4-5")


def test_values_of_headers_are_not_shown():
    model = Model("m", "p", "openai-chat", headers={"authorization": "Bearer secret"}, rules={"tools": False})
    assert "secret" not in repr(model)
    assert "'authorization': '***'" in repr(model)
    assert repr(model).startswith("Model(id='m', provider='p', protocol='openai-chat', ")
    assert "rules={'tools': False}" in repr(model)
    assert dict(model.__rich_repr__())["headers"] == {"authorization": "***"}
    assert eval(repr(replace(model, headers={})), {"Model": Model, "Price": Price}) == replace(model, headers={})
