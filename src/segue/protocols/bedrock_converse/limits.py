"""Limits of single values in Converse; `kit.limits` explains the rows (botocore 1.44.0: the service model)."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.limits import Limit, Limits

_MODEL: Final = "service model of bedrock-runtime, botocore 1.44.0"
_NO_SYSTEM: Final = "AWS documentation: supported models and features of Converse"

LIMITS: Final = Limits(
    (
        Limit("requestMetadata", _MODEL, least=1, most=16),
        Limit("requestMetadata.~", _MODEL, least=1, pattern=r"[a-zA-Z0-9\s:_@$#=/+,-.]{1,256}"),
        Limit("requestMetadata.*", _MODEL, pattern=r"[a-zA-Z0-9\s:_@$#=/+,-.]{0,256}"),
        Limit(
            "guardrailConfig.guardrailIdentifier",
            _MODEL,
            pattern=r"(?:[a-z0-9]+|arn:aws(?:-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+)?",
        ),
        Limit("guardrailConfig.guardrailVersion", _MODEL, pattern=r"(?:[1-9][0-9]{0,7}|DRAFT)?"),
        Limit("additionalModelResponseFieldPaths", _MODEL, most=10),
        Limit("additionalModelResponseFieldPaths.*", _MODEL, least=1, most=256),
        *(
            Limit(
                f"messages.*.content.*.{kind}.source.s3Location.uri",
                _MODEL,
                pattern=r"s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](?:/.*)?",
            )
            for kind in ("image", "document", "video", "audio")
        ),
        Limit(
            "system",
            f'"This model doesn\'t support system messages." ({_NO_SYSTEM})',
            refused=True,
            models=r"titan-text|mistral-7b|mixtral-8x7b|jurassic|ai21\.j2|cohere\.command-(?:text|light)",
            advice="move it into the first message",
        ),
        Limit(
            "toolConfig",
            f'"This model doesn\'t support tool use." ({_NO_SYSTEM})',
            refused=True,
            models=r"titan-text|mistral-7b|mixtral-8x7b|jurassic|ai21\.j2|cohere\.command-(?:text|light)|llama3-(?:8|70)b|"
            r"llama3-2-[13]b",
            advice="remove it",
        ),
    )
)
