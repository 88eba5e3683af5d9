"""Fields that at least two wires have: where each has them, and how the value is read and written.

A field of a request without a neutral type of its own is kept in `extra`, under the name of its protocol. A row of
`SHARED_FIELDS` says that several protocols mean the same by such fields, so that projection can write what it read in
one of them in the place that another one has for it. A new field is a row here, not a change of codecs; which providers
of a protocol have a key is in `models.provider_fields`.

Sources of the columns: openai 3.51.0, anthropic 2.9.0, google-genai 3.3.0, botocore 1.44.3, mistralai 3.7.0, ollama
0.6.3, cohere 7.3.1, groq 1.7.0, together 3.1.1, cerebras_cloud_sdk 1.91.0, fireworks_ai 1.2.28 (their types, read
2026-11-18); the columns of OpenRouter, vLLM, llama.cpp and SGLang are not verified.
Token ids belong to one tokenizer (`logit_bias`, `stop_token_ids`), so no row carries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from segue.models.model import Model
from segue.models.provider_fields import common_fields, provider_fields
from segue.models.providers import PROVIDERS
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_list, is_object, list_of, object_of, same

Level: TypeAlias = Literal["body", "message", "content"]
Kind: TypeAlias = Literal["number", "integer", "boolean", "text", "word", "object", "list"]
Convert: TypeAlias = Callable[[object], object]

_KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "word": lambda value: isinstance(value, str),
    "object": is_object,
    "list": is_list,
}


class Column(NamedTuple):
    """The place of a shared field on one wire.

    - `path`: keys joined by dots, from the body, the message or the part on.
    - `values`: pairs of a neutral value and its form on the wire, where they differ; the first one is written, each is
      read. A value without a pair is not there on this wire.
    - `closest`: neutral values without a form of their own -> the neutral value that is written; None: it is the
      default and not written.
    - `least`, `most`: the range; a number outside is clamped.
    - `beside`: what has to be sent with it.
    - `member`: the field is a member of the list at `path`.
    - `read`, `write`: for values of another shape.
    - `only`: the providers that have it; empty: all that have the key. `models`: a part of the ids that have it.
    """

    path: str
    values: tuple[tuple[object, object], ...] = ()
    closest: Mapping[str, str | None] = {}
    least: float | None = None
    most: float | None = None
    beside: Mapping[str, object] = {}
    member: str = ""
    read: Convert | None = None
    write: Convert | None = None
    only: frozenset[str] = frozenset()
    models: str = ""


class SharedField(NamedTuple):
    """A concept that several wires have; the first column of a wire that a target has is the one that is written."""

    name: str
    kind: Kind
    columns: Mapping[str, tuple[Column, ...]]
    level: Level = "body"


class Carried(NamedTuple):
    """A value that was moved to the target's place: the part without it, what to add, and a difference to report.

    `source` is the path that it was read from.
    """

    rest: Block
    added: Mapping[str, object]
    member: str
    difference: str
    source: str


# -- the rows ----------------------------------------------------------------------------------------------------------


def _row(name: str, kind: Kind, level: Level = "body", **columns: str | Column | Sequence[str | Column]) -> SharedField:
    """Return a row; the columns are named like protocols, with underscores."""

    def read(given: str | Column | Sequence[str | Column]) -> tuple[Column, ...]:
        listed = (given,) if isinstance(given, str | Column) else given
        return tuple(Column(one) if isinstance(one, str) else one for one in listed)

    return SharedField(name, kind, {key.replace("_", "-"): read(given) for key, given in columns.items()}, level)


def _words(path: str, words: str, *, only: frozenset[str] = frozenset(), **pairs: str) -> Column:
    """Return a column of words that are the same on the wire, and of pairs that are not."""
    given = tuple((word, word) for word in words.split())
    return Column(path, values=(*given, *pairs.items()), only=only)


def _read_allowed(value: object) -> object:
    """Read OpenAI's choice among some of the functions, of Chat or of Responses."""
    choice = object_of(value)
    if choice.get("type") != "allowed_tools":
        return None
    held = choice.get("allowed_tools", choice)
    return _allowed(held, {"auto": "auto", "required": "required"}, "mode", "tools")


