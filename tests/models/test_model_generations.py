"""Every id of the packaged catalogue, and other spellings of the same models, belong to the right generation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from segue.models import model_ids
from segue.models.catalogue import packaged_catalogue
from segue.models.model import Model
from segue.protocols.registry import resolve_rules

OPENAI = {
    "O_SERIES": model_ids.OPENAI_O_SERIES,
    "GPT_5_ALONE": model_ids.OPENAI_GPT_5_ALONE,
    "GPT_5_1_TO_4": model_ids.OPENAI_GPT_5_1_TO_4,
    "GPT_5_5_UP": model_ids.OPENAI_GPT_5_5_UP,
    "GPT_6_ON": model_ids.OPENAI_GPT_6_ON,
    "WITHOUT_REASONING": model_ids.OPENAI_WITHOUT_REASONING,
}
"""The generations of OpenAI; a model belongs to one of them at most."""
CLAUDE = {
    "UP_TO_4_5": model_ids.CLAUDE_UP_TO_4_5,
    "4_6": model_ids.CLAUDE_4_6,
    "READS_SYSTEM": model_ids.CLAUDE_READS_SYSTEM,
    "REFUSES_FORCED_CHOICE": model_ids.CLAUDE_REFUSES_FORCED_CHOICE,
    "ALWAYS_THINKS": model_ids.CLAUDE_ALWAYS_THINKS,
    "ONE_SAMPLING_PARAMETER": model_ids.CLAUDE_ONE_SAMPLING_PARAMETER,
}
GEMINI = {
    "1_AND_2": model_ids.GEMINI_1_AND_2,
    "2_0": model_ids.GEMINI_2_0,
    "WITHOUT_OFF": model_ids.GEMINI_ALWAYS_THINKS,
    "3_ON": model_ids.GEMINI_3_ON,
}
PATTERNS = {**OPENAI, **CLAUDE, **GEMINI}

OPENAI_NAMES: dict[str, str] = {
    "O_SERIES": "o1 o1-pro o3 o3-mini o3-pro o4-mini",
    "GPT_5_ALONE": "gpt-5 gpt-5-codex gpt-5-mini gpt-5-nano gpt-5-pro",
    "GPT_5_1_TO_4": """gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini gpt-5.1-thinking gpt-5.2 gpt-5.2-codex
        gpt-5.2-pro gpt-5.3-codex gpt-5.3-codex-spark gpt-5.4 gpt-5.4-mini gpt-5.4-nano gpt-5.4-pro""",
    "GPT_5_5_UP": """gpt-5.5 gpt-5.5-pro gpt-5.6-cyber gpt-5.6-luna gpt-5.6-luna-pro gpt-5.6-sol gpt-5.6-sol-pro
        gpt-5.6-terra gpt-5.6-terra-pro gpt-daybreak-blue-latest gpt-daybreak-red-latest""",
    "GPT_6_ON": """gpt-6-astra gpt-6-astra-pro gpt-6-luna gpt-6-luna-pro gpt-6-sol gpt-6-sol-pro gpt-6.1-sol
        gpt-6.1-sol-pro gpt-6.1-terra gpt-6.1-terra-pro gpt-astra-latest gpt-luna-latest gpt-sol-latest
        gpt-terra-latest""",
    "WITHOUT_REASONING": """gpt-3.5-turbo-0613 gpt-3.5-turbo-16k gpt-4 gpt-4-turbo gpt-4.1 gpt-4.1-mini gpt-4.1-nano
        gpt-4o gpt-4o-2024-05-13 gpt-4o-2024-08-06 gpt-4o-2024-11-20 gpt-4o-mini gpt-4o-mini-2024-07-18
        gpt-5-chat-latest""",
    "": """chat-latest gpt-5.2-chat gpt-audio gpt-audio-mini gpt-chat-latest gpt-mini-latest gpt-oss-120b gpt-oss-20b
        gpt-oss-safeguard-120b gpt-oss-safeguard-20b""",
}
"""Generation -> the models of OpenAI in the catalogue, without prefixes and suffixes of gateways."""

CLAUDE_NAMES: dict[str, str] = {
    "UP_TO_4_5": "claude-sonnet-4",
    "UP_TO_4_5 ONE_SAMPLING_PARAMETER": "claude-haiku-4.5 claude-opus-4.1 claude-opus-4.5 claude-sonnet-4.5",
    "4_6": "claude-opus-4.6 claude-sonnet-4.6",
    "": "claude-opus-4.7 claude-sonnet-5 claude-haiku-latest claude-opus-latest claude-sonnet-latest",
    "READS_SYSTEM": "claude-haiku-5.5 claude-opus-4.8 claude-opus-5",
    "READS_SYSTEM ALWAYS_THINKS": "claude-fable-5 claude-fable-latest",
    "READS_SYSTEM REFUSES_FORCED_CHOICE ALWAYS_THINKS": """claude-fable-5.1 claude-fable-5.2 claude-mythos-5.2
        claude-opus-5.5 claude-sonnet-5.5""",
}
GEMINI_NAMES: dict[str, str] = {
    "1_AND_2": "gemini-2.5-computer-use-preview-10-2025 gemini-2.5-flash gemini-2.5-flash-lite",
    "1_AND_2 WITHOUT_OFF": "gemini-2.5-pro gemini-2.5-pro-preview",
    "3_ON": """gemini-3-flash gemini-3-flash-preview gemini-3.1-flash-lite gemini-3.1-flash-lite-preview
        gemini-3.5-flash gemini-3.6-flash gemini-3.7-flash gemini-3.8-flash gemini-4-argon gemini-4-carbon
        gemini-flash-latest gemini-flash-lite-latest gemini-pro-latest""",
    "WITHOUT_OFF 3_ON": """gemini-3-pro-image gemini-3.1-pro gemini-3.1-pro-preview
        gemini-3.1-pro-preview-customtools gemini-3.5-flash-lite""",
    "": "gemini-nano-banana-2.1 gemini-robotics-er-2-preview",
}

OTHER_SPELLINGS: dict[str, str] = {
    # Azure: models, and names of deployments
    "gpt-35-turbo": "WITHOUT_REASONING",
    "gpt-35-turbo-16k": "WITHOUT_REASONING",
    "gpt-35-turbo-0125": "WITHOUT_REASONING",
    "gpt-35-turbo-instruct": "WITHOUT_REASONING",
    "GPT-35-Turbo": "WITHOUT_REASONING",
    "gpt35": "WITHOUT_REASONING",
    "gpt_35_turbo": "WITHOUT_REASONING",
    "my-gpt-35-turbo": "WITHOUT_REASONING",
    "azure/gpt-35-turbo": "WITHOUT_REASONING",
    "gpt-3.5-turbo-1106": "WITHOUT_REASONING",
    "gpt-4-32k": "WITHOUT_REASONING",
    "gpt-4-0613": "WITHOUT_REASONING",
    "gpt-4-1106-preview": "WITHOUT_REASONING",
    "gpt-4-turbo-2024-04-09": "WITHOUT_REASONING",
    "gpt4": "WITHOUT_REASONING",
    "gpt4o": "WITHOUT_REASONING",
    "gpt-4o-audio-preview": "WITHOUT_REASONING",
    "gpt-41": "WITHOUT_REASONING",
    "gpt-41-mini": "WITHOUT_REASONING",
    "gpt-4-1-nano": "WITHOUT_REASONING",
    "gpt-45-preview": "WITHOUT_REASONING",
    "gpt-5-chat": "WITHOUT_REASONING",
    "gpt-5-2025-08-07": "GPT_5_ALONE",
    "gpt-5-mini-2025-08-07": "GPT_5_ALONE",
    "gpt5": "GPT_5_ALONE",
    "gpt5-mini": "GPT_5_ALONE",
    "gpt_5_mini": "GPT_5_ALONE",
    "prod-gpt-5-nano": "GPT_5_ALONE",
    "gpt-51": "GPT_5_1_TO_4",
    "gpt-5-1": "GPT_5_1_TO_4",
    "gpt-51-codex": "GPT_5_1_TO_4",
    "gpt-5-2-2025-12-11": "GPT_5_1_TO_4",
    "gpt-5.1-2025-11-13": "GPT_5_1_TO_4",
    "databricks-gpt-5-4-mini": "GPT_5_1_TO_4",
    "gpt-55": "GPT_5_5_UP",
    "gpt-5-6-sol": "GPT_5_5_UP",
    "gpt-5.10": "GPT_5_5_UP",
    "gpt-6": "GPT_6_ON",
    "gpt-61-sol": "GPT_6_ON",
    "gpt-6-1-terra": "GPT_6_ON",
    "gpt-6-sol-2027-01-05": "GPT_6_ON",
    "gpt-10": "GPT_6_ON",
    "o1-2024-12-17": "O_SERIES",
    "o1-mini": "O_SERIES",
    "o1-preview": "O_SERIES",
    "o3-deep-research": "O_SERIES",
    "o3-mini-2025-01-31": "O_SERIES",
    "o3mini": "O_SERIES",
    "o4mini": "O_SERIES",
    "openai-o4-mini": "O_SERIES",
    "codex-mini": "O_SERIES",
    "codex-mini-latest": "O_SERIES",
    "model-router": "",
    # fine-tuned models
    "ft:gpt-4o-mini-2024-07-18:acme::a1b2": "WITHOUT_REASONING",
    "ft:gpt-3.5-turbo-0125:acme::a1b2": "WITHOUT_REASONING",
    "ft:o4-mini-2025-04-16:acme::a1b2": "O_SERIES",
    # models of others
    "cerebras/Cerebras-GPT-6.7B": "",
    "gpt-13b": "",
    "gpt-j-6b": "",
    "gpt-neox-20b": "",
    "AIDC-AI/Marco-o1": "",
    "olmo-3": "",
    "grok-4": "",
    "moonshotai/kimi-k2": "",
    # Claude
    "claude-3-5-sonnet-20241022": "UP_TO_4_5",
    "claude-3.7-sonnet": "UP_TO_4_5",
    "claude-2.1": "UP_TO_4_5",
    "anthropic.claude-v2:1": "UP_TO_4_5",
    "claude-sonnet-4@20250514": "UP_TO_4_5",
    "claude-opus-4-0": "UP_TO_4_5",
    "claude-4-sonnet": "UP_TO_4_5",
    "databricks-claude-sonnet-4": "UP_TO_4_5",
    "claude-sonnet-4-5@20250929": "UP_TO_4_5 ONE_SAMPLING_PARAMETER",
    "eu.anthropic.claude-sonnet-4-5-20250929-v1:0": "UP_TO_4_5 ONE_SAMPLING_PARAMETER",
    "claude-4.5-sonnet": "UP_TO_4_5 ONE_SAMPLING_PARAMETER",
    # Gemini
    "models/gemini-2.0-flash": "1_AND_2 2_0",
    "gemini-1.5-pro-002": "1_AND_2",
    "google/gemini-3-pro-preview": "WITHOUT_OFF 3_ON",
}
"""Ids that the catalogue does not have -> their generations."""

_PREFIX = re.compile(r"^.*/|^(?:[a-z-]+\.)?(?:openai|anthropic)\.|^~openai/")
_SUFFIX = re.compile(r"(?::batch|:free|-batch|-fast|-1:0|(?:-\d{8})?(?:-v1(?::0)?)?)$")
_MINOR = re.compile(r"^(claude-[a-z]+-\d)-(\d)(?!\d)")


def bare(model_id: str) -> str:
    """Give the name of a model without the prefix and suffix of a gateway; Claude's versions with a dot."""
    return _MINOR.sub(r"\1.\2", _SUFFIX.sub("", _PREFIX.sub("", model_id.lower())))


