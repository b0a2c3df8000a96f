"""The pictures of the documentation, which a script takes."""

from pathlib import Path

from integration_tests.support.browser.chromium import NEEDS_CHROMIUM
from scripts.screenshots import take_pictures

pytestmark = NEEDS_CHROMIUM
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "playground.md").read_text("utf-8")


def pictures(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("playground*.png")}


async def test_the_pictures_that_the_pages_show_can_be_taken(tmp_path: Path) -> None:
    await take_pictures(tmp_path, tmp_path)
    assert pictures(tmp_path) == pictures(DOCS)
    assert all(f"]({name})" in PAGE for name in pictures(DOCS))
