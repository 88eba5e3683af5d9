"""What a provider accepts from a model on its wire comes out of the gateway as it is, under the model's own name and
under a name of the configuration; the same holds for the reply.

The bodies are made of the fields that the SDKs have, as in `requests/test_own_model.py`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from gateway.running import UPSTREAMS, Running, config_text, make_gateway, running
from own_bodies import is_told, leaves, missing, values_of
from segue import Model, check, get_model, prepare
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.testing.emulator import Step, serve_in_thread

PATHS: Final[Mapping[str, str]] = {
    "m-anthropic": "/v1/messages",
    "m-responses": "/v1/responses",
    "m-gemini": "/v1beta/models/{}:generateContent",
    "m-chat": "/v1/chat/completions",
}
CARRIED: Final = {"m-chat": frozenset({"prompt_cache_key", "safety_identifier", "stop"})}
"""OpenRouter gets the key of the cache in a header, one name of the same user, and one stop text in a list."""
OWN: Final = "".join(f'\n[models."{get_model(name).id}"]\ntry = ["{name}"]' for name in UPSTREAMS.values())


def accepted(model: Model) -> dict[str, Any]:
    """Return a body with a value for every field that the provider accepts together with the others."""
    body = dict(prepare("Answer in JSON.", model).body)
    for key, value in values_of(model.protocol).items():
        if not check({**body, key: value}, protocol=model.protocol, model=model):
            body[key] = value
    return body


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = f"sqlite:{tmp_path_factory.mktemp('own')}/gateway.db"
    with running(store=store, more=OWN) as made:
        yield made


def ask(gateway: Running, route: str, name: str, body: Mapping[str, Any]) -> httpx2.Response:
    given = {**body, "model": name} if "model" in body else body
    return httpx2.post(gateway.url + PATHS[route].format(name), json=given, timeout=60)


def changes_of(url: str, answer: httpx2.Response) -> str:
    """Return what the row of a request says that was changed."""
    url = f"{url}/segue/requests/{answer.headers['x-segue-request-id']}"
    for _ in range(1000):  # the row is written after the reply
        if (reply := httpx2.get(url, timeout=60)).status_code == 200:
            return str(reply.json().get("changes", []))
    raise AssertionError("the request has no row")


def sent_for(gateway: Running, route: str, name: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return a body, what was sent for it, and what was reported."""
    model = get_model(UPSTREAMS[route])
    body = accepted(model)
    gateway.upstream.emulator.script.add(Step(text="{}"))
    answer = ask(gateway, route, name, body)
    sent = gateway.upstream.emulator.requests[-1].body
    assert isinstance(sent, dict)
    assert len(body.keys() & sent.keys()) > 3
    return body, sent, changes_of(gateway.url, answer)


@pytest.mark.parametrize("route", UPSTREAMS)
def test_a_body_for_the_own_name_of_a_model_is_sent_unchanged(gateway: Running, route: str):
    body, sent, told = sent_for(gateway, route, get_model(UPSTREAMS[route]).id)
    assert missing(body, sent) == set()
    assert told == "[]"


@pytest.mark.parametrize("route", UPSTREAMS)
def test_what_is_changed_for_another_name_of_a_model_is_reported(gateway: Running, route: str):
    body, sent, told = sent_for(gateway, route, route)
    lost = missing(body, sent) - CARRIED.get(route, frozenset())
    assert [name for name in lost if not is_told(name, body[name], told)] == []


