"""Fields that at least two wires have: where each has them, and how the value is read and written.

A field of a request without a neutral type of its own is kept in `extra`, under the name of its protocol. A row of
`SHARED_FIELDS` says that several protocols mean the same by such fields, so that projection can write what it read in
one of them in the place that another one has for it. A new field is a row here, not a change of codecs; which providers
of a protocol have a key is in `protocols.provider_fields`.

Sources of the columns: openai 3.51.0, anthropic 2.9.0, google-genai 3.3.0, botocore 1.44.3, mistralai 3.7.0, ollama
0.6.3, cohere 7.3.1, groq 1.7.0, together 3.1.1, cerebras_cloud_sdk 1.91.0, fireworks_ai 1.2.28 (their types, read
2026-11-18); the columns of OpenRouter, vLLM, llama.cpp and SGLang are not verified.
Token ids belong to one tokenizer (`logit_bias`, `stop_token_ids`), so no row carries them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from segue.protocols.kit.json_values import EMPTY, Block, is_object, list_of, object_of

Level: TypeAlias = Literal["body", "message", "text", "image", "file", "tool"]
Kind: TypeAlias = Literal["number", "integer", "boolean", "text", "word", "object", "list"]
Convert: TypeAlias = Callable[[object], object]


class Column(NamedTuple):
    """The place of a shared field on one wire.

    - `path`: keys joined by dots, from the body, the message, the part or the tool on.
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


# -- the rows ----------------------------------------------------------------------------------------------------------


def _row(name: str, kind: Kind, level: Level = "body", **columns: str | Column | Sequence[str | Column]) -> SharedField:
    """Return a row; the columns are named like protocols, with underscores."""

    def read(given: str | Column | Sequence[str | Column]) -> tuple[Column, ...]:
        listed = (given,) if isinstance(given, str | Column) else given
        return tuple(Column(one) if isinstance(one, str) else one for one in listed)

    return SharedField(name, kind, {key.replace("_", "-"): read(given) for key, given in columns.items()}, level)


def _freeform(mark: str) -> Column:
    """Return the choice of a codec that writes a tool, or a call of one, with a text in place of arguments."""
    return Column(f"verbatim.{mark}", values=((True, {"from": "function", "to": "custom"}),), only=_OPENAI)


def _refusal(field: str) -> Column:
    """Return the choice of a codec that writes a text of an answer as a refusal."""
    return Column("verbatim.@field", values=((True, {"from": field, "to": "refusal"}),), only=_OPENAI)


def _read_grammar(value: object) -> object:
    given = object_of(value)
    inner = object_of(given.get("grammar"))
    return {"type": "grammar", **inner} if set(given) == {"type", "grammar"} and "type" not in inner else value


def _write_grammar(value: object) -> object:
    given = dict(object_of(value))
    return {"type": "grammar", "grammar": given} if given.pop("type", None) == "grammar" else value


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


def write_responses_allowed(value: object) -> object:
    """Write the choice among some functions as Responses has it."""
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
    """Read settings as categories in lower case with a threshold and perhaps a method."""
    settings: list[object] = []
    for one in list_of(value):
        given = {"type" if key == "category" else key: inner for key, inner in object_of(one).items()}
        words = {key: inner.lower() for key, inner in given.items() if isinstance(inner, str)}
        if "type" in given and words.keys() == given.keys():
            words["type"] = words["type"].removeprefix(_HARM.lower())
        settings.append(words if words.keys() == given.keys() else None)
    return _read_interactions_safety(settings)


def _write_google_safety(value: object) -> object:
    settings = cast("list[Mapping[str, str]]", value)
    named = [{"category": f"{_HARM}{one['type']}", **one} for one in settings]
    return [{key: word.upper() for key, word in one.items() if key != "type"} for one in named]


def _read_interactions_safety(value: object) -> object:
    required = {"type", "threshold"}
    is_plain = all(is_object(one) and required <= one.keys() <= {*required, "method"} for one in list_of(value))
    return list_of(value) if is_plain and value else None


def _upper(value: object) -> object:
    return [str(one).upper() for one in list_of(value)]


def _lower(value: object) -> object:
    words = [one.lower() for one in list_of(value) if isinstance(one, str)]
    return words if len(words) == len(list_of(value)) else None


def _read_map(value: object) -> object:
    is_plain = is_object(value) and all(isinstance(one, str) for one in value.values())
    return value if is_plain and value else None


ALLOWED_WIRE: Final = "openai-responses"
"""A protocol that has a field for the only tools that may be called."""


