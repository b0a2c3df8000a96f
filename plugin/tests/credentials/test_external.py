"""Credentials outside the store are read at each use, and only where the operator allows it."""

from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.plugin.credentials.external import MAX_FILE_BYTES, is_external, resolve_credential


@pytest.mark.parametrize(
    ("credential", "external"),
    [
        ({}, False),
        ({"key": "sk-1"}, False),
        ({"key": "sk-env:1", "other": "ENV:X"}, False),
        ({"key": "env:X"}, True),
        ({"key": "sk-1", "other": "file:/x"}, True),
    ],
)
def test_a_value_is_external_by_its_prefix(credential: dict[str, str], external: bool) -> None:
    assert is_external(credential) is external


@pytest.mark.parametrize("enabled", [True, False])
def test_a_credential_that_is_not_external_stays_as_it_is(enabled: bool) -> None:
    credential = {"key": "sk-1"}
    assert resolve_credential(credential, enabled) is credential


def test_external_values_are_read_and_the_others_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("  from file\n")
    monkeypatch.setenv("TOKEN", " from environment ")
    credential = {"a": "env:TOKEN", "b": f"file:{token}", "c": "sk-1"}
    expected = {"a": " from environment ", "b": "from file", "c": "sk-1"}
    assert resolve_credential(credential, True) == expected
    token.write_text("rotated")
    monkeypatch.setenv("TOKEN", "")
    assert resolve_credential(credential, True) == {"a": "", "b": "rotated", "c": "sk-1"}


def test_external_values_are_forbidden_unless_they_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    with pytest.raises(Forbidden) as raised:
        resolve_credential({"key": "env:TOKEN"}, False)
    assert raised.value.reason == (
        "The connector's credential is kept outside (env: or file:), "
        "which opensearch_ml_stream.external_credentials_enabled does not allow"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("env:MISSING", "The credential [key] names an environment variable that is not set"),
        ("file:/no/such/file", "The credential [key] names a file that cannot be read as text"),
        ("file:/", "The credential [key] names a file that cannot be read as text"),
        ("env:MLSTREAM_STORE_PASSWORD", "The credential [key] names an environment variable that is not set"),
        ("env:MLSTREAM_STORE", "The credential [key] names an environment variable that is not set"),
        ("file:/a\0b", "The credential [key] names a file that cannot be read as text"),
        ("file:/proc/self/environ", "The credential [key] names a file that cannot be read as text"),
        ("file:/tmp/../proc/self/cmdline", "The credential [key] names a file that cannot be read as text"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_by_its_key_alone(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    monkeypatch.delenv("MISSING", raising=False)
    monkeypatch.setenv("MLSTREAM_STORE_PASSWORD", "secret")
    monkeypatch.setenv("MLSTREAM_STORE", "http://me:secret@host")
    with pytest.raises(InvalidRequest) as raised:
        resolve_credential({"key": value}, True)
    assert raised.value.reason == problem


def test_a_file_that_is_not_text_is_refused_without_its_bytes(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe secret")
    with pytest.raises(InvalidRequest) as raised:
        resolve_credential({"key": f"file:{binary}"}, True)
    assert raised.value.reason == "The credential [key] names a file that cannot be read as text"
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


def test_no_more_of_a_file_is_read_than_a_credential_may_have(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"a" * (MAX_FILE_BYTES + 1))
    assert resolve_credential({"key": f"file:{large}"}, True) == {"key": "a" * MAX_FILE_BYTES}
