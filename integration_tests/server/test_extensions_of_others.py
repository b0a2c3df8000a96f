"""A server with an extension of another package, and the example extension in an environment of its own."""

import os
import signal
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from integration_tests.cli.commands import run_process
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import running_sidecar
from integration_tests.support.worker_processes import runs, worker_pids

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples" / "echo_extension"
ON = {"opensearch_ml_stream.extensions.acme": "true"}
SERVE = ("serve", "--port", "0", "--store", "sqlite:///:memory:")
ON_VARIABLE = {"MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__EXTENSIONS__ACME": "true"}
DECLARATION = """
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import Contribution, Extension, ServeOption, ServerProcess
from opensearch_ml_stream.plugin.settings.setting_metadata import setting

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    word: str = setting("hi", "Word of a greeting", name="acme.word", dynamic=True)


def check(settings):
    if settings.of(AcmeSettings).word == "wrong":
        raise InvalidRequest("acme.word is wrong")


@asynccontextmanager
async def open_acme(core):
    if core.settings.of(AcmeSettings).word == "raise":
        raise ValueError("no such word")
    yield Contribution()


def prepare(settings, folder):
    return settings.of(AcmeSettings).word == "process"


class Running:
    async def drain(self, seconds):
        pass

    def kill(self):
        pass


@asynccontextmanager
async def run(settings, folder, paths):
    (HERE / "process.pid").write_text(str(os.getpid()))
    try:
        yield Running()
    finally:
        (HERE / "ended").write_text(str(os.getpid()))


EXTENSION = Extension(
    name="acme",
    summary="Greets.",
    open="acme:open_acme",
    settings=AcmeSettings,
    check="acme:check",
    serve_options=(ServeOption("--word", "acme.word", "Word of a greeting."),),
    processes=(ServerProcess("greeter", prepare="acme:prepare", run="acme:run"),),
)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the package; what the test starts imports from it."""
    metadata = tmp_path / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[opensearch_ml_stream.extensions]\nacme = acme:EXTENSION\n")
    (tmp_path / "acme.py").write_text(DECLARATION)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_its_option_of_serve_sets_its_setting(installed: Path) -> None:
    with running_sidecar(installed, settings=ON, arguments=("--word", "hello")) as sidecar:
        shown = sidecar.client.get(
            "/_plugins/_ml/_settings", params={"include_defaults": "true", "flat_settings": "true"}
        )
    assert shown.json()["defaults"]["acme.word"] == "hello"


def test_settings_that_do_not_fit_are_refused_before_the_server_starts(installed: Path) -> None:
    ended = run_process(*SERVE, "--word", "wrong", **ON_VARIABLE)
    assert (ended.returncode, ended.stderr) == (2, "opensearch-ml-stream: acme.word is wrong\n")


def test_a_server_whose_extension_cannot_be_opened_does_not_start_and_names_it(installed: Path) -> None:
    ended = run_process(*SERVE, "--word", "raise", **ON_VARIABLE)
    assert ended.returncode == 1
    assert "the extension acme cannot be opened" in ended.stderr
    assert "no such word" in ended.stderr
    assert "before it served; the server stops" in ended.stderr


def test_its_process_runs_beside_the_workers_is_replaced_and_ends_with_the_server(installed: Path) -> None:
    file = installed / "process.pid"
    with running_sidecar(installed, settings=ON, arguments=("--word", "process")) as sidecar:
        eventually(file.exists)
        first = int(file.read_text())
        assert first in worker_pids(sidecar)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: file.read_text() not in ("", str(first)))
        second = int(file.read_text())
        assert sidecar.stop() == 0
    assert not runs(second)
    assert (installed / "ended").read_text() == str(second)
    assert "greeter" in sidecar.log.read_text()


def test_a_process_that_is_not_needed_does_not_run(installed: Path) -> None:
    with running_sidecar(installed, settings=ON) as sidecar:
        assert len(worker_pids(sidecar)) == 1


@pytest.mark.programs("curl")
def test_the_example_extension_does_what_it_says_where_it_is_installed(tmp_path: Path) -> None:
    """As `make build` tries its wheel; here it is installed by hand, from the checkout."""
    environment = tmp_path / "environment"
    venv.create(environment)
    (site,) = environment.glob("lib/python*/site-packages")
    metadata = site / "opensearch_ml_stream_echo-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: opensearch-ml-stream-echo\nVersion: 0.1.0\n")
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [line for group, of_group in points.items() for line in (f"[{group}]", *map(" = ".join, of_group.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (site / "checkout.pth").write_text("\n".join([str(EXAMPLE), *filter(os.path.isdir, sys.path)]))
    program = environment / "bin" / "opensearch-ml-stream"
    code = "from opensearch_ml_stream.plugin.__main__ import main\nmain()\n"
    program.write_text(f"#!{environment}/bin/python\n{code}")
    program.chmod(0o755)
    tried = subprocess.run([CHECKOUT / "scripts/try_extension.sh", environment], capture_output=True, text=True)
    assert tried.returncode == 0, tried.stderr
