"""`blueprints`, `settings`, and what `serve` and `demo` do before they listen."""

import errno
import json
import socket
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.blueprint_commands import environment_name
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.serve_commands import make_store_folder
from opensearch_ml_stream.plugin.settings import Settings
from tests.cli.conftest import Run


def test_blueprints_are_listed_by_name(run: Run) -> None:
    names = [line.split("\t")[0] for line in run("blueprints", "list").stdout.splitlines()]
    assert {"openai-chat", "anthropic-messages"} <= set(names)
    assert names == sorted(names)


def test_a_blueprint_is_shown_with_what_it_needs_and_the_command_that_uses_it(run: Run) -> None:
    shown = run("blueprints", "show", "openai-chat").stdout
    assert "--credential openAI_key=" in shown
    assert "--set model=" in shown and "(default " in shown
    assert (
        "opensearch-ml-stream models create --blueprint openai-chat --credential openAI_key=env:OPENAI_API_KEY" in shown
    )


def test_a_value_that_only_the_user_knows_is_shown_in_the_command_and_is_no_default(run: Run) -> None:
    shown = run("blueprints", "show", "azure-openai-chat").stdout
    assert "(such as https://my-resource.openai.azure.com)" in shown and "(default 2024-10-21)" in shown
    assert "--blueprint azure-openai-chat --set endpoint=... --set deploy-name=... --credential" in shown


def test_a_blueprints_json_is_the_connectors_body_alone(run: Run) -> None:
    assert json.loads(run("blueprints", "show", "openai-chat", "--json").stdout)["protocol"] == "http"


def test_settings_are_listed_with_the_values_in_force_but_no_password(run: Run) -> None:
    shown = run("settings", MLSTREAM_PORT="1234", MLSTREAM_STORE="https://me:hunter2@host:9200").stdout
    rows = {name: (value, dynamic) for name, value, dynamic, _ in (line.split("\t") for line in shown.splitlines())}
    assert rows["opensearch_ml_stream.port"] == ("1234", "no")
    assert rows["opensearch_ml_stream.store"] == ("https://***@host:9200", "no")
    assert rows["plugins.ml_commons.stream_enabled"] == ("true", "yes")
    assert rows["plugins.ml_commons.trusted_connector_endpoints_regex"][0].endswith(" entries")


def test_settings_as_json_are_whole_and_show_no_password_either(run: Run) -> None:
    listed = run("settings", "--json", MLSTREAM_STORE="https://me:hunter2@host:9200").stdout
    settings = {one["setting"]: one for one in json.loads(listed)}
    assert settings["opensearch_ml_stream.store"]["value"] == "https://***@host:9200"
    assert settings["opensearch_ml_stream.port"]["value"] == 9510
    assert settings["plugins.ml_commons.stream_enabled"]["at_run_time"] is True
    assert len(settings["plugins.ml_commons.trusted_connector_endpoints_regex"]["value"]) > 10
    assert "hunter2" not in listed


@pytest.mark.parametrize("listing", [("blueprints", "list"), ("extensions",)])
def test_a_list_as_json_holds_what_its_lines_do(run: Run, listing: tuple[str, ...]) -> None:
    rows = [list(row.values()) for row in json.loads(run(*listing, "--json").stdout)]
    assert rows == [line.split("\t") for line in run(*listing).stdout.splitlines()]


def test_permissions_of_roles_are_listed_as_an_object(run: Run) -> None:
    name = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__ROLE_PERMISSIONS"
    assert '{"r":["a"]}' in run("settings", **{name: '{"r": ["a"]}'}).stdout


def test_settings_as_markdown_are_the_defaults_whatever_is_set(run: Run) -> None:
    lines = run("settings", "--markdown", MLSTREAM_PORT="1234").stdout.splitlines()
    assert lines[0] == "| Setting | Default | At run time | What for |"
    assert "| `opensearch_ml_stream.port` | `9510` |  | Port to listen on |" in lines
    assert any(line.startswith("| `opensearch_ml_stream.store` |  |  |") for line in lines)
    assert any(r"`(stopped\|cancelled)` | yes |" in line for line in lines)


def test_the_stores_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    make_store_folder(Settings(store=f"sqlite:///{tmp_path}/a/b/store.db"))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("store", ["https://host:9200", "sqlite:///:memory:"])
def test_a_store_without_a_file_needs_no_folder(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_store_folder(Settings(store=store))
    assert list(tmp_path.iterdir()) == []


def test_a_stores_folder_that_cannot_be_made_is_told_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandFailed, match=r"Cannot make the store's folder .*/file/a \(Not a directory\).*--store"):
        make_store_folder(Settings(store=f"sqlite:///{tmp_path}/file/a/store.db"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "127.0.0.1:1 is in use: stop the program"),
        (PermissionError(errno.EACCES, "Permission denied"), "Cannot listen on 127.0.0.1:1: Permission denied"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "The host 127.0.0.1 has no address"),
    ],
)
def test_an_address_that_cannot_be_had_is_told_with_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str
) -> None:
    def look_up(*_: object, **__: object) -> list[object]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ended = run("demo", "--host", "127.0.0.1", "--port", "1", "--store", f"sqlite:///{tmp_path}/store.db")
    assert (ended.code, ended.stdout) == (1, "")
    assert words in ended.stderr


def test_any_other_error_of_the_system_is_not_taken_for_one_of_the_address(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*_: object, **__: object) -> list[object]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ended = run("demo", "--store", f"sqlite:///{tmp_path}/store.db")
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.endswith("OSError: [Errno 24] Too many open files\n")


@pytest.mark.parametrize(
    ("credential", "variable"),
    [("openAI_key", "OPENAI_API_KEY"), ("api_key", "API_KEY"), ("access_key", "AWS_ACCESS_KEY_ID"),
     ("session_token", "AWS_SESSION_TOKEN"), ("vertexAI_token", "VERTEXAI_TOKEN")],
)  # fmt: skip
def test_the_suggested_variable_of_a_credential_is_the_usual_one(credential: str, variable: str) -> None:
    assert environment_name(credential) == variable
