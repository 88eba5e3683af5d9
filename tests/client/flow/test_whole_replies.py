"""Bytes of a whole reply are read like the reply that they hold, whatever is in it and however deep it is."""

from __future__ import annotations

import json

import pytest

from segue.client.flow.reading import read_whole
from segue.conversation.stored import dump_message, load_message
from segue.errors import DecodeError
from segue.models.model import Model
from segue.protocols.registry import all_protocols
from segue.requests.prepare import prepare

REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]}
CHAT = Model("m", "acme", "openai-chat")


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": [value]} if levels % 2 else {"a": value}
    return value


VALUES = {
    "a few levels": nested(3),
    "many levels": nested(45),
    "as many levels as can be stored": nested(180),
    "more levels than can be stored": nested(260),
    "a long integer": 10**40,
    "not a number": float("nan"),
    "half a surrogate pair": "\ud83d",
    "a boolean": True,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_reply_is_read_alike_from_bytes_and_parsed(value: object):
    for codec in all_protocols():
        request = prepare("hi", codec.example)
        for sample in codec.samples():
            if sample.response is None:
                continue
            for body in (sample.response, {**sample.response, "unknown": value}, {**sample.response, "usage": value}):
                data = json.dumps(body).encode()
                read = read_whole(data, request)
                assert repr(read) == repr(request.decode(json.loads(data)))
                assert load_message(dump_message(read)) == read


def test_a_reply_of_any_depth_is_read_alike_from_bytes_and_parsed():
    request = prepare("hi", CHAT)
    for levels in (20, 31, 32, 33, 34, *range(150, 230)):
        for body in (REPLY | {"unknown": nested(levels)}, REPLY | {"created": nested(levels)}):
            read = read_whole(json.dumps(body).encode(), request)
            assert repr(read) == repr(request.decode(body))
            assert load_message(dump_message(read)) == read


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{", b'"a"', b"<html>", b"[1" * 500], ids=repr)
def test_bytes_that_are_no_object_are_no_reply(data: bytes):
    with pytest.raises(DecodeError, match="the reply is not a JSON object"):
        read_whole(data, prepare("hi", CHAT))


def test_a_byte_order_mark_before_a_reply_is_not_read():
    assert read_whole(b"\xef\xbb\xbf" + json.dumps(REPLY).encode(), prepare("hi", CHAT)).text() == "a"


def test_content_that_is_too_deep_to_be_read_is_cut():
    message = {"role": "assistant", "content": nested(700)}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    request = prepare("hi", CHAT)
    assert repr(read_whole(json.dumps(body).encode(), request)) == repr(request.decode(body))
