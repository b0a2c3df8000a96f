"""`models init`: what it writes is what the sidecar reads."""

import json
from pathlib import Path

import pytest

from opensearch_ml_stream.extensions.runtimes.keeper.openai_connectors import is_remote_model, provider_connector
from opensearch_ml_stream.plugin.cli.init_command import Runtime
from opensearch_ml_stream.runtimes.shipped_runtimes import ENGINES, SHORT_NAMES
from tests.cli.conftest import Run


@pytest.mark.parametrize("runtime", list(Runtime))
def test_a_folder_is_written_with_settings_and_the_next_command(run: Run, tmp_path: Path, runtime: Runtime) -> None:
    folder = tmp_path / "all models" / "mine"
    ended = run("models", "init", str(folder), "--runtime", runtime)
    assert ended.code == 0
    serve, predict = ended.stderr.splitlines()[-2:]
    assert serve == f"Start: opensearch-ml-stream serve --models '{folder.parent}'"
    assert predict == "Try it: opensearch-ml-stream predict runtime-mine --stream 'To be or not to be'"
    written = [str(file) for file in folder.iterdir()]
    assert sorted(ended.stdout.splitlines()) == sorted(written)
    settings = json.loads((folder / "model-settings.json").read_text())
    assert settings["name"] == "mine"
    known = settings["implementation"] in {*SHORT_NAMES, *ENGINES} or is_remote_model(settings["implementation"])
    assert known or (folder / "model.py").exists()


def test_the_settings_for_openai_are_those_of_a_provider_s_model(run: Run, tmp_path: Path) -> None:
    run("models", "init", str(tmp_path / "gpt"), "--runtime", "openai")
    settings = json.loads((tmp_path / "gpt" / "model-settings.json").read_text())
    assert provider_connector(settings, {})["parameters"]["model"] == "gpt-4o-mini"


@pytest.mark.parametrize("file", ["model-settings.json", "model.py"])
def test_nothing_is_written_over(run: Run, tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("mine")
    ended = run("models", "init", str(tmp_path))
    assert (ended.code, ended.stdout) == (2, "")
    assert f"{file} already exists" in ended.stderr
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir() if one.name != "config"] == [(file, "mine")]


def test_a_folder_that_cannot_be_made_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run("models", "init", str(tmp_path / "file" / "mine"))
    assert ended.code == 2
    assert "Cannot write to" in ended.stderr
