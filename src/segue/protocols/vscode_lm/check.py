"""Check whether the VS Code language model API, and a model that it serves, accepts a body.

Facts:
- The roles that may have a part, and its fields.                              (@types/vscode 1.140.0, read 2026-11-15)
- A result follows its call, in the next user message.                                 (the same: comment on `tools`)
- Claude that it serves refuses a turn of blank text.                                      (opencode #31259, through
  Copilot)

Unknown parts are ignored, as the API requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.errors import Path
from segue.protocols.families.tool_checks import Pairs, check_name
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.media_checks import check_bytes
from segue.protocols.vscode_lm.content import KIND, RESULT

_PLACES: Final[Mapping[str, str]] = {"toolCall": "assistant", RESULT: "user"}
"""A part -> the only role that may have it."""
_FIELDS: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"value": str},
    "toolCall": {"callId": str, "name": str, "input": dict},
    RESULT: {"callId": str, "content": list},
    "data": {"data": str, "mimeType": str},
}
_MODES: Final = (1, 2)


def check(body: Block, endpoint: Endpoint) -> list[Violation]:
    """List what the API, or a model that it serves, refuses."""
    found = [*_check_options(body.get("options"), endpoint)]
    messages = body.get("messages")
    if not isinstance(messages, list | tuple) or not messages:
        found.append(
            Violation(CheckCode.MESSAGES_MISSING, ("messages",), "`messages` has to be a list with a message; add one")
        )
        return found
    turns = [object_of(turn) for turn in cast("Sequence[object]", messages)]
    for index, turn in enumerate(turns):
        found += _check_turn(turn, ("messages", index), endpoint)
    found += check_base64(body, "messages", lambda block: ("data",) if block.get(KIND) == "data" else (), "data")
    return [*found, *_check_pairs(turns)]


def _parts(turn: Block) -> list[Block]:
    content = turn.get("content")
    return [object_of(part) for part in cast("Sequence[object]", content)] if isinstance(content, list | tuple) else []


def _check_turn(turn: Block, path: Path, endpoint: Endpoint) -> Iterator[Violation]:
    role, content = turn.get("role"), turn.get("content")
    if role not in ("user", "assistant"):
        yield Violation(CheckCode.ROLE_UNKNOWN, (*path, "role"), f"unknown role {role!r}; use user or assistant")
    if not isinstance(content, str | list | tuple):
        yield Violation(
            CheckCode.TYPE_WRONG, (*path, "content"), "`content` has to be a string or a list of parts; change it"
        )
    parts = _parts(turn)
    for at, part in enumerate(parts):
        kind = part.get(KIND)
        place = (*path, "content", at)
        if isinstance(kind, str) and _PLACES.get(kind, role) != role:
            yield Violation(
                CheckCode.BLOCK_MISPLACED, place, f"a {kind} part is not allowed in a {role} message; remove it"
            )
        yield from _check_part(part, place)
    texts = [content] if isinstance(content, str) else [part.get("value") for part in parts]
    only_texts = all(part.get(KIND) == "text" for part in parts)
    if endpoint.rules.refused_text == "blank" and only_texts and not any(str(text or "").strip() for text in texts):
        yield Violation(CheckCode.TEXT_BLANK, (*path, "content"), "the message has no text; add some or remove it")


def _check_part(part: Block, path: Path) -> Iterator[Violation]:
    kind = part.get(KIND)
    if not isinstance(kind, str):
        return
    for key, wanted in _FIELDS.get(kind, {}).items():
        if not isinstance(part.get(key), wanted):
            yield Violation(
                CheckCode.TYPE_WRONG,
                (*path, key),
                f"`{key}` of a {kind} part has to be of type {wanted.__name__}; change it",
            )
    if kind == "data":
        yield from check_bytes(part.get("data"), part.get("mimeType"), (*path, "data"))
    if kind == RESULT:
        content = part.get("content")
        for at, inner in enumerate(cast("Sequence[object]", content) if isinstance(content, list) else ()):
            yield from _check_part(object_of(inner), (*path, "content", at))


def _check_pairs(turns: Sequence[Block]) -> Iterator[Violation]:
    """Find results without a call in the turn before, and calls without a result in the next message."""
    pairs = Pairs("in the next message")
    for index, turn in enumerate(turns):
        for at, part in enumerate(_parts(turn)):
            if part.get(KIND) == RESULT:
                yield from pairs.add_result(part.get("callId"), ("messages", index, "content", at))
        yield from pairs.end()
        for at, part in enumerate(_parts(turn)):
            if part.get(KIND) == "toolCall":
                yield from pairs.add_call(part.get("callId"), ("messages", index, "content", at))


# -- options -----------------------------------------------------------------------------------------------------------


def _check_options(given: object, endpoint: Endpoint) -> Iterator[Violation]:
    options = object_of(given)
    if given is not None and not isinstance(given, Mapping):
        yield Violation(CheckCode.TYPE_WRONG, ("options",), "`options` has to be an object; remove it")
    if options.get("toolMode", 1) not in _MODES:
        yield Violation(
            CheckCode.VALUE_UNKNOWN,
            ("options", "toolMode"),
            "unknown value of `toolMode`; use 1 (auto) or 2 (required)",
        )
    tools = options.get("tools")
    for index, item in enumerate(cast("Sequence[object]", tools) if isinstance(tools, list | tuple) else ()):
        yield from _check_tool(object_of(item), ("options", "tools", index), endpoint)


def _check_tool(tool: Block, path: Path, endpoint: Endpoint) -> Iterator[Violation]:
    if KIND in tool or not ("name" in tool or "inputSchema" in tool):
        return  # an unknown type of tool
    name, schema, rules = tool.get("name"), tool.get("inputSchema"), endpoint.rules
    yield from check_name(name, (*path, "name"), rules)
    if not isinstance(tool.get("description"), str):
        yield Violation(
            CheckCode.TOOL_DESCRIPTION_MISSING, (*path, "description"), "the description is missing; add one"
        )
    if not isinstance(schema, Mapping | None):
        yield Violation(
            CheckCode.SCHEMA_ROOT_INVALID, (*path, "inputSchema"), "the schema of a tool must be an object; send one"
        )
    elif schema is not None and rules.schema_root_object and object_of(tool.get("inputSchema")).get("type") != "object":
        # The models that it serves: "input_schema.type: Field required", "schema must be a JSON Schema of 'type:
        # "object"'"
        yield Violation(
            CheckCode.SCHEMA_ROOT_INVALID,
            (*path, "inputSchema"),
            "the schema of a tool must have the type object; add it",
        )
