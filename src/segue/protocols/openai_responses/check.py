"""Whether a provider of the Responses API accepts a body.

Each rule has its source next to it. Rules that only OpenAI was seen to enforce are checked for OpenAI alone, because
other vendors of this protocol are less strict. A body that continues a stored conversation may refer to items that it
does not contain, so its calls and outputs are not paired.

Facts:
- A call of a function in a namespace names it: "Missing namespace for function_call 'x'."
                                                             (pi #7709, 2026-08-06; vercel/ai #15193, 2026-05-12)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, cast

from segue.errors import Path
from segue.models.model_ids import OPENAI_WITHOUT_REASONING
from segue.models.rules import Rules
from segue.protocols.families.chat_checks import DATA_KEYS, check_refused_options, data_urls
from segue.protocols.families.tool_checks import (
    Pairs,
    check_call_id,
    check_forced_choice,
    check_name,
    check_native_pairs,
    check_text_after_calls,
)
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, may_have, objects_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, kind_of, object_of
from segue.protocols.kit.media_checks import check_address, check_bytes, check_image_url
from segue.protocols.kit.ranges import check_range, check_user_ids
from segue.protocols.kit.reading import split_data_url, text_of
from segue.protocols.kit.replay import Role, Turn, find_halves
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.kit.sources import objects_in
from segue.protocols.openai_responses.content import ID_PREFIXES, LONGEST_ID, REPLAY, side_of
from segue.protocols.openai_responses.limits import LIMITS


def check_namespaces(body: JsonObject, items: Sequence[tuple[int, Block]]) -> Iterator[Violation]:
    """Find calls without a namespace whose function is declared in a namespace alone."""
    tools = objects_in(body.get("tools"))
    spaces = [tool for tool in tools if tool.get("type") == "namespace"]
    if not spaces:
        return
    alone = {text_of(tool.get("name")) for tool in tools if tool.get("type") != "namespace"}
    inside = {text_of(inner.get("name")): text_of(tool.get("name")) for tool in spaces for inner in _inner(tool)}
    for index, item in items:
        name = text_of(item.get("name"))
        if kind_of(item) != "function_call" or item.get("namespace") is not None or name is None:
            continue
        if name in inside and name not in alone:
            message = f"{name!r} is a function of the namespace {inside[name]!r}; add `namespace` to the call"
            yield Violation(CheckCode.NAMESPACE_MISSING, ("input", index, "namespace"), message)


def _inner(tool: Block) -> list[Block]:
    return objects_in(tool.get("tools"))


_NEVER_REASON: Final = re.compile(OPENAI_WITHOUT_REASONING, re.IGNORECASE)
_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})  # openai 3.49.0: EasyInputMessage
_STORED: Final = ("previous_response_id", "conversation", "prompt")
_ASSISTANT_PARTS: Final = frozenset({"input_text", "input_image", "input_file"})
_INPUT_PARTS: Final = frozenset({"output_text", "refusal"})
_MOVED: Final[Mapping[str, str]] = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "messages": "input",
}
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_RESULTS: Final = _OUTPUTS | {kind for pair in REPLAY.pairs for kind in pair.results}

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        turns="input",
        media={"input_image": "image", "input_audio": "audio", "input_video": "video", "input_file": "document"},
        inner=(("content",), ("output",)),
        output=(("text", "format", "schema"),),
        output_strict=("text", "format", "strict"),
        json_mode=("text", "format", "type"),
    ),
    limits=LIMITS,
)


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse in a body."""
    found: list[Violation] = []
    own = endpoint.rules.body_fields == "closed"
    given = body.get("input")
    items: list[tuple[int, Block]] = []
    if isinstance(given, list):
        entries = enumerate(cast("list[object]", given))
        items = [(index, cast("Block", item)) for index, item in entries if isinstance(item, Mapping)]
    found.extend(_options(body, endpoint, own=own))
    found.extend(_tools(body, endpoint.rules))
    for index, item in items:
        found.extend(_item(index, item, endpoint.rules, own=own))
        if own and body.get("store") is False:
            found.extend(_unstored(index, item))
    if endpoint.rules.paired_calls and not any(body.get(key) for key in _STORED):
        found.extend(_pairs(items))
        found.extend(_native_pairs(items) if may_have(body, REPLAY.keys()) else ())
    if endpoint.rules.calls_last:
        # DeepSeek, about the call before such text: "No tool output found for tool call call-a." (recorded 2026-11)
        found.extend(check_text_after_calls((_step(item), ("input", index)) for index, item in items))
    found.extend(_order(items))
    if endpoint.rules.unique_items:
        found.extend(_repeated(items))
    if endpoint.rules.tool_namespaces:
        found.extend(check_namespaces(body, items))
    found.extend(check_base64(body, "input", data_urls, *DATA_KEYS))
    if own and body.get("store") is not False:
        found.extend(_stored_pairs(items))
    return _FIELDS.add(found, body, endpoint)


