"""The playground by keyboard alone, by name, on narrow and wide screens, dark and light."""

import pytest
from integration_tests.playground.open_playground import (
    ANSWER,
    TEXT,
    Playground,
    choose,
    complaints,
    finished,
    provider_noticed,
)
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page

pytestmark = NEEDS_CHROMIUM
WIDTHS = {360: 740, 800: 900, 1400: 900}
FOCUSED = "(document.activeElement.id || document.activeElement.textContent)"
IS_VISIBLE = """(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const { top, bottom, left, right } = document.activeElement.getBoundingClientRect();
  return outlineStyle !== 'none' && outlineWidth !== '0px' && bottom > 0 && top < innerHeight
    && left >= 0 && right <= innerWidth;
})()"""

ANSWER_IS_SEEN = "document.querySelector('[aria-label=Answer]').getBoundingClientRect().top < innerHeight - 50"


async def tab_to(page: Page, name: str) -> None:
    """Presses Tab until the keyboard is at the element with that id or text; it is seen at every step."""
    for _ in range(40):
        await page.press("Tab")
        assert await page.value(IS_VISIBLE), await page.value(FOCUSED)
        if await page.value(FOCUSED) == name:
            return
    raise AssertionError(f"no way to {name} by Tab")


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_walk_by_keyboard_alone(playground: Playground, page: Page, width: int) -> None:
    await page.resize(width, WIDTHS[width])
    await tab_to(page, "model")
    await page.press("ArrowDown")
    await page.until("document.querySelector('.model-name').textContent === 'Beta'")
    await tab_to(page, "prompt")
    await page.press("a", modifiers=2)
    await page.type("words")
    await page.press("Enter", modifiers=2)
    await finished(page, "Done")
    assert await page.value(ANSWER) == TEXT
    before = playground.provider.disconnects
    await page.press("a", modifiers=2)
    await page.type("endless")
    await tab_to(page, "send")
    await page.press("Enter")
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value(FOCUSED) == "stop"  # where the keyboard can do something
    assert await page.value(ANSWER_IS_SEEN)
    await page.press("Space")
    await provider_noticed(playground, before + 1)
    await finished(page, "Stopped")
    assert await page.value(FOCUSED) == "send"
    await tab_to(page, "curl")
    await page.press("Enter")
    await page.until("document.activeElement.parentElement.open")
    assert complaints(page) == []


async def test_no_width_scrolls_to_the_side(page: Page) -> None:
    await choose(page, "Alpha", "Beta")
    await page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for width, height in WIDTHS.items():
        await page.resize(width, height)
        assert await page.value("document.documentElement.scrollWidth") <= width


async def test_everything_has_its_name(page: Page) -> None:
    names = {
        "Model": "combobox", "Prompt": "textbox", "Send": "button", "Stop": "button", "Answer": "region",
        "Statistics": "region",
    }  # fmt: skip
    assert names.items() <= (await page.roles()).items()
    assert await page.value("[...document.getElementById('model').options].map((option) => option.text)") == [
        "Alpha",
        "Beta",
    ]
    assert await page.value("document.querySelector('[aria-label=Answer]').getAttribute('aria-live')") == "polite"


async def test_the_colours_follow_the_system(page: Page) -> None:
    colours = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await page.call("Emulation.setEmulatedMedia", features=[feature])
        colours.append(await page.value("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(243, 245, 248)", "rgb(15, 21, 27)"]


async def test_a_browser_that_asks_for_the_root_is_sent_to_the_page(playground: Playground, page: Page) -> None:
    await page.call("Page.navigate", url=playground.sidecar.url)
    await page.until("location.pathname === '/_ui/' && document.querySelector('.answer')")
    assert complaints(page) == []
