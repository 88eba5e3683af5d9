"""The record of the `google-genai` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.foundation.quoting import quote_path
from segue.models.model import Model
from segue.protocols.google_genai.batch_forms import BATCH_FORMS
from segue.protocols.google_genai.check import check
from segue.protocols.google_genai.clues import CLUES
from segue.protocols.google_genai.content import REPLAY, cited_sources
from segue.protocols.google_genai.options import SEARCHES, SERVER_TOOLS
from segue.protocols.google_genai.request import decode_request, encode_request, sdk_arguments
from segue.protocols.google_genai.response import (
    MODEL_LIST,
    REPLY_FORM,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.google_genai.routes import ROUTES
from segue.protocols.google_genai.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.google_genai.rules import PROTOCOL as NAME
from segue.protocols.google_genai.stream import stream_decoder, stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.token_count import TokenCount

_PATH_PREFIXES: Final = ("models/", "tunedModels/", "projects/", "publishers/")
"""Prefixes of model ids that are paths already."""


def _path(endpoint: Endpoint, stream: bool) -> str:
    """Return the path of a request; `{model}` in the dialect's path is replaced by the model id.

    The provider's client refuses `?` and `&` as well; `:` in the last part would begin a method.
    """
    method = ":streamGenerateContent?alt=sse" if stream else ":generateContent"
    model_id, path = quote_path(endpoint.model.id, refused="?&#", refused_last=":"), endpoint.dialect.path
    if path is None:
        return f"/{model_id}{method}" if model_id.startswith(_PATH_PREFIXES) else f"/models/{model_id}{method}"
    for start in ("projects/", "publishers/"):
        if model_id.startswith(start):
            return path[: path.find(start)] + model_id + method if start in path else f"/{model_id}{method}"
    return path.replace("{model}", model_id.removeprefix("models/")) + method


_HELD_CONTENT: Final = HeldContent(
    keys={"cachedContent": "a cached prompt: turns, instructions and tools"},
    history=frozenset({"cachedContent"}),
    per_model=frozenset({"cachedContent"}),
    ids={
        "cachedContent": "a cached prompt",
        "cached_content": "a cached prompt",
        **dict.fromkeys(("fileSearchStoreNames", "file_search_store_names"), "files of a store"),
        **dict.fromkeys(("datastore", "dataStore", "engine"), "a data store"),
        **dict.fromkeys(("ragCorpora", "rag_corpora", "ragCorpus", "rag_corpus"), "a corpus"),
    },
    free=frozenset({"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema"}),
)
"""google-genai 3.1.0: GenerateContentConfig.cached_content; a cache is made for one model (Google documentation).
FileSearch, VertexAISearch and VertexRagStore. The API reads JSON names in both forms (protobuf JSON)."""


def _count_path(endpoint: Endpoint) -> str:
    return _path(endpoint, stream=False).removesuffix(":generateContent") + ":countTokens"


_COUNTED_AT_VERTEX: Final = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})


def _count_body(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:
    """Write the body to count: Vertex takes the parts of a request, the Gemini API a whole request with its model.

    (google-genai 3.1.0: CountTokensConfig; reference of the Gemini API: models.countTokens; read 2026-11-15)
    """
    if endpoint.dialect.path is not None:
        return {key: value for key, value in body.items() if key in _COUNTED_AT_VERTEX}
    model_id = endpoint.model.id
    name = model_id if model_id.startswith(_PATH_PREFIXES) else f"models/{model_id}"
    return {"generateContentRequest": {"model": name, **body}}


def _asks_for_thinking(body: JsonObject) -> bool:
    """Whether a request sets `includeThoughts`, without which no thoughts are returned."""
    config = object_of(body.get("generationConfig") or body.get("generation_config"))
    thinking = object_of(config.get("thinkingConfig") or config.get("thinking_config"))
    return bool(thinking.get("includeThoughts") or thinking.get("include_thoughts"))


PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    clues=CLUES,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    decode_error=decode_error,
    encode_error=encode_error,
    check=check,
    batch_forms=BATCH_FORMS,
    model_list=MODEL_LIST,
    replay=REPLAY,
    reply_form=REPLY_FORM,
    routes=ROUTES,
    sdk_arguments=sdk_arguments,
    server_tools=SERVER_TOOLS,
    searches=SEARCHES,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    cites_in_reply=True,
    operation="generate_content",
    json_mode={"generationConfig": {"responseMimeType": "application/json"}},  # google-genai 3.1.0
    framing="sse",
    path=_path,
    token_count=TokenCount(path=_count_path, body=_count_body, field="totalTokens", inside=("generateContentRequest",)),
    # values that ask for nothing more than one text; recorded requests have the modalities, 2026-11
    default_fields={"generationConfig": {"candidateCount": 1, "responseModalities": ["TEXT"]}},
    not_carried=NOT_IN_A_BODY
    | {
        "tool_name",  # of a result: read from its call
        "pieces",  # of a result: its texts are written before its media
        # of content
        "redacted",  # a redacted thought is a thought with an empty text
        "arguments_text",  # `args` is an object
        "mime_type",  # of a URL: guessed from the file name
        # of tools
        "strict",  # there is a mode for all tools, and no field for a single tool
        # of the prompt
        "stream",  # part of the URL
        "options",  # levels become budgets
    },
    # Clients return the signature of a call; gemini-cli drops all others, and the one of a call when a session is
    # resumed. Ids of calls survive. Google itself signs an empty text at the end of a reply. (run 2026-11)
    state_slots=StateSlots(thinking="plain", call=True, text=True, insert="text", long_ids=True),
    # Vertex AI documentation: tuning, read 2026-11-16
    training_forms=(TrainingForm(keys=frozenset({"systemInstruction", "contents", "tools"})),),
    # The Gemini API and Vertex refuse each other's signatures (recorded errors, 2026-11).
    signatures=SignatureForm(
        holder="part",
        refusal="Corrupted thought signature.",
        valid_in="endpoint",
        asks_for_thinking=_asks_for_thinking,
    ),
    copies_arguments=True,
    example=Model("gemini-3.5-flash", "google", "google-genai", reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Google GenAI (Gemini API and Vertex)",
        link="https://ai.google.dev/api/generate-content",
        summary="`POST /models/{model}:generateContent`. Contents of the roles `user` and `model` hold parts.",
    ),
)
