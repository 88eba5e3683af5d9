"""Headers that content needs, system messages that only set something, and efforts that nobody asked for."""

from __future__ import annotations

import pytest

from segue import Context, NativeContent, Options, SystemMessage, TextContent, UserMessage, check, convert, prepare

MODEL = "anthropic/claude-opus-5-5"
EFFORT = {"role": "system", "content": [], "output_config": {"effort": "low"}}
HI = {"role": "user", "content": "Hi."}


def body(*messages: dict, **fields: object) -> dict:
    return {"model": "claude-opus-5-5", "max_tokens": 100, "messages": list(messages), **fields}


def block(**fields: object) -> dict:
    return {"role": "system", "content": [fields]}


REFERENCE = {"type": "tool_reference", "name": "look"}
DEFINITION = {"type": "tool_definition", "definition": {"name": "listen", "input_schema": {"type": "object"}}}
NEEDED = {
    "compaction on demand": (
        [{"role": "assistant", "content": [{"type": "compaction", "content": "So far.", "signature": "s"}]}, HI],
        "compact-2026-09-04",
    ),
    "compaction by a threshold": (
        [{"role": "assistant", "content": [{"type": "compaction", "content": "So far."}]}, HI],
        "compact-2026-01-12",
    ),
    "a tool is added": ([HI, block(type="tool_addition", tool=REFERENCE)], "mid-conversation-tool-changes-2026-07-01"),
    "a tool is removed": ([HI, block(type="tool_removal", tool=REFERENCE)], "mid-conversation-tool-changes-2026-07-01"),
    "a tool is defined": ([HI, block(type="tool_addition", tool=DEFINITION)], "inline-tools-2026-09-15"),
    "a reminder that is cleared": (
        [HI, {"role": "system", "content": "Be quick.", "clear_at": "next_user_message"}],
        "mid-conversation-system-clear-at-2026-08-21",
    ),
    "an effort": ([HI, EFFORT], "mid-conversation-output-config-2026-07-01"),
}


@pytest.mark.parametrize(("messages", "beta"), NEEDED.values(), ids=NEEDED)
def test_content_is_sent_with_the_header_that_it_needs(messages, beta):
    request = convert(body(*messages), target=MODEL)
    assert request.headers["anthropic-beta"] == beta
    assert request.sdk_arguments()["extra_headers"] == {"anthropic-beta": beta}


def test_the_binding_of_thinking_needs_its_header():
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    request = convert(body(HI, thinking=binding), target=MODEL)
    assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_other_content_needs_none():
    context = Context(messages=(UserMessage.of("Hi."), SystemMessage.of("Be quick.")))
    assert "anthropic-beta" not in prepare(context, MODEL, options=Options(thinking="low")).headers


def test_a_stored_block_is_sent_with_its_header():
    native = NativeContent(protocol="anthropic-messages", block={"type": "tool_removal", "tool": REFERENCE})
    context = Context(messages=(UserMessage.of("Hi."), SystemMessage(content=(TextContent(text="Stop."), native))))
    assert prepare(context, MODEL).headers["anthropic-beta"] == "mid-conversation-tool-changes-2026-07-01"


@pytest.mark.parametrize(
    "messages",
    [
        (HI, EFFORT),
        (HI, EFFORT, {"role": "assistant", "content": "Hello."}, HI),
        (HI, {"role": "assistant", "content": "Hello."}, EFFORT, HI),
    ],
    ids=["last", "before a reply", "behind a reply"],
)
def test_a_system_message_that_only_sets_the_effort_is_kept(messages):
    given = body(*messages)
    assert check(given, protocol="anthropic-messages", model=MODEL) == []
    request = convert(given, target=MODEL)
    assert request.body["messages"] == given["messages"]
    assert not request.report.changes


def test_an_older_model_does_not_get_it():
    given = body(HI, EFFORT) | {"model": "claude-opus-4-5"}
    assert check(given, protocol="anthropic-messages", model="anthropic/claude-opus-4-5")
    assert convert(given, target="anthropic/claude-opus-4-5").body["messages"] == [HI]


def test_no_effort_is_added_that_nobody_asked_for():
    given = body(HI, thinking={"type": "adaptive"})
    assert "output_config" not in convert(given, target=MODEL).body
    given = body(HI, thinking={"type": "adaptive"}, output_config={"effort": "low"})
    assert convert(given, target=MODEL).body["output_config"] == {"effort": "low"}
    assert prepare("Hi.", MODEL, options=Options(thinking="high")).body["output_config"] == {"effort": "high"}


def test_the_older_name_of_the_output_format_is_sent_with_its_beta():
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    body["output_format"] = {"type": "json_schema", "schema": schema}
    request = convert(body, source="anthropic-messages", target="anthropic/claude-sonnet-4-5")
    assert request.body["output_format"] == body["output_format"]
    assert request.headers["anthropic-beta"] == "structured-outputs-2025-11-13"
