"""No option is sent to a model whose rules refuse the key that the option is written to.

`refused_extra` names keys of the body, which `check` reports; projection removes an option only by `refused_options`.
This law compares the two for every provider, protocol and family of models of the catalogue.
"""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from segue import Context, Options, ToolDefinition, UserMessage, check, find_models, prepare
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.registry import resolve_rules

TOOLS: Final = (ToolDefinition(name="look", parameters={"type": "object", "properties": {}}),)
SCHEMA: Final = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
OPTIONS: Final = {
    "temperature": Options(temperature=0.5),
    "top_p": Options(top_p=0.5),
    "stop": Options(stop=("END",)),
    "seed": Options(seed=7),
    "parallel_tool_calls": Options(parallel_tool_calls=False),
    "output_schema": Options(output_schema=SCHEMA),
    "session_id": Options(session_id="session-7"),
    "user_id": Options(user_id="user-7"),
}


def models_with_rules() -> list[Model]:
    """Give one model for each set of keys and options that an endpoint refuses."""
    chosen: dict[object, Model] = {}
    for listed in find_models():
        row = PROVIDERS.get(listed.provider)
        for protocol in sorted({listed.protocol, *(row.rules if row else ())}):
            model = replace(listed, protocol=protocol)
            rules = resolve_rules(model)
            if rules.refused_extra:
                key = (model.provider, protocol, rules.refused_extra, rules.refused_options)
                chosen.setdefault(key, model)
    return list(chosen.values())


@pytest.mark.parametrize("name", OPTIONS)
def test_no_option_is_written_to_a_key_that_the_model_refuses(name: str):
    tools = TOOLS if name == "parallel_tool_calls" else ()
    context = Context(messages=(UserMessage.of("hi"),), tools=tools)
    refused: list[str] = []
    models = models_with_rules()
    assert len({model.provider for model in models}) > 10
    for model in models:
        body = prepare(context, model, options=OPTIONS[name]).body
        keys = {key.partition("=")[0] for key in resolve_rules(model).refused_extra}
        refused += [
            f"{model.provider}/{model.id} on {model.protocol}: {found.message}"
            for found in check(body, protocol=model.protocol, model=model)
            if found.code == "option_unsupported" and ".".join(map(str, found.path)) in keys
        ]
    assert refused == []
