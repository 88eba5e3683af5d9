"""Functions as tools: their definitions, and the results of the calls of a model."""

from __future__ import annotations

import asyncio
import json
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, cast

import jsonschema
import msgspec
import pydantic
import pytest

from segue import (
    Context,
    Conversation,
    ImageContent,
    Model,
    SettingsError,
    TextContent,
    Toolbox,
    ToolCall,
    ToolDefinition,
    UserMessage,
    define_tool,
    get_model,
    json_schema,
    parse_arguments,
    prepare,
)
from segue.protocols.registry import PROTOCOLS, get_protocol

PIXEL = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")


class Unit(Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


@dataclass
class Place:
    city: str
    tags: list[str] = field(default_factory=list[str])


class Trip(TypedDict):
    place: Place
    days: int


class Pair(NamedTuple):
    one: int
    two: str


class Node(msgspec.Struct):
    value: int
    children: list[Node] = []


class Inner(pydantic.BaseModel):
    b: str


class Outer(pydantic.BaseModel):
    a: int
    inner: Inner | None = None


def weather(place: Place, days: Annotated[int, "How many days"] = 3, unit: Literal["C", "F"] = "C") -> object:
    """The weather in a place.

    It is measured.

    Args:
        place: Where to look,
            in the world.
        unit (str): The unit.

    Returns:
        A text.
    """
    return {"city": place.city, "days": days, "unit": unit}


def test_a_definition_has_the_docstring_and_the_types():
    definition = define_tool(weather)
    assert definition.name == "weather"
    assert definition.description == "The weather in a place.\n\nIt is measured."
    properties = definition.parameters["properties"]
    assert properties["place"]["description"] == "Where to look, in the world."
    assert properties["days"] == {"description": "How many days", "type": "integer", "default": 3}
    assert properties["unit"]["enum"] == ["C", "F"]
    assert definition.parameters["required"] == ["place"]
    assert "title" not in definition.parameters


def test_a_name_and_a_description_can_be_given():
    definition = define_tool(weather, name="forecast", description="Tomorrow.", strict=True)
    assert (definition.name, definition.description, definition.strict) == ("forecast", "Tomorrow.", True)


class Counter:
    """An object that can be called."""

    def __call__(self, n: int) -> int:
        """Count on."""
        return n + 1

    def method(self, n: int) -> int:
        return n - 1


TYPES: dict[str, tuple[Any, object]] = {
    "a dataclass": (Place, {"city": "Bergen", "tags": ["wet"]}),
    "a TypedDict": (Trip, {"place": {"city": "Bergen"}, "days": 2}),
    "a NamedTuple": (Pair, {"one": 1, "two": "x"}),
    "a Struct that holds itself": (Node, {"value": 1, "children": [{"value": 2}]}),
    "a model of pydantic": (Outer, {"a": 1, "inner": {"b": "x"}}),
    "a list of them": (list[Place], [{"city": "Oslo"}]),
    "one of two": (int | None, 3),
    "an enum": (Unit, "C"),
    "anything": (object, {"deep": [1, None]}),
    "anything of typing": (Any, [1]),
    "a mapping": (dict[str, Place], {"home": {"city": "Oslo"}}),
    "a model of pydantic or nothing": (Outer | None, {"a": 1}),
}


@pytest.mark.parametrize(("type_", "value"), TYPES.values(), ids=TYPES.keys())
def test_a_value_fits_the_schema_of_its_type_and_is_read_as_it(type_, value):
    jsonschema.validate(value, json_schema(type_), cls=jsonschema.Draft202012Validator)
    seen: list[object] = []

    def take(given):
        seen.append(given)

    take.__annotations__ = {"given": type_}
    toolbox = Toolbox(take)
    schema = dict(toolbox.definitions[0].parameters)
    jsonschema.validate({"given": value}, schema, cls=jsonschema.Draft202012Validator)
    (result,) = toolbox.run([ToolCall(id="1", name="take", arguments={"given": value})])
    assert not result.is_error, result
    if isinstance(type_, type) and type_ not in (object, Any, Trip):
        assert isinstance(seen[0], type_)


@pytest.mark.parametrize("type_", [Place, Trip, Outer, Node, list[Outer]], ids=str)
def test_every_object_of_a_schema_is_closed(type_):
    def look(schema: object) -> None:
        if isinstance(schema, dict):
            given = cast("dict[str, Any]", schema)
            assert "properties" not in given or given["additionalProperties"] is False
            for inner in given.values():
                look(inner)

    look(json_schema(type_))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if get_protocol(name).rules.tools])