def _read_prediction(value: object) -> object:
    """Read a predicted text; Chat may have it in parts."""
    content = object_of(value).get("content") if object_of(value).get("type") == "content" else None
    if isinstance(content, str):
        return content
    texts = [object_of(part).get("text") for part in list_of(content)]
    return "".join(map(str, texts)) if texts and all(isinstance(text, str) for text in texts) else None


def _write_prediction(value: object) -> object:
    return {"type": "content", "content": value}


def _read_documents(value: object) -> object:
    """Read documents of Cohere or Groq as pairs of an id and data; None if one has another form."""
    documents: list[object] = []
    for one in list_of(value):
        held = object_of(one)
        source = object_of(held.get("source"))
        data = held.get("data", source.get("data", {"text": source["text"]} if "text" in source else None))
        data = {"text": one} if isinstance(one, str) else data
        if not is_object(data):
            return None
        documents.append({"id": held.get("id"), "data": data})
    return documents or None


def _write_documents(form: Convert) -> Convert:
    def write(value: object) -> object:
        found = [object_of(one) for one in list_of(value)]
        return [
            {**({"id": one["id"]} if one["id"] is not None else {}), **object_of(form(one["data"]))} for one in found
        ]

    return write


def _read_google_speech(value: object) -> object:
    """Read a language and a voice, or one for each speaker; None if there is more, such as a recorded voice."""
    given = object_of(value)
    held = list_of(object_of(given.get(_SPEAKERS[0])).get(_SPEAKERS[1]))
    voices = [_voice(one) for one in held or [given]]
    keys = {"voiceConfig", "languageCode"} if not held else {_SPEAKERS[0], "languageCode"}
    language = {"language": given["languageCode"]} if "languageCode" in given else {}
    speech = [{**voice, **language} for voice in voices if voice is not None]
    return _speech(speech) if given.keys() <= keys and len(speech) == len(voices) else None


_SPEAKERS: Final = ("multiSpeakerVoiceConfig", "speakerVoiceConfigs")


def _voice(value: object) -> Block | None:
    """Read the name of a voice of Google's, and its speaker."""
    given = object_of(value)
    name = object_of(object_of(given.get("voiceConfig")).get("prebuiltVoiceConfig")).get("voiceName")
    if "voiceConfig" in given and not isinstance(name, str):
        return None
    named = {"voice": name, "speaker": given.get("speaker")}
    return {key: one for key, one in named.items() if one is not None}


def _speech(voices: Sequence[Block]) -> object:
    """Return one voice as it is, several as a list of speakers, each of whom needs a name."""
    if len(voices) == 1 and "speaker" not in voices[0]:
        return voices[0] or None
    return {"speakers": list(voices)} if voices and all("speaker" in one for one in voices) else None


def _voices(value: object) -> list[Block]:
    return [object_of(one) for one in list_of(object_of(value).get("speakers"))] or [object_of(value)]


def _write_google_speech(value: object) -> object:
    voices = [
        {
            **({"speaker": one["speaker"]} if "speaker" in one else {}),
            **({"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": one["voice"]}}} if "voice" in one else {}),
        }
        for one in _voices(value)
    ]
    language = next(({"languageCode": one["language"]} for one in _voices(value) if "language" in one), EMPTY)
    several = "speakers" in object_of(value)
    return {**({_SPEAKERS[0]: {_SPEAKERS[1]: voices}} if several else voices[0]), **language}


def _read_interactions_speech(value: object) -> object:
    configs = [object_of(one) for one in ([value] if is_object(value) else list_of(value))]
    is_known = all(one and one.keys() <= {"voice", "language", "speaker"} for one in configs)
    return _speech(configs) if is_known and len({str(one.get("language")) for one in configs}) == 1 else None


def _write_interactions_speech(value: object) -> object:
    return _voices(value)


def _read_fireworks_grammar(value: object) -> object:
    given = object_of(value)
    return given.get("grammar") if given.get("type") == "grammar" else None


def _write_fireworks_grammar(value: object) -> object:
    return {"type": "grammar", "grammar": value}


def _read_nothing(_: object) -> object:
    return None


def _write_alternatives(value: object) -> object:
    """Write texts to choose from as a regular expression."""
    return "(" + "|".join(re.escape(str(one)) for one in list_of(value)) + ")"


