"""Every kind of input in docs/limits.md names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| (?P<kind>[^|]+) \| [^|]+ \| (?P<tests>`[^|]*`) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")
_SECTION = (ROOT / "docs/limits.md").read_text("utf-8").partition("\n## What bounds each kind of input\n")[2]
KINDS = dict(_ROW.findall(_SECTION.partition("\n## ")[0]))


def test_there_are_kinds_of_inputs() -> None:
    assert len(KINDS) > 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_is_held_by_its_tests(kind: str) -> None:
    for shown in KINDS[kind].split(", "):
        match = _TEST.fullmatch(shown)
        assert match, f"no test: {shown}"
        source = (ROOT / match["file"]).read_text("utf-8")
        assert re.search(rf"^(async )?def {match['name']}\(", source, re.MULTILINE)
