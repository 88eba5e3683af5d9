# ruff: noqa: INP001, A001 - Sphinx reads this file by its place and these names
"""How the site is built: `make site`. The pages are plain Markdown that reads as well where nothing is built.

So that it does, two things are here that pages of Sphinx usually contain themselves: the table of contents, and the
documents that are at the root of the repository.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.logging import getLogger

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "src")]

from doc_reference import as_rest, directives, find_target, groups, page_of, public_names  # noqa: E402 - found by the line above

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "segue"
copyright = "The segue authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "segue"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

nitpicky = True
# Links to public names are checked. A signature may name types of other packages, and of modules that are not public.
nitpick_ignore_regex = [("py:.*", r"(?!segue\.[A-Z]\w*$).*")]
myst_heading_anchors = 3
# A report in a block is no language. In a signature, `type` is the class of Python, and also a field of many classes.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

CONTENTS: Final = {
    "Begin": {
        "getting-started": "Getting started",
        "guides/README": "Guides by task",
        "playground": "Playground",
        "why": "When to use segue",
        "switching": "Switching models",
        "recipes": "Recipes",
        "example": "The demo",
    },
    "Applications": {
        "client": "Sending, retry and fallback",
        "failures": "Failures",
        "reasoning": "Reasoning that stays valid",
        "windows": "When the window is too small",
        "counting": "Counting tokens",
        "speed": "Speed",
        "serving": "Serving clients",
        "frameworks/README": "Frameworks",
        "at-scale": "At scale",
    },
    "Agents": {
        "gateway": "Any agent on any model",
        "clients/README": "Clients",
        "histories": "Sessions of agents",
        "mcp": "Sessions for agents",
        "acp": "Sessions in an editor",
        "inspector": "The inspector",
    },
    "Platforms": {
        "team": "From laptop to team",
        "gateway-keys": "Keys and budgets",
        "gateway-operation": "Console, metrics and limits",
        "threat-model": "Threat model",
        "checks": "Checks in CI",
        "emulator": "The emulator",
        "probe": "Probe a server",
        "conformance": "Conformance of gateways",
        "scoreboard": "Scoreboard",
    },
    "Reference": {
        "command-line": "The command line",
        "types": "The types",
        "reference/README": "API reference",
        "glossary": "Glossary",
        "stored-format": "The stored format",
        "projection": "Projection",
        "rules": "Rules and dialects",
        "fields": "Shared fields",
        "server-tools": "Server tools",
        "protocols/README": "Protocols",
        "vendors": "Vendors",
    },
    "The project": {
        "stability": "Stability",
        "benchmarks/README": "Benchmarks",
        "first-minutes": "Time to the first answer",
        "architecture": "Architecture",
        "decisions/README": "Decisions",
        "contributing": "Contributing",
        "changelog": "Changelog",
    },
}
"""Caption -> page -> its short title: the heading of a page is the question that it answers."""
FOLDERS: Final = {
    "guides/README": "guides",
    "frameworks/README": "frameworks",
    "protocols/README": "protocols",
    "clients/README": "clients",
    "decisions/README": "decisions",
}
"""Page -> the folder of its pages, whose short titles are the texts of its links."""
LINK: Final = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.md\)")
REFERENCE: Final = {f"reference/{page_of(group)}": page_of(group) for group in groups()}
NOT_LINKED: Final = ("changelog", "decisions/")
"""Pages about earlier versions: their names may not exist any more."""
OUTSIDE: Final = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def _toctree(caption: str, pages: Iterable[str]) -> str:
    return "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"


def _complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Put into a page what it does not hold itself."""
    if page == "playground" and (Path(app.outdir) / page / "index.html").exists():  # scripts/build_playground.py
        start, _, rest = source[0].split("\n\n", 2)
        source[0] = f'{start}\n\n<p><a href="playground/index.html">Open the playground</a></p>\n\n{rest}'
    if page in OUTSIDE:
        text = (ROOT / OUTSIDE[page]).read_text(encoding="utf-8").replace("](docs/", "](")
        for name, file in OUTSIDE.items():
            text = text.replace(f"]({file})", f"]({name}.md)")
        source[0] = text
    if page == root_doc:
        if (Path(app.outdir) / "playground" / "index.html").exists():
            opened = '<a href="playground/index.html">Open the playground</a>'
            source[0] = source[0].replace("[Open the playground](playground.md)", opened)
        for caption, pages in CONTENTS.items():
            source[0] += _toctree(caption, (f"{title} <{name}>" for name, title in pages.items()))
    if page in FOLDERS:
        folder = Path(__file__).parent / FOLDERS[page]
        titles = {file: title.strip("`") for title, file in LINK.findall(source[0])}
        pages = sorted(path.stem for path in folder.glob("*.md") if path.stem != "README")
        listed = (f"{titles[name]} <{name}>" if name in titles else name for name in pages)
        source[0] += _toctree("", listed).replace(":caption: \n", "")
    if page == "reference/README":
        source[0] += _toctree("", tuple(REFERENCE.values())).replace(":caption: \n", "")
    if page in REFERENCE:
        source[0] += "\n```{eval-rst}\n" + directives(REFERENCE[page]) + "\n```\n"


def _convert(_: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    """Read the code of a docstring as Markdown does, with links."""
    lines[:] = as_rest("\n".join(lines)).split("\n")


def _link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link the public names in the text of a page to the reference."""
    page = app.env.docname
    if page.startswith(NOT_LINKED):
        return
    for code in tuple(doctree.findall(nodes.literal)):
        if isinstance(code.parent, (nodes.reference, nodes.title, pending_xref)):
            continue
        target = find_target(code.astext())
        if target is not None:
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refdoc=page, refexplicit=True, refwarn=True
            )
            code.replace_self(link)
            link += cast("nodes.Node", code)


def _find_missing(_: Sphinx, env: BuildEnvironment) -> None:
    """Warn of a public name without an entry: it would not be in `objects.inv`."""
    known = env.domains.python_domain.objects
    for name in public_names().values():
        if name not in known:
            getLogger(__name__).warning("the reference has no entry of %s", name)


def setup(app: Sphinx) -> None:
    """Let the pages be completed when they are read."""
    app.connect("source-read", _complete)
    app.connect("autodoc-process-docstring", _convert)
    app.connect("doctree-read", _link_names)
    app.connect("env-check-consistency", _find_missing)
