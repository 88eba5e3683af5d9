"""What the checks of OpenAI's wires, and of others with chat messages, share: messages, pairs of calls, options.

Which refusals apply to a wire, and their sources, are in the `check` of its protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias, cast

from segue.protocols.families.tool_checks import Pairs
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found, check_base64, run_checks
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.limits import Limits
from segue.protocols.kit.request_fields import RequestFields

Messages: TypeAlias = list[Block]


def messages_of(body: JsonObject) -> Messages | Violation:
    """Return the messages of a body, or the violation if they are missing or not objects."""
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        return Violation(
            CheckCode.MESSAGES_MISSING, ("messages",), "`messages` has to be a list with a message; add one"
        )
    messages: Messages = []
    for index, message in enumerate(cast("list[object]", given)):
        if not isinstance(message, Mapping):
            return Violation(CheckCode.TYPE_WRONG, ("messages", index), "a message has to be an object; change it")
        messages.append(cast("Block", message))
    return messages


_OPTIONS: Final = ("stop", "temperature", "top_p")
_URL_KEYS: Final = ("url", "image_url", "file_data", "document_url")
DATA_KEYS: Final = (*_URL_KEYS, "data")
"""The keys that `data_urls` may yield."""


def data_urls(block: Block) -> Iterable[str]:
    """Yield the keys of an object of OpenAI's protocols that hold base64: data URLs, and the data of a sound."""
    for key in _URL_KEYS:
        text = block.get(key)
        if isinstance(text, str) and text[:5] == "data:" and ";base64," in text[:200]:
            yield key
    # Encrypted reasoning has the same two keys, and a type.
    if "format" in block and "type" not in block and isinstance(block.get("data"), str):
        yield "data"


def check_chat(
    body: JsonObject,
    endpoint: Endpoint,
    fields: RequestFields,
    message_checks: Iterable[Callable[[Messages, Endpoint], Found]],
    body_checks: Iterable[Callable[[JsonObject, Endpoint], Found]],
) -> list[Violation]:
    """List what a provider refuses, in the order of the body; a body without messages is not looked at further."""
    messages = messages_of(body)
    if isinstance(messages, Violation):
        return [messages]
    in_messages = run_checks(message_checks, messages, endpoint)
    media = check_base64(body, "messages", data_urls, *DATA_KEYS)
    return fields.add([*in_messages, *media, *run_checks(body_checks, body, endpoint)], body, endpoint)


def calls_of(message: Block) -> list[Block]:
    """Return the tool calls of a message; none if its role is not `assistant`."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [cast("Block", call) for call in cast("list[object]", calls) if isinstance(call, Mapping)]


def check_pairs(messages: Messages, *, ends: Collection[object] | None = None, is_required: bool = True) -> Found:
    """Check that results have calls, and calls have results if `is_required`.

    Results follow the message with their calls; other messages end them, or only those of the roles in `ends`.
    """
    pairs = Pairs("right after it")
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            yield from pairs.add_result(message.get("tool_call_id"), ("messages", index, "tool_call_id"))
            continue
        calls = calls_of(message)
        if not calls and ends is not None and message.get("role") not in ends:
            continue
        yield from pairs.end()
        for position, call in enumerate(calls):
            # A call of an unknown type may have no id; no result can name it.
            if "id" in call or "function" in call:
                path = ("messages", index, "tool_calls", position)
                yield from pairs.add_call(call.get("id"), path, is_awaited=is_required)
    yield from pairs.end()


def check_refused_options(body: JsonObject, effort: object, endpoint: Endpoint, limits: Limits) -> Found:
    """Find options that a model does not support, with the effort that a body asks for; `limits` may pin their values.

    "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported."
    (qwen-code #921 of 2025-10: gpt-5-mini; lemmary #25 of 2026-08; litellm #34210); "Unsupported parameter: 'stop' is
    not supported with this model." (a reported 400, 2025: o1-mini, gpt-5-mini); "Unsupported parameter: 'logprobs' is
    not supported with this model."; "You are not allowed to request logprobs from this model" (deepeval #2184,
    2025-10-13). A model with effort none accepted a temperature (gpt-5.6: recordings of pydantic-ai, 2026-07).
    """
    rules = endpoint.rules
    if effort == "none":
        return
    refused = rules.refused_options | rules.refused_unless_off
    if effort is not None:
        refused |= rules.refused_with_thinking  # OpenAI documentation: GPT-5.2, sampling only with effort none
    given = [key for key, option in rules.extra_like if option in refused and body.get(key) not in (None, 0, False, {})]
    for option in _OPTIONS:
        if option in refused - rules.refused_extra and body.get(option) not in (None, 1, []):
            given += [] if limits.pins(option, body, endpoint) else [option]
    for key in given:
        message = f"{endpoint.model.id} does not support `{key}`; remove it or choose another model"
        yield Violation(CheckCode.OPTION_UNSUPPORTED, (key,), message)
