"""What replies cost is measured where a provider can tell it, and marked where it is estimated or unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from gateway.greedy_upstream import INPUT, Served, served
from gateway.test_keys import add, post
from gateway.test_reservations import TURN, row_of
from gateway.test_spending import spending_of
from segue import get_model
from segue.conversation.messages import Usage
from segue.gateway.key_lists import describe_key
from segue.gateway.keys import Budget, Rights
from segue.gateway.stream_usage import UsageFilter
from segue.models.price import find_cost, find_share
from segue.protocols.registry import PROTOCOLS

PRO = "deepseek/deepseek-v4-pro"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    more = f'[models."{PRO}"]\ntry = ["openrouter/{PRO}"]'
    with served(f"sqlite:{tmp_path / 'gateway.db'}", more) as found:
        yield found


def stream(gateway: Served, key: str, **more: Any) -> httpx2.Response:
    """Stream a reply whose bytes pass straight through."""
    body = {"model": PRO, "messages": TURN, "max_tokens": 500, "stream": True, **more}
    return post(gateway.url, body, key, "/v1/chat/completions")


# -- streams of Chat ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"stream_options": None}, {"stream_options": {"include_usage": False}}], ids=str
)
def test_a_straight_stream_is_measured_and_the_client_does_not_see_that(
    gateway: Served, options: dict[str, Any]
) -> None:
    key = add(gateway)
    answer = stream(gateway, key, **options)
    row = row_of(gateway, answer, key)
    assert row["straight"]
    assert row["figures"] == "measured"
    assert spending_of(gateway).ledger.spent["total"].tokens == INPUT + 500
    assert gateway.upstream.bodies[-1]["stream_options"]["include_usage"] is True
    assert "usage" not in answer.text
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert [bool(chunk["choices"]) for chunk in chunks] == [True, True]
    assert answer.text.endswith("data: [DONE]\n\n")


def test_a_client_that_asks_for_usage_gets_the_bytes_of_the_provider(gateway: Served) -> None:
    answer = stream(gateway, add(gateway), stream_options={"include_usage": True})
    last = json.loads(answer.text.splitlines()[-4][6:])
    assert last["usage"]["completion_tokens"] == 500


def test_an_sdk_reads_a_stream_without_the_extra_chunk(gateway: Served) -> None:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=add(gateway), max_retries=0) as client:
        chunks = list(client.chat.completions.create(model=PRO, messages=TURN, max_tokens=500, stream=True))  # type: ignore[arg-type]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


EVENTS = (
    b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"a \\",\\"usage\\":null b"}}],"usage":null}\n\n',
    b": a comment\n\n",
    b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\r\n\r\n',
    b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
    b'data: {"id":"1","choices":[],"obfuscation":"x"}\n\n',
    b"data: [DONE]\n\n",
)


def test_the_filter_gives_the_same_however_the_bytes_are_split() -> None:
    whole = b"".join(EVENTS)
    expected = b"".join(
        (EVENTS[0].replace(b'],"usage":null', b"]"), EVENTS[1], EVENTS[2].replace(b',"usage":null', b""), *EVENTS[4:])
    )
    for size in (1, 2, 3, 7, 50, len(whole)):
        made = UsageFilter()
        pieces = [made.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
        assert b"".join([*pieces, made.feed(b"", is_last=True)]) == expected


def test_a_protocol_whose_streams_have_usage_only_on_request_says_how_to_ask() -> None:
    assert {name for name, record in PROTOCOLS.items() if record.usage_option is not None} == {"openai-chat"}


# -- measured or estimated ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_reply_without_usage_is_estimated_in_its_row_and_in_the_list_of_keys(
    gateway: Served, is_streamed: bool
) -> None:
    gateway.upstream.has_usage = False
    key = add(gateway)
    answer = stream(gateway, key, stream=is_streamed)
    assert row_of(gateway, answer, key)["figures"] == "estimated"
    row = describe_key(spending_of(gateway), 0)
    assert row.spent["total"].estimated_tokens == row.spent["total"].tokens > 0
    assert "estimated" in row.line()


# -- tiers, speed and region -------------------------------------------------------------------------------------------

OPUS, GPT = "anthropic/claude-opus-4-8", "openai/gpt-5.4"
MODES = (
    (GPT, {"service_tier": "default"}, 1.0),
    (GPT, {"service_tier": "flex"}, 0.5),
    (GPT, {"service_tier": "priority"}, 2.0),
    (GPT, {"service_tier": "scale"}, None),
    ("openai/gpt-5.5", {"service_tier": "priority"}, 2.5),
    ("openai/gpt-4.1-nano", {"service_tier": "priority"}, None),
    (OPUS, {"service_tier": "standard", "speed": "standard", "inference_geo": "global"}, 1.0),
    (OPUS, {"service_tier": "batch"}, 0.5),
    (OPUS, {"service_tier": "priority"}, None),
    (OPUS, {"speed": "fast"}, 2.0),
    (OPUS, {"speed": "fast", "inference_geo": "us"}, 2.2),
    ("anthropic/claude-opus-4-6", {"speed": "fast"}, 6.0),
    ("anthropic/claude-sonnet-4-6", {"speed": "fast"}, None),
    (OPUS, {"inference_geo": "eu"}, None),
    ("google/gemini-3.1-pro-preview", {"serviceTier": "FLEX"}, 0.5),
    ("google/gemini-3.1-pro-preview", {"serviceTier": "priority"}, None),
    ("openrouter/deepseek/deepseek-v4-pro", {"service_tier": "flex"}, None),
)


@pytest.mark.parametrize(("model", "fields", "share"), MODES, ids=str)
def test_the_way_a_request_is_served_is_priced_or_unknown(
    model: str, fields: dict[str, str], share: float | None
) -> None:
    found = find_share(get_model(model), fields)
    assert found is None if share is None else found == pytest.approx(share)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_the_tier_of_a_reply_is_in_its_cost(gateway: Served, is_streamed: bool) -> None:
    key = add(gateway)
    opus = get_model(OPUS)
    plain = find_cost(opus.cost, Usage(input=INPUT, output=500))
    assert plain is not None
    for usage, share in (({}, 1.0), ({"speed": "fast"}, 2.0), ({"service_tier": "priority"}, None)):
        gateway.upstream.usage = usage
        body = {"model": "m-anthropic", "messages": TURN, "max_tokens": 500, "stream": is_streamed}
        row = row_of(gateway, post(gateway.url, body, key), key)
        assert row["price"] == ("unknown" if share is None else "known")
        if share is not None:
            assert row["usage"]["cost"]["total"] == pytest.approx(plain.total * share)
    assert spending_of(gateway).ledger.unpriced == 1


@pytest.mark.parametrize("kind", ["advisor_message", "fallback_message"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_round_of_another_model_has_no_known_price(gateway: Served, kind: str, is_streamed: bool) -> None:
    counts = {"input_tokens": 9, "output_tokens": 9, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    rounds = [{"type": "message", **counts}, {"type": kind, "model": "claude-fable-5-1", **counts}]
    gateway.upstream.usage = {"iterations": rounds}
    key = add(gateway)
    body = {"model": "m-anthropic", "messages": TURN, "max_tokens": 500, "stream": is_streamed}
    assert row_of(gateway, post(gateway.url, body, key), key)["price"] == "unknown"


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_an_unknown_tier_of_a_chat_reply_has_no_price(gateway: Served, is_streamed: bool) -> None:
    gateway.upstream.reply = {"service_tier": "priority"}
    key = add(gateway)
    answer = stream(gateway, key, stream=is_streamed)
    assert row_of(gateway, answer, key)["price"] == "unknown"


def test_a_key_with_a_budget_in_dollars_may_not_ask_for_an_unknown_price(gateway: Served) -> None:
    key = add(gateway, rights=Rights(budgets={"total": Budget(dollars=100)}))
    for more, status in (({}, 200), ({"speed": "fast"}, 200), ({"inference_geo": "eu"}, 403)):
        body = {"model": "m-anthropic", "messages": TURN, "max_tokens": 500, **more}
        answer = post(gateway.url, body, key)
        assert answer.status_code == status, answer.text
    assert "is not known, and this key has a budget in dollars" in answer.text
    assert len(gateway.upstream.bodies) == 2


def test_the_console_and_the_counters_say_what_is_estimated(gateway: Served) -> None:
    key = add(gateway)
    stream(gateway, key)
    gateway.upstream.has_usage = False
    stream(gateway, key, messages=[{"role": "user", "content": "Another conversation"}])
    spending_of(gateway)
    headers = {"x-api-key": key}
    sums = httpx2.get(f"{gateway.url}/segue/conversations", headers=headers, timeout=30).json()["caching"].values()
    assert sorted(each["estimated"] == each["cost"] > 0 for each in sums) == [False, True]
    steps = httpx2.get(f"{gateway.url}/segue/series", headers=headers, timeout=30).json()["steps"]
    assert 0 < sum(step["estimatedCost"] for step in steps) < sum(step["cost"] for step in steps)
    assert 'segue_key_estimated_dollars_total{key="alice"}' in gateway.gateway.metrics.render({})
