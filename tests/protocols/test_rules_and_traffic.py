"""Recorded requests that were answered 200 do not contradict the rules of the model that answered them.

Each reader below converts the turns of one protocol to `Turn`; the functions `contradictions_*` then compare every turn
with the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import pytest

from protocols import traffic
from segue.models.model import Model
from segue.models.rules import Rules
from segue.protocols.registry import resolve_rules

pytestmark = pytest.mark.traffic


class Turn(NamedTuple):
    role: str
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    media: tuple[str, ...] = ()


Body = Mapping[str, object]


def listed(value: object) -> list[dict[str, object]]:
    """Give content as a list of blocks; a string becomes one text block."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [block for block in value if isinstance(block, dict)] if isinstance(value, list) else []


def inner(block: Mapping[str, object], *names: str) -> dict[str, object] | None:
    return next((value for name in names if isinstance(value := block.get(name), dict)), None)


def mime_of_url(url: object) -> str:
    found = re.match(r"data:([\w.+/-]+)", str(url))
    return found[1] if found else "image/png"


def anthropic_turns(body: Body) -> Iterator[Turn]:
    def media(block: Mapping[str, object]) -> Iterator[str]:
        if block["type"] in ("image", "document") and (source := inner(block, "source")):
            yield str(source.get("media_type") or ("image/png" if block["type"] == "image" else "application/pdf"))

    for message in listed(body["messages"]):
        blocks = listed(message["content"])
        results = [block for block in blocks if block["type"] == "tool_result"]
        rest = [block for block in blocks if block["type"] != "tool_result"]
        for result in results:
            yield Turn("result", media=tuple(mime for block in listed(result.get("content")) for mime in media(block)))
        if rest or not results:
            yield Turn(
                str(message["role"]),
                tuple(str(block["text"]) for block in rest if block["type"] == "text"),
                tuple((str(block["id"]), str(block["name"])) for block in rest if block["type"] == "tool_use"),
                tuple(mime for block in rest for mime in media(block)),
            )


def chat_turns(body: Body) -> Iterator[Turn]:
    messages = listed(body["messages"])
    while messages and messages[0]["role"] in ("system", "developer"):
        messages = messages[1:]
    for message in messages:
        role = {"tool": "result", "developer": "system"}.get(str(message["role"]), str(message["role"]))
        calls = [(str(call["id"]), inner(call, "function")) for call in listed(message.get("tool_calls"))]
        parts = listed(message.get("content"))
        media = [
            mime_of_url((inner(part, "image_url") or {}).get("url")) for part in parts if part["type"] == "image_url"
        ]
        files = [inner(part, "file") for part in parts if part["type"] == "file"]
        yield Turn(
            role,
            tuple(str(part["text"]) for part in parts if part["type"] == "text"),
            tuple((call_id, str((function or {})["name"])) for call_id, function in calls),
            (*media, *(mime_of_url(file["file_data"]) for file in files if file and "file_data" in file)),
        )


def responses_turns(body: Body) -> Iterator[Turn]:
    items = listed(body.get("input"))
    while items and items[0].get("role") in ("system", "developer"):
        items = items[1:]
    calls: list[tuple[str, str]] = []
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            calls.append((str(item["call_id"]), str(item["name"])))
            continue
        if calls:
            yield Turn("assistant", calls=tuple(calls))
            calls = []
        if kind == "function_call_output":
            parts = listed(item["output"])
            yield Turn("result", media=tuple(mime_of_url(part["file_data"]) for part in parts if "file_data" in part))
        elif "content" in item and "role" in item:
            role = "system" if item["role"] == "developer" else str(item["role"])
            parts = listed(item["content"])
            texts = tuple(str(part["text"]) for part in parts if "text" in part)
            yield Turn(
                role, texts, media=tuple(mime_of_url(part["file_data"]) for part in parts if "file_data" in part)
            )
    if calls:
        yield Turn("assistant", calls=tuple(calls))


def google_turns(body: Body) -> Iterator[Turn]:
    def media(part: Mapping[str, object]) -> Iterator[str]:
        if found := inner(part, "inlineData", "inline_data", "fileData", "file_data"):
            yield str(found.get("mimeType") or found.get("mime_type"))

    for content in listed(body["contents"]):
        parts = listed(content["parts"])
        results = [found for part in parts if (found := inner(part, "functionResponse", "function_response"))]
        for result in results:
            yield Turn("result", media=tuple(mime for part in listed(result.get("parts")) for mime in media(part)))
        calls = [found for part in parts if (found := inner(part, "functionCall", "function_call"))]
        if len(results) < len(parts):
            yield Turn(
                "assistant" if content.get("role") == "model" else "user",
                tuple(str(part["text"]) for part in parts if "text" in part),
                tuple((str(call.get("id") or "none"), str(call["name"])) for call in calls),
                tuple(mime for part in parts for mime in media(part)),
            )


BEDROCK_KINDS = {"image": "image/{}", "video": "video/{}", "audio": "audio/{}", "document": "application/{}"}


