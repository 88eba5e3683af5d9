"""The answers of `ollama-chat` about models: `/api/tags` lists them, `/api/show` describes one.

Clients read the abilities from `capabilities`, and the window from `model_info` under the name of the architecture.
                                            (ollama 0.6.3; microsoft/vscode-copilot-chat: ollamaProvider.ts, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList

_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"
_ARCHITECTURE: Final = "segue"


def _details() -> Wire:
    return {
        "parent_model": "",
        "format": "",
        "family": _ARCHITECTURE,
        "families": [_ARCHITECTURE],
        "parameter_size": "",
        "quantization_level": "",
    }


def _one(model: Model) -> Wire:
    abilities = ["completion", "tools"]
    abilities += ["vision"] if "image" in model.input else []
    abilities += ["thinking"] if model.reasoning else []
    about: Wire = {"general.architecture": _ARCHITECTURE, "general.basename": model.name or model.id}
    if model.context_window:
        about[f"{_ARCHITECTURE}.context_length"] = model.context_window
    return {
        "modified_at": _UNKNOWN_DATE,
        "template": "",
        "parameters": "",
        "details": _details(),
        "model_info": about,
        "capabilities": abilities,
    }


def _entry(model: Model) -> Wire:
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": _UNKNOWN_DATE,
        "size": 0,
        "digest": sha256(model.id.encode()).hexdigest(),
        "details": _details(),
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_entry(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)
