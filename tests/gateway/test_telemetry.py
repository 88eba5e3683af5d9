"""Traces, metrics and the log of a gateway: read back with OpenTelemetry's SDK, and by a collector over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from gateway.asgi_client import Client
from gateway.collecting import Memory, collector
from gateway.running import KEYS, config_text, running
from segue.errors import SettingsError
from segue.gateway import light_telemetry, tracing
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.exchange import Exchange
from segue.gateway.light_telemetry import encode_light_spans
from segue.gateway.service import Gateway
from segue.gateway.tracing import REQUESTS, JsonLines
from segue.testing.emulator import Step, emulate, serve_in_thread
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "the colour is mauve"


def ask(url: str, model: str = "m-anthropic", *, stream: bool = False, **headers: str) -> httpx2.Response:
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": SECRET}]}
    return httpx2.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def serve(memory: Memory, upstream: str, more: str = "") -> Any:
    config = load_config(config_text(upstream, store="none", more=more))
    environment = {**KEYS, "XDG_STATE_HOME": "/tmp"}
    return serve_in_thread(create_app(gateway=Gateway(config, environment=environment, telemetry=memory.telemetry)))


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_a_span_in_the_trace_of_its_client_with_a_child_for_each_attempt(stream: bool) -> None:
    memory = Memory()
    with emulate(Step(status=529), Step(text="Hello.")) as upstream, serve(memory, upstream.url) as url:
        reply = ask(url, stream=stream, traceparent=TRACE)
    assert reply.status_code == 200
    (server,) = memory.spans("SERVER")
    calls = memory.spans("CLIENT")
    assert server.context is not None
    assert f"{server.context.trace_id:032x}" == TRACE.split("-")[1]
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == TRACE.split("-")[2]
    assert [span.parent and span.parent.span_id for span in calls] == [server.context.span_id] * 2
    found = dict(server.attributes or {})
    assert found["gen_ai.request.model"] == "m-anthropic"
    assert found["gen_ai.response.model"] == "claude-opus-4-8"
    assert found["gen_ai.provider.name"] == "anthropic"
    assert found["segue.request.id"] == reply.headers["x-segue-request-id"]
    assert found["segue.attempts"] == 2
    assert found["http.response.status_code"] == 200
    conversations = {str((span.attributes or {})["gen_ai.conversation.id"]) for span in (server, *calls)}
    assert len(conversations) == 1
    assert "traceparent" not in upstream.emulator.requests[-1].headers
    assert len(memory.points("gen_ai.server.request.duration")) == 1
    assert len(memory.points("gen_ai.server.time_to_first_token")) == int(stream)
    assert "mauve" not in "".join(span.to_json() for span in memory.spans())


REPLY = {"role": "assistant", "content": "Hello."}
CHAT = {"id": "c", "object": "chat.completion", "created": 0, "model": "a"}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chat(content: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {**REPLY, "content": content}, "finish_reason": "stop"}
    return {**CHAT, "choices": [choice], "usage": USAGE}


FIRST = {
    "a reply": Reply.json(chat("Hello."), headers={"x-request-id": "up-1"}),
    "a refusal": Reply.json({"error": {"message": "overloaded", "type": "server_error"}}, status=503),
    "a refusal for good": Reply.json({"error": {"message": "no", "type": "invalid_request_error"}}, status=400),
    "an empty reply": Reply.json(chat("")),
    "no JSON": Reply.json(b"<html>"),
    "a body that is cut": Reply.json(chat("Cut.")).broken(Phase.END, "close"),
    "a connection that is cut": Reply.json(chat("Cut.")).broken(Phase.ASKED, "close"),
    "a stream": Reply.sse(b'data: {"error": {"message": "overloaded"}}\n\n'),
}


def observe(*replies: Reply, leaves: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """Give the spans and metrics of a request that is not streamed."""
    memory = Memory(propagate=True)
    with ScriptedServer(Reply.json(chat("Late."))) as upstream:
        upstream.reply(*replies)
        text = f'[providers.mine]\nbase_url = "{upstream.url}"\nprotocol = "openai-chat"\n'
        more = '[models."a"]\ntry = ["mine/a", "mine/b"]\n[limits]\nretries = 0\n[state]\nstore = "none"\n'
        gateway = Gateway(load_config(text + more), environment={"XDG_STATE_HOME": "/tmp"}, telemetry=memory.telemetry)
        if leaves:
            asyncio.run(cancel(gateway, upstream))
        else:
            with serve_in_thread(create_app(gateway=gateway)) as url:
                ask(url, "a", traceparent=TRACE)
        sent = {each.headers["traceparent"].split("-")[2] for each in upstream.requests}
    spans = memory.spans()
    assert all(span.context is not None and f"{span.context.trace_id:032x}" in TRACE for span in spans)
    calls = [f"{span.context.span_id:016x}" for span in memory.spans("CLIENT") if span.context is not None]
    assert len(calls) == len(sent)  # each attempt has one span, and the provider knows it
    assert set(calls) == sent
    found = [
        (
            span.name,
            span.kind,
            span.status.status_code,
            span.parent and span.parent.span_id in {each.context and each.context.span_id for each in spans},
            {name: "" if name in BY_CHANCE else value for name, value in (span.attributes or {}).items()},
        )
        for span in spans
    ]
    points = {
        name: sorted(
            (
                point.count,
                0 if "duration" in name else point.sum,
                sorted((key, "" if key in BY_CHANCE else value) for key, value in point.attributes.items()),
            )
            for point in memory.points(name)
        )
        for name in METRICS
    }
    return found, points


BY_CHANCE = {
    "server.port",
    "gen_ai.conversation.id",
    "segue.request.id",
    "gen_ai.response.time_to_first_chunk",
}
METRICS = ("gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.server.request.duration")


async def cancel(gateway: Gateway, upstream: ScriptedServer) -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": SECRET}]}
    client = Client(gateway, json.dumps(body).encode(), stays=True)
    task = asyncio.create_task(client.ask("/v1/chat/completions", {"traceparent": TRACE}))
    await asyncio.to_thread(upstream.wait_until, lambda server: bool(server.requests))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await gateway.close()


@pytest.mark.parametrize("reply", FIRST.values(), ids=FIRST.keys())
def test_a_first_attempt_without_a_flow_has_the_spans_and_metrics_of_one(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = observe(reply)
    monkeypatch.setattr(Exchange, "try_first", lambda _: None)
    assert found == observe(reply)


@pytest.mark.parametrize("phase", [Phase.ASKED, Phase.BODY])
def test_a_first_attempt_that_is_cancelled_has_its_span(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled = Reply.json(chat("Late.")).broken(phase, "stall")
    found, points = observe(stalled, leaves=True)
    assert [attributes["error.type"] for *_, attributes in found] == ["cancelled"]
    assert [count for count, *_ in points["gen_ai.client.operation.duration"]] == [1]
    monkeypatch.setattr(Exchange, "try_first", lambda _: None)
    assert observe(stalled, leaves=True) == (found, points)


def test_a_failed_request_is_a_failed_span() -> None:
    memory = Memory()
    with emulate(Step(status=400, message="no " + SECRET)) as upstream, serve(memory, upstream.url) as url:
        assert ask(url).status_code == 400
    (server,) = memory.spans("SERVER")
    assert server.status.status_code.name == "ERROR"
    assert dict(server.attributes or {})["error.type"] == "invalid_request"
    assert "mauve" not in server.to_json()


@pytest.mark.parametrize(("more", "is_sent"), [("", False), ("[telemetry]\npropagate = true\n", True)])
def test_the_clients_trace_context_reaches_a_provider_only_if_that_is_set(more: str, is_sent: bool) -> None:
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with running(store="none", more=more + '[models."*"]\ntry = ["same"]') as made:
        given = {"traceparent": TRACE, "anthropic-version": "2023-06-01"}
        assert httpx2.post(f"{made.url}/v1/messages", json=body, headers=given, timeout=60).status_code == 200
        (request,) = made.upstream.emulator.requests
        assert request.headers.get("traceparent") == (TRACE if is_sent else None)


def test_a_collector_gets_spans_and_metrics_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def encode(spans: Any) -> Any:
        encoded.append(len(spans))
        return encode_light_spans(spans)

    monkeypatch.setattr(light_telemetry, "encode_light_spans", encode)
    with collector() as (address, got):
        with running(store="none", more=f'[telemetry]\nendpoint = "{address}"\n') as made:
            assert ask(made.url).status_code == 200
            assert ask(made.url, stream=True).status_code == 200
        # The end of the gateway sends what has not been sent.
        resources = [each for message in got["/v1/traces"] for each in message.resource_spans]
        names = {each.key: each.value.string_value for each in resources[0].resource.attributes}
        assert names["service.name"] == "segue-gateway"
        spans = [(span.name, span.kind) for each in resources for scope in each.scope_spans for span in scope.spans]
        assert sum(encoded) == 4
        assert sorted(spans) == [("chat claude-opus-4-8", 3)] * 2 + [("chat m-anthropic", 2)] * 2
        counts = {
            metric.name: sum(point.count for point in metric.histogram.data_points)
            for resource in got["/v1/metrics"][-1].resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        assert counts == {
            "gen_ai.client.operation.duration": 2,
            "gen_ai.client.operation.time_to_first_chunk": 1,
            "gen_ai.client.token.usage": 4,
            "gen_ai.server.request.duration": 2,
            "gen_ai.server.time_to_first_token": 1,
        }


def test_a_collector_that_is_away_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_EXPORT_SECONDS", 0.1)
    with running(store="none", more='[telemetry]\nendpoint = "http://127.0.0.1:9"\n') as made:
        assert ask(made.url).status_code == 200


def test_an_endpoint_that_is_no_address_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"telemetry\.endpoint"):
        load_config('[telemetry]\nendpoint = "collector:4318"')


def test_the_log_has_one_json_object_for_each_request_without_content() -> None:
    memory, written = Memory(), io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    REQUESTS.addHandler(handler)
    REQUESTS.setLevel(logging.INFO)
    try:
        with emulate() as upstream, serve(memory, upstream.url) as url:
            reply = ask(url, traceparent=TRACE)
    finally:
        REQUESTS.removeHandler(handler)
        REQUESTS.setLevel(logging.NOTSET)
    (line,) = map(json.loads, written.getvalue().splitlines())
    assert line["row"]["id"] == reply.headers["x-segue-request-id"]
    assert line["row"]["usage"]["output"] > 0
    assert line["trace_id"] == TRACE.split("-")[1]
    assert line["level"] == "info"
    assert "mauve" not in written.getvalue()