def _allowed(held: object, modes: Mapping[str, str], mode_key: str, names_key: str) -> object:
    given = object_of(held)
    mode = modes.get(str(given.get(mode_key)))
    names: list[str] = []
    for tool in list_of(given.get(names_key)):
        inner = object_of(tool)
        function = inner.get("function", inner)
        name = tool if isinstance(tool, str) else object_of(function).get("name")
        if not isinstance(name, str) or inner.get("type", "function") != "function":
            return None
        names.append(name)
    return {"mode": mode, "names": names} if mode is not None and names else None


def _names_of(value: object) -> list[object]:
    return list_of(object_of(value).get("names"))


def _mode_of(value: object) -> str:
    return str(object_of(value).get("mode"))


def _write_chat_allowed(value: object) -> object:
    tools = [{"type": "function", "function": {"name": name}} for name in _names_of(value)]
    return {"type": "allowed_tools", "allowed_tools": {"mode": _mode_of(value), "tools": tools}}


def _write_responses_allowed(value: object) -> object:
    tools = [{"type": "function", "name": name} for name in _names_of(value)]
    return {"type": "allowed_tools", "mode": _mode_of(value), "tools": tools}


def _read_google_allowed(value: object) -> object:
    return _allowed(value, {"VALIDATED": "auto", "ANY": "required"}, "mode", "allowedFunctionNames")


def _write_google_allowed(value: object) -> object:
    mode = {"auto": "VALIDATED", "required": "ANY"}[_mode_of(value)]
    return {"mode": mode, "allowedFunctionNames": _names_of(value)}


def _read_interactions_allowed(value: object) -> object:
    modes = {"auto": "auto", "validated": "auto", "any": "required"}
    return _allowed(object_of(value).get("allowed_tools"), modes, "mode", "tools")


def _write_interactions_allowed(value: object) -> object:
    mode = {"auto": "auto", "required": "any"}[_mode_of(value)]
    return {"allowed_tools": {"mode": mode, "tools": _names_of(value)}}


_HARM: Final = "HARM_CATEGORY_"


def _read_google_safety(value: object) -> object:
    """Read settings as pairs of a category in lower case and a threshold, with what else they have."""
    settings: list[object] = []
    for one in list_of(value):
        given = object_of(one)
        category, threshold = given.get("category"), given.get("threshold")
        if not isinstance(category, str) or not isinstance(threshold, str) or set(given) != {"category", "threshold"}:
            return None
        settings.append({"type": category.removeprefix(_HARM).lower(), "threshold": threshold.lower()})
    return settings or None


def _write_google_safety(value: object) -> object:
    return [
        {"category": f"{_HARM}{str(one['type']).upper()}", "threshold": str(one["threshold"]).upper()}
        for one in cast("list[Block]", value)
    ]


def _read_interactions_safety(value: object) -> object:
    is_plain = all(is_object(one) and one.keys() == {"type", "threshold"} for one in list_of(value))
    return list_of(value) if is_plain and value else None


def _upper(value: object) -> object:
    return [str(one).upper() for one in list_of(value)]


def _lower(value: object) -> object:
    words = [one.lower() for one in list_of(value) if isinstance(one, str)]
    return words if len(words) == len(list_of(value)) else None


def _read_map(value: object) -> object:
    is_plain = is_object(value) and all(isinstance(one, str) for one in value.values())
    return value if is_plain and value else None


_OPENAI: Final = frozenset({"openai", "azure"})
_JSON: Final = {"type": "json_object"}
_GROQ: Final = frozenset({"groq"})
_VLLM: Final = frozenset({"vllm"})
_TIERS: Final = "auto default flex priority"
_MOONSHOT: Final = frozenset({"moonshotai", "moonshotai-cn", "kimi-coding"})
_NAMED: Final = _OPENAI | _MOONSHOT | {"deepseek", "openrouter", "cerebras", "fireworks", "vllm", "xai"}
"""Providers of Chat whose messages have a name. Groq documents a 400 for it (console.groq.com/docs/openai)."""
_LARGEST: Final = {"medium": "high", "original": "high"}

