"""Settings: where they come from, which source wins, and what is said of a wrong one."""

import re
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.cli.settings_command import markdown_table
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import SWITCHES, Setting
from opensearch_ml_stream.plugin.settings.sources import flatten, load_settings, read_file, unknown_variables
from opensearch_ml_stream.plugin.settings.values import read_value
from tests.counted_work import steps

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
DEFINITIONS = load_installed_settings(environment={"HOME": "/h"}).definitions()


def config(folder: Path, text: str) -> Path:
    path = folder / "config.yml"
    path.write_text(text)
    return path


def test_without_any_source_the_defaults_hold_and_the_store_lies_in_the_users_data_directory() -> None:
    settings = load_settings(Settings(), environment={"XDG_DATA_HOME": "/data"})
    assert settings == Settings(store="sqlite:////data/opensearch-ml-stream/store.db")


def test_the_command_line_beats_the_environment_which_beats_the_file_which_beats_the_defaults(tmp_path: Path) -> None:
    path = config(tmp_path, "opensearch_ml_stream: {host: file, port: 1, workers: 3}")
    environment = {"HOME": "/h", "MLSTREAM_HOST": "environment", "MLSTREAM_PORT": "2"}
    options = {"opensearch_ml_stream.port": 3, "opensearch_ml_stream.workers": None}
    settings = load_settings(Settings(), path, environment, options)
    assert (settings.host, settings.port, settings.workers) == ("environment", 3, 3)


def test_the_environment_names_the_file_unless_the_command_line_does(tmp_path: Path) -> None:
    path = config(tmp_path, "opensearch_ml_stream.port: 7")
    assert load_settings(Settings(), None, {"HOME": "/h", "MLSTREAM_CONFIG": str(path)}).port == 7


def test_keys_of_the_file_may_be_nested_dotted_or_both(tmp_path: Path) -> None:
    text = """
plugins.ml_commons:
  connector.private_ip_enabled: true
  model_auto_deploy: {enable: false}
  trusted_connector_endpoints_regex: ["^https://a/.*$"]
"""
    settings = load_settings(Settings(), config(tmp_path, text), {"HOME": "/h"})
    assert settings.private_ip_enabled is True
    assert settings.model_auto_deploy_enable is False
    assert settings.trusted_connector_endpoints_regex == ("^https://a/.*$",)


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    assert read_file(config(tmp_path, "# nothing yet\n"), ()) == {}


def test_any_setting_can_be_given_by_an_environment_variable() -> None:
    environment = {
        "HOME": "/h",
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__CONNECTOR__PRIVATE_IP_ENABLED": "true",
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__TRUSTED_CONNECTOR_ENDPOINTS_REGEX": '["^https://[a-z]{1,2}/", "b"]',
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__CONNECTOR__RESTRICTED_IP_PATTERNS": "[0-9]{1,3}",
    }
    settings = load_settings(Settings(), None, environment)
    assert settings.private_ip_enabled is True
    assert settings.trusted_connector_endpoints_regex == ("^https://[a-z]{1,2}/", "b")
    assert settings.restricted_ip_patterns == ("[0-9]{1,3}",)


def test_permissions_of_roles_come_from_the_file_or_as_an_object_from_the_environment(tmp_path: Path) -> None:
    expected = (("team.a", ("cluster:admin/opensearch/ml/predict*",)), ("b", ("x",)))
    text = """
opensearch_ml_stream:
  role_permissions:
    team.a: ["cluster:admin/opensearch/ml/predict*"]
    b: x
"""
    environment = {
        "HOME": "/h",
        "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__ROLE_PERMISSIONS": """
            {"team.a": ["cluster:admin/opensearch/ml/predict*"], "b": "x"}
        """.strip(),
    }
    assert load_settings(Settings(), config(tmp_path, text), {"HOME": "/h"}).role_permissions == expected
    assert load_settings(Settings(), None, environment).role_permissions == expected


