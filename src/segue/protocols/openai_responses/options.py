"""What a request asks besides the conversation, both ways.

Facts this file rests on:
- Models that do not reason refuse `reasoning.effort`, `none` included.                 (baml #2708, OpenAI-DotNet #500)
- `reasoning.effort` is none, minimal, low, medium, high, xhigh or max; models may have their own words for a level, and
  nothing readable comes back unless `reasoning.summary` asks for it.              (openai 3.49.0; pi-ai 1.5.0)
- `max_output_tokens` below 16 is refused.                                         (openai-openapi 2.3.0 @f85dbe2)
- Requests are stored unless told `store: false`; without the store, reasoning can only be replayed from
  `encrypted_content`, which has to be included.                       (OpenAI documentation: reasoning; opencode #7724)
- Models that do not reason refuse `include: ["reasoning.encrypted_content"]`.      ("Encrypted content is not supported
                                                                                      with this model", pydantic-ai)
- `prompt_cache_key` has up to 64 characters; caches are kept for longer by `prompt_cache_retention: "24h"` or, newer,
  by `prompt_cache_options`.          (openai 3.49.0; pi-ai 1.5.0)
- Shapes are flat: `tool_choice: {"type": "function", "name": ...}`, `text.format: {"type": "json_schema", ...}`.
                                                                                                   (openai 3.49.0)

What a body says beyond these is kept under `Options.extra` and written back. An object that says more than segue reads
(`reasoning`, `text`) is kept whole, and what segue reads of it is put in its place when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import CacheRetention, Options, ThinkingLevel, Tool
from segue.errors import EncodeError
from segue.models.thinking import THINKING_LEVELS, level_for_budget
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, left_over, verbatim_of
from segue.protocols.kit.schemas import FORM, form_of, is_closed, schema_name
from segue.protocols.openai_responses.content import ABSENT, Wire, object_of
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.tools import custom_names

_ELSEWHERE: Final[Mapping[str, type | tuple[type, ...]]] = {
    "model": str,
    "input": (str, list),
    "tools": list,
    "instructions": str,
}
"""What is read with the conversation, where it is what it should be."""
_ENCRYPTED: Final = ("reasoning.encrypted_content",)
_CHOICES: Final = frozenset({"auto", "none", "required"})
_WITHOUT_VALUE: Final = ("stop", "seed")
"""Options that this wire has no word for."""

"""The key of the shape that names the model which was asked to reason although it is not known to."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(body: JsonObject, endpoint: Endpoint, tools: Sequence[Tool]) -> Options:
    """Read everything of a body but its conversation."""
    rest: Wire = {key: value for key, value in body.items() if key not in _ELSEWHERE}
    for key, kind in _ELSEWHERE.items():
        # A null, which is not the same as nothing.
        if key in body and not isinstance(body[key], kind):
            rest[key] = body[key]
    verbatim: Wire = {}
    _remove_defaults(rest, verbatim, endpoint)
    found: dict[str, object] = {
        "max_tokens": _take_number(rest, "max_output_tokens", whole=True),
        "temperature": _take_number(rest, "temperature"),
        "top_p": _take_number(rest, "top_p"),
        "parallel_tool_calls": _take_flag(rest, "parallel_tool_calls"),
        "stream": _take_flag(rest, "stream"),
        "thinking": _take_thinking(rest, endpoint),
        "tool_choice": _take_choice(rest, tools),
        "output_schema": _take_schema(rest, verbatim),
        "session_id": _take_text(rest, "prompt_cache_key"),
        "user_id": _take_text(rest, "safety_identifier"),
        "cache_retention": _take_retention(rest, endpoint),
    }
    if found["user_id"] is None and (user := _take_text(rest, "user")) is not None:
        found["user_id"] = user
        verbatim["user_id"] = "user"
    if not endpoint.model.reasoning and ("reasoning" in rest or _ENCRYPTED[0] in _list(rest.get("include"))):
        verbatim[ASKED_OF] = _named(body.get("model"), endpoint)
    if verbatim:
        rest[VERBATIM] = verbatim
    return Options(**found, extra={PROTOCOL: rest} if rest else None)  # pyright: ignore[reportArgumentType]