def test_every_protocol_takes_a_definition(protocol):
    context = Context(tools=Toolbox(weather).definitions)
    model = Model("any", get_protocol(protocol).provider, protocol)
    request = prepare(context.add(UserMessage.of("Hello")), model)
    assert "weather" in json.dumps(request.body)


def fail() -> None:
    raise ValueError("no such place")


async def twice(n: int) -> int:
    await asyncio.sleep(0)
    return n * 2


def ask_for_nothing() -> None:
    raise NotImplementedError


CALL = ToolCall(id="1", name="f")
BROKEN = '{"text": "a\nb"}'
RESULTS: dict[str, tuple[Any, ToolCall, bool, str]] = {
    "a text": (lambda: "Rain", CALL, False, "Rain"),
    "nothing": (lambda: None, CALL, False, "null"),
    "a value": (lambda: {"a": [1, Place("Oslo")]}, CALL, False, '{"a":[1,{"city":"Oslo","tags":[]}]}'),
    "a value of pydantic": (lambda: Inner(b="x"), CALL, False, '{"b":"x"}'),
    "a value that JSON does not know": (lambda: 1j, CALL, False, '"1j"'),
    "an exception": (fail, CALL, True, "ValueError: no such place"),
    "an exception without a text": (ask_for_nothing, CALL, True, "NotImplementedError"),
    "a number in a string": (twice, ToolCall(id="1", name="f", arguments={"n": "4"}), False, "8"),
    "a wrong type": (
        twice,
        ToolCall(id="1", name="f", arguments={"n": "x"}),
        True,
        "Expected `int`, got `str` - at `$.n`",
    ),
    "an argument too many": (twice, ToolCall(id="1", name="f", arguments={"n": 1, "m": 1}), True, "unknown field `m`"),
    "a missing argument": (twice, CALL, True, "missing required field `n`"),
    "an unknown tool": (twice, ToolCall(id="1", name="ff"), True, "there is no tool 'ff'; did you mean f?"),
    "an unknown tool with another name": (twice, ToolCall(id="1", name="search"), True, "the tools are: f"),
    "arguments that are cut off": (
        twice,
        ToolCall(id="1", name="f", arguments={"n": 1}, arguments_text='{"n": 1'),
        True,
        "the function was not run: The tool arguments are cut off",
    ),
    "arguments that were repaired": (
        lambda text: text,
        ToolCall(id="1", name="f", arguments=parse_arguments(BROKEN).arguments, arguments_text=BROKEN),
        False,
        "a\nb",
    ),
}


