"""A session that goes to another agent and comes back: the first agent gets its own messages, and the new turns."""

from __future__ import annotations

import itertools
import json

import pytest
from msgspec.structs import replace

from histories.test_samples import MODELS
from segue import (
    AssistantMessage,
    Context,
    History,
    LoadError,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    read_history,
    restore_history,
    save_history,
    write_history,
)
from segue.histories import places
from segue.models.catalogue import get_model
from segue.projection.report import ChangeCode

PAIRS = list(itertools.permutations(MODELS, 2))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def replies(agent: str, number: int) -> list[Message]:
    """A turn with signed reasoning, a call and its result, as the model of this agent writes it."""
    model = get_model(MODELS[agent])
    by = {"protocol": model.protocol, "provider": model.provider, "model": model.id, "timestamp": 1_790_000_000_000}
    call = ToolCall(id=f"call_{number}", name="read", arguments={"path": f"{number}.txt"}, thought_signature=None)
    signature = f"c2lnbmF0dXJl{number:03d}="
    if model.protocol == "openai-responses":
        signature = json.dumps(
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [{"type": "summary_text", "text": f"Thought {number}."}],
                "encrypted_content": f"enc{number}",
            },
            separators=(",", ":"),
        )
    thinking = ThinkingContent(thinking=f"Thought {number}.", thinking_signature=signature)
    first = AssistantMessage(content=(thinking, call), stop_reason=StopReason.TOOL_USE, **by)
    result = ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(TextContent(text=f"File {number}."),))
    last = AssistantMessage(content=(TextContent(text=f"Answer {number}."),), stop_reason=StopReason.STOP, **by)
    return [first, result, last]


def turns(agent: str, numbers: range) -> list[Message]:
    found: list[Message] = []
    for number in numbers:
        found += [UserMessage.of(f"Question {number}.", timestamp=1_790_000_000_000), *replies(agent, number)]
    return found


def session_of(agent: str, messages: list[Message], folder) -> History:
    """Store messages as the agent's own session and read it."""
    written = write_history(Context(messages=tuple(messages)), format=agent, model=MODELS[agent], cwd="/p")
    (path,) = save_history(written, folder / f"own-{agent}")
    return read_history(path)


def hand_over(history: History, agent: str, folder) -> History:
    """Write a session for another agent and read it there."""
    written = write_history(history, format=agent, model=MODELS[agent])
    return read_history(save_history(written, folder)[0])


def continued(history: History, agent: str, numbers: range, folder) -> History:
    """Add turns to a session as its agent would: in a file of its own, without the originals beside it."""
    added = turns(agent, numbers)
    whole = replace(history, context=replace(history.context, messages=(*history.context.messages, *added)))
    written = write_history(whole, format=agent, model=MODELS[agent], session_id=history.origin.id)
    target = folder / "continued"
    target.mkdir(parents=True)
    path = target / written.files[0].name.rpartition("/")[2]
    path.write_bytes(written.files[0].data)
    (target / ".segue").symlink_to(folder / ".segue")
    return read_history(path)


def signatures(messages) -> list[str]:
    found = []
    for message in messages:
        for content in message.content:
            if content.kind == "thinking" and content.thinking_signature:
                found.append(content.thinking_signature)
            if content.kind == "toolCall" and content.thought_signature:
                found.append(content.thought_signature)
    return found


def texts(messages) -> str:
    return "\n".join(content.text for message in messages for content in message.content if content.kind == "text")


@pytest.mark.parametrize(("agent", "other"), PAIRS)
def test_the_first_agent_gets_its_own_messages_back_and_the_new_turns(agent, other, tmp_path):
    first = session_of(agent, turns(agent, range(3)), tmp_path)
    assert signatures(first.context.messages)
    there = continued(hand_over(first, other, tmp_path / "1"), other, range(3, 5), tmp_path / "1")
    back = restore_history(there)
    count = len(first.context.messages)
    assert back.context.messages[:count] == first.context.messages
    assert not back.report.of(ChangeCode.ORIGINAL_NOT_RESTORED)
    home = hand_over(back, agent, tmp_path / "2")
    assert home.context.messages[:count] == first.context.messages
    added = texts(home.context.messages[count:])
    assert [number for number in (3, 4) if f"Question {number}." not in added or f"Answer {number}." not in added] == []
    # The other agent's own turns are as they were when the session goes there once more.
    again = restore_history(continued(home, agent, range(5, 6), tmp_path / "2"))
    theirs = signatures(there.context.messages)
    assert set(theirs) <= set(signatures(again.context.messages))
    away = hand_over(again, other, tmp_path / "3")
    assert set(theirs) <= set(signatures(away.context.messages))


