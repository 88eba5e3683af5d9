"""What several wires have arrives with the same meaning, or the report names the field and its value.

The rows are generated from the table: every field, a value of every kind, every pair of wires, one turn and three.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

import pytest

from segue import (
    Context,
    EncodeError,
    FileContent,
    ImageContent,
    Model,
    NativeTool,
    Options,
    Prompt,
    SettingsError,
    SharedOptions,
    TextContent,
    Tool,
    ToolDefinition,
    UserMessage,
    convert,
    decode_request,
    encode_request,
    get_model,
    new_assistant_message,
    prepare,
    read_shared,
    taken_options,
)
from segue.conversation.validation import check_options
from segue.projection.passes import extra as extra_pass
from segue.projection.passes.extra import lost_fields
from segue.projection.report import Report
from segue.protocols.kit.json_values import Block, same
from segue.protocols.shared_fields import (
    SHARED_FIELDS,
    Carried,
    Column,
    SharedField,
    move_fields,
    put,
    read_column,
    write_column,
)

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CLOSED: Final = {"type": "object", "properties": {}, "additionalProperties": False}
TARGETS: Final[Mapping[str, Model]] = {
    **{
        name: get_model(name)
        for name in (
            "anthropic/claude-sonnet-4-5",
            "google/gemini-2.0-flash",
            "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
            "mistral/mistral-medium-latest",
            "openai/gpt-4.1",
            "deepseek/deepseek-chat",
            "groq/llama-3.3-70b-versatile",
            "openrouter/openai/gpt-4.1",
            "fireworks/accounts/fireworks/models/kimi-k3",
            "cerebras/llama-3.3-70b",
            "zai/glm-4.6",
        )
    },
    "gpt-4.1 over Chat": Model("gpt-4.1", "openai", "openai-chat", input=("text", "image")),
    "Gemini over Interactions": Model("gemini-2.5-flash", "google", "google-interactions", input=("text", "image")),
    "Cohere": Model("command-a-vision-07-2025", "cohere", "cohere-chat", input=("text", "image")),
    "Ollama": Model("llava", "ollama", "ollama-chat", input=("text", "image")),
    "vLLM": Model("any", "vllm", "openai-chat", input=("text", "image")),
    "a server of the user's own": Model("any", "mine", "openai-chat", input=("text", "image")),
}
SAMPLES: Final[Mapping[str, tuple[object, ...]]] = {
    "boolean": (True,),
    "number": (0.5, -1.5, 1.1),
    "integer": (3, 700),
    "text": ("ada",),
    "list": (
        ["text", "audio"],
        [{"type": "hate_speech", "threshold": "block_none"}],
        [{"id": "a", "data": {"text": "Hi."}}],
    ),
    "object": (
        {"team": "a"},
        {"type": "content", "content": "def f(): pass"},
        {"mode": "auto", "names": ["look"]},
        {"mode": "required", "names": ["look", "find"]},
        {"voice": "Kore", "language": "de-DE"},
    ),
}


class Case(NamedTuple):
    """A field with one value on one wire."""

    row: SharedField
    protocol: str
    column: Column
    neutral: object
    part: Block


def _cases() -> Iterator[Case]:
    """Give every field of every wire with every value that its column can say."""
    for row in SHARED_FIELDS:
        for protocol, columns in row.columns.items():
            for column in columns:
                values = (
                    tuple(neutral for neutral, _ in column.values)
                    if row.kind == "word" or column.values
                    else (True,)
                    if column.member
                    else SAMPLES[row.kind]
                )
                for neutral in values:
                    try:
                        written = write_column(row, column, neutral)
                    except (KeyError, TypeError):
                        continue  # an object of another row
                    if written is None or written[1]:
                        continue
                    part: Block = {}
                    for path, value in written[0].items():
                        part = put(part, path, value, column.member if path == column.path else "")
                    if same(read_column(row, column, part)[0], neutral):
                        yield Case(row, protocol, column, neutral, part)


CASES: Final = tuple(_cases())
SOURCES: Final[Mapping[str, Model]] = {
    "openai-chat": TARGETS["gpt-4.1 over Chat"],
    "openai-responses": TARGETS["openai/gpt-4.1"],
    "google-interactions": TARGETS["Gemini over Interactions"],
    **{
        model.protocol: model for model in TARGETS.values() if model.protocol not in ("openai-chat", "openai-responses")
    },
}

THINKING: Final[Mapping[str, Model]] = {
    "openai-responses": get_model("openai/gpt-5.4"),
    "anthropic-messages": get_model("anthropic/claude-opus-5-5"),
    "google-genai": get_model("google/gemini-3.8-flash"),
    "google-interactions": Model("gemini-3.8-flash", "google", "google-interactions", reasoning=True),
}


SEARCH: Final[Mapping[str, tuple[Tool, ...]]] = {
    "anthropic-messages": (
        NativeTool(
            protocol="anthropic-messages",
            definition={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        ),
    ),
    "openai-responses": (NativeTool(protocol="openai-responses", definition={"type": "tool_search"}),),
}


def source_body(case: Case, *, turns: int) -> dict[str, Any]:
    """Give a body of the wire with the field in its newest message or in its options."""
    model = THINKING.get(case.protocol, SOURCES[case.protocol])
    model = model if case.row.name == "thinking_shown" else SOURCES[case.protocol]
    at = {case.protocol: case.part}
    image = ImageContent(data=PIXEL, mime_type="image/png", extra=at)
    if case.row.level == "file":
        image = FileContent(data="aGk=", mime_type="application/pdf", name="a.pdf", extra=at)
    content = (TextContent(text="Answer in JSON."), *((image,) if case.row.level in ("image", "file") else ()))
    question = UserMessage(content=content, extra=at if case.row.level == "message" else None)
    tools = tuple(ToolDefinition(name=name, parameters=CLOSED) for name in ("look", "find"))
    tools = tools if case.row.name == "allowed_tools" else ()
    if case.row.level == "tool":
        tools = (ToolDefinition(name="look", parameters=CLOSED, extra=at), *SEARCH.get(case.protocol, ()))
    context = Context(messages=(question,), tools=tools)
    if turns > 1:
        answer = new_assistant_message(model, content=(TextContent(text="Hello."),))
        context = Context(messages=(UserMessage.of("Hi"), answer, question), tools=tools)
    if case.row.level != "body":
        return cast("dict[str, Any]", prepare(context, model).body)
    thinking = "medium" if case.row.name == "thinking_shown" else None
    body = dict(prepare(context, model, options=Options(thinking=thinking)).body)
    return _merged(body, case.part)


def _merged(body: Block, part: Block) -> dict[str, Any]:
    """Give a body with the fields of a part."""
    return {
        **body,
        **{
            key: _merged(cast("Block", body.get(key) or {}), cast("Block", value)) if isinstance(value, dict) else value
            for key, value in part.items()
        },
    }


def arrives(case: Case, target: Model, body: Mapping[str, object]) -> bool:
    """Whether a body says what the field says; clamped values are in the report."""
    places = case.row.columns.get(target.protocol, ())
    parts = list(_objects(body))
    return any(same(read_column(case.row, place, part)[0], case.neutral) for place in places for part in parts)


def _objects(value: object) -> Iterator[Block]:
    if isinstance(value, Mapping):
        yield cast("Block", value)
        for inner in cast("Block", value).values():
            yield from _objects(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in cast("Sequence[object]", value):
            yield from _objects(inner)


def is_told(case: Case, report: Report) -> bool:
    """Whether a report names the field, or says that what it belongs to is not sent."""
    names = {case.row.name, *case.column.path.split(".")}
    details = [change.detail for change in report.changes]
    return any(name in detail for name in names for detail in details) or any(
        change.code.value in ("name_as_text", "tool_removed")
        or change.code.value.startswith("media_")
        or change.path == ("options", "thinking")
        for change in report.changes
    )


def lost_in_silence(case: Case, turns: int) -> list[str]:
    """Give the targets where a field neither arrives nor is reported."""
    found: list[str] = []
    source = SOURCES[case.protocol]
    if not lost_fields({case.protocol: case.part}) or case.neutral in ("auto", "shown"):
        return []  # it says nothing: a request for thinking asks for readable thoughts
    for name, target in TARGETS.items():
        request = convert(source_body(case, turns=turns), source=case.protocol, target=target, source_model=source)
        if not (arrives(case, target, request.body) or is_told(case, request.report)):
            found.append(f"{case.row.name}={json.dumps(case.neutral)} {case.protocol} -> {name}, {turns} turns")
    return found


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("row", SHARED_FIELDS, ids=lambda row: row.name)
def test_a_shared_field_arrives_or_is_told(row: SharedField, turns: int):
    assert [one for case in CASES if case.row is row for one in lost_in_silence(case, turns)] == []


def test_the_law_finds_a_field_that_is_lost(monkeypatch: pytest.MonkeyPatch):
    def losing(*given: Any) -> Iterator[Carried]:
        for carried in move_fields(*given):
            yield carried._replace(added={})

    monkeypatch.setattr(extra_pass, "move_fields", losing)
    case = next(case for case in CASES if case.row.name == "top_k" and case.protocol == "anthropic-messages")
    assert lost_in_silence(case, 1)


def test_every_row_is_of_several_wires_or_providers():
    for row in SHARED_FIELDS:
        assert [case for case in CASES if case.row is row], row.name


def test_a_field_of_a_document_is_not_one_of_an_image():
    document = {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}
    body = {"model": "gpt-4.1", "input": [{"role": "user", "content": [{**document, "detail": "low"}]}]}
    chat = convert(body, source="openai-responses", target=TARGETS["gpt-4.1 over Chat"])
    assert chat.body["messages"][0]["content"][0].keys() == {"type", "file"}
    assert [change.detail for change in chat.report.changes] == ['detail: "low"']
    google = convert(body, source="openai-responses", target="google/gemini-2.0-flash").body
    assert google["contents"][0]["parts"][0]["mediaResolution"] == {"level": "MEDIA_RESOLUTION_LOW"}


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("openrouter/openai/gpt-4.1", True),
        ("groq/llama-3.3-70b-versatile", False),
        ("mistral/mistral-medium-latest", False),
    ],
)
def test_the_name_of_a_system_message_arrives_where_messages_have_names(target: str, named: bool):
    system = {"role": "system", "name": "boss", "content": "Be kind."}
    body = {"model": "gpt-4.1", "messages": [system, {"role": "user", "content": "Hi"}]}
    made = convert(body, source="openai-chat", target=target)
    assert made.body["messages"][0] == (system if named else {"role": "system", "content": "Be kind."})
    assert [change.detail for change in made.report.changes] == ([] if named else ['system: {"name": "boss"}'])


@pytest.mark.parametrize("strict", [True, False])
def test_the_strictness_of_an_answer_is_that_of_the_request(strict: bool):
    form = {"name": "trip", "schema": CLOSED, "strict": strict}
    chat = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
    chat["response_format"] = {"type": "json_schema", "json_schema": form}
    responses = {"model": "gpt-4.1", "input": "Hi", "text": {"format": {"type": "json_schema", **form}}}
    mistral = {**chat, "model": "mistral-medium-latest"}
    bodies = {"openai-chat": chat, "openai-responses": responses, "mistral-chat": mistral}
    models = {**SOURCES, "mistral-chat": get_model("mistral/mistral-medium-latest")}
    for source, body in bodies.items():
        for target in bodies:
            made = convert(body, source=source, target=models[target])
            found = [part["strict"] for part in _objects(made.body) if "strict" in part]
            assert found == [strict] or (strict and target == "mistral-chat" != source), (source, target)
            assert made.report.changes == ()


# -- options of any model ----------------------------------------------------------------------------------------------

TYPES: Final[Mapping[str, tuple[object, ...]]] = {
    "boolean": (bool,),
    "number": (float,),
    "integer": (int,),
    "text": (str,),
    "list": (list,),
    "object": (Mapping,),
    "word": (Literal,),
}


def test_every_field_of_a_request_is_a_typed_option():
    hints = get_type_hints(SharedOptions)
    rows = [row for row in SHARED_FIELDS if row.level == "body"]
    assert hints.keys() == {row.name for row in rows}
    for row in rows:
        given: Any = hints[row.name]
        assert (get_origin(given) or given) in TYPES[row.kind], row.name
        if row.kind == "word":
            words = {neutral for columns in row.columns.values() for column in columns for neutral, _ in column.values}
            assert set(get_args(given)) == words, row.name


@pytest.mark.parametrize("row", [row for row in SHARED_FIELDS if row.level == "body"], ids=lambda row: row.name)
def test_an_option_of_any_model_arrives_or_is_told(row: SharedField):
    tools = tuple(ToolDefinition(name=name, parameters=CLOSED) for name in ("look", "find"))
    context = Context(messages=(UserMessage.of("Answer in JSON."),), tools=tools if row.name == "allowed_tools" else ())
    lost: list[object] = []
    seen: list[object] = []
    for case in CASES:
        if case.row is not row or case.neutral in ("auto", "shown", *seen):
            continue
        seen.append(case.neutral)
        asked = Options(shared=cast("SharedOptions", {row.name: case.neutral}))
        try:
            check_options(asked)
        except SettingsError:
            continue  # a value of another row of this kind
        for name, target in TARGETS.items():
            request = prepare(context, target, options=asked)
            if not (arrives(case, target, request.body) or is_told(case, request.report)):
                lost.append((name, case.neutral))
    assert lost == []


def test_an_option_of_any_model_needs_no_projection():
    prompt = Prompt(context=Context(messages=(UserMessage.of("Hi"),)), options=Options(shared={"top_k": 5}))
    assert encode_request(prompt, model=TARGETS["vLLM"])["top_k"] == 5
    with pytest.raises(EncodeError, match="does not support `top_k`"):
        encode_request(prompt, model=TARGETS["openai/gpt-4.1"])


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(SettingsError, match="there is no option 'topk'"):
        prepare("Hi", "openai/gpt-4.1", options=Options(shared=cast("SharedOptions", {"topk": 1})))


def test_the_options_that_a_model_takes_are_listed():
    taken = taken_options(get_model("google/gemini-2.0-flash"))
    assert taken["top_k"] == "generationConfig.topK"
    assert taken["temperature"] == ""
    assert "thinking" not in taken
    assert "verbosity" not in taken


def test_the_options_of_a_decoded_request_have_neutral_names():
    body = {**CHAT, "response_format": {"type": "json_object"}, "n": 2}
    assert read_shared(decode_request(body, protocol="openai-chat").options) == {"json_mode": True, "n": 2}


# -- single values -----------------------------------------------------------------------------------------------------

CHAT: Final[Mapping[str, Any]] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Answer in JSON."}]}


def test_json_mode_reaches_every_wire_that_has_it():
    body = {**CHAT, "response_format": {"type": "json_object"}}
    sent = {
        "google/gemini-2.0-flash": ("generationConfig", {"responseMimeType": "application/json"}),
        "mistral/mistral-medium-latest": ("response_format", {"type": "json_object"}),
        "openai/gpt-4.1": ("text", {"format": {"type": "json_object"}}),
        "Ollama": ("format", "json"),
    }
    for name, (key, value) in sent.items():
        assert convert(body, source="openai-chat", target=TARGETS[name]).body[key] == value, name


def test_a_penalty_outside_the_range_is_clamped_and_reported():
    request = convert({**CHAT, "frequency_penalty": -1.5}, source="openai-chat", target="cohere/command-a-03-2025")
    assert request.body["frequency_penalty"] == 0
    assert [change.detail for change in request.report.changes] == ["frequency_penalty: 0 instead of -1.5"]


@pytest.mark.parametrize("turns", [1, 3])
def test_a_field_goes_by_whether_the_provider_has_it_in_every_turn(turns: int):
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}] if turns > 1 else []
    body = {**CHAT, "messages": [*before, *CHAT["messages"]], "frequency_penalty": 0.5, "verbosity": "low", "n": 2}
    sent = convert(body, source="openai-chat", target="deepseek/deepseek-chat")
    assert sent.body["frequency_penalty"] == 0.5
    assert "verbosity" not in sent.body
    assert "n" not in sent.body
    assert {name for change in sent.report.changes for name in ("verbosity", "n") if name in change.detail} == {
        "verbosity",
        "n",
    }


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("model", ["gpt-4.1", "my-model", "deepseek-chat"])
def test_a_field_that_the_provider_refuses_is_not_sent_whoever_wrote_the_body(model: str, turns: int):
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}] if turns > 1 else []
    body = {"model": model, "messages": [*before, *CHAT["messages"]], "top_k": 5}
    sent = convert(body, source="openai-chat", target="openai/gpt-4.1", target_protocol="openai-chat")
    assert "top_k" not in sent.body
    assert [change.detail for change in sent.report.changes] == ["top_k: 5"]


def test_the_user_has_another_field_at_zai():
    body = {**CHAT, "user": "user-0001"}
    assert convert(body, source="openai-chat", target="zai/glm-4.6").body["user_id"] == "user-0001"
    back = convert(
        {**CHAT, "user_id": "user-0001"},
        source="openai-chat",
        target="groq/llama-3.3-70b-versatile",
        source_model="zai/glm-4.6",
    )
    assert back.body["user"] == "user-0001"


def test_the_name_and_description_of_a_schema_are_kept():
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    form = {"name": "person", "description": "A person."}
    body = {**CHAT, "response_format": {"type": "json_schema", "json_schema": {**form, "schema": schema}}}
    for target in (
        "mistral/mistral-medium-latest",
        "cerebras/llama-3.3-70b",
        "together/Qwen/Qwen2.5-72B-Instruct-Turbo",
    ):
        sent = convert(body, source="openai-chat", target=target).body["response_format"]
        assert {**sent["json_schema"], **form} == sent["json_schema"], target
    bedrock = convert(
        body, source="openai-chat", target="amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
    ).body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert {**bedrock, **form} == bedrock


def test_a_turn_that_is_to_be_continued_stays_one():
    begun = {"role": "assistant", "content": '{"a":'}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [*CHAT["messages"], begun]}
    for target, field in (("moonshotai/kimi-k2-0905-preview", "partial"), ("mistral/mistral-medium-latest", "prefix")):
        sent = convert(body, source="anthropic-messages", target=target)
        assert sent.body["messages"][-1][field] is True
    mistral = {"model": "mistral-medium-latest", "messages": [*CHAT["messages"], {**begun, "prefix": True}]}
    sent = convert(mistral, source="mistral-chat", target="moonshotai/kimi-k2-0905-preview")
    assert sent.body["messages"][-1]["partial"] is True


def test_a_number_of_alternatives_outranks_the_switch_that_it_needs():
    body = {**CHAT, "logprobs": True, "top_logprobs": 5}
    target = "together/Qwen/Qwen2.5-72B-Instruct-Turbo"
    assert convert(body, source="openai-chat", target=target).body["logprobs"] == 5


def test_a_function_is_held_back_only_where_one_can_search_for_it():
    tool = {"name": "look", "input_schema": CLOSED, "defer_loading": True}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": CHAT["messages"], "tools": [tool, search]}
    sent = convert(body, source="anthropic-messages", target="openai/gpt-5.4").body["tools"]
    assert [(one["type"], one.get("defer_loading")) for one in sent] == [("function", True), ("tool_search", None)]
    alone = convert({**body, "tools": [tool]}, source="anthropic-messages", target="openai/gpt-5.4")
    assert "defer_loading" not in alone.body["tools"][0]
    assert "defer_loading: true" in alone.report.changes[0].detail
    plain = convert(body, source="anthropic-messages", target="mistral/mistral-medium-latest")
    assert [one["function"]["name"] for one in plain.body["tools"]] == ["look"]


def test_stores_of_the_same_provider_stay_over_another_protocol():
    tool = {"type": "file_search", "file_search_store_names": ["fileSearchStores/a"], "top_k": 3}
    body = {"model": "gemini-3.8-flash", "input": "Answer.", "tools": [tool]}
    sent = convert(body, source="google-interactions", target="google/gemini-3.8-flash").body["tools"]
    assert sent == [{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"], "topK": 3}}]


def test_tokens_of_another_tokenizer_are_not_sent():
    request = convert(
        {**CHAT, "logit_bias": {"50256": -100}}, source="openai-chat", target="together/Qwen/Qwen2.5-72B-Instruct-Turbo"
    )
    assert "logit_bias" not in request.body
    assert "logit_bias" in request.report.changes[0].detail
