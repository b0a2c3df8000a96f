"""How long the fuzz tests run, and the inputs that once failed.

`make test` tries the same inputs each time, about a minute of them. `make fuzz` tries FUZZ_FACTOR times as many, others
each time. What fails is printed as small as it gets, as a file for `corpus/`, where it is tried first for ever.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, note, settings

FACTOR = float(os.environ.get("FUZZ_FACTOR", "1"))
TIMEOUT_SECONDS = 60 * max(FACTOR, 1)
_CORPUS = Path(__file__).parent / "corpus"


def tries(count: int) -> settings:
    """The settings of a test with so many examples in `make test`."""
    return settings(
        max_examples=max(1, int(count * FACTOR)),
        deadline=None,
        derandomize=FACTOR == 1,
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