_OPENAI: Final = frozenset({"openai", "azure"})
_JSON: Final = {"type": "json_object"}
_GROQ: Final = frozenset({"groq"})
_VLLM: Final = frozenset({"vllm"})
_CEREBRAS: Final = frozenset({"cerebras"})
_FIREWORKS: Final = frozenset({"fireworks"})
_OPENROUTER: Final = frozenset({"openrouter"})
_SGLANG: Final = frozenset({"sglang"})
_ZAI: Final = frozenset({"zai", "zai-coding-cn"})
_TIERS: Final = "auto default flex priority"
_MOONSHOT: Final = frozenset({"moonshotai", "moonshotai-cn", "kimi-coding"})
_NAMED: Final = _OPENAI | _MOONSHOT | {"deepseek", "openrouter", "cerebras", "fireworks", "vllm", "xai"}
"""Providers of Chat whose messages have a name. Groq documents a 400 for it (console.groq.com/docs/openai)."""
_VIDEO: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("video_fps", "number", "fps", "fps"),
    ("video_start", "text", "startOffset", "start_offset"),
    ("video_end", "text", "endOffset", "end_offset"),
)
_LARGEST: Final = {"medium": "high", "original": "high"}
_RESOLUTION: Final = Column(
    "mediaResolution.level",
    values=tuple(
        (word, f"MEDIA_RESOLUTION_{wire}")
        for word, wire in (("low", "LOW"), ("medium", "MEDIUM"), ("high", "HIGH"), ("original", "ULTRA_HIGH"))
    ),
    closest={"auto": None},
)
"""How closely Gemini looks at a part."""

