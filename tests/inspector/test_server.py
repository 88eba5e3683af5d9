"""The inspector's server: who is answered, and what with."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.running import SESSION
from inspector.serving import inspector
from segue import (
    UserMessage,
    append_message,
    check,
    estimate_tokens,
    get_model,
    plan,
    prepare,
    read_history,
    read_session,
)
from segue.errors import render_path
from segue.histories.registry import get_format

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("uvicorn")

TARGET = "openai/gpt-5.4"


@pytest.fixture(scope="module")
def page():
    with inspector(SESSION, "--no-redact", "--allow-host", "inspector.example:8443") as address:
        wait_for(address)
        yield address


def wait_for(address: str) -> None:
    """The socket listens before the address is printed; the first answer comes when the server runs."""
    assert httpx2.get(address, timeout=30).status_code == 200


def ask(page: str, path: str, question: object, **headers: str):
    return httpx2.post(page + path, json=question, headers=headers, timeout=60)


def open_text(page: str, text: str | bytes, **parameters: str):
    data = text if isinstance(text, bytes) else text.encode()
    return httpx2.post(page + "api/open", content=data, params=parameters, timeout=60)


def document(page: str) -> str:
    return httpx2.get(page + "api/start").json()["opened"]["document"]


def rows(page: str, target: str, wanted: list[int], **more: object):
    return ask(page, "api/rows", {"document": document(page), "target": target, "rows": wanted, **more}).json()


def test_the_page_and_its_parts_are_there_and_load_nothing_from_elsewhere(page):
    kinds = {"css": "text/css", "js": "text/javascript", "html": "text/html"}
    for path in (Path(__file__).parents[2] / "src/segue/inspector/page").iterdir():
        reply = httpx2.get(page + path.name.replace("index.html", ""))
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith(kinds[path.suffix[1:]])
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "http://" not in reply.text.replace("http://www.w3.org", "")
        assert "https://" not in reply.text


def test_the_page_starts_with_the_given_file_and_its_first_target(page):
    opened = httpx2.get(page + "api/start").json()["opened"]
    assert (opened["name"], opened["messages"]) == (SESSION.name, len(read_session(SESSION).messages))
    assert opened["targets"][0] == "deepseek/deepseek-v4-pro"
    assert len(opened["targets"]) == len(set(opened["targets"])) == 3
    assert opened["first"]["summary"]["name"] == opened["targets"][0]
    assert opened["first"]["rows"][1]["stored"]["number"] == 0
    assert [TARGET, "openai-responses"] in httpx2.get(page + "api/models").json()


def test_the_result_is_the_same_as_from_prepare(page):
    for name in (TARGET, "anthropic/claude-sonnet-4-5"):
        question = {"document": document(page), "target": name}
        summary, facts = (ask(page, path, question).json() for path in ("api/inspect", "api/facts"))
        request = prepare(read_session(SESSION), name)
        assert sum(kind["count"] for kind in summary["kinds"]) == len(request.report.changes)
        assert summary["counts"]["content"] == sum(change.loss == "content" for change in request.report.changes)
        assert facts["bytes"] == len(request.content)
        assert facts["violations"] == []
        shown = rows(page, name, list(range(summary["rows"])))
        codes = sorted(change["code"] for row in shown for change in row["changes"])
        assert codes == sorted(change.code.value for change in request.report.changes)


def test_stored_and_sent_messages_are_aligned(page):
    summary = ask(page, "api/inspect", {"document": document(page), "target": TARGET}).json()
    shown = rows(page, TARGET, list(range(summary["rows"])))
    numbers = [row["stored"]["number"] for row in shown[1:] if "stored" in row]
    assert numbers == list(range(len(read_session(SESSION).messages)))
    assert summary["changed"] == [row["at"] for row in shown if row["changes"] or not row["same"]]
    aborted = shown[8]
    assert (aborted["stored"]["number"], aborted["same"]) == (7, False)
    assert "sent" not in aborted


def test_a_model_of_the_history_has_a_cached_prefix(page):
    spoken, silent = (
        ask(page, "api/facts", {"document": document(page), "target": name}).json() for name in (TARGET, "mistral-chat")
    )
    assert spoken["cache"]["turns"] == spoken["cache"]["sentBefore"] > 0
    assert silent["cache"] is None


def test_the_plan_is_that_of_the_library(page):
    opened = httpx2.get(page + "api/start").json()["opened"]
    targets = [*opened["targets"], "openai-chat"]  # a protocol has no price
    found = ask(page, "api/plan", {"document": opened["document"], "targets": targets}).json()
    assert [each["model"] for each in found["models"]] == opened["targets"]
    made = plan(read_session(SESSION), opened["targets"])
    assert [len(each["losses"]) for each in found["models"]] == [len(each.losses) for each in made.models]
    assert [each["fits"] for each in found["models"]] == [each.fits for each in made.models]


def test_the_wire_json_is_the_exact_body(page):
    wire = ask(page, "api/wire", {"document": document(page), "target": TARGET})
    assert wire.json() == json.loads(prepare(read_session(SESSION), TARGET).content)


def test_the_length_and_the_cost_of_the_input_are_estimated(page):
    length = ask(page, "api/inspect", {"document": document(page), "target": TARGET}).json()["length"]
    model = get_model(TARGET)
    assert 0 < length["limit"] <= model.context_window
    assert length["fits"] is True
    assert length["sent"] == length["whole"] == estimate_tokens(read_session(SESSION), TARGET)
    assert length["cost"] == pytest.approx(length["sent"] * model.cost.input / 1e6)


def test_a_text_longer_than_asked_for_is_cut_and_can_be_had_in_full(page):
    text = "long " * 1000
    opened = open_text(page, json.dumps([{"role": "user", "content": text}])).json()
    question = {"document": opened["document"], "target": TARGET, "rows": [1]}
    short, whole = (
        ask(page, "api/rows", question | {"length": length}).json()[0]["stored"]["pieces"][0] for length in (100, 9999)
    )
    assert ("".join(short["parts"]), short["more"]) == (text[:100], len(text) - 100)
    assert ("".join(whole["parts"]), "more" in whole) == (text, False)


def test_an_image_is_served_by_its_content_only_if_it_is_one(page):
    images = [
        ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", 200),
        ("PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=", 404),
        ("not base64", 404),
    ]
    for data, status in images:
        content = [{"type": "image", "data": data, "mimeType": "image/png"}]
        stored = {"format": "segue/1", "messages": [{"role": "user", "content": content}]}
        opened = open_text(page, json.dumps(stored)).json()
        question = {"document": opened["document"], "target": TARGET, "rows": [1]}
        shown = ask(page, "api/rows", question).json()[0]["stored"]["pieces"][0]
        reply = httpx2.get(f"{page}api/images/{opened['document']}/{shown['image']}")
        assert reply.status_code == status
        if status == 200:
            assert reply.headers["content-type"] == "image/png"


def test_each_conversation_of_a_file_with_many_can_be_opened(page):
    lines = "\n".join(json.dumps({"messages": [{"role": "user", "content": f"number {at}"}]}) for at in range(3))
    opened = open_text(page, lines, name="many.jsonl", source="openai-chat").json()
    assert (opened["conversations"], opened["nth"]) == (3, 1)
    second = open_text(page, "", document=opened["document"], nth="2", source="openai-chat").json()
    question = {"document": second["document"], "target": TARGET, "rows": [1]}
    assert ask(page, "api/rows", question).json()[0]["stored"]["pieces"][0]["parts"] == ["number 1"]


def test_a_local_model_that_wrote_the_conversation_is_a_target(page):
    turn = {"role": "assistant", "protocol": "openai-chat", "provider": "llama.cpp", "model": "tiny", "content": "Hi"}
    stored = {"format": "segue/1", "messages": [{"role": "user", "content": "Hello"}, turn]}
    opened = open_text(page, json.dumps(stored)).json()
    assert opened["targets"][0] == "llama.cpp/tiny"
    question = {"document": opened["document"], "target": "llama.cpp/tiny"}
    assert ask(page, "api/inspect", question).json()["protocol"] == "openai-chat"


HALF = json.dumps({"format": "segue/1", "messages": [{"role": "user", "content": "\ud83d"}]})
CALL = {"type": "toolCall", "id": "a", "name": "run", "arguments": {"text": "\ud83d"}}
ODD = {
    "half a character": HALF,
    "half a character in arguments": json.dumps(
        {"format": "segue/1", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [CALL]}]}
    ),
    "no message": json.dumps({"format": "segue/1", "messages": []}),
    "an empty message": json.dumps({"format": "segue/1", "messages": [{"role": "user", "content": []}]}),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_an_odd_conversation_is_shown(page, text):
    opened = open_text(page, text)
    assert opened.status_code == 200, opened.text
    question = {"document": opened.json()["document"], "target": TARGET, "rows": [0, 1, 2, 99]}
    for path in ("inspect", "rows", "facts"):
        assert ask(page, f"api/{path}", question).status_code == 200


UNREADABLE = {
    "no conversation": ("hello", "not valid JSON"),
    "a binary file": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "notes.json: this is a binary file"),
    "another encoding": ('[{"role": "üser"}]'.encode("latin-1"), "not valid UTF-8"),
    "nothing": ("", "empty"),
    "blank lines": ("\n \n", "empty"),
}


@pytest.mark.parametrize(("text", "given"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_is_no_conversation_is_one_sentence(page, text, given):
    reply = open_text(page, text, name="notes.json")
    assert reply.status_code == 422
    assert given in reply.json()["error"]
    assert "\n" not in reply.json()["error"]


MISTAKES = {
    "an unknown model": ({"target": "gtp-5.4"}, 422, "similar names: "),
    "a model like no other": ({"target": "?"}, 422, "choose one of the list, or a protocol"),
    "no target": ({}, 422, "no target is chosen"),
    "a blank target": ({"target": " "}, 422, "no target is chosen"),
    "an invalid request": ({"target": 1}, 400, "invalid request"),
    "a conversation that is not open": ({"document": "x", "target": TARGET}, 410, "no longer open"),
}


@pytest.mark.parametrize("path", ["inspect", "rows", "facts", "wire"])
@pytest.mark.parametrize(("question", "status", "given"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_error_is_one_sentence(page, path, question, status, given):
    reply = ask(page, f"api/{path}", {"document": document(page), **question})
    assert reply.status_code == status
    assert given in reply.json()["error"]


@pytest.mark.parametrize("path", ["session", "rows"])
@pytest.mark.parametrize("body", [b'{"document": "\xff"}', b'{"a": ' + b"[" * 5000], ids=["no UTF-8", "too deep"])
def test_a_question_that_cannot_be_decoded_is_one_sentence(page, path, body):
    reply = httpx2.post(f"{page}api/{path}", content=body, timeout=60)
    assert (reply.status_code, "invalid request" in reply.json()["error"]) == (400, True)


STRANGERS = {
    "another origin": {"origin": "http://evil.example"},
    "another name for this machine": {"host": "evil.example"},
    "another name with its origin": {"host": "evil.example", "origin": "http://evil.example"},
    "another server of this machine": {"origin": "http://127.0.0.1:1"},
    "a sandboxed page": {"origin": "null"},
    "a script of another page": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    "a script of another port": {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    "a broken name": {"host": "[::1"},
}


@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS.keys())
def test_requests_of_other_sites_are_refused(page, headers):
    assert ask(page, "api/inspect", {"document": "x"}, **headers).status_code == 403
    refused = httpx2.get(page + "api/start", headers=headers)
    assert refused.status_code == 403
    assert "\n" not in refused.text


KNOWN = {
    "a forwarded port": {"host": "localhost:9000", "origin": "http://localhost:9000"},
    "a forwarded port of IPv6": {"host": "[::1]:9000", "origin": "http://[::1]:9000"},
    "an address of this machine": {"host": "192.0.2.7:8000"},
    "an allowed name": {"host": "Inspector.example", "origin": "https://inspector.example"},
    "a proxy that sets its own Host": {"host": "127.0.0.1:8000", "origin": "https://inspector.example"},
    "an address that a link on another page leads to": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
}


@pytest.mark.parametrize("headers", KNOWN.values(), ids=KNOWN.keys())
def test_forwarded_ports_and_allowed_names_are_answered(page, headers):
    assert httpx2.get(page + "api/start", headers=headers).status_code == 200


def test_requests_without_the_token_are_refused(page):
    root = page.rsplit("/", 2)[0]
    for path in ("/", "/api/start", "/inspector.js", "/x/api/start"):
        assert httpx2.get(root + path).status_code == 404


def listening(port: int | None) -> set[str]:
    assert port
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="of listening ports (no /proc/net)")
def test_the_server_listens_on_loopback_only(page):
    port = urlsplit(page).port
    assert listening(port) == {f"0100007F:{port:04X}"}  # 127.0.0.1


@pytest.fixture
def claude_session(tmp_path):
    """A session of Claude Code in a home folder, with a branch that is left out."""
    record = get_format("claude-code")
    source = record.samples()[0].source
    assert record.place is not None
    path = tmp_path / record.place.folder / source.name
    path.parent.mkdir(parents=True)
    path.write_bytes(source.data or b"")
    return path


def test_sessions_of_agents_are_listed_and_opened(tmp_path, claude_session):
    history = read_history(claude_session)
    with inspector(home=tmp_path) as address:
        wait_for(address)
        (session,) = httpx2.get(address + "api/sessions", timeout=60).json()
        assert (session["title"], session["project"]) == ("Read both files.", "/home/user/project")
        assert session["source"] == f"claude-code:{history.origin.id}"
        opened = ask(address, "api/session", {"source": session["source"], "title": session["title"]}).json()
        assert (opened["name"], opened["source"]) == ("Read both files.", "Claude Code")
        assert opened["messages"] == len(history.context.messages)
        wire = ask(address, "api/wire", {"document": opened["document"], "target": TARGET})
        assert wire.json() == json.loads(prepare(history.context, TARGET).content)
        missing = ask(address, "api/session", {"source": "claude-code:nothing"})
        assert (missing.status_code, "no session 'nothing'" in missing.json()["error"]) == (422, True)
        assert ask(address, "api/session", {}).status_code == 400


def test_the_page_cannot_name_a_file_as_a_session(tmp_path, claude_session):
    secret = tmp_path / ".env"
    secret.write_text("#### the-secret-value\n\nyes\n")
    with inspector(home=tmp_path) as address:
        wait_for(address)
        for source in (f"aider:{secret}", str(secret), f"claude-code:{claude_session}", "last"):
            opened = ask(address, "api/session", {"source": source})
            assert opened.status_code == 422, source
            assert "the-secret-value" not in opened.text


def test_the_sessions_of_an_agent_can_be_named_on_the_command_line(tmp_path, claude_session):
    for given in ("claude-code:last", claude_session, claude_session.parent):
        with inspector(given, home=tmp_path) as address:
            opened = httpx2.get(address + "api/start", timeout=60).json()["opened"]
        assert opened["messages"] == len(read_history(claude_session).context.messages)


def test_a_pasted_session_of_an_agent_is_recognised(page, claude_session):
    history = read_history(claude_session)
    opened = open_text(page, claude_session.read_bytes(), name=claude_session.name).json()
    assert (opened["source"], opened["messages"]) == ("Claude Code", len(history.context.messages))
    lost = {change.code.value for change in history.report.changes if change.loss == "content"}
    assert {sentence.split()[2].rstrip(":") for sentence in opened["leftOut"]} == lost
    unknown = open_text(page, b"PK\x03\x04 no archive", name="some.zip")
    assert (unknown.status_code, "some.zip: " in unknown.json()["error"]) == (422, True)
    assert "\n" not in unknown.json()["error"]


def test_a_pasted_error_of_a_provider_is_classified(page):
    refused = open_text(page, "prompt is too long: 210000 tokens > 200000 maximum")
    failure = refused.json()["failure"]
    assert (refused.status_code, failure["kind"], failure["used"], failure["limit"]) == (
        422,
        "overflow",
        210000,
        200000,
    )
    assert "failure" not in open_text(page, "hello world").json()


def test_a_request_is_checked_as_it_is_and_its_own_model_is_the_first_target(page):
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [call]}]
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "messages": [*messages, {"role": "user", "content": "And?"}],
    }
    opened = open_text(page, json.dumps(body)).json()
    assert (opened["targets"][0], opened["isRequest"]) == ("anthropic/claude-opus-4-8", True)
    given = ask(page, "api/given", {"document": opened["document"]}).json()
    assert json.loads(given["body"]) == body
    assert [sentence.split(":")[0] for sentence in given["violations"]] == [
        render_path(violation.path) for violation in check(body, protocol="anthropic-messages")
    ]
    assert given["violations"]
    question = {"document": opened["document"], "target": opened["targets"][0]}
    assert check(ask(page, "api/wire", question).json(), protocol="anthropic-messages") == []
    assert ask(page, "api/given", {"document": document(page)}).json() == {"body": "", "violations": []}


def test_a_question_that_the_page_never_asks_is_not_answered(page):
    assert httpx2.get(page + "api/nothing").status_code == 404


@pytest.mark.parametrize("options", [("--host", "0.0.0.0"), ("--allow-host", "inspector.example")])
def test_sessions_are_not_shown_to_other_machines(tmp_path, claude_session, options):
    with inspector(*options, home=tmp_path) as address:
        wait_for(address)
        assert httpx2.get(address + "api/sessions").json() == []
        refused = ask(address, "api/session", {"source": "claude-code:last"})
        assert (refused.status_code, "only to this machine" in refused.json()["error"]) == (403, True)


def test_a_file_that_grows_is_followed(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(SESSION.read_bytes())
    before = len(read_session(path).messages)
    with inspector(path) as page:
        opened = httpx2.get(page + "api/start", timeout=60).json()["opened"]
        assert (opened["follows"], opened["messages"]) == (True, before)

        def follow(key: str):
            return httpx2.post(page + "api/follow", json={"document": key}, timeout=60).json()

        assert follow(opened["document"]) == {"grown": False}
        append_message(path, UserMessage.of("And now?"))
        grown = follow(opened["document"])
        assert (grown["grown"], grown["messages"], grown["follows"]) == (True, before + 1, True)
        assert httpx2.get(page + "api/start", timeout=60).json()["opened"]["document"] == grown["document"]
        assert follow(grown["document"]) == {"grown": False}
        pasted = httpx2.post(page + "api/open", content=b'{"messages":[{"role":"user","content":"Hi"}]}', timeout=60)
        assert pasted.json()["follows"] is False
        assert follow(pasted.json()["document"]) == {"grown": False}
