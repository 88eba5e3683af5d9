"""Exact comparison: values that are written as the same JSON, and only these."""

from __future__ import annotations

import msgspec
import pytest

from segue.conversation.content import TextContent
from segue.conversation.exact import is_exact

SAME = {
    "a text": "one",
    "a large number": 10**30,
    "a fraction": 0.5,
    "not a number": float("nan"),
    "bytes": b"one",
    "a list": [1000, [2000.5, "x"]],
    "an object": {"a": 1000, "b": {"c": ["x"]}},
    "content": TextContent(text="one", extra={"openai-chat": {"a": 1000}}),
}
DIFFERENT = {
    "a text": ("one", "two"),
    "numbers": (10**30, 10**30 + 1),
    "a number and a truth value": (1, True),
    "a number and a fraction": (1, 1.0),
    "zero and minus zero": (0.0, -0.0),
    "bytes": (b"one", b"two"),
    "the order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "the value of a key": ({"a": 1}, {"a": 2}),
    "one more key": ({"a": 1}, {"a": 1, "b": 2}),
    "one more item": ([1], [1, 2]),
    "a list and a tuple": ([1], (1,)),
    "content": (TextContent(text="one"), TextContent(text="two")),
}


def copied(value: object) -> object:
    """Copy a value with all that is in it, so that nothing is the same object."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {copied(key): copied(each) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: copied(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return value.encode().decode()
    if isinstance(value, bytes):
        return bytes(bytearray(value))
    assert isinstance(value, int | float)
    return type(value)(str(value))


@pytest.mark.parametrize("value", SAME.values(), ids=SAME.keys())
def test_a_copy_is_exactly_the_same(value: object) -> None:
    assert copied(value) is not value
    assert is_exact(value, copied(value)) is True


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_another_value_is_not_exactly_the_same(one: object, other: object) -> None:
    assert is_exact(one, other) is False
    assert is_exact(other, one) is False