def edited(history: History, at: int, *messages: Message) -> History:
    kept = history.context.messages
    return replace(history, context=replace(history.context, messages=(*kept[:at], *messages, *kept[at + 1 :])))


def find(history: History, text: str) -> int:
    return next(at for at, message in enumerate(history.context.messages) if text in texts([message]))


def test_what_was_changed_there_stays_changed_and_only_that_part_loses_its_reasoning(tmp_path):
    changes = {
        "a question": ("Question 1.", (UserMessage.of("Another question."),)),
        "an answer": ("Answer 1.", (replies("codex", 9)[2],)),
        "a message that is gone": ("Answer 1.", ()),
    }
    first = session_of("claude-code", turns("claude-code", range(3)), tmp_path)
    there = hand_over(first, "codex", tmp_path / "1")
    for name, (text, instead) in changes.items():
        back = restore_history(edited(there, find(there, text), *instead))
        (change,) = back.report.of(ChangeCode.ORIGINAL_NOT_RESTORED)
        assert change.detail == "4 messages; it was changed, removed or summarised there", name
        assert all(message in back.context.messages for message in instead), name
        kept = signatures(first.context.messages)
        assert signatures(back.context.messages) == [kept[0], kept[2]], name
        assert back.context.messages[:4] == first.context.messages[:4], name
        assert back.context.messages[-4:] == first.context.messages[-4:], name


def test_reasoning_that_is_bound_to_what_was_before_it_is_not_given_back_behind_a_change(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "claude-code", "anthropic/claude-opus-5-5")
    first = session_of("claude-code", turns("claude-code", range(3)), tmp_path)
    there = hand_over(first, "codex", tmp_path / "1")
    back = restore_history(edited(there, find(there, "Question 1."), UserMessage.of("Another question.")))
    assert [change.detail.partition("; ")[2] for change in back.report.of(ChangeCode.ORIGINAL_NOT_RESTORED)] == [
        "it was changed, removed or summarised there",
        "an earlier message was changed, removed or summarised there",
    ]
    assert signatures(back.context.messages) == signatures(first.context.messages)[:1]


def test_a_session_with_another_id_is_found_by_what_it_begins_with(tmp_path):
    first = session_of("claude-code", turns("claude-code", range(2)), tmp_path)
    there = hand_over(first, "pi", tmp_path / "1")
    renamed = replace(there, origin=replace(there.origin, id="another"))
    assert restore_history(renamed).context.messages == first.context.messages
    other = edited(renamed, 0, UserMessage.of("Something else."))
    assert restore_history(other) is other


def test_a_damaged_file_of_originals_is_named(tmp_path):
    first = session_of("claude-code", turns("claude-code", range(2)), tmp_path)
    there = hand_over(first, "pi", tmp_path / "1")
    (kept,) = (tmp_path / "1" / ".segue").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-40])
    with pytest.raises(LoadError, match=f"{kept.name}: the kept originals cannot be read"):
        restore_history(there)
    kept.write_bytes(b"[]")
    assert restore_history(there) is there


def test_a_session_that_did_not_fit_comes_back_whole(tmp_path):
    long = [UserMessage.of("Read this. " + "word " * 900_000), *replies("claude-code", 7)]
    first = session_of("claude-code", [*long, *turns("claude-code", range(2))], tmp_path)
    for other in ("codex", "pi", "gemini-cli"):
        there = hand_over(first, other, tmp_path / other)
        assert len(texts(there.context.messages)) < 4_000_000, other
        assert restore_history(there).context.messages == first.context.messages, other


@pytest.mark.parametrize("name", ["../outside", "in/side"])
def test_an_id_that_is_no_name_of_a_file_keeps_no_originals(tmp_path, name):
    places.save_originals(name, b"{}\n", tmp_path / "folder")
    assert list(tmp_path.rglob("*")) == []
