"""`/metrics`, read by the official client of Prometheus, and `/readyz`."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gateway.running import KEYS, Running, config_text, running
from segue.conversation.messages import Usage, UsageCost
from segue.errors import SettingsError
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.metrics import Metrics
from segue.gateway.records import ChangeRow, RequestRow
from segue.gateway.service import Gateway
from segue.gateway.store.service import StoreService
from segue.testing.emulator import Step, emulate, serve_in_thread

CLIENT_KEY, METRICS_KEY = "client-key-0123456789-0123456789", "metrics-key-0123456789-0123456789"


def ask(url: str, model: str = "m-anthropic", **headers: str) -> httpx2.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    return httpx2.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(text: str, name: str, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(value for (found, given), value in samples(text).items() if found == name and wanted <= given)


@pytest.fixture
def gateway() -> Any:
    with running(store="none") as made:
        yield made


def test_the_counters_agree_with_what_was_sent_and_billed(gateway: Running) -> None:
    upstream = gateway.upstream.emulator
    replies = [ask(gateway.url) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200] * 3
    upstream.script.add(Step(status=400, message="no"))
    assert ask(gateway.url).status_code == 400
    text = httpx2.get(f"{gateway.url}/metrics").text
    model = "anthropic/claude-opus-4-8"
    assert total(text, "segue_requests_total", outcome="done", model=model, protocol="openai-chat") == 3
    assert total(text, "segue_requests_total", outcome="error", status="400") == 1
    assert total(text, "segue_failed_attempts_total", model=model) == 1
    bills = [request.bill for request in upstream.requests if request.bill is not None]
    assert total(text, "segue_tokens_total", type="input") == sum(bill.input for bill in bills)
    assert total(text, "segue_tokens_total", type="output") == sum(bill.output for bill in bills)
    assert total(text, "segue_request_seconds_count") == 4
    assert total(text, "segue_request_seconds_bucket", le="+Inf") == 4
    assert total(text, "segue_requests_running") == 0
    assert "Hi" not in text


def test_the_metrics_need_their_own_key_where_clients_have_keys() -> None:
    more = '[listen]\nkeys = ["env:CLIENT"]\n'
    with emulate() as upstream:
        environment = {**KEYS, "CLIENT": CLIENT_KEY, "METRICS": METRICS_KEY, "XDG_STATE_HOME": "/tmp"}
        for setting, expected in (("", (403, 403)), ('metrics_key = "env:METRICS"\n', (401, 200))):
            config = load_config(config_text(upstream.url, store="none", more=more + setting))
            with serve_in_thread(create_app(gateway=Gateway(config, environment=environment))) as url:
                client, own = ({"authorization": f"Bearer {key}"} for key in (CLIENT_KEY, METRICS_KEY))
                found = [httpx2.get(f"{url}/metrics", headers=headers).status_code for headers in (client, own)]
                assert tuple(found) == expected
                assert httpx2.get(f"{url}/v1/models", headers=own).status_code == 401, "it is no key of a client"
                assert httpx2.get(f"{url}/metrics").status_code in (401, 403)
                assert httpx2.get(f"{url}/metrics", headers={**own, "host": "evil.example"}).status_code == 403


def test_a_short_key_for_the_metrics_is_refused() -> None:
    config = load_config('[listen]\nmetrics_key = "env:METRICS"\n')
    with pytest.raises(SettingsError, match=r"listen\.metrics_key has fewer"):
        Gateway(config, environment={"METRICS": "short"})


def row(model: str) -> RequestRow:
    return RequestRow(
        id="1",
        time=1,
        client="c",
        conversation="v",
        protocol="openai-chat",
        asked="a",
        model=model,
        stream=False,
        status=200,
        outcome="done",
        duration_ms=70,
    )


def test_what_a_key_cost_counts_every_attempt() -> None:
    def used(tokens: int, dollars: float) -> Usage:
        return Usage(input=tokens, output=1, cache_read=2, cache_write=3, cost=UsageCost(total=dollars))

    metrics = Metrics()
    metrics.add(replace(row("m"), key="alice", usage=used(10, 0.25)))
    metrics.add(replace(row("m"), key="alice", usage=used(10, 0.25), spent=used(30, 0.75)))
    metrics.add(replace(row("m"), usage=used(10, 0.25)))
    text = metrics.render({})
    assert total(text, "segue_key_tokens_total", key="alice") == 16 + 36
    assert total(text, "segue_key_cost_dollars_total", key="alice") == 1.0
    assert total(text, "segue_key_tokens_total") == 16 + 36


def test_what_was_read_counts_once_and_goes_on_with_what_comes_after() -> None:
    used = Usage(input=10, output=1, cache_read=2, cost=UsageCost(total=0.5))
    change = ChangeRow(code="text_blank", path=("messages", 0), loss="content")
    each = replace(row("m"), key="alice", usage=used, changes=(change,), saved=0.25, figures="estimated", drift=("x",))
    metrics, joined = Metrics(), Metrics()
    metrics.add(each)
    first = metrics.render({})
    assert metrics.render({}) == first
    assert total(first, "segue_first_byte_seconds_count") == 0
    assert "segue_first_byte_seconds_bucket" not in first, "nothing was measured"
    assert "segue_key_unpriced_total{" not in first
    metrics.add(replace(each, first_byte_ms=200, usage=replace(used, cost=None)))
    for _ in range(2):
        joined.add_dump(metrics.dump())
    for text, times in ((metrics.render({}), 1), (joined.render({}), 2)):
        assert total(text, "segue_requests_total", model="m", status="200") == 2 * times
        assert total(text, "segue_tokens_total", type="input") == 20 * times
        assert total(text, "segue_tokens_total", type="cache_write") == 0
        assert total(text, "segue_changes_total") == total(text, "segue_drift_total") == 2 * times
        assert total(text, "segue_cost_dollars_total") == 0.5 * times
        assert total(text, "segue_cache_saved_dollars_total") == 0.5 * times
        assert total(text, "segue_key_tokens_total", key="alice") == 26 * times
        assert total(text, "segue_key_estimated_dollars_total") == 0.5 * times
        assert total(text, "segue_key_unpriced_total") == times
        assert total(text, "segue_request_seconds_sum") == pytest.approx(0.14 * times)
        assert total(text, "segue_request_seconds_bucket", le="0.1") == 2 * times
        assert total(text, "segue_first_byte_seconds_count") == times


def test_names_that_clients_make_up_do_not_grow_the_page_without_end() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.add(row(f"anthropic/made-up-{number}"))
    text = metrics.render({})
    assert total(text, "segue_requests_total") == 1000
    assert total(text, "segue_requests_total", model="other") == 800
    assert len(text) < 500_000


def test_labels_with_any_characters_are_read_back() -> None:
    metrics = Metrics()
    name = 'a"b\\c\nd{e},f'
    metrics.add(row(name))
    assert total(metrics.render({}), "segue_requests_total", model=name) == 1


def test_a_gateway_is_ready_while_its_store_answers(tmp_path, monkeypatch) -> None:
    with running(store=f"sqlite:{tmp_path / 'a.db'}") as made:
        assert httpx2.get(f"{made.url}/readyz").json() == {"status": "ready"}
        monkeypatch.setattr(StoreService, "is_available", False)
        away = httpx2.get(f"{made.url}/readyz")
        assert (away.status_code, away.headers["retry-after"]) == (503, "2")
        assert httpx2.get(f"{made.url}/health").status_code == 200
