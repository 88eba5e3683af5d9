"""Batch files of providers: written, converted into each other, and their results read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from corpus.building import chat, segue, write
from segue import Context, Model, UserMessage, check, decode_request, decode_response, load, prepare
from segue.calls.batch_forms import batch_forms, find_form, read_request_line, read_result_line
from segue.corpus.batch_files.joining import Joiner, read_sent
from segue.corpus.batch_files.writing import BatchFiles, line_of
from segue.corpus.batches import Batch, RowDetails
from segue.corpus.files import LOCAL
from segue.corpus.summary import Summary
from segue.errors import SegueError
from segue.models.catalogue import get_model
from segue.protocols.detection import detect_reply
from segue.protocols.families.batches import results_of_document

TARGETS = {
    "openai": get_model("openai/gpt-5.4"),
    "openai chat": Model("gpt-5.4", "openai", "openai-chat"),
    "azure": Model("my-deployment", "azure", "openai-responses"),
    "azure chat": Model("my-deployment", "azure", "openai-chat"),
    "anthropic": get_model("anthropic/claude-sonnet-4-5"),
    "gemini": get_model("google/gemini-3.5-flash"),
    "vertex": get_model("google-vertex/gemini-2.5-flash"),
    "vertex claude": Model("claude-sonnet-4-5", "google-vertex", "anthropic-messages"),
    "bedrock": get_model("amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "bedrock claude": Model("anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "anthropic-messages"),
    "mistral": get_model("mistral/mistral-large-4"),
    "xai": get_model("xai/grok-4.3"),
    "xai chat": Model("grok-4.3", "xai", "openai-chat"),
    "groq": Model("llama", "groq", "openai-chat"),
}
CONTEXT = Context().add(UserMessage.of("What is the tallest mountain?"))


def plain(number: int) -> dict[str, Any]:
    """Give a chat without tools, which every provider takes in a batch."""
    return {
        "model": "gpt-5.4",
        "messages": [
            {"role": "user", "content": f"Question {number}: Größe \u2028?"},
            {"role": "assistant", "content": f"Answer {number}."},
            {"role": "user", "content": "And now?"},
        ],
    }


def request_lines(target: Model, count: int = 3) -> list[dict[str, Any]]:
    form = find_form(target)
    return [json.loads(line_of(form, f"id-{number}", prepare(CONTEXT, target))) for number in range(count)]


def target_of(model: Model) -> list[str]:
    return ["--to", model.full_name(), "--to-protocol", model.protocol]


# -- requests ----------------------------------------------------------------------------------------------------------

SHAPES = {
    "openai": {"custom_id", "method", "url", "body"},
    "openai chat": {"custom_id", "method", "url", "body"},
    "azure": {"custom_id", "method", "url", "body"},
    "anthropic": {"custom_id", "params"},
    "gemini": {"key", "request"},
    "vertex": {"request"},
    "vertex claude": {"custom_id", "request"},
    "bedrock": {"recordId", "modelInput"},
    "bedrock claude": {"recordId", "modelInput"},
    "mistral": {"custom_id", "body"},
    "xai": {"batch_request_id", "batch_request"},
}


@pytest.mark.parametrize("name", SHAPES)
def test_lines_have_the_keys_of_the_provider(name):
    for line in request_lines(TARGETS[name]):
        assert set(line) == SHAPES[name]


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai", "/v1/responses"),
        ("openai chat", "/v1/chat/completions"),
        ("azure", "/responses"),
        ("azure chat", "/chat/completions"),
        ("groq", "/v1/chat/completions"),
    ],
)
def test_the_url_is_that_of_the_endpoint(name, url):
    assert {line["url"] for line in request_lines(TARGETS[name])} == {url}


def test_bodies_have_what_the_place_of_the_model_requires():
    assert request_lines(TARGETS["openai"])[0]["body"]["model"] == "gpt-5.4"
    assert "model" not in request_lines(TARGETS["gemini"])[0]["request"]
    assert request_lines(TARGETS["vertex"])[1]["request"]["labels"] == {"segue_id": "id-1"}
    claude = request_lines(TARGETS["vertex claude"])[0]["request"]
    assert (claude["anthropic_version"], "model" in claude) == ("vertex-2023-10-16", False)
    claude = request_lines(TARGETS["bedrock claude"])[0]["modelInput"]
    assert (claude["anthropic_version"], "model" in claude) == ("bedrock-2023-05-31", False)
    assert list(request_lines(TARGETS["xai"])[0]["batch_request"]) == ["responses"]
    assert list(request_lines(TARGETS["xai chat"])[0]["batch_request"]) == ["chat_get_completion"]


@pytest.mark.parametrize("name", TARGETS)
def test_every_line_is_read_back_with_its_id_and_protocol(name):
    for number, line in enumerate(request_lines(TARGETS[name])):
        read = read_request_line(line)
        assert read is not None
        assert (read.id, read.protocol) == (f"id-{number}", TARGETS[name].protocol)
        assert (
            decode_request(read.body, protocol=read.protocol).context.messages[0].content == CONTEXT.messages[0].content
        )


@pytest.mark.parametrize("source", TARGETS)
def test_every_batch_file_becomes_that_of_every_other_provider(source, tmp_path):
    given = write(tmp_path / "in.jsonl", [json.dumps(line).encode() for line in request_lines(TARGETS[source])])
    for target, model in TARGETS.items():
        out = tmp_path / target
        made = segue("convert", given, *target_of(model), "--as", "batch", "--report", "none", "-o", out)
        assert (made.status, made.err) == (0, ""), target
        lines = [json.loads(line) for line in (out / "batch.jsonl").read_bytes().splitlines()]
        for number, line in enumerate(lines):
            read = read_request_line(line)
            assert read is not None, target
            assert (read.id, read.protocol) == (f"id-{number}", model.protocol)
            assert check(read.body, protocol=model.protocol, model=model) == [], target
        assert len(lines) == 3, target


def test_a_corpus_becomes_a_batch_with_ids_of_its_rows(tmp_path):
    first = json.dumps({"id": "row/1", **plain(1)}).encode()
    start = len(first) + 1
    write(tmp_path / "in" / "a.jsonl", [first, json.dumps(plain(2)).encode()])
    write(tmp_path / "in" / "b.jsonl", [json.dumps({**plain(3), "stream": True}).encode(), b"{bad"])
    made = segue(
        "convert", tmp_path / "in", "--to", "anthropic/claude-sonnet-4-5", "--as", "batch", "-o", f"{tmp_path}/out/"
    )
    assert made.status == 1
    lines = [json.loads(line) for line in (tmp_path / "out" / "batch.jsonl").read_bytes().splitlines()]
    table = json.loads((tmp_path / "out" / "batch.jsonl.ids.json").read_bytes())
    assert [table["requests"][line["custom_id"]]["id"] for line in lines] == ["row/1", f"a.jsonl@{start}", "b.jsonl@0"]
    assert all("stream" not in line["params"] for line in lines)
    assert json.loads((tmp_path / "out" / "batch.jsonl.bad.jsonl").read_bytes())["raw"] == "{bad"
    assert "3 conversations" in segue("report", tmp_path / "out").out


IDS = ["simple", "task/0", "x" * 65, "Größe 設定", "a b", "-", "", "UPPER_case-9", "x" * 600, "\n"]


@pytest.mark.parametrize(
    "form", [pytest.param(form, id=f"{form.name}, {protocol}") for protocol, form in batch_forms()]
)
def test_ids_are_legal_distinct_and_the_same_again(form):
    import re

    made = [form.legal_id(given) for given in IDS]
    assert len(set(made)) == len(IDS)
    assert made == [form.legal_id(given) for given in IDS]
    for given, name in zip(IDS, made, strict=True):
        assert 0 < len(name) <= form.longest
        if form.alphabet:
            assert re.fullmatch(f"[{form.alphabet}]+", name)
        assert form.legal_id(name) == name
        if given == "simple":
            assert name == given


def rows(count: int, size: int = 100) -> Batch:
    line = b"x" * (size - 1) + b"\n"
    details = [RowDetails(f"id-{number}", number + 1, "[]", 1, 1, size, f"given-{number}") for number in range(count)]
    return Batch(line * count, Summary(), details, [], [], stopped=False, shard=0, last=True)


@pytest.mark.parametrize(
    ("name", "count", "files"),
    [("anthropic", 100_001, 2), ("openai", 100_001, 3), ("mistral", 100_000, 1), ("xai", 5, 1)],
)
def test_a_file_ends_where_the_provider_has_its_limit(name, count, files, tmp_path):
    out = BatchFiles(LOCAL, str(tmp_path), "batch", TARGETS[name])
    assert out.write(rows(count), "a.jsonl") == []
    out.close()
    assert len(out.names) == files
    found = [(tmp_path / each).read_bytes().count(b"\n") for each in out.names]
    assert sum(found) == count
    assert max(found) <= find_form(TARGETS[name]).requests
    tables = [json.loads((tmp_path / f"{each}.ids.json").read_bytes())["requests"] for each in out.names]
    assert [len(table) for table in tables] == found


def test_a_file_ends_before_it_is_too_large(tmp_path):
    out = BatchFiles(LOCAL, str(tmp_path), "batch", TARGETS["anthropic"])
    for part in range(3):
        batch = rows(2, 60_000_000)
        batch = batch._replace(details=[row._replace(id=f"{part}-{row.id}") for row in batch.details])
        assert out.write(batch, "a.jsonl") == []
    out.close()
    sizes = [(tmp_path / name).stat().st_size for name in out.names]
    assert sizes == [240_000_000, 120_000_000]
    for name in out.names:
        (tmp_path / name).unlink()


def test_a_request_that_no_file_can_take_is_bad(tmp_path, monkeypatch):
    small = find_form(TARGETS["anthropic"])._replace(size=50)
    monkeypatch.setattr("segue.corpus.batch_files.writing.find_form", lambda model: small)
    out = BatchFiles(LOCAL, str(tmp_path), "batch", TARGETS["anthropic"])
    (bad,) = out.write(rows(1, 100), "a.jsonl")
    assert "larger than a batch file" in bad.reason


def test_ids_that_occur_twice_are_made_different(tmp_path):
    given = [json.dumps({"id": "same", **plain(number)}).encode() for number in range(3)]
    write(tmp_path / "in.jsonl", given)
    segue("convert", tmp_path / "in.jsonl", "--to", "openai/gpt-5.4", "--as", "batch", "-o", tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert len({line["custom_id"] for line in lines}) == 3
    table = json.loads((tmp_path / "out.jsonl.ids.json").read_bytes())["requests"]
    assert {sent["id"] for sent in table.values()} == {"same"}


def test_tools_are_refused_in_a_converse_batch_and_not_written(tmp_path):
    write(tmp_path / "in.jsonl", [json.dumps(chat(1)).encode(), json.dumps(plain(2)).encode()])
    model = TARGETS["bedrock"]
    made = segue(
        "convert", tmp_path / "in.jsonl", "--to", model.full_name(), "--as", "batch", "-o", tmp_path / "out.jsonl"
    )
    assert made.status == 1
    assert "Bedrock refuses tools in a batch of Converse requests" in made.err
    assert (tmp_path / "out.jsonl").read_bytes().count(b"\n") == 1
    own = TARGETS["bedrock claude"]
    made = segue("convert", tmp_path / "in.jsonl", *target_of(own), "--as", "batch", "-o", tmp_path / "own.jsonl")
    assert made.status == 0
    assert "tools" in json.loads((tmp_path / "own.jsonl").read_bytes().splitlines()[0])["modelInput"]


def test_a_provider_without_batches_is_one_sentence(tmp_path):
    write(tmp_path / "in.jsonl", [json.dumps(plain(1)).encode()] * 2)
    made = segue(
        "convert", tmp_path / "in.jsonl", "--to-protocol", "ollama-chat", "--as", "batch", "-o", tmp_path / "o/"
    )
    assert made.status == 2
    assert "no batch file is known" in made.err


# -- results -----------------------------------------------------------------------------------------------------------

USAGE = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Everest."}],
    "stop_reason": "end_turn",
    "usage": {**USAGE, "service_tier": "batch"},
}
CHAT_REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Everest."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000, "total_tokens": 2_000_000},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5.4",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Everest.", "annotations": []}],
        }
    ],
    "usage": {**USAGE, "total_tokens": 2_000_000},
    "service_tier": "default",
}
GENERATED = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Everest."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1_000_000, "candidatesTokenCount": 1_000_000, "totalTokenCount": 2_000_000},
    "modelVersion": "gemini-3.5-flash",
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Everest."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1_000_000, "outputTokens": 1_000_000, "totalTokens": 2_000_000},
}
ERROR = {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}


def http(name: str, body: object, status: int = 200) -> dict[str, object]:
    response = {"status_code": status, "request_id": "req", "body": body}
    return {"id": "batch_req_1", "custom_id": name, "response": response, "error": None}


RESULTS: dict[str, tuple[str, Any, Any]] = {
    "openai": ("openai", lambda n: http(n, RESPONSE), lambda n: http(n, {"error": ERROR}, 429)),
    "openai chat": ("openai chat", lambda n: http(n, CHAT_REPLY), lambda n: http(n, {"error": ERROR}, 429)),
    "azure": ("azure", lambda n: http(n, RESPONSE), lambda n: {"custom_id": n, "response": None, "error": ERROR}),
    "anthropic": (
        "anthropic",
        lambda n: {"custom_id": n, "result": {"type": "succeeded", "message": MESSAGE}},
        lambda n: {
            "custom_id": n,
            "result": {
                "type": "errored",
                "error": {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}, "request_id": "r"},
            },
        },
    ),
    "gemini file": (
        "gemini",
        lambda n: {"key": n, "response": GENERATED},
        lambda n: {"key": n, "error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}},
    ),
    "gemini inline": (
        "gemini",
        lambda n: {"response": GENERATED, "metadata": {"key": n}},
        lambda n: {"error": {"code": 8, "message": "Resource has been exhausted"}, "metadata": {"key": n}},
    ),
    "vertex": (
        "vertex",
        lambda n: {"request": {"contents": [], "labels": {"segue_id": n}}, "response": GENERATED, "status": ""},
        lambda n: {
            "request": {"contents": [], "labels": {"segue_id": n}},
            "status": "429 Too many requests",
            "response": {},
        },
    ),
    "vertex claude": (
        "vertex claude",
        lambda n: {"custom_id": n, "request": {}, "response": MESSAGE, "status": ""},
        lambda n: {"custom_id": n, "request": {}, "response": {}, "status": "429 rate limit"},
    ),
    "bedrock": (
        "bedrock",
        lambda n: {"recordId": n, "modelInput": {}, "modelOutput": CONVERSE},
        lambda n: {"recordId": n, "modelInput": {}, "error": {"errorCode": 429, "errorMessage": "Too many requests"}},
    ),
    "bedrock claude": (
        "bedrock claude",
        lambda n: {"recordId": n, "modelInput": {}, "modelOutput": MESSAGE},
        lambda n: {"recordId": n, "modelInput": {}, "error": {"errorCode": 400, "errorMessage": "bad"}},
    ),
    "mistral": (
        "mistral",
        lambda n: http(n, CHAT_REPLY),
        lambda n: {**http(n, None), "response": None, "error": ERROR},
    ),
    "xai": (
        "xai",
        lambda n: {"batch_request_id": n, "batch_result": {"response": {"chat_get_completion": CHAT_REPLY}}},
        lambda n: {"batch_request_id": n, "batch_result": {"error": {"code": 429, "message": "rate limit"}}},
    ),
}


def run_results(tmp_path: Path, target: Model, lines: Sequence[object], *options: object, count: int = 3) -> Any:
    sent = write(tmp_path / "sent.jsonl", [json.dumps(line).encode() for line in request_lines(target, count)])
    write(tmp_path / "results.jsonl", [json.dumps(line).encode() for line in lines])
    return segue("results", tmp_path / "results.jsonl", "--for", sent, "-o", tmp_path / "out.jsonl", *options)


def conversations(tmp_path: Path) -> list[Context]:
    return [load(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("name", RESULTS)
def test_answers_go_back_into_their_conversations_and_failures_are_classified(name, tmp_path):
    target, succeeded, failed = RESULTS[name]
    lines = [failed("id-2"), succeeded("id-1"), succeeded("id-0")]  # in any order
    made = run_results(tmp_path, TARGETS[target], lines)
    assert made.status == 1, made.err
    assert "2 answered, 1 errored" in made.err
    found = conversations(tmp_path)
    ids = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert ids == ["id-0", "id-1"]
    for context in found:
        assert [message.role for message in context.messages] == ["user", "assistant"]
        answer: Any = context.messages[1]
        assert answer.text() == "Everest."
        assert answer.usage.output == 1_000_000
    (failure,) = (json.loads(line) for line in (tmp_path / "out.jsonl.failures.jsonl").read_bytes().splitlines())
    assert (failure["id"], failure["outcome"]) == ("id-2", "errored")
    assert failure["kind"] in {"rate_limit", "quota", "invalid_request", "overloaded"}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_every_provider_can_be_written_as_those_of_openai(name, tmp_path):
    target, succeeded, failed = RESULTS[name]
    lines = [failed("id-2"), succeeded("id-1"), succeeded("id-0")]
    made = run_results(tmp_path, TARGETS[target], lines, "--format", "openai")
    assert made.status == 1, made.err
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [line["custom_id"] for line in written] == ["id-0", "id-1"]
    for line in written:
        assert (line["response"]["status_code"], line["error"]) == (200, None)
        assert list(line["response"]) == ["status_code", "request_id", "body"]
        result = read_result_line(line)
        assert result is not None
        body: Any = result.body
        assert decode_response(body, protocol=detect_reply(body, "openai-chat")).text() == "Everest."
    (line,) = (json.loads(line) for line in (tmp_path / "out.jsonl.failures.jsonl").read_bytes().splitlines())
    failure = read_result_line(line)
    assert failure is not None
    assert (failure.id, failure.outcome) == ("id-2", "errored")
    assert line["response"]["status_code"] >= 400


PRICED = [
    name for name in RESULTS if name not in ("vertex claude", "bedrock claude", "azure", "openai chat", "bedrock")
]


@pytest.mark.parametrize("name", PRICED)
def test_answers_of_a_batch_cost_what_a_batch_costs(name, tmp_path):
    target, succeeded, _ = RESULTS[name]
    model = TARGETS[target]
    run_results(tmp_path, model, [succeeded("id-0")], "--model", model.full_name(), count=1)
    answer: Any = conversations(tmp_path)[0].messages[1]
    whole = model.cost.input + model.cost.output
    tiers = [tier.input + tier.output for tier in model.cost.tiers if tier.input_above < 1_000_000]
    listed = max([whole, *tiers])
    share = 1.0 if model.provider == "xai" else 0.5
    assert answer.usage.cost.total == pytest.approx(listed * share)


def test_an_anthropic_reply_that_names_its_batch_is_priced_at_half_wherever_it_is_read():
    model = TARGETS["anthropic"]
    listed = {**MESSAGE, "usage": {**USAGE, "service_tier": "standard"}}
    whole, half = (decode_response(body, model=model).usage for body in (listed, MESSAGE))
    assert whole is not None
    assert half is not None
    assert whole.cost is not None
    assert half.cost is not None
    assert half.cost.total == pytest.approx(whole.cost.total / 2)
    assert half.cost.output == pytest.approx(whole.cost.output / 2)


OUTCOMES = {
    "expired at Anthropic": ({"custom_id": "id-0", "result": {"type": "expired"}}, "expired"),
    "canceled at Anthropic": ({"custom_id": "id-0", "result": {"type": "canceled"}}, "canceled"),
    "expired at OpenAI": (
        {"custom_id": "id-0", "response": None, "error": {"code": "batch_expired", "message": "This request expired."}},
        "expired",
    ),
    "no result": ({"custom_id": "id-7", "result": {"type": "canceled"}}, "missing"),
    "an empty reply": (http("id-0", None), "errored"),
}


@pytest.mark.parametrize(("line", "outcome"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_every_other_outcome_is_named(line, outcome, tmp_path):
    made = run_results(tmp_path, TARGETS["anthropic"], [line], count=1)
    assert made.status == 1
    (failure,) = (json.loads(line) for line in (tmp_path / "out.jsonl.failures.jsonl").read_bytes().splitlines())
    assert (failure["id"], failure["outcome"]) == ("id-0", outcome)
    if outcome == "missing":
        assert "belongs to no request" in made.err


def test_a_file_of_errors_and_one_of_answers_are_read_together(tmp_path):
    sent = write(tmp_path / "sent.jsonl", [json.dumps(line).encode() for line in request_lines(TARGETS["openai"], 2)])
    good = write(tmp_path / "good.jsonl", [json.dumps(http("id-1", RESPONSE)).encode()])
    bad = write(tmp_path / "bad.jsonl", [json.dumps(http("id-0", {"error": ERROR}, 429)).encode()])
    made = segue("results", good, bad, "--for", sent, "-o", tmp_path / "out.jsonl")
    assert "1 answered, 1 errored" in made.err


REPLACED: list[Any] = [None, 5, "x", "", [], {}, True, [[]], {"a": {}}]


def variants(value: Any) -> Iterator[Any]:
    """Give a value with each of its parts left out, and replaced by values of every other type."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for key, inner in fields.items():
            yield {name: other for name, other in fields.items() if name != key}
            yield from ({**fields, key: other} for other in (*REPLACED, *variants(inner)))
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for index, inner in enumerate(items):
            yield from ([*items[:index], other, *items[index + 1 :]] for other in (*REPLACED, *variants(inner)))


