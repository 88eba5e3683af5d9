"""The inspector with the keyboard alone: every control is reached, its focus is visible, and comes back."""

from __future__ import annotations

import pytest

from inspector.browsing import (
    SUGGESTED,
    address,
    bare_address,
    browser,
    needs_browser,
    new_page,
    page,
    stored,
    sync_api,
    window,
)

__all__ = ["address", "bare_address", "browser", "new_page", "page", "window"]

pytestmark = needs_browser


def test_everything_can_be_done_by_keyboard(page):
    tabs = 0
    while not page.evaluate("document.activeElement.classList.contains('choose')"):
        page.keyboard.press("Tab")
        tabs += 1
        assert tabs < 10
    page.keyboard.press("2")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[1]}")
    for place in ("1", "2"):
        page.keyboard.press("j")
        sync_api.expect(page.locator("#place")).to_contain_text(f"{place} of")
    sync_api.expect(page.locator("#rows li.here")).to_be_focused()
    page.keyboard.press("w")
    sync_api.expect(page.locator("#wire-json")).to_contain_text('"messages"')
    page.keyboard.press("Escape")
    assert not page.is_visible("#wire-box")
    page.focus(".card:nth-child(2) .remove")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#targets .name")).to_have_text([SUGGESTED[0], SUGGESTED[2]])
    page.wait_for_selector(".choose:focus")
    page.focus("#other")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#text")).to_be_focused()
    page.keyboard.insert_text(stored({"role": "user", "content": "Typed"}))
    page.keyboard.press("Control+Enter")
    sync_api.expect(page.locator('li.row[data-at="1"] .words')).to_have_text("Typed")


FOCUSED = """() => {
  const node = document.activeElement;
  if (!node || node === document.body || node === document.documentElement) return null;
  const shown = node.type === 'file' ? node.parentElement.querySelector('label') : node;
  const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
  const name = node.id || node.className || node.tagName.toLowerCase();
  const card = [...document.querySelectorAll('.card')].indexOf(node.closest('.card'));
  return {
    name: card < 0 ? name : `${name} ${card}`,
    control: node.matches('button, input, select, textarea, summary, a'),
    outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""
"""What has the focus, and whether a person sees that; null for the page itself."""


def walk(page, key: str) -> list[str]:
    """Press a key until the focus comes back to where it was first, or to the page; every stop has to be visible."""
    names: list[str] = []
    for _ in range(400):
        page.keyboard.press(key)
        stop = page.evaluate(FOCUSED)
        if stop is None:
            if names:
                return names
            continue
        if len(names) > 10 and names[0] == stop["name"]:  # several pictures have the same name
            return names
        assert stop["outline"], f"{stop['name']} has the focus, and nothing shows it"
        assert stop["inside"], f"{stop['name']} has the focus outside of the screen"
        if stop["control"]:
            names.append(stop["name"])
    raise AssertionError(f"the focus never leaves {names[-1]}")


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=["a screen", "a phone"])
def test_the_tab_key_visits_every_control_and_shows_where_it_is(new_page, address, size):
    page = new_page(address, *size)
    page.wait_for_selector("#result[data-inspected]")
    names = walk(page, "Tab")
    for name in ("other", "choose 0", "remove 2", "target", "reasoning", "only", "previous", "next", "wire"):
        assert name in names, names
    assert set(walk(page, "Shift+Tab")) == set(names)


def test_the_focus_returns_from_the_request_and_from_the_form(page):
    page.focus("#wire")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#wire-json")).to_contain_text('"messages"')
    for _ in range(6):  # it stays inside while the dialog is open
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    sync_api.expect(page.locator("#wire")).to_be_focused()
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#wire-json")).to_contain_text('"messages"')
    page.focus("#close")
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#wire")).to_be_focused()
    page.focus("#other")
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#text")).to_be_focused()
    page.keyboard.press("Escape")
    sync_api.expect(page.locator("#other")).to_be_focused()
    assert not page.is_visible("#open")


def test_every_kind_of_control_answers_its_keys(page):
    page.focus("#reasoning")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    sync_api.expect(page.locator("#reasoning")).to_have_value("drop")
    page.wait_for_selector("#result[data-inspected]")
    page.focus("#only")
    page.keyboard.press("Space")
    assert page.get_attribute("#only", "aria-pressed") == "true"
    for name in ("#facts-box", "#compare"):
        page.focus(f"{name} summary")
        page.keyboard.press("Enter")
        assert page.get_attribute(name, "open") is not None
        page.keyboard.press("Space")
        assert page.get_attribute(name, "open") is None
    page.focus(".card:nth-child(3) .choose")
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[2]}")
    sync_api.expect(page.locator(".card:nth-child(3) .choose")).to_be_focused()
    page.focus("#next")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#place")).to_contain_text("1 of")
