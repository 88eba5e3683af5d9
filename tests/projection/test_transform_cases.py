"""The cases of the transform tests of pi-ai and ktsoator/or, run against `transform_messages`.

Sources: the transform tests of ktsoator/or (e3b9904), alchemy-rs (f892fb9) and pi-mono packages/ai (83378aa), and what
was observed when pi-ai 1.5.0 was run on histories that none of them handles (2026-11). `after` of a row names the
project of the case. If segue decides otherwise, `deviation` gives the reason.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from projection.building import (
    GEMINI,
    GPT,
    GPT_4O,
    GPT_NEXT,
    KIMI,
    OPUS,
    SONNET,
    TEXTS,
    assistant,
    call,
    call_with,
    file,
    image,
    missing,
    redacted,
    result,
    sanitised,
    system,
    text,
    thinking,
    user,
)
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.projection.passes.ids import NormalizeId
from segue.projection.projector import transform_messages

BLIND: Final = Model("blind", "somebody", "openai-chat", input=("text",))
OMITTED: Final = "(image omitted: model does not support images)"
TOOL_OMITTED: Final = "(tool image omitted: model does not support images)"


@dataclass(frozen=True, kw_only=True)
class Case:
    after: str
    given: tuple[Message, ...]
    target: Model
    sends: tuple[Message, ...]
    normalize: NormalizeId | None = None
    deviation: str | None = None


REASONING: Final[Mapping[str, Case]] = {
    "signed thinking of the same model is kept with its signature": Case(
        after="rs thinking_same_model_with_signature; go PreservesSameModelReasoning",
        given=(user("hi"), assistant(SONNET, thinking("Let me see.", "sig0"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, thinking("Let me see.", "sig0"), "Hello.")),
    ),
    "signed thinking without text is kept for its model": Case(
        after="pi and go: same-model signed empty thinking",
        given=(user("hi"), assistant(SONNET, thinking("", "sig0"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, thinking("", "sig0"), "Hello.")),
    ),
    "redacted thinking is kept for its model": Case(
        after="go PreservesSameModelReasoning",
        given=(user("hi"), assistant(SONNET, redacted("payload", "[Reasoning redacted]"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, redacted("payload", "[Reasoning redacted]"), "Hello.")),
    ),
    "unsigned thinking is kept where the wire takes it without a signature": Case(
        after="rs: same model without a signature, keep as it is",
        given=(user("hi"), assistant(KIMI, thinking("Let me see."), "Hello.")),
        target=KIMI,
        sends=(user("hi"), assistant(KIMI, thinking("Let me see."), "Hello.")),
    ),
    "unsigned thinking of the same model is text where the wire demands a signature": Case(
        after="rs: same model without a signature, keep as it is",
        given=(user("hi"), assistant(SONNET, thinking("Let me see."), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, "Let me see.", "Hello.")),
        deviation="Anthropic answers 'thinking.signature: Field required', so even its own model cannot get it back",
    ),
    "thinking of another model becomes plain text without tags, in its place": Case(
        after="rs thinking_different_model_to_text; pi03 converts thinking to plain text when the source differs",
        given=(user("hi"), assistant(OPUS, "First.", thinking("Let me see.", "sig0"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(OPUS, "First.", "Let me see.", "Hello.")),
    ),
    "thinking of another model becomes text even for a model that does not reason": Case(
        after="go DropsCrossModelReasoningAndRemapsToolResult",
        given=(user("hi"), assistant(SONNET, thinking("Let me see.", "sig0"), "Hello.")),
        target=GPT_4O,
        sends=(user("hi"), assistant(SONNET, "Let me see.", "Hello.")),
        deviation="this function does the same (readable thinking becomes text); `project` has a policy for it",
    ),
    "redacted thinking of another model is removed, including its text": Case(
        after="go DropsCrossModelReasoningAndRemapsToolResult",
        given=(user("hi"), assistant(OPUS, redacted("payload", "[Reasoning redacted]"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(OPUS, "Hello.")),
    ),
    "blank unsigned thinking of the same model is removed": Case(
        after="rs empty_thinking_filtered",
        given=(user("hi"), assistant(SONNET, thinking("  \n"), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, "Hello.")),
    ),
    "and elsewhere": Case(
        after="rs empty_thinking_filtered",
        given=(user("hi"), assistant(OPUS, thinking(""), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(OPUS, "Hello.")),
    ),
    "redacted thinking without its payload is removed even for the same model": Case(
        after="pi and go keep it",
        given=(user("hi"), assistant(SONNET, redacted(None), "Hello.")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, "Hello.")),
        deviation="without the payload there is nothing to replay, and an empty one is refused",
    ),
    "the signature of a text stays for the same model": Case(
        after="rs text_signature_stripped_for_different_model, the other half",
        given=(user("hi"), assistant(GPT, text("Hello.", "msg_1"))),
        target=GPT,
        sends=(user("hi"), assistant(GPT, text("Hello.", "msg_1"))),
    ),
    "the signature of a text goes for another model": Case(
        after="rs text_signature_stripped_for_different_model",
        given=(user("hi"), assistant(GPT, text("Hello.", "msg_1"))),
        target=GPT_NEXT,
        sends=(user("hi"), assistant(GPT, text("Hello."))),
    ),
    "the signature of a call goes for another model": Case(
        after="pi03 removes thoughtSignature when migrating between models",
        given=(user("hi"), assistant(GEMINI, call("a", signature="thought")), result("a", "ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GEMINI, call("a")), result("a", "ok")),
    ),
    "a turn that was thinking and nothing else becomes its text": Case(
        after="pi15: a thinking-only turn of another model is kept as an empty one",
        given=(user("hi"), assistant(OPUS, thinking("Let me see.", "sig0")), user("go on")),
        target=SONNET,
        sends=(user("hi"), assistant(OPUS, "Let me see."), user("go on")),
        deviation="the text is kept; the others leave an empty turn for each encoder to skip",
    ),
}

IDS: Final[Mapping[str, Case]] = {
    "an id is normalised for another model, and its result follows": Case(
        after="rs tool_call_id_normalization; go DropsCrossModelReasoningAndRemapsToolResult",
        given=(user("hi"), assistant(GPT, call("call|fc_1")), result("call|fc_1", "ok"), user("thanks")),
        target=SONNET,
        normalize=sanitised,
        sends=(user("hi"), assistant(GPT, call("call_fc_1")), result("call_fc_1", "ok"), user("thanks")),
    ),
    "an id of the same model does not go through the normaliser": Case(
        after="pi, go, rs: same-model calls are untouched",
        given=(user("hi"), assistant(SONNET, call("toolu_1")), result("toolu_1", "ok")),
        target=SONNET,
        normalize=lambda call_id, _model, _source: f"other_{call_id}",
        sends=(user("hi"), assistant(SONNET, call("toolu_1")), result("toolu_1", "ok")),
    ),
    "without a normaliser a foreign id that the target accepts stays": Case(
        after="rs transform_messages_simple",
        given=(user("hi"), assistant(GPT, call("call_1")), result("call_1", "ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("call_1")), result("call_1", "ok")),
    ),
    "the normaliser is given the id, the target and the message it comes from": Case(
        after="pi03 and rs: (id, model, source); go gives the id alone",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "ok")),
        target=SONNET,
        normalize=lambda call_id, model, source: f"{call_id}-{model.id}-{source.provider}",
        sends=(
            user("hi"),
            assistant(GPT, call("a-claude-sonnet-4-5-openai")),
            result("a-claude-sonnet-4-5-openai", "ok"),
        ),
    ),
    "a synthetic result carries the new id": Case(
        after="pi03 id normalisation with a call that was never answered",
        given=(user("hi"), assistant(GPT, call("call|fc_1")), user("stop")),
        target=SONNET,
        normalize=sanitised,
        sends=(user("hi"), assistant(GPT, call("call_fc_1")), missing("call_fc_1"), user("stop")),
    ),
    "a reused id is mapped for the turn that is foreign and left for the turn that is not": Case(
        after="pi15: A'[f:0] R A[f:0] R sends the second result under the first one's new id",
        given=(
            user("hi"),
            assistant(GPT, call("f.0")),
            result("f.0", "one"),
            assistant(KIMI, call("f.0")),
            result("f.0", "two"),
        ),
        target=KIMI,
        normalize=sanitised,
        sends=(
            user("hi"),
            assistant(GPT, call("f_0")),
            result("f_0", "one"),
            assistant(KIMI, call("f.0")),
            result("f.0", "two"),
        ),
        deviation="ids are mapped by batch and not in one map for the whole history",
    ),
}

PAIRING: Final[Mapping[str, Case]] = {
    "a user message passes": Case(
        after="rs user_message_passthrough",
        given=(user("hi", timestamp=7),),
        target=SONNET,
        sends=(user("hi", timestamp=7),),
    ),
    "when all results are there none is made": Case(
        after="rs no_synthetic_when_all_results_present",
        given=(user("hi"), assistant(GPT, call("a"), call("b")), result("a", "1"), result("b", "2"), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a"), call("b")), result("a", "1"), result("b", "2"), user("ok")),
    ),
    "a call that a user turn cut short gets an error result": Case(
        after="rs orphaned_tool_call_synthetic_result; pi03 tool call without result",
        given=(user("hi"), assistant(GPT, call("a")), user("never mind")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a")), missing("a"), user("never mind")),
    ),
    "for the same model too": Case(
        after="pi03 tool call without result, one per provider",
        given=(user("hi"), assistant(SONNET, call("a")), user("never mind")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, call("a")), missing("a"), user("never mind")),
    ),
    "a call that another assistant turn follows gets one too": Case(
        after="pi15 close() before an assistant turn",
        given=(user("hi"), assistant(GPT, call("a")), assistant(GPT, "Well.")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a")), missing("a"), assistant(GPT, "Well.")),
    ),
    "a call at the end of the history gets one": Case(
        after="pi74, pi15, go, rs; pi03 makes none",
        given=(user("hi"), assistant(GPT, call("a"))),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a")), missing("a")),
    ),
    "only the missing ones are made": Case(
        after="rs multiple_tool_calls_partial_results; go SynthesizesOnlyMissingToolResults",
        given=(user("hi"), assistant(GPT, call("a"), call("b")), result("a", "1"), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a"), call("b")), result("a", "1"), missing("b"), user("ok")),
    ),
    "made ones stand in the order of the calls": Case(
        after="pi15: A[1,2,3] R:2 sends R:2 R:1! R:3!",
        given=(user("hi"), assistant(GPT, call("1"), call("2"), call("3")), result("2", "two"), user("ok")),
        target=SONNET,
        sends=(
            user("hi"),
            assistant(GPT, call("1"), call("2"), call("3")),
            missing("1"),
            result("2", "two"),
            missing("3"),
            user("ok"),
        ),
        deviation="call order: Gemini counts and compares, and caches see the same bytes whichever result is late",
    ),
    "the made result names the tool": Case(
        after="pi15 close()",
        given=(user("hi"), assistant(GPT, call("a", "list_files"))),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a", "list_files")), missing("a", "list_files")),
    ),
    "a late result goes to its call, and what stood between comes after it": Case(
        after="pi15: A[1] U R:1 sends A[1] R:1! U R:1",
        given=(user("hi"), assistant(GPT, call("1")), user("hurry"), result("1", "one")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("1")), result("1", "one"), user("hurry")),
        deviation="two results for one call are refused, and the real one is worth more than 'No result provided'",
    ),
    "a second result for one call goes": Case(
        after="pi15 passes A[1] R:1 R:1 on",
        given=(user("hi"), assistant(GPT, call("1")), result("1", "one"), result("1", "again"), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("1")), result("1", "one"), user("ok")),
        deviation="'each tool_use must have a single result'",
    ),
    "a result that no call asked for goes": Case(
        after="no library but roo",
        given=(user("hi"), result("lost", "found"), assistant(GPT, "Hello."), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, "Hello."), user("ok")),
        deviation="every provider refuses it",
    ),
    "a result before its call is no result of that call": Case(
        after="no library: tool results before any assistant turn",
        given=(result("1", "early"), user("hi"), assistant(GPT, call("1")), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("1")), missing("1"), user("ok")),
        deviation="an answer cannot come before the question: the call is closed, the early result goes",
    ),
    "instructions between a call and its result come after the result": Case(
        after="pi15 holds system messages while calls are pending",
        given=(user("hi"), assistant(GPT, call("1")), system("be brief"), result("1", "one"), user("ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("1")), result("1", "one"), system("be brief"), user("ok")),
    ),
    "results come into the order of their calls": Case(
        after="pi15 leaves them as they came",
        given=(user("hi"), assistant(GPT, call("1"), call("2")), result("2", "two"), result("1", "one")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("1"), call("2")), result("1", "one"), result("2", "two")),
        deviation="Gemini pairs by position where it has no ids",
    ),
    "the same id in a later turn belongs to that turn": Case(
        after="tirea and roo match by a set of ids",
        given=(
            user("hi"),
            assistant(KIMI, call("f:0")),
            result("f:0", "one"),
            assistant(KIMI, call("f:0")),
            user("stop"),
        ),
        target=KIMI,
        sends=(
            user("hi"),
            assistant(KIMI, call("f:0")),
            result("f:0", "one"),
            assistant(KIMI, call("f:0")),
            missing("f:0"),
            user("stop"),
        ),
    ),
    "consecutive turns of one role are not changed": Case(
        after="no library: consecutive turns of one role",
        given=(user("one"), user("two"), assistant(GPT, "a"), assistant(GPT, "b")),
        target=SONNET,
        sends=(user("one"), user("two"), assistant(GPT, "a"), assistant(GPT, "b")),
    ),
    "nor is a history that begins with the assistant": Case(
        after="no library: first message not the user's",
        given=(assistant(GPT, "Welcome."), user("hi")),
        target=GEMINI,
        sends=(assistant(GPT, "Welcome."), user("hi")),
    ),
    "nor are names, options or the order of a wire": Case(
        after="rs user_message_passthrough",
        given=(
            user("hi"),
            assistant(GPT, call("a", "mcp.server/read")),
            result("a", "ok", name="mcp.server/read"),
            user("x"),
        ),
        target=SONNET,
        sends=(
            user("hi"),
            assistant(GPT, call("a", "mcp.server/read")),
            result("a", "ok", name="mcp.server/read"),
            user("x"),
        ),
    ),
}

UNFINISHED: Final[Mapping[str, Case]] = {
    "a turn that ended in an error is removed": Case(
        after="rs filter_error_messages; go DropsIncompleteAssistantTurns",
        given=(user("hi"), assistant(SONNET, "Hel", stop="error", error="overloaded"), user("again")),
        target=SONNET,
        sends=(user("hi"), user("again")),
    ),
    "a turn that was aborted is removed": Case(
        after="rs filter_aborted_messages; go DropsIncompleteAssistantTurns",
        given=(user("hi"), assistant(SONNET, "Hel", stop="aborted"), user("again")),
        target=SONNET,
        sends=(user("hi"), user("again")),
    ),
    "its calls are not answered": Case(
        after="rs filter_aborted_messages",
        given=(user("hi"), assistant(SONNET, call("1"), stop="aborted"), user("again")),
        target=SONNET,
        sends=(user("hi"), user("again")),
    ),
    "its results go with it": Case(
        after="pi15: U A[1](aborted) R:1 U leaves the result without its call",
        given=(user("hi"), assistant(SONNET, call("1"), stop="aborted"), result("1", "one"), user("again")),
        target=SONNET,
        sends=(user("hi"), user("again")),
        deviation="a result without a call is refused",
    ),
    "a failed turn between a call and its result does not close the batch": Case(
        after="pi15: U A[1] A[](error) R:1 U sends two results",
        given=(
            user("hi"),
            assistant(SONNET, call("1")),
            assistant(SONNET, stop="error"),
            result("1", "one"),
            user("ok"),
        ),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, call("1")), result("1", "one"), user("ok")),
        deviation="turns that will not be sent are removed before results are paired, as in rs",
    ),
    "the id of a failed turn is free for the turn that repeats it": Case(
        after="pi15: the ids of failed turns enter the map",
        given=(
            user("hi"),
            assistant(GPT, call("f.0"), stop="error"),
            assistant(GPT, call("f.0")),
            result("f.0", "one"),
        ),
        target=SONNET,
        normalize=sanitised,
        sends=(user("hi"), assistant(GPT, call("f_0")), result("f_0", "one")),
    ),
    "a turn that ran out of tokens is sent": Case(
        after="pi15: length is not filtered",
        given=(user("hi"), assistant(SONNET, "Hel", stop="length"), user("go on")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, "Hel", stop="length"), user("go on")),
    ),
    "and so are its calls": Case(
        after="pi15: length is not filtered",
        given=(user("hi"), assistant(SONNET, call("1"), stop="length"), user("go on")),
        target=SONNET,
        sends=(user("hi"), assistant(SONNET, call("1"), stop="length"), missing("1"), user("go on")),
    ),
}

MEDIA: Final[Mapping[str, Case]] = {
    "images pass to a model that reads them": Case(
        after="rs image_content_passthrough",
        given=(user("see", image()), assistant(GPT, call("a")), result("a", image())),
        target=SONNET,
        sends=(user("see", image()), assistant(GPT, call("a")), result("a", image())),
    ),
    "images become a text for a model that does not, a run of them one": Case(
        after="go DowngradesImagesWithoutMutatingHistory",
        given=(user("see", image(), image("AAAA"), "and", image()),),
        target=BLIND,
        sends=(user("see", OMITTED, "and", OMITTED),),
    ),
    "those of tool results have their own text": Case(
        after="go DowngradesImagesWithoutMutatingHistory",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "shot:", image(), image())),
        target=BLIND,
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "shot:", TOOL_OMITTED)),
    ),
    "a placeholder is not repeated": Case(
        after="pi15: a text equal to the placeholder suppresses the next one",
        given=(user(OMITTED, image()),),
        target=BLIND,
        sends=(user(OMITTED),),
    ),
    "a result that is only an image moves it behind the batch, where results are text": Case(
        after="pi03 result with only an image",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", image()), assistant(SONNET, "A cat.")),
        target=GPT_4O,
        sends=(
            user("hi"),
            assistant(SONNET, call("a")),
            result("a", TEXTS.media_moved),
            user(TEXTS.tool_media, image()),
            assistant(SONNET, "A cat."),
        ),
    ),
    "a result of text and image keeps its text": Case(
        after="pi03 result with text and image",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", "a shot", image())),
        target=GPT_4O,
        sends=(user("hi"), assistant(SONNET, call("a")), result("a", "a shot"), user(TEXTS.tool_media, image())),
    ),
    "images of several results wait for the last one": Case(
        after="pi03 batches images after consecutive results; go DeepSeekVisionToolResultImageUsesFollowupUserMessage",
        given=(
            user("hi"),
            assistant(SONNET, call("a"), call("b")),
            result("a", "one", image()),
            result("b", "two", image("AAAA")),
            user("which?"),
        ),
        target=GPT_4O,
        sends=(
            user("hi"),
            assistant(SONNET, call("a"), call("b")),
            result("a", "one"),
            result("b", "two"),
            user(TEXTS.tool_media, image(), image("AAAA")),
            user("which?"),
        ),
    ),
    "an image stays in a result where the wire has a place for it": Case(
        after="pi03 images in function_call_output",
        given=(user("hi"), assistant(SONNET, call("a")), result("a", "a shot", image())),
        target=GPT,
        sends=(user("hi"), assistant(SONNET, call("a")), result("a", "a shot", image())),
    ),
    "a file that the model cannot read becomes a text as well": Case(
        after="no library: base64 images only",
        given=(user("see", file()),),
        target=BLIND,
        sends=(user("see", TEXTS.file_omitted.format(kind="document")),),
        deviation="the others support only images",
    ),
}

UNICODE: Final[Mapping[str, Case]] = {
    "emoji and other scripts pass as they are": Case(
        after="pi03 emoji; LinkedIn data",
        given=(user("🙈 日本語 „quoted“"), assistant(GPT, call("a")), result("a", "Mario Zechner wann? 🎉 — “ja”")),
        target=SONNET,
        sends=(user("🙈 日本語 „quoted“"), assistant(GPT, call("a")), result("a", "Mario Zechner wann? 🎉 — “ja”")),
    ),
    "half a pair in a result becomes U+FFFD": Case(
        after="pi03 unpaired high surrogate",
        given=(user("hi"), assistant(GPT, call("a")), result("a", "cut off: \ud83d")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call("a")), result("a", "cut off: \ufffd")),
        deviation="pi removes it; a replacement shows that something was there",
    ),
    "two halves side by side are one character": Case(
        after="pi03 keeps valid pairs",
        given=(user("see \ud83d\ude48"),),
        target=SONNET,
        sends=(user("see 🙈"),),
    ),
    "a replacement character that was there before stays": Case(
        after="rs removes every U+FFFD",
        given=(user("a\ufffdb"),),
        target=SONNET,
        sends=(user("a\ufffdb"),),
        deviation="it is a legitimate character",
    ),
    "half a pair in the arguments of a call, keys included": Case(
        after="pi sanitises no arguments",
        given=(user("hi"), assistant(GPT, call_with("a", {"\ud83d": ["x\ude48"]})), result("a", "ok")),
        target=SONNET,
        sends=(user("hi"), assistant(GPT, call_with("a", {"\ufffd": ["x\ufffd"]})), result("a", "ok")),
        deviation="the request body would not be valid JSON with it",
    ),
}

EMPTY: Final[Mapping[str, Case]] = {
    "a history of nothing": Case(after="pi03 empty", given=(), target=SONNET, sends=()),
    "empty turns are left to the pass for turns": Case(
        after="pi03 empty array, empty string, white space, an empty assistant in the middle",
        given=(user(), user(""), user("  "), assistant(SONNET), user("hi")),
        target=SONNET,
        sends=(user(), user(""), user("  "), assistant(SONNET), user("hi")),
    ),
}

TABLES: Final = {
    name: case for table in (REASONING, IDS, PAIRING, UNFINISHED, MEDIA, UNICODE, EMPTY) for name, case in table.items()
}


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES.keys())
def test_a_history_is_transformed_for_a_model(case: Case):
    before = copy.deepcopy(case.given)
    assert transform_messages(case.given, case.target, case.normalize) == case.sends
    assert case.given == before, "the stored history was changed"


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES.keys())
def test_transforming_twice_changes_nothing_more(case: Case):
    once = transform_messages(case.given, case.target)
    assert transform_messages(once, case.target) is once


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES.keys())
def test_messages_that_need_nothing_are_the_same_objects(case: Case):
    sent = transform_messages(case.given, case.target, case.normalize)
    given = {id(message) for message in case.given}
    assert all(id(message) in given for message in sent if message in case.given)


def test_no_two_names_of_the_tables_are_the_same():
    tables = (REASONING, IDS, PAIRING, UNFINISHED, MEDIA, UNICODE, EMPTY)
    assert len(TABLES) == sum(map(len, tables))


def test_a_list_of_messages_is_taken_as_well():
    assert transform_messages([user("hi")], SONNET) == (user("hi"),)


def test_the_target_may_be_named():
    assert transform_messages((user("hi"),), "anthropic/claude-sonnet-4-5") == (user("hi"),)
