"""What Cohere's v2 chat endpoint refuses in a request body.

Each check quotes the refusal or the documentation; the threads were read on 2026-11-15. Little is documented and few
refusals are public: what is not here is not known to be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.protocols.cohere_chat.content import REFUSAL, is_first_request
from segue.protocols.cohere_chat.limits import LIMITS
from segue.protocols.families.chat_checks import Messages, calls_of, check_chat, check_pairs
from segue.protocols.families.tool_checks import check_tools, declared_functions
from segue.protocols.kit.capabilities import Places, refused_input
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.media_checks import check_image_url
from segue.protocols.kit.ranges import check_range, check_seed, check_stop_sizes
from segue.protocols.kit.request_fields import RequestFields

_ROLES: Final = ("system", "user", "assistant", "tool")
_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"text"}),
    "user": frozenset({"text", "image_url"}),
    "assistant": frozenset({"text", "thinking"}),
    "tool": frozenset({"text", "document"}),
}
"""Which content types a role can have."""
_KNOWN: Final = frozenset({"text", "image_url", "thinking", "document"})
_FOREIGN: Final = frozenset(
    {"image", "input_text", "output_text", "input_image", "input_audio", "file", "tool_use", "tool_result"}
)
"""Content types of other protocols."""

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image_url": "image"},
        function=("function",),
        output=(("response_format", "json_schema"), ("response_format", "schema")),
    ),
    limits=LIMITS,
)


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider is known to refuse, in the order of the body."""
    if is_first_request(body):
        return [Violation(CheckCode.PROTOCOL_WRONG, ("messages",), REFUSAL)]
    # "invalid request: message must be at least 1 token long" (Risuai #504); messages is required (cohere 7.3.1)
    return check_chat(body, endpoint, _FIELDS, _MESSAGE_CHECKS, _BODY_CHECKS)


# -- messages ----------------------------------------------------------------------------------------------------------


def _check_messages(messages: Messages, endpoint: Endpoint) -> Found:
    """Check roles and content types (cohere 7.3.1), and text with calls.

    "text content is not allowed when tool_calls are provided ... 'messages[2].content[0]'" (vercel/ai #5794,
    2025-04-15), but an empty one was answered with 200 (recorded traffic, 2026-11); a
    model without vision refuses images (Cohere documentation: image inputs).
    """
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            reason = f"unknown role {role!r}; use {', '.join(_ROLES)}"
            yield Violation(CheckCode.ROLE_UNKNOWN, ("messages", index, "role"), reason)
            continue
        has_calls = bool(calls_of(message))
        if has_calls and isinstance(content, str) and content:
            yield _text_beside_calls(("messages", index, "content"))
        for position, block in enumerate(cast("list[object]", content) if isinstance(content, list) else ()):
            kind, path = object_of(block).get("type"), ("messages", index, "content", position)
            if not isinstance(kind, str):
                continue
            allowed = ", ".join(sorted(_BLOCKS[role]))
            if kind in _FOREIGN:
                yield Violation(CheckCode.BLOCK_TYPE_UNKNOWN, path, f"unknown content type {kind!r}; use {allowed}")
            elif kind in _KNOWN - _BLOCKS[role]:
                reason = f"content type {kind!r} is not accepted in the role {role!r}; use {allowed}"
                yield Violation(CheckCode.BLOCK_MISPLACED, path, reason)
            elif kind == "text" and has_calls and object_of(block).get("text"):
                yield _text_beside_calls(path)
            elif kind == "image_url" and "image" in refused_input(endpoint.model, endpoint.rules):
                reason = "the model does not support images; remove it or choose another model"
                yield Violation(CheckCode.MEDIA_UNSUPPORTED, path, reason)
            elif kind == "image_url":
                given = object_of(block).get(kind)
                url = given if isinstance(given, str) else object_of(given).get("url")
                yield from check_image_url(url, (*path, kind))


def _text_beside_calls(path: Path) -> Violation:
    message = "a message with tool calls cannot have text content; move it to `tool_plan`"
    return Violation(CheckCode.TEXT_WITH_CALLS, path, message)


def _check_pairing(messages: Messages, _: Endpoint) -> Found:
    """Check that results have a call: `tool_call_id` is "the id of the associated tool call" (cohere 7.3.1)."""
    return check_pairs(messages, ends=(), is_required=False)


_MESSAGE_CHECKS: Final[tuple[Callable[[Messages, Endpoint], Found], ...]] = (_check_messages, _check_pairing)


# -- the rest of the body ----------------------------------------------------------------------------------------------


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check tools: a name, a schema, and no unknown keys.

    "unknown field: parameter 'requires_confirmation' is not a valid field" (agno #3503, 2025-06-07); names are letters,
    digits and underscores (cohere 7.3.1, for the tools of v1).
    """
    functions = [*declared_functions(body)]
    yield from check_tools(functions, endpoint.rules, needs="schema")
    for path, function, *_ in functions:
        for key in sorted(function.keys() & {"strict", "requires_confirmation", "external_execution"}):
            yield Violation(CheckCode.FIELD_UNKNOWN, (*path, key), f"unknown key {key!r}; remove it")


def _check_settings(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check parameters: values, limits, and combinations (all of cohere 7.3.1).

    tool_choice is REQUIRED or NONE, and needs tools; at most 5 stop sequences; p from 0.01 to 0.99; a positive
    token_budget; a response format is "not supported when used in combinations with the documents or tools".
    """
    rules, tools = endpoint.rules, body.get("tools")
    choice = body.get("tool_choice")
    choice = choice.upper() if isinstance(choice, str) else choice  # `required` was answered (recorded 200, 2026)
    if choice is not None and choice not in ("REQUIRED", "NONE"):
        yield Violation(
            CheckCode.TOOL_CHOICE_INVALID, ("tool_choice",), f"unknown choice {choice!r}; use REQUIRED or NONE"
        )
    elif choice == "REQUIRED" and not tools:
        yield Violation(
            CheckCode.TOOL_CHOICE_WITHOUT_TOOLS,
            ("tool_choice",),
            "a tool choice is set without tools; add tools, or remove it",
        )
    for option in ("temperature", "max_tokens"):
        yield from check_range(option, body.get(option), (option,), rules)
    yield from check_seed(body.get("seed"), ("seed",), rules)
    yield from check_stop_sizes(body.get("stop_sequences"), ("stop_sequences",), rules)
    yield from check_range("top_p", body.get("p"), ("p",), rules)
    budget = object_of(body.get("thinking")).get("token_budget")
    if isinstance(budget, int) and budget <= 0:
        path: Path = ("thinking", "token_budget")
        yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, "the budget is not positive; use at least 1")
    is_json = object_of(body.get("response_format")).get("type") == "json_object"
    if is_json and not rules.schema_with_tools and (tools or body.get("documents")):
        message = "`response_format` cannot be combined with tools or documents; remove one of them"
        yield Violation(CheckCode.JSON_WITH_TOOLS, ("response_format",), message)


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (_check_tools, _check_settings)
