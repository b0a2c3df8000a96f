"""One server with all models that tests can share: a test that loads or unloads one has one of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.server.runtimes.faulty_models import MODELS
from integration_tests.server.runtimes.model_folder import COUNT, HANDLERS, write_handlers, write_model
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with the model `echo`, for a server of the test's own."""
    folder = tmp_path / "models"
    write_model(folder, "echo")
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeServer]:
    """Of two workers; its folder is watched."""
    folder = tmp_path_factory.mktemp("runtimes")
    models = folder / "models"
    echoes = ("echo", "undeployed", "predicted", "reloaded", "deleted", "changing")
    for name in echoes:
        write_model(models, name)
    write_model(models, "double", parameters={"extra": {"processes": 2}})
    write_handlers(models, "first", HANDLERS)
    write_handlers(models, "limited", COUNT.format(path="/limited"))
    for name in ("steady", "telling"):
        shutil.copytree(MODELS / name, models / name, ignore=shutil.ignore_patterns("__pycache__"))
    write_model(models, "broken", implementation="nowhere.Model")
    write_model(models, "unreadable")
    (models / "unreadable" / "model-settings.json").write_text('{"name": ')
    arguments = ("--models-watch", "--workers", "2", *GRPC)
    with serving_models(folder, models, *arguments, max_body_size="100000") as running:
        for name in (*echoes, "double", "first", "limited", "steady", "telling-v2"):
            running.wait_for(name)
        yield running
