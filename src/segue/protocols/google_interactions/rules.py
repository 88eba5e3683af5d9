"""What Google's Interactions API supports and refuses.

Facts:
- Objects and names.                                                      (google-genai 3.1.0, read 2026-11-17)
- A call without a thought before it in its turn is refused, and a turn that has a thought has to begin with it. For
  calls of other models one thought with the documented placeholder, at the head of the turn, is accepted.
                                                      (live calls of a public adapter, stateless, `v1`, read 2026-11-16)
- All thoughts have to be returned unchanged where the server does not keep the conversation.
                                                                  (article of 2026-11-05 on Google's documentation)
- `uri` of an image is for the Files API and not for the web; a result without `name` is refused.    (the same adapter)
- What belongs to the models (levels of thinking, prefill, sampling) is as at generateContent: the same models answer.

Whether a signature of this API is accepted by generateContent, or the reverse, is not known: they are kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import GEMINI_1_AND_2, GEMINI_3_ON, GEMINI_MINIMAL, GEMINI_WITHOUT_PREFILL
from segue.models.rule import Rule
from segue.models.rules import Rules

PROTOCOL: Final = "google-interactions"
PROVIDER: Final = "google"

_OPEN_XML: Final = "application/vnd.openxmlformats-officedocument."

READ: Final = "2026-11-16"

RULES: Final = Rules(
    # -- tools
    tool_name_first="a-zA-Z_",
    tool_name_alphabet="a-zA-Z0-9_.:-",
    tool_name_max=128,
    max_tools=512,
    choice_of_functions=True,
    schema_root_object=True,
    schema_needed=False,
    # -- media
    user_media=(
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
        "image/gif",
        "image/bmp",
        "image/tiff",
        "audio/*",
        "video/*",
        "application/pdf",
        "text/csv",
        f"{_OPEN_XML}wordprocessingml.document",
        f"{_OPEN_XML}presentationml.presentation",
        f"{_OPEN_XML}spreadsheetml.sheet",
        "application/msword",
        "application/vnd.ms-powerpoint",
        "application/vnd.ms-excel",
    ),
    result_media=(),
    image_sources=frozenset({"data", "file_id"}),
    file_sources=frozenset({"data", "file_id"}),
    file_id_pattern=r"(?:https://generativelanguage\.googleapis\.com/\S*)?files/\S+|gs://\S+",
    max_images=3600,
    # -- turns
    first_user=True,
    system_messages="none",
    refused_text="empty",
    # -- reasoning
    reasoning_replay="open",
    thinking_levels=frozenset({"minimal", "low", "medium", "high"}),
    # -- settings
    refused_options=frozenset({"parallel_tool_calls", "cache_retention", "session_id", "user_id"}),
    schema_with_forced_choice=False,
    extra_like=(("response_mime_type", "output_schema"),),
    # -- what is refused
    rows={
        "request_media": Rule("Google's announcement of 2026-01-12: inline data up to 100 MB", READ, most=100_000_000),
        "temperature": Rule("google-genai 3.1.0: as at generateContent", READ, most=2.0),
        "stop": Rule("google-genai 3.1.0: as at generateContent", READ, most=5),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "tool_name_first": "as at generateContent (google-genai 3.1.0: FunctionDeclaration)",
    "tool_name_alphabet": "as at generateContent (google-genai 3.1.0: FunctionDeclaration)",
    "tool_name_max": "as at generateContent (google-genai 3.1.0: FunctionDeclaration)",
    "max_tools": "as at generateContent (google-genai 3.1.0: FunctionDeclaration)",
    "choice_of_functions": '"Function calling config is set without function_declarations." (kelivo #317, 2026-02)',
    "schema_root_object": '"parameters schema should be of type OBJECT" at generateContent',
    "schema_needed": "google-genai 3.1.0: FunctionParam.parameters is not required",
    "user_media": "google-genai 3.1.0: the MIME types of ImageContent, AudioContent, VideoContent, DocumentContent",
    "result_media": "Google documentation: function calling, media in results from Gemini 3 on",
    "image_sources": "`uri` is not for the web (live calls of a public adapter)",
    "file_sources": "`uri` is not for the web (live calls of a public adapter)",
    "file_id_pattern": "Google documentation: Files API",
    "max_images": "pi-ai 1.5.0 catalogue",
    "first_user": '"function call turn comes immediately after a user turn" at generateContent; hermes-agent #41985',
    "system_messages": "google-genai 3.1.0: no step holds instructions",
    "refused_text": '"it has an empty text parameter" at generateContent (Portkey gateway #462)',
    "reasoning_replay": "google-genai 3.1.0: ThoughtStep.signature is not required",
    "thinking_levels": "google-genai 3.1.0: ThinkingLevel",
    "refused_options": "google-genai 3.1.0: no such fields",
    "schema_with_forced_choice": '"Forced function calling (ANY mode) with ... is unsupported" (vercel/ai @43318a3)',
    "extra_like": '"Forced function calling (ANY mode) with ... is unsupported": JSON without a schema as well'
    " (Gemini API)",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    max_tokens_field="max_output_tokens",
    thinking_format="level",
    auth="x-goog-api-key",
    store=True,
)

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=GEMINI_3_ON,
        rules={
            "call_signature": "thought",
            "reasoning_replay": "signed",
            "thinking_levels": frozenset({"low", "medium", "high"}),
            "result_media": ("image/png", "image/jpeg", "image/webp", "application/pdf"),
        },
        source="live calls of a public adapter (ApostropheCMS); `missing_thought_signature`; multimodal results as at"
        " generateContent",
        read="2026-11-16",
    ),
    Family(
        pattern=GEMINI_WITHOUT_PREFILL,
        rules={"last_assistant": False},
        source="'Requests ending with a model turn are not supported' (LibreChat agents #323, langchain-google #1897)",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_WITHOUT_PREFILL,
        rules={"refused_options": ["temperature", "top_p"]},
        source="sampling options are accepted and have no effect (pipecat #5821)",
        read="2026-11-15",
        grade="ignored",
    ),
    Family(
        pattern=GEMINI_MINIMAL,
        rules={"thinking_levels": frozenset({"minimal", "low", "medium", "high"})},
        source="Google documentation: thinking, levels by model; 3.8 Flash refuses `minimal` (public adapter)",
        read="2026-11-16",
    ),
    Family(
        pattern=GEMINI_1_AND_2,
        rules={"schema_with_tools": False, "server_tools_with_functions": "refused"},
        source="as at generateContent: symfony/ai #1777, #803; go-genai #323",
        read="2026-11-15",
    ),
)
