"""Fields of replies that several wires have: where each has them, and how the value is read and written.

A field of a reply that no neutral type holds is kept in `extra` as a patch of the body (`kit.json_patch`), or next to
the usage or the text that it belongs to. A row says that several wires mean the same by such fields.

Facts (read 2026-11-18; openai 3.51.0, anthropic 2.9.0, google-genai 3.3.0, botocore 1.44.3, mistralai 3.7.0, ollama
0.6.3, cohere 7.3.1):
- The tier that a request was served with decides its price: `service_tier` of Chat, Responses and Interactions,
  `usage.service_tier` of Claude (standard, priority, batch) and Mistral, `serviceTier.type` of Bedrock. Claude's
  `usage.speed` is what OpenAI calls the tier `fast`.
- Tokens of audio and images have their own price: details of the usage in Chat, a list by modality at Google. So have
  cache entries that live for an hour, searches, and the tokens of an image tool in Responses.
- Log probabilities are in the answer (Chat, Mistral, Google), in the text (Responses) or in the body (Ollama, Cohere;
  an entry of Cohere may hold several tokens).
- A citation of a document or of a search result has the same parts at Claude and at Bedrock.
- Reasoning that the server left out is listed by OpenAI with the id of its item, by Claude with its path.
- Azure reports its content filters next to a Chat reply: per prompt and per choice.               (recorded, 2026-06)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.models.model import Model
from segue.protocols.kit.json_values import Block, Wire, is_object, list_of, object_of
from segue.protocols.kit.sources import CitedPage

Convert: TypeAlias = Callable[[object], object]


class ReplyPlace(NamedTuple):
    """The place of a field in the replies of one wire: keys joined by dots, `0` is the first of a list.

    `read` gives the neutral value, `write` the value of the wire; None if there is none.
    """

    path: str
    read: Convert = lambda value: value
    write: Convert = lambda value: value


class ReplyField(NamedTuple):
    """A concept that replies of several wires have; the first place that can say a value is written."""

    name: str
    places: Mapping[str, tuple[ReplyPlace, ...]]


def _field(name: str, **places: ReplyPlace | tuple[ReplyPlace, ...]) -> ReplyField:
    """Return a row; the places are named like protocols, with underscores."""
    listed = {key: (one,) if isinstance(one, ReplyPlace) else one for key, one in places.items()}
    return ReplyField(name, {key.replace("_", "-"): one for key, one in listed.items()})


# -- tiers -------------------------------------------------------------------------------------------------------------


def _tier(path: str, default: str = "default") -> ReplyPlace:
    def read(value: object) -> object:
        return ("default" if value == default else value) if isinstance(value, str) else None

    def write(value: object) -> object:
        return default if value == "default" else value

    return ReplyPlace(path, read, write)


def _fast(value: object) -> object:
    return value if value == "fast" else None


# -- tokens by modality ------------------------------------------------------------------------------------------------


def _by_modality(path: str, number: str, *, upper: bool, text: bool = False) -> ReplyPlace:
    """Return the place of a list of tokens by modality; text alone says nothing, except with `text`."""

    def read(value: object) -> object:
        found: Wire = {}
        for one in list_of(value):
            kind, count = object_of(one).get("modality"), object_of(one).get(number)
            if isinstance(kind, str) and isinstance(count, int) and kind.lower() != "modality_unspecified":
                found[kind.lower()] = count
        return found if text or found.keys() - {"text"} else None

    def write(value: object) -> object:
        return [
            {"modality": kind.upper() if upper else kind, number: count} for kind, count in object_of(value).items()
        ]

    return ReplyPlace(path, read, write)


def _named(path: str, kinds: tuple[str, ...]) -> ReplyPlace:
    """Return the place of tokens by modality in an object with a key for each."""

    def read(value: object) -> object:
        held = object_of(value)
        found = {kind: held[f"{kind}_tokens"] for kind in kinds if held.get(f"{kind}_tokens")}
        return found if found.keys() - {"text"} else None

    def write(value: object) -> object:
        given = object_of(value)
        return {f"{kind}_tokens": count for kind, count in given.items()} if given.keys() <= set(kinds) else None

    return ReplyPlace(path, read, write)


# -- log probabilities -------------------------------------------------------------------------------------------------


def _read_tokens(value: object) -> object:
    """Read the form of OpenAI: a list of tokens, each with its alternatives."""
    entries = [object_of(one) for one in list_of(value)]
    is_known = entries and all(isinstance(one.get("token"), str) for one in entries)
    return [{"alternatives": list_of(one.get("top_logprobs")), **_token(one)} for one in entries] if is_known else None


def _token(entry: Block) -> Wire:
    return {key: entry[key] for key in ("token", "logprob", "bytes") if entry.get(key) is not None}


def _write_tokens(value: object) -> object:
    return [
        {**_whole(one), "top_logprobs": [_whole(object_of(other)) for other in list_of(one.get("alternatives"))]}
        for one in map(object_of, list_of(value))
    ]


def _whole(entry: Block) -> Wire:
    """Return a token with the bytes that OpenAI's types require."""
    token = str(entry.get("token"))
    return {"bytes": list(token.encode("utf-8", "replace")), **_token(entry)}


