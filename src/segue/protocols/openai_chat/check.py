"""What an OpenAI chat endpoint would refuse in a request body.

Each check below names what was said against it, and by whom. Limits come from the rules of the target, so a vendor that
takes more is not held to less. Checked against recorded requests: what was answered 200 passes (2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final, cast

from segue.conversation.arguments import parse_arguments
from segue.errors import Path
from segue.protocols.kit.checking import Found, Messages, calls_of, matches_alphabet, messages_of, unanswered
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.ranges import check_range
from segue.protocols.kit.schemas import is_closed
from segue.protocols.openai_chat.media import decode_media
from segue.protocols.openai_chat.reasoning import REASONING_KEYS
from segue.protocols.openai_chat.rules import PROVIDER
from segue.protocols.openai_chat.thinking import decode_thinking

_SYSTEM: Final = ("system", "developer")
_ROLES: Final = (*_SYSTEM, "user", "assistant", "tool", "function")
_FOREIGN_PARTS: Final = frozenset(
    {
        *("image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("input_text", "output_text", "input_image", "input_file", "video_url", "audio_url"),
    }
)
"""Parts of other wires and of other vendors, which the inventor of this one does not know."""
_PART_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "image_url": frozenset({"url", "detail"}),
    "input_audio": frozenset({"data", "format"}),
    "file": frozenset({"file_data", "file_id", "filename"}),
}
"""What a part of media says, by its type and by the key of the same name (openai 3.49.0)."""


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse, in the order of the body; nothing where nothing is known against it."""
    messages = messages_of(body)
    if isinstance(messages, Violation):
        # openai-openapi 2.3.0: minItems 1; "[] is too short - 'messages'"
        return [messages]
    found = [violation for look in _MESSAGE_CHECKS for violation in look(messages, endpoint)]
    found += [violation for look in _BODY_CHECKS for violation in look(body, endpoint)]
    return found


# -- messages ----------------------------------------------------------------------------------------------------------


def _check_roles(messages: Messages, endpoint: Endpoint) -> Found:
    """The roles there are (openai 3.49.0); "'messages[0].role' does not support 'system' with this model" (OpenAI)."""
    started, own = False, endpoint.model.provider == PROVIDER
    for index, message in enumerate(messages):
        role, path = message.get("role"), ("messages", index, "role")
        if role not in _ROLES:
            yield Violation(code="role_unknown", path=path, message=f"there is no role {role!r}")
        elif role not in _SYSTEM:
            started = True
        elif not endpoint.rules.system_prompt and own:
            yield Violation(code="system_refused", path=path, message=f"the model does not take the role {role!r}")
        elif started and endpoint.rules.system_messages == "none":
            # "System message must be at the beginning." (Rapid-MLX #1543, 2026-08-06)
            yield Violation(code="system_not_first", path=path, message="instructions have to come first")


def _check_pairing(messages: Messages, endpoint: Endpoint) -> Found:
    """Calls and results stand together.

    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'" (ellmer
    #459); "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'" (pi #7777);
    "Duplicate value for 'tool_call_id' of ..., in messages[7] and messages[8]" (agno #5116, opencode #1211, Azure:
    search2ai #30; for one batch DeepSeek: agent-native #2312, 2026-07-22).
    """
    if not endpoint.rules.tools:
        return
    open_ids: list[object] = []
    batch: set[object] = set()
    asked_at = 0
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            path = ("messages", index, "tool_call_id")
            if call_id in open_ids:
                open_ids.remove(call_id)
            elif str(call_id) in batch:
                yield Violation(code="result_twice", path=path, message=f"{call_id!r} has its result already")
            else:
                yield Violation(
                    code="result_without_call", path=path, message=f"no call before it has the id {call_id!r}"
                )
            continue
        if open_ids:
            yield unanswered(asked_at, open_ids)
        # A call of a kind that nobody knows may have no id: then no result can name it.
        open_ids = [call.get("id") for call in calls_of(message) if "id" in call or "function" in call]
        batch = set(map(str, open_ids))
        if len(batch) < len(open_ids):
            yield Violation(
                code="call_id_twice", path=("messages", index, "tool_calls"), message="two calls share an id"
            )
        asked_at = index
    if open_ids:
        yield unanswered(asked_at, open_ids)


