"""The answers of `google-genai` about models (google-genai 3.1.0: models.py, `_Model_from_mldev`, read 2026-11-15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList

_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def _one(model: Model) -> Wire:
    window = model.max_input or model.context_window
    return {
        "name": model.id if "/" in model.id else f"models/{model.id}",
        "version": "001",
        "displayName": model.name or model.id,
        **({"inputTokenLimit": window} if window else {}),
        **({"outputTokenLimit": model.max_tokens} if model.max_tokens else {}),
        "supportedGenerationMethods": list(_METHODS),
        "thinking": model.reasoning,
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)