def _read_choice(value: object) -> object:
    return _read_tokens(object_of(value).get("content"))


def _write_choice(value: object) -> object:
    return {"content": _write_tokens(value), "refusal": None}


def _read_google(value: object) -> object:
    chosen, tops = (list_of(object_of(value).get(key)) for key in ("chosenCandidates", "topCandidates"))
    entries: list[object] = []
    for position, one in enumerate(chosen):
        others = list_of(object_of(tops[position]).get("candidates")) if position < len(tops) else []
        entries.append({**_of_google(one), "alternatives": [_of_google(other) for other in others]})
    return entries or None


def _of_google(entry: object) -> Wire:
    held = object_of(entry)
    return {"token": held.get("token"), "logprob": held.get("logProbability")}


def _write_google(value: object) -> object:
    entries = [object_of(one) for one in list_of(value)]
    return {
        "chosenCandidates": [_for_google(one) for one in entries],
        "topCandidates": [
            {"candidates": [_for_google(object_of(other)) for other in list_of(one.get("alternatives"))]}
            for one in entries
        ],
    }


def _for_google(entry: Block) -> Wire:
    return {"token": entry.get("token"), "logProbability": entry.get("logprob")}


def _read_cohere(value: object) -> object:
    entries: list[object] = []
    for one in map(object_of, list_of(value)):
        numbers = list_of(one.get("logprobs"))
        if len(numbers) != 1:
            return None  # the text of a single token is not known
        entries.append({"token": one.get("text"), "logprob": numbers[0], "alternatives": []})
    return entries or None


def _write_cohere(value: object) -> object:
    entries = map(object_of, list_of(value))
    return [{"text": one.get("token"), "token_ids": [], "logprobs": [one.get("logprob")]} for one in entries]


# -- others ------------------------------------------------------------------------------------------------------------


def _own_field(path: str, *plain: object) -> ReplyPlace:
    """Return the place of a field that one wire alone has; `plain` are values without information."""

    def read(value: object) -> object:
        return None if value in plain or value in ([], {}, "") else value

    return ReplyPlace(path, read)


def _read_image_tokens(value: object) -> object:
    return value if object_of(value).get("total_tokens") else None


def _read_searches(value: object) -> object:
    counts = [one.get("count") for one in map(object_of, list_of(value)) if one.get("type") == "google_search"]
    return counts[0] if counts else None


def _write_searches(value: object) -> object:
    return [{"type": "google_search", "count": value}]


def _read_claude_writes(value: object) -> object:
    held = object_of(value)
    found = {ttl: held[key] for ttl, key in _TTLS.items() if held.get(key)}
    return found if found.get("1h") else None


_TTLS: Final = {"1h": "ephemeral_1h_input_tokens", "5m": "ephemeral_5m_input_tokens"}


def _write_claude_writes(value: object) -> object:
    return {key: object_of(value).get(ttl, 0) for ttl, key in _TTLS.items()}


def _read_bedrock_writes(value: object) -> object:
    found = {str(one.get("ttl")): one.get("inputTokens") for one in map(object_of, list_of(value))}
    return found if found.get("1h") else None


def _write_bedrock_writes(value: object) -> object:
    return [{"ttl": ttl, "inputTokens": count} for ttl, count in object_of(value).items() if count]


