"""The schema that is published describes what is stored, and refuses what is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given

from property_testing import scaled_examples
from samples import EVERYTHING
from segue.conversation.context import Context
from segue.conversation.stored import dump, load
from strategies import storable_contexts

DOCS: Final = Path(__file__).parent.parent.parent / "docs"
SCHEMA: Final = json.loads((DOCS / "stored-format.schema.json").read_text(encoding="utf-8"))
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_conversation_with_one_of_everything_is_described():
    VALIDATOR.validate(json.loads(dump(EVERYTHING)))


@scaled_examples(0.25)
@given(storable_contexts(max_messages=2))
def test_whatever_is_stored_is_described(context):
    VALIDATOR.validate(json.loads(dump(context)))


def test_the_example_of_the_page_is_described_and_loaded():
    page = (DOCS / "stored-format.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    VALIDATOR.validate(json.loads(example))
    context = load(example)
    assert isinstance(context, Context)
    assert json.loads(dump(context)) == json.loads(example)


WRONG: Final[Mapping[str, Callable[[Any], object]]] = {
    "no format": lambda document: document.pop("format"),
    "a newer format": lambda document: document.update(format="segue/2"),
    "an unknown field": lambda document: document.update(novelty=1),
    "an unknown role": lambda document: document["messages"][0].update(role="nope"),
    "an unknown type": lambda document: document["messages"][0]["content"][0].update(type="nope"),
    "text that is a number": lambda document: document["messages"][0]["content"][0].update(text=1),
    "a stop reason of somebody else": lambda document: document["messages"][1].update(stopReason="deferred"),
    "a call in a user message": lambda document: document["messages"][0]["content"].append(
        document["messages"][1]["content"][2]
    ),
}


@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG.keys())
def test_the_schema_refuses(spoil):
    document = copy.deepcopy(json.loads(dump(EVERYTHING)))
    spoil(document)
    assert not VALIDATOR.is_valid(document)
