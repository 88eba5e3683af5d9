"""A history that does not fit the window of the next model is written with the agent's own record of a compaction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from histories.agent_programs import PROGRAMS, need_program, resume, texts_in
from histories.truth import needs_samples
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.histories.api import read_history, save_history, write_history
from segue.histories.kit.envelope import plain_text
from segue.histories.registry import all_formats
from segue.models.model import Model
from segue.projection.report import ChangeCode
from segue.requests.tokens import estimate_tokens

WRITER = Model("grok-4", "xai", "openai-chat")
TARGETS = {record.name: record.example for record in all_formats() if record.compacts and record.example}
SMALL = 9000


def history(steps: int, last: str = "short") -> Context:
    messages: list[Message] = [UserMessage.of("The task: rename Foo.", timestamp=1_760_000_000_000)]
    for at in range(steps):
        call = ToolCall(id=f"call_{at}", name="look", arguments={"path": f"src/file_{at}.py"})
        messages.append(
            AssistantMessage(
                content=(TextContent(text=f"Step {at}."), call),
                protocol=WRITER.protocol,
                provider=WRITER.provider,
                model=WRITER.id,
                stop_reason="toolUse",  # pyright: ignore[reportArgumentType] - a plain string is allowed
                timestamp=1_760_000_000_000 + 2 * at + 1,
            )
        )
        text = f"line {at} of the file\n" * 20 if at < steps - 1 else last
        messages.append(
            ToolResultMessage(
                tool_call_id=call.id,
                tool_name="look",
                content=(TextContent(text=text),),
                timestamp=1_760_000_000_000 + 2 * at + 2,
            )
        )
    return Context(messages=tuple(messages))


def said(messages: tuple[Message, ...]) -> str:
    return "\n".join(map(plain_text, messages))


def test_these_formats_have_a_record():
    assert TARGETS.keys() >= {"claude-code", "codex", "gemini-cli", "opencode", "pi"}


@pytest.mark.parametrize("name", TARGETS)
def test_the_whole_history_stays_in_the_file_and_what_fits_is_sent(name, tmp_path):
    context = history(120)
    model = TARGETS[name]
    small = Model(model.id, model.provider, model.protocol, context_window=SMALL)
    written = write_history(context, format=name, model=small, cwd="/p")
    (path,) = save_history(written, tmp_path)
    active, full = (read_history(path, format=name, view=view) for view in ("active", "full"))
    sent, kept = said(active.context.messages), said(full.context.messages)
    for at in range(120):
        assert f"Step {at}." in kept
        assert f"line {at} of the file\n" * 20 in kept or at == 119
    assert len(full.context.messages) >= len(context.messages)
    assert "The task: rename Foo." in sent
    assert "(earlier messages omitted here to fit the context window: " in sent
    assert "src/file_79.py" in sent, "a fact of the note"
    assert "Step 119." in sent
    assert "\nStep 9." not in sent.partition("</facts>")[2]
    outside = sent.partition("<excerpt>")[0] + sent.partition("</excerpt>")[2]
    assert "characters omitted" not in outside, "no result is shortened"
    assert len(active.compactions) == 1
    assert len(active.compactions[0].messages) + len(active.context.messages) >= len(context.messages)
    (dropped,) = written.report.of(ChangeCode.TURNS_DROPPED)
    assert dropped.detail.endswith("; they stay in the file, before its compaction")


def test_the_record_has_the_tokens_of_the_whole_session_before_it():
    context, model = history(120), TARGETS["claude-code"]
    small = Model(model.id, model.provider, model.protocol, context_window=SMALL)
    written = write_history(context, format="claude-code", model=small, cwd="/p")
    lines = [json.loads(line) for line in written.files[0].data.splitlines()]
    (boundary,) = [line for line in lines if line.get("subtype") == "compact_boundary"]
    whole = estimate_tokens(context, model)
    assert abs(boundary["compactMetadata"]["preTokens"] - whole) < whole / 20


@pytest.mark.parametrize("name", TARGETS)
def test_a_session_that_fits_has_no_record(name, tmp_path):
    written = write_history(history(5), format=name, model=TARGETS[name], cwd="/p")
    (path,) = save_history(written, tmp_path)
    assert read_history(path, format=name).compactions == ()


@pytest.mark.parametrize("name", TARGETS)
def test_a_single_result_that_does_not_fit_leaves_the_note_and_the_next_prompt(name, tmp_path):
    model = TARGETS[name]
    small = Model(model.id, model.provider, model.protocol, context_window=SMALL)
    written = write_history(history(60, "word " * 9000), format=name, model=small, cwd="/p")
    (path,) = save_history(written, tmp_path)
    active, full = (read_history(path, format=name, view=view) for view in ("active", "full"))
    assert "The task: rename Foo." in said(active.context.messages)
    assert "word " * 9000 in said(full.context.messages)


def with_users(steps: int) -> Context:
    """Every tenth step follows a message of the user."""
    messages = list(history(steps).messages)
    for at in range(steps - steps % 10, 0, -10):
        messages.insert(2 * at + 1, UserMessage.of(f"Wish {at}: keep bar_{at}.", timestamp=1_760_000_000_000 + 2 * at))
    return Context(messages=tuple(messages))


def with_parallel_calls(steps: int) -> Context:
    """Every turn of the assistant has two calls."""
    messages: list[Message] = []
    for message in history(steps).messages:
        messages.append(message)
        if message.role == "assistant":
            (text, call) = message.content
            assert call.kind == "toolCall"
            more = replace(call, id=call.id + "_more", name="list")
            messages[-1] = replace(message, content=(text, call, more))
        elif message.role == "toolResult":
            text = TextContent(text=f"listing {message.tool_call_id} " * 20)
            messages.append(
                replace(message, tool_call_id=message.tool_call_id + "_more", tool_name="list", content=(text,))
            )
    return Context(messages=tuple(messages))


LONG: dict[str, Context] = {
    "steps": history(120),
    "several prompts": with_users(115),
    "parallel calls": with_parallel_calls(60),
    "a result that does not fit": history(60, "word " * 9000),
    "a finished turn": Context(messages=(*history(80).messages, replace(history(1).messages[1], stop_reason="stop"))),
}


def pieces_of(messages: tuple[Message, ...]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        for piece in message.content:
            if piece.kind == "text":
                texts.append(piece.text.strip())
            elif piece.kind == "toolCall":
                texts.append(str(piece.arguments["path"]))
    return texts


@needs_samples
@pytest.mark.proof
@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("name", [name for name in TARGETS if name in PROGRAMS])
def test_the_program_sends_the_note_and_what_follows_and_nothing_before(name, kind, tmp_path: Path):
    need_program(name)
    model = TARGETS[name]
    small = Model(model.id, model.provider, model.protocol, context_window=SMALL)
    folder = tmp_path / "project"  # a folder of its own: tests run side by side
    folder.mkdir()
    (path,) = save_history(write_history(LONG[kind], format=name, model=small, cwd=str(folder)), tmp_path)
    active, full = (read_history(path, format=name, view=view) for view in ("active", "full"))
    request = resume(name, path, folder)["sent"][0]
    sent = texts_in(next(request[key] for key in ("messages", "input", "contents") if key in request))
    whole, end = "\n".join(sent), 0
    kept = pieces_of(active.context.messages)
    for text in kept:
        end = whole.index(text, end) + len(text)  # each one, in this order
    assert sum("(earlier messages omitted here to fit the context window: " in text for text in sent) == 1
    behind = [text for text in sent if "(earlier messages omitted here" not in text]
    dropped = set(pieces_of(full.context.messages)) - set(kept)
    assert dropped
    assert [text for text in behind if text.strip() in dropped] == []
    assert not any("The task: rename Foo." in text for text in behind), "the note repeats the task, once"
