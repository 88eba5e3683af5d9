"""`segue check --fix`: a request body that a provider would accept, made of one that it would refuse.

The body is read as a conversation and written for its own model, which repairs what projection can repair. Fields that
are refused even then are removed. What is left is not repaired: only the caller knows what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast, final

from segue.errors import Path
from segue.histories.opening import OpenedDocument
from segue.histories.reading import read_body
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.requests.check import check

_REMOVED: Final = frozenset({CheckCode.FIELD_UNKNOWN, CheckCode.OPTION_UNSUPPORTED, CheckCode.OPTION_NEEDS_OTHER})
"""What can be repaired by removing a field: its advice says so."""
_ROUNDS: Final = 20
"""Removing a field may show another one that needed it."""


_Form = Callable[[dict[str, Any]], dict[str, Any]]


def _flat(function: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", **function}


def _nested(function: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": function}


def _of_anthropic(function: dict[str, Any]) -> dict[str, Any]:
    schema = {"input_schema": function.get("parameters", {"type": "object"})}
    return {key: value for key, value in function.items() if key != "parameters"} | schema


_FORMS: Final[Mapping[str, _Form]] = {
    "anthropic-messages": _of_anthropic,
    "cohere-chat": _nested,
    "mistral-chat": _nested,
    "ollama-chat": _nested,
    "openai-chat": _nested,
    "openai-responses": _flat,
}
"""How a protocol writes a function that was written like one of another protocol."""


def _in_form(tool: object, form: _Form) -> object:
    """Write a function in the form of a protocol, if it is one of another protocol; nothing else is touched."""
    given = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    inner = given.get("function")
    function = dict(cast("dict[str, Any]", inner if isinstance(inner, dict) and "name" not in given else given))
    kind = given.get("type", "function")
    if kind not in ("function", "custom") or not isinstance(function.get("name"), str) or "format" in function:
        return cast("object", tool)
    function.pop("type", None)
    if "input_schema" in function and "parameters" not in function:
        function["parameters"] = function.pop("input_schema")
    written = form(function)
    return given if "parameters" not in function or set(written) <= set(given) else written


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
    form = _FORMS.get(model.protocol)
    if form is not None and isinstance(given.get("tools"), list):
        tools = [_in_form(tool, form) for tool in cast("list[object]", given["tools"])]
        document = document if tools == given["tools"] else read_body({**given, "tools": tools}, model.protocol, None)
    request = document.prepare(model, Policy())
    body, removed = request.body, list[Violation]()
    for _ in range(_ROUNDS):
        found = check(body, protocol=model.protocol, model=model)
        chosen = next((each for each in found if each.code in _REMOVED and _remove(body, each.path)), None)
        if chosen is None:
            return Fixed(body, request.report, tuple(removed), tuple(found))
        removed.append(chosen)
    return Fixed(body, request.report, tuple(removed), tuple(check(body, protocol=model.protocol, model=model)))


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