def bedrock_turns(body: Body) -> Iterator[Turn]:
    def media(block: Mapping[str, object]) -> Iterator[str]:
        for kind, mime in BEDROCK_KINDS.items():
            if found := inner(block, kind):
                yield mime.format(str(found["format"]).removeprefix(f"{kind}/"))

    for message in listed(body.get("messages")):
        blocks = listed(message["content"])
        results = [found for block in blocks if (found := inner(block, "toolResult"))]
        for result in results:
            yield Turn("result", media=tuple(mime for block in listed(result["content"]) for mime in media(block)))
        calls = [found for block in blocks if (found := inner(block, "toolUse"))]
        if len(results) < len(blocks):
            yield Turn(
                str(message["role"]),
                tuple(str(block["text"]) for block in blocks if "text" in block),
                tuple((str(call["toolUseId"]), str(call["name"])) for call in calls),
                tuple(mime for block in blocks for mime in media(block)),
            )


READERS: Mapping[str, Callable[[Body], Iterator[Turn]]] = {
    "anthropic-messages": anthropic_turns,
    "openai-chat": chat_turns,
    "mistral-chat": chat_turns,
    "openai-responses": responses_turns,
    "google-genai": google_turns,
    "bedrock-converse": bedrock_turns,
}

OPTIONS_ON_THE_WIRE: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "stop": "stop",
    "stop_sequences": "stop",
    "stopSequences": "stop",
    "seed": "seed",
    "random_seed": "seed",
    "parallel_tool_calls": "parallel_tool_calls",
    "prompt_cache_key": "session_id",
    "user": "user_id",
}

CHOICES_ON_THE_WIRE: Mapping[object, str] = {"any": "required", "tool": "name", "function": "name"}


def options_of(body: Body) -> set[str]:
    settings: dict[str, object] = dict(body)
    for nested in ("generationConfig", "inferenceConfig"):
        settings |= inner(body, nested) or {}
    return {option for key, option in OPTIONS_ON_THE_WIRE.items() if settings.get(key) is not None}


def choice_of(body: Body) -> str | None:
    choice = body.get("tool_choice", (inner(body, "toolConfig") or {}).get("toolChoice"))
    if isinstance(choice, dict):
        choice = choice.get("type") or next(iter(choice))
    return None if choice is None else CHOICES_ON_THE_WIRE.get(choice, str(choice))


def is_accepted(patterns: tuple[str, ...], mime: str) -> bool:
    return any(pattern in ("*", mime, f"{mime.partition('/')[0]}/*") for pattern in patterns)


def contradictions_in_calls(turns: list[Turn], rules: Rules) -> Iterator[str]:
    for turn in turns:
        ids = [call_id for call_id, _ in turn.calls]
        if len(set(ids)) < len(ids):
            yield f"ids shared within a batch: {ids}"
        for call_id, name in turn.calls:
            limit = rules.call_id_max or len(call_id)
            if not rules.call_id_min <= len(call_id) <= limit:
                yield f"an id of {len(call_id)} characters"
            if rules.call_id_alphabet and not re.fullmatch(f"[{rules.call_id_alphabet}]+", call_id):
                yield f"the id {call_id}"
            if len(name) > (rules.tool_name_max or len(name)):
                yield f"a name of {len(name)} characters"
            if rules.tool_name_alphabet and not re.fullmatch(f"[{rules.tool_name_alphabet}]+", name):
                yield f"the name {name}"


def contradictions_in_order(turns: list[Turn], rules: Rules) -> Iterator[str]:
    if rules.first_user and turns[0].role != "user":
        yield f"{turns[0].role} is first"
    if not rules.last_assistant and turns[-1].role == "assistant" and not turns[-1].calls:
        yield "the assistant is last"
    for earlier, later in pairwise(turns):
        if rules.alternate and earlier.role == later.role and earlier.role in ("user", "assistant"):
            yield f"two turns of the {earlier.role}"
        if not rules.user_after_result and (earlier.role, later.role) == ("result", "user"):
            yield "a user turn after a result"
    if rules.system_messages == "none" and any(turn.role == "system" for turn in turns):
        yield "instructions in mid-conversation"


def contradictions_in_content(turns: list[Turn], rules: Rules) -> Iterator[str]:
    for turn in turns:
        patterns = rules.result_media if turn.role == "result" else rules.user_media
        yield from (f"{mime} in a turn of {turn.role}" for mime in turn.media if not is_accepted(patterns, mime))
        if rules.refused_text == "blank" and turn.texts and not "".join(turn.texts).strip() and not turn.calls:
            yield "a turn of white space"


@traffic.each_exchange(traffic.exchanges(), traffic.was_accepted)
def test_an_answered_request_contradicts_no_rule(row: Mapping[str, str]):
    body = traffic.read(row["file"])["request"]
    rules = resolve_rules(Model(str(row["model"]), row["provider"], row["protocol"]))
    turns = list(READERS[row["protocol"]](body))
    if turns:
        found = [
            *contradictions_in_calls(turns, rules),
            *contradictions_in_order(turns, rules),
            *contradictions_in_content(turns, rules),
        ]
        assert found == []
    assert options_of(body) & rules.refused_options == set()
    assert choice_of(body) in {None, *rules.tool_choices}
    if rules.tools_with_history and any(turn.calls for turn in turns):
        assert body.get("tools") or body.get("toolConfig")


def test_the_readers_find_the_calls_and_results_of_a_recording():
    body = traffic.read("anthropic-messages/0085.json")["request"]
    assert [turn.role for turn in anthropic_turns(body)] == ["user", "assistant", "result", "result"]
    body = traffic.read("google-generate/0025.json")["request"]
    assert [turn.role for turn in google_turns(body)] == ["user", "assistant", "result", "user"]