STRICT_TOOLS: Final = _row("strict_tools", "boolean", cohere_chat="strict_tools")
"""One switch for all tools; other wires have one for each, and projection moves it between them."""

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
    _row("include_stop", "boolean", openai_chat=["include_stop_str_in_output", "no_stop_trim"]),
    _row("prompt_limit", "integer", openai_chat=["truncate_prompt_tokens", "prompt_truncate_len"]),
    _row("return_token_ids", "boolean", openai_chat="return_token_ids"),
    _row("request_id", "text", openai_chat=["request_id", "rid"]),
    _row("cache_salt", "text", openai_chat="cache_salt"),
    _row(
        "prompt_logprobs",
        "boolean",
        openai_chat=Column("prompt_logprobs", values=((True, 0),)),
        mistral_chat="prompt_logprobs",
    ),
    _row(
        "top_prompt_logprobs",
        "integer",
        openai_chat="prompt_logprobs",
        mistral_chat=Column("top_prompt_logprobs", beside={"prompt_logprobs": True}),
    ),
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
            _words("service_tier", f"{_TIERS} scale fast", only=_OPENAI),
            _words("service_tier", _TIERS),
        ],
        openai_responses=_words("service_tier", f"{_TIERS} scale fast ultrafast"),
        anthropic_messages=[_words("service_tier", "auto", default="standard_only"), _words("speed", "fast")],
        mistral_chat=_words("service_tier", "auto", default="standard_only"),
        google_genai=_words("serviceTier", "flex priority", default="standard"),
        google_interactions=_words("service_tier", "flex priority", default="standard"),
        bedrock_converse=_words("serviceTier.type", "default flex priority reserved"),
    ),
    _row("moderation", "object", openai_chat="moderation", openai_responses="moderation"),
    _row("prompt_cache_options", "object", openai_chat="prompt_cache_options", openai_responses="prompt_cache_options"),
    _row(
        "include_obfuscation",
        "boolean",
        openai_chat=Column("stream_options.include_obfuscation", only=_OPENAI),
        openai_responses="stream_options.include_obfuscation",
    ),
    _row(
        "metadata",
        "object",
        openai_chat=[Column("meta", read=_read_map, only=_ZAI), Column("metadata", read=_read_map)],
        openai_responses=Column("metadata", read=_read_map),
        bedrock_converse=Column("requestMetadata", read=_read_map),
        mistral_chat=Column("metadata", read=_read_map),
    ),
    _row("labels", "object", google_genai="labels", google_interactions="labels"),
    _row(
        "prediction",
        "text",
        openai_chat=Column("prediction", read=_read_prediction, write=_write_prediction),
        mistral_chat=Column("prediction", read=_read_prediction, write=_write_prediction),
    ),
    *(
        _row(
            name,
            "text",
            openai_chat=Column(f"image_config.{name}", only=_OPENROUTER),
            google_genai=f"generationConfig.imageConfig.{camel}",
            google_interactions=f"generation_config.image_config.{name}",
        )
        for name, camel in (("aspect_ratio", "aspectRatio"), ("image_size", "imageSize"))
    ),
    _row(
        "speech",
        "object",
        google_genai=Column("generationConfig.speechConfig", read=_read_google_speech, write=_write_google_speech),
        google_interactions=Column(
            "generation_config.speech_config", read=_read_interactions_speech, write=_write_interactions_speech
        ),
    ),
    _row(
        "documents",
        "list",
        cohere_chat=Column("documents", read=_read_documents, write=_write_documents(lambda data: {"data": data})),
        openai_chat=Column(
            "documents",
            read=_read_documents,
            write=_write_documents(lambda data: {"source": {"type": "json", "data": data}}),
            only=_GROQ,
        ),
    ),
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
        openai_chat=[
            Column("response_format", read=_read_fireworks_grammar, write=_write_fireworks_grammar, only=_FIREWORKS),
            *("grammar", "ebnf", Column("structured_outputs.grammar", only=_VLLM), "guided_grammar"),
        ],
    ),
    _row(
        "output_choices",
        "list",
        openai_chat=[
            *(Column("structured_outputs.choice", only=_VLLM), "guided_choice"),
            Column("regex", read=_read_nothing, write=_write_alternatives, only=_SGLANG),
        ],
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
        openai_responses=Column("tool_choice", read=_read_allowed, write=write_responses_allowed),
        google_genai=Column("toolConfig.functionCallingConfig", read=_read_google_allowed, write=_write_google_allowed),
        google_interactions=Column(
            "generation_config.tool_choice", read=_read_interactions_allowed, write=_write_interactions_allowed
        ),
    ),
    STRICT_TOOLS,
    _row(
        "thinking_kept",
        "word",
        openai_chat=[
            Column("clear_thinking", values=(("all", False), ("current", True)), only=_CEREBRAS),
            Column("thinking.clear_thinking", values=(("all", False), ("current", True)), only=_ZAI),
            _words("reasoning_history", "", all="preserved", current="interleaved", none="disabled", only=_FIREWORKS),
            Column("preserve_thinking", values=(("all", True), ("current", False))),
        ],
        openai_responses=_words("reasoning.context", "", all="all_turns", current="current_turn"),
    ),
    _row(
        "thinking_shown",
        "word",
        openai_chat=[
            _words("reasoning_format", "hidden", shown="parsed", only=_GROQ | _CEREBRAS),
            Column("reasoning.exclude", values=(("hidden", True), ("shown", False)), only=_OPENROUTER),
            Column("include_reasoning", values=(("hidden", False), ("shown", True))),
        ],
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
        "image",
        openai_chat=_words("image_url.detail", "auto low high original")._replace(closest={"medium": "high"}),
        openai_responses=_words("detail", "auto low high original")._replace(closest={"medium": "high"}),
        mistral_chat=_words("image_url.detail", "auto low high")._replace(closest=_LARGEST),
        cohere_chat=_words("image_url.detail", "auto low high")._replace(closest=_LARGEST),
        google_genai=_RESOLUTION,
        google_interactions=_words("resolution", "low medium high", original="ultra_high")._replace(
            closest={"auto": None}
        ),
    ),
    _row("refusal", "boolean", "text", openai_chat=_refusal("content"), openai_responses=_refusal("text")),
    _row(
        "file_detail",
        "word",
        "file",
        openai_responses=_words("detail", "auto low high")._replace(closest=_LARGEST),
        google_genai=_RESOLUTION,
    ),
    _row("citable", "object", "file", anthropic_messages="citations", bedrock_converse="citations"),
    *(
        _row(
            name,
            kind,
            "file",
            google_genai=f"videoMetadata.{camel}",
            google_interactions=Column(f"processing.{wire}", beside={"processing.type": "static"}),
        )
        for name, kind, camel, wire in _VIDEO
    ),
    _row("defer_loading", "boolean", "tool", anthropic_messages="defer_loading", openai_responses="defer_loading"),
    _row(
        "allowed_callers",
        "word",
        "tool",
        anthropic_messages=Column("allowed_callers", values=(("direct", ["direct"]),)),
        openai_responses=Column("allowed_callers", values=(("direct", ["direct"]),)),
    ),
    _row("freeform", "boolean", "tool", openai_chat=_freeform("@field"), openai_responses=_freeform("@type")),
    _row(
        "grammar",
        "object",
        "tool",
        openai_chat=Column("custom.format", read=_read_grammar, write=_write_grammar, only=_OPENAI),
        openai_responses=Column("format", only=_OPENAI),
    ),
    _row("result_schema", "object", "tool", google_genai="responseJsonSchema", openai_responses="output_schema"),
)
