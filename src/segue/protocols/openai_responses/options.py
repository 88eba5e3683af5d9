"""Options of a request.

Facts this file rests on:
- Models that do not reason refuse `reasoning.effort`, `none` included.                 (baml #2708, OpenAI-DotNet #500)
- `reasoning.effort` is none, minimal, low, medium, high, xhigh or max; models may have other names for a level, and
  nothing readable comes back unless `reasoning.summary` requests it.              (openai 3.49.0; pi-ai 1.5.0)
- `max_output_tokens` below 16 is refused.                                         (openai-openapi 2.3.0 @f85dbe2)
- Requests are stored without `store: false`; unless stored, reasoning can only be replayed from `encrypted_content`,
  which has to be included.                                            (OpenAI documentation: reasoning; opencode #7724)
- Models that do not reason refuse `include: ["reasoning.encrypted_content"]`.      ("Encrypted content is not supported
                                                                                      with this model", pydantic-ai)
- `prompt_cache_key` has up to 64 characters; caches are kept for longer by `prompt_cache_retention: "24h"` or, newer,
  by `prompt_cache_options`.          (openai 3.49.0; pi-ai 1.5.0)
- Objects are flat: `tool_choice: {"type": "function", "name": ...}`, `text.format: {"type": "json_schema", ...}`.
                                                                                                   (openai 3.49.0)

Format is kept for the model of the body. Choices kept in `extra`:
- `field`: "user" where that key holds the user id. Default "safety_identifier".
- `reasoning`: "sent" where the body has `reasoning` or includes encrypted content for a model that is not known to
  reason. Default "omitted": for any other model that does not reason, and in a new request, both are left out.
- `schema_form`: the name and the description of the schema of the answer, see `kit.schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import CacheRetention, Options, ThinkingLevel, Tool
from segue.models.thinking import THINKING_LEVELS, level_for_budget
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, real_of, text_of
from segue.protocols.kit.schemas import can_be_strict, choose_form, chosen_form
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_responses.content import drop_replaced
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.tools import custom_names

_READ_ELSEWHERE: Final = frozenset({"model", "input", "tools", "instructions"})
_ENCRYPTED: Final = "reasoning.encrypted_content"
_CHOICES: Final = frozenset({"auto", "none", "required"})
_ANY: Final = "any"
"""Another name of `required`, from the chat protocol of Mistral."""
_UNSUPPORTED: Final = ("stop", "seed")
_RETENTIONS: Final[tuple[CacheRetention, ...]] = ("long", "none")


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(body: JsonObject, endpoint: Endpoint, tools: Sequence[Tool]) -> Options:
    """Read everything of a body but its conversation."""
    received: Wire = {key: value for key, value in body.items() if key not in _READ_ELSEWHERE}
    user_id, field = text_of(body.get("safety_identifier")), "safety_identifier"
    if user_id is None and isinstance(user := body.get("user"), str):
        user_id, field = user, "user"
    found: dict[str, object] = {
        "max_tokens": integer_of(body.get("max_output_tokens")),
        "temperature": real_of(body.get("temperature")),
        "top_p": real_of(body.get("top_p")),
        "parallel_tool_calls": _flag(body.get("parallel_tool_calls")),
        "stream": _flag(body.get("stream")),
        "thinking": _level_of(object_of(body.get("reasoning")).get("effort"), endpoint),
        "tool_choice": _decode_choice(body.get("tool_choice"), tools),
        "output_schema": _decode_schema(body.get("text")),
        "session_id": text_of(body.get("prompt_cache_key")),
        "user_id": user_id,
        "cache_retention": _decode_retention(body, endpoint),
    }
    model = text_of(body.get("model")) or endpoint.model.id
    choices = choose("field", "safety_identifier", field)
    if not endpoint.model.reasoning and ("reasoning" in received or _ENCRYPTED in list_of(received.get("include"))):
        choices.update(choose("reasoning", "omitted", "sent"))
    if found["output_schema"] is not None:
        form = object_of(object_of(body.get("text")).get("format"))
        choices.update(choose_form(object_of(found["output_schema"]), form))
    options = Options(**found, extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choices))  # pyright: ignore[reportArgumentType]
    default = _default_options(options, endpoint, tools)
    drop_replaced(default, received, "store", "include")
    drop_replaced(cast("Wire", default.get("reasoning", {})), object_of(received.get("reasoning")), "summary")
    known = ("reasoning.effort", "text.format.description")
    return replace(options, extra=keep(PROTOCOL, received, default, known, choices, only_for=model))


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _level_of(effort: object, endpoint: Endpoint) -> ThinkingLevel | None:
    levels = [level for level in THINKING_LEVELS if _effort_of(level, endpoint) == effort]
    return (effort if effort in levels else levels[0]) if levels else None  # pyright: ignore[reportReturnType]


def _decode_choice(choice: object, tools: Sequence[Tool]) -> str | None:
    if isinstance(choice, str):
        return "required" if choice == _ANY else choice if choice in _CHOICES else None
    name = object_of(choice).get("name")
    if not isinstance(name, str) or name in _CHOICES or choice != _named_choice(name, tools):
        return None
    return name


def _decode_schema(text: object) -> Block | None:
    form = object_of(object_of(text).get("format"))
    schema = form.get("schema")
    return cast("Block", schema) if form.get("type") == "json_schema" and isinstance(schema, Mapping) else None


def _decode_retention(body: JsonObject, endpoint: Endpoint) -> CacheRetention | None:
    for retention in _RETENTIONS:
        written = _encode_retention(retention, endpoint)
        if written and all(body.get(key) == value for key, value in written.items()):
            return retention
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, tools: Sequence[Tool], model: str | None) -> Wire:
    """Write the options as keys of a body that names `model`.

    Raises:
        EncodeError: an option that this protocol does not support.
    """
    refuse_options(PROTOCOL, options, _UNSUPPORTED)
    model, extra = model or endpoint.model.id, options.extra
    is_sent = endpoint.model.reasoning or chosen(extra, PROTOCOL, "reasoning", "omitted", model=model) == "sent"
    if extra is not None and not is_sent:
        extra = _without_reasoning(extra)
        options = replace(options, extra=extra)
    wire = restore(_default_options(options, endpoint, tools), extra, PROTOCOL, model=model)
    if wire.get("reasoning") == {} and "reasoning" not in data_of(extra, PROTOCOL):
        del wire["reasoning"]  # the model does not accept this level
    return wire


def _default_options(options: Options, endpoint: Endpoint, tools: Sequence[Tool]) -> Wire:
    wire: Wire = {}
    data = data_of(options.extra, PROTOCOL)
    is_user = chosen(options.extra, PROTOCOL, "field", "safety_identifier") == "user"
    if endpoint.dialect.store and "store" not in data:
        wire["store"] = False
    if endpoint.model.reasoning and "include" not in data:
        wire["include"] = [_ENCRYPTED]
    for key, value in (
        ("max_output_tokens", options.max_tokens),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("parallel_tool_calls", options.parallel_tool_calls),
        ("stream", options.stream),
        ("prompt_cache_key", options.session_id),
        ("user" if is_user else "safety_identifier", options.user_id),
    ):
        if value is not None:
            wire[key] = value
    if options.cache_retention is not None:
        wire.update(_encode_retention(options.cache_retention, endpoint))
    choice, thinking, schema = options.tool_choice, options.thinking, options.output_schema
    if choice is not None:
        wire["tool_choice"] = choice if choice in _CHOICES else _named_choice(choice, tools)
    if thinking is not None:
        level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
        wire["reasoning"] = _encode_reasoning(level, object_of(data.get("reasoning")), endpoint)
    if schema is not None:
        names = chosen_form(options.extra, PROTOCOL, schema)
        wire["text"] = {
            "format": {
                "type": "json_schema",
                **names,
                "schema": schema,
                "strict": can_be_strict(schema, endpoint.rules),
            }
        }
    return wire


def _without_reasoning(extra: Extra) -> Extra:
    """Remove the data that only a model which reasons accepts."""
    part = dict(extra.get(PROTOCOL, EMPTY))
    part.pop("reasoning", None)
    include = list_of(part.get("include"))
    if _ENCRYPTED in include:
        part["include"] = [value for value in include if value != _ENCRYPTED]
        if not part["include"]:
            del part["include"]
    return {**extra, PROTOCOL: part}


def _encode_reasoning(level: ThinkingLevel, data: Block, endpoint: Endpoint) -> Wire:
    """Write a level; empty where the model takes none."""
    dialect = endpoint.dialect
    if dialect.thinking_format == "none" or not dialect.effort or (level == "off" and not endpoint.model.reasoning):
        return {}
    reasoning: Wire = {"effort": _effort_of(level, endpoint)}
    if level != "off" and "summary" not in data:
        reasoning["summary"] = "auto"
    return reasoning


def _effort_of(level: ThinkingLevel, endpoint: Endpoint) -> str:
    return endpoint.model.thinking_levels.get(level) or ("none" if level == "off" else level)


def _encode_retention(retention: str, endpoint: Endpoint) -> Wire:
    long = endpoint.dialect.cache_long
    if retention == "long" and long == "24h":
        return {"prompt_cache_retention": "24h"}
    if retention == "long" and long == "30m":
        return {"prompt_cache_options": {"ttl": "30m"}}
    if retention == "none" and long == "30m":
        return {"prompt_cache_options": {"mode": "explicit"}}
    return {}


def _named_choice(name: str, tools: Sequence[Tool]) -> Wire:
    return {"type": "custom" if name in custom_names(tools) else "function", "name": name}
