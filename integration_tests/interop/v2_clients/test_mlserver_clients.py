"""MLServer's client programs, and what its tests ask of a server, in MLServer's own environment (`make peers`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.interop.peers.servers import command_of
from integration_tests.interop.v2_clients.client_programs import PROGRAMS, printed
from integration_tests.interop.v2_clients.served_words import QUESTION, WORDS, Served, serving

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]

WORD_BY_WORD = "".join(f"{[word]}\n" for word in WORDS)


@pytest.fixture(scope="module", params=[(1, False), (2, True)], ids=["1 worker", "2 workers, gzip"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), *request.param) as served:
        yield served


@pytest.fixture(scope="module")
def python() -> Path:
    python = command_of("mlserver").with_name("python")
    if not python.exists():
        pytest.fail("mlserver is not installed: run `make peers`")
    return python


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("mlserver_rest_unary.py", f"{[QUESTION]}\n"),
        ("mlserver_rest_stream.py", WORD_BY_WORD),
        ("mlserver_grpc_unary.py", f"{[QUESTION]}\n"),
        ("mlserver_grpc_stream.py", WORD_BY_WORD),
    ],
)
def test_a_program_written_for_mlserver_prints_what_it_prints_there(
    served: Served, python: Path, tmp_path: Path, program: str, expected: str
) -> None:
    assert printed(python, program, served, tmp_path) == expected


def test_what_mlservers_tests_ask_of_a_server_holds(served: Served, python: Path, tmp_path: Path) -> None:
    names = printed(python, "mlserver_checks.py", served, tmp_path).split()
    assert len(names) == (PROGRAMS / "mlserver_checks.py").read_text("utf-8").count("\ndef check_") > 10
