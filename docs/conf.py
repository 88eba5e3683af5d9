# ruff: noqa: INP001, A001 - Sphinx reads this file by its place and these names
"""How the site is built: `make site`. The pages are plain Markdown that reads as well where nothing is built.

So that it does, two things are here that pages of Sphinx usually contain themselves: the table of contents, and the
documents that are at the root of the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parent.parent

project = "segue"
copyright = "The segue authors"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "segue"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

nitpicky = True
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # a report in a block is no language

CONTENTS: Final = {
    "Begin": ("getting-started", "example", "switching", "recipes"),
    "Understand": ("projection", "windows", "server-tools", "client", "failures", "stored-format", "at-scale", "speed"),
    "Programs": ("command-line", "inspector"),
    "Look up": ("protocols/README", "vendors", "rules", "names"),
    "The project": ("decisions/README", "benchmarks/README", "contributing", "changelog"),
}
FOLDERS: Final = {"protocols/README": "protocols", "decisions/README": "decisions"}
OUTSIDE: Final = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def _toctree(caption: str, pages: tuple[str, ...]) -> str:
    return "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"


def _complete(_: Sphinx, page: str, source: list[str]) -> None:
    """Put into a page what it does not hold itself."""
    if page in OUTSIDE:
        text = (ROOT / OUTSIDE[page]).read_text(encoding="utf-8").replace("](docs/", "](")
        for name, file in OUTSIDE.items():
            text = text.replace(f"]({file})", f"]({name}.md)")
        source[0] = text
    if page == root_doc:
        source[0] += "".join(_toctree(caption, pages) for caption, pages in CONTENTS.items())
    if page in FOLDERS:
        folder = Path(__file__).parent / FOLDERS[page]
        pages = tuple(sorted(path.stem for path in folder.glob("*.md") if path.stem != "README"))
        source[0] += _toctree("", pages).replace(":caption: \n", "")


def setup(app: Sphinx) -> None:
    """Let the pages be completed when they are read."""
    app.connect("source-read", _complete)
