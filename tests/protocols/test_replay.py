"""What projection sends to the model that wrote it is accepted by `check`, however malformed the received body was.

That is the `check` of the protocol. `segue.check` also compares a body with the fields of the SDK, which projection
does not: a key that they lack may be newer.

Decoding and encoding a body gives the same body, valid or not; a prepared request never repeats what was refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import cast

import pytest

from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import ToolResultMessage, UserMessage
from segue.errors import DecodeError, EmptyConversation
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import check, decode_request, encode_request, resolve_endpoint
from segue.protocols.registry import PROTOCOLS
from segue.requests.prepare import Request, prepare

Path = tuple[str | int, ...]

VALUES: tuple[object, ...] = (
    None,
    "",
    " ",
    "x",
    '{"a":1}',
    0,
    1.5,
    True,
    [],
    {},
    ["x"],
    {"x": 1},
    [None],
    [{}],
)
DELETED = object()


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Give the path of every value inside a body."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield (*path, index)
            yield from places(inner, (*path, index))


def value_at(body: object, path: Path) -> object:
    """Give the value at a path of a body."""
    for step in path:
        body = cast("dict[str | int, object]", body)[step]
    return body


def is_object(value: object) -> bool:
    return isinstance(value, dict)


def changed(body: dict[str, object], path: Path, value: object) -> dict[str, object]:
    """Give a body with another value at a path, or without the key."""
    new = copy.deepcopy(body)
    holder = cast("dict[str | int, object]", new)
    for step in path[:-1]:
        holder = cast("dict[str | int, object]", holder[step])
    if value is DELETED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return new


def replayed(body: dict[str, object], protocol: str, model: Model) -> Request | None:
    """Send a body back to its own model; None if it cannot be read, or holds nothing to send."""
    try:
        prompt = decode_request(body, protocol=protocol, model=model)
        request = prepare(prompt.context, model, options=prompt.options)
        assert request.body
    except (DecodeError, EmptyConversation):
        return None
    return request


@pytest.mark.parametrize("share", [0.05, pytest.param(1.0, marks=pytest.mark.proof)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_malformed_body_is_not_sent_back(protocol, share):
    record, random = PROTOCOLS[protocol], Random(share)
    for sample in record.samples():
        body = sample.request
        if body is None:
            continue
        for path in places(body):
            for value in (*VALUES, DELETED):
                if random.random() > share:
                    continue
                request = replayed(changed(body, path, value), protocol, record.example)
                if request is not None:
                    found = record.check(request.body, resolve_endpoint(record.example))
                    assert found == [], (sample.name, path, value)


def _kind(path: Path) -> str:
    """Name the object at a path: by the last key on the way to it."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.proof)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fields_of_other_objects_are_not_sent_back_where_they_are_refused(protocol, share):
    record, random = PROTOCOLS[protocol], Random(share)
    bodies = [sample.request for sample in record.samples() if sample.request is not None]
    fields: dict[str, dict[str, tuple[str, object]]] = {}
    objects = [(body, path) for body in bodies for path in [(), *places(body)] if is_object(value_at(body, path))]
    for body, path in objects:
        for key, value in cast("dict[str, object]", value_at(body, path)).items():
            fields.setdefault(_kind(path), {})[f"{key} {json.dumps(value)}"] = (key, value)
    for body, path in objects:
        for key, value in fields.get(_kind(path), {}).values():  # an empty object may have no fields
            if random.random() > share:
                continue
            request = replayed(changed(body, (*path, key), value), protocol, record.example)
            if request is not None:
                assert record.check(request.body, resolve_endpoint(record.example)) == [], (path, key, value)


MARKED = {"place": "marked"}
NOT_OBJECTS: tuple[object, ...] = ([1], ["x"], 5, 0, True, False, "x", "[1]", "5")
"""Values that models and proxies have written where the arguments of a call belong."""


def _is_marked(value: object) -> bool:
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    return value == MARKED


