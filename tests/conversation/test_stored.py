"""What segue stores it reads again, equal."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

import msgspec
import pytest
from hypothesis import example, given

from samples import EVERYTHING, nested, with_details
from segue.conversation.content import (
    TextContent,
    ToolCall,
)
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.foreign import read_context, read_message
from segue.conversation.limits import MAX_DIGITS, MAX_NESTING, parse_json
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    StopReason,
    ToolResultMessage,
    UserMessage,
)
from segue.conversation.stored import Document, dump, dump_message, load, load_message
from strategies import messages, storable_contexts

# -- there and back ---------------------------------------------------------------------------------------------------


def test_a_conversation_with_every_kind_of_value_is_loaded_as_it_was_dumped():
    data = dump(EVERYTHING)
    assert load(data) == EVERYTHING
    assert dump(load(data)) == data


def test_a_message_of_every_role_is_loaded_as_it_was_dumped():
    for message in EVERYTHING.messages:
        data = dump_message(message)
        assert load_message(data) == message
        assert dump_message(load_message(data)) == data
        assert b"\n" not in data


@given(storable_contexts())
@example(EVERYTHING)
def test_whatever_can_be_stored_is_loaded_as_it_was_dumped(context):
    assert load(dump(context)) == context


@given(messages())
def test_whatever_message_can_be_stored_is_loaded_as_it_was_dumped(message):
    assert load_message(dump_message(message)) == message


@given(storable_contexts())
@example(EVERYTHING)
def test_the_fast_and_the_slow_path_load_equal_values(context):
    data = dump(context)
    assert read_context(parse_json(data)) == load(data)


@given(messages())
def test_both_paths_load_equal_messages(message):
    data = dump_message(message)
    assert read_message(parse_json(data), foreign=False) == message


@given(storable_contexts())
def test_dumping_changes_nothing_and_is_the_same_every_time(context):
    before = repr(context)
    assert dump(context) == dump(context)
    assert repr(context) == before


INPUT_TYPES: Final[Mapping[str, Callable[[bytes], bytes | bytearray | memoryview | str]]] = {
    "bytes": lambda data: data,
    "a bytearray": bytearray,
    "a memoryview": memoryview,
    "text": bytes.decode,
    "bytes with white space around": lambda data: b" \r\n" + data + b"\n",
    "bytes with a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "text with a byte order mark": lambda data: "\ufeff" + data.decode(),
    "bytes laid out for people": lambda data: json.dumps(json.loads(data), indent=2).encode(),
    "bytes with the keys in another order": lambda data: json.dumps(json.loads(data), sort_keys=True).encode(),
}


@pytest.mark.parametrize("convert", INPUT_TYPES.values(), ids=INPUT_TYPES.keys())
def test_a_document_is_read_from(convert):
    assert load(convert(dump(EVERYTHING))) == EVERYTHING
    for message in EVERYTHING.messages:
        assert load_message(convert(dump_message(message))) == message


EXACT: Final[Mapping[str, object]] = {
    "minus zero": -0.0,
    "a float that is whole": 1.0,
    "the largest floats": [1e308, -1.7976931348623157e308],
    "the smallest float": 5e-324,
    "integers beyond 64 bits": [2**64, -(2**70)],
    "the longest integer": 10 ** (MAX_DIGITS - 1),
    "the longest negative integer": -(10**MAX_DIGITS - 1),
    "empty text": "",
    "control characters": "\x00\x01\x1f\x7f\u0085",
    "line separators": "\u2028\u2029",
    "a lone high surrogate": "a\ud800b",
    "a lone low surrogate": "\udfff",
    "halves in the wrong order": "\ude00\ud83d",
    "a lone surrogate as a key": {"\ud800": 1},
    "a lone surrogate beside the longest integer": ["\ud800", 10 ** (MAX_DIGITS - 1)],
    "empty containers": [{}, []],
    "nothing in a list": [None],
    "true is not one": [True, 1, 1.0, False, 0],
    "an empty key": {"": {"": ""}},
    "keys that look like fields of ours": {"role": "user", "format": "segue/2", "type": "text", "extra": 1},
    "as deep as a document may be": nested(MAX_NESTING - 3),
}


@pytest.mark.parametrize("value", EXACT.values(), ids=EXACT.keys())
def test_a_free_form_value_is_stored_exactly(value):
    context = with_details(value)
    loaded = load(dump(context)).messages[0]
    assert isinstance(loaded, ToolResultMessage)
    # repr distinguishes 1, 1.0 and True, and minus zero from zero.
    assert repr(loaded.details) == repr(value)
    stored = load_message(dump_message(context.messages[0]))
    assert isinstance(stored, ToolResultMessage)
    assert repr(stored.details) == repr(value)


def test_two_adjacent_halves_of_a_surrogate_pair_are_joined():
    assert load(dump(Context(system_prompt="\ud83d\ude00"))).system_prompt == "😀"
    assert load('{"format":"segue/1","systemPrompt":"\ud83d\ude00"}').system_prompt == "😀"
    assert load(rb'{"format":"segue/1","systemPrompt":"\ud83d\ude00"}').system_prompt == "😀"


def test_lone_surrogates_in_text_that_is_not_bytes_are_kept():
    assert load('{"format":"segue/1","systemPrompt":"a\ud83d"}').system_prompt == "a\ud83d"


def test_ids_may_occur_twice():
    call = ToolCall(id="a", name="b")
    result = ToolResultMessage(tool_call_id="a", content=())
    context = Context(messages=(AssistantMessage(content=(call, call)), result, result))
    assert load(dump(context)) == context


class Colour(StrEnum):
    RED = "red"


class Count(IntEnum):
    TWO = 2


class Celsius(float):
    pass


class Name(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "somebody"


class Number(int):
    pass


EQUAL: Final[Mapping[str, tuple[object, object]]] = {
    "a read-only mapping": (MappingProxyType({"a": MappingProxyType({"b": 1})}), {"a": {"b": 1}}),
    "an ordered dict": (OrderedDict(a=1), {"a": 1}),
    "a word of an enumeration": ({"c": Colour.RED, Colour.RED: 1}, {"c": "red", "red": 1}),
    "a number of an enumeration": ([Count.TWO], [2]),
    "numbers of other classes": ([Celsius(3.5), Number(3)], [3.5, 3]),
    "text of another class": ({"a": Name("x")}, {"a": "x"}),
    "a tuple": ({"shape": (3, 4)}, {"shape": [3, 4]}),
}


@pytest.mark.parametrize(("value", "stored"), EQUAL.values(), ids=EQUAL.keys())
def test_a_value_of_a_near_type_is_stored_as_json_has_it(value, stored):
    for context in (with_details(value), with_details([value, "\ud800"])):
        loaded = load(dump(context)).messages[0]
        assert isinstance(loaded, ToolResultMessage)
        assert loaded.details in (stored, [stored, "\ud800"])
        assert load_message(dump_message(context.messages[0])) == loaded


def test_lists_in_place_of_tuples_are_written_and_read_as_tuples():
    context = Context(
        messages=[  # type: ignore[arg-type]
            UserMessage(content=[TextContent(text="hi")]),  # type: ignore[arg-type]
            AssistantMessage(content=[], diagnostics=[Diagnostic(type="x")]),  # type: ignore[arg-type]
        ],
        tools=[ToolDefinition(name="a")],  # type: ignore[arg-type]
    )
    assert load(dump(context)) == Context(
        messages=(UserMessage.of("hi"), AssistantMessage(content=(), diagnostics=(Diagnostic(type="x"),))),
        tools=(ToolDefinition(name="a"),),
    )
    assert load_message(dump_message(context.messages[0])) == UserMessage.of("hi")


def test_a_stop_reason_may_be_a_plain_word():
    message = AssistantMessage(content=(), stop_reason="error")  # type: ignore[arg-type]
    loaded = load_message(dump_message(message))
    assert isinstance(loaded, AssistantMessage)
    assert loaded.stop_reason is StopReason.ERROR


# -- the format of a document -----------------------------------------------------------------------------------------


def test_the_format_comes_first_and_defaults_are_left_out():
    assert dump(Context()) == b'{"format":"segue/1"}'
    assert dump(Context(system_prompt="sp", messages=(UserMessage.of("hi"),))) == (
        b'{"format":"segue/1","systemPrompt":"sp","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}'
    )


def test_a_call_without_arguments_says_so():
    message = AssistantMessage(content=(ToolCall(id="x", name="noop"),))
    assert b'"arguments":{}' in dump_message(message)
    assert b'"arguments":{}' in dump(Context(messages=(message,)))


def test_a_stored_document_holds_what_a_context_holds():
    fields = msgspec.structs.fields(Document)
    assert fields[0].name == "format"
    assert [(field.name, field.type, field.default) for field in fields[1:]] == [
        (field.name, field.type, field.default) for field in msgspec.structs.fields(Context)
    ]


PLACES: Final[Mapping[str, tuple[str | int, ...]]] = {
    "the conversation": (),
    "a piece of the system prompt": ("systemPrompt", 0),
    "a user message": ("messages", 0),
    "text": ("messages", 0, "content", 0),
    "an image": ("messages", 0, "content", 1),
    "a file": ("messages", 0, "content", 2),
    "an assistant message": ("messages", 1),
    "thinking": ("messages", 1, "content", 0),
    "a tool call": ("messages", 1, "content", 2),
    "native content": ("messages", 1, "content", 3),
    "a fallback": ("messages", 1, "content", 3, "fallback", 0),
    "the usage": ("messages", 1, "usage"),
    "the cost": ("messages", 1, "usage", "cost"),
    "a diagnostic": ("messages", 1, "diagnostics", 0),
    "a tool result": ("messages", 2),
    "a system message": ("messages", 3),
    "a tool": ("tools", 0),
    "a native tool": ("tools", 1),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_an_unknown_field_is_kept_on(place):
    document = json.loads(dump(EVERYTHING))
    target = document
    for step in place:
        target = target[step]
    before = target.get("extra", {})
    target["novelty"] = {"a": [1]}
    loaded = load(json.dumps(document))
    # In JSON again, so that the place has the same name; only there has anything changed.
    again = json.loads(dump(loaded))
    found = again
    for step in place:
        found = found[step]
    assert found.pop("extra") == {**before, "stored": {**before.get("stored", {}), "novelty": {"a": [1]}}}
    if before:
        found["extra"] = before
    assert again == json.loads(dump(EVERYTHING))
    assert load(dump(loaded)) == loaded


def test_an_unknown_field_joins_those_that_were_kept_before():
    loaded = load(b'{"format":"segue/1","extra":{"stored":{"a":1},"x":{}},"b":2}')
    assert loaded.extra == {"stored": {"a": 1, "b": 2}, "x": {}}
