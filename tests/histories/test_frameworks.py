"""Messages of frameworks: dumps that the frameworks wrote, and what is true of every format of a framework."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from histories.truth import SHARED, beside_the_project, needs_samples
from segue import (
    AssistantMessage,
    Context,
    History,
    NativeContent,
    Sent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
    framework_objects,
    read_history,
    recognise,
    save_history,
    write_history,
)
from segue.errors import LoadError, SettingsError
from segue.histories.forms import FORMS
from segue.histories.kit.framework import give_json
from segue.histories.registry import FORMATS, get_format

FRAMEWORKS = {name: record for name, record in FORMATS.items() if record.kind == "framework"}
SAMPLES = {
    f"{name} {sample.name}": (name, sample.source) for name, record in FRAMEWORKS.items() for sample in record.samples()
}
of_every_sample = pytest.mark.parametrize(("name", "source"), SAMPLES.values(), ids=SAMPLES.keys())


@of_every_sample
def test_a_sample_is_recognised_as_its_own_format(name, source):
    assert [claim.format for claim in recognise(source)] == [name]
    assert read_history(source).origin.format == name
    if source.data is not None and source.data.count(b"\n") < 2:
        assert read_history(json.loads(source.data)).origin.format == name


@of_every_sample
def test_a_sample_that_is_written_back_is_the_same_document(name, source):
    if source.data is None or source.data.count(b"\n") > 1:
        pytest.skip("not one JSON document")
    written = write_history(read_history(source), format=name)
    assert json.loads(written.files[0].data) == json.loads(source.data)


@of_every_sample
def test_a_message_that_was_changed_is_written_with_its_new_content(name, source):
    history = read_history(source)
    at = next(at for at, message in enumerate(history.context.messages) if message.role == "user")
    messages = list(history.context.messages)
    messages[at] = replace(messages[at], content=(TextContent(text="Something else."),))
    changed = replace(history, context=replace(history.context, messages=tuple(messages)))
    data = write_history(changed, format=name).files[0].data
    assert b"Something else." in data
    assert b"Look at both files." not in data


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_another_document_is_refused_in_one_sentence(name):
    for value in ({}, [], [1], {"messages": 5}, "text", None, [{"other": 1}]):
        with pytest.raises(LoadError, match="no conversation found"):
            read_history(json.dumps(value).encode(), format=name)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_objects_are_given_by_the_framework_or_refused_in_one_sentence(name):
    written = write_history(Context().add(UserMessage.of("hi")), format=name)
    packages = [form.needs[0] for form in FORMS[name] if form.where == "objects"]
    give = get_format(name).give
    if give is give_json or (give is not None and is_installed(packages[0])):
        assert framework_objects(written)
        return
    with pytest.raises(SettingsError, match="has no objects" if give is None else "is not installed here"):
        framework_objects(written)


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


class Dump(NamedTuple):
    """A dump of a framework: the values in it that segue has to read.

    `opaque` counts signatures and encrypted contents, `errors` results that failed, `images` those of the user and of
    tools.
    """

    file: str
    format: str
    opaque: int
    errors: int
    images: int
    models: set[str]


CLAUDE, GPT, GEMINI = "claude-sonnet-4-5", "gpt-5.4", "gemini-2.5-pro"
DUMPS = [
    Dump("langchain/messages_to_dict-anthropic-then-chat.json", "langchain", 4, 2, 2, {CLAUDE, GPT}),
    Dump("langchain/messages_to_dict-anthropic-then-responses.json", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("langchain/messages_to_dict-anthropic-then-responses_v1.json", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("langchain/dumpd-anthropic-then-chat.json", "langchain", 4, 2, 2, {CLAUDE, GPT}),
    Dump("langchain/dumpd-anthropic-then-responses.json", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("langchain/dumpd-anthropic-then-responses_v1.json", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("langgraph/state-values-dumpd.json", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("langgraph/checkpoints.sqlite", "langchain", 6, 2, 2, {CLAUDE, GPT}),
    Dump("pydantic-ai/all_messages.json", "pydantic-ai", 6, 2, 2, {CLAUDE, GPT}),
    Dump("openai-agents/to_input_list-responses.json", "openai-agents", 4, 0, 2, set()),
    Dump("openai-agents/session-responses.db", "openai-agents", 4, 0, 2, set()),
    Dump("openai-agents/to_input_list-chat.json", "openai-agents", 0, 0, 2, {"mock-model"}),
    Dump("openai-agents/session-chat.db", "openai-agents", 0, 0, 2, {"mock-model"}),
    Dump("litellm/messages.json", "litellm", 7, 0, 2, set()),
    Dump("hf/messages.jsonl", "hf-messages", 0, 0, 0, set()),
    Dump("hf/messages-through-datasets.jsonl", "hf-messages", 0, 0, 0, set()),
    Dump("hf/openai-finetune.jsonl", "openai-chat", 0, 0, 0, set()),
    Dump("hf/sharegpt.jsonl", "sharegpt", 0, 0, 1, set()),
    Dump("google-adk/session.json", "google-adk", 4, 2, 1, {GEMINI}),
    Dump("google-adk/events.json", "google-adk", 4, 2, 1, {GEMINI}),
    Dump("google-adk/sessions.sqlite", "google-adk", 4, 2, 1, {GEMINI}),
    Dump("strands/session_s1/agents/agent_a1/messages/message_3.json", "strands", 3, 2, 2, set()),
    Dump("strands/session_s1", "strands", 3, 2, 2, set()),
    Dump("inspect-ai/messages.json", "inspect-ai", 6, 2, 2, {CLAUDE, GPT}),
    Dump("inspect-ai/eval-log.json", "inspect-ai", 6, 2, 2, {CLAUDE, GPT}),
    Dump("vercel-ui/ui-messages.json", "vercel-ui", 5, 2, 1, set()),
    Dump("vercel-ui/v7-ui-messages.json", "vercel-ui", 5, 2, 1, {CLAUDE}),
    Dump("vercel-ui/pydantic-ai-dump_messages.json", "vercel-ui", 6, 2, 1, set()),
    Dump("llama-index/chat_messages.json", "llama-index", 5, 0, 2, set()),
    Dump("llama-index/simple_chat_store.json", "llama-index", 5, 0, 2, set()),
    Dump("ag-ui/pydantic-ai-dump_messages.json", "ag-ui", 6, 2, 1, set()),
    Dump("haystack/messages.json", "haystack", 0, 1, 2, {CLAUDE}),
    Dump("agent-framework/messages.json", "agent-framework", 0, 1, 1, {"x"}),
    Dump("autogen/agent_state.json", "autogen", 0, 2, 1, set()),
    Dump("autogen/context_state.json", "autogen", 0, 2, 1, set()),
    Dump("autogen/task_result.json", "autogen", 0, 2, 1, set()),
    Dump("ag2/events.json", "ag2", 0, 2, 0, {CLAUDE}),
    Dump("mcp-sampling/create_message_params.json", "mcp-sampling", 0, 1, 2, set()),
    Dump("mcp-sampling/create_message_result.json", "mcp-sampling", 0, 0, 0, {CLAUDE}),
    Dump("opentelemetry/pydantic-ai-otel-messages.json", "opentelemetry", 0, 0, 2, set()),
    Dump("atif/trajectory.json", "atif", 0, 1, 1, {CLAUDE, GPT}),
]
OPAQUE = re.compile(r"bW9jaz[A-Za-z0-9+/_=-]{60,}")
of_every_dump = pytest.mark.parametrize("dump", beside_the_project(DUMPS), ids=lambda dump: dump.file)


def opaque_values(value: object) -> set[str]:
    """Give the opaque values of a JSON value; the scripted model that made the dumps began each with the same bytes."""
    return set(OPAQUE.findall(json.dumps(value).replace("-", "+").replace("_", "/")))


@cache
def read_dump(file: str) -> History:
    return read_history(SHARED / file)


def contents_of(context: Context) -> list[Any]:
    return [content for message in context.messages for content in message.content]


@of_every_dump
def test_a_dump_is_read_with_everything_that_it_holds(dump):
    history = read_dump(dump.file)
    context = history.context
    assert history.origin.format == dump.format
    signatures = [
        getattr(content, name, None)
        for content in contents_of(context)
        for name in ("thinking_signature", "text_signature", "thought_signature")
    ]
    assert len(opaque_values(signatures)) == dump.opaque
    assert sum(message.role == "toolResult" and message.is_error for message in context.messages) == dump.errors
    assert sum(content.kind == "image" for content in contents_of(context)) == dump.images
    replies = [message for message in context.messages if message.role == "assistant"]
    assert {reply.model for reply in replies} - {""} == dump.models


@of_every_dump
def test_a_dump_that_is_written_back_is_the_same_document(dump):
    path = Path(SHARED / dump.file)
    if path.suffix != ".json" or dump.format == "strands":
        pytest.skip("not one JSON document")
    written = write_history(read_dump(dump.file), format=dump.format)
    assert json.loads(written.files[0].data) == json.loads(path.read_bytes())


@needs_samples
def test_the_messages_of_strands_are_written_back_into_the_folders_of_a_session(tmp_path):
    folder = SHARED / "strands/session_s1"
    written = write_history(read_history(folder), format="strands", session_id="s1")
    save_history(written, tmp_path)
    for path in sorted(folder.rglob("message_*.json")):
        copy = tmp_path / "session_s1" / path.relative_to(folder)
        assert json.loads(copy.read_bytes()) == json.loads(path.read_bytes())
    assert read_history(tmp_path).context.messages == read_history(folder).context.messages


@of_every_dump
def test_a_dump_that_is_written_for_another_framework_keeps_every_text_or_reports_it(dump):
    for target in FRAMEWORKS:
        assert_kept_or_reported(read_dump(dump.file), target)


@of_every_sample
def test_a_sample_that_is_written_for_another_framework_keeps_every_text_or_reports_it(name, source):
    history = read_history(source, format=name)
    for target in FRAMEWORKS:
        assert_kept_or_reported(history, target)


def assert_kept_or_reported(history: History, target: str) -> None:
    written = write_history(history, format=target)
    again = read_history(written.files[0].data, format=target)
    kept = [piece_of(content) for content in contents_of(again.context)]
    reported = {change.path[1] for change in written.report.changes if len(change.path) > 1}
    for at, message in enumerate(history.context.messages):
        if at not in reported:
            assert [piece for content in message.content if (piece := piece_of(content)) not in kept] == [], target


def piece_of(content: Any) -> tuple[object, ...]:
    if content.kind == "text":
        return ("text", content.text)
    if content.kind == "toolCall":
        return ("call", content.id, content.name, content.arguments)
    if content.kind == "thinking":
        return ("thinking", content.thinking, content.thinking_signature)
    return ("media", getattr(content, "data", None) or getattr(content, "url", None))


REQUIRED = {
    "text": {"content"},
    "reasoning": {"content"},
    "tool_call": {"name"},
    "tool_call_response": {"response"},
    "blob": {"modality", "content"},
    "uri": {"modality", "uri"},
    "file": {"modality", "file_id"},
}
"""The fields that the schema of OpenTelemetry's messages requires for each type of part (b49cb9d)."""


