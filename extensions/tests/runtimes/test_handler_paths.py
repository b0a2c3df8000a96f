"""Whose the paths of custom handlers are, and which handler a request's path means."""

import logging
from pathlib import Path

import pytest

from opensearch_ml_stream.extensions.runtimes.keeper.keeper import HandlerPaths
from opensearch_ml_stream.extensions.runtimes.service.custom_handlers import RuntimeHandlers
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    HandlerStatus,
    ModelStatus,
    write_status,
)
from opensearch_ml_stream.rest_handlers.base_path import Paths


def loaded(*paths: str) -> ModelStatus:
    return ModelStatus("READY", handlers=[HandlerStatus("POST", path) for path in paths])


PATHS = Paths(("/v2", "/generate-stream"))


def shared_out(paths: HandlerPaths, **models: ModelStatus) -> dict[str, list[tuple[str, int]]]:
    paths.share_out(models)
    return {name: [(one.path, one.number) for one in model.handlers] for name, model in models.items()}


def test_the_model_that_had_a_path_first_keeps_it_until_it_is_unloaded(caplog: pytest.LogCaptureFixture) -> None:
    paths = HandlerPaths(PATHS)
    assert shared_out(paths, a=loaded(), b=loaded("/x")) == {"a": [], "b": [("/x", 0)]}
    for _ in range(2):
        assert shared_out(paths, a=loaded("/x", "/y"), b=loaded("/x")) == {"a": [("/y", 1)], "b": [("/x", 0)]}
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "runtime a: the custom handler POST /x is not served: it is that of model b, loaded before"
    ]
    assert shared_out(paths, a=loaded("/x", "/y"), b=loaded()) == {"a": [("/x", 1), ("/y", 0)], "b": []}


@pytest.mark.parametrize("path", ["/_plugins", "/_plugins/x", "/v2", "/v2/{name}", "/generate-stream/x"])
def test_a_reserved_path_is_no_models(path: str, caplog: pytest.LogCaptureFixture) -> None:
    assert shared_out(HandlerPaths(PATHS), a=loaded(path, "/v20")) == {"a": [("/v20", 0)]}
    assert f"POST {path} is not served: the path is the server's own" in caplog.text


def test_of_the_handlers_that_fit_a_path_the_first_is_found(tmp_path: Path) -> None:
    status = tmp_path / STATUS_FILE
    handlers = RuntimeHandlers(RuntimeModels(tmp_path))
    assert handlers.find("/x/a") == {}
    either = ModelStatus("READY", handlers=[HandlerStatus("POST", "/x/{name}", 1)])
    first = ModelStatus("READY", handlers=[HandlerStatus("POST", "/x/a.b", 0), HandlerStatus("GET", "/x/{p:path}", 2)])
    write_status(status, {"either": either, "first": first})
    assert handlers.find("/x/a.b") == {"POST": "first", "GET": "first"}
    assert handlers.find("/x/a-b") == {"POST": "either", "GET": "first"}
    assert handlers.find("/x/a/b") == {"GET": "first"}
    assert handlers.find("/x") == {}
