"""A page in a headless Chromium, driven by the DevTools protocol: what somebody with a browser sees and does.

async with open_page(tmp_path) as page:
    await page.go_to(url)
    await page.click("Send")
    await page.until("document.body.innerText.includes('Done')")
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Any

import aiohttp
import pytest
from integration_tests.support.conditions import eventually_async

CHROMIUM = which("chromium") or which("google-chrome")
NEEDS_CHROMIUM = pytest.mark.programs("chromium")
# Key -> its Windows key code, and the text that it types.
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Space": (32, " "),
    "ArrowDown": (40, ""),
    "Escape": (27, ""),
    "a": (65, ""),
}
_START_SECONDS = 30
_WAIT_SECONDS = 20


class Page:
    """One page; one call at a time."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []  # of the domains that are enabled, such as `Log.enable`

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method of the DevTools protocol returns."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive(_WAIT_SECONDS)).data)
            if "method" in message:
                self.events.append(message)
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result

    async def go_to(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    async def value(self, expression: str) -> Any:
        """The value of JavaScript in the page, awaited if it is a promise."""
        evaluated = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in evaluated, evaluated["exceptionDetails"]
        return evaluated["result"].get("value")

    async def until(self, expression: str) -> None:
        """Waits until the JavaScript is true of the page."""
        await eventually_async(lambda: self.value(f"Boolean({expression})"))

    async def roles(self) -> dict[str, str]:
        """The role of each part of the page by its accessible name, as screen readers have them."""
        nodes = (await self.call("Accessibility.getFullAXTree"))["nodes"]
        pairs = [(node.get("name", {}).get("value"), node.get("role", {}).get("value")) for node in nodes]
        return {name: role for name, role in pairs if name and role not in ("StaticText", "InlineTextBox", "LabelText")}

    async def press(self, key: str, modifiers: int = 0) -> None:
        """Presses and releases a key of KEYS; modifiers as DevTools has them: 2 is Ctrl, 8 is Shift."""
        commands = ["selectAll"] if (key, modifiers) == ("a", 2) else []
        code, text = KEYS[key]
        event = {
            "key": text if key == "Space" else key,
            "code": key,
            "windowsVirtualKeyCode": code,
            "modifiers": modifiers,
        }
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, commands=commands, **event)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def type(self, text: str) -> None:
        """Types the text where the keyboard is."""
        await self.call("Input.insertText", text=text)

    async def resize(self, width: int, height: int) -> None:
        """Gives the page that many CSS pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def click(self, button: str) -> None:
        """Clicks the button with that text."""
        await self.value(
            f"[...document.querySelectorAll('button')].find(b => b.textContent === {json.dumps(button)}).click()"
        )


@asynccontextmanager
async def open_page(folder: Path) -> AsyncIterator[Page]:
    """A page of a new browser whose profile is in `folder`."""
    assert CHROMIUM is not None, "this test needs Chromium (Debian: chromium)"
    arguments = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *arguments, f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with aiohttp.ClientSession() as session:
            await eventually_async(lambda: _port(folder), _START_SECONDS)
            url = await _page_url(session, _port(folder))
            async with session.ws_connect(url, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()


def _port(folder: Path) -> str:
    """Where the browser listens, "" before it does."""
    file = folder / "DevToolsActivePort"
    return file.read_text().partition("\n")[0] if file.exists() else ""


async def _page_url(session: aiohttp.ClientSession, port: str) -> str:
    async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
        pages = [target for target in await response.json() if target["type"] == "page"]
    return str(pages[0]["webSocketDebuggerUrl"])
