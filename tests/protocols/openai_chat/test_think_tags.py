"""Reasoning in tags: split out wherever the stream cuts them, the same as in a whole reply, and written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.openai_chat.endpoints import chunk, endpoint, event_kinds, fold, reply
from segue.conversation.content import TextContent, ThinkingContent
from segue.protocols.kit.verbatim import choose
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

DONE = "[DONE]"
STOP = chunk(reason="stop")
TAGGED = endpoint("minimax", "some-model")
PLAIN = endpoint("m", "somebody-else")


def chose(name, default, received):
    return {"openai-chat": {"verbatim": choose(name, default, received)}}


def text(source):
    return TextContent(text=source)


def thinking(source, signature):
    return ThinkingContent(thinking=source, thinking_signature=signature)


TAGS = {
    "thinking and an answer": ("<think>t</think>a", (thinking("t", "<think>"), text("a"))),
    "white space stays": ("<think>\nt\n</think>\n\na", (thinking("\nt\n", "<think>"), text("\n\na"))),
    "no tags": ("a < b <thin", (text("a < b <thin"),)),
    "thinking twice": (
        "<think>t</think>a<think>u</think>b",
        (thinking("t", "<think>"), text("a"), thinking("u", "<think>"), text("b")),
    ),
    "only the closing tag": (
        "t</think>a",
        (text("t"), TextContent(text="a", extra=chose("tags", "", "</think>"))),
    ),
    "the closing tag and nothing behind it": ("t</think>", (text("t"), text("</think>"))),
    "nothing before the closing tag": (
        "</think>a",
        (TextContent(text="a", extra=chose("tags", "", "</think>")),),
    ),
    "thinking that was cut off": (
        "<think>t",
        (ThinkingContent(thinking="t", thinking_signature="<think>", extra=chose("closing_tag", "</think>", "")),),
    ),
    "an empty pair": (
        "<think>\n</think>a",
        (TextContent(text="a", extra=chose("tags", "", "<think>\n</think>")),),
    ),
    "a closing tag too many": ("<think>t</think>a</think>b", (thinking("t", "<think>"), text("a</think>b"))),
    "an empty pair at the end": ("a<think></think>", (text("a"), text("<think></think>"))),
    "an empty pair and nothing else": ("<think></think>", ()),
    "the tag of MiniMax M3": ("<mm:think>t</mm:think>a", (thinking("t", "<mm:think>"), text("a"))),
    "the tag of MiniMax M3, cut off": (
        "<mm:think>t</think>",
        (
            ThinkingContent(
                thinking="t</think>",
                thinking_signature="<mm:think>",
                extra=chose("closing_tag", "</mm:think>", ""),
            ),
        ),
    ),
    "thinking that mentions its tag": ("<think>a <think> b</think>c", (thinking("a <think> b", "<think>"), text("c"))),
}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 99])
@pytest.mark.parametrize(("source", "content"), TAGS.values(), ids=TAGS.keys())
def test_tags_are_split_out_wherever_the_stream_cuts_them(source, content, size):
    pieces = [chunk({"content": source[at : at + size]}) for at in range(0, len(source), size)]
    _, decoder = fold(*pieces, STOP, DONE, at=TAGGED)
    assert decoder.message.content == content


@pytest.mark.parametrize("source", [source for source, _ in TAGS.values()], ids=TAGS.keys())
def test_a_part_ends_as_what_it_began_as(source):
    events, decoder = fold(*[chunk({"content": letter}) for letter in source], STOP, at=TAGGED)
    result = {index: event_kinds(events, index) for index in range(len(decoder.message.content))}
    assert result == {index: {piece.kind} for index, piece in enumerate(decoder.message.content)}


@pytest.mark.parametrize(("source", "content"), TAGS.values(), ids=TAGS.keys())
def test_tags_are_split_out_of_a_whole_reply_and_written_back(source, content):
    body = reply({"content": source})
    message = CODEC.decode_response(body, TAGGED, {})
    assert message.content == content
    assert CODEC.encode_response(message, TAGGED) == body
    turn = {"role": "assistant", "content": source}
    given = CODEC.decode_request([turn], TAGGED)
    assert CODEC.encode_request(given, TAGGED)["messages"] == [turn]


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<mm:think>", "</mm:think>", "a", " ", "\n", "<", "th"]), max_size=8
    ),
    st.integers(1, 9),
)
def test_any_text_with_tags_in_it_is_the_same_streamed_and_whole(pieces, size):
    source = "".join(pieces)
    frames = [chunk({"content": source[at : at + size]}) for at in range(0, len(source), size)]
    _, decoder = fold(*frames, STOP, at=TAGGED)
    body = reply({"content": source})
    whole = CODEC.decode_response(body, TAGGED, {})
    assert decoder.message.content == whole.content
    assert CODEC.encode_response(whole, TAGGED) == body


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<mm:think>", "a", " ", "\n", "<", "th"]), max_size=8),
    st.integers(1, 9),
)
def test_any_text_is_the_same_streamed_and_whole_where_the_dialect_does_not_know_tags(pieces, size):
    source = "".join(pieces)
    frames = [chunk({"content": source[at : at + size]}) for at in range(0, len(source), size)]
    _, decoder = fold(*frames, STOP, at=PLAIN)
    body = reply({"content": source})
    whole = CODEC.decode_response(body, PLAIN, {})
    assert decoder.message.content == whole.content
    assert CODEC.encode_response(whole, PLAIN) == body


LEADING = {
    "at the beginning": ("<think>t</think>a", "t", "a"),
    "after white space": ("\n <think>t</think>a", "t", "\n a"),
    "a second one": ("<think>t</think>a <think>b</think>", "t", "a <think>b</think>"),
    "in the middle": ("a <think>t</think>", "", "a <think>t</think>"),
    "something like a tag": ("<thinking>t", "", "<thinking>t"),
    "half of a tag": (" <thi", "", " <thi"),
}


@pytest.mark.parametrize(("source", "thinking", "shown"), LEADING.values(), ids=LEADING.keys())
def test_a_leading_tag_is_read_also_where_the_dialect_does_not_know_tags(source, thinking, shown):
    for pieces in ([source], list(source)):
        _, decoder = fold(*[chunk({"content": piece}) for piece in pieces], STOP, at=PLAIN)
        found = decoder.message
        assert "".join(piece.thinking for piece in found.content if piece.kind == "thinking") == thinking
        assert found.text() == shown
