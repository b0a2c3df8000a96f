"""Every promise of SECURITY.md, and every kind of input in docs/limits.md, names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROMISE = re.compile(r"^\| ([^|*]+) \| ([^|]*) \|$", re.MULTILINE)
_KIND = re.compile(r"^\| ([^|]+) \| [^|]+ \| (`[^|]*`) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")


def _section(page: str, title: str) -> str:
    return (ROOT / page).read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


PROMISES = dict(_PROMISE.findall(_section("SECURITY.md", "Promises"))[1:])  # behind the head of the table
KINDS = dict(_KIND.findall(_section("docs/limits.md", "What bounds each kind of input")))


def test_there_are_promises_and_kinds_of_inputs() -> None:
    assert len(PROMISES) > 20 and len(KINDS) > 30


@pytest.mark.parametrize(("promise", "tests"), {**PROMISES, **KINDS}.items())
def test_a_promise_is_shown_by_its_tests(promise: str, tests: str) -> None:
    for shown in tests.split(", "):
        match = _TEST.fullmatch(shown)
        assert match, f"no test: {shown}"
        source = (ROOT / match["file"]).read_text("utf-8")
        assert re.search(rf"^(async )?def {match['name']}\(", source, re.MULTILINE)
