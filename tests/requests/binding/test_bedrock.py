"""Bound reasoning on the Bedrock wire."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from segue import ChangeCode, Context, Model, Outbox, Request, UserMessage, prepare

OPUS = Model(
    "global.anthropic.claude-opus-5-5-v1:0", "amazon-bedrock", "bedrock-converse", reasoning=True, max_tokens=8000
)


def answer(request: Request, number: int, **fields: object) -> dict[str, object]:
    signed = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": f"sig-{number}"}}}
    return {
        "output": {"message": {"role": "assistant", "content": [signed, {"text": f"answer {number}"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        **fields,
    }


def blocks(request: Request) -> list[str]:
    return [
        block["reasoningContent"]["reasoningText"]["signature"]
        for turn in request.body["messages"]
        for block in turn["content"]
        if "reasoningContent" in block
    ]


def grow(context: Context, turns: int, start: int = 0) -> Context:
    outbox = Outbox(OPUS)
    for number in range(start, start + turns):
        context = context.add(UserMessage.of("Go on."))
        request = outbox.prepare(context)
        assert request.content == prepare(context, OPUS).content
        context = context.add(request.decode(answer(request, number)))
    return context


def test_reasoning_is_sent_while_the_conversation_grows_and_left_out_after_a_change():
    context = grow(Context(system_prompt="Be brief."), 3).add(UserMessage.of("Go on."))
    assert blocks(prepare(context, OPUS)) == ["sig-0", "sig-1", "sig-2"]
    changed = prepare(replace(context, system_prompt="Be kind."), OPUS)
    assert blocks(changed) == []
    assert len(changed.report.of(ChangeCode.REASONING_WITHHELD)) == 3
    grown = grow(replace(context, system_prompt="Be kind.", messages=context.messages[:-1]), 2, 3)
    assert blocks(prepare(grown.add(UserMessage.of("Go on.")), OPUS)) == ["sig-3", "sig-4"]


def test_an_import_is_asked_about_in_the_fields_of_the_model():
    context = grow(Context(), 2)
    context = replace(
        context,
        messages=tuple(replace(each, sent=None) if each.role == "assistant" else each for each in context.messages),
    ).add(UserMessage.of("Go on."))
    request = prepare(context, OPUS)
    fields = request.body["additionalModelRequestFields"]
    assert fields["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert fields["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]
    assert request.body["additionalModelResponseFieldPaths"] == ["/input_transformations"]
    assert request.sdk_arguments()["additionalModelRequestFields"] == fields
    silent: Any = request.decode(answer(request, 9)).sent
    assert (len(silent.accepted), len(silent.dropped)) == (0, 2)
    dropped = {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    told = answer(request, 9, additionalModelResponseFields={"input_transformations": [dropped]})
    sent: Any = request.decode(told).sent
    assert (len(sent.accepted), len(sent.dropped)) == (1, 1)
    assert sent.before == sent.accepted[-1]
    again = context.add(request.decode(told), UserMessage.of("Go on."))
    assert blocks(prepare(again, OPUS)) == ["sig-0", "sig-9"]
