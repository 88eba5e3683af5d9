"""Generated tables of the documents: names, protocols, changes, texts, failures, vendors, rules."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Final, Literal, Union, cast, get_args, get_origin

import segue
from segue._lazy import read_stub
from segue.failures.failure import FailureKind
from segue.models import rule
from segue.models.dialect import Dialect
from segue.models.first_party import FIRST_PARTY
from segue.models.provider import Provider
from segue.models.rule import Rule
from segue.models.rules import ReasoningReplay, Rules
from segue.models.third_party import THIRD_PARTY
from segue.projection.policy import Texts
from segue.projection.report import SENTENCES, ChangeCode
from segue.protocols.kit.check_codes import ADVICE, CheckCode
from segue.protocols.registry import PROTOCOLS


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table; bars in cells are escaped."""
    lines = [tuple(header), ("---",) * len(tuple(header)), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def as_text(value: object) -> str:
    """Write the value of a setting."""
    match value:
        case None:
            return "any"
        case bool():
            return "yes" if value else "no"
        case str():
            return f"`{value}`"
        case frozenset() | tuple() | list():
            parts = [as_text(each) for each in cast("Iterable[object]", value)]
            return ", ".join(sorted(parts) if isinstance(value, frozenset) else parts) or "none"
        case int():
            return f"{value:,}"
        case Rule():
            return value.bounds()
        case _:
            return str(value)


# -- protocols ---------------------------------------------------------------------------------------------------------

_REASONING: Final[Mapping[ReasoningReplay, str]] = {
    "none": "no",
    "signed": "signed, to the same model",
    "open": "any readable text",
    "required": "on every assistant turn",
}
_SYSTEM: Final[Mapping[str, str]] = {
    "anywhere": "anywhere",
    "before_assistant": "before an assistant turn",
    "none": "no",
}


def _images(rules: Rules) -> str:
    places = {"in user turns": rules.user_media, "in tool results": rules.result_media}
    found = [place for place, types in places.items() if any(kind.startswith(("*", "image/")) for kind in types)]
    return " and ".join(found) or "no"


def protocols(folder: str) -> str:
    """List what each protocol supports; `folder` is the path of its pages from the document, or `unlinked`.

    The README is also read outside of the repository, where no path leads to a page.
    """
    header = ("protocol", "tools", "images", "reasoning sent back", "system messages after the first turn")
    rows = (
        (
            f"`{name}`" if folder == "unlinked" else f"[`{name}`]({folder}{name}.md)",
            "yes" if rules.tools else "as text",
            _images(rules),
            _REASONING[rules.reasoning_replay],
            _SYSTEM[rules.system_messages],
        )
        for name, rules in ((protocol.name, protocol.rules) for protocol in PROTOCOLS.values())
    )
    return table(header, rows)


# -- names -------------------------------------------------------------------------------------------------------------


_OF_PACKAGE: Final[Mapping[str, str]] = read_stub(Path(segue.__file__).with_suffix(".pyi").read_text("utf-8"))[0]
"""Every name of `segue` with its module; the names of submodules with `segue`."""


def errors() -> str:
    """List the public errors, each with its parent."""
    rows = (
        (f"`{kind.__name__}`", f"`{parent.__name__}`", _first_sentence(kind.__doc__)) for kind, parent in _error_tree()
    )
    return table(("name", "is a", "what it is"), rows)


def _error_tree() -> Iterator[tuple[type, type]]:
    """Give the public errors in the order of their file, each with the nearest public parent."""
    for kind in cast("dict[str, object]", vars(import_module("segue.errors"))).values():
        if inspect.isclass(kind) and issubclass(kind, (Exception, Warning)) and kind.__name__[0] != "_":
            yield kind, next(parent for parent in kind.__mro__[1:] if parent.__name__[0] != "_")


def describe_name(name: str, module: str) -> tuple[str, str]:
    """Give a public name, with brackets if it is a function, and its first sentence."""
    value = inspect.unwrap(getattr(import_module(module), name))  # a cache around a function is still that function
    if inspect.isfunction(value):
        return f"`{name}()`", _first_sentence(value.__doc__)
    text = value.__doc__ if inspect.isclass(value) else _docstring_of_alias(name, _module_of(name, module))
    return f"`{name}`", _first_sentence(text) if text else _members(value)


def _module_of(name: str, module: str) -> str:
    """Find the module that defines a name that has no `__module__`."""
    if name in _OF_PACKAGE:
        return _OF_PACKAGE[name]
    file = Path(str(import_module(module).__file__))
    stub = file.with_suffix(".pyi")
    if stub.exists():
        return read_stub(stub.read_text("utf-8"))[0][name]
    imports = (node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ImportFrom))
    return next(str(node.module) for node in imports if any(alias.name == name for alias in node.names))


