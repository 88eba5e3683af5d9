"""`read_history`, `write_history`, `save_history`, `find_sessions`: what they take, and what they never do."""

from __future__ import annotations

import json
import stat
from dataclasses import replace as with_fields
from pathlib import Path

import pytest
from msgspec.structs import replace

from segue import (
    Context,
    Format,
    ImageContent,
    Loss,
    Policy,
    TextContent,
    UserMessage,
    find_sessions,
    read_history,
    register_format,
    save_history,
    write_history,
)
from segue.errors import (
    EmptyConversation,
    HistoryExists,
    LoadError,
    ProjectionRefused,
    SettingsError,
    UnknownFormat,
)
from segue.histories import places, registry
from segue.histories.api import as_history
from segue.histories.kit.history import WrittenFile
from segue.histories.registry import FORMATS, get_format
from segue.projection.report import ChangeCode

CLAUDE = "claude-code"
SONNET = "anthropic/claude-sonnet-4-5"
SAMPLES = {sample.name: sample.source for sample in get_format(CLAUDE).samples()}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def store(home: Path, name: str) -> Path:
    source = SAMPLES[name]
    path = home / ".claude" / source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.data or b"")
    return path


def test_a_session_is_read_from_a_path_bytes_a_folder_or_its_name_on_this_machine(home):
    path = store(home, "parallel")
    wanted = read_history(path).context
    assert len(wanted.messages) == 8
    session = next(find_sessions())
    for source in (
        str(path), path.read_bytes(), path.parent, home / ".claude", "claude-code:last", f"claude-code:{path.stem}",
        f"claude-code:{path.stem[:9]}", session,
    ):  # fmt: skip
        assert read_history(source).context == wanted


def test_reading_changes_nothing(home):
    path = store(home, "parallel")
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(home.rglob("*"))
    history = read_history(path)
    write_history(history, format=CLAUDE, model=SONNET)
    list(find_sessions())
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(home.rglob("*"))) == before


def test_sessions_are_listed_with_what_people_look_for(home):
    store(home, "parallel")
    (home / ".claude/projects/-home-user-project/empty.jsonl").write_bytes(b"")
    (session,) = find_sessions(formats=[CLAUDE])
    assert session.title == "Read both files."
    assert session.cwd == "/home/user/project"
    assert session.models == ("claude-sonnet-4-5",)
    assert (session.messages, session.tokens) == (7, 66)
    assert (session.updated or 0) - (session.created or 0) == 7000
    assert list(find_sessions(cwd="/elsewhere")) == []


def test_the_folder_of_an_agent_can_be_moved_by_its_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    store(tmp_path, "branched")
    assert [session.title for session in find_sessions(formats=[CLAUDE])] == ["First question."]


def test_a_new_session_has_a_fresh_id_mode_600_and_is_never_written_over(home):
    path = store(home, "parallel")
    written = write_history(read_history(path), format=CLAUDE, model=SONNET)
    (new,) = save_history(written)
    assert new.parent == path.parent
    assert new.stem == written.id != path.stem
    assert written.resume == ("claude", "-r", written.id)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert [each.name for each in new.parent.iterdir() if each.name.endswith(".tmp")] == []
    assert save_history(written) == (new,)  # the same bytes: nothing to do
    new.write_bytes(new.read_bytes() + b"{}\n")
    grown = new.read_bytes()
    with pytest.raises(HistoryExists, match="nothing was written") as caught:
        save_history(written)
    assert (new.read_bytes(), caught.value.file) == (grown, str(new))
    other = write_history(read_history(path), format=CLAUDE, model=SONNET, session_id="my-own")
    assert save_history(other)[0].stem == "my-own"


def test_a_folder_of_ones_own_gets_all_files_side_by_side(home, tmp_path):
    written = write_history(read_history(store(home, "parallel")), format=CLAUDE, model=SONNET)
    assert save_history(written, tmp_path / "out") == (tmp_path / "out" / f"{written.id}.jsonl",)


def test_a_name_that_leads_out_of_the_folder_is_not_written(home, tmp_path):
    written = write_history(read_history(store(home, "parallel")), format=CLAUDE, model=SONNET)
    bad = replace(written, files=(WrittenFile(name="../../evil", data=b""),))
    with pytest.raises(SettingsError, match="leads out of the folder"):
        save_history(bad)
    assert not list(tmp_path.rglob("evil"))


BAD = {
    "no such file": ("/no/such/file", LoadError, "cannot read the file"),
    "no such session": ("claude-code:nothing", LoadError, "no sessions of Claude Code were found"),
    "an empty file": (b"", LoadError, "the file is empty"),
    "another kind of file": (b"\x89PNG", LoadError, "not valid"),
    "another value": (42, UnknownFormat, "not recognised"),
}


@pytest.mark.parametrize(("source", "error", "message"), BAD.values(), ids=BAD.keys())
def test_a_source_that_cannot_be_read_gives_one_clear_error(home, source, error, message):
    with pytest.raises(error, match=message):
        read_history(source)


