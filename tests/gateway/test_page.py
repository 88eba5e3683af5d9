"""The console of the gateway in a real browser: requests, one request opened, conversations, switching, keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.running import running
from gateway.test_console import fill
from inspector.browsing import PATIENCE, browser, needs_browser, sync_api
from segue.testing.emulator import Step

__all__ = ["browser"]
pytestmark = needs_browser
_EXPECTED = re.compile("status of 4|ERR_CONNECTION_REFUSED")
"""Answers that a test provokes, and what a page that is still open asks when the gateway has ended."""
KEY = "sgw-a-long-key-of-a-client"
DOLLARS = re.compile(r"\$[\d.]+")
PICTURE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    },
}
ASK = {"model": "m-anthropic", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def new_page(browser: Any) -> Iterator[Any]:
    contexts: list[Any] = []
    troubles: list[str] = []

    def open_page(url: str, width: int = 1440, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console",
            lambda message: (
                None if message.type != "error" or _EXPECTED.search(message.text) else troubles.append(message.text)
            ),
        )
        page.goto(f"{url}/segue")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


@pytest.mark.parametrize("has_key", [False, True])
def test_a_conversation_is_switched_on_the_page(new_page: Any, has_key: bool, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    more = f'[listen]\nkeys = ["file:{file}"]\n' if has_key else ""
    headers = {"x-session-id": "page", **({"x-api-key": KEY} if has_key else {})}

    def show(page: Any) -> None:
        if has_key:
            page.get_by_label("Key of this gateway").fill(KEY)
            page.get_by_role("button", name="Show").click()
        page.get_by_role("button", name="Conversations", exact=True).click()

    with running(store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        first = httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers)
        assert first.headers["x-segue-model"] == "anthropic/claude-opus-4-8"
        page = new_page(gateway.url)
        show(page)
        field = page.get_by_label("Model for the conversation of")
        field.fill("no/such")
        field.press("Enter")
        page.get_by_role("alert").filter(has_text="no/such").wait_for()
        field.fill("openai/gpt-5.4")
        field.press("Enter")
        page.get_by_role("status").filter(has_text="goes to openai/gpt-5.4").wait_for()
        second = httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers)
        assert second.headers["x-segue-model"] == "openai/gpt-5.4"
        page.reload()
        show(page)
        sync_api.expect(page.get_by_label("Model for the conversation of")).to_have_value("openai/gpt-5.4")


def test_a_late_answer_takes_away_neither_a_typed_model_nor_a_problem(new_page: Any, tmp_path: Path) -> None:
    """What the page asked before arrives last: first when the field has a text, then when a problem is shown."""
    held = list[Any]()

    def hold(route: Any) -> None:
        held.append(route)

    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers={"x-session-id": "page"})
        page, asked = new_page(gateway.url), "**/segue/conversations"
        page.locator("#models option").first.wait_for(state="attached")  # what this opening asked has arrived
        page.route(asked, hold, times=1)
        with page.expect_request(asked):
            page.reload()
        page.get_by_role("button", name="Conversations", exact=True).click()
        field = page.get_by_label("Model for the conversation of")
        field.fill("no/such")
        with page.expect_response(asked):
            held[0].continue_()
        page.wait_for_timeout(200)
        assert field.input_value() == "no/such"
        page.route(asked, hold, times=1)
        page.get_by_role("button", name="Conversations", exact=True).click()
        field.press("Enter")
        problem = page.get_by_role("alert").filter(has_text="no/such")
        problem.wait_for()
        with page.expect_response(asked):
            held[1].continue_()
        page.wait_for_timeout(200)
        assert problem.is_visible()


def test_requests_appear_live_and_one_is_opened_with_its_contents_and_a_replay(new_page: Any, tmp_path: Path) -> None:
    steps = Step(status=529), Step(text="A purple.")
    with running(*steps, store=f"sqlite:{tmp_path}/g.db", more='content = "full"\n') as gateway:
        page = new_page(gateway.url)
        page.get_by_text("There is no request yet.").wait_for()
        httpx2.post(f"{gateway.url}/v1/messages", json={**ASK, "metadata": {"user_id": "ada"}})
        row = page.locator("#rows tr")
        row.get_by_text("2 (overloaded)").wait_for()
        assert "anthropic/claude-opus-4-8" in row.inner_text()
        row.get_by_role("button", name="Open the request").press("Enter")  # with the keyboard
        box = page.get_by_role("dialog")
        box.locator(".row.one").get_by_text("A purple.").wait_for()
        assert box.locator(".rows li.row").nth(1).inner_text().split("\n")[-1] == "sent unchanged"
        box.get_by_text("What the client sent").click()
        box.get_by_text('"content": "hi"').first.wait_for()
        box.get_by_label("Model to replay for").fill("m-gemini")
        box.get_by_role("button", name="Replay without sending").click()
        box.get_by_text("Would be sent to google/gemini-3.1-pro-preview").wait_for()
        box.get_by_text("Bytes of the client").click()
        box.get_by_text('"messages": [{"role": "user"').or_(box.get_by_text('"messages":[{')).first.wait_for()
        box.get_by_role("button", name="Open the conversation").click()
        with page.expect_download() as download:
            box.get_by_role("button", name="Export as a segue session").click()
        assert b"A purple." in Path(download.value.path()).read_bytes()
        page.on("dialog", lambda dialog: dialog.accept())
        box.get_by_role("button", name="Erase").click()
        box.get_by_text("Erased:").wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("There is no request yet.").wait_for()


def test_a_request_is_sent_again_to_another_model_after_a_question(new_page: Any, tmp_path: Path) -> None:
    (tmp_path / "admin").write_text(KEY)
    more = f'content = "full"\n[listen]\nadmin_key = "file:{tmp_path / "admin"}"\n'
    with running(Step(text="A purple."), store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        httpx2.post(f"{gateway.url}/v1/messages", json=ASK)
        page = new_page(gateway.url)
        box, asked = page.get_by_role("dialog"), list[str]()
        answers = iter(["dismiss", "accept"])
        page.on("dialog", lambda dialog: (asked.append(dialog.message), getattr(dialog, next(answers))()))
        page.get_by_role("button", name="Open the request").first.wait_for()
        assert box.get_by_label("Model to replay for").count() == 0  # contents need the admin key
        page.route("**/segue/**", lambda route: route.continue_(headers={**route.request.headers, "x-api-key": KEY}))
        page.reload()
        page.get_by_role("button", name="Open the request").first.click()
        box.get_by_label("Model to replay for").fill("m-gemini")
        box.get_by_role("button", name="Send for real").click()  # and say no
        sent = len(gateway.upstream.emulator.requests)
        gateway.upstream.emulator.script.add(Step(text="A violet."))
        box.get_by_role("button", name="Send for real").click()
        box.locator(".row.one").get_by_text("A violet.").wait_for()
        assert sent == 1
        assert "It costs what the model costs" in asked[0]
        assert "A purple." in box.locator(".row.one").first.inner_text()


def test_figures_over_time_are_plotted(new_page: Any, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        for _ in range(3):
            httpx2.post(f"{gateway.url}/v1/messages", json=ASK)
        page = new_page(gateway.url)
        page.get_by_role("button", name="Over time").press("Enter")
        page.get_by_text("3 requests, 0 errors").wait_for()
        for name in ("Cost", "First byte", "From the cache", "Requests and errors"):
            assert page.get_by_role("img", name=name).count() == 1
        page.get_by_label("The last", exact=True).select_option("hour")
        page.get_by_text("Requests and errors as a table").click()
        page.get_by_role("cell", name="3", exact=True).wait_for()


LONG = [
    {"role": "user", "content": "Which colour should the curtains have?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Grey goes with purple.", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"room": "hall"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [PICTURE]}]},
    {"role": "user", "content": "And the carpet?"},
]


@pytest.mark.parametrize("width", [390, 1400])
def test_contents_are_shown_as_the_inspector_shows_them(new_page: Any, width: int, tmp_path: Path) -> None:
    with running(Step(text="A purple."), store=f"sqlite:{tmp_path}/g.db", more='content = "full"\n') as gateway:
        ask = {**ASK, "model": "m-responses", "messages": LONG, "tools": [{"name": "look", "input_schema": {}}]}
        headers = {"x-session-id": "page"}
        assert httpx2.post(f"{gateway.url}/v1/messages", json=ask, headers=headers, timeout=60).status_code == 200
        page = new_page(gateway.url, width)
        first = page.locator("#rows tr").first
        first.get_by_role("button", name="Which colour should the curtains have?").wait_for()  # its first words
        assert first.locator(".cost").inner_text().split() == [DOLLARS.findall(first.inner_text())[0], "measured"]
        if width == 390:  # what came out and what it cost are above everything else
            tops = first.locator("td").evaluate_all("cells => cells.map((it) => it.getBoundingClientRect().top)")
            names = first.locator("td").evaluate_all("cells => cells.map((it) => it.dataset.label)")
            assert {names[at] for at, top in enumerate(tops) if top < min(tops) + 8} == {"Result", "Cost"}
        first.get_by_role("button", name="Open the request").click()
        box = page.get_by_role("dialog")
        row = box.locator(".rows li.row.changed").filter(has_text="Grey goes with purple.")
        assert row.locator("del").first.inner_text() == "thinking"
        assert "thinking_as_text" in row.inner_text()
        assert "toolu_1" in row.inner_text()
        image = box.locator(".rows img")
        image.scroll_into_view_if_needed()
        assert image.evaluate("async (it) => (await it.decode(), it.naturalWidth)") == 1
        kinds = box.get_by_label("Changes by kind").locator("li")
        assert any("thinking_as_text" in text for text in kinds.all_inner_texts())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert box.evaluate("it => it.scrollHeight <= it.clientHeight")  # only the inside scrolls


def test_costs_are_shown_by_key_model_day_and_client(new_page: Any, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        for model in ("m-anthropic", "m-responses", "m-anthropic"):
            httpx2.post(f"{gateway.url}/v1/messages", json={**ASK, "model": model}, timeout=60)
        page = new_page(gateway.url)
        page.get_by_role("button", name="Costs").click()
        models = page.get_by_role("region", name="By model").or_(page.locator("section[aria-label='By model']"))
        models.get_by_text("openai/gpt-5.4").wait_for()
        text = models.first.inner_text()
        assert "anthropic/claude-opus-4-8" in text
        assert "measured" in text
        for name in ("By key", "By day (UTC)", "By client"):
            assert "measured" in page.locator(f"section[aria-label='{name}']").inner_text()


def test_a_key_is_asked_for_until_it_is_given_whatever_else_is_answered(new_page: Any, tmp_path: Path) -> None:
    (tmp_path / "admin").write_text(KEY)
    more = f'[listen]\nadmin_key = "file:{tmp_path / "admin"}"\n'
    with running(store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        page = new_page(gateway.url)
        page.goto("about:blank")  # else a late request of this first page may be the one that is held
        held: list[Any] = []
        page.route("**/segue/conversations*", lambda route: held.append(route))  # noqa: PLW0108 - not a built-in method
        page.goto(f"{gateway.url}/segue", wait_until="commit")
        while not held:
            page.wait_for_timeout(20)
        page.get_by_role("button", name="Keys").click()
        field = page.get_by_label("Key of this gateway")
        field.wait_for()
        with page.expect_response("**/segue/conversations*"):
            held[0].continue_()
        page.wait_for_timeout(200)
        assert field.is_visible()
        page.get_by_role("button", name="Costs").click()
        field.wait_for(state="hidden")


def test_keys_are_made_and_revoked_with_the_admin_key(new_page: Any, tmp_path: Path) -> None:
    (tmp_path / "admin").write_text(KEY)
    more = f'[listen]\nadmin_key = "file:{tmp_path / "admin"}"\n'
    with running(store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        page = new_page(gateway.url)
        page.get_by_role("button", name="Keys").click()
        page.get_by_label("Key of this gateway").fill(KEY)
        page.get_by_role("button", name="Show").click()
        page.get_by_text("There are no keys.").wait_for()
        page.get_by_label("Name", exact=True).fill("alice")
        page.get_by_label("Dollars a month").fill("20")
        page.get_by_role("button", name="Make a key").click()
        page.get_by_text("$0.00 of $20.00 a month").wait_for()
        secret = page.get_by_label("The new key").input_value()
        headers = {"x-api-key": secret}
        assert httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers).status_code == 200
        page.get_by_role("button", name="Costs").click()
        page.get_by_role("button", name="Keys").click()
        assert page.get_by_label("The new key").input_value() == ""  # it is shown once
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Revoke alice").click()
        page.get_by_role("status").filter(has_text="alice is revoked").wait_for()
        assert httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers).status_code == 401


def test_a_plan_is_shown_before_a_switch(new_page: Any, tmp_path: Path) -> None:
    with running(Step(text="A purple."), store=f"sqlite:{tmp_path}/g.db", more='content = "full"\n') as gateway:
        httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers={"x-session-id": "page"}, timeout=60)
        page = new_page(gateway.url)
        page.get_by_role("button", name="Open the conversation").click()
        box = page.get_by_role("dialog")
        box.get_by_text("Before you switch").click()
        table = box.locator(".plan table")
        table.get_by_text("openai/gpt-5.4").wait_for()
        assert "answers now" in table.locator("tr.present").inner_text()
        assert "Estimated" in box.locator(".plan").inner_text()
        box.get_by_label("Model to compare").fill("no/such")
        box.get_by_role("button", name="Compare").click()
        box.get_by_text("no/such").wait_for()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.proof)])
def test_many_requests_are_paged_and_filtered_on_the_server(new_page: Any, count: int, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        store = gateway.gateway.store.store
        assert store is not None
        fill(store, count)
        page = new_page(gateway.url)
        page.locator("#rows tr").nth(99).wait_for()
        first = page.locator("#rows tr").first.get_attribute("data-id")
        page.get_by_role("button", name="Older").click()
        sync_api.expect(page.locator("#rows tr").first).not_to_have_attribute("data-id", first)
        page.get_by_label("Filter").fill("claude-code opus")
        sync_api.expect(page.locator("#rows tr").filter(has_text="codex")).to_have_count(0)
        assert page.locator("#rows tr").count() == min(100, len(range(0, count, 35)))
        page.get_by_label("Filter").fill("nothing has this")
        page.get_by_text("No request has these words.").wait_for()


def find_axe() -> str | None:
    for name in ("axe_playwright_python", "axe_core_python"):
        found = find_spec(name)
        if found is not None and found.origin is not None:
            return next(map(str, Path(found.origin).parent.glob("axe*.js")), None)
    return None


@pytest.mark.proof
@pytest.mark.skipif(find_axe() is None, reason="of accessibility rules (no axe-core-python)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_on_any_view(new_page: Any, width: int, scheme: str, tmp_path: Path) -> None:
    with running(Step(status=529), store=f"sqlite:{tmp_path}/g.db", more='content = "full"\n') as gateway:
        httpx2.post(f"{gateway.url}/v1/messages", json=ASK)
        page = new_page(gateway.url, width, scheme)
        page.locator("#rows tr").first.wait_for()
        page.evaluate(Path(find_axe() or "").read_text("utf-8"))
        views = {
            "requests": lambda: None,
            "opened": lambda: (
                page.locator("#rows tr button").first.click(),
                page.get_by_text("The reply", exact=True).wait_for(),
            ),
            "thread": lambda: page.click("#opened-body button:text('Open the conversation')"),
            "plan": lambda: (page.click(".plan-fold summary"), page.locator(".plan table").wait_for()),
            "conversations": lambda: (page.keyboard.press("Escape"), page.click("nav [data-view=conversations]")),
            "series": lambda: (
                page.click("nav [data-view=series]"),
                page.get_by_text("1 request").wait_for(),
                page.get_by_text("Cost as a table").click(),
            ),
            "costs": lambda: (page.click("nav [data-view=costs]"), page.locator(".group").first.wait_for()),
            "keys": lambda: (page.click("nav [data-view=client-keys]"), page.get_by_role("alert").wait_for()),
            "drift": lambda: page.click("nav [data-view=drift]"),
        }
        for name, act in views.items():
            act()
            page.wait_for_timeout(50)
            found = page.evaluate(
                "axe.run().then(({ violations }) => violations.map((it) => [it.id, it.nodes[0].html]))"
            )
            assert found == [], name
        width_of_page = page.evaluate("document.documentElement.scrollWidth")
        assert width_of_page <= width