def generations(model_id: str) -> str:
    return " ".join(name for name, pattern in PATTERNS.items() if re.search(pattern, model_id, re.IGNORECASE))


def expected() -> dict[str, str]:
    tables = (OPENAI_NAMES, CLAUDE_NAMES, GEMINI_NAMES)
    return {name: generation for table in tables for generation, names in table.items() for name in names.split()}


def known_ids() -> Iterator[tuple[str, str | None]]:
    """Give the ids of the catalogue with their generation: "" for other makers, None if the tables lack a name."""
    table = expected()
    # Entries without a name are older or dated ids of the second source.
    for model_id in sorted({model.id for model in packaged_catalogue().models if model.name}):
        name = bare(model_id)
        is_listed = name.startswith(("gpt-", "o1", "o3", "o4", "chat-latest", "claude-", "gemini-"))
        yield model_id, table.get(name) if is_listed else ""


def test_every_id_of_the_catalogue_belongs_to_its_generation():
    """A new model of OpenAI, Anthropic or Google has to be added to the tables above."""
    assert [model_id for model_id, generation in known_ids() if generation is None] == []
    assert {model_id: generations(model_id) for model_id, _ in known_ids()} == dict(known_ids())


@pytest.mark.parametrize(("model_id", "generation"), OTHER_SPELLINGS.items(), ids=OTHER_SPELLINGS.keys())
def test_another_spelling_belongs_to_the_same_generation(model_id, generation):
    assert generations(model_id) == generation