@pytest.mark.parametrize("name", RESULTS)
def test_no_damaged_line_raises_another_error(name):
    target, succeeded, failed = RESULTS[name]
    model = TARGETS[target]
    (request,) = request_lines(model, 1)
    (sent,) = read_sent([(1, json.dumps(request).encode())])
    for line in (*variants(succeeded("id-0")), *variants(failed("id-0"))):
        result = read_result_line(line)
        for joiner in (Joiner(None, None), Joiner(model, None)) if result is not None else ():
            assert joiner.join(sent, result).failure_line().endswith(b"}\n")
    for line in variants(request):
        with suppress(SegueError):
            list(read_sent([(1, json.dumps(line).encode())]))


def test_the_answer_counts_where_an_id_has_two_results_whatever_their_order(tmp_path):
    failed, succeeded = http("id-0", {"error": ERROR}, 429), http("id-0", RESPONSE)
    for lines in ([failed, succeeded], [succeeded, failed], [succeeded, succeeded]):
        made = run_results(tmp_path, TARGETS["openai"], lines, count=1)
        assert made.status == 0, made.err
        assert "1 answered" in made.err


def test_results_without_ids_that_do_not_match_in_number_are_named(tmp_path):
    made = run_results(tmp_path, TARGETS["gemini"], [{"response": GENERATED, "metadata": {}}], count=2)
    assert made.status == 1
    assert "2 missing" in made.err
    assert "1 results have no id" in made.err