def _check_calls(messages: Messages, endpoint: Endpoint) -> Found:
    """Ids and names of calls.

    "string too long. Expected a string with maximum length 40" (autogen #6377); "Tool call id was ... but must be a-z,
    A-Z, 0-9, with a length of 9" (opencode #1680); function name ^[a-zA-Z0-9_-]{1,64}$ (openai 3.49.0).
    """
    rules = endpoint.rules
    for index, message in enumerate(messages):
        for position, call in enumerate(calls_of(message)):
            path: Path = ("messages", index, "tool_calls", position)
            call_id = call.get("id")
            if isinstance(call_id, str):
                if rules.call_id_max and len(call_id) > rules.call_id_max:
                    yield Violation(code="call_id_long", path=(*path, "id"), message=f"more than {rules.call_id_max}")
                elif rules.call_id_alphabet and not matches_alphabet(call_id, rules.call_id_alphabet):
                    yield Violation(
                        code="call_id_letters", path=(*path, "id"), message=f"{call_id!r} has other letters"
                    )
            inner = call.get("function")
            if isinstance(inner, Mapping):
                function = cast("JsonObject", inner)
                yield from _check_name(function.get("name"), (*path, "function", "name"), endpoint)
                if not _are_arguments(function.get("arguments")):
                    place = (*path, "function", "arguments")
                    yield Violation(code="arguments_invalid", path=place, message="they have to be an object's JSON")


def _are_arguments(received: object) -> bool:
    """Whether arguments are the text of an object; none at all are not held against anybody.

    `arguments` is a string (openai 3.49.0); "arguments must be a valid JSON object string" (kimi-cli #2196, vllm-fork
    #684, qwen: vercel/ai #19274).
    """
    if not isinstance(received, str):
        return not isinstance(received, (Mapping, list))
    return parse_arguments(received).diagnostic is None


def _check_name(name: object, path: Path, endpoint: Endpoint) -> Found:
    rules = endpoint.rules
    if not isinstance(name, str) or not name:
        return
    if rules.tool_name_max and len(name) > rules.tool_name_max:
        yield Violation(code="tool_name_long", path=path, message=f"more than {rules.tool_name_max} characters")
    elif rules.tool_name_alphabet and not matches_alphabet(name, rules.tool_name_alphabet):
        yield Violation(code="tool_name_letters", path=path, message=f"{name!r} has letters that are refused")