def test_an_unknown_key_is_an_error_that_names_its_source_and_the_most_similar_key(tmp_path: Path) -> None:
    path = config(tmp_path, "plugins.ml_commons.stream_enable: true")
    with pytest.raises(InvalidRequest) as error:
        load_settings(Settings(), path, {"HOME": "/h"})
    assert str(path) in error.value.reason
    assert "[plugins.ml_commons.stream_enable] not recognized" in error.value.reason
    assert "did you mean [plugins.ml_commons.stream_enabled]?" in error.value.reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "not YAML"),
        ("- a", "must hold settings"),
        ("a.b: 1\na: {b: 2}", "[a.b] is given twice"),
        ("opensearch_ml_stream.port:", "[opensearch_ml_stream.port]: expected an integer from 0 to 65535"),
        ("a: !!python/object:os.system {}", "not YAML"),
        ("a: &a {b: *a}", "not YAML at line 1, column 11: aliases are not supported"),
        ("a: &a [x, x]\nb: &b [*a, *a]", "aliases are not supported"),
        ("a: " + "[" * 5_000, "nested too deeply"),
        ("a." * 200 + "b: 1", "...] not recognized"),
        ("{a: " * 200 + "1" + "}" * 200, "...] not recognized"),
        ("? [a]\n: 1", "not YAML"),
        ("? 1\n: 1", "the name of a setting must be a string"),
        ("!!set {a}", "must hold settings"),
        ("a: 1\nb: 2\na: 3", "not YAML at line 3, column 1: this key is given twice"),
        ("a: {b: 1, b: 1}", "at line 1, column 11: this key is given twice"),
        ("a: " + "9" * 5_000, "a value cannot be read"),
        ("a: 2026-99-99", "a value cannot be read"),
        ('a: !!int ""', "a value cannot be read"),
        ("a: !!bool x", "a value cannot be read"),
        ("a: !!timestamp x", "a value cannot be read"),
    ],
)
def test_a_file_that_cannot_be_taken_is_an_error_that_says_why(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        load_settings(Settings(), config(tmp_path, text), {"HOME": "/h"})
    assert problem in error.value.reason


@pytest.mark.parametrize(
    "text",
    ["opensearch_ml_stream.store: 'https://me:hunter2@h", "a: [hunter2\nb: c", "a: !hunter2 x", "a: !hunter2!x y"],
)
def test_an_error_does_not_quote_the_file_since_a_line_of_it_may_hold_a_password(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequest, match="not YAML at line") as error:
        load_settings(Settings(), config(tmp_path, text), {"HOME": "/h"})
    assert "hunter2" not in error.value.reason


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "9" * 5_000 + "]", "[1", "[1e400]"])
def test_a_list_in_the_environment_that_is_no_json_is_a_string_or_an_error(text: str) -> None:
    name = "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__REMOTE_JOB__STATUS_REGEX__FAILED"
    with pytest.raises(InvalidRequest, match=name):
        load_settings(Settings(), None, {"HOME": "/h", name: text})


def test_an_error_is_one_line_whatever_the_name(tmp_path: Path) -> None:
    for path, environment in ((config(tmp_path, '"a\\nb": 1'), {}), (None, {"MLSTREAM_SETTING__A\nB": "1"})):
        with pytest.raises(InvalidRequest, match="not recognized") as error:
            load_settings(Settings(), path, {"HOME": "/h", **environment})
        assert "\n" not in error.value.reason


def test_many_settings_of_a_name_that_is_too_long_take_the_steps_of_one() -> None:
    document = {"k" * 1_000_000: dict.fromkeys(map(str, range(10_000)), 1)}

    def read() -> None:
        with pytest.raises(InvalidRequest, match="not recognized"):
            flatten(document, ())

    assert steps(read) < 5_000


def test_origins_and_host_names_are_kept_as_browsers_write_them(tmp_path: Path) -> None:
    text = """
opensearch_ml_stream:
  cors_origins: [HTTPS://App.example.com:443, "http://localhost:3000", "http://[::1]:80", "tauri://localhost"]
  allowed_hosts: [ML.example.com., sidecar]
"""
    settings = load_settings(Settings(), config(tmp_path, text), {"HOME": "/h"})
    assert settings.cors_origins == (
        "https://app.example.com",
        "http://localhost:3000",
        "http://[::1]",
        "tauri://localhost",
    )
    assert settings.allowed_hosts == ("ml.example.com", "sidecar")


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"missing\.yml: No such file"):
        load_settings(Settings(), tmp_path / "missing.yml", {"HOME": "/h"})


