"""The documentation site: the reference has every public name, and search finds guides first."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import segue
from segue._lazy import read_stub

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MODULES = (
    *("segue.events", "segue.wire", "segue.framing", "segue.protocols"),
    *("segue.corpus", "segue.testing", "segue.testing.emulator"),
)


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("doc_reference")


def public_names() -> set[str]:
    stub = Path(segue.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    names = {name for name, module in read_stub(stub)[0].items() if module != "segue"}
    for module in MODULES:
        names.update(importlib.import_module(module).__all__)
    return names - {"__version__"}


def test_every_public_name_is_in_one_group_of_the_reference(reference):
    entries = [
        getattr(importlib.import_module(entry.module), entry.name)
        for group in reference.groups().values()
        for entry in group
    ]
    names = [entry.name for group in reference.groups().values() for entry in group]
    assert set(names) == public_names()
    twice = {name for name in names if names.count(name) > 1}
    assert twice == {"Summary", "plan"}, "each of these is another class in another module"
    assert len({(name, id(value)) for name, value in zip(names, entries, strict=True)}) == len(names)


def test_the_groups_are_those_of_the_public_face(reference):
    stub = Path(segue.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    comments = re.findall(r"^    # (.+)$", stub[stub.index("__all__") :], re.MULTILINE)
    assert list(reference.groups())[: len(comments)] == comments
    for group in reference.groups():
        assert (ROOT / "docs" / "reference" / f"{reference.page_of(group)}.md").exists()


LINKS = {
    "a class": ("Context", "segue.Context"),
    "a function with its brackets": ("prepare()", "segue.prepare"),
    "a function by two words": ("get_model", "segue.get_model"),
    "a full name": ("segue.check", "segue.check"),
    "a method": ("Conversation.ask", "segue.Conversation.ask"),
    "a function by a word with one meaning": ("prepare", "segue.prepare"),
    "a word that is also a command": ("check", None),
    "a word that is no name": ("Contexts", None),
    "a method that does not exist": ("Conversation.sing", None),
    "a call": ("Policy(reasoning=...)", None),
}


@pytest.mark.parametrize(("code", "target"), LINKS.values(), ids=LINKS.keys())
def test_a_name_in_a_guide_is_linked(code, target, reference):
    assert reference.find_target(code) == target


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-q", "-b", "html", ROOT / "docs", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.proof
def test_the_inventory_has_every_public_object(site, reference):
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    found = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    assert set(reference.public_names().values()) <= found
    assert {
        "segue.Context.add",
        "segue.Conversation.ask",
        "segue.Conversation.switch",
        "segue.Stream.report",
        "segue.errors.LoadError",
        "segue.events",
    } <= found


@pytest.mark.proof
def test_guides_link_to_the_reference(site):
    page = (site / "client.html").read_text(encoding="utf-8")
    assert 'href="reference/send.html#segue.Conversation"' in page


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


GUIDE = re.compile(
    r"^(guides/|frameworks/|getting-started|example|switching|recipes|projection|windows|server-tools|client|failures|speed)"
)


SEARCHES = {
    "tool loop": "guides/tools.html",
    "async": "guides/async-streaming.html",
    "image": "guides/images.html",
    "mcp": "guides/mcp.html",
    "langchain": "frameworks/langchain.html",
    "cost": "guides/costs.html",
    "streaming": "",
    "fallback": "",
    "thinking": "",
}
"""What is searched for -> how the first result begins; any guide where it is empty."""


@pytest.mark.proof
@pytest.mark.skipif(CHROMIUM is None, reason="in a browser (no chromium)")
@pytest.mark.parametrize(("query", "expected"), SEARCHES.items(), ids=SEARCHES.keys())
def test_search_finds_a_guide_first(query, expected, address):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(f"{address}/search.html?q={query.replace(' ', '+')}")
            page.wait_for_selector("ul.search li a")
            page.wait_for_function("document.querySelector('.search-summary').innerText.includes('found')")
            first = page.locator("ul.search li a").first.get_attribute("href")
        finally:
            browser.close()
    assert first is not None
    assert GUIDE.match(first), first
    assert first.startswith(expected)
