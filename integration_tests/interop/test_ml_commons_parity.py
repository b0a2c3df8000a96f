"""The same 800 exchanges with a real ML Commons and with the sidecar: what differs is meant, and written down.

What ML Commons 3.6.0 responded is recorded in parity/outcomes-3.6.0.json; where ML_COMMONS_URL names a real one, the
test asks that.
"""

import json
import os
import re
import time
from fnmatch import fnmatchcase
from pathlib import Path

import httpx
import pytest
from integration_tests.interop.parity import (
    connector_updates,
    connectors,
    groups_and_tasks,
    inline_models,
    model_updates,
    models,
    predictions,
    request_forms,
    response_filters,
    searches,
)
from integration_tests.interop.parity.differences import CALLER_ERRORS, DIFFERENCES, ERROR_TEXTS
from integration_tests.interop.parity.exchanges import Exchanges, Outcome, Server
from integration_tests.interop.parity.scripted_provider import respond
from integration_tests.support.fake_provider import FakeProvider
from integration_tests.support.sidecars import Sidecar

SUBJECTS = (
    connectors,
    connector_updates,
    models,
    model_updates,
    groups_and_tasks,
    predictions,
    request_forms,
    response_filters,
    inline_models,
    searches,
)
SHARED = {**models.SHARED, **predictions.SHARED, **response_filters.SHARED}
EXCHANGES: Exchanges = {name: steps for subject in SUBJECTS for name, steps in subject.EXCHANGES.items()}
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ml-commons.md"
HERE = "test_ml_commons_parity.py"

Outcomes = dict[str, list[Outcome | None]]
Both = tuple[list[Outcome | None], list[Outcome | None]]

ML_COMMONS_URL = os.environ.get("ML_COMMONS_URL")
RECORDED: Outcomes = {
    name: [step and Outcome(**step) for step in steps]
    for name, steps in json.loads((Path(__file__).parent / "parity" / "outcomes-3.6.0.json").read_text("utf-8")).items()
}
RUN = format(time.time_ns() // 1_000_000 % 16**6, "x")


def reasons_for(name: str) -> list[str]:
    """The differences under which an exchange is listed."""
    return [what for what, patterns in DIFFERENCES.items() if any(fnmatchcase(name, one) for one in patterns)]


def rows() -> list[tuple[str, str]]:
    """The first and the last cell of each row of the page's tables: what differs, and the tests that show it."""
    lines = [line.strip("|").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [(cells[0].strip(), cells[-1].strip()) for cells in lines if cells[-1].strip() != "shown by"]


def test_no_exchange_is_there_twice_or_listed_twice() -> None:
    assert len(EXCHANGES) == sum(len(subject.EXCHANGES) for subject in SUBJECTS)
    assert [name for name in EXCHANGES if len(reasons_for(name)) > 1] == []
    patterns = [pattern for patterns in DIFFERENCES.values() for pattern in patterns]
    assert [one for one in patterns if not any(fnmatchcase(name, one) for name in EXCHANGES)] == []


def test_the_page_has_a_row_for_each_difference_and_no_other() -> None:
    assert [what for what, shown_by in rows() if HERE in shown_by] == list(DIFFERENCES)


def test_every_test_that_the_page_names_is_there() -> None:
    files = {path.name: path for folder in ("connectors", "rest_handlers", "plugin", "extensions", "integration_tests")
             for path in (ROOT / folder).rglob("test_*.py")}  # fmt: skip
    assert len(rows()) > len(DIFFERENCES)
    for what, shown_by in rows():
        named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", shown_by)
        assert named, what
        for file, test in named:
            assert file in files, (what, file)
            assert not test or f"def {test}(" in files[file].read_text("utf-8"), (what, test)


@pytest.mark.timeout(300)
async def test_ml_commons_and_the_sidecar_differ_where_the_page_says_so_and_nowhere_else(
    shared_sidecar: Sidecar,
) -> None:
    async with FakeProvider(respond) as provider, httpx.AsyncClient(timeout=30) as client:
        ours = Server(client, shared_sidecar.url, provider.url, RUN)
        await ours.share(SHARED)
        here = await ours.run_all(EXCHANGES)
        there = RECORDED if ML_COMMONS_URL is None else await _ask(ML_COMMONS_URL, client, provider, here)
    outcomes: dict[str, Both] = {name: (there[name], here[name]) for name in EXCHANGES}
    differing = {name for name, (one, other) in outcomes.items() if one != other}
    unlisted = {name: _described(outcomes[name]) for name in sorted(differing) if not reasons_for(name)}
    assert not unlisted, json.dumps(unlisted, indent=1, ensure_ascii=False)
    assert [name for name in EXCHANGES if reasons_for(name) and name not in differing] == []
    for name in differing:
        _check_kind(name, outcomes[name])


async def _ask(url: str, client: httpx.AsyncClient, provider: FakeProvider, here: Outcomes) -> Outcomes:
    """What a real ML Commons responds now.

    It looks ids up by their words, so that one of many ids finds the documents of another: what differs and is not
    listed is asked once more, with no other document beside it.
    """
    real = Server(client, url, provider.url, RUN)
    try:
        await real.share(SHARED)
        there = await real.run_all(EXCHANGES)
        await real.delete_all()
        doubtful = [name for name in EXCHANGES if there[name] != here[name] and not reasons_for(name)]
        return there | await real.run_each_alone({name: EXCHANGES[name] for name in doubtful}, SHARED)
    finally:
        await real.delete_all()


def _check_kind(name: str, outcomes: Both) -> None:
    """Errors that are listed to differ in their words only, or as the caller's, do so."""
    [kind] = reasons_for(name)
    for real, ours in zip(*outcomes, strict=True):
        if real == ours or real is None or ours is None:
            continue
        if kind == ERROR_TEXTS:
            assert real.status == ours.status >= 400, name
        if kind == CALLER_ERRORS:
            assert (real.status, ours.status // 100) == (500, 4), name


def _described(outcomes: Both) -> list[str]:
    return [f"{one}  <>  {other}" for one, other in zip(*outcomes, strict=True) if one != other]
