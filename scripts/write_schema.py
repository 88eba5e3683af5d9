"""Write the JSON schema of the stored format and the generated parts of its page, or with `--check` list what differs.

`docs/stored-format.schema.json` is generated from the types in `segue.conversation`. `docs/stored-format.md` is written
by hand, except for the parts between `<!-- schema: WHAT -->` and `<!-- /schema: WHAT -->`; `WHAT` is a row of `PARTS`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.foreign import FORMAT, PROTOCOLS
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, Usage, UserMessage
from segue.conversation.stored import Document, dump

DOCS: Final = Path(__file__).parent.parent / "docs"
SCHEMA: Final = DOCS / "stored-format.schema.json"
PAGE: Final = DOCS / "stored-format.md"
PART: Final = re.compile(r"(<!-- schema: (?P<what>\w+) -->\n)(?P<body>.*?)(<!-- /schema: [^>]*-->)", re.DOTALL)

Fields = dict[str, object]

ANYTHING: Final[Fields] = {"description": "Any JSON value, to a depth of 200 levels in the whole document."}
"""`object` in the types. msgspec ignores an empty schema, so it needs a description."""

TYPES: Final[Mapping[str, str]] = {
    "array": "list",
    "boolean": "true or false",
    "integer": "integer",
    "null": "null",
    "number": "number",
    "object": "object",
    "string": "text",
}
"""Types of the schema -> names on the page."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "The document": ("Document",),
    "Messages": ("UserMessage", "AssistantMessage", "ToolResultMessage", "SystemMessage"),
    "Content": (
        "TextContent",
        "ImageContent",
        "FileContent",
        "ThinkingContent",
        "ToolCall",
        "NativeContent",
        "CacheMark",
    ),
    "Tools": ("ToolDefinition", "NativeTool"),
    "Summaries": ("Summary", "Origin"),
    "What a provider reports": ("Usage", "UsageCost", "Diagnostic", "Sent"),
}

EXAMPLE: Final = Context(
    system_prompt="Answer in one sentence.",
    messages=(
        UserMessage.of("What is the weather in Oslo?", timestamp=1763170000000),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="I have a tool for that.", thinking_signature="EqQBCkYIBxgC"),
                ToolCall(id="toolu_01", name="weather", arguments={"city": "Oslo"}),
            ),
            protocol="anthropic-messages",
            provider="anthropic",
            model="claude-sonnet-4-5",
            response_model="claude-sonnet-4-5-20250929",
            usage=Usage(input=412, output=57, total_tokens=469),
            stop_reason=StopReason.TOOL_USE,
            raw_stop_reason="tool_use",
            timestamp=1763170001000,
        ),
        ToolResultMessage(tool_call_id="toolu_01", tool_name="weather", content=(TextContent(text="4 °C, rain"),)),
    ),
    tools=(
        ToolDefinition(
            name="weather",
            description="Look up the weather.",
            parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        ),
    ),
)


def make_schema() -> Fields:
    """Describe what `dump` writes; `load` reads more."""
    schema = msgspec.json.schema(Document, schema_hook=_describe_object)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"A conversation stored as {FORMAT}"}
    return {**head, **schema}


def _describe_object(kind: type) -> dict[str, object]:
    if kind is not object:
        raise NotImplementedError
    return ANYTHING


# -- parts of the page ------------------------------------------------------------------------------------------------


def render_fields() -> str:
    """Write a table of fields for each type."""
    kinds = cast("dict[str, Fields]", make_schema()["$defs"])
    enums = {name: _describe_values(kind) for name, kind in kinds.items() if "enum" in kind}
    if kinds.keys() - enums.keys() != {name for names in GROUPS.values() for name in names}:
        raise SystemExit("GROUPS does not match the types of the schema; add new types to it and remove old ones")
    sections = [
        f"### {title}\n\n" + "\n".join(_describe(name, kinds[name], enums) for name in names)
        for title, names in GROUPS.items()
    ]
    return "\n" + "\n".join(sections) + "\n"


def _describe(name: str, kind: Fields, enums: Mapping[str, str]) -> str:
    text = " ".join(str(kind["description"]).split())
    required = cast("list[str]", kind.get("required", []))
    rows = [
        f"| `{field}` | {_describe_type(schema, enums)} | {'always' if field in required else _condition(schema)} |"
        for field, schema in cast("dict[str, Fields]", kind["properties"]).items()
    ]
    return f"**{name}.** {text}\n\n| field | value | written |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _describe_type(schema: Fields, enums: Mapping[str, str]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return enums.get(name, name)
    if "enum" in schema:
        return _describe_values(schema)
    if "anyOf" in schema:
        options = [_describe_type(option, enums) for option in cast("list[Fields]", schema["anyOf"])]
        return " or ".join(option for option in options if option != "null")
    if "items" in schema:
        return f"list of {_describe_type(cast('Fields', schema['items']), enums)}"
    if "type" in cast("Fields", schema.get("additionalProperties", {})):
        return "object of objects"
    return TYPES.get(str(schema.get("type")), "any JSON")


def _describe_values(schema: Fields) -> str:
    return ", ".join(f"`{value}`" for value in cast("list[str]", schema["enum"]))


def _condition(schema: Fields) -> str:
    """Describe when a field is written; one without a default in the schema is always written."""
    default = schema.get("default", ...)
    if default is ...:
        return "always"
    return "if any" if default is None else f"unless `{json.dumps(default)}`"


def render_example() -> str:
    """Show a stored conversation, indented."""
    return "```json\n" + json.dumps(json.loads(dump(EXAMPLE)), indent=2, ensure_ascii=False) + "\n```\n"


def render_protocols() -> str:
    """List the protocol names that are replaced."""
    rows = [f"| `{theirs}` | `{ours}` |" for theirs, ours in PROTOCOLS.items()]
    return "| stored there | read as |\n|---|---|\n" + "\n".join(rows) + "\n"


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "example": render_example,
    "fields": render_fields,
    "protocols": render_protocols,
}


def main() -> int:
    """Update the files; with `--check` only list those that differ."""
    page = PAGE.read_text(encoding="utf-8")
    return write_files(
        {
            SCHEMA: json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n",
            PAGE: PART.sub(lambda part: part[1] + PARTS[part["what"]]() + part[4], page),
        }
    )


def write_files(wanted: Mapping[Path, str]) -> int:
    """Write the files that differ; with `--check` only list them. Returns the exit status."""
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    check = "--check" in sys.argv[1:]
    if not check:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
    if stale:
        print("out of date, run `make docs`:" if check else "written:", *(path.name for path in stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
