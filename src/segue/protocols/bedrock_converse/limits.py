"""Limits of single values in Converse beside those of the service model; `kit.limits` explains the rows."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.limits import Limit, Limits

_NO_SYSTEM: Final = "AWS documentation: supported models and features of Converse"

LIMITS: Final = Limits(
    (
        Limit(
            "system",
            f'"This model doesn\'t support system messages." ({_NO_SYSTEM})',
            refused=True,
            models=r"titan-text|mistral-7b|mixtral-8x7b|jurassic|ai21\.j2|cohere\.command-(?:text|light)",
            advice="move it into the first message",
        ),
    )
)
