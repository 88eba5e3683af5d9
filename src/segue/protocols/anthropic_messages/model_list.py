"""The answers of `anthropic-messages` about models.

A model without a known date of release has the epoch; `display_name` and `lifecycle` are required.
                                                                 (anthropic 2.8.0: types/model_info.py, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList

_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"


def _one(model: Model) -> Wire:
    window = model.max_input or model.context_window
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.name or model.id,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "deprecated" if model.deprecated else "active",
        **({"max_input_tokens": window} if window else {}),
        **({"max_tokens": model.max_tokens} if model.max_tokens else {}),
    }


def _every(models: Sequence[Model]) -> Wire:
    ids = [model.id for model in models]
    return {
        "data": [_one(model) for model in models],
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


MODEL_LIST: Final = ModelList(every=_every, one=_one)