def test_a_wrong_value_is_never_repeated_since_it_may_hold_a_password() -> None:
    with pytest.raises(InvalidRequest) as error:
        load_settings(Settings(), None, {"HOME": "/h", "MLSTREAM_PORT": "hunter2"})
    assert "environment variable MLSTREAM_PORT" in error.value.reason
    assert "hunter2" not in error.value.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("opensearch_ml_stream.port", 65536),
        ("opensearch_ml_stream.port", 1.5),
        ("opensearch_ml_stream.port", True),
        ("opensearch_ml_stream.workers", 0),
        ("opensearch_ml_stream.heartbeat_seconds", 0),
        ("opensearch_ml_stream.heartbeat_seconds", float("nan")),
        ("opensearch_ml_stream.heartbeat_seconds", float("inf")),
        ("opensearch_ml_stream.log_format", "xml"),
        ("opensearch_ml_stream.host", 7),
        ("plugins.ml_commons.stream_enabled", "yes"),
        ("plugins.ml_commons.stream_enabled", 1),
        ("plugins.ml_commons.remote_job.status_field", [1]),
        ("plugins.ml_commons.trusted_connector_endpoints_regex", [r"(a)\1"]),
        ("plugins.ml_commons.trusted_connector_endpoints_regex", ["a" * 257]),
        ("plugins.ml_commons.remote_job.status_regex.failed", "("),
        ("plugins.ml_commons.remote_job.status_regex.failed", "\ud800"),
        ("opensearch_ml_stream.store", "sqlite:///a\0b"),
        ("opensearch_ml_stream.port", 10**400),
        ("opensearch_ml_stream.heartbeat_seconds", 10**400),
        ("opensearch_ml_stream.heartbeat_seconds", "9" * 5_000),
        ("opensearch_ml_stream.cors_origins", ["*"]),
        ("opensearch_ml_stream.cors_origins", ["null"]),
        ("opensearch_ml_stream.cors_origins", ["app.example.com"]),
        ("opensearch_ml_stream.cors_origins", ["https://app.example.com/"]),
        ("opensearch_ml_stream.cors_origins", ["https://me@app.example.com"]),
        ("opensearch_ml_stream.allowed_hosts", ["https://ml.example.com"]),
        ("opensearch_ml_stream.allowed_hosts", ["ml.example.com:9510"]),
        ("opensearch_ml_stream.allowed_hosts", ["*"]),
        ("opensearch_ml_stream.allowed_hosts", [""]),
    ],
)
def test_a_value_of_the_wrong_kind_or_out_of_range_is_refused_by_the_settings_name(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as error:
        read_value(DEFINITIONS[name], value)
    assert f"[{name}]" in error.value.reason


@pytest.mark.parametrize("setting", DEFINITIONS.values(), ids=lambda setting: setting.name)
def test_every_default_is_a_value_that_its_own_setting_takes(setting: Setting) -> None:
    assert read_value(setting, setting.default) == setting.default


def test_the_page_of_settings_has_every_setting_with_its_default_and_no_others() -> None:
    rows = [row for row in PAGE.read_text("utf-8").splitlines() if row.startswith("|")]
    assert rows == markdown_table(DEFINITIONS.values()).splitlines(), (
        "`opensearch-ml-stream settings --markdown` makes this table"
    )


def test_the_page_of_settings_says_of_each_when_to_change_it() -> None:
    heads = [line.partition(": ")[0] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("- `")]
    named = {name for head in heads for name in re.findall(r"`([^`]+)`", head)}
    switch = f"{SWITCHES}NAME"
    assert named == {switch if name.startswith(SWITCHES) else name for name in DEFINITIONS}


def test_a_variable_that_sets_nothing_is_named_with_the_one_that_was_meant() -> None:
    environment = {"MLSTREAM_STOER": "x", "MLSTREAM_X": "x", "MLSTREAM_PORT": "1", "MLSTREAM_URL": "u", "OTHER": "x"}
    assert unknown_variables(
        {**environment, "MLSTREAM_SETTING__A": "1", "MLSTREAM_STORE_PASSWORD": "x", "MLSTREAM_CA_CERTS": "x"}
    ) == [
        "the environment variable MLSTREAM_STOER sets nothing; did you mean MLSTREAM_STORE?",
        "the environment variable MLSTREAM_X sets nothing; a setting a.b is MLSTREAM_SETTING__A__B",
    ]