def _remove_defaults(rest: Wire, verbatim: Wire, endpoint: Endpoint) -> None:
    """Forget what segue writes of itself, and note what of that is missing."""
    for key, default in _default(endpoint).items():
        if key not in rest:
            verbatim[key] = ABSENT
        elif rest[key] == default:
            del rest[key]


def _default(endpoint: Endpoint) -> Wire:
    """Give what segue says in every request of its own: keep nothing, and hand out what replay needs."""
    default: Wire = {}
    if endpoint.dialect.store:
        default["store"] = False
    if endpoint.model.reasoning:
        default["include"] = list(_ENCRYPTED)
    return default


def _take_number(rest: Wire, key: str, *, whole: bool = False) -> float | int | None:
    value = rest.get(key)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return None
    del rest[key]
    return value


def _take_flag(rest: Wire, key: str) -> bool | None:
    value = rest.get(key)
    if not isinstance(value, bool):
        return None
    del rest[key]
    return value


def _take_text(rest: Wire, key: str) -> str | None:
    value = rest.get(key)
    if not isinstance(value, str):
        return None
    del rest[key]
    return value


def _take_thinking(rest: Wire, endpoint: Endpoint) -> ThinkingLevel | None:
    given = rest.get("reasoning")
    if not isinstance(given, Mapping):
        return None
    reasoning = cast("Mapping[str, object]", given)
    level = _level_of(reasoning.get("effort"), endpoint)
    if level is not None and reasoning == _encode_reasoning(level, endpoint):
        del rest["reasoning"]
    return level


def _level_of(effort: object, endpoint: Endpoint) -> ThinkingLevel | None:
    levels = [level for level in THINKING_LEVELS if _effort_value(level, endpoint) == effort]
    return (effort if effort in levels else levels[0]) if levels else None  # pyright: ignore[reportReturnType]


def _effort_value(level: ThinkingLevel, endpoint: Endpoint) -> str:
    return endpoint.model.thinking_levels.get(level) or ("none" if level == "off" else level)


def _take_choice(rest: Wire, tools: Sequence[Tool]) -> str | None:
    choice = rest.get("tool_choice")
    if isinstance(choice, str) and choice in _CHOICES:
        del rest["tool_choice"]
        return choice
    if isinstance(choice, Mapping):
        wanted = cast("Mapping[str, object]", choice)
        name = wanted.get("name")
        if isinstance(name, str) and name not in _CHOICES and wanted == _named_choice(name, tools):
            del rest["tool_choice"]
            return name
    return None


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _named(model: object, endpoint: Endpoint) -> str:
    return model if isinstance(model, str) else endpoint.model.id


def _take_schema(rest: Wire, verbatim: Wire) -> Mapping[str, object] | None:
    text = rest.get("text")
    given = cast("Mapping[str, object]", text).get("format") if isinstance(text, Mapping) else None
    if not isinstance(given, Mapping):
        return None
    original = cast("Mapping[str, object]", given)
    schema = original.get("schema")
    if original.get("type") != "json_schema" or not isinstance(schema, Mapping):
        return None
    wanted = cast("Mapping[str, object]", schema)
    if text == {"format": _encode_format(wanted)}:
        del rest["text"]
    else:
        kept = {key: value for key, value in original.items() if key != "schema"}
        rest["text"] = {**cast("Mapping[str, object]", text), "format": kept}
        verbatim["schema"] = "taken"
        if form := form_of(original):
            verbatim[FORM] = form
    return wanted