# -- options and tools -------------------------------------------------------------------------------------------------


def _options(body: JsonObject, endpoint: Endpoint, *, own: bool) -> Iterator[Violation]:
    if body.get("input") is None and not any(body.get(key) for key in _STORED):
        # "One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided." (openai-python)
        yield Violation(CheckCode.MESSAGES_MISSING, ("input",), "`input` is missing; add it")
    if body.get("previous_response_id") and body.get("conversation"):
        # openai 3.49.0: "cannot be used in conjunction with"                                          (2026-11-15)
        message = "`conversation` cannot be used with `previous_response_id`; remove one of them"
        yield Violation(CheckCode.OPTIONS_CONFLICT, ("conversation",), message)
    effort = object_of(body.get("reasoning")).get("effort")
    yield from check_refused_options(body, effort, endpoint, LIMITS)
    for option in ("temperature", "top_p"):
        # "Invalid 'temperature': decimal below minimum value. Expected a value >= 0" (a reported 400, 2025-10);
        # openai-openapi 2.3.0 for the other limits                                                    (2026-11-15)
        yield from check_range(option, body.get(option), (option,), endpoint.rules)
    choice = body.get("tool_choice")
    if choice == "required" or object_of(choice).get("type") in ("function", "custom"):
        yield from check_forced_choice(endpoint.rules, is_thinking=effort not in (None, "none"))
    # The lengths are in the rows of the providers, with their sources.
    yield from check_user_ids(body, endpoint.rules)
    if not own:
        return
    # openai-openapi 2.3.0: minimum 16                                                                 (2026-11-15)
    yield from check_range("max_tokens", body.get("max_output_tokens"), ("max_output_tokens",), endpoint.rules)
    if effort is not None and _NEVER_REASON.search(endpoint.model.id):
        # "Unsupported parameter: 'reasoning.effort' is not supported with this model." (baml #2708 for gpt-4.1,
        # OpenAI-DotNet #500 for gpt-4o, one-api #120 for gpt-5-chat); a summary alone is accepted (litellm #38842)
        message = f"{endpoint.model.id} does not support `reasoning.effort`; remove it or choose another model"
        yield Violation(CheckCode.OPTION_UNSUPPORTED, ("reasoning", "effort"), message)
    else:
        # "Unsupported value: 'minimal' is not supported with the 'o4-mini' model." (OpenAI API)
        yield from check_effort(effort, ("reasoning", "effort"), endpoint)
    for key, place in _MOVED.items():
        if body.get(key) is not None:
            # "In the Responses API, this parameter has moved to ..." (OpenAI documentation: migration)
            message = f"`{key}` is a parameter of another protocol; use `{place}`"
            yield Violation(CheckCode.OPTION_RENAMED, (key,), message)


_OF_CHAT: Final = "this is a tool of the Chat protocol; write what is in `function` next to `type`"


def _tools(body: JsonObject, rules: Rules) -> Iterator[Violation]:
    for index, tool in objects_of(body.get("tools")):
        if tool.get("type") not in ("function", "custom"):
            continue
        path: Path = ("tools", index)
        if "name" not in tool and "name" in object_of(tool.get("function")):
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), _OF_CHAT)
        else:
            # openai-openapi 2.3.0: ^[a-zA-Z0-9_-]{1,128}$                                              (2026-11-15)
            yield from check_name(tool.get("name"), (*path, "name"), rules)


# -- one item ----------------------------------------------------------------------------------------------------------


def _item(index: int, item: Block, rules: Rules, *, own: bool) -> Iterator[Violation]:
    path: Path = ("input", index)
    kind = kind_of(item) or ("message" if "role" in item else "")
    if kind in _CALLS or kind in _OUTPUTS:
        # "Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64" (fastllm #45)
        yield from check_call_id(item.get("call_id"), (*path, "call_id"), rules)
    if kind in _CALLS:
        yield from check_name(item.get("name"), (*path, "name"), rules)
    if own:
        yield from _identity(item, kind, path)
        yield from _fields(item, kind, path)
    for key in ("content", "output"):
        parts = item.get(key)
        for place, part in enumerate(cast("list[object]", parts) if isinstance(parts, list) else []):
            if isinstance(part, Mapping):
                yield from _part(cast("Block", part), item, (*path, key, place), rules, own=own)


