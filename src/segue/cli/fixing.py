"""`segue check --fix`: a request body that a provider would accept, made of one that it would refuse.

The body is read as a conversation and written for its own model, which repairs what projection can repair. Fields that
are refused even then are removed. What is left is not repaired: only the caller knows what was meant.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.context import Context, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import Path
from segue.histories.opening import OpenedDocument
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.requests.check import check
from segue.requests.prepare import prepare

_REMOVED: Final = frozenset({CheckCode.FIELD_UNKNOWN, CheckCode.OPTION_UNSUPPORTED, CheckCode.OPTION_NEEDS_OTHER})
"""What can be repaired by removing a field: its advice says so."""
_ROUNDS: Final = 20
"""Removing a field may show another one that needed it."""


def _read_function(tool: object) -> ToolDefinition | None:
    """Read a function in the form of any protocol; None if it is something else."""
    given = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    inner = given.get("function")
    function = cast("dict[str, Any]", inner) if isinstance(inner, dict) else given
    name, schema = function.get("name"), function.get("parameters") or function.get("input_schema")
    if given.get("type", "function") not in ("function", "custom") or not isinstance(name, str):
        return None
    if not isinstance(schema, dict):
        return None
    return ToolDefinition(
        name=name, description=str(function.get("description") or ""), parameters=cast("dict[str, Any]", schema)
    )


def _read_functions(prompt: Prompt, tools: object) -> Prompt:
    """Read functions that a body has in the form of another protocol; nothing else is touched."""
    given = cast("list[object]", tools) if isinstance(tools, list) else []
    known = {tool.name for tool in prompt.context.tools if tool.kind == "function" and tool.name}
    found = {at: tool for at, each in enumerate(given) if (tool := _read_function(each)) and tool.name not in known}
    if not found or len(given) != len(prompt.context.tools):
        return prompt
    read = tuple(found.get(at, tool) for at, tool in enumerate(prompt.context.tools))
    return replace(prompt, context=replace(prompt.context, tools=read))


@final
class Fixed(NamedTuple):
    """A repaired body: what projection changed, what was removed after that, and what is still refused."""

    body: dict[str, Any]
    report: Report
    removed: tuple[Violation, ...]
    left: tuple[Violation, ...]


def fix(document: OpenedDocument, model: Model) -> Fixed:
    """Repair a request body for its own model.

    Raises:
        EmptyConversation, DoesNotFit: nothing of it can be sent.
    """
    given = cast("dict[str, Any]", document.body)
    document = document._replace(prompt=_read_functions(document.prompt, given.get("tools")))
    request = document.prepare(model, Policy())
    body, removed = _without_defaults(request.body, given, model), list[Violation]()
    for _ in range(_ROUNDS):
        found = check(body, protocol=model.protocol, model=model)
        chosen = next((each for each in found if each.code in _REMOVED and _remove(body, each.path)), None)
        if chosen is None:
            return Fixed(body, request.report, tuple(removed), tuple(found))
        removed.append(chosen)
    return Fixed(body, request.report, tuple(removed), tuple(check(body, protocol=model.protocol, model=model)))


def _without_defaults(body: dict[str, Any], given: dict[str, Any], model: Model) -> dict[str, Any]:
    """Leave out fields that every request of segue has, the caller did not write, and the provider does not need."""
    common = prepare(Context().add(UserMessage.of("-")), model).body
    for key in [key for key in body if key not in given and key in common and body[key] == common[key]]:
        shorter = {name: value for name, value in body.items() if name != key}
        before = check(body, protocol=model.protocol, model=model)
        if len(check(shorter, protocol=model.protocol, model=model)) <= len(before):
            body = shorter
    return body


def _remove(body: object, path: Path) -> bool:
    """Remove the key that a path ends with; False if it names a whole item of a list, or nothing."""
    if not path or not isinstance(path[-1], str):
        return False
    for key in path[:-1]:
        try:
            body = cast("Any", body)[key]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(body, dict) and cast("dict[str, Any]", body).pop(path[-1], _REMOVED) is not _REMOVED
