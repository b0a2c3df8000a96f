"""Runs the programs of `programs/` as their users do: each in a process of its own, in any Python environment."""

import shutil
import subprocess
from pathlib import Path

from integration_tests.interop.v2_clients.served_words import DOCUMENTED_PORTS, Served

CHECKOUT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "programs"
_PROTO = CHECKOUT / "extensions/opensearch_ml_stream/extensions/v2/grpc/protos/inference.proto"


def printed(python: Path, program: str, served: Served, folder: Path) -> str:
    """What a program prints. Nothing is changed in it but its ports."""
    shutil.copy(PROGRAMS / "generate-request.json", folder)
    shutil.copy(_PROTO, folder)
    text = (PROGRAMS / program).read_text("utf-8")
    for documented, port in zip(DOCUMENTED_PORTS, (served.port, served.grpc_port), strict=True):
        text = text.replace(f"localhost:{documented}", f"localhost:{port}")
    (folder / program).write_text(text, "utf-8")
    ended = subprocess.run([python, program], cwd=folder, capture_output=True, text=True, timeout=50)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
