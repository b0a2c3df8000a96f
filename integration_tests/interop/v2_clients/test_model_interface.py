"""Models on MLServer's interface: MLServer and ours do the same with them, in MLServer's environment (`make peers`)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from integration_tests.interop.peers.servers import command_of
from integration_tests.interop.v2_clients.client_programs import CHECKOUT, PROGRAMS

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]


OURS = """
import sys
from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias
sys.modules["mlserver"] = None  # as where it is not installed
assert install_mlserver_alias()
del sys.modules["mlserver"]
"""
RUN = "import runpy; runpy.run_path('interface_checks.py', run_name='__main__')"


def outcomes(start: str, folder: Path) -> dict[str, str]:
    python = command_of("mlserver").with_name("python")
    if not python.exists():
        pytest.fail("mlserver is not installed: run `make peers`")
    for program in ("interface_checks.py", "interface_models.py"):
        shutil.copy(PROGRAMS / program, folder)
    command: list[str | Path] = [python, "-Wignore", "-c", f"import sys; sys.path.insert(0, '.')\n{start}\n{RUN}"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "extensions")}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    printed: dict[str, str] = json.loads(ended.stdout)
    return printed


def test_models_and_calls_come_out_as_with_mlserver_itself(tmp_path: Path) -> None:
    of_mlserver, ours = outcomes("", tmp_path), outcomes(OURS, tmp_path)
    assert of_mlserver.pop("package") == "mlserver.model"
    assert ours.pop("package") == "opensearch_ml_stream.runtimes.interface.model"
    assert len(ours) > 100
    assert ours == of_mlserver
