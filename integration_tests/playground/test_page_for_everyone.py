"""The playground by keyboard alone, by name, on narrow and wide screens, dark and light, and by axe in every state."""

import pytest
from integration_tests.playground.models_in_page import DIALOG, choose_code, press
from integration_tests.playground.open_playground import (
    ANSWER,
    OUTCOMES,
    QUESTIONS,
    TEXT,
    Playground,
    asked,
    choose,
    complaints,
    fill,
    finished,
    provider_noticed,
    ready,
    send,
)
from integration_tests.support.browser.barriers import barriers
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page

pytestmark = NEEDS_CHROMIUM
WIDTHS = {320: 640, 390: 844, 800: 900, 1400: 900, 3840: 2160}
FOCUSED = "(document.activeElement.id || document.activeElement.textContent)"
IS_VISIBLE = """(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const { top, bottom, left, right } = document.activeElement.getBoundingClientRect();
  return (document.activeElement.closest('.box') || outlineStyle !== 'none' && outlineWidth !== '0px')
    && bottom > 0 && top < innerHeight && left >= 0 && right <= innerWidth;
})()"""
SAID = "document.getElementById('announcer').textContent"
SPOKEN = "window.spoken"
WATCH_WHAT_IS_SPOKEN = """(() => {
  window.spoken = [];
  for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
    new MutationObserver(() => window.spoken.push(region.textContent))
      .observe(region, { childList: true, characterData: true, subtree: true });
})()"""


async def tab_to(page: Page, name: str) -> None:
    """Presses Tab until the keyboard is at the element with that id or text; it is seen at every step."""
    for _ in range(60):
        await page.press("Tab")
        if await page.value("document.activeElement === document.body"):
            continue  # the end of the page, from where it begins again
        assert await page.value(IS_VISIBLE), await page.value("document.activeElement.outerHTML")
        if await page.value(FOCUSED) == name:
            return
    raise AssertionError(f"no way to {name} by Tab")


@pytest.mark.parametrize("width", [390, 1400])
async def test_a_walk_by_keyboard_alone(playground: Playground, page: Page, width: int) -> None:
    await page.resize(width, WIDTHS[width])
    await page.value("document.activeElement.blur()")
    await tab_to(page, "model")
    await page.press("ArrowDown")
    await page.until("document.getElementById('model').selectedOptions[0].text === 'Beta'")
    await tab_to(page, "prompt")
    await page.type("words")
    await page.press("Enter")
    await page.until(f"{OUTCOMES}.length === 1")
    await finished(page)
    assert (await page.value(ANSWER), await page.value(FOCUSED)) == (TEXT, "prompt")
    assert await page.value("document.querySelector('.model-name').textContent") == "Beta"
    before = playground.provider.disconnects
    await page.type("endless")
    await tab_to(page, "send")
    await page.press("Enter")
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value(FOCUSED) == "stop"  # where the keyboard can do something
    await page.press("Escape")
    await provider_noticed(playground, before + 1)
    await finished(page, "stopped")
    assert await page.value(FOCUSED) == "prompt"
    await page.type("words again")
    await page.press("Enter", modifiers=8)
    assert await page.value("document.getElementById('prompt').value") == "words again\n"
    await page.press("Enter", modifiers=2)
    await page.until(f"{QUESTIONS}.length === 3")
    await finished(page)
    await page.value("document.getElementById('thread').focus()")
    await tab_to(page, "Edit")
    await page.press("Enter")
    await page.until("document.activeElement.closest('.edit')")
    await page.press("Escape")
    await page.until("document.activeElement.textContent === 'Edit'")
    assert complaints(page) == []


async def test_the_side_of_a_narrow_screen_opens_and_closes_by_keyboard(page: Page) -> None:
    await page.resize(390, 844)
    assert await page.value("document.getElementById('side').checkVisibility()") is False
    await page.value("document.getElementById('open-side').focus()")
    await page.press("Enter")
    await page.until("document.getElementById('side').checkVisibility()")
    assert await page.value(FOCUSED) == "close-side"
    assert await page.value("document.getElementById('open-side').getAttribute('aria-expanded')") == "true"
    await page.press("Escape")
    await page.until("!document.getElementById('side').checkVisibility()")
    assert await page.value(FOCUSED) == "open-side"


