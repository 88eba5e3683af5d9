"""What Cohere's v2 chat endpoint would refuse in a request body.

Each check names what was said against it, and by whom; the threads were read on 2026-11-15. Little is documented and
few refusals are public: what is not here is not known to be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, cast

from segue.errors import Path
from segue.protocols.cohere_chat.legacy_v1 import REFUSAL, is_first_request
from segue.protocols.kit.checking import Found, Messages, calls_of, check_json, messages_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.retired_format import object_of

_ROLES: Final = ("system", "user", "assistant", "tool")
_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"text"}),
    "user": frozenset({"text", "image_url"}),
    "assistant": frozenset({"text", "thinking"}),
    "tool": frozenset({"text", "document"}),
}
"""Which blocks of this wire a role can say."""
_KNOWN: Final = frozenset({"text", "image_url", "thinking", "document"})
_FOREIGN: Final = frozenset(
    {"image", "input_text", "output_text", "input_image", "input_audio", "file", "tool_use", "tool_result"}
)
"""Blocks of other wires."""


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse, in the order of the body; nothing where nothing is known against it."""
    if is_first_request(body):
        return [Violation(code="first_wire", path=("messages",), message=REFUSAL)]
    messages = messages_of(body)
    if isinstance(messages, Violation):
        # "invalid request: message must be at least 1 token long" (Risuai #504); messages is required (cohere 7.3.1)
        return [messages]
    found = [*check_json(body)]
    found += [violation for look in _MESSAGE_CHECKS for violation in look(messages, endpoint)]
    found += [violation for look in _BODY_CHECKS for violation in look(body, endpoint)]
    return found


# -- messages ----------------------------------------------------------------------------------------------------------


def _check_messages(messages: Messages, endpoint: Endpoint) -> Found:
    """Roles and blocks there are (cohere 7.3.1), and text beside calls.

    "text content is not allowed when tool_calls are provided ... 'messages[2].content[0]'" (vercel/ai #5794,
    2025-04-15); a model without vision refuses pictures (Cohere documentation: image inputs).
    """
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            yield Violation(code="role_unknown", path=("messages", index, "role"), message=f"there is no role {role!r}")
            continue
        has_calls = bool(calls_of(message))
        if has_calls and isinstance(content, str) and content:
            yield _text_beside_calls(("messages", index, "content"))
        for position, block in enumerate(cast("list[object]", content) if isinstance(content, list) else ()):
            kind, path = object_of(block).get("type"), ("messages", index, "content", position)
            if not isinstance(kind, str):
                continue
            if kind in _FOREIGN or (kind in _KNOWN and kind not in _BLOCKS[role]):
                yield Violation(code="block_unknown", path=path, message=f"a {role} message has no block {kind!r}")
            elif kind == "text" and has_calls:
                yield _text_beside_calls(path)
            elif kind == "image_url" and "image" not in endpoint.model.input:
                yield Violation(code="image_refused", path=path, message="the model does not look at pictures")


def _text_beside_calls(path: Path) -> Violation:
    message = "beside tool calls there is no text: it belongs into tool_plan"
    return Violation(code="text_beside_calls", path=path, message=message)


def _check_pairing(messages: Messages, _: Endpoint) -> Found:
    """Results answer calls: `tool_call_id` is "the id of the associated tool call" (cohere 7.3.1)."""
    known: set[str] = set()
    answered: set[str] = set()
    for index, message in enumerate(messages):
        calls = calls_of(message)
        ids = [str(call.get("id")) for call in calls]
        if calls:
            known, answered = set(ids), set()
            if len(known) < len(ids):
                path: Path = ("messages", index, "tool_calls")
                yield Violation(code="call_id_twice", path=path, message="two calls share an id")
        if message.get("role") != "tool":
            continue
        call_id, path = message.get("tool_call_id"), ("messages", index, "tool_call_id")
        if not isinstance(call_id, str) or call_id not in known:
            yield Violation(code="result_without_call", path=path, message=f"no call has the id {call_id!r}")
        elif call_id in answered:
            yield Violation(code="result_twice", path=path, message=f"{call_id!r} has its result already")
        answered.add(str(call_id))


_MESSAGE_CHECKS: Final[tuple[Callable[[Messages, Endpoint], Found], ...]] = (_check_messages, _check_pairing)


# -- the rest of the body ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _name(first: str | None, alphabet: str) -> re.Pattern[str]:
    return re.compile(f"[{first or alphabet}][{alphabet}]*")


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Tools: a name, a schema, and no other keys than those there are.

    "unknown field: parameter 'requires_confirmation' is not a valid field" (agno #3503, 2025-06-07); names are letters,
    digits and underscores (cohere 7.3.1, of its first wire's tools).
    """
    rules, tools = endpoint.rules, body.get("tools")
    for index, tool in enumerate(cast("list[object]", tools) if isinstance(tools, list) else ()):
        wire = object_of(tool)
        if wire.get("type", "function") != "function" or "function" not in wire:
            continue
        function, path = object_of(wire.get("function")), ("tools", index, "function")
        name = function.get("name")
        alphabet = rules.tool_name_alphabet
        if not isinstance(name, str) or (alphabet and not _name(rules.tool_name_first, alphabet).fullmatch(name)):
            yield Violation(code="tool_name", path=(*path, "name"), message=f"{name!r} is no name for a function")
        parameters = function.get("parameters")
        if not isinstance(parameters, Mapping):
            yield Violation(code="tool_schema", path=(*path, "parameters"), message="a function has to have a schema")
        for key in sorted(function.keys() & {"strict", "requires_confirmation", "external_execution"}):
            yield Violation(code="key_unknown", path=(*path, key), message=f"a function has no {key!r}")


def _check_settings(body: JsonObject, endpoint: Endpoint) -> Found:
    """Settings: words, limits, and what does not go together (all of cohere 7.3.1).

    tool_choice is REQUIRED or NONE, and needs tools; at most 5 stop sequences; p from 0.01 to 0.99; a positive
    token_budget; a format for the answer is "not supported when used in combinations with the documents or tools".
    """
    rules, tools = endpoint.rules, body.get("tools")
    choice, stops, share = body.get("tool_choice"), body.get("stop_sequences"), body.get("p")
    if choice is not None and choice not in ("REQUIRED", "NONE"):
        yield Violation(code="tool_choice", path=("tool_choice",), message=f"there is no choice {choice!r}")
    elif choice == "REQUIRED" and not tools:
        yield Violation(code="tool_choice", path=("tool_choice",), message="there is no tool to be required")
    if isinstance(stops, list) and 0 < rules.max_stop < len(cast("list[object]", stops)):
        yield Violation(code="stop_many", path=("stop_sequences",), message=f"more than {rules.max_stop}")
    if isinstance(share, (int, float)) and not rules.min_top_p <= share <= rules.max_top_p:
        message = f"p has to be between {rules.min_top_p} and {rules.max_top_p}"
        yield Violation(code="p_range", path=("p",), message=message)
    budget = object_of(body.get("thinking")).get("token_budget")
    if isinstance(budget, int) and budget <= 0:
        path: Path = ("thinking", "token_budget")
        yield Violation(code="thinking_budget", path=path, message="a budget is a positive number of tokens")
    is_json = object_of(body.get("response_format")).get("type") == "json_object"
    if is_json and not rules.schema_with_tools and (tools or body.get("documents")):
        message = "a format cannot be asked for beside tools or documents"
        yield Violation(code="format_beside_tools", path=("response_format",), message=message)


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (_check_tools, _check_settings)