def test_a_model_of_openai_belongs_to_one_generation_at_most():
    ids = [*OTHER_SPELLINGS, *(model.id for model in packaged_catalogue().models)]
    several = {i: g for i in ids if len(g := [name for name in generations(i).split() if name in OPENAI]) > 1}
    assert several == {}


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("model_id", ["gpt-35-turbo", "gpt-35-turbo-16k", "gpt-41", "gpt4o", "gpt-4-32k"])
def test_a_model_of_azure_without_reasoning_keeps_its_sampling_options(model_id, protocol):
    rules = resolve_rules(Model(model_id, "azure", protocol))
    refused = rules.refused_options | rules.refused_with_thinking | rules.refused_unless_off
    assert refused.isdisjoint({"temperature", "top_p"})
    assert "max_tokens" not in rules.refused_extra


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("model_id", ["gpt5-mini", "gpt-51", "gpt-5-6-sol", "gpt-61-sol", "o4mini", "prod-gpt-5-nano"])
def test_a_deployment_of_azure_with_reasoning_refuses_sampling_options(model_id, protocol):
    rules = resolve_rules(Model(model_id, "azure", protocol))
    refused = rules.refused_options | rules.refused_with_thinking | rules.refused_unless_off
    assert {"temperature", "top_p"} <= refused