@pytest.mark.parametrize(("function", "call", "is_error", "text"), RESULTS.values(), ids=RESULTS.keys())
def test_a_call_has_a_result_whatever_happens(function, call, is_error, text):
    def named(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    named.__name__ = "f"
    named.__wrapped__ = function  # pyright: ignore[reportFunctionMemberAccess]
    toolbox = Toolbox(named)
    results = (*toolbox.run([call]), *asyncio.run(toolbox.run_async([call])))
    assert len(results) == 2
    for result in results:
        assert (result.tool_call_id, result.tool_name, result.is_error) == (call.id, call.name, is_error)
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert text in content.text


def test_content_is_the_result():
    def picture() -> object:
        return ["A sky:", PIXEL, {"width": 1}]

    (result,) = Toolbox(picture).run([ToolCall(id="1", name="picture")])
    assert result.content == (TextContent(text="A sky:"), PIXEL, TextContent(text='{"width":1}'))


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_run_at_once_and_results_are_in_their_order(is_async):
    together = threading.Barrier(3, timeout=60)

    def wait(n: int) -> int:
        together.wait()  # breaks unless three calls run at once
        return n

    toolbox = Toolbox(wait)
    calls = [ToolCall(id=str(n), name="wait", arguments={"n": n}) for n in range(3)]
    results = asyncio.run(toolbox.run_async(calls)) if is_async else toolbox.run(calls)
    assert [(result.tool_call_id, result.is_error) for result in results] == [("0", False), ("1", False), ("2", False)]


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_run_one_after_the_other_if_asked(is_async):
    running: list[int] = []
    most: list[int] = []

    def count(n: int) -> None:
        running.append(n)
        most.append(len(running))
        running.remove(n)

    toolbox = Toolbox(count, parallel=False)
    calls = [ToolCall(id=str(n), name="count", arguments={"n": n}) for n in range(20)]
    _ = asyncio.run(toolbox.run_async(calls)) if is_async else toolbox.run(calls)
    assert most == [1] * 20


def test_an_async_function_runs_where_a_loop_runs_already():
    async def notebook() -> Any:
        return Toolbox(twice).run([ToolCall(id="1", name="twice", arguments={"n": 2})])

    (result,) = asyncio.run(notebook())
    assert result.content == (TextContent(text="4"),)


def test_context_variables_are_those_of_the_caller():
    user: ContextVar[str] = ContextVar("user")
    user.set("Ada")

    def whoami() -> str:
        return user.get("nobody")

    calls = [ToolCall(id=str(n), name="whoami") for n in range(2)]
    results = (*Toolbox(whoami).run(calls), *asyncio.run(Toolbox(whoami).run_async(calls)))
    assert {result.content for result in results} == {(TextContent(text="Ada"),)}


def test_a_cancelled_run_cancels_its_functions():
    ended: list[str] = []

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def main() -> None:
        task = asyncio.create_task(Toolbox(long).run_async([ToolCall(id="1", name="long")]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_an_object_a_method_and_a_partial_are_tools():
    toolbox = Toolbox(Counter(), Counter().method, partial(weather, unit="F"))
    assert [definition.name for definition in toolbox.definitions] == ["Counter", "method", "weather"]
    calls = [
        ToolCall(id="1", name="Counter", arguments={"n": 1}),
        ToolCall(id="2", name="method", arguments={"n": 1}),
        ToolCall(id="3", name="weather", arguments={"place": {"city": "Oslo"}}),
    ]
    texts = [result.content[0].text for result in toolbox.run(calls)]  # pyright: ignore[reportAttributeAccessIssue]
    assert texts == ["2", "0", '{"city":"Oslo","days":3,"unit":"F"}']


def test_a_tool_with_its_own_definition_gets_the_arguments_as_they_are():
    toolbox = Toolbox()
    seen: list[object] = []
    toolbox.add(ToolDefinition(name="search", parameters={"type": "object"}), lambda **given: seen.append(given))
    toolbox.run([ToolCall(id="1", name="search", arguments={"any": ["thing"]})])
    assert seen == [{"any": ["thing"]}]
    assert repr(toolbox) == "Toolbox(search)"


class Unknown:
    pass


class Station:
    def read(self, city: str) -> str:
        return city


@dataclass
class Reading:
    city: str
    degrees: float = 0.0


def test_a_class_is_a_tool_with_the_types_of_its_fields():
    properties = Toolbox(Reading).definitions[0].parameters["properties"]
    assert properties == {"city": {"type": "string"}, "degrees": {"type": "number", "default": 0.0}}
    assert Toolbox(Station().read).definitions[0].name == "read"


def takes_unknown(it: Unknown) -> None: ...


def takes_many(*many: int) -> None: ...


MISTAKES: dict[str, tuple[Any, str]] = {
    "two tools with one name": ((weather, weather), "there are two tools with the name 'weather'; rename one of them"),
    "a type without a schema": ((takes_unknown,), "takes_unknown has no JSON schema: "),
    "a parameter without a name in JSON": ((takes_many,), "the parameter *many"),
    "a lambda": ((lambda: 1,), "a lambda has no name for a tool"),
    "a method of no object": (
        (Station.read,),
        "Station.read is a method; pass that of an object, such as Station().",
    ),
    "no function": (("weather",), "'weather' is not a callable object; write a function"),
}


@pytest.mark.parametrize(("functions", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_function_that_cannot_be_a_tool_is_one_sentence(functions, message):
    with pytest.raises(SettingsError) as raised:
        Toolbox(*functions)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_loop_ends_with_an_answer(answering):
    """The loop of the documentation, with a model that calls two tools at once and then answers."""
    tools = Toolbox(weather, twice)
    with Conversation(get_model("openai/gpt-5.4"), client=answering, tools=tools.definitions) as conversation:
        answer = conversation.ask("Do I need an umbrella?")
        while calls := conversation.pending_calls():
            conversation.add(*tools.run(calls))
            answer = conversation.ask()
    assert answer.text() == "Yes."
    results = [message for message in conversation.messages if message.role == "toolResult"]
    assert [(result.tool_name, result.is_error) for result in results] == [("weather", False), ("twice", True)]


@pytest.fixture
def answering():
    httpx2 = pytest.importorskip("httpx2")
    from segue import Client, encode_response, new_assistant_message

    model = get_model("openai/gpt-5.4")

    def provider(request: Any) -> Any:
        body = json.loads(request.read())
        done = any(item.get("type") == "function_call_output" for item in body["input"])
        calls = (
            ToolCall(id="call_1", name="weather", arguments={"place": {"city": "Bergen"}}),
            ToolCall(id="call_2", name="twice", arguments={"n": "many"}),
        )
        reply = new_assistant_message(model, content=(TextContent(text="Yes."),) if done else calls)
        return httpx2.Response(200, json=encode_response(reply, protocol=model.protocol))

    with Client(api_key="key", transport=httpx2.MockTransport(provider)) as client:
        yield client
