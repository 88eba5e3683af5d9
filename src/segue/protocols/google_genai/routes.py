"""The endpoints of `google-genai`: the path names the model and decides about streaming, `alt` about the framing.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_CLIENTS: Final = {"x-goog-api-key": "", "x-goog-api-client": "", "?key": ""}
"""What Google's clients send; OpenAI's list of models has the path `/v1/models`, too (google-genai 3.1.0)."""
_SSE: Final = {"?alt": "sse"}
_ARRAY: Final = "json-array"
_TUNED: Final = "tunedModels/{}"

ROUTES: Final = (
    Route(path="/models/{model}:generateContent", kind="generate", stream=False),
    Route(path="/models/{model}:streamGenerateContent", kind="generate", stream=True, evidence=_SSE),
    Route(path="/models/{model}:streamGenerateContent", kind="generate", stream=True, framing=_ARRAY),
    Route(path="/models/{model}:countTokens", kind="count"),
    Route(path="/tunedModels/{model}:generateContent", kind="generate", stream=False, model_id=_TUNED),
    Route(
        path="/tunedModels/{model}:streamGenerateContent", kind="generate", stream=True, evidence=_SSE, model_id=_TUNED
    ),
    Route(
        path="/tunedModels/{model}:streamGenerateContent", kind="generate", stream=True, framing=_ARRAY, model_id=_TUNED
    ),
    Route(path="/tunedModels/{model}:countTokens", kind="count", model_id=_TUNED),
    Route(path="/v1beta/models", kind="models", method="GET"),
    Route(path="/v1beta/models/{model}", kind="models", method="GET"),
    Route(path="/models", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/models/{model}", kind="models", method="GET", evidence=_CLIENTS),
)
