"""`ModelList`: how a protocol answers a client that asks which models there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import msgspec

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire


@final
class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """Two functions that write answers.

    - `every(models)`: the list of all models.
    - `one(model)`: the answer to a request about one model.
    """

    every: Callable[[Sequence[Model]], Wire]
    one: Callable[[Model], Wire]


def _one_of_openai(model: Model) -> Wire:
    """Write one model; the window is a key that vendors of this protocol add, under the name that OpenRouter has.

    The time of creation is required and unknown here.          (openai 3.49.0: types/model.py; OpenRouter; 2026-11-15)
    """
    entry: Wire = {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}
    if model.name:
        entry["name"] = model.name
    if model.context_window:
        entry["context_length"] = model.context_window
    return entry


OPENAI_MODEL_LIST = ModelList(
    every=lambda models: {"object": "list", "data": [_one_of_openai(model) for model in models]}, one=_one_of_openai
)
"""The format of OpenAI, which its two protocols share."""
