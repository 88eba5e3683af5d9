"""The types of the official SDK as a reference: they accept every request and every reply that segue writes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from google.genai.interactions import CreateModelInteraction, Interaction
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols.every_protocol import vouched_for
from protocols.strict_models import Strict
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.protocols.api import encode_response
from segue.protocols.google_interactions.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

SAMPLES = {sample.name: sample for sample in CODEC.samples()}
ANY_NAME = {"model": "gemini-3.5-flash"}
"""The types list the models of their day; any other name passes there, too."""


@lru_cache
def strict(kind: Any) -> TypeAdapter[object]:
    return Strict().adapter(kind)


def complaints(kind: Any, body: Any) -> list[str]:
    """List the errors of the SDK's types, unknown keys among them."""
    try:
        strict(kind).validate_python({**body, **({"model": ANY_NAME["model"]} if "model" in body else {})})
    except ValidationError as error:
        return [f"{one['loc']}: {one['msg']}" for one in error.errors()]
    return []


ASKED = {"model": "gemini-3.5-flash", "input": "hi"}
WRONG = {
    "an unknown key": {"messages": []},
    "a number that is a text": {"generation_config": {"max_output_tokens": "1"}},
    "an unknown type of step": {"input": [{"type": "message", "content": []}]},
    "a result without an id": {"input": [{"type": "function_result", "result": "x"}]},
    "arguments that are a text": {"input": [{"type": "function_call", "id": "a", "name": "f", "arguments": "{}"}]},
    "an unknown key of a step": {"input": [{"type": "thought", "text": "x"}]},
    "instructions that are no text": {"system_instruction": {"parts": []}},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_types_are_strict(wrong):
    assert complaints(CreateModelInteraction, ASKED) == []
    assert complaints(CreateModelInteraction, {**ASKED, **wrong})


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_the_types_accept_the_samples(sample):
    assert complaints(CreateModelInteraction, sample.request) == []
    assert complaints(Interaction, sample.response) == []


@scaled_examples(2)
@given(data=st.data())
def test_the_types_accept_every_projected_history(data):
    model: Model = data.draw(st.sampled_from(TARGETS["google-interactions"]))
    contexts = data.draw(st.sampled_from((ugly_contexts, own_contexts)))
    context = vouched_for(data.draw(contexts(model)))
    try:
        request = prepare(context, model, options=make_options(data.draw(st.integers(0, 2**32))))
    except EmptyConversation:
        return
    assert complaints(CreateModelInteraction, request.body) == []
    for message in request.projection.context.messages:
        if message.role == "assistant":
            reply = encode_response(replace(message, extra=None), protocol=CODEC.name)
            assert complaints(Interaction, reply) == []
