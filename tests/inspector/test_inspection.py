"""What the page gets: aligned messages, changed words, suggested targets; and that the work for it is bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    ImageContent,
    Model,
    Policy,
    Prompt,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from segue.histories.opening import OpenedDocument
from segue.inspector.alignment import AlignedPair, align
from segue.inspector.differences import compare, shorten
from segue.inspector.inspection import Inspection, suggest_targets
from segue.models.catalogue import installed_catalogue

CASES = {
    "a changed word": ("run the tests now", "run all tests now", ["run ", "the", " tests now"]),
    "an added word": ("run tests", "run all tests", ["run tests"]),
    "a removed word": ("run all tests", "run tests", ["run ", "all ", "tests"]),
    "a changed end": ("call_1|fc_2", "call_1", ["call_1", "|fc_2"]),
    "nothing in common": ("alpha beta", "(omitted)", ["", "alpha beta"]),
    "the same": ("x", "x", ["x"]),
    "changed words beside each other": ("a one two b c d", "a three four b c d", ["a ", "one two", " b c d"]),
}


@pytest.mark.parametrize(("before", "after", "parts"), CASES.values(), ids=CASES.keys())
def test_changed_words_are_marked(before, after, parts):
    assert compare(before, after)[0] == parts


@given(st.text("ab \n.ü", max_size=40), st.text("ab \n.ü", max_size=40), st.integers(0, 50))
def test_parts_are_the_texts_and_the_common_ones_are_equal(before, after, length):
    old, new = compare(before, after)
    assert ("".join(old), "".join(new)) == (before, after)
    assert "".join("".join(old[::2]).split()) == "".join("".join(new[::2]).split())
    kept, more, _ = shorten(old, length)
    assert "".join(kept) == before[:length]
    assert more == max(0, len(before) - length)


def test_two_long_texts_without_anything_in_common_are_not_compared_word_by_word():
    before, after = "a b-" * 50_000, "c d " * 50_000
    assert compare(before, after) == (["", before], ["", after])


def test_a_change_after_the_cut_is_announced():
    old, _ = compare("x " * 100 + "old", "x " * 100 + "new")
    assert shorten(old, 10) == (["x " * 5], 193, True)


def test_messages_without_a_counterpart_are_rows_of_their_own():
    first, second = UserMessage.of("first"), UserMessage.of("second")
    answer = AssistantMessage(content=(TextContent(text="a"),), model="m")
    assert align([first, answer, second], [first, second]) == [
        AlignedPair(0, 0, same=True),
        AlignedPair(1, None, same=False),
        AlignedPair(2, 1, same=True),
    ]
    assert align([first], [answer, first]) == [AlignedPair(None, 0, same=False), AlignedPair(0, 1, same=True)]


def test_many_messages_without_a_counterpart_are_aligned_in_linear_time():
    class Counted:
        """Counts how often a role is read."""

        reads = 0

        def __init__(self, role: str) -> None:
            self._role = role

        @property
        def role(self) -> str:
            Counted.reads += 1
            return self._role

    stored, sent = [Counted("assistant") for _ in range(2000)], [Counted("user") for _ in range(2000)]
    rows = align(stored, sent)  # pyright: ignore[reportArgumentType] - only roles are read
    assert len(rows) == 4000
    assert Counted.reads < 2000 * 300


def turn(provider: str, model: str, protocol: str) -> AssistantMessage:
    content = (ThinkingContent(thinking="Hm."), TextContent(text="Hi"))
    return AssistantMessage(content=content, provider=provider, model=model, protocol=protocol)


def document(*turns: AssistantMessage) -> OpenedDocument:
    messages = tuple(message for answer in turns for message in (UserMessage.of("Hello"), answer))
    return OpenedDocument(Prompt(context=Context(messages=messages)))


CLAUDE = turn("anthropic", "claude-sonnet-4-5", "anthropic-messages")
GPT = turn("openai", "gpt-5.4", "openai-responses")
SUGGESTIONS = {
    "the last writer is first": ((CLAUDE, GPT), "openai/gpt-5.4"),
    "a model outside of the catalogue": ((CLAUDE, turn("llama.cpp", "tiny", "openai-chat")), "llama.cpp/tiny"),
    "a protocol that is not installed": ((GPT, turn("acme", "one", "acme-chat")), "openai/gpt-5.4"),
    "nobody wrote": ((), "anthropic/claude-opus-4-8"),
}


@pytest.mark.parametrize(("turns", "first"), SUGGESTIONS.values(), ids=SUGGESTIONS.keys())
def test_three_targets_are_suggested(turns, first):
    names = suggest_targets(document(*turns), installed_catalogue())
    assert names[0] == first
    assert len(set(names)) == 3


def test_other_protocols_are_suggested_before_that_of_the_writer():
    assert suggest_targets(document(CLAUDE), installed_catalogue())[1:] == [
        "openai/gpt-5.4",
        "google/gemini-3.1-pro-preview",
    ]


PIECES = {
    "thinking that is sent as text": (
        "openai/gpt-5.4",
        [("thinking", None, ["kind", "signed"]), ("text", None, None), ("toolCall", None, None)],
        [("text", None, ["kind", "signed"]), ("text", None, None), ("toolCall", None, None)],
    ),
    "thinking that is dropped, and another id": (
        "mistral/mistral-large-latest",
        [("thinking", "dropped", None), ("text", None, None), ("toolCall", None, ["id"])],
        [("text", None, None), ("toolCall", None, ["id"])],
    ),
}


@pytest.mark.parametrize(("target", "before", "after"), PIECES.values(), ids=PIECES.keys())
def test_what_became_of_each_piece_is_marked(target, before, after):
    call = ToolCall(id="toolu_1|odd id", name="run", arguments={"a": 1})
    content = (ThinkingContent(thinking="Hm.", thinking_signature="s"), TextContent(text="Hi"), call)
    inspection = Inspection(document(replace(CLAUDE, content=content)), installed_catalogue().get(target), Policy())
    row: Any = inspection.side.rows([2], 1000, str)[0]
    for side, expected in (("stored", before), ("sent", after)):
        pieces = row[side]["pieces"]
        assert [(piece["kind"], piece.get("state"), piece.get("marks")) for piece in pieces] == expected


def test_a_conversation_larger_than_the_window_does_not_fit():
    small = Model("small", "openai", "openai-chat", context_window=4_000)
    turns = [replace(CLAUDE, content=(TextContent(text="many words " * 100),)), UserMessage.of("go on")] * 40
    long = OpenedDocument(Prompt(context=Context(messages=(UserMessage.of("begin"), *turns))))
    summary: Any = Inspection(long, small, Policy()).summary()
    length = summary["length"]
    assert "problem" not in summary
    assert (length["fits"], length["tooSmall"]) == (False, False)
    assert length["sent"] <= length["limit"] <= 4_000 < length["whole"]
    assert length["leftOut"] > 0


def test_a_window_that_is_too_small_for_anything_has_a_length_all_the_same():
    small = Model("small", "openai", "openai-chat", context_window=10)
    long = OpenedDocument(Prompt(context=Context(messages=(UserMessage.of("many words " * 1000),))))
    summary: Any = Inspection(long, small, Policy()).summary()
    assert "problem" in summary
    assert (summary["length"]["fits"], summary["length"]["tooSmall"]) == (False, True)
    assert summary["length"]["whole"] > 1000


def test_what_cannot_be_sent_is_a_sentence():
    summary = Inspection(document(), installed_catalogue().get("openai/gpt-5.4"), Policy()).summary()
    assert "problem" in summary
    assert summary["changed"] == []


def test_a_message_that_can_never_be_sent_is_shown_with_the_reason():
    broken = UserMessage.of("look", ImageContent(data="not base64", mime_type="image/png"))
    conversation = OpenedDocument(Prompt(context=Context(messages=(broken,))))
    inspection = Inspection(conversation, installed_catalogue().get("openai/gpt-5.4"), Policy())
    summary: Any = inspection.summary()
    assert "base64" in summary["problem"]
    row: Any = inspection.side.rows([1], 1000, str)[0]
    assert [piece["kind"] for piece in row["stored"]["pieces"]] == ["text", "image"]


def test_what_the_model_no_longer_sees_is_listed():
    steps = [UserMessage.of(f"step {at}: " + "a word " * 60) for at in range(60)]
    context = Context(messages=(UserMessage.of("The task."), *steps))
    small = Model("gpt-5.4", "openai", "openai-chat", context_window=4000)
    document = OpenedDocument(Prompt(context=context))
    listed: Any = Inspection(document, small, Policy()).facts["dropped"]
    assert len(listed) == 21
    assert listed[0].startswith("message ")
    assert " (user, left out, " in listed[0]
    assert listed[-1].endswith("more; `segue show FILE --dropped` lists them")
    large = replace(small, context_window=400_000)
    assert Inspection(document, large, Policy()).facts["dropped"] == []


def test_a_target_says_which_options_it_takes():
    summary: Any = Inspection(document(), installed_catalogue().get("google/gemini-2.0-flash"), Policy()).summary()
    assert {"temperature", "top_k", "json_mode"} <= set(summary["options"])
    assert "verbosity" not in summary["options"]