SHARED_FIELDS: Final[tuple[SharedField, ...]] = (
    _row(
        "json_mode",
        "boolean",
        openai_chat=Column("response_format", values=((True, _JSON),)),
        openai_responses=Column("text.format", values=((True, _JSON),)),
        mistral_chat=Column("response_format", values=((True, _JSON),)),
        cohere_chat=Column("response_format", values=((True, _JSON),)),
        google_genai=Column("generationConfig.responseMimeType", values=((True, "application/json"),)),
        google_interactions=[
            Column("response_format", values=((True, {"type": "text", "mime_type": "application/json"}),)),
            Column("response_format", values=((True, [{"type": "text", "mime_type": "application/json"}]),)),
            Column("response_mime_type", values=((True, "application/json"),)),
        ],
        ollama_chat=Column("format", values=((True, "json"),)),
    ),
    *(
        _row(
            name,
            "number",
            openai_chat=Column(name, least=-2, most=2),
            mistral_chat=Column(name, least=-2, most=2),
            cohere_chat=Column(name, least=0, most=1),
            google_genai=Column(f"generationConfig.{camel}", least=-2, most=2),
            ollama_chat=f"options.{name}",
        )
        for name, camel in (("frequency_penalty", "frequencyPenalty"), ("presence_penalty", "presencePenalty"))
    ),
    _row(
        "top_k",
        "integer",
        openai_chat="top_k",
        anthropic_messages="top_k",
        bedrock_converse=[
            Column("additionalModelRequestFields.top_k", models="claude"),
            Column("additionalModelRequestFields.inferenceConfig.topK", models="nova"),
        ],
        google_genai="generationConfig.topK",
        mistral_chat="top_k",
        ollama_chat="options.top_k",
        cohere_chat=Column("k", least=0, most=500),
    ),
    _row("min_p", "number", openai_chat="min_p", ollama_chat="options.min_p"),
    _row("typical_p", "number", openai_chat="typical_p", ollama_chat="options.typical_p"),
    _row(
        "repetition_penalty",
        "number",
        openai_chat=["repetition_penalty", "repeat_penalty"],
        mistral_chat="repetition_penalty",
        ollama_chat="options.repeat_penalty",
    ),
    _row("repeat_last_n", "integer", openai_chat="repeat_last_n", ollama_chat="options.repeat_last_n"),
    _row("mirostat", "integer", openai_chat="mirostat", ollama_chat="options.mirostat"),
    _row("mirostat_tau", "number", openai_chat=["mirostat_tau", "mirostat_target"], ollama_chat="options.mirostat_tau"),
    _row("mirostat_eta", "number", openai_chat=["mirostat_eta", "mirostat_lr"], ollama_chat="options.mirostat_eta"),
    _row("n_keep", "integer", openai_chat="n_keep", ollama_chat="options.num_keep"),
    _row("min_tokens", "integer", openai_chat=["min_tokens", "min_completion_tokens"], mistral_chat="min_tokens"),
    _row("ignore_eos", "boolean", openai_chat="ignore_eos"),
    _row("skip_special_tokens", "boolean", openai_chat="skip_special_tokens"),
    _row("echo", "boolean", openai_chat="echo"),
    _row(
        "n",
        "integer",
        openai_chat=[Column("n", most=1, only=_GROQ), Column("n")],
        google_genai="generationConfig.candidateCount",
        mistral_chat="n",
    ),
    _row(
        "logprobs",
        "boolean",
        openai_chat=[Column("logprobs", values=((True, 1),), only=frozenset({"together"})), Column("logprobs")],
        openai_responses=Column("include", member="message.output_text.logprobs"),
        google_genai="generationConfig.responseLogprobs",
        mistral_chat="logprobs",
        ollama_chat="logprobs",
        cohere_chat="logprobs",
    ),
    _row(
        "top_logprobs",
        "integer",
        openai_chat=[
            Column("logprobs", least=0, most=20, only=frozenset({"together"})),
            Column("top_logprobs", least=0, most=20, beside={"logprobs": True}),
        ],
        openai_responses=Column("top_logprobs", least=0, most=20),
        google_genai=Column(
            "generationConfig.logprobs", least=0, most=20, beside={"generationConfig.responseLogprobs": True}
        ),
        mistral_chat=Column("top_logprobs", beside={"logprobs": True}),
        ollama_chat=Column("top_logprobs", least=0, most=20, beside={"logprobs": True}),
    ),
    _row(
        "verbosity",
        "word",
        openai_chat=_words("verbosity", "low medium high"),
        openai_responses=_words("text.verbosity", "low medium high"),
    ),
    _row(
        "service_tier",
        "word",
        openai_chat=[
            _words("service_tier", "auto flex", default="on_demand", priority="performance", only=_GROQ),
            _words("service_tier", f"{_TIERS} scale", only=_OPENAI),
            _words("service_tier", _TIERS),
        ],
        openai_responses=_words("service_tier", f"{_TIERS} scale"),
        anthropic_messages=_words("service_tier", "auto", default="standard_only"),
        google_genai=_words("serviceTier", "flex priority", default="standard"),
        google_interactions=_words("service_tier", "flex priority", default="standard"),
        bedrock_converse=_words("serviceTier.type", "default flex priority reserved"),
    ),
    _row(
        "metadata",
        "object",
        openai_chat=Column("metadata", read=_read_map),
        openai_responses=Column("metadata", read=_read_map),
        bedrock_converse=Column("requestMetadata", read=_read_map),
        mistral_chat=Column("metadata", read=_read_map),
    ),
    _row("labels", "object", google_genai="labels", google_interactions="labels"),
    _row("prediction", "object", openai_chat="prediction", mistral_chat="prediction"),
    _row(
        "modalities",
        "list",
        openai_chat=Column("modalities", read=_lower),
        google_genai=Column("generationConfig.responseModalities", read=_lower, write=_upper),
        google_interactions=Column("response_modalities", read=_lower),
    ),
    _row(
        "truncation",
        "word",
        openai_chat=[
            _words("context_length_exceeded_behavior", "", auto="truncate", disabled="error"),
            Column("transforms", values=(("auto", ["middle-out"]), ("disabled", []))),
        ],
        openai_responses=_words("truncation", "auto disabled"),
    ),
    _row("priority", "integer", openai_chat="priority", cohere_chat="priority"),
    _row("regex", "text", openai_chat=["regex", Column("structured_outputs.regex", only=_VLLM), "guided_regex"]),
    _row(
        "grammar",
        "text",
        openai_chat=["grammar", "ebnf", Column("structured_outputs.grammar", only=_VLLM), "guided_grammar"],
    ),
    _row(
        "safety_settings",
        "list",
        google_genai=Column("safetySettings", read=_read_google_safety, write=_write_google_safety),
        google_interactions=Column("safety_settings", read=_read_interactions_safety),
    ),
    _row(
        "citations",
        "word",
        cohere_chat=Column(
            "citation_options.mode", values=(("disabled", "DISABLED"), ("disabled", "OFF"), ("enabled", "ENABLED"))
        ),
        openai_chat=_words("citation_options", "disabled enabled"),
    ),
    _row(
        "allowed_tools",
        "object",
        openai_chat=Column("tool_choice", read=_read_allowed, write=_write_chat_allowed, only=_OPENAI),
        openai_responses=Column("tool_choice", read=_read_allowed, write=_write_responses_allowed),
        google_genai=Column("toolConfig.functionCallingConfig", read=_read_google_allowed, write=_write_google_allowed),
        google_interactions=Column(
            "generation_config.tool_choice", read=_read_interactions_allowed, write=_write_interactions_allowed
        ),
    ),
    _row(
        "thinking_shown",
        "word",
        openai_responses=Column(
            "reasoning.summary", values=(("shown", "auto"), ("shown", "detailed"), ("shown", "concise"))
        ),
        anthropic_messages=Column("thinking.display", values=(("shown", "summarized"), ("hidden", "omitted"))),
        google_genai=Column(
            "generationConfig.thinkingConfig.includeThoughts", values=(("shown", True), ("hidden", False))
        ),
        google_interactions=Column(
            "generation_config.thinking_summaries", values=(("shown", "auto"), ("hidden", "none"))
        ),
    ),
    _row("name", "text", "message", openai_chat=Column("name", only=_NAMED)),
    _row(
        "detail",
        "word",
        "content",
        openai_chat=_words("image_url.detail", "auto low high original")._replace(closest={"medium": "high"}),
        openai_responses=_words("detail", "auto low high original")._replace(closest={"medium": "high"}),
        mistral_chat=_words("image_url.detail", "auto low high")._replace(closest=_LARGEST),
        cohere_chat=_words("image_url.detail", "auto low high")._replace(closest=_LARGEST),
        google_genai=Column(
            "mediaResolution.level",
            values=tuple(
                (word, f"MEDIA_RESOLUTION_{wire}")
                for word, wire in (("low", "LOW"), ("medium", "MEDIUM"), ("high", "HIGH"), ("original", "ULTRA_HIGH"))
            ),
            closest={"auto": None},
        ),
        google_interactions=_words("resolution", "low medium high", original="ultra_high")._replace(
            closest={"auto": None}
        ),
    ),
    _row("citable", "object", "content", anthropic_messages="citations", bedrock_converse="citations"),
)


