"""A law over every protocol: what is outside of a conversation does not change the form of what was sent of it.

From request to request, each option, the cache marks, the limits, the window, the order of the tools, the account and
details of the model (address, headers, prices) differ; the conversation only grows. The turns that an earlier request
contained are the first ones of the next, byte for byte without cache marks. `EXCEPTIONS` lists what changes them, with
the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec
import pytest
from msgspec.structs import replace

from bound_state.test_settled_form import settled
from protocols.every_protocol import all_codecs
from segue import (
    AssistantMessage,
    Context,
    Model,
    Options,
    Outbox,
    Request,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    prepare,
)
from segue.conversation.messages import Usage
from segue.conversation.shared_options import SharedOptions
from segue.models.origin import new_assistant_message
from segue.protocols.kit.protocol import Protocol

SCHEMA: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "max_tokens": (2000, 1500, None),
    "temperature": (None, 0.2, 0.9),
    "top_p": (0.5, None, 0.9),
    "stop": (None, ("END",), ("A", "B")),
    "seed": (1, 2, None),
    "thinking": ("low", "high", None),
    "tool_choice": ("auto", "none", None),
    "parallel_tool_calls": (None, True, False),
    "output_schema": (None, {**SCHEMA, "required": ["n"]}, None),
    "cache_retention": ("none", "short", "long"),
    "session_id": ("a", None, "b"),
    "user_id": (None, "a", "b"),
    "stream": (False, True, None),
    "extra": (None, {}, None),
    "shared": (None, SharedOptions(), None),
}
"""For each option, its values in requests that follow each other."""
READ: Final = ToolDefinition(name="read", description="Reads.", parameters=SCHEMA)
LIST: Final = ToolDefinition(name="list", description="Lists.", parameters=SCHEMA)
Change: TypeAlias = Callable[[int, Model, Options, Context], tuple[Model, Options, Context]]


def _option(name: str) -> Change:
    def change(number: int, model: Model, options: Options, context: Context) -> tuple[Model, Options, Context]:
        values = VALUES[name]
        return model, replace(options, **{name: values[number % len(values)]}), context

    return change


def _of_model(**fields: tuple[Any, ...]) -> Change:
    def change(number: int, model: Model, options: Options, context: Context) -> tuple[Model, Options, Context]:
        return replace(model, **{name: each[number % len(each)] for name, each in fields.items()}), options, context

    return change


def _tools(number: int, model: Model, options: Options, context: Context) -> tuple[Model, Options, Context]:
    return model, options, replace(context, tools=(READ, LIST) if number % 2 else (LIST, READ))


CHANGES: Final[Mapping[str, Change]] = {
    **{name: _option(name) for name in VALUES},
    "the order of the tools": _tools,
    "the window": _of_model(context_window=(200_000, 30_000, 1_000_000)),
    "the limit of the model": _of_model(max_tokens=(8000, 4000, 64_000)),
    "the address": _of_model(base_url=(None, "http://127.0.0.1:9/v1")),
    "the headers": _of_model(headers=({}, {"x-a": "b"})),
    "the account": _of_model(account=("", "one", "two")),
}
EXCEPTIONS: Final[Mapping[tuple[str, str], str]] = {}
"""Protocol and change, and why the turns differ. There is none."""


def replies(model: Model, number: int) -> Iterator[AssistantMessage | ToolResultMessage]:
    """Give what a model answers, and the result of its call."""
    made = new_assistant_message(model)
    thinking = (ThinkingContent(thinking=f"Thought {number}."),) if number == 0 else ()
    call = ToolCall(id=f"call_{number:05}aaa", name="read", arguments={"n": number})
    usage = Usage(input=100 + number, output=10)
    yield replace(
        made,
        content=(*thinking, TextContent(text=f"I look {number}."), call),
        stop_reason=StopReason.TOOL_USE,
        usage=usage,
    )
    yield ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(TextContent(text=f"seen {number}"),))
    yield replace(made, content=(TextContent(text=f"Done {number}."),), stop_reason=StopReason.STOP, usage=usage)


def check(record: Protocol, change: Change) -> None:
    """Send a growing conversation, and compare each request with the one before it."""
    base = replace(record.example, context_window=record.example.context_window or 100_000)
    context = Context(system_prompt="Be brief.", tools=(READ, LIST), messages=(UserMessage.of("question"),))
    before: list[str] = []
    for number in range(5):
        model, options, asked = change(number, base, Options(max_tokens=2000), context)
        request = prepare(asked, model, options=options)
        turns = settled(request.body)[2]
        assert len(turns) > len(before)
        assert turns[: len(before)] == before, "the turns that were sent"
        assert Outbox(model).prepare(asked, options=options).content == request.content
        before = turns
        context = context.add(*replies(base, number), UserMessage.of(f"question {number}"))


RECORDS: Final = [record for record in all_codecs() if record.turns_key]


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("record", RECORDS, ids=[record.name for record in RECORDS])
def test_what_is_outside_changes_nothing_that_was_sent(record: Protocol, name: str) -> None:
    if (record.name, name) not in EXCEPTIONS:
        check(record, CHANGES[name])


def test_every_option_is_varied() -> None:
    assert VALUES.keys() == {field.name for field in msgspec.structs.fields(Options)}


def test_every_exception_is_one() -> None:
    for protocol, name in EXCEPTIONS:
        record = next(each for each in RECORDS if each.name == protocol)
        with pytest.raises(AssertionError):
            check(record, CHANGES[name])


@pytest.mark.parametrize("record", RECORDS[:3], ids=[record.name for record in RECORDS[:3]])
def test_the_law_fails_if_an_option_changes_a_turn(record: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare_wrongly(context: Context, model: Model, *, options: Options) -> Request:
        if options.cache_retention == "short":
            context = replace(context, messages=(UserMessage.of("question "), *context.messages[1:]))
        return right(context, model, options=options)

    right = prepare
    monkeypatch.setattr(sys.modules[__name__], "prepare", prepare_wrongly)
    with pytest.raises(AssertionError, match="the turns that were sent"):
        check(record, CHANGES["cache_retention"])
