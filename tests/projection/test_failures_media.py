"""Images, files, server tools, citations and cache marks that a target could not take.

What providers answered: "unknown variant `image_url`, expected `text`", "Image URLs are only allowed for messages with
role 'user', but this message with role 'tool' contains an image URL.", "At least one of the image dimensions exceed max
allowed size for many-image requests", "A maximum of 4 blocks with cache_control may be provided. Found 5."
                                                                                 (threads in each row, read 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import pytest
from msgspec.structs import replace

from projection.building import (
    BEDROCK_OSS,
    BEDROCK_SONNET,
    DEEPSEEK,
    FABLE,
    GEMINI_2,
    GPT,
    GPT_4O,
    GPT_CHAT,
    GROQ,
    GROQ_VISION,
    KIMI,
    OLLAMA,
    OPUS,
    READ,
    SONNET,
    TARGETS,
    TEXTS,
    VERTEX_SONNET,
    assistant,
    call,
    calls_of,
    conversation,
    file,
    image,
    is_paired,
    native,
    result,
    text,
    user,
)
from projection.failure_rows import Row, prove
from segue.conversation.content import CacheMark
from segue.conversation.context import NativeTool, ToolDefinition
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project
from segue.projection.requirements import MediaNeeded

GEMINI_FILE: Final = "https://generativelanguage.googleapis.com/v1beta/files/abc"
CAT: Final = "https://example.com/cat.png"
MARK: Final = CacheMark()
CITATION: Final = {"anthropic-messages": {"citations": [{"type": "char_location", "cited_text": "cats"}]}}
SEARCH: Final = {"type": "web_search_call", "id": "ws_" + "0" * 48, "status": "completed"}
PAINTED: Final = native("openai-responses", {"type": "image_generation_call", "id": "ig_1"}, image())
OMITTED: Final = TEXTS.image_omitted
TOOL_OMITTED: Final = TEXTS.tool_image_omitted
EVICTED: Final = TEXTS.media_evicted.format(kind="image")


def marks(projection: Projection) -> int:
    return repr(projection.context).count("cache_mark=CacheMark(")


MEDIA: Final[Mapping[str, Row]] = {
    "an image is a text for a model that cannot see": Row(
        threads="kimi-code#2669, wisp#503, codex#11349, kelivo#622, Eta#62",
        given=(
            user("see", image()),
            assistant(KIMI, call("a")),
            result("a", "shot", image()),
            assistant(KIMI, "A cat."),
            user("and?"),
        ),
        targets=(DEEPSEEK, GROQ),
        sends=(
            user("see", OMITTED),
            assistant(KIMI, call("a")),
            result("a", "shot", TOOL_OMITTED),
            assistant(KIMI, "A cat."),
            user("and?"),
        ),
        reports=("media_omitted at messages[0].content[1]", "media_omitted at messages[2].content[1]"),
    ),
    "and an image again for the next one that can": Row(
        threads="kimi-code#2669, kelivo#622",
        given=(user("see", image()), assistant(DEEPSEEK, "I cannot."), user("and you?")),
        targets=(KIMI, SONNET, GPT, GPT_4O, OLLAMA),
        sends=(user("see", image()), assistant(DEEPSEEK, "I cannot."), user("and you?")),
    ),
    "a turn of nothing but an image does not become an empty one": Row(
        threads="opencodex#1742",
        given=(user(image()), assistant(KIMI, "A cat."), user("and?")),
        targets=(DEEPSEEK, GROQ, BEDROCK_OSS),
        sends=(user(OMITTED), assistant(KIMI, "A cat."), user("and?")),
        reports=("media_omitted at messages[0].content[0]",),
    ),
    "images of tool results come in one user turn behind all results of the batch": Row(
        threads="OpenHands#7700, vllm#43203, OpenKB#242, openai-openapi#523",
        given=(
            user("hi"),
            assistant(SONNET, call("a"), call("b"), call("c")),
            result("a", "one", image()),
            result("b", image("BBBB")),
            result("c", "three"),
            assistant(SONNET, "Cats."),
            user("ok"),
        ),
        targets=(GPT_4O, GPT_CHAT, OLLAMA),
        sends=(
            user("hi"),
            assistant(SONNET, call("a"), call("b"), call("c")),
            result("a", "one"),
            result("b", TEXTS.media_moved),
            result("c", "three"),
            user(TEXTS.tool_media, image(), image("BBBB")),
            assistant(SONNET, "Cats."),
            user("ok"),
        ),
        reports=(
            "media_moved at messages[2].content[1]",
            "media_moved at messages[3].content[0]",
            "result_filled at messages[3].content",
            "turn_inserted at messages[4]",
        ),
    ),
    "an image that a model painted is shown in the user's next turn": Row(
        threads="openai-node#1030",
        given=(user("paint"), assistant(GPT, "Here:", PAINTED), user("nicer")),
        targets=(GPT_4O, SONNET, KIMI, GEMINI_2),
        sends=(user("paint"), assistant(GPT, "Here:", TEXTS.assistant_media), user(image(), "nicer")),
        lacks=("ig_1",),
        reports=(
            "native_replaced at messages[1].content[1]",
            "media_moved at messages[1].content[1]",
            "turn_filled at messages[2].content",
        ),
    ),
    "where no user's turn follows a text stands for it": Row(
        threads="openai-node#1030",
        given=(user("paint"), assistant(GPT, "Here:", PAINTED)),
        targets=(GPT_4O, SONNET),
        sends=(user("paint"), assistant(GPT, "Here:", "[Image: image/png]")),
        reports=("native_replaced at messages[1].content[1]", "media_flattened at messages[1].content[1]"),
    ),
    "the painter itself gets its item back": Row(
        threads="openai-node#1030",
        given=(user("paint"), assistant(GPT, "Here:", PAINTED), user("nicer")),
        targets=(GPT,),
        sends=(user("paint"), assistant(GPT, "Here:", PAINTED), user("nicer")),
    ),
    "a file that the model cannot read is a text and no exception": Row(
        threads="Vercel and Strands: throw on a PDF in the history",
        given=(user("see", file(), file("AAAA", mime="audio/wav")), assistant(GPT, "Hm."), user("ok")),
        targets=(KIMI, DEEPSEEK, GROQ_VISION),
        sends=(
            user(
                "see",
                TEXTS.file_omitted.format(kind="document"),
                TEXTS.file_omitted.format(kind="audio"),
            ),
            assistant(GPT, "Hm."),
            user("ok"),
        ),
        reports=("media_omitted at messages[0].content[1]", "media_omitted at messages[0].content[2]"),
    ),
    "too many images: the oldest give way": Row(
        threads="gsd-2#2874, claude-code#34120, pi#401",
        given=(*(user(f"{number}", image()) for number in range(6)), assistant(KIMI, "Cats."), user("ok")),
        targets=(GROQ_VISION,),
        sends=(
            *(user(f"{number}", EVICTED) for number in range(3)),
            *(user(f"{number}", image()) for number in range(3, 6)),
            assistant(KIMI, "Cats."),
            user("ok"),
        ),
        reports=tuple(f"media_evicted at messages[{number}].content[1]" for number in range(3)),
    ),
    "an image by its address is asked for where the target cannot fetch it": Row(
        threads="LiteLLM: force_base64",
        given=(user("see", image(url=CAT)), assistant(GPT, "A cat."), user("ok")),
        targets=(BEDROCK_SONNET, VERTEX_SONNET, OLLAMA, KIMI),
        sends=(user("see", TEXTS.media_unreachable.format(kind="image")), assistant(GPT, "A cat."), user("ok")),
        reports=("media_unreachable at messages[0].content[1]",),
        requires=(MediaNeeded(path=("messages", 0, "content", 1), reference=CAT),),
    ),
    "and sent when the caller supplies it": Row(
        threads="LiteLLM: force_base64",
        given=(user("see", image(url=CAT)), assistant(GPT, "A cat."), user("ok")),
        targets=(BEDROCK_SONNET, VERTEX_SONNET, OLLAMA, KIMI),
        policy=Policy(media={CAT: image()}),
        sends=(user("see", image()), assistant(GPT, "A cat."), user("ok")),
        reports=("media_resolved at messages[0].content[1]",),
    ),
    "by its address it stays where the target fetches it": Row(
        threads="LiteLLM: force_base64",
        given=(user("see", image(url=CAT)), assistant(GPT, "A cat."), user("ok")),
        targets=(SONNET, FABLE, GPT, GPT_4O),
        sends=(user("see", image(url=CAT)), assistant(GPT, "A cat."), user("ok")),
    ),
    "a file stored at one provider is replaced by a text at another": Row(
        threads="pydantic-ai: files of one provider only",
        given=(user("see", file(file_id="file-abc123")), assistant(GPT, "Hm."), user("ok")),
        targets=(GEMINI_2, SONNET, BEDROCK_SONNET),
        sends=(user("see", TEXTS.media_unreachable.format(kind="document")), assistant(GPT, "Hm."), user("ok")),
        lacks=("file-abc123",),
        reports=("media_unreachable at messages[0].content[1]",),
        requires=(MediaNeeded(path=("messages", 0, "content", 1), reference="file-abc123"),),
    ),
    "and the other way round": Row(
        threads="pydantic-ai: files of one provider only",
        given=(user("see", file(file_id=GEMINI_FILE)), assistant(GEMINI_2, "Hm."), user("ok")),
        targets=(GPT, GPT_4O, SONNET),
        sends=(user("see", TEXTS.media_unreachable.format(kind="document")), assistant(GEMINI_2, "Hm."), user("ok")),
        reports=("media_unreachable at messages[0].content[1]",),
        requires=(MediaNeeded(path=("messages", 0, "content", 1), reference=GEMINI_FILE),),
    ),
    "for the same model it is kept": Row(
        threads="pydantic-ai: files of one provider only",
        given=(user("see", file(file_id="file-abc123")), assistant(GPT, "Hm."), user("ok")),
        targets=(GPT, GPT_CHAT),
        sends=(user("see", file(file_id="file-abc123")), assistant(GPT, "Hm."), user("ok")),
    ),
}

SERVER: Final[Mapping[str, Row]] = {
    "what a provider ran itself is never an ordinary call elsewhere": Row(
        threads="vercel/ai#8132, LangChain: passes server tools on, LiteLLM: makes them ordinary calls",
        given=(
            user("hi"),
            assistant(GPT, native("openai-responses", SEARCH, "Searched the web."), "Cats."),
            user("ok"),
        ),
        targets=(GPT_4O, GPT_CHAT, SONNET, KIMI, GEMINI_2),
        sends=(user("hi"), assistant(GPT, "Searched the web.", "Cats."), user("ok")),
        lacks=("ws_",),
        holds=lambda projection: calls_of(projection.context.messages) == (),
        reports=("native_replaced at messages[1].content[0]",),
    ),
    "and is removed if it has no fallback": Row(
        threads="vercel/ai#8132",
        given=(user("hi"), assistant(GPT, native("openai-responses", SEARCH), "Cats."), user("ok")),
        targets=(GPT_4O, GPT_CHAT, SONNET, KIMI, GEMINI_2),
        sends=(user("hi"), assistant(GPT, "Cats."), user("ok")),
        lacks=("ws_",),
        reports=("native_dropped at messages[1].content[0]",),
    ),
    "the tool itself is not offered to others": Row(
        threads="LangChain: passes server tools on",
        given=conversation(
            user("hi"),
            tools=(READ, NativeTool(protocol="anthropic-messages", definition={"type": "web_search_20250305"})),
        ),
        targets=(GPT_4O, KIMI, GEMINI_2, BEDROCK_SONNET),
        holds=lambda projection: projection.context.tools == (READ,),
        reports=("tool_removed at tools[1]",),
    ),
    "but the target's own tool of the same kind is": Row(
        threads="LangChain: passes server tools on",
        given=conversation(
            user("hi"),
            tools=(READ, NativeTool(protocol="anthropic-messages", definition={"type": "web_search_20250305"})),
        ),
        targets=(GPT,),
        holds=lambda projection: (
            projection.context.tools[1:]
            == (NativeTool(protocol="openai-responses", definition={"type": "web_search"}),)
        ),
        reports=("server_tool_mapped at tools[1]",),
    ),
    "citations stay with the provider that understands them": Row(
        threads="LangChain: strips citations for others",
        given=(user("hi"), assistant(SONNET, text("Cats.", extra=CITATION)), user("ok")),
        targets=(SONNET, FABLE),
        sends=(user("hi"), assistant(SONNET, text("Cats.", extra=CITATION)), user("ok")),
    ),
    "and are stripped for others": Row(
        threads="LangChain: strips citations for others",
        given=(user("hi"), assistant(SONNET, text("Cats.", extra=CITATION)), user("ok")),
        targets=(GPT_4O, GPT, KIMI, GEMINI_2, BEDROCK_SONNET),
        sends=(user("hi"), assistant(SONNET, text("Cats.")), user("ok")),
        lacks=("citations",),
        reports=("extra_removed at messages[1]",),
    ),
    "a refusal is sent to other models as text": Row(
        threads="LangChain: keeps refusals for Responses only",
        given=(
            user("hi"),
            assistant(GPT, native("openai-responses", {"type": "refusal", "refusal": "I cannot."}, "I cannot.")),
            user("why?"),
        ),
        targets=(SONNET, GPT_4O, KIMI),
        sends=(user("hi"), assistant(GPT, "I cannot."), user("why?")),
        reports=("native_replaced at messages[1].content[0]",),
    ),
}

CACHING: Final[Mapping[str, Row]] = {
    "of five cache marks the newest four stay, tools and prompt counted": Row(
        threads="sub2api#176, zeph#1568, pydantic-ai: limits cache points",
        given=conversation(
            user(text("one", cache_mark=MARK)),
            assistant(SONNET, "a"),
            user(text("two", cache_mark=MARK)),
            assistant(SONNET, "b"),
            user(text("three", cache_mark=MARK)),
            tools=(ToolDefinition(name="read", parameters=READ.parameters, cache_mark=MARK),),
            system_prompt=(text("Be kind.", cache_mark=MARK),),
        ),
        targets=(SONNET, FABLE),
        holds=lambda projection: marks(projection) == 4 and "CacheMark(" not in repr(projection.context.tools),
        reports=("cache_mark_removed at tools[0]",),
    ),
    "four stay four": Row(
        threads="sub2api#176",
        given=conversation(
            user(text("one", cache_mark=MARK)),
            assistant(SONNET, "a"),
            user(text("two", cache_mark=MARK)),
            system_prompt=(text("Be kind.", cache_mark=MARK), text("Be brief.", cache_mark=MARK)),
        ),
        targets=(SONNET, FABLE, OPUS),
        holds=lambda projection: marks(projection) == 4,
    ),
    "none reaches a target that has no such marks": Row(
        threads="LiteLLM and any-llm: strip cache_control",
        given=(user(text("one", cache_mark=MARK)), assistant(SONNET, "a"), user(text("two", cache_mark=MARK))),
        targets=(GPT, GPT_4O, KIMI, GEMINI_2, OLLAMA),
        sends=(user("one"), assistant(SONNET, "a"), user("two")),
        lacks=("CacheMark(",),
        reports=("cache_mark_removed at messages[0].content[0]", "cache_mark_removed at messages[2].content[0]"),
    ),
    "the mark of a native block moves to its fallback": Row(
        threads="LiteLLM and any-llm: strip cache_control",
        given=(user(replace(native("openai-chat", {"type": "x"}, text("one"), text("two")), cache_mark=MARK)),),
        targets=(SONNET, BEDROCK_SONNET),
        sends=(user(text("one"), text("two", cache_mark=MARK)),),
        reports=("native_replaced at messages[0].content[0]",),
    ),
    "marks reach a target on another wire that has such marks": Row(
        threads="LiteLLM and any-llm: strip cache_control",
        given=(user(text("one", cache_mark=MARK)), assistant(SONNET, "a"), user(text("two", cache_mark=MARK))),
        targets=(BEDROCK_SONNET,),
        sends=(user(text("one", cache_mark=MARK)), assistant(SONNET, "a"), user(text("two", cache_mark=MARK))),
    ),
}

ROWS: Final = {**MEDIA, **SERVER, **CACHING}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_target_gets_media_that_it_accepts(row: Row):
    prove(row)


def pictures(count: int) -> tuple[Message, ...]:
    turns = (
        message
        for number in range(count)
        for message in (user(f"{number}", image()), assistant(KIMI, f"Cat {number}."))
    )
    return (*turns, user("and now?"))


def test_eviction_changes_the_prefix_once_a_step_and_not_once_a_turn():
    """pi-condense#3, magic-context#419: a window that slid with every turn missed the cache on 57 % of turns."""
    sent = [project(conversation(*pictures(count)), GROQ_VISION).context.messages for count in range(5, 12)]
    rewritten = [later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(sent)]
    assert rewritten == [True, False, False, True, False, False]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_a_growing_history_begins_as_the_last_request_did(target: Model):
    """context-guru#24, tsforge#277, oh-my-pi#6998: one early byte, and 92 seconds of prefill."""
    turns = (
        user("see", image()),
        assistant(OPUS, call("functions.read:0"), call("functions.read:1")),
        result("functions.read:1", "b"),
        result("functions.read:0", image()),
        assistant(KIMI, "A cat.", call("functions.read:0")),
        user("stop"),
        assistant(GPT, PAINTED),
        user("nice"),
        assistant(target, "Thanks.", call("functions.read:0")),
        result("functions.read:0", "c"),
    )
    asked = [1, 4, 6, 8, 10]
    sent = [project(conversation(*turns[:end], tools=(READ,)), target).context.messages for end in asked]
    for earlier, later in pairwise(sent):
        assert is_paired(later)
        assert later[: len(earlier)] == earlier
