"""What axe finds wrong with a page for people who use it otherwise than by sight and mouse."""

from functools import cache
from pathlib import Path
from typing import Any

from integration_tests.support.browser.chromium import Page

_AXE = Path(__file__).parent / "axe" / "axe.min.js"


async def barriers(page: Page) -> list[str]:
    """Each rule that is broken, with the elements that break it."""
    await page.value(f"window.axe ? 0 : (() => {{ {_script()} }})(), 0")
    found: dict[str, Any] = await page.value(
        "axe.run(document, {resultTypes: ['violations']}).then(({ violations }) => ({ violations }))"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:150]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@cache
def _script() -> str:
    return _AXE.read_text("utf-8")
