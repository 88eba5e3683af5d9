"""What Mistral's chat endpoint refuses in a request body.

Each check quotes the refusal and its source; the threads were read on 2026-11-15. The order of roles is that of
mistral-common 1.13.0, whose messages are the server's; where the service was observed to be stricter than its library,
the target's rules decide. Recorded requests that were answered with 200 pass (2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.protocols.families.chat_checks import Messages, calls_of, check_chat, check_pairs
from segue.protocols.families.tool_checks import check_call_id, check_name, check_tools, declared_functions
from segue.protocols.kit.capabilities import Places, is_listed, refused_input
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.media_checks import check_image_url
from segue.protocols.kit.ranges import check_greedy, check_range, check_seed
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.mistral_chat.limits import LIMITS

_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"user", "assistant", "system"}),
    "user": frozenset({"assistant", "system", "user"}),
    "assistant": frozenset({"assistant", "user", "tool"}),
    "tool": frozenset({"assistant", "tool", "user"}),
}
"""Which roles may follow a role."""
_ROLES: Final = ", ".join(_FOLLOWS)
_FOREIGN_KEYS: Final = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "function_call", "audio")
"""Keys that assistant messages of other providers have."""
_FOREIGN_CHUNKS: Final = frozenset(
    {"image", "document", "redacted_thinking", "tool_use", "tool_result", "input_text", "output_text", "input_image"}
)
"""Content types of other protocols."""
_MEDIA: Final = frozenset({"image_url", "document_url", "file", "input_audio"})

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image_url": "image", "input_audio": "audio", "document_url": "document", "file": "document"},
        function=("function",),
        output=(("response_format", "json_schema", "schema"),),
        output_strict=("response_format", "json_schema", "strict"),
    ),
    limits=LIMITS,
)


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider is known to refuse, in the order of the body."""
    # "Conversation must have at least one message" (mistral-common 1.13.0)
    return check_chat(body, endpoint, _FIELDS, _MESSAGE_CHECKS, _BODY_CHECKS)


# -- messages ----------------------------------------------------------------------------------------------------------


def _check_order(messages: Messages, endpoint: Endpoint) -> Found:
    """Check the order of roles.

    "Input tag 'developer' found using 'role' does not match any of the expected tags" (chatgpt-md #189); "Unexpected
    role 'user' after role 'tool'" by hosts of older versions of the library, as their rules say (hermes-agent #20154);
    "Unexpected role 'system' after role 'assistant'" (spring-ai #2380); "Expected last role User or Tool (or Assistant
    with prefix True) for serving but got assistant" (rig #1130); "Conversation must start with a user message or system
    message" (mistral-common 1.13.0).
    """
    before: str | None = None
    for index, wire in enumerate(messages):
        role, path = wire.get("role"), ("messages", index, "role")
        if not isinstance(role, str) or role not in _FOLLOWS:
            yield Violation(CheckCode.ROLE_UNKNOWN, path, f"unknown role {role!r}; use {_ROLES}")
            before = None
            continue
        if before is None and index == 0:
            if role == "tool" or (role == "assistant" and calls_of(wire)):
                message = f"the first message cannot be from the role {role!r}; begin with a user or system message"
                yield Violation(CheckCode.FIRST_TURN_WRONG, path, message)
        elif before is not None and role not in _FOLLOWS[before]:
            allowed = ", ".join(sorted(_FOLLOWS[before]))
            message = f"role {role!r} cannot follow role {before!r}; allowed here: {allowed}"
            if role == "system":
                yield Violation(CheckCode.SYSTEM_MISPLACED, path, message)
            else:
                yield Violation(CheckCode.TURNS_NOT_ALTERNATING, path, message)
        elif before == "tool" and role == "user" and not endpoint.rules.user_after_result:
            message = "a user message cannot follow a tool result; put an assistant message between them"
            yield Violation(CheckCode.USER_AFTER_RESULT, path, message)
        before = role
    last = len(messages) - 1
    if messages[last].get("role") == "assistant" and not messages[last].get("prefix"):
        message = "the last turn is the assistant's; add a user turn, or set `prefix` to true"
        yield Violation(CheckCode.LAST_TURN_WRONG, ("messages", last, "role"), message)
    for index, wire in enumerate(messages[:-1]):
        if wire.get("prefix") is True:
            # "Assistant message with prefix True must be last message" (mistral-common 1.13.0)
            message = "only the last message can have a prefix; remove `prefix`"
            yield Violation(CheckCode.PREFIX_MISPLACED, ("messages", index, "prefix"), message)


def _check_pairing(messages: Messages, _: Endpoint) -> Found:
    """Check that every call has one result, and every result a call.

    "Not the same number of function calls and responses", "Unexpected tool call id ... in tool results", "Duplicate
    tool call id ..." (mistral-common 1.13.0).
    """
    return check_pairs(messages, ends=("user", "assistant"))


def _check_calls(messages: Messages, endpoint: Endpoint) -> Found:
    """Check the ids and names of calls, and the names in results.

    "Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.", code 3280 (opencode #1680, gptel
    #1203, ironclaw #1241 of 2026-03-16); "Function name was ... but must be a-z, A-Z, 0-9, or contain underscores and
    dashes, with a maximum length of 64." (mistral-common 1.13.0).
    """
    for index, message in enumerate(messages):
        for position, call in enumerate(calls_of(message)):
            path: Path = ("messages", index, "tool_calls", position)
            call_id = call.get("id")
            # "Tool call id has to be defined in serving mode" (mistral-common 1.13.0: also of the text null)
            yield from check_call_id(None if call_id == "null" else call_id, (*path, "id"), endpoint.rules)
            if "function" in call:  # a call of an unknown type may be of a tool that the provider runs
                name = object_of(call["function"]).get("name")
                yield from check_name(name, (*path, "function", "name"), endpoint.rules)
        if message.get("role") == "tool" and message.get("name") is not None:
            yield from check_name(message["name"], ("messages", index, "name"), endpoint.rules)


