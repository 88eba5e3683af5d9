"""What an Anthropic request asks besides the conversation, both ways.

Facts this file rests on:
- `max_tokens` is required. Left open, the model's own limit is asked for; without streaming at most what the SDK
  expects to be written in ten minutes (at 128,000 tokens an hour), because it refuses to wait longer.
                                                                                 (anthropic 2.8.0, read 2026-11-15)
- Newer models think adaptively, with an effort; older ones with a budget of at least 1,024 tokens that has to be
  smaller than `max_tokens`. The effort is `high` when nothing is said. An effort without a word on thinking is about
  the whole answer, thinking included where the model decides on it; older models refuse it.
                                                             (Anthropic documentation: thinking, effort; 2026-11-15)
- A budget leaves 1,024 tokens to answer with.                                       (pi-ai 1.5.0 and ktsoator/or)
- `top_k` is refused where `temperature` is.                     (Anthropic documentation: extended thinking; pi #7961)
- `minimal` has no word of its own and is `low`.                                                     (pi-ai 1.5.0)
- There is no word for a seed; a session is told in headers, where a provider has some.           (anthropic 2.8.0)

Reading keeps as it was whatever writing would spell differently, in `extra` of the options. When writing, what was kept
counts only as long as it still says what the options say: who changes an option changes the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import Options, ThinkingLevel
from segue.errors import EncodeError
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, left_over, text_of, verbatim_of

Wire: TypeAlias = dict[str, object]
Thinking: TypeAlias = ThinkingLevel | int | None

UNKNOWN_MAX_TOKENS: Final = 4_096
"""What every Claude since the third generation can write, for models whose limit nobody knows."""
MAX_TOKENS_WITHOUT_STREAM: Final = 21_333
"""Tokens that are expected within ten minutes; longer replies have to be streamed."""
LEAST_BUDGET: Final = 1_024
LEAST_ANSWER: Final = 1_024
"""Tokens that a budget leaves to the answer."""
NOT_EVERYWHERE: Final = frozenset({"xhigh", "max"})
"""Efforts that only models which list them take."""

_CONTEXT_KEYS: Final = frozenset({"model", "messages", "system", "tools"})
_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_LEVELS: Final[Mapping[str, ThinkingLevel]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_DEFAULT_LEVEL: Final[ThinkingLevel] = "high"
"""What the API does when thinking is asked for and no effort, and what an effort unknown to us is taken for."""

_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}
_CHOICES_BACK: Final[Mapping[str, str]] = {"auto": "auto", "any": "required", "none": "none"}

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "max_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "stop_sequences": ("stop",),
    "thinking": ("thinking",),
    "output_config": ("thinking", "output_schema"),
    "tool_choice": ("tool_choice", "parallel_tool_calls"),
    "metadata": ("user_id",),
    "stream": ("stream",),
}
"""Which fields of `Options` a key of the body speaks of."""

_THINKING_OF: Final = "thinking_of"
"""The key of the shape that names the model which was asked for a kind of thinking that is not known to be its own.
`ASKED_OF` names the one whose request says what is refused (`top_k`), or leaves out what is needed (`max_tokens`): only
that very request is written so again."""
_TYPES: Final[Mapping[str, str]] = {"adaptive": "adaptive", "between_tools": "adaptive", "enabled": "budget"}
"""Kinds of thinking -> the format of the models that take them; `disabled` is for all."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Mapping[str, object], endpoint: Endpoint) -> Options:
    """Read everything that is not the conversation itself."""
    meaning = _meaning(body, endpoint)
    options = Options(**meaning)  # pyright: ignore[reportArgumentType] - the fields have their types by _meaning
    written = _write(options, endpoint)
    kept = {
        key: value
        for key, value in body.items()
        if key not in _CONTEXT_KEYS and not (key in written and written[key] == value)
    }
    absent = [key for key in written if key not in body]
    if "model" not in body:
        absent.append("model")
    verbatim: Wire = {"absent": absent} if absent else {}
    named = body.get("model")
    if "model" in body and not isinstance(named, str):
        verbatim["model"] = named
    if not _fits(body, endpoint):
        verbatim[_THINKING_OF] = _named(named, endpoint)
    if body.get("max_tokens") is None or _refuses_top_k(body, endpoint):
        verbatim[ASKED_OF] = _named(named, endpoint)
    if verbatim:
        kept[VERBATIM] = verbatim
    return replace(options, extra={PROTOCOL: kept}) if kept else options