def _read_chat_moderation(value: object) -> object:
    """Read Chat's lists of results; each has one result, for the whole of the input or of the output."""
    found: Wire = {}
    for side, one in object_of(value).items():
        results = list_of(object_of(one).get("results"))
        if len(results) > 1:
            return None
        found[side] = results[0] if results else one
    return found or None


def _write_chat_moderation(value: object) -> object:
    return {
        side: {"type": "moderation_results", "model": object_of(one).get("model"), "results": [one]}
        if object_of(one).get("type") == "moderation_result"
        else one
        for side, one in object_of(value).items()
    }


def _read_grounding(value: object) -> object:
    """Read what an answer is grounded on other than web pages, which are cited."""
    chunks = [one for one in list_of(object_of(value).get("groundingChunks")) if "web" not in object_of(one)]
    return chunks or None


_REASONS: Final = {"prefix_binding_mismatch": "prefix_mismatch"}
"""Claude's reasons for reasoning that was left out -> OpenAI's, where they differ."""


def _read_withheld(value: object) -> object:
    entries = [object_of(one) for one in list_of(value)]
    return [{"at": one.get("path", one.get("id")), "reason": _reason(one, _REASONS)} for one in entries] or None


def _reason(entry: Block, names: Mapping[str, str]) -> object:
    reason = entry.get("reason")
    return names.get(str(reason), reason)


def _write_claude_withheld(value: object) -> object:
    names = {other: own for own, other in _REASONS.items()}
    entries = map(object_of, list_of(value))
    return [{"type": "thinking_dropped", "path": one.get("at"), "reason": _reason(one, names)} for one in entries]


def _write_openai_withheld(value: object) -> object:
    entries = map(object_of, list_of(value))
    return [
        {"id": one.get("at"), "type": "reasoning", "action": "removed", "reason": one.get("reason")} for one in entries
    ]


