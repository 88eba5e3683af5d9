"""JSON that leaves the program: content as it is, descriptions as text that every reader accepts."""

from __future__ import annotations

import json

import msgspec
import pytest

from segue.foundation.json_text import encode_json, encode_valid_json

HALF = {"a": "cut \ud83d here", "b": msgspec.Raw(b'{"x":1}'), "c": "\U0001f600"}


def test_content_with_half_a_surrogate_pair_is_written_without_loss():
    assert json.loads(encode_json(HALF)) == {"a": "cut \ud83d here", "b": {"x": 1}, "c": "\U0001f600"}


def test_a_description_with_half_a_surrogate_pair_is_valid_for_every_reader():
    assert msgspec.json.decode(encode_valid_json(HALF)) == {"a": "cut \ufffd here", "b": {"x": 1}, "c": "\U0001f600"}


@pytest.mark.parametrize("write", [encode_json, encode_valid_json])
def test_a_value_that_is_no_json_is_refused_by_its_type(write):
    with pytest.raises(TypeError, match="object"):
        write({"a": "\ud83d", "b": object()})
