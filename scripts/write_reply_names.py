"""Write the names that replies of each wire can have, or with `--check` list what differs.

The official SDKs describe every reply and every event of a stream. This script reads the types of the installed
packages into `reply_names.json` in the folder of each protocol: the keys of all objects, and the values of all
enumerations, which are types of blocks and events and reasons to stop. `segue.drift` counts what a provider sends
beside them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

from pydantic.alias_generators import to_camel
from write_request_fields import FOLDERS, PROTOCOLS, Reader

NAME: Final = "reply_names.json"

Names = dict[str, list[str]]


def _read(*kinds: object, rename: Callable[[str], str] = str) -> list[object]:
    reader = Reader(rename=rename, opaque=frozenset())
    return [*(reader.read(kind) for kind in kinds), reader.objects]


def _openai_chat() -> list[object]:
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    return _read(ChatCompletion, ChatCompletionChunk)


def _openai_responses() -> list[object]:
    from openai.types.responses import Response, ResponseStreamEvent

    return _read(Response, ResponseStreamEvent)


def _anthropic() -> list[object]:
    from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent

    return _read(BetaMessage, BetaRawMessageStreamEvent)


def _mistral() -> list[object]:
    from mistralai.client.models import ChatCompletionResponse, CompletionChunk

    return _read(ChatCompletionResponse, CompletionChunk)


def _cohere() -> list[object]:
    from cohere.v2.types import V2ChatResponse, V2ChatStreamResponse

    return _read(V2ChatResponse, V2ChatStreamResponse)


def _google() -> list[object]:
    from google.genai.types import GenerateContentResponse

    return _read(GenerateContentResponse, rename=to_camel)


def _google_interactions() -> list[object]:
    from google.genai.interactions import Interaction, InteractionSSEEvent

    return _read(Interaction, InteractionSSEEvent)


def _ollama() -> list[object]:
    from ollama import ChatResponse

    return _read(ChatResponse)


def _bedrock() -> list[object]:
    session: Any = import_module("botocore.session")
    service: Any = session.get_session().get_service_model("bedrock-runtime")
    found: dict[str, dict[str, Any]] = {}

    def walk(shape: Any) -> None:  # noqa: ANN401 - botocore has no types
        if shape.type_name == "list":
            walk(shape.member)
        elif shape.type_name == "structure" and shape.name not in found:
            open_ones = {
                name: "any" if one.is_document_type else None
                for name, one in shape.members.items()
                if one.type_name == "structure"
            }
            found[shape.name] = {"fields": {**dict.fromkeys(shape.members), **open_ones}}
            for member in shape.members.values():
                walk(member)
        elif getattr(shape, "enum", None):
            found[shape.name] = {"enum": list(shape.enum)}

    for name in ("Converse", "ConverseStream"):
        walk(service.operation_model(name).output_shape)
    return [found]


REPLIES: Final[Mapping[str, tuple[str, Callable[[], list[object]]]]] = {
    "openai_chat": ("openai", _openai_chat),
    "openai_responses": ("openai", _openai_responses),
    "anthropic_messages": ("anthropic", _anthropic),
    "google_genai": ("google-genai", _google),
    "google_interactions": ("google-genai", _google_interactions),
    "bedrock_converse": ("botocore", _bedrock),
    "mistral_chat": ("mistralai", _mistral),
    "cohere_chat": ("cohere", _cohere),
    "ollama_chat": ("ollama", _ollama),
}
"""The package that each protocol's replies are read from, and how."""


SEEN: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_chat": (
        *("native_finish_reason", "provider", "reasoning"),  # OpenRouter
        *("usage_breakdown", "x_groq"),  # Groq
        *("prompt", "weight_version"),  # Hugging Face
        "time_info",  # Cerebras
    ),
    "openai_responses": (
        *("billing", "frequency_penalty", "presence_penalty", "tool_calls"),
        "content_filters",  # Azure
        *("context_details", "cost_in_usd_ticks", "num_server_side_tools_used", "num_sources_used"),  # xAI
        *("server_side_tool_usage_details", "status_details", "system_fingerprint"),
    ),
    "ollama_chat": ("index",),  # of a call (ollama server source @fb30760)
    "mistral_chat": ("num_cached_tokens", "prompt_tokens_details"),
}
"""Fields that providers send and no type of the SDK has. (recorded replies, 2025 and 2026; read 2026-11-17)"""


def names_of(described: Iterable[object]) -> Names:
    """Collect the names of objects in the format of `write_request_fields`.

    `fields` are keys, `open` those of them whose value may have any keys, and `values` those of enumerations.
    """
    fields: set[str] = set()
    values: set[str] = set()
    free: set[str] = set()
    waiting = list(described)
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += cast("list[object]", one)
        elif isinstance(one, dict):
            for key, value in cast("dict[str, object]", one).items():
                if key == "enum":
                    values |= {text for text in cast("list[object]", value) if isinstance(text, str)}
                elif key == "fields":
                    described = cast("dict[str, object]", value)
                    fields |= described.keys()
                    free |= {name for name, field in described.items() if _is_open(field)}
                    waiting += described.values()
                elif key != "required":
                    waiting.append(value)
    return {"fields": sorted(fields), "open": sorted(free), "values": sorted(values)}


def _is_open(field: object) -> bool:
    if isinstance(field, list):
        return any(map(_is_open, cast("list[object]", field)))
    if not isinstance(field, dict):
        return field in ("any", "object")
    inner = cast("dict[str, object]", field)
    return "map" in inner or _is_open(inner.get("union")) or _is_open(inner.get("list"))


def read_names(folder: str) -> dict[str, object]:
    """Read the names of one protocol: of its replies, and of its requests, in which replies are sent back."""
    package, read = REPLIES[folder]
    requests: object = FOLDERS[folder]()["objects"] if folder in FOLDERS else {}
    names = names_of([*read(), requests])
    names["fields"] = sorted({*names["fields"], *SEEN.get(folder, ())})
    names["open"] = sorted({*names["open"], *SEEN.get(folder, ())})
    reasons = getattr(import_module(f"segue.protocols.{folder}.response"), "STOP_REASONS", {})
    names["values"] = sorted({*names["values"], *reasons})
    return {"source": f"{package} {version(package)}", **names}


def main() -> int:
    """Write every file, or with `--check` list those that differ."""
    differ: list[Path] = []
    for folder in REPLIES:
        path = PROTOCOLS / folder / NAME
        text = json.dumps(read_names(folder), indent=0, sort_keys=True) + "\n"
        if not path.exists() or path.read_text("utf-8") != text:
            differ.append(path)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if "--check" in sys.argv and differ:
        print("out of date; run scripts/write_reply_names.py:", *differ, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