# -- blocks ------------------------------------------------------------------------------------------------------------


class SharedBlock(NamedTuple):
    """The form of a native block on one wire: its `type`, or the key that `wraps` its fields."""

    type: str = ""
    wraps: str = ""
    models: str = ""


_RESULT_KEYS: Final = {"source", "title", "content", "citations"}
SEARCH_RESULT: Final[Mapping[str, SharedBlock]] = {
    "anthropic-messages": SharedBlock(type="search_result"),
    "bedrock-converse": SharedBlock(wraps="searchResult", models="claude"),  # AWS documentation: for Claude alone
}
"""A search result of texts. (anthropic 2.9.0: SearchResultBlockParam; botocore 1.44.3: SearchResultBlock)"""


def share_block(block: Block, protocol: str, model: Model) -> Block | None:
    """Return a native block of a protocol in the form that a model has for it; None if it has none."""
    source, place = SEARCH_RESULT.get(protocol), SEARCH_RESULT.get(model.protocol)
    if source is None or place is None or place.models not in model.id:
        return None
    held = dict(object_of(block.get(source.wraps)) if source.wraps else block)
    texts = [object_of(one) for one in list_of(held.get("content"))]
    is_plain = all(one.keys() - {"type"} == {"text"} for one in texts)  # without a field that only one wire has
    if held.pop("type", "") != source.type or not is_plain or {*held, "citations"} != _RESULT_KEYS:
        return None
    start = {"type": "text"} if place.type else {}
    held["content"] = [{**start, "text": one["text"]} for one in texts]
    return {place.wraps: held} if place.wraps else {"type": place.type, **held}


