"""Spans and metrics of the client, read back with OpenTelemetry's own SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2
import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes, server_attributes
from opentelemetry.trace import StatusCode

from client.both_clients import AT_ONCE, ONCE
from gateway.collecting import Memory
from segue import AsyncClient, Client, Context, MissingExtra, Model, Options, RequestFailed, Telemetry, UserMessage
from segue.testing.emulator import Emulator

CLAUDE = Model("claude-opus-4-8", "anthropic", "anthropic-messages")
GPT = Model("gpt-5.4", "openai", "openai-responses")
SECRET = "the colour is mauve"
ASKED = Context(system_prompt="Be brief about mauve.", messages=(UserMessage.of(SECRET),))
STANDARD = {
    *(value for name, value in vars(names).items() if name.startswith("GEN_AI_") and isinstance(value, str)),
    error_attributes.ERROR_TYPE,
    http_attributes.HTTP_RESPONSE_STATUS_CODE,
    server_attributes.SERVER_ADDRESS,
    server_attributes.SERVER_PORT,
}


def settings(memory: Memory, *steps: Any, seen: list[httpx2.Request] | None = None) -> Any:
    emulator = Emulator(*steps)

    def provider(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        reply = emulator.respond(request.method, request.url.path, dict(request.headers), request.read())
        return httpx2.Response(reply.status, headers=dict(reply.headers), content=reply.body)

    return {
        "api_key": {"anthropic": "your-key", "openai": "your-key"},
        "transport": httpx2.MockTransport(provider),
        "telemetry": memory.telemetry,
        "retry": AT_ONCE,
    }


def ask(memory: Memory, *steps: Any, kind: str = "complete", **given: Any) -> Any:
    made = settings(memory, *steps)
    given.setdefault("model", CLAUDE)
    if kind == "async":

        async def run() -> Any:
            async with AsyncClient(**made) as client, client.stream(ASKED, **given) as reply:
                return await reply.result()

        return asyncio.run(run())
    with Client(**made) as client:
        return client.complete(ASKED, **given) if kind == "complete" else client.stream(ASKED, **given).result()


@pytest.mark.parametrize("kind", ["complete", "stream", "async"])
def test_a_request_is_one_span_with_the_names_of_the_conventions(kind: str) -> None:
    memory = Memory()
    options = Options(max_tokens=64, temperature=0.5, stop=("END",))
    reply = ask(memory, {"text": "Hello."}, kind=kind, options=options)
    (span,) = memory.spans()
    found = dict(span.attributes or {})
    assert span.name == "chat claude-opus-4-8"
    assert span.kind.name == "CLIENT"
    assert {name for name in found if not name.startswith("segue.")} <= STANDARD
    assert found[names.GEN_AI_OPERATION_NAME] == names.GenAiOperationNameValues.CHAT.value
    assert found[names.GEN_AI_PROVIDER_NAME] == names.GenAiProviderNameValues.ANTHROPIC.value
    assert found[names.GEN_AI_REQUEST_MODEL] == "claude-opus-4-8"
    assert found[names.GEN_AI_REQUEST_MAX_TOKENS] == 64
    assert found[names.GEN_AI_REQUEST_STOP_SEQUENCES] == ("END",)
    assert found[names.GEN_AI_RESPONSE_ID] == reply.response_id
    assert found[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("end_turn",)
    usage = reply.usage
    assert found[names.GEN_AI_USAGE_INPUT_TOKENS] == usage.input + usage.cache_read + usage.cache_write > 0
    assert found[names.GEN_AI_USAGE_OUTPUT_TOKENS] == usage.output > 0
    assert found[server_attributes.SERVER_ADDRESS] == "api.anthropic.com"
    assert (names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK in found) == (kind != "complete")
    assert span.status.status_code == StatusCode.UNSET
    assert "mauve" not in span.to_json()


def test_metrics_have_the_names_units_and_sums_of_the_conventions() -> None:
    memory = Memory()
    reply = ask(memory, {"text": "Hello."}, kind="stream")
    (duration,) = memory.points(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION)
    assert duration.count == 1
    assert memory.units[gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION] == "s"
    (first,) = memory.points(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK)
    assert first.sum <= duration.sum
    tokens = {
        point.attributes[names.GEN_AI_TOKEN_TYPE]: point.sum
        for point in memory.points(gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE)
    }
    usage = reply.usage
    assert tokens == {"input": usage.input + usage.cache_read + usage.cache_write, "output": usage.output}
    assert memory.units[gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE] == "{token}"


def test_retries_and_fallbacks_are_spans_beside_each_other_in_the_callers_trace() -> None:
    memory = Memory()
    steps = [{"status": 529}, {"status": 529, "message": "full"}, {"status": 529}, {"text": "Hello."}]
    made = settings(memory, *steps)
    with memory.tracers.get_tracer("app").start_as_current_span("mine") as mine, Client(**made) as client:
        client.complete(ASKED, CLAUDE, fallback_models=[GPT])
    calls = memory.spans("CLIENT")
    found = [dict(span.attributes or {}) for span in calls]
    assert [each["gen_ai.provider.name"] for each in found] == ["anthropic"] * (len(calls) - 1) + ["openai"]
    assert [each.get("error.type") for each in found] == ["overloaded"] * (len(calls) - 1) + [None]
    assert [each["segue.attempt.reason"] for each in found][-1] == "fallback"
    assert found[0]["http.response.status_code"] == 529
    assert {span.parent and span.parent.span_id for span in calls} == {mine.get_span_context().span_id}
    assert "full" not in "".join(span.to_json() for span in calls)  # the text of a provider may quote the prompt


def test_a_reply_that_is_closed_early_is_cancelled() -> None:
    memory = Memory()
    made, emulator = settings(memory), Emulator({"text": "Hello."})

    def provider(request: httpx2.Request) -> httpx2.Response:
        reply = emulator.respond(request.method, request.url.path, dict(request.headers), request.read())
        pieces = (part + b"\n\n" for part in reply.body.split(b"\n\n"))
        return httpx2.Response(reply.status, headers=dict(reply.headers), content=pieces)

    made["transport"] = httpx2.MockTransport(provider)
    with Client(**made) as client, client.stream(ASKED, CLAUDE) as reply:
        next(reply)
    (span,) = memory.spans()
    assert dict(span.attributes or {})["error.type"] == "cancelled"


def test_a_request_that_is_not_sent_has_no_span() -> None:
    memory = Memory()
    made = {**settings(memory), "api_key": None, "environment": {}, "retry": ONCE}
    with Client(**made) as client, pytest.raises(RequestFailed):
        client.complete(ASKED, CLAUDE)
    assert memory.spans() == []


def test_content_is_written_only_if_it_is_asked_for() -> None:
    memory = Memory(content=True)
    ask(memory, {"text": "A purple."})
    found: Any = dict(memory.spans()[0].attributes or {})
    assert json.loads(found[names.GEN_AI_INPUT_MESSAGES])[0]["parts"] == [{"type": "text", "content": SECRET}]
    assert json.loads(found[names.GEN_AI_SYSTEM_INSTRUCTIONS]) == [{"type": "text", "content": "Be brief about mauve."}]
    assert json.loads(found[names.GEN_AI_OUTPUT_MESSAGES])[0]["parts"][0]["content"] == "A purple."


@pytest.mark.parametrize("propagate", [False, True])
def test_the_trace_context_is_sent_only_if_that_is_set(propagate: bool) -> None:
    memory, seen = Memory(propagate=propagate), list[httpx2.Request]()
    with Client(**settings(memory, {"text": "Hello."}, seen=seen)) as client:
        client.complete(ASKED, CLAUDE)
    context: Any = memory.spans()[0].context
    wanted = f"00-{context.trace_id:032x}-{context.span_id:016x}" if propagate else None
    sent = seen[0].headers.get("traceparent")
    assert (sent and sent.rpartition("-")[0]) == wanted


def test_providers_have_the_names_of_the_conventions() -> None:
    from segue.client.http.telemetry import _PROVIDERS, describe_target  # pyright: ignore[reportPrivateUsage]

    known = {each.value for each in names.GenAiProviderNameValues}
    assert set(_PROVIDERS.values()) <= known
    gemini = describe_target("google-genai", "google", "gemini-3.8-flash")
    assert gemini[names.GEN_AI_OPERATION_NAME] == names.GenAiOperationNameValues.GENERATE_CONTENT.value
    assert gemini[names.GEN_AI_PROVIDER_NAME] == names.GenAiProviderNameValues.GCP_GEMINI.value


def test_without_the_packages_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtra, match=r"segue-llm\[otel\]"):
        Telemetry()
