"""Every promise of SECURITY.md names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| (?P<promise>[^|*]+) \| (?P<shown>[^|]*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")
PROMISES = dict(_ROW.findall((ROOT / "SECURITY.md").read_text("utf-8").partition("\n## Promises\n")[2]))


def test_there_are_promises() -> None:
    assert len(PROMISES) > 20


@pytest.mark.parametrize("promise", [promise for promise in PROMISES if promise not in ("promise", "---")])
def test_a_promise_is_shown_by_its_tests(promise: str) -> None:
    for shown in PROMISES[promise].split(", "):
        match = _TEST.fullmatch(shown)
        assert match, f"no test: {shown}"
        source = (ROOT / match["file"]).read_text("utf-8")
        assert re.search(rf"^(async )?def {match['name']}\(", source, re.MULTILINE)
