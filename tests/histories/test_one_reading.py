"""The law of reading: the same data gives the same history, whatever it is opened with.

Every sample of every format, and every request of every protocol, goes through the library (by path, by its bytes, as
parsed JSON), the commands, a row of a corpus and the inspector.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner

from histories.truth import SHARED, needs_samples
from segue import Context, UnknownFormat, read_history, read_session, recognise
from segue.cli import inputs
from segue.cli.program import program
from segue.corpus.rows import Reader
from segue.errors import SegueError
from segue.histories.kit.evidence import Form
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.opening import How, open_source
from segue.histories.reading import HISTORY
from segue.histories.recognition import _read_index, is_plain_request
from segue.histories.registry import FORMATS, get_format, register_format
from segue.inspector import inspection
from segue.projection.report import ChangeCode, Loss
from segue.protocols.registry import PROTOCOLS

TARGET = "anthropic/claude-sonnet-4-5"


class Stored(NamedTuple):
    """A sample as files: its own, and those beside it."""

    name: str
    data: bytes
    beside: dict[str, bytes]

    def write(self, folder: Path) -> Path:
        for name, data in {**self.beside, self.name: self.data}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder / self.name

    @property
    def parsed(self) -> Any:
        try:
            return json.loads(self.data)
        except ValueError:
            return [json.loads(line) for line in self.data.splitlines() if line.strip()]


def stored(source: Source) -> Stored:
    assert source.data is not None
    beside = dict(source.neighbours.files) if isinstance(source.neighbours, MemoryFiles) else {}
    return Stored(source.name or "sample.json", source.data, beside)


HISTORIES = {
    f"{name}, {sample.name}": stored(sample.source)
    for name, record in FORMATS.items()
    for sample in record.samples()
    if sample.source.data is not None
}
REQUESTS = {
    f"{name}, {sample.name}": Stored("request.json", msgspec.json.encode(sample.request), {})
    for name, record in PROTOCOLS.items()
    for sample in record.samples()
}
SAMPLES = HISTORIES | REQUESTS


def of_each(samples: dict[str, Stored]) -> Any:
    return pytest.mark.parametrize("sample", samples.values(), ids=samples.keys())


# -- the entries -------------------------------------------------------------------------------------------------------


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(program, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.stdout


def imported(path: Path) -> Context:
    out = path.with_name(f"{path.name}.imported.jsonl")
    invoke("import", path, "-o", out, "--report", "none")
    return read_session(out)


ENTRIES: dict[str, Callable[[Stored, Path], Context]] = {
    "read_history, by path": lambda sample, path: read_history(path).context,
    "read_history, by bytes": lambda sample, path: read_history(sample.data).context,
    "read_history, as parsed JSON": lambda sample, path: read_history(sample.parsed).context,
    "segue import": lambda sample, path: imported(path),
    "a file of a corpus": lambda sample, path: Reader().read_whole(sample.data, path.name).document.prompt.context,
    "the inspector": lambda sample, path: (
        inspection.open_conversation(sample.data, path.name, None).document.prompt.context
    ),
}
"""Entries that give the conversation."""


def readings(sample: Stored, folder: Path) -> dict[str, Context]:
    """Read a sample through every entry; what needs the files beside it is read by its path only."""
    path = sample.write(folder)
    alone = sample.name.endswith(".md") or bool(sample.beside)
    found: dict[str, Context] = {}
    for name, entry in ENTRIES.items():
        if alone and name not in ("read_history, by path", "segue import"):
            continue
        found[name] = entry(sample, path)
    if not alone and isinstance(sample.parsed, dict):
        found["a row of a corpus"] = Reader().read_line(sample.data).document.prompt.context
    return found


def texts(context: Context) -> str:
    """Give all of a conversation but for what a file says about itself."""
    extra = {key: value for key, value in (context.extra or {}).items() if key != HISTORY}
    return repr((context.system_prompt, context.messages, context.tools, extra))


@of_each(SAMPLES)
def test_every_entry_gives_the_same_history(sample, tmp_path):
    found = {name: texts(context) for name, context in readings(sample, tmp_path).items()}
    expected = found["read_history, by path"]
    assert {name for name, context in found.items() if context != expected} == set()


def test_the_law_finds_an_entry_that_reads_in_another_order(tmp_path, monkeypatch):
    def requests_first(source: object, how: How, *, name: str = "") -> Any:
        return open_source(source, how._replace(protocol="google-genai"), name=name)

    monkeypatch.setattr(inspection, "open_source", requests_first)
    found = {name: texts(context) for name, context in readings(HISTORIES["pydantic-ai, messages"], tmp_path).items()}
    assert {name for name, context in found.items() if context != found["read_history, by path"]} == {"the inspector"}


@of_each(HISTORIES)
def test_every_command_reads_the_same_history(sample, tmp_path, monkeypatch):
    read: list[str] = []

    def recorded(source: object, how: How, *, name: str = "") -> Any:
        opened = open_source(source, how, name=name)
        assert opened.document is not None
        read.append(texts(opened.document.prompt.context))
        return opened

    monkeypatch.setattr(inputs, "open_source", recorded)
    path = sample.write(tmp_path)
    invoke("show", path)
    invoke("convert", path, "--to", TARGET, "--report", "none")
    invoke("check", path, "--for", TARGET)
    invoke("handover", path, "--to", "pi", "--cwd", "/p", "-o", tmp_path / "handed", "--report", "none")
    assert read == [texts(read_history(path).context)] * 4


@of_each({name: HISTORIES[name] for name in ("claude-code, parallel", "pydantic-ai, messages", "chatgpt, picture")})
def test_the_commands_do_the_same_with_a_source_as_with_its_import(sample, tmp_path):
    path = sample.write(tmp_path)
    session = path.with_name("imported.jsonl")
    invoke("import", path, "-o", session, "--report", "none")
    assert invoke("show", path) == invoke("show", session)
    assert invoke("convert", path, "--to", TARGET, "--report", "none") == invoke(
        "convert", session, "--to", TARGET, "--report", "none"
    )
    found, again = (
        [
            (each["code"], each["path"], each["message"])
            for each in json.loads(invoke("check", given, "--for", TARGET, "--format", "json", "--all"))
        ]
        for given in (path, session)
    )
    assert found == again
    for given, folder in ((path, "one"), (session, "other")):
        invoke("handover", given, "--to", "pi", "--cwd", "/p", "-o", tmp_path / folder, "--report", "none")
    (one,), (other,) = (list((tmp_path / folder).glob("*.jsonl")) for folder in ("one", "other"))
    assert one.read_text().splitlines()[1:] == other.read_text().splitlines()[1:]


@of_each({name: sample for name, sample in SAMPLES.items() if not sample.name.endswith(".md")})
def test_a_plain_request_is_recognised_as_nothing_else(sample):
    value = sample.parsed
    if is_plain_request(value):
        assert [claim.kind for claim in recognise(value)] == ["request"]


# -- what was taken for something else ---------------------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
WITH_IDS = [
    {"id": "m1", "role": "user", "content": "Read a."},
    {"id": "m2", "role": "assistant", "content": "", "tool_calls": [CALL], "from_history": False},
    {"id": "m3", "role": "tool", "tool_call_id": "c1", "content": "alpha", "tool_call_error": False},
]
SWE_AGENT = {
    "trajectory": [{"action": "ls", "observation": "a", "response": "I look.", "thought": "look"}],
    "history": [{"role": "user", "content": "Fix it.", "agent": "main"}],
    "info": {"exit_status": "submitted"},
}
COPILOT_CLI = b"\n".join(
    msgspec.json.encode(line)
    for line in (
        {"type": "session.start", "data": {"producer": "copilot-agent"}, "id": "e1", "parentId": None},
        {"type": "user.message", "data": {"content": "Hello"}, "id": "e2", "parentId": "e1"},
    )
)
CONTINUE = {"sessionId": "s", "title": "t", "history": [{"message": {"role": "user", "content": "Hi"}}]}
CONVERTED = [
    {"role": "user", "content": "Read a."},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "I read it.", "signature": "c2ln"}],
        "tool_calls": [CALL],
    },
]
TRAIL = (
    b'{"type": "session", "schema_version": "0.1.0", "id": "s", "session_uid": "u", "cwd": "/p"}\n'
    b'{"type": "user_message", "id": "1", "payload": {"text": "Why?"}}\n'
)


def test_a_file_of_agent_trail_is_no_session_of_pi():
    assert read_history(TRAIL).origin.format == "agent-trail"


UNREADABLE = {
    "memories of Mem0 are no conversation": ({"results": [{"id": "1", "memory": "Ann likes lamps."}]}, "Mem0"),
    "a session of Agno is no request": ({"session_id": "s", "runs": [{"messages": WITH_IDS}]}, "Agno"),
}


@pytest.mark.parametrize(("source", "title"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_data_that_is_not_read_is_named_and_refused(source, title, tmp_path):
    with pytest.raises(UnknownFormat, match=f"looks like .*{title}"):
        read_history(source)
    path = tmp_path / "file.jsonl"
    path.write_bytes(source if isinstance(source, bytes) else msgspec.json.encode(source))
    done = CliRunner().invoke(program, ["import", str(path)])
    assert done.exit_code != 0
    assert title in done.output + str(done.exception)


def test_data_that_segue_does_not_read_is_that_of_a_package_which_reads_it(monkeypatch):
    monkeypatch.setattr(FORMATS, "records", dict(FORMATS.records))
    forms = (Form(where="object", needs=("runs[].messages", "session_id")),)
    register_format(with_fields(get_format("swe-agent"), name="my-agno", forms=forms))
    agno = {"session_id": "s", "runs": [{"messages": WITH_IDS}]}
    assert [claim.format for claim in recognise(agno)] == ["my-agno"]
    monkeypatch.undo()
    _read_index.cache_clear()


@pytest.mark.parametrize("column", ["provider", "finished_at"])
def test_a_database_of_crush_is_not_one_of_goose(column, tmp_path):
    import sqlite3
    from contextlib import closing

    path = tmp_path / "crush.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE messages (id, session_id, role, parts, model, {column})")
        database.execute("CREATE TABLE sessions (id, title)")
        database.execute("CREATE TABLE files (id, path)")
    assert [claim.format for claim in recognise(path)] == ["crush"]


def test_a_parsed_session_of_continue_is_not_one_of_open_webui():
    assert [claim.format for claim in recognise(CONTINUE)] == ["continue"]
    assert len(read_history(CONTINUE).context.messages) == 1


def test_a_trajectory_of_swe_agent_is_not_one_of_open_webui():
    assert read_history(SWE_AGENT).origin.format == "swe-agent"


def test_a_log_of_copilot_cli_is_not_one_of_pi():
    assert read_history(COPILOT_CLI).origin.format == "copilot-cli"


def test_messages_with_ids_keep_their_calls():
    history = read_history(WITH_IDS)
    assert history.origin.format == "openai-chat"
    _, answer, result = history.context.messages
    assert answer.content[-1].name == "read"  # type: ignore[union-attr]
    assert result.role == "toolResult"


def test_a_file_that_names_its_format_is_of_that_format():
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}  # as MCP has it
    stored = {"format": "segue/1", "messages": [{"role": "user", "content": [image]}]}
    assert [claim.format for claim in recognise(stored)] == ["segue"]


def test_two_formats_that_cannot_be_told_apart_are_an_error_that_names_both():
    both = {"appName": "a", "userId": "u", "events": [], "schema_version": "ATIF-v1.7", "steps": []}
    with pytest.raises(UnknownFormat, match=r"atif .*or google-adk .*; name its format with format=") as raised:
        read_history(both)
    assert raised.value.suggestions == ("atif", "google-adk")


def test_a_file_without_a_message_is_no_success(tmp_path):
    path = tmp_path / "broken.jsonl"
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/p", "timestamp": "2026-11-15T10:00:00.000Z"}
    path.write_bytes(msgspec.json.encode(header) + b'\n{"type": "message", "mess\n{"broken\n')
    done = CliRunner().invoke(program, ["import", str(path)])
    assert done.exit_code != 0
    assert "no message was read as pi" in done.output + str(done.exception)


ASKED: dict[str, Any] = {"role": "user", "content": "Why is it so?"}
ELSEWHERE: dict[str, tuple[object, str]] = {
    "a prompt beside messages": ({"system_prompt": "Speak in riddles.", "messages": [ASKED]}, "Speak in riddles."),
    "the system of Anthropic": ({"system": "Speak in riddles.", "messages": [ASKED]}, "Speak in riddles."),
    "a prompt beside messages of LangChain": (
        {"system_prompt": "Speak in riddles.", "messages": [{"type": "human", "data": {"content": "Why?"}}]},
        "Speak in riddles.",
    ),
    "a text under the key text": ([{"role": "user", "text": "Where is it?"}], "Where is it?"),
    "a text under the key message": ({"messages": [{"role": "user", "message": "Where is it?"}]}, "Where is it?"),
    "a text under the key value": ([ASKED, {"role": "assistant", "value": "It is here."}], "It is here."),
    "calls beside the blocks of LlamaIndex": (
        [
            {"role": "user", "blocks": [{"block_type": "text", "text": "Read."}], "additional_kwargs": {}},
            {
                "role": "assistant",
                "blocks": [],
                "additional_kwargs": {
                    "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"p": 7}'}}]
                },
            },
        ],
        "'p': 7",
    ),
    "a call of an older LangChain": (
        [
            {"type": "human", "data": {"content": "Read."}},
            {
                "type": "ai",
                "data": {
                    "content": "",
                    "additional_kwargs": {"function_call": {"name": "read", "arguments": '{"p": 7}'}},
                },
            },
        ],
        "'p': 7",
    ),
    "any role of LangChain": (
        [
            {"type": "human", "data": {"content": "Why?"}},
            {"type": "chat", "data": {"role": "critic", "content": "I doubt it."}},
        ],
        "I doubt it.",
    ),
}


@pytest.mark.parametrize(("value", "wanted"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_content_at_a_known_other_place_is_read(value, wanted):
    context = read_history(json.dumps(value).encode()).context
    assert wanted in str((context.system_prompt, [message.content for message in context.messages]))


UNKNOWN_KEYS: dict[str, tuple[object, str | None]] = {
    "a message of Chat": ([ASKED, {"role": "assistant", "answer_text": "Because of the moon."}], "openai-chat"),
    "a row": ({"messages": [ASKED, {"role": "assistant", "says": {"text": "Because of the moon."}}]}, "hf-messages"),
    "a message of LlamaIndex": (
        [
            {"role": "user", "blocks": [{"block_type": "text", "text": "Why?"}], "additional_kwargs": {}},
            {"role": "assistant", "blocks": [], "additional_kwargs": {"says": "Because of the moon."}},
        ],
        None,
    ),
    "a message of LangChain": (
        [
            {"type": "human", "data": {"content": "Why?"}},
            {"type": "ai", "data": {"content": "", "additional_kwargs": {"says": "Because of the moon."}}},
        ],
        None,
    ),
}


@pytest.mark.parametrize(("value", "format_name"), UNKNOWN_KEYS.values(), ids=UNKNOWN_KEYS.keys())
def test_a_message_that_is_empty_because_of_an_unknown_key_is_reported(value, format_name):
    report = read_history(json.dumps(value).encode(), format=format_name).report
    (change,) = report.of(ChangeCode.LINE_UNREADABLE)
    assert (change.path, change.loss) == (("lines", 2), Loss.CONTENT)


# -- the samples of real programs --------------------------------------------------------------------------------------

NO_HISTORY = ("README.md", ".expected.json", ".png", ".txt", ".py", ".yaml", "-shm", "-wal", ".sql")


@needs_samples
def test_every_sample_of_a_program_is_recognised_or_honestly_unknown():
    wrong: dict[str, object] = {}
    for path in sorted(SHARED.rglob("*")):
        if not path.is_file() or path.name.endswith(NO_HISTORY) or "resume" in path.parts:
            continue
        top = path.relative_to(SHARED).parts[0]
        if top == "wild-2":  # each with its reading in test_wild_samples.py
            continue
        try:
            found = [claim.format for claim in recognise(path) if claim.kind == "history"]
            messages = read_history(path).context.messages
        except SegueError:
            continue
        expected = {"langgraph": "langchain", "chatgpt-export": "chatgpt", "claude-ai-export": "claude-ai"}.get(
            top, top
        )
        if top == "wild":
            folder = path.relative_to(SHARED).parts[1]
            names = {"opencode-go": "crush", "kilo-legacy": "roo-code", "entire": "claude-code", "openclaw": "pi"}
            expected = "cline-ui" if path.name == "ui_messages.json" else names.get(folder, folder)
        other = {
            "convert_to_openai": "langchain-openai",
            "model-messages": "vercel-messages",
            "/responses.json": "chat-replies",
        }
        if top in {"langchain", "litellm", "vercel-ui"}:
            expected = next((name for part, name in other.items() if part in str(path)), expected)
        if top == "hf":
            expected = "sharegpt" if "sharegpt" in path.name else "hf-messages"
        if (found and found != [expected]) or not messages:
            wrong[str(path.relative_to(SHARED))] = found
    assert wrong == {}
