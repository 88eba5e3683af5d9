"""Compare the size of the source and of its vocabularies with `budgets.toml`; `--list` prints all figures.

Lines of code are counted without imports, docstrings, comments and blank lines, words of the documentation without the
parts that `scripts/write_*.py` generate. A raise of a budget is a line of the
diff, with its reason next to it. A budget that is far above its figure is too loose to notice anything, so it has to be
lowered: at most a tenth, or 60, may be unused.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final, cast, get_origin, get_type_hints

from segue.histories.kit.format import Format
from segue.models.dialect import Dialect
from segue.models.rules import Rules
from segue.projection.report import ChangeCode
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.protocol import Protocol

ROOT: Final = Path(__file__).parent.parent
BUDGETS: Final = ROOT / "budgets.toml"
SOURCES: Final = ROOT / "src" / "segue"
KERNEL: Final = (
    "calls",
    "conversation",
    "counting",
    "failures",
    "framing",
    "models",
    "projection",
    "protocols/kit",
    "requests",
)
"""What a maintainer has to know; everything else is a leaf behind one record."""
GENERATED: Final = re.compile(r"<!-- (begin|schema): [^\n]*-->\n.*?<!-- (?:end|/schema)\b[^\n]*-->", re.DOTALL)
"""A part of a page that a script writes, with its marks."""
LOOSE: Final = 60
"""How far a budget may be above its figure, or a tenth of the figure if that is more."""

_NOT_CODE: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)


def count_lines(source: str) -> int:
    """Count the lines of code of one module."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for inner in _statements(node):
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                code.difference_update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    return len(code)


def _statements(node: ast.AST) -> Iterable[ast.AST]:
    body: object = getattr(node, "body", ())
    return cast("list[ast.AST]", body) if isinstance(body, list) else ()


def count_words(page: str) -> int:
    """Count the words that people wrote: code counts, generated parts and marks do not."""
    return len(re.sub(r"<!--.*?-->", " ", GENERATED.sub(" ", page), flags=re.DOTALL).split())


def measure_words(root: Path) -> dict[str, int]:
    """Return the words of the documentation, and those of the guide for contributors."""
    pages = (root / "README.md", *(root / "docs").rglob("*.md"))
    return {
        "pages": sum(count_words(path.read_text(encoding="utf-8")) for path in pages if "_build" not in path.parts),
        "contributing": count_words((root / "CONTRIBUTING.md").read_text(encoding="utf-8")),
    }


def room_of(path: Path) -> str:
    """Return the room of a file: its folder, and the folder of one protocol or format."""
    parts = path.relative_to(SOURCES).parts
    if len(parts) == 1:
        return "."
    return "/".join(parts[:2]) if parts[0] in ("protocols", "histories") and parts[2:] else parts[0]


def _fields(kind: type) -> list[str]:
    """Return the fields of a record, without constants of the class."""
    return [name for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar]


def measure() -> dict[str, dict[str, int]]:
    """Return every figure, by section and name."""
    rooms: defaultdict[str, int] = defaultdict(int)
    for path in SOURCES.rglob("*.py"):
        rooms[room_of(path)] += count_lines(path.read_text(encoding="utf-8"))
    return {
        "kernel": {"all": sum(rooms[name] for name in KERNEL)},
        "code": dict(sorted(rooms.items())),
        "records": {kind.__name__: len(_fields(kind)) for kind in (Rules, Dialect, Protocol, Format)},
        "codes": {"check": len(CheckCode), "changes": len(ChangeCode)},
        "words": measure_words(ROOT),
        "files": {"all": sum(1 for _ in SOURCES.rglob("*.py")), "top": sum(1 for _ in SOURCES.glob("*.py"))},
    }


def compare(found: Mapping[str, Mapping[str, int]], budgets: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return what is above its budget, has none, or has one that is too loose."""
    faults: list[str] = []
    for section, figures in found.items():
        known = budgets.get(section, {})
        for name, figure in figures.items():
            # A protocol or format without a row of its own has the common budget.
            common = f"{name.partition('/')[0]}/*"
            most = known.get(name, known.get(common))
            if most is None:
                faults.append(f"{section} {name} is {figure} and has no budget; add it to {BUDGETS.name}")
            elif figure > most:
                advice = f"make it smaller, or raise it in {BUDGETS.name} with the reason"
                faults.append(f"{section} {name} is {figure}, above its budget of {most}; {advice}")
            elif name in known and most - figure > max(LOOSE, figure // 10):
                faults.append(f"{section} {name} is {figure}, far below its budget of {most}; lower the budget")
        faults += [
            f"{section} {name} has a budget and does not exist; remove it"
            for name in known
            if name not in figures and not name.endswith("/*")
        ]
    return faults


def main() -> int:
    """Print the faults; with `--list`, the figures."""
    found = measure()
    if "--list" in sys.argv[1:]:
        for section, figures in found.items():
            for name, figure in figures.items():
                sys.stdout.write(f"{section:8} {figure:7,} {name}\n")
        return 0
    faults = compare(found, tomllib.loads(BUDGETS.read_text(encoding="utf-8")))
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
