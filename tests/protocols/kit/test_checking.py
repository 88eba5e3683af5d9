"""What checks ask of a body before they visit its messages, and of a text before they compare it with its field."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from segue.protocols.api import check
from segue.protocols.kit.checking import CheckedBody, may_have
from segue.protocols.kit.json_values import is_object, list_of
from segue.protocols.kit.request_fields import _Compiler, _Scope, _texts_of
from segue.protocols.registry import _FOLDERS, protocol_names

TABLES = [name for name in protocol_names() if files(_FOLDERS[name]).joinpath("request_fields.json").is_file()]


def test_the_names_of_a_body_are_keys_and_types_at_any_depth():
    inner: dict[str, Any] = {"type": "image", "source": {"data": "QUJD"}, "text": "document"}
    body = CheckedBody({"messages": [{"content": [[inner], 1, None]}], "tools": [{"type": {"enum": ["video"]}}]})
    assert body.names == {"messages", "content", "type", "image", "source", "data", "text", "tools", "enum"}
    assert may_have(body, ("video", "image"))
    assert not may_have(body, ("video", "document"))


def test_a_body_that_is_checked_stays_equal_and_is_encoded_as_json():
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert CheckedBody(body) == body
    assert json.loads(bytes(CheckedBody(body).encoded)) == body  # pyright: ignore[reportArgumentType]
    assert isinstance(CheckedBody({"a": "\ud800"}).encoded, UnicodeEncodeError)


def test_a_body_that_grew_between_two_checks_is_read_again():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR-_"}}
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "a"}],
    }
    assert check(body, protocol="anthropic-messages") == []
    body["messages"][0]["content"] = [{"type": "text", "text": "a"}, image]
    assert "media_base64_invalid" in {one.code for one in check(body, protocol="anthropic-messages")}


@pytest.mark.parametrize("name", TABLES)
def test_a_text_that_a_field_takes_for_sure_is_no_violation(name: str):
    table: dict[str, Any] = json.loads(files(_FOLDERS[name]).joinpath("request_fields.json").read_text("utf-8"))
    scope = _Scope(provider="", body_fields="closed", added=frozenset(), refused=frozenset())
    compiler = _Compiler(table, None, scope, loose=False)
    fields = [field for described in table["objects"].values() for field in described["fields"].values()]
    listed = {one for field in fields if is_object(field) for one in list_of(field.get("enum")) if isinstance(one, str)}
    for field in fields:
        texts, compare = _texts_of(field), compiler.of(field)
        for text in sorted({*listed, "a text"} if texts is None else {*map(str, texts)}):
            assert compare(text, "key") == [], (field, text)