def _meaning(body: Mapping[str, object], endpoint: Endpoint) -> Wire:
    """Say what a body asks for, in the fields of `Options`; what has another form than it should have says nothing."""
    config, metadata = _object(body.get("output_config")), _object(body.get("metadata"))
    choice, parallel = _choice(_object(body.get("tool_choice")))
    stop, user_id = body.get("stop_sequences"), metadata.get("user_id")
    return {
        "max_tokens": _number(body.get("max_tokens"), int),
        "temperature": _number(body.get("temperature"), int | float),
        "top_p": _number(body.get("top_p"), int | float),
        "stop": _texts(stop),
        "thinking": _thinking(body.get("thinking"), text_of(config.get("effort")) or "", endpoint),
        "tool_choice": choice,
        "parallel_tool_calls": parallel,
        "output_schema": _schema(_object(config.get("format"))),
        "user_id": user_id if isinstance(user_id, str) else None,
        "stream": stream if isinstance(stream := body.get("stream"), bool) else None,
    }


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _number(value: object, kind: object) -> object:
    return value if isinstance(value, cast("type[int]", kind)) and not isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    items = cast("Sequence[object]", value)
    return tuple(item for item in items if isinstance(item, str)) if all(isinstance(i, str) for i in items) else None


def _schema(form: Mapping[str, object]) -> Mapping[str, object] | None:
    schema = form.get("schema")
    return (
        cast("Mapping[str, object]", schema)
        if form.get("type") == "json_schema" and isinstance(schema, Mapping)
        else None
    )


def _thinking(given: object, effort: str, endpoint: Endpoint) -> Thinking:
    """Say how much thinking is asked for. An effort alone says so where the model itself decides how long it thinks."""
    thinking = _object(given)
    if given is None and endpoint.dialect.thinking_format == "adaptive":
        return _LEVELS.get(effort)
    match thinking.get("type"):
        case "disabled":
            return "off"
        case "adaptive":
            return _LEVELS.get(effort) or _DEFAULT_LEVEL
        case "enabled":
            budget = thinking.get("budget_tokens")
            return budget if isinstance(budget, int) and not isinstance(budget, bool) else _DEFAULT_LEVEL
        case _:
            return None


def _choice(choice: Mapping[str, object]) -> tuple[str | None, bool | None]:
    off, name = choice.get("disable_parallel_tool_use"), choice.get("name")
    parallel = not off if isinstance(off, bool) else None
    if choice.get("type") == "tool" and isinstance(name, str):
        return name, parallel
    return _CHOICES_BACK.get(text_of(choice.get("type")) or ""), parallel


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, model: object) -> Wire:
    """Write the options.

    A kind of thinking that was read is kept for the `model` that was asked for it, and for all whose kind it is; others
    are asked in their own way.

    Raises:
        EncodeError: an option is set that the wire has no word for.
    """
    for name in ("seed", "session_id"):
        if getattr(options, name) is not None and name in endpoint.rules.refused_options:
            raise EncodeError("this wire has no word for it", path=("options", name))
    written = _write(options, endpoint)
    if options.extra is None or PROTOCOL not in options.extra:
        return written
    kept, verbatim = left_over(options.extra, PROTOCOL), verbatim_of(options.extra, PROTOCOL)
    absent, named = verbatim.get("absent"), _named(model, endpoint)
    missing = cast("Sequence[str]", absent) if isinstance(absent, list | tuple) else ()
    merged = {key: value for key, value in {**written, **kept}.items() if key not in missing}
    stale = _stale(options, merged, {*kept, *missing}, endpoint)
    if verbatim.get(_THINKING_OF) != named and not _fits(merged, endpoint):
        stale |= {"thinking", "output_config"}
    if "thinking" in missing and "effort" in _object(written.get("output_config")):
        stale.discard("thinking")  # the effort alone says it, as it did
    for key in sorted(stale):  # a set has another order in every process, and the body shall not
        merged.pop(key, None)
        if key in written:
            merged[key] = written[key]
    if "output_config" in stale:
        _keep_rest(merged, "output_config", kept, ("effort", "format"))
    if "metadata" in stale:
        _keep_rest(merged, "metadata", kept, ("user_id",))
    if verbatim.get(ASKED_OF) != named:
        if merged.get("max_tokens") is None:
            merged["max_tokens"] = written["max_tokens"]
        if _refuses_top_k(merged, endpoint):
            del merged["top_k"]
    return merged


def encode_model(named: str | None, options: Options, endpoint: Endpoint) -> Wire:
    """Write which model is asked.

    Where the address says so the body may not (Vertex), and one that was read may have something else than a name.
    """
    verbatim = verbatim_of(options.extra, PROTOCOL)
    absent = verbatim.get("absent")
    if named is not None:
        return {"model": named}
    if isinstance(absent, list | tuple) and "model" in absent:
        return {}
    return {"model": verbatim.get("model", endpoint.model.id)}


