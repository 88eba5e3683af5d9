"""Limits of single values in Converse in addition to those of the service model; `kit.limits` explains the rows."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import CLAUDE_3
from segue.protocols.bedrock_converse.rules import CACHED_FIVE_MINUTES
from segue.protocols.kit.limits import Limit, Limits

_NO_SYSTEM: Final = "AWS documentation: supported models and features of Converse"

LIMITS: Final = Limits(
    (
        Limit(
            "system",
            f'"This model doesn\'t support system messages." ({_NO_SYSTEM})',
            refused="move it into the first message",
            models=r"titan-text|mistral-7b|mixtral-8x7b|jurassic|ai21\.j2|cohere\.command-(?:text|light)",
        ),
        Limit(
            "messages",
            '"This action doesn\'t support the model that you provided." (AWS documentation: supported models and'
            " features of Converse)",
            refused="choose a model that writes",
            models=r"embed|rerank|nova-(?:canvas|reel|sonic)|titan-image|^stability\.",
        ),
        Limit(
            "toolConfig",
            '"This model doesn\'t support tool use in streaming mode." (reported 400s of these, 2025 and 2026)',
            excludes=("stream=true",),
            models=r"meta\.llama|mistral-large|ai21\.jamba",
        ),
        Limit(
            "additionalModelRequestFields.top_k",
            '"extraneous key [top_k] is not permitted" (AWS documentation: Nova, `inferenceConfig.topK`)',
            refused="use inferenceConfig.topK inside",
            models=r"amazon\.nova",
        ),
        Limit(
            "additionalModelRequestFields.thinking",
            '"Malformed input request: #: extraneous key [...] is not permitted" (AWS documentation: the fields of'
            " these models; litellm #13959 of another)",
            refused="remove it",
            models=r"amazon\.(?:nova|titan)|meta\.llama",
        ),
        Limit(
            "toolConfig.tools.*.systemTool",
            "AWS documentation: system tools, of Nova 2 and Nova Premier",
            refused="remove it, or choose one of these",
            models=r"^(?!.*amazon\.nova-(?:2|premier))",
        ),
        Limit(
            "performanceConfig.latency",
            "AWS documentation: latency-optimized inference, supported models",
            refused="use standard",
            equals="optimized",
            models=r"^(?!.*(?:claude-3-5-haiku|llama3-1-(?:70|405)b|nova-pro))",
        ),
        Limit(
            "additionalModelRequestFields.anthropic_beta",
            '"The model returned the following errors: invalid beta flag" (Roo-Code #11715, 2026-02-23)',
            refused="remove it",
            models=CLAUDE_3,
        ),
        Limit(
            "toolConfig.tools.*.toolSpec.strict",
            '"This model doesn\'t support the strict ..." (of Nova, Llama and Mistral: a public cookbook, 2026);'
            " Mistral's models from Large 3 on have it (langchain-aws #883; pi-ai 1.5.0 catalogue)",
            refused="remove it",
            equals=True,
            models=r"amazon\.nova|meta\.llama|mistral\.(?:mistral-(?:7b|(?:large|small)-2)|mixtral|pixtral)",
        ),
        *(
            Limit(
                f"{place}.cachePoint.ttl",
                '"Extra inputs are not permitted" (Claude before 4.5), "Extended TTL prompt caching is only supported'
                ' for Anthropic models" (Nova): pi #1570, live, 2026-02-20; openclaw #21986',
                equals="1h",
                refused="remove it, the cache lasts five minutes",
                models=rf"amazon\.nova|{CACHED_FIVE_MINUTES}",
            )
            for place in ("system.*", "toolConfig.tools.*", "messages.*.content.*")
        ),
        Limit(
            "messages.*.content.*.toolResult.status",
            '"This model doesn\'t support the status field. Remove status and try again." (pydantic-ai, its profiles of'
            " Bedrock, verified live)",
            refused="remove it",
            models=r"writer\.palmyra",
        ),
    ),
    read="2026-11-17",
)
