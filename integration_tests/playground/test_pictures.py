"""The pictures of the documentation, which a script takes."""

from pathlib import Path

from integration_tests.support.browser.chromium import NEEDS_CHROMIUM
from scripts.screenshots import take_pictures

pytestmark = NEEDS_CHROMIUM


async def test_the_pictures_that_the_pages_show_can_be_taken(tmp_path: Path) -> None:
    (tmp_path / "working").mkdir()
    await take_pictures(tmp_path, tmp_path / "working")
    taken = {file.name for file in tmp_path.glob("*.png")}
    docs = Path(__file__).parents[2] / "docs"
    assert taken == {file.name for file in docs.glob("playground*.png")}
    assert all(f"]({name})" in (docs / "playground.md").read_text() for name in taken)
