"""Limits of single values in generateContent; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import GEMINI_1_AND_2
from segue.protocols.kit.limits import Limit, Limits, rows_of

_CONFIG: Final = "generationConfig"
_INT32: Final = 2_147_483_647
_GEMINI: Final = ("google", "google-vertex")
_CATEGORIES: Final = tuple(
    f"HARM_CATEGORY_{name}"
    for name in (
        "HARASSMENT",
        "HATE_SPEECH",
        "SEXUALLY_EXPLICIT",
        "DANGEROUS_CONTENT",
        "CIVIC_INTEGRITY",
        "JAILBREAK",
        "UNSPECIFIED",
    )
)

LIMITS: Final = Limits(
    (
        # -- settings
        Limit(f"{_CONFIG}.candidateCount", "Gemini API reference: from 1 to 8", least=1, most=8),
        Limit(f"{_CONFIG}.topK", '"top_k must be positive" (Gemini API)', least=1),
        Limit(
            f"{_CONFIG}.logprobs",
            "google-genai 3.1.0: only with responseLogprobs; Gemini API reference: 0 to 20",
            least=0,
            most=20,
            needs=(".responseLogprobs=true",),
        ),
        Limit(f"{_CONFIG}.maxOutputTokens", "TYPE_INT32 (Gemini API)", most=_INT32),
        Limit(f"{_CONFIG}.frequencyPenalty", "Vertex reference: [-2.0, 2.0)", least=-2, most=2),
        Limit(f"{_CONFIG}.presencePenalty", "Vertex reference: [-2.0, 2.0)", least=-2, most=2),
        Limit(
            f"{_CONFIG}.responseMimeType",
            '"allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and'
            ' `text/x.enum`." (Gemini API)',
            allowed=("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum"),
        ),
        Limit(
            f"{_CONFIG}.responseSchema.properties",
            '"generation_config.response_schema.properties: should be non-empty for OBJECT type" (Gemini API)',
            least=1,
            providers=("google",),
            advice="add one",
        ),
        Limit(
            f"{_CONFIG}.responseJsonSchema",
            "google-genai 3.1.0: responseSchema must be omitted",
            excludes=(".responseSchema",),
        ),
        Limit(
            f"{_CONFIG}.thinkingConfig.includeThoughts",
            '"include_thoughts is only enabled when thinking is enabled" (Vertex; reported 400s, 2025)',
            equals=True,
            excludes=(".thinkingBudget=0",),
        ),
        Limit(
            f"{_CONFIG}.candidateCount",
            '"Multiple candidates is not enabled for this model" (js-genai #1609, 2026-05-18; at Vertex 3.1 Pro took'
            " four: python-genai #1723)",
            most=1,
            models=r"gemini-3",
            providers=("google",),
        ),
        *(
            Limit(
                f"{_CONFIG}.{key}",
                '"Penalty is not enabled for this model", but 0 is taken (google-gemini/cookbook #1290, 2026-07-17;'
                " litellm #16907)",
                allowed=(0,),
                models=r"gemini-3",
                providers=("google",),
                advice="remove it",
            )
            for key in ("presencePenalty", "frequencyPenalty")
        ),
        *rows_of(
            _GEMINI,
            Limit(
                f"{_CONFIG}.responseModalities.*",
                '"Model does not support the requested response modalities: image" (Gemini API)',
                refused="choose an image model",
                equals="IMAGE",
                models=r"^(?!.*(?:image|banana|gemini-2\.0-flash-exp))",
            ),
            Limit(
                f"{_CONFIG}.responseModalities.*",
                "the same for audio (Gemini API; documentation: speech generation)",
                refused="choose a speech model",
                equals="AUDIO",
                models=r"^(?!.*(?:tts|audio|live|omni|lyria))",
            ),
        ),
        Limit(
            f"{_CONFIG}.speechConfig.multiSpeakerVoiceConfig.speakerVoiceConfigs",
            "google-genai 3.1.0: exactly two speakers",
            least=2,
            most=2,
        ),
        Limit(
            f"{_CONFIG}.speechConfig.multiSpeakerVoiceConfig",
            "google-genai 3.1.0: mutually exclusive with voiceConfig",
            excludes=(".voiceConfig",),
        ),
        *rows_of(
            ("google",),
            Limit(
                "contents",
                '"models/gemini-embedding-001 is not supported for generateContent" (Gemini API)',
                refused="choose a model that writes",
                models=r"embedding|^imagen|^veo|^aqa|[-.]live(?:-|$)|-live-|native-audio",
                providers=_GEMINI,
            ),
            # -- tools
            Limit(
                "toolConfig.functionCallingConfig.allowedFunctionNames.*",
                "google-genai 3.1.0: names should match declared functions; Gemini API reference",
                among="tools.*.functionDeclarations.*.name",
                providers=_GEMINI,
            ),
            Limit(
                "tools.*.googleSearchRetrieval",
                '"google_search_retrieval is not supported; please use google_search field instead" (Gemini API)',
                refused="use googleSearch",
                models=r"gemini-(?:2|[3-9])",
            ),
            *(
                Limit(
                    "tools.*.~",
                    "Gemini API documentation: models, the tools that each supports",
                    refused="remove it, or choose another model",
                    equals=tool,
                    models=models,
                    providers=_GEMINI,
                )
                for tool, models in (
                    ("googleSearch", r"gemini-2\.0-flash-lite"),
                    ("codeExecution", r"gemini-2\.0-flash-lite"),
                    ("urlContext", r"gemini-(?:1|2\.0)"),
                    ("computerUse", r"gemini-[12](?!.*computer-use)"),
                )
            ),
            *(
                Limit(
                    "tools.*.~",
                    "Gemini API documentation: file search, cannot be combined with other tools",
                    equals="fileSearch",
                    excludes=(f'tools.*.~="{other}"',),
                    models=GEMINI_1_AND_2,
                )
                for other in ("googleSearch", "urlContext")
            ),
        ),
        Limit(
            "tools.*.functionDeclarations.*.behavior",
            "google-genai 3.1.0: only of BidiGenerateContent",
            refused="remove it",
            equals="NON_BLOCKING",
            providers=_GEMINI,
        ),
        Limit(
            "contents.*.parts.*.functionResponse.parts",
            '"`function_response.parts` is not supported for this model" (gemini-cli #19436, 2026-02-18; Gemini API'
            " documentation: function calling, from Gemini 3 on)",
            refused="put them into a content of the user",
            models=GEMINI_1_AND_2,
            providers=_GEMINI,
        ),
        # -- safety
        Limit(
            "safetySettings",
            '"safety_settings must not contain more than one setting for each category" (Gemini API)',
            unique="category",
            advice="keep one of them",
        ),
        Limit(
            "safetySettings.*.category",
            '"element predicate failed: $.category in (...)" (Gemini API)',
            allowed=_CATEGORIES,
            providers=("google",),
        ),
        Limit(
            "modelArmorConfig", "google-genai 3.1.0: safetySettings must not be supplied", excludes=("safetySettings",)
        ),
        # -- media
        Limit(
            "contents.*.parts.*.inlineData.mimeType",
            '"Unsupported MIME type: application/msword" (Gemini API; documentation: file input, MIME types)',
            pattern=r"(?!application/(?:msword|vnd\.|zip|gzip|x-zip|octet-stream|x-tar|epub)).+",
            providers=_GEMINI,
            advice="convert the file",
        ),
        Limit(
            "contents.*.parts.*.inlineData.data",
            '"mimeType parameter is required" (Vertex; google-genai 3.1.0: Blob)',
            needs=(".mimeType", ".mime_type"),
            providers=_GEMINI,
        ),
    ),
    read="2026-11-17",
)
