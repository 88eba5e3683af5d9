"""The answers of `cohere-chat` about models (cohere 7.3.1: GetModelResponse, ListModelsResponse, read 2026-11-15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList


def _one(model: Model) -> Wire:
    features = ["tools", *(["vision"] if "image" in model.input else []), *(["reasoning"] if model.reasoning else [])]
    return {
        "name": model.id,
        "is_deprecated": bool(model.deprecated),
        "endpoints": ["chat"],
        "finetuned": False,
        **({"context_length": model.context_window} if model.context_window else {}),
        "default_endpoints": [],
        "features": features,
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)