SAMPLES: Final = (
    (
        "m-responses",
        "/v1/responses",
        {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "service_tier": "flex",
            "system_fingerprint": "fp",
            "metadata": {"a": "b"},
            "tool_usage": {"web_search": {"num_requests": 2}},
            "output": [
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [
                        {
                            "type": "output_text",
                            "text": "Hi.",
                            "annotations": [{"type": "file_citation", "file_id": "f", "filename": "a", "index": 1}],
                            "logprobs": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}],
                        },
                        {"type": "refusal", "refusal": "No more."},
                    ],
                }
            ],
            "usage": {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
                "output_tokens": 4,
                "output_tokens_details": {"reasoning_tokens": 1},
                "total_tokens": 13,
            },
        },
    ),
    (
        "m-anthropic",
        "/v1/messages",
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "Hi."}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "END",
            "context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1}]},
            "usage": {
                "input_tokens": 9,
                "output_tokens": 4,
                "service_tier": "priority",
                "inference_geo": "us",
                "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 2,
                "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
            },
        },
    ),
    (
        "m-gemini",
        "/v1beta/models/{}:generateContent",
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "Hi."}]},
                    "finishReason": "SAFETY",
                    "finishMessage": "It was blocked.",
                    "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH"}],
                    "avgLogprobs": -0.5,
                    "citationMetadata": {"citationSources": [{"uri": "https://example.com"}]},
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 9,
                "candidatesTokenCount": 4,
                "totalTokenCount": 13,
                "trafficType": "PROVISIONED_THROUGHPUT",
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
            },
        },
    ),
    (
        "m-chat",
        "/v1/chat/completions",
        {
            "id": "c1",
            "object": "chat.completion",
            "provider": "Acme",
            "service_tier": "flex",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length",
                    "native_finish_reason": "MAX",
                    "message": {
                        "role": "assistant",
                        "content": "Hi.",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url_citation": {"url": "https://a.example", "start_index": 0, "end_index": 2},
                            }
                        ],
                    },
                    "logprobs": {"content": [{"token": "Hi", "logprob": -0.1, "top_logprobs": []}]},
                },
                {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}},
            ],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "total_tokens": 13,
                "cost": 0.25,
                "prompt_tokens_details": {"audio_tokens": 3},
                "completion_tokens_details": {"accepted_prediction_tokens": 2},
            },
        },
    ),
)
"""Replies with what each wire says about a reply besides its text."""
NAMES: Final = frozenset({"id", "model", "modelVersion", "responseId", "created", "created_at"})
"""A reply to a name of the configuration has its own id, and that name."""


def lost_of(reply: Mapping[str, Any], shown: Mapping[str, Any]) -> set[str]:
    got = dict(leaves(dict(shown)))
    return {str(path) for path, value in leaves(dict(reply)) if got.get(path, ...) != value and path[0] not in NAMES}


@contextmanager
def answering(reply: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> Generator[str]:
    """Run a provider that gives one reply to everything, or its events to requests for a stream."""
    lines = (f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events)
    forms = {False: (json.dumps(reply), b"application/json"), True: ("".join(lines), b"text/event-stream")}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        given = b""
        while True:
            part = await receive()
            given += part.get("body", b"")
            if not part.get("more_body"):
                break
        text, kind = forms["stream" in scope["path"] or json.loads(given).get("stream") is True]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": text.encode()})

    with serve_in_thread(app) as url:
        yield url


@contextmanager
def running_at(upstream: str, store: str, more: str = "") -> Generator[str]:
    gateway = make_gateway(load_config(config_text(upstream, store=store, more=OWN + more)))
    with serve_in_thread(create_app(gateway=gateway)) as url:
        yield url


@pytest.mark.parametrize("is_own_name", [True, False])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: each[0])
def test_a_reply_of_its_own_model_is_shown_unchanged(tmp_path: Path, sample: tuple[str, str, Any], is_own_name: bool):
    route, path, reply = sample
    target = get_model(UPSTREAMS[route])
    with answering(reply) as upstream, running_at(upstream, f"sqlite:{tmp_path}/gateway.db") as url:
        name = target.id if is_own_name else route
        body = prepare("Hi", target).body
        given = {**body, "model": name} if "model" in body else body
        answer = httpx2.post(url + path.format(name), json=given, timeout=60)
    assert answer.status_code == 200
    assert lost_of(reply, answer.json()) == set()


