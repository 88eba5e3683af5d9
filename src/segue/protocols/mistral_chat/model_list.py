"""The answers of `mistral-chat` about models (mistralai 3.7.0: BaseModelCard, ModelCapabilities, read 2026-11-15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList


def _one(model: Model) -> Wire:
    return {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": model.provider,
        "name": model.name or model.id,
        **({"max_context_length": model.context_window} if model.context_window else {}),
        "aliases": [],
        "capabilities": {
            "completion_chat": True,
            "function_calling": True,
            "reasoning": model.reasoning,
            "vision": "image" in model.input,
            "audio": "audio" in model.input,
            "completion_fim": False,
            "fine_tuning": False,
        },
        "type": "base",
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"object": "list", "data": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)
