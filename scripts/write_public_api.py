"""Write the list of the public API, tests/public_api.txt, or with `--check` list what differs.

One line for each name that `segue` and `segue.corpus` export, each public attribute and method of a class, and each
member of an enum. A function or a class has its parameters: `=` marks an optional one, `*` begins the ones that are
given by keyword. The file is written by this script and never by hand, and the script adds lines only: what is in the
file was promised. A name goes, or becomes incompatible, by the rule in docs/stability.md: it is listed in
tests/deprecated.json first, and dropped from both files by `--drop` in the version that the list names.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, cast, final, get_args

import segue
import segue.corpus
from segue._lazy import read_stub

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "tests" / "public_api.txt"
DEPRECATED: Final = ROOT / "tests" / "deprecated.json"
PACKAGES: Final = (segue, segue.corpus)
RELEASES: Final = 2
"""Minor releases in which a deprecated name still works, the one that deprecates it included."""
INCOMPATIBLE: Final = "is incompatible with what was promised; keep it, or deprecate it as docs/stability.md describes"


@final
class Parameter(NamedTuple):
    """A parameter: its name, and how it is given."""

    name: str
    required: bool
    by_position: bool
    by_keyword: bool


# -- what there is -----------------------------------------------------------------------------------------------------


def list_api() -> dict[str, str | None]:
    """Give the public names in order, each with its parameters; None for what is not called."""
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        stub = Path(cast("str", package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
        for name, module in sorted(read_stub(stub)[0].items()):
            if module != package.__name__ and not name.startswith("__"):
                found.update(_describe(f"{package.__name__}.{name}", getattr(package, name)))
    return found


def _describe(name: str, value: object) -> Iterator[tuple[str, str | None]]:
    if inspect.isclass(value):
        is_enum = issubclass(value, Enum)
        yield name, None if is_enum or issubclass(value, BaseException) else _parameters(value)
        for member in sorted({*dir(value), *getattr(value, "__struct_fields__", ())}):
            if member.startswith("_") or not _is_own(value, member):
                continue
            attribute = inspect.getattr_static(value, member, None)
            if isinstance(attribute, (classmethod, staticmethod)):
                attribute = getattr(cast("object", attribute), "__func__", None)
            is_method = inspect.isfunction(attribute)
            yield f"{name}.{member}", _parameters(getattr(value, member)) if is_method else None
    else:
        yield name, _parameters(value) if inspect.isroutine(value) else None


def _is_own(kind: type, member: str) -> bool:
    """Whether a member is segue's: those of `str`, `tuple` and exceptions are not."""
    owner = next((each for each in kind.__mro__ if member in vars(each)), kind)
    return owner.__module__.startswith("segue")


def _parameters(value: object) -> str | None:
    try:
        signature = inspect.signature(cast("type", value))
    except (TypeError, ValueError):
        return None
    with suppress(NameError):  # annotations that only type checkers import stay texts
        signature = inspect.signature(cast("type", value), eval_str=True)
    parts: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.name.startswith("_"):
            continue
        mark = "" if parameter.default is parameter.empty else "="
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                keyword_only = True
                parts.append(f"*{parameter.name}")
            case parameter.VAR_KEYWORD:
                keys = _keys_of(parameter.annotation)
                parts += ["*"] if keys and not keyword_only else []
                parts += [f"{key}=" for key in keys] or [f"**{parameter.name}"]
            case parameter.KEYWORD_ONLY:
                if not keyword_only:
                    keyword_only = True
                    parts.append("*")
                parts.append(f"{parameter.name}{mark}")
            case parameter.POSITIONAL_ONLY:
                parts += [f"{parameter.name}{mark}", "/"]
            case parameter.POSITIONAL_OR_KEYWORD:
                parts.append(f"{parameter.name}{mark}")
    # `self` is not given by a caller; a bound method has none.
    return ", ".join(part for part in parts if part not in ("self", "cls"))


def _keys_of(annotation: object) -> list[str]:
    """Give the keys of a `TypedDict` that keyword arguments are annotated with."""
    [settings] = get_args(annotation) or (None,)
    return sorted(getattr(settings, "__optional_keys__", ()))


# -- what was promised -------------------------------------------------------------------------------------------------


