"""A table of options reads a body and writes it back unchanged; changed values are written in the default format."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from segue.conversation.context import Options
from segue.errors import EncodeError
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.option_table import (
    OptionTable,
    Setting,
    decode_settings,
    encode_settings,
    listed,
    number,
    plain,
)
from segue.protocols.kit.option_table import texts as strings
from segue.protocols.kit.verbatim import choose, chosen, data_of, for_new_request

PROTOCOL = "some-wire"
ENDPOINT = resolve_endpoint(Model("m", "mistral", "mistral-chat"))


def read_schema(body, _):
    return object_of(body.get("format")).get("schema")


def write_schema(value: object, _: object) -> dict[str, object]:
    return {"format": {"type": "schema", "schema": value}}


TABLE = OptionTable(
    PROTOCOL,
    (
        Setting("max_tokens", ("max_tokens",), number("max_tokens", whole=True), plain("max_tokens")),
        Setting("stop", ("stop",), strings("stop"), listed("stop")),
        Setting("output_schema", ("format",), read_schema, write_schema),
    ),
)


def decoded(**body) -> Options:
    return decode_settings(TABLE, body, ("messages",), ENDPOINT)


def encoded(options, model: str | None = "m") -> dict:
    body: dict[str, object] = {}
    encode_settings(TABLE, body, options, ENDPOINT, model)
    return body


BODIES = {
    "nothing": {"model": "m"},
    "the default format": {"model": "m", "max_tokens": 5, "stop": ["a"]},
    "one stop as a string": {"model": "m", "stop": "a"},
    "null": {"model": "m", "stop": None, "max_tokens": None},
    "a value that is not understood": {"model": "m", "max_tokens": "many", "format": {"type": "json"}},
    "more inside of an option": {"model": "m", "format": {"type": "schema", "name": "n", "schema": {"a": 1}}},
    "unknown keys": {"model": "m", "vendor": {"x": 1}},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_written_back_unchanged(body):
    assert encoded(decoded(**body)) == body


@pytest.mark.parametrize("body", [{}, {"model": None}, {"model": 3}], ids=["absent", "null", "a number"])
def test_a_body_without_a_model_is_written_back_unless_a_model_is_given(body):
    assert encoded(decoded(**body), None) == body
    assert encoded(decoded(**body), "m") == {"model": "m"}


def test_only_keys_that_no_row_has_read_are_data():
    options = decoded(model="m", max_tokens="many", stop="a", format={"name": "n", "schema": {}}, vendor=1, no=None)
    assert data_of(options.extra, PROTOCOL) == {"max_tokens": "many", "vendor": 1}


def test_a_removed_option_is_removed_from_the_body():
    options = decoded(model="m", format={"name": "n", "schema": {}}, stop="a")
    assert encoded(replace(options, output_schema=None, stop=None)) == {"model": "m"}


def test_format_is_for_one_model_and_data_for_all():
    options = decoded(model="m", stop="a", vendor=1)
    assert encoded(options, "other") == {"model": "other", "stop": ["a"], "vendor": 1}


def test_an_option_without_a_row_is_refused_by_its_name():
    with pytest.raises(EncodeError, match="some-wire does not support `seed`; remove it") as caught:
        encoded(Options(seed=1))
    assert caught.value.path == ("options", "seed")


def test_a_choice_of_the_conversation_applies_to_the_same_request():
    options = decode_settings(TABLE, {"model": "m"}, (), ENDPOINT, choose("turn", "same", "new"))
    assert chosen(options.extra, PROTOCOL, "turn", "same", model="m") == "new"
    assert chosen(options.extra, PROTOCOL, "turn", "same", model="other") == "same"
    assert chosen(for_new_request(options.extra, PROTOCOL), PROTOCOL, "turn", "same", model="m") == "same"
