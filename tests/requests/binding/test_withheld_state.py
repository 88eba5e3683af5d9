"""What a server says that it withheld from its model: one diagnostic on every protocol, and it is learned from."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bound_state.machine import ORGANIZATIONS, transport
from segue import (
    AssistantMessage,
    Client,
    Context,
    Loss,
    Model,
    Options,
    Policy,
    Request,
    Retry,
    UserMessage,
    classify,
    get_model,
    prepare,
)
from segue.testing.emulator import Emulator, Step

GPT = get_model("openai/gpt-5.4")
NAME = "rs_" + "1" * 40
OTHER = "rs_" + "2" * 40


def _item(name: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": name, "encrypted_content": f"gAAAA{name}", "summary": []}


def _reply(*items: dict[str, Any], removed: list[dict[str, str]] | None = None) -> dict[str, Any]:
    part = {"type": "output_text", "text": "So.", "annotations": []}
    text = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    said = {} if removed is None else {"input_transformations": removed}
    head = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.4"}
    return {**head, "output": [*items, text], **said}


def _removed(reason: str, name: str = NAME) -> list[dict[str, str]]:
    return [{"id": name, "type": "reasoning", "action": "removed", "reason": reason}]


def _claude(reason: str) -> list[dict[str, str]]:
    return [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": reason}]


def _asked() -> tuple[Context, Request]:
    """Give a conversation with a reasoning item, and the request that sends it back."""
    context = Context(messages=(UserMessage.of("Hi"),))
    first = prepare(context, GPT, account="org-a").decode(_reply(_item(NAME)), account="org-a")
    grown = context.add(first, UserMessage.of("More"))
    request = prepare(grown, GPT, account="org-a")
    assert _sent_items(request) == [NAME]
    return grown, request


def _sent_items(request: Request) -> list[str]:
    items = cast("list[dict[str, Any]]", request.body["input"])
    return [item["id"] for item in items if item.get("type") == "reasoning"]


def _stream(reply: dict[str, Any]) -> list[dict[str, Any]]:
    begun = {**reply, "output": [], "status": "in_progress"}
    kinds = [("response.created", begun), ("response.in_progress", begun), ("response.completed", reply)]
    return [{"type": kind, "response": body} for kind, body in kinds]


WHOLE = {
    "openai-responses": ("openai/gpt-5.4", _reply(removed=_removed("prefix_mismatch"))),
    "anthropic-messages": (
        "anthropic/claude-opus-5-5",
        {
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [{"type": "text", "text": "So."}],
            "stop_reason": "end_turn",
            "input_transformations": _claude("prefix_binding_mismatch"),
        },
    ),
    "bedrock-converse": (
        "amazon-bedrock/anthropic.claude-opus-5-5",
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "So."}]}},
            "stopReason": "end_turn",
            "additionalModelResponseFields": {"input_transformations": _claude("prefix_binding_mismatch")},
        },
    ),
}
FRAMES: dict[str, list[dict[str, Any]]] = {
    "openai-responses": _stream(WHOLE["openai-responses"][1]),
    "anthropic-messages": [
        {"type": "message_start", "message": {**WHOLE["anthropic-messages"][1], "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "So."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    "bedrock-converse": [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "So."}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {
            "messageStop": {
                "stopReason": "end_turn",
                "additionalModelResponseFields": {"input_transformations": _claude("prefix_binding_mismatch")},
            }
        },
        {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}},
    ],
}


@pytest.mark.parametrize("protocol", WHOLE)
def test_a_reply_says_what_was_withheld(protocol: str) -> None:
    name, body = WHOLE[protocol]
    message = prepare("Hi", name).decode(body)
    (note,) = message.diagnostics
    assert note.type == "reasoning_dropped"
    (entry,) = cast("dict[str, Any]", note.details)["dropped"]
    assert entry["reason"] in ("prefix_mismatch", "prefix_binding_mismatch")


@pytest.mark.parametrize("protocol", FRAMES)
def test_a_stream_says_it_once(protocol: str) -> None:
    name, _ = WHOLE[protocol]
    decoder = prepare("Hi", name).stream_decoder()
    events = [event for frame in FRAMES[protocol] for event in decoder.feed(frame)] + decoder.finish()
    notices = [event.diagnostic for event in events if event.type == "notice"]
    last = events[-1]
    assert last.type == "done"
    assert [note.type for note in notices] == ["reasoning_dropped"]
    assert last.message.diagnostics == tuple(notices)


@pytest.mark.parametrize("removed", [None, []])
def test_nothing_withheld_says_nothing(removed: list[dict[str, str]] | None) -> None:
    _, request = _asked()
    message = request.decode(_reply(removed=removed), account="org-a")
    assert message.diagnostics == ()
    assert message.sent is not None
    assert message.sent.dropped == ()


@pytest.mark.parametrize("reason", ["prefix_mismatch", "organization_mismatch", "end_user_mismatch", "model_mismatch"])
def test_what_was_withheld_is_not_sent_again(reason: str) -> None:
    grown, request = _asked()
    answered = grown.add(request.decode(_reply(removed=_removed(reason)), account="org-a"), UserMessage.of("On"))
    assert _sent_items(prepare(answered, GPT, account="org-a")) == []


def test_reasoning_of_an_ended_turn_is_no_fault() -> None:
    grown, request = _asked()
    message = request.decode(_reply(removed=_removed("turn_boundary")), account="org-a")
    (change,) = request.note_dropped(message)
    assert (change.detail, change.loss) == ("turn_boundary", Loss.NONE)
    assert _sent_items(prepare(grown.add(message, UserMessage.of("On")), GPT, account="org-a")) == [NAME]


def test_another_account_is_asked_again() -> None:
    """Nobody knows the account of imported reasoning, and what one account says does not hold for another."""
    grown, _ = _asked()
    imported = grown.messages[1]
    assert isinstance(imported, AssistantMessage)
    unknown = replace(grown, messages=(grown.messages[0], replace(imported, sent=None), grown.messages[2]))
    request = prepare(unknown, GPT, account="org-b")
    message = request.decode(_reply(removed=_removed("organization_mismatch")), account="org-b")
    answered = unknown.add(message, UserMessage.of("On"))
    assert _sent_items(prepare(answered, GPT, account="org-b")) == []
    assert _sent_items(prepare(answered, GPT, account="org-a")) == [NAME]


def test_another_model_is_asked_again() -> None:
    grown, _ = _asked()
    twin = Model("gpt-5.4-2026-03-05", "openai", "openai-responses", reasoning=True)
    context = replace(grown, messages=grown.messages[:2])
    policy = Policy(same_model=lambda message, model: message.provider == model.provider)
    asked = prepare(context.add(UserMessage.of("More")), twin, account="org-a", policy=policy)
    assert _sent_items(asked) == [NAME]
    message = asked.decode(_reply(removed=_removed("model_mismatch")), account="org-a")
    answered = context.add(UserMessage.of("More"), message, UserMessage.of("On"))
    assert _sent_items(prepare(answered, twin, account="org-a", policy=policy)) == []
    assert _sent_items(prepare(answered, GPT, account="org-a", policy=policy)) == [NAME]


def test_items_without_ids_are_found_by_their_order() -> None:
    grown, request = _asked()
    for item in cast("list[dict[str, Any]]", request.body["input"]):
        item.pop("id", None)
    message = request.decode(_reply(removed=_removed("prefix_mismatch", OTHER)), account="org-a")
    assert _sent_items(prepare(grown.add(message, UserMessage.of("On")), GPT, account="org-a")) == []


@pytest.mark.parametrize("stream", [False, True])
def test_the_emulator_withholds_and_the_client_learns(stream: bool) -> None:
    emulator = Emulator(organizations=ORGANIZATIONS, withholds=True)
    client = Client(
        api_key={"openai": "key-a"}, retry=Retry(max_retries=0), transport=transport(lambda: emulator), environment={}
    )
    options = Options(thinking="medium")

    def ask(context: Context) -> AssistantMessage:
        emulator.script.add(Step(thinking="Hm.", text="So."))
        if not stream:
            return client.complete(context, GPT, options=options)
        *_, last = client.stream(context, GPT, options=options)
        return last.message  # pyright: ignore[reportAttributeAccessIssue]

    context = Context(system_prompt="Be brief.", messages=(UserMessage.of("Hi"),))
    context = context.add(ask(context), UserMessage.of("More"))
    context = context.add(ask(context), UserMessage.of("On"))
    assert emulator.requests[-1].transformations == ()
    changed = replace(context, system_prompt="Be kind.")
    reply = ask(changed)
    assert [each["reason"] for each in emulator.requests[-1].transformations] == ["prefix_mismatch"] * 2
    assert [note.type for note in reply.diagnostics] == ["reasoning_dropped"]
    again = changed.add(reply, UserMessage.of("And?"))
    ask(again)
    assert emulator.requests[-1].transformations == ()
    assert len([item for item in _input(emulator) if item.get("type") == "reasoning"]) == 1
    assert [request.status for request in emulator.requests] == [200] * 4
    client.close()


def _input(emulator: Emulator) -> list[dict[str, Any]]:
    return json.loads(json.dumps(emulator.requests[-1].body))["input"]


REASONS = {
    "MISSING_THOUGHT_SIGNATURE": "invalid_history",  # the request's fault
    "PUP_LIMITED_DISABLED": "auth",  # the account's, whatever is asked
    "ESCALATION": "refused",
    "MODEL_ARMOR": "refused",
}


@pytest.mark.parametrize(("reason", "kind"), REASONS.items())
def test_google_says_why_it_stopped(reason: str, kind: str) -> None:
    body = {"candidates": [{"content": {"parts": []}, "finishReason": reason}]}
    message = prepare("Hi", "google/gemini-3.1-pro-preview").decode(body)
    assert message.stop_reason == "error"
    assert classify(message, provider="google").kind == kind


def test_an_encrypted_result_that_is_refused_is_state() -> None:
    text = "Encrypted function output content could not be decrypted or decoded."
    error = {"error": {"message": text, "code": "invalid_request_body"}}
    assert classify(error, provider="openai", status=400).kind == "opaque_rejected"
