"""Requests of clients, read: paths of every client and provider, bodies, errors, and the answers about models."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import segue
from protocols.every_protocol import all_codecs
from protocols.traffic import each_exchange, exchanges, has_json_request, read
from segue.models.catalogue import find_models
from segue.models.providers import PROVIDERS
from segue.protocols.api import resolve_endpoint
from segue.wire import read_call

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANTHROPIC = {**CHAT, "max_tokens": 5}
RESPONSES = {"model": "m", "input": [{"role": "user", "content": "hi"}]}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
BEDROCK = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
ARN = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude"

POSTS = [
    # path, headers, body, protocol, kind, model, stream
    (
        "/v1/messages?beta=true",
        {"anthropic-version": "2023-06-01"},
        ANTHROPIC,
        "anthropic-messages",
        "generate",
        "m",
        False,
    ),
    ("/v1/messages", {}, {**ANTHROPIC, "stream": True}, "anthropic-messages", "generate", "m", True),
    ("//v1/messages", {}, ANTHROPIC, "anthropic-messages", "generate", "m", False),
    ("/v1/messages/count_tokens", {}, CHAT, "anthropic-messages", "count", "m", False),
    ("/api/anthropic/v1/messages", {}, ANTHROPIC, "anthropic-messages", "generate", "m", False),
    (
        "/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-8:streamRawPredict",
        {},
        {"anthropic_version": "vertex-2023-10-16", "max_tokens": 5, "messages": CHAT["messages"]},
        "anthropic-messages",
        "generate",
        "claude-opus-4-8",
        True,
    ),
    (
        "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
        {},
        CHAT,
        "anthropic-messages",
        "count",
        "m",
        False,
    ),
    ("/v1/chat/completions", {}, {**CHAT, "stream": True}, "openai-chat", "generate", "m", True),
    ("/chat/completions", {}, CHAT, "openai-chat", "generate", "m", False),
    (
        "/openai/deployments/gpt-5.2/chat/completions?api-version=1",
        {},
        CHAT,
        "openai-chat",
        "generate",
        "gpt-5.2",
        False,
    ),
    (
        "/v1/chat/completions",
        {"User-Agent": "mistral-client-python/3.7.0"},
        CHAT,
        "mistral-chat",
        "generate",
        "m",
        False,
    ),
    ("/v1/responses", {}, {**RESPONSES, "stream": True}, "openai-responses", "generate", "m", True),
    ("/backend-api/codex/responses", {}, RESPONSES, "openai-responses", "generate", "m", False),
    ("/v1/responses/input_tokens", {}, RESPONSES, "openai-responses", "count", "m", False),
    (
        "/v1beta/models/gemini-3.5-flash:generateContent",
        {},
        GOOGLE,
        "google-genai",
        "generate",
        "gemini-3.5-flash",
        False,
    ),
    ("/v1beta/models/g:streamGenerateContent?alt=sse", {}, GOOGLE, "google-genai", "generate", "g", True),
    ("/v1beta/models/g%3AstreamGenerateContent?alt=sse", {}, GOOGLE, "google-genai", "generate", "g", True),
    ("/v1beta/tunedModels/mine:generateContent", {}, GOOGLE, "google-genai", "generate", "tunedModels/mine", False),
    ("/v1beta/models/g:countTokens", {}, GOOGLE, "google-genai", "count", "g", False),
    ("/v1beta/models/g:countTokens", {}, {"generateContentRequest": GOOGLE}, "google-genai", "count", "g", False),
    (
        "/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent",
        {},
        GOOGLE,
        "google-genai",
        "generate",
        "g",
        False,
    ),
    ("/api/chat", {}, CHAT, "ollama-chat", "generate", "m", True),
    ("/api/chat", {}, {**CHAT, "stream": False}, "ollama-chat", "generate", "m", False),
    (f"/model/{quote(ARN, safe='')}/converse-stream", {}, BEDROCK, "bedrock-converse", "generate", ARN, True),
    (f"/model/{ARN}/converse", {}, BEDROCK, "bedrock-converse", "generate", ARN, False),
    ("/model/m%3A0/count-tokens", {}, {"input": {"converse": BEDROCK}}, "bedrock-converse", "count", "m:0", False),
    ("/v2/chat", {}, CHAT, "cohere-chat", "generate", "m", False),
]


@pytest.mark.parametrize(("path", "headers", "body", "protocol", "kind", "model", "stream"), POSTS)
def test_a_request_for_a_reply_or_a_count_is_read(path, headers, body, protocol, kind, model, stream):
    call = read_call("POST", path, headers, json.dumps(body).encode())
    assert (call.protocol, call.kind, call.model, call.stream) == (protocol, kind, model, stream)
    assert call.prompt is not None
    assert call.prompt.model == model
    (message,) = call.prompt.context.messages
    assert message.content == (segue.TextContent(text="hi"),)
    assert call.body == body


GETS = [
    ("/v1/models?limit=1000", {"x-api-key": "k"}, "anthropic-messages", None),
    (
        "/v1/models?limit=1000",
        {"authorization": "Bearer k", "user-agent": "claude-code/2.1"},
        "anthropic-messages",
        None,
    ),
    ("/v1/models/claude-auto", {"anthropic-version": "2023-06-01"}, "anthropic-messages", "claude-auto"),
    ("/v1/models", {"authorization": "Bearer k"}, "openai-chat", None),
    ("/models", {}, "openai-chat", None),
    ("/v1/models/openai%2Fgpt-5", {}, "openai-chat", "openai/gpt-5"),
    ("/v1/models/openai/gpt-5", {}, "openai-chat", "openai/gpt-5"),
    ("/v1/models/chat/completions", {}, "openai-chat", "chat/completions"),
    ("/v1/models/qwen3:8b", {}, "openai-chat", "qwen3:8b"),
    ("/v1/models/a}b", {}, "openai-chat", "a}b"),
    ("/v1beta/models?pageSize=50", {}, "google-genai", None),
    ("/v1beta/models/gemini-3.5-flash", {}, "google-genai", "gemini-3.5-flash"),
    ("/v1/models?key=k", {}, "google-genai", None),
    ("/v1/models", {"X-Goog-Api-Key": "k"}, "google-genai", None),
    ("/v1/models", {"user-agent": "mistral-client-python/3.7.0"}, "mistral-chat", None),
    ("/v1/models", {"X-Fern-SDK-Name": "cohere"}, "cohere-chat", None),
    ("/foundation-models", {}, "bedrock-converse", None),
    ("/api/tags", {}, "ollama-chat", None),
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("path", "headers", "protocol", "model"), GETS)
def test_a_question_about_models_is_read(path, headers, protocol, model, method):
    call = read_call(method, path, headers)
    assert (call.kind, call.protocol, call.model, call.prompt) == ("models", protocol, model, None)


def test_ollama_is_asked_about_one_model_and_its_version():
    assert read_call("POST", "/api/show", {}, {"model": "qwen3"}).model == "qwen3"
    assert read_call("POST", "/api/show", {}, {"name": "qwen3"}).model == "qwen3"
    call = read_call("GET", "/api/version", {})
    assert call.kind == "version"
    assert call.answer is not None
    assert set(call.answer) == {"version"}


def test_without_alt_google_streams_a_json_array():
    path = "/v1beta/models/g:streamGenerateContent"
    assert read_call("POST", path, {}, GOOGLE).framing == "json-array"
    assert read_call("POST", f"{path}?alt=sse&key=k", {}, GOOGLE).framing == "sse"


def test_a_body_of_responses_on_the_path_of_chat_is_read_and_answered_as_chat():
    call = read_call("POST", "/v1/chat/completions", {}, {**RESPONSES, "stream": True})
    assert (call.protocol, call.body_protocol, call.stream, call.framing) == (
        "openai-chat",
        "openai-responses",
        True,
        "sse",
    )
    assert call.prompt is not None
    encoder = segue.stream_encoder(protocol=call.protocol, options=call.prompt.options)
    usage = segue.Usage(input=1, output=1, total_tokens=2)
    message = segue.AssistantMessage(content=(), usage=usage)
    frames: Any = encoder.feed(segue.DoneEvent(reason=segue.StopReason.STOP, message=message))
    assert any("usage" in frame for frame in frames[:-1])


@pytest.mark.parametrize(
    "body", [json.dumps(CHAT), json.dumps(CHAT).encode(), bytearray(json.dumps(CHAT), "utf-8"), CHAT]
)
def test_a_body_may_be_bytes_text_or_parsed(body):
    assert read_call("post", "/v1/chat/completions", {}, body).body == CHAT
    data = body if isinstance(body, dict | str) else memoryview(body)
    assert read_call("post", "/v1/chat/completions", {}, data).body == CHAT


def test_a_lone_surrogate_in_a_body_is_read():
    call = read_call("POST", "/v1/chat/completions", {}, b'{"messages": [{"role": "user", "content": "\\ud800"}]}')
    assert call.prompt is not None
    assert call.prompt.context.messages[0].content[0].text == "\ud800"  # pyright: ignore[reportAttributeAccessIssue]


def test_the_catalogue_of_the_caller_is_used():
    model = segue.Model("mine", "acme", "openai-chat")
    call = read_call(
        "POST",
        "/v1/chat/completions",
        {},
        {**CHAT, "model": "mine", "messages": [*CHAT["messages"], {"role": "assistant", "content": "yes"}]},
        catalogue=segue.Catalogue(models=(model,), providers=()),
    )
    assert call.prompt is not None
    answer = call.prompt.context.messages[1]
    assert isinstance(answer, segue.AssistantMessage)
    assert answer.provider == "acme"


def test_a_model_that_is_no_text_is_none():
    body = {"model": 5, "messages": [{"role": "user", "content": "Hi."}]}
    assert read_call("POST", "/v1/messages", {}, body).model is None


ERRORS = [
    ("GET", "/", {}, None, 404, None, "no protocol"),
    ("POST", "/v1/embeddings", {}, b"{}", 404, None, "embeddings are not served here"),
    ("POST", "/v1/messages/x", {}, b"{}", 404, None, "no protocol"),
    ("POST", "http://x/#@y", {}, b"{}", 404, None, "no protocol"),
    ("GET", "/v1/messages", {}, None, 405, "anthropic-messages", "send a POST"),
    ("DELETE", "/v1/models/m", {}, None, 405, "openai-chat", "send a GET"),
    ("GET", "/v1/responses", {"Upgrade": "websocket"}, None, 426, "openai-responses", "WebSocket"),
    ("POST", "/v1/messages", {}, None, 400, "anthropic-messages", "missing"),
    ("POST", "/v1/messages", {}, b"", 400, "anthropic-messages", "missing"),
    ("POST", "/v1/messages", {}, b"{", 400, "anthropic-messages", "JSON"),
    ("POST", "/v1/messages", {}, b"\xff\xfe{}", 400, "anthropic-messages", "JSON"),
    ("POST", "/v1/messages", {}, b"[]", 400, "anthropic-messages", "object"),
    ("POST", "/v1/messages", {}, b"{}", 400, "anthropic-messages", "messages"),
    ("POST", "/v1/messages", {}, b'{"messages": 3}', 400, "anthropic-messages", "messages"),
    ("POST", "/v1/messages", {}, b"[" * 100_000, 400, "anthropic-messages", "JSON"),
    ("POST", "/v1beta/models/g:generateContent", {}, b'{"contents": 3}', 400, "google-genai", "contents"),
    ("POST", "/api/show", {}, b"3", 400, "ollama-chat", "object"),
    ("POST", "/api/show", {}, {"name": "m" * 513}, 400, "ollama-chat", "the name of the model has 513 characters"),
    ("GET", f"/v1/models/{'m' * 513}", {}, None, 400, "openai-chat", "the name of the model has 513 characters"),
]


@pytest.mark.parametrize(("method", "path", "headers", "body", "status", "protocol", "words"), ERRORS)
def test_what_cannot_be_read_has_a_status_and_the_protocol_of_the_client(
    method, path, headers, body, status, protocol, words
):
    with pytest.raises(segue.CallError, match=words) as caught:
        read_call(method, path, headers, body)
    assert (caught.value.status, caught.value.protocol) == (status, protocol)
    assert "\n" not in str(caught.value)


def test_the_longest_name_of_a_model_is_read():
    name = "m" * 512
    assert read_call("GET", f"/v1/models/{name}", {}).model == name
    assert read_call("POST", "/api/show", {}, {"name": name}).model == name


def test_a_wrong_method_names_the_right_ones():
    with pytest.raises(segue.CallError) as caught:
        read_call("PUT", "/api/tags", {})
    assert caught.value.methods == ("GET",)


# -- every provider and every recording --------------------------------------------------------------------------------

TARGETS = {
    (row.name, protocol): next(
        (model for model in find_models(provider=row.name, protocol=protocol)), segue.Model("m", row.name, protocol)
    )
    for row in PROVIDERS.values()
    for protocol in sorted({row.protocol, *row.dialect, *row.rules})
    if row.base_url
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda model: f"{model.provider} {model.protocol}")
def test_the_address_of_every_provider_is_read_as_its_protocol(target, stream):
    record = segue.protocols.get_protocol(target.protocol)
    if not record.routes:
        pytest.fail(f"{target.protocol} is sent over HTTP and has no routes")
    row = PROVIDERS[target.provider]
    assert row.base_url is not None
    path = urlsplit(row.base_url).path.rstrip("/") + record.path(resolve_endpoint(target), stream)
    headers = {"user-agent": "mistral-client-python/3.7.0"} if target.protocol == "mistral-chat" else {}
    body = next(sample.request for sample in record.samples() if sample.request)
    assert body is not None
    call = read_call("POST", path, headers, {**body, "stream": stream})
    assert (call.protocol, call.stream) == (target.protocol, stream)


def has_its_path(row: dict[str, Any], exchange: dict[str, Any]) -> bool:
    """Whether the path of a request was recorded; in some recordings it is left out."""
    return has_json_request(row, exchange) and str(exchange.get("url_path")).startswith("/")


@pytest.mark.traffic
@each_exchange(exchanges(), has_its_path)
def test_a_recorded_request_is_read_from_its_path(row):
    exchange = read(row["file"])
    wanted = {row["protocol"], "openai-chat"} if row["protocol"] == "mistral-chat" else {row["protocol"]}
    call = read_call(exchange["method"], exchange["url_path"], exchange["request_headers"] or {}, exchange["request"])
    assert call.protocol in wanted
    assert call.prompt is not None


# -- answers -----------------------------------------------------------------------------------------------------------

MODELS = [
    segue.Model(
        "claude-auto", "gateway", "openai-chat", name="Auto", context_window=200_000, max_tokens=8000, reasoning=True
    ),
    segue.Model("b", "gateway", "openai-chat", input=("text",)),
]


def listed(protocol: str) -> Any:
    return segue.wire.encode_model_list(MODELS, protocol=protocol)


def shown(protocol: str) -> Any:
    return segue.wire.encode_model(MODELS[0], protocol=protocol)


def test_anthropic_reads_the_list_of_models():
    from anthropic.pagination import SyncPage
    from anthropic.types import ModelInfo

    page = SyncPage[ModelInfo].model_validate(listed("anthropic-messages"))
    assert [(model.id, model.display_name) for model in page.data] == [("claude-auto", "Auto"), ("b", "b")]
    assert page.data[0].max_input_tokens == 200_000
    assert (page.first_id, page.last_id, page.has_more) == ("claude-auto", "b", False)
    assert ModelInfo.model_validate(shown("anthropic-messages")).max_tokens == 8000
    assert segue.wire.encode_model_list([], protocol="anthropic-messages")["data"] == []


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
def test_openai_reads_the_list_of_models(protocol):
    from openai.pagination import SyncPage
    from openai.types import Model

    page = SyncPage[Model].model_validate(listed(protocol))
    assert [(model.id, model.owned_by) for model in page.data] == [("claude-auto", "gateway"), ("b", "gateway")]
    assert Model.model_validate(shown(protocol)).id == "claude-auto"


def test_google_reads_the_list_of_models():
    from google.genai.models import _ListModelsResponse_from_mldev, _Model_from_mldev  # pyright: ignore[reportPrivateUsage]
    from google.genai.types import ListModelsResponse, Model

    answer = ListModelsResponse._from_response(  # pyright: ignore[reportPrivateUsage]
        response=_ListModelsResponse_from_mldev(listed("google-genai")), kwargs={}
    )
    assert [model.name for model in answer.models or ()] == ["models/claude-auto", "models/b"]
    one = Model._from_response(response=_Model_from_mldev(shown("google-genai")), kwargs={})  # pyright: ignore[reportPrivateUsage]
    assert (one.display_name, one.input_token_limit, one.output_token_limit) == ("Auto", 200_000, 8000)
    assert "countTokens" in (one.supported_actions or ())


def test_ollama_reads_the_list_of_models_and_one_of_them():
    from ollama import ListResponse, ShowResponse

    answer = ListResponse.model_validate(listed("ollama-chat"))
    assert [model.model for model in answer.models] == ["claude-auto", "b"]
    one = ShowResponse.model_validate(shown("ollama-chat"))
    assert one.capabilities == ["completion", "tools", "vision", "thinking"]
    about = one.modelinfo or {}
    assert about[f"{about['general.architecture']}.context_length"] == 200_000


def test_mistral_reads_the_list_of_models():
    from mistralai.client.models import BaseModelCard, ModelList

    answer = ModelList.model_validate(listed("mistral-chat"))
    cards = answer.data or []
    assert all(isinstance(card, BaseModelCard) for card in cards)
    assert [card.id for card in cards if isinstance(card, BaseModelCard)] == ["claude-auto", "b"]
    assert BaseModelCard.model_validate(shown("mistral-chat")).capabilities.reasoning


def test_cohere_reads_the_list_of_models():
    from cohere.types import GetModelResponse, ListModelsResponse

    answer = ListModelsResponse.model_validate(listed("cohere-chat"))
    assert [model.name for model in answer.models] == ["claude-auto", "b"]
    assert GetModelResponse.model_validate(shown("cohere-chat")).context_length == 200_000


def test_bedrock_reads_the_list_of_models():
    import botocore.session
    from botocore.parsers import create_parser

    service: Any = botocore.session.get_session().get_service_model("bedrock")
    for operation, body, key in (
        ("ListFoundationModels", listed("bedrock-converse"), "modelSummaries"),
        ("GetFoundationModel", shown("bedrock-converse"), "modelDetails"),
    ):
        shape = service.operation_model(operation).output_shape
        reply = {"status_code": 200, "headers": {}, "body": json.dumps(body).encode()}
        read_back: Any = create_parser(service.protocol).parse(reply, shape)
        assert read_back[key] == body[key]


@pytest.mark.parametrize("codec", all_codecs(), ids=lambda codec: codec.name)
def test_a_protocol_without_an_endpoint_has_no_answer(codec):
    for given, encode in (
        (codec.model_list, lambda: segue.wire.encode_model_list([], protocol=codec.name)),
        (codec.token_count, lambda: segue.wire.encode_token_count(3, protocol=codec.name)),
    ):
        if given is None:
            with pytest.raises(segue.UnknownProtocol, match=codec.name):
                encode()
        else:
            assert encode()


def test_token_counts_are_read_by_the_sdks():
    from anthropic.types import MessageTokensCount
    from google.genai.types import CountTokensResponse
    from openai.types.responses.input_token_count_response import InputTokenCountResponse

    def answer(protocol: str) -> Any:
        return segue.wire.encode_token_count(7, protocol=protocol)

    assert MessageTokensCount.model_validate(answer("anthropic-messages")).input_tokens == 7
    assert InputTokenCountResponse.model_validate(answer("openai-responses")).input_tokens == 7
    assert CountTokensResponse.model_validate(answer("google-genai")).total_tokens == 7
    assert answer("bedrock-converse") == {"inputTokens": 7}


@pytest.mark.parametrize("text", [r"\ud83d", r"\ud83d tail", r"\ude00", r"\ud83d\ud83d", r"\ud83d\ude00"])
@pytest.mark.parametrize("size", [10, 400_000], ids=["a small body", "a large body"])
def test_half_a_surrogate_is_read_in_a_body_of_any_size(size, text):
    content = "x" * size + text
    wire = f'{{"model":"m","max_tokens":5,"messages":[{{"role":"user","content":"{content}"}}]}}'
    for body in (wire, wire.encode()):
        prompt = read_call("POST", "/v1/messages", {}, body).prompt
        assert prompt is not None
        (piece,) = prompt.context.messages[0].content
        assert piece.kind == "text"
        assert piece.text == json.loads(wire)["messages"][0]["content"]
