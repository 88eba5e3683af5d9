"""Strategies for random bodies, and assertions that hold for any body: checked, decoded and encoded, or refused."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

from segue.conversation.messages import AssistantMessage
from segue.errors import DecodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.reading import standard_base64
from segue.protocols.kit.storable import UNREADABLE

ODD_VALUES = [None, 0, -1, 1.5, True, "x", "", [], {}, ["x"], [{}], {"type": []}, {"a": None}, {"text": "t"}]
ODD = st.sampled_from(ODD_VALUES)


def some(**values):
    """Objects with any of these keys, each with a valid value or with an odd one."""
    return st.fixed_dictionaries({}, optional={key: st.one_of(value, ODD) for key, value in values.items()})


def one(*values):
    return st.sampled_from(values)


def as_standard(value: Any, key: object = None) -> Any:
    """Normalise the base64 of `bytes` to the standard alphabet with padding, as encoders write media."""
    if isinstance(value, dict):
        return {name: as_standard(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_standard(inner) for inner in value]
    return standard_base64(value) if key == "bytes" and isinstance(value, str) else value


@contextmanager
def may_be_refused() -> Generator[None]:
    """Allow a `DecodeError`, unless it stands for an exception that the codec did not expect."""
    try:
        yield
    except DecodeError as error:
        if error.reason.startswith(UNREADABLE):
            raise


def assert_checked(codec: Protocol, body: Any, endpoint: Endpoint) -> None:
    for violation in codec.check(body, endpoint):
        assert violation.message


def assert_request_comes_back(codec: Protocol, body: Any, endpoint: Endpoint) -> None:
    """A request that can be decoded is encoded to the same body."""
    with may_be_refused():
        prompt = codec.decode_request(body, endpoint)
        assert as_standard(codec.encode_request(prompt, endpoint)) == as_standard(body)


def assert_reply_comes_back(codec: Protocol, body: Any, endpoint: Endpoint) -> None:
    """A reply that can be decoded is encoded to the same body."""
    with may_be_refused():
        message = codec.decode_response(body, endpoint, {})
        assert codec.encode_response(message, endpoint) == body


def assert_stream_ends_once(codec: Protocol, frames: list[Any], endpoint: Endpoint) -> AssistantMessage:
    """Any stream has one start event and one terminal event; return its message."""
    decoder = codec.stream_decoder(endpoint, {})
    kinds = [event.type for event in [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()]
    assert [at for at, kind in enumerate(kinds) if kind == "start"] == [0]
    assert [at for at, kind in enumerate(kinds) if kind in ("done", "error")] == [len(kinds) - 1]
    assert UNREADABLE not in (decoder.message.error_message or "")
    return decoder.message