def test_views_and_formats_that_do_not_exist_are_named():
    with pytest.raises(SettingsError, match="view='all' is unknown"):
        read_history(SAMPLES["parallel"], view="all")
    with pytest.raises(LoadError, match="no branch 'x'"):
        read_history(SAMPLES["parallel"], view="branch=x", format=CLAUDE)
    with pytest.raises(UnknownFormat, match="did you mean claude-code"):
        read_history(b"", format="claude-cod")


def test_an_agent_needs_a_model_unless_the_history_names_one_of_its_own():
    context = Context().add(UserMessage.of("hi"))
    with pytest.raises(SettingsError, match="needs model="):
        write_history(context, format=CLAUDE)
    assert write_history(read_history(SAMPLES["parallel"]), format=CLAUDE).files


def test_a_history_without_content_is_not_written():
    with pytest.raises(EmptyConversation):
        write_history(Context(), format=CLAUDE, model=SONNET)


def test_the_policy_can_refuse_what_writing_would_lose():
    context = replace(Context().add(UserMessage.of("hi")), system_prompt="Be brief.")
    written = write_history(context, format=CLAUDE, model=SONNET)
    assert [change.code for change in written.report.changes if change.loss == Loss.CONTENT] == [
        ChangeCode.INSTRUCTIONS_LEFT_OUT
    ]
    with pytest.raises(ProjectionRefused):
        write_history(context, format=CLAUDE, model=SONNET, policy=Policy(refuse=frozenset({Loss.CONTENT})))


def test_a_history_without_times_is_dated_now_and_one_with_times_is_not():
    context = Context().add(UserMessage.of("hi")).add(UserMessage.of("there"))
    now = 1_800_000_000_000
    for name, model in ((CLAUDE, SONNET), ("codex", "openai/gpt-5.4"), ("pi", SONNET), ("opencode", SONNET)):
        written = write_history(context, format=name, model=model, now=now)
        messages = read_history(written.files[0].data).context.messages
        times = [message.timestamp for message in messages if isinstance(message, UserMessage)]
        assert len(times) == 2, name
        assert all(time is not None and now <= time <= now + 10 for time in times), name
    one, same, other = (write_history(context, format=CLAUDE, model=SONNET, now=time) for time in (now, now, now + 9))
    assert one == same
    assert one.id != other.id
    later = replace(context, messages=(UserMessage.of("hi", timestamp=1_700_000_000_000),))
    (file,) = write_history(later, format=CLAUDE, model=SONNET, now=now).files
    assert read_history(file.data).created == 1_700_000_000_000


def test_a_stored_conversation_keeps_title_folder_and_times():
    history = read_history(SAMPLES["parallel"])
    again = as_history(history.context)
    for name in ("title", "cwd", "created", "updated"):
        assert getattr(again, name) == getattr(history, name) is not None


def test_records_are_counted_and_kept_only_if_asked_for():
    history = read_history(SAMPLES["parallel"])
    assert [(record.kind, record.line, record.data) for record in history.records] == [("mode", 1, None)]
    assert [change.detail for change in history.report.of(ChangeCode.RECORD_LEFT_OUT)] == [
        "1 record, 82 bytes, first in line 1"
    ]
    kept = read_history(SAMPLES["parallel"], keep_records=True)
    assert kept.records[0].data == {
        "type": "mode", "mode": "normal", "sessionId": "11111111-1111-4111-8111-111111111111"
    }  # fmt: skip


def test_a_format_of_ones_own_is_registered_and_used(monkeypatch):
    monkeypatch.setattr(registry.FORMATS, "records", dict(registry.FORMATS.records))
    claude = get_format(CLAUDE)
    own = with_fields(claude, name="my-format", title="Mine")
    register_format(own)
    register_format(own)
    assert FORMATS["my-format"] is own
    assert read_history(SAMPLES["parallel"]).origin.format == CLAUDE  # what its own reader says
    with pytest.raises(SettingsError, match="taken by segue itself"):
        register_format(with_fields(claude, title="Another"))
    with pytest.raises(SettingsError, match=r"takes a segue\.Format"):
        register_format("my-format")  # type: ignore[arg-type]
    assert isinstance(own, Format)


def test_files_beside_a_session_are_read_only_inside_of_its_folder(home):
    from segue.histories.places import DiskFiles

    (home / "secret.txt").write_text("secret")
    (home / "agent").mkdir()
    (home / "agent/inside.txt").write_text("inside")
    (home / "agent/link.txt").symlink_to(home / "secret.txt")
    files = DiskFiles(home / "agent")
    assert files.read("inside.txt") == b"inside"
    for name in ("../secret.txt", str(home / "secret.txt"), "link.txt", "", "x\0y", "no.txt"):
        assert files.read(name) is None
    assert files.find("../*") == []


