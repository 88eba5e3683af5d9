"""The answers of `bedrock-converse` about models: foundation models (botocore 1.44.0: bedrock, read 2026-11-15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.models.model import Model
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.model_lists import ModelList

_ARN: Final = "arn:aws:bedrock:us-east-1::foundation-model/"
_MODALITIES: Final = {"text": "TEXT", "image": "IMAGE"}


def _entry(model: Model) -> Wire:
    return {
        "modelArn": model.id if model.id.startswith("arn:") else f"{_ARN}{model.id}",
        "modelId": model.id,
        "modelName": model.name or model.id,
        "providerName": model.provider,
        "inputModalities": [_MODALITIES[kind] for kind in model.input if kind in _MODALITIES],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "customizationsSupported": [],
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "LEGACY" if model.deprecated else "ACTIVE"},
    }


def _one(model: Model) -> Wire:
    return {"modelDetails": _entry(model)}


def _every(models: Sequence[Model]) -> Wire:
    return {"modelSummaries": [_entry(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)
