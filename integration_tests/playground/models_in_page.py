"""The models of the page, as somebody who looks at them finds their parts."""

import json

from integration_tests.support.browser.chromium import Page

NAMES = "[...document.querySelectorAll('.model h2')].map((title) => title.textContent).join()"
DIALOG = "document.querySelector('dialog')"
_CARD = "[...document.querySelectorAll('.model')].find((card) => card.querySelector('h2').textContent === {name})"
_LABELLED = "[...{within}.querySelectorAll('label')].find((label) => label.firstChild.textContent === {label}).control"


def card(name: str) -> str:
    """The expression of the model of that name."""
    return _CARD.format(name=json.dumps(name))


async def show_models(page: Page, *names: str) -> None:
    """Goes to the models; returns when these are listed."""
    await page.value("location.hash = '#models'")
    await page.until(f"!document.getElementById('models-panel').hidden && {NAMES} === {json.dumps(','.join(names))}")


async def press(page: Page, name: str, button: str) -> None:
    """Presses a button of a model by the keyboard."""
    await page.value(f"{_button(name, button)}.focus()")
    await page.press("Enter")


async def click(page: Page, name: str, button: str) -> None:
    """Clicks a button of a model, wherever the focus is."""
    await page.value(f"{_button(name, button)}.click()")


def _button(name: str, text: str) -> str:
    return f"[...{card(name)}.querySelectorAll('button')].find((one) => one.textContent === {json.dumps(text)})"


async def fill_in(page: Page, fields: dict[str, str]) -> None:
    """Fills fields of the open dialog, by their labels."""
    await page.until(DIALOG)
    for label, text in fields.items():
        field = _LABELLED.format(within=DIALOG, label=json.dumps(label))
        await page.value(
            f"(() => {{ const field = {field}; const option = [...(field.options ?? [])].find((one) => one.text === "
            f"{json.dumps(text)}); if (option) field.value = option.value; else field.value = {json.dumps(text)};"
            "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true})); })()"
        )


async def choose_code(page: Page, name: str, door: str, language: str) -> str:
    """The code that calls a model by a door in a language, as it is shown."""
    part = f"{card(name)}.querySelector('.code-part')"
    await page.value(f"{part}.open = true")
    await page.until(f"{part}.querySelector('pre').textContent")
    for index, text in enumerate((door, language)):
        await page.value(
            f"(() => {{ const field = {part}.querySelectorAll('select')[{index}];"
            f"field.value = [...field.options].find((one) => one.text === {json.dumps(text)}).value;"
            "field.dispatchEvent(new Event('change')); })()"
        )
    return str(await page.value(f"{part}.querySelector('pre').textContent"))