@pytest.mark.parametrize("name", ["vertex", "vertex claude"])
def test_a_vertex_result_without_status_is_read(name, tmp_path):
    target, succeeded, _ = RESULTS[name]
    line = {key: value for key, value in succeeded("id-0").items() if key != "status"}
    made = run_results(tmp_path, TARGETS[target], [line, {**line, "processed_time": "2026-11-16"}], count=1)
    assert made.status == 0, made.err


def test_files_of_windows_are_read(tmp_path):
    mark = b"\xef\xbb\xbf"
    (request,) = request_lines(TARGETS["openai"], 1)
    (tmp_path / "sent.jsonl").write_bytes(mark + json.dumps(request).encode() + b"\r\n\r\n")
    (tmp_path / "results.jsonl").write_bytes(mark + json.dumps(http("id-0", RESPONSE)).encode() + b"\r\n")
    made = segue("results", tmp_path / "results.jsonl", "--for", tmp_path / "sent.jsonl", "-o", tmp_path / "out.jsonl")
    assert made.status == 0, made.err


def test_a_complete_address_and_that_of_a_deployment_are_read():
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    for url in (
        "https://api.openai.com/v1/chat/completions",
        "/openai/deployments/d/chat/completions",
        "/api/v3/chat/completions",
    ):
        line = read_request_line({"custom_id": "a", "method": "POST", "url": url, "body": body})
        assert line is not None
        assert line.protocol == "openai-chat"
    assert read_request_line({"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body}) is None


DOCUMENTS = {
    "a job of Gemini": lambda items: {
        "name": "batches/1",
        "response": {"inlinedResponses": {"inlinedResponses": items}},
    },
    "a job of the SDK": lambda items: {"dest": {"inlinedResponses": items}},
    "a list": lambda items: items,
}


@pytest.mark.parametrize("wrap", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_inline_results_without_ids_come_in_the_order_of_the_requests(wrap, tmp_path):
    sent = write(tmp_path / "sent.jsonl", [json.dumps(line).encode() for line in request_lines(TARGETS["gemini"], 2)])
    (tmp_path / "job.json").write_text(
        json.dumps(wrap([{"response": GENERATED}, {"error": {"code": 3, "message": "bad"}}]), indent=1)
    )
    made = segue("results", tmp_path / "job.json", "--for", sent, "-o", tmp_path / "out.jsonl")
    assert "1 answered, 1 errored" in made.err
    assert json.loads((tmp_path / "out.jsonl").read_bytes())["id"] == "id-0"


def test_results_of_a_converted_batch_find_the_original_requests_and_names(tmp_path):
    body = chat(1)
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = "read.file"
    body["tools"][0]["function"]["name"] = "read.file"
    original = {"custom_id": "task/0", "method": "POST", "url": "/v1/chat/completions", "body": body}
    write(tmp_path / "in.jsonl", [json.dumps(original).encode()])
    segue(
        "convert",
        tmp_path / "in.jsonl",
        "--to",
        "anthropic/claude-sonnet-4-5",
        "--as",
        "batch",
        "-o",
        tmp_path / "b.jsonl",
    )
    line = json.loads((tmp_path / "b.jsonl").read_bytes())
    (tool, _) = line["params"]["tools"]
    assert tool["name"] != "read.file"
    call = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {"path": "x"}}
    message = {**MESSAGE, "content": [call], "stop_reason": "tool_use"}
    result = {"custom_id": line["custom_id"], "result": {"type": "succeeded", "message": message}}
    write(tmp_path / "results.jsonl", [json.dumps(result).encode()])
    made = segue("results", tmp_path / "results.jsonl", "--for", tmp_path / "b.jsonl", "-o", tmp_path / "out.jsonl")
    assert made.status == 0, made.err
    assert json.loads((tmp_path / "out.jsonl").read_bytes())["id"] == "task/0"
    answer: Any = conversations(tmp_path)[0].messages[-1]
    assert answer.tool_calls()[0].name == "read.file"
    # The file that the batch was made from works as well: the ids can be made again.
    made = segue("results", tmp_path / "results.jsonl", "--for", tmp_path / "in.jsonl", "-o", tmp_path / "again.jsonl")
    assert made.status == 0, made.err
    assert json.loads((tmp_path / "again.jsonl").read_bytes())["id"] == "task/0"


@pytest.mark.parametrize("content", [b"{bad\n{worse\n", b"[1]", b'{"custom_id": 1}\n{}\n'])
def test_a_file_that_is_no_result_is_one_sentence(content, tmp_path):
    sent = write(tmp_path / "sent.jsonl", [json.dumps(line).encode() for line in request_lines(TARGETS["openai"], 1)])
    (tmp_path / "r.jsonl").write_bytes(content)
    made = segue("results", tmp_path / "r.jsonl", "--for", sent, "-o", tmp_path / "out.jsonl")
    assert made.status == 2
    assert "r.jsonl" in made.err
    assert not list(tmp_path.glob(".*"))


# -- the official clients ----------------------------------------------------------------------------------------------


def test_the_client_of_anthropic_accepts_requests_and_results():
    pytest.importorskip("anthropic", reason="of the client of Anthropic (not installed)")
    from anthropic.types.messages import MessageBatchIndividualResponse
    from anthropic.types.messages.batch_create_params import Request
    from pydantic import TypeAdapter

    for line in request_lines(TARGETS["anthropic"]):
        TypeAdapter(Request).validate_python(line, strict=False)
    _, succeeded, failed = RESULTS["anthropic"]
    for line in (
        succeeded("a"),
        failed("a"),
        OUTCOMES["expired at Anthropic"][0],
        OUTCOMES["canceled at Anthropic"][0],
    ):
        parsed = MessageBatchIndividualResponse.model_validate(line)
        assert parsed.result.type == line["result"]["type"]
        read = read_result_line(line)
        assert read is not None
        assert read.id == parsed.custom_id


def test_the_client_of_google_accepts_requests_and_results():
    pytest.importorskip("google.genai", reason="of the client of Google (not installed)")
    from google.genai import types

    for line in request_lines(TARGETS["gemini"]):
        types.InlinedRequest.model_validate({"contents": line["request"]["contents"]})
    inlined = types.InlinedResponse.model_validate(RESULTS["gemini inline"][1]("a"))
    assert inlined.response is not None
    items = list(results_of_document({"dest": {"inlinedResponses": [{"response": GENERATED}]}}))
    assert read_result_line(items[0]) is not None


def test_the_client_of_openai_knows_the_endpoints():
    pytest.importorskip("openai", reason="of the client of OpenAI (not installed)")
    from typing import get_args, get_type_hints

    from openai.types.batch_create_params import BatchCreateParams

    endpoints = get_args(get_type_hints(BatchCreateParams)["endpoint"])
    found = [value for part in endpoints for value in (get_args(part) or (part,))]
    assert {line["url"] for name in ("openai", "openai chat") for line in request_lines(TARGETS[name])} <= set(found)


def test_botocore_accepts_the_input_of_converse():
    pytest.importorskip("botocore", reason="of botocore (not installed)")
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    shape = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    for line in request_lines(TARGETS["bedrock"]):
        report = ParamValidator().validate({"modelId": "m", **line["modelInput"]}, shape)
        assert not report.has_errors(), report.generate_report()
