"""Options of a request to Mistral, both ways.

Tools that Mistral runs.

Facts:
- `max_tokens`, `temperature`, `top_p`, `stop` (a string or a list), `random_seed`, `tool_choice` (`auto`, `none`, `any`
  or `required`, or a function by name), `parallel_tool_calls`, `response_format`, `prompt_cache_key`, `stream`.
                                                                                (mistralai 3.7.0, read 2026-11-15)
- `reasoning_effort` sets the thinking level; a model with two levels has `none` and `high`. Models that do not reason
  refuse the key with any value.
                                                    (inspect_ai #4711, 2026-07-31; maki #396; mistral-common 1.13.0)
- `prompt_mode: "reasoning"`, the earlier parameter, is refused by every model of this endpoint: "Reasoning prompt
  mode is not enabled for this model", code 3051.              (pi-go #245, live, 2026-08-28; pi #3096, 2026-04-13)
- `any` is the earlier value for `required` and is deprecated.                               (mistral-common 1.13.0)
- A chat request has document libraries, images and connectors; web search and code are tools of agents and
  conversations, and a chat request with them answers 400.
                                                        (mistralai 3.7.0, read 2026-11-15; litellm #32059, 2026-07-03)
"""

from __future__ import annotations

from typing import Final, cast

from segue.conversation.context import Options, ThinkingLevel
from segue.models.thinking import LEVELS_BY_EFFORT, level_for_budget
from segue.protocols.families.functions import read_output_schema
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import (
    OptionTable,
    Setting,
    decode_settings,
    encode_settings,
    flag,
    listed,
    number,
    plain,
    text,
    texts,
)
from segue.protocols.kit.schemas import choose_form, received_form
from segue.protocols.kit.server_tools import ServerTool
from segue.protocols.mistral_chat.rules import PROTOCOL

_READ: Final = "2026-11-15"
_SOURCE: Final = "mistralai 3.7.0"

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="document_library",
        kind="file_search",
        pattern="document_library",
        template={"type": "document_library"},
        options={"stores": ("library_ids",)},
        source=_SOURCE,
        read=_READ,
    ),
    ServerTool(
        name="web_search", kind="web_search", pattern="web_search(?:_premium)?", source="litellm #32059", read=_READ
    ),
    ServerTool(
        name="code_interpreter", kind="code_execution", pattern="code_interpreter", source="litellm #32059", read=_READ
    ),
)


_CONVERSATION: Final = frozenset({"messages", "tools"})
_MOST: Final[ThinkingLevel] = "high"
_CHOICES: Final = frozenset({"auto", "none", "required"})
_SCHEMA_NAME: Final = "output"


def _read_thinking(body: Block, endpoint: Endpoint) -> object:
    effort = body.get("reasoning_effort")
    if isinstance(effort, str):
        own = {value: level for level, value in endpoint.model.thinking_levels.items() if value is not None}
        return own.get(effort) or LEVELS_BY_EFFORT.get(effort)
    return _MOST if effort is None and body.get("prompt_mode") == "reasoning" else None


def _write_thinking(value: object, endpoint: Endpoint) -> Wire:
    model = endpoint.model
    if not model.reasoning:
        return {}
    thinking = cast("ThinkingLevel | int", value)
    level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
    default = endpoint.dialect.off_value if level == "off" else level
    return {"reasoning_effort": model.thinking_levels.get(level) or default}


def _read_choice(body: Block, _: Endpoint) -> object:
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        return "required" if choice == "any" else choice if choice in _CHOICES else None
    name = object_of(object_of(choice).get("function")).get("name")
    # A tool with one of these names could not be distinguished from the choice; it stays data.
    return name if isinstance(name, str) and name not in _CHOICES else None


def _write_choice(value: object, _: Endpoint) -> Wire:
    return {"tool_choice": value if value in _CHOICES else {"type": "function", "function": {"name": value}}}


def _write_schema(value: object, _: Endpoint) -> Wire:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": _SCHEMA_NAME, "schema": value}}}


_SETTINGS: Final = OptionTable(
    PROTOCOL,
    (
        Setting("max_tokens", ("max_tokens",), number("max_tokens", whole=True), plain("max_tokens")),
        Setting("temperature", ("temperature",), number("temperature"), plain("temperature")),
        Setting("top_p", ("top_p",), number("top_p"), plain("top_p")),
        Setting("stop", ("stop",), texts("stop"), listed("stop")),
        Setting("seed", ("random_seed",), number("random_seed", whole=True), plain("random_seed")),
        Setting("thinking", ("reasoning_effort",), _read_thinking, _write_thinking),
        Setting("tool_choice", ("tool_choice",), _read_choice, _write_choice),
        Setting(
            "parallel_tool_calls", ("parallel_tool_calls",), flag("parallel_tool_calls"), plain("parallel_tool_calls")
        ),
        Setting(
            "output_schema",
            (
                "response_format.type",
                *(f"response_format.json_schema.{key}" for key in ("schema", "description", "strict")),
            ),
            read_output_schema,
            _write_schema,
        ),
        Setting("session_id", ("prompt_cache_key",), text("prompt_cache_key"), plain("prompt_cache_key")),
        Setting("stream", ("stream",), flag("stream"), plain("stream")),
    ),
)


def decode_options(body: Block, endpoint: Endpoint, choices: Block) -> Options:
    """Read the options of a body; `choices` are those of its messages that hold for this request only."""
    schema = read_output_schema(body, endpoint)
    if schema is not None:
        form = object_of(object_of(body.get("response_format")).get("json_schema"))
        choices = {**choices, **choose_form(schema, form, strict=None)}
    return decode_settings(_SETTINGS, body, _CONVERSATION, endpoint, choices)


def encode_options(body: Wire, options: Options, endpoint: Endpoint, model: str | None) -> None:
    """Write the options and the model into a body.

    Raises:
        EncodeError: an option is set that the protocol has no parameter for.
    """
    encode_settings(_SETTINGS, body, options, endpoint, model)
    if options.extra is not None and options.output_schema is not None:
        # What was received with the schema holds for every model.
        given = received_form(options.extra, PROTOCOL, options.output_schema)
        output = object_of(body.get("response_format"))
        form = object_of(output.get("json_schema"))
        if given and form.get("name") == _SCHEMA_NAME:
            body["response_format"] = {**output, "json_schema": {**form, **given}}