BROKEN = {
    "a path": ImageContent(url="images/dot.png"),
    "a path of a file": ImageContent(url="file:///home/ann/dot.png"),
    "no base64": ImageContent(data="!", mime_type="image/png"),
    "a broken data URL": ImageContent(url="data:image/png;base64,!"),
}


def target_of(name: str) -> str:
    example = FORMATS[name].example
    assert example is not None
    return example.full_name()


@pytest.mark.parametrize("name", [name for name, record in FORMATS.items() if record.write is not None])
@pytest.mark.parametrize("image", BROKEN.values(), ids=BROKEN)
def test_media_that_no_provider_can_read_are_replaced_and_reported(name, image):
    context = Context(messages=(UserMessage(content=(TextContent(text="Look:"), image)),))
    written = write_history(context, format=name, model=target_of(name))
    (change,) = written.report.of(ChangeCode.MEDIA_UNREACHABLE)
    assert (change.path, change.loss) == (("messages", 0, "content", 1), Loss.CONTENT)
    assert b"image omitted" in b"".join(file.data for file in written.files)


def test_the_policy_supplies_media_that_no_provider_can_read():
    context = Context(messages=(UserMessage(content=(TextContent(text="Look:"), BROKEN["a path"])),))
    policy = Policy(media={"images/dot.png": ImageContent(data="iVBORw0KGgo=", mime_type="image/png")})
    written = write_history(context, format=CLAUDE, model=SONNET, policy=policy)
    assert written.report.of(ChangeCode.MEDIA_UNREACHABLE) == ()
    assert b"iVBORw0KGgo=" in written.files[0].data


FILES = [
    (name, sample)
    for name in FORMATS
    for sample in FORMATS[name].samples()
    if sample.source.data is not None
    if not sample.source.neighbours.find("*events/*")  # a folder is no file that an editor saves
]


@pytest.mark.parametrize(("name", "sample"), FILES, ids=[f"{name}: {sample.name}" for name, sample in FILES])
def test_a_file_that_an_editor_saved_in_its_own_way_is_read_the_same(name, sample):
    data = sample.source.data
    wanted = read_history(data, format=name)
    text = data.decode()
    forms = {
        "with a mark": b"\xef\xbb\xbf" + data,
        "with carriage returns": data.replace(b"\n", b"\r\n"),
        "with blank lines": b"\n" + data + b"\n  \n",
        "in UTF-16": b"\xff\xfe" + text.encode("utf-16-le"),
        "in UTF-16, the other way": b"\xfe\xff" + text.encode("utf-16-be"),
    }
    for form in forms.values():
        history = read_history(form, format=name)
        assert [message.content for message in history.context.messages] == [
            message.content for message in wanted.context.messages
        ]
        assert [change.code for change in history.report.changes] == [change.code for change in wanted.report.changes]


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "pi", "copilot-cli", "qwen-code"])
def test_what_is_written_has_the_id_that_the_program_knows(name):
    written = write_history(read_history(SAMPLES["parallel"]), format=name, model=get_format(name).example)
    assert read_history(written.files[0].data).origin.id == written.id
    assert written.id in (*written.resume, *written.files[0].name.split("/"))


def test_a_list_reads_on_to_the_first_prompt_of_a_session(tmp_path):
    """The instructions of Codex alone are longer than what is read of most files."""
    stamp = "2026-11-18T10:00:00.000Z"
    meta = {"id": "11111111-1111-4111-8111-111111111111", "cwd": "/p", "instructions": "x" * 100_000}
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Count the lines."}]}
    lines = [
        {"timestamp": stamp, "type": "session_meta", "payload": meta},
        {"timestamp": stamp, "type": "turn_context", "payload": {"model": "gpt-5.4", "cwd": "/p"}},
        {"timestamp": stamp, "type": "response_item", "payload": prompt},
        {"timestamp": stamp, "type": "event_msg", "payload": {"type": "other", "text": "y" * 100_000}},
    ]
    path = tmp_path / "sessions" / "2026" / "11" / "18" / f"rollout-2026-11-18T10-00-00-{meta['id']}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = places.list_folder(tmp_path, [get_format("codex")])
    assert (session.title, session.models) == ("Count the lines.", ("gpt-5.4",))


def test_the_project_of_a_gemini_session_is_listed(tmp_path):
    head = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-11-18T10:00:00Z", "kind": "main"}
    asked = {"id": "m1", "timestamp": "2026-11-18T10:00:01Z", "type": "user", "content": [{"text": "Count it."}]}
    for name in ("noted", "listed"):
        chats = tmp_path / "tmp" / name / "chats"
        chats.mkdir(parents=True)
        (chats / "session-2026-11-18T10-00-s1.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(asked)}\n")
    (tmp_path / "tmp" / "noted" / ".project_root").write_text("/home/ann/noted\n")
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {"/home/ann/listed": "listed"}}))
    found = places.list_folder(tmp_path, [get_format("gemini-cli")])
    assert {session.cwd for session in found} == {"/home/ann/noted", "/home/ann/listed"}
