"""`segue convert`: one conversation and many, whole and in pieces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import SESSION, run
from cli.terminal import Terminal
from property_testing import tiers
from segue import check, dump, load, prepare, read_session
from segue.models.catalogue import get_model

CHAT = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "hello"}]}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
LINE = json.dumps(CHAT)


def test_a_session_becomes_the_request_that_the_library_makes():
    made = run("convert", SESSION, "--to", "anthropic/claude-opus-4-8")
    request = prepare(read_session(SESSION), get_model("anthropic/claude-opus-4-8"))
    assert made.status == 0
    assert json.loads(made.out) == json.loads(request.content)
    assert check(json.loads(made.out), protocol="anthropic-messages") == []
    for change in request.report.changes:
        assert change.code.value in made.err


FORMS = {
    "a stored conversation": dump(read_session(SESSION)),
    "a stored conversation laid out for people": json.dumps(json.loads(dump(read_session(SESSION))), indent=2).encode(),
    "a session": SESSION.read_bytes(),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS.keys())
def test_every_stored_format_gives_the_same_request(data):
    made = run("convert", "-", "--to", "openai/gpt-5.4", "--compact", "--report", "none", stdin=data)
    assert made.err == ""
    assert made.out.encode().rstrip(b"\n") == prepare(load(FORMS["a stored conversation"]), "openai/gpt-5.4").content


def test_a_stored_conversation_of_pi_is_read():
    old = {
        "systemPrompt": "Be brief.",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "api": "anthropic-messages", "content": [{"type": "text", "text": "Hello."}]},
        ],
    }
    made = run("convert", "-", "--to", "openai/gpt-4o", "--to-protocol", "openai-chat", stdin=json.dumps(old))
    assert [message["role"] for message in json.loads(made.out)["messages"]] == ["system", "user", "assistant"]


REQUESTS = {
    "a request": json.dumps(CHAT, indent=1),
    "its bare messages": json.dumps(CHAT["messages"]),
}


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS.keys())
def test_the_protocol_of_a_request_is_detected_from_its_content(data):
    made = run("convert", "-", "--to", "anthropic/claude-opus-4-8", stdin=data)
    assert json.loads(made.out)["messages"][0]["content"] in ("hello", [{"type": "text", "text": "hello"}])


@pytest.mark.parametrize("lines", [1, 2], ids=["one conversation", "one a line"])
def test_source_model_names_the_writer_of_the_answers(lines):
    writer = "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "opaque-data"}}}
    turns = [("user", {"text": "hi"}), ("assistant", thought), ("user", {"text": "on"})]
    body = {"messages": [{"role": role, "content": [block]} for role, block in turns]}
    body["messages"][1]["content"].append({"text": "hello"})
    data = "\n".join([json.dumps(body)] * lines)
    assert run("convert", "-", "--to", writer, "--from-model", writer, stdin=data).out.count("opaque-data") == lines
    assert "opaque-data" not in run("convert", "-", "--to", writer, stdin=data).out


def test_an_unknown_target_needs_a_protocol():
    made = run("convert", SESSION, "--to", "local/my-model", "--to-protocol", "openai-chat")
    assert json.loads(made.out)["model"] == "my-model"


def test_with_a_protocol_the_provider_of_a_name_is_never_replaced():
    """The catalogue has `cohere/command-a-plus` only as an id of a gateway."""
    made = run("convert", SESSION, "--to", "cohere/command-a-plus", "--to-protocol", "cohere-chat")
    assert json.loads(made.out)["model"] == "command-a-plus"


def test_an_own_model_can_come_from_a_catalogue_file(tmp_path):
    own = tmp_path / "models.json"
    own.write_text(json.dumps({"models": [{"id": "mine", "provider": "local", "protocol": "openai-chat"}]}))
    made = run("convert", SESSION, "--to", "local/mine", "--catalogue", own)
    assert json.loads(made.out)["model"] == "mine"


def test_strict_refuses_a_lossy_conversion():
    refused = run("convert", SESSION, "--to", "openai/gpt-5.4", "--strict")
    assert refused.status == 1
    assert refused.out == ""
    assert "thinking_as_text" in refused.err


def test_strict_allows_a_lossless_conversion():
    assert run("convert", "-", "--to", "anthropic/claude-opus-4-8", "--strict", stdin=LINE).status == 0


def test_an_empty_conversation_is_an_error():
    empty = run("convert", "-", "--to", "openai/gpt-5.4", stdin='{"format": "segue/1", "messages": []}')
    assert (empty.status, empty.out) == (1, "")
    assert "the conversation has no content" in empty.err


def test_the_report_as_json_names_every_change():
    made = run("convert", SESSION, "--to", "openai/gpt-5.4", "--report", "json")
    report = json.loads(made.err)
    expected = prepare(read_session(SESSION), "openai/gpt-5.4").report
    assert report["lossless"] is False
    assert [change["code"] for change in report["changes"]] == [change.code.value for change in expected.changes]


# -- many --------------------------------------------------------------------------------------------------------------


def numbered(count: int) -> str:
    return "".join(json.dumps({**CHAT, "messages": [{"role": "user", "content": f"{n}"}]}) + "\n" for n in range(count))


def given(out: str) -> list[str]:
    return [json.loads(line)["input"][-1]["content"] for line in out.splitlines()]


def test_many_conversations_keep_their_order():
    made = run("convert", "-", "--to", "openai/gpt-5.4", stdin=numbered(1000))
    assert made.status == 0
    assert given(made.out) == [str(number) for number in range(1000)]
    assert "1,000 conversations converted, 0 bad lines" in made.err


BAD = f'{LINE}\n{{not json\n{LINE}\n{{"format": "segue/1", "messages": []}}\n{LINE}\n'


def test_bad_lines_are_named_and_the_others_converted():
    made = run("convert", "-", "--to", "openai/gpt-5.4", stdin=BAD)
    assert made.status == 1
    assert len(made.out.splitlines()) == 3
    assert "line 2: not valid JSON" in made.err
    assert "line 4: the conversation has no content" in made.err


def test_a_bad_line_stops_the_run_and_keeps_the_output():
    made = run("convert", "-", "--to", "openai/gpt-5.4", "--bad-lines", "stop", stdin=BAD)
    assert made.status == 1
    assert len(made.out.splitlines()) == 1
    assert "line 4" not in made.err


def test_a_bad_first_line_is_a_bad_line_too():
    made = run("convert", "-", "--to", "openai/gpt-5.4", stdin="{oops\n" + LINE + "\n")
    assert "line 1: not valid JSON" in made.err
    assert len(made.out.splitlines()) == 1


def test_each_line_has_its_own_report_as_json():
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    seen = json.dumps({**CHAT, "messages": [{"role": "user", "content": [image]}]})
    made = run(
        "convert", "-", "--to", "deepseek/deepseek-v4-pro", "--report", "json", stdin=f"{LINE}\n{seen}\n{LINE}\n"
    )
    reports = [json.loads(line) for line in made.err.splitlines()]
    assert [report["line"] for report in reports] == [2]
    assert reports[0]["changes"][0]["code"] == "media_omitted"


def test_an_interrupted_run_resumes_where_it_stopped(tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    lines = numbered(2500).splitlines(keepends=True)
    many.write_text("".join([*lines[:2200], "{bad\n", *lines[2200:]]))
    options = ["--to", "openai/gpt-5.4", "--bad-lines", "stop", "-o", out]
    first = run("convert", many, *options)
    assert first.status == 1
    part, progress = tmp_path / ".out.jsonl.part", tmp_path / ".out.jsonl.progress"
    assert given(part.read_text()) == [str(number) for number in range(2200)]
    assert not out.exists()
    with part.open("ab") as file:
        file.write(b'{"half a line')
    recorded = json.loads(progress.read_text())
    assert recorded["summary"]["lines"] == 2201
    assert run("convert", many, *options, "--resume").status == 1
    assert given(out.read_text()) == [str(number) for number in range(2500)]
    entries = [json.loads(line) for line in (tmp_path / "out.jsonl.bad.jsonl").read_text().splitlines()]
    assert [(entry["line"], entry["raw"]) for entry in entries] == [(2201, "{bad")]
    assert not part.exists()
    assert not progress.exists()
    again = run("convert", many, *options, "--resume")
    assert (again.status, "out.jsonl is complete" in again.err) == (1, True)


def test_a_run_does_not_resume_that_of_another_target(tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    many.write_text(numbered(5) + "{bad\n" + numbered(5))
    assert run("convert", many, "--to", "openai/gpt-5.4", "--bad-lines", "stop", "-o", out).status == 1
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = run("convert", many, "--to", "gemini-3.5-flash", "--bad-lines", "stop", "-o", out, "--resume")
    assert other.status == 2
    assert "openai/gpt-5.4" in other.err
    assert "google/gemini-3.5-flash" in other.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_input_that_has_changed_is_converted_from_its_start(tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    many.write_text(numbered(5) + "{bad\n" + numbered(5))
    options = ["--to", "openai/gpt-5.4", "--bad-lines", "stop", "-o", out, "--resume"]
    assert run("convert", many, *options).status == 1
    many.write_text(numbered(9))
    assert run("convert", many, *options).status == 0
    assert given(out.read_text()) == [str(number) for number in range(9)]


def test_a_terminal_shows_the_progress(tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    many.write_text(numbered(4000))
    terminal = Terminal("convert", many, "--to", "openai/gpt-5.4", "-o", out, term="xterm")
    try:
        terminal.wait_for(r"\d+%.*[\d,]+ rows, [\d,]+ messages, [\d,]+/s.*\d:\d\d:\d\d")
        terminal.wait_for("4,000 conversations converted")
    finally:
        terminal.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="of peak memory (no /proc)")
@pytest.mark.parametrize("size", [8, pytest.param(48, marks=pytest.mark.proof)])
@pytest.mark.parametrize("jobs", tiers([2], [1]))
def test_memory_does_not_grow_with_the_file(jobs, size, tmp_path):
    few, many = peak_memory(tmp_path, 1_000, jobs), peak_memory(tmp_path, 1_000 + 250 * size, jobs)
    assert many - few < 4_000, f"{few} KB for 4 MB of conversations, {many} KB for {4 + size} MB"


def peak_memory(folder, count: int, jobs: int) -> int:
    """Convert so many conversations and give the most memory it took, in KB."""
    file = folder / "some.jsonl"
    file.write_text((LINE.replace("hello", "hello " * 650) + "\n") * count)
    arguments = ["convert", str(file), "--to", "anthropic/claude-opus-4-8", "-o", f"{file}.out", "--report", "none"]
    arguments += ["--jobs", str(jobs)]
    # The peak of this program alone: that of `getrusage` begins with its parent's.
    program = (
        "from segue.cli.entry import main\n"
        "try: main()\n"
        "finally: print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert (folder / "some.jsonl.out").read_bytes().count(b"\n") == count
    return int(done.stdout)