REPLY_FIELDS: Final[tuple[ReplyField, ...]] = (
    _field(
        "service_tier",
        openai_chat=_tier("service_tier"),
        openai_responses=_tier("service_tier"),
        anthropic_messages=(ReplyPlace("usage.speed", _fast, _fast), _tier("usage.service_tier", "standard")),
        bedrock_converse=_tier("serviceTier.type"),
        google_interactions=_tier("service_tier", "standard"),
        google_genai=_tier("usageMetadata.serviceTier", "standard"),
        mistral_chat=_tier("usage.service_tier", "standard"),
    ),
    _field("metadata", openai_chat=ReplyPlace("metadata"), openai_responses=ReplyPlace("metadata")),
    _field(
        "moderation",
        openai_chat=ReplyPlace("moderation", _read_chat_moderation, _write_chat_moderation),
        openai_responses=ReplyPlace("moderation"),
    ),
    _field(
        "input_transformations",
        anthropic_messages=ReplyPlace("input_transformations", _read_withheld, _write_claude_withheld),
        openai_responses=ReplyPlace("input_transformations", _read_withheld, _write_openai_withheld),
    ),
    _field(
        "input_modalities",
        openai_chat=_named("usage.prompt_tokens_details", ("text", "audio", "image")),
        google_genai=_by_modality("usageMetadata.promptTokensDetails", "tokenCount", upper=True),
        google_interactions=_by_modality("usage.input_tokens_by_modality", "tokens", upper=False),
    ),
    _field(
        "output_modalities",
        openai_chat=_named("usage.completion_tokens_details", ("text", "audio")),
        google_genai=_by_modality("usageMetadata.candidatesTokensDetails", "tokenCount", upper=True),
        google_interactions=_by_modality("usage.output_tokens_by_modality", "tokens", upper=False),
    ),
    _field(
        "cached_modalities",
        google_genai=_by_modality("usageMetadata.cacheTokensDetails", "tokenCount", upper=True),
        google_interactions=_by_modality("usage.cached_tokens_by_modality", "tokens", upper=False),
    ),
    _field(
        "tool_tokens",
        google_genai=_own_field("usageMetadata.toolUsePromptTokenCount", 0),
        google_interactions=_own_field("usage.total_tool_use_tokens", 0),
    ),
    _field(
        "tool_modalities",
        google_genai=_by_modality("usageMetadata.toolUsePromptTokensDetails", "tokenCount", upper=True, text=True),
        google_interactions=_by_modality("usage.tool_use_tokens_by_modality", "tokens", upper=False, text=True),
    ),
    _field(
        "system_fingerprint",
        openai_chat=ReplyPlace("system_fingerprint"),
        mistral_chat=ReplyPlace("system_fingerprint"),
    ),
    _field(
        "searches",
        openai_responses=ReplyPlace("tool_usage.web_search.num_requests"),
        anthropic_messages=ReplyPlace("usage.server_tool_use.web_search_requests"),
        google_interactions=ReplyPlace("usage.grounding_tool_count", _read_searches, _write_searches),
    ),
    _field(
        "cache_writes",
        anthropic_messages=ReplyPlace("usage.cache_creation", _read_claude_writes, _write_claude_writes),
        bedrock_converse=ReplyPlace("usage.cacheDetails", _read_bedrock_writes, _write_bedrock_writes),
    ),
    _field(
        "logprobs",
        openai_chat=ReplyPlace("choices.0.logprobs", _read_choice, _write_choice),
        mistral_chat=ReplyPlace("choices.0.logprobs", _read_choice, _write_choice),
        openai_responses=ReplyPlace("text.logprobs", _read_tokens, _write_tokens),
        google_genai=ReplyPlace("candidates.0.logprobsResult", _read_google, _write_google),
        ollama_chat=ReplyPlace("logprobs", _read_tokens, _write_tokens),
        cohere_chat=ReplyPlace("logprobs", _read_cohere, _write_cohere),
    ),
    # What one wire alone has: another model's reply over the same protocol has it too, and others are told.
    _field("stop_sequence", anthropic_messages=_own_field("stop_sequence")),
    _field("stop_details", anthropic_messages=_own_field("stop_details")),
    _field("context_management", anthropic_messages=_own_field("context_management", {"applied_edits": []})),
    _field("inference_geo", anthropic_messages=_own_field("usage.inference_geo", "not_available", "global")),
    _field("fetches", anthropic_messages=_own_field("usage.server_tool_use.web_fetch_requests", 0)),
    _field("image_tokens", openai_responses=ReplyPlace("tool_usage.image_gen", _read_image_tokens)),
    _field("cache_diagnostics", openai_responses=_own_field("prompt_cache_diagnostics")),
    _field("guardrail_trace", bedrock_converse=_own_field("trace")),
    _field("performance", bedrock_converse=_own_field("performanceConfig", {"latency": "standard"})),
    _field("safety_ratings", google_genai=_own_field("candidates.0.safetyRatings")),
    _field("prompt_feedback", google_genai=_own_field("promptFeedback")),
    _field(
        "finish_message", google_genai=_own_field("candidates.0.finishMessage", "Model generated function call(s).")
    ),
    _field("grounding", google_genai=ReplyPlace("candidates.0.groundingMetadata", _read_grounding)),
    _field("searched_for", google_genai=_own_field("candidates.0.groundingMetadata.webSearchQueries")),
    _field("average_logprobs", google_genai=_own_field("candidates.0.avgLogprobs")),
    _field("recited_sources", google_genai=_own_field("candidates.0.citationMetadata")),
    _field("fetched_pages", google_genai=_own_field("candidates.0.urlContextMetadata")),
    _field("traffic_type", google_genai=_own_field("usageMetadata.trafficType", "ON_DEMAND")),
    *(
        _field(name, openai_chat=_own_field(path, 0), mistral_chat=_own_field(path, 0))
        for name, path in (
            ("predicted_tokens", "usage.completion_tokens_details.accepted_prediction_tokens"),
            ("mispredicted_tokens", "usage.completion_tokens_details.rejected_prediction_tokens"),
        )
    ),
    _field("content_filters", openai_chat=_own_field("choices.0.content_filter_results")),
    _field("prompt_filters", openai_chat=_own_field("prompt_filter_results")),
)


_WHICH: Final = """id object created created_at completed_at updated createTime model type role status index request_id
    provider system_fingerprint x_groq responseId modelVersion output_text is_byok"""
