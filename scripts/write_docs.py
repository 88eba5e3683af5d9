"""Write the generated parts of the documents, or with `--check` list the documents that are out of date.

A generated part is between `<!-- begin: WHAT -->` and `<!-- end: WHAT -->`. `WHAT` is a row of `PARTS`, with an
argument if the part needs one (`example demo.py`). Everything outside of the marks is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from doc_commands import commands, output
from doc_protocols import dialect_fields, facts, families, pieces, rules
from doc_tables import changes, failures, names, protocols, settings, texts, vendors

ROOT: Final = Path(__file__).parent.parent
DOCUMENTS: Final = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
PART: Final = re.compile(
    r"(<!-- begin: (?P<what>\w+)(?: (?P<words>[^\n]*?))? -->\n)(?P<body>.*?)(<!-- end: [^\n]*-->)", re.DOTALL
)


def example(file: str) -> str:
    """Include an example verbatim."""
    return "```python\n" + (ROOT / "examples" / file).read_text(encoding="utf-8").strip() + "\n```\n"


PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "changes": changes,
    "commands": commands,
    "example": example,
    "facts": facts,
    "failures": failures,
    "families": families,
    "names": names,
    "output": output,
    "pieces": pieces,
    "protocols": protocols,
    "rules": rules,
    "settings": settings,
    "spelling": dialect_fields,
    "texts": texts,
    "vendors": vendors,
}


def render_document(text: str) -> str:
    """Return a document with each generated part updated."""
    return PART.sub(lambda part: part[1] + PARTS[part["what"]](part["words"] or "") + part[5], text)


def main() -> int:
    """Update the documents; with `--check` only list those that differ."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path in DOCUMENTS:
        old = path.read_text(encoding="utf-8")
        new = render_document(old)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale:
        print("out of date, run `make docs`:" if check else "written:", *stale)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