@pytest.mark.parametrize("given", NOT_OBJECTS, ids=repr)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arguments_that_are_no_object_are_a_loss_of_content(protocol, given):
    model = PROTOCOLS[protocol].example
    call = ToolCall(id="call_abcdef012", name="find", arguments=MARKED)
    context = Context(
        messages=(
            UserMessage(content=(TextContent(text="hi"),)),
            new_assistant_message(model, content=(call,)),
            ToolResultMessage(tool_call_id=call.id, tool_name="find", content=(TextContent(text="1"),)),
        ),
        tools=(ToolDefinition(name="find", parameters={"type": "object"}),),
    )
    body = prepare(context, model).body
    places_of_arguments = [path for path in places(body) if _is_marked(value_at(body, path))]
    if not places_of_arguments:
        pytest.skip("writes calls as text")
    request = replayed(changed(body, places_of_arguments[0], given), protocol, model)
    assert request is not None
    lost = [change.code for change in request.report.changes if change.loss is Loss.CONTENT]
    # Its own model gets it as it was, unless that is known to be refused.
    is_sent = value_at(request.body, places_of_arguments[0]) == given
    assert lost == [ChangeCode.ARGUMENTS_UNPARSED] or (is_sent and not lost)


CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=1000)
GPT = Model("gpt-5.4", "openai", "openai-responses", reasoning=True, input=("text", "image", "document"))
CHAT = Model("gpt-5.4", "openai", "openai-chat", reasoning=True, input=("text", "image", "document"))
NOVA = Model("amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse", input=("text", "image"))
PIXTRAL = Model("pixtral-large-latest", "mistral", "mistral-chat", input=("text", "image"))
AYA = Model("command-a-vision-07-2025", "cohere", "cohere-chat", input=("text", "image"))
EDITOR = Model("gpt-5", "vscode", "vscode-lm", input=("text", "image"))
GEMINI = Model("gemini-3-pro-preview", "google", "google-genai", reasoning=True, input=("text", "image"))

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BARE = PNG.rstrip("=")
URL_SAFE = PNG.replace("+", "-").replace("/", "_")


def _claude_call(given: object) -> dict[str, object]:
    return {
        "model": CLAUDE.id,
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": given}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }


def _image_body(protocol: str, data: str) -> dict[str, object]:
    url = f"data:image/png;base64,{data}"
    part: dict[str, object]
    match protocol:
        case "anthropic-messages":
            part = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        case "openai-responses":
            item = {"role": "user", "content": [{"type": "input_image", "image_url": url, "detail": "auto"}]}
            return {"model": "m", "input": [item]}
        case "bedrock-converse":
            part = {"image": {"format": "png", "source": {"bytes": data}}}
        case "vscode-lm":
            part = {"$": "data", "data": data, "mimeType": "image/png"}
        case "google-genai":
            inline = {"inlineData": {"mimeType": "image/png", "data": data}}
            return {"contents": [{"role": "user", "parts": [inline]}]}
        case _:
            part = {"type": "image_url", "image_url": {"url": url}}
    body: dict[str, object] = {"messages": [{"role": "user", "content": [part]}]}
    if protocol == "anthropic-messages":
        body["max_tokens"] = 10
    return body if protocol in ("bedrock-converse", "vscode-lm") else {"model": "m", **body}


@pytest.mark.parametrize("given", ['{"a": 1}', "", "not JSON", None, 0, True, [], [1]])
def test_the_input_of_a_call_is_sent_as_an_object(given):
    body = _claude_call(given)
    request = replayed(body, CLAUDE.protocol, CLAUDE)
    assert request is not None
    sent = cast("list[dict[str, object]]", cast("list[dict[str, object]]", request.body["messages"])[1]["content"])[0]
    assert sent["input"] == ({"a": 1} if given == '{"a": 1}' else {})
    assert request.report.of(ChangeCode.EXTRA_REMOVED)
    prompt = decode_request(body, protocol=CLAUDE.protocol, model=CLAUDE)
    assert encode_request(prompt, protocol=CLAUDE.protocol, model=CLAUDE) == body


@pytest.mark.parametrize("model", [CLAUDE, GPT, CHAT, NOVA, PIXTRAL, AYA, EDITOR], ids=lambda model: model.protocol)
@pytest.mark.parametrize("data", [BARE, URL_SAFE], ids=["no padding", "URL-safe"])
def test_media_are_sent_in_standard_base64(model, data):
    body = _image_body(model.protocol, data)
    assert "media_base64_invalid" in {found.code for found in check(body, protocol=model.protocol, model=model)}
    request = replayed(body, model.protocol, model)
    assert request is not None
    assert data not in json.dumps(request.body).replace(PNG, "")
    assert PNG in json.dumps(request.body)
    assert check(request.body, protocol=model.protocol, model=model) == []
    standard = _image_body(model.protocol, PNG)
    assert check(standard, protocol=model.protocol, model=model) == []


def test_google_accepts_any_base64():
    request = replayed(_image_body("google-genai", BARE), "google-genai", GEMINI)
    assert request is not None
    assert request.report.changes == ()
    assert BARE + '"' in json.dumps(request.body)
