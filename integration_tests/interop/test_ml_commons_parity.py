"""The same 700 exchanges with a real ML Commons and with the sidecar: what differs is meant, and written down."""

import asyncio
import json
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
    model_updates,
    models,
    predictions,
    request_forms,
)
from integration_tests.interop.parity.differences import CALLER_ERRORS, DIFFERENCES, ERROR_TEXTS
from integration_tests.interop.parity.exchanges import Exchanges, Outcome, Server
from integration_tests.interop.parity.scripted_provider import respond
from integration_tests.support.fake_provider import FakeProvider
from integration_tests.support.sidecars import running_sidecar

SUBJECTS = (
    connectors,
    connector_updates,
    models,
    model_updates,
    groups_and_tasks,
    predictions,
    request_forms,
)
EXCHANGES: Exchanges = {name: steps for subject in SUBJECTS for name, steps in subject.EXCHANGES.items()}
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ml-commons.md"
HERE = "test_ml_commons_parity.py"

Both = tuple[list[Outcome | None], list[Outcome | None]]


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
    files = {path.name: path for folder in ("connectors", "rest_handlers", "plugin", "integration_tests")
             for path in (ROOT / folder).rglob("test_*.py")}  # fmt: skip
    assert len(rows()) > len(DIFFERENCES)
    for what, shown_by in rows():
        named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", shown_by)
        assert named, what
        for file, test in named:
            assert file in files, (what, file)
            assert not test or f"def {test}(" in files[file].read_text("utf-8"), (what, test)


@pytest.mark.ml_commons
@pytest.mark.timeout(300)
async def test_ml_commons_and_the_sidecar_differ_where_the_page_says_so_and_nowhere_else(
    ml_commons_url: str, tmp_path: Path
) -> None:
    run = format(time.time_ns() // 1_000_000 % 16**6, "x")
    with running_sidecar(tmp_path) as sidecar:
        async with FakeProvider(respond) as provider, httpx.AsyncClient(timeout=30) as client:
            real = Server(client, ml_commons_url, provider.url, run)
            ours = Server(client, sidecar.url, provider.url, run)
            try:
                outcomes = await _run_both(real, ours)
            finally:
                await real.delete_all()
    differing = {name for name, (one, other) in outcomes.items() if one != other}
    unlisted = {name: _described(outcomes[name]) for name in sorted(differing) if not reasons_for(name)}
    assert not unlisted, json.dumps(unlisted, indent=1, ensure_ascii=False)
    assert [name for name in EXCHANGES if reasons_for(name) and name not in differing] == []
    for name in differing:
        _check_kind(name, outcomes[name])


async def _run_both(real: Server, ours: Server) -> dict[str, Both]:
    shared = {**models.SHARED, **predictions.SHARED}

    async def run(server: Server) -> dict[str, list[Outcome | None]]:
        await server.share(shared)
        return await server.run_all(EXCHANGES)

    there, here = await asyncio.gather(run(real), run(ours))
    both = {name: (there[name], here[name]) for name in EXCHANGES}
    # ML Commons looks ids up by their words, so that one of many ids finds the documents of another: once more, alone.
    doubtful = {name: EXCHANGES[name] for name, (one, other) in both.items() if one != other and not reasons_for(name)}
    await real.delete_all()
    there, here = await asyncio.gather(real.run_each_alone(doubtful, shared), ours.run_each_alone(doubtful, shared))
    return both | {name: (there[name], here[name]) for name in doubtful}


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
