"""What an OpenAI chat endpoint refuses: in the messages first, then in the rest of a request body.

Each check cites a refusal and its source. Limits come from the rules of the target, so a vendor with higher limits is
not checked against lower ones. Recorded requests that were answered 200 pass every check (2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final, cast

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import FileContent, ImageContent
from segue.errors import Path
from segue.models.model_ids import first_party_providers
from segue.protocols.families.chat_checks import (
    Messages,
    calls_of,
    check_chat,
    check_pairs,
    check_refused_options,
)
from segue.protocols.families.tool_checks import (
    check_call_id,
    check_forced_choice,
    check_name,
    check_tool_count,
    check_tools,
    declared_functions,
)
from segue.protocols.kit.capabilities import Places, refused_input
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found, objects_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.media_checks import check_bytes, check_image_url
from segue.protocols.kit.ranges import check_greedy, check_range, check_stop_sizes, check_user_ids
from segue.protocols.kit.reading import real_of, text_of
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.openai_chat.assistant import find_signature
from segue.protocols.openai_chat.content import decode_media
from segue.protocols.openai_chat.limits import LIMITS
from segue.protocols.openai_chat.options import decode_thinking
from segue.protocols.openai_chat.reasoning import REASONING_KEYS
from segue.protocols.openai_chat.rules import PROVIDER

_SYSTEM: Final = ("system", "developer")
_ROLES: Final = (*_SYSTEM, "user", "assistant", "tool", "function")
_ROLE_LIST: Final = ", ".join(_ROLES)
_FOREIGN_PARTS: Final = frozenset(
    {
        *("image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("input_text", "output_text", "input_image", "input_file", "video_url", "audio_url"),
    }
)
"""Parts of other protocols and of other vendors, which OpenAI refuses."""
_PART_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "image_url": frozenset({"url", "detail"}),
    "input_audio": frozenset({"data", "format"}),
    "file": frozenset({"file_data", "file_id", "filename"}),
}
"""The fields of a part, by its type, which is also the key that holds them (openai 3.49.0)."""


def _check_roles(messages: Messages, endpoint: Endpoint) -> Found:
    """Roles (openai 3.49.0); "'messages[0].role' does not support 'system' with this model" (OpenAI)."""
    started, own = False, endpoint.model.provider == PROVIDER
    for index, message in enumerate(messages):
        role, path = message.get("role"), ("messages", index, "role")
        if isinstance(role, str) and role in endpoint.rules.refused_roles:
            # "unknown variant `developer`, expected one of" the others (DeepSeek: pi #1048)
            yield Violation(CheckCode.ROLE_UNKNOWN, path, f"the endpoint does not have the role {role!r}; use system")
        elif (
            isinstance(role, str)
            and role in endpoint.rules.values("content_parts")
            and isinstance(message.get("content"), list)
        ):
            # "invalid type: sequence, expected a string" (DeepSeek: forgecode #2008, smolagents #1158; reported)
            text = f"the content of a message with the role {role!r} has to be a string; join its texts"
            yield Violation(CheckCode.TYPE_WRONG, ("messages", index, "content"), text)
            started = started or role not in _SYSTEM
        elif role not in _ROLES:
            yield Violation(CheckCode.ROLE_UNKNOWN, path, f"unknown role {role!r}; use one of {_ROLE_LIST}")
        elif role not in _SYSTEM:
            started = True
        elif not endpoint.rules.system_prompt and own:
            text = f"the model does not support the role {role!r}; use user"
            yield Violation(CheckCode.SYSTEM_UNSUPPORTED, path, text)
        elif started and endpoint.rules.system_messages == "none":
            # "System message must be at the beginning." (Rapid-MLX #1543, 2026-08-06)
            yield Violation(CheckCode.SYSTEM_MISPLACED, path, "system messages must come first; move or remove it")


def _check_pairing(messages: Messages, endpoint: Endpoint) -> Found:
    """Every call has one result, right after it.

    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'" (ellmer
    #459); "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'" (pi #7777);
    "Duplicate value for 'tool_call_id' of ..., in messages[7] and messages[8]" (agno #5116, opencode #1211, Azure:
    search2ai #30; for one batch DeepSeek: agent-native #2312, 2026-07-22).
    """
    return check_pairs(messages) if endpoint.rules.tools and endpoint.rules.paired_calls else iter(())


def _check_calls(messages: Messages, endpoint: Endpoint) -> Found:
    """Ids and names of calls.

    "string too long. Expected a string with maximum length 40" (autogen #6377); "Tool call id was ... but must be a-z,
    A-Z, 0-9, with a length of 9" (opencode #1680); function name ^[a-zA-Z0-9_-]{1,64}$ (openai 3.49.0); "Invalid
    'messages[1].tool_calls': empty array." (openai-python #2061, home-assistant #118577).
    """
    rules = endpoint.rules
    for index, message in enumerate(messages):
        if message.get("tool_calls") == [] and endpoint.model.provider == PROVIDER:
            place, text = ("messages", index, "tool_calls"), "the list of calls is empty; remove `tool_calls`"
            yield Violation(CheckCode.TOOL_LIST_EMPTY, place, text)
        for position, call in enumerate(calls_of(message)):
            path: Path = ("messages", index, "tool_calls", position)
            call_id = call.get("id")
            if isinstance(call_id, str) and call_id:
                yield from check_call_id(call_id, (*path, "id"), rules)
            inner = call.get("function")
            if isinstance(inner, Mapping):
                function = cast("JsonObject", inner)
                yield from _check_name(function.get("name"), (*path, "function", "name"), endpoint)
                if not _are_arguments(function.get("arguments")):
                    text = "`arguments` has to be the JSON text of an object; encode it so"
                    yield Violation(CheckCode.ARGUMENTS_INVALID, (*path, "function", "arguments"), text)


def _are_arguments(received: object) -> bool:
    """Whether arguments are the text of an object, or missing.

    `arguments` is a string (openai 3.49.0); "arguments must be a valid JSON object string" (kimi-cli #2196, vllm-fork
    #684, qwen: vercel/ai #19274).
    """
    if not isinstance(received, str):
        return not isinstance(received, (Mapping, list))
    if received.strip() == "null":
        return True  # of a function without parameters (recorded 200, 2026)
    return parse_arguments(received).diagnostic is None


def _check_name(name: object, path: Path, endpoint: Endpoint) -> Found:
    if name == "" and endpoint.model.provider != PROVIDER:
        # only OpenAI: "Invalid 'messages[69].tool_calls[0].function.name': empty string." (continue #11645)
        return iter(())
    return check_name(name, path, endpoint.rules)


def _check_turns(messages: Messages, endpoint: Endpoint) -> Found:
    """The order of messages, where the target requires one.

    "After the (optional) system message(s), user and assistant roles should be alternating" (OpenManus #580);
    "Unexpected role 'user' after role 'tool'" (zed #37021); "Last message must have role user" (karakeep #262).
    """
    rules = endpoint.rules
    previous: object = None
    for index, message in enumerate(messages):
        role, path = message.get("role"), ("messages", index, "role")
        if role in _SYSTEM:
            continue
        if previous is None and rules.first_user and role != "user":
            yield Violation(CheckCode.FIRST_TURN_WRONG, path, "the first turn is not the user's; add a user turn")
        if rules.alternate and role == previous and role in ("user", "assistant"):
            yield Violation(CheckCode.TURNS_NOT_ALTERNATING, path, f"two {role} turns in a row; merge them")
        if not rules.user_after_result and role == "user" and previous == "tool":
            text = "a user message cannot follow a tool result; put an assistant message between them"
            yield Violation(CheckCode.USER_AFTER_RESULT, path, text)
        previous = role
    last = messages[-1]
    is_open = last.get("role") == "assistant" and not calls_of(last) and endpoint.dialect.prefix_field not in last
    if is_open and not rules.last_assistant:
        path = ("messages", len(messages) - 1, "role")
        yield Violation(CheckCode.LAST_TURN_WRONG, path, "the last turn is the assistant's; add a user turn")


_OTHER_CONTENT: Final = ("tool_calls", "function_call", "refusal", "audio", "images", *REASONING_KEYS)
"""The fields of an assistant message that represent content."""


def _check_texts(messages: Messages, endpoint: Endpoint) -> Found:
    """Messages without text: "text content is empty" (kimi-cli #2621); a result of no parts (strands, Nemotron)."""
    rules = endpoint.rules
    for index, message in enumerate(messages):
        content, role, path = message.get("content"), message.get("role"), ("messages", index, "content")
        empty = content == [] or (content == "" and role == "user")
        if role == "user" and rules.refused_text != "none":
            blank = isinstance(content, str) and content.isspace() and rules.refused_text == "blank"
            if empty or blank:
                yield Violation(CheckCode.TEXT_BLANK, path, "the message has no text; add some or remove it")
        if role == "user" and content is None:
            # "missing field `content`" (DeepSeek: deepseek4j #41), "expected a string, got null" (OpenAI)
            yield Violation(CheckCode.CONTENT_MISSING, path, "the message has no content; add a text")
        if role == "assistant" and content is None and not any(message.get(key) for key in _OTHER_CONTENT):
            # "Invalid value for 'content': expected a string, got null." (llama_index #17921)
            text = "the assistant message is empty; add content or remove it"
            yield Violation(CheckCode.CONTENT_MISSING, path, text)
        if role == "tool" and empty and not rules.empty_result:
            yield Violation(CheckCode.RESULT_EMPTY, path, "the tool result is empty; add a text")


def _check_parts(messages: Messages, endpoint: Endpoint) -> Found:
    """The parts of each role.

    "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL"
    (OpenHands #7700; with role 'assistant': openai-node #1030); "Content blocks are expected to be either text or
    image_url type" (recorded 400, 2026-11); "unsupported image url" (OpenHands/software-agent-sdk #3219); "Invalid
    content type. image_url is only supported by certain models." (web-ui #274; "unknown variant `image_url`, expected
    `text`": kimi-code #2669); "Invalid value: 'image'. Supported values are: 'text' and 'image_url'." (openai-kotlin
    #320; langchainjs #11684, 2026-09-22; the current types: openai 3.49.0).
    """
    rules, model = endpoint.rules, endpoint.model
    own = model.provider == PROVIDER
    for index, message in enumerate(messages):
        content, role = message.get("content"), message.get("role")
        if not isinstance(content, list):
            continue
        for position, part in enumerate(cast("list[object]", content)):
            if not isinstance(part, Mapping):
                continue
            block = cast("JsonObject", part)
            path: Path = ("messages", index, "content", position)
            media = decode_media(block)
            kind = block.get("type")
            if kind == "text" and not isinstance(block.get("text"), str):
                # "messages.1.content.0.text.text: Input should be a valid string" (crush #910)
                yield Violation(CheckCode.CONTENT_MISSING, path, "the part has no text; add it or remove the part")
                continue
            if own and isinstance(kind, str) and kind in _FOREIGN_PARTS:
                text = f"unknown part type {kind!r}; use text, image_url, file or input_audio"
                yield Violation(CheckCode.BLOCK_TYPE_UNKNOWN, path, text)
                continue
            if own:
                yield from _check_fields(block, path)
            if own and "type" not in block:
                # "Missing required parameter: 'messages[1].content[0].type'." (a reported 400, 2025)
                yield Violation(CheckCode.BLOCK_TYPE_UNKNOWN, path, "the part has no type; add one")
            if media is None:
                continue
            # A gateway accepted an image in an assistant message (recorded by pydantic-ai, 2025-12).
            # OpenRouter and Ollama accepted images in a tool message (recorded 200s, 2026).
            if role == "assistant" and own:
                text = "an assistant message holds text only; move the media to a user message"
                yield Violation(CheckCode.BLOCK_MISPLACED, path, text)
                continue
            if role == "tool" and rules.result_text_only:
                text = "a tool message holds text only; move the media to a user message"
                yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, path, text)
                continue
            if media.kind == "image" and "image" in refused_input(model, rules):
                text = "the model does not support images; remove it or choose another model"
                yield Violation(CheckCode.MEDIA_UNSUPPORTED, path, text)
                continue
            if media.kind == "image" and media.url is not None and "url" not in rules.image_sources:
                text = "the model does not support image URLs; send the data"
                yield Violation(CheckCode.MEDIA_SOURCE_UNSUPPORTED, path, text)
            yield from _check_media(block, media, path, rules.url_schemes)
            mime = media.mime_type
            # The protocol's own list is OpenAI's; without a provider nothing is known about this model.
            if role == "user" and model.provider and mime is not None and not _is_supported(mime, rules.user_media):
                yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, path, f"the model does not support {mime}; remove it")


def _check_media(part: JsonObject, media: ImageContent | FileContent, path: Path, schemes: frozenset[str]) -> Found:
    """Bytes that are not what the part says: of an image, a file, or a video."""
    kind = str(part.get("type"))
    if media.kind == "image":
        inner = part.get(kind)
        url = cast("JsonObject", inner).get("url") if isinstance(inner, Mapping) else inner
        yield from check_image_url(url, (*path, kind), schemes=schemes)
    elif media.data is not None:
        yield from check_bytes(media.data, media.mime_type, (*path, kind))


def _check_fields(part: JsonObject, path: Path) -> Found:
    """Unknown fields of a part: "Unknown parameter: 'messages[1].content[1].file.data'." (a reported 400, 2025-04)."""
    kind = part.get("type")
    received = part.get(kind) if isinstance(kind, str) and kind in _PART_FIELDS else None
    if isinstance(kind, str) and isinstance(received, Mapping):
        for key in cast("JsonObject", received):
            if key not in _PART_FIELDS[kind]:
                yield Violation(CheckCode.FIELD_UNKNOWN, (*path, kind, key), f"{kind} has no field {key!r}; remove it")


def _is_supported(mime: str, patterns: tuple[str, ...]) -> bool:
    plain = mime.partition(";")[0].strip().lower()
    return any(fnmatchcase(plain, pattern) for pattern in patterns)


MESSAGE_CHECKS: Final[tuple[Callable[[Messages, Endpoint], Found], ...]] = (
    _check_roles,
    _check_pairing,
    _check_calls,
    _check_turns,
    _check_texts,
    _check_parts,
)


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
    # openai-openapi 2.3.0: minItems 1; "[] is too short - 'messages'"
    return check_chat(body, endpoint, _FIELDS, MESSAGE_CHECKS, _BODY_CHECKS)


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Tools: how many, their names, the root of their schemas.

    openai-openapi 2.3.0: at most 128; "schema must be a JSON Schema of 'type: "object"'" (text of the refusal);
    "'tool_choice' is only allowed when 'tools' are specified" (OpenAI); "Invalid 'tools': empty array. Expected an
    array with minimum length 1" (OpenAI: vllm #39780, 2026-04-14).
    """
    rules = endpoint.rules
    given = body.get("tools")
    tools = cast("list[object]", given) if isinstance(given, list) else []
    yield from check_tool_count(len(tools), rules)
    yield from check_tools(declared_functions(body), rules, needs="nothing")
    if given == [] and endpoint.model.provider == PROVIDER:
        yield Violation(CheckCode.TOOL_LIST_EMPTY, ("tools",), "the list of tools is empty; remove `tools`")
    if not tools and body.get("tool_choice") is not None and endpoint.model.provider == PROVIDER:
        message = "a tool choice is set without tools; add tools, or remove it"
        yield Violation(CheckCode.TOOL_CHOICE_WITHOUT_TOOLS, ("tool_choice",), message)


def _check_numbers(body: JsonObject, endpoint: Endpoint) -> Found:
    """Limits of numbers: temperature 0 to 2, top_p 0 to 1, 4 stops, n 1 to 128, top_logprobs 0 to 20.

    (openai-openapi 2.3.0)
    """
    rules = endpoint.rules
    yield from check_range("temperature", body.get("temperature"), ("temperature",), rules)
    yield from check_range("top_p", body.get("top_p"), ("top_p",), rules)
    yield from check_greedy(body, rules)
    if endpoint.model.provider == PROVIDER or rules.has("max_tokens"):  # local servers accept -1 for no limit
        # "integer below minimum value. Expected a value >= 1" (ChatDev #446)
        for key in ("max_tokens", "max_completion_tokens"):
            yield from check_range("max_tokens", body.get(key), (key,), rules)
    yield from check_stop_sizes(body.get("stop"), ("stop",), rules)
    yield from check_user_ids(body, rules)  # their lengths are in the rows of the providers, with their sources
    if (choices := real_of(body.get("n"))) is not None and not 1 <= choices <= 128:
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, ("n",), "n has to be between 1 and 128; change it")
    likely = real_of(body.get("top_logprobs"))
    if likely is not None and not (0 <= likely <= 20 and body.get("logprobs") is True):
        message = "top_logprobs has to be between 0 and 20, with logprobs; change it"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, ("top_logprobs",), message)


def _check_refused(body: JsonObject, endpoint: Endpoint) -> Found:
    """Levels and options that a model does not support."""
    model, rules, effort = endpoint.model, endpoint.rules, body.get("reasoning_effort")
    if text_of(effort) in rules.values("thinking_level"):
        message = f"this endpoint does not have the effort {effort!r}; use a lower one"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, ("reasoning_effort",), message)
    is_own = rules.body_fields != "unknown" or model.provider in first_party_providers(model.id)  # gateways translate
    if not is_own:
        return
    yield from check_refused_options(body, effort, endpoint, LIMITS)


def _check_choice(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check a choice that the endpoint does not have, and a forced call while thinking is on."""
    choice = body.get("tool_choice")
    forced = choice == "required" or isinstance(choice, Mapping)
    kind = "name" if isinstance(choice, Mapping) else choice
    if isinstance(kind, str) and kind in _CHOICES and kind not in endpoint.rules.tool_choices:
        # Z.ai documentation: chat completion, `auto` alone
        message = f"the endpoint does not support a tool choice of {choice!r}; use auto"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, ("tool_choice",), message)
    if forced:
        yield from check_forced_choice(endpoint.rules, is_thinking=_thinks(body, endpoint))


def _check_unstreamed(body: JsonObject, endpoint: Endpoint) -> Found:
    """Thinking: "parameter.enable_thinking must be set to false for non-streaming calls" (Qwen: eino-ext #375)."""
    limit = real_of(body.get("max_tokens", body.get("max_completion_tokens")))
    most = endpoint.rules.most("unstreamed_max_tokens")
    if body.get("stream") is not True and limit and most and limit > most:
        message = f"a limit of output above {most:,} needs a stream; set `stream`, or lower the limit"
        yield Violation(CheckCode.STREAM_REQUIRED, ("stream",), message)
    if body.get("stream") is not True and endpoint.rules.has("thinking_unstreamed") and _thinks(body, endpoint):
        message = "the model thinks only in a stream; set `stream`, or turn thinking off"
        yield Violation(CheckCode.STREAM_REQUIRED, ("stream",), message)


def _thinks(body: JsonObject, endpoint: Endpoint) -> bool:
    """Whether thinking is on, asked for or not."""
    thinking = decode_thinking(body, endpoint)
    return endpoint.rules.thinks_unasked if thinking is None else thinking not in ("off", 0)


def _check_effort(body: JsonObject, endpoint: Endpoint) -> Found:
    """Efforts: "Unsupported value: 'minimal' is not supported with the 'o4-mini' model." (OpenAI API)."""
    if endpoint.model.provider == PROVIDER:  # gateways translate them
        yield from check_effort(body.get("reasoning_effort"), ("reasoning_effort",), endpoint)
    if endpoint.dialect.thinking_format != "openrouter" or endpoint.model.thinking_levels.get("off", "") is not None:
        return
    asked = object_of(body.get("reasoning"))
    given = {("reasoning", "enabled"): asked.get("enabled"), ("reasoning", "effort"): asked.get("effort")}
    for path, value in {**given, ("reasoning_effort",): body.get("reasoning_effort")}.items():
        if value is False or value == "none":
            # "Reasoning is mandatory for this endpoint and cannot be disabled." (claude-code-router #1215, 2026-02-15,
            # and #1229; pi #4316)
            message = f"{endpoint.model.id} always thinks; remove `{'.'.join(path)}`"
            yield Violation(CheckCode.EFFORT_UNSUPPORTED, path, message)


def _check_functions(body: JsonObject, endpoint: Endpoint) -> Found:
    """Functions with an effort, and since GPT-5.6 without the effort `none`.

    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function
    tools, use /v1/responses or set reasoning_effort to 'none'." (webmcp-tools #417, 2026-09-03; litellm #34569: also
    without an effort).
    """
    allowed, effort = endpoint.rules.functions_with_thinking, body.get("reasoning_effort")
    if allowed == "allowed" or effort == "none" or (effort is None and allowed == "unset"):
        return
    if any(tool.get("type") == "function" for _, tool in objects_of(body.get("tools"))):
        message = f"{endpoint.model.id} refuses functions while it thinks; use openai-responses or the effort 'none'"
        yield Violation(CheckCode.OPTION_WITH_THINKING, ("reasoning_effort",), message)


def _check_limit(body: JsonObject, endpoint: Endpoint) -> Found:
    """The older name of the token limit.

    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    (gollm #33: o1 and o3-mini; continue #7052: gpt-5; ESPHomeDesigner #379, 2026-04-10: gpt-5.4, but not gpt-4o).
    """
    if body.get("max_tokens") is not None and "max_tokens" in endpoint.rules.refused_extra:
        message = "the model does not support `max_tokens`; use `max_completion_tokens`"
        yield Violation(CheckCode.OPTION_RENAMED, ("max_tokens",), message)


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
            yield Violation(CheckCode.REASONING_MISSING, ("messages", index), text)


def _check_signatures(body: JsonObject, endpoint: Endpoint) -> Found:
    """Check Gemini's signatures of the calls after the last user message.

    "Function call is missing a thought_signature in functionCall parts." (securo #884; CodexPlusPlus #332, 2026-05-26).
    """
    if endpoint.rules.call_signature != "required":
        return
    messages = cast("Messages", body["messages"])
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user":
            return
        first = next(iter(objects_of(message.get("tool_calls"))), None)
        if first is not None and not find_signature(first[1].get("extra_content"), endpoint):
            text = "the first call of a step has no signature; send the one it was received with"
            yield Violation(CheckCode.SIGNATURE_MISSING, ("messages", index, "tool_calls", first[0]), text)


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (
    _check_tools,
    _check_numbers,
    _check_refused,
    _check_choice,
    _check_effort,
    _check_functions,
    _check_limit,
    _check_reasoning,
    _check_signatures,
    _check_unstreamed,
)
