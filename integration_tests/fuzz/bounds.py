"""How long the fuzz tests run, and the inputs that once failed.

`make test` tries a small sample, the same inputs each time. `make fuzz` tries FUZZ_FACTOR minutes of them, others each
time. What fails is printed as small as it gets, as a file for `corpus/`, where it is tried first for ever.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, note, settings
from integration_tests.support.sidecars import Sidecar

IS_SAMPLE = "FUZZ_FACTOR" not in os.environ
FACTOR = 0.2 if IS_SAMPLE else float(os.environ["FUZZ_FACTOR"])
TIMEOUT_SECONDS = 60 * max(FACTOR, 1)
_CORPUS = Path(__file__).parent / "corpus"


def tries(count: int) -> settings:
    """The settings of a test with so many examples in a minute of fuzzing."""
    return settings(
        max_examples=max(1, int(count * FACTOR)),
        deadline=None,
        derandomize=IS_SAMPLE,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def corpus(target: str) -> list[Any]:
    """The inputs of `corpus/TARGET/`, each a JSON file, as pytest's parameters."""
    files = sorted((_CORPUS / target).glob("*.json"))
    return [pytest.param(json.loads(file.read_text("utf-8")), id=file.stem) for file in files]


def show(target: str, **case: Any) -> None:
    """Print the input if it is the one that fails."""
    note(f"a file for corpus/{target}: {json.dumps(case)}")


def is_well(sidecar: Sidecar) -> bool:
    """Whether it responds, and has met no defect so far."""
    assert "Traceback" not in sidecar.log.read_text(), sidecar.log.read_text()[-4_000:]
    return sidecar.client.get("/_health/ready").status_code == 200
