"""Markdown as it grows: the same however it is cut, harmless whatever it holds, and cheap however long it is."""

import json
from typing import Any

import pytest
from integration_tests.playground.open_playground import MARKDOWN, Playground, asked, complaints
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM, Page

pytestmark = NEEDS_CHROMIUM
LINES, CHUNK = 10_000, 10
DRAWN = """async (texts, count) => {
  const { Markdown } = await import(new URL('static/markdown.js', location.href));
  const place = document.createElement('div');
  const markdown = new Markdown(place);
  const seen = new MutationObserver(() => {});
  seen.observe(place, { subtree: true, childList: true, characterData: true });
  const nodesOf = (node) => 1 + document.createTreeWalker(node).root.querySelectorAll?.('*').length || 1;
  const touched = [];
  for (const text of texts) {
    markdown.append(text);
    markdown.draw();
    const records = seen.takeRecords();
    touched.push(records.reduce((sum, { type, addedNodes, removedNodes }) => sum + (type === 'characterData' ? 1
      : [...addedNodes, ...removedNodes].reduce((nodes, node) => nodes + nodesOf(node), 0)), 0));
  }
  markdown.end();
  const whole = place.cloneNode(true);
  for (const wrapper of whole.querySelectorAll('.tail, code > span')) wrapper.replaceWith(...wrapper.childNodes);
  whole.normalize();
  for (const node of [...whole.childNodes]) if (node.nodeType === Node.TEXT_NODE && !node.data.trim()) node.remove();
  return { html: count ? '' : whole.innerHTML, text: whole.textContent, touched, last: place.textContent.slice(-200) };
}"""
CUTS = {
    "all of it": MARKDOWN,
    "lists": "- a\n- b\n  - c\n\n  more\n\n1. x\n2. y\n\nend\n",
    "a fence of tildes": "~~~~sh\nls\n~~~\n~~~~\nafter",
    "a fence in a list": "1. do\n   ```py\n   x = 1\n   ```\n2. done\n",
    "an open fence": "text\n```js\nlet a = `b`;\n``",
    "rules and headings": "Title\n===\n\n---\ntext\n***\n# One\n## Two\ntext *and* **more**\n",
    "quotes": "> a\n> b\n\n> c\n\nd",
    "windows": "a\r\n\r\n```\r\nb\r\n```\r\nc",
    "tables": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nafter\n",
}
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,hi) [w](vbscript:x)",
    "[x](<javascript:alert(1)>)\n\n<javascript:alert(1)>",
    "![x](https://elsewhere.example/pixel.png)",
    "![x](x\"onerror=\"alert(1))",
    "```\"><img src=x onerror=alert(1)>\ncode\n```",
    "```js\" onload=\"alert(1)\n</code></pre><script>alert(1)</script>\n```",
    "<svg><a xlink:href=javascript:alert(1)>x</a></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| <iframe srcdoc=x> |\n",
    "# <form action=x><input name=attributes>\n",
    "<a id=prompt name=prompt>x</a>",
    "[x](https://a.example 'title\" onclick=\"alert(1)')",
]  # fmt: skip


async def drawn(page: Page, texts: list[str], *, count: bool = False) -> Any:
    return await page.value(f"({DRAWN})({json.dumps(texts)}, {json.dumps(count)})")


@pytest.mark.parametrize("text", CUTS.values(), ids=CUTS)
async def test_it_is_the_same_however_it_is_cut(page: Page, text: str) -> None:
    whole = await drawn(page, [text])
    for size in (1, 2, 3, 7):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert (await drawn(page, pieces))["html"] == whole["html"], size


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_of_it_is_run_loaded_or_named(page: Page, text: str) -> None:
    for pieces in ([text], list(text)):
        attributes = await drawn_attributes(page, pieces)
        assert {name for name, _ in attributes} <= {
            "href", "class", "role", "tabindex", "aria-label", "target", "rel", "type", "align", "start",
        }  # fmt: skip
        assert all(value.startswith(("https:", "http:", "mailto:")) for name, value in attributes if name == "href")
        tags = {"script", "img", "svg", "iframe", "form", "input", "style", "math"}
        assert not tags & set(await drawn_tags(page, pieces))
    assert complaints(page) == []


