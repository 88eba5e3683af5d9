"""The definition of a tool from a Python function: its name, its docstring, its typed parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

import msgspec

from segue.client.output.schemas import json_schema
from segue.conversation.context import ToolDefinition
from segue.errors import SettingsError

_SECTION: Final = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^(\s*)(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_PLAIN: Final = (str, int, float, bool, type(None))
"""Defaults that the schema shows; any other stays in the function."""
_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


def define_tool(
    function: Callable[..., object],
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
) -> ToolDefinition:
    """Make the definition of a tool from a function with typed parameters.

    The description is the docstring up to its first section. A parameter is described by its line under `Args:`, or by
    a text in its type: `Annotated[str, "a city"]`.

    Raises:
        SettingsError: the parameters cannot be described by a JSON schema.
    """
    return define(function, name=name, description=description, strict=strict)[0]


def define(
    function: Callable[..., object], *, name: str | None, description: str | None, strict: bool | None
) -> tuple[ToolDefinition, type[msgspec.Struct]]:
    """Make the definition, and the type that its arguments are read as."""
    name = name or find_name(function)
    if name == "<lambda>":
        raise SettingsError("a lambda has no name for a tool; use a function with a name", key="name")
    text, described = _read_docstring(_unwrap(function).__doc__ or "")
    arguments = _make_type(function, name, described)
    schema = json_schema(arguments)
    schema.pop("title", None)
    given = text if description is None else description
    return ToolDefinition(name=name, description=given, parameters=schema, strict=strict), arguments


def find_name(function: Callable[..., object]) -> str:
    """Return the name of a function, including one with some arguments filled in, or of a callable object."""
    inner = _unwrap(function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def _unwrap(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return function


def _make_type(function: Callable[..., object], name: str, described: Mapping[str, str]) -> type[msgspec.Struct]:
    parameters = _find_parameters(function, name)
    _refuse_unbound(function, parameters, name)
    hints = _find_types(function, name)
    fields: list[tuple[str, Any, Any]] = []
    for key, parameter in parameters.items():
        if parameter.kind in _VARIABLE:
            raise SettingsError(
                f"the tool {name} has the parameter {parameter}, which has no name in JSON; use parameters with names",
                key=key,
            )
        type_ = _describe(hints.get(key, Any), described.get(key, ""))
        fields.append((key, type_, _default(parameter.default)))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, module=__name__)


def _find_parameters(function: Callable[..., object], name: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise SettingsError(f"the parameters of {name} are not known: {error}; write a function", key=name) from error


def _refuse_unbound(function: Callable[..., object], parameters: Mapping[str, inspect.Parameter], name: str) -> None:
    """Refuse a method that was taken from its class: the model cannot pass an object."""
    first = next(iter(parameters), None)
    owner, dot, _ = getattr(function, "__qualname__", "").rpartition(".")
    if first in ("self", "cls") and dot and not owner.endswith("<locals>"):
        owner = owner.rpartition(".")[2]
        raise SettingsError(f"{owner}.{name} is a method; pass that of an object, such as {owner}().{name}", key=name)


def _find_types(function: Callable[..., object], name: str) -> dict[str, Any]:
    inner = _unwrap(function)
    typed: Any = inspect.unwrap(inner) if inspect.isroutine(inner) else type(inner).__call__
    if inspect.isclass(inner):
        typed = inner.__init__
    try:
        return get_type_hints(typed, include_extras=True)
    except NameError as error:
        raise SettingsError(
            f"the tool {name} has a parameter whose type is not known at run time: {error}; import the type outside of"
            " TYPE_CHECKING",
            key=name,
        ) from error


def _describe(type_: Any, text: str) -> Any:  # noqa: ANN401 - a type form
    """Put a description into a type. One in the type goes before that of the docstring."""
    for extra in get_args(type_)[1:] if get_origin(type_) is Annotated else ():
        found = extra if isinstance(extra, str) else getattr(extra, "description", None)
        text = found if isinstance(found, str) else text
    return Annotated[type_, msgspec.Meta(description=text)] if text else type_


def _default(default: object) -> Any:  # noqa: ANN401 - what msgspec takes
    if default is inspect.Parameter.empty:
        return msgspec.NODEFAULT
    return default if type(default) in _PLAIN else msgspec.field(default_factory=lambda: default)


def _read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text and the lines of its arguments."""
    text = inspect.cleandoc(docstring)
    sections = list(_SECTION.finditer(text))
    if not sections:
        return text, {}
    described: dict[str, str] = {}
    for at, section in enumerate(sections):
        if section[1] in ("Args", "Arguments", "Parameters"):
            end = sections[at + 1].start() if at + 1 < len(sections) else len(text)
            described |= _read_arguments(text[section.end() : end])
    return text[: sections[0].start()].strip(), described


def _read_arguments(lines: str) -> dict[str, str]:
    described: dict[str, str] = {}
    current, indent = "", -1
    for line in filter(str.strip, lines.splitlines()):
        match = _ARGUMENT.match(line)
        if match is not None and (indent < 0 or len(match[1]) <= indent):
            indent, current = len(match[1]), match[2]
            described[current] = match[3]
        elif current:
            described[current] = f"{described[current]} {line.strip()}".strip()
    return described
