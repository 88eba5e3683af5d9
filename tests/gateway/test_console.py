"""The endpoints of the console: who sees what, searching, contents, replays, export, erasing."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.running import KEYS, config_text, running
from segue.conversation.context import Context, Options
from segue.conversation.messages import Usage, UsageCost
from segue.foundation.json_text import encode_valid_json
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.console import search
from segue.gateway.contents import dump_content, load_content
from segue.gateway.costs import Costs
from segue.gateway.records import RequestRow
from segue.gateway.service import Gateway
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import Store, StoredRow
from segue.histories.sessions import read_session
from segue.testing.emulator import Step, emulate, serve_in_thread

SECRET = "the colour is mauve"
ALICE, BOB, ADMIN = (f"sgw-a-long-key-of-{name}" for name in ("alice", "bob", "admin"))


def ask(url: str, text: str = SECRET, model: str = "m-anthropic", session: str = "one", **headers: str) -> Any:
    body = {"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": text}]}
    given = {"x-session-id": session, **headers}
    return httpx2.post(f"{url}/v1/messages", json=body, headers=given, timeout=60)


def get(url: str, path: str, status: int = 200, *, key: str = "") -> Any:
    reply = httpx2.get(f"{url}/segue/{path}", headers={"x-api-key": key}, timeout=60)
    assert reply.status_code == status, reply.text
    return reply.json()


def conversation_of(url: str, *, key: str = "") -> str:
    return get(url, "requests", key=key)["requests"][0]["conversation"]


def started(tmp_path: Path, *steps: Step, content: str = "off") -> Any:
    return running(*steps, store=f"sqlite:{tmp_path}/g.db", more=f'content = "{content}"\n')


def test_rows_say_what_happened_and_nothing_of_the_content(tmp_path: Path) -> None:
    with started(tmp_path, Step(status=529), Step(text="A purple.")) as made:
        name = ask(made.url).headers["x-segue-request-id"]
        (row,) = get(made.url, "requests")["requests"]
        assert row["id"] == name
        assert (row["asked"], row["model"]) == ("m-anthropic", "anthropic/claude-opus-4-8")
        assert [each.get("kind") for each in row["attempts"]] == ["overloaded", None]
        assert row["usage"]["output"] > 0
        assert "firstByteMs" in row
        error = get(made.url, f"requests/{name}/content", 404)["error"]
        assert "state.content" in error
    assert b"mauve" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_full_content_has_what_the_client_sent_what_the_model_got_and_the_reply(tmp_path: Path) -> None:
    with started(tmp_path, Step(text="A purple."), content="full") as made:
        name = ask(made.url, model="m-responses").headers["x-segue-request-id"]
        content = get(made.url, f"requests/{name}/content")
        assert content["received"]["messages"][0]["content"] == SECRET
        assert SECRET in str(content["sent"]["input"])
        assert content["sent"]["model"] == "gpt-5.4"
        assert content["reply"]["content"][0]["text"] == "A purple."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["claude-opus-4-8", "m-responses"], ids=["passed on", "translated"])
def test_a_full_content_has_the_bytes_of_the_client_and_of_the_provider(
    tmp_path: Path, model: str, stream: bool
) -> None:
    body = {"model": model, "max_tokens": 64, "stream": stream, "messages": [{"role": "user", "content": SECRET}]}
    given = json.dumps(body, indent=3).encode()  # not as this gateway would write it
    with started(tmp_path, Step(status=529), Step(text="A purple."), content="full") as made:
        answer = httpx2.post(f"{made.url}/v1/messages", content=given, headers={"content-type": "application/json"})
        content = get(made.url, f"requests/{answer.headers['x-segue-request-id']}/content")
        assert base64.b64decode(content["received_bytes"]) == given
        reply = base64.b64decode(content["reply_bytes"])
        assert b"overloaded" not in reply.lower()
        assert b"purple" in reply
        assert (reply == answer.content) is (model == "claude-opus-4-8")


def test_a_redacted_content_has_the_structure_and_no_text(tmp_path: Path) -> None:
    with started(tmp_path, Step(text="A purple."), content="redacted") as made:
        name = ask(made.url).headers["x-segue-request-id"]
        content = get(made.url, f"requests/{name}/content")
        assert content["received"]["messages"][0] == {"role": "user", "content": f"[{len(SECRET)} characters]"}
        assert content["reply"]["content"][0] == {"type": "text", "text": "[9 characters]"}
        assert "mauve" not in str(content)
        assert "purple" not in str(content)
        body = {"model": "m-gemini"}
        assert httpx2.post(f"{made.url}/segue/requests/{name}/replay", json=body).status_code == 409
        conversation = conversation_of(made.url)
        assert httpx2.get(f"{made.url}/segue/conversations/{conversation}/session").status_code == 409


@pytest.mark.parametrize(
    ("value", "redacted"),
    [
        (
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "abc"}]}]},
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "[3 characters]"}]}]},
        ),
        (
            {"messages": [{"content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"name": "bob"}}]}]},
            {"messages": [{"content": [{"type": "tool_use", "id": "t1", "name": "f", "input": "[redacted]"}]}]},
        ),
        (
            {"tools": [{"name": "f", "input_schema": {"properties": {"name": {"enum": ["bob"]}}}}]},
            {"tools": [{"name": "f", "input_schema": "[redacted]"}]},
        ),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"id": 1}'}]},
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "[9 characters]"}]},
        ),
        (
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"status": "bob"}}}]}]},
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": "[redacted]"}}]}]},
        ),
        ({"metadata": {"id": "bob"}, "user": "bob"}, {"metadata": "[redacted]", "user": "[3 characters]"}),
        (
            {"messages": [{"role": "user", "name": "Bob Smith", "content": "x"}], "temperature": 1},
            {"messages": [{"role": "user", "name": "[9 characters]", "content": "[1 characters]"}], "temperature": 1},
        ),
    ],
)
def test_redaction_keeps_names_by_their_place(value: dict[str, object], redacted: object) -> None:
    data = dump_content(received=value, sent=None, context=Context(), options=Options(), reply=None, is_redacted=True)
    assert json.loads(bytes(load_content(data).received)) == redacted


def test_a_replay_shows_the_request_for_another_model_and_sends_nothing(tmp_path: Path) -> None:
    with started(tmp_path, content="full") as made:
        name = ask(made.url).headers["x-segue-request-id"]
        sent = len(made.upstream.emulator.requests)
        place = f"{made.url}/segue/requests/{name}/replay"
        replay = httpx2.post(place, json={"model": "m-gemini"}).json()
        assert replay["model"] == "google/gemini-3.1-pro-preview"
        assert replay["sent"]["contents"][0]["parts"][0]["text"] == SECRET
        assert isinstance(replay["changes"], list)
        assert httpx2.post(place, json={"model": "no/such"}).status_code == 404
        assert len(made.upstream.emulator.requests) == sent


def test_a_replay_is_sent_with_the_admin_key_alone(tmp_path: Path) -> None:
    for name, secret in {"alice": ALICE, "admin": ADMIN}.items():
        (tmp_path / name).write_text(secret)
    listen = f'[listen]\nkeys = ["file:{tmp_path}/alice"]\nadmin_key = "file:{tmp_path}/admin"\n'
    with running(store=f"sqlite:{tmp_path}/g.db", more=f'content = "full"\n{listen}') as made:
        name = ask(made.url, **{"x-api-key": ALICE}).headers["x-segue-request-id"]
        place, body = f"{made.url}/segue/requests/{name}/replay", {"model": "m-gemini", "send": True}
        sent = len(made.upstream.emulator.requests)
        refused = httpx2.post(place, json=body, headers={"x-api-key": ALICE})
        assert refused.status_code == 403
        assert len(made.upstream.emulator.requests) == sent
        made.upstream.emulator.script.add(Step(text="A violet."))
        replay = httpx2.post(place, json=body, headers={"x-api-key": ADMIN}, timeout=60).json()
        assert replay["reply"]["content"][0]["text"] == "A violet."
        assert replay["problem"] is None
        assert len(made.upstream.emulator.requests) == sent + 1
        row = get(made.url, f"requests/{replay['id']}", key=ADMIN)
        assert (row["client"], row["model"]) == ("segue console", "google/gemini-3.1-pro-preview")
        assert row["usage"]["cost"]["total"] == pytest.approx(replay["usage"]["cost"]["total"])
        get(made.url, f"requests/{replay['id']}", 404, key=ALICE)
        made.upstream.emulator.script.add(Step(status=400, message="no"))
        failed = httpx2.post(place, json=body, headers={"x-api-key": ADMIN}, timeout=60).json()
        assert failed["reply"] is None
        assert failed["problem"]


def test_contents_are_viewed_as_messages_by_their_owner_alone(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Rain. " * 600, "signature": "c2ln"}
    messages = [
        {"role": "user", "content": "<reminder>be nice</reminder>"},
        {"role": "user", "content": SECRET},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Purple."}]},
        {"role": "user", "content": "And the carpet?"},
    ]
    body = {"model": "m-responses", "max_tokens": 64, "messages": messages}
    with emulate(Step(text="A purple.")) as upstream:
        gateway = serve_with_keys(tmp_path, upstream.url)
        with serve_in_thread(create_app(gateway=gateway)) as url:
            headers = {"x-session-id": "s", "x-api-key": ALICE}
            answer = httpx2.post(f"{url}/v1/messages", json=body, headers=headers, timeout=60)
            name = answer.headers["x-segue-request-id"]
            view = get(url, f"requests/{name}/view", key=ALICE)
            assert view["reply"]["pieces"][-1]["parts"] == ["A purple."]
            changed = next(row for row in view["rows"] if row.get("sent") and row["changes"])
            assert changed["changes"][0]["code"] == "thinking_as_text"
            assert [row["same"] for row in view["rows"] if row is not changed] == [True] * (len(view["rows"]) - 1)
            (kind,) = (kind for kind in get(url, f"requests/{name}", key=ALICE)["kinds"] if kind["loss"] == "opaque")
            assert kind["count"] == len(kind["places"])
            asked = {"rows": [changed["at"]], "length": 5}
            more = httpx2.post(f"{url}/segue/requests/{name}/rows", json=asked, headers={"x-api-key": ALICE}).json()
            assert more[0]["stored"]["pieces"][0]["more"] == len(thought["thinking"]) - 5
            wrong = httpx2.post(f"{url}/segue/requests/{name}/rows", json={}, headers={"x-api-key": ALICE})
            assert wrong.status_code == 400
            conversation = conversation_of(url, key=ALICE)
            for key, found in {ALICE: {conversation: SECRET}, ADMIN: {conversation: SECRET}, BOB: {}}.items():
                assert get(url, "conversations", key=key)["titles"] == found
            get(url, f"requests/{name}/view", 404, key=BOB)
            get(url, f"requests/{name}/images/{'0' * 24}", 404, key=ALICE)
            place = f"{url}/segue/conversations/{conversation}/plan"
            planned = httpx2.post(place, json={"models": ["openai/gpt-5.4"]}, headers={"x-api-key": ALICE}).json()
            assert planned["present"]["model"] == "openai/gpt-5.4"
            assert planned["present"]["requests"][0]["cost"]["expected"] > 0
            assert httpx2.post(place, json={}, headers={"x-api-key": BOB}).status_code == 404
            assert httpx2.post(place, json={"models": [1]}, headers={"x-api-key": ALICE}).status_code == 400
            httpx2.delete(f"{url}/segue/conversations/{conversation}", headers={"x-api-key": ALICE})
            get(url, f"requests/{name}/view", 404, key=ALICE)
            assert get(url, "conversations", key=ADMIN)["titles"] == {}


def test_a_key_does_not_learn_whether_a_conversation_of_another_one_exists(tmp_path: Path) -> None:
    with emulate() as upstream:
        gateway = serve_with_keys(tmp_path, upstream.url)
        with serve_in_thread(create_app(gateway=gateway)) as url:
            body = {"model": "m-anthropic", "max_tokens": 64, "messages": [{"role": "user", "content": SECRET}]}
            assert httpx2.post(f"{url}/v1/messages", json=body, headers={"x-api-key": ALICE}).status_code == 200
            name, model = conversation_of(url, key=ALICE), {"model": "m-gemini"}
            for key, status in {ALICE: 409, BOB: 404}.items():
                for conversation in (name, "none"):
                    place, headers = f"{url}/segue/conversations/{conversation}", {"x-api-key": key}
                    wanted = status if conversation == name else 404
                    assert httpx2.put(place, json=model, headers=headers).status_code == wanted
            erased = [
                httpx2.delete(f"{url}/segue/conversations/{each}", headers={"x-api-key": BOB})
                for each in (name, "none")
            ]
            assert erased[0].json() == erased[1].json() == {"erased": 0}
            assert conversation_of(url, key=ALICE) == name


def test_the_session_of_a_request_without_a_reply_has_no_line_for_it(tmp_path: Path) -> None:
    with started(tmp_path, Step(status=400, message="no"), content="full") as made:
        assert ask(made.url).status_code == 400
        lines = httpx2.get(f"{made.url}/segue/conversations/{conversation_of(made.url)}/session").content.splitlines()
        assert b"null" not in lines
        assert json.loads(lines[-1])["role"] == "user"


def test_redacted_contents_are_viewed_without_texts(tmp_path: Path) -> None:
    with started(tmp_path, Step(text="A purple."), content="redacted") as made:
        name = ask(made.url, model="m-responses").headers["x-segue-request-id"]
        view = get(made.url, f"requests/{name}/view")
        assert "mauve" not in str(view)
        assert f"[{len(SECRET)} characters]" in str(view["rows"])
        assert view["reply"]["pieces"][0]["parts"] == ["[9 characters]"]
        assert get(made.url, "conversations")["titles"] == {}


def test_costs_are_those_of_the_rows_by_key_model_day_and_client(tmp_path: Path) -> None:
    with emulate() as upstream:
        gateway = serve_with_keys(tmp_path, upstream.url)
        with serve_in_thread(create_app(gateway=gateway)) as url:
            for key, model in ((ALICE, "m-anthropic"), (ALICE, "m-responses"), (BOB, "m-responses")):
                ask(url, model=model, **{"x-api-key": key})
            rows = get(url, "requests", key=ADMIN)["requests"]
            found = get(url, "costs", key=ADMIN)["by"]
            total = sum(row["usage"]["cost"]["total"] for row in rows)
            for group, size in {"key": 2, "model": 2, "day": 1, "client": 1}.items():
                assert len(found[group]) == size
                assert sum(row["cost"] for row in found[group]) == pytest.approx(total)
                assert {row["estimated"] for row in found[group]} == {0.0}
                assert sum(row["requests"] for row in found[group]) == 3
            costs = {row["name"]: row["requests"] for row in found["model"]}
            assert costs == {"openai/gpt-5.4": 2, "anthropic/claude-opus-4-8": 1}
            assert [row["requests"] for row in get(url, "costs", key=BOB)["by"]["key"]] == [1]
            assert get(url, "costs?hours=0", key=BOB)["isCut"] is False


def test_costs_of_very_many_names_are_one_row_at_the_end() -> None:
    costs = Costs(0)
    usage = Usage(input=10, output=1, cost=UsageCost(total=0.5))
    for at in range(130):
        row = RequestRow(
            id=f"r{at}", time=at, client=f"client {at}", conversation="c", protocol="p", asked="a", model="m",
            stream=False, status=200, outcome="done", usage=usage, figures="estimated" if at % 2 else "measured",
        )  # fmt: skip
        costs.add([(row.id, "", encode_valid_json(row))])
    listed: Any = costs.result()["by"]
    assert len(listed["client"]) == 101
    assert (listed["client"][-1].name, listed["client"][-1].requests) == ("30 others", 30)
    (model,) = listed["model"]
    assert (model.cost, model.estimated, model.input) == (65.0, 32.5, 1300)


def test_figures_over_time_are_those_of_the_rows(tmp_path: Path) -> None:
    (tmp_path / "alice").write_text(ALICE)
    (tmp_path / "bob").write_text(BOB)
    listen = f'[listen]\nkeys = ["file:{tmp_path}/alice", "file:{tmp_path}/bob"]\n'
    with running(store=f"sqlite:{tmp_path}/g.db", more=listen) as made:
        for _ in range(3):
            ask(made.url, **{"x-api-key": ALICE})
        made.upstream.emulator.script.add(Step(status=400, message="no"))
        ask(made.url, **{"x-api-key": ALICE})
        rows = get(made.url, "requests", key=ALICE)["requests"]
        found = get(made.url, "series?hours=1&steps=4", key=ALICE)
        assert len(found["steps"]) == 4
        assert [each["time"] for each in found["steps"]] == [found["start"] + at * 900_000 for at in range(4)]
        (step,) = (each for each in found["steps"] if each["requests"])
        assert (step["requests"], step["errors"]) == (4, 1)
        cost = sum(row["usage"]["cost"]["total"] for row in rows if "usage" in row)
        assert step["cost"] == pytest.approx(cost)
        waits = sorted(row["firstByteMs"] for row in rows if "firstByteMs" in row)
        assert step["firstByte"] == waits[len(waits) // 2]
        assert step["cacheShare"] == 0
        assert found["steps"][0] | {"time": 0} == {
            "time": 0, "requests": 0, "errors": 0, "cost": 0.0, "estimatedCost": 0.0, "cacheShare": None,
            "firstByte": None, "slowFirstByte": None,
        }  # fmt: skip
        assert not any(each["requests"] for each in get(made.url, "series", key=BOB)["steps"])
        get(made.url, "series?hours=99999999999999999999&steps=0", key=BOB)


def test_a_conversation_is_a_thread_with_its_models_and_can_be_exported(tmp_path: Path) -> None:
    with started(tmp_path, content="full") as made:
        ask(made.url)
        conversation = conversation_of(made.url)
        place = f"{made.url}/segue/conversations/{conversation}"
        assert httpx2.put(place, json={"model": "openai/gpt-5.4"}).status_code == 200
        ask(made.url)
        thread = get(made.url, f"conversations/{conversation}")["requests"]
        assert [row["model"] for row in thread] == ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]
        file = tmp_path / "session.jsonl"
        file.write_bytes(httpx2.get(f"{place}/session").content)
        session = read_session(file)
        assert [message.role for message in session.messages] == ["user", "assistant"]
        assert session.messages[0].text() == SECRET  # type: ignore[union-attr]
        assert session.messages[1].model == "gpt-5.4"  # type: ignore[union-attr]


def test_erasing_a_conversation_leaves_nothing_of_it_and_all_of_the_others(tmp_path: Path) -> None:
    with started(tmp_path, content="full") as made:
        ask(made.url)
        name = conversation_of(made.url)
        ask(made.url, "another text", session="two")
        reply = httpx2.delete(f"{made.url}/segue/conversations/{name}")
        assert reply.json()["erased"] >= 3  # the row, the content, the conversation; a state, if there is one
        rows = get(made.url, "requests")["requests"]
        assert [row["conversation"] != name for row in rows] == [True]
        assert name not in {row["id"] for row in get(made.url, "conversations")["conversations"]}
        store: Any = made.gateway.store.store
        for table in ("states", "requests", "responses", "contents"):
            assert store.database.query(f"select * from {table} where conversation = ?", (name,)) == []
        assert len(store.database.query("select id from contents")) == 1


def serve_with_keys(tmp_path: Path, upstream: str, more: str = "") -> Any:
    listen = f'[listen]\nkeys = ["env:ALICE", "env:BOB"]\nadmin_key = "env:ADMIN"\n{more}'
    config = load_config(config_text(upstream, store=f"sqlite:{tmp_path}/g.db", more=f'content = "full"\n{listen}'))
    return Gateway(config, environment={**KEYS, "ALICE": ALICE, "BOB": BOB, "ADMIN": ADMIN})


def test_clients_see_their_own_requests_and_the_admin_those_of_all(tmp_path: Path) -> None:
    with emulate() as upstream:
        gateway = serve_with_keys(tmp_path, upstream.url)
        with serve_in_thread(create_app(gateway=gateway)) as url:
            first = ask(url, session="a", **{"x-api-key": ALICE}).headers["x-segue-request-id"]
            second = ask(url, session="b", **{"x-api-key": BOB}).headers["x-segue-request-id"]
            seen = {
                key: [row["id"] for row in get(url, "requests", key=key)["requests"]] for key in (ALICE, BOB, ADMIN)
            }
            assert seen == {ALICE: [first], BOB: [second], ADMIN: [second, first]}
            assert len(set(get(url, "requests", key=ADMIN)["keys"].values())) == 2
            get(url, f"requests/{second}/content", 404, key=ALICE)
            get(url, f"requests/{second}", 404, key=ALICE)
            get(url, f"requests/{second}/content", 200, key=ADMIN)
            get(url, "requests", 401)
            conversation = conversation_of(url, key=BOB)
            place = f"{url}/segue/conversations/{conversation}"
            assert httpx2.delete(place, headers={"x-api-key": ALICE}).json() == {"erased": 0}
            assert httpx2.delete(place, headers={"x-api-key": ADMIN}).json()["erased"] > 0
            assert ask(url, **{"x-api-key": ADMIN}).status_code == 401  # it is no key for models


@pytest.mark.parametrize(("more", "status"), [("", 403), ("admin_remote = true\n", 200)])
def test_the_admin_key_is_for_this_machine_unless_the_file_says_more(tmp_path: Path, more: str, status: int) -> None:
    import asyncio

    with emulate() as upstream:
        app = create_app(gateway=serve_with_keys(tmp_path, upstream.url, more))

        async def remote(path: str) -> int:
            transport = httpx2.ASGITransport(app, client=("10.0.0.9", 1))
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await client.get(path, headers={"x-api-key": ADMIN})).status_code

        assert asyncio.run(remote("/segue/requests")) == status
        assert asyncio.run(remote("/segue/admin/keys")) == status


def fill(store: Store, count: int) -> None:
    rows = [
        StoredRow(
            f"req_{at:05}",
            "",
            encode_valid_json(
                RequestRow(
                    id=f"req_{at:05}",
                    time=1_800_000_000_000 + at // 3,
                    client="codex" if at % 7 else "claude-code",
                    conversation=f"c{at % 50}",
                    protocol="anthropic-messages",
                    asked="claude-auto",
                    model="openai/gpt-5.4" if at % 5 else "anthropic/claude-opus-4-8",
                    stream=True,
                    status=200,
                    outcome="done",
                )
            ),
            1_800_000_000_000 + at // 3,
            f"c{at % 50}",
        )
        for at in range(count)
    ]
    store.put_all(rows, 1_800_000_000_000)


@pytest.mark.parametrize("words", [[], ["codex"], ["opus", "claude-code"], ["nothing"]])
def test_pages_have_each_row_once_also_where_times_are_equal(tmp_path: Path, words: list[str]) -> None:
    store = open_store(f"sqlite:{tmp_path}/g.db")
    assert store is not None
    fill(store, 200)
    seen: list[str] = []
    before: tuple[int, str] | None = None
    while True:
        rows, following = search(store, None, 30, before, words=words)
        seen += [name for name, _, _ in rows]
        if following is None:
            break
        time, _, name = following.partition(".")
        before = int(time), name
    wanted = [
        at
        for at in range(200)
        if not words
        or (words == ["codex"] and at % 7)
        or (words == ["opus", "claude-code"] and at % 7 == 0 and at % 5 == 0)
    ]
    assert sorted(seen) == [f"req_{at:05}" for at in wanted]
    store.close()


def test_contents_expire(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db", more='content = "full"\ncontent_days = 1\n') as made:
        name = ask(made.url).headers["x-segue-request-id"]
        get(made.url, f"requests/{name}/content")
        store, now = made.gateway.store, get(made.url, f"requests/{name}")["time"]
        for days in (0.9, 1.8, 2.7):  # the clock of expiry follows by a day
            store.sweep(now + round(days * 86_400_000))
        get(made.url, f"requests/{name}/content", 404)
        get(made.url, f"requests/{name}")


def test_names_to_switch_to_are_models_with_a_key_where_no_route_is_listed(tmp_path: Path) -> None:
    config = load_config(f'[models."*"]\ntry = ["same"]\n[state]\nstore = "sqlite:{tmp_path}/g.db"')
    gateway = Gateway(config, environment={"ANTHROPIC_API_KEY": "sk-upstream-key"})
    with serve_in_thread(create_app(gateway=gateway)) as url:
        names = get(url, "conversations")["models"]
    assert "anthropic/claude-opus-4-8" in names
    assert not [name for name in names if name.startswith("openai/")]