async def drawn_attributes(page: Page, pieces: list[str]) -> list[list[str]]:
    found: list[list[str]] = await _elements(page, pieces, "[...e.attributes].map(a => [a.name, a.value])")
    return found


async def drawn_tags(page: Page, pieces: list[str]) -> list[str]:
    found: list[str] = await _elements(page, pieces, "[e.localName]")
    return found


async def _elements(page: Page, pieces: list[str], of_each: str) -> Any:
    return await page.value(
        "import(new URL('static/markdown.js', location.href)).then(({ Markdown }) => {"
        "const place = document.createElement('div'); const markdown = new Markdown(place);"
        f"for (const text of {json.dumps(pieces)}) {{ markdown.append(text); markdown.draw(); }} markdown.end();"
        f"return [...place.querySelectorAll('*')].flatMap((e) => {of_each}); }})"
    )


KINDS = {
    "paragraphs": lambda line: f"Line {line} of *them*.\n\n",
    "one paragraph": lambda line: f"Line {line} of them\n",
    "a list": lambda line: f"- item {line} is `here`\n",
    "a table": lambda line: f"| {line} | more |\n",
    "code": lambda line: f"    x = {line}\n",
}
HEADS = {"a table": "| a | b |\n|---|---|\n", "code": "```python\n"}


@pytest.mark.parametrize("kind", KINDS)
async def test_ten_thousand_lines_touch_as_little_of_the_page_as_the_first_ones(page: Page, kind: str) -> None:
    lines = [KINDS[kind](line) for line in range(LINES)]
    chunks = ["".join(lines[at : at + CHUNK]) for at in range(0, LINES, CHUNK)]
    seen = await drawn(page, [HEADS.get(kind, ""), *chunks], count=True)
    assert str(LINES - 1) in seen["last"]
    touched = seen["touched"]
    tenth = len(touched) // 10
    first, last = sum(touched[:tenth]), sum(touched[-tenth:])
    assert last < 1.5 * first + 100, (first, last)
    assert last / (LINES / 10) < 25  # of a line
    assert max(touched) < 2500


async def test_an_answer_is_rendered_and_its_code_copied(playground: Playground, page: Page) -> None:
    await page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    await asked(page, "markdown")
    assert await page.value("[...document.querySelectorAll('.text td')].map(e => e.textContent)") == [
        "blue", "450", "red", "650",
    ]  # fmt: skip
    assert await page.value("document.querySelector('.text strong').textContent") == "1/λ⁴"
    link = "document.querySelector('.text a')"
    assert await page.value(f"[{link}.href, {link}.target, {link}.rel]") == [
        "https://example.org/rayleigh", "_blank", "noopener noreferrer nofollow",
    ]  # fmt: skip
    await page.value("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    await page.value("document.querySelector('.text .copy-code').click()")
    await page.until("window.copied")
    assert await page.value("window.copied") == "def strength(nm: float) -> float:\n    return nm**-4\n"
    await page.value("document.querySelector('.answer .actions button').click()")
    await page.until("window.copied.startsWith('## Scattering')")
    assert complaints(page) == []


@pytest.mark.parametrize(
    ("kind", "block", "part"), [("a list", "ul", "li"), ("a table", "table", "tr"), ("one paragraph", "p", "br")]
)
async def test_what_is_long_is_still_one_block(page: Page, kind: str, block: str, part: str) -> None:
    """It is drawn in parts, which nobody sees: one list, one table, one paragraph."""
    lines = [KINDS[kind](line) for line in range(1000)]
    chunks = ["".join(lines[at : at + CHUNK]) for at in range(0, 1000, CHUNK)]
    tags = await drawn_tags(page, [HEADS.get(kind, ""), *chunks, "\n\nAnd then."])
    blocks = 2 if block == "p" else 1
    assert (tags.count(block), tags.count(part)) == (blocks, {"li": 1000, "tr": 1001, "br": 1000}[part])
