"""Typed answers: how each model is asked for a type, what becomes of its reply, and what a conversation keeps of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import jsonschema
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from segue import (
    Answer,
    AssistantMessage,
    AsyncClient,
    AsyncConversation,
    Attempt,
    ChangeCode,
    Client,
    Context,
    Conversation,
    Loss,
    Model,
    Options,
    OutputCut,
    OutputInvalid,
    OutputPending,
    OutputRefused,
    Policy,
    ProjectionRefused,
    Retry,
    SettingsError,
    StopReason,
    TextContent,
    ToolDefinition,
    UserMessage,
    check,
    complete,
    find_models,
    get_model,
    prepare,
    project,
    read_output,
    stream,
)
from segue.client.output import ladder
from segue.client.output.ladder import DETAILS, TypedRequest, WantedOutput, ask_for
from segue.client.output.output_types import OutputType
from segue.testing.emulator import EmulatedCall, EmulatorServer, Step, emulate


@dataclass
class Place:
    """A place on a map."""

    name: str
    population: int


class PlaceStruct(msgspec.Struct):
    name: str
    population: int


class PlaceDict(TypedDict):
    name: str
    population: int


class PlaceTuple(NamedTuple):
    name: str
    population: int = 0


class PlaceModel(pydantic.BaseModel):
    name: str
    population: int = pydantic.Field(ge=0)


class Refusal(pydantic.BaseModel):
    reason: str


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Trip:
    stops: list[PlaceTuple]
    guide: PlaceModel | None = None


@dataclass
class Leaf:
    size: int = 0


@dataclass
class Branch:
    """What has branches and leaves."""

    children: list[Branch | Leaf]


@dataclass
class Choice:
    place: PlaceModel | Refusal | None
    more: Annotated[list[Place | Leaf], msgspec.Meta(max_length=1)] = field(default_factory=list)


class ChoiceDict(TypedDict):
    name: str
    choice: NotRequired[Place | Leaf]


class Tagged(msgspec.Struct, tag="first", rename="camel"):
    first_choice: Place | Leaf


class Other(msgspec.Struct, tag="other"):
    size: int = 0


Item = TypeVar("Item")


@dataclass
class Box(Generic[Item]):
    item: Item | Place


class Mixed(Enum):
    NAME = "name"
    HALF = 0.5
    NOTHING = None


@pydantic.dataclasses.dataclass
class Adult:
    age: int

    @pydantic.field_validator("age")
    @classmethod
    def check_age(cls, age: int) -> int:
        if age < 18:
            raise ValueError("has to be an adult")
        return age


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        assert self.number % 2 == 0, "has to be even"


def make_place() -> type[Any]:
    """Make another class of the same name."""

    @dataclass
    class Place:
        city: str

    return Place


City: Any = make_place()
BERGEN = {"name": "Bergen", "population": 290000}
TEXT = json.dumps(BERGEN)
TOOL = ToolDefinition(name="look", description="Look it up", parameters={"type": "object", "properties": {}})
ASKED = Context(system_prompt="Be brief.", messages=(UserMessage.of("Which place?"),))
ONCE = Retry(max_retries=0)
CHAT = "openrouter/openai/gpt-4o"


# -- types -------------------------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, str, object]] = {
    "a dataclass": (Place, TEXT, Place("Bergen", 290000)),
    "a struct": (PlaceStruct, TEXT, PlaceStruct("Bergen", 290000)),
    "a typed dict": (PlaceDict, TEXT, BERGEN),
    "a named tuple by its names": (PlaceTuple, TEXT, PlaceTuple("Bergen", 290000)),
    "a named tuple with a default": (PlaceTuple, '{"name": "Bergen"}', PlaceTuple("Bergen")),
    "a model of pydantic": (PlaceModel, TEXT, PlaceModel(name="Bergen", population=290000)),
    "a list": (list[Place], f"[{TEXT}]", [Place("Bergen", 290000)]),
    "a list in its wrapper": (list[PlaceModel], f'{{"value": [{TEXT}]}}', [PlaceModel(**BERGEN)]),
    "a union of classes": (PlaceModel | Refusal, '{"value": {"reason": "no"}}', Refusal(reason="no")),
    "a union with None": (Place | None, '{"value": null}', None),
    "an enumeration": (Colour, '{"value": "blue"}', Colour.BLUE),
    "a literal": (Literal["red", "blue"], '{"value": "red"}', "red"),
    "a number": (int, "3", 3),
    "a text": (str, '{"value": "three"}', "three"),
    "a dict whose only key is that of the wrapper": (dict[str, int], '{"value": 3}', {"value": 3}),
    "named tuples inside": (Trip, f'{{"stops": [{TEXT}]}}', Trip([PlaceTuple("Bergen", 290000)])),
    "classes that contain each other": (
        Branch,
        '{"children": [{"size": 1}, {"children": []}]}',
        Branch([Leaf(1), Branch([])]),
    ),
    "a list of two classes": (list[Place | Leaf], f'[{TEXT}, {{"size": 2}}]', [Place("Bergen", 290000), Leaf(2)]),
    "the class that has the fields": (list[Other | Leaf], '[{"size": 3}]', [Other(3)]),
    "two classes in a dataclass": (Choice, '{"place": {"reason": "no"}}', Choice(Refusal(reason="no"))),
    "two classes in a typed dict": (
        ChoiceDict,
        f'{{"name": "x", "choice": {TEXT}}}',
        {"name": "x", "choice": Place("Bergen", 290000)},
    ),
    "a typed dict without the field": (ChoiceDict, '{"name": "x"}', {"name": "x"}),
    "two classes in a struct": (
        Tagged | Other,
        f'{{"type": "first", "firstChoice": {TEXT}}}',
        Tagged(Place("Bergen", 290000)),
    ),
    "two classes in a generic one": (Box[Leaf], '{"item": {"size": 1}}', Box(Leaf(1))),
    "two classes of the same name": (list[Place | City], '[{"city": "Bergen"}]', [City("Bergen")]),
    "an enumeration of several kinds": (list[Mixed], '["name", 0.5, null]', list(Mixed)),
    "a member of an enumeration": (Literal[Colour.RED], '"red"', Colour.RED),
    "a dataclass of pydantic": (Adult, '{"age": 18}', Adult(18)),
    "a text without quotes": (str, "three cities", "three cities"),
    "an enumeration without quotes": (Colour, "blue", Colour.BLUE),
    "the text null": (str | None, '"null"', "null"),
    "in a code fence": (Place, f"Here it is:\n```json\n{TEXT}\n```\nSee [1].", Place("Bergen", 290000)),
    "between sentences with brackets": (Place, f"As [1] says: {TEXT} (see [docs])", Place("Bergen", 290000)),
    "with a number in a text": (Place, '{"name": "Bergen", "population": "290000"}', Place("Bergen", 290000)),
    "with raw line breaks, in a fence": (
        Place,
        '```\n{"name": "Ber\ngen", "population": 1}\n```',
        Place("Ber\ngen", 1),
    ),
}


@pytest.mark.parametrize(("type_", "text", "value"), VALUES.values(), ids=VALUES.keys())
def test_a_reply_is_read_as_a_value(type_: Any, text: str, value: object):
    assert read_output(_reply(text), type_) == value


def _reply(text: str, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=(TextContent(text=text),), **{"stop_reason": StopReason.STOP, **fields})


MISFITS: dict[str, tuple[Any, str, str, str]] = {
    "a wrong type": (Place, '{"name": "Bergen", "population": "many"}', "Expected `int`", "$.population"),
    "a missing field": (Place, '{"name": "Bergen"}', "missing required field `population`", ""),
    "in a list": (list[Place], '[{"name": 1, "population": 2}]', "Expected `str`", "$[0].name"),
    "what pydantic refuses": (PlaceModel, '{"name": "x", "population": -1}', "greater than or equal", "$.population"),
    "not JSON": (Place, "Bergen, I think.", "not JSON", ""),
    "empty": (Place, " ", "empty", ""),
    "what pydantic refuses in a dataclass": (list[Adult], '[{"age": 1}]', "has to be an adult", "$[0].age"),
    "what no class of a union is": (Choice, '{"place": {"name": 1}}', "$.name", "$.place"),
    "below a union": (Choice, '{"place": null, "more": [{"size": "x"}]}', "Expected `int`", "$.more[0]"),
    "too many": (Choice, '{"place": null, "more": [{}, {}]}', "length <= 1", "$.more"),
    "another tag": (Tagged, '{"type": "other", "firstChoice": {}}', "Invalid value", "$.type"),
    "a required key": (ChoiceDict, "{}", "missing required field `name`", ""),
    "a value that an enumeration does not have": (list[Mixed], '["x"]', "Invalid enum value", "$[0]"),
    "what an assertion refuses": (Even, '{"number": 3}', "has to be even", ""),
    "a field too many in a tuple": (PlaceTuple, '{"name": "x", "size": 1}', "unknown field `size`", ""),
}


@pytest.mark.parametrize(("type_", "text", "reason", "place"), MISFITS.values(), ids=MISFITS.keys())
def test_a_reply_that_does_not_fit_says_where_and_why(type_: Any, text: str, reason: str, place: str):
    with pytest.raises(OutputInvalid) as caught:
        read_output(_reply(text), type_)
    assert reason in caught.value.reason
    assert caught.value.place == place
    assert "errors.pydantic.dev" not in str(caught.value)


@pytest.mark.parametrize("row", VALUES.values(), ids=VALUES.keys())
def test_a_value_that_is_read_fits_the_schema(row: tuple[Any, str, object]):
    type_, text, _ = row
    output = OutputType(type_)
    jsonschema.Draft202012Validator.check_schema(output.object_schema)
    with contextlib.suppress(json.JSONDecodeError):  # sentences
        value = json.loads(text)
        is_whole = output.is_object or (isinstance(value, dict) and list(value) == ["value"])
        lenient = text.replace('"290000"', "290000")  # a number in a text
        jsonschema.validate(json.loads(lenient) if is_whole else {"value": value}, output.object_schema)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ([Place], "use list[Place]"),
        (Place("Bergen", 1), "use the type Place, not a value"),
        ({"type": "object"}, "Options(output_schema=...)"),
        (pydantic.BaseModel, "use a dataclass"),
        ("Place", "use a dataclass"),
    ],
    ids=str,
)
def test_what_is_no_type_is_refused_with_advice(given: Any, advice: str):
    with pytest.raises(SettingsError) as caught:
        OutputType(given)
    assert advice in str(caught.value)


@pytest.mark.parametrize("type_", [list[Place], Colour, PlaceModel | Refusal, int, Place | None], ids=str)
def test_a_root_that_is_not_an_object_is_wrapped_where_the_target_wants_one(type_: Any):
    output = OutputType(type_)
    assert output.object_schema["type"] == "object"
    assert output.object_schema["required"] == ["value"]
    wrapped = _ask(type_, get_model("openai/gpt-5.4")).request.projection.options.output_schema
    assert wrapped is not None
    assert wrapped["type"] == "object"
    free = _ask(type_, get_model("google/gemini-2.5-pro")).request.projection.options.output_schema
    assert free is not None
    assert "value" not in free.get("properties", {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ('{"na', {}),
        ('{"name": "Ber', {"name": "Ber"}),
        ('{"name": "Bergen", "popu', {"name": "Bergen"}),
        (TEXT, BERGEN),
        ("```json\n" + TEXT, BERGEN),
    ],
)
def test_what_has_arrived_of_an_object_is_plain_json(text: str, value: object):
    assert OutputType(Place).read_partial(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"va', None), ('{"value": [{"name": "Ber', [{"name": "Ber"}]), ('[{"name": "Ber', [{"name": "Ber"}])],
)
def test_what_has_arrived_of_a_list_is_unwrapped(text: str, value: object):
    assert OutputType(list[Place]).read_partial(text) == value


# -- how models are asked ----------------------------------------------------------------------------------------------


def _ask(type_: Any, model: Model, context: Context = ASKED, options: Options | None = None, **policy: Any):
    def make(given: Context, asked: Options | None):
        return prepare(given, model, options=asked, policy=Policy(**policy))

    output = WantedOutput(OutputType(type_))
    return ask_for(output, context, model, options, Policy(**policy), make_request=make)


WAYS: dict[str, Callable[[], tuple[Context, Options | None, Any]]] = {
    "an object": lambda: (ASKED, None, Place),
    "a list": lambda: (ASKED, None, list[PlaceModel]),
    "beside tools": lambda: (_with_tools(), None, Trip),
    "while it thinks, in a stream": lambda: (ASKED, Options(thinking="high", max_tokens=20000, stream=True), Place),
}


def _with_tools() -> Context:
    return Context(system_prompt=ASKED.system_prompt, messages=ASKED.messages, tools=(TOOL,))


def _assert_sent(asked: TypedRequest, type_: Any) -> None:
    """See that the names of the fields are in the request, which nothing else has."""
    assert "population" in str(OutputType(type_).schema)
    assert "population" in asked.request.content.decode(), (asked.request.model.full_name(), asked.rung)


def test_a_way_that_the_target_does_not_have_is_found(monkeypatch: pytest.MonkeyPatch):
    model = get_model("deepseek/deepseek-chat")
    _assert_sent(_ask(Place, model), Place)
    monkeypatch.setattr(ladder, "_has_schema", lambda _: True)
    asked = _ask(Place, model)
    assert asked.rung == "schema"
    with pytest.raises(AssertionError):
        _assert_sent(asked, Place)


OFTEN = ("an object", "beside tools")
"""The others take as long, and are proofs."""


@pytest.mark.parametrize("way", [way if way in OFTEN else pytest.param(way, marks=pytest.mark.proof) for way in WAYS])
def test_every_chat_model_of_the_catalogue_is_asked_by_a_way_that_it_accepts(way: str):
    context, options, type_ = WAYS[way]()
    ways: Counter[str] = Counter()
    for model in find_models():
        asked = _ask(type_, model, context, options)
        (change,) = asked.request.report.of(ChangeCode.OUTPUT_ASKED)
        assert change.detail == DETAILS[asked.rung]
        assert (change.loss == Loss.CONTENT) == (asked.rung in ("json_mode", "prompt"))
        _assert_sent(asked, type_)
        found = check(asked.request.body, protocol=model.protocol, model=model)
        if found:  # a model of sound or images refuses every conversation of texts
            plain = prepare(context, model, options=options)
            assert check(plain.body, protocol=model.protocol, model=model), (model.full_name(), asked.rung, found)
        ways[asked.rung] += 1
    assert ways.keys() == DETAILS.keys()
    assert ways["prompt"] < 50


RUNGS: dict[str, tuple[str, Options | None, tuple[ToolDefinition, ...], str]] = {
    "OpenAI": ("openai/gpt-5.4", None, (), "schema"),
    "Claude": ("anthropic/claude-opus-4-5", None, (), "schema"),
    "an old Claude": ("anthropic/claude-3-7-sonnet-20250219", None, (), "function"),
    "an old Claude that thinks": (
        "anthropic/claude-3-7-sonnet-20250219",
        Options(thinking="high", max_tokens=20000),
        (),
        "prompt",
    ),
    "DeepSeek": ("deepseek/deepseek-chat", None, (), "json_mode"),
    "Groq beside tools": ("groq/llama-3.3-70b-versatile", None, (TOOL,), "function"),
    "Cohere beside tools": ("cohere/command-a-03-2025", None, (TOOL,), "function"),
}


@pytest.mark.parametrize(("name", "options", "tools", "rung"), RUNGS.values(), ids=RUNGS.keys())
def test_the_best_way_of_the_target_is_chosen(name: str, options: Options | None, tools: Any, rung: str):
    context = Context(messages=ASKED.messages, tools=tools)
    asked = _ask(Place, get_model(name), context, options)
    assert asked.rung == rung
    sent = asked.request.projection
    assert (sent.options.output_schema is not None) == (rung == "schema")
    assert ("JSON schema" in str(sent.context.system_prompt)) == (rung in ("json_mode", "prompt"))
    assert (asked.function is not None) == (rung == "function")
    if tools and rung == "function":
        assert sent.options.tool_choice == "required"  # the model may call the other one first


def test_a_function_of_the_same_name_is_left_alone():
    own = ToolDefinition(name="output", parameters={"type": "object", "properties": {}})
    asked = _ask(
        Place, get_model("anthropic/claude-3-7-sonnet-20250219"), Context(messages=ASKED.messages, tools=(own,))
    )
    assert asked.function == "output_"
    assert [tool.name for tool in asked.request.projection.context.tools if tool.kind == "function"] == [
        "output",
        "output_",
    ]


@pytest.mark.parametrize("refused", [Loss.CONTENT, ChangeCode.OUTPUT_ASKED])
def test_a_policy_can_refuse_that_a_type_is_only_asked_for_in_words(refused: Loss | ChangeCode):
    with pytest.raises(ProjectionRefused):
        _ask(Place, get_model("deepseek/deepseek-chat"), refuse=frozenset({refused}))


def test_json_mode_is_kept_where_the_instructions_name_json():
    model = get_model("deepseek/deepseek-chat")
    options = Options(extra={"openai-chat": {"response_format": {"type": "json_object"}}})
    named = project(Context(system_prompt="Answer in JSON.", messages=ASKED.messages), model, options=options)
    assert named.options.extra == options.extra
    assert project(ASKED, model, options=options).options.extra is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"output": Place, "options": Options(output_schema={"type": "object"})},
        {"output": Place, "output_retries": -1},
        {"output": Callable[[], None]},
    ],
    ids=["two schemas", "a negative number", "a type without a schema"],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_sent(wrong: dict[str, Any]):
    with pytest.raises(SettingsError):
        complete("hi", "echo", **wrong)


# -- five protocols ----------------------------------------------------------------------------------------------------

FIVE = {
    "anthropic-messages": "anthropic/claude-opus-4-5",
    "openai-chat": CHAT,
    "openai-responses": "openai/gpt-5.4",
    "google-genai": "google/gemini-2.5-pro",
    "mistral-chat": "mistral/mistral-large-latest",
}
OLD = "anthropic/claude-3-7-sonnet-20250219"
KINDS = ["client", "async client", "conversation", "async conversation"]


def test_the_five_are_five():
    assert [get_model(name).protocol for name in FIVE.values()] == list(FIVE)


def _model(name: str, server: EmulatorServer) -> Model:
    model = get_model(name)
    return msgspec.structs.replace(model, base_url=server.url)


def _bodies(server: EmulatorServer) -> list[Any]:
    return [request.body for request in server.emulator.requests]


@contextmanager
def _talk(name: str, server: EmulatorServer, **settings: Any) -> Iterator[Conversation]:
    with Client(api_key="any") as client, Conversation(_model(name, server), client=client, **settings) as talk:
        yield talk


def _send(
    kind: str, server: EmulatorServer, name: str, type_: type[Any], *, streams: bool = False, **settings: Any
) -> Any:
    """Ask by one of the clients or conversations; a conversation is given back with the answer."""
    model = _model(name, server)
    if kind == "client":
        with Client(api_key="any", retry=ONCE) as client:
            if streams:
                return client.stream("Which place?", model, output=type_, **settings).answer(), None
            return client.complete("Which place?", model, output=type_, **settings), None
    if kind == "conversation":
        with Client(api_key="any", retry=ONCE) as client, Conversation(model, client=client) as talk:
            if streams:
                return talk.stream("Which place?", output=type_, **settings).answer(), talk.messages
            return talk.ask("Which place?", output=type_, **settings), talk.messages

    async def run() -> Any:
        async with AsyncClient(api_key="any", retry=ONCE) as client:
            if kind == "async client":
                if streams:
                    return await client.stream("Which place?", model, output=type_, **settings).answer(), None
                return await client.complete("Which place?", model, output=type_, **settings), None
            async with AsyncConversation(model, client=client) as talk:
                if streams:
                    answer = await talk.stream("Which place?", output=type_, **settings).answer()
                else:
                    answer = await talk.ask("Which place?", output=type_, **settings)
                return answer, talk.messages

    return asyncio.run(run())


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIVE.values(), ids=FIVE.keys())
def test_five_protocols_answer_with_a_value(name: str, kind: str, streams: bool):
    with emulate(Step(text=f'{{"value": [{TEXT}]}}')) as server:
        answer, messages = _send(kind, server, name, list[Place], streams=streams)
    assert isinstance(answer, Answer)
    assert answer.value == [Place("Bergen", 290000)]
    assert answer.asked == "native schema"
    assert answer.usage.output > 0
    if messages is not None:
        assert [message.role for message in messages] == ["user", "assistant"]
        assert messages[-1] == answer.message


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_of_a_function_is_stored_as_text(kind: str, streams: bool):
    step = Step(text="I note it.", calls=(EmulatedCall(name="output", arguments=BERGEN),))
    with emulate(step) as server:
        answer, messages = _send(kind, server, OLD, Place, streams=streams)
        (sent,) = _bodies(server)
    assert answer.value == Place("Bergen", 290000)
    assert answer.asked == "a function that has to be called"
    assert sent["tool_choice"] == {"type": "tool", "name": "output"}
    assert answer.message.tool_calls() == ()
    assert answer.message.stop_reason == StopReason.STOP
    assert json.loads(answer.message.content[-1].text) == BERGEN
    if messages is not None:
        assert messages[-1] == answer.message


def test_the_next_request_has_nothing_of_the_help():
    with emulate(Step(calls=(EmulatedCall(name="output", arguments=BERGEN),)), Step(text="fine")) as server:
        with Client(api_key="any") as client, Conversation(_model(OLD, server), client=client) as talk:
            talk.ask("Which place?", output=Place)
            assert talk.context.tools == ()
            assert talk.context.system_prompt is None
            talk.ask("Thanks.", model=_model(CHAT, server))
        body = _bodies(server)[-1]
    assert "tools" not in body
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert json.loads(body["messages"][1]["content"]) == BERGEN


@pytest.mark.parametrize("name", ["deepseek/deepseek-chat", "anthropic/claude-opus-4-5"], ids=["words", "schema"])
def test_the_instructions_of_a_conversation_stay_its_own(name: str):
    with (
        emulate(Step(text=TEXT), Step(text="fine")) as server,
        _talk(name, server, system_prompt="Be brief.") as talk,
    ):
        assert talk.ask("Which place?", output=Place).value == Place("Bergen", 290000)
        talk.ask("Thanks.")
        assert talk.context.system_prompt == "Be brief."
        first, second = map(json.dumps, _bodies(server))
    assert "population" in first
    assert first.count("JSON schema") == (1 if name.startswith("deepseek") else 0)
    assert "JSON schema" not in second


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*FIVE.values(), OLD], ids=[*FIVE.keys(), "function"])
def test_a_reply_that_does_not_fit_is_sent_back_once_with_the_reason(name: str, kind: str, streams: bool):
    wrong = {"name": "Bergen", "population": "many"}
    steps = [_says(name, wrong), _says(name, BERGEN)]
    with emulate(*steps) as server:
        answer, messages = _send(kind, server, name, Place, streams=streams)
        requests = server.emulator.requests
    assert answer.value == Place("Bergen", 290000)
    assert [attempt.reason for attempt in answer.attempts] == ["first", "repair"]
    assert answer.usage.output == sum(attempt.usage.output for attempt in answer.attempts)
    assert "Expected `int`, got `str`" in json.dumps(requests[1].body)
    assert [note.type for note in answer.message.diagnostics] == ["output_invalid"]
    if messages is not None:  # neither the wrong reply nor the reason is part of the conversation
        assert [message.role for message in messages] == ["user", "assistant"]
        assert messages[-1] == answer.message
        assert "many" not in messages[-1].text()


def _says(name: str, value: Mapping[str, object]) -> Step:
    if name == OLD:
        return Step(calls=(EmulatedCall(name="output", arguments=value),))
    return Step(text=json.dumps(value))


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_reply_that_never_fits_is_an_error_with_the_last_reply(retries: int):
    with emulate(*[Step(text="no JSON")] * 5) as server:
        with pytest.raises(OutputInvalid) as caught:
            _send("client", server, CHAT, Place, output_retries=retries)
        assert len(server.emulator.requests) == retries + 1
    assert caught.value.message.text() == "no JSON"
    assert len(caught.value.attempts) == retries + 1


def test_a_conversation_keeps_a_reply_that_never_fits():
    with emulate(Step(text="no JSON"), Step(text="still none")) as server, _talk(CHAT, server) as talk:
        with pytest.raises(OutputInvalid):
            talk.ask("Which place?", output=Place)
        assert [message.role for message in talk.messages] == ["user", "assistant"]
        last = talk.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert last.text() == "still none"


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_if_the_second_request_fails_the_first_reply_stays(kind: str, streams: bool):
    steps = Step(text="no JSON"), Step(status=400, message="no")
    with emulate(*steps) as server, pytest.raises(OutputInvalid) as caught:
        _send(kind, server, CHAT, Place, streams=streams)
    assert caught.value.message.text() == "no JSON"
    assert [attempt.failure is None for attempt in caught.value.attempts] == [True, False]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FIVE.values(), ids=FIVE.keys())
def test_a_reply_that_was_cut_at_its_length_is_an_error_of_its_own(name: str, streams: bool):
    with emulate(Step(text='{"name": "Ber', too_long=True)) as server:
        with pytest.raises(OutputCut, match="max_tokens"):
            _send("client", server, name, Place, streams=streams)
        assert len(server.emulator.requests) == 1


def test_a_reply_that_calls_tools_first_is_pending():
    steps = Step(calls=(EmulatedCall(name="look"),)), Step(text=TEXT)
    with emulate(*steps) as server, _talk(CHAT, server, tools=(TOOL,)) as talk:
        with pytest.raises(OutputPending, match="look"):
            talk.ask("Which place?", output=Place)
        (call,) = talk.pending_calls()
        talk.add_result(call, "Bergen")
        assert talk.ask(output=Place).value == Place("Bergen", 290000)


@pytest.mark.parametrize("name", [CHAT, "openai/gpt-5.4"])
def test_a_refusal_in_a_field_of_its_own_is_an_error_of_its_own(name: str):
    request = prepare(ASKED, name)
    if request.protocol == "openai-chat":
        message = {"role": "assistant", "content": None, "refusal": "I cannot."}
        body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    else:
        content = [{"type": "refusal", "refusal": "I cannot."}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        body = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    with pytest.raises(OutputRefused, match="I cannot"):
        read_output(request.decode(body), Place)


def test_each_fallback_model_is_asked_in_its_own_way():
    with emulate(Step(status=400, message="no"), Step(text=TEXT)) as server:
        with Client(api_key={"openrouter": "any", "deepseek": "any"}, retry=ONCE) as client:
            other = _model("deepseek/deepseek-chat", server)
            answer = client.complete("Which place?", _model(CHAT, server), output=Place, fallback_models=[other])
        first, second = _bodies(server)
    assert first["response_format"]["type"] == "json_schema"
    assert second["response_format"] == {"type": "json_object"}
    assert answer.asked == "JSON mode, with the schema in the prompt"
    assert answer.message.provider == "deepseek"


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def listed() -> Iterator[EmulatorServer]:
    with emulate(Step(text=f'{{"value": [{TEXT}, {TEXT}]}}')) as server:
        yield server


def test_a_stream_gives_the_value_as_it_grows(listed: EmulatorServer):
    with stream("Which?", _model(CHAT, listed), output=list[Place], api_key="any") as reply:
        assert reply.partial is None
        seen = list(reply.partials())
        answer = reply.answer()
    assert seen[-1] == [BERGEN, BERGEN]
    assert [len(str(value)) for value in seen] == sorted(len(str(value)) for value in seen)
    assert answer.value == [Place("Bergen", 290000)] * 2


def test_an_async_stream_gives_the_value_as_it_grows(listed: EmulatorServer):
    async def run() -> tuple[list[Any], Answer[list[Place]]]:
        model = _model("openai/gpt-5.4", listed)
        async with (
            AsyncClient(api_key="any") as client,
            client.stream("Which?", model, output=list[Place]) as reply,
        ):
            seen = [value async for value in reply.partials()]
            return seen, await reply.answer()

    seen, answer = asyncio.run(run())
    assert seen[-1] == [BERGEN, BERGEN]
    assert answer.value == [Place("Bergen", 290000)] * 2


def test_a_streamed_function_is_streamed_as_text():
    with (
        emulate(Step(calls=(EmulatedCall(name="output", arguments=BERGEN),))) as server,
        Client(api_key="any") as client,
        client.stream("Which?", _model(OLD, server), output=Place) as reply,
    ):
        events = list(reply)
    assert not any(event.type.startswith("toolcall") for event in events)
    text = "".join(event.delta for event in events if event.type == "text_delta")
    assert json.loads(text) == BERGEN
    assert events[-1].type == "done"
    assert events[-1].message.text() == text


def test_a_corrected_reply_comes_whole_at_the_end_of_the_stream():
    with emulate(Step(text="no JSON"), Step(text=TEXT)) as server:
        model = _model(CHAT, server)
        with Client(api_key="any") as client, client.stream("Which?", model, output=Place) as reply:
            events = list(reply)
            answer = reply.answer()
    assert [event.type for event in events].count("start") == 1
    assert "".join(event.delta for event in events if event.type == "text_delta") == "no JSON"
    assert events[-1].type == "done"
    assert events[-1].message == answer.message
    assert answer.value == Place("Bergen", 290000)


def test_a_program_without_a_type_is_as_it_was():
    reply = complete("Hello", "echo")
    assert isinstance(reply, AssistantMessage)
    assert reply.text() == "Hello"


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_a_reply_that_the_provider_withholds_is_a_refusal(kind: str):
    import httpx2

    model = get_model("anthropic/claude-opus-4-5")
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model.id,
        "content": [],
        "stop_reason": "refusal",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=reply))

    def ask(client: Client) -> object:
        if kind == "whole":
            return client.complete("Which place?", model, output=Place)
        return client.stream("Which place?", model, output=Place).answer()

    with Client(api_key="any", transport=transport, retry=ONCE) as client, pytest.raises(OutputRefused) as caught:
        ask(client)
    assert caught.value.message.raw_stop_reason == "refusal"


@pytest.mark.parametrize("kind", ["closed", "left"])
def test_a_stream_that_is_closed_while_a_reply_is_corrected_keeps_the_first_one(kind: str):
    ended: list[AssistantMessage] = []
    with emulate(Step(text="no JSON"), Step(text=TEXT)) as server, Client(api_key="any", retry=ONCE) as client:

        def close(attempt: Attempt) -> None:
            if kind == "closed" and attempt.reason == "first":
                reply.close()

        reply = client.stream(
            "Which?",
            _model(CHAT, server),
            output=Place,
            on_attempt=close,
            on_end=lambda message, _: ended.append(message),
        )
        with reply:
            for event in reply:
                if kind == "left" and event.type == "text_delta":
                    break
    (message,) = ended
    assert message.text() == ("no JSON" if kind == "closed" else message.text())
    assert message.stop_reason == (StopReason.STOP if kind == "closed" else StopReason.ABORTED)