# -- finding -----------------------------------------------------------------------------------------------------------


@lru_cache
def _index(level: Level, protocol: str) -> Mapping[str, tuple[tuple[SharedField, Column], ...]]:
    """Return the columns of a protocol by their first key."""
    index: dict[str, tuple[tuple[SharedField, Column], ...]] = {}
    for row in SHARED_FIELDS:
        for column in row.columns.get(protocol, ()) if row.level == level else ():
            key = column.path.partition(".")[0]
            index[key] = (*index.get(key, ()), (row, column))
    return index


def shared_keys(level: Level, protocol: str) -> frozenset[str]:
    """Return the keys of a protocol that hold a shared field."""
    return frozenset(_index(level, protocol))


def has_field(protocol: str, provider: str, key: str) -> bool:
    """Whether a provider of a protocol has a key of the body; so has one whose keys are not known."""
    fields = provider_fields(protocol, provider)
    if fields is None and (provider not in PROVIDERS or PROVIDERS[provider].any_id):
        return True
    fields = fields or common_fields(protocol)
    return fields is None or key in fields


def column_of(row: SharedField, model: Model) -> Column | None:
    """Return the place that a model has for a shared field; None if it has none."""
    for column in row.columns.get(model.protocol, ()):
        if column.only and model.provider not in column.only:
            continue
        if column.models not in model.id:
            continue
        if row.level != "body" or has_field(model.protocol, model.provider, column.path.partition(".")[0]):
            return column
    return None