def _identity(item: Block, kind: str, path: Path) -> Iterator[Violation]:
    item_id, prefix = item.get("id"), ID_PREFIXES.get(kind)
    if not isinstance(item_id, str) or prefix is None or (kind == "message" and item.get("role") != "assistant"):
        return
    if not item_id.startswith(prefix):
        # "Invalid 'input[133].id': 'thinking_0'. Expected an ID that begins with 'rs'." (vscode #316536, eca #465)
        message = f"the id of a {kind} item has to begin with {prefix!r}; remove it"
        yield Violation(CheckCode.ITEM_ID_INVALID, (*path, "id"), message)
    elif len(item_id) > LONGEST_ID:
        # "string too long. Expected a string with maximum length 64" (opencode #44587)
        message = f"the id of an item has at most {LONGEST_ID} characters; remove it"
        yield Violation(CheckCode.ITEM_ID_INVALID, (*path, "id"), message)


def _fields(item: Block, kind: str, path: Path) -> Iterator[Violation]:
    if kind == "message" and text_of(item.get("role")) not in _ROLES:
        # "Invalid value: 'tool'. Supported values are: ..." (openai-python #2677, 2025-10-04)
        message = f"unknown role {item.get('role')!r}; use one of {', '.join(sorted(_ROLES))}"
        yield Violation(CheckCode.ROLE_UNKNOWN, (*path, "role"), message)
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        # openai-openapi 2.3.0: a JSON string; only a tool search has an object there (sub2api #3818)   (2026-11-15)
        message = "`arguments` has to be a string; encode the object as JSON"
        yield Violation(CheckCode.ARGUMENTS_INVALID, (*path, "arguments"), message)


def _unstored(index: int, item: Block) -> Iterator[Violation]:
    if kind_of(item) == "reasoning" and item.get("id") and not item.get("encrypted_content"):
        # "Item with id 'rs_...' not found. Items are not persisted when `store` is set to false." (opencode #7724,
        # vercel/ai #7543)
        message = "with `store: false` a reasoning item needs `encrypted_content`; remove the item"
        yield Violation(CheckCode.ITEM_NOT_STORED, ("input", index, "id"), message)


def _part(part: Block, item: Block, path: Path, rules: Rules, *, own: bool) -> Iterator[Violation]:
    kind = kind_of(part)
    if kind == "input_image":
        address = text_of(part.get("image_url")) or ""
        if address.startswith("http") and "url" not in rules.image_sources:
            # "'url' field must be a base64 encoded image." (LM Studio: llmcord #126, 2025-12-07)
            message = "URLs of images are not supported here; send the data"
            yield Violation(CheckCode.MEDIA_SOURCE_UNSUPPORTED, (*path, "image_url"), message)
        yield from check_image_url(part.get("image_url"), (*path, "image_url"), schemes=rules.url_schemes)
    if kind == "input_file" and own:
        # "The file type you uploaded is not supported. Please try again with a pdf" (an MP3; pydantic-ai, 2026-01-28)
        yield from check_address(part.get("file_url"), rules.user_media, (*path, "file_url"))
    if kind == "input_file" and isinstance(data := part.get("file_data"), str):
        split = split_data_url(data)
        mime = (split[0] or "") if split is not None else ""
        if own and (split is None or mime.startswith(("audio/", "video/"))):
            # "Expected a base64-encoded data URL with a valid file MIME type ..., but got unsupported MIME type
            # 'audio/mpeg'."                                                                 (recorded traffic, 2026-11)
            message = "`file_data` has to be a base64 data URL of a document or image; convert it"
            yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, (*path, "file_data"), message)
        elif split is not None:
            yield from check_bytes(split[1], mime, (*path, "file_data"))
    role = item.get("role")
    refused = _ASSISTANT_PARTS if role == "assistant" else _INPUT_PARTS if isinstance(role, str) else frozenset[str]()
    if own and kind in refused:
        # "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'." (OpenAI API; openai-agents)
        other = "output_text" if role == "assistant" else "input_text"
        message = f"a message of the role {role} cannot have a part {kind!r}; use {other!r}"
        yield Violation(CheckCode.BLOCK_MISPLACED, (*path, "type"), message)


# -- order and pairs ---------------------------------------------------------------------------------------------------


