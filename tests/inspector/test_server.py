"""The inspector's server: who is answered, and what with."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.running import SESSION
from inspector.serving import inspector
from segue import prepare, read_session

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def page():
    with inspector(SESSION) as address:
        wait_for(address)
        yield address


def wait_for(address: str) -> None:
    """The socket listens before the address is printed; the first answer comes when the server runs."""
    assert httpx2.get(address, timeout=30).status_code == 200


def ask(page: str, path: str, question: object, **headers: str):
    return httpx2.post(page + path, json=question, headers=headers, timeout=60)


def test_the_page_and_its_parts_are_there_and_load_nothing_from_elsewhere(page):
    for name, kind in (("", "text/html"), ("inspector.css", "text/css"), ("inspector.js", "text/javascript")):
        reply = httpx2.get(page + name)
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith(kind)
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "http://" not in reply.text.replace("http://www.w3.org", "")
        assert "https://" not in reply.text


def test_the_page_starts_with_the_given_file(page):
    begun = httpx2.get(page + "api/start").json()
    assert begun["opened"] == SESSION.read_text("utf-8")
    assert {"name": "openai/gpt-5.4", "protocol": "openai-responses"} in begun["models"]


def test_the_result_is_the_same_as_from_prepare(page):
    names = ["openai/gpt-5.4", "anthropic/claude-sonnet-4-5", "plain-text"]
    result = ask(page, "api/inspect", {"text": SESSION.read_text("utf-8"), "targets": names}).json()
    request = prepare(read_session(SESSION), "openai/gpt-5.4")
    first = result["targets"][0]
    assert [change["code"] for change in first["changes"]] == [change.code.value for change in request.report.changes]
    assert first["counts"]["content"] == sum(change.loss == "content" for change in request.report.changes)
    assert first["bytes"] == len(request.content)
    assert first["violations"] == []
    assert len(result["stored"]) == len(read_session(SESSION).messages)
    assert [target["name"] for target in result["targets"]][:2] == names[:2]


def test_stored_and_sent_messages_are_aligned(page):
    result = ask(page, "api/inspect", {"text": SESSION.read_text("utf-8"), "targets": ["openai/gpt-5.4"]}).json()
    rows, changes = result["targets"][0]["rows"], result["targets"][0]["changes"]
    assert [stored for stored, _, _ in rows if stored is not None] == list(range(len(result["stored"])))
    changed = {change["message"] for change in changes if change["message"] is not None}
    assert {stored for stored, sent, same in rows if not same} >= changed - {None}
    assert [7, None, False] in rows  # the turn that was aborted is not sent


def test_a_model_of_the_history_has_a_cached_prefix(page):
    result = ask(
        page, "api/inspect", {"text": SESSION.read_text("utf-8"), "targets": ["openai/gpt-5.4", "mistral-chat"]}
    ).json()
    spoken, silent = result["targets"]
    assert spoken["cache"]["turns"] == spoken["cache"]["sentBefore"] > 0
    assert silent["cache"] is None


def test_the_wire_json_is_the_exact_body(page):
    wire = ask(page, "api/wire", {"text": SESSION.read_text("utf-8"), "targets": ["openai/gpt-5.4"]})
    assert wire.json() == json.loads(prepare(read_session(SESSION), "openai/gpt-5.4").content)


MISTAKES = {
    "no conversation": ({"text": "hello", "targets": ["openai/gpt-5.4"]}, 422, "not valid JSON"),
    "an unknown model": ({"text": '[{"role":"user","content":"x"}]', "targets": ["gtp-5.4"]}, 422, "gpt-5.4"),
    "an invalid request": ({"texts": 1}, 400, "invalid request"),
}


@pytest.mark.parametrize(("question", "status", "given"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_error_is_one_sentence(page, question, status, given):
    reply = ask(page, "api/inspect", question)
    assert reply.status_code == status
    assert given in reply.json()["error"]


STRANGERS = {
    "another origin": {"origin": "http://evil.example"},
    "another name for this machine": {"host": "evil.example"},
    "a sandboxed page": {"origin": "null"},
}


@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS.keys())
def test_requests_of_other_sites_are_refused(page, headers):
    assert ask(page, "api/inspect", {"text": "[]", "targets": []}, **headers).status_code == 403
    assert httpx2.get(page + "api/start", headers=headers).status_code == 403


def test_requests_without_the_token_are_refused(page):
    root = page.rsplit("/", 2)[0]
    for path in ("/", "/api/start", "/inspector.js", "/x/api/start"):
        assert httpx2.get(root + path).status_code == 404


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="of listening ports (no /proc/net)")
def test_the_server_listens_on_loopback_only(page):
    port = urlsplit(page).port
    assert port
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}  # 127.0.0.1


def test_sessions_of_agents_are_listed_and_opened(tmp_path, monkeypatch):
    from segue import read_history
    from segue.histories.registry import get_format

    source = get_format("claude-code").samples()[0].source
    path = tmp_path / source.name
    path.parent.mkdir(parents=True)
    path.write_bytes(source.data or b"")
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    with inspector() as address:
        wait_for(address)
        (session,) = httpx2.get(address + "api/sessions").json()
        assert (session["title"], session["project"]) == ("Read both files.", "/home/user/project")
        opened = ask(address, "api/session", {"text": session["source"]}).json()
        result = ask(address, "api/inspect", {"text": opened["text"], "targets": ["openai/gpt-5.4"]}).json()
        pasted = ask(address, "api/inspect", {"text": path.read_text("utf-8"), "targets": ["openai/gpt-5.4"]}).json()
        assert len(result["stored"]) == len(read_history(path).context.messages)
        assert pasted["stored"] == result["stored"]
        missing = ask(address, "api/session", {"text": "claude-code:nothing"})
        assert (missing.status_code, "no session 'nothing'" in missing.json()["error"]) == (422, True)


def test_sessions_are_not_shown_to_other_machines():
    from starlette.testclient import TestClient

    from segue.inspector.server import make_app
    from segue.models.catalogue import installed_catalogue

    client = TestClient(make_app("t", frozenset({"testserver"}), installed_catalogue()))
    assert client.get("/t/api/sessions").json() == []
    assert client.post("/t/api/session", json={"text": "claude-code:last"}).status_code == 403