def write_lines(api: dict[str, str | None]) -> str:
    """Write an API as lines."""
    return "".join(f"{name}\n" if given is None else f"{name}({given})\n" for name, given in sorted(api.items()))


def read_lines(text: str) -> dict[str, str | None]:
    """Read the lines of an API."""
    found: dict[str, str | None] = {}
    for line in text.splitlines():
        name, called, rest = line.partition("(")
        found[name] = rest.removesuffix(")") if called else None
    return found


def is_compatible(promised: str | None, given: str | None) -> bool:
    """Whether every call that the promised parameters allow is allowed by the given ones."""
    if promised is None:
        return True  # what is only read may become callable
    if given is None:
        return False
    before, now = _read_parameters(promised), _read_parameters(given)
    positions = [each.name for each in now if each.by_position]
    by_name = {each.name: each for each in now}
    for place, old in enumerate(each for each in before if each.by_position):
        if place >= len(positions) or (positions[place] != old.name and not positions[place].startswith("*")):
            return False
    for old in before:
        new = by_name.get(old.name)
        if new is None and not (old.by_keyword and "**" in "".join(by_name)):
            return False
        if new is not None and ((new.required and not old.required) or (old.by_keyword and not new.by_keyword)):
            return False
    return not any(each.required and each.name not in {old.name for old in before} for each in now)


def _read_parameters(text: str) -> list[Parameter]:
    found: list[Parameter] = []
    keyword_only = False
    for part in filter(None, text.split(", ")):
        if part == "*":
            keyword_only = True
        elif part == "/":
            found[-1] = found[-1]._replace(by_keyword=False)
        elif part.startswith("**"):
            found.append(Parameter(part, required=False, by_position=False, by_keyword=False))
        elif part.startswith("*"):
            found.append(Parameter(part, required=False, by_position=True, by_keyword=False))
            keyword_only = True
        else:
            name = part.removesuffix("=")
            found.append(Parameter(name, required=name == part, by_position=not keyword_only, by_keyword=True))
    return found


def find_broken(promised: dict[str, str | None], api: dict[str, str | None]) -> Iterator[str]:
    """Find what was promised and does not hold."""
    for name, parameters in promised.items():
        if name not in api:
            yield f"{name} is gone and {INCOMPATIBLE}"
        elif not is_compatible(parameters, api[name]):
            yield f"{name}({api[name]}), in place of {name}({parameters}), {INCOMPATIBLE}"


def find_early(deprecated: dict[str, dict[str, str]], promised: dict[str, str | None]) -> Iterator[str]:
    """Find deprecations that do not follow the rule."""
    for name, entry in deprecated.items():
        if name not in promised:
            yield f"{name} is deprecated, and it is no public name"
        elif missing := {"since", "gone", "use"} - set(entry):
            yield f"{name} is deprecated without {sorted(missing)}"
        elif _minor(entry["gone"]) < _minor(entry["since"]) + RELEASES:
            yield f"{name} is deprecated since {entry['since']}, and cannot go before {RELEASES} minor releases later"


def is_due(entry: dict[str, str], version: str = segue.__version__) -> bool:
    """Whether a deprecated name may go in a version."""
    return _numbers(version) >= _numbers(entry["gone"])


def _minor(version: str) -> int:
    """Count minor releases; a new major one counts as many."""
    major, minor = _numbers(version)[:2]
    return major * 1000 + minor


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def main(arguments: list[str]) -> str | None:
    """Write the file, or compare it; give what is wrong."""
    api = list_api()
    promised = read_lines(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    deprecated = cast("dict[str, dict[str, str]]", json.loads(DEPRECATED.read_text(encoding="utf-8")))
    if "--drop" in arguments:
        due = {name for name, entry in deprecated.items() if is_due(entry) and name not in api}
        promised = {name: given for name, given in promised.items() if name not in due}
        deprecated = {name: entry for name, entry in deprecated.items() if name not in due}
        DEPRECATED.write_text(json.dumps(deprecated, indent=2) + "\n", encoding="utf-8")
    if wrong := [*find_broken(promised, api), *find_early(deprecated, promised)]:
        return "\n".join(wrong)
    if "--check" not in arguments:
        FILE.write_text(write_lines(api), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != write_lines(api):
        return f"{FILE.relative_to(ROOT)} lacks public names or parameters; run `make docs`"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
