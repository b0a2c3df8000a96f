"""A server with one model that runs in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    write_model(folder, "echo")
    return folder


@pytest.fixture
def server(tmp_path: Path, models: Path) -> Iterator[RuntimeServer]:
    with serving_models(tmp_path, models) as running:
        running.wait_for("echo")
        yield running
