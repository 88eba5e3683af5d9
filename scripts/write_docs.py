"""Write the generated parts of the documents, or with `--check` list the documents that are out of date.

A generated part is between `<!-- begin: WHAT -->` and `<!-- end: WHAT -->`. `WHAT` is a row of `PARTS`, with an
argument if the part needs one (`example demo.py`). Everything outside of the marks is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from doc_commands import commands, output
from doc_protocols import dialect_fields, facts, families, pieces, rules
from doc_tables import changes, failures, names, protocols, settings, texts, vendors

from segue.protocols import Protocol, all_protocols

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = ROOT / "docs" / "protocols"
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


def new_page(record: Protocol) -> str:
    """Begin the page of a protocol that has none; what is odd about it is added by hand."""
    about, name = record.documentation, record.name
    link = f"\n\nReference of the provider: <{about.link}>" if about.link else ""
    sections = {
        "What becomes of each piece": "pieces",
        "What the rules rest on": "facts",
        "Rules": "rules",
        "Dialect": "spelling",
        "Families of models": "families",
    }
    parts = (
        f"## {title}\n\n<!-- begin: {what} {name} -->\n<!-- end: {what} {name} -->\n"
        for title, what in sections.items()
    )
    return "\n".join((f"# {about.title}\n\nProtocol `{name}`.\n\n{about.summary}{link}\n", *parts))


def documents() -> Iterator[tuple[Path, str]]:
    """Give every document with its text; a protocol without a page gets one."""
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        yield path, path.read_text(encoding="utf-8")
    for record in all_protocols():
        path = PAGES / f"{record.name}.md"
        if not path.exists() and record.check.__module__.startswith("segue."):
            yield path, new_page(record)


def main() -> int:
    """Update the documents; with `--check` only list those that differ."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path, old in documents():
        new = render_document(old)
        if new != old or not path.exists():
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale:
        print("out of date, run `make docs`:" if check else "written:", *stale)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
