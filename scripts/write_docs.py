"""Write the generated parts of the documents; with `--check`, list those that are out of step.

A generated part is the text between `<!-- begin: NAME -->` and `<!-- end: NAME -->`. `NAME` is a key of `PARTS`,
followed by an argument where the part needs one (`example demo.py`). Text outside of the marks is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from doc_commands import commands, output, statuses
from doc_fields import shared_fields
from doc_histories import formats, resumed
from doc_protocols import content_types, dialect_fields, facts, families, rules, weights
from doc_reference import groups, page_of, reference, reference_pages, title_of
from doc_scoreboard import scoreboard, scoreboard_faults
from doc_server_tools import server_tools
from doc_tables import changes, check_codes, failures, places, protocols, settings, texts, vendors

from segue.protocols import Protocol, all_protocols

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = ROOT / "docs" / "protocols"
REFERENCE: Final = ROOT / "docs" / "reference"
PART: Final = re.compile(
    r"(<!-- begin: (?P<what>\w+)(?: (?P<words>[^\n]*?))? -->\n)(?P<body>.*?)(<!-- end: [^\n]*-->)", re.DOTALL
)


def example(file: str) -> str:
    """Include an example verbatim."""
    return "```python\n" + (ROOT / "examples" / file).read_text(encoding="utf-8").strip() + "\n```\n"


PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "changes": changes,
    "check_codes": check_codes,
    "commands": commands,
    "content_types": content_types,
    "dialect_fields": dialect_fields,
    "example": example,
    "facts": facts,
    "failures": failures,
    "families": families,
    "formats": formats,
    "output": output,
    "places": places,
    "protocols": protocols,
    "reference": reference,
    "reference_pages": reference_pages,
    "resumed": resumed,
    "rules": rules,
    "scoreboard": scoreboard,
    "scoreboard_faults": scoreboard_faults,
    "server_tools": server_tools,
    "settings": settings,
    "shared_fields": shared_fields,
    "statuses": statuses,
    "texts": texts,
    "vendors": vendors,
    "weights": weights,
}


def render_document(text: str) -> str:
    """Return a document with each generated part updated."""
    return PART.sub(lambda part: part[1] + PARTS[part["what"]](part["words"] or "") + part[5], text)


def new_page(record: Protocol) -> str:
    """Give the first version of a protocol's page; the section "Behaviour to know" is added by hand."""
    about, name = record.documentation, record.name
    link = f"\n\nReference of the provider: <{about.link}>" if about.link else ""
    sections = {
        "How each content type is sent": "content_types",
        "Facts": "facts",
        "Rules": "rules",
        "Families of models": "families",
        "Dialect fields": "dialect_fields",
    }
    parts = (
        f"## {title}\n\n<!-- begin: {what} {name} -->\n<!-- end: {what} {name} -->\n"
        for title, what in sections.items()
    )
    return "\n".join((f"# What does {about.title} accept?\n\nProtocol `{name}`.\n\n{about.summary}{link}\n", *parts))


def new_reference_page(group: str) -> str:
    """Give the first version of a page of the reference; Sphinx adds the entries of the names."""
    page = page_of(group)
    return f"# {title_of(group)}\n\n<!-- begin: reference {page} -->\n<!-- end: reference {page} -->\n"


def documents() -> Iterator[tuple[Path, str]]:
    """Give every document with its text; a protocol without a page gets one."""
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        yield path, path.read_text(encoding="utf-8")
    for record in all_protocols():
        path = PAGES / f"{record.name}.md"
        if not path.exists() and record.encode_request.__module__.startswith("segue."):
            yield path, new_page(record)
    for group in groups():
        path = REFERENCE / f"{page_of(group)}.md"
        if not path.exists():
            yield path, new_reference_page(group)


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
