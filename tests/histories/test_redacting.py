"""No secret survives in a redacted output, wherever it was in a session, and everything else is equal."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from foundation.planted_secrets import BY_KIND, IN_TEXT
from property_testing import tiers
from segue import read_history, write_history
from segue.conversation.content import FileContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.conversation.pages import PAGES
from segue.conversation.stored import dump
from segue.errors import SegueError
from segue.foundation.redaction import Redactor
from segue.histories.kit.history import Branch, Child, History, HistoryOrigin
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.tables import MemoryDatabase
from segue.histories.reading import OpenedDocument
from segue.histories.redacting import redact, redact_document
from segue.histories.registry import FORMATS

SECRETS = [(kind, secret) for kind, secrets in BY_KIND.items() for secret in secrets]
WRITTEN = [name for name, record in FORMATS.items() if record.write is not None]
SAMPLES = [(name, at) for name in FORMATS for at in range(len(FORMATS[name].samples()))]
ALL = "\n".join(secret for _, secret in SECRETS)
"""A text with every secret."""
FIELDS = ("cwd", "title", "file_path", "path", "directory", "url", "command", "filename", "summary")


def history_with(secret: str, folder: str) -> History:
    """Make a history with a text at every place where a person, a model, a tool or a program writes one."""
    call = ToolCall(id="call_1", name="read", arguments={"file": f"/srv/{secret}", "deep": [{"x": f"a {secret} b"}]})
    messages = (
        UserMessage(content=(TextContent(text=f"Use {secret} here."),), extra={"agent": {"line": f"x {secret}"}}),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="Plain.", thinking_signature="c2lnbmF0dXJl"),
                TextContent(text=f"I saw {secret}.", extra={"codex": {"note": secret}}),
                call,
            ),
            protocol="anthropic-messages",
            provider="anthropic",
            model="claude-opus-4-8",
            error_message=f"refused {secret}",
        ),
        ToolResultMessage(
            tool_call_id="call_1",
            tool_name="read",
            content=(
                TextContent(text=f"line\n{secret}\nline"),
                FileContent(url=f"file:///x/{secret}", name=f"{secret}.txt"),
            ),
            details={"stdout": f"out {secret}"},
        ),
    )  # fmt: skip
    context = Context(
        system_prompt=f"Never print {secret}", messages=messages, extra={"history": {"title": f"T {secret}"}}
    )
    return History(
        context=context,
        origin=HistoryOrigin(format="claude-code", id="s1", path=f"{folder}/{secret}.jsonl"),
        title=f"About {secret}",
        cwd=f"{folder}/{secret}",
        branches=(Branch(id="b", messages=1, text=f"b {secret}"),),
        children=(Child(id="c", title=f"c {secret}", path=f"/x/{secret}"),),
    )


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_a_secret_is_replaced_at_every_place_and_everything_else_is_equal(kind, secret):
    redactor = Redactor()
    redacted = redact(history_with(secret, "/home/alice"), redactor)
    assert redacted == history_with(f"[redacted: {kind}]", "/home/[redacted]")
    assert redactor.counts[kind] >= 19
    assert redactor.counts["home-folder"] == 2
    assert redact(redacted, again := Redactor()) is redacted
    assert not again.counts


@pytest.mark.parametrize(("around", "secret"), IN_TEXT.values(), ids=IN_TEXT.keys())
def test_a_secret_that_a_text_shows_is_replaced_where_nothing_shows_it(around, secret):
    history = history_with("x", "/srv")
    shown = UserMessage.of(around.format(secret))
    hidden = UserMessage.of(f"a/{secret}/b")
    context = replace(history.context, messages=(hidden, *history.context.messages, shown))
    redacted = redact(replace(history, context=context), Redactor())
    kept = len(secret) < 12  # a short one may be a word
    assert (secret in msgspec.json.encode(redacted).decode()) is kept
    assert redacted.context.messages[1:-1] == history.context.messages


def planted(value: Any, words: str, *, field: str = "") -> Any:
    """Add words to every text of a JSON value: what has blanks, and what is a path, a title or a command."""
    if isinstance(value, str):
        if value[:1] in "[{" and value[-1:] in "]}":  # JSON in JSON
            try:
                return msgspec.json.encode(planted(msgspec.json.decode(value), words)).decode()
            except msgspec.DecodeError:
                return value
        if value.startswith("data:"):  # a picture has no words
            return value
        return f"{value}\n{words}" if " " in value.strip() or (field in FIELDS and value) else value
    if isinstance(value, list):
        return [planted(each, words, field=field) for each in value]
    return {key: planted(each, words, field=key) for key, each in value.items()} if isinstance(value, dict) else value


def planted_data(data: bytes, words: str) -> bytes:
    """Add words to every text of a file."""
    try:
        return msgspec.json.encode(planted(msgspec.json.decode(data), words))
    except msgspec.DecodeError:
        pass
    lines = data.split(b"\n")
    try:
        return b"\n".join(
            msgspec.json.encode(planted(msgspec.json.decode(line), words)) if line else line for line in lines
        )
    except msgspec.DecodeError:
        return data + f"\n{words}\n".encode()


def planted_source(source: Source, words: str) -> Source:
    """Add words to every text of a sample."""
    if isinstance(source.database, MemoryDatabase):
        made = {table: [planted(row, words) for row in rows] for table, rows in source.database.content.items()}
        return Source(database=MemoryDatabase(made), name=source.name)
    beside = source.neighbours
    assert isinstance(beside, MemoryFiles)
    return Source(data=planted_data(source.data or b"", words), name=source.name, neighbours=beside)


def outputs(history: History, formats: list[str]) -> dict[str, bytes]:
    """Write a history as it can leave the machine: as pages, as it is stored, and in some formats."""
    made = {name: page(history.context, title=history.title or "").encode() for name, page in PAGES.items()}
    made["stored"] = dump(history.context)
    made["all"] = msgspec.json.encode(history)
    for name in formats:
        try:
            written = write_history(history, format=name, model=FORMATS[name].example, now=0)
        except SegueError:
            continue
        made[name] = msgspec.json.encode([[file.name, file.data.decode("utf-8", "replace")] for file in written.files])
    return made


@pytest.mark.parametrize("every", tiers([7], [1]))
@pytest.mark.parametrize(("name", "at"), SAMPLES)
def test_no_secret_of_a_session_survives_in_any_output(name, at, every):
    source = planted_source(FORMATS[name].samples()[at].source, ALL)
    try:
        history = read_history(source, format=name)
    except SegueError:
        return
    if "ghp_" not in msgspec.json.encode(history).decode():
        return
    redactor = Redactor()
    redacted = redact(history, redactor)
    assert set(BY_KIND) <= {*redactor.counts, "jwt"}
    for where, data in outputs(redacted, WRITTEN[SAMPLES.index((name, at)) % every :: every]).items():
        found = [
            secret for _, secret in SECRETS if secret.encode() in data or msgspec.json.encode(secret)[1:-1] in data
        ]
        assert not found, (where, found)


@pytest.mark.parametrize(("name", "at"), SAMPLES)
def test_a_session_without_secrets_is_the_same_object(name, at):
    history = read_history(FORMATS[name].samples()[at].source, format=name)
    assert redact(history, redactor := Redactor()) is history
    assert not redactor.counts


def test_the_samples_are_planted():
    counted = 0
    for name, at in SAMPLES:
        try:
            history = read_history(planted_source(FORMATS[name].samples()[at].source, ALL), format=name)
        except SegueError:
            continue
        counted += "ghp_" in msgspec.json.encode(history).decode()
    assert counted > len(SAMPLES) * 3 // 4


def test_a_signature_goes_with_the_text_that_it_signed():
    secret = BY_KIND["npm-token"][0]
    thinking = ThinkingContent(thinking=f"I have {secret}", thinking_signature="c2ln")
    other = ThinkingContent(thinking="I have nothing", thinking_signature="c2ln")
    message = AssistantMessage(content=(thinking, other), model="m")
    redacted = redact(message, Redactor()).content
    assert redacted == (ThinkingContent(thinking="I have [redacted: npm-token]"), other)


def test_a_text_file_is_redacted_and_other_data_stays():
    import base64

    secret = BY_KIND["npm-token"][0]
    data = base64.b64encode(f"x={secret}".encode()).decode()
    text = FileContent(data=data, mime_type="text/plain")
    other = FileContent(data=data, mime_type="application/pdf")
    message = redact(UserMessage(content=(text, other)), Redactor())
    assert base64.b64decode(message.content[0].data or "") == b"x=[redacted: npm-token]"  # pyright: ignore[reportAttributeAccessIssue]
    assert message.content[1] is other


def test_a_document_has_neither_the_bytes_nor_the_body_that_it_was_read_from():
    secret = BY_KIND["npm-token"][0]
    prompt = Prompt(context=Context(messages=(UserMessage.of(secret),)))
    body = {"messages": [{"role": "user", "content": secret}]}
    document = OpenedDocument(prompt, "openai-chat", body, data=secret.encode())
    assert secret not in str(redact_document(document, Redactor()))
