"""Folders of models, as MLServer finds and reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import (
    ModelFolder,
    check_models_folder,
    read_model_folders,
)


def write(folder: Path, settings: dict[str, Any] | str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = settings if isinstance(settings, str) else json.dumps(settings)
    (folder / "model-settings.json").write_text(text)
    return folder


def read(directory: Path, **environment: str) -> dict[str, ModelFolder]:
    return read_model_folders(directory, environment)


def test_a_model_without_a_name_has_that_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "b", {"implementation": "m.M"})
    write(tmp_path / "a", {"name": "other", "implementation": "m.M", "unknown": 1})
    models = read(tmp_path)
    assert [(key, model.folder.name) for key, model in models.items()] == [("other", "a"), ("b", "b")]
    assert models["b"].settings["name"] == "b"
    assert models["other"].problem == ""


def test_the_folder_itself_and_folders_at_any_depth_may_be_models(tmp_path: Path) -> None:
    write(tmp_path, {"name": "top", "implementation": "m.M"})
    write(tmp_path / "team" / "model", {"implementation": "m.M"})
    assert list(read(tmp_path)) == ["top", "model"]


def test_hidden_folders_and_python_environments_hold_no_models(tmp_path: Path) -> None:
    write(tmp_path / ".git" / "a", {"implementation": "m.M"})
    write(tmp_path / "env" / "lib" / "b", {"implementation": "m.M"})
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)
    write(tmp_path / "conda" / "share" / "c", {"implementation": "m.M"})
    assert read(tmp_path) == {}


def test_a_folder_may_be_a_link_as_volumes_of_kubernetes_are(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a", {"implementation": "m.M"})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    assert list(read(tmp_path / "models")) == ["a"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{\n "name": }', "is not JSON at line 2, column 10: Expecting value; correct it there"),
     ("[1]", "must hold a JSON object"),
     ("{}", "has no implementation: name the model's class there"),
     ('{"implementation": 1}', ": implementation must be a string"),
     ('{"implementation": "a.B", "parameters": [1]}', ": parameters must be an object"),
     ('{"implementation": "a.B", "parameters": {"uri": {}}}', ": parameters.uri must be a string"),
     ('{"implementation": "a.B", "parameters": {"extra": 1}}', ": parameters.extra must be an object"),
     ("[" * 100_000, "is nested too deeply")],
)  # fmt: skip
def test_a_file_that_is_wrong_fails_its_own_model_alone(tmp_path: Path, text: str, problem: str) -> None:
    folder = write(tmp_path / "a", text)
    write(tmp_path / "b", {"implementation": "m.M"})
    models = read(tmp_path)
    assert models["a"].problem.startswith(str(folder / "model-settings.json"))
    assert models["a"].problem.endswith(problem)
    assert models["b"].problem == ""


def test_versions_of_one_name_are_models_of_their_own(tmp_path: Path) -> None:
    for folder, version in (("1", "v1"), ("2", "v2"), ("x", "beta")):
        write(tmp_path / folder, {"name": "m", "implementation": "m.M", "parameters": {"version": version}})
    models = read(tmp_path)
    assert [(key, model.version, model.version_number) for key, model in models.items()] == [
        ("m", "v1", 1), ("m/v2", "v2", 2), ("m/beta", "beta", 1),
    ]  # fmt: skip


def test_the_second_of_two_models_of_one_name_and_version_fails(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"name": "m", "implementation": "m.M"})
    second = write(tmp_path / "b", {"name": "m", "implementation": "m.M"})
    models = read(tmp_path)
    assert models["m"].problem == ""
    assert [model.problem for key, model in models.items() if key != "m"] == [
        f"{second}/model-settings.json: the model m is that of {first} already; give it another name, or another "
        "parameters.version"
    ]


@pytest.mark.parametrize(
    ("settings", "count"),
    [({}, 1), ({"parallel_workers": 3}, 3), ({"parallel_workers": 0}, 1), ({"parallel_workers": True}, 1),
     ({"parallel_workers": 3, "parameters": {"extra": {"processes": 2}}}, 2), ({"parallel_workers": 10**6}, 256)],
)  # fmt: skip
def test_a_model_says_how_many_processes_it_has(tmp_path: Path, settings: dict[str, Any], count: int) -> None:
    write(tmp_path / "a", {"implementation": "m.M", **settings})
    assert read(tmp_path)["a"].process_count == count


def test_the_environment_fills_in_what_the_file_leaves_out(tmp_path: Path) -> None:
    write(tmp_path / "a", {"implementation": "m.M", "parameters": {"uri": "./mine"}})
    model = read(
        tmp_path,
        MLSERVER_MODEL_IMPLEMENTATION="other.O",
        MLSERVER_MODEL_MAX_BATCH_SIZE="8",
        MLSERVER_MODEL_URI="/theirs",
        MLSERVER_MODEL_VERSION="7",
        MLSERVER_MODEL_EXTRA='{"x": 1}',
    )["a"]
    assert model.settings["implementation"] == "m.M"
    assert model.settings["max_batch_size"] == 8
    assert model.parameters == {"uri": "./mine", "version": "7", "extra": {"x": 1}}


def test_without_any_file_the_environment_may_describe_the_one_model(tmp_path: Path) -> None:
    models = read(tmp_path, MLSERVER_MODEL_IMPLEMENTATION="m.M", MLSERVER_MODEL_NAME="n")
    assert {key: (model.folder, model.settings["implementation"]) for key, model in models.items()} == {
        "n": (tmp_path, "m.M")
    }


def test_a_folder_that_is_not_there_or_empty_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="gone does not exist; see --models"):
        check_models_folder(tmp_path / "gone", {})
    with pytest.raises(InvalidRequest, match=r"has no model: a folder in it with a model-settings\.json; see --models"):
        check_models_folder(tmp_path, {})
    write(tmp_path / "a", "{")
    check_models_folder(tmp_path, {})
