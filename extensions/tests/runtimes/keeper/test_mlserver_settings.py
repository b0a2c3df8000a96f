"""MLServer's settings of a whole server."""

from pathlib import Path

from opensearch_ml_stream.extensions.runtimes.keeper.mlserver_settings import not_needed, read_server_settings


def test_the_file_comes_before_the_environment_and_names_of_models_are_not_the_servers(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"parallel_workers": 2, "debug": false}')
    environment = {
        "MLSERVER_PARALLEL_WORKERS": "8", "MLSERVER_GZIP_ENABLED": "false", "MLSERVER_ENVIRONMENTS_DIR": "/envs",
        "MLSERVER_MODEL_NAME": "m", "MLSERVER_MODEL_REPOSITORY_ROOT": "/models", "OTHER": "1",
    }  # fmt: skip
    assert read_server_settings(tmp_path, environment) == (
        {
            "parallel_workers": 2, "gzip_enabled": False, "environments_dir": "/envs", "debug": False,
            "model_repository_root": "/models",
        },
        "",
    )  # fmt: skip


def test_a_file_that_is_wrong_is_told_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{")
    settings, problem = read_server_settings(tmp_path, {"MLSERVER_DEBUG": "true"})
    assert settings == {"debug": True}
    assert problem.startswith(f"{tmp_path / 'settings.json'} is not JSON")


def test_one_line_says_what_is_not_needed_and_what_stands_for_it() -> None:
    assert not_needed({"parallel_workers": 4, "environments_dir": "/e", "http_port": 8080}) == (
        "settings of MLServer that are not needed here: parallel_workers (each model has processes of its own: "
        "parameters.extra.processes), http_port (--port)"
    )
    assert not_needed({"environments_dir": "/e"}) == ""