async def test_no_width_scrolls_to_the_side(page: Page) -> None:
    await choose(page, "Alpha", "Beta")
    await asked(page, "markdown")
    await asked(page, "thinking")
    await asked(page, "x" * 300, "failed")
    await page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for width, height in WIDTHS.items():
        await page.resize(width, height)
        wide = await page.value(
            "[document.documentElement, document.getElementById('thread')].map(e => e.scrollWidth - e.clientWidth)"
        )
        assert wide == [0, 0], width


async def test_everything_has_its_name(page: Page) -> None:
    await page.resize(1400, 900)
    names = {
        "Model": "combobox", "Compare with": "combobox", "Message": "textbox", "Send": "button",
        "Attach images or files": "button", "Conversation": "region", "New conversation": "button",
        "Colours": "combobox",
    }  # fmt: skip
    assert names.items() <= (await page.roles()).items()


async def test_a_screen_reader_is_told_the_beginning_and_the_end_and_no_token(
    playground: Playground, page: Page
) -> None:
    await page.value(WATCH_WHAT_IS_SPOKEN)
    await asked(page, "slowly")
    await page.until(f"{SPOKEN}.length >= 2")
    assert await page.value(SPOKEN) == ["Alpha is answering", f"Alpha: {TEXT * 6}"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_any_state(playground: Playground, page: Page, scheme: str) -> None:
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    await page.call("Page.setBypassCSP", enabled=True)  # of axe, which writes styles
    await page.go_to(playground.url + "?")
    await ready(page)
    await page.resize(1400, 900)
    found = {"empty": await barriers(page)}
    await send(page, "gated")
    await page.until(f"{ANSWER} === 'One'")
    found["answering"] = await barriers(page)
    playground.gates[-1].open()
    await finished(page)
    await asked(page, "thinking")
    await page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    found["tools"] = await barriers(page)
    await choose(page, "Alpha", "Beta")
    await asked(page, "markdown")
    found["two models"] = await barriers(page)
    await asked(page, "refused", "failed")
    await page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    found["failed"] = await barriers(page)
    await page.click("Edit")
    found["editing"] = await barriers(page)
    await page.click("Parameters")
    await fill(page, "setting-tools", "[")
    await page.click("Use these")
    await page.until("document.querySelector('dialog [role=alert]')")
    found["parameters"] = await barriers(page)
    await page.press("Escape")
    await page.resize(320, 640)
    found["narrow"] = await barriers(page)
    await page.value("document.getElementById('open-side').click()")
    found["side"] = await barriers(page)
    await page.value("location.hash = '#models'")
    await page.until("document.querySelector('#models-panel li')")
    found["models"] = await barriers(page)
    await page.resize(1400, 900)
    await press(page, "Alpha", "Test")
    await page.until("document.querySelector('.works')")
    await choose_code(page, "Alpha", "OpenAI", "Python")
    await page.value("document.querySelectorAll('.model details').forEach((part) => { part.open = true; })")
    found["tested"] = await barriers(page)
    await press(page, "Alpha", "Change")
    await page.until(DIALOG)
    await page.value("document.querySelectorAll('dialog details').forEach((part) => { part.open = true; })")
    await page.click("Add a budget")
    found["changed"] = await barriers(page)
    await page.press("Escape")
    await page.until(f"!{DIALOG}")
    await page.click("New model")
    await page.until(DIALOG)
    found["new"] = await barriers(page)
    assert {state: rules for state, rules in found.items() if rules} == {}


async def test_the_colours_follow_the_system_until_others_are_chosen(playground: Playground, page: Page) -> None:
    async def colour(scheme: str) -> str:
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return str(await page.value("getComputedStyle(document.body).backgroundColor"))

    light, dark = await colour("light"), await colour("dark")
    assert light != dark
    await fill(page, "theme", "Light")
    assert await colour("dark") == light
    await page.go_to(playground.url + "?")
    assert await colour("dark") == light
    await ready(page)
    await fill(page, "theme", "Dark")
    assert await colour("light") == dark


async def test_nothing_moves_for_who_wants_no_motion(page: Page) -> None:
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    await send(page, "endless")
    await page.until(f"{ANSWER} === 'One'")
    assert await page.value("document.getAnimations().length") == 0
    await page.click("Stop")


async def test_a_browser_that_asks_for_the_root_is_sent_to_the_page(playground: Playground, page: Page) -> None:
    await page.call("Page.navigate", url=playground.sidecar.url)
    await page.until("location.pathname === '/_ui/' && document.documentElement?.dataset.ready")
    assert complaints(page) == []