CLAUDE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-8",
    "content": [],
    "stop_reason": "refusal",
    "stop_details": {"type": "refusal", "category": "cyber", "explanation": "No."},
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 1},
}
_ENDED: Final = {"stop_reason": "refusal", "stop_details": CLAUDE["stop_details"]}
CLAUDE_EVENTS: Final = [
    {"type": "message_start", "message": {**CLAUDE, "stop_reason": None, "stop_details": None}},
    {"type": "message_delta", "delta": _ENDED, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
GEMINI: Final[dict[str, Any]] = {
    "candidates": [{"finishReason": "SAFETY", "index": 0}],
    "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
}
REFUSALS: Final = {"m-anthropic": (CLAUDE, CLAUDE_EVENTS), "m-gemini": (GEMINI, [GEMINI])}
ENDS: Final = {
    "/v1/messages": '"stop_reason":"refusal"',
    "/v1/chat/completions": '"finish_reason":"content_filter"',
    "/v1/responses": '"incomplete_details":{"reason":"content_filter"}',
    "/v1beta/models/{}:{}": '"finishReason":"SAFETY"',
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("route", REFUSALS)
def test_a_reply_that_ended_as_a_refusal_is_one_for_every_client(tmp_path: Path, route: str, streams: bool):
    whole, events = REFUSALS[route]
    hello = [{"role": "user", "content": "Hi"}]
    bodies: dict[str, dict[str, Any]] = {
        "/v1/messages": {"max_tokens": 50, "messages": hello},
        "/v1/chat/completions": {"messages": hello},
        "/v1/responses": {"input": "Hi"},
    }
    verb = "streamGenerateContent?alt=sse" if streams else "generateContent"
    with answering(whole, events) as upstream, running_at(upstream, f"sqlite:{tmp_path}/gateway.db") as url:
        for path, end in ENDS.items():
            body = {"model": route, "stream": streams, **bodies[path]} if path in bodies else {}
            body = body or {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
            answer = httpx2.post(url + path.format(route, verb), json=body, timeout=60)
            assert (answer.status_code, end in answer.text) == (200, True), path


CALL: Final = {"id": "c_1", "type": "function", "function": {"name": "patch", "arguments": '{"input": "*** Begin"}'}}
CALL_EVENTS: Final = [
    {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **CALL}]}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
]
CALLED: Final = {
    "id": "c1",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"},
    ],
}
ITEM: Final = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c_1", "name": "patch", "input": "*** Begin"}
ITEM_REPLY: Final = {"id": "resp_1", "object": "response", "status": "completed", "output": [ITEM]}
ITEM_EVENTS: Final = [
    {"type": "response.created", "response": {**ITEM_REPLY, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "input": ""}},
    {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "*** Begin"},
    {"type": "response.custom_tool_call_input.done", "output_index": 0, "item_id": "ctc_1", "input": "*** Begin"},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {"type": "response.completed", "response": ITEM_REPLY},
]
FREEFORM: Final = {
    "chat": (
        "m-responses",
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "custom", "custom": {"name": "patch"}}]},
        '"custom":{"name":"patch","input":"*** Begin"}',
        (ITEM_REPLY, ITEM_EVENTS),
    ),
    "responses": (
        "m-chat",
        "/v1/responses",
        {"input": "Hi", "tools": [{"type": "custom", "name": "patch"}]},
        '"input":"*** Begin"',
        (CALLED, CALL_EVENTS),
    ),
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("client", FREEFORM)
def test_a_client_gets_calls_of_its_freeform_tool_from_another_wire(tmp_path: Path, client: str, streams: bool):
    route, path, body, wanted, reply = FREEFORM[client]
    with answering(*reply) as upstream, running_at(upstream, f"sqlite:{tmp_path}/gateway.db") as url:
        answer = httpx2.post(url + path, json={"model": route, "stream": streams, **body}, timeout=60)
    assert (answer.status_code, wanted in answer.text) == (200, True), answer.text


