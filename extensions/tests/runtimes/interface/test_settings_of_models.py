"""Settings of models and servers, of files, arguments and the environment."""

import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from opensearch_ml_stream.runtimes.interface import MLModel
from opensearch_ml_stream.runtimes.interface.context import model_context
from opensearch_ml_stream.runtimes.interface.errors import InvalidModelURI, ModelNotFound
from opensearch_ml_stream.runtimes.interface.handlers import custom_handler, get_custom_handlers
from opensearch_ml_stream.runtimes.interface.logging import ModelLoggerFormatter, configure_logger
from opensearch_ml_stream.runtimes.interface.model_files import extract_headers, get_model_uri, insert_headers
from opensearch_ml_stream.runtimes.interface.settings import ModelParameters, ModelSettings, Settings
from opensearch_ml_stream.runtimes.interface.types import InferenceRequest, InferenceResponse, ValidationError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "runtime_of_test.py").write_text("class Model:\n    pass\n")
    settings = {"name": "m", "implementation": "runtime_of_test.Model", "parameters": {"uri": "./w", "version": "v1"}}
    (tmp_path / "model-settings.json").write_text(json.dumps(settings))
    yield tmp_path
    sys.modules.pop("runtime_of_test", None)


def test_a_file_of_settings_is_read_and_written_back(folder: Path) -> None:
    file = folder / "model-settings.json"
    settings = ModelSettings.parse_file(file)
    assert (settings.name, settings.version, settings.max_batch_size, settings.inputs) == ("m", "v1", 0, [])
    assert settings.dict() == json.loads(file.read_text())
    assert json.loads(settings.json()) == settings.dict()


def test_the_class_comes_from_the_models_folder_which_does_not_stay_on_the_path(folder: Path) -> None:
    settings = ModelSettings.parse_file(folder / "model-settings.json")
    path = list(sys.path)
    assert settings.implementation.__name__ == "Model"
    assert sys.path == path
    assert settings.implementation_ == "runtime_of_test.Model"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module.Model", "No module named 'no_such_module'"),
        ("runtime_of_test.Other", "Module 'runtime_of_test' has no 'Other'"),
        ("Model", "names no class"),
    ],
)
def test_a_class_that_is_not_there_is_an_import_error(folder: Path, name: str, reason: str) -> None:
    source = str(folder / "model-settings.json")
    settings = ModelSettings.model_validate({"implementation": name, "_source": source})
    with pytest.raises(ImportError, match=reason):
        _ = settings.implementation


def test_a_class_may_be_given_in_place_of_its_name() -> None:
    settings = ModelSettings(implementation=MLModel)
    assert settings.implementation is MLModel
    settings.implementation = Settings
    assert settings.dict() == {"implementation": "opensearch_ml_stream.runtimes.interface.settings.Settings"}


def test_parameters_keep_what_they_do_not_know_and_settings_drop_it() -> None:
    settings = ModelSettings(implementation="a.B", unknown=1, parameters={"unknown": 1, "extra": {"k": [1]}})
    assert settings.parameters is not None
    assert settings.dict() == {"implementation": "a.B", "parameters": {"unknown": 1, "extra": {"k": [1]}}}
    with pytest.raises(ValueError, match='has no field "unknown"'):
        settings.unknown = 1


def test_defaults_that_can_change_are_each_records_own() -> None:
    changed = ModelParameters()
    assert changed.extra is not None
    changed.extra["k"] = 1
    assert ModelParameters().extra == {}
    assert changed.dict() == {}
    changed.extra = {"k": 1}
    assert changed.dict() == {"extra": {"k": 1}}


def test_settings_say_what_is_wrong() -> None:
    with pytest.raises(ValidationError) as caught:
        ModelSettings(max_batch_size="x", parameters={"version": 1})
    places = [problem["loc"] for problem in caught.value.errors()]
    assert sorted(places) == [("implementation",), ("max_batch_size",), ("parameters", "version")]


