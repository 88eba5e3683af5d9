"""What the google-genai protocol supports and refuses, at the Gemini API and at Vertex.

Facts:
- Objects and names.                                                      (google-genai 3.1.0, read 2026-11-15)
- Refused: contents of one role side by side, a call that does not follow a user's turn or a result, a first turn of
  the model.                                                  (pi #2251, gemini-cli #11814 and #26956, lobehub #10049)
- Results and the user's text after them are in two contents of the user; both in one content may be refused.
                                                                         (recorded traffic, 2026-11; bifrost #1391)
- A result may be an empty object; an error is under `error`; ids are accepted, also long ones and at Vertex.
                                                                                          (recorded traffic, 2026-11)
- From Gemini 3 on the first call of every step needs its signature, and results may hold images and PDF.
                                          (Google documentation: thought signatures; recorded traffic, 2026-11: a PDF)
- From 3.6 Flash and 3.5 Flash-Lite on a request may not end with the model's turn, and sampling options do nothing.
                    (Google documentation: latest models; LibreChat-AI/agents #323, live, 2026-07-21; pipecat #5821)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import (
    GEMINI_1_AND_2,
    GEMINI_3_ON,
    GEMINI_MINIMAL,
    GEMINI_TAKES_EMPTY,
    GEMINI_WITHOUT_PREFILL,
)
from segue.models.rule import Rule
from segue.models.rules import Rules

PROTOCOL: Final = "google-genai"
PROVIDER: Final = "google"

READ: Final = "2026-11-15"

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
    user_media=("image/*", "audio/*", "video/*", "application/pdf", "text/*"),
    result_media=(),
    image_sources=frozenset({"data", "url", "file_id"}),
    file_id_pattern=r"(?:https://generativelanguage\.googleapis\.com/\S*)?files/\S+|gs://\S+",
    max_images=3600,
    # -- turns
    alternate=True,
    first_user=True,
    system_messages="none",
    text_signatures=True,
    refused_text="empty",
    # -- reasoning
    reasoning_replay="open",
    # -- settings
    refused_options=frozenset({"parallel_tool_calls", "cache_retention", "session_id", "user_id"}),
    schema_with_forced_choice=False,
    extra_like=(("generationConfig.responseMimeType", "output_schema"),),
    # -- what is refused
    rows={
        "unknown_required": Rule(
            '"required[0]: property is not defined" (AIStudioToAPI #154, 2026-05-05; reported)', READ
        ),
        "schema_faults": Rule(
            '"parameters.properties[x].items: missing field" (Gemini API)', READ, values=frozenset({"items"})
        ),
        "schema_formats": Rule(
            "\"only 'enum' and 'date-time' are supported for STRING type\" (collmbo #195, 2025-06-09; aiproxy #312)",
            READ,
            values=frozenset({"enum", "date-time"}),
        ),
        "other_enums": Rule(
            '"enum: only allowed for STRING type" (directus #27100, 2026-04-12; opencode #28412)', READ
        ),
        "mistyped_keywords": Rule('"properties: only allowed for OBJECT type" (opencode #11889, 2026-02-03)', READ),
        "any_output_root": Rule("google-genai 3.1.0: `response_schema` may be a list or an enum", READ),
        "request_media": Rule("Google's announcement of 2026-01-12: inline data up to 100 MB", READ, most=100_000_000),
        "temperature": Rule("google-genai 3.1.0", READ, most=2.0),
        "stop": Rule("google-genai 3.1.0", READ, most=5),
        "seed": Rule(
            "\"Invalid value at 'generation_config.seed' (TYPE_INT32)\" (Gemini API)",
            READ,
            least=-(2**31),
            most=2**31 - 1,
        ),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "tool_name_first": "google-genai 3.1.0",
    "tool_name_alphabet": "google-genai 3.1.0",
    "tool_name_max": "google-genai 3.1.0",
    "max_tools": "google-genai 3.1.0",
    "choice_of_functions": '"Function calling config is set without function_declarations." (kelivo #317, 2026-02)',
    "schema_root_object": '"parameters schema should be of type OBJECT" (Gemini API)',
    "schema_needed": 'google-genai 3.1.0: "For function with no parameters, this can be left unset."',
    "user_media": "Google documentation: file input methods",
    "result_media": "Google documentation: function calling, media in results from Gemini 3 on",
    "image_sources": "google-genai 3.1.0: fileData of any type",
    "file_id_pattern": "Google documentation: Files API, and objects of Cloud Storage that were registered with it",
    "max_images": "pi-ai 1.5.0 catalogue",
    "alternate": "pi #2251: 400 for two of one role; gemini-cli #11814 for the model's",
    "first_user": '"function call turn comes immediately after a user turn"; hermes-agent #41985',
    "system_messages": "google-genai 3.1.0: the roles are user and model",
    "text_signatures": "google-genai 3.1.0: any part may have a thought signature",
    "refused_text": '"it has an empty text parameter" (Portkey gateway #462, chatbox #1846)',
    "reasoning_replay": "google-genai 3.1.0: the signature of a thought part is not required",
    "refused_options": "google-genai 3.1.0: no such fields",
    "schema_with_forced_choice": '"Forced function calling (ANY mode) with ... is unsupported" (vercel/ai @43318a3)',
    "extra_like": '"Forced function calling (ANY mode) with ... is unsupported": JSON without a schema as well'
    " (Gemini API)",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    max_tokens_field="max_output_tokens",
    thinking_format="budget",
    auth="x-goog-api-key",
)

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=GEMINI_3_ON,
        rules={
            "call_signature": "required",
            # the levels that all of them have; none can turn thinking off
            "thinking_levels": frozenset({"low", "medium", "high"}),
            "result_media": ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"),
        },
        dialect={"thinking_format": "level"},
        source="'missing a thought_signature' (litellm #16893); Google documentation: multimodal function responses",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_TAKES_EMPTY,
        rules={"refused_text": "none"},
        providers=("google",),
        source="recorded 200s: empty texts alone, beside calls and media, and as the system instruction",
        read="2026-11-18",
    ),
    Family(
        pattern=GEMINI_1_AND_2,
        rules={"refused_fields": ["FunctionCall.id", "FunctionResponse.id"]},
        dialect={"call_ids": False},
        providers=("google-vertex",),
        source="'Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field.' (pydantic-ai #5081,"
        " 2026-04-14; fantasy #265, 2026-06-02); Gemini 3 takes ids there (recorded 200s; litellm #34603)",
        read="2026-11-19",
    ),
    Family(
        pattern=GEMINI_WITHOUT_PREFILL,
        rules={"mixed_results": Rule()},
        providers=("google-vertex",),
        source="live, of gemini-3.7-flash; the Gemini API accepts it (agenthub #189, 2026-08-25; ai-gateway #2686)",
        read="2026-11-17",
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
        source="Google documentation: thinking, levels by model; catalogue of pi-ai 1.5.0 (3.7 and 3.8 Flash lack it)",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_1_AND_2,
        rules={"schema_with_tools": False},
        source="'Function calling with a response mime type: application/json is unsupported' (symfony/ai #1777, #803)",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_1_AND_2,
        rules={"server_tools_with_functions": "refused"},
        source="'Tool use with function calling is unsupported' (go-genai #323, 2025-05-25; celeste-python #197)",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_3_ON,
        rules={"server_tools_with_functions": "flag"},
        providers=("google",),
        source="'Please enable tool_config.include_server_side_tool_invocations' (genkit #4970, sub2api #5725)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemma-",
        rules={"server_tools": None},
        source="no source tells which of Google's tools Gemma has",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemini-2\.5",
        rules={"refused_extra": ["generationConfig.presencePenalty", "generationConfig.frequencyPenalty"]},
        providers=("google",),  # at Vertex, 2.5 Pro accepted both (recorded 200)
        source="'Penalty is not enabled for models/gemini-2.5-pro', of Flash and Flash-Lite alike (vercel/ai #8943)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemini-(?:2\.5-pro|3)",
        rules={"refused_extra": ["generationConfig.responseLogprobs", "generationConfig.logprobs"]},
        providers=("google",),
        source="'Logprobs is not enabled for models/gemini-2.5-pro' (mscraftsman/generative-ai #135, 2025-11-21), and"
        " for every Gemini 3 that was tried (public probes, 2026-09-05)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemini-3\.[5-9]",
        rules={"refused_extra": ["generationConfig.responseLogprobs", "generationConfig.logprobs"]},
        providers=("google-vertex",),
        source="'Logprobs is not supported for this model.' of gemini-3.5-flash (generative-ai #2947, 2026-06-22)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"gemini-2\.5-pro",
        rules={
            "thinking_levels": frozenset({"minimal", "low", "medium", "high"}),
            "min_thinking_budget": 128,
            "max_thinking_budget": 32_768,
        },
        dialect={"thinking_budgets": {"minimal": 128, "high": 32_768}},
        source="Google documentation: thinking, budgets by model; cline #7735 (it cannot turn thinking off)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemini-2\.5-flash",
        rules={"min_thinking_budget": 1, "max_thinking_budget": 24_576},
        dialect={"thinking_budgets": {"minimal": 128, "high": 24_576}},
        source="Google documentation: thinking, budgets by model; Roo-Code #4399 ('... budget is invalid')",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemini-2\.5-flash-lite",
        rules={"min_thinking_budget": 512},
        dialect={"thinking_budgets": {"minimal": 512, "high": 24_576}},
        source="Google documentation: thinking, budgets by model",
        read="2026-11-15",
    ),
    Family(
        pattern=r"gemini-(?:1\.|2\.0(?!\S*thinking))|gemma-[123]",
        rules={"refused_extra": ["generationConfig.thinkingConfig"]},
        dialect={"thinking_format": "none"},  # they never think, so `off` needs no field
        providers=("google", "google-vertex"),
        source="'Thinking is not enabled for models/gemini-2.0-flash' (Gemini API; documentation: thinking, models)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemma-[123]|gemini-2\.[05]-flash\S*-image|-tts|robotics-er-1\.0",
        rules={"tools": False},
        providers=("google",),
        source="'Function calling is not enabled for models/gemma-3-27b-it' (Gemini API)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemma-[123]|gemini-2\.[05]-flash\S*-image|-tts",
        rules={
            "refused_options": ["output_schema"],
            "refused_extra": ["generationConfig.responseMimeType=application/json"],
        },
        providers=("google",),
        source="'JSON mode is not enabled for models/gemma-3-27b-it' (Gemini API)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"-tts",
        rules={"needed_fields": Rule(values=frozenset({"generationConfig.responseModalities=AUDIO"}))},
        providers=("google", "google-vertex"),
        source="'accepts the following combination of response modalities: * AUDIO' (Gemini API, of speech models)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemma-[123]|-tts",
        rules={"system_prompt": False},
        providers=("google",),
        source="'Developer instruction is not enabled for models/gemma-3-27b-it' (Gemini API)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemma-4",
        rules={"thinking_levels": frozenset({"minimal", "high"})},
        dialect={"thinking_format": "level"},
        source="pi-ai 1.5.0",
        read="2026-11-15",
    ),
)