def _take_retention(rest: Wire, endpoint: Endpoint) -> CacheRetention | None:
    for retention in ("long", "none"):
        written = _encode_retention(retention, endpoint)
        if written and all(rest.get(key) == value for key, value in written.items()):
            for key in written:
                del rest[key]
            return retention
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_options(options: Options, body: Wire, endpoint: Endpoint, tools: Sequence[Tool]) -> None:
    """Write the options into the body, which names the model that is asked.

    Raises:
        EncodeError: an option that this wire has no word for.
    """
    for name in _WITHOUT_VALUE:
        if getattr(options, name) is not None:
            raise EncodeError("this wire has no word for it", path=("options", name))
    rest, verbatim = left_over(options.extra, PROTOCOL), verbatim_of(options.extra, PROTOCOL)
    for key, value in _default(endpoint).items():
        if verbatim.get(key) != ABSENT:
            body[key] = value
    body.update((key, value) for key, value in rest.items() if key not in _ELSEWHERE or key not in body)
    if not endpoint.model.reasoning and verbatim.get(ASKED_OF) != _named(body.get("model"), endpoint):
        _ask_no_reasoning(body)
    for key, value in (
        ("max_output_tokens", options.max_tokens),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("parallel_tool_calls", options.parallel_tool_calls),
        ("stream", options.stream),
    ):
        if value is not None:
            body[key] = value
    if options.session_id is not None:
        body["prompt_cache_key"] = options.session_id
    if options.user_id is not None:
        body["user" if verbatim.get("user_id") == "user" else "safety_identifier"] = options.user_id
    if options.cache_retention is not None:
        body.update(_encode_retention(options.cache_retention, endpoint))
    if options.tool_choice is not None:
        choice = options.tool_choice
        body["tool_choice"] = choice if choice in _CHOICES else _named_choice(choice, tools)
    _put_thinking(options, body, endpoint)
    _put_schema(options.output_schema, body, verbatim)


def _ask_no_reasoning(body: Wire) -> None:
    """Take out what was kept of another model's request and only one that reasons can be asked."""
    body.pop("reasoning", None)
    include = _list(body.get("include"))
    wanted = [part for part in include if part not in _ENCRYPTED]
    if wanted:
        body["include"] = wanted
    elif include:
        del body["include"]


def _put_thinking(options: Options, body: Wire, endpoint: Endpoint) -> None:
    given = body.get("reasoning")
    kept = dict(cast("Mapping[str, object]", given)) if isinstance(given, Mapping) else None
    thinking = options.thinking
    if thinking is None:
        if kept is not None and _level_of(kept.get("effort"), endpoint) is not None:
            # It was read, and has been taken back since.
            del kept["effort"]
            body["reasoning"] = kept
            if not kept:
                del body["reasoning"]
        return
    level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
    if kept is None:
        written = _encode_reasoning(level, endpoint)
        if written:
            body["reasoning"] = written
    elif _level_of(kept.get("effort"), endpoint) != level:
        body["reasoning"] = {**kept, "effort": _effort_value(level, endpoint)}


def _encode_reasoning(level: ThinkingLevel, endpoint: Endpoint) -> Wire:
    dialect = endpoint.dialect
    if dialect.thinking_format == "none" or not dialect.effort or (level == "off" and not endpoint.model.reasoning):
        return {}
    effort = _effort_value(level, endpoint)
    return {"effort": effort} if level == "off" else {"effort": effort, "summary": "auto"}


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


def _put_schema(schema: Mapping[str, object] | None, body: Wire, verbatim: Mapping[str, object]) -> None:
    text = body.get("text")
    kept = dict(object_of(text))
    original = object_of(kept.get("format"))
    if schema is not None:
        matches_alphabet = original.get("type") == "json_schema"
        kept["format"] = {**original, "schema": schema} if matches_alphabet else _encode_format(schema)
        body["text"] = kept
    elif verbatim.get("schema") == "taken" and "format" in kept:
        # It was read, and has been taken back since.
        del kept["format"]
        body["text"] = kept
        if not kept:
            del body["text"]


def _encode_format(schema: Mapping[str, object]) -> Wire:
    return {"type": "json_schema", "name": schema_name(schema), "schema": schema, "strict": is_closed(schema)}
