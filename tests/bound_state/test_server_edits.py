"""Conversations that the provider shortens itself: context editing and compaction, against the strict emulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bound_state.machine import BEDROCK_OPUS, FABLE, LOOK, OPTIONS, OPUS, SMALL, SONNET, Walk
from segue import (
    AssistantMessage,
    ChangeCode,
    Context,
    Fit,
    Model,
    NativeContent,
    Options,
    Outbox,
    Policy,
    SettingsError,
    TextContent,
    UserMessage,
    check,
    estimate_tokens,
    get_model,
    prepare,
)
from segue.testing.emulator import EmulatedCall, Emulator, Step, edits

GPT = get_model("openai/gpt-5.6")
WINDOW = 80_000
THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
WORDS = {"anthropic": 8400, "openai": 13_000}
"""Four results of so many words have more tokens than the mark, and fit into 70,000."""
LONG = "seen " * 15_000
COMPACT = Policy(fit=Fit(server="compact"))
CLEAR = Policy(fit=Fit(server="clear"))
BETAS = "anthropic-beta"


def start(model: Model, policy: Policy) -> Walk:
    walk = Walk(models=(model,), emulator=Emulator(strict=False), policy=policy)
    walk.window = WINDOW
    return walk


def grow(walk: Walk, way: str) -> None:
    """Ask and call until the conversation has more tokens than the mark."""
    for number in range(4):
        walk.ask(None if number else "Go on.", CALL, way=way)
        walk.results("seen " * WORDS[walk.model.provider])


def body_of(walk: Walk) -> dict[str, Any]:
    assert walk.sent is not None
    return cast("dict[str, Any]", walk.sent.body)


def edits_in(walk: Walk) -> list[str]:
    fields = body_of(walk).get("context_management") or {}
    return [each["type"] for each in (fields["edits"] if isinstance(fields, dict) else fields)]


@pytest.mark.parametrize("way", ["client", "stream", "conversation", "prepare"])
def test_the_server_summarises_and_the_reasoning_since_then_stays(way: str) -> None:
    walk = start(OPUS, COMPACT)
    grow(walk, way)
    reply = walk.ask(None, THINK, way=way)
    assert edits_in(walk) == ["compact_20260112"]
    assert len(walk.sent_signatures()) == 4, "nothing is cut, and all reasoning is sent"
    assert [piece.kind for piece in reply.content] == ["native", "thinking", "text"], "the reply has the summary"
    assert [change.detail for change in walk.report.of(ChangeCode.SERVER_EDITED)] == [
        "the server summarised everything before the reply"
    ]
    for number in (1, 2, 3):
        walk.ask(f"More {number}.", THINK, way=way)
        assert len(walk.sent_signatures()) == number, "the reasoning since the summary"
        assert not walk.report.of(ChangeCode.SERVER_EDITED, ChangeCode.TURNS_DROPPED, ChangeCode.RESULT_SHORTENED)
    walk.close()


@pytest.mark.parametrize("way", ["client", "stream"])
def test_the_server_clears_old_results_and_all_reasoning_stays(way: str) -> None:
    walk = start(OPUS, CLEAR)
    grow(walk, way)
    walk.ask(None, THINK, way=way)
    assert edits_in(walk) == ["clear_tool_uses_20250919"]
    assert len(walk.sent_signatures()) == 4
    [change] = walk.report.of(ChangeCode.SERVER_EDITED)
    assert change.detail.startswith("the server cleared 1 tool uses, ")
    walk.close()


@pytest.mark.parametrize("way", ["client", "stream"])
def test_openai_compacts_and_its_item_comes_back(way: str) -> None:
    walk = start(GPT, COMPACT)
    grow(walk, way)
    walk.ask(None, THINK, way=way)
    assert body_of(walk)["context_management"] == [{"type": "compaction", "compact_threshold": 63_000}]
    assert walk.report.of(ChangeCode.SERVER_EDITED)
    walk.ask("More.", THINK, way=way)
    assert [item.get("type") for item in body_of(walk)["input"]].count("compaction") == 1
    assert not walk.report.of(ChangeCode.SERVER_EDITED, ChangeCode.TURNS_DROPPED, ChangeCode.RESULT_SHORTENED)
    walk.close()


@pytest.mark.parametrize(
    ("model", "window", "policy"),
    [
        pytest.param(BEDROCK_OPUS, WINDOW, COMPACT, id="another platform"),
        pytest.param(get_model("anthropic/claude-sonnet-4-5"), WINDOW, COMPACT, id="an older model"),
        pytest.param(OPUS, 50_000, COMPACT, id="a window below the smallest trigger"),
        pytest.param(GPT, WINDOW, CLEAR, id="another edit than the provider has"),
        pytest.param(OPUS, WINDOW, Policy(), id="nobody asks for it"),
    ],
)
def test_segue_cuts_where_the_server_cannot(model: Model, window: int, policy: Policy) -> None:
    messages = [each for n in range(9) for each in (UserMessage.of(f"{n} {LONG[:40_000]}"), text_of(model))]
    request = prepare(
        Context(messages=(*messages, UserMessage.of("Now."))),
        replace(model, context_window=window),
        options=OPTIONS,
        policy=policy,
    )
    assert "context_management" not in request.body
    assert "compact" not in str(request.headers)
    assert request.report.of(ChangeCode.TURNS_DROPPED)


def text_of(model: Model) -> AssistantMessage:
    return AssistantMessage(
        content=(TextContent(text="Yes."),), protocol=model.protocol, provider=model.provider, model=model.id
    )


def test_a_request_that_does_not_fit_at_all_is_cut_all_the_same() -> None:
    messages = [each for n in range(9) for each in (UserMessage.of(f"{n} {LONG}"), text_of(OPUS))]
    small = replace(OPUS, context_window=WINDOW)
    request = prepare(Context(messages=(*messages, UserMessage.of("Now."))), small, policy=COMPACT)
    assert request.report.of(ChangeCode.TURNS_DROPPED)
    assert request.projection.window is not None
    assert request.projection.window.estimate <= 70_000


def summarised(**block: object) -> Context:
    content = (
        NativeContent(protocol="anthropic-messages", block={"type": "compaction", "content": "All of it.", **block}),
        TextContent(text="Yes."),
    )
    reply = replace(text_of(OPUS), content=content)
    return Context(tools=(LOOK,), messages=(UserMessage.of(LONG * 9), reply, UserMessage.of("And?")))


@pytest.mark.parametrize("extra", [None, {"anthropic-messages": {"context_management": {"edits": []}}}], ids=str)
def test_a_stored_summary_is_sent_with_its_edit_and_header(extra: Any) -> None:
    request = prepare(summarised(), OPUS, options=Options(max_tokens=100, extra=extra))
    assert [edit["type"] for edit in request.body["context_management"]["edits"]] == ["compact_20260112"]
    assert request.headers[BETAS] == "compact-2026-01-12"
    assert accepted(request.content, request.headers) == 200
    bare = {key: value for key, value in request.body.items() if key != "context_management"}
    assert accepted(json.dumps(bare).encode(), request.headers) == 400, "the provider refuses it without the edit"


def test_edits_of_the_caller_are_kept() -> None:
    own = {"edits": [{"type": "clear_thinking_20251015"}, {"type": "compact_20260112", "instructions": "Be brief."}]}
    extra = {"anthropic-messages": {"context_management": own}}
    request = prepare(summarised(), OPUS, options=Options(max_tokens=100, extra=extra), policy=COMPACT)
    assert request.body["context_management"] == own
    assert request.headers[BETAS] == "context-management-2025-06-27,compact-2026-01-12"
    assert accepted(request.content, request.headers) == 200


def test_what_a_summary_covers_takes_no_room() -> None:
    small = replace(OPUS, context_window=WINDOW)
    assert estimate_tokens(summarised(), small) > WINDOW
    for policy in (COMPACT, Policy()):
        request = prepare(summarised(), small, policy=policy)
        assert not request.report.of(ChangeCode.TURNS_DROPPED, ChangeCode.RESULT_SHORTENED)
        assert request.projection.window is not None
        assert request.projection.window.estimate < 2000


def test_a_summary_on_demand_is_asked_for_and_sent_back() -> None:
    walk = Walk(models=(OPUS,), emulator=Emulator(strict=False))
    walk.ask("One.", THINK)
    extra = {"anthropic-messages": {"compaction": {"type": "summarize"}}}
    request = prepare(walk.context, OPUS, options=Options(max_tokens=500, extra=extra), policy=COMPACT)
    assert request.headers[BETAS] == "compact-2026-09-04"
    assert "context_management" not in request.body, "the two are refused beside each other"
    answer = walk.emulator.respond("POST", "/v1/messages", request.headers, request.content)
    assert answer.status == 200, answer.body
    summary = request.decode(json.loads(answer.body))
    walk.change(messages=(summary,))
    for number in (0, 1):
        walk.ask(f"Go on {number}.", THINK)
        assert len(walk.sent_signatures()) == 1 + number, "that of the summary, and the reasoning since then"
    walk.close()


@pytest.mark.parametrize(
    "options",
    [Options(stop=("END",)), Options(output_schema={"type": "object", "properties": {}})],
    ids=["stop", "schema"],
)
def test_a_summary_on_demand_is_not_asked_for_next_to_what_refuses_it(options: Options) -> None:
    """The API answers 400 next to `stop_sequences` and `output_config.format` (documentation, 2026-09)."""
    extra = {"anthropic-messages": {"compaction": {"type": "summarize"}}}
    walk = Walk(models=(OPUS,), emulator=Emulator(strict=False))
    walk.ask("One.", THINK)
    request = prepare(walk.context, OPUS, options=replace(options, max_tokens=500, extra=extra))
    answer = walk.emulator.respond("POST", "/v1/messages", request.headers, request.content)
    assert answer.status == 200, answer.body
    assert "compaction" in str(request.report.of(ChangeCode.OPTION_REMOVED))
    given = {**request.body, "compaction": {"type": "summarize"}}
    [found] = check(given, protocol="anthropic-messages", model="anthropic/claude-opus-5-5")
    assert found.code == "options_conflict"
    walk.close()


def test_a_summary_on_demand_is_made_of_a_conversation_that_has_one_of_an_edit() -> None:
    """The summary of an edit needs the edit, which is refused here; what it covers is in the request."""
    extra = {"anthropic-messages": {"compaction": {"type": "summarize"}}}
    whole = summarised()
    alone = whole.add(replace(whole.messages[1], content=whole.messages[1].content[:1]), UserMessage.of("Now."))
    for context, texts in ((whole, ["Yes."]), (alone, ["Yes.", "All of it."])):
        request = prepare(context, OPUS, options=Options(max_tokens=500, extra=extra))
        replies = [turn["content"] for turn in request.body["messages"] if turn["role"] == "assistant"]
        assert replies == [[{"type": "text", "text": text}] for text in texts]
        assert accepted(request.content, request.headers) == 200
        outbox = Outbox(OPUS)
        outbox.prepare(context, options=OPTIONS)
        assert outbox.prepare(context, options=Options(max_tokens=500, extra=extra)).content == request.content


def test_the_usage_of_a_reply_counts_what_the_server_reads() -> None:
    """Otherwise a long conversation that is summarised looks as if the provider had cut it in silence."""
    request = prepare(summarised(), OPUS, options=Options(max_tokens=100))
    answer = Emulator(strict=False).respond("POST", "/v1/messages", request.headers, request.content)
    usage = request.decode(json.loads(answer.body)).usage
    assert usage is not None
    assert usage.input + usage.cache_read + usage.cache_write < 2000


@pytest.mark.parametrize("policy", [COMPACT, CLEAR])
def test_an_outbox_writes_the_same(policy: Policy) -> None:
    outbox, context = Outbox(OPUS, policy), summarised()
    for number in range(4):
        request = outbox.prepare(context, options=OPTIONS)
        whole = prepare(context, OPUS, options=OPTIONS, policy=policy)
        assert request.content == whole.content
        assert request.headers == whole.headers
        context = context.add(text_of(OPUS), UserMessage.of(f"More {number}."))


@pytest.mark.parametrize("policy", [COMPACT, CLEAR], ids=["compact", "clear"])
@pytest.mark.parametrize("seeds", [(0, 1, 106, 113, 148), pytest.param(range(200), marks=pytest.mark.proof)], ids=str)
def test_the_laws_hold_in_random_conversations(
    seeds: Sequence[int], policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a small window, in which a real provider would not compact yet."""
    monkeypatch.setattr(edits, "_LEAST_TRIGGER", 0)
    early = [replace(model, rules={**model.rules, "compaction": None}) for model in (OPUS, OPUS, SONNET, FABLE)]
    for seed in seeds:
        walk = Walk(seed, models=(*early, BEDROCK_OPUS, GPT), policy=policy)
        walk.window = SMALL
        try:
            for _ in range(20):
                walk.step()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            walk.close()


def test_an_unknown_edit_is_an_error() -> None:
    with pytest.raises(SettingsError, match="expected one of no, clear, compact"):
        Fit(server=cast("Any", "summarise"))


def accepted(content: bytes, headers: dict[str, str]) -> int:
    return Emulator(strict=False).respond("POST", "/v1/messages", headers, content).status