_TIMES: Final = """metrics time_info queue_time prompt_time completion_time total_time tokens_per_second
    prompt_tokens_per_second time_per_output_token_ms time_to_first_token_ms latency_checkpoint total_duration
    load_duration prompt_eval_duration eval_duration"""
_REPEATED: Final = """top_p temperature truncation reasoning billing store prompt_cache_retention prompt_cache_options
    prompt_cache_key instructions max_output_tokens max_tool_calls previous_response_id background user prompt
    conversation tools tool_choice text parallel_tool_calls top_logprobs safety_identifier frequency_penalty
    presence_penalty access_programs image search_context_size seed input generation_config"""
_READ: Final = """verbatim delta function_call annotations groundingMetadata citations search_results caller closed
    native_finish_reason finish_details total_tokens context_details num_cached_tokens prompt_cache_miss_tokens
    prompt_cache_hit_tokens cached_tokens cacheReadInputTokenCount cacheWriteInputTokenCount reasoning_tokens
    prompt_tokens_details output_tokens_details input_tokens_details completion_tokens_details cost cost_details
    cost_in_usd_ticks"""
HOUSEKEEPING: Final = frozenset(f"{_WHICH} {_TIMES} {_REPEATED} {_READ}".split())
"""Keys of replies that say nothing of the answer: which reply it is, how long it took, the request repeated, and other
forms of what is read. Recorded replies of 8 protocols have them (2025 and 2026). What else a reply has, also what is
new, is shown or reported."""


ANSWERS: Final[Mapping[str, str]] = {"openai-chat": "choices", "mistral-chat": "choices", "google-genai": "candidates"}
"""Protocols whose replies may have several answers -> the key of their list."""
_WINDOW_FULL: Final = "model_context_window_exceeded"
STOP_REASONS: Final[tuple[Mapping[str, str], ...]] = (
    {
        "anthropic-messages": "stop_sequence",
        "bedrock-converse": "stop_sequence",
        "cohere-chat": "STOP_SEQUENCE",
    },
    {"anthropic-messages": _WINDOW_FULL, "bedrock-converse": _WINDOW_FULL, "mistral-chat": "model_length"},
    {"google-genai": "MALFORMED_FUNCTION_CALL", "bedrock-converse": "malformed_tool_use"},
    {"anthropic-messages": "pause_turn"},
    *({"openai-responses": status, "google-interactions": status} for status in ("in_progress", "queued")),
)
"""Reasons why a reply ended that several wires have a word for, and no neutral type."""


@lru_cache(maxsize=64)
def reply_keys(protocol: str) -> AbstractSet[str]:
    """Return the keys of a reply that say nothing of the answer, or that a row reads."""
    rows = (place.path.split(".") for row in REPLY_FIELDS for place in row.places.get(protocol, ()))
    return HOUSEKEEPING.union(*rows).difference(ANSWERS.values())


@lru_cache(maxsize=64)
def places_of(source: str) -> tuple[tuple[str, ReplyPlace, str], ...]:
    """Return the places of a protocol, each with the name of its field and the first key of its path."""
    return tuple((row.name, at, at.path.partition(".")[0]) for row in REPLY_FIELDS for at in row.places.get(source, ()))


# -- texts -------------------------------------------------------------------------------------------------------------

_LOCATIONS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "char_location": ("documentChar", "documentIndex", "start_char_index", "end_char_index"),
    "page_location": ("documentPage", "documentIndex", "start_page_number", "end_page_number"),
    "content_block_location": ("documentChunk", "documentIndex", "start_block_index", "end_block_index"),
    "search_result_location": ("searchResultLocation", "searchResultIndex", "start_block_index", "end_block_index"),
}
"""Claude's kinds of places -> Bedrock's, with Bedrock's key of the index and Claude's keys of start and end."""


def _for_bedrock(citation: Block) -> Wire | None:
    form = _LOCATIONS.get(str(citation.get("type")))
    if form is None:
        return None
    kind, index, start, end = form
    at = {
        index: citation.get("document_index", citation.get("search_result_index")),
        "start": citation.get(start),
        "end": citation.get(end),
    }
    if None in at.values():
        return None
    title = citation.get("document_title", citation.get("title"))
    named = {"title": title, "source": citation.get("source")}
    return {
        **{key: value for key, value in named.items() if isinstance(value, str)},
        "sourceContent": [{"text": citation.get("cited_text", "")}],
        "location": {kind: at},
    }


