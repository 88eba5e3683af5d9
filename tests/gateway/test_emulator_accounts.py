"""The emulator on other wires and in other accounts: Bedrock, OpenAI, Google; beta headers; what it tells tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.emulated_claude import BINDING, TOOL, Answered, Talk, turns
from segue.testing.emulator import EmulatedCall, Emulator, Step

REPORT = ["/input_transformations"]


class Converse:
    """A conversation with a Claude model at Bedrock."""

    def __init__(self, emulator: Emulator, model: str) -> None:
        self.emulator = emulator
        self.model = model
        self.system = [{"text": "Be brief."}]
        self.messages: list[Any] = []
        self.fields: dict[str, Any] = {"thinking": {"type": "adaptive"}}
        self.tools = [{"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}]

    def say(self, text: str) -> Answered:
        self.messages.append({"role": "user", "content": [{"text": text}]})
        body = {
            "messages": self.messages,
            "system": self.system,
            "toolConfig": {"tools": self.tools},
            "inferenceConfig": {"maxTokens": 2000},
            "additionalModelRequestFields": self.fields,
            "additionalModelResponseFieldPaths": REPORT,
        }
        path = f"/model/{self.model}/converse"
        reply = self.emulator.respond("POST", path, {"authorization": "Bearer k"}, json.dumps(body).encode())
        answer = Answered(reply.status, reply.headers, json.loads(reply.body))
        if answer.status == 200:
            self.messages.append(answer.body["output"]["message"])
        return answer


@pytest.mark.parametrize("model", ["anthropic.claude-opus-5-5", "us.anthropic.claude-sonnet-5-5"])
def test_bedrock_checks_the_conversation(model: str) -> None:
    talk = Converse(Emulator(), model)
    assert talk.say("one").status == 200
    talk.system.append({"cachePoint": {"type": "default"}})  # pyright: ignore[reportArgumentType]
    talk.messages[0]["content"].append({"cachePoint": {"type": "default"}})
    assert talk.say("two").transformations == []
    talk.system = [{"text": "Be long."}]
    answer = talk.say("three")
    assert answer.status == 400
    assert "bound to a different conversation" in answer.message
    assert "anthropic-beta" not in answer.message
    assert talk.emulator.refused_for_state() == [talk.emulator.requests[-1]]
    talk.fields["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    talk.messages.pop()
    reported = talk.say("three").transformations
    assert [each["path"] for each in reported] == ["messages.1.content.0", "messages.3.content.0"]


@pytest.mark.parametrize(
    ("model", "outcome"),
    [("claude-opus-4-8", []), ("claude-sonnet-5-5", ["organization_binding_mismatch"]), ("claude-opus-5-5", None)],
)
def test_bedrock_is_another_account_and_another_body(model: str, outcome: list[str] | None) -> None:
    far = Converse(Emulator(), f"anthropic.{model}")
    far.say("hi")
    reasoning = far.messages[1]["content"][0]["reasoningContent"]["reasoningText"]
    near = Talk(far.emulator, model)
    near.betas.add(BINDING)
    near.messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": reasoning["text"], "signature": reasoning["signature"]},
                {"type": "text", "text": far.messages[1]["content"][1]["text"]},
            ],
        },
    ]
    answer = near.say("more")
    if outcome is None:
        assert answer.status == 400
    else:
        assert [each["reason"] for each in answer.transformations] == outcome


def _responses(emulator: Emulator, key: str, items: list[Any]) -> Answered:
    body = {"model": "gpt-5.4", "store": False, "input": items, "reasoning": {"effort": "medium"}}
    reply = emulator.respond("POST", "/v1/responses", {"authorization": f"Bearer {key}"}, json.dumps(body).encode())
    return Answered(reply.status, reply.headers, json.loads(reply.body))


def test_openai_refuses_reasoning_of_another_organization() -> None:
    emulator = Emulator(organizations={"a": "org-a", "b": "org-b", "a2": "org-a"})
    asked: list[Any] = [{"role": "user", "content": "hi"}]
    first = _responses(emulator, "a", asked)
    assert first.headers["openai-organization"] == "org-a"
    more = [*asked, *first.body["output"], {"role": "user", "content": "more"}]
    assert _responses(emulator, "a2", more).status == 200
    refused = _responses(emulator, "b", more)
    assert refused.status == 400
    assert "organization_id did not match the target organization" in refused.message
    assert emulator.requests[-1].is_refused_for_state


def test_google_has_two_endpoints_that_refuse_each_other() -> None:
    emulator = Emulator()
    contents: list[Any] = [{"role": "user", "parts": [{"text": "hi"}]}]
    paths = {
        "gemini": "/v1beta/models/gemini-3.1-pro-preview:generateContent",
        "vertex": "/v1/projects/p/locations/global/publishers/google/models/gemini-3.1-pro-preview:generateContent",
    }

    def post(path: str) -> Answered:
        reply = emulator.respond(
            "POST", paths[path], {"x-goog-api-key": "k"}, json.dumps({"contents": contents}).encode()
        )
        return Answered(reply.status, reply.headers, json.loads(reply.body))

    contents += [post("gemini").body["candidates"][0]["content"], {"role": "user", "parts": [{"text": "more"}]}]
    assert post("gemini").status == 200
    assert post("vertex").status == 400


CHANGE: dict[str, Any] = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "read"}}
INLINE: dict[str, Any] = {
    "type": "tool_addition",
    "tool": {"type": "tool_definition", "definition": {**TOOL, "name": "w"}},
}
COMPACTED: dict[str, Any] = {"type": "compaction", "content": "Before: a question."}
APPENDED: tuple[tuple[str, dict[str, Any], str | None], ...] = (
    ("a text", {"content": "Be polite."}, None),
    (
        "a text that goes away",
        {"content": "Hurry.", "clear_at": "next_user_message"},
        "mid-conversation-system-clear-at-2026-08-21",
    ),
    ("a tool", {"content": [CHANGE]}, "mid-conversation-tool-changes-2026-07-01"),
    ("a tool gone", {"content": [{**CHANGE, "type": "tool_removal"}]}, "mid-conversation-tool-changes-2026-07-01"),
    ("a tool with its definition", {"content": [INLINE]}, "inline-tools-2026-09-15"),
    (
        "a text with an effort",
        {"content": "Hurry.", "output_config": {"effort": "low"}},
        "mid-conversation-output-config-2026-07-01",
    ),
    (
        "the same from Claude Code",
        {"content": "Hurry.", "output_config": {"effort": "low"}},
        "per-turn-control-2026-07-01",
    ),
)


@pytest.mark.parametrize(("name", "message", "beta"), APPENDED, ids=[row[0] for row in APPENDED])
def test_what_is_appended_needs_its_header_and_keeps_thinking(name: str, message: Any, beta: str | None) -> None:
    talk = turns(2, strict=False)
    talk.messages += [{"role": "user", "content": "more"}, {"role": "system", **message}]
    if beta is not None:
        assert talk.post().status == 400, name
        assert talk.emulator.requests[-1].refusal == "beta"
        talk.betas.add(beta)
    answer = talk.post()
    assert answer.status == 200, answer
    talk.messages.append({"role": "assistant", "content": answer.body["content"]})
    assert talk.say("more").status == 200
    del talk.messages[5]
    assert talk.say("more").status == 400, "once sent, it is part of the conversation"


@pytest.mark.parametrize(
    ("tool", "status"),
    [
        ({"type": "tool_reference", "name": "read"}, 200),
        ({"type": "tool_reference", "name": "missing"}, 400),
        ({"type": "tool", "name": "read"}, 400),
    ],
)
def test_an_added_tool_is_one_that_the_request_has(tool: dict[str, str], status: int) -> None:
    talk = turns(2, strict=False)
    change = {"type": "tool_addition", "tool": tool}
    talk.messages += [{"role": "user", "content": "more"}, {"role": "system", "content": [change]}]
    talk.betas.add("mid-conversation-tool-changes-2026-07-01")
    assert talk.post().status == status


@pytest.mark.parametrize(
    ("place", "model", "status"),
    [
        (1, "claude-opus-5-5", 200),
        (2, "claude-opus-5-5", 400),
        (5, "claude-opus-5-5", 200),
        (5, "claude-opus-4-8", 200),
        (5, "claude-opus-4-7", 400),
        (0, "claude-opus-5-5", 400),
    ],
)
def test_system_messages_stand_behind_the_newest_user_message(place: int, model: str, status: int) -> None:
    talk = turns(2, model, strict=False)
    for message in (1, 3):
        talk.drop_thinking(message)
    talk.messages.append({"role": "user", "content": "more"})
    talk.messages.insert(place, {"role": "system", "content": "Be polite."})
    assert talk.post().status == status


def test_a_signed_compaction_block_starts_the_conversation() -> None:
    talk = turns(1, strict=False)
    talk.betas.add("compact-2026-09-04")
    talk.messages.append({"role": "user", "content": "more"})
    made = talk.post(compaction={"type": "enabled"})
    talk.messages = [{"role": "assistant", "content": made.body["content"]}]
    talk.betas.clear()
    assert talk.say("first").status == 400, "without the header"
    talk.messages.pop()
    talk.betas.add("compact-2026-09-04")
    assert talk.say("first").status == 200
    talk.messages.insert(0, {"role": "user", "content": "nothing may stand before it"})
    assert "compaction_block_misplaced" in talk.say("second").message
    del talk.messages[0], talk.messages[-1]
    talk.messages[0]["content"][0]["content"] = "Before: another question."
    assert "bound to a different conversation" in talk.say("third").message
    talk.messages[0]["content"][0]["signature"] = "s"
    assert "compaction_signature_invalid" in talk.say("fourth").message


def test_a_compaction_block_starts_the_conversation() -> None:
    talk = turns(1, strict=False)
    talk.messages = [
        {"role": "assistant", "content": [COMPACTED]},
        {"role": "user", "content": [{"type": "text", "text": "first"}]},
    ]
    edits = {"edits": [{"type": "compact_20260112"}]}
    assert talk.post(context_management=edits).status == 400, "without the header"
    talk.betas.add("compact-2026-01-12")
    assert talk.post().status == 400, "without the edit"
    talk.messages.append({"role": "assistant", "content": talk.post(context_management=edits).body["content"]})
    talk.messages.append({"role": "user", "content": "second"})
    assert talk.post(context_management=edits).status == 200
    talk.messages.insert(0, {"role": "user", "content": "what was compacted may stand before it"})
    assert talk.post(context_management=edits).status == 200
    talk.messages[1] = {"role": "assistant", "content": [{**COMPACTED, "content": "Before: another question."}]}
    assert "bound to a different conversation" in talk.post(context_management=edits).message


def test_it_tells_which_valid_thinking_a_request_did_not_send() -> None:
    talk = turns(3)
    known = talk.signatures()
    requests = talk.emulator.requests
    talk.say("all")
    assert talk.emulator.withheld(requests[-1], known) == ()
    for gone, expected in (((1,), known[:1]), ((5, 7), known[2:]), ((1, 3, 5, 7), known), ((3, 5, 7), known[1:])):
        fork = Talk(talk.emulator)
        fork.messages = json.loads(json.dumps(talk.messages))
        for message in gone:
            fork.drop_thinking(message)
        fork.say("less")
        assert talk.emulator.withheld(requests[-1], known) == tuple(expected), gone
    talk.system = "Be long."
    for message in (1, 3, 5, 7):
        talk.drop_thinking(message)
    talk.say("none is valid")
    assert talk.emulator.withheld(requests[-1], known) == ()
    talk.model = "gpt-5.4"
    assert talk.emulator.withheld(requests[-1], []) == ()


def test_it_prefers_the_newest_thinking() -> None:
    talk = turns(1)
    old = talk.drop_thinking(1)
    talk.say("made without the first")
    new = talk.thinking_at(3)["signature"]
    talk.messages[1]["content"].insert(0, old)
    talk.drop_thinking(3)
    talk.say("only the first")
    assert talk.emulator.withheld(talk.emulator.requests[-1], [old["signature"], new]) == (new,)


def test_it_tells_which_refused_body_was_sent_again() -> None:
    talk = turns(1)
    talk.system = "Be long."
    talk.messages.append({"role": "user", "content": "more"})
    assert talk.post().status == 400
    assert talk.emulator.repeated() == []
    assert talk.post().status == 400
    assert talk.emulator.repeated() == [talk.emulator.requests[-1]]


def test_a_reply_of_an_earlier_time_is_not_listed() -> None:
    emulator = Emulator(Step(thinking="x", calls=(EmulatedCall(name="read"),)))
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [TOOL],
    }
    version = {"anthropic-version": "2023-06-01"}
    reply = emulator.respond("POST", "/v1/messages", version, json.dumps(body).encode(), is_recorded=False)
    assert json.loads(reply.body)["content"][0]["signature"]
    assert emulator.requests == []
