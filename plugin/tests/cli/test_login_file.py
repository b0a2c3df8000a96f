"""The file of remembered logins: its place, its mode, and what is refused."""

import os
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.login_file import Secret, login_file, read_logins, write_logins
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword

LOGINS: dict[str, Secret] = {"http://a": ApiKey("k"), "https://b:1/p": NameAndPassword("ann", "hunter22")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "opensearch-ml-stream" / "logins.json"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c"),
        ({"HOME": "/h"}, "/h/.config"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config"),
    ],
)
def test_it_is_in_the_users_configuration_folder(environment: dict[str, str], folder: str) -> None:
    assert login_file(environment) == Path(folder, "opensearch-ml-stream", "logins.json")


def test_what_is_written_is_read_again(path: Path) -> None:
    assert read_logins(path) == {}
    write_logins(path, LOGINS)
    assert read_logins(path) == LOGINS
    write_logins(path, {})
    assert read_logins(path) == {}


def test_file_and_folder_are_for_their_owner_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        write_logins(path, LOGINS)
        write_logins(path, LOGINS)
    finally:
        os.umask(before)
    assert [entry.stat().st_mode & 0o777 for entry in (path, path.parent)] == [0o600, 0o700]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o660, 0o666])
def test_a_file_that_others_can_open_is_refused(path: Path, mode: int) -> None:
    write_logins(path, LOGINS)
    path.chmod(mode)
    with pytest.raises(CommandFailed, match=f"mode {mode:o}.*then `chmod 600` it or delete it"):
        read_logins(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "hunter22",
        '{"logins":{}}',
        '{"version":2,"logins":{}}',
        '{"version":1,"logins":["hunter22"]}',
        '{"version":1,"logins":{"http://a":"hunter22"}}',
        '{"version":1,"logins":{"http://a":{"user":"hunter22"}}}',
        '{"version":1,"logins":{"http://a":{"key":["hunter22"]}}}',
        '{"version":1,"logins":{"http://a":{"key":"hunter22',
    ],
)
def test_a_file_that_cannot_be_read_is_named_without_what_it_holds(path: Path, content: str) -> None:
    write_logins(path, {})
    path.write_text(content)
    with pytest.raises(CommandFailed, match="delete it and log in") as raised:
        read_logins(path)
    assert str(path) in str(raised.value) and "hunter22" not in str(raised.value)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


def test_a_write_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_logins(path, LOGINS)

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CommandFailed, match=r"Cannot write the remembered logins .*: No space left"):
        write_logins(path, {})
    assert read_logins(path) == LOGINS
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_folder_that_is_a_file_is_an_error_of_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    path = login_file({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    with pytest.raises(CommandFailed, match="Cannot read the remembered logins"):
        read_logins(path)
    with pytest.raises(CommandFailed, match="Cannot write the remembered logins"):
        write_logins(path, LOGINS)


def test_no_secret_is_in_the_repr_of_a_login() -> None:
    assert "hunter22" not in repr(LOGINS) and "'k'" not in repr(LOGINS)