def _for_claude(citation: Block) -> Wire | None:
    location = object_of(citation.get("location"))
    for type_, (kind, index, start, end) in _LOCATIONS.items():
        at = location.get(kind)
        if not is_object(at):
            continue
        if None in (at.get(index), at.get("start"), at.get("end")):
            return None
        text = "".join(str(object_of(one).get("text", "")) for one in list_of(citation.get("sourceContent")))
        wire: Wire = {"type": type_, "cited_text": text, start: at.get("start"), end: at.get("end")}
        if type_ == "search_result_location":
            named = {"source": citation.get("source", ""), "title": citation.get("title")}
            return {**wire, **named, "search_result_index": at.get(index)}
        return {**wire, "document_index": at.get(index), "document_title": citation.get("title")}
    return None


def _unchanged(citation: Block) -> Wire | None:
    """Return a citation of the same wire; None if it has data that only its provider can make and read."""
    return None if "encrypted_index" in citation else dict(citation)


def _for_interactions(citation: Block) -> Wire | None:
    if citation.get("type") != "file_citation":
        return None
    at = citation.get("index")
    named = {"file_name": citation.get("filename"), "document_uri": citation.get("file_id")}
    return {"type": "file_citation", **named, "start_index": at, "end_index": at}


def _for_responses(citation: Block) -> Wire | None:
    if citation.get("type") != "file_citation":
        return None
    named = {"filename": citation.get("file_name"), "file_id": citation.get("document_uri")}
    return {"type": "file_citation", **named, "index": citation.get("end_index", 0)}


_CLAUDE, _BEDROCK, _RESPONSES, _INTERACTIONS = (
    ("anthropic-messages", "citations"),
    ("bedrock-converse", "citations"),
    ("openai-responses", "annotations"),
    ("google-interactions", "annotations"),
)
_CITATIONS: Final[Mapping[tuple[tuple[str, str], str], Callable[[Block], Wire | None]]] = {
    (_CLAUDE, "bedrock-converse"): _for_bedrock,
    (_BEDROCK, "anthropic-messages"): _for_claude,
    (_RESPONSES, "google-interactions"): _for_interactions,
    (_INTERACTIONS, "openai-responses"): _for_responses,
    **{(each, each[0]): _unchanged for each in (_CLAUDE, _BEDROCK, _RESPONSES, _INTERACTIONS)},
}
"""How a citation of one wire, in a key of its texts, is written on another one; the key there is the same."""


def share_citations(part: Block, source: str, client: str) -> Mapping[str, list[Wire]]:
    """Return the citations of a text as the client's wire has them, by their key; empty if one has no form there."""
    for key in ("citations", "annotations"):
        convert = _CITATIONS.get(((source, key), client))
        given = list_of(part.get(key))
        if convert is not None and given:
            shown = [convert(object_of(one)) for one in given]
            return {} if None in shown else {key: [one for one in shown if one is not None]}
    return {}


_CITING: Final[Mapping[str, str]] = {"anthropic-messages": "", "bedrock-converse": "claude"}
"""Wires whose texts cite documents in the same way -> a part of the ids of the models that do."""


def cited_elsewhere(extra: Extra, model: Model) -> tuple[Extra, Mapping[str, object]]:
    """Return what a text of Claude cites as the target has it, if that is Claude on another wire, and the rest."""
    of_id = _CITING.get(model.protocol)
    if of_id is None or of_id not in model.id:
        return extra, {}
    for source in extra.keys() & _CITING.keys() - {model.protocol}:
        if found := share_citations(extra[source], source, model.protocol):
            rest = {key: value for key, value in extra[source].items() if key not in found}
            others = {key: part for key, part in extra.items() if key != source}
            return ({**others, source: rest} if rest else others), found
    return extra, {}


# -- places of citations -----------------------------------------------------------------------------------------------


def moved(source: CitedPage, offset: int, size: int) -> CitedPage:
    """Return a source for a text that begins at an offset; without a place if that is not in this text."""
    if source.span is None:
        return source
    start, end = (place - offset for place in source.span)
    return replace(source, span=(start, end) if 0 <= start <= end <= size else None)
