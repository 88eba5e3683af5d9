"""The API reference: which public names are on which page, and the directives that make Sphinx write their entries.

The groups are those of `__all__` in `segue/__init__.pyi`, in its order, then the public modules. A name that is not in
`__all__` is on the page of its subject, which its module tells.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, cast, final

from doc_tables import describe_name, errors, table

import segue
from segue._lazy import read_stub

_STUB: Final = Path(segue.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_OF_PACKAGE: Final[Mapping[str, str]] = read_stub(_STUB)[0]
"""Every name of `segue` with its module; the names of submodules with `segue`."""
_MODULES: Final = (
    *("segue.events", "segue.errors", "segue.wire", "segue.framing", "segue.protocols"),
    *("segue.corpus", "segue.testing", "segue.testing.emulator"),
)
_SUBJECTS: Final = {
    "segue.conversation.stored": "stored conversations",
    "segue.conversation": "conversations",
    "segue.histories.sessions": "stored conversations",
    "segue.histories": "sessions of agents and messages of frameworks",
    "segue.models": "models",
    "segue.requests.tokens": "models",
    "segue.counting": "models",
    "segue.planning": "models",
    "segue.projection": "one history for any model",
    "segue.requests": "requests",
    "segue.client": "send",
    "segue.failures": "failures",
    "segue.protocols.registry": "models",
    "segue.protocols.api": "segue.wire",
    "segue.protocols": "segue.protocols",
}
"""The group of the names of a module that `__all__` does not have; the first entry that the module begins with."""
_SKIPPED: Final = frozenset({"__version__"})


@final
class Entry(NamedTuple):
    """A public name, and the module that it is imported from in the reference."""

    module: str
    name: str


@lru_cache(maxsize=1)
def groups() -> Mapping[str, tuple[Entry, ...]]:
    """Give the entries of every group; each name is in one group."""
    found: dict[str, list[Entry]] = {}
    block = _STUB[_STUB.index("__all__") :]
    group = ""
    for line in block.splitlines()[1:]:
        if comment := re.fullmatch(r"\s+# (.+)", line):
            group = comment[1]
        elif name := re.fullmatch(r'\s+"(\w+)",', line):
            found.setdefault(group, []).append(Entry("segue", name[1]))
    listed = {entry.name for entries in found.values() for entry in entries}
    for module in _MODULES:
        entries = found.setdefault(module, [])
        for name in _names_of(module):
            of_package = name in _OF_PACKAGE and getattr(segue, name) is getattr(import_module(module), name)
            if name not in listed or not of_package:
                listed |= {name} if of_package else set()
                entries.append(Entry("segue" if of_package else module, name))
    for name, module in sorted(_OF_PACKAGE.items()):
        if module != "segue" and name not in listed | _SKIPPED:
            subject = next(subject for begin, subject in _SUBJECTS.items() if module.startswith(begin))
            found[subject].append(Entry("segue", name))
    return {name: tuple(entries) for name, entries in found.items()}


def _names_of(module: str) -> list[str]:
    loaded = import_module(module)
    if module == "segue.errors":
        kinds = cast("dict[str, object]", vars(loaded)).values()
        return [
            kind.__name__
            for kind in kinds
            if inspect.isclass(kind) and issubclass(kind, Exception | Warning) and kind.__name__[0] != "_"
        ]
    return list(cast("list[str]", loaded.__all__))


def page_of(group: str) -> str:
    """Give the name of a group's page."""
    return group.removeprefix("segue.").replace(" ", "-").replace(".", "-")


def title_of(group: str) -> str:
    """Give the title of a group's page."""
    return f"{group[0].upper()}{group[1:]}" if not group.startswith("segue.") else group


def reference(page: str) -> str:
    """List the names of a page with their first sentences."""
    group = next(group for group in groups() if page_of(group) == page)
    if group == "segue.errors":
        return errors()
    return table(("name", "what it is"), (describe_name(entry.name, entry.module) for entry in groups()[group]))


def reference_pages(_: str) -> str:
    """List the pages of the reference."""
    lines = (f"- [{title_of(group)}]({page_of(group)}.md): {_some(entries)}\n" for group, entries in groups().items())
    return "".join(lines)


def _some(entries: tuple[Entry, ...]) -> str:
    names = ", ".join(f"`{entry.name}`" for entry in entries[:5])
    return names if len(entries) <= 5 else f"{names} and {len(entries) - 5} more"


def directives(page: str) -> str:
    """Give the reStructuredText of a page's entries."""
    group = next(group for group in groups() if page_of(group) == page)
    parts = [f".. py:module:: {group}\n"] if group.startswith("segue.") else []
    return "\n".join((*parts, *(part for entry in groups()[group] for part in _directive(entry))))


def _directive(entry: Entry) -> Iterator[str]:
    value = inspect.unwrap(getattr(import_module(entry.module), entry.name))
    full_name = f"{entry.module}.{entry.name}"
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        yield f".. {kind}:: {full_name}\n   :members:\n   :undoc-members:\n{_inheritance(value)}"
    elif inspect.isroutine(value):
        yield f".. autofunction:: {full_name}\n"
    else:
        text = as_rest(describe_name(entry.name, entry.module)[1])
        yield f".. py:data:: {entry.name}\n   :module: {entry.module}\n\n   {text}\n"


def _inheritance(kind: type) -> str:
    """Show public base classes; of base classes that are not public, show the members as those of the class itself."""
    if any(base.__name__ in public_names() for base in kind.__bases__):
        return "   :show-inheritance:\n"
    foreign = dict.fromkeys(base.__name__ for base in kind.__mro__ if not base.__module__.startswith("segue."))
    return f"   :inherited-members: {', '.join(foreign)}\n"


# -- text --------------------------------------------------------------------------------------------------------------

_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ONLY_FUNCTIONS: Final = frozenset({"classify", "complete", "dump", "load", "prepare", "project", "transcribe"})
"""Public functions whose names mean nothing else in the documents."""
_NAME: Final = re.compile(r"(?:segue\.)?(\w+)(\.\w+)?(\(\))?")


@lru_cache(maxsize=1)
def public_names() -> Mapping[str, str]:
    """Give the full name in the reference of every public name: of two, such as `Summary`, that of the package."""
    found = [entry for entries in groups().values() for entry in entries]
    return {
        entry.name: f"{entry.module}.{entry.name}" for entry in sorted(found, key=lambda entry: entry.module == "segue")
    }


def find_target(code: str) -> str | None:
    """Give the entry that a piece of code in a text means: `Context`, `prepare()`, `Conversation.ask`, `get_model`.

    Most lower-case words alone are none: `check` is a command, too, and `stream` an option.
    """
    matched = _NAME.fullmatch(code)
    if matched is None or matched[1] not in public_names():
        return None
    name, member, call = matched.groups()
    is_word = name.islower() and "_" not in name and name not in _ONLY_FUNCTIONS
    if is_word and not call and not code.startswith("segue."):
        return None
    target = public_names()[name]
    owner = getattr(import_module(target.rpartition(".")[0]), name)
    if member is None:
        return target
    is_member = inspect.isclass(owner) and inspect.getattr_static(owner, member[1:], None) is not None
    return f"{target}{member}" if is_member else None


def as_rest(text: str) -> str:
    """Write the code of a docstring, which is marked as in Markdown, for reStructuredText, with links to entries."""
    return _CODE.sub(_as_rest, text)


def _as_rest(matched: re.Match[str]) -> str:
    code = " ".join(matched[1].split())
    target = find_target(code)
    return f"``{code}``" if target is None or "." in target.removeprefix("segue.") else f":py:obj:`{code} <{target}>`"
