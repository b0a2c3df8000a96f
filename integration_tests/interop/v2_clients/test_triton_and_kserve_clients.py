"""The clients of Triton and KServe as they come, in an environment of their own (`make peers`)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.interop.peers.servers import command_of
from integration_tests.interop.v2_clients.client_programs import CHECKOUT, PROGRAMS, printed
from integration_tests.interop.v2_clients.served_words import Served, serving
from integration_tests.server.runtimes.faulty_models import is_ready
from integration_tests.support.conditions import eventually

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]

ECHO = CHECKOUT / "integration_tests/interop/side_by_side/models/echo"


@pytest.fixture(scope="module", params=[(1, False), (2, True)], ids=["1 worker", "2 workers, gzip"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(ECHO, folder / "models/echo", ignore=shutil.ignore_patterns("__pycache__"))
    workers, gzip = request.param
    with serving(folder, workers, gzip, folder / "models") as served:
        eventually(lambda: is_ready(served.sidecar, "echo"), 30)
        yield served


@pytest.mark.parametrize("program", ["triton_checks.py", "kserve_checks.py"])
def test_what_a_client_asks_by_default_is_answered(served: Served, tmp_path: Path, program: str) -> None:
    python = command_of("clients").with_name("python")
    if not python.exists():
        pytest.fail("tritonclient and kserve are not installed: run `make peers`")
    names = printed(python, program, served, tmp_path).split()
    assert len(names) == (PROGRAMS / program).read_text("utf-8").count("def check_") > 5
