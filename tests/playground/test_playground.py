"""The playground in a real browser, built and served as static files: paste, see, share, and open it offline."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from cli.running import SESSION
from inspector.browsing import CHROMIUM, PATIENCE, QUIET, needs_browser, sync_api
from playground.serving import serve
from segue import check, convert

pytestmark = [needs_browser, pytest.mark.proof]
ROOT = Path(__file__).parents[2]
TARGET = "anthropic/claude-opus-4-8"
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
BODY = {
    "model": "claude-opus-4-8",
    "max_tokens": 100,
    "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": "And?"},
    ],
}
"""A request that the provider refuses: a call without a result."""
SIZES = {"screen": (1440, 900, "light"), "dark screen": (1440, 900, "dark"), "phone": (390, 844, "dark")}
PICTURES = Path(os.environ["SEGUE_PICTURES"]) if "SEGUE_PICTURES" in os.environ else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The playground, built; the runtime is kept between runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        script = importlib.import_module("build_playground")
    made = tmp_path_factory.mktemp("site") / "playground"
    try:
        script.build(made, ROOT / ".playground")
    except script.NotBuiltError as error:
        pytest.skip(f"of the playground ({error})")
    return made


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The source of axe-core, which checks accessibility."""
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(["npm", "pack", "--silent", "axe-core@4.14.0"], cwd=folder, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("with axe-core (npm cannot fetch it)")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extract("package/axe.min.js", folder, filter="data")
    return (folder / "package" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser with a profile, as people have one: it keeps the runtime and the compiled code."""
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        profile = str(tmp_path_factory.mktemp("profile"))
        opened = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=list(QUIET), permissions=["clipboard-read", "clipboard-write"]
        )
        opened.set_default_timeout(PATIENCE)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(folder):
    with serve(folder) as found:
        yield found


@pytest.fixture(scope="module")
def page(browser, address):
    """One page for all tests: each boots nothing, and opens its own text."""
    asked: list[str] = []
    troubles: list[str] = []
    page = browser.new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    browser.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#models option", state="attached")
    yield page
    assert troubles == []
    assert {url for url in asked if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))} == set()


def paste(page, text: str) -> None:
    if not page.is_visible("#text"):
        page.click("#other")
    page.fill("#text", text)
    page.press("#text", "Control+Enter")


def inspect(page, text: str) -> None:
    page.evaluate("() => delete document.getElementById('result').dataset.inspected")
    paste(page, text)
    page.wait_for_selector("#result[data-inspected]")


def test_a_request_is_checked_and_shown_beside_the_fixed_one(page):
    inspect(page, json.dumps(BODY))
    sync_api.expect(page.locator("#given-line")).to_have_text("1 known violation in the request as it is")
    (violation,) = check(BODY, protocol="anthropic-messages")
    assert violation.message in page.locator("#given li").text_content()
    assert page.locator("#targets .name").first.inner_text() == TARGET
    sync_api.expect(page.locator("#facts-line")).to_contain_text("no known violations")
    assert "result_missing" in page.locator("#rows").inner_text()
    page.locator("#sent-to").click()
    page.keyboard.press("w")
    sync_api.expect(page.locator("#wire-json")).not_to_be_empty()
    assert json.loads(page.locator("#given-json").text_content()) == BODY
    assert json.loads(page.locator("#wire-json").text_content()) == convert(BODY, target=TARGET).body
    page.keyboard.press("Escape")


@pytest.mark.parametrize(("text", "kind"), [("prompt is too long: 210000 tokens > 200000 maximum", "overflow")])
def test_an_error_is_classified(page, text, kind):
    paste(page, text)
    sync_api.expect(page.locator("#failure")).to_contain_text(kind)
    sync_api.expect(page.locator("#failure")).to_contain_text("210,000 of at most 200,000")


def test_a_history_is_shown_for_other_models(page):
    inspect(page, SESSION.read_text())
    sync_api.expect(page.locator("#failure")).to_be_hidden()
    assert "27 messages" in page.locator("#opened").inner_text()
    assert page.locator("#rows .changes li").count() > 0


def test_nothing_can_be_sent_elsewhere_by_the_page_or_its_worker(page):
    """The worker has the policy of the page, because it is made of a blob."""
    other = "http://127.0.0.1:9/"
    blocked = """(url) => new Promise((resolve) => {
        addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective), { once: true });
        fetch(url).catch(() => {});
    })"""
    assert page.evaluate(blocked, other) == "connect-src"
    in_worker = """async (url) => {
        const code = `addEventListener("securitypolicyviolation", (event) => postMessage(event.violatedDirective));
            fetch("${url}").catch(() => {});`;
        const blob = new Blob([code], { type: "text/javascript" });
        const worker = new Worker(URL.createObjectURL(blob), { type: "module" });
        return new Promise((resolve) => { worker.onmessage = (event) => resolve(event.data); });
    }"""
    assert page.evaluate(in_worker, other) == "connect-src"


def test_the_content_is_in_a_link_only_when_one_is_asked_for(page, browser):
    inspect(page, json.dumps(BODY))
    page.keyboard.press("2")
    assert "text=" not in page.url
    page.click("#link")
    sync_api.expect(page.locator("#status")).to_have_text("The link is copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    assert "#text=" in link
    assert "text=" not in page.url
    other = browser.new_page()
    other.goto(link)
    other.wait_for_selector("#result[data-inspected]")
    assert json.loads(other.input_value("#text")) == BODY
    sync_api.expect(other.locator("#targets [aria-pressed=true] .name")).to_have_text(
        page.locator("#targets [aria-pressed=true] .name").inner_text()
    )
    other.close()


def test_all_of_it_can_be_done_with_the_keyboard(page):
    page.reload()
    page.wait_for_selector("#models option", state="attached")
    page.focus("#text")
    page.keyboard.insert_text(json.dumps(BODY))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "inspect"
    page.keyboard.press("Enter")
    page.wait_for_selector("#result[data-inspected]")
    page.keyboard.press("3")
    sync_api.expect(page.locator("#targets [aria-pressed=true] .name")).to_contain_text("google/")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('li.row.changed')")


@pytest.mark.parametrize("size", SIZES)
def test_it_fits_the_screen_and_is_accessible(page, axe, size):
    width, height, scheme = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    inspect(page, json.dumps(BODY))
    sync_api.expect(page.locator("#facts-line")).to_contain_text("bytes")
    for name in ("result", "form"):
        if name == "form":
            page.click("#other")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
        if PICTURES:
            page.screenshot(path=PICTURES / f"playground-{name}-{size.replace(' ', '-')}.png")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_it_opens_and_answers_without_a_network_after_the_first_visit(page, browser, folder):
    with serve(folder) as own:  # its server ends; offline is offline
        first = browser.new_page()
        first.goto(own)
        first.evaluate("navigator.serviceWorker.ready.then(() => null)")
        first.close()
    later = browser.new_page()
    later.goto(own)
    inspect_first = later.locator("#result")
    later.fill("#text", json.dumps(BODY))
    later.click("#inspect")
    sync_api.expect(inspect_first).to_be_visible()
    sync_api.expect(later.locator("#given-line")).to_have_text("1 known violation in the request as it is")
    later.close()
