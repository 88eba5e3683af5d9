"""Write the fields of request bodies, which `check` compares bodies with, or with `--check` list what differs.

The official SDKs describe what each wire takes: the keys of every object, their types, the values of enumerations, what
is required. This script reads the types of the installed packages into `request_fields.json` in the folder of each
protocol. Nothing else knows them, so a new version of an SDK is one run of this script.

The format of a field is the smallest that `protocols.kit.request_fields` needs: "string", "number", "integer",
"boolean", "object" (any object) or "any"; "#Name" for an object of the file; {"enum": [...]}, {"list": field},
{"map": field} (an object with any keys, whose form "keys" may have) and {"union": [fields]}. Limits stand beside them:
{"is": "string", "min": 1, "max": 64, "pattern": "..."}. An object may have only one of its keys in "one", and if these
are all of its keys, it has one. "absent" are the keys that a provider does not have.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import typing_extensions
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

PROTOCOLS: Final = Path(__file__).parent.parent / "src" / "segue" / "protocols"
NAME: Final = "request_fields.json"

Field = str | dict[str, Any]

_SCALARS: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_MARKERS: Final = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired)
_NOT_ENFORCED: Final = frozenset({"status", "detail", "annotations", "id", "logprobs"})
"""Keys that the types require and no API does (recorded 200s without them, 2025 and 2026)."""
_OPEN: Final = frozenset({"InputSchema"})
"""Objects that hold JSON schema, of which the types name only some keys."""
_PLATFORMS: Final[Mapping[str, str]] = {
    "not supported in Gemini API": "google",
    "not supported in Vertex AI": "google-vertex",
    "not supported in Gemini Enterprise Agent Platform": "google-vertex",
}
"""What the descriptions of fields say -> the provider that does not have them."""
_LISTS: Final = (list, collections.abc.Iterable, collections.abc.Sequence, set, frozenset)


class Reader:
    """Reads Python types into fields; `objects` are the objects that they name."""

    def __init__(self, *, rename: Callable[[str], str] = str, opaque: frozenset[str] = _OPEN) -> None:
        self.rename = rename
        self.opaque = opaque
        self.objects: dict[str, dict[str, Any]] = {}
        self._names: dict[object, str] = {}

    def read(self, kind: Any) -> Field:  # noqa: ANN401, PLR0911 - types are values here, each with its own line
        """Read one type."""
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if kind in _SCALARS:
            return _SCALARS[kind]
        if isinstance(kind, typing_extensions.TypeAliasType):
            return self.read(kind.__value__)
        if isinstance(origin, typing_extensions.TypeAliasType):
            return self.read(origin.__value__[inner])
        if origin in _MARKERS or origin is typing.Annotated:
            return self.read(inner[0])
        if origin is typing.Literal:
            return {"enum": [value for value in inner if value is not None]}
        if origin in (typing.Union, types.UnionType):
            if typing.Any in inner and any(typing.get_origin(one) is typing.Literal for one in inner):
                inner = tuple(one for one in inner if one is not typing.Any)  # an enumeration that may grow
            return _union([self.read(member) for member in inner])
        if origin in _LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
            return {"list": self.read(inner[0])}
        if typing_extensions.is_typeddict(kind):
            return self.named(kind, self.typed_dict)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if "Unknown" in kind.__name__ or "Unset" in kind.__name__:
                return "null"  # stands for values that the SDK does not know yet
            return self.named(kind, self.model)
        if origin in (dict, collections.abc.Mapping) or kind in (dict, object):
            below: Field = self.read(inner[1]) if len(inner) > 1 else "any"
            if below in ("any", "object"):
                return "any" if kind is object else "object"
            return {"map": "number" if below == "integer" else below}
        return (
            "null" if getattr(cast("object", kind), "__name__", "") in ("UnrecognizedStr", "Unset", "Omit") else "any"
        )

    def named(self, kind: type, read: Callable[[Any], dict[str, Any]]) -> Field:
        """Read an object once, and give its name."""
        if kind.__name__ in self.opaque:
            return "object"
        if kind not in self._names:
            name = kind.__name__
            while name in self.objects:
                name += "2"
            self._names[kind] = name
            self.objects[name] = {}
            self.objects[name] = read(kind)
        return f"#{self._names[kind]}"

    def typed_dict(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401 - types are values here
        """Read a `TypedDict`."""
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        fields = {name: self.read(hint) for name, hint in hints.items()}
        return _object(fields, [name for name, hint in hints.items() if _is_required(kind, name, hint)])

    def model(self, kind: type[BaseModel]) -> dict[str, Any]:
        """Read a pydantic model."""
        fields: dict[str, Field] = {}
        required: list[str] = []
        absent: dict[str, list[str]] = {}
        for name, field in kind.model_fields.items():
            key = field.alias or self.rename(name)
            fields[key] = self.read(field.annotation)
            constant = _constant(field)
            if constant is not None:
                fields[key] = {"enum": [constant]}
            if field.is_required():
                required.append(key)
            for sentence, provider in _PLATFORMS.items():
                if sentence in (field.description or ""):
                    absent.setdefault(provider, []).append(key)
        return _object(fields, required) | ({"absent": absent} if absent else {})

    def signature(self, method: Callable[..., object], left_out: frozenset[str]) -> dict[str, Any]:
        """Read the parameters of a method as an object."""
        hints = typing_extensions.get_type_hints(method, include_extras=True)
        given = {name: one for name, one in inspect.signature(method).parameters.items() if name not in left_out}
        fields = {name: self.read(hints[name]) for name in given}
        return _object(fields, [name for name, one in given.items() if one.default is inspect.Parameter.empty])


def _constant(field: FieldInfo) -> object:
    """Give the value of a field that can have only one, such as the type of a block."""
    if isinstance(field.default, str) and field.default and typing.get_origin(field.annotation) is typing.Literal:
        return field.default
    return None


def _is_required(kind: Any, name: str, hint: object) -> bool:  # noqa: ANN401 - types are values here
    while (origin := typing.get_origin(hint)) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if name in _NOT_ENFORCED:
        return False
    if origin in _MARKERS:
        inner = typing.get_args(hint)[0]
        allows_null = type(None) in typing.get_args(inner)
        return origin in (typing.Required, typing_extensions.Required) and not allows_null
    return name in kind.__required_keys__


def _object(fields: dict[str, Field], required: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"fields": fields}
    if required:
        found["required"] = required
    return found


def _union(members: list[Field]) -> Field:
    """Join the members of a union; null is left out, because it means the same as an absent key."""
    flat: list[Field] = []
    for member in members:
        inner = member["union"] if isinstance(member, dict) and "union" in member else [member]
        flat += [one for one in inner if one != "null" and one not in flat]
    if "any" in flat:
        return "any"
    enums = [one for one in flat if isinstance(one, dict) and "enum" in one]
    if len(enums) > 1:
        values = [value for one in enums for value in one["enum"]]
        flat = [one for one in flat if one not in enums] + [{"enum": list(dict.fromkeys(values))}]
    if "string" in flat:  # an enumeration beside a string is a list of examples
        flat = [one for one in flat if not (isinstance(one, dict) and "enum" in one)]
    if "number" in flat and "integer" in flat:
        flat.remove("integer")
    return flat[0] if len(flat) == 1 else {"union": flat}


_GOOGLE_PART: Final = [
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
]
_GOOGLE_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "FileData": ("fileUri",),
    "FunctionCall": ("name",),
    "FunctionResponse": ("name",),
}
"""What a part has only one of, and what is required. (Gemini API reference: Part, FileData, FunctionCall, ...)"""

# -- the protocols -----------------------------------------------------------------------------------------------------


def _openai_chat() -> dict[str, Any]:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    reader = Reader()
    reader.named(CompletionCreateParamsStreaming, reader.typed_dict)
    return _file(reader, "CompletionCreateParamsStreaming", "openai", optional=("stream",), added={"stream": "boolean"})


def _openai_responses() -> dict[str, Any]:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    reader = Reader()
    reader.named(ResponseCreateParamsStreaming, reader.typed_dict)
    reader.objects["EasyInputMessageParam"]["fields"] |= {"id": "string", "status": "string"}  # as in a reply
    part: dict[str, Any] = reader.objects["EasyInputMessageParam"]["fields"]["content"]["union"][1]
    if "list" in part:  # a turn of the model has the parts of a reply
        part["list"] = {"union": [*part["list"]["union"], "#ResponseOutputTextParam", "#ResponseOutputRefusalParam"]}
    for name in ("ToolSearchCall", "ResponseToolSearchCallParam"):
        reader.objects.get(name, {}).pop("required", None)  # recorded 200s without the arguments
    # codex sends these two to OpenAI itself, and the SDK does not have them. (codex @343074d4, 2026-08-22; codex 0.166)
    reader.objects["StreamOptions"]["fields"]["reasoning_summary_delivery"] = "string"
    added: Mapping[str, Field] = {"stream": "boolean", "client_metadata": "object"}
    return _file(reader, "ResponseCreateParamsStreaming", "openai", optional=("stream",), added=added)


def _anthropic() -> dict[str, Any]:
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    reader = Reader()
    reader.named(MessageCreateParamsStreaming, reader.typed_dict)
    # Older models take the sampling parameters, and `output_format` was the first name of `output_config.format`.
    added = {"stream": "boolean", "temperature": "number", "top_p": "number", "top_k": "integer"}
    added["output_format"] = "object"
    made = _file(reader, "MessageCreateParamsStreaming", "anthropic", optional=("stream",), added=added)
    del made["objects"]["MessageCreateParamsStreaming"]["fields"]["betas"]  # a header
    return made


def _mistral() -> dict[str, Any]:
    from mistralai.client.models import ChatCompletionRequest

    reader = Reader()
    reader.named(ChatCompletionRequest, reader.model)
    reader.objects["AudioChunk"]["fields"]["input_audio"] = "any"  # OpenAI's object is taken too (documentation: audio)
    return _file(reader, "ChatCompletionRequest", "mistralai")


def _cohere() -> dict[str, Any]:
    from cohere.v2.client import V2Client

    reader = Reader()
    reader.objects["Request"] = reader.signature(V2Client.chat, frozenset({"self", "request_options"}))
    # `required` was answered (recorded 200, 2026), so the case of a choice is free.
    return _file(reader, "Request", "cohere", added={"stream": "boolean", "tool_choice": "string"})


def _google() -> dict[str, Any]:
    from google.genai import types as genai

    reader = Reader(rename=to_camel)
    body: dict[str, Field] = {
        "contents": {"list": reader.read(genai.Content)},
        "systemInstruction": reader.read(genai.Content),
        "tools": {"list": reader.read(genai.Tool)},
        "toolConfig": reader.read(genai.ToolConfig),
        "safetySettings": {"list": reader.read(genai.SafetySetting)},
        "generationConfig": reader.read(genai.GenerationConfig),
        **dict.fromkeys(("model", "cachedContent", "serviceTier", "continuationToken"), "string"),
        "labels": "object",
        "store": "boolean",
        "modelArmorConfig": "object",
    }
    # google-genai 3.1.0: parameters of `generate_content` that raise an error for the Gemini API
    reader.objects["Request"] = _object(body, ["contents"]) | {"absent": {"google": ["labels", "modelArmorConfig"]}}
    settings = reader.objects["GenerationConfig"]["fields"]
    for name in ("imageConfig", "speechConfig", "responseFormat"):
        settings[name] = "any"
    reader.objects["Part"]["one"] = _GOOGLE_PART
    for name, required in _GOOGLE_REQUIRED.items():
        reader.objects[name]["required"] = list(required)
    return _file(reader, "Request", "google-genai")


def _google_interactions() -> dict[str, Any]:
    from google.genai.interactions import CreateAgentInteraction, CreateModelInteraction

    # The results of tools are any objects, of which the types name no key.
    reader = Reader(opaque=frozenset({"FunctionResultStepResult", "MCPServerToolResultStepResult"}))
    reader.named(CreateModelInteraction, reader.model)
    agent = reader.model(CreateAgentInteraction)["fields"]
    # The types list known names of models, agents and media types; the API has more of each.
    added = {"model": "string", "agent": "string", "agent_config": agent["agent_config"]}
    for made in reader.objects.values():
        if "uri" in made["fields"] and "mime_type" in made["fields"]:
            made["fields"]["mime_type"] = "string"
    return _file(reader, "CreateModelInteraction", "google-genai", added=added)


def _bedrock() -> dict[str, Any]:
    session: Any = import_module("botocore.session")
    shape: Any = (
        session.get_session().get_service_model("bedrock-runtime").operation_model("ConverseStream").input_shape
    )
    objects: dict[str, Any] = {}

    def read(one: Any) -> Field:  # noqa: ANN401 - botocore has no types
        limits = {key: one.metadata[key] for key in ("min", "max", "pattern") if one.metadata.get(key)}
        match one.type_name:
            case "structure":
                if one.is_document_type:
                    return "any"
                if one.name not in objects:
                    objects[one.name] = {}
                    fields = {name: read(inner) for name, inner in one.members.items()}
                    objects[one.name] = _object(fields, list(one.required_members))
                    if getattr(one, "is_tagged_union", False):
                        objects[one.name]["one"] = list(fields)
                return f"#{one.name}"
            case "list":
                return {"list": read(one.member), **limits}
            case "map":
                return {"map": read(one.value), "keys": read(one.key), **limits}
            case "blob":
                return "any"  # bytes for boto3, base64 on the wire
            case "string" if one.enum:
                return {"enum": list(one.enum)}
            case name:
                kind = {"float": "number", "double": "number", "long": "integer"}.get(str(name), str(name))
                return {"is": kind, **limits} if limits else kind

    read(shape)
    # The id of the model is a part of the address, where an ARN and other forms are taken.
    objects[shape.name]["fields"] |= {"stream": "boolean", "modelId": "string"}
    objects[shape.name]["required"] = []
    return {"source": f"botocore {version('botocore')}", "body": f"#{shape.name}", "objects": objects}


def _file(
    reader: Reader, body: str, package: str, *, optional: tuple[str, ...] = (), added: Mapping[str, Field] | None = None
) -> dict[str, Any]:
    root = reader.objects[body]
    root["fields"] |= added or {}
    root["required"] = [name for name in root.get("required", ()) if name not in (*optional, "model")]
    return {"source": f"{package} {version(package)}", "body": f"#{body}", "objects": reader.objects}


FOLDERS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic_messages": _anthropic,
    "google_genai": _google,
    "google_interactions": _google_interactions,
    "bedrock_converse": _bedrock,
    "mistral_chat": _mistral,
    "cohere_chat": _cohere,
}


def main() -> int:
    """Write every file, or with `--check` list those that differ."""
    differ: list[Path] = []
    for folder, read in FOLDERS.items():
        path = PROTOCOLS / folder / NAME
        text = json.dumps(read(), separators=(",", ":"), sort_keys=True) + "\n"
        if not path.exists() or path.read_text("utf-8") != text:
            differ.append(path)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if "--check" in sys.argv and differ:
        print("out of date; run scripts/write_request_fields.py:", *differ, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
