"""The laws on this wire, over many vendors: any history becomes a request that passes, and is read back as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_own, make_ugly
from property_testing import scaled_examples
from protocols.every_protocol import cuts, without_fields
from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolResultContent
from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.families.chat_content import join_texts
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC
from segue.protocols.openai_chat.reasoning import TAGS
from segue.requests.prepare import prepare

PROTOCOL = "openai-chat"
MODELS = (
    *TARGETS[PROTOCOL],
    Model("kimi-k3", "moonshotai", PROTOCOL, reasoning=True),
    Model("glm-5", "zai", PROTOCOL, reasoning=True),
    Model("MiniMax-M3", "minimax", PROTOCOL, reasoning=True),
    Model("qwen3-max", "alibaba", PROTOCOL, reasoning=True),
    Model("grok-4", "xai", PROTOCOL, reasoning=True),
    Model("openai/gpt-oss-120b", "groq", PROTOCOL, reasoning=True),
    Model("zai-glm-4.7", "cerebras", PROTOCOL, reasoning=True),
    Model("anthropic/claude-sonnet-4.5", "openrouter", PROTOCOL, reasoning=True),
    Model("google/gemini-3-pro", "openrouter", PROTOCOL, reasoning=True),
    Model("sonar-reasoning", "perplexity", PROTOCOL, reasoning=True),
    Model("claude-sonnet-4-6", "snowflake", PROTOCOL, reasoning=True),
    Model("some-model", "litellm", PROTOCOL),
    Model("some-model", "llama.cpp", PROTOCOL, reasoning=True),
    Model("some-model", "vllm", PROTOCOL, input=("text", "image", "video")),
)
SEEDS = st.integers(0, 2**32)


def prepared(context: Context, model: Model) -> Any:
    try:
        return prepare(context, model)
    except EmptyConversation:
        return None


@scaled_examples(2)
@example(seed=144, model=Model("qwen3-max", "alibaba", PROTOCOL, reasoning=True))  # an empty text of the user
@example(seed=144, model=Model("grok-4.6", "xai", PROTOCOL, reasoning=True))
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_any_history_becomes_a_request_that_passes(seed, model):
    request = prepared(make_ugly(seed, model), model)
    if request is not None:
        assert CODEC.check(request.body, resolve_endpoint(model)) == []


@scaled_examples(2)
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_what_is_written_is_read_and_written_the_same(seed, model):
    request = prepared(make_ugly(seed, model), model)
    if request is not None:
        at = resolve_endpoint(model)
        assert CODEC.encode_request(CODEC.decode_request(request.body, at), at) == request.body


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (("One.", "Two."), "One.\n\nTwo."),
        (("One.", "A"), "One.\n\nA"),
        (("One.", "iPhones"), "One.iPhones"),
        (("One:", "#1"), "One:\n\n#1"),
        (("One:", "a|b"), "One:a|b"),
        (("one", "", " two"), "one two"),
        (("One.", "", "Two"), "One.\n\nTwo"),
    ],
)
def test_texts_of_a_turn_are_joined_as_paragraphs_where_one_ends(texts: tuple[str, ...], joined: str):
    assert join_texts(texts) == joined


PLACE = {"thinking": 0, "text": 1, "native": 2, "toolCall": 3}


def as_written(message: Any) -> Message:
    """Give a message as this protocol writes it: texts are joined, and each kind of content has its place."""
    if message.role == "assistant":
        pieces: list[AssistantContent] = []
        for piece in sorted(message.content, key=lambda piece: PLACE[piece.kind]):
            last = pieces[-1] if pieces else None
            if piece.kind == "text" and last is not None and last.kind == "text":
                pieces[-1] = TextContent(text=join_texts((last.text, piece.text)))
            elif piece.kind == "thinking" and not piece.thinking:
                continue
            elif piece.kind == "thinking" and last is not None and last.kind == "thinking":
                pieces[-1] = ThinkingContent(thinking=f"{last.thinking}\n{piece.thinking}")
            else:
                pieces.append(piece)
        return replace(message, content=tuple(pieces))
    if message.role == "toolResult" and all(
        piece.kind == "text" and PROTOCOL not in (piece.extra or {}) for piece in message.content
    ):
        texts: tuple[ToolResultContent, ...] = (TextContent(text="\n".join(piece.text for piece in message.content)),)
        return replace(message, content=texts)
    return message


def is_null(message: dict[str, Any]) -> bool:
    """Whether the content was received as null and goes back as that; only an assistant's may be null otherwise."""
    return message["role"] != "assistant" and message["content"] is None


@scaled_examples(2)
@example(seed=1080, model=MODELS[0])  # a result that was received with null, and is empty
@example(seed=5930, model=MODELS[0])  # a message of the user that was received with null, and is empty
@example(
    seed=6416, model=Model("deepseek-reasoner", "deepseek", PROTOCOL, reasoning=True)
)  # a thought and an empty one
@example(seed=3632104, model=Model("MiniMax-M3", "minimax", PROTOCOL, reasoning=True))  # a blank one in other tags
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_what_is_read_back_is_what_was_meant(seed, model):
    request = prepared(make_ugly(seed, model), model)
    if request is None:
        return
    at = resolve_endpoint(model)
    if any(not isinstance(message.get("content"), str | None) for message in request.body["messages"]):
        # Parts that were passed through keep their places; plain texts are joined.
        return
    if any("content" not in message or is_null(message) for message in request.body["messages"]):
        # Read as no content at all, unlike an empty text.
        return
    sent = [without_fields(as_written(message), CODEC.not_carried) for message in request.projection.context.messages]
    back = CODEC.decode_request(request.body, at).context
    if any(tag in str(message["content"]) for message in request.body["messages"] for tag in TAGS):
        return
    assert [without_fields(message, CODEC.not_carried) for message in back.messages] == sent


@scaled_examples(1)
@given(seed=SEEDS, model=st.sampled_from([model for model in MODELS if not model.router]))
def test_a_targets_own_history_goes_as_it_is(seed, model):
    request = prepared(make_own(seed, model), model)
    if request is not None:
        assert request.report.changes == ()
        assert CODEC.check(request.body, resolve_endpoint(model)) == []


@scaled_examples(1)
@given(data=st.data(), seed=SEEDS, model=st.sampled_from(MODELS))
def test_a_request_that_was_answered_stays_the_beginning_of_the_next(data, seed, model):
    context = make_own(seed, model)
    places = cuts(context)
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    whole = prepared(context, model)
    earlier = prepared(replace(context, messages=context.messages[:place]), model)
    if whole is not None and earlier is not None:
        before = earlier.body["messages"]
        assert whole.body["messages"][: len(before)] == before


@pytest.mark.parametrize("name", sorted(CODEC.not_carried))
def test_what_is_forgotten_has_a_name_of_the_neutral_types(name):
    from segue.conversation import content, context, messages

    fields = set()
    for module in (content, context, messages):
        for value in vars(module).values():
            fields |= set(getattr(value, "__struct_fields__", ()))
    assert name in fields | {"pieces"}