def _docstring_of_alias(name: str, module: str) -> str | None:
    """Find the string below an alias in its file."""
    for statement, following in pairwise(ast.parse(inspect.getsource(import_module(module))).body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))) if statement.target.id == name:
                    return text
                case _:
                    pass
    return None


def _members(alias: object) -> str:
    if get_origin(alias) not in (Literal, Union, UnionType):
        return f"The type `{alias}`."
    words = [member.__name__ if inspect.isclass(member) else str(member) for member in get_args(alias)]
    return "One of " + ", ".join(f"`{word}`" for word in words) + "."


def _first_sentence(docstring: str | None) -> str:
    text = " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", text)[0]


# -- changes, texts, failures ------------------------------------------------------------------------------------------


def changes(_: str) -> str:
    """Every kind of change that projection can make."""
    return table(("code", "meaning"), ((f"`{code.value}`", SENTENCES[code]) for code in ChangeCode))


def check_codes(_: str) -> str:
    """Every kind of fault that `check` finds."""
    return table(("code", "meaning"), ((f"`{code.value}`", ADVICE[code]) for code in CheckCode))


def texts(_: str) -> str:
    """Every text that segue may add to a conversation, with its default."""
    fields = zip(Texts.__struct_fields__, Texts.__struct_defaults__, strict=True)
    return table(("field of `Texts`", "text"), ((f"`{name}`", f"`{text!r}`") for name, text in fields))


def failures(_: str) -> str:
    """Every kind of failure with its meaning."""
    sentences = _sentences(FailureKind)
    return table(("kind", "meaning"), ((f"`{kind.value}`", sentences[kind.name]) for kind in FailureKind))


def _sentences(record: type) -> dict[str, str]:
    """Return the fields of a class with the string below each; not every field has one."""
    body = cast("ast.ClassDef", ast.parse(inspect.getsource(record)).body[0]).body
    found: dict[str, str] = {}
    for node, following in pairwise([*body, ast.Pass()]):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = ""
            case _:
                continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found


# -- rules and dialects ------------------------------------------------------------------------------------------------


def settings(name: str) -> str:
    """Every field of the rules, or of the dialect, with its default and meaning.

    Raises:
        ValueError: a field has no meaning.
    """
    record: type[Rules | Dialect] = {"rules": Rules, "dialect": Dialect}[name]
    defaults, sentences = record(), _sentences(record)
    sentences.pop("rows", None)  # `places` lists what they can be about
    if unexplained := [field for field, text in sentences.items() if not text]:
        raise ValueError(f"write a sentence below each of these fields of {record.__name__}: {', '.join(unexplained)}")
    rows = (
        (f"`{field}`", as_text(cast("object", getattr(defaults, field))), text) for field, text in sentences.items()
    )
    return table(("field", "default", "meaning"), rows)


def places(_: str) -> str:
    """Every place that a row can have, with what it is about: the texts below the groups in `models.rule`.

    Raises:
        ValueError: a place has no meaning.
    """
    body = ast.parse(inspect.getsource(rule)).body
    texts = [
        inspect.cleandoc(cast("str", cast("ast.Constant", text.value).value))
        for group, text in pairwise(body)
        if isinstance(group, ast.AnnAssign) and isinstance(text, ast.Expr) and "- `" in ast.unparse(text)
    ]
    whole = "\n\n".join(texts) + "\n"
    if unexplained := sorted(place for place in rule.PLACES if f"`{place}`" not in whole):
        raise ValueError(f"write a sentence about each of these places in models/rule.py: {', '.join(unexplained)}")
    return whole


# -- vendors -----------------------------------------------------------------------------------------------------------


def vendors(kind: str) -> str:
    """List the providers that serve their own models, or those that serve models of others."""
    rows = {"first_party": FIRST_PARTY, "third_party": THIRD_PARTY}[kind]
    header = ("provider", "name", "protocol", "base URL", "key variable", "differs in", "source", "read")
    return table(header, map(_vendor, rows))


def _vendor(row: Provider) -> tuple[str, ...]:
    differs = sorted({key for kept in (row.rules, row.dialect) for part in kept.values() for key in part})
    return (
        f"`{row.name}`",
        row.title,
        f"`{row.protocol}`",
        f"`{row.base_url}`" if row.base_url else "set by the caller",
        "<br>".join(f"`{name}`" for name in row.key_variables) or "none",
        ", ".join(f"`{key}`" for key in differs) or "nothing",
        row.source,
        row.read,
    )