OTHERS = {key: sample for key, sample in SAMPLES.items() if sample[0] != "opentelemetry"}


@pytest.mark.parametrize(("name", "source"), OTHERS.values(), ids=OTHERS.keys())
def test_messages_of_opentelemetry_have_the_fields_that_its_schema_requires(name, source):
    history = read_history(source, format=name)
    for entry in json.loads(write_history(history, format="opentelemetry").files[0].data):
        assert entry["role"] in {"system", "user", "assistant", "tool"}
        for part in entry["parts"]:
            assert REQUIRED[part["type"]] <= part.keys()
            assert part.get("modality", "image") in {"image", "video", "audio", "document"}


ORIGINS = {
    "anthropic-messages": ("anthropic", "claude-opus-5-5"),
    "openai-responses": ("openai", "gpt-5.4"),
    "openai-chat": ("deepseek", "deepseek-v4-pro"),
    "google-genai": ("google", "gemini-3.1-pro-preview"),
    "mistral-chat": ("my-own", "my-model"),
}


@pytest.mark.parametrize("protocol", ORIGINS)
@pytest.mark.parametrize(
    ("name", "settings"),
    [("langchain", {"output_version": "v1"}), ("pydantic-ai", {"native_blocks": "keep"})],
    ids=["langchain", "pydantic-ai"],
)
def test_a_reply_keeps_what_its_provider_needs_back(name, settings, protocol):
    """Adapters of frameworks keep their conversations in these messages alone."""
    provider, model = ORIGINS[protocol]
    reply = AssistantMessage(
        content=(
            ThinkingContent(thinking="Hm.", thinking_signature="one", extra={protocol: {"field": 1}}),
            ThinkingContent(thinking="", thinking_signature="two", redacted=True),
            TextContent(text="Look.", text_signature="three", phase="commentary", extra={protocol: {"field": [2]}}),
            ToolCall(
                id="call_1", name="look", arguments={"at": 1.0}, arguments_text='{"at": 1.0}', thought_signature="4"
            ),
            NativeContent(protocol=protocol, block={"type": "search", "id": "s"}),
            TextContent(text="", text_signature="five"),
        ),
        protocol=protocol,
        provider=provider,
        model=model,
        response_id="reply_1",
        sent=Sent(system="a", messages="b", blocks=("c",), account="d"),
        extra={protocol: {"tier": "fast"}},
    )
    written = write_history(Context(messages=(reply,)), format=name, settings=settings)
    (found,) = read_history(written.files[0].data, format=name).context.messages
    fields = ("content", "protocol", "provider", "model", "response_id", "sent")
    assert {field: getattr(found, field) for field in fields} == {field: getattr(reply, field) for field in fields}
    assert (found.extra or {})[protocol] == {"tier": "fast"}


def test_a_new_document_has_the_version_that_is_known():
    written = write_history(Context(messages=(UserMessage.of("Look."),)), format="atif")
    assert json.loads(written.files[0].data)["schema_version"] == "ATIF-v1.8"


def test_items_of_a_conversation_are_read_in_the_order_of_time():
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look at the file."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one line"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It has one line."}]},
    ]
    readings = []
    for data in (items, items[::-1]):
        listed = {"object": "list", "data": data, "first_id": "i1", "last_id": "i4", "has_more": False}
        history = read_history(json.dumps(listed).encode())
        assert history.origin.format == "openai-agents"
        readings.append([message.role for message in history.context.messages])
    assert readings[0] == readings[1] == ["user", "assistant", "toolResult", "assistant"]