def _pairs(items: list[tuple[int, Block]]) -> Iterator[Violation]:
    if any(item.get("type") == "item_reference" for _, item in items):
        return
    pairs = Pairs("after it")
    for index, item in items:
        kind, call_id = kind_of(item), text_of(item.get("call_id"))
        if kind in _OUTPUTS:
            # "No tool call found for function call output with call_id ..." (pydantic-ai #4882, pi #6832); "Duplicate
            # function_call_output for call_id 'terminal:0'. Each function_call must have exactly one matching
            # function_call_output" (hermes-agent #102629, 2026-09-04)
            yield from pairs.add_result(call_id, ("input", index, "call_id"))
        elif call_id is not None:
            # Any type of call may have an output: a tool search had a function's output.        (recorded, 2026-11)
            is_awaited = kind in _CALLS and not item.get("async")
            yield from pairs.add_call(call_id, ("input", index), is_awaited=is_awaited, is_unique=False)
    # "No tool output found for function call call_..."                                 (livekit #5092; octofriend #233)
    yield from pairs.end()


def _native_pairs(items: list[tuple[int, Block]]) -> Iterator[Violation]:
    """Check calls that are not function calls; `native.REPLAY` has the sources."""
    if any(item.get("type") == "item_reference" for _, item in items):
        return
    turns: list[Turn[Path]] = []
    for index, item in items:
        side = side_of(item)
        role: Role = "assistant" if side == "assistant" else "results" if kind_of(item) in _RESULTS else "user"
        caller = REPLAY.reference_of(item)
        callers = frozenset({caller} if caller and role == "assistant" else ())
        turns.append(Turn(role, [(("input", index), *REPLAY.read(item))], callers))
    yield from check_native_pairs(find_halves(turns, REPLAY))
    called = {text_of(item.get("call_id")) for _, item in items if kind_of(item) == "program"}
    for index, item in items:
        caller = REPLAY.reference_of(item)
        if caller is not None and object_of(item.get("caller")).get("type") == "program" and caller not in called:
            # openai 3.49.0: the `call_id` of the program                                               (2026-11-15)
            message = f"no program has the `call_id` {caller!r}; remove `caller`"
            yield Violation(CheckCode.CALLER_UNKNOWN, ("input", index, "caller"), message)


def _order(items: list[tuple[int, Block]]) -> Iterator[Violation]:
    for position, (index, item) in enumerate(items):
        kind = item.get("type")
        follower = items[position + 1][1] if position + 1 < len(items) else None
        if kind == "reasoning" and _is_alone(items[position - 1][1] if position else None, follower):
            # "Item 'rs_...' of type 'reasoning' was provided without its required following item." (vercel/ai #7099)
            message = "the item that this reasoning led to is missing; remove the reasoning"
            yield Violation(CheckCode.REASONING_ALONE, ("input", index), message)
        if kind == "compaction_trigger" and follower is not None:
            # openai 3.49.0: "must be the last item"                                                     (2026-11-15)
            message = "`compaction_trigger` has to be the last item; move it to the end"
            yield Violation(CheckCode.ITEM_MISPLACED, ("input", index), message)


def _repeated(items: list[tuple[int, Block]]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, item in items:
        item_id = text_of(item.get("id"))
        if not item_id or item.get("type") == "item_reference":
            continue
        if item_id in seen:
            # "Duplicate item found with id msg_123. Remove duplicate items from your input and try again."
            # (vscode #321977, 2026-06-18; continue #10723)
            message = f"two items have the id {item_id!r}; remove one, or its id"
            yield Violation(CheckCode.VALUE_DUPLICATE, ("input", index, "id"), message)
        seen.add(item_id)


def _is_alone(before: Block | None, follower: Block | None) -> bool:
    """Whether reasoning has no item that it led to.

    After the message that it led to, one without an id, it was accepted. (recorded 200, 2025-04: o3-mini)
    """
    if follower is not None and side_of(follower) == "assistant":
        return False
    return before is None or before.get("id") is not None or side_of(before) != "assistant" or "role" not in before


def _stored_pairs(items: list[tuple[int, Block]]) -> Iterator[Violation]:
    """Check that the item after stored reasoning has an id: the provider looks both up by their ids.

    "Item 'rs_...' of type 'reasoning' was provided without its required following item.": refused where the message
    after it had no id; with `store: false` the same was accepted.                         (recorded, 2025-09, 2026-08)
    """
    for (index, item), (_, follower) in pairwise(items):
        if item.get("type") != "reasoning" or not item.get("id"):
            continue
        if side_of(follower) == "assistant" and not follower.get("id"):
            message = "the item behind stored reasoning has no id; add it, remove the reasoning, or set `store: false`"
            yield Violation(CheckCode.REASONING_ALONE, ("input", index), message)


def _step(item: Block) -> str:
    kind = kind_of(item) or "message"
    return "call" if kind in _CALLS else "text" if kind == "message" and item.get("role") == "assistant" else kind