def _check_texts(messages: Messages, _: Endpoint) -> Found:
    """Check that messages have content where it is required.

    "Assistant message must have either content or tool_calls, but not none." (OpenHands #8685, 2025-05-24); "System
    prompt must have content" (mistral-common 1.13.0).
    """
    for index, message in enumerate(messages):
        role, path = message.get("role"), ("messages", index, "content")
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield Violation(
                CheckCode.CONTENT_MISSING, path, "the assistant message is empty; add content or tool calls"
            )
        if role == "system" and message.get("content") is None:
            yield Violation(CheckCode.CONTENT_MISSING, path, "the system message has no content; add a text")


def _check_messages(messages: Messages, endpoint: Endpoint) -> Found:
    """Check for keys and content types that the schema does not have, or not in this place.

    "Extra inputs are not permitted" for assistant.reasoning_content (crush #1590, 2025-12-10; litellm #30835,
    2026-06-19); the content types (mistralai 3.7.0); "Unexpected content chunk types in assistant message"
    (mistral-common 1.13.0; for tool messages its latest version no longer has this check).
    """
    for index, wire in enumerate(messages):
        role, content = wire.get("role"), wire.get("content")
        for key in _FOREIGN_KEYS if role == "assistant" else ():
            if key in wire:
                path: Path = ("messages", index, key)
                yield Violation(CheckCode.FIELD_UNKNOWN, path, f"unknown key {key!r}; remove it")
        for position, chunk in enumerate(cast("list[object]", content) if isinstance(content, list) else ()):
            kind, path = object_of(chunk).get("type"), ("messages", index, "content", position)
            if not isinstance(kind, str):
                continue
            if kind in _FOREIGN_CHUNKS:
                yield Violation(
                    CheckCode.BLOCK_TYPE_UNKNOWN, path, f"unknown content type {kind!r}; use a type of this protocol"
                )
            elif kind in _MEDIA and role in ("assistant", "system"):
                message = f"{kind!r} is not accepted in the role {role!r}; move it to a user message"
                yield Violation(CheckCode.BLOCK_MISPLACED, path, message)
            elif kind == "image_url" and "image" in refused_input(endpoint.model, endpoint.rules):
                # "Image input is not enabled for this model", code 3051 (the refusal verbatim)
                message = "the model does not support images; remove it or choose another model"
                yield Violation(CheckCode.MEDIA_UNSUPPORTED, path, message)
            elif kind == "image_url":
                given = object_of(chunk).get(kind)
                url = given if isinstance(given, str) else object_of(given).get("url")
                yield from check_image_url(url, (*path, kind))


_MESSAGE_CHECKS: Final[tuple[Callable[[Messages, Endpoint], Found], ...]] = (
    _check_order,
    _check_pairing,
    _check_calls,
    _check_texts,
    _check_messages,
)


# -- the rest of the body ----------------------------------------------------------------------------------------------


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check tools: names as above, and parameters are an object (mistralai 3.7.0)."""
    yield from check_tools(declared_functions(body), endpoint.rules, needs="schema")


def _check_refused(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check for parameters that the endpoint refuses.

    "Reasoning prompt mode is not enabled for this model", code 3051 (pi-go #245, live, 2026-08-28: refused by
    every model of this endpoint).
    """
    for key in sorted(endpoint.rules.refused_extra):
        if body.get(key) is not None:
            yield Violation(CheckCode.OPTION_UNSUPPORTED, (key,), f"`{key}` is not supported; remove it")


def _check_ranges(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check the ranges of numbers.

    "Input should be less than or equal to 1" for a temperature (talemate #102), "greater_than" for a top_p of 0
    (modelparams.dev #231, live, 2026-08-17), "Input should be greater than or equal to 0" for a limit (hal-9100 #86).
    """
    for option in ("temperature", "top_p", "max_tokens"):
        value = body.get(option)
        if option != "max_tokens" or (isinstance(value, int) and value < 0):
            yield from check_range(option, value, (option,), endpoint.rules)
    yield from check_greedy(body, endpoint.rules)
    yield from check_seed(body.get("random_seed"), ("random_seed",), endpoint.rules)


def _check_effort(body: JsonObject, endpoint: Endpoint) -> Found:
    """Find an effort that the model does not have.

    "reasoning_effort='medium' is not supported for this model. Must be one of ..." none and high (SmartHopper #647,
    2026-07-06); models that do not reason refuse it (hermes-agent #11243, 2026-04).
    """
    effort, path = body.get("reasoning_effort"), ("reasoning_effort",)
    if effort not in (None, "none") and is_listed(endpoint) and not endpoint.model.reasoning:
        yield Violation(
            CheckCode.EFFORT_UNSUPPORTED, path, f"{endpoint.model.id} does not reason; remove `reasoning_effort`"
        )
    else:
        yield from check_effort(effort, path, endpoint)


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (
    *(_check_tools, _check_refused, _check_ranges, _check_effort),
)