def move_fields(level: Level, part: Block, protocol: str, model: Model, defaults: Block = EMPTY) -> Iterator[Carried]:
    """Move the shared fields of a part of `extra`, one after the other, to the places that a model has for them.

    Yields what is left of the part each time. A field that the model has no place for stays in it, and so does one of
    the `defaults` of the protocol, which says nothing.
    """
    index = _index(level, protocol)
    for key in tuple(part):
        for row, column in index.get(key, ()):
            default = _at(defaults, column.path)
            if default is not None and same(default, _at(part, column.path)):
                continue
            value, rest = read_column(row, column, part)
            place = column_of(row, model) if value is not None else None
            written = None if place is None else write_column(row, place, value)
            if place is None or written is None:
                continue
            added, difference = written
            part = rest
            yield Carried(part, added, place.member, difference, column.path)
            if key not in part:
                break


def find_unplaced(name: str, parts: Mapping[str, Block], model: Model) -> tuple[Block, dict[str, Block]] | None:
    """Return an object that a model has no place for, and the parts of `extra` without it; None if there is none."""
    row = next(row for row in SHARED_FIELDS if row.name == name)
    for key, part in parts.items():
        for column in row.columns.get(key.partition(":")[0], ()):
            value, rest = read_column(row, column, part)
            if value is not None and column_of(row, model) is None:
                others = {other: held for other, held in parts.items() if other != key}
                return object_of(value), {**others, key: rest} if rest else others
    return None


def read_column(row: SharedField, column: Column, part: Block) -> tuple[object, Block]:
    """Return the neutral value of a field, None if there is none, and the part without the field."""
    held = _at(part, column.path)
    if held is None:
        return None, part
    if column.member:
        others = [one for one in list_of(held) if one != column.member]
        rest = put(without(part, column.path), column.path, others) if others else without(part, column.path)
        return (True, rest) if len(others) < len(list_of(held)) else (None, part)
    if column.values:
        value = next((neutral for neutral, wire in column.values if same(wire, held)), None)
    else:
        value = held if column.read is None else column.read(held)
    if value is None or not _KINDS[row.kind](value):
        return None, part
    return value, without(part, column.path)


def write_column(row: SharedField, column: Column, value: object) -> tuple[Mapping[str, object], str] | None:
    """Return what to write at which paths, and what differs; None if the wire cannot say it."""
    difference = ""
    if column.member:
        return ({column.path: column.member}, "") if value is True else None
    if isinstance(value, str) and value in column.closest:
        closest = column.closest[value]
        if closest is None:
            return {}, ""
        value, difference = closest, f"{row.name}: {closest} instead of {value}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        fitted = value if column.least is None else max(column.least, value)
        fitted = fitted if column.most is None else min(column.most, fitted)
        if fitted != value:
            value, difference = fitted, f"{row.name}: {fitted} instead of {value}"
    if column.values:
        wire = next((wire for neutral, wire in column.values if same(neutral, value)), None)
        if wire is None:
            return None
        value = wire
    elif column.write is not None:
        value = column.write(value)
    return {**column.beside, column.path: value}, difference


def _at(part: object, path: str) -> object:
    for key in path.split("."):
        part = object_of(part).get(key)
    return part


def without(part: Block, path: str) -> Block:
    """Remove a field at a path, and the objects that are empty then."""
    key, _, inner = path.partition(".")
    rest = {name: value for name, value in part.items() if name != key}
    if inner and (held := without(cast("Block", part[key]), inner)):
        rest[key] = held
    return rest


def put(part: Block, path: str, value: object, member: str = "") -> Wire:
    """Set a field at a path, or add a member to the list there; a field that is set already stays as it is."""
    key, _, inner = path.partition(".")
    held = part.get(key)
    if inner:
        return {**part, key: put(held if is_object(held) else {}, inner, value, member)}
    if member:
        items = list_of(held)
        return part if member in items else {**part, key: [*items, member]}  # pyright: ignore[reportReturnType]
    return {**part, key: value} if held is None else dict(part)