def test_the_environment_gives_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"NAME": "env", "IMPLEMENTATION": "a.B", "URI": "/w", "MAX_BATCH_TIME": "0.5", "EXTRA": '{"k": 1}'}
    for name, value in variables.items():
        monkeypatch.setenv(f"MLSERVER_MODEL_{name}", value)
    monkeypatch.setenv("mlserver_parallel_workers", "0")
    monkeypatch.setenv("MLSERVER_GZIP_ENABLED", "off")
    monkeypatch.setenv("MLSERVER_EXTENSIONS", "not JSON")
    settings = ModelSettings(parameters={})
    assert (settings.name, settings.implementation_, settings.max_batch_time) == ("env", "a.B", 0.5)
    assert settings.parameters == ModelParameters(uri="/w", extra={"k": 1})
    assert ModelSettings(name="given").name == "given"
    with pytest.raises(ValidationError, match="extensions"):
        Settings()
    monkeypatch.setenv("MLSERVER_EXTENSIONS", '["a"]')
    server = Settings(http_port=1)
    assert (server.parallel_workers, server.gzip_enabled, server.extensions, server.http_port) == (0, False, ["a"], 1)


async def test_a_models_files_are_found_beside_its_settings(folder: Path) -> None:
    settings = ModelSettings.parse_file(folder / "model-settings.json")
    with pytest.raises(InvalidModelURI, match="w") as caught:
        await get_model_uri(settings)
    assert caught.value.status_code == 422
    (folder / "w").mkdir()
    assert await get_model_uri(settings, ["model.bin"]) == str(folder / "w")
    (folder / "w/model.bin").touch()
    assert await get_model_uri(settings, ["other.bin", "model.bin"]) == str(folder / "w/model.bin")
    assert settings.parameters is not None
    settings.parameters.uri = "s3://bucket/w"
    assert await get_model_uri(settings) == "s3://bucket/w"
    with pytest.raises(InvalidModelURI):
        await get_model_uri(ModelSettings(implementation="a.B"))


async def test_a_model_says_what_its_settings_say() -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1]}
    settings = ModelSettings(
        name="m",
        implementation="a.B",
        platform="p",
        versions=["p/1"],
        inputs=[tensor],
        parameters={"content_type": "np"},
    )
    model = MLModel(settings)
    model.outputs = model.inputs or []
    assert (model.ready, model.name, model.version, model.settings) == (False, "m", None, settings)
    assert (await model.metadata()).model_dump() == {
        "name": "m",
        "versions": ["p/1"],
        "platform": "p",
        "inputs": [tensor],
        "outputs": [tensor],
        "parameters": {"content_type": "np"},
    }


async def test_without_a_stream_of_its_own_a_model_responds_once() -> None:
    class Once(MLModel):
        async def predict(self, payload: InferenceRequest) -> InferenceResponse:
            return InferenceResponse(model_name=self.name, outputs=[])

    async def requests() -> AsyncIterator[InferenceRequest]:
        yield InferenceRequest(inputs=[])

    model = Once(ModelSettings(name="m", implementation="a.B"))
    assert [response.model_name async for response in model.predict_stream(requests())] == ["m"]
    assert await model.load() and await model.unload()
    with pytest.raises(NotImplementedError):
        await MLModel(model.settings).predict(InferenceRequest(inputs=[]))


def test_methods_may_be_routes() -> None:
    class Routed(MLModel):
        @custom_handler(rest_path="/x", rest_method="GET")
        async def x(self) -> str:
            return "x"

    model = Routed(ModelSettings(implementation="a.B"))
    [(route, method)] = get_custom_handlers(model)
    assert (route.rest_path, route.rest_method, method) == ("/x", "GET", model.x)


def test_headers_go_into_requests_and_out_of_responses() -> None:
    request = insert_headers(InferenceRequest(inputs=[]), {"a": "b"})
    assert request.parameters is not None
    response = InferenceResponse(model_name="m", outputs=[], parameters=request.parameters)
    assert extract_headers(response) == {"a": "b"}
    assert extract_headers(response) is None


def test_log_lines_name_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.LogRecord("mlserver", logging.INFO, "f", 1, "a %s", ("b",), None)
    with model_context(ModelSettings(name="m", implementation="a.B", parameters={"version": "v1"})):
        assert ModelLoggerFormatter(None).format(record).endswith("[mlserver][m:v1] INFO - a b")
        line = json.loads(ModelLoggerFormatter(Settings(use_structured_logging=True)).format(record))
    assert (line["model_name"], line["model_version"], line["message"]) == ("m", "v1", "a b")
    assert ModelLoggerFormatter(None).format(record).endswith("[mlserver] INFO - a b")
    logger = configure_logger()
    try:
        configure_logger(Settings(debug=False)).info("said once")
        assert capsys.readouterr().err.count("said once") == 1
    finally:
        logger.handlers.clear()


def test_errors_have_their_status() -> None:
    assert ModelNotFound("m", "v1").status_code == 404
    assert str(ModelNotFound("m", "v1")) == "Model m with version v1 not found"