# -- what a reply says besides its text, shown to clients of other wires -----------------------------------------------

MEASURED: Final = "Größe: 7 km."
_PAGE: Final = {"url": "https://a.example", "title": "A", "start_index": 7, "end_index": 11}
_NOTE: Final = {"type": "url_citation", **_PAGE}
_PART: Final = {"type": "output_text", "text": MEASURED, "annotations": [_NOTE]}
_MESSAGE: Final = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [_PART]}
_DONE: Final = {"id": "resp_1", "object": "response", "status": "completed", "output": [_MESSAGE]}
_AT: Final = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_GROUNDED: Final = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": MEASURED}]},
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
                "groundingSupports": [
                    {"segment": {"startIndex": 9, "endIndex": 13, "text": "7 km"}, "groundingChunkIndices": [0]}
                ],
            },
        }
    ]
}
_CITED: Final = {
    "role": "assistant",
    "content": MEASURED,
    "annotations": [{"type": "url_citation", "url_citation": _PAGE}],
}


def chunk(delta: Mapping[str, Any], reason: str | None = None, **others: object) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **others}


CITING: Final[Mapping[str, tuple[Any, Sequence[Mapping[str, Any]]]]] = {
    "m-gemini": (_GROUNDED, [_GROUNDED]),
    "m-chat": (
        {"id": "c1", "choices": [{"index": 0, "finish_reason": "stop", "message": _CITED}]},
        [
            chunk({"content": "Größe: "}),
            chunk({"content": "7 km."}),
            chunk({"annotations": _CITED["annotations"]}, "stop"),
        ],
    ),
    "m-responses": (
        _DONE,
        [
            {"type": "response.created", "response": {**_DONE, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**_MESSAGE, "content": []}},
            {"type": "response.content_part.added", **_AT, "part": {**_PART, "text": "", "annotations": []}},
            {"type": "response.output_text.delta", **_AT, "delta": MEASURED},
            {"type": "response.output_text.annotation.added", **_AT, "annotation_index": 0, "annotation": _NOTE},
            {"type": "response.output_text.done", **_AT, "text": MEASURED},
            {"type": "response.content_part.done", **_AT, "part": _PART},
            {"type": "response.output_item.done", "output_index": 0, "item": _MESSAGE},
            {"type": "response.completed", "response": _DONE},
        ],
    ),
}
"""A page that is cited for the characters 7 to 11, which are the bytes 9 to 13."""