def _stale(options: Options, merged: Wire, touched: set[str], endpoint: Endpoint) -> set[str]:
    """Find the keys that were kept and no longer say what the options say."""
    meaning = _meaning(merged, endpoint)
    return {
        key
        for key, fields in _FIELDS.items()
        if key in touched and any(meaning[field] != getattr(options, field) for field in fields)
    }


def _named(model: object, endpoint: Endpoint) -> str:
    return model if isinstance(model, str) else endpoint.model.id


def _fits(body: Mapping[str, object], endpoint: Endpoint) -> bool:
    """Whether the model is known to take this kind of thinking, and this effort."""
    content = endpoint.dialect.thinking_format
    kind = _TYPES.get(text_of(_object(body.get("thinking")).get("type")) or "", content)
    effort = text_of(_object(body.get("output_config")).get("effort"))
    takes = content == "adaptive" and (
        effort not in NOT_EVERYWHERE or effort in endpoint.model.thinking_levels.values()
    )
    return kind == content and (effort is None or takes)


def _refuses_top_k(body: Mapping[str, object], endpoint: Endpoint) -> bool:
    """Whether a body says `top_k` that the model would refuse, always or because it is asked to think."""
    if body.get("top_k") is None:
        return False
    thinks = text_of(_object(body.get("thinking")).get("type")) in _TYPES
    rules = endpoint.rules
    return "temperature" in rules.refused_options or (thinks and "temperature" in rules.refused_with_thinking)


def _keep_rest(merged: Wire, key: str, kept: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Keep what a nested object said beyond the words that have changed."""
    rest = {name: value for name, value in _object(kept.get(key)).items() if name not in known}
    if rest:
        merged[key] = {**_object(merged.get(key)), **rest}


def _write(options: Options, endpoint: Endpoint) -> Wire:
    wire: Wire = {"max_tokens": options.max_tokens}
    if options.temperature is not None:
        wire["temperature"] = options.temperature
    if options.top_p is not None:
        wire["top_p"] = options.top_p
    if options.stop is not None:
        wire["stop_sequences"] = list(options.stop)
    config: Wire = {}
    if options.output_schema is not None:
        config["format"] = {"type": "json_schema", "schema": options.output_schema}
    _write_thinking(options, endpoint, wire, config)
    if wire["max_tokens"] is None:
        wire["max_tokens"] = _most_tokens(options, endpoint)
    if config:
        wire["output_config"] = config
    choice = _write_choice(options)
    if choice is not None:
        wire["tool_choice"] = choice
    if options.user_id is not None:
        wire["metadata"] = {"user_id": options.user_id}
    if options.stream is not None:
        wire["stream"] = options.stream
    return wire


def _most_tokens(options: Options, endpoint: Endpoint) -> int:
    most = endpoint.model.max_tokens or UNKNOWN_MAX_TOKENS
    return most if options.stream else min(most, MAX_TOKENS_WITHOUT_STREAM)


def _write_choice(options: Options) -> Wire | None:
    choice, parallel = options.tool_choice, options.parallel_tool_calls
    if choice is None and parallel is None:
        return None
    wire: Wire = {"type": _CHOICES.get(choice or "auto", "tool")}
    if wire["type"] == "tool":
        wire["name"] = choice
    if parallel is not None and choice != "none":  # where no tool may be called, nothing runs in parallel
        wire["disable_parallel_tool_use"] = not parallel
    return wire


def _write_thinking(options: Options, endpoint: Endpoint, wire: Wire, config: Wire) -> None:
    asked, model, dialect = options.thinking, endpoint.model, endpoint.dialect
    if asked is None or dialect.thinking_format == "none":
        return
    if dialect.thinking_format != "adaptive" and isinstance(asked, int) and asked > 0:
        _write_budget(asked, options, endpoint, wire)
        return
    level = level_for_budget(asked) if isinstance(asked, int) else asked
    if level == "off":
        wire["thinking"] = {"type": "disabled"}
    elif dialect.thinking_format == "adaptive":
        wire["thinking"] = {"type": "adaptive"}
        if dialect.effort:
            config["effort"] = model.thinking_levels.get(level) or _EFFORTS[level]
    else:
        _write_budget(budget_for_level(level, dialect), options, endpoint, wire)


def _write_budget(budget: int, options: Options, endpoint: Endpoint, wire: Wire) -> None:
    """Write a budget; a limit to the reply that was left open leaves room for it."""
    if options.max_tokens is None:
        most = _most_tokens(options, endpoint)
        if most < budget + LEAST_ANSWER:
            room = budget + UNKNOWN_MAX_TOKENS
            most = min(room, endpoint.model.max_tokens) if endpoint.model.max_tokens else room
        wire["max_tokens"] = most
    wire["thinking"] = {"type": "enabled", "budget_tokens": budget}
