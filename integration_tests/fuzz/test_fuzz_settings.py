"""Configuration files and environments of any content: settings, or an error that says what is wrong."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import edited, edits, json_values

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.cli import main
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.sources import SETTING_PREFIX

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

GOOD = b"""
opensearch_ml_stream:
  host: 127.0.0.1
  port: 9510
  heartbeat_seconds: 1.5
  store: "sqlite:////tmp/x.db"
  cors_origins: [https://app.example.com]
plugins.ml_commons:
  connector.private_ip_enabled: true
  trusted_connector_endpoints_regex:
    - ^https://api\\.openai\\.com/.*$
"""
NAMES = list(load_installed_settings(environment={"HOME": "/h"}).definitions())
PARTS = sorted({part for name in NAMES for part in name.split(".")})
YAML_PIECES = [
    "&a ", "*a", "!!int ", "!!float ", "!!bool ", "!!timestamp ", "!!binary ", "!!set ", "!!omap ", "!!python/name:x ",
    "<<: ", "? ", ": ", "- ", "| ", "> ", "%YAML 9.9\n---\n", "---\n", "...\n", "\t", "'", '"', "{", "}", "[", "]", "#",
    "~", "2026-99-99", "0x", "0b2", "1:99", ".inf", ".nan", "1e999", "9" * 5_000, "[" * 500, "{a: " * 500, "\n", "\x00",
    "\ud83d", "\ufeff", "\u2028",
]  # fmt: skip
VARIABLES = [*(SETTING_PREFIX + name.upper().replace(".", "__") for name in NAMES), "MLSTREAM_PORT", "MLSTREAM_HOST"]
LISTS = ["[", '["a", 1]', "[" * 2_000, "[" + "9" * 5_000 + "]", "-1", "1e5"]
PIECES = st.one_of(st.sampled_from([*YAML_PIECES, *NAMES, *PARTS]), st.text(max_size=6))


def load(path: Path, environment: Mapping[str, str]) -> None:
    """The settings are loaded or refused."""
    try:
        settings = load_installed_settings(path, {"HOME": "/h", **environment})
    except InvalidRequest as error:
        assert len(error.reason) < 2_000 and "\n" not in error.reason.replace(str(path), "")
    else:
        assert isinstance(settings, Settings)


def load_text(folder: Path, data: bytes) -> None:
    path = folder / "config.yml"
    path.write_bytes(data)
    load(path, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@pytest.mark.parametrize("case", corpus("settings"))
def test_a_file_that_once_failed_is_an_error_of_one_line_and_exit_code_2(
    folder: Path, case: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load_text(folder, case["data"].encode("latin-1"))
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", "settings", "--config", str(folder / "config.yml")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert (stopped.value.code, capsys.readouterr().err.count("\n")) == (2, 1)


@tries(150)
@given(edits())
def test_a_damaged_file_is_read_or_refused(folder: Path, changes: list[Any]) -> None:
    data = edited(GOOD, changes)
    show("settings", data=data.decode("latin-1"))
    load_text(folder, data)


@tries(150)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_pieces_of_yaml_are_read_or_refused(folder: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    show("settings", data=data.decode("latin-1"))
    load_text(folder, data)


@tries(150)
@given(st.dictionaries(st.sampled_from(NAMES), json_values(PARTS), max_size=3) | json_values([*NAMES, *PARTS]))
def test_settings_of_any_type_are_read_or_refused(folder: Path, document: Any) -> None:
    data = yaml.safe_dump(document).encode("utf-8", "surrogatepass")
    show("settings", data=data.decode("latin-1"))
    load_text(folder, data)


@tries(150)
@given(
    st.dictionaries(
        st.sampled_from(VARIABLES) | st.text(max_size=4).map(SETTING_PREFIX.__add__),
        PIECES | st.sampled_from(LISTS),
        max_size=3,
    )
)
def test_an_environment_is_read_or_refused(folder: Path, environment: dict[str, str]) -> None:
    path = folder / "empty.yml"
    path.write_bytes(b"")
    load(path, environment)
