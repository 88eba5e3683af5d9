"""What an OpenAI chat endpoint refuses in a request body.

Each check cites a refusal and its source. Limits come from the rules of the target, so a vendor with higher limits is
not checked against lower ones. Recorded requests that were answered 200 pass every check (2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.models.model_ids import first_party_providers
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.checking import Found, Messages, check_base64, data_urls, messages_of, objects_of, run_checks
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.ranges import check_greedy, check_long_stops, check_range, check_user_ids
from segue.protocols.kit.reading import real_of, text_of
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.openai_chat.calls import find_signature
from segue.protocols.openai_chat.check_turns import MESSAGE_CHECKS, check_name
from segue.protocols.openai_chat.limits import LIMITS
from segue.protocols.openai_chat.reasoning import REASONING_KEYS
from segue.protocols.openai_chat.rules import PROVIDER
from segue.protocols.openai_chat.thinking import decode_thinking

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={
            "image_url": "image",
            "input_audio": "audio",
            "audio_url": "audio",
            "video_url": "video",
            "file": "document",
        },
        function=("function",),
        output=(("response_format", "json_schema", "schema"),),
        output_strict=("response_format", "json_schema", "strict"),
        json_mode=("response_format", "type"),
        limits=(("max_tokens",), ("max_completion_tokens",)),
    ),
    limits=LIMITS,
)

_CHOICES: Final = frozenset({"auto", "none", "required", "name"})


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse: first in the messages, then in the rest of the body."""
    messages = messages_of(body)
    if isinstance(messages, Violation):
        # openai-openapi 2.3.0: minItems 1; "[] is too short - 'messages'"
        return [messages]
    media = check_base64(body.get("messages"), ("messages",), data_urls)
    found = [*run_checks(MESSAGE_CHECKS, messages, endpoint), *media, *run_checks(_BODY_CHECKS, body, endpoint)]
    return _FIELDS.add(found, body, endpoint)


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Tools: how many, their names, the root of their schemas.

    openai-openapi 2.3.0: at most 128; "schema must be a JSON Schema of 'type: "object"'" (text of the refusal);
    "'tool_choice' is only allowed when 'tools' are specified" (OpenAI); "Invalid 'tools': empty array. Expected an
    array with minimum length 1" (OpenAI: vllm #39780, 2026-04-14).
    """
    rules = endpoint.rules
    given = body.get("tools")
    tools = cast("list[object]", given) if isinstance(given, list) else []
    if rules.max_tools and len(tools) > rules.max_tools:
        yield Violation("tools_many", ("tools",), f"more than {rules.max_tools} tools; remove some")
    for index, tool in enumerate(tools):
        inner = cast("JsonObject", tool).get("function") if isinstance(tool, Mapping) else None
        if not isinstance(inner, Mapping):
            continue
        function = cast("JsonObject", inner)
        path: Path = ("tools", index, "function")
        name = function.get("name")
        yield from check_name(name, (*path, "name"), endpoint)
        schema = function.get("parameters")
        kind = cast("JsonObject", schema).get("type") if isinstance(schema, Mapping) and schema else "object"
        if rules.schema_root_object and kind != "object":
            yield Violation("schema_root", (*path, "parameters"), "the root of the schema must have the type object")
    if given == [] and endpoint.model.provider == PROVIDER:
        yield Violation("tools_empty", ("tools",), "the list of tools is empty; remove `tools`")
    if not tools and body.get("tool_choice") is not None and endpoint.model.provider == PROVIDER:
        yield Violation("choice_without_tools", ("tool_choice",), "a tool choice without tools; add tools or remove it")


def _check_numbers(body: JsonObject, endpoint: Endpoint) -> Found:
    """Limits of numbers: temperature 0 to 2, top_p 0 to 1, 4 stops, n 1 to 128, top_logprobs 0 to 20.

    (openai-openapi 2.3.0)
    """
    rules = endpoint.rules
    yield from check_range("temperature", body.get("temperature"), ("temperature",), rules)
    yield from check_range("top_p", body.get("top_p"), ("top_p",), rules)
    yield from check_greedy(body, rules)
    if endpoint.model.provider == PROVIDER:  # local servers accept -1 for no limit
        # "integer below minimum value. Expected a value >= 1" (ChatDev #446)
        for key in ("max_tokens", "max_completion_tokens"):
            yield from check_range("max_tokens", body.get(key), (key,), rules)
    stop = body.get("stop")
    if isinstance(stop, list) and rules.max_stop and len(cast("list[object]", stop)) > rules.max_stop:
        yield Violation("stops_many", ("stop",), f"more than {rules.max_stop} texts; remove some")
    yield from check_long_stops(body.get("stop"), ("stop",), rules)
    choices = real_of(body.get("n"))
    if choices is not None and not 1 <= choices <= 128:
        yield Violation("choices_range", ("n",), "n must be between 1 and 128")
    likely = real_of(body.get("top_logprobs"))
    if likely is not None and not (0 <= likely <= 20 and body.get("logprobs") is True):
        yield Violation("top_logprobs", ("top_logprobs",), "top_logprobs must be between 0 and 20, and needs logprobs")


def _check_user(body: JsonObject, endpoint: Endpoint) -> Found:
    """User ids, whose lengths are in the rows of the providers, with their sources."""
    yield from check_user_ids(body, endpoint.rules)


def _check_refused(body: JsonObject, endpoint: Endpoint) -> Found:
    """Options that a model does not support.

    "Unsupported parameter: 'stop' is not supported with this model." (a reported 400, 2025: o1-mini, gpt-5-mini);
    "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported."
    (qwen-code #921 of 2025-10: gpt-5-mini; lemmary #25 of 2026-08).
    """
    model, rules = endpoint.model, endpoint.rules
    if text_of(body.get("reasoning_effort")) in rules.refused_levels:
        message = f"this endpoint does not have the effort {body['reasoning_effort']!r}; use a lower one"
        yield Violation("setting_refused", ("reasoning_effort",), message)
    is_own = rules.body_fields != "unknown" or model.provider in first_party_providers(model.id)  # gateways translate
    if not is_own or body.get("reasoning_effort") == "none":
        return
    refused = rules.refused_options | rules.refused_unless_off
    if body.get("reasoning_effort") is not None:
        refused |= rules.refused_with_thinking  # OpenAI documentation: GPT-5.2, sampling only with effort none
    for key, option in rules.extra_like:
        if option in refused and body.get(key) not in (None, 0, False, {}):
            # "Unsupported parameter: 'logprobs' is not supported with this model."; "You are not allowed to request
            # logprobs from this model" (deepeval #2184, 2025-10-13)
            message = f"the model does not support `{key}`; remove it or choose another model"
            yield Violation("option_refused", (key,), message)
    for option in ("stop", "temperature", "top_p"):
        if option in refused - rules.refused_extra and body.get(option) not in (None, 1, []):
            message = f"the model does not support `{option}`; remove it or choose another model"
            yield Violation("option_refused", (option,), message)


def _check_choice(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check a choice that the endpoint does not have, and a forced call while thinking is on.

    "Thinking mode does not support this tool_choice" (DeepSeek: litellm #37470); "The tool_choice parameter does not
    support being set to required or object in thinking mode" (Qwen: eino #994).
    """
    choice = body.get("tool_choice")
    forced = choice == "required" or isinstance(choice, Mapping)
    kind = "name" if isinstance(choice, Mapping) else choice
    if isinstance(kind, str) and kind in _CHOICES and kind not in endpoint.rules.tool_choices:
        # Z.ai documentation: chat completion, `auto` alone
        message = f"the endpoint does not support a tool choice of {choice!r}; use auto"
        yield Violation("tool_choice", ("tool_choice",), message)
    if forced and not endpoint.rules.forced_choice_with_thinking and _thinks(body, endpoint):
        message = "a call cannot be forced while thinking is on; use auto, or turn thinking off"
        yield Violation("tool_choice_thinking", ("tool_choice",), message)


def _check_unstreamed(body: JsonObject, endpoint: Endpoint) -> Found:
    """Thinking: "parameter.enable_thinking must be set to false for non-streaming calls" (Qwen: eino-ext #375)."""
    if body.get("stream") is not True and not endpoint.rules.thinking_unstreamed and _thinks(body, endpoint):
        message = "the model thinks only in a stream; set `stream`, or turn thinking off"
        yield Violation("thinking_unstreamed", ("stream",), message)


def _thinks(body: JsonObject, endpoint: Endpoint) -> bool:
    """Whether thinking is on, asked for or not."""
    thinking = decode_thinking(body, endpoint)
    return endpoint.rules.thinks_unasked if thinking is None else thinking not in ("off", 0)


def _check_effort(body: JsonObject, endpoint: Endpoint) -> Found:
    """Efforts: "Unsupported value: 'minimal' is not supported with the 'o4-mini' model." (OpenAI API)."""
    if endpoint.model.provider == PROVIDER:  # gateways translate them
        yield from check_effort(body.get("reasoning_effort"), ("reasoning_effort",), endpoint, "effort_refused")
    if endpoint.dialect.thinking_format != "openrouter" or endpoint.model.thinking_levels.get("off", "") is not None:
        return
    asked = object_of(body.get("reasoning"))
    key = "enabled" if asked.get("enabled") is False else "effort"
    if key == "enabled" or asked.get(key) == "none":
        # "Reasoning is mandatory for this endpoint and cannot be disabled." (claude-code-router #1215, 2026-02-15, and
        # #1229; pi #4316)
        message = f"{endpoint.model.id} always thinks; remove `reasoning.{key}`"
        yield Violation("effort_refused", ("reasoning", key), message)


def _check_functions(body: JsonObject, endpoint: Endpoint) -> Found:
    """Functions beside an effort, and since GPT-5.6 without the effort `none`.

    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function
    tools, use /v1/responses or set reasoning_effort to 'none'." (webmcp-tools #417, 2026-09-03; litellm #34569: also
    without an effort).
    """
    allowed, effort = endpoint.rules.functions_with_thinking, body.get("reasoning_effort")
    if allowed == "allowed" or effort == "none" or (effort is None and allowed == "unset"):
        return
    if any(tool.get("type") == "function" for _, tool in objects_of(body.get("tools"))):
        message = f"{endpoint.model.id} refuses functions while it thinks; use openai-responses or the effort 'none'"
        yield Violation("functions_with_effort", ("reasoning_effort",), message)


def _check_search(body: JsonObject, endpoint: Endpoint) -> Found:
    """Search, where it is refused: "Web search options not supported with this model." (recorded 400, 2026-11)."""
    if body.get("web_search_options") is not None and "web_search_options" in endpoint.rules.refused_extra:
        message = "the model does not support `web_search_options`; remove it or choose another model"
        yield Violation("search_refused", ("web_search_options",), message)


def _check_limit(body: JsonObject, endpoint: Endpoint) -> Found:
    """The older name of the token limit.

    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    (gollm #33: o1 and o3-mini; continue #7052: gpt-5; ESPHomeDesigner #379, 2026-04-10: gpt-5.4, but not gpt-4o).
    """
    if body.get("max_tokens") is not None and "max_tokens" in endpoint.rules.refused_extra:
        message = "the model does not support `max_tokens`; use `max_completion_tokens`"
        yield Violation("limit_renamed", ("max_tokens",), message)


def _check_reasoning(body: JsonObject, endpoint: Endpoint) -> Found:
    """Reasoning that a request has to send back while thinking is on.

    "The `reasoning_content` in the thinking mode must be passed back to the API." (pi #3636); "Missing
    `reasoning_content` field in the assistant message at message index 2" (kimi-cli #2141).
    """
    if endpoint.rules.reasoning_replay != "required" or not _thinks(body, endpoint):
        return
    is_asked = decode_thinking(body, endpoint) is not None
    for index, message in enumerate(cast("Messages", body["messages"])):
        if message.get("role") == "assistant" and REASONING_KEYS.isdisjoint(message):
            if not is_asked and not message.get("tool_calls"):
                continue  # DeepSeek documentation: thinking mode, needed where a tool was called
            text = "the assistant message has no reasoning field; send it back, or empty"
            yield Violation("reasoning_missing", ("messages", index), text)


def _check_signatures(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check Gemini's signatures of the calls behind the last user message.

    "Function call is missing a thought_signature in functionCall parts." (securo #884; CodexPlusPlus #332, 2026-05-26).
    """
    if endpoint.rules.call_signature != "required":
        return
    messages = cast("Messages", body["messages"])
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user":
            return
        first = next(objects_of(message.get("tool_calls")), None)
        if first is not None and not find_signature(first[1].get("extra_content"), endpoint):
            text = "the first call of a step has no signature; send the one it was received with"
            yield Violation("no_signature", ("messages", index, "tool_calls", first[0]), text)


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (
    _check_tools,
    _check_numbers,
    _check_user,
    _check_refused,
    _check_choice,
    _check_effort,
    _check_functions,
    _check_search,
    _check_limit,
    _check_reasoning,
    _check_signatures,
    _check_unstreamed,
)
