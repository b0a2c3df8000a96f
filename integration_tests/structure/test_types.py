"""basedpyright, the engine that editors use, over the whole tree: every import resolved, no error."""

import json
import subprocess
import sys
from typing import Any

import pytest
from integration_tests.structure.modules import CHECKOUT


@pytest.mark.timeout(240)
def test_basedpyright_finds_nothing() -> None:
    command = [sys.executable, "-m", "basedpyright", "--outputjson"]
    printed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True).stdout
    report: dict[str, Any] = json.loads(printed)
    problems = [
        f"{entry['file']}:{entry['range']['start']['line'] + 1}: {entry['message']}"
        for entry in report["generalDiagnostics"]
    ]
    assert problems == []
    assert report["summary"]["filesAnalyzed"] > 300