def asked(url: str, route: str, path: str, *, streams: bool) -> httpx2.Response:
    """Ask for a reply over one wire."""
    hello = [{"role": "user", "content": "Hi"}]
    bodies: dict[str, dict[str, Any]] = {
        "/v1/messages": {"max_tokens": 50, "messages": hello},
        "/v1/chat/completions": {"messages": hello},
        "/v1/responses": {"input": "Hi"},
    }
    body = {"model": route, "stream": streams, **bodies[path]} if path in bodies else {}
    body = body or {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    verb = "streamGenerateContent?alt=sse" if streams else "generateContent"
    answer = httpx2.post(url + path.format(route, verb), json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


def bodies_of(answer: httpx2.Response) -> list[Any]:
    """Return the body of a reply, or the events of a streamed one."""
    if "text/event-stream" not in answer.headers["content-type"]:
        return [answer.json()]
    lines = [line.removeprefix("data:").strip() for line in answer.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def spans(value: object) -> set[tuple[int, int]]:
    """Find the places that pages are cited for."""
    if isinstance(value, list):
        return {span for one in value for span in spans(one)}
    if not isinstance(value, dict):
        return set()
    own = {(value[first], value[last]) for first, last in PLACES if first in value and last in value}
    return own | {span for one in value.values() for span in spans(one)}


PLACES: Final = (("start_index", "end_index"), ("startIndex", "endIndex"))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("route", CITING)
def test_a_page_is_cited_for_the_same_characters_on_every_wire(tmp_path: Path, route: str, streams: bool):
    with answering(*CITING[route]) as upstream, running_at(upstream, f"sqlite:{tmp_path}/gateway.db") as url:
        for path in ("/v1/chat/completions", "/v1/responses", "/v1beta/models/{}:{}"):
            found = spans(bodies_of(asked(url, route, path, streams=streams)))
            assert found == {(9, 13) if "v1beta" in path else (7, 11)}, path


NEW: Final = "weather_of_the_day"
_HELLO: Final = [{"type": "text", "text": "Hi."}]
_CLAUDE: Final = {**CLAUDE, "content": _HELLO, "stop_reason": "end_turn", "stop_details": None}
_GEMINI: Final = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP", NEW: "sun"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1, "totalTokenCount": 10},
}
UNLISTED: Final[Mapping[str, tuple[Any, Sequence[Mapping[str, Any]]]]] = {
    "m-anthropic": (
        {**_CLAUDE, NEW: "sun"},
        [
            {"type": "message_start", "message": {**_CLAUDE, "content": [], "stop_reason": None, NEW: "sun"}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ],
    ),
    "m-gemini": (_GEMINI, [_GEMINI]),
    "m-chat": (
        {"id": "c1", NEW: "sun", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Hi."}}]},
        [chunk({"content": "Hi."}, **{NEW: "sun"}), chunk({}, "stop")],
    ),
    "m-responses": (
        {**_DONE, NEW: "sun"},
        [*CITING["m-responses"][1][:-1], {"type": "response.completed", "response": {**_DONE, NEW: "sun"}}],
    ),
}
"""Replies with a field that no list knows."""
REMOVED: Final = "'extra_removed', 'path': ['extra']"
"""How the row of a request says so, without values."""


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("route", UNLISTED)
def test_a_field_of_a_reply_that_no_list_knows_is_reported(tmp_path: Path, route: str, streams: bool):
    known: Any = json.loads(
        json.dumps(UNLISTED[route]).replace(f', "{NEW}": "sun"', "").replace(f'"{NEW}": "sun", ', "")
    )
    for given, is_new in ((UNLISTED[route], True), (known, False)):
        store = f"sqlite:{tmp_path}/{is_new}.db"
        with answering(given[0], given[1]) as upstream, running_at(upstream, store) as url:
            for path in ENDS:
                if PATHS[route].partition("{")[0] == path.partition("{")[0]:
                    continue  # a client of the same wire gets it
                answer = asked(url, route, path, streams=streams)
                assert NEW not in answer.text
                assert (REMOVED in changes_of(url, answer)) is is_new, path


FULL: Final = (
    {"id": "c1", "choices": [{"index": 0, "finish_reason": "model_length", "message": {"content": "Hi."}}]},
    [chunk({"content": "Hi."}), chunk({}, "model_length")],
)
MISTRAL: Final = '''
[models.m-mistral]
try = ["mistral/mistral-medium-latest"]
[providers.mistral]
base_url = "{}/v1"'''


@pytest.mark.parametrize("streams", [False, True])
def test_a_window_that_was_full_at_mistral_is_one_for_a_client_of_claude(tmp_path: Path, streams: bool):
    with (
        answering(*FULL) as upstream,
        running_at(upstream, f"sqlite:{tmp_path}/gateway.db", MISTRAL.format(upstream)) as url,
    ):
        claude = asked(url, "m-mistral", "/v1/messages", streams=streams)
        assert '"stop_reason":"model_context_window_exceeded"' in claude.text
        chat = asked(url, "m-mistral", "/v1/chat/completions", streams=streams)
        assert '"finish_reason":"length"' in chat.text
        assert (REMOVED in changes_of(url, claude), REMOVED in changes_of(url, chat)) == (False, True)
