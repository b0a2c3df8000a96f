"""The interpreter and the environment variables of a model's process."""

import os
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from opensearch_ml_stream.extensions.runtimes.keeper.environments import (
    NoEnvironment,
    environment_variables,
    interpreter,
    secret_variables,
)
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import setting


def model(folder: Path, **parameters: str) -> ModelFolder:
    return ModelFolder(folder, {"name": "m", "parameters": parameters})


def make_environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


def test_a_model_runs_in_this_servers_interpreter_unless_it_names_another(tmp_path: Path) -> None:
    assert interpreter(model(tmp_path), tmp_path) == sys.executable


def test_an_environment_may_lie_in_the_models_folder_or_elsewhere(tmp_path: Path) -> None:
    inside = make_environment(tmp_path / "model" / "env")
    outside = make_environment(tmp_path / "other")
    assert interpreter(model(tmp_path / "model", environment_path="./env"), tmp_path) == str(inside)
    assert interpreter(model(tmp_path / "model", environment_path=str(tmp_path / "other")), tmp_path) == str(outside)


def test_an_environment_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(NoEnvironment, match=r"parameters.environment_path: there is no interpreter .*/gone/bin/python"):
        interpreter(model(tmp_path, environment_path=str(tmp_path / "gone")), tmp_path)


def test_a_tarball_is_unpacked_once(tmp_path: Path) -> None:
    make_environment(tmp_path / "env")
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "env" / "bin", "bin")
    packed = model(tmp_path, environment_tarball="env.tar.gz")
    python = Path(interpreter(packed, tmp_path / "unpacked"))
    assert os.access(python, os.X_OK)
    assert python.is_relative_to(tmp_path / "unpacked")
    (python.parent / "mark").touch()
    assert interpreter(packed, tmp_path / "unpacked") == str(python)
    assert (python.parent / "mark").exists()


def test_a_tarball_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "env.tar.gz").write_text("no")
    with pytest.raises(NoEnvironment, match="cannot be unpacked"):
        interpreter(model(tmp_path, environment_tarball="env.tar.gz"), tmp_path)


@dataclass(frozen=True, slots=True)
class TokenSettings:
    token: str = setting("", "A token", name="acme.token", kind="secret")
    other: str = setting("", "Another", name="acme.other", kind="secret")


def test_what_is_this_servers_own_is_not_passed_on() -> None:
    settings = Settings(tls_key_password="env:TLS_PASSWORD")
    secrets = secret_variables(settings.with_section(TokenSettings("env:ACME_TOKEN", "file:/token")))
    passed = environment_variables(
        sys.executable,
        secrets,
        {
            "MLSTREAM_STORE_PASSWORD": "x", "MLSTREAM_SETTING__A": "x", "OPENSEARCH_ML_STREAM_X": "x",
            "TLS_PASSWORD": "x", "ACME_TOKEN": "x", "PROMETHEUS_MULTIPROC_DIR": "x", "MLSERVER_DEBUG": "1",
            "HF_TOKEN": "h", "PATH": "/b",
        },
    )  # fmt: skip
    assert passed == {"MLSERVER_DEBUG": "1", "HF_TOKEN": "h", "PATH": "/b"}


def test_programs_of_another_environment_come_first_and_packages_of_this_one_not_at_all() -> None:
    environment = {"PATH": "/usr/bin", "PYTHONPATH": "/ours", "VIRTUAL_ENV": "/ours"}
    assert environment_variables("/env/bin/python", frozenset(), environment) == {"PATH": "/env/bin:/usr/bin"}