def _check_turns(messages: Messages, endpoint: Endpoint) -> Found:
    """The order of turns, where the target has one.

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
            yield Violation(code="first_turn", path=path, message="the first turn has to be the user's")
        if rules.alternate and role == previous and role in ("user", "assistant"):
            yield Violation(code="turns_alternate", path=path, message=f"two turns of the {role}'s follow each other")
        if not rules.user_after_result and role == "user" and previous == "tool":
            yield Violation(code="user_after_result", path=path, message="a user turn may not follow a tool result")
        previous = role
    last = messages[-1]
    is_open = last.get("role") == "assistant" and not calls_of(last) and "prefix" not in last
    if is_open and not rules.last_assistant:
        path = ("messages", len(messages) - 1, "role")
        yield Violation(code="last_turn", path=path, message="the last turn may not be the assistant's")


def _check_texts(messages: Messages, endpoint: Endpoint) -> Found:
    """Turns without words: "text content is empty" (kimi-cli #2621); a result of no parts (strands, Nemotron)."""
    rules = endpoint.rules
    for index, message in enumerate(messages):
        content, role, path = message.get("content"), message.get("role"), ("messages", index, "content")
        empty = content == [] or (content == "" and role == "user")
        if role == "user" and rules.refused_text != "none":
            blank = isinstance(content, str) and content.isspace() and rules.refused_text == "blank"
            if empty or blank:
                yield Violation(code="text_empty", path=path, message="a turn without words is refused")
        if role == "tool" and empty and not rules.empty_result:
            yield Violation(code="result_empty", path=path, message="a tool result may not be empty")


_TEXT_EVENTS: Final = ("tool_calls", "function_call", "refusal", "audio", "images", *REASONING_KEYS)
"""What a turn says without content."""


def _check_nothing(messages: Messages, _: Endpoint) -> Found:
    """Assistants that say nothing: "Invalid value for 'content': expected a string, got null." (llama_index #17921)."""
    for index, message in enumerate(messages):
        if message.get("role") != "assistant" or message.get("content") is not None:
            continue
        if not any(message.get(key) for key in _TEXT_EVENTS):
            path = ("messages", index, "content")
            yield Violation(code="turn_empty", path=path, message="an assistant's turn has to say or call something")


def _check_parts(messages: Messages, endpoint: Endpoint) -> Found:
    """Parts where they may stand.

    "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL"
    (OpenHands #7700; with role 'assistant': openai-node #1030); "Content blocks are expected to be either text or
    image_url type" (recorded 400, 2026-11); "unsupported image url" (OpenHands/software-agent-sdk #3219); "Invalid
    content type. image_url is only supported by certain models." (web-ui #274; "unknown variant `image_url`, expected
    `text`": kimi-code #2669); "Invalid value: 'image'. Supported values are: 'text' and 'image_url'." (openai-kotlin
    #320; langchainjs #11684, 2026-09-22; the types there are by now: openai 3.49.0).
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
            if own and isinstance(kind, str) and kind in _FOREIGN_PARTS:
                yield Violation(code="part_unknown", path=path, message=f"there is no part {kind!r}")
                continue
            if own:
                yield from _check_fields(block, path)
            if own and "type" not in block:
                # "Missing required parameter: 'messages[1].content[0].type'." (recorded 400, 2025)
                yield Violation(code="part_untyped", path=path, message="a part has to say its type")
            if media is None:
                continue
            # A gateway took a picture in an assistant's turn (recorded by pydantic-ai, 2025-12).
            if (role == "assistant" and own) or (role == "tool" and not rules.result_media):
                yield Violation(code="media_misplaced", path=path, message=f"a {role} message is text only")
                continue
            if media.kind == "image" and "image" not in model.input:
                yield Violation(code="image_refused", path=path, message="the model does not look at pictures")
                continue
            if media.kind == "image" and media.url is not None and "url" not in rules.image_sources:
                yield Violation(code="image_url_refused", path=path, message="pictures have to come with their data")
            mime = media.mime_type
            if role == "user" and mime is not None and not _is_taken(mime, rules.user_media):
                yield Violation(code="media_type_refused", path=path, message=f"{mime} is not taken")


def _check_fields(part: JsonObject, path: Path) -> Found:
    """Fields a part does not have: "Unknown parameter: 'messages[1].content[1].file.data'." (recorded 400, 2025-04)."""
    kind = part.get("type")
    received = part.get(kind) if isinstance(kind, str) and kind in _PART_FIELDS else None
    if isinstance(kind, str) and isinstance(received, Mapping):
        for key in cast("JsonObject", received):
            if key not in _PART_FIELDS[kind]:
                yield Violation(code="field_unknown", path=(*path, kind, key), message=f"{kind} has no {key!r}")


def _is_taken(mime: str, patterns: tuple[str, ...]) -> bool:
    plain = mime.partition(";")[0].strip().lower()
    return any(fnmatchcase(plain, pattern) for pattern in patterns)


_MESSAGE_CHECKS: Final[tuple[Callable[[Messages, Endpoint], Found], ...]] = (
    _check_roles,
    _check_pairing,
    _check_calls,
    _check_turns,
    _check_texts,
    _check_nothing,
    _check_parts,
)


# -- the rest of the body ----------------------------------------------------------------------------------------------


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Found:
    """Tools: how many, their names, the root of their schemas.

    openai-openapi 2.3.0: at most 128; "schema must be a JSON Schema of 'type: "object"'" (the refusal's own words);
    "'tool_choice' is only allowed when 'tools' are specified" (OpenAI); "'required' is required to be supplied and to
    be an array including every key in properties" (OpenAI, of strict functions; recorded 400).
    """
    rules = endpoint.rules
    given = body.get("tools")
    tools = cast("list[object]", given) if isinstance(given, list) else []
    if rules.max_tools and len(tools) > rules.max_tools:
        yield Violation(code="tools_many", path=("tools",), message=f"more than {rules.max_tools} tools")
    for index, tool in enumerate(tools):
        inner = cast("JsonObject", tool).get("function") if isinstance(tool, Mapping) else None
        if not isinstance(inner, Mapping):
            continue
        function = cast("JsonObject", inner)
        path: Path = ("tools", index, "function")
        yield from _check_name(function.get("name"), (*path, "name"), endpoint)
        schema = function.get("parameters")
        kind = cast("JsonObject", schema).get("type") if isinstance(schema, Mapping) and schema else "object"
        if rules.schema_root_object and kind != "object":
            yield Violation(code="schema_root", path=(*path, "parameters"), message="the root has to be an object")
        elif rules.strict_closed and function.get("strict") is True and not is_closed(cast("object", schema)):
            message = "strict is for closed objects that require every property"
            yield Violation(code="schema_open", path=(*path, "parameters"), message=message)
    if not tools and body.get("tool_choice") is not None and endpoint.model.provider == PROVIDER:
        yield Violation(code="choice_without_tools", path=("tool_choice",), message="there are no tools to choose from")


def _check_numbers(body: JsonObject, endpoint: Endpoint) -> Found:
    """Limits of numbers: temperature 0 to 2, top_p 0 to 1, 4 stops, n 1 to 128, top_logprobs 0 to 20.

    (openai-openapi 2.3.0)
    """
    rules = endpoint.rules
    yield from check_range("temperature", body.get("temperature"), ("temperature",), rules)
    yield from check_range("top_p", body.get("top_p"), ("top_p",), rules)
    if endpoint.model.provider == PROVIDER:  # on a server of one's own -1 is no limit
        # "integer below minimum value. Expected a value >= 1" (ChatDev #446)
        for key in ("max_tokens", "max_completion_tokens"):
            yield from check_range("max_tokens", body.get(key), (key,), rules)
    stop = body.get("stop")
    if isinstance(stop, list) and rules.max_stop and len(cast("list[object]", stop)) > rules.max_stop:
        yield Violation(code="stops_many", path=("stop",), message=f"more than {rules.max_stop}")
    choices = _number(body.get("n"))
    if choices is not None and not 1 <= choices <= 128:
        yield Violation(code="choices_range", path=("n",), message="not between 1 and 128")
    likely = _number(body.get("top_logprobs"))
    if likely is not None and not (0 <= likely <= 20 and body.get("logprobs") is True):
        yield Violation(code="top_logprobs", path=("top_logprobs",), message="0 to 20, and only with logprobs")


def _check_refused(body: JsonObject, endpoint: Endpoint) -> Found:
    """Settings that a model does not have.

    "Unsupported parameter: 'stop' is not supported with this model." (recorded 400, 2025: o1-mini, gpt-5-mini);
    "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported."
    (qwen-code #921 of 2025-10: gpt-5-mini; lemmary #25 of 2026-08).
    """
    if endpoint.model.provider != PROVIDER or body.get("reasoning_effort") == "none":
        return
    refused = endpoint.rules.refused_options | endpoint.rules.refused_unless_off
    for option in ("stop", "temperature", "top_p"):
        if option in refused and body.get(option) not in (None, 1, []):
            yield Violation(code="option_refused", path=(option,), message="this model does not take it")


def _check_search(body: JsonObject, endpoint: Endpoint) -> Found:
    """Search, where it is refused: "Web search options not supported with this model." (recorded 400, 2026-11)."""
    if body.get("web_search_options") is not None and "web_search_options" in endpoint.rules.refused_extra:
        path = ("web_search_options",)
        yield Violation(code="search_refused", path=path, message="the model does not search")


def _check_limit(body: JsonObject, endpoint: Endpoint) -> Found:
    """The old name of the limit.

    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    (gollm #33: o1 and o3-mini; continue #7052: gpt-5; ESPHomeDesigner #379, 2026-04-10: gpt-5.4, while gpt-4o took it).
    """
    if body.get("max_tokens") is not None and "max_tokens" in endpoint.rules.refused_extra:
        path = ("max_tokens",)
        yield Violation(code="limit_renamed", path=path, message="the model wants max_completion_tokens")


def _check_reasoning(body: JsonObject, endpoint: Endpoint) -> Found:
    """Reasoning that has to come back while the model thinks.

    "The `reasoning_content` in the thinking mode must be passed back to the API." (pi #3636); "Missing
    `reasoning_content` field in the assistant message at message index 2" (kimi-cli #2141).
    """
    if endpoint.rules.reasoning_replay != "required" or decode_thinking(body, endpoint) in (None, "off", 0):
        return
    for index, message in enumerate(cast("Messages", body["messages"])):
        if message.get("role") == "assistant" and REASONING_KEYS.isdisjoint(message):
            path = ("messages", index)
            yield Violation(code="reasoning_missing", path=path, message="reasoning has to be passed back, or be empty")


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_BODY_CHECKS: Final[tuple[Callable[[JsonObject, Endpoint], Found], ...]] = (
    _check_tools,
    _check_numbers,
    _check_refused,
    _check_search,
    _check_limit,
    _check_reasoning,
)
